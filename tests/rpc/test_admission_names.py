"""An admission from afar names what a task's can, or is refused: its names become code."""

from dataclasses import replace

import pytest

from kernel_foundry.domain.admission import Admission, NamedScalar, NamedTensor, TensorRole
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import MalformedAnswerError
from kernel_foundry.rpc.admission_names import require_names
from kernel_foundry.testing.evaluator import FakeEvaluator

_CODE = "x; system(1)"
_TENSOR = NamedTensor(name="x", role=TensorRole.INPUT, dtype="float32", shape=(2,))


@pytest.fixture
async def admission() -> Admission:
    return await FakeEvaluator().admit(Task(name="t", reference="class Model: ..."))


def _with(admission: Admission, **changes: object) -> Admission:
    first = admission.workloads[0]
    return replace(admission, workloads=(replace(first, **changes),))  # type: ignore[arg-type]


async def test_names_of_a_task_are_let_in(admission: Admission) -> None:
    require_names(admission)
    require_names(_with(admission, tensors=(_TENSOR,), workload="rows=17,forward.steps=3"))


@pytest.mark.parametrize("name", [_CODE, "a-b", "", 'x"', "x\n", "ab" * 200])
async def test_what_is_no_name_is_refused(admission: Admission, name: str) -> None:
    for changed in (
        _with(admission, tensors=(replace(_TENSOR, name=name),)),
        _with(admission, tensors=(replace(_TENSOR, dtype=name),)),
        _with(admission, scalars=(NamedScalar(name=name, literal="1"),)),
    ):
        with pytest.raises(MalformedAnswerError, match="not to be trusted"):
            require_names(changed)


@pytest.mark.parametrize("text", ["a\nb", "\x1b[2J", "", "x" * 2000])
async def test_what_is_no_line_is_refused(admission: Admission, text: str) -> None:
    device = admission.device
    for changed in (
        _with(admission, workload=text),
        replace(admission, device=replace(device, name=text)),
        replace(admission, device=replace(device, architecture=f"sm_90 */ {text}")),
    ):
        with pytest.raises(MalformedAnswerError):
            require_names(changed)
