"""CUDA C++, built by NVRTC."""

import re
from pathlib import Path
from typing import Final

from kernel_foundry.languages.kernel_language import KernelLanguage

CUDA: Final = KernelLanguage(
    name="cuda",
    title="CUDA C++",
    words=("cuda", "cu"),
    mark=re.compile(r"\b__global__\b"),
    texts=Path(__file__).parent,
    source_file="candidate.cu",
    # The host's side of CUDA: NVRTC has built in what they declare for device code, and stops in
    # the first of them.
    needless_headers=r"(?:cuda|cuda_runtime|cuda_runtime_api|device_launch_parameters)\.h",
    kernel_mark=re.compile(r"\b__global__\b"),
    kernel_dimensions=3,
    kernel_form="__global__ void",
    max_grid=(2**31 - 1, 65_535, 65_535),
    max_block=(1_024, 1_024, 64),
    without_local=(
        "declare extern __shared__ memory and give shared_bytes as the third part of the launch"
    ),
)
