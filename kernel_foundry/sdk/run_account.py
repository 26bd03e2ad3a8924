"""What a run took from models, asked of a generator that need not be there.

The archive has all that matters of a run: one whose generator cannot be reached is shown all the
same, without its books.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_foundry.domain.account import RunAccount
from kernel_foundry.errors import KernelFoundryError

if TYPE_CHECKING:
    from kernel_foundry.sdk.client import Foundry


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAnswer:
    """A generator's answer."""

    account: RunAccount | None
    failure: str = ""
    """Why there is no account."""


def ask_account(foundry: "Foundry", run: str) -> AccountAnswer:
    """Return the account of a run, or why there is none."""
    try:
        return AccountAnswer(account=foundry.ask_generator(lambda g: g.account(run)))
    except KernelFoundryError as error:
        return no_account(error)


def no_account(error: KernelFoundryError) -> AccountAnswer:
    """Return that a generator's failure is why there is no account."""
    message = error.message.splitlines()[0] if error.message else type(error).__name__
    return AccountAnswer(account=None, failure=message)


def account_object(account: RunAccount | None) -> dict[str, Any]:
    """Return the `--json` fields of an account; null where it is not known."""
    if account is None:
        return dict.fromkeys(("spend", "repairs", "lessons", "mechanisms"))
    return {
        "spend": {
            s.model: {
                "requests": s.requests,
                "retries": s.retries,
                "prompt_tokens": s.prompt_tokens,
                "completion_tokens": s.completion_tokens,
                "usd": s.usd,
            }
            for s in account.spend
        },
        "repairs": {
            r.kind.value: {"attempts": r.attempts, "successes": r.successes}
            for r in account.repairs
        },
        "lessons": {"shown": account.lessons_shown, "learnt": account.lessons_learnt},
        "mechanisms": {m.mechanism: m.prompts for m in account.mechanisms},
    }
