"""The summary of a run in the terminal: result table, archive map, how it was measured."""

from pathlib import Path
from typing import Final

from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from kernel_foundry.cli.account import show_account
from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.table import plain_table, whole
from kernel_foundry.cli.timings import kernel_times_lines, timings_table
from kernel_foundry.domain.archive import ArchiveStats, Elite
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.fitness import ranked_speedup
from kernel_foundry.domain.measures import LEVELS
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.loop.budget import BudgetUse, StopCause
from kernel_foundry.sdk.loop.progress import RunResult
from kernel_foundry.sdk.loop.sweeping import CONFIGURATIONS_PER_EVALUATION
from kernel_foundry.sdk.mechanism_use import mechanism_text, mechanism_use
from kernel_foundry.sdk.run_account import ask_account
from kernel_foundry.sdk.sweep_files import sweep_paths
from kernel_foundry.sdk.verdict_text import (
    arithmetic_line,
    checks_text,
    count_text,
    speedup_text,
    winner_text,
)

CAUSES: Final = {
    StopCause.EVALUATIONS: "its evaluations are used up",
    StopCause.MINUTES: "its time is used up",
    StopCause.COST: "its dollars or tokens are used up",
    StopCause.TRAFFIC_BOUND: "the best kernel reached the traffic bound (--stop-at)",
    StopCause.EXHAUSTED: "all further proposals were repetitions",
    StopCause.STOPPED: "it was stopped: `runs steer RUN resume` undoes that",
    StopCause.INTERRUPTED: "interrupted",
}
"""Why a run ended, as shown to users."""


_MAP: Final = (
    "archive map: speed-up of each cell's elite over the run's yardstick, at the upper end of its "
    "time's interval\nlevels 0 to 3: m memory (0 scalar access, 3 tiles and registers), "
    "a algorithm (0 direct, 3 blocked or matrix units), s synchronization (0 none, 3 global)"
)


def show_summary(foundry: Foundry, result: RunResult, report: Path, record: Path | None) -> None:
    """Print why a run ended, its winner, the archive map and the paths of report and record."""
    console = PrintableConsole()
    name = result.run.spec.name
    elites = foundry.ask_archive(lambda a: a.elites(name))
    stats = foundry.ask_archive(lambda a: a.stats(name))
    console.rule(f"{name}: ended, {CAUSES[result.cause]}")
    if result.winner is None:
        console.print("nothing correct was found", style="bold red")
        watch = as_called(f"runs watch {name}")
        line = f"how each candidate ended: {watch}, and the report"
        console.print(line, soft_wrap=True, highlight=False)
    else:
        _show_winner(console, result.winner.evaluation)
    console.print(_counts_text(stats))
    console.print(_spent_text(result.spent), highlight=False)
    show_archive_map(console, elites)
    asked = ask_account(foundry, name)
    show_account(console, asked)
    use = mechanism_use(
        asked.account, stats, sweeps=result.spent.sweeps, promotions=result.spent.promotions
    )
    if use:
        console.print(f"mechanisms, by number of uses: {mechanism_text(use)}", highlight=False)
    if result.winner is not None:
        _show_method(console, result.winner.evaluation)
    show_sweeps(console, name)
    console.print(f"report: {report}", soft_wrap=True, highlight=False)
    if record is not None:
        verify = as_called("verify RECORD")
        text = f"record of the winner: {record} ({verify} checks it)"
        console.print(text, soft_wrap=True, highlight=False)
    if result.winner is not None:
        for what, command in _next_steps(result, result.winner.evaluation):
            console.print(f"{what}: {as_called(command)}", soft_wrap=True, highlight=False)


def _next_steps(result: RunResult, winner: Evaluation) -> list[tuple[str, str]]:
    name = result.run.spec.name
    steps = [("its code and full verdict", f"runs best {name}")]
    if (winner.speedup or 0.0) > 1.0:
        steps.append(("a file for your own program", f"export {name}"))
    more = {
        StopCause.EVALUATIONS: f"--evaluations {2 * result.spent.evaluations}",
        StopCause.MINUTES: "--minutes 10",
    }
    if result.cause in more:
        steps.append(("to continue", f"optimize --resume --run {name} {more[result.cause]}"))
    return steps


def _spent_text(spent: BudgetUse) -> str:
    """The evaluations that count against the budget: verdicts, and those of sweeps."""
    text = f"evaluations that count against its budget: {spent.evaluations}"
    if not spent.sweep_evaluations:
        return text
    judged = spent.evaluations - spent.sweep_evaluations
    return (
        f"{text}, {judged} verdicts and {spent.sweep_evaluations} for sweeps "
        f"({CONFIGURATIONS_PER_EVALUATION} configurations count as one)"
    )


def show_stats(console: PrintableConsole, stats: ArchiveStats) -> None:
    """Print outcome counts and the archive's statistics."""
    console.print(
        f"{_counts_text(stats)}; {counted(stats.elite_count, 'elite')}, "
        f"coverage {stats.coverage:.0%}, QD score {stats.qd_score:.2f}"
    )


def _counts_text(stats: ArchiveStats) -> str:
    outcomes = ", ".join(f"{o.count} {o.outcome}" for o in stats.outcomes)
    return f"{count_text(stats)}; outcomes: {outcomes or 'none'}"


def show_sweeps(console: PrintableConsole, run: str) -> None:
    """Print the folder of the landscapes of the run's sweeps, if there are any."""
    files = sweep_paths(run)
    if files:
        line = f"landscapes of sweeps (T4 files: {len(files)}): {files[0].parent}"
        console.print(line, soft_wrap=True, highlight=False)


def show_islands(console: PrintableConsole, stats: ArchiveStats) -> None:
    """Print each island's statistics, unless there is no evaluation yet."""
    if not stats.evaluation_count or not stats.islands:
        return
    figures = ("elites", "QD score", "best fitness", "migrations")
    table = plain_table(whole("island"), *figures, padding=(0, 1, 0, 0))
    for island in stats.islands:
        best = "–" if island.objective_max is None else f"{island.objective_max:.3f}"
        row = (str(island.elite_count), f"{island.qd_score:.2f}", best, str(island.migrations))
        table.add_row(island.name, *row)
    console.print(table)


def show_archive_map(console: PrintableConsole, elites: tuple[Elite, ...]) -> None:
    """Print the grid: a block for each synchronization level in use, ranked speed-ups as cells."""
    if not elites:
        return
    cells = {e.measures.cell: e for e in elites}
    console.print(_MAP, highlight=False)
    blocks = [
        _map_block(cells, synchronization, elites[0])
        for synchronization in range(LEVELS)
        if any(cell[2] == synchronization for cell in cells)
    ]
    console.print(Columns(blocks, padding=(0, 3)))


def _map_block(
    cells: dict[tuple[int, int, int], Elite], synchronization: int, best: Elite
) -> Table:
    table = plain_table("", title=f"s{synchronization}")
    for algorithm in range(LEVELS):
        table.add_column(f"a{algorithm}", justify="right", min_width=5, no_wrap=True)
    for memory in range(LEVELS):
        row: list[str | Text] = [f"m{memory}"]
        for algorithm in range(LEVELS):
            elite = cells.get((memory, algorithm, synchronization))
            text = _elite_text(elite) if elite else "·"
            row.append(Text(text, "bold green" if elite is best else ""))
        table.add_row(*row)
    return table


def _elite_text(elite: Elite) -> str:
    ranked = ranked_speedup(elite.fitness)
    return "suspect" if ranked is None else speedup_text(ranked)


def _show_winner(console: PrintableConsole, evaluation: Evaluation) -> None:
    console.print(winner_text(evaluation), style="bold", highlight=False)
    console.print(timings_table(evaluation, "winner"))
    for line in kernel_times_lines(evaluation):
        console.print(line, highlight=False)
    if line := arithmetic_line(evaluation):
        console.print(f"arithmetic: {line}", highlight=False)


def _show_method(console: PrintableConsole, evaluation: Evaluation) -> None:
    samples = [len(w.timing.samples_ns) for w in evaluation.workloads if w.timing is not None]
    lines = []
    if evaluation.checks:
        lines.append(f"checks: {checks_text(evaluation.checks)}; trust: {evaluation.trust.value}")
    lines.append(
        f"how it was measured: {', '.join(map(str, samples))} samples; the report has "
        f"{counted(len(evaluation.evidence), 'fact')} more"
    )
    for line in lines:
        console.print(line, style="dim", highlight=False, soft_wrap=True)
