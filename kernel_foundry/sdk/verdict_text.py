"""Verdicts as output: the `--json` object of an evaluation, and texts for people."""

import math
from typing import Any

from kernel_foundry.domain.archive import ArchiveStats
from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.check import Check, CheckResult, Trust
from kernel_foundry.domain.evaluation import (
    LEAST_ERROR,
    Baseline,
    Evaluation,
    PrecisionAudit,
    Setting,
    Timing,
    WorkloadResult,
)
from kernel_foundry.domain.finding import errors_first, headline
from kernel_foundry.domain.kernel_time import KernelTime, shares
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.quantity_text import counted, uncertainty_text


def evaluation_object(evaluation: Evaluation, *, task_name: str) -> dict[str, Any]:
    """Return the `--json` object of an evaluation (documented in docs/cli.md)."""
    least = evaluation.precision
    return {
        "outcome": evaluation.outcome.name,
        "task": task_name,
        "candidate": evaluation.candidate,
        "language": evaluation.device.partition(":")[0],
        "device": evaluation.device,
        "configuration": {s.name: s.value for s in evaluation.configuration},
        "speedup": evaluation.speedup,
        "speedup_interval": to_plain(evaluation.speedup_interval),
        "speedup_eager": evaluation.speedup_eager,
        "speedup_eager_interval": to_plain(evaluation.speedup_eager_interval),
        "effective_bits": least.effective_bits if least else None,
        "eager_bits": least.eager_bits if least else None,
        "arithmetic": evaluation.arithmetic,
        "fitness": evaluation.fitness,
        "measures": to_plain(evaluation.measures),
        "launches": to_plain(evaluation.launches),
        "workloads": [_workload_object(w) for w in evaluation.workloads],
        "findings": [
            {
                "kind": f.kind.value,
                "severity": f.severity.value,
                "message": f.message,
                "line": f.line,
                "evidence": {e.name: to_plain(e.value) for e in f.evidence},
                "hint": f.hint,
                "rule": f.rule,
            }
            for f in errors_first(evaluation.findings)
        ],
        "profile": to_plain(evaluation.profile),
        "compile": to_plain(evaluation.compile),
        "stages_ms": {s.stage: round(s.wall_ms, 3) for s in evaluation.stages},
        "evidence": {f.name: f.value for f in evaluation.evidence},
        "trust": evaluation.trust.value,
        "checks": [_check_object(c) for c in evaluation.checks],
        "attestation": _attestation_object(evaluation.attestation),
    }


def _check_object(check: Check) -> dict[str, Any]:
    return {
        "kind": check.kind.value,
        "result": check.result.value,
        "workload": check.workload,
        "figures": {e.name: to_plain(e.value) for e in check.figures},
        "note": check.note,
    }


def _attestation_object(attestation: Attestation | None) -> dict[str, Any] | None:
    if attestation is None:
        return None
    return {
        "digest": attestation.digest,
        "signature": attestation.signature,
        "public_key": attestation.public_key,
        "key_fingerprint": fingerprint(attestation.public_key),
        "signed_unix_s": attestation.signed_unix_s,
        "seeds": {s.workload: list(s.seeds) for s in attestation.seeds},
        "seeds_given": attestation.seeds_given,
    }


def _workload_object(result: WorkloadResult) -> dict[str, Any]:
    timing = result.timing
    return {
        "workload": result.workload,
        "held_out": result.held_out,
        "correctness": to_plain(result.correctness),
        "median_ns": timing.median_ns if timing else None,
        "ci95_ns": to_plain(timing.ci95_ns) if timing else None,
        "samples": len(timing.samples_ns) if timing else 0,
        "samples_ns": to_plain(timing.samples_ns) if timing else [],
        "stop_reason": timing.stop_reason.value if timing else None,
        "warm_median_ns": result.warm_timing.median_ns if result.warm_timing else None,
        "baselines": {b.name: b.timing.median_ns for b in result.baselines},
        "baselines_ci95_ns": {b.name: to_plain(b.timing.ci95_ns) for b in result.baselines},
        "speedup": result.speedup,
        "speedup_interval": to_plain(result.speedup_interval),
        "weight": result.weight,
        "traffic_bound_ns": result.traffic_bound_ns,
        "traffic_bound_share": result.traffic_bound_share,
        "arithmetic_estimate_ns": result.arithmetic_estimate_ns,
        "arithmetic_estimate_share": result.arithmetic_estimate_share,
        "own_share": result.own_share,
        "prepare_ns": result.prepare_ns,
        "prepare_limit_ns": result.prepare_limit_ns,
        "prepare_counted_in": result.charged_prepare_ns > 0,
        "call_ns": to_plain(result.call_bounds_ns),
        "kernel_times": to_plain(result.kernel_times),
        "yardstick_ns": result.yardstick_ns,
        "yardstick_given": result.yardstick_given,
        "speedup_prepared_once": result.speedup_prepared_once,
        "discarded_samples": timing.discarded_count if timing else 0,
        "clocks": to_plain(timing.clocks) if timing else [],
    }


def verdict_text(candidate: Candidate, evaluation: Evaluation) -> str:
    """Return one line: "1a2b3c4d PASSED 1.72 ms 1.83× 22.4 bits cell (2, 1, 0)", or an error."""
    text = f"{candidate.digest[:8]} {evaluation.outcome.name}"
    if evaluation.passed:
        medians = [w.call_bounds_ns[1] for w in evaluation.workloads if w.call_bounds_ns]
        gain = speedup_text(evaluation.speedup, evaluation.speedup_interval)
        text += f" {', '.join(duration(m) for m in medians)} {gain}"
        audit = evaluation.precision
        text += f" {bits_number(audit.effective_bits, ' bits')}" if audit else ""
        text += f" cell {evaluation.measures.cell}" if evaluation.measures else ""
        text += trust_text(evaluation)
    elif evaluation.findings:
        text += f": {headline(evaluation.findings)[:120]}"
    return text


def prepare_text(result: WorkloadResult) -> str:
    """Return "prepare 90 µs, not counted; 1.2× with it once", or that it is counted in."""
    if result.charged_prepare_ns:
        took, limit = duration(result.prepare_ns), duration(result.prepare_limit_ns)
        return f"prepare counted in: it takes {took} where layout takes {limit} at most"
    once = speedup_text(result.speedup_prepared_once)
    return f"prepare {duration(result.prepare_ns)}, not counted; {once} with it once"


def bits_text(audit: PrecisionAudit | None) -> str:
    """Return effective bits beside those of eager PyTorch: "17.8 (eager 22.9)"."""
    if audit is None:
        return "–"
    eager = "" if audit.eager_bits is None else f" (eager {bits_number(audit.eager_bits)})"
    return f"{bits_number(audit.effective_bits)}{eager}"


def bits_number(bits: float, unit: str = "") -> str:
    """Return effective bits for people: "22.4"; "exact" for all 53 that an audit measures."""
    return "exact" if bits >= -math.log2(LEAST_ERROR) else f"{bits:.1f}{unit}"


def kernel_times_text(times: tuple[KernelTime, ...]) -> str:
    """Return "split 2 × 12 µs (2 %), product 1 × 1.2 ms (98 %)": launches, mean, share."""
    return ", ".join(
        f"{time.kernel} {time.launches} × {duration(time.launch_ns)} ({share_text(share)})"
        for time, share in zip(times, shares(times), strict=True)
    )


def arithmetic_line(evaluation: Evaluation) -> str:
    """Return how a candidate computes and its fewest effective bits; empty: neither is known."""
    worst = evaluation.least_exact
    parts = [evaluation.arithmetic] if evaluation.arithmetic else []
    if worst is not None:
        parts.append(f"{bits_text(worst.precision)} effective bits on {worst.workload}")
    return "; ".join(parts)


def count_text(stats: ArchiveStats) -> str:
    """Return the one count of a run: "19 evaluations: 12 candidates, 7 measured again"."""
    again = stats.evaluation_count - stats.candidate_count
    text = counted(stats.evaluation_count, "evaluation")
    if not again:
        return text
    return f"{text}: {counted(stats.candidate_count, 'candidate')}, {again} measured again"


def checks_text(checks: tuple[Check, ...]) -> str:
    """Return one line: "14 passed, 1 failed (comparison on n=7), 1 skipped"; "": there are none."""
    counted = []
    for result in CheckResult:
        of_result = [c for c in checks if c.result is result]
        if not of_result:
            continue
        text = f"{len(of_result)} {result.value}"
        if result in (CheckResult.SUSPECT, CheckResult.FAILED):
            names = dict.fromkeys(_place(check) for check in of_result)
            text += f" ({', '.join(names)})"
        counted.append(text)
    return ", ".join(counted)


def _place(check: Check) -> str:
    on_workload = f" on {check.workload}" if check.workload else ""
    return check.kind.value.replace("_", " ") + on_workload


def duration(nanoseconds: float | None) -> str:
    """Return a time for people: "1.72 ms"."""
    if nanoseconds is None or not math.isfinite(nanoseconds):
        return "–"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def share_text(value: float | None) -> str:
    """Return a share of a bound or an estimate for people: "83 %"."""
    return "–" if value is None else f"{100 * value:.0f} %"


def speedup_text(value: float | None, interval: tuple[float, float] | None = None) -> str:
    """Return a speed-up for people, with its interval: "1.83× (1.79–1.88)".

    Where the interval contains 1 that comes first: "no clear gain: 1.02× (0.97–1.08)".
    """
    if value is None:
        return "–"
    is_unclear = interval is not None and interval[0] <= 1.0 <= interval[1]
    return f"{'no clear gain: ' if is_unclear else ''}{value:.2f}×{interval_text(interval)}"


def interval_text(interval: tuple[float, float] | None) -> str:
    """Return the interval of a speed-up behind it: " (1.79–1.88)"."""
    return f" ({interval[0]:.2f}–{interval[1]:.2f})" if interval else ""


def gain_text(interval: tuple[float, float] | None) -> str:
    """Return a note if the interval shows no clear gain, else ""."""
    if interval is None or interval[0] <= 1.0 <= interval[1]:
        return ""
    if interval[1] < 1.0:
        return ": slower"
    return f": no more than {interval[0]:.2f}× is sure" if interval[1] > 2 * interval[0] else ""


def headline_text(value: float | None, interval: tuple[float, float] | None) -> str:
    """Return a run's speed-up for its headline, with a note if no gain is certain."""
    return speedup_text(value, interval) + gain_text(interval)


def trust_text(evaluation: Evaluation) -> str:
    """Return the caveats of a passed verdict: ", trust: suspect, prepare counted in"."""
    parts = []
    if evaluation.passed and evaluation.trust is not Trust.FULL:
        parts.append(f"trust: {evaluation.trust.value}")
    if any(result.charged_prepare_ns for result in evaluation.workloads):
        parts.append("prepare counted in")
    return "".join(f", {part}" for part in parts)


def winner_text(evaluation: Evaluation) -> str:
    """Return a winner's gain and configuration: "winner: 1.83× (1.79–1.88) over …"."""
    fastest = speedup_text(evaluation.speedup, evaluation.speedup_interval)
    gain = gain_text(evaluation.speedup_interval)
    eager = speedup_text(evaluation.speedup_eager, evaluation.speedup_eager_interval)
    text = f"winner: {fastest} over the fastest baseline{gain}; {eager} over eager"
    text += trust_text(evaluation)
    if evaluation.configuration:
        text += f", with {configuration_text(evaluation.configuration)}"
    return text


def configuration_text(configuration: tuple[Setting, ...]) -> str:
    """Return a configuration for people: "BLOCK=128 VEC=4"."""
    return " ".join(f"{s.name}={s.value}" for s in configuration) or "(no TUNE)"


def baselines_text(baselines: tuple[Baseline, ...]) -> str:
    """Return baselines with their scatter: "eager 1.72 ms ±0.8 %, torch.compile 1.1 ms ±2 %"."""
    return ", ".join(f"{b.name} {median_text(b.timing)}" for b in baselines)


def median_text(timing: Timing) -> str:
    """Return a median with half of its interval: "1.72 ms ±0.8 %"."""
    return f"{duration(timing.median_ns)} {uncertainty_text(*timing.bounds_ns)}"


def timing_text(timing: Timing) -> str:
    """Return a median with its interval: "1.72 ms (±0.8 %, 34 samples)"."""
    half = uncertainty_text(*timing.bounds_ns)
    return f"{duration(timing.median_ns)} ({half}, {counted(len(timing.samples_ns), 'sample')})"
