"""A GPU whose counters are closed: why, told once and remembered, and what the object tells."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.runner import BoundWorkload, LoadRequest
from evaluator_svc.pipeline.build.loaded_candidate import LoadedCandidate
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from evaluator_svc.pipeline.profile.profile_stage import ProfileStage
from evaluator_svc.pipeline.tools import Rerun
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import Peaks, UnitLimits
from kernel_foundry.domain.evaluation import CompileReport, KernelResources, WorkloadResult
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Tolerance
from tests.domain_values import H200, run_spec, timing_of, workload_admission

LIMITS = UnitLimits(registers=65536, shared_bytes=233_472, work_items=2048, groups=32)
DEVICE = dataclasses.replace(H200, unit_limits=LIMITS)
SOURCE = KernelSource(language=Language.CUDA, device_code="", plan="def launch(x): ...")
PTX = b"""
.visible .entry split(.param .u64 p)
{
	ld.global.f32 	%f1, [%rd1];
	st.global.f32 	[%rd1], %f1;
}
.visible .entry product(.param .u64 p)
{
	mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 	{%f1}, {%r1}, {%r2}, {%f1};
	ld.shared.f32 	%f1, [%r1];
}
"""


class Stage:
    """A profile stage on a site that has nothing but what the stage asks of it."""

    def __init__(self, seconds: float, closed: str = "") -> None:
        names = ("split", "product")
        bound = BoundWorkload(
            workload="default",
            launch_count=3,
            scratch_count=0,
            scratch_bytes=0,
            group_count=64,
            group_size=256,
            kernels=names,
            main_kernel="product",
            main_shared_bytes=1 << 16,
        )
        load = LoadRequest(
            source=SOURCE,
            configuration=(),
            device=DEVICE,
            workloads=(),
            kernels=(names,),
            unit_of_workload=(),
        )
        missing: Any = None
        candidate = LoadedCandidate(
            runner=missing,
            bound={"default": bound},
            kernel_facts=KernelFacts(),
            facts=None,
            uses_library=True,
            rerun=None,
            run_again=Rerun(load=load, codes=(b"",)),
            assemblies={"default": PTX},
            load_seconds=0.0,
            one_by_one=None,
        )
        task = run_spec().task
        request = EvaluationRequest(
            task=task, device="cuda:0", source=SOURCE, profile_seconds=seconds
        )
        self.draft = EvaluationDraft(
            task=task.digest, candidate=SOURCE.digest, device="cuda:0", baselines_ns={}
        )
        self.draft.set_workload(_result())
        self.draft.compile = CompileReport(
            log="",
            compile_ns=0.0,
            cached=True,
            object_bytes=1,
            kernels=(
                KernelResources(
                    kernel="product", registers=64, shared_bytes=0, local_bytes=0, spill_bytes=0
                ),
            ),
        )
        self.site: Any = SimpleNamespace(kind="cuda", spec=DEVICE, closed_counters=closed)
        workload = workload_admission(minimal_bytes=24_000_000)
        context = EvaluationContext(
            site=self.site,
            judge=missing,
            request=request,
            admission=Admission(
                task=task.digest,
                device=DEVICE,
                workloads=(workload,),
                tolerance=Tolerance(rtol=1e-4, atol=1e-5),
            ),
            peaks=Peaks(
                bandwidth_bytes_per_second=4e12,
                cache_bandwidth_bytes_per_second=1e13,
                flops_per_second=6e13,
                launch_ns=2e3,
                read_bandwidth_bytes_per_second=4e12,
            ),
            draft=self.draft,
        )
        drawn = SimpleNamespace(
            draw=Draw(draw=1, workload="default", size_bytes=0, slots=(), seed_count=1)
        )
        draws: Any = SimpleNamespace(of=lambda _workload: drawn)
        ProfileStage(context, draws, candidate, request).run()

    @property
    def digest(self) -> tuple[str, ...]:
        assert self.draft.profile is not None
        return digest_lines(self.draft.profile)


def _result() -> WorkloadResult:
    return WorkloadResult(
        workload="default",
        timing=timing_of(1e5),
        own_share=0.8,
        kernel_times=(
            KernelTime(kernel="split", launches=2, median_ns=1e4),
            KernelTime(kernel="product", launches=1, median_ns=7e4),
        ),
    )


def test_a_code_of_the_tool_closes_the_counters_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ncu"
    program.write_text('#!/bin/sh\necho "==ERROR== ERR_NVGPUCTRPERM - no permission"; exit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("KERNEL_FOUNDRY_NCU", str(program))

    stage = Stage(60.0)

    assert "ERR_NVGPUCTRPERM" in stage.site.closed_counters
    assert stage.digest[1] == f"no hardware counters: {stage.site.closed_counters}"


def test_closed_counters_are_not_tried_and_the_object_tells_the_rest() -> None:
    assert Stage(60.0, closed="ncu: no counters").digest == (
        "default, 100 µs a call; compulsory bytes: 24 MB",
        "no hardware counters: ncu: no counters",
        "product: 70 µs (70 %); instructions: matrix products 50 %, shared memory 50 %",
        "  occupancy 38 % possible, limited by shared memory; 64 registers; 65.5 kB shared memory",
        "library calls (library): 20 µs (20 %)",
        "split: 10 µs in 2 launches (10 %); instructions: global memory 100 %",
    )


def test_too_little_time_is_a_reason_of_the_moment() -> None:
    stage = Stage(3.0)

    assert "3 s are left for it" in stage.digest[1]
    assert stage.site.closed_counters == ""
