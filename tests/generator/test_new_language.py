"""A registered language goes all the way: prompt, reply, fake verdict, hint, next prompt."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archive_svc.search.directions.hint import hint
from generator_svc.prompting.writer import PromptWriter
from generator_svc.recipes import missing_recipe
from generator_svc.replies.reading import source_of
from kernel_foundry import languages
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.exchange import FinishReason
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest, ProposalRequest
from kernel_foundry.languages import KernelLanguage
from kernel_foundry.plan.candidate_text import render, split
from kernel_foundry.testing.evaluator import FakeEvaluator

TEXTS = {
    "example.md": "A toy kernel that copies.",
    "experts/memory.md": "- Toys are read in rows.\n",
    "guidance/strategies.md": "Few toys are faster than many.",
    "phrases.yaml": """
near_memory: toy box
unit: child
group: team
sub_group: pair
item: hand
""",
    "hints.yaml": """
memory:
  up:
    0: {do: Read whole rows of toys., pays: It pays for long rows., pitfall: Mind the last row.}
""",
}
REPLY = """Rows first.
```toy
extern "C" toy_kernel<1> void softmax(const float* x, float* out, int n) {}
```
```python
def launch(x, out):
    softmax[x.shape[0], 64](x, out, x.shape[1])
```
"""


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Language]:
    for name, text in TEXTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    languages.register(
        KernelLanguage(
            name="toy",
            title="Toy C",
            words=("toy",),
            mark=re.compile(r"\btoy_kernel\b"),
            texts=tmp_path,
            source_file="candidate.toy",
            needless_headers=r"toy\.h",
            kernel_mark=re.compile(r"\btoy_kernel\s*<([^<>]*)>"),
            kernel_dimensions=None,
            kernel_form="toy_kernel<N> void",
        )
    )
    yield Language("toy")
    del languages.LANGUAGES["toy"]


async def test_a_new_language_goes_from_prompt_to_prompt(
    toy: Language, request_: ProposalRequest, samples: Any
) -> None:
    assert toy is Language("toy")
    device = replace(request_.admission.device, id="toy:0", language=toy, name="Toy chip")
    asked = replace(request_, admission=replace(request_.admission, device=device))
    writer = PromptWriter()
    first = "\n".join(message.content for message in writer.write(asked).messages)
    assert "You write Toy C kernels" in first
    assert TEXTS["example.md"] in first
    assert TEXTS["guidance/strategies.md"] in first
    assert "one ```toy block" in first
    assert not re.search(r"__global__|nd_range_kernel|sycl::|\bwarps?\b", first)
    assert "Toy C" in missing_recipe(asked.admission)

    source, failure = source_of(asked.selection, toy, REPLY, FinishReason.STOP)
    assert (failure, source and source.language) == ("", toy)
    assert source is not None
    evaluator = FakeEvaluator(device=device)
    assert split(render(source)) == source
    verdict = await evaluator.evaluate(
        EvaluationRequest(task=asked.task, device="toy:0", source=source)
    )
    assert (verdict.passed, verdict.candidate, verdict.device) == (True, source.digest, "toy:0")

    elite = Elite(
        candidate=Candidate(source=source),
        evaluation=verdict,
        fitness=verdict.fitness,
        measures=samples.passed_elite("a").measures,
    )
    direction = hint(toy, (0, 0, 0), (1, 0, 0))
    selection = Selection(operator=Operator.MUTATE, parent=elite, hint=direction, sequence=1)
    second = "\n".join(
        message.content for message in writer.write(replace(asked, selection=selection)).messages
    )
    assert "```toy\n" + source.device_code.strip() in second
    assert "Read whole rows of toys." in second
