"""The JSON objects of runs and their evaluations (documented in docs/cli.md); winners as text."""

import dataclasses
from typing import Any

from kernel_foundry.domain.archive import ArchivedEvaluation, Elite, Run, RunEvent
from kernel_foundry.domain.fitness import ranked_speedup
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.plan.default_values import with_default


def run_object(run: Run) -> dict[str, Any]:
    """Return the `--json` object of a run."""
    return {
        "run": run.spec.name,
        "task": run.spec.task.name,
        "language": run.spec.language.value,
        "device": run.spec.device,
        "models": list(run.spec.models),
        "left_out": to_plain(run.spec.left_out),
        "strategy": run.spec.strategy,
        "seed": run.spec.seed,
        "owner": run.owner,
        "state": run.state.value,
        "evaluations": run.evaluation_count,
        "speedup": run.best_speedup,
        "speedup_interval": to_plain(run.best_speedup_interval),
        "cost_usd": run.cost_usd,
        "created_unix_s": run.created_unix_s,
    }


def event_object(event: RunEvent) -> dict[str, Any]:
    """Return the `--json` object of an event."""
    if event.archived is None:
        return {"sequence": event.sequence, "state": event.state.value if event.state else None}
    return {"sequence": event.sequence, **archived_object(event.archived)}


def archived_object(archived: ArchivedEvaluation) -> dict[str, Any]:
    """Return the `--json` object of an evaluation."""
    candidate, evaluation = archived.candidate, archived.evaluation
    return {
        "candidate": candidate.digest,
        "parents": list(candidate.parents),
        "operator": candidate.operator.value,
        "model": candidate.model,
        "island": archived.island,
        "selection": archived.selection,
        "outcome": evaluation.outcome.name,
        "fitness": evaluation.fitness,
        "ranked_speedup": ranked_speedup(evaluation.fitness),
        "speedup": evaluation.speedup,
        "speedup_interval": to_plain(evaluation.speedup_interval),
        "cell": evaluation.measures.cell if evaluation.measures else None,
        "cost_usd": archived.cost_usd,
        "archived_unix_s": archived.archived_unix_s,
    }


def candidate_text(elite: Elite) -> str:
    """Return an elite's candidate as Markdown, what was measured as its default configuration."""
    source = elite.candidate.source
    values = {s.name: s.value for s in elite.evaluation.configuration}
    return render(dataclasses.replace(source, plan=with_default(source.plan, values)))
