"""The name table: what a plan may name."""

from __future__ import annotations

import pytest

from kernel_foundry.plan import NameTable, ScalarName, TensorName, short_reference


def _tensor(name: str, role: str = "output", **changes: object) -> TensorName:
    fields = {"dtype": "float32", "shape": (2,), "path": name, **changes}
    return TensorName(name=name, role=role, **fields)


def test_render_is_sorted_and_states_the_promises(names) -> None:
    """What prompts show."""
    assert names.render() == (
        "mask         bool (6,)          input\n"
        "x            float32 (6, 1000)  input\n"
        'norm_weight  float32 (1000,)    parameter, also params["norm.weight"]\n'
        'half_weight  float16 (1000,)    buffer, also params["half.weight"]\n'
        "out          float32 (6, 1000)  output\n"
        "eps          float 1e-05        scalar\n"
        "mode         str 'mean'         scalar\n"
        "n_head       int 4              scalar\n"
        "stride       tuple (2, 1)       scalar\n"
        "Promises: every tensor is contiguous, 256-byte aligned, and aliases no other.\n"
        "Ranks and dtypes never change between workloads; sizes may."
    )


def test_lookup_by_name_and_by_path(names) -> None:
    """Tensors by both, scalars by name."""
    weight = names.lookup("norm_weight")
    assert weight is not None
    assert names.parameter("norm.weight") is weight
    assert names.parameter("x") is None
    assert names.lookup("eps") == ScalarName(name="eps", value=1e-5)
    assert names.lookup("out0") is names.lookup("out")
    assert names.lookup("nope") is None
    assert weight.size_bytes == 4000


def test_several_outputs_have_numbers() -> None:
    """With more than one output there is no plain `out`; out2 stands before out10."""
    table = NameTable(tensors=tuple(_tensor(f"out{i}") for i in (10, 2, 0)))
    assert table.lookup("out") is None
    assert table.all_names == ("out0", "out2", "out10")


@pytest.mark.parametrize(
    "changes", [{"dtype": "float"}, {"role": "weights"}, {"shape": (2, -1)}], ids=str
)
def test_impossible_tensor_is_our_mistake(changes) -> None:
    """The table comes from admission, so a wrong entry is a caller's error."""
    with pytest.raises(ValueError, match="'x'"):
        _tensor("x", **{"role": "input", **changes})


def test_doubled_name_is_our_mistake() -> None:
    """Two things of one name could not be told apart."""
    with pytest.raises(ValueError, match="'out' twice"):
        NameTable(tensors=(_tensor("out"),), scalars=(ScalarName(name="out", value=1),))


def test_short_reference_speaks_one_language() -> None:
    """The prompt's text has what belongs to its language only, in about 20 lines."""
    sycl, cuda = short_reference("sycl"), short_reference("cuda")
    assert "local(n, float32)" in sycl
    assert "__global__" not in sycl
    assert "__global__" in cuda
    assert "local_accessor" not in cuda
    assert max(len(sycl.splitlines()), len(cuda.splitlines())) <= 20
    with pytest.raises(ValueError, match="'hip' is unknown; known are sycl, cuda"):
        short_reference("hip")
