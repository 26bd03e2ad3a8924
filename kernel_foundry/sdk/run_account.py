"""The account of a run (usage of models, repairs, lessons), if the generator can be reached.

The archive has everything else: a run whose generator is away is shown without its account.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_foundry.domain.account import RunAccount
from kernel_foundry.errors import KernelFoundryError

if TYPE_CHECKING:
    from kernel_foundry.sdk.client import Foundry


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountAnswer:
    """The account of a run, or why there is none."""

    account: RunAccount | None
    failure: str = ""
    """Why there is no account."""


def ask_account(foundry: "Foundry", run: str) -> AccountAnswer:
    """Return the account of a run, or why there is none."""
    try:
        return AccountAnswer(account=foundry.ask_generator(lambda g: g.account(run)))
    except KernelFoundryError as error:
        return failed_account(error)


def failed_account(error: KernelFoundryError) -> AccountAnswer:
    """Return an answer without an account, with the generator's failure as the reason."""
    message = error.message.splitlines()[0] if error.message else type(error).__name__
    return AccountAnswer(account=None, failure=message)


def account_object(account: RunAccount | None) -> dict[str, Any]:
    """Return the `--json` fields of an account; null if it is unknown."""
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
