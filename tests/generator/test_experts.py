"""Experts: who writes for which island, and what each asks experience for."""

from dataclasses import replace
from typing import Any

import pytest

from archive_svc.grids.island_model import ISLANDS
from generator_svc.experience.query import lesson_query
from generator_svc.experts import EXPERTS, GENERAL, expert_of
from generator_svc.prompting.writer import PromptWriter
from kernel_foundry.domain.admission import GraphNode
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.request import ProposalRequest

ROLES = sorted(EXPERTS)


def test_every_island_has_an_expert_of_its_own() -> None:
    assert {island.name for island in ISLANDS.islands} | {GENERAL} == set(EXPERTS)
    assert all(expert_of(role).role == role for role in EXPERTS)


@pytest.mark.parametrize("island", ["", "elsewhere"])
def test_an_unknown_role_is_the_general_expert(island: str) -> None:
    assert expert_of(island) is EXPERTS[GENERAL]


@pytest.mark.parametrize("role", ROLES)
def test_an_expert_speaks_of_the_language_at_hand(request_: ProposalRequest, role: str) -> None:
    """At most 25 lines, and each language has its own."""
    texts = {}
    for language in Language:
        device = replace(request_.admission.device, language=language)
        request = replace(request_, admission=replace(request_.admission, device=device))
        user = PromptWriter().write(request, expert=EXPERTS[role]).messages[1].content
        texts[language] = user.partition("# How to set about it")[0].strip()
        assert 0 < len(texts[language].splitlines()) <= 25
    assert texts[Language.SYCL] != texts[Language.CUDA]
    assert "warp" not in texts[Language.SYCL]
    assert "sub-group" not in texts[Language.CUDA]


def test_a_seed_asks_for_what_its_expert_looks_at(request_: ProposalRequest) -> None:
    """With the operators of the graph as words to search by."""
    (workload, hidden) = request_.admission.workloads
    graph = tuple(
        GraphNode(name=op, op=op, arguments=(), keywords=(), dtype="float32", shape=(1,))
        for op in ("placeholder", "aten._softmax.default", "aten.mul.Tensor", "output")
    )
    admission = replace(request_.admission, workloads=(replace(workload, graph=graph), hidden))
    query = lesson_query(replace(request_, admission=admission), expert_of("memory"))
    kinds = expert_of("memory").finding_kinds
    of_a_time = FindingKind.TRAFFIC_BOUND  # a first candidate has no time yet
    assert of_a_time in kinds
    assert query.findings == tuple(kind for kind in kinds if kind is not of_a_time)
    assert query.expert == "memory"
    assert query.language is Language.SYCL
    assert query.device == "x86-64"
    assert query.text.splitlines() == ["softmax", "_softmax", "mul"]
    assert query.code == ""


def test_a_correct_parent_is_asked_about_by_its_own_findings(
    request_: ProposalRequest, samples: Any
) -> None:
    """An expert asks for what it looks at among what was found; else for all that it does."""
    target = Measures(memory=2, algorithm=1, synchronization=0)
    selection = Selection(
        operator=Operator.MUTATE, parent=samples.passed_elite("a"), target=target, hint="wider"
    )
    request = replace(request_, selection=selection)
    memory = lesson_query(request, expert_of("memory"))
    assert memory.findings == (FindingKind.MEMORY_BOUND,)
    assert "bandwidth limits it" in memory.text
    assert "wider" in memory.text
    assert samples.DEVICE_CODE in memory.code
    assert (memory.before, memory.target) == (selection.parent.measures, target)
    compute = lesson_query(request, expert_of("compute"))
    assert compute.findings == expert_of("compute").finding_kinds


@pytest.mark.parametrize("role", ROLES)
def test_a_failed_parent_is_asked_about_by_its_errors_whoever_mends_it(
    request_: ProposalRequest, samples: Any, role: str
) -> None:
    selection = Selection(
        operator=Operator.REPAIR,
        parent=samples.failed_elite("f"),
        target=Measures(memory=2, algorithm=1, synchronization=0),
    )
    query = lesson_query(replace(request_, selection=selection), expert_of(role))
    assert query.findings == (FindingKind.COMPILE_ERROR,)
    assert query.expert == ""
    assert query.target is None


def test_the_general_expert_asks_in_nobodys_name(request_: ProposalRequest) -> None:
    """Lessons of every role are for it."""
    assert lesson_query(request_, expert_of("")).expert == ""
