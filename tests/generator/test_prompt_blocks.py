"""A prompt offers the building blocks that could serve its task's operators, and no others."""

from dataclasses import replace

import pytest

from generator_svc.prompting.blocks import blocks_text
from kernel_foundry.domain.admission import GraphNode
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import ProposalRequest

ALWAYS = {"rows", "reduce", "pack", "prefix", "cluster"}
PRODUCTS = {"product", "split", "stream_k", "transpose", "wgmma", "mbarrier"}
BY_MMA = {"mma_product", "mma", "copy_async"}
HEADERS = (*ALWAYS, *PRODUCTS, *BY_MMA, "attention", "conv", "math", "vector")


def _offered(
    request: ProposalRequest,
    *operators: str,
    language: str = "cuda",
    architecture: str = "sm_90",
) -> set[str]:
    graph = tuple(
        GraphNode(name=f"n{i}", op=op, arguments=(), keywords=(), dtype="float32", shape=())
        for i, op in enumerate(operators)
    )
    admission = request.admission
    workload = replace(admission.workloads[0], graph=graph)
    device = replace(admission.device, language=Language(language), architecture=architecture)
    text = blocks_text(replace(admission, device=device, workloads=(workload,)))
    return {name for name in HEADERS if f"`<kf/{name}.hpp>`" in text}


@pytest.mark.parametrize(
    ("operators", "more"),
    [
        (("placeholder", "aten.logsumexp.default", "aten.gather.default"), set()),
        (("aten.linear.default", "aten.gelu.default"), PRODUCTS),
        (("aten._scaled_mm.default",), PRODUCTS),
        (("aten.bmm.default", "aten._softmax.default"), PRODUCTS | {"attention"}),
        (("aten.scaled_dot_product_attention.default",), PRODUCTS | {"attention"}),
        (("aten.conv2d.default", "aten.relu.default"), PRODUCTS | {"conv"}),
    ],
)
def test_a_prompt_offers_what_could_serve_its_operators(
    request_: ProposalRequest, operators: tuple[str, ...], more: set[str]
) -> None:
    assert _offered(request_, *operators) == ALWAYS | more


def test_where_the_graph_is_not_known_all_are_offered(request_: ProposalRequest) -> None:
    assert _offered(request_) == ALWAYS | PRODUCTS | {"attention", "conv"}


@pytest.mark.parametrize("architecture", ["sm_80", "sm_89", "sm_120"])
def test_a_gpu_without_wgmma_is_offered_products_by_mma_sync(
    request_: ProposalRequest, architecture: str
) -> None:
    for operators in ((), ("aten.scaled_dot_product_attention.default",), ("aten.mm.default",)):
        assert _offered(request_, *operators, architecture=architecture) == (
            ALWAYS | BY_MMA | {"pack"}
        )


def test_each_language_offers_its_own(request_: ProposalRequest) -> None:
    rows = {"rows", "math", "vector"}
    assert _offered(request_, "aten._softmax.default", language="sycl") == rows
    assert _offered(request_, "aten.linear.default", language="sycl") == rows | {"product"}
    assert _offered(request_, language="sycl") == rows | {"product"}
