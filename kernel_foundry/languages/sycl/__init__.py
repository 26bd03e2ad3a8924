"""SYCL 2020 with free-function kernels, built for a device through SPIR-V."""

import re
from pathlib import Path
from typing import Final

from kernel_foundry.languages.kernel_language import KernelLanguage

SYCL: Final = KernelLanguage(
    name="sycl",
    title="SYCL",
    words=("sycl",),
    mark=re.compile(r"\bnd_range_kernel\b|\b(?:sycl|syclexp?|syclext)::"),
    texts=Path(__file__).parent,
    source_file="candidate.sycl",
    needless_headers=r"(?:CL/)?sycl(?:/sycl)?\.hpp",
    kernel_mark=re.compile(r"\bnd_range_kernel\s*<([^<>]*)>"),
    kernel_dimensions=None,
    kernel_form="SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<N>)) void",
    # Compilers assume by default that ids fit in int.
    max_items=2**31 - 1,
    without_shared_bytes="declare sycl::local_accessor<T, 1> and pass local(n, dtype)",
    without_cooperative="split the work into two launches",
)
