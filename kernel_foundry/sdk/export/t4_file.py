"""A winner's verdict as a T4 result: the exchange format of autotuners."""

import json

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.sweep import (
    ConfigurationResult,
    ConfigurationTimes,
    ConfigurationTiming,
    Validity,
)
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.sdk.report.t4 import t4_results


def t4_file(_text: str, winner: Winner, /, *, module: str, problem: str) -> str:
    """Return the verdict on a winner: its configuration, times in ms, speed-up and resources."""
    del module, problem
    result = _result(winner.record.evaluation, winner.record.attestation.signed_unix_s)
    return json.dumps(t4_results([result]), indent=1, allow_nan=False) + "\n"


def _result(evaluation: Evaluation, finished_unix_s: float) -> ConfigurationResult:
    taken: dict[str, float] = {}
    for stage in evaluation.stages:
        taken[stage.stage] = taken.get(stage.stage, 0.0) + stage.wall_ms
    compiled = evaluation.compile
    return ConfigurationResult(
        configuration=evaluation.configuration,
        validity=Validity.CORRECT,
        outcome=evaluation.outcome,
        times=ConfigurationTimes(
            compile_ms=compiled.compile_ns * 1e-6 if compiled else 0.0,
            verification_ms=taken.get("correctness", 0.0),
            benchmark_ms=taken.get("timing", 0.0),
        ),
        timings=tuple(
            ConfigurationTiming(
                workload=result.workload, timing=result.timing, weight=result.weight
            )
            for result in evaluation.workloads
            if result.timing is not None
        ),
        speedup=evaluation.speedup,
        resources=compiled.kernels if compiled else (),
        finished_unix_s=finished_unix_s,
        total=1,
    )
