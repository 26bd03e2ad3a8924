"""An exported file in use: kernels where they were judged, the reference everywhere else."""

import copy
import gc
import pickle
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from tests.export.conftest import imported

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

ARGUMENTS = (48, 40, 2.0)


@pytest.fixture
def model(fast: ModuleType) -> nn.Module:
    """A module that has been called, so that the next call is looked at no more than needed."""
    torch.manual_seed(0)
    made: nn.Module = fast.Module(*ARGUMENTS)
    with torch.no_grad():
        made(torch.randn(8, 48))
    assert fast.stats()["kernel"] == 1
    fast.reset_stats()
    return made


def expected(model: Any, x: torch.Tensor) -> torch.Tensor:
    weight, bias = model.linear.weight, model.linear.bias
    return torch.nn.functional.linear(x, weight, bias) * model.factor


def check(fast: ModuleType, model: nn.Module, x: torch.Tensor, reason: str = "") -> None:
    """The result is right, by the kernels or, for a reason, by the reference."""
    before = fast.stats()
    with torch.no_grad():
        torch.testing.assert_close(model(x), expected(model, x), rtol=1e-5, atol=1e-5)
    after = fast.stats()
    assert after["kernel"] - before["kernel"] == (0 if reason else 1), after["last_reason"]
    assert after["reference"] - before["reference"] == (1 if reason else 0)
    if reason:
        assert reason in after["last_reason"]


@pytest.mark.parametrize("rows", [3, 17, 64])
def test_kernels_run_on_sizes_that_were_judged_and_between(
    fast: ModuleType, model: nn.Module, rows: int
) -> None:
    check(fast, model, torch.randn(rows, 48))


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (lambda: torch.randn(65, 48), "rows = 65 was not judged, only 3 to 64"),
        (lambda: torch.randn(0, 48), "rows = 0"),
        (lambda: torch.randn(2, 4, 48), "no inputs of the shapes"),
        (lambda: torch.randn(48), "no inputs of the shapes"),
        (lambda: torch.randn(48, 8).t(), "not contiguous"),
        (lambda: torch.randn(8 * 48 + 1)[1:].view(8, 48), "begin at a multiple of 64"),
        (lambda: torch.randn(8, 48).to_sparse(), "not contiguous"),
    ],
)
def test_the_reference_runs_on_everything_else(
    fast: ModuleType, model: nn.Module, x: Callable[[], torch.Tensor], reason: str
) -> None:
    check(fast, model, x(), reason)


def test_another_dtype_is_the_references(fast: ModuleType, model: nn.Module) -> None:
    check(fast, model.double(), torch.randn(8, 48, dtype=torch.float64), "float64")


def test_another_device_is_the_references(fast: ModuleType, model: nn.Module) -> None:
    result = copy.deepcopy(model).to("meta")(torch.empty(8, 48, device="meta"))
    assert (result.device.type, result.shape) == ("meta", (8, 40))
    assert fast.stats()["last_reason"] == "x is on meta; kernels run on cpu"
    with pytest.raises(RuntimeError):
        model(torch.empty(8, 48, device="meta"))


def test_inputs_of_kinds_that_take_turns_are_right(fast: ModuleType, model: nn.Module) -> None:
    for _ in range(2):
        for rows in (8, 3, 9):
            check(fast, model, torch.randn(rows, 48))


def test_the_mode_matters_where_it_does(fast: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(8, 48)
    for ignores_mode, reason in [(True, ""), (False, "judged in training mode alone")]:
        monkeypatch.setattr(fast, "IGNORES_MODE", ignores_mode)
        model = fast.Module(*ARGUMENTS)
        check(fast, model, x)
        check(fast, model.eval(), x, reason)
        check(fast, model.train(), x)


def test_wrong_arguments_fail_as_the_reference_does(fast: ModuleType, model: nn.Module) -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        model(torch.randn(8, 47))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        model()


def test_arguments_may_be_given_by_name(fast: ModuleType, model: nn.Module) -> None:
    x = torch.randn(8, 48)
    with torch.no_grad():
        assert torch.equal(model(x=x), model(x))
    assert fast.stats()["kernel"] == 2


@pytest.mark.parametrize("arguments", [(48, 40, 3.0), (32, 40, 2.0)])
def test_a_module_that_was_not_judged_is_the_references(
    fast: ModuleType, arguments: tuple[Any, ...]
) -> None:
    check(fast, fast.Module(*arguments), torch.randn(8, arguments[0]), "none that was judged")


def test_a_module_that_is_changed_afterwards_is_the_references(
    fast: ModuleType, model: Any
) -> None:
    check(fast, model, torch.randn(8, 48))
    model.factor = 5.0
    check(fast, model, torch.randn(8, 48), "none that was judged")
    model.factor = 2.0
    check(fast, model, torch.randn(8, 48))
    model.linear.register_forward_hook(lambda *_: None)
    check(fast, model, torch.randn(8, 48), "hooks")


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.linear, "forward", lambda x: x),
        lambda model: model.add_module("more", nn.ReLU()),
        lambda model: model.linear.add_module("more", nn.ReLU()),
        lambda model: model.register_buffer("more", torch.ones(1)),
        lambda model: model.linear.register_parameter("more", nn.Parameter(torch.ones(1))),
        lambda model: setattr(model.linear, "more", 1),
    ],
)
def test_what_is_added_is_seen(
    fast: ModuleType, model: Any, change: Callable[[Any], object]
) -> None:
    x = torch.randn(8, 48)
    check(fast, model, x)
    change(model)
    with torch.no_grad():
        model(x)
        model(x)
    assert fast.stats()["kernel"] == 1
    assert fast.stats()["reference"] == 2


def test_weights_that_are_tied_no_more_are_seen(fast: ModuleType) -> None:
    parts = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4, bias=False))
    parts[1].weight = parts[0].weight
    vars(parts)["_kf"] = identity = fast.Identity(parts, "")
    assert not identity.is_stale
    parts[0].weight = parts[1].weight = nn.Parameter(torch.ones(4, 4))
    assert not identity.is_stale
    parts[1].weight = nn.Parameter(torch.ones(4, 4))
    assert identity.is_stale
    parts[1].weight = parts[0].weight
    assert not identity.is_stale
    parts[1].bias = nn.Parameter(torch.ones(4))
    assert identity.is_stale


def test_a_part_that_is_used_twice_is_two(fast: ModuleType) -> None:
    once, twice = (nn.Sequential(*[nn.ReLU()] * count) for count in (1, 2))
    assert fast.state_of(once) != fast.state_of(twice)


def test_weights_are_laid_out_again_when_they_change(fast: ModuleType, model: Any) -> None:
    x = torch.randn(8, 48)
    check(fast, model, x)
    with torch.no_grad():
        model.linear.weight.mul_(3.0)
    check(fast, model, x)
    model.load_state_dict(fast.Module(*ARGUMENTS).state_dict())
    check(fast, model, x)
    model.load_state_dict(fast.Module(*ARGUMENTS).state_dict(), assign=True)
    check(fast, model, x)
    model.linear.weight = nn.Parameter(torch.randn(40, 48))
    check(fast, model, x)
    with torch.inference_mode():
        fresh = fast.Module(*ARGUMENTS)
        check(fast, fresh, x)
        fresh.linear.weight.mul_(2.0)
        check(fast, fresh, x)
    model.linear.weight.data = torch.randn(48, 40).t()
    check(fast, model, x, "linear_weight is not contiguous")
    model.linear.weight.data = torch.randn(40, 48)
    check(fast, model, x)
    model.linear.weight.data.mul_(2.0)  # which leaves no trace
    fast.relayout()
    check(fast, model, x)


def test_weights_that_were_replaced_are_let_go(fast: ModuleType, model: Any) -> None:
    old = weakref.ref(model.linear.weight)
    model.linear.weight = nn.Parameter(torch.randn(40, 48))
    check(fast, model, torch.randn(8, 48))
    gc.collect()
    assert old() is None


def test_weights_from_elsewhere_are_read_in_each_call(fast: ModuleType, model: Any) -> None:
    x, other = torch.randn(8, 48), torch.randn(40, 48)
    with torch.no_grad():
        result = torch.func.functional_call(model, {"linear.weight": other}, (x,))
        wanted = nn.functional.linear(x, other, model.linear.bias) * 2.0
        torch.testing.assert_close(result, wanted, rtol=1e-5, atol=1e-5)
    check(fast, model, x)
    nn.utils.parametrize.register_parametrization(model.linear, "weight", nn.Tanh())
    for _ in range(2):
        with torch.no_grad():
            model.linear.parametrizations.weight.original.mul_(2.0)
            torch.testing.assert_close(model(x), expected(model, x), rtol=1e-5, atol=1e-5)


def test_a_replica_has_weights_of_its_own(fast: ModuleType, model: Any) -> None:
    """As `nn.DataParallel` makes them."""
    replica, linear = (m._replicate_for_data_parallel() for m in (model, model.linear))
    linear.weight, linear.bias = torch.randn(40, 48), torch.randn(40)
    replica.linear = linear
    for one in (replica, model, replica):
        check(fast, one, torch.randn(8, 48))


def test_hooks_see_each_call(fast: ModuleType, model: Any) -> None:
    seen: list[object] = []
    x = torch.randn(8, 48)
    hook = lambda module, *_: seen.append(module)  # noqa: E731
    for register in (model.register_forward_hook, nn.modules.module.register_module_forward_hook):
        handle = register(hook)
        check(fast, model, x)
        check(fast, model, x)
        handle.remove()
        assert seen.count(model) == 2
        seen.clear()
    check(fast, model, x)
    assert not seen
    model._forward_hooks = OrderedDict({0: hook})
    for _ in range(2):
        check(fast, model, x)
    assert seen.count(model) == 2


class _Doubled:
    """A forward of the user's around the exported one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = 2.0 * super().forward(x)  # type: ignore[misc]
        return result


def test_a_forward_around_the_modules_runs(fast: ModuleType, model: Any) -> None:
    x = torch.randn(8, 48)
    doubled = type("Doubled", (_Doubled, fast.Module), {})(*ARGUMENTS)
    doubled.load_state_dict(model.state_dict())
    with torch.no_grad():
        wanted = 2.0 * model(x)
        for _ in range(3):
            assert torch.equal(doubled(x), wanted)
        model._compiled_call_impl = lambda x: "compiled"  # as `model.compile()` does
        model.forward(x)
        assert model(x) == "compiled"
        model._compiled_call_impl = None
        model.forward = lambda x: "patched"
        assert model(x) == "patched"


def test_a_trace_is_no_constant(fast: ModuleType, model: Any) -> None:
    x, other = torch.randn(8, 48), torch.randn(8, 48)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, x, check_trace=False)
        torch.testing.assert_close(traced(other), expected(model, other), rtol=1e-5, atol=1e-5)


def test_forward_gradients_are_the_references(fast: ModuleType, model: Any) -> None:
    x, along = torch.randn(8, 48), torch.randn(8, 48)
    with (
        torch.no_grad(),
        torch.autograd.forward_ad.dual_level(),
        warnings.catch_warnings(action="ignore"),
    ):
        dual = model(torch.autograd.forward_ad.make_dual(x, along))
        found = torch.autograd.forward_ad.unpack_dual(dual).tangent
    wanted = along @ model.linear.weight.detach().t() * model.factor
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert "forward" in fast.stats()["last_reason"]
    check(fast, model, x)


def test_gradients_are_the_references(fast: ModuleType, model: Any) -> None:
    x = torch.randn(8, 48, requires_grad=True)
    model(x).square().sum().backward()
    assert fast.stats()["kernel"] == 1
    found = [x.grad, model.linear.weight.grad, model.linear.bias.grad]
    wanted = torch.autograd.grad(
        expected(model, x).square().sum(), [x, model.linear.weight, model.linear.bias]
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_autocast_is_the_references(
    fast: ModuleType, model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """That is logged once."""
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for _ in range(2):
            assert model(torch.randn(8, 48)).dtype is torch.bfloat16
    assert fast.stats()["last_reason"] == "autocast is on"
    (record,) = caplog.records
    assert "the reference ran in place of kernels: autocast is on" in record.getMessage()


def test_the_operator_and_its_gradients_know_no_autocast(fast: ModuleType, model: Any) -> None:
    """What is computed below it has the types of its tensors, by kernels and by the reference."""
    weights = (model.linear.weight, model.linear.bias)
    for rows in (8, 65):  # the reference's
        x = torch.randn(rows, 48, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            result = fast.operator(x, *weights, model._kf.kind)
            found = torch.autograd.grad(result.square().sum(), [x, *weights])
        wanted = torch.autograd.grad(expected(model, x).square().sum(), [x, *weights])
        torch.testing.assert_close(result, expected(model, x), rtol=1e-5, atol=1e-5)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert (fast.stats()["kernel"], fast.stats()["reference"]) == (1, 1)


@pytest.mark.parametrize("is_deterministic", [True, False])
def test_deterministic_mode_takes_kernels_that_gave_equal_bits(
    fast: ModuleType, monkeypatch: pytest.MonkeyPatch, is_deterministic: bool
) -> None:
    judged = fast._FORWARD._replace(is_deterministic=is_deterministic)
    monkeypatch.setattr(fast, "_FORWARD", judged)
    monkeypatch.setattr(fast, "_calls", {})  # as in a file of such kernels
    model = fast.Module(*ARGUMENTS)
    check(fast, model, torch.randn(8, 48))
    torch.use_deterministic_algorithms(mode=True)
    try:
        reason = "" if is_deterministic else "do not give the same bits"
        check(fast, model, torch.randn(8, 48), reason)
    finally:
        torch.use_deterministic_algorithms(mode=False)


def test_vmap_is_refused(fast: ModuleType, model: nn.Module) -> None:
    with pytest.raises(NotImplementedError, match=r"do not run under torch\.vmap"):
        torch.func.vmap(model)(torch.randn(2, 8, 48))


def test_the_operator_is_a_good_citizen(fast: ModuleType, model: Any) -> None:
    x = torch.randn(8, 48, requires_grad=True)
    torch.library.opcheck(fast.operator, (x, *fast.weights_of(model), model._kf.kind))


def test_it_compiles_whole_with_dynamic_shapes(fast: ModuleType, model: Any) -> None:
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (8, 9, 80):
        x = torch.randn(rows, 48)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), expected(model, x), rtol=1e-5, atol=1e-5)
    assert fast.stats()["kernel"] == 2
    assert fast.stats()["reference"] == 1
    model.factor = 5.0
    x = torch.randn(8, 48)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), expected(model, x), rtol=1e-5, atol=1e-5)
    assert fast.stats()["kernel"] == 2


@pytest.mark.parametrize(
    ("is_before", "change"),
    [
        (False, lambda m: setattr(m, "linear", nn.Sequential(m.linear, nn.ReLU()))),
        (False, lambda m: m.linear.add_module("more", nn.ReLU())),
        (True, lambda m: m.linear.add_module("more", nn.ReLU())),
        (True, lambda m: m.linear.register_forward_hook(lambda _m, _x, result: result + 1.0)),
        (True, lambda m: m.linear.register_forward_pre_hook(lambda _m, x: (x[0] + 1.0,))),
        (False, lambda m: m.linear.register_forward_hook(lambda _m, _x, result: result + 1.0)),
    ],
)
def test_what_is_compiled_sees_parts_and_hooks(
    fast: ModuleType, model: Any, is_before: bool, change: Callable[[Any], object]
) -> None:
    x = torch.randn(8, 48)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    with torch.no_grad():
        if not is_before:
            compiled(x)
            assert fast.stats()["kernel"] == 1
            fast.reset_stats()
        change(model)
        torch.testing.assert_close(compiled(x), model.linear(x) * 2.0)
    assert fast.stats()["kernel"] == 0


def test_the_reference_compiles_where_it_runs_instead(text: str, tmp_path: Path) -> None:
    """torch.compile imports the reference by its name, for what its code finds in its module."""
    line = "return self.linear(x) * self.factor"
    changed = text.replace(line, "return nn.functional.relu(self.linear(x)) * factor")
    assert changed != text
    fast = imported(changed, tmp_path, "fast_compiled")
    factors = [fast.reference_at((("factor", f),)) for f in (2, 3)]
    assert factors[0] is not factors[1]
    for number, reference in enumerate(factors):
        model = reference.Model(*ARGUMENTS)
        compiled = torch.compile(model, fullgraph=True, backend="eager")
        x = torch.randn(8, 48)
        torch.testing.assert_close(compiled(x), model.linear(x).relu() * (2 + number))
    model = fast.Module(*ARGUMENTS)
    model.factor = 5.0
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), model.linear(x).relu() * 2.0)


def test_it_is_exported_as_one_operator(fast: ModuleType, model: Any) -> None:
    rows = torch.export.Dim("rows", min=2)
    program = torch.export.export(model, (torch.randn(8, 48),), dynamic_shapes={"x": {0: rows}})
    assert any("kfoundry" in str(node.target) for node in program.graph.nodes)
    x = torch.randn(9, 48)
    torch.testing.assert_close(program.module()(x), expected(model, x), rtol=1e-5, atol=1e-5)


def test_copies_and_threads_are_right(fast: ModuleType, model: Any) -> None:
    copied = copy.deepcopy(model)
    loaded = fast.Module(*ARGUMENTS)
    loaded.__setstate__(pickle.loads(pickle.dumps(model.__getstate__())))
    with torch.no_grad():
        copied.linear.weight.neg_()
    failures: list[BaseException] = []

    def work(own: nn.Module) -> None:
        try:
            for rows in (3, 10, 64, 10):
                x = torch.randn(rows, 48)
                with torch.no_grad():
                    torch.testing.assert_close(own(x), expected(own, x), rtol=1e-5, atol=1e-5)
        except BaseException as error:  # noqa: BLE001  told by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(m,)) for m in (model, copied, loaded, model)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert fast.stats()["kernel"] == 16


class Scaled(nn.Module):
    """As the user wrote it, under another name."""

    def __init__(self, inner: int, outer: int, factor: float) -> None:
        super(Scaled, self).__init__()  # noqa: UP008  as in old files
        self.linear = nn.Linear(inner, outer)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.factor


class Shifted(nn.Module):
    """Nearly the same."""

    def __init__(self, inner: int, outer: int, factor: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + self.factor


def test_swap_replaces_modules_of_the_same_source(fast: ModuleType) -> None:
    scaled = Scaled(*ARGUMENTS)
    larger = nn.Sequential(scaled, nn.ReLU())
    x = torch.randn(8, 48)
    with torch.no_grad():
        before = larger(x)
        swapped = fast.swap(larger)
        torch.testing.assert_close(swapped(x), before, rtol=1e-5, atol=1e-5)
    assert swapped is larger
    assert fast.stats()["kernel"] == 1
    assert larger[0].linear.weight is scaled.linear.weight


class Outer(nn.Module):
    """A module with judged ones in it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = Scaled(*ARGUMENTS)
        self.deeper = nn.Sequential(self.inside, Scaled(40, 48, 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.deeper(x)
        return result


@pytest.mark.parametrize("is_inner_first", [True, False])
def test_swaps_of_several_files_do_not_depend_on_their_order(
    fast: ModuleType, text: str, tmp_path: Path, is_inner_first: bool
) -> None:
    other = imported(text, tmp_path, "fast_other")
    model = nn.Sequential(Outer(), Scaled(*ARGUMENTS))
    weight = model[0].inside.linear.weight
    swaps = [(fast, Scaled), (other, Outer)]
    for file, kind in swaps if is_inner_first else reversed(swaps):
        file.swap(model, kind)
    assert [type(part) for part in model] == [other.Module, fast.Module]
    outer = model[0]
    assert {type(part) for part in outer.deeper} == {Scaled}
    assert outer.inside is outer.deeper[0]
    assert outer.inside.linear.weight is weight
    with pytest.raises(ValueError, match="no module"):
        fast.swap(model, Scaled)


def test_a_copy_of_a_swapped_model_is_as_quick(fast: ModuleType) -> None:
    swapped = copy.deepcopy(fast.swap(nn.Sequential(Scaled(*ARGUMENTS)), Scaled))
    with torch.no_grad():
        swapped(torch.randn(8, 48))
    assert fast.stats()["kernel"] == 1


def test_swap_leaves_others_alone(fast: ModuleType) -> None:
    with pytest.raises(ValueError, match="no module"):
        fast.swap(nn.Sequential(Shifted(*ARGUMENTS), nn.Linear(48, 40)))
