"""Readers of requests and answers that never raise, and never make more than a limit of fields.

gRPC answers UNKNOWN, or hands on None, when a reader raises.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError

from kernel_foundry.rpc.field_count import check_field_count
from kernel_foundry.rpc.limits import REQUEST_FIELD_LIMIT, RESPONSE_FIELD_LIMIT

T = TypeVar("T")

Reader = Callable[[bytes], T]


@dataclass(frozen=True, slots=True)
class MalformedMessage:
    """Stands for a message that the bytes are not."""

    reason: str


def request_reader(read: Reader[T], method: str) -> "Reader[T | MalformedMessage]":
    """Return a reader of requests of `method`, such as "/package.Service/Method"."""
    descriptor = _method(method).input_type
    return _bounded(read, lambda data: check_field_count(data, descriptor, REQUEST_FIELD_LIMIT))


def answer_reader(read: Reader[T], method: str) -> "Reader[T | MalformedMessage]":
    """Return a reader of answers of `method`."""
    descriptor = _method(method).output_type
    return _bounded(read, lambda data: check_field_count(data, descriptor, RESPONSE_FIELD_LIMIT))


def _bounded(read: Reader[T], check: Callable[[bytes], None]) -> "Reader[T | MalformedMessage]":
    def read_or_tell(data: bytes) -> T | MalformedMessage:
        try:
            check(data)
            return read(data)
        except (DecodeError, ValueError) as error:
            return MalformedMessage(str(error))

    return read_or_tell


def _method(path: str) -> MethodDescriptor:
    service, _, name = path.removeprefix("/").partition("/")
    return descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
