"""GPU MODE's submission, as far as it goes without a GPU."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.record import read_records
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.export.export import export_runs
from kernel_foundry.sdk.export.popcorn_file import popcorn_file, popcorn_source
from kernel_foundry.sdk.export.winner import Winner
from tests.export.conftest import PLAIN_TASK, imported

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


def test_the_file_is_what_the_server_takes(plain_gpu_winner: Winner, tmp_path: Path) -> None:
    source = popcorn_source([plain_gpu_winner], "submission")
    text = popcorn_file(source, plain_gpu_winner, module="submission", problem="product_v2")
    assert text.splitlines()[:2] == ["#!POPCORN leaderboard product_v2", "#!POPCORN gpu H100"]
    assert "stream" not in text.lower()
    submission = imported(text, tmp_path, "submission")
    assert read_records(tmp_path / "submission.py") == (plain_gpu_winner.record,)
    x, y = torch.randn(8, 64), torch.randn(8, 64)
    torch.testing.assert_close(submission.custom_kernel((x, y)), x * y + 1.0)
    assert submission.stats()["last_reason"] == "x is on cpu; kernels run on cuda"
    assert submission.current_queue(0) == 0


def test_a_reference_that_the_server_would_refuse_is_refused(plain_gpu_winner: Winner) -> None:
    task = replace(PLAIN_TASK, reference=PLAIN_TASK.reference + "# no Stream here\n")
    winner = replace(plain_gpu_winner, record=replace(plain_gpu_winner.record, task=task))
    with pytest.raises(InvalidArgumentError, match="has the line '# no Stream here'"):
        popcorn_source([winner], "submission")


def test_a_problem_has_one_line() -> None:
    with connect() as foundry, pytest.raises(InvalidArgumentError) as refused:
        export_runs(foundry, [""], module="submission", target="popcorn", problem="a\nimport os")
    assert refused.value.metadata["field"] == "problem"


@pytest.mark.parametrize("problem", ["two words", " padded", ""])
def test_a_leaderboard_is_one_word(plain_gpu_winner: Winner, problem: str) -> None:
    with pytest.raises(InvalidArgumentError, match="of one word") as refused:
        popcorn_file("", plain_gpu_winner, module="submission", problem=problem)
    assert refused.value.metadata["field"] == "problem"


def test_kernels_for_the_cpu_are_refused(plain_winner: Winner) -> None:
    with pytest.raises(InvalidArgumentError, match="GPU MODE runs on NVIDIA GPUs"):
        popcorn_source([plain_winner], "submission")
