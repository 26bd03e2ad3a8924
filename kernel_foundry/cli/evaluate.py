"""`kfoundry evaluate`: judge one candidate and show the verdict."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.lesson_line import lesson_line
from kernel_foundry.cli.options import (
    ABOVE_ZERO,
    degenerate_option,
    device_of,
    device_option,
    json_option,
    language_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.timings import kernel_times_lines, timings_table
from kernel_foundry.cli.work_lines import work_lines
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.check import CheckKind, Trust
from kernel_foundry.domain.evaluation import (
    Evaluation,
    EvaluationOutcome,
    KernelResources,
    Setting,
    WorkloadResult,
)
from kernel_foundry.domain.finding import Finding, FindingKind, Severity, errors_first
from kernel_foundry.domain.foreign import FOREIGN_LIMITS
from kernel_foundry.domain.profile import PROFILE_SECONDS
from kernel_foundry.domain.profile_digest import digest_lines
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import BackendUnavailableError
from kernel_foundry.evidence.record import record_of, write_record
from kernel_foundry.plan.candidate_text import first_lines, split
from kernel_foundry.printable import one_line
from kernel_foundry.sdk.foreign_file import FOREIGN_ENDINGS, read_foreign
from kernel_foundry.sdk.task_file import read_task
from kernel_foundry.sdk.verdict_text import (
    arithmetic_line,
    checks_text,
    evaluation_object,
    gain_text,
    prepare_text,
    speedup_text,
    trust_text,
)
from kernel_foundry.text_file import read_text_file

_BEFORE_THE_FIRST_RUN = (
    EvaluationOutcome.PLAN_ERROR,
    EvaluationOutcome.COMPILE_ERROR,
    EvaluationOutcome.BUILT,
)
_STYLE = {Severity.INFO: "dim", Severity.WARNING: "yellow", Severity.ERROR: "red"}


@click.command()
@click.argument("task", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@device_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a TUNE value in place of its default; repeatable.",
)
@click.option(
    "--fresh-baselines",
    is_flag=True,
    help="Time the baselines again, in alternation with the candidate.",
)
@click.option(
    "--tools/--no-tools",
    "use_tools",
    default=True,
    show_default=True,
    help="Run compute-sanitizer on crashes, if it is installed.",
)
@click.option(
    "--profile",
    is_flag=True,
    help="Profile the kernels: with ncu (CUDA) or perf_event (CPU).",
)
@language_option("Refuse the candidate if it is in another language.")
@click.option(
    "--build-only",
    is_flag=True,
    help="Stop before the first launch; CUDA with --arch needs no GPU.",
)
@click.option(
    "--arch",
    "architecture",
    default="",
    metavar="SM",
    help="With --build-only: build CUDA for this architecture, such as sm_90; no GPU is needed.",
)
@click.option(
    "--listings",
    "listings_folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write PTX, and machine code where nvdisasm is found, into this folder.",
)
@click.option(
    "--record",
    "record_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the evidence record to this file if the candidate passes; see `kfoundry verify`.",
)
@click.option(
    "--build-seconds",
    type=ABOVE_ZERO,
    help="Deadline of the build (default 20; 180 for foreign kernels).",
)
@click.option(
    "--run-seconds",
    type=ABOVE_ZERO,
    help="Deadline of a checked run (default 10; 120 for foreign kernels).",
)
@degenerate_option
@json_option
@target_options
def command(
    task: Path,
    candidate: Path,
    device: str,
    settings: tuple[str, ...],
    fresh_baselines: bool,
    use_tools: bool,
    profile: bool,
    language: str | None,
    build_only: bool,
    architecture: str,
    listings_folder: Path | None,
    record_file: Path | None,
    build_seconds: float | None,
    run_seconds: float | None,
    admit_degenerate: bool,
    as_json: bool,
    **targets: Any,
) -> int:
    """Judge CANDIDATE (Markdown with a device-code and a plan block) on TASK.

    TASK is a KernelBench-format Python file, CANDIDATE for example examples/softmax.sycl.md. A
    foreign kernel is judged too: a Python file with a class ModelNew or a function custom_kernel,
    or a solution in JSON (docs/foreign.md). Exit code 0 when it passes (or is built, with
    --build-only), 1 when it does not.

    \b
    kfoundry evaluate examples/softmax.py examples/softmax.cuda.md --build-only --arch sm_90
    """  # noqa: D301  a backspace keeps click from joining the lines
    if task.suffix == ".md" and candidate.suffix == ".py":
        raise click.UsageError(
            f"the task {task} is Markdown and the candidate {candidate} is Python: did you swap"
            " TASK and CANDIDATE? TASK comes first"
        )
    if architecture and not build_only:
        raise click.UsageError(
            "add --build-only, or leave --arch out: a device has its own architecture"
        )
    if candidate.suffix in FOREIGN_ENDINGS:
        if settings or language or build_only or listings_folder or record_file or profile:
            raise click.UsageError(
                "a foreign kernel has no TUNE values, language, listings, record or profile:"
                " leave --set, --language, --build-only, --listings, --record and --profile out"
            )
        limits = EvaluationLimits(
            build_seconds=build_seconds or FOREIGN_LIMITS.build_seconds,
            run_seconds=run_seconds or FOREIGN_LIMITS.run_seconds,
        )
        source = read_foreign(candidate)
        device, targets["evaluator"] = device_of(device, targets["evaluator"])
        loaded = read_task(task, admit_degenerate=admit_degenerate)
        with work_lines(), open_foundry(**targets) as foundry:
            evaluation = foundry.evaluate_foreign(
                loaded, source, device=device, limits=limits, fresh_baselines=fresh_baselines
            )
        return _shown(evaluation, loaded, candidate, as_json=as_json)
    # Once: the file may be edited while its candidate is judged.
    text = read_text_file(candidate, LONGEST_CANDIDATE)
    if language and f"```{language}" not in text:
        raise click.BadParameter(
            f"{candidate} has no ```{language} block: add one, or leave --language out",
            param_hint="--language",
        )
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    loaded = read_task(task, admit_degenerate=admit_degenerate)
    configuration, own = _settings(settings), EvaluationLimits()
    with work_lines(), open_foundry(**targets) as foundry:
        try:
            evaluation = foundry.evaluate(
                loaded,
                text,
                device=device,
                configuration=configuration,
                fresh_baselines=fresh_baselines,
                use_tools=use_tools,
                profile_seconds=PROFILE_SECONDS if profile else None,
                build_only=build_only,
                architecture=architecture,
                with_listings=listings_folder is not None,
                limits=EvaluationLimits(
                    build_seconds=build_seconds or own.build_seconds,
                    run_seconds=run_seconds or own.run_seconds,
                ),
            )
        except BackendUnavailableError as error:
            if build_only and not architecture:
                hint = "CUDA is built without a device for an --arch such as sm_90"
                raise BackendUnavailableError(f"{error}; {hint}") from error
            raise
        if listings_folder is not None:
            _write_listings(listings_folder, candidate.name.partition(".")[0], evaluation)
        code = _shown(evaluation, loaded, candidate, as_json=as_json, text=text)
        if record_file is not None:
            _keep_record(record_file, loaded, text, evaluation)
        # Last: the library may take its time.
        if not as_json and (lesson := lesson_line(foundry, evaluation, text)):
            PrintableConsole().print(lesson, style="dim", highlight=False, soft_wrap=True)
    return code


def _shown(
    evaluation: Evaluation, task: Task, candidate: Path, *, as_json: bool, text: str = ""
) -> int:
    """Print a verdict on a candidate's text, or on a foreign kernel; return the exit code."""
    if as_json:
        print_json(evaluation_object(evaluation, task_name=task.name))
    else:
        code = split(text).device_code if evaluation.passed and text else ""
        places = partial(_place_in_file, candidate, text)
        show(PrintableConsole(), evaluation, code, place=places)
    built = evaluation.outcome is EvaluationOutcome.BUILT
    return 0 if evaluation.passed or built else 1


def _keep_record(path: Path, task: Task, text: str, evaluation: Evaluation) -> None:
    """Write the record, or report on stderr that there is none."""
    if evaluation.passed:
        write_record(record_of(task, split(text), evaluation), path)
        print_text(f"record: {path}", err=True)
    else:
        print_text("no record: only what passes is signed for", err=True)


def _write_listings(folder: Path, name: str, evaluation: Evaluation) -> None:
    """Write NAME.ptx and NAME.sass; the units of further workloads are numbered."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, int] = {}
    for listing in evaluation.compile.listings if evaluation.compile else ():
        count = written[listing.form] = written.get(listing.form, 0) + 1
        stem = name if count == 1 else f"{name}.{count}"
        (folder / f"{stem}.{listing.form}").write_text(listing.text)


def _settings(texts: tuple[str, ...]) -> tuple[Setting, ...]:
    settings = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: expected NAME=VALUE", param_hint="--set")
        settings.append(Setting(name=name.strip(), value=value.strip()))
    return tuple(settings)


def _place_in_file(candidate: Path, text: str, finding: Finding) -> str:
    """Return FILE:LINE of a finding, whose own line number counts from the start of its block."""
    if finding.line is None or (not text and candidate.suffix != ".py"):
        return ""
    before = 0
    if text:
        device_code, plan = first_lines(text)
        before = (plan if finding.kind is FindingKind.PLAN else device_code) - 1
    return f"{candidate}:{before + finding.line}: "


def show(
    console: PrintableConsole,
    evaluation: Evaluation,
    device_code: str = "",
    *,
    place: Callable[[Finding], str] = lambda _finding: "",
) -> None:
    """Print a verdict for people.

    Args:
        console: Where it is printed.
        evaluation: The verdict.
        device_code: For the lines that a profile names.
        place: Where in a file a finding is, "FILE:LINE: "; "" for one that is said by its line.
    """
    is_good = evaluation.passed or evaluation.outcome is EvaluationOutcome.BUILT
    colour = "green" if is_good else "red"
    outcome = (evaluation.outcome.name, f"bold {colour}")
    trust = (trust_text(evaluation), "yellow")
    # A text without a candidate meets no device.
    where = f" on {one_line(evaluation.device)}" if evaluation.device else ""
    console.print(Text.assemble(outcome, where, trust))
    if evaluation.passed:
        _show_timings(console, evaluation)
    if line := arithmetic_line(evaluation):
        console.print(f"arithmetic: {line}", highlight=False)
    if evaluation.compile is not None and evaluation.compile.kernels:
        _show_resources(console, evaluation.compile.kernels)
    if evaluation.profile is not None:
        _show_profile(console, digest_lines(evaluation.profile, device_code))
    for finding in errors_first(evaluation.findings):
        where = place(finding)
        block = "the plan" if finding.kind is FindingKind.PLAN else "the device code"
        line = f" (line {finding.line} of {block})" if finding.line and not where else ""
        console.print(
            f"{finding.severity.value}: {where}{finding.message}{line}",
            style=_STYLE[finding.severity],
            soft_wrap=True,
        )
        if finding.hint:
            console.print(f"  → {finding.hint}", style="dim")
    _show_checks(console, evaluation)
    if evaluation.stages:
        stages = ", ".join(f"{s.stage} {s.wall_ms:.0f}" for s in evaluation.stages)
        console.print(f"stages, ms: {stages}", style="dim")


def _show_profile(console: PrintableConsole, lines: tuple[str, ...]) -> None:
    """Print a profile, in one line if it has only one."""
    shown = (
        [f"profile: {lines[0]}"] if len(lines) == 1 else ["profile:", *(f"  {x}" for x in lines)]
    )
    for line in shown:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show_checks(console: PrintableConsole, evaluation: Evaluation) -> None:
    if not evaluation.checks:
        return
    if evaluation.trust is Trust.FOREIGN and evaluation.passed:
        for check in evaluation.checks:
            if check.kind is CheckKind.FOREIGN_CODE:
                where = f"{check.workload}: " if check.workload else ""
                console.print(f"not excluded: {where}{check.note}", style="dim", highlight=False)
    is_plain = evaluation.trust is Trust.FULL
    line = f"checks: {checks_text(evaluation.checks)}"
    if evaluation.outcome in _BEFORE_THE_FIRST_RUN:
        line += ", of its text alone"
    if evaluation.passed or not is_plain:
        line += f"; trust: {evaluation.trust.value}"
    console.print(line, style=None if is_plain else "yellow", highlight=False)


def _show_resources(console: PrintableConsole, kernels: tuple[KernelResources, ...]) -> None:
    table = Table("kernel", "registers", "shared memory", "stack", "spilled")
    for kernel in kernels:
        table.add_row(
            kernel.kernel,
            str(kernel.registers),
            f"{kernel.shared_bytes} B",
            f"{kernel.local_bytes} B",
            f"{kernel.spill_bytes} B",
        )
    console.print(table)


def _show_timings(console: PrintableConsole, evaluation: Evaluation) -> None:
    fastest = speedup_text(evaluation.speedup, evaluation.speedup_interval)
    line = f"{fastest} over the fastest baseline{gain_text(evaluation.speedup_interval)}"
    console.print(line, highlight=False)
    if any(finding.kind is FindingKind.LOADED_HOST for finding in evaluation.findings):
        console.print("the host was loaded: do not rely on these times", style="yellow")
    console.print(timings_table(evaluation, "candidate"))
    for line in kernel_times_lines(evaluation):
        console.print(line, highlight=False)
    _show_parts(console, evaluation.workloads)
    measures = evaluation.measures
    if measures is not None:
        console.print(
            f"fitness {evaluation.fitness:.3f}, cell memory {measures.memory}, "
            f"algorithm {measures.algorithm}, synchronization {measures.synchronization}"
        )


def _show_parts(console: PrintableConsole, results: tuple[WorkloadResult, ...]) -> None:
    """Print the shares of library calls, and the work of `prepare`, in a call's time."""
    for result in results:
        if result.own_share is not None:
            console.print(f"{result.workload}: {result.own_share:.0%} of the time in own kernels")
        if result.prepare_ns is not None:
            console.print(f"{result.workload}: {prepare_text(result)}")
