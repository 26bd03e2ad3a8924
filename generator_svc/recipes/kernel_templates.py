"""Kernel code as Jinja2 templates: files of their language under `cuda/kernels`, `sycl/kernels`.

Code that depends on the operators of a graph is written by Python; what stays the same for every
graph is in these files.
"""

from functools import cache

import jinja2


def kernel_text(name: str, **values: object) -> str:
    """Return the text of a template, such as `cuda/kernels/packs.cuh`, with its names filled in."""
    return _environment().get_template(name).render(values)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("generator_svc", "recipes"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
