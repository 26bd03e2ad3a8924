"""Caches give back what was put, and nothing that was tampered with."""

import asyncio
import dataclasses
import hashlib
import os
import shutil

import pytest

from evaluator_svc.behaviour import KernelFacts, Scope
from evaluator_svc.cache import object_cache
from evaluator_svc.cache.disk_cache import DiskCache, make_private
from evaluator_svc.cache.object_cache import BuiltUnit, ObjectCache, object_key
from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.messages.builder import TranslationUnit
from evaluator_svc.messages.object_report import ObjectReport
from evaluator_svc.policy import ObjectFacts
from evaluator_svc.policy.finding import rule_finding
from evaluator_svc.settings import EvaluatorSettings
from evaluator_svc.signing import Signer
from kernel_foundry.domain.evaluation import KernelResources
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError, PackageMissingError
from tests.domain_values import CPU

_DEVICE = CPU
_UNIT = TranslationUnit(source="int x;", options=(), kernels=("k",))


_REPORT = ObjectReport(
    findings=(rule_finding("object.clock", "the kernel reads a clock", line=3),),
    numbers=ObjectFacts(formats=("TF32",)),
    kernels=KernelFacts(contiguous_weight=8.0, barrier_scopes=(Scope.WORK_GROUP,)),
    resources=(
        KernelResources(kernel="k", registers=32, shared_bytes=0, local_bytes=0, spill_bytes=0),
    ),
)


def _secret() -> bytes:
    return b"k" * 32


def test_entries_come_back(tmp_path):
    """A second cache on the same folder sees the entry."""
    DiskCache(tmp_path, _secret).put("ab" * 32, b"content")
    assert DiskCache(tmp_path, _secret).get("ab" * 32) == b"content"
    assert DiskCache(tmp_path, _secret).get("cd" * 32) is None


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d[:-1] + b"?", lambda _: b""])
def test_a_damaged_entry_is_absent(tmp_path, damage):
    """Cut short, altered or emptied: as good as not there."""
    DiskCache(tmp_path, _secret).put("ab" * 32, b"content")
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    path.write_bytes(damage(path.read_bytes()))
    assert DiskCache(tmp_path, _secret).get("ab" * 32) is None


def test_a_reader_of_objects_without_its_code_is_an_installation_error(monkeypatch):
    """A report would outlive the code that wrote it."""
    monkeypatch.setattr(object_cache, "_READERS", ("inspector", "no_such_reader"))
    object_cache._readers_digest.cache_clear()
    with pytest.raises(PackageMissingError, match="no_such_reader"):
        object_key(_UNIT, _DEVICE, "1")


def _plain_entry(content: bytes) -> bytes:
    """An entry as it was written before there was a key: a plain digest, which anyone can make."""
    return b"KFC1" + hashlib.sha256(content).digest() + content


@pytest.mark.parametrize(
    "planted",
    [
        lambda mine, other: _plain_entry(b"planted"),
        lambda mine, other: mine[:4] + hashlib.sha256(b"planted").digest() + b"planted",
        lambda mine, other: other,
        lambda mine, other: mine[:36] + b"planted",
    ],
    ids=["old format", "a plain digest", "the entry of another name", "another content"],
)
def test_what_is_planted_is_absent(tmp_path, planted):
    """Whoever can write the folder, and has no key, gives the evaluator nothing to run."""
    cache = DiskCache(tmp_path, _secret)
    cache.put("ab" * 32, b"content")
    (path,) = (p for p in tmp_path.rglob("*") if p.is_file())
    cache.put("cd" * 32, b"of another")
    (other,) = (p for p in tmp_path.rglob("*") if p.is_file() and p != path)
    path.write_bytes(planted(path.read_bytes(), other.read_bytes()))
    assert cache.get("ab" * 32) is None
    old_place = tmp_path / "ab" / ("ab" * 32)
    old_place.parent.mkdir()
    old_place.write_bytes(_plain_entry(b"planted"))
    assert cache.get("ab" * 32) is None
    cache.put("ab" * 32, b"content")
    assert cache.get("ab" * 32) == b"content"


def test_an_entry_holds_in_its_own_folder_alone(tmp_path):
    """An admission is no object, also where their names are the same."""
    DiskCache(tmp_path / "facts", _secret).put("ab" * 32, b"content")
    (tmp_path / "facts").rename(tmp_path / "objects")
    assert DiskCache(tmp_path / "objects", _secret).get("ab" * 32) is None


def test_evaluators_with_keys_of_their_own_share_a_folder(tmp_path):
    """Neither reads, replaces or loses what the other wrote."""
    first, second = DiskCache(tmp_path, _secret), DiskCache(tmp_path, lambda: b"other" * 8)
    first.put("ab" * 32, b"of the first")
    assert second.get("ab" * 32) is None
    second.put("ab" * 32, b"of the second")
    assert first.get("ab" * 32) == b"of the first"
    assert second.get("ab" * 32) == b"of the second"


def test_the_key_of_caches_follows_from_the_evaluators_own(tmp_path):
    """The same key file: the same caches, in every process; and it is not the signing key."""
    key_file = tmp_path / "evaluator.key"
    key = Signer(key_file).cache_key()
    assert key == Signer(key_file).cache_key() != Signer(tmp_path / "other.key").cache_key()
    assert key not in key_file.read_bytes()


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_a_folder_that_others_may_write_is_refused(tmp_path, mode):
    """Compiled baselines lie there without a code of their own."""
    folder = tmp_path / "cache"
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    make_private(folder)
    folder.chmod(mode)
    with pytest.raises(InvalidArgumentError, match=f"mode {mode:04o}.*remove it.*set KERNEL_") as e:
        make_private(folder)
    assert e.value.metadata["field"] == "KERNEL_FOUNDRY_CACHE_DIR"


def test_a_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    """Its owner may write it at any time; root may do so everywhere."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path, 12345, -1)
    with pytest.raises(InvalidArgumentError, match="belongs to another user"):
        make_private(tmp_path)


def test_an_evaluator_starts_nothing_beside_such_a_folder(tmp_path):
    """Neither a device nor a build."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    settings = EvaluatorSettings(device_kinds=("null",), cache_dir=tmp_path / "cache")
    evaluator = LocalEvaluator(settings)
    with pytest.raises(InvalidArgumentError, match="may be written by others"):
        asyncio.run(evaluator.capabilities())
    with pytest.raises(InvalidArgumentError, match="may be written by others"):
        evaluator._build_sites.site(Language.CUDA, "sm_90")
    asyncio.run(evaluator.close())


def test_a_disk_that_cannot_be_written_costs_only_the_entry(tmp_path):
    """A file where the folder should be: nothing is raised."""
    (tmp_path / "file").write_text("")
    cache = DiskCache(tmp_path / "file" / "cache", _secret)
    cache.put("ab" * 32, b"content")
    assert cache.get("ab" * 32) is None


@pytest.mark.parametrize(("code", "report"), [(b"\x03\x02#\x07\n\x00", _REPORT), (b"", None)])
def test_built_units_and_failures_come_back(tmp_path, code, report):
    """Objects with what was found in them, failed builds with their log."""
    unit = BuiltUnit(
        code=code,
        assembly=b"// text\n",
        log="warning: ü\n",
        build_ns=12.5,
        findings=() if code else _REPORT.findings,
        is_meant=bool(code),
        report=report,
    )
    ObjectCache(tmp_path, _secret).put("ab" * 32, unit)
    assert ObjectCache(tmp_path, _secret).get("ab" * 32) == unit


@pytest.mark.parametrize("code", [b"code", b""])
def test_a_repeated_build_reads_no_file(tmp_path, code):
    """What was put, or read once, stays in memory; failures too."""
    unit = BuiltUnit(code=code, assembly=b"", log="a log", build_ns=1.0)
    writer, reader = ObjectCache(tmp_path, _secret), ObjectCache(tmp_path, _secret)
    writer.put("ab" * 32, unit)
    assert reader.get("ab" * 32) == unit
    shutil.rmtree(tmp_path)
    assert writer.get("ab" * 32) == unit
    assert reader.get("ab" * 32) == unit
    assert ObjectCache(tmp_path, _secret).get("ab" * 32) is None


def test_memory_is_bounded_by_bytes_and_the_longest_unused_unit_goes(tmp_path):
    """Three units, room for two: the one that was not asked for again is on disk alone."""
    units = {
        digit * 64: BuiltUnit(code=digit.encode() * 10_000, assembly=b"", log="", build_ns=1.0)
        for digit in "abc"
    }
    cache = ObjectCache(tmp_path, _secret, memory_bytes=25_000)
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
    cache = ObjectCache(tmp_path, _secret, memory_bytes=25_000)
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
