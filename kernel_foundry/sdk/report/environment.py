"""Where the reports' templates come from, and the filters that all of them have."""

import time

import jinja2
from markupsafe import Markup

from kernel_foundry.printable import printable
from kernel_foundry.sdk.verdict_text import duration, speedup_text, trust_text


def report_environment() -> jinja2.Environment:
    """Return an environment that escapes all values and refuses unknown ones.

    What a browser would not show, such as marks of direction, is written out.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kernel_foundry.sdk.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "speedup": speedup_text,
        "trust": trust_text,
        "date": _date,
    }
    return environment


def _shown(value: object) -> str:
    shown = printable(str(value))
    # What is written out holds no markup, so that markup stays what it is.
    return Markup(shown) if isinstance(value, Markup) else shown


def _date(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))
