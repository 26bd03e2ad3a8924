"""Elites are converted once, and come through as whole as by the converter itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.common.v1 import selection_pb2
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.wire.elites import KEPT, EliteMessages
from kernel_foundry.wire.message import to_message


def _elite(number: int) -> Elite:
    source = KernelSource(language=Language.SYCL, device_code=f"// {number}", plan="")
    candidate = Candidate(source=source)
    return Elite(
        candidate=candidate,
        evaluation=Evaluation(
            candidate=candidate.digest,
            task="t",
            device="sycl:0",
            outcome=EvaluationOutcome.COMPILE_ERROR,
        ),
        fitness=number / 1000,
        measures=Measures(memory=number % 4, algorithm=0, synchronization=0),
        island="memory",
    )


@settings(max_examples=20)
@given(numbers=st.lists(st.integers(0, 5), max_size=4))
def test_selection_is_the_same_after_the_wire(numbers: list[int]) -> None:
    sender, receiver = EliteMessages(), EliteMessages()
    selection = Selection(
        operator=Operator.COMBINE,
        parent=_elite(numbers[0]) if numbers else None,
        inspirations=tuple(_elite(number) for number in numbers[1:]),
        hint="stage it",
        sequence=7,
        island="memory",
    )
    for _ in range(2):  # new, then known
        message = sender.selection_to_message(selection)
        assert message == to_message(selection, selection_pb2.Selection)
        sent = selection_pb2.Selection.FromString(message.SerializeToString())
        assert receiver.selection_from_message(sent, "selection") == selection


def test_known_elites_are_not_converted_again() -> None:
    messages = EliteMessages()
    elite = _elite(1)
    message = messages.elite_to_message(elite)
    assert messages.elite_to_message(elite) is message
    received = messages.elite_from_message(message, "elite")
    assert messages.elite_from_message(message, "elite") is received


def test_old_elites_make_room() -> None:
    messages = EliteMessages()
    elite = _elite(0)
    first = messages.elite_to_message(elite)
    for number in range(1, KEPT + 1):
        messages.elite_to_message(_elite(number))
    assert messages.elite_to_message(elite) is not first
