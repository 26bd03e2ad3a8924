"""Stage correctness: the candidate's runs and the judge's verdict on them.

Where memory is short one seed follows the other in one shared buffer, and every run is judged
before the next one begins.
"""

from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.draw import RUN_COUNT
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.runner_calls import DrawnInputs, failure_of, run
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess


def run_and_judge(
    process: ChildProcess,
    judge: JudgeClient,
    drawn: DrawnInputs,
    *,
    seed_count: int,
    seconds: float,
) -> RunComparison | CandidateFailure:
    """Run the candidate on every seed; return the verdict.

    Of a lean draw one seed follows the other, up to the first wrong run.
    """
    if drawn.draw.is_lean:
        return _seed_by_seed(process, judge, drawn, seed_count=seed_count, seconds=seconds)
    ran = run(process, drawn, seconds=seconds)
    return ran if isinstance(ran, CandidateFailure) else judge.verify(drawn.draw.draw)


def _seed_by_seed(
    process: ChildProcess,
    judge: JudgeClient,
    drawn: DrawnInputs,
    *,
    seed_count: int,
    seconds: float,
) -> RunComparison | CandidateFailure:
    # Ends with the first seed, whose inputs lie in the buffer from then on.
    handle, workload = drawn.draw.draw, drawn.draw.workload
    for seed in reversed(range(seed_count)):
        if seed < seed_count - 1:  # the last one is there already
            judge.load_seed(handle, seed)
        for index in range(RUN_COUNT):
            if index:
                judge.poison(handle)
            ran = run(process, drawn, seconds=seconds, refilled=not index)
            if isinstance(ran, CandidateFailure):
                return ran
            verdict = judge.verify(handle)
            if failure_of(verdict, workload) is not None:
                return verdict
    return verdict
