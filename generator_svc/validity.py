"""What must hold for a request before anything is paid: that its books can be kept.

Every database that they may lie in has its limits, and says so only when it is too late.
"""

from typing import Final

from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.errors import InvalidArgumentError

_LONGEST_NAME: Final = 200
"""Characters of a run's and of a model's name that the store's columns hold."""

_LARGEST_NUMBER: Final = 2**31 - 1
"""That every database's integer columns hold."""


def check_request(request: ProposalRequest) -> None:
    """Refuse a request whose proposal could not be recorded.

    Raises:
        InvalidArgumentError: it says which field and what is allowed.
    """
    check_run(request.run)
    for model in request.models:
        _check_name(model, "models")
    selection = request.selection.sequence
    if not 0 <= selection <= _LARGEST_NUMBER:
        raise InvalidArgumentError(
            f"selection {selection}: expected 0 to {_LARGEST_NUMBER}", field="selection.sequence"
        )


def check_run(run: str) -> None:
    """Refuse a name that no run has; raises as `check_request`."""
    _check_name(run, "run")


def _check_name(name: str, field: str) -> None:
    if len(name) > _LONGEST_NAME or "\0" in name:
        raise InvalidArgumentError(
            f"{field}: a name of {len(name)} characters, expected at most {_LONGEST_NAME} and none "
            "of them NUL",
            field=field,
        )
