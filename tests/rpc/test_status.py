"""Errors keep their class and values across a status, whatever they say."""

import re

import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from kernel_foundry import errors
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.rpc.limits import ERROR_TEXT_LIMIT
from kernel_foundry.rpc.status import from_status, to_status

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, KernelFoundryError)
]


def _info(status: Status) -> error_details_pb2.ErrorInfo:
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    return info


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_error_round_trips(kind: type[KernelFoundryError]) -> None:
    """Class, message, metadata and code survive."""
    status = to_status(kind("what happened", field="task.name", run="r"), "archive")
    assert Status.FromString(status.SerializeToString()) == status
    assert _info(status).domain == "archive.kernel_foundry"
    rebuilt = from_status(status)
    assert type(rebuilt) is kind
    assert (
        rebuilt.message,
        rebuilt.metadata,
    ) == ("what happened", {"field": "task.name", "run": "r"})
    assert status.code == kind.code


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (errors.InvalidArgumentError("bad", field="device"), "device"),
        (errors.TaskInvalidError("bad"), "task"),
        (errors.TaskInvalidError("bad", field="task.check"), "task.check"),
    ],
)
def test_what_is_invalid_names_its_field(error: KernelFoundryError, field: str) -> None:
    """For clients of any language, as `BadRequest` has it."""
    bad_request = error_details_pb2.BadRequest()
    assert to_status(error, "evaluator").details[1].Unpack(bad_request)
    assert [violation.field for violation in bad_request.field_violations] == [field]


def test_reasons_are_unique_and_well_formed() -> None:
    """A reason alone finds the class, and has the form that AIP-193 asks for."""
    reasons = [kind.reason for kind in CLASSES]
    assert len(reasons) == len(set(reasons))
    for reason in reasons:
        assert re.fullmatch(r"[A-Z][A-Z0-9_]+[A-Z0-9]", reason)
        assert len(reason) <= 63


def test_long_text_is_bounded_in_its_middle() -> None:
    """Start and end of a long message stay; they say what happened and where."""
    text = "start " + "x" * 1_000_000 + " end"
    rebuilt = from_status(to_status(errors.TaskInvalidError(text, trace=text), "evaluator"))
    assert len(rebuilt.message) < ERROR_TEXT_LIMIT
    assert len(rebuilt.metadata["trace"]) < ERROR_TEXT_LIMIT
    assert rebuilt.message.startswith("start ")
    assert rebuilt.message.endswith(" end")


def test_newer_reason_falls_back_to_the_code() -> None:
    """A reason that this version does not know still gives a class of its code."""
    status = to_status(errors.ProcessLostError("lost"), "evaluator")
    info = _info(status)
    info.reason = "FROM_THE_FUTURE"
    status.details[0].Pack(info)
    assert type(from_status(status)) is errors.ServiceUnavailableError
    assert type(from_status(Status(code=12, message="no such method"))) is KernelFoundryError


@pytest.mark.parametrize("name", ["message", "self", "no identifier"])
def test_metadata_are_no_arguments(name: str) -> None:
    """Their names are the service's."""
    status = to_status(errors.DeviceBusyError("busy"), "evaluator")
    info = _info(status)
    info.metadata[name] = "x"
    status.details[0].Pack(info)
    rebuilt = from_status(status)
    assert (rebuilt.message, rebuilt.metadata) == ("busy", {name: "x"})


def test_invalid_argument_says_the_field_the_standard_way() -> None:
    """Clients that know only google.rpc find the field in BadRequest."""
    status = to_status(errors.InvalidArgumentError("bad", field="task.name"), "evaluator")
    request = error_details_pb2.BadRequest()
    assert status.details[1].Unpack(request)
    assert request.field_violations[0].field == "task.name"
