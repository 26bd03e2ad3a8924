"""Which configurations a sweep tries, and in which order."""

from dataclasses import replace

import pytest

from evaluator_svc.builder.read_candidate import CandidateRefusedError
from evaluator_svc.builder.sweep import enumerate_configurations
from evaluator_svc.messages.builder import EnumerateRequest
from evaluator_svc.messages.locked import WorkloadNames
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.sweep import Configuration
from kernel_foundry.plan.candidate_text import split
from tests.domain_values import CPU
from tests.sweep.conftest import candidate, configuration

_DEVICE = replace(CPU, max_block=256, shared_bytes=1 << 15)
_NAMES = WorkloadNames(
    workload="default",
    tensors=tuple(
        NamedTensor(name=name, role=role, dtype="float32", shape=(8, 96), path="")
        for name, role in (("x", TensorRole.INPUT), ("out", TensorRole.OUTPUT))
    ),
    scalars=(),
)


def _enumerate(
    plan: str, *, order: tuple[Configuration, ...] = (), most: int = 1000
) -> list[dict[str, str]]:
    request = EnumerateRequest(
        source=split(candidate(plan)), device=_DEVICE, workloads=(_NAMES,), order=order, most=most
    )
    return [
        {s.name: s.value for s in c.settings}
        for c in enumerate_configurations(request).configurations
    ]


def test_default_comes_first_and_each_comes_once() -> None:
    found = _enumerate('TUNE = {"WG": [64, 32], "NN": [1, 2, 3], "OK": [True, False]}')
    assert found[0] == {"WG": "64", "NN": "1", "OK": "True"}
    assert len(found) == len({tuple(c.items()) for c in found}) == 12


def test_conditions_on_shapes_and_device_are_decided() -> None:
    plan = 'TUNE = {"WG": [512, 64, 36, 48]}\nWHERE = [\n'
    plan += '    "WG <= device.max_block", "x.shape[1] % WG == 0"\n]'
    assert _enumerate(plan) == [{"WG": "48"}]


def test_order_follows_the_default_and_strangers_are_passed_over() -> None:
    order = (configuration(WG=7), configuration(ZZ=1), configuration(NN=3), configuration(WG=32))
    found = _enumerate('TUNE = {"WG": [64, 32], "NN": [1, 2, 3]}', order=order)
    assert found[:3] == [
        {"WG": "64", "NN": "1"},
        {"WG": "64", "NN": "3"},
        {"WG": "32", "NN": "1"},
    ]
    assert len(found) == 6


def test_cut_of_a_large_space_is_spread_and_the_same_each_time() -> None:
    plan = f'TUNE = {{"WG": {list(range(1, 61))}, "NN": {list(range(1, 61))}}}'
    found = _enumerate(plan, most=50)
    assert len(found) == 50
    assert found == _enumerate(plan, most=50)
    values = [int(c["WG"]) for c in found]
    assert min(values) < 15
    assert max(values) > 45


def test_space_in_which_nothing_is_meant_names_the_default() -> None:
    assert _enumerate('TUNE = {"WG": [64, 32]}\nWHERE = ["WG > 1000"]') == [{"WG": "64"}]


def test_condition_that_cannot_be_evaluated_is_refused() -> None:
    with pytest.raises(CandidateRefusedError) as refused:
        _enumerate('TUNE = {"WG": [64, 32]}\nWHERE = ["WG % (WG - WG) == 0"]')
    assert refused.value.outcome is EvaluationOutcome.PLAN_ERROR
