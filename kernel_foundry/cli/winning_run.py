"""The run whose winner is shown or exported if the user names none."""

from kernel_foundry.cli.output import print_text
from kernel_foundry.domain.archive import Run
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.archive_pages import all_runs
from kernel_foundry.sdk.client import Foundry


def run_with_winner(foundry: Foundry, name: str) -> Run:
    """Return the run of a name; "" is the newest with a correct kernel, or else the newest.

    Says on stderr which one it takes where that is not the newest.

    Raises:
        RunNotFoundError: there is no such run, or none at all.
    """

    async def found(archive: Archive) -> tuple[Run, Run]:
        newest = await archive.get_run(name)
        if name or newest.best_speedup is not None:
            return newest, newest
        async for run in all_runs(archive):
            if run.best_speedup is not None:
                return newest, run
        return newest, newest

    newest, chosen = foundry.ask_archive(found)
    if chosen is not newest:
        print_text(
            f"nothing passed yet in the newest run, {newest.spec.name}: showing {chosen.spec.name}",
            err=True,
        )
    return chosen
