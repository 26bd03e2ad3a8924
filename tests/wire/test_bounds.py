"""Every text and every sequence of every request has a bound, and what is beyond it is refused."""

from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kernel_foundry.archive.v1 import archive_service_pb2
from kernel_foundry.common.v1 import material_pb2, task_pb2
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.foreign import LONGEST_FOREIGN, MOST_FILES
from kernel_foundry.domain.lesson import LONGEST_QUERY
from kernel_foundry.domain.material import LONGEST_MATERIAL, MOST_MATERIALS
from kernel_foundry.domain.name import LONGEST_NAME, LONGEST_WORKLOAD
from kernel_foundry.domain.task_limits import (
    LONGEST_INSTRUCTIONS,
    LONGEST_REFERENCE,
    MOST_WORKLOADS,
)
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evaluator.v1 import evaluator_service_pb2
from kernel_foundry.generator.v1 import experience_service_pb2, generator_service_pb2
from kernel_foundry.wire.bounds import check_bounds, longest, most

_FILES = (
    archive_service_pb2,
    evaluator_service_pb2,
    experience_service_pb2,
    generator_service_pb2,
)


def _reached(descriptor: Descriptor, known: set[Descriptor]) -> Iterator[FieldDescriptor]:
    """Every field of a message and of the messages within it."""
    if descriptor in known:
        return
    known.add(descriptor)
    for field in descriptor.fields:
        yield field
        if field.message_type is not None:
            yield from _reached(field.message_type, known)


def _request_fields() -> dict[str, FieldDescriptor]:
    """Every field that a request can have, by its full name."""
    known: set[Descriptor] = set()
    return {
        field.full_name: field
        for file in _FILES
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
        for field in _reached(method.input_type, known)
    }


def test_every_text_and_sequence_of_a_request_is_bounded() -> None:
    fields = _request_fields()
    assert len(fields) > 300
    for name, field in fields.items():
        is_text = field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
        assert (longest(field) is not None) == is_text, name
        assert (most(field) is not None) == field.is_repeated, name


def test_bounds_are_those_of_the_domain() -> None:
    """Which holds them where no message is sent."""
    fields = _request_fields()
    stated = {
        "common.v1.KernelSource.device_code": LONGEST_CANDIDATE,
        "common.v1.KernelSource.plan": LONGEST_CANDIDATE,
        "common.v1.Material.text": LONGEST_MATERIAL,
        "common.v1.Task.instructions": LONGEST_INSTRUCTIONS,
        "common.v1.Task.name": LONGEST_NAME,
        "common.v1.Task.reference": LONGEST_REFERENCE,
        "common.v1.Workload.name": LONGEST_WORKLOAD,
        "evaluator.v1.EvaluateKernelRequest.text": LONGEST_CANDIDATE,
        "evaluator.v1.SweepKernelRequest.text": LONGEST_CANDIDATE,
        "evaluator.v1.ForeignFile.text": LONGEST_FOREIGN,
        "generator.v1.LessonQuery.text": LONGEST_QUERY,
    }
    for name, characters in stated.items():
        assert longest(fields[f"kernel_foundry.{name}"]) == characters, name
    assert most(fields["kernel_foundry.evaluator.v1.ForeignSource.files"]) == MOST_FILES
    assert most(fields["kernel_foundry.archive.v1.RunSpec.materials"]) == MOST_MATERIALS
    assert most(fields["kernel_foundry.common.v1.Task.workloads"]) == MOST_WORKLOADS


def test_what_is_beyond_its_bound_is_refused_by_its_path() -> None:
    request = archive_service_pb2.CreateRunRequest()
    request.spec.task.workloads.extend([task_pb2.Workload(name="é" * LONGEST_WORKLOAD)] * 2)
    request.spec.materials.extend([material_pb2.Material(text="x")] * MOST_MATERIALS)
    request.spec.models.append("x" * 200)
    check_bounds(request)

    request.spec.task.workloads[1].name += "x"
    assert _refused(request) == "spec.task.workloads[1].name"
    request.spec.materials.add()
    assert _refused(request) == "spec.materials"
    request.spec.models.append("x" * 201)
    assert _refused(request) == "spec.models"


def _refused(request: archive_service_pb2.CreateRunRequest) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        check_bounds(request)
    assert "expected at most" in caught.value.message
    return caught.value.metadata["field"]
