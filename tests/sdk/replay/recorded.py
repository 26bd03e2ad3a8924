"""Recorded runs to be replayed: a model behind HTTP that errs, and kernels that fail."""

import asyncio
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

from archive_svc.archive import LocalArchive
from generator_svc.llm.litellm_models import LiteLlmModels
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.ports import Generator
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import run_spec
from tests.evolution import evolution_of
from tests.generators import generator_in
from tests.llm_server.answers import Answer, good, truncated
from tests.llm_server.server import ReceivedRequest

SPEC = run_spec(
    "recorded",
    task=Task(
        name="relu",
        reference="class Model: ...\n",
        workloads=(Workload(name="default"),),
    ),
    models=("openai/gpt-4o-mini", "openai/gpt-4o"),
    strategy="gradient",
    seed=3,
)

CANDIDATE = """\
Some words first.

```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void relu(const float* x, float* out, int count) {{
  // variant {number}
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] > 0.0f ? x[i] : 0.0f;
}}
```
```python
{tune}def launch(x, out):
    relu[cdiv(x.numel(), {block}), {block}](x, out, x.numel())
```
"""

EDIT = """\
<<<<<<< SEARCH
  // variant {old}
=======
  // variant {new}
>>>>>>> REPLACE
"""

VARIANT = re.compile(r"^  // variant (\d+)$", re.MULTILINE)


class Model:
    """Answers by the number of the request: good ones, edits, repeats, cut ones and prose."""

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Return the answer to a chat completion."""
        number = request.number
        rng = random.Random(number)
        shown = VARIANT.findall(request.text)
        is_second_try = request.body["messages"][-2]["role"] == "assistant"
        if number % 13 == 5 or (is_second_try and number % 2):
            return good("I would rather think about it some more.")
        if number % 17 == 7:
            return truncated(_candidate(number)[:200])
        if number % 11 == 3:
            return good(_candidate(1 + number // 6))
        if number % 3 == 2 and shown:
            return good(EDIT.format(old=shown[0], new=number), prompt_tokens=rng.randrange(9000))
        return good(_candidate(number), completion_tokens=rng.randrange(3000))


def _candidate(number: int) -> str:
    if number % 5:
        return CANDIDATE.format(number=number, tune="", block=16)
    return CANDIDATE.format(number=number, tune='TUNE = {"BLOCK": [16, 32, 64]}\n\n', block="BLOCK")


class UnevenEvaluator(FakeEvaluator):
    """Every third variant does not compile, and other configurations are better ones."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge by the source alone."""
        evaluation = await super().evaluate(request)
        if request.configuration:
            evaluation = replace(evaluation, fitness=evaluation.fitness + 0.05)
        variant = VARIANT.search(request.source.device_code)
        if not evaluation.passed or variant is None or int(variant[1]) % 3:
            return evaluation
        return replace(
            evaluation,
            outcome=EvaluationOutcome.COMPILE_ERROR,
            workloads=(),
            measures=None,
            fitness=0.1,
            findings=(
                Finding(
                    kind=FindingKind.COMPILE_ERROR,
                    severity=Severity.ERROR,
                    message="error: use of undeclared identifier 'y'",
                ),
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    folder: Path

    @property
    def store(self) -> str:
        """URL of the archive's store."""
        return f"sqlite:///{self.folder / 'runs.db'}"

    def generator(self) -> Generator:
        """Return a generator with the run's exchanges; nobody answers it any more."""
        return generator_in(self.folder, LiteLlmModels())


async def record(folder: Path, *, budgets: tuple[int, ...]) -> Recorded:
    """Make a run that is interrupted in the middle of things at each budget but the last."""
    recorded = Recorded(folder=folder)
    for budget in budgets:
        await _search(recorded, budget, is_last=budget == budgets[-1])
    return recorded


async def _search(recorded: Recorded, budget: int, *, is_last: bool) -> None:
    archive, generator = LocalArchive(recorded.store), recorded.generator()
    run = await archive.create_run(SPEC)
    reached = asyncio.Event()

    def listen(_event: object) -> None:
        if not is_last and evolution._meter.used.evaluations >= budget:
            reached.set()

    evolution = evolution_of(
        run,
        archive,
        Budget(evaluations=budget if is_last else 10 * budget),
        evaluator=UnevenEvaluator(),
        generator=generator,
        in_flight=4,
        judging=2,
        listener=listen,
    )
    search = asyncio.create_task(evolution.run())
    waiting = asyncio.create_task(reached.wait())
    await asyncio.wait({search, waiting}, return_when=asyncio.FIRST_COMPLETED)
    for task in (search, waiting):
        if not (is_last and task is search):
            task.cancel()
    await asyncio.gather(search, waiting, return_exceptions=True)
    if is_last:
        search.result()
    await generator.close()
    await archive.close()
