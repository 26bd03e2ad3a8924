"""The table of an evaluation's times, which fits a terminal of 80 columns."""

from rich.table import Column, Table

from kernel_foundry.cli.table import numbers, plain_table, whole
from kernel_foundry.domain.evaluation import (
    Evaluation,
    PrecisionAudit,
    speedup_interval_of,
    speedup_of,
)
from kernel_foundry.sdk.verdict_text import (
    bits_number,
    kernel_times_text,
    median_text,
    share_text,
    speedup_text,
)


def timings_table(evaluation: Evaluation, who: str) -> Table:
    """Return each workload's time, bits and shares; below it its baselines and the gain over each.

    Args:
        evaluation: Timed.
        who: What the evaluated one is called, such as "winner".
    """
    table = plain_table(
        "",
        whole("median"),
        Column("n", justify="right", no_wrap=True),
        "speed-up",
        *numbers("bits", "traffic\nbound", "arithm.\nestimate"),
        padding=0,
        caption="n: samples; share of the traffic bound and of the arithmetic estimate",
        caption_justify="left",
    )
    for result in evaluation.workloads:
        if result.timing is None:
            table.add_row(
                _name(result.workload), "correct", "", "", _bits(result.precision, "candidate")
            )
            continue
        table.add_row(_name(result.workload))
        table.add_row(
            f"  {who}",
            median_text(result.timing),
            str(len(result.timing.samples_ns)),
            "",
            _bits(result.precision, "candidate"),
            share_text(result.traffic_bound_share),
            share_text(result.arithmetic_estimate_share),
        )
        for baseline in result.baselines:
            gain = speedup_of((result,), baseline.name)
            table.add_row(
                f"  {baseline.name}",
                median_text(baseline.timing),
                str(len(baseline.timing.samples_ns)),
                speedup_text(gain, speedup_interval_of((result,), baseline.name)),
                _bits(result.precision, baseline.name),
            )
    return table


def kernel_times_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """Return how the time of each workload divides among several kernels, a line for each."""
    return tuple(
        f"{result.workload}: time per kernel: {kernel_times_text(result.kernel_times)}"
        for result in evaluation.workloads
        if result.kernel_times
    )


def _name(workload: str) -> str:
    """A workload's name, with one size on each line."""
    return workload.replace(",", ",\n")


def _bits(audit: PrecisionAudit | None, whose: str) -> str:
    """The effective bits of the candidate or of eager PyTorch; "" for others."""
    of = {"candidate": audit.effective_bits, "eager": audit.eager_bits} if audit else {}
    bits = of.get(whose)
    return "" if bits is None else bits_number(bits)
