"""The wire border: nothing is lost, and nothing malformed comes in."""

import dataclasses
import math
import types
import typing
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry.archive.v1 import archive_service_pb2, archived_evaluation_pb2
from kernel_foundry.common.v1 import check_pb2, evaluation_pb2, measures_pb2, task_pb2
from kernel_foundry.domain.archive import AddResult, RunSpec, RunState
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome, Setting, Timing
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS, Measures
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Precision, Scalar, Size, Task, Tolerance, Workload
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evaluator.v1 import evaluation_request_pb2
from kernel_foundry.wire.message import build, from_message, read_field, to_message
from kernel_foundry.wire.registry import MESSAGES

_INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)
_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    int: _INT64,
    float: st.floats(),
    bool: st.booleans(),
}
_TEXT = _SCALARS[str]
_SCALAR_TEXT = st.one_of(st.booleans(), st.floats(-1e6, 1e6), st.just("mean")).map(repr)

_TOLERANCES = st.builds(
    Tolerance,
    rtol=st.floats(0, 1),
    atol=st.floats(0, 1),
    output_shares=st.just((0.5,)),
    matched=st.floats(0.5, 1),
)

# Types whose __post_init__ refuses most random values.
_CONSTRAINED: dict[type, st.SearchStrategy[Any]] = {
    Measures: st.builds(Measures, **dict.fromkeys(DIMENSIONS, st.integers(0, LEVELS - 1))),
    Workload: st.builds(
        Workload,
        name=_TEXT,
        sizes=st.tuples(st.builds(Size, name=_TEXT, value=_INT64)),
        held_out=st.just(False),
        scalars=st.tuples(st.builds(Scalar, name=_TEXT, text=_SCALAR_TEXT)),
        weight=st.floats(min_value=1e-6, max_value=1e6),
    ),
    Tolerance: _TOLERANCES,
    Scalar: st.builds(Scalar, name=_TEXT, text=_SCALAR_TEXT),
}
_GIVEN = _SCALARS | _CONSTRAINED
_OVERRIDES: dict[type, dict[str, st.SearchStrategy[Any]]] = {
    # Without a comparison nothing else may be held to: `test_a_task_without_a_comparison…` has one.
    Task: {"workloads": st.tuples(_CONSTRAINED[Workload]), "compare": st.just(value=True)},
    Evaluation: {
        "outcome": st.just(EvaluationOutcome.REJECTED)
    },  # the outcome that allows any evidence; the enum test covers the others
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return random values of a type hint of the domain."""
    if kind in _GIVEN:
        return _GIVEN[kind]
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return st.one_of(*(st.none() if a is types.NoneType else values_of(a) for a in arguments))
    if typing.get_origin(kind) is tuple:
        if arguments[-1] is Ellipsis:
            return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*map(values_of, arguments))
    if issubclass(kind, Enum):
        return st.sampled_from(kind)
    fields = {f: values_of(hint) for f, hint in typing.get_type_hints(kind).items()}
    return st.builds(kind, **(fields | _OVERRIDES.get(kind, {})))


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@settings(max_examples=20)
@given(data=st.data())
def test_round_trip_keeps_every_value(kind: type, data: st.DataObject) -> None:
    """A value is equal after the wire; repr makes NaN equal and tells 1 from 1.0."""
    value = data.draw(values_of(kind))
    sent = to_message(value, MESSAGES[kind]).SerializeToString()
    assert repr(value) == repr(from_message(kind, MESSAGES[kind].FromString(sent)))


def test_a_task_without_a_comparison_stays_one() -> None:
    task = _task(check="looked_at", compare=False)
    assert task == from_message(Task, to_message(task, task_pb2.Task))
    assert from_message(Task, task_pb2.Task(name="t", reference="r")).compare


@given(workload=_CONSTRAINED[Workload])
def test_a_workload_keeps_what_its_text_does_not_show(workload: Workload) -> None:
    """Scalars and weights are no part of a workload's text, so that old tasks keep their digest."""
    message = to_message(workload, task_pb2.Workload)
    assert workload == from_message(Workload, message)


@given(tolerance=_TOLERANCES)
def test_a_workload_keeps_its_tolerance(tolerance: Tolerance) -> None:
    workload = Workload(name="w", tolerance=tolerance)
    assert workload == from_message(Workload, to_message(workload, task_pb2.Workload))


def _measures(memory: int = 0) -> measures_pb2.Measures:
    return measures_pb2.Measures(memory=memory)


def _task(**changes: Any) -> Task:
    task = Task(name="t", reference="r", workloads=(Workload(name="default"),))
    return dataclasses.replace(task, **changes)


def test_dataclass_refusal_names_the_message() -> None:
    """What a dataclass refuses is an invalid argument at that message's path."""
    evaluation = evaluation_pb2.Evaluation(
        outcome=evaluation_pb2.EVALUATION_OUTCOME_REJECTED,
        measures=_measures(memory=4),
        trust=check_pb2.TRUST_FULL,
    )
    with pytest.raises(InvalidArgumentError, match=r"measure memory is 4") as caught:
        from_message(Evaluation, evaluation, "evaluation")
    assert caught.value.metadata == {"field": "evaluation.measures"}


def test_impossible_combination_is_refused() -> None:
    """A PASSED evaluation without evidence does not come in."""
    message = evaluation_pb2.Evaluation(
        outcome=evaluation_pb2.EVALUATION_OUTCOME_PASSED, trust=check_pb2.TRUST_FULL
    )
    with pytest.raises(InvalidArgumentError, match="PASSED evaluation has a compile report"):
        from_message(Evaluation, message)


def test_enum_without_domain_value_is_refused() -> None:
    """An enum that is newer than this version is refused by path; so is one that is not set."""
    message = to_message(_task(), task_pb2.Task)
    message.precision = typing.cast("task_pb2.Precision.ValueType", 99)
    with pytest.raises(InvalidArgumentError, match=r"task\.precision: 99 is no Precision"):
        from_message(Task, message, "task")
    timing = evaluation_pb2.Timing(ci95_ns=[1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match="stop_reason: 0 is no StopReason"):
        from_message(Timing, timing)


def test_what_is_not_set_takes_the_default() -> None:
    """A request needs a reference and a candidate; what is set is taken, zero as well."""
    source = KernelSource(language=Language.CUDA, device_code="x", plan="y")
    given = {"language": "cuda", "device_code": "x", "plan": "y"}
    message = evaluation_request_pb2.EvaluationRequest(source=given, task={"reference": "r"})
    read = from_message(EvaluationRequest, message)
    assert EvaluationRequest(task=Task(name="", reference="r"), device="", source=source) == read
    message.task.training = False
    message.limits.run_seconds = 0.0
    read = from_message(EvaluationRequest, message)
    assert read.limits == EvaluationLimits(run_seconds=0.0)
    assert not read.task.training


def test_missing_required_message_is_refused() -> None:
    """Only what may be None may be absent."""
    message = evaluation_request_pb2.EvaluationRequest(device="cuda")
    with pytest.raises(InvalidArgumentError, match=r"^request\.task: is missing") as caught:
        from_message(EvaluationRequest, message, "request")
    assert caught.value.metadata == {"field": "request.task"}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_tuple_length_is_refused(count: int) -> None:
    """A fixed tuple has exactly its length."""
    message = evaluation_pb2.Timing(ci95_ns=[1.0] * count, stop_reason="STOP_REASON_BUDGET")
    with pytest.raises(InvalidArgumentError, match=f"ci95_ns: expected 2 values, got {count}"):
        from_message(Timing, message)


def test_optional_tuple_of_wrong_length_is_refused() -> None:
    """Empty means None; anything else must have the length."""
    message = archived_evaluation_pb2.AddResult(status="ADD_STATUS_NEW")
    assert from_message(AddResult, message).cell is None
    message.cell.append(1)
    with pytest.raises(InvalidArgumentError, match="cell: expected 3 values, got 1"):
        from_message(AddResult, message)


def test_path_counts_items() -> None:
    """The path leads to the item of a list that is wrong."""
    message = to_message(_task(), task_pb2.Task)
    message.workloads.add(name="default")
    with pytest.raises(InvalidArgumentError, match="workload names must differ"):
        from_message(Task, message, "task")
    request = evaluation_request_pb2.EvaluationRequest()
    request.configuration.add(name="A", value="1")
    assert from_message(Setting, request.configuration[0]) == Setting(name="A", value="1")


def test_value_that_protobuf_cannot_hold_is_refused() -> None:
    """An int over 64 bits and a lone surrogate are refused before they are sent."""
    size = Size(name="n", value=2**63)
    task = _task(workloads=(Workload(name="default", sizes=(size,)),))
    with pytest.raises(InvalidArgumentError, match=r"workloads\[0\].sizes\[0\].value"):
        to_message(task, task_pb2.Task)
    with pytest.raises(InvalidArgumentError, match=r"^name: "):
        to_message(_task(name="\ud800"), task_pb2.Task)


def test_nan_survives_and_none_stays_none() -> None:
    """NaN is a value, None is absence."""
    tolerance = Tolerance(rtol=math.nan, atol=math.inf)
    sent = to_message(tolerance, task_pb2.Tolerance)
    assert math.isnan(from_message(Tolerance, sent).rtol)
    absent = to_message(_task(), task_pb2.Task)
    assert not absent.HasField("tolerance")
    assert from_message(Task, absent).tolerance is None


def test_requests_are_built_and_read_by_field() -> None:
    """Requests, which no dataclass mirrors, are converted field by field."""
    request = build(archive_service_pb2.FinishRunRequest, name="r", state=RunState.FINISHED)
    assert read_field(RunState, request, "state") is RunState.FINISHED
    with pytest.raises(InvalidArgumentError, match="spec: is missing"):
        read_field(RunSpec, archive_service_pb2.CreateRunRequest(), "spec")


def test_enum_names_are_the_domain_names() -> None:
    """The wire's name is the domain's behind the enum's prefix."""
    sent = to_message(_task(precision=Precision.BF16), task_pb2.Task)
    assert task_pb2.Precision.Name(sent.precision) == "PRECISION_BF16"
