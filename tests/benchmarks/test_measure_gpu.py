"""Steps of a measurement run apart from each other, each within its own time."""

from pathlib import Path

from benchmarks.measure_gpu import STEPS, Step, run_step


def test_a_step_that_fails_or_does_not_end_is_told(tmp_path: Path) -> None:
    fails = Step(name="fails", seconds=60, command=("-c", "print('why'); raise SystemExit(3)"))
    hangs = Step(name="hangs", seconds=0.5, command=("-c", "import time; time.sleep(60)"))
    writes = Step(name="writes", seconds=60, command=("-c", "open(r'{out}/result', 'w')"))
    codes = [run_step(step, tmp_path).exit_code for step in (fails, hangs, writes)]
    assert codes == [3, None, 0]
    assert (tmp_path / "fails.log").read_text() == "why\n"
    assert (tmp_path / "result").exists()


def test_names_and_files_are_each_their_own() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS)
    outs = [step.command[-1] for step in STEPS if step.command[-1].endswith(".json")]
    assert len(set(outs)) == len(outs)
