"""Several configurations of a candidate in one runner, as a sweep has them."""

import dataclasses
import os

import numpy as np
import pytest

import kernel_foundry_native as native
from evaluator_svc.messages.draw import OUTPUT_SLOTS, Draw
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import LoadReply, LoadRequest, RunReply, RunRequest
from evaluator_svc.processes.locked_process import OpenDevice, describe_device
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.session import Session
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import EvaluationOutcome, Setting
from kernel_foundry.domain.language import Language
from tests.runner.conftest import SEEDS, Bench, Candidate, draw_inputs

TEXT = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void transpose(const float* __restrict__ from, float* __restrict__ to, int rows, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < rows * cols) to[i % cols * rows + i / cols] = from[i];
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ out,
           int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] * w[i];
}
```
```python
TUNE = {"GROUP": [64, 32, 7], "PAST": [0, 1]}

def prepare(weight):
    rows, cols = weight.shape
    turned = empty((cols, rows), float32)
    transpose[cdiv(rows * cols, 64), 64](weight, turned, rows, cols)

def launch(x, turned, out):
    require(GROUP > 7)
    y = empty((30,), float32)
    scale[4, GROUP](x, turned, y, 30 + 8 * PAST)
    scale[4, GROUP](x, turned, out, x.numel())
```
"""
LAST = OUTPUT_SLOTS - 1


@pytest.fixture
def candidate(sycl: Bench) -> Candidate:
    return sycl.load(TEXT, draw_inputs(x=(6, 5), weight=(5, 6), out=(6, 5)))


def _load(
    candidate: Candidate,
    number: int,
    *,
    forget: tuple[int, ...] = (),
    runs: tuple[RunRequest, ...] = (),
    **values: int,
) -> LoadReply | CandidateFailure:
    settings = {"GROUP": 64, "PAST": 0} | values
    configuration = tuple(Setting(name=n, value=str(v)) for n, v in settings.items())
    return candidate.load(number=number, forget=forget, configuration=configuration, runs=runs)


def _wanted(candidate: Candidate, seed: int) -> np.ndarray:
    return candidate.inputs.array(seed, "x") * candidate.inputs.array(seed, "weight").T


@pytest.mark.sycl
def test_each_runs_and_is_timed_on_the_inputs_of_all(candidate: Candidate) -> None:
    pools = []
    for number, group in ((1, 64), (2, 32)):
        for seed in range(SEEDS):
            for slot in range(OUTPUT_SLOTS):
                candidate.inputs.array(seed, "out", slot)[:] = np.nan
        assert isinstance(_load(candidate, number, GROUP=group), LoadReply)
        ran = candidate.run(number=number, into_last=True)
        assert isinstance(ran, RunReply)
        assert ran.run_ns > 0
        for seed in range(SEEDS):
            # The others are for timed calls.
            assert np.isnan(candidate.inputs.array(seed, "out", 0)).all()
            found = candidate.inputs.array(seed, "out", LAST)
            np.testing.assert_array_equal(found, _wanted(candidate, seed))
        pools.append(candidate.fill_pool(number=number))
        for kept in candidate.time(number=number).kept:
            np.testing.assert_array_equal(candidate.kept(kept), _wanted(candidate, kept.seed))
            assert kept.slot < LAST
    assert pools[0] == pools[1]
    again = candidate.time(number=1, keep_count=0)
    assert again.kept == ()
    assert again.samples_ns
    assert isinstance(_load(candidate, 3, forget=(1, 2)), LoadReply)


@pytest.mark.sycl
def test_one_request_loads_and_runs(candidate: Candidate) -> None:
    runs = (RunRequest(draw=candidate.inputs.draw, into_last=True, number=1),)
    loaded = _load(candidate, 1, runs=runs)
    assert [ran.run_ns > 0 for ran in loaded.runs] == [True]
    for seed in range(SEEDS):
        assert np.isnan(candidate.inputs.array(seed, "out", 0)).all()
        found = candidate.inputs.array(seed, "out", LAST)
        np.testing.assert_array_equal(found, _wanted(candidate, seed))
    candidate.fill_pool(number=1)
    assert isinstance(
        _load(candidate, 2, runs=(dataclasses.replace(runs[0], number=2),)), LoadReply
    )
    assert candidate.time(number=2).kept


@pytest.mark.sycl
@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ({"GROUP": 7}, EvaluationOutcome.PLAN_ERROR),
        ({"PAST": 1}, EvaluationOutcome.WRONG_RESULT),
    ],
    ids=["not meant", "writes past its scratch"],
)
def test_after_a_fault_that_harms_nobody_the_next_one_runs(
    candidate: Candidate, values: dict[str, int], outcome: EvaluationOutcome
) -> None:
    failed = _load(candidate, 1, **values)
    if isinstance(failed, LoadReply):
        failed = candidate.run(number=1)
    assert (failed.outcome, failed.is_runner_usable) == (outcome, True)
    assert isinstance(_load(candidate, 2), LoadReply)
    assert isinstance(candidate.run(number=2), RunReply)
    for seed in range(SEEDS):
        found = candidate.inputs.array(seed, "out", LAST)
        np.testing.assert_array_equal(found, _wanted(candidate, seed))


def test_a_refused_plan_leaves_no_descriptor_open() -> None:
    null = native.device_kind("null")
    opened = OpenDevice(module=null, device=null.open_device(), index=0)
    descriptor = os.memfd_create("draw")
    draw = Draw(draw=1, workload="default", size_bytes=1, slots=(), seed_count=1)
    source = KernelSource(language=Language.SYCL, device_code="", plan="(")
    request = LoadRequest(
        source=source,
        configuration=(),
        device=describe_device(opened.device, "null", 0),
        workloads=(),
        kernels=(),
        unit_of_workload=(),
        runs=(RunRequest(draw=draw),),
    )
    with pytest.raises(CandidateFaultError):
        Session(opened).load(request, (), (descriptor,))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
