"""The sandbox is tried from within, and what is tried there works where there is no sandbox."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.probing.planted import planted
from evaluator_svc.probing.sandbox import probe_sandbox
from evaluator_svc.sandbox.attempt import AttemptTargets
from evaluator_svc.sandbox.attempts import ATTEMPTS
from evaluator_svc.sandbox.host_paths import package_root
from kernel_foundry.domain.plain import to_plain
from tests.quick_settings import quick_settings

_UNLOCKED = """
import json, resource, signal, sys
from evaluator_svc.sandbox.attempt import AttemptRequest, AttemptTargets
from evaluator_svc.sandbox.attempts import attempt
from kernel_foundry.domain.plain import from_plain
_soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
names, targets = json.loads(sys.argv[1])
targets = from_plain(AttemptTargets, targets)
for name in names:
    tried = attempt(AttemptRequest(name=name, targets=targets))
    print(name, tried.error or "possible", flush=True)
"""

_FOR_THE_PRIVILEGED = {"mount", "bpf", "perf_event", "kernel_log", "cpu_time", "ptrace"}
"""Hosts refuse these, or may be set to, to a user without powers and without any sandbox."""
_SWITCHED_OFF_ON_SOME = {"io_uring", "userfaultfd", "kcmp", "memory"}


@pytest.fixture(scope="module", params=["bubblewrap", "landlock"])
def probes(request, tmp_path_factory):
    evaluator = LocalEvaluator(
        quick_settings(
            device_kinds=("null",),
            cache_dir=tmp_path_factory.mktemp("cache"),
            use_bubblewrap=request.param == "bubblewrap",
            runner_memory_bytes=1 << 30,
        )
    )
    (site,) = evaluator._sites.working()
    if request.param == "bubblewrap" and "bubblewrap" not in site.isolation.mechanisms:
        pytest.skip(site.isolation.missing[0])
    yield {probe.name: probe for probe in probe_sandbox(site)}
    asyncio.run(evaluator.close())


def test_every_attempt_of_every_process_is_refused(probes):
    """Builder, inspector, runner and library runner try everything, and nothing works."""
    kinds = ("builder", "inspector", "runner", "library_runner")
    assert set(probes) == {f"sandbox.{kind}.{name}" for kind in kinds for name in ATTEMPTS}
    assert [f"{p.name}: {p.detail}" for p in probes.values() if not p.passed] == []


def test_a_refusal_says_how(probes):
    """The system's own word, and not the absence of an answer."""
    assert probes["sandbox.runner.fork"].detail == "refused with EPERM"
    assert probes["sandbox.runner.memory"].detail == "refused with ENOMEM"
    assert probes["sandbox.builder.open_files"].detail == "refused with EMFILE"
    assert probes["sandbox.builder.file_size"].detail == "refused with EFBIG"
    assert not any("no answer" in probe.detail for probe in probes.values())


def _without_a_lock(names: list[str], scratch: Path) -> dict[str, str]:
    with planted() as found:
        targets = AttemptTargets(
            processes=(found.process,),
            secrets=found.files,
            token=found.token,
            outside=found.outside,
            port=found.port,
            abstract_name=found.abstract_name,
            scratch=str(scratch),
            memory_bytes=1 << 20,
            file_bytes=1 << 20,
            open_files=64,
        )
        given = json.dumps([names, to_plain(targets)])
        ended = subprocess.run(
            [sys.executable, "-P", "-s", "-c", _UNLOCKED, given],
            env={**os.environ, "PYTHONPATH": package_root()},
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
    assert ended.returncode == 0, ended.stderr
    return dict(line.split() for line in ended.stdout.splitlines())


def test_without_a_lock_every_attempt_works(tmp_path):
    """A probe that cannot fail would show nothing."""
    excused = _SWITCHED_OFF_ON_SOME | (set() if os.geteuid() == 0 else _FOR_THE_PRIVILEGED)
    names = [name for name in ATTEMPTS if name != "execve"]
    results = _without_a_lock(names, tmp_path)
    assert set(results) == set(names)
    refused = {name: why for name, why in results.items() if why != "possible"}
    assert {name: why for name, why in refused.items() if name not in excused} == {}


def test_without_a_lock_another_program_takes_over(tmp_path):
    """Where `execve` works nobody is left to answer."""
    assert _without_a_lock(["execve"], tmp_path) == {}
