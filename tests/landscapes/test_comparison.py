"""Strategies compared: pairs, unreached targets, and the same numbers from any processes."""

from pathlib import Path

import pytest

from kernel_foundry.domain.archive import STRATEGY_NAMES
from kernel_foundry.errors import InvalidArgumentError
from landscapes.compare import compare_strategies, default_evaluations
from landscapes.landscape_file import write_landscape
from landscapes.strategy_results import SearchComparison
from tests.landscapes.conftest import LANDSCAPES


def compare(
    files: list[Path],
    strategies: tuple[str, ...] = ("gradient", "uniform", "best_of_n"),
    *,
    seed_count: int = 6,
    evaluations: int | None = None,
    processes: int = 1,
) -> SearchComparison:
    return compare_strategies(
        files,
        strategies=strategies,
        seed_count=seed_count,
        evaluations=evaluations,
        processes=processes,
    )


@pytest.mark.slow
def test_number_of_processes_changes_no_number(landscape_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "failing.jsonl"
    write_landscape(other, LANDSCAPES["a third fails"])
    files = [landscape_file, other]
    assert compare(files) == compare(files, processes=2)


def test_run_that_did_not_reach_the_target_counts_as_budget_and_one(landscape_file: Path) -> None:
    (landscape,) = compare([landscape_file], seed_count=20, evaluations=5).landscapes
    for result in landscape.strategies:
        needed = [6 if n is None else n for n in result.reached_after]
        assert result.evaluations_mean.value == pytest.approx(sum(needed) / 20)
        reached = sum(n is not None for n in result.reached_after)
        assert result.reached_share.value == reached / 20
        assert reached < 20
        assert len(result.curve.mean) == 5


def test_differences_are_paired_by_seed_and_taken_from_the_default_strategy(
    landscape_file: Path,
) -> None:
    comparison = compare([landscape_file], ("uniform", "fitness", "best_of_n"))
    (landscape,) = comparison.landscapes
    needed = {
        s.strategy: [landscape.evaluations + 1 if n is None else n for n in s.reached_after]
        for s in landscape.strategies
    }
    assert [d.other for d in landscape.differences] == ["uniform", "best_of_n"]
    for difference in landscape.differences:
        assert difference.strategy == "fitness"
        pairs = zip(needed["fitness"], needed[difference.other], strict=True)
        assert difference.evaluations.value == pytest.approx(sum(a - b for a, b in pairs) / 6)
        assert difference.evaluations_excludes_zero == difference.evaluations.excludes_zero
    assert [o.other for o in comparison.overall] == ["uniform", "best_of_n"]


def test_equal_strategies_differ_by_nothing(tmp_path: Path) -> None:
    # With one cell and one elite an island, which parent a strategy prefers decides nothing.
    path = tmp_path / "one_variant.jsonl"
    write_landscape(path, LANDSCAPES["one variant"])
    comparison = compare([path], STRATEGY_NAMES)
    for difference in comparison.landscapes[0].differences:
        assert difference.evaluations.value == 0
        assert not difference.evaluations_excludes_zero
    for overall in comparison.overall:
        assert (overall.evaluations_ratio.value, overall.fewer_count) == (1.0, 0)


@pytest.mark.parametrize("name", LANDSCAPES)
def test_every_landscape_can_be_compared(name: str, tmp_path: Path) -> None:
    path = tmp_path / "landscape.jsonl"
    write_landscape(path, LANDSCAPES[name])
    (landscape,) = compare([path], ("gradient", "best_of_n"), seed_count=2).landscapes
    assert landscape.evaluations == default_evaluations(LANDSCAPES[name])
    assert landscape.variant_count == len(LANDSCAPES[name].variants)
    assert landscape.target_count >= 1
    assert landscape.cell_count >= 1


@pytest.mark.parametrize(
    ("strategies", "changes", "words"),
    [
        (("best",), {}, "there are gradient"),
        (("gradient", "gradient"), {}, "twice"),
        (("gradient",), {"seed_count": 1}, "at least 2"),
        (("gradient",), {"evaluations": 0}, "at least 1"),
    ],
)
def test_bad_arguments_are_refused(
    landscape_file: Path, strategies: tuple[str, ...], changes: dict[str, int], words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        compare([landscape_file], strategies, **changes)
