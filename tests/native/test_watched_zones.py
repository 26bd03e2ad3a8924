"""Host memory that kernels work on: out of reach of each other, closed where they have no business.

Accesses are made in processes of their own: the first one in any zone is remembered for good.
"""

import subprocess
import sys

import pytest

TRY = """
import ctypes
import kernel_foundry_native as native
device = native.device_kind("null").open_device()
page = 4096
memory = device.allocate(3 * page)
at = memory.address
device.fill(at, 3 * page, 7)
zones = device.watch([(at, page, True, "x"), (at + page, page, False, "out")])
assert device.first_trespass is None
{access}
found = device.first_trespass
print(found and (found.name, found.is_readable, found.is_write))
"""
READ, WRITE = "ctypes.c_ubyte.from_address({}).value", "ctypes.memset({}, 1, 1)"


def tried(access: str) -> subprocess.CompletedProcess[str]:
    """Run an access in a process of its own."""
    code = TRY.format(access=access)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("access", "found"),
    [
        (READ.format("at"), "None"),
        (WRITE.format("at + 5"), "('x', True, True)"),
        (READ.format("at + page"), "('out', False, False)"),
        (WRITE.format("at + 2 * page - 1"), "('out', False, True)"),
        (WRITE.format("at + 2 * page"), "None"),
        (READ.format("at + page") + ";" + WRITE.format("at + page"), "('out', False, True)"),
        ("device.fill(at, page, 9)", "None"),
        ("device.fill(at, page, 9);" + WRITE.format("at"), "('x', True, True)"),
        ("zones.close();" + WRITE.format("at"), "None"),
    ],
    ids=[
        "a load of what is read only", "a store there", "a load of what is closed",
        "a store there, at its end", "a store behind it", "a store after a load",
        "the device's own fill", "a store after that", "all are open again",
    ],
)  # fmt: skip
def test_what_a_zone_forbids_is_told(access: str, found: str) -> None:
    child = tried(access)
    assert child.stdout.strip() == found, child.stderr


@pytest.mark.parametrize("place", ["at - 1", "at + 3 * page", "16"])
def test_any_other_fault_ends_the_process(place: str) -> None:
    assert tried(WRITE.format(place)).returncode == -11


def test_what_is_forbidden_happens_all_the_same() -> None:
    """The process goes on as if nothing had been closed."""
    child = tried(
        WRITE.format("at + page") + "; assert ctypes.string_at(at + page, 2) == b'\\1\\7'"
    )
    assert child.returncode == 0, child.stderr


def test_no_distance_between_two_buffers_is_known() -> None:
    """A kernel that adds to one pointer reaches no other: distances differ between processes."""
    code = """
import kernel_foundry_native as native
device = native.device_kind("null").open_device()
buffers = [device.allocate(4096) for _ in range(8)]
places = [buffer.address for buffer in buffers]
assert all(place % (2 << 20) == 0 for place in places)
print(*(b - a for a, b in zip(places, places[1:])))
"""
    told = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, second = ({int(word) for word in child.stdout.split()} for child in told)
    assert len(first) == len(second) == 7
    assert not first & second
    assert min(map(abs, first | second)) > 1 << 21


def test_an_own_write_beyond_the_memory_limit_is_an_error() -> None:
    """Linux counts no memory that is read only; a crash here would be told of the kernel."""
    child = tried(
        """
import resource
large = device.allocate(64 << 20)
others = device.watch([(large.address, 64 << 20, True, "y")])
[counted] = [line for line in open("/proc/self/status") if line.startswith("VmData")]
limit = (int(counted.split()[1]) << 10) + (8 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    device.fill(large.address, 1, 9)
except native.errors.OutOfMemoryError as error:
    print(error)
"""
    )
    first, *_ = child.stdout.splitlines()
    assert first.startswith("cannot write to y: "), child.stderr


TRY_COVERED = """
import ctypes
import kernel_foundry_native as native
device = native.device_kind("null").open_device()
page = 4096
memory = device.allocate(3 * page)
at = memory.address
device.fill(at, 3 * page, 7)
zones = device.watch([(at, page, True, "x")])
cover = device.cover([(at + 1024, 3072, True, "x"), (at + page, 100, False, "out")])
cover.hide()
{access}
found = device.first_trespass
print(found and (found.name, found.is_write, found.is_hidden))
"""


@pytest.mark.parametrize(
    ("access", "found"),
    [
        (READ.format("at + 1024"), "('x', False, True)"),
        (WRITE.format("at + page + 50"), "('out', True, True)"),
        (READ.format("at + 2 * page"), "None"),
        (f"cover.show(); {READ.format('at')}; {WRITE.format('at + page')}", "None"),
        ("cover.show(); " + WRITE.format("at + 1024"), "('x', True, False)"),
        ("cover.show(); cover.hide(); " + READ.format("at + page"), "('out', False, True)"),
        ("cover.show(); device.fill(at, page, 9); cover.hide(); cover.show()", "None"),
    ],
    ids=[
        "a load of an input", "a store to an output", "a load beside them", "all is shown",
        "a store to what is read only again", "hidden a second time", "the device's own fill",
    ],
)  # fmt: skip
def test_what_is_covered_is_closed_until_it_is_shown(access: str, found: str) -> None:
    child = subprocess.run(
        [sys.executable, "-c", TRY_COVERED.format(access=access)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert child.stdout.strip() == found, child.stderr
