"""Stages bind and behaviour: a candidate that a runner has loaded, and what is known of it then."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.messages.locked import CandidateFailure, WorkloadNames
from evaluator_svc.messages.runner import BoundWorkload, LoadRequest
from evaluator_svc.pipeline.build.built_candidate import (
    BuiltCandidate,
    assess_launches,
    describe,
    launch_facts,
    operator_count,
)
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.runner_calls import load
from evaluator_svc.pipeline.tools import Rerun
from evaluator_svc.policy import ObjectFacts
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.plan import allowed_library_ops


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnableCandidate:
    """A candidate that a process can run on the workloads, of ours or of others."""

    runner: ChildProcess
    bound: Mapping[str, BoundWorkload]
    """By name of the workload; those that it need not take may be missing."""
    kernel_facts: KernelFacts
    facts: ObjectFacts | None
    """Number formats of the object code; None: it cannot be read."""
    uses_library: bool
    rerun: Rerun | None
    """Set where the vendor's tools may and can look at the candidate."""
    load_seconds: float
    """Time of loading, which on a CPU is mostly the making of machine code."""
    one_by_one: Rerun | None
    """Set where work-groups may wait for each other: run one at a time they would wait for ever."""

    def launch_facts(self, workload: str) -> LaunchFacts:
        """Return the launches of a workload, for the diagnosis."""
        return launch_facts(self.bound[workload])


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCandidate(RunnableCandidate):
    """A candidate whose plan a runner has bound to the workloads."""

    run_again: Rerun
    """For a profiler, which may look at library calls as well."""
    assemblies: Mapping[str, bytes]
    """PTX by name of the workload; empty where object code is its own assembly."""

    def assembly(self, workload: str) -> str:
        """Return a workload's PTX; empty where there is none."""
        return self.assemblies.get(workload, b"").decode("utf-8", errors="replace")


def load_candidate(
    context: EvaluationContext,
    request: EvaluationRequest,
    runner: ChildProcess,
    candidate: BuiltCandidate,
    names: tuple[WorkloadNames, ...],
) -> LoadedCandidate | CandidateFailure:
    """Bind the plan in a runner; note the candidate's measures.

    Args:
        context: The evaluation.
        request: What is asked.
        runner: A fresh process.
        candidate: What was built.
        names: The name tables of all workloads, in the order in which the plan was read.
    """
    site, parsed = context.site, candidate.parsed
    pairs = [
        (table, unit)
        for table, unit in zip(names, parsed.unit_of_workload, strict=True)
        if unit not in candidate.built.left_out and table.workload not in parsed.left_out
    ]
    load_request = LoadRequest(
        source=request.source,
        configuration=parsed.configuration,
        device=site.spec,
        workloads=tuple(table for table, _ in pairs),
        kernels=tuple(unit.kernels for unit in parsed.units),
        unit_of_workload=tuple(unit for _, unit in pairs),
        library_ops=allowed_library_ops(request.task, context.admission),
        tf32=request.task.tf32,
    )
    started = time.monotonic()
    with context.draft.stage("bind"):
        loaded = load(runner, load_request, candidate.built.codes)
    load_seconds = time.monotonic() - started
    if isinstance(loaded, CandidateFailure):
        return loaded
    language = request.source.language
    refused = assess_launches(candidate, loaded.workloads, names, language, context.draft)
    if refused is not None:
        return refused
    context.draft.launches = launch_facts(loaded.workloads[0])
    with context.draft.stage("behaviour"):
        kernel_facts, context.draft.measures = describe(
            candidate,
            loaded.workloads[0],
            operator_count(context.admission.workloads[0].graph),
        )
    # Sanitizers look at device code alone: in a library they would take minutes.
    may_look = request.use_tools or request.sanitize
    can_look = site.kind == "cuda" and not parsed.uses_library
    rerun = Rerun(load=load_request, codes=candidate.built.codes)
    may_wait = any(report.kernels.may_wait for report in candidate.built.reports)
    return LoadedCandidate(
        runner=runner,
        bound={bound.workload: bound for bound in loaded.workloads},
        kernel_facts=kernel_facts,
        facts=candidate.facts,
        uses_library=parsed.uses_library,
        rerun=rerun if may_look and can_look else None,
        run_again=rerun,
        assemblies={table.workload: candidate.built.units[unit].assembly for table, unit in pairs},
        load_seconds=load_seconds,
        one_by_one=rerun if may_wait and site.kind == "sycl" else None,
    )
