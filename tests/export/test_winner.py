"""A run's winner as exported files see it."""

from dataclasses import replace

from kernel_foundry.sdk.export.winner import Winner
from tests.export.unjudged import unjudged_winner


def with_generated(winner: Winner, name: str) -> Winner:
    """The winner, found right on one more workload of this name."""
    first = winner.admission.workloads[0]
    more = replace(first, workload=name, held_out=True, is_generated=True)
    result = replace(winner.record.evaluation.workloads[0], workload=name)
    workloads = (*winner.record.evaluation.workloads, result)
    evaluation = replace(winner.record.evaluation, workloads=workloads)
    return replace(
        winner,
        record=replace(winner.record, evaluation=evaluation),
        admission=replace(winner.admission, workloads=(*winner.admission.workloads, more)),
    )


def test_a_generated_workload_of_module_level_sizes_is_one_of_the_file() -> None:
    winner = with_generated(unjudged_winner(), "cols=31")
    assert winner.sizes(winner.workloads[-1]) == {"rows": 8, "cols": 31}


def test_a_workload_without_object_code_is_left_out() -> None:
    winner = unjudged_winner()
    reference = winner.record.task.reference
    assert winner.left_out(reference) == {}
    code = replace(winner.objects[0], workloads=("rows=8,cols=64",))
    missing = replace(winner, objects=(code,)).left_out(reference)
    assert missing == {"rows=3,cols=96": "there is no object code for it"}


def test_a_size_in_one_place_of_the_text_is_none_of_the_file() -> None:
    plain = unjudged_winner()
    for name in ("rows=17,cols#2=31", "get_inputs#1=31", "rows=17,forward.steps=3"):
        winner = with_generated(plain, name)
        assert winner.workloads == plain.workloads
        assert [winner.sizes(w) for w in winner.workloads] == [
            {"rows": 8, "cols": 64},
            {"rows": 3, "cols": 96},
        ]
