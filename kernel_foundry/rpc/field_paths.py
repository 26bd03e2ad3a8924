"""Names of fields in refusals: on the wire paths from a call's request, here from an argument.

A port's method refuses `limits.run_seconds`; whoever writes a client by hand has set
`request.limits.run_seconds`. Servicers add what clients of ours take off again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError


@contextmanager
def fields_within(name: str) -> Iterator[None]:
    """Have refusals of the body name their fields as parts of the message field `name`."""
    with _renamed(lambda field: f"{name}.{field}"):
        yield


@contextmanager
def fields_of(name: str) -> Iterator[None]:
    """Have refusals of the body name fields of the message field `name` without it."""
    with _renamed(lambda field: field.removeprefix(f"{name}.")):
        yield


@contextmanager
def _renamed(rename: Callable[[str], str]) -> Iterator[None]:
    try:
        yield
    except (InvalidArgumentError, TaskInvalidError) as error:
        field = error.metadata.get("field")
        if field is None:
            raise
        # A new one: several calls may have been given the same.
        renamed = error.metadata | {"field": rename(field)}
        raise type(error)(error.message, **renamed) from error
