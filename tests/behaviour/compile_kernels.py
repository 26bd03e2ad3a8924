"""Compiles SYCL sources to SPIR-V: `python compile_kernels.py FOLDER SOURCE...`.

A program of its own, since a driver's threads and pytest's process do not go together; run with
this folder's `kernels` it makes the stored modules anew.
"""

import os
import sys
from pathlib import Path

import kernel_foundry_native as native
from kernel_foundry.plan import kernels, translation_unit
from kernel_foundry_native.sycl_headers import header_option


def main(folder: str, *sources: str) -> None:
    compiler = native.device_kind("sycl").open_compiler(0)
    for source in map(Path, sources):
        text = source.read_text(encoding="utf-8")
        built = compiler.compile(
            source=translation_unit(text, {}, native.prelude("sycl"), "sycl"),
            options=["-DNDEBUG", header_option(text)],
            kernels=[k.name for k in kernels(text, "sycl", {})],
        )
        Path(folder, f"{source.stem}.spv").write_bytes(built.code)
    compiler.release()


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
