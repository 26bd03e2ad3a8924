"""What a run is begun with: candidates are judged first, code is only shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import Run
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.material import LONGEST_MATERIAL, MOST_MATERIALS
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.starting_point import StartingPoint, starting_point
from kernel_foundry.testing.evaluator import FakeEvaluator
from kernel_foundry.testing.generator import FakeGenerator
from tests.evolution import RequestLog, evolution_of
from tests.sdk.replay.recorded import CANDIDATE, SPEC

TEXT = CANDIDATE.format(number=1, tune="", block=16)
OTHER = CANDIDATE.format(number=2, tune="", block=16)
OF_ANOTHER_TASK = CANDIDATE.format(number=3, tune="", block=16)
CODE = "__global__ void relu(float* x) { /* fast */ }\n"


class BindingEvaluator(FakeEvaluator):
    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        evaluation = await super().evaluate(request)
        if "variant 3" in request.source.device_code:
            return replace(evaluation, outcome=EvaluationOutcome.PLAN_ERROR, workloads=())
        return evaluation


async def _begin(archive: LocalArchive, *sources: Path | str) -> StartingPoint:
    return await starting_point(
        sources,
        archive=archive,
        evaluator=BindingEvaluator(),
        task=SPEC.task,
        language=Language.SYCL,
        device=SPEC.device,
    )


async def _evolve(
    archive: LocalArchive, generator: FakeGenerator, run: Run, *, evaluations: int
) -> None:
    await evolution_of(
        run, archive, Budget(evaluations=evaluations), generator=generator, in_flight=1
    ).run()


async def test_what_binds_is_a_parent_and_the_rest_is_material(
    archive: LocalArchive, tmp_path: Path
) -> None:
    files = {
        "mine.md": TEXT,
        "same.md": TEXT,
        "other_task.md": OF_ANOTHER_TASK,
        "fast.cu": CODE,
        "extension.py": "import os; os.abort()\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    begun = await _begin(archive, *(tmp_path / name for name in files))
    assert begun.candidates == (split(TEXT),)
    assert [m.name for m in begun.materials] == ["other_task.md", "fast.cu", "extension.py"]
    assert begun.materials[1].text == CODE
    assert "variant 3" in begun.materials[0].text


async def test_the_elites_of_another_run_are_parents(archive: LocalArchive) -> None:
    await archive.create_run(replace(SPEC, name="earlier", models=("fake",)))
    for number, text in enumerate((TEXT, OTHER)):
        candidate = Candidate(source=split(text))
        request = EvaluationRequest(task=SPEC.task, device=SPEC.device, source=candidate.source)
        verdict = await FakeEvaluator().evaluate(request)
        await archive.add("earlier", candidate, verdict, request_id=str(number))
    begun = await _begin(archive, "earlier")
    elites = await archive.elites("earlier")
    assert begun.candidates == tuple(e.candidate.source for e in elites)


async def test_what_is_no_starting_point_is_refused_by_name(
    archive: LocalArchive, tmp_path: Path
) -> None:
    (tmp_path / "long.cu").write_text("x" * (LONGEST_MATERIAL + 1))
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "prose.md").write_text("No blocks here.")
    (tmp_path / "short.cu").write_text(CODE)
    for source, said in (
        (tmp_path / "long.cu", "more than 32768 characters"),
        (tmp_path / "binary.cu", "not UTF-8 text"),
        (tmp_path / "prose.md", "is not a candidate"),
        (tmp_path / "absent.cu", "absent.cu: No such file"),
        ("no-such-run", "neither a run nor a candidate file"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            await _begin(archive, source)
    with pytest.raises(InvalidArgumentError, match="materials, expected at most"):
        await _begin(archive, *[tmp_path / "short.cu"] * (MOST_MATERIALS + 1))


async def test_a_run_judges_its_first_candidates_and_goes_on_from_them(
    archive: LocalArchive, tmp_path: Path
) -> None:
    (tmp_path / "fast.cu").write_text(CODE)
    (tmp_path / "mine.md").write_text(TEXT)
    begun = await _begin(archive, tmp_path / "mine.md", tmp_path / "fast.cu")
    spec = replace(
        SPEC, models=("fake",), materials=begun.materials, first_candidates=begun.candidates
    )
    generator = RequestLog()
    await _evolve(archive, generator, await archive.create_run(spec), evaluations=6)
    archived = await archive.evaluations(spec.name)
    assert archived[0].candidate.source == split(TEXT)
    assert archived[0].selection is None
    assert {request.materials for request in generator.requests} == {begun.materials}
    operators = [request.selection.operator for request in generator.requests]
    assert operators[:4] != [Operator.SEED] * 4
    assert (await archive.get_run(spec.name)).spec.materials == begun.materials


async def test_first_candidates_that_were_not_judged_are_judged_on_resume(
    archive: LocalArchive,
) -> None:
    sources = (split(TEXT), split(OTHER))
    spec = replace(SPEC, models=("fake",), first_candidates=sources)
    await _evolve(archive, FakeGenerator(), await archive.create_run(spec), evaluations=1)
    await _evolve(archive, FakeGenerator(), await archive.get_run(spec.name), evaluations=3)
    archived = await archive.evaluations(spec.name)
    first, second, third = [entry for entry in archived if not entry.evaluation.is_final]
    assert (first.candidate.source, second.candidate.source) == sources
    assert third.selection is not None


async def test_first_candidates_are_bounded_in_all(archive: LocalArchive) -> None:
    long = tuple(
        KernelSource(language=Language.SYCL, device_code="x" * (1 << 19), plan=str(number))
        for number in range(2)
    )
    with pytest.raises(InvalidArgumentError, match="first candidates of 1048578 characters"):
        await archive.create_run(replace(SPEC, first_candidates=long))
