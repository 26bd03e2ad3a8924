"""Where the reports' templates come from, and the filters that all of them have."""

import time

import jinja2

from kernel_foundry.domain.finding import errors_first, headline
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.view import bits_text, duration, speedup_text, timing_text


def report_environment() -> jinja2.Environment:
    """Return an environment that escapes all values and refuses unknown ones."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kernel_foundry.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "speedup": speedup_text,
        "timing": timing_text,
        "fingerprint": fingerprint,
        "date": _date,
        "errors_first": errors_first,
        "headline": headline,
        "bits": bits_text,
    }
    return environment


def _date(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))
