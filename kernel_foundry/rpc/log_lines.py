"""Lines of a service's log: for people, or with KERNEL_FOUNDRY_LOG=json for machines."""

import json
import logging
import os
from collections.abc import Mapping
from typing import Final

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.printable import LineFormatter
from kernel_foundry.request_id import current_request_id
from kernel_foundry.tracing import current_trace_id

VARIABLE: Final = "KERNEL_FOUNDRY_LOG"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: when, how bad, who says what, and the trace and request it is of."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields = {
            "unix_s": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        trace_id = current_trace_id()
        if trace_id:
            fields["trace_id"] = trace_id
        request_id = current_request_id()
        if request_id:
            fields["request_id"] = request_id
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def log_formatter(environment: Mapping[str, str] = os.environ) -> logging.Formatter:
    """Return the formatter that the environment asks for.

    Raises:
        InvalidArgumentError: it is neither of the two.
    """
    asked = environment.get(VARIABLE, "")
    if asked == "json":
        return JsonFormatter()
    if asked not in ("", "text"):
        raise InvalidArgumentError(f"{VARIABLE}={asked[:80]!r}: expected text or json", field="log")
    return LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
