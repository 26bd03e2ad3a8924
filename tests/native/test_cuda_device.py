"""A CUDA device: launches, graphs, events, faults, shared memory."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native
from kernel_foundry_native._core import MeasureOptions
from tests.native.cuda_case import CudaCase

pytestmark = pytest.mark.gpu

COUNT = 1000


@pytest.fixture
def case() -> Iterator[CudaCase]:
    """Return an open device with its kernels."""
    opened = CudaCase()
    yield opened
    opened.close()


def numbers() -> Any:
    return np.arange(COUNT, dtype=np.float32)


def scaled_twice(case: CudaCase) -> tuple[Any, int]:
    """Return a sequence that clears and multiplies by 2 and by 3, and where its output is."""
    out = case.empty(4 * COUNT)
    sequence = case.sequence()
    sequence.clear(2, 4 * COUNT)
    case.launch_scale(sequence, 0, 1, 2.0, COUNT)
    case.launch_scale(sequence, 1, 2, 3.0, COUNT)
    sequence.bind(0, [case.upload(numbers()), case.empty(4 * COUNT), out])
    return sequence, out


def test_it_is_a_device_with_memory_and_events(case: CudaCase) -> None:
    device = case.device
    assert device.vendor == "NVIDIA"
    assert device.architecture.startswith("sm_")
    assert device.uuid.startswith("GPU-")
    assert device.stream != 0
    assert device.times_by_events
    assert not device.is_host_memory
    assert device.event_overhead_ns >= 0
    assert len(device.unit_limits) == 4


def test_a_program_tells_what_its_kernels_need(case: CudaCase) -> None:
    resources = {name: rest for name, *rest in case.program.resources}
    registers, shared_bytes, local_bytes, max_block = resources["scale"]
    assert registers > 0
    assert (shared_bytes, local_bytes) == (0, 0)
    assert max_block >= 256


def test_a_scrub_touches_no_buffer_and_disturbs_no_launch(case: CudaCase) -> None:
    sequence, out = scaled_twice(case)
    case.device.scrub()
    sequence.run(0)
    case.device.scrub()
    np.testing.assert_array_equal(case.download(out, COUNT), 6 * numbers())


def test_steps_run_in_order(case: CudaCase) -> None:
    sequence, out = scaled_twice(case)
    sequence.run(0)
    np.testing.assert_array_equal(case.download(out, COUNT), 6 * numbers())


def test_a_captured_sequence_does_the_same(case: CudaCase) -> None:
    sequence, out = scaled_twice(case)
    sequence.capture(0)
    case.device.fill(out, 4 * COUNT, 0xFF)
    for _ in range(2):
        sequence.run(0)
        np.testing.assert_array_equal(case.download(out, COUNT), 6 * numbers())


def test_binding_again_drops_what_was_captured(case: CudaCase) -> None:
    sequence, _ = scaled_twice(case)
    sequence.capture(0)
    other = case.empty(4 * COUNT)
    sequence.bind(0, [case.upload(numbers()), case.empty(4 * COUNT), other])
    sequence.run(0)
    np.testing.assert_array_equal(case.download(other, COUNT), 6 * numbers())


def test_a_call_takes_its_place_between_launches(case: CudaCase) -> None:
    source, target = case.upload(numbers()), case.empty(4 * COUNT)
    elsewhere = case.upload(numbers() + 1)
    sequence = case.sequence()
    sequence.call(lambda _: elsewhere, buffer=0)
    case.launch_scale(sequence, 0, 1, 2.0, COUNT)
    sequence.bind(0, [source, target])
    sequence.capture(0)  # host calls are never captured
    sequence.run(0)
    np.testing.assert_array_equal(case.download(target, COUNT), 2 * (numbers() + 1))


@pytest.mark.parametrize("is_cold", [False, True])
def test_samples_are_event_spans_with_the_hosts_clock_beside(
    case: CudaCase, options: Callable[..., MeasureOptions], is_cold: bool
) -> None:
    sequence, out = scaled_twice(case)
    kept = case.empty(4 * COUNT)
    found = sequence.measure(
        options(is_cold=is_cold, max_samples=20),
        flush_bytes=1 << 20,
        outputs=[(2, 4 * COUNT)],
        keep_into=[[kept]],
    )
    assert len(found.samples_ns) == len(found.host_ns) == 20
    assert found.device_ns == []
    assert out != kept
    np.testing.assert_array_equal(case.download(kept, COUNT), 6 * numbers())
    # What the host saw contains what the device did, but for the event's own time.
    assert np.median(found.samples_ns) <= np.median(found.host_ns)


@pytest.mark.parametrize("steps", [1, 2], ids=["one launch", "a graph"])
def test_what_prepares_is_timed_before_each_call_on_the_values_of_that_call(
    case: CudaCase, options: Callable[..., MeasureOptions], steps: int
) -> None:
    places = [case.upload(numbers()), *(case.empty(4 * COUNT) for _ in range(3))]
    weight, _, made, out = range(4)
    preparation, sequence = case.sequence(), case.sequence()
    if steps == 2:
        case.launch_scale(preparation, weight, 1, 1.0, COUNT)
    case.launch_scale(preparation, weight if steps == 1 else 1, made, 2.0, COUNT)
    case.launch_scale(sequence, made, out, 3.0, COUNT)
    for each in (preparation, sequence):
        each.bind(0, places)
    kept, sealed = case.empty(4 * COUNT), case.empty(4 * COUNT)
    given = options(is_cold=True, warmup_calls=2, min_samples=20, max_samples=20)
    found = sequence.measure(
        given,
        flush_bytes=1 << 20,
        outputs=[(out, 4 * COUNT)],
        keep_into=[[kept]],
        redraw=(7, [("float32", 4 * COUNT, 0)], [[places[weight]]]),
        preparation=preparation,
        prepared=[(made, 4 * COUNT)],
        weights=[0],
        sealed_into=[[sealed]],
    )
    assert len(found.prepare_ns) == len(found.samples_ns) == 20
    assert min(found.prepare_ns) > 0
    last = case.download(places[made], COUNT)
    np.testing.assert_array_equal(case.download(sealed, COUNT), last)
    np.testing.assert_array_equal(case.download(places[weight], COUNT), numbers())
    ((call, _),) = found.kept
    case.device.redraw(
        places[weight], dtype="float32", size_bytes=4 * COUNT, key=7, number=0,
        apply_index=found.warmup_count + call + 1,
    )  # fmt: skip
    case.device.synchronize()
    of_call = case.download(places[weight], COUNT)
    assert not np.array_equal(of_call, numbers())
    np.testing.assert_array_equal(case.download(kept, COUNT), 3 * (2 * of_call))


def test_a_slow_kernel_is_timed_as_long_as_it_lasts(
    case: CudaCase, options: Callable[..., MeasureOptions]
) -> None:
    sequence = case.sequence()
    arguments = [
        case.module.buffer_argument(0),
        case.module.buffer_argument(1),
        case.module.scalar_argument("int32", COUNT),
    ]
    case.launch(sequence, "slow_copy", arguments, COUNT)
    sequence.bind(0, [case.upload(numbers()), case.empty(4 * COUNT)])
    found = sequence.measure(options(max_samples=10), flush_bytes=0, outputs=[], keep_into=[])
    # It sleeps 2000 times for a microsecond or so, and the host's clock runs around all of it.
    assert np.median(found.samples_ns) > 1e6
    assert sum(found.samples_ns) <= found.elapsed_ns
    (time_ns,) = sequence.profile(0)
    assert time_ns > 1e6


def test_clocks_are_noted_for_all_samples(
    case: CudaCase, options: Callable[..., MeasureOptions]
) -> None:
    sequence, _ = scaled_twice(case)
    found = sequence.measure(options(), flush_bytes=0, outputs=[], keep_into=[])
    if not found.clocks:
        pytest.skip("the management library does not tell the clocks")
    assert sum(count for count, *_ in found.clocks) == len(found.samples_ns)
    for _, before_mhz, after_mhz, memory_mhz, reasons in found.clocks:
        assert min(before_mhz, after_mhz, memory_mhz) > 0
        assert all(isinstance(reason, str) for reason in reasons)


def test_callables_that_use_the_stream_are_timed_by_events(
    case: CudaCase, options: Callable[..., MeasureOptions]
) -> None:
    sequence, _ = scaled_twice(case)
    found = case.device.measure_callable(
        sequence.enqueue, options(max_samples=10, is_cold=True), flush_bytes=1 << 20
    )
    assert len(found.samples_ns) == len(found.host_ns) == 10


def test_a_launch_that_cannot_be_is_the_candidates_fault(case: CudaCase) -> None:
    sequence = case.sequence()
    sequence.launch(
        program=case.program, kernel="illegal", grid=(1, 1, 1), block=(4096, 1, 1), dimensions=1,
        arguments=[],
    )  # fmt: skip
    sequence.bind(0, [])
    with pytest.raises(native.LaunchError) as caught:
        sequence.run(0)
    assert caught.value.kind == "resources"


def test_arguments_that_are_too_few_are_refused(case: CudaCase) -> None:
    sequence = case.sequence()
    case.launch(sequence, "scale", [case.module.buffer_argument(0)], COUNT)
    sequence.bind(0, [case.empty(4)])
    with pytest.raises(native.LaunchError) as caught:
        sequence.run(0)
    assert caught.value.kind == "invalid"


PRELUDE = "from tests.native.cuda_case import CudaCase\nimport sys\ncase = CudaCase()\n"


def start_child(code: str) -> subprocess.Popen[str]:
    """Start Python code in a process of its own, which has a case."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_illegal_access_is_the_candidates_fault_and_stays() -> None:
    child = start_child(
        """
import kernel_foundry_native as native
sequence = case.sequence()
case.launch(sequence, "illegal", [])
sequence.bind(0, [])
for _ in range(2):
    try:
        sequence.run(0)
    except native.LaunchError as error:
        print(error.kind)
"""
    )
    output, errors = child.communicate(timeout=280)
    assert output.split() == ["illegal_access", "illegal_access"], errors
    assert child.returncode == 0, errors


def test_a_kernel_that_never_ends_goes_with_its_process() -> None:
    child = start_child(
        """
sequence = case.sequence()
case.launch(sequence, "endless", [])
sequence.bind(0, [])
print("started", flush=True)
sequence.run(0)
"""
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "started\n"
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(timeout=0.5)
    child.kill()
    child.communicate(timeout=280)
    assert child.returncode != 0


def test_memory_is_shared_with_another_process_by_its_handle(case: CudaCase) -> None:
    shared = case.device.create_shared(4 * COUNT)
    np.testing.assert_array_equal(case.download(shared.address, COUNT), np.zeros(COUNT))
    assert shared.size_bytes == 4 * COUNT
    child = start_child(
        f"""
shared = case.device.open_shared(bytes.fromhex("{shared.handle.hex()}"), {4 * COUNT})
case.device.fill(shared.address, {4 * COUNT}, 0x40)
shared.close()
print("filled")
"""
    )
    output, errors = child.communicate(timeout=280)
    assert output == "filled\n", errors
    expected = np.full(4 * COUNT, 0x40, dtype=np.uint8).view(np.float32)
    np.testing.assert_array_equal(case.download(shared.address, COUNT), expected)
    shared.close()


def test_ranges_are_filled_and_looked_through(case: CudaCase) -> None:
    """Of any place and size: more of them than a launch takes, unaligned, empty and large."""
    start = case.empty(8 << 20)
    case.device.fill(start, 8 << 20, 0)
    odd = [(start + 5000 * i + i % 17, 37 * i % 4000, i % 251) for i in range(300)]
    ranges = [*odd, (start + (4 << 20), 3 << 20, 9), (start + (7 << 20) + 1, (1 << 19) + 1, 8)]
    case.device.fill_all(ranges)
    assert case.device.find_other(ranges) is None
    content = case.download(start, 2 << 20).view(np.uint8)
    known = np.zeros(8 << 20, np.uint8)
    for address, size_bytes, byte in ranges:
        known[address - start : address - start + size_bytes] = byte
    np.testing.assert_array_equal(content, known)


@pytest.mark.parametrize("index", [1, 129, 299, 300])
@pytest.mark.parametrize("at_end", [False, True])
def test_a_byte_that_is_another_is_found(case: CudaCase, index: int, at_end: bool) -> None:
    start = case.empty(8 << 20)
    ranges = [(start + 5000 * i + i % 17, 1 + 37 * i % 4000, i % 251) for i in range(300)]
    ranges.append((start + (4 << 20), 3 << 20, 9))
    case.device.fill_all(ranges)
    address, size_bytes, byte = ranges[index]
    case.device.fill(address + (size_bytes - 1 if at_end else 0), 1, byte ^ 0x40)
    assert case.device.find_other(ranges) == index


def test_what_is_allocated_are_whole_units(case: CudaCase) -> None:
    """Nothing else lies in them: what a kernel can write to there is known."""
    unit = case.device.unit_bytes
    places = [case.empty(size) for size in (1, 1000, unit, unit + 1)]
    assert all(place % unit == 0 for place in places)
    assert len(set(places)) == len(places)


def test_all_of_the_units_can_be_written(case: CudaCase) -> None:
    """It is one allocation of the driver's, up to the end of its last unit."""
    unit = case.device.unit_bytes
    place = case.empty(unit + 1)
    case.device.fill(place, 2 * unit, 3)
    assert case.device.find_other([(place, 2 * unit, 3)]) is None


def test_local_memory_is_scrubbed_where_a_kernel_uses_it(case: CudaCase) -> None:
    """It is launched and disturbs nothing; what it overwrites is `test_scrub` of a GPU to tell."""
    sequence, out = scaled_twice(case)
    source = """
extern "C" __global__ void spills(float* out, int count) {
  volatile float kept[1000];
  for (int i = 0; i < 1000; ++i) kept[i] = i;
  out[threadIdx.x] = kept[count + threadIdx.x];
}
"""
    compiler = case.module.open_compiler(architecture=case.device.architecture)
    built = compiler.compile(source=source, options=[], kernels=["spills"])
    program = case.device.load(code=built.code, kernels=["spills"])
    assert program.kernel_names == ["spills"]
    case.device.scrub()
    sequence.run(0)
    case.device.scrub()
    np.testing.assert_array_equal(case.download(out, COUNT), 6 * numbers())
