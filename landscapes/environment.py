"""Where the report's templates come from, and how values are shown in them."""

import jinja2
from markupsafe import Markup

from kernel_foundry.printable import printable
from kernel_foundry.sdk.verdict_text import duration


def report_environment() -> jinja2.Environment:
    """Return an environment that escapes all values and refuses unknown ones.

    What a browser would not show, such as marks of direction, is written out.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("landscapes", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = duration
    return environment


def _shown(value: object) -> str:
    shown = printable(str(value))
    # What is written out holds no markup, so that markup stays what it is.
    return Markup(shown) if isinstance(value, Markup) else shown
