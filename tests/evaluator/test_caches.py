"""Caches give back what was put, and nothing that was tampered with."""

import dataclasses
import shutil

import pytest

from evaluator_svc.disk_cache import DiskCache
from evaluator_svc.messages.locked import TranslationUnit
from evaluator_svc.object_cache import BuiltUnit, ObjectCache, object_key
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.language import Language

_DEVICE = DeviceSpec(
    id="sycl:0",
    language=Language.SYCL,
    name="cpu",
    vendor="v",
    architecture="a",
    driver_version="1",
    compute_units=2,
    sub_group_size=32,
    max_block=1024,
    shared_bytes=1 << 15,
    memory_bytes=1 << 30,
    cache_bytes=1 << 20,
)
_UNIT = TranslationUnit(source="int x;", options=(), kernels=("k",))


def test_entries_come_back(tmp_path):
    """A second cache on the same folder sees the entry."""
    DiskCache(tmp_path).put("ab" * 32, b"content")
    assert DiskCache(tmp_path).get("ab" * 32) == b"content"
    assert DiskCache(tmp_path).get("cd" * 32) is None


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:-1] + b"?", lambda _: b""])
def test_a_damaged_entry_is_absent(tmp_path, damage):
    """Cut short, altered or emptied: as good as not there."""
    DiskCache(tmp_path).put("ab" * 32, b"content")
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    path.write_bytes(damage(path.read_bytes()))
    assert DiskCache(tmp_path).get("ab" * 32) is None


def test_a_disk_that_cannot_be_written_costs_only_the_entry(tmp_path):
    """A file where the folder should be: nothing is raised."""
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "cache")
    cache.put("ab" * 32, b"content")
    assert cache.get("ab" * 32) is None


@pytest.mark.parametrize("code", [b"\x03\x02#\x07\n\x00", b""])
def test_built_units_and_failures_come_back(tmp_path, code):
    """Failed builds are remembered with their log."""
    unit = BuiltUnit(code=code, assembly=b"// text\n", log="warning: ü\n", build_ns=12.5)
    ObjectCache(tmp_path).put("ab" * 32, unit)
    assert ObjectCache(tmp_path).get("ab" * 32) == unit


@pytest.mark.parametrize("code", [b"code", b""])
def test_a_repeated_build_reads_no_file(tmp_path, code):
    """What was put, or read once, stays in memory; failures too."""
    unit = BuiltUnit(code=code, assembly=b"", log="a log", build_ns=1.0)
    writer, reader = ObjectCache(tmp_path), ObjectCache(tmp_path)
    writer.put("ab" * 32, unit)
    assert reader.get("ab" * 32) == unit
    shutil.rmtree(tmp_path)
    assert writer.get("ab" * 32) == unit
    assert reader.get("ab" * 32) == unit
    assert ObjectCache(tmp_path).get("ab" * 32) is None


def test_memory_is_bounded_by_bytes_and_the_longest_unused_unit_goes(tmp_path):
    """Three units, room for two: the one that was not asked for again is on disk alone."""
    units = {
        digit * 64: BuiltUnit(code=digit.encode() * 10_000, assembly=b"", log="", build_ns=1.0)
        for digit in "abc"
    }
    cache = ObjectCache(tmp_path, memory_bytes=25_000)
    cache.put("a" * 64, units["a" * 64])
    cache.put("b" * 64, units["b" * 64])
    assert cache.get("a" * 64) == units["a" * 64]
    cache.put("c" * 64, units["c" * 64])
    assert all(cache.get(key) == unit for key, unit in units.items())

    cache.get("a" * 64)
    cache.get("c" * 64)
    shutil.rmtree(tmp_path)
    assert [key[0] for key in units if cache.get(key)] == ["a", "c"]


def test_a_unit_beyond_the_bound_is_on_disk_alone(tmp_path):
    """It pushes nothing out, and a unit that is put again is counted once."""
    large = BuiltUnit(code=b"x" * 30_000, assembly=b"", log="", build_ns=1.0)
    small = BuiltUnit(code=b"y" * 10_000, assembly=b"", log="", build_ns=1.0)
    cache = ObjectCache(tmp_path, memory_bytes=25_000)
    cache.put("a" * 64, large)
    assert cache.get("a" * 64) == large
    for _ in range(5):
        cache.put("b" * 64, small)
    shutil.rmtree(tmp_path)
    assert cache.get("a" * 64) is None
    assert cache.get("b" * 64) == small


def test_everything_that_decides_an_object_is_in_its_key():
    """Source, options, kernels, compiler and architecture each change the key."""
    keys = {
        object_key(_UNIT, _DEVICE, "1"),
        object_key(dataclasses.replace(_UNIT, source="int y;"), _DEVICE, "1"),
        object_key(dataclasses.replace(_UNIT, options=("-O0",)), _DEVICE, "1"),
        object_key(dataclasses.replace(_UNIT, kernels=("l",)), _DEVICE, "1"),
        object_key(_UNIT, dataclasses.replace(_DEVICE, architecture="b"), "1"),
        object_key(_UNIT, _DEVICE, "2"),
    }
    assert len(keys) == 6
