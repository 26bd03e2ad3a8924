"""Weights that are promised not to change: what a captured graph reads, with CUDA's calls faked."""

import gc
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

pytestmark = [pytest.mark.sycl, pytest.mark.slow]


class Device:
    """What the exported file asks of CUDA, and how often weights were laid out."""

    def __init__(self, fast: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_capturing = False
        self.waits = 0
        self.laid_out = 0
        lay_out = fast.BoundCall._lay_out
        event = SimpleNamespace(synchronize=self._wait)

        def counted(call: Any, tensors: list[torch.Tensor]) -> Any:
            self.laid_out += 1
            return lay_out(call, tensors)

        monkeypatch.setattr(fast.BoundCall, "_lay_out", counted)
        monkeypatch.setattr(fast, "is_captured", lambda: self.is_capturing)
        monkeypatch.setattr(fast, "_is_unversioned", lambda *_: self.is_capturing)
        monkeypatch.setattr(fast, "moment_of", lambda _: fast.Moment(0, event))
        monkeypatch.setattr(fast, "join", lambda *_: None)
        monkeypatch.setattr(fast, "_calls", {})
        monkeypatch.setattr(fast, "_layouts", {})
        monkeypatch.setattr(fast, "_in_graphs", {})

    def _wait(self) -> None:
        assert not self.is_capturing, "a capture is ended by it"
        self.waits += 1


@pytest.fixture
def device(fast: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Device:
    return Device(fast, monkeypatch)


def right(model: Any) -> bool:
    x = torch.randn(8, 48)
    with torch.no_grad():
        return torch.allclose(model(x), model.linear(x) * 2.0, rtol=1e-4, atol=1e-4)


def test_a_graph_lays_weights_out_unless_they_are_fixed(fast: ModuleType, device: Device) -> None:
    model = fast.Module(48, 40, 2.0)
    assert right(model)
    assert right(model)
    assert device.laid_out == 1
    device.is_capturing = True
    assert right(model)
    assert device.laid_out == 2
    device.is_capturing = False
    with fast.fixed_weights():
        assert device.waits == 1
        device.is_capturing = True
        assert right(model)
        assert right(model)
        assert device.laid_out == 2
        device.is_capturing = False
    device.is_capturing = True
    assert right(model)
    assert device.laid_out == 3


def test_what_a_graph_reads_is_kept_as_long_as_its_weights(
    fast: ModuleType, device: Device
) -> None:
    model = fast.Module(48, 40, 2.0)
    assert right(model)
    with fast.fixed_weights():
        device.is_capturing = True
        assert right(model)
        device.is_capturing = False
    (layout,) = fast._in_graphs.values()
    with torch.no_grad():
        model.linear.weight.mul_(2.0)
    fast.relayout()
    assert right(model)
    assert list(fast._in_graphs.values()) == [layout]
    del model
    gc.collect()
    assert not fast._in_graphs


def test_weights_that_changed_before_are_laid_out_in_the_graph(
    fast: ModuleType, device: Device
) -> None:
    model = fast.Module(48, 40, 2.0)
    assert right(model)
    with fast.fixed_weights():
        with torch.no_grad():
            model.linear.weight.mul_(2.0)
        device.is_capturing = True
        assert right(model)
        assert device.laid_out == 2
        device.is_capturing = False
        assert right(model)  # which waits for the new layout
        assert device.waits == 2
        device.is_capturing = True
        assert right(model)
        assert device.laid_out == 3


def test_a_layout_of_no_weights_stays(fast: ModuleType, device: Device) -> None:
    layouts = fast.Layouts()
    layout = layouts.keep([], [torch.ones(1)])
    with fast.promised([layout]):
        device.is_capturing = True
        assert layouts.of([], []) is layout
    assert list(fast._in_graphs.values()) == [layout]


def test_a_promise_inside_another_ends_alone(fast: ModuleType, device: Device) -> None:
    model = fast.Module(48, 40, 2.0)
    assert right(model)
    with fast.fixed_weights():
        with fast.fixed_weights():
            pass
        device.is_capturing = True
        assert right(model)
        assert device.laid_out == 1
