"""Exports the winners of runs: a file or a folder, tested before it is written."""

import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.speedup import TimeBounds
from kernel_foundry.domain.task import Size
from kernel_foundry.errors import ExportRefusedError, InvalidArgumentError
from kernel_foundry.exported_form import (
    FormReport,
    FormRequest,
    FormResult,
    FormWorkload,
)
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.export.backward import BackwardPass, backward_pass
from kernel_foundry.sdk.export.targets import TARGETS, Target
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner, winner_of_run
from kernel_foundry.sdk.local.evaluator import try_exported_form
from kernel_foundry.whole_file import replace_file, writing

MOST_SLOWER: Final = 1.05
"""A file whose launches take longer than the verdict's times this is not handed out; of a CUDA
graph of a whole call it is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedWorkload:
    """An exported file on one workload; times are nanoseconds."""

    result: FormResult
    verdict_ns: TimeBounds | None
    """Median of the verdict with warm caches, between its bounds; None when not timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedWorkload:
    """A workload that was judged and that the exported file does not serve."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """A tested export."""

    text: str
    """Of the file that is handed out; of a folder: of the Python file that was tried for it."""
    workloads: tuple[ExportedWorkload, ...]
    report: FormReport
    backward: tuple[ExportedWorkload, ...] = ()
    """Its backward pass on the workloads of that."""
    left_out: tuple[OmittedWorkload, ...] = ()
    """What was judged and not tried, as the file cannot serve it; of the backward pass as well."""
    folder: Mapping[str, str] = field(default_factory=dict)
    """The files of a folder by their paths; empty where one file is handed out."""


def export_runs(
    foundry: Foundry,
    runs: Sequence[str],
    *,
    module: str,
    backward: Sequence[str] = (),
    target: str = "torch",
    problem: str = "",
) -> ExportResult:
    """Return the winners of runs as one file that was tried in a fresh process.

    Args:
        foundry: Where the runs are stored, and what builds and judges.
        runs: Names of runs of one task, those first whose kernels are preferred; "" is the newest.
        module: Name that the file will be imported by, or of the folder.
        backward: Names of runs whose task is the gradient of that task: their kernels compute
            gradients. Without them the reference does.
        target: Its form, one of `TARGETS`.
        problem: What the task is called where the file goes; "" is its own name.

    Raises:
        ExportRefusedError: the file is wrong, or slower than what was judged; the message says
            where.
        InvalidArgumentError: no file can hold these runs, and why.
        RunNotFoundError, EliteNotFoundError, BackendUnavailableError: as `winner_of_run`.
    """
    if not module.isidentifier() or keyword.iskeyword(module):
        raise InvalidArgumentError(
            f"{module!r} cannot be imported: choose a file name of letters, digits and _",
            field="out",
        )
    if not problem.isprintable():
        raise InvalidArgumentError(
            f"{problem!r} is not a problem name: it has line breaks or control characters",
            field="problem",
        )
    form = TARGETS[target]
    winners = [winner_of_run(foundry, run) for run in runs]
    found = None
    if backward:
        if form.source is not torch_file:
            raise InvalidArgumentError(
                f"{target} calls no backward pass: use --to torch, hf or vllm", field="backward"
            )
        found = backward_pass(winners[0], [winner_of_run(foundry, run) for run in backward])
    write = partial(torch_file, backward=found) if found else form.source
    container = container_of(form, write(winners, module), winners)
    winners = [replace(winner, container=container) for winner in winners]
    text = write(winners, module)
    name = problem or winners[0].record.task.name
    folder = form.folder(text, winners, module=module, problem=name) if form.folder else {}
    packed = form.packed(text, winners[0], module=module, problem=name)
    exported = checked_file(foundry, form, text, winners, found)
    reference = winners[0].record.task.reference
    missing = _left_out(winners, reference, exported.workloads)
    missing += _left_out(found.winners if found else (), reference, exported.backward, "backward, ")
    return replace(exported, text=packed, folder=folder, left_out=missing)


def _left_out(
    winners: Sequence[Winner],
    reference: str,
    tried: Sequence[ExportedWorkload],
    prefix: str = "",
) -> tuple[OmittedWorkload, ...]:
    found = {name: why for w in winners for name, why in w.left_out(reference).items()}
    for workload in tried:
        found.pop(workload.result.name, None)
    return tuple(OmittedWorkload(name=f"{prefix}{name}", reason=why) for name, why in found.items())


def checked_file(
    foundry: Foundry,
    form: Target,
    text: str,
    winners: Sequence[Winner],
    backward: BackwardPass | None = None,
) -> ExportResult:
    """Return the Python text of an export with what came out of trying it.

    Raises:
        ExportRefusedError: it is wrong, or slower than what was judged; the message says where.
    """
    report = _tried(form, text, winners, backward)
    others = backward.winners if backward else ()
    exported = compared(text, report, *_verdicts(lambda w: w.record.evaluation, winners, others))
    if too_slow(exported):
        # The verdict may be of a quieter minute: both once more.
        again = _verdicts(lambda w: _judged_again(foundry, w), winners, others)
        exported = compared(text, _tried(form, text, winners, backward), *again)
    if slow := too_slow(exported):
        raise ExportRefusedError(f"the exported file is slower than what was judged: {slow}")
    return exported


def container_of(form: Target, text: str, winners: Sequence[Winner]) -> str:
    """Return what the reference in a file returns its results in, which only a call tells."""
    first = [replace(workload, is_timed=False) for workload in form_workloads(winners)[:1]]
    return try_exported_form(_request(form, text, winners, first)).container


def _verdicts(
    of: Callable[[Winner], Evaluation], *winners: Sequence[Winner]
) -> list[list[Evaluation]]:
    return [[of(winner) for winner in group] for group in winners]


def _tried(
    target: Target, text: str, winners: Sequence[Winner], backward: BackwardPass | None
) -> FormReport:
    request = _request(target, text, winners, form_workloads(winners))
    if backward:
        reference = winners[0].record.task.reference
        request = replace(
            request,
            backward=form_workloads(backward.winners, reference),
            is_backward_scaled=backward.winners[0].record.task.tolerance is None,
        )
    report = try_exported_form(request)
    both = (*report.results, *report.backward)
    wrong = [f"{result.name}: {result.failure}" for result in both if result.failure]
    if wrong:
        raise ExportRefusedError(f"the exported file fails: {'; '.join(wrong)}")
    return report


def _request(
    target: Target, text: str, winners: Sequence[Winner], workloads: Sequence[FormWorkload]
) -> FormRequest:
    first = winners[0]
    task = first.record.task
    device = first.admission.device.id
    return FormRequest(
        text=text,
        device="cpu" if first.record.source.language is Language.SYCL else device,
        is_scaled=task.tolerance is None,
        workloads=tuple(workloads),
        entry=target.entry,
        check=task.check,
        compare=task.compare,
    )


def compared(
    text: str,
    report: FormReport,
    verdicts: Sequence[Evaluation],
    of_backward: Sequence[Evaluation] = (),
) -> ExportResult:
    """Return a file with what came out of trying it, beside the times of verdicts."""
    return ExportResult(
        text=text,
        workloads=_beside(report.results, verdicts),
        report=report,
        backward=_beside(report.backward, of_backward),
    )


def _beside(
    results: Sequence[FormResult], verdicts: Sequence[Evaluation]
) -> tuple[ExportedWorkload, ...]:
    times = {
        result.workload: result.warm_timing.bounds_ns
        for verdict in reversed(verdicts)
        for result in verdict.workloads
        if result.warm_timing is not None
    }
    return tuple(
        ExportedWorkload(result=result, verdict_ns=times.get(result.name)) for result in results
    )


def form_workloads(winners: Sequence[Winner], reference: str = "") -> tuple[FormWorkload, ...]:
    """Return what a file is tried on: all that its kernels were judged on and it has code for.

    Args:
        winners: Of one task.
        reference: That the file has; "" is that of the task.
    """
    found: dict[str, FormWorkload] = {}
    for winner in winners:
        in_python = winner.in_python(reference or winner.record.task.reference)
        known = {workload.workload for workload in in_python}
        for workload in winner.built:
            if workload.workload in found or workload.workload not in known:
                continue
            sizes = winner.sizes(workload).items()
            found[workload.workload] = FormWorkload(
                name=workload.workload,
                sizes=tuple(Size(name=name, value=value) for name, value in sizes),
                is_timed=not workload.held_out,
                tolerance=winner.record.task.tolerance_of(
                    workload.workload, winner.admission.tolerance
                ),
            )
    return tuple(found.values())


def too_slow(exported: ExportResult, *, limit: float = MOST_SLOWER) -> str:
    """Return which workloads take longer than judged, beyond doubt; "" for none.

    Args:
        exported: The file.
        limit: Times the verdict's upper bound that the lower bound of the file's time may be.
    """
    slow = []
    for workload in (*exported.workloads, *exported.backward):
        found, judged = workload.result.kernels_ns, workload.verdict_ns
        if found is not None and judged is not None and found[0] > limit * judged[2]:
            times = f"{found[1] / 1e3:.1f} µs, judged {judged[1] / 1e3:.1f} µs"
            slow.append(f"{workload.result.name}: {times}")
    return "; ".join(slow)


def slow_graphs(exported: ExportResult) -> tuple[str, ...]:
    """Return which workloads take longer as a CUDA graph than judged, each with why."""
    slow = []
    for workload in exported.workloads:
        result, judged = workload.result, workload.verdict_ns
        if result.graph_ns is None or judged is None or result.graph_ns <= MOST_SLOWER * judged[2]:
            continue
        why = "a captured call writes new results, and the verdict's always the same ones"
        if result.fixed_graph_ns is not None:
            why = (
                "each replay lays the weights out again; captured within fixed_weights(), which"
                f" promises that they do not change, it takes {result.fixed_graph_ns / 1e3:.1f} µs"
            )
        times = f"{result.graph_ns / 1e3:.1f} µs, judged {judged[1] / 1e3:.1f} µs"
        slow.append(f"{result.name} as a CUDA graph: {times}: {why}")
    return tuple(slow)


def _judged_again(foundry: Foundry, winner: Winner) -> Evaluation:
    evaluation = winner.record.evaluation
    return foundry.evaluate(
        winner.record.task,
        winner.record.source,
        device=evaluation.device.partition(":")[0],
        configuration=evaluation.configuration,
    )


def write_exported(exported: ExportResult, path: Path) -> None:
    """Write an exported file, or the files of a folder, which may be there already.

    Raises:
        InvalidArgumentError: it cannot be written there.
    """
    with writing(path, field="out"):
        if not exported.folder:
            path.write_text(exported.text, encoding="utf-8")
        for name, text in exported.folder.items():
            file = path / name
            for folder in file.parents[: len(Path(name).parts) - 1]:
                if folder.is_symlink():
                    raise InvalidArgumentError(f"{folder} is a link", field="out")
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, text)
