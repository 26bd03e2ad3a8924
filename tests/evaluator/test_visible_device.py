"""What a process is told to see of the host's CUDA devices."""

import os

import pytest

from evaluator_svc.visible_device import see_only


@pytest.mark.parametrize(
    ("visible", "device", "local", "left"),
    [
        (None, "cuda:2", "cuda:0", "2"),
        ("4, 6", "cuda:1", "cuda:0", "6"),
        ("GPU-a,GPU-b", "cuda:0", "cuda:0", "GPU-a"),
        ("4", "cuda:1", "cuda:1", "4"),
        (None, "sycl:0", "sycl:0", None),
    ],
)
def test_one_device_is_left(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, device: str, local: str, left: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert see_only(device) == local
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == left
