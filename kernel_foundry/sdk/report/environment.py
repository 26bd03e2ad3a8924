"""Where the reports' templates come from, and the filters that all of them have."""

import time

import jinja2
from markupsafe import Markup

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.finding import errors_first, headline
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.printable import printable
from kernel_foundry.sdk.verdict_text import (
    bits_text,
    configuration_text,
    count_text,
    duration,
    gain_text,
    interval_text,
    kernel_times_text,
    prepare_text,
    speedup_text,
    timing_text,
    trust_text,
)


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
        "interval": interval_text,
        "gain": _gain,
        "trust": trust_text,
        "prepare": prepare_text,
        "configuration": configuration_text,
        "count": count_text,
        "timing": timing_text,
        "fingerprint": fingerprint,
        "date": _date,
        "errors_first": errors_first,
        "headline": headline,
        "bits": bits_text,
        "kernel_times": kernel_times_text,
    }
    return environment


def _shown(value: object) -> str:
    shown = printable(str(value))
    # What is written out holds no markup, so that markup stays what it is.
    return Markup(shown) if isinstance(value, Markup) else shown


def _gain(evaluation: Evaluation) -> str:
    over = f"over the fastest baseline{interval_text(evaluation.speedup_interval)}"
    return f"{over}{gain_text(evaluation.speedup_interval)}{trust_text(evaluation)}"


def _date(unix_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_s))
