"""Traffic bound and arithmetic estimate follow from counts and measured rates."""

from dataclasses import replace

import pytest

from evaluator_svc.judge.graph.arithmetic_estimate import arithmetic_estimate
from evaluator_svc.judge.graph.cost import Cost, count_cost
from evaluator_svc.judge.graph.traffic import Traffic, count_traffic, traffic_bound_ns
from kernel_foundry.domain.admission import GraphNode, NamedTensor, TensorRole
from kernel_foundry.domain.device import MatrixRate
from tests.judge.judge_tasks import PEAKS

TERA = 1e12
HOPPER = replace(
    PEAKS,
    flops_per_second=60 * TERA,
    matrix_rates=(
        MatrixRate(format="fp16", flops_per_second=780 * TERA),
        MatrixRate(format="bf16", flops_per_second=780 * TERA),
        MatrixRate(format="tf32", flops_per_second=400 * TERA),
        MatrixRate(format="fp8_e4m3", flops_per_second=1500 * TERA),
    ),
)


@pytest.mark.parametrize(
    ("dtype", "tf32", "unit", "tera"),
    [
        ("float32", False, "three bf16 products", 260),
        ("float32", True, "tf32 matrix units", 400),
        ("float16", False, "fp16 matrix units", 780),
        ("bfloat16", False, "bf16 matrix units", 780),
        ("float8_e4m3fn", False, "fp8_e4m3 matrix units", 1500),
        ("float64", False, "FMA", 60),
    ],
)
def test_products_count_at_the_fastest_unit_admitted(
    dtype: str, tf32: bool, unit: str, tera: float
) -> None:
    cost = Cost(product_flops=10**12, other_flops=0, product_dtype=dtype)

    found = arithmetic_estimate(cost, HOPPER, tf32=tf32)

    assert found.unit == unit
    assert found.time_ns == pytest.approx(1e9 / tera)


def test_a_scaled_product_of_8_bit_floats_counts_in_their_format() -> None:
    def node(name: str, dtype: str, *shape: int) -> GraphNode:
        return GraphNode(
            name=name, op="placeholder", arguments=(), keywords=(), dtype=dtype, shape=shape
        )

    operands = [
        node("x", "float8_e4m3fn", 64, 32),
        node("weight", "float8_e4m3fn", 32, 16),
        node("scale", "float32"),
    ]
    product = replace(
        node("out", "bfloat16", 64, 16),
        op="aten._scaled_mm.default",
        arguments=("%x", "%weight", "%scale", "%scale"),
    )
    flops = 2 * 64 * 32 * 16
    cost = count_cost({"_scaled_mm": flops}, [*operands, product])

    assert cost == Cost(product_flops=flops, other_flops=0, product_dtype="float8_e4m3fn")


def test_everything_else_counts_at_the_rate_of_multiply_adds() -> None:
    products = Cost(product_flops=780 * 10**9, other_flops=60 * 10**9, product_dtype="float16")
    none = replace(products, product_flops=0)

    assert arithmetic_estimate(products, HOPPER, tf32=False).time_ns == pytest.approx(2e6)
    assert arithmetic_estimate(none, HOPPER, tf32=False).unit == "FMA"
    assert arithmetic_estimate(none, HOPPER, tf32=False).time_ns == pytest.approx(1e6)


def test_without_matrix_units_products_run_on_multiply_adds() -> None:
    cost = Cost(product_flops=10**11, other_flops=0, product_dtype="bfloat16")

    found = arithmetic_estimate(cost, PEAKS, tf32=True)

    assert (found.unit, found.time_ns) == ("FMA", pytest.approx(1e9))


def test_what_is_both_read_and_written_goes_at_the_rate_of_a_copy() -> None:
    peaks = replace(PEAKS, read_bandwidth_bytes_per_second=2e10)
    copy = Traffic(read_bytes=10**9, written_bytes=10**9)
    sum_ = Traffic(read_bytes=10**9, written_bytes=0)

    assert traffic_bound_ns(copy, cache_bytes=0, peaks=peaks) == pytest.approx(2e8)
    assert traffic_bound_ns(sum_, cache_bytes=0, peaks=peaks) == pytest.approx(5e7)


def test_outputs_that_a_cache_may_keep_are_left_out() -> None:
    traffic = Traffic(read_bytes=10**9, written_bytes=10**6)

    assert traffic_bound_ns(traffic, cache_bytes=10**6, peaks=PEAKS) == pytest.approx(1e8)


def _tensor(name: str, role: TensorRole, *shape: int) -> NamedTensor:
    return NamedTensor(name=name, role=role, dtype="float32", shape=shape)


def _node(name: str, op: str, arguments: tuple[str, ...], *shape: int) -> GraphNode:
    return GraphNode(
        name=name, op=op, arguments=arguments, keywords=(), dtype="float32", shape=shape
    )


def test_a_tensor_that_is_asked_for_its_shape_alone_is_not_read() -> None:
    tensors = (
        _tensor("shape", TensorRole.INPUT, 100, 20),
        _tensor("x", TensorRole.INPUT, 100, 20),
        _tensor("out", TensorRole.OUTPUT, 100, 20),
    )
    graph = (
        _node("shape", "placeholder", (), 100, 20),
        _node("x", "placeholder", (), 100, 20),
        _node("zeros_like", "aten.zeros_like.default", ("%shape",), 100, 20),
        _node("add", "aten.add.Tensor", ("%zeros_like", "%x"), 100, 20),
        _node("output", "output", ("%add",)),
    )

    assert count_traffic(tensors, graph) == Traffic(read_bytes=8000, written_bytes=8000)


def test_of_a_tensor_that_is_only_sliced_what_is_taken_out_counts() -> None:
    tensors = (
        _tensor("table", TensorRole.PARAMETER, 1000, 8),
        _tensor("x", TensorRole.INPUT, 64, 8),
        _tensor("unused", TensorRole.BUFFER, 64),
        _tensor("out", TensorRole.OUTPUT, 4, 8),
    )
    graph = (
        _node("table", "placeholder", (), 1000, 8),
        _node("x", "placeholder", (), 64, 8),
        _node("flat", "aten.view.default", ("%x", "[8, 64]"), 8, 64),
        _node("some", "aten.slice.Tensor", ("%flat", "0", "0", "1"), 1, 64),
        _node("rows", "aten.embedding.default", ("%table", "%some"), 4, 8),
        _node("out", "aten.relu.default", ("%rows",), 4, 8),
        _node("output", "output", ("%out",)),
    )

    found = count_traffic(tensors, graph)

    assert found.read_bytes == 4 * 64  # the indices may all name one row of the table
    assert found.written_bytes == 4 * 4 * 8
    assert count_traffic(tensors, ()).read_bytes == 4 * (8000 + 512 + 64)
