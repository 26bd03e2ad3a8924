"""Judges are forked from one process with their imports, and have nothing else in common."""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_svc.processes.forking import JUDGE, ForkServerReady
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.judge_starter import JudgeStarter
from evaluator_svc.processes.template import Template, TemplateKind
from evaluator_svc.sandbox.host_paths import package_root
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import ProcessLostError, TaskInvalidError
from tests.judge.judge_tasks import DEVICE, TOLERANCE, make_task
from tests.quick_settings import quick_settings

_THREADS = 3
_TELLING = """
import secrets, tempfile
raise RuntimeError(f"key: {secrets.token_hex(8)} folder: {tempfile.gettempdir()}")
def get_inputs(): ...
class Model: ...
"""
TELLING = Task(name="telling", reference=_TELLING, workloads=(Workload(name="default"),))


@pytest.fixture(scope="module")
def starter() -> Iterator[JudgeStarter]:
    """With a template of its own: no other evaluator has so many threads."""
    starter = JudgeStarter(quick_settings(threads=_THREADS))
    yield starter
    starter.close()


@pytest.fixture
def judges(starter: JudgeStarter) -> Iterator[list[JudgeClient]]:
    started = [starter.start(DEVICE), starter.start(DEVICE)]
    yield started
    for judge in started:
        judge.close()


def test_judges_are_forked_from_a_process_with_one_thread_and_no_device(starter, judges):
    """Each has a session of its own, and the threads that it was asked to have."""
    template = starter._shared.template._forks
    ready = template.warm_up()
    assert (ready.thread_count, ready.open_devices) == (1, ())
    ids = [judge.facts().process_id for judge in judges]
    assert {_parent_of(id_) for id_ in ids} == {template._process.process_id}
    for judge in judges:
        _told(judge)  # has answered: it waits, and no module is being read any more
    for id_ in ids:
        assert os.getsid(id_) == id_
        assert len(list(Path(f"/proc/{id_}/task").iterdir())) == _THREADS  # those of numpy
        assert len(list(Path(f"/proc/{id_}/fd").iterdir())) == 4  # three, and its channel


def test_keys_and_the_folder_for_files_are_each_judges_own(judges):
    """Other generators are seeded for every draw, as each task's file finds them."""
    (key, folder), (other_key, other_folder) = [_told(judge) for judge in judges]
    assert key != other_key
    assert folder != other_folder


def test_what_follows_graphs_is_loaded_by_an_admission_alone(judges):
    """It takes longer to import than torch; a verdict needs none of it."""
    task = make_task("def forward(self, x):\n    return torch.softmax(x @ x.T, -1)\n")
    assert judges[0].draw(task, task.workloads[0].name, TOLERANCE, (1, 2, 3))
    asks = f"import sys\nraise RuntimeError('torch._dynamo' in sys.modules)\n{_TELLING}"
    with pytest.raises(TaskInvalidError, match="RuntimeError: False"):
        judges[0].describe(replace(TELLING, name="asks", reference=asks))


def test_evaluators_of_one_environment_share_the_process_and_the_last_ends_it(starter):
    other = JudgeStarter(quick_settings(threads=_THREADS))
    alone = JudgeStarter(quick_settings(threads=_THREADS + 1))
    assert other._shared.template is starter._shared.template
    assert alone._shared.template is not starter._shared.template
    alone.close()
    judge = other.start(DEVICE)
    other.close()
    other.close()  # once more changes nothing
    assert judge.facts().process_id
    judge.close()


def test_a_judge_has_what_names_drivers_and_compilers_now(starter, monkeypatch):
    """A template is not made again for what it does not read itself."""
    monkeypatch.setenv("KERNEL_FOUNDRY_NVRTC", "/named/later")
    later = JudgeStarter(quick_settings(threads=_THREADS))
    assert later._shared.template is starter._shared.template
    judge = later.start(DEVICE)
    later.close()
    asks = f"import os\nraise RuntimeError(os.environ['KERNEL_FOUNDRY_NVRTC'])\n{_TELLING}"
    with pytest.raises(TaskInvalidError, match="RuntimeError: /named/later"):
        judge.describe(replace(TELLING, name="asks", reference=asks))
    judge.close()


def test_a_template_that_is_closed_while_it_starts_is_not_waited_for():
    """A command that has failed does not wait until torch is imported."""
    starter = JudgeStarter(quick_settings(threads=_THREADS + 2))
    starter.warm_up()
    while starter._shared.template._forks._process is None:
        time.sleep(0.001)
    starter.close()
    with pytest.raises(ProcessLostError, match="no longer needed"):
        starter._imports.result(timeout=0)
    with pytest.raises(ProcessLostError, match="is closed"):
        starter.start(DEVICE)


def test_a_template_that_is_lost_takes_its_judges_along_and_is_replaced(starter, judges):
    template = starter._shared.template._forks._process.process_id
    lost = judges[0].facts().process_id
    os.kill(template, signal.SIGKILL)
    deadline = time.monotonic() + 60.0
    while _is_alive(lost) and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(ProcessLostError):
        judges[0].describe(TELLING)
    assert not judges[0].is_running
    again = starter.start(DEVICE)
    assert again.facts().process_id != lost
    again.close()


def test_where_imports_start_threads_a_judge_is_a_program_of_its_own(monkeypatch):
    """A fork would not have them; all else is alike."""
    environment = (("PYTHONPATH", package_root()),)
    template = Template(TemplateKind(module=JUDGE, environment=environment, meets_candidates=False))
    ready = ForkServerReady(torch_version="", thread_count=2, open_devices=())
    monkeypatch.setattr(template._forks, "warm_up", lambda: ready)
    process = template.start((("TMPDIR", "/tmp"),))
    assert _parent_of(process.process_id) == os.getpid()
    process.kill()
    template.end()


def _told(judge: JudgeClient) -> tuple[str, str]:
    with pytest.raises(TaskInvalidError) as raised:
        judge.describe(TELLING)
    found = re.search(r"key: (\S+) folder: (\S+)", raised.value.message)
    assert found is not None
    return found[1], found[2]


def _parent_of(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[1])


def _is_alive(process_id: int) -> bool:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
