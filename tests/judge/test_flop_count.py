"""Operations of products are counted however the reference comes to them."""

import torch
from torch.utils.flop_counter import flop_registry

from evaluator_svc.judge.reference.flop_count import FlopCount

_X, _WEIGHT, _BIAS = torch.ones(3, 5), torch.ones(7, 5), torch.ones(7)
_FLOPS = 2 * 3 * 5 * 7


def test_a_product_counts_twice_its_elements_and_nothing_else_does() -> None:
    with FlopCount() as flops, torch.no_grad():
        torch.relu(_X @ _WEIGHT.T)
    assert flops.of_operators == {"aten.mm": _FLOPS}


def test_a_layer_counts_by_its_product_where_it_arrives_as_a_whole() -> None:
    """As it does in inference mode."""
    with torch.inference_mode(), FlopCount() as flops:
        out = torch.nn.functional.linear(_X, _WEIGHT, _BIAS)
    assert flops.of_operators == {"aten.addmm": _FLOPS}
    assert out.shape == (3, 7)


def test_attention_counts_both_products_of_each_head_whose_keys_are_shared() -> None:
    """Shapes alone: no host has the operators of GPUs."""
    query = torch.empty(2, 8, 64, 32, device="meta")
    key, value = (torch.empty(2, 2, 48, size, device="meta") for size in (32, 16))
    with FlopCount() as flops, torch.no_grad():
        torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, None, False)
    counted = 2 * (2 * 8 * 64 * 48) * (32 + 16)
    assert flops.of_operators == {"aten._scaled_dot_product_efficient_attention": counted}


def test_attention_counts_as_torch_does_where_each_head_has_keys_of_its_own() -> None:
    ops = torch.ops.aten
    query = torch.empty(2, 8, 64, 32, device="meta", requires_grad=True)
    key, value = (torch.empty(2, 8, 48, 32, device="meta", requires_grad=True) for _ in "kv")
    with FlopCount() as flops:
        out = ops._scaled_dot_product_efficient_attention(query, key, value, None, True)[0]
        out.sum().backward()
    forward = flop_registry[ops._scaled_dot_product_efficient_attention]
    backward = flop_registry[ops._scaled_dot_product_efficient_attention_backward]
    tensors = (query, key, value)
    assert flops.of_operators == {
        "aten._scaled_dot_product_efficient_attention": forward(*tensors, out_val=out),
        "aten._scaled_dot_product_efficient_attention_backward": backward(
            out, *tensors, out_val=tensors
        ),
    }
