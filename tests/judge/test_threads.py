"""Small work is done on one thread, and what is timed or heavy on all of them."""

import pytest
import torch

from evaluator_svc.hardware.openmp import set_threads
from evaluator_svc.judge.threads import threads_for
from tests.judge.judge_tasks import SOFTMAX, make_task, prepare

_PRODUCT = make_task(
    "def forward(self, a, b):\n    return a @ b",
    inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
    rows=512,
    cols=512,
)


@pytest.mark.parametrize(
    ("task", "is_light"),
    [
        pytest.param(make_task(SOFTMAX), True, id="softmax"),
        pytest.param(_PRODUCT, False, id="product"),
    ],
)
def test_one_thread_works_on_what_is_light(task, *, is_light: bool) -> None:
    prepared = prepare(task)
    before = torch.get_num_threads()
    set_threads(3)
    try:
        with threads_for([prepared]):
            assert torch.get_num_threads() == (1 if is_light else 3)
        assert torch.get_num_threads() == 3
        with threads_for([prepared]):
            set_threads(2)  # a task's own setting, which is noted elsewhere
        assert torch.get_num_threads() == 2
    finally:
        set_threads(before)
