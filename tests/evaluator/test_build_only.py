"""Builds without a device: real NVRTC, real builders, and nothing that could run the result."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.task_file import read_task

EXAMPLES = Path(__file__).parents[2] / "examples"
TASK = read_task(EXAMPLES / "softmax.py")
SOFTMAX = (EXAMPLES / "softmax.cuda.md").read_text()


@pytest.fixture(scope="module")
def build(local_evaluator: Callable[[str], LocalEvaluator]):
    """Return a function that builds a candidate on an evaluator without any device."""
    evaluator = local_evaluator("")

    def built(text: str, architecture: str = "sm_90", *, with_listings: bool = False) -> Evaluation:
        request = EvaluationRequest(
            task=TASK,
            device="",
            source=split(text),
            build_only=True,
            architecture=architecture,
            with_listings=with_listings,
        )
        return asyncio.run(evaluator.evaluate(request))

    return built


def test_resources_and_measures_are_told_without_a_device(build) -> None:
    verdict = build(SOFTMAX)

    assert verdict.outcome is EvaluationOutcome.BUILT, verdict.findings
    assert verdict.device == "cuda:sm_90"
    assert verdict.measures is not None
    assert verdict.measures.synchronization == 2  # warp shuffles
    assert verdict.launches is not None
    assert (verdict.launches.kernel, verdict.launches.launch_count) == ("softmax_rows", 1)
    assert verdict.launches.group_count == 2048  # one for each row
    kernels = verdict.compile.kernels
    assert {k.kernel for k in kernels} == {"softmax_rows"}
    assert all(0 < k.registers <= 255 and k.spill_bytes == 0 for k in kernels)
    assert not any(w.timing for w in verdict.workloads)
    assert 0 < verdict.fitness < 0.1


def test_a_locked_builder_reads_our_own_blocks(build) -> None:
    blocks = EXAMPLES.parent / "benchmarks" / "blocks"
    verdict = build((blocks / "softmax.cuda.md").read_text("utf-8"))

    assert verdict.outcome is EvaluationOutcome.BUILT, verdict.findings


def test_the_same_text_is_built_once(build) -> None:
    build(SOFTMAX)
    assert build(SOFTMAX).compile.cached


def test_listings_come_on_demand(build) -> None:
    assert build(SOFTMAX).compile.listings == ()

    listings = build(SOFTMAX, with_listings=True).compile.listings

    ptx = [listing.text for listing in listings if listing.form == "ptx"]
    assert len(ptx) == 2  # one for each size that the plan compiles for
    assert all(".visible .entry softmax_rows" in text for text in ptx)


def test_another_architecture_is_another_object(build) -> None:
    assert build(SOFTMAX, "sm_80").outcome is EvaluationOutcome.BUILT
    assert build(SOFTMAX, "sm_80").device == "cuda:sm_80"


def test_an_error_of_the_compiler_names_the_candidates_line(build) -> None:
    broken = SOFTMAX.replace("__syncthreads();", "__syncthreads(); undeclared = 1;", 1)
    code = broken.partition("```cuda\n")[2].splitlines()
    line = next(number for number, text in enumerate(code, start=1) if "undeclared" in text)

    verdict = build(broken)

    assert verdict.outcome is EvaluationOutcome.COMPILE_ERROR
    assert verdict.findings[0].line == line
    assert "undeclared" in verdict.findings[0].message


def test_a_plan_that_does_not_fit_the_kernel_is_told(build) -> None:
    verdict = build(SOFTMAX.replace("softmax_rows[", "softmax_row[", 1))

    assert verdict.outcome is EvaluationOutcome.PLAN_ERROR
    assert verdict.findings[0].kind is FindingKind.PLAN


@pytest.mark.parametrize("architecture", ["sm_12", "spirv"])
def test_an_unknown_architecture_is_refused_with_those_known(build, architecture: str) -> None:
    with pytest.raises(InvalidArgumentError, match="sm_90"):
        build(SOFTMAX, architecture)


def test_sycl_is_not_built_for_an_architecture(build) -> None:
    text = (EXAMPLES / "softmax.sycl.md").read_text()
    with pytest.raises(InvalidArgumentError, match="for CUDA"):
        build(text)
