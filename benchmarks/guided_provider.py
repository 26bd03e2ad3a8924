"""A world in which guidance decides: traps, a writer who avoids those it was warned of, an editor.

The writer avoids a trap nearly always when the prompt's guidance warns of it, and seldom
otherwise. The verdict on what fell into a trap has a finding from which the trap can be told. The
editor reads the records that it is shown and answers like a middling one: sometimes with the
warning that the commonest failure calls for (or without a line that does harm), sometimes with
what does not matter, with what does harm, or with edits that do not apply. Both are one model at
one HTTP server.
"""

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.fitness import failure_fitness
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.llm_server import Answer, ReceivedRequest, good

SOLVED_WHEN_WARNED: Final = 0.8
SOLVED_UNWARNED: Final = 0.04
"""Chance that a candidate avoids its task's trap."""

HARM: Final = 0.25
"""What a harmful line leaves of a writer's chance."""

EDITORS_HABITS: Final = {"warning": 0.35, "idle": 0.25, "harmful": 0.2, "broken": 0.2}
"""How often the editor does what."""

_IDLE: Final = (
    "- Name variables after what they hold.",
    "- Put the longest loop first in the file.",
    "- Keep comments short.",
    "- Prefer `const` where nothing changes.",
)
_HARMFUL: Final = "- Leave out what only odd sizes need: it costs time."


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """Something that fails unless one thinks of it."""

    kind: FindingKind
    """What the verdict says."""
    message: str
    warning: str
    """The line of guidance that helps."""
    remedy: str
    """The code that avoids it."""


TRAPS: Final = (
    Trap(
        kind=FindingKind.BORDER_MISMATCH,
        message="wrong elements lie behind the last whole step of a row",
        warning="- Treat the rest of a row behind its last whole step by a masked step.",
        remedy="if (body + lane < cols) out[body + lane] = f(x[body + lane]);",
    ),
    Trap(
        kind=FindingKind.NOT_A_NUMBER,
        message="infinities meet in rows of large values",
        warning="- Take a row's maximum away before anything is raised to it.",
        remedy="sum += sycl::exp(x[i + lane] - top);",
    ),
    Trap(
        kind=FindingKind.PRECISION,
        message="errors grow with the length of a row",
        warning="- Sum long rows in several parts that meet at the end.",
        remedy="parts[i / SG % 4] += x[i + lane];",
    ),
)

TASKS: Final = tuple(
    Task(
        name=f"trap_{number % len(TRAPS)}_{number}",
        reference=(
            "class Model(nn.Module):\n"
            f"    def forward(self, x):\n        return operator_{number}(x)\n"
        ),
        workloads=(Workload(name="default"),),
    )
    for number in range(2 * len(TRAPS))
)
"""Two for each trap."""


def trap_of(task: str) -> Trap:
    """Return the trap of the task of that name."""
    return TRAPS[int(task.split("_")[1])]


class TrapEvaluator(FakeEvaluator):
    """Fails what fell into its task's trap, and says how; the rest is judged by its digest."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge by the text alone."""
        evaluation = await super().evaluate(request)
        trap = trap_of(request.task.name)
        if not evaluation.passed or trap.remedy in request.source.device_code:
            return evaluation
        outcome = EvaluationOutcome.WRONG_RESULT
        finding = Finding(kind=trap.kind, severity=Severity.ERROR, message=trap.message)
        return replace(
            evaluation,
            outcome=outcome,
            workloads=tuple(replace(w, timing=None) for w in evaluation.workloads),
            fitness=failure_fitness(outcome),
            findings=(finding,),
        )


class GuidedProvider:
    """A behaviour of the server: writer and editor.

    Args:
        seed: Of every chance; the n-th request with a text always gets the same answer.
    """

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self.edits: Counter[str] = Counter()
        """What the editor did, by habit."""

    def __call__(self, request: ReceivedRequest) -> Answer:
        """Answer one request."""
        rng = random.Random(f"{self._seed}/{request.number}")
        if "# The guidance as it is" in request.text:
            return good(self._edit(request.text, rng))
        return good(_candidate(request.text, request.number, rng))

    def _edit(self, text: str, rng: random.Random) -> str:
        habits = list(EDITORS_HABITS)
        habit = rng.choices(habits, weights=[EDITORS_HABITS[h] for h in habits])[0]
        self.edits[habit] += 1
        shown = [t for t in TRAPS if t.warning in text]
        if habit == "broken":
            return _edited("pitfalls", "- A line that never was there.", "- Better.")
        if habit == "idle":
            return _edited("strategies", "", rng.choice(_IDLE))
        if habit == "harmful":
            if shown and rng.random() < 0.5:
                return _edited("pitfalls", rng.choice(shown).warning, "- Be brief.")
            return _edited("pitfalls", "", _HARMFUL)
        if _HARMFUL in text and rng.random() < 0.5:
            return _edited("pitfalls", _HARMFUL, "")
        failures = [t for t in TRAPS if f"# A typical failure: {t.kind}\n" in text]
        unwarned = [t for t in failures if t not in shown]
        if not unwarned:
            return _edited("strategies", "", rng.choice(_IDLE))
        return _edited("pitfalls", "", rng.choice(unwarned).warning)


def _candidate(text: str, number: int, rng: random.Random) -> str:
    """Return a whole candidate for the task that `text` asks for."""
    task = next(t for t in TASKS if t.reference.strip() in text)
    trap = trap_of(task.name)
    chance = SOLVED_WHEN_WARNED if trap.warning in text else SOLVED_UNWARNED
    if _HARMFUL in text:
        chance *= HARM
    line = trap.remedy if rng.random() < chance else "out[i + lane] = f(x[i + lane]);"
    return (
        "This should do.\n"
        "```sycl\n"
        f"// variant {number}\n"
        'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))\n'
        "void kernel_of_mine(const float* x, float* out, int cols) {\n"
        f"  {line}\n"
        "}\n"
        "```\n"
        "```python\n"
        "def launch(x, out):\n"
        "    kernel_of_mine[1, 64](x, out, x.numel())\n"
        "```\n"
    )


def _edited(section: str, search: str, text: str) -> str:
    lines = [f"<<<<<<< SEARCH {section}", search, "=======", text, ">>>>>>> REPLACE"]
    edit = "\n".join(line for line in lines if line)
    return f"The failures above go back to what the guidance says, or does not.\n\n{edit}\n"
