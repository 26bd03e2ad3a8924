"""The recipes model: alone it answers at once, beside others as a provider of LiteLLM."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from generator_svc.generator import LocalGenerator
from generator_svc.llm.assignment import Assignment
from generator_svc.llm.catalogue import RECIPES
from generator_svc.llm.interface import ModelRequest
from generator_svc.llm.litellm_models import LiteLlmModels, load_sdk
from generator_svc.llm.retrying import FailedAttempt
from generator_svc.recipes import missing_recipe
from generator_svc.request_limits import check_admission
from kernel_foundry.domain.admission import GraphNode
from kernel_foundry.domain.archive import Elite, Selection
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.exchange import ChatMessage, FinishReason
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.request import BudgetCaps, ProposalRequest
from kernel_foundry.errors import InvalidArgumentError, KernelFoundryError, StatusCode
from tests.generators import generator_in
from tests.recipes.plain_modules import Case, OneInput
from tests.recipes.plain_run import admission_of, workloads_of
from tests.recipes.reference_graph import DEVICE

_PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY")


def _node(name: str, op: str, *arguments: str) -> GraphNode:
    dtype = "" if op == "output" else "float32"
    return GraphNode(
        name=name, op=op, arguments=arguments, keywords=(), dtype=dtype, shape=(2048, 4096)
    )


_SOFTMAX = (
    _node("x", "placeholder"),
    _node("softmax", "aten.softmax.int", "%x", "-1"),
    _node("output", "output", "%softmax"),
)


def _elite(samples: Any, candidate: Candidate) -> Elite:
    elite: Elite = samples.passed_elite("a")
    verdict = replace(elite.evaluation, candidate=candidate.digest)
    return replace(elite, candidate=candidate, evaluation=verdict)


@pytest.fixture
def generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalGenerator:
    """Return a generator on a machine without keys."""
    for key in (*_PROVIDER_KEYS, "MISTRAL_API_KEY", "KERNEL_FOUNDRY_MODEL"):
        monkeypatch.delenv(key, raising=False)
    return generator_in(tmp_path, LiteLlmModels())


@pytest.fixture
def softmax(request_: ProposalRequest) -> ProposalRequest:
    """Return a request with the operator graph of a softmax and no model named."""
    admission = request_.admission
    workloads = tuple(replace(w, graph=_SOFTMAX) for w in admission.workloads)
    return replace(request_, models=(), admission=replace(admission, workloads=workloads))


async def test_recipes_answer_by_default_and_for_nothing(
    generator: LocalGenerator, softmax: ProposalRequest
) -> None:
    """No key, no named model, no money: a candidate of the recipes."""
    proposal = await generator.propose(replace(softmax, caps=BudgetCaps(cost_usd=0.0, tokens=0)))
    assert proposal.failure == ""
    assert proposal.candidate is not None
    assert proposal.candidate.model == "recipes"
    (usage,) = proposal.usage
    assert (usage.cost_usd, usage.input_tokens, usage.output_tokens) == (0.0, 0, 0)
    await generator.close()


@pytest.mark.parametrize(
    ("op", "argument"),
    [
        ("aten.chunk.default", "1000000000"),
        ("aten.split.Tensor", "1"),
        ("aten.split.Tensor", "0"),
        ("aten.chunk.default", "0"),
        ("aten.unbind.int", "0"),
    ],
)
def test_a_graph_of_countless_pieces_is_beyond_recipes(
    softmax: ProposalRequest, op: str, argument: str
) -> None:
    shape = (10**9, 4)
    x = replace(_node("x", "placeholder"), shape=shape)
    split = replace(_node("a", op, "%x", argument), dtype="", shape=())
    graph = (x, split, _node("output", "output", "%a"))
    (first, *_) = softmax.admission.workloads
    tensors = tuple(replace(t, shape=shape) for t in first.tensors)
    workload = replace(first, graph=graph, tensors=tensors)
    admission = replace(softmax.admission, workloads=(workload,))
    assert missing_recipe(admission)


def test_a_graph_beyond_any_model_is_refused(softmax: ProposalRequest) -> None:
    (first, *_) = softmax.admission.workloads
    x, *_, end = _SOFTMAX
    chain = tuple(_node(f"a{i}", "aten.relu.default", "%x") for i in range(20_000))
    for middle in (chain, (_node("softmax", "aten.softmax.int", "%x", "1" * 70_000),)):
        graph = (x, *middle, replace(end, arguments=("%x",)))
        workload = replace(first, graph=graph)
        with pytest.raises(InvalidArgumentError) as caught:
            check_admission(replace(softmax.admission, workloads=(workload,)))
        assert caught.value.metadata["field"] == "admission.workloads[0]"


async def test_recipes_follow_the_seed(generator: LocalGenerator, softmax: ProposalRequest) -> None:
    """The same request has the same candidate."""
    first, second = [(await generator.propose(softmax)).candidate for _ in range(2)]
    assert first == second
    await generator.close()


async def test_recipes_get_parent_and_operator(
    generator: LocalGenerator, softmax: ProposalRequest, samples: Any
) -> None:
    seed = (await generator.propose(softmax)).candidate
    assert seed is not None
    parent = _elite(samples, seed)
    selection = Selection(operator=Operator.MUTATE, parent=parent, sequence=1)
    child = (await generator.propose(replace(softmax, selection=selection))).candidate
    assert child is not None
    assert child.parents == (seed.digest,)
    await generator.close()


async def test_recipes_write_the_language_of_the_device(
    generator: LocalGenerator, softmax: ProposalRequest
) -> None:
    """A CUDA device gets a CUDA kernel."""
    device = replace(softmax.admission.device, language=Language.CUDA)
    request = replace(softmax, admission=replace(softmax.admission, device=device))
    candidate = (await generator.propose(request)).candidate
    assert candidate is not None
    assert candidate.source.language is Language.CUDA
    assert "__global__" in candidate.source.device_code
    await generator.close()


async def test_what_no_recipe_covers_is_said(
    generator: LocalGenerator, request_: ProposalRequest
) -> None:
    """Without an operator graph there is no recipe, and the proposal says so at once."""
    proposal = await generator.propose(replace(request_, models=("recipes",)))
    assert proposal.candidate is None
    assert proposal.failure.startswith("recipes cannot do this task: ")
    assert len(proposal.usage) == 1
    await generator.close()


async def test_what_recipes_cannot_do_is_known_before_they_are_asked(
    generator: LocalGenerator, softmax: ProposalRequest
) -> None:
    """The operator is named, for each entry of recipes and for no other model."""
    inverse = _node("softmax", "aten.linalg_inv.default", "%x")
    graph = (_SOFTMAX[0], inverse, _SOFTMAX[-1])
    workloads = tuple(replace(w, graph=graph) for w in softmax.admission.workloads)
    admission = replace(softmax.admission, workloads=workloads)
    models = ("openai/gpt-5", "memory=recipes", "recipes")
    limits = await generator.model_limits(models, admission)
    assert [limit.text for limit in limits] == [
        "memory=recipes cannot do aten.linalg_inv",
        "recipes cannot do aten.linalg_inv",
    ]
    assert await generator.model_limits(models, softmax.admission) == ()
    await generator.close()


async def test_recipes_call_the_library_where_the_task_allows_it(
    generator: LocalGenerator, softmax: ProposalRequest
) -> None:
    layers = Case(
        lambda: OneInput(lambda m, x: torch.relu(m.linear(x)).sum(-1), linear=nn.Linear(8, 8)),
        lambda batch: (torch.randn(batch, 8),),
    )
    admission = admission_of(workloads_of(layers), DEVICE)
    for library_ops, is_called in (((), True), (("none",), False)):
        task = replace(softmax.task, library_ops=library_ops)
        proposal = await generator.propose(replace(softmax, task=task, admission=admission))
        assert proposal.candidate is not None, proposal.failure
        assert ("ops.linear" in proposal.candidate.source.plan) is is_called
    await generator.close()


def _model_request(request: ProposalRequest, *models: str) -> ModelRequest:
    assignment = Assignment(
        admission=request.admission,
        selection=request.selection,
        language=request.admission.device.language,
        seed=request.seed,
    )
    return ModelRequest(
        models=models,
        messages=(ChatMessage(role="user", content="?"),),
        max_output_tokens=1,
        assignment=to_json(assignment),
    )


async def test_recipes_say_the_same_alone_and_beside_others(
    request_: ProposalRequest, softmax: ProposalRequest
) -> None:
    """A candidate, and a refusal; beside a language model through LiteLLM."""
    models = LiteLlmModels()
    for asked, finish in ((softmax, FinishReason.STOP), (request_, FinishReason.REFUSED)):
        alone, beside = [
            await models.complete(_model_request(asked, RECIPES, *others))
            for others in ((), ("openai/gpt-5",))
        ]
        assert alone.finish is finish
        usage = replace(beside.usage, latency_ms=alone.usage.latency_ms)
        assert replace(beside, usage=usage) == alone
    await models.close()


async def test_a_bug_of_recipes_is_ours(
    generator: LocalGenerator, softmax: ProposalRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither a refusal nor a provider that is down, and is not asked again."""
    calls = []

    def fail(**_: object) -> str:
        calls.append(1)
        raise ZeroDivisionError("tile of 0")

    monkeypatch.setattr("generator_svc.recipes.propose", fail)
    with pytest.raises(KernelFoundryError, match="tile of 0") as caught:
        await generator.propose(softmax)
    assert caught.value.code is StatusCode.INTERNAL
    assert len(calls) == 1
    with pytest.raises(FailedAttempt, match="tile of 0") as beside:
        await load_sdk().attempt(RECIPES, _model_request(softmax, RECIPES), 60.0)
    assert beside.value.error.code is StatusCode.INTERNAL
    assert not beside.value.is_transient
    await generator.close()


async def test_recipes_answer_templatise_with_a_mutation(
    generator: LocalGenerator, softmax: ProposalRequest, samples: Any
) -> None:
    """What they write has parameters already, so another kernel is what is asked for."""
    seed = (await generator.propose(softmax)).candidate
    assert seed is not None
    parent = _elite(samples, seed)
    selection = Selection(operator=Operator.TEMPLATISE, parent=parent, sequence=1)
    child = (await generator.propose(replace(softmax, selection=selection))).candidate
    assert child is not None
    assert (child.operator, child.parents) == (Operator.MUTATE, (seed.digest,))
    assert child.digest != seed.digest
    await generator.close()


@pytest.mark.parametrize("operator", [Operator.SEED, Operator.MUTATE])
async def test_recipes_heed_what_the_user_names_and_bans(
    generator: LocalGenerator, softmax: ProposalRequest, samples: Any, operator: Operator
) -> None:
    """A gene as NAME=VALUE; a banned word is in no kernel, and without any kernel they say so."""
    first = await generator.propose(softmax)
    assert first.candidate is not None
    parent = None if operator is Operator.SEED else _elite(samples, first.candidate)

    async def plans(hint: str, *tricks: str) -> list[str]:
        found = []
        for sequence in range(1, 20):
            selection = Selection(
                operator=operator,
                parent=parent,
                sequence=sequence,
                user_hint=hint,
                banned_tricks=tricks,
            )
            proposal = await generator.propose(replace(softmax, selection=selection))
            found.append(proposal.candidate.source.plan if proposal.candidate else proposal.failure)
        return found

    assert len({"who=group" in plan for plan in await plans("")}) == 2
    assert all("who=group" in plan for plan in await plans("try who=group, and exp=nothing"))
    assert not any("who=group" in plan for plan in await plans("", "who=group"))
    (refused,) = set(await plans("", "nd_range_kernel"))
    assert "'nd_range_kernel', which the run's user bans" in refused
    await generator.close()
