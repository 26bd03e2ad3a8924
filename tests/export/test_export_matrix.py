"""The matrix of targets and examples, as far as it takes no trial."""

import pytest

from benchmarks.export_matrix.__main__ import table
from benchmarks.export_matrix.cell import Exporter
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.export.kernelbench_file import kernelbench_file
from kernel_foundry.sdk.export.popcorn_file import popcorn_file, popcorn_source
from kernel_foundry.sdk.export.targets import TARGETS
from kernel_foundry.sdk.export.winner import Winner
from tests.export.file_schema import check_kernelbench, check_popcorn

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


def test_what_a_target_does_not_take_is_refused_before_a_trial(
    winner: Winner, plain_winner: Winner
) -> None:
    with connect() as foundry:
        exporter = Exporter(foundry)
        refused = [
            (winner, "cpp", "kernels are for the CPU"),
            (plain_winner, "popcorn", "GPU MODE runs on NVIDIA GPUs"),
        ]
        for one, target, reason in refused:
            cell = exporter.cell(one, target, "fast")
            assert (cell.outcome, cell.bytes) == ("refused", 0)
            assert reason in cell.reason


def test_the_table_has_time_and_size_of_each_cell() -> None:
    known = {"outcome": "right", "host_ns": 5120.0, "bytes": 93_700}
    others = [{"outcome": "refused"}] * (len(TARGETS) - 2)
    cells = [known, known | {"host_ns": None}, *others]
    head, rule, row = table({"softmax": dict(zip(TARGETS, cells, strict=True))}).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|") == len(TARGETS) + 2
    assert row.startswith("| softmax | 5.1 µs, 94 kB | 94 kB | refused |")


def test_the_checks_of_files_notice_what_is_wrong(winner: Winner, plain_gpu_winner: Winner) -> None:
    new = kernelbench_file([winner], "fast")
    check_kernelbench(new)
    for wrong in (new.replace("class ModelNew", "class New"), f"{new}class Model:\n    pass\n"):
        with pytest.raises(AssertionError):
            check_kernelbench(wrong)
    source = popcorn_source([plain_gpu_winner], "submission")
    submission = popcorn_file(source, plain_gpu_winner, module="submission", problem="product_v2")
    check_popcorn(submission)
    for wrong in (
        source,
        submission.replace("def custom_kernel", "def kernel"),
        f"{submission}# Stream",
    ):
        with pytest.raises(AssertionError):
            check_popcorn(wrong)
