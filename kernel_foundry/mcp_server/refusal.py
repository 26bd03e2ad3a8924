"""Our errors as the protocol has them: in words for the agent, printable, of bounded size."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import ValidationError

from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.printable import printable

_LONGEST_ERROR: Final = 2000
"""Characters."""
_EXPECTED: Final = {
    "missing": "is missing",
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "dict_type": "expected an object",
    "list_type": "expected a list",
    "literal_error": "expected {expected}",
    "string_pattern_mismatch": "expected text that matches {pattern}",
    "string_too_long": "expected at most {max_length} characters",
    "too_long": "expected at most {max_length} entries",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than": "expected less than {lt}",
    "less_than_equal": "expected at most {le}",
}
"""Message templates by pydantic's error type."""


@contextmanager
def _refusals(of_protocol: Callable[[str], Exception]) -> Iterator[None]:
    try:
        yield
    except KernelFoundryError as error:
        raise of_protocol(printable(str(error))[:_LONGEST_ERROR]) from error


tool_refusals: Final = partial(_refusals, ToolError)
"""Makes our errors a tool's: raises `ToolError` in place of a `KernelFoundryError`."""
resource_refusals: Final = partial(_refusals, ResourceError)
"""The same for a resource, with `ResourceError`."""
prompt_refusals: Final = partial(_refusals, partial(MCPError, INVALID_PARAMS))
"""The same for the arguments of a prompt, with `MCPError`."""


def refused_arguments(tool: str, error: ValidationError) -> str:
    """Return what is wrong with the arguments of a tool; what they were is not repeated."""
    faults = "; ".join(_fault(found) for found in error.errors(include_url=False))
    return printable(f"{tool}: {faults}")[:_LONGEST_ERROR]


def _fault(found: Any) -> str:
    where = ".".join(str(part) for part in found["loc"])
    words = _EXPECTED.get(found["type"])
    return f"{where}: {words.format_map(found.get('ctx', {})) if words else found['msg']}"
