"""One task on several classes at once: an archive for each, shared candidates, a cross table."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from generator_svc.assembly import assemble
from generator_svc.llm.interface import ModelReply, ModelRequest
from kernel_foundry.cli import optimize_classes as optimize_classes_command
from kernel_foundry.domain.device_class import device_class
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.mechanisms import SWEEPS
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.steering import SteeringAction
from kernel_foundry.errors import BackendUnavailableError, DeviceDriverError, InvalidArgumentError
from kernel_foundry.ports import Generator
from kernel_foundry.sdk.device_classes.class_choice import choose_classes
from kernel_foundry.sdk.device_classes.optimization import ClassesResult, optimize_classes
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.loop.progress import Event
from kernel_foundry.sdk.services import Services
from kernel_foundry.testing.generator import FakeGenerator
from tests.sdk.fleet.hosts import TASK, Host, device, fleet_of
from tests.sdk.loop.test_short_run import ScriptedModel
from tests.sdk.replay.recorded import VARIANT

BIG, SMALL = device("Acme H200"), device("Acme RTX 4090")
EVALUATIONS = 12


class Breaking(Host):
    """An evaluator whose driver fails at every candidate."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        raise DeviceDriverError("the driver answers no more")


class Patient(Host):
    """An evaluator that takes a moment, so that others' candidates come meanwhile."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        await asyncio.sleep(0.1)
        return await super().evaluate(request)


async def search(
    archive: LocalArchive,
    hosts: dict[str, Host],
    *names: str,
    budget: Budget = Budget(evaluations=EVALUATIONS),  # noqa: B008  frozen, a plain value
    listener: Callable[[str, Event], None] = lambda _label, _event: None,
    generator: Generator | None = None,
    models: tuple[str, ...] = (),
) -> ClassesResult:
    fleet = fleet_of(hosts)
    try:
        return await optimize_classes(
            Services(evaluator=fleet, archive=archive, generator=generator or FakeGenerator()),
            TASK,
            devices=names,
            models=models,
            budget=budget,
            limits=EvaluationLimits(),
            run="both",
            without=(SWEEPS,),
            listener=lambda label: lambda event: listener(label, event),
        )
    finally:
        await fleet.close()


async def test_each_class_has_an_archive_of_its_own_and_times_are_never_mixed(
    archive: LocalArchive,
) -> None:
    """Every verdict of a run comes from an evaluator of its class."""
    hosts = {"a:1": Host(BIG), "b:1": Host(SMALL), "c:1": Host(BIG)}
    ended = await search(archive, hosts, "h200", "rtx 4090")
    assert [r.run for r in ended.runs] == ["both.h200", "both.rtx-4090"]
    own = {"both.h200": {"null:0@a:1", "null:0@c:1"}, "both.rtx-4090": {"null:0@b:1"}}
    for run, devices in own.items():
        assert {e.evaluation.device for e in await archive.evaluations(run)} <= devices
    specs = [(await archive.get_run(run)).spec for run in own]
    assert [spec.device for spec in specs] == [device_class(BIG), device_class(SMALL)]
    assert specs[0].seed != specs[1].seed


async def test_what_leads_on_one_class_is_judged_on_the_others(archive: LocalArchive) -> None:
    """A new best candidate is given to the other run, and counts against its budget."""
    hosts: dict[str, Host] = {"a:1": Patient(BIG), "b:1": Patient(SMALL)}
    await search(archive, hosts, "h200", "rtx 4090", budget=Budget(evaluations=40))
    judged = {}
    for run in ("both.h200", "both.rtx-4090"):
        given = await archive.steering(run)
        assert {event.steering.action for event in given} == {SteeringAction.INJECT}
        digests = [e.steering.source.digest for e in given if e.steering.source]
        assert len(set(digests)) == len(digests) > 0
        judged[run] = {e.candidate.digest for e in await archive.evaluations(run)}
        assert (await archive.get_run(run)).evaluation_count <= 40 + 8  # the end's promotions
        assert judged[run] & set(digests)
    assert judged["both.h200"] & judged["both.rtx-4090"]


class Reader(ScriptedModel):
    """A model that keeps its prompts, and whose candidates differ in what they do."""

    def __init__(self) -> None:
        super().__init__()
        self.prompts: list[str] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.prompts.append("\n".join(message.content for message in request.messages))
        reply = await super().complete(request)
        return replace(reply, text=VARIANT.sub(r"  const float spare = \1.0f;", reply.text))


async def test_a_lesson_of_one_class_reaches_the_other_s_prompts(
    archive: LocalArchive, tmp_path: Path
) -> None:
    """A lesson names the run that learnt it."""
    model = Reader()
    parts = assemble(
        store_url=f"sqlite:///{tmp_path / 'generator.db'}",
        exchanges=tmp_path / "exchanges",
        models=model,
        seeds={},  # what is shown is what these runs have learnt
    )
    models = {
        "both.h200": device("Acme H200", architecture="acme_90"),
        "both.rtx-4090": device("Acme RTX 4090", architecture="acme_89"),
    }
    await search(
        archive,
        {f"{name}:1": Host(spec) for name, spec in zip("ab", models.values(), strict=True)},
        "h200",
        "rtx 4090",
        budget=Budget(evaluations=40),
        generator=parts.generator,
        models=("fake/model",),
    )
    lessons = await parts.experience.lessons()
    await parts.generator.close()
    told = {
        lesson.source
        for run, other in zip(models, reversed(models.values()), strict=True)
        for lesson in lessons
        if lesson.source.startswith(f"run {run},")
        if any(lesson.move in prompt and other.name in prompt for prompt in model.prompts)
    }
    assert told, lessons


async def test_each_winner_is_judged_on_the_other_classes(archive: LocalArchive) -> None:
    """The cross table has a cell for each winner on each class, each judged there."""
    hosts = {"a:1": Host(BIG), "b:1": Host(SMALL)}
    ended = await search(archive, hosts, "h200", "rtx 4090")
    places = {"h200": "null:0@a:1", "rtx-4090": "null:0@b:1"}
    cells = {(c.winner_of, c.on): c for c in ended.cross}
    assert set(cells) == {(of, on) for of in places for on in places}
    winners = {r.choice.label: r.result.best for r in ended.runs if r.result}
    for (of, on), cell in cells.items():
        assert cell.evaluation is not None
        assert cell.evaluation.device == places[on]
        assert cell.evaluation.candidate == winners[of].candidate.digest
    best = ended.fastest_on("h200")
    assert best is not None
    assert best.speedup == max(c.speedup or 0 for (_, on), c in cells.items() if on == "h200")


async def test_a_class_that_fails_does_not_end_the_others(
    archive: LocalArchive, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error is kept, and shown; there is no cell for what has no winner."""
    hosts: dict[str, Host] = {"a:1": Host(BIG), "b:1": Breaking(SMALL)}
    ended = await search(archive, hosts, "h200", "rtx 4090")
    big, small = ended.runs
    assert big.result is not None
    assert big.result.winner is not None
    assert small.result is None
    assert isinstance(small.error, DeviceDriverError)
    assert [(c.winner_of, c.on) for c in ended.cross] == [("h200", "h200")]

    class Answered:
        """A client whose search has ended like this."""

        def __enter__(self) -> "Answered":
            return self

        def __exit__(self, *_exc: object) -> None:
            """Nothing is held."""

        def optimize_classes(self, *_task: object, **_arguments: object) -> ClassesResult:
            return ended

    monkeypatch.setattr(optimize_classes_command, "open_foundry", lambda **_targets: Answered())
    monkeypatch.setattr(optimize_classes_command, "write_report", lambda _foundry, run: Path(run))
    code = optimize_classes_command.run_on_classes(TASK, {}, {}, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert code == 3
    assert shown["fastest"] == {"h200": "h200"}
    assert [c["error"] for c in shown["classes"]] == [None, "the driver answers no more"]
    assert optimize_classes_command.run_on_classes(TASK, {}, {}, as_json=False) == 3
    assert "failed: the driver answers no more" in capsys.readouterr().out


async def test_money_is_shared_out_and_evaluations_are_each_run_s(archive: LocalArchive) -> None:
    """A cap on money holds for all runs together."""
    whole = Budget(evaluations=5, cost_usd=3.0, tokens=300, requests_per_minute=1)
    await search(archive, {"a:1": Host(BIG), "b:1": Host(SMALL)}, "h200", "4090", budget=whole)
    for run in ("both.h200", "both.4090"):
        kept = (await archive.get_run(run)).budget
        assert kept is not None
        assert (kept.evaluations, kept.cost_usd, kept.tokens) == (5, 1.5, 150)
        assert kept.requests_per_minute == 1


def test_classes_are_named_by_kind_class_id_or_model() -> None:
    """What a run asks for holds it to one class, with a fleet and without."""
    of_fleet = [replace(BIG, id="null:0@a:1"), replace(SMALL, id="null:0@b:1")]
    for name in ("h200", "Acme H200", device_class(BIG)):
        choice = choose_classes(of_fleet, (name,))[0]
        assert (choice.device, choice.class_name) == (device_class(BIG), device_class(BIG))
    assert choose_classes(of_fleet, ("null:0@b:1",))[0].device == "null:0@b:1"
    alone = [BIG, replace(SMALL, id="cuda:0", language=Language.CUDA)]
    chosen = choose_classes(alone, ("h200", "4090"))
    assert [(c.device, c.language) for c in chosen] == [
        ("null", Language.SYCL),
        ("cuda", Language.CUDA),
    ]
    mixed = [replace(BIG, id="cuda:0"), replace(SMALL, id="cuda:1")]
    assert [c.device for c in choose_classes(mixed, ("h200", "4090"))] == ["cuda:0", "cuda:1"]


async def test_names_that_would_mix_times_are_refused(archive: LocalArchive) -> None:
    """One class twice, one class alone, and a name of nothing."""
    hosts = {"a:1": Host(BIG), "b:1": Host(SMALL)}
    with pytest.raises(InvalidArgumentError, match="name it once"):
        await search(archive, hosts, "h200", "Acme H200")
    with pytest.raises(InvalidArgumentError, match="at least two"):
        await search(archive, hosts, "h200")
    with pytest.raises(BackendUnavailableError, match="'b200'"):
        await search(archive, hosts, "h200", "b200")
