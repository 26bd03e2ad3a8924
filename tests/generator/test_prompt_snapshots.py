"""Whole prompts as files under `prompts/`: what a model reads, for people to read.

After a change that is meant, `UPDATE_PROMPTS=1 pytest tests/generator/test_prompt_snapshots.py`
writes them anew, and the diff shows what the change does to prompts.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from generator_svc.experts import expert_of
from generator_svc.prompting.writer import PromptWriter
from generator_svc.store.proposals import Sibling
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import KernelSource, Operator
from kernel_foundry.domain.device import UnitLimits
from kernel_foundry.domain.evaluation import (
    Correctness,
    Evaluation,
    EvaluationOutcome,
    WorkloadResult,
)
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.profile import HotLine, KernelProfile, Profile, Share
from kernel_foundry.domain.request import ProposalRequest

SPLIT_PRODUCT: Final = (
    KernelTime(kernel="split", launches=2, median_ns=24e3),
    KernelTime(kernel="product", launches=1, median_ns=1.276e6),
)
COUNTED: Final = Profile(
    workload="default",
    call_ns=1.3e6,
    minimal_bytes=64 << 20,
    tool="ncu",
    kernels=(
        KernelProfile(
            kernel="softmax_rows",
            time_ns=1.3e6,
            units=(Share(name="DRAM", share=0.41), Share(name="FMA pipe", share=0.12)),
            stalls=(Share(name="long_scoreboard", share=0.7), Share(name="barrier", share=0.2)),
            occupancy=0.46,
            possible_occupancy=0.5,
            occupancy_limit="registers",
            registers=64,
            shared_bytes=4096,
            moved_bytes=130e6,
        ),
    ),
    lines=(HotLine(line=5, share=0.8, stall="long_scoreboard"),),
)
FOLDER: Final = Path(__file__).with_name("prompts")

TAIL: Final = Lesson(
    symptom="Only the last columns of each row are wrong.",
    move="Mask the tail with the neutral element of the reduction, and never return early.",
    language=None,
    findings=(FindingKind.BORDER_MISMATCH,),
    excerpt="const float value = col < cols ? x[row * cols + col] : -INFINITY;",
    source="docs/experience.md",
    origin=LessonOrigin.SEED,
    effect=0.0,
)
TRIED: Final = (
    Sibling(
        idea="Each lane keeps four columns in registers, so the second read goes.",
        outcome="wrong_result",
        speedup=None,
        remark="border_mismatch: the last columns of each row are wrong",
    ),
    Sibling(
        idea="The exponential is taken once and kept.", outcome="passed", speedup=1.9, remark=""
    ),
    Sibling(idea="Two rows share a work-group.", outcome=None, speedup=None, remark=""),
)
VECTORS: Final = Lesson(
    symptom="A kernel that only copies stays at half of the bandwidth.",
    move="Load four neighbouring elements at once: fewer instructions, more bytes in flight.",
    language=None,
    findings=(FindingKind.MEMORY_BOUND,),
    experts=("memory",),
    source="docs/experience.md",
    origin=LessonOrigin.LEARNT,
    effect=0.3,
    use_count=5,
    failure_count=1,
    before=Measures(memory=0, algorithm=0, synchronization=0),
    after=Measures(memory=1, algorithm=0, synchronization=0),
)


def _on_cuda(request: ProposalRequest) -> ProposalRequest:
    device = replace(
        request.admission.device,
        id="cuda:0",
        language=Language.CUDA,
        name="Test GPU",
        architecture="sm_90",
        compute_units=132,
        sub_group_size=32,
        max_block=1024,
        unit_limits=UnitLimits(registers=65536, shared_bytes=233472, work_items=2048, groups=32),
    )
    return replace(request, admission=replace(request.admission, device=device))


def _wrong_at_the_border(samples: Any) -> Any:
    elite = samples.failed_elite("rows")
    candidate = replace(elite.candidate, source=_cuda_source())
    finding = Finding(
        kind=FindingKind.BORDER_MISMATCH,
        severity=Severity.ERROR,
        message="out is wrong only in the last 4 of 4096 positions along axis 1",
        evidence=(Figure(name="wrong_at_end", value=4.0),),
        hint="Look at the masked tail and at sizes that no block or vector width divides.",
    )
    warning = Finding(
        kind=FindingKind.COMPILE_WARNING,
        severity=Severity.WARNING,
        message="variable lane was declared but never referenced",
        line=3,
    )
    result = WorkloadResult(
        workload="default",
        correctness=Correctness(
            max_abs_error=0.02,
            max_rel_error=1.0,
            mismatch_count=8192,
            element_count=2048 * 4096,
            first_mismatch=4092,
            seed_count=2,
            run_count=2,
            bitwise_reproducible=True,
        ),
    )
    evaluation = Evaluation(
        candidate=candidate.digest,
        task="t",
        device="cuda:0",
        outcome=EvaluationOutcome.WRONG_RESULT,
        findings=(warning, finding),
        workloads=(result,),
    )
    return replace(elite, candidate=candidate, evaluation=evaluation)


def _cuda_source() -> KernelSource:
    code = (
        'extern "C" __global__ void softmax_rows(const float* x, float* out, int cols) {\n'
        "  const size_t row = (size_t)blockIdx.x * cols;\n"
        "  const int lane = threadIdx.x % 32;\n"
        "  for (int col = threadIdx.x; col < cols - 4; col += BLOCK) out[row + col] = x[row + col];"
        "\n}"
    )
    plan = (
        'TUNE = {"BLOCK": [256, 128]}\n\n\n'
        "def launch(x, out):\n    softmax_rows[x.shape[0], BLOCK](x, out, x.shape[1])"
    )
    return KernelSource(language=Language.CUDA, device_code=code, plan=plan)


def _cases(request: ProposalRequest, samples: Any) -> dict[str, tuple[ProposalRequest, str]]:
    """Return request and role of each snapshot."""
    passed = samples.passed_elite
    mutate = Selection(
        operator=Operator.MUTATE,
        parent=passed("parent", profile=COUNTED),
        inspirations=(passed("inspiration"),),
        target=Measures(memory=2, algorithm=0, synchronization=0),
        hint="stage the tile in local memory",
    )
    combine = Selection(
        operator=Operator.COMBINE,
        parent=passed("one", kernel_times=SPLIT_PRODUCT),
        inspirations=(passed("two"),),
    )
    repair = Selection(operator=Operator.REPAIR, parent=_wrong_at_the_border(samples))
    tunable = Selection(operator=Operator.TEMPLATISE, parent=passed("parent"))
    return {
        "seed_cuda_fusion": (_on_cuda(request), "fusion"),
        "mutate_sycl_memory": (replace(request, selection=mutate), "memory"),
        "combine_sycl_compute": (replace(request, selection=combine), "compute"),
        "repair_cuda_parallelism": (replace(_on_cuda(request), selection=repair), "parallelism"),
        "templatise_sycl_general": (replace(request, selection=tunable), "general"),
    }


NAMES: Final = (
    "seed_cuda_fusion",
    "mutate_sycl_memory",
    "combine_sycl_compute",
    "repair_cuda_parallelism",
    "templatise_sycl_general",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_is_as_people_last_read_it(
    request_: ProposalRequest, samples: Any, name: str
) -> None:
    request, role = _cases(request_, samples)[name]
    siblings = TRIED if request.selection.operator is Operator.MUTATE else ()
    written = PromptWriter().write(
        request, expert=expert_of(role), lessons=(VECTORS, TAIL), siblings=siblings
    )
    text = "\n".join(f"<!-- {message.role} -->\n{message.content}" for message in written.messages)
    path = FOLDER / f"{name}.md"
    if os.environ.get("UPDATE_PROMPTS"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


def test_no_snapshot_is_left_over() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(NAMES)
