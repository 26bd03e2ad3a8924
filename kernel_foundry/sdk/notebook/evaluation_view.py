"""A verdict as a notebook shows it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import Evaluation, WorkloadResult
from kernel_foundry.domain.finding import errors_first
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.notebook.data_frame import data_frame
from kernel_foundry.sdk.notebook.markup import collapsible, escaped, paragraph, table
from kernel_foundry.sdk.notebook.times_plot import times_plot
from kernel_foundry.sdk.verdict_text import (
    arithmetic_line,
    baselines_text,
    checks_text,
    configuration_text,
    duration,
    evaluation_object,
    headline_text,
    share_text,
    speedup_text,
    trust_text,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_FINDINGS: Final = 20


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """A verdict, and the candidate that it is on where that is known."""

    evaluation: Evaluation
    source: KernelSource | None = None

    def __repr__(self) -> str:
        """One printable line, such as "<3b1f9a02 PASSED 1.83× (1.79–1.88)>"."""
        return one_line(f"<{self.evaluation.candidate[:8]} {self._headline()}>")

    @property
    def text(self) -> str:
        """The candidate's Markdown text, which `evaluate` reads; empty where it is not known."""
        return "" if self.source is None else render(self.source)

    def to_pandas(self) -> "DataFrame":
        """Return the figures of each workload as a data frame, one row for each; times in ns.

        Columns are those of the workloads in `kfoundry evaluate --json` that are one number or
        word, bounds of intervals, and each baseline's median as `NAME_ns`.

        Raises:
            PackageMissingError: pandas is not installed.
        """
        rows = []
        for workload in evaluation_object(self.evaluation, task_name="")["workloads"]:
            row = {
                name: value
                for name, value in workload.items()
                if name.endswith("_interval") or not isinstance(value, list | dict)
            }
            row["median_interval"] = workload["ci95_ns"]
            rows.append(row | {f"{b}_ns": ns for b, ns in workload["baselines"].items()})
        return data_frame(rows, index="workload")

    def plot(self) -> str:
        """Return the times of candidate and baselines as SVG; empty where none was timed."""
        return times_plot(self.evaluation.workloads)

    def _repr_html_(self) -> str:
        evaluation = self.evaluation
        findings = errors_first(evaluation.findings)
        facts = [
            evaluation.device,
            configuration_text(evaluation.configuration),
            arithmetic_line(evaluation),
            checks_text(evaluation.checks),
        ]
        parts = [
            f"<p><strong>{escaped(self._headline())}</strong> "
            f"{escaped(evaluation.candidate[:8])}</p>",
            paragraph(" · ".join(fact for fact in facts if fact)),
        ]
        if evaluation.workloads:
            parts += [table(_COLUMNS, map(_row, evaluation.workloads)), self.plot()]
        if findings:
            rows = [
                (f.severity.value, f.kind.value, str(f.line or ""), f.message, f.hint)
                for f in findings[:_MOST_FINDINGS]
            ]
            parts.append(table(("", "finding", "line", "message", "hint"), rows))
        if evaluation.profile is not None:
            code = "" if self.source is None else self.source.device_code
            parts += map(paragraph, digest_lines(evaluation.profile, code))
        if self.source is not None:
            parts.append(
                collapsible(f"device code ({self.source.language.value})", self.source.device_code)
            )
            parts.append(collapsible("launch plan", self.source.plan))
        return "".join(parts)

    def _headline(self) -> str:
        evaluation = self.evaluation
        if not evaluation.passed:
            return evaluation.outcome.name
        gain = headline_text(evaluation.speedup, evaluation.speedup_interval)
        return f"{evaluation.outcome.name} {gain}{trust_text(evaluation)}"


_COLUMNS: Final = ("workload", "median", "95 % interval", "speed-up", "traffic bound", "baselines")


def _row(result: WorkloadResult) -> tuple[str, ...]:
    name = f"{result.workload} (held out)" if result.held_out else result.workload
    lower, median, upper = result.call_bounds_ns or (None, None, None)
    return (
        name,
        duration(median),
        f"{duration(lower)} – {duration(upper)}",
        speedup_text(result.speedup, result.speedup_interval),
        share_text(result.traffic_bound_share),
        baselines_text(result.baselines),
    )
