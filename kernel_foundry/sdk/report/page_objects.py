"""The JSON objects that the page of a run draws, live and as a report.

Nothing in them is markup, and every text is printable: the page shows texts as they are.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from kernel_foundry.domain.archive import ArchivedEvaluation, ArchiveStats, Elite, Run
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.finding import headline
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.domain.steering import SteeringEvent
from kernel_foundry.printable import printable
from kernel_foundry.sdk.run_account import AccountAnswer, account_object
from kernel_foundry.sdk.run_objects import archived_object, run_object
from kernel_foundry.sdk.steering import steering_object
from kernel_foundry.sdk.verdict_text import configuration_text, evaluation_object

_LONGEST_HEADLINE: Final = 160
"""Characters of a finding in a row."""


def head_object(
    run: Run,
    stats: ArchiveStats,
    winner: Elite | None,
    *,
    sweeps: tuple[str, ...],
    steering: tuple[SteeringEvent, ...],
) -> dict[str, Any]:
    """Return the summary of a run.

    Args:
        run: The run.
        stats: Of its archive.
        winner: Its winner, or the best so far.
        sweeps: Names of its landscapes.
        steering: What was asked of it.
    """
    task = run.spec.task
    return {
        **run_object(run),
        "task_text": task.reference,
        "workloads": [w.name for w in task.workloads if not w.held_out],
        "without": list(run.spec.without),
        "budget": to_plain(run.budget),
        "stats": to_plain(stats),
        "winner": winner.candidate.digest if winner else None,
        "speedup_eager": winner.evaluation.speedup_eager if winner else None,
        "speedup_eager_interval": (
            to_plain(winner.evaluation.speedup_eager_interval) if winner else None
        ),
        "sweeps": list(sweeps),
        "steering": steering_object(steering),
    }


def account_answer_object(answer: AccountAnswer) -> dict[str, Any]:
    """Return a run's account, or why it is unknown."""
    return {"failure": answer.failure, **account_object(answer.account)}


def row_object(archived: ArchivedEvaluation, best: int | None) -> dict[str, Any]:
    """Return the row of an evaluation: what curve, table, map and lineage need of it.

    Args:
        archived: The evaluation.
        best: Sequence of the run's best one then.
    """
    evaluation = archived.evaluation
    return {
        "sequence": archived.sequence,
        **archived_object(archived),
        "best": best,
        "generation": archived.candidate.generation,
        "call_ns": [w.call_bounds_ns[1] for w in evaluation.workloads if w.call_bounds_ns],
        "bits": evaluation.precision.effective_bits if evaluation.precision else None,
        "configuration": (
            configuration_text(evaluation.configuration) if evaluation.configuration else ""
        ),
        "finding": headline(evaluation.findings)[:_LONGEST_HEADLINE],
        "trust": evaluation.trust.value,
        "swept_count": evaluation.swept_count,
        "is_final": evaluation.is_final,
    }


def detail_object(archived: ArchivedEvaluation, task_name: str) -> dict[str, Any]:
    """Return the details of one evaluation: its candidate's text and its full verdict."""
    source, profile = archived.candidate.source, archived.evaluation.profile
    return {
        "sequence": archived.sequence,
        "device_code": source.device_code,
        "plan": source.plan,
        "profile": [] if profile is None else list(digest_lines(profile, source.device_code)),
        "verdict": evaluation_object(archived.evaluation, task_name=task_name),
    }


def exchange_object(exchange: Exchange) -> dict[str, Any]:
    """Return one prompt and its reply."""
    return {
        "sequence": exchange.sequence,
        "attempt": exchange.attempt,
        "purpose": exchange.purpose.value,
        "model": exchange.usage.model,
        "finish": exchange.finish.value,
        "usd": exchange.usage.cost_usd,
        "prompt_tokens": exchange.usage.input_tokens,
        "completion_tokens": exchange.usage.output_tokens,
        "messages": [{"role": m.role, "content": m.content} for m in exchange.messages],
        "reply": exchange.reply,
    }


def sweep_object(t4: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the configurations of a landscape that was kept as T4 results."""
    return [
        {
            "configuration": result["configuration"],
            "validity": result["invalidity"],
            "time_ms": next(
                (m["value"] for m in result["measurements"] if m["name"] == "time"), None
            ),
        }
        for result in t4["results"]
    ]


def page_json(value: Any) -> str:
    """Return an object as one line of JSON that a page may show whole."""
    return json.dumps(_shown(value), separators=(",", ":"), allow_nan=False)


def _shown(value: Any) -> Any:
    """What cannot be shown is written out, and so are the numbers that JSON lacks."""
    if type(value) is str:
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(name)): _shown(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [
            item if type(item) is float and math.isfinite(item) else _shown(item) for item in value
        ]
    return to_plain(value) if isinstance(value, float) else value
