"""Timed sets: private copies as a rule, the shared buffers themselves where copies buy nothing."""

import ctypes
import dataclasses

import numpy as np
import pytest

from evaluator_svc.messages.placement import whole
from evaluator_svc.runner.faults import CandidateFaultError
from evaluator_svc.runner.input_pool import InputPool, SharedPool, make_pool
from evaluator_svc.runner.shared_sets import SharedSets
from kernel_foundry_native import _core
from tests.runner.conftest import SEEDS, HostDraw, draw_inputs


class DeviceOfTests:
    """Stands for a device whose memory is shared by handles; the handle is a descriptor."""

    is_host_memory = False
    unit_bytes = 4096

    def __init__(self) -> None:
        self.copied_bytes = 0

    def open_shared(self, handle: bytes, size_bytes: int) -> _core.SharedBuffer:
        return _core.SharedBuffer.open(int.from_bytes(handle, "big"), size_bytes)

    def copy(self, to: int, from_: int, size_bytes: int) -> None:
        self.copied_bytes += size_bytes
        _core.copy(to, from_, size_bytes)

    def allocate(self, size_bytes: int) -> _core.SharedBuffer:
        """Return private memory."""
        return _core.SharedBuffer.create(size_bytes)

    def fill(self, address: int, size_bytes: int, byte: int) -> None:
        _core.fill(address, size_bytes, byte)

    def fill_all(self, ranges: tuple[tuple[int, int, int], ...]) -> None:
        for row in ranges:
            self.fill(*row)

    def find_other(self, ranges: tuple[tuple[int, int, int], ...]) -> int | None:
        """Look for a range with another byte than its own."""
        for index, (address, size_bytes, byte) in enumerate(ranges):
            if ctypes.string_at(address, size_bytes) != bytes([byte]) * size_bytes:
                return index
        return None

    def synchronize(self) -> None:
        """Nothing is left to wait for."""


@pytest.fixture
def opened():
    """A draw, and the same as a process with device memory sees it."""
    drawn = HostDraw(draw_inputs(x=(100, 100), out=(100, 100)))
    handles = tuple(buffer.fd.to_bytes(4, "big").hex() for buffer in drawn.buffers)
    device = DeviceOfTests()
    draw = dataclasses.replace(drawn.draw, handles=handles)
    return drawn, SharedSets(draw, (), device), device


def test_large_device_memory_is_timed_where_it_lies(opened):
    """No input is copied, every seed is one set, and only the last output slot is written."""
    _, shared, device = opened
    pool = make_pool(device, shared, wanted_bytes=shared.set_bytes, limit_bytes=0)
    assert isinstance(pool, SharedPool)
    assert pool.set_count == SEEDS
    assert [pool.seed_of(i) for i in range(SEEDS)] == list(range(SEEDS))
    for seed in range(SEEDS):
        addresses = pool.addresses(seed)
        assert addresses["x"] == shared.address(seed, shared.inputs[0], 0)
        assert addresses["out"] == shared.address(seed, shared.outputs[0], 2)
    assert device.copied_bytes == 1  # of a guard


@pytest.mark.parametrize("seeds", [[0, 0], [0, 1], [1, 0], [1, 1]])
def test_kept_outputs_reach_their_own_seeds_and_survive(opened, seeds):
    """Whatever sets were kept, later calls and their poison change nothing of it."""
    drawn, shared, device = opened
    pool = SharedPool(device, shared)
    slots = list(shared.outputs)
    aside = pool.set_aside(slots, 2)
    for position in range(2):
        values = np.full((100, 100), float(position + 1), np.float32)
        _core.copy(aside[position][0], values.ctypes.data, values.nbytes)
    pool.keep(slots, seeds)
    for seed in range(SEEDS):
        _core.fill(pool.addresses(seed)["out"], slots[0].size_bytes, _core.POISON_BYTE)
    for position, seed in enumerate(seeds):
        assert (drawn.array(seed, "out", position) == position + 1).all()


def test_small_device_memory_is_copied(opened):
    """A set within the caches is timed on private copies at fresh addresses."""
    _, shared, device = opened
    pool = make_pool(device, shared, wanted_bytes=4 * shared.set_bytes, limit_bytes=1 << 28)
    assert isinstance(pool, InputPool)
    assert pool.set_count == 4
    inputs = {pool.addresses(index)["x"] for index in range(4)}
    assert len(inputs) == 4
    assert not inputs & {shared.address(seed, shared.inputs[0], 0) for seed in range(SEEDS)}


@pytest.mark.parametrize("is_device_memory", [False, True])
def test_no_address_tells_a_timed_set_from_a_compared_one(opened, is_device_memory):
    """A private set lies in its pages as a shared one does with the first output slot."""
    drawn, shared, device = opened
    if not is_device_memory:
        shared = SharedSets(drawn.draw, drawn.descriptors(), device)
    pool = InputPool(device, shared, wanted_bytes=0, limit_bytes=1 << 28)
    compared, timed = shared.addresses(0, 0), pool.addresses(0)
    assert timed["out"] - timed["x"] == compared["out"] - compared["x"]
    assert all((timed[name] - compared[name]) % 4096 == 0 for name in timed)


def test_what_is_written_between_the_tensors_is_found(opened):
    """Guards reach from one tensor to the next: nowhere can a call leave a note for another."""
    _, shared, device = opened
    pool = InputPool(device, shared, wanted_bytes=0, limit_bytes=1 << 28)
    pool.check()
    _core.fill(pool.addresses(0)["out"] + shared.outputs[0].size_bytes + 4095, 1, 0x5A)
    with pytest.raises(CandidateFaultError, match="wrote beyond the end of out"):
        pool.check()
    device.fill_all(pool.guards())
    pool.check()


@pytest.mark.parametrize("copies", [1, 3])
def test_every_byte_that_a_set_maps_is_known(opened, copies):
    """It is a tensor's or a guard's, up to the end of the allocation unit."""
    _, shared, device = opened
    pool = InputPool(device, shared, wanted_bytes=0, limit_bytes=1 << 28)
    of = {1: pool, 3: SharedPool(device, shared)}[copies]
    base = of.addresses(0)["x"] - shared.inputs[0].offsets[0]
    size = shared.draw.size_bytes if copies == 3 else whole(shared.layout_bytes, 4096)
    known = np.zeros(size, np.uint8)
    for place in shared.places(copies=copies):
        known[place.start : place.span[1]] += 1
    for address, size_bytes, _ in of.guards():
        if 0 <= address - base < size:
            known[address - base : address - base + size_bytes] += 1
    assert (known == 1).all()


def test_host_memory_is_always_copied():
    """Shared host memory has other pages than a candidate's user would have."""
    drawn = HostDraw(draw_inputs(x=(100, 100), out=(100, 100)))
    shared = SharedSets(drawn.draw, drawn.descriptors(), DeviceOfTests())
    pool = make_pool(DeviceOfTests(), shared, wanted_bytes=0, limit_bytes=1 << 28)
    assert isinstance(pool, InputPool)


def test_a_draw_without_buffers_is_of_zeros():
    """It is the runner's own memory, and timed where it lies."""
    drawn = HostDraw(draw_inputs(x=(100, 100), out=(100, 100)))
    device = DeviceOfTests()
    shared = SharedSets(drawn.draw, (), device)
    pool = make_pool(device, shared, wanted_bytes=0, limit_bytes=0)
    assert pool.set_count == SEEDS
    ones = np.ones((100, 100), np.float32)
    _core.copy(ones.ctypes.data, pool.addresses(0)["x"], ones.nbytes)
    assert (ones == 0).all()
    shared.close()


def test_a_last_slot_that_holds_something_is_not_overwritten(opened):
    """All other outputs of the judge's buffers are, before each call on copies of them."""
    _, shared, device = opened
    pool = InputPool(device, shared, wanted_bytes=1, limit_bytes=1 << 30)
    size_bytes = shared.outputs[0].size_bytes
    last = {shared.address(seed, shared.outputs[0], 2) for seed in range(SEEDS)}
    every = {address for address, *_ in pool.idle_outputs(but_last=False)}
    assert every - {address for address, *_ in pool.idle_outputs(but_last=True)} == last
    assert len(every) == 3 * SEEDS
    assert {size for _, size, _ in pool.idle_outputs(but_last=True)} == {size_bytes}
