"""An evaluation that finds too little memory is done again, at last with all of it."""

import pytest

from evaluator_svc.pipeline.memory.evaluation_memory import MemoryWish, MoreMemoryError
from evaluator_svc.pipeline.memory.within_memory import within_memory
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.errors import DeviceMemoryError

REFUSED = Evaluation(
    candidate="c", task="t", device="cuda:0", outcome=EvaluationOutcome.REJECTED, workloads=()
)
OWN, MORE = MoreMemoryError(7), MoreMemoryError(21)
SHORT = DeviceMemoryError("short")
ALONE = MemoryWish(is_alone=True)


@pytest.mark.parametrize(
    ("errors", "wishes"),
    [
        ((), (MemoryWish(),)),
        ((SHORT,), (MemoryWish(), ALONE)),
        ((OWN,), (MemoryWish(), MemoryWish(own_bytes=7))),
        ((OWN, SHORT), (MemoryWish(), MemoryWish(own_bytes=7), ALONE)),
        # Judged with every copy the second time, where the plan asks for more.
        ((OWN, MORE), (MemoryWish(), MemoryWish(own_bytes=7), ALONE)),
    ],
)
def test_what_ran_out_of_memory_is_done_again(
    errors: tuple[Exception, ...], wishes: tuple[MemoryWish, ...]
) -> None:
    asked: list[MemoryWish] = []
    left = list(errors)

    def evaluate(wish: MemoryWish) -> Evaluation:
        asked.append(wish)
        if left:
            raise left.pop(0)
        return REFUSED

    assert within_memory(evaluate) is REFUSED
    assert tuple(asked) == wishes


def test_too_little_for_it_alone_is_an_error() -> None:
    def evaluate(wish: MemoryWish) -> Evaluation:
        raise DeviceMemoryError("short")

    with pytest.raises(DeviceMemoryError):
        within_memory(evaluate)
