"""Who makes the call that is being answered, for services that treat users differently.

Known by the call's token (`rpc/access.py`). Whoever needs none may do everything: a call by UNIX
socket, in this process, or of a service without tokens.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from kernel_foundry.errors import PermissionDeniedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A user, as a token says."""

    name: str = ""
    """"" for one who needed no token."""
    is_admin: bool = False
    priority: int = 0
    """Of the call, within what the token allows; higher ones are served first."""
    most_at_once: int | None = None
    """Calls on devices that the user may have under way; None: as many as there are places."""

    def may_change(self, owner: str) -> bool:
        """Return whether the caller may change what belongs to `owner`, "" for nobody."""
        return not self.name or self.is_admin or self.name == owner


ANYBODY: Final = Caller()

_current: ContextVar[Caller] = ContextVar("caller", default=ANYBODY)


def caller() -> Caller:
    """Return who makes the current call."""
    return _current.get()


def set_caller(who: Caller) -> None:
    """Say who makes the call that this task answers from here on."""
    _current.set(who)


def check_owner(run: str, owner: str) -> None:
    """Refuse to change a run that is another user's.

    Args:
        run: Its name.
        owner: Whose it is; "" for nobody's, which only an admin may change.

    Raises:
        PermissionDeniedError: it is not the caller's.
    """
    who = caller()
    if not who.may_change(owner):
        whose = f"belongs to {owner}" if owner else "belongs to no user"
        raise PermissionDeniedError(
            f"run {run} {whose}: {who.name} may read it; its owner and an admin may change it",
            run=run,
            owner=owner,
        )
