import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("compile_kernels.py")


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[dict[str, str]], dict[str, bytes]]:
    """Compiles sources by name to SPIR-V, in a process of its own."""

    def compile_sources(sources: dict[str, str]) -> dict[str, bytes]:
        paths = [tmp_path / f"{name}.sycl" for name in sources]
        for path, text in zip(paths, sources.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, str(_SCRIPT), str(tmp_path), *map(str, paths)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=280)
        return {name: (tmp_path / f"{name}.spv").read_bytes() for name in sources}

    return compile_sources
