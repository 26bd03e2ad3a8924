"""Builds the device code of `src/redraw.hpp` to text for the driver, `src/cuda_redraw_ptx.inc`.

A process that only measures has no compiler. To be run again when redraw.hpp changes: a test holds
the digest in the generated file against the header. Needs NVRTC, no GPU.
"""

import hashlib
import re
from pathlib import Path

from kernel_foundry_native import device_kind

_FOLDER = Path(__file__).parent / "src"
HEADER = _FOLDER / "redraw.hpp"
GENERATED = _FOLDER / "cuda_redraw_ptx.inc"
_ARCHITECTURE = "sm_75"
_VERSION = ".version 6.4"
"""What the oldest driver knows that has the architecture; the code needs nothing newer."""


def header_digest() -> str:
    """Return what the generated file says of the header that it was made of."""
    return hashlib.sha256(HEADER.read_bytes()).hexdigest()


def generated() -> str:
    """Return the text of the generated file."""
    compiler = device_kind("cuda").open_compiler(architecture=_ARCHITECTURE)
    built = compiler.compile(
        source=HEADER.read_text(), options=["-std=c++17"], kernels=["redraw_tensor", "mask_ranges"]
    )
    ptx = re.sub(r"^\.version .*$", _VERSION, built.assembly.decode(), flags=re.MULTILINE)
    ptx = re.sub(r"//.*$|^\s*\.(loc|file)\b.*$", "", ptx, flags=re.MULTILINE)
    ptx = ptx.split(".section")[0]  # line numbers
    lines = [line.rstrip() for line in ptx.splitlines() if line.strip()]
    return "\n".join(
        [
            "// Made by generate_redraw_ptx.py of redraw.hpp; not to be edited.",
            f"// sha256 of redraw.hpp: {header_digest()}",
            "namespace kernel_foundry {",
            "",
            'inline constexpr const char* cuda_redraw_ptx = R"ptx(',
            *lines,
            ')ptx";',
            "",
            "}  // namespace kernel_foundry",
            "",
        ]
    )


if __name__ == "__main__":
    GENERATED.write_text(generated())
