"""Does the library of lessons learn? Tasks solved, run after run, with lessons and without.

Everything but the model is real: the loop, the evaluator on this machine's CPU, archive,
generator, stores and LiteLLM over HTTP. The model (`apprentice_provider`) succeeds when its prompt
shows it the remedy, which no hand-written text does here: the library starts empty and learns from
repairs that succeeded by luck. Guidance that evolves is switched off in both arms.

Run: python -m benchmarks.learning_experience [--rounds 5] [--seeds 3] [--out FILE]
"""

import argparse
import asyncio
import os
import statistics
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from archive_svc.archive import LocalArchive
from benchmarks.apprentice_provider import LUCK, TASKS, ApprenticeProvider
from benchmarks.result_file import out_option, write_result
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.settings import EvaluatorSettings
from generator_svc.assembly import assemble
from generator_svc.llm.litellm_models import LiteLlmModels
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import EXPERIENCE, META_PROMPTS
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.ports import Generator
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.evolution import Evolution
from kernel_foundry.sdk.loop.progress import Event, RunResult, VerdictEvent
from tests.llm_server import LlmServer

NAME: Final = "learning_experience"
MODEL: Final = "openai/gpt-4.1-mini"
EVALUATIONS: Final = 8
"""Of one run at most; it ends with the first correct candidate."""
DEVICE: Final = "sycl:0"


async def learn(
    evaluator: LocalEvaluator, folder: Path, *, rounds: int, seed: int, is_on: bool
) -> dict[str, Any]:
    """Run every task once a round on one store; return what was solved in each.

    Args:
        evaluator: Judges.
        folder: Empty; takes all stores.
        rounds: How often.
        seed: Of the runs and of the model's luck.
        is_on: Whether lessons are written and shown.
    """
    provider = ApprenticeProvider(seed=seed)
    with LlmServer(provider) as server:
        os.environ["OPENAI_BASE_URL"] = server.base_url
        os.environ.setdefault("OPENAI_API_KEY", "sk-benchmark")
        archive = LocalArchive(f"sqlite:///{folder / 'runs.db'}")
        parts = assemble(
            store_url=f"sqlite:///{folder / 'generator.db'}",
            exchanges=folder / "exchanges",
            models=LiteLlmModels(),
            seeds={},
        )
        run = partial(_run, evaluator, archive, parts.generator, seed=seed, is_on=is_on)
        rows = [[await run(number, task) for _, _, task in TASKS] for number in range(rounds)]
        lessons = await parts.experience.lessons(limit=1000)
        await parts.experience.close()
        await parts.generator.close()
        await archive.close()
    return {
        "solved": [sum(solved for solved, _ in row) for row in rows],
        "evaluations": [sum(count for _, count in row) for row in rows],
        "prompts_that_showed_the_remedy": provider.shown,
        "lessons": [
            {"symptom": lesson.symptom, "uses": lesson.use_count, "failures": lesson.failure_count}
            for lesson in lessons
        ],
    }


async def _run(
    evaluator: LocalEvaluator,
    archive: LocalArchive,
    generator: Generator,
    number: int,
    task: Task,
    *,
    seed: int,
    is_on: bool,
) -> tuple[bool, int]:
    """Return whether a task was solved, and after how many evaluations."""
    run = await archive.create_run(
        RunSpec(
            name=f"round-{number}-{task.name}",
            task=task,
            language=Language.SYCL,
            device=DEVICE,
            models=(MODEL,),
            strategy="gradient",
            seed=seed * 1_000 + number,
            without=(META_PROMPTS,) + (() if is_on else (EXPERIENCE,)),
        )
    )
    evolution = Evolution(
        evaluator=evaluator,
        archive=archive,
        generator=generator,
        run=run,
        budget=Budget(evaluations=EVALUATIONS),
        limits=EvaluationLimits(timing_seconds=0.02),
        in_flight=1,
        judging=1,
        listener=lambda event: _end_at_first_pass(event, search),
    )
    search = asyncio.create_task(evolution.run())
    with suppress(asyncio.CancelledError):
        await search
    stored = await archive.get_run(run.spec.name)
    return stored.best_speedup is not None, stored.evaluation_count


def _end_at_first_pass(event: Event, search: asyncio.Task[RunResult]) -> None:
    if isinstance(event, VerdictEvent) and event.evaluation.passed:
        search.cancel()


def summary(arms: dict[str, list[dict[str, Any]]], rounds: int) -> dict[str, list[float]]:
    """Return the share of tasks solved in each round, mean over the seeds."""
    return {
        name: [
            round(statistics.mean(run["solved"][number] for run in runs) / len(TASKS), 3)
            for number in range(rounds)
        ]
        for name, runs in arms.items()
    }


async def measure(rounds: int, seeds: int) -> tuple[Any, dict[str, list[dict[str, Any]]]]:
    """Return the device and both arms' runs."""
    evaluator = LocalEvaluator(EvaluatorSettings.from_environment(os.environ))
    arms: dict[str, list[dict[str, Any]]] = {"on": [], "off": []}
    try:
        device = next(d for d in (await evaluator.capabilities()).devices if d.id == DEVICE)
        for seed in range(seeds):
            for name, runs in arms.items():
                with tempfile.TemporaryDirectory() as folder:
                    learnt = await learn(
                        evaluator, Path(folder), rounds=rounds, seed=seed, is_on=name == "on"
                    )
                runs.append(learnt)
                print(seed, name, learnt["solved"], learnt["evaluations"], flush=True)
    finally:
        await evaluator.close()
    return device, arms


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    out_option(parser, NAME)
    options = parser.parse_args()
    device, arms = asyncio.run(measure(options.rounds, options.seeds))
    measured = {
        "tasks": len(TASKS),
        "evaluations_a_run": EVALUATIONS,
        "luck": LUCK,
        "rounds": options.rounds,
        "solved_share_by_round": summary(arms, options.rounds),
        "runs": arms,
    }
    write_result(options.out, NAME, device, measured)


if __name__ == "__main__":
    main()
