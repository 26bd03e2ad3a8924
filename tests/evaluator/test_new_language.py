"""A language whose record is registered is built, read, timed and believed by that record."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.builder.read_candidate import CandidateRefusedError, read_candidate
from evaluator_svc.inspector.work import report_of
from evaluator_svc.languages import (
    BACKENDS,
    LanguageBackend,
    Toolchain,
    backend_of,
    language_of_kind,
)
from evaluator_svc.messages.builder import ReadCandidateRequest
from evaluator_svc.messages.inspector import InspectRequest
from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.messages.runner import BoundWorkload
from evaluator_svc.pipeline.timing.prepare_limit import layout_limit_ns
from evaluator_svc.pipeline.timing.workload_timing import least_seconds
from evaluator_svc.policy import Subject, policy_checks
from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.policy.number_formats import ObjectFacts
from evaluator_svc.processes.conversation import ReceivedMessage
from kernel_foundry import languages
from kernel_foundry.common.v1 import candidate_pb2
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.language import Language
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.wire.message import from_message, to_message
from tests.domain_values import CPU
from tests.plan.test_new_language import TEXT, TOY

PEAKS = Peaks(
    bandwidth_bytes_per_second=1e9,
    cache_bandwidth_bytes_per_second=1e9,
    flops_per_second=1e9,
    launch_ns=1e3,
    read_bandwidth_bytes_per_second=1e9,
)


def read_toy(code: bytes, assembly: bytes, kernels: tuple[str, ...], *, log: str) -> ObjectReport:
    """Return a report that says what it was made of."""
    words = (code.decode(), assembly.decode(), *kernels, log)
    finding = rule_finding("object.unreadable", " ".join(words))
    return ObjectReport(findings=(finding,), numbers=ObjectFacts(), kernels=KernelFacts())


@pytest.fixture
def toy() -> Iterator[Language]:
    """A language that is registered, here and in the contract, for the time of a test."""
    languages.register(TOY)
    language = Language("toy")
    BACKENDS[language] = LanguageBackend(
        language=language,
        device_kinds=("toybox",),
        runs_on_host_cores=False,
        toolchain=lambda: Toolchain(prelude="/* toys */", options_of=lambda _: ("-toy",)),
        depends_on_driver=False,
        object_reader="tests.evaluator.test_new_language:read_toy",
        headers=frozenset({"toy.h"}),
        header_folders=("toys/",),
        headers_hint="toy.h and toys/…",
        rules=frozenset({"source.assembly"}),
        clock="a cuckoo",
        is_timed_by_events=True,
        believed_share=0.5,
        arithmetic_margin=3.0,
        layout_traffic_multiple=2.0,
        layout_launches=1.0,
        has_tf32=False,
        has_warps=True,
    )
    yield language
    del BACKENDS[language], languages.LANGUAGES["toy"]


def _device(language: Language) -> DeviceSpec:
    return replace(CPU, id="toybox:0", language=language, max_block=64)


def _request(source: KernelSource) -> ReadCandidateRequest:
    tensors = tuple(
        NamedTensor(name=name, role=role, dtype="float32", shape=(64,), path=name)
        for name, role in (("x", TensorRole.INPUT), ("out", TensorRole.OUTPUT))
    )
    return ReadCandidateRequest(
        source=source,
        configuration=(),
        device=_device(source.language),
        workloads=(WorkloadNames(workload="w", tensors=tensors, scalars=()),),
    )


def test_its_candidates_are_prepared_for_its_compiler(toy: Language) -> None:
    source = split(TEXT)
    parsed = read_candidate(_request(source), backend_of(toy).toolchain())
    (unit,) = parsed.units
    assert unit.options == ("-toy",)
    assert unit.source.startswith("/* toys */")
    assert unit.kernels == ("copy",)
    bad = replace(source, device_code=source.device_code.replace("toy.h", "cuda.h"))
    with pytest.raises(CandidateRefusedError) as refused:
        read_candidate(_request(bad), backend_of(toy).toolchain())
    (finding,) = refused.value.findings
    assert (finding.rule, finding.hint) == ("source.include", "allowed: toy.h and toys/…")


def test_its_object_code_is_read_by_its_reader(toy: Language) -> None:
    request = InspectRequest(language=toy, kernels=("copy",), log="built")
    received = ReceivedMessage(message=request, blobs=(b"wood", b"paint"), descriptors=())
    assert report_of(received).findings[0].message == "wood paint copy built"
    (check,) = policy_checks((), toy, Subject.SOURCE)
    assert check.figures[0].value > 0, "rules for every language are rules for it"


def test_its_times_are_believed_as_its_record_says(toy: Language) -> None:
    assert language_of_kind("toybox") is toy
    assert least_seconds(_device(toy)) > 0
    bound = BoundWorkload(
        workload="w", launch_count=1, scratch_count=0, scratch_bytes=0, group_count=1,
        group_size=1, kernels=("copy",), prepare_traffic_bytes=1000, prepared_count=3,
    )  # fmt: skip
    assert layout_limit_ns(bound, toy, PEAKS) == 2.0 * 1000 + 1.0 * 3 * 1e3


def test_it_travels(toy: Language) -> None:
    source = split(TEXT)
    message = to_message(source, candidate_pb2.KernelSource)
    assert message.language == "toy"
    assert from_message(KernelSource, message) == source
