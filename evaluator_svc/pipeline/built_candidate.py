"""A candidate from text to object code: what evaluations and mere builds have in common.

Knows nothing of devices that run it.
"""

import dataclasses
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from evaluator_svc import behaviour, policy
from evaluator_svc.messages import (
    BoundWorkload,
    CandidateFailed,
    Prepared,
    PrepareRequest,
    WorkloadNames,
)
from evaluator_svc.object_cache import ObjectCache
from evaluator_svc.pipeline.build import (
    BuildFailed,
    BuildSettings,
    Built,
    build,
    check_objects,
    prepare,
)
from evaluator_svc.pipeline.listings import listings
from evaluator_svc.pipeline.record import EvaluationRecord
from evaluator_svc.process import ChildProcess
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.spare_pool import SparePool
from kernel_foundry.domain.admission import GraphNode
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import EvaluationRequest

_NO_OPERATORS: Final = ("placeholder", "output", "get_attr")
"""Nodes of a reference's graph that compute nothing."""


class BuildPlace(Protocol):
    """What a build needs of a device site or a build site."""

    spec: DeviceSpec
    compiler_version: str
    settings: EvaluatorSettings
    objects: ObjectCache
    builders: SparePool

    def building(self) -> AbstractContextManager[None]:
        """Return what is held while building."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCandidate:
    """A candidate that was read and built."""

    prepared: Prepared
    built: Built


def read_and_build(
    builder: ChildProcess,
    place: BuildPlace,
    request: EvaluationRequest,
    names: tuple[WorkloadNames, ...],
    record: EvaluationRecord,
) -> BuiltCandidate | CandidateFailed:
    """Take a candidate's text through parse, policy and build."""
    prepared = _prepare(builder, place, request, names, record)
    if isinstance(prepared, CandidateFailed):
        return prepared
    settings = BuildSettings(
        device=place.spec,
        compiler_version=place.compiler_version,
        seconds=request.limits.build_seconds,
        memory_bytes=place.settings.builder_memory_bytes,
    )
    with record.stage("build"):
        built = build(builder, prepared, place.objects, settings)
    record.compile = built.report
    if isinstance(built, BuildFailed):
        return built.failure
    if request.with_listings:
        record.compile = dataclasses.replace(built.report, listings=listings(built))
    if not is_null(place.spec):
        with record.stage("policy"):
            checked = check_objects(built, prepared)
        if isinstance(checked, CandidateFailed):
            return checked
        record.add_findings(checked)
    return BuiltCandidate(prepared=prepared, built=built)


def narrow_formats(candidate: BuiltCandidate, device: DeviceSpec) -> tuple[str, ...]:
    """Return the formats of less than 24 bits that the object code computes in."""
    objects = () if is_null(device) else candidate.built.readable
    return policy.object_facts(objects, candidate.prepared.source.language).formats


def describe(
    candidate: BuiltCandidate, device: DeviceSpec, bound: BoundWorkload, operator_count: int
) -> tuple[behaviour.KernelFacts, Measures]:
    """Return what the compiler's output says of the kernels, and their measures."""
    source = candidate.prepared.source
    objects = () if is_null(device) else candidate.built.readable
    facts = behaviour.facts_of(source.device_code, source.language, objects)
    measures = behaviour.measures(
        device_code=source.device_code,
        language=source.language,
        objects=objects,
        launch_count=bound.launch_count,
        scratch_count=bound.scratch_count,
        reference_op_count=operator_count,
    )
    return facts, measures


def operator_count(graph: Sequence[GraphNode]) -> int:
    """Return how many nodes of a reference's graph compute something."""
    return sum(node.op not in _NO_OPERATORS for node in graph)


def is_null(device: DeviceSpec) -> bool:
    """Return whether the device takes any text for object code."""
    return device.id.startswith("null:")


def _prepare(
    builder: ChildProcess,
    place: BuildPlace,
    request: EvaluationRequest,
    names: tuple[WorkloadNames, ...],
    record: EvaluationRecord,
) -> Prepared | CandidateFailed:
    asked = PrepareRequest(
        text=request.text,
        configuration=request.configuration,
        device=place.spec,
        workloads=names,
    )
    started = time.perf_counter()
    prepared = prepare(builder, asked)
    wall_ms = 1e3 * (time.perf_counter() - started)
    if isinstance(prepared, CandidateFailed):
        record.add_stage_time("parse", wall_ms)
        return prepared
    record.add_stage_time("parse", wall_ms - prepared.policy_ms)
    record.add_stage_time("policy", prepared.policy_ms)
    record.set_source(prepared.source)
    return prepared
