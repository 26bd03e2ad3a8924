"""A run's account in the terminal: requests, tokens and cost of each model, repairs, lessons."""

from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.table import numbers, plain_table
from kernel_foundry.domain.account import ModelSpend, RepairCount
from kernel_foundry.sdk.run_account import AccountAnswer


def show_account(console: PrintableConsole, asked: AccountAnswer) -> None:
    """Print a run's account, or why it is unknown."""
    account = asked.account
    if account is None:
        line = f"the cost of models is unknown: {asked.failure}"
        console.print(line, highlight=False, soft_wrap=True)
        return
    if account.spend:
        console.print(_spend_table(account.spend))
    if account.repairs:
        console.print(_repair_table(account.repairs))
    if account.lessons_shown or account.lessons_learnt:
        console.print(f"lessons: {account.lessons_shown} shown, {account.lessons_learnt} learnt")


def _spend_table(spend: tuple[ModelSpend, ...]) -> Table:
    figures = numbers("requests", "retries", "prompt tokens", "completion tokens", "USD")
    table = plain_table("model", *figures, padding=(0, 1, 0, 0))
    for model in spend:
        table.add_row(
            model.model,
            str(model.requests),
            str(model.retries),
            str(model.prompt_tokens),
            str(model.completion_tokens),
            f"{model.usd:.4f}",
        )
    return table


def _repair_table(repairs: tuple[RepairCount, ...]) -> Table:
    table = plain_table("repairs of", *numbers("attempts", "successes", "share"))
    for repair in repairs:
        table.add_row(
            repair.kind.value.replace("_", " "),
            str(repair.attempts),
            str(repair.successes),
            f"{repair.successes / repair.attempts:.0%}" if repair.attempts else "–",
        )
    return table
