"""Writes the report of a run."""

import time
from pathlib import Path

from kernel_foundry.domain.archive import ArchivedEvaluation
from kernel_foundry.domain.measures import LEVELS
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import report_path
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.loop.promotion import winner
from kernel_foundry.sdk.mechanism_use import mechanism_use
from kernel_foundry.sdk.report.chart import speedup_chart
from kernel_foundry.sdk.report.environment import report_environment
from kernel_foundry.sdk.run_account import ask_account
from kernel_foundry.sdk.sweep_files import kept_sweeps


def write_report(foundry: Foundry, run: str, path: Path | None = None) -> Path:
    """Write the HTML report of `run` and return its path (default: the reports folder).

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    found = foundry.ask_archive(lambda a: a.get_run(run))
    stats = foundry.ask_archive(lambda a: a.stats(run))
    elites = foundry.ask_archive(lambda a: a.elites(run))
    archived = _all_archived(foundry, run)
    account = ask_account(foundry, run).account
    use = mechanism_use(
        account,
        stats,
        sweeps=len(kept_sweeps(found.spec.name)),
        promotions=sum(t.evaluation.is_final for t in archived),
    )
    target = path or report_path(run)
    html = (
        report_environment()
        .get_template("report.html.j2")
        .render(
            run=found,
            stats=stats,
            elites=elites,
            cells={e.measures.cell: e for e in elites},
            levels=range(LEVELS),
            winner=foundry.ask_archive(lambda a: winner(a, run)),
            archived=archived,
            chart=speedup_chart(archived),
            account=account,
            mechanisms=use,
            created=time.strftime("%Y-%m-%d %H:%M", time.localtime(found.created_unix_s)),
        )
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"the report {target} cannot be written: {error.strerror}", field="path"
        ) from error
    return target


def _all_archived(foundry: Foundry, run: str) -> tuple[ArchivedEvaluation, ...]:
    archived: list[ArchivedEvaluation] = []
    while True:
        after = archived[-1].sequence if archived else 0
        page = foundry.ask_archive(lambda a, n=after: a.evaluations(run, after=n, limit=100))  # type: ignore[misc]
        if not page:
            return tuple(archived)
        archived.extend(page)
