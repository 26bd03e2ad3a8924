"""Outputs are handed over as they lie in memory: to put them in order is not timed."""

import pytest
import torch

from evaluator_svc.foreign.outputs import dense, plain_outputs
from evaluator_svc.messages.draw import TensorSlot

X = torch.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("tensor", "order", "is_copied"),
    [
        (X, (0, 1, 2, 3), False),
        (X.permute(2, 0, 3, 1), (1, 3, 0, 2), False),
        (X.to(memory_format=torch.channels_last), (0, 2, 3, 1), False),
        (X[:, :1].permute(3, 2, 1, 0), (3, 1, 0, 2), True),
        (X[..., :4].permute(0, 3, 1, 2), (0, 2, 3, 1), True),
        (X[0, 0, 0].expand(7, 5), (0, 1), True),
        (X[:0].permute(1, 0, 3, 2), (0, 1, 2, 3), False),
        (X[0, 0, 0, 0], (), False),
    ],
    ids=["as shaped", "turned", "channels last", "one long", "gaps", "shared", "empty", "scalar"],
)
def test_the_order_says_where_the_elements_are(
    tensor: torch.Tensor, order: tuple[int, ...], is_copied: bool
) -> None:
    (made,), (found,) = dense([tensor])
    assert sorted(found) == sorted(order)
    assert is_copied is (made.data_ptr() != tensor.data_ptr())
    assert [a for a in found if tensor.shape[a] > 1] == [a for a in order if tensor.shape[a] > 1]
    # As the judge reads them.
    in_memory = made.as_strided((made.numel(),), (1,)).view([tensor.shape[a] for a in found])
    assert torch.equal(in_memory.permute([found.index(a) for a in range(tensor.dim())]), tensor)


def test_a_conjugation_is_carried_out() -> None:
    """Bytes are handed over, and the values have to be in them."""
    tensor = torch.complex(X[0, 0], X[0, 1]).t().conj()
    slot = TensorSlot(
        name="out", role="output", dtype="complex64", shape=(5, 4), size_bytes=160, offsets=(0,)
    )
    (found,) = plain_outputs(tensor, [slot], torch.device("cpu"))
    assert not found.is_conj()
    assert torch.equal(found, tensor)
