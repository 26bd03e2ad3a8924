"""Suites in a temporary folder, of text that the tests write."""

from pathlib import Path

from kernel_foundry.sdk.task_import.writing import ImportedSuite, import_suite

TASK = """\
import torch
from torch import nn

rows = 8
cols = 64


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
"""


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def imported(tmp_path: Path, files: dict[str, str], format_name: str = "auto") -> ImportedSuite:
    folder = write_files(tmp_path / "suite", files)
    return import_suite(folder, tmp_path / "out", format_name=format_name)


def reasons(suite: ImportedSuite) -> dict[str, str]:
    """Return why each entry was left out, by where it stands."""
    return {entry.source: entry.reason for entry in suite.left_out}
