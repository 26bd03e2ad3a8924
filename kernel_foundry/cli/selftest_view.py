"""Output of a self-test: its `--json` object, and tables for people."""

from typing import Any

from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.table import plain_table, whole
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.domain.probe import Probe
from kernel_foundry.sdk.selftest.case import CaseResult, CaseState
from kernel_foundry.sdk.selftest.rates import Rates, rates
from kernel_foundry.sdk.selftest.run import SelfTest

_STYLE = {
    CaseState.AS_EXPECTED: "green",
    CaseState.UNEXPECTED: "red",
    CaseState.ERROR: "red",
    CaseState.NOT_RUN: "dim",
}


_CROWD = 12
"""Passed probes of one area from which on they are summarised in one line."""


def selftest_object(found: SelfTest) -> dict[str, Any]:
    """Return the `--json` object of a self-test (documented in docs/selftest.md)."""
    return {
        "passed": found.passed,
        "probes": {
            f"{probe.name}@{device.device}": {
                "passed": probe.passed,
                "detail": probe.detail,
                "figures": {f.name: to_plain(f.value) for f in probe.figures},
            }
            for device in found.devices
            for probe in device.probes
        },
        **_rates_object(found.rates),
        "languages": {
            language: _rates_object(rates(results))
            for language, results in _by_language(found).items()
        },
        "cases": [_case_object(result) for result in found.cases],
    }


def show(console: PrintableConsole, found: SelfTest) -> None:
    """Print a self-test for people."""
    for device in found.devices:
        table = plain_table("probe", "", "what happened", title=device.device)
        for probe in _shortened(device.probes):
            mark = Text("passed", "green") if probe.passed else Text("FAILED", "bold red")
            table.add_row(probe.name, mark, probe.detail)
        console.print(table)
    if found.cases:
        _show_cases(console, found.cases)
        for language, results in _by_language(found).items():
            _show_rates(console, language, rates(results))
        _show_problems(console, found.cases)
    word, style = ("all is well", "bold green") if found.passed else ("FAILED", "bold red")
    console.print(word, style=style)


def _shortened(probes: tuple[Probe, ...]) -> list[Probe]:
    """Probes with the passed ones of each crowded area as one; failed ones all stay."""
    areas: dict[str, list[Probe]] = {}
    for probe in probes:
        areas.setdefault(probe.name.rpartition(".")[0], []).append(probe)
    shown: list[Probe] = []
    for area, members in areas.items():
        passed = [probe for probe in members if probe.passed]
        if len(passed) <= _CROWD:
            shown += members
            continue
        shown += [probe for probe in members if not probe.passed]
        detail = f"{len(passed)} of {len(members)} attempts ended as expected; --json lists each"
        shown.append(Probe(name=f"{area}.*", passed=True, detail=detail))
    return shown


def _by_language(found: SelfTest) -> dict[str, tuple[CaseResult, ...]]:
    languages = sorted({result.case.language for result in found.cases})
    return {
        language.value: tuple(r for r in found.cases if r.case.language is language)
        for language in languages
    }


def _rates_object(counted: Rates) -> dict[str, Any]:
    return {
        "cheats": {
            "total": counted.cheats,
            "refused": counted.cheats - len(counted.missed),
            "missed": list(counted.missed),
        },
        "honest": {
            "total": counted.honest,
            "passed": counted.honest - len(counted.refused),
            "refused": list(counted.refused),
        },
        "detection_rate": counted.detection_rate,
        "false_alarm_rate": counted.false_alarm_rate,
        "errors": list(counted.errors),
        "not_run": list(counted.not_run),
    }


def _case_object(result: CaseResult) -> dict[str, Any]:
    case, evaluation = result.case, result.evaluation
    return {
        "name": case.name,
        "kind": "honest" if case.is_honest else "cheat",
        "language": case.language.value,
        "task": case.task.name,
        "rows": list(case.rows),
        "expected": [outcome.value for outcome in case.expectation.outcomes],
        "gain_denied": case.expectation.gain_denied,
        "state": result.state.value,
        "outcome": evaluation.outcome.value if evaluation else None,
        "trust": evaluation.trust.value if evaluation and evaluation.passed else None,
        "speedup": evaluation.speedup if evaluation else None,
        "speedup_interval": to_plain(evaluation.speedup_interval) if evaluation else None,
        "reason": result.reason,
        "rules": sorted({f.rule for f in evaluation.findings if f.rule}) if evaluation else [],
        "detail": result.detail,
        "seconds": round(result.seconds, 3),
    }


def _show_cases(console: PrintableConsole, results: tuple[CaseResult, ...]) -> None:
    table = plain_table("case", "outcome", "expected", "why", whole("time"))
    for result in results:
        outcome = result.state if result.evaluation is None else result.evaluation.outcome
        style = _STYLE[result.state]
        table.add_row(
            result.case.name,
            Text(outcome.name, style),
            _expected_text(result),
            result.reason,
            f"{result.seconds:.1f} s",
        )
    console.print(table)


def _expected_text(result: CaseResult) -> str:
    expected = result.case.expectation
    names = [outcome.name for outcome in expected.outcomes]
    return " or ".join([*names, "no gain"] if expected.gain_denied else names)


def _show_rates(console: PrintableConsole, language: str, counted: Rates) -> None:
    parts = []
    if counted.detection_rate is not None:
        caught = counted.cheats - len(counted.missed)
        parts.append(f"{caught} of {counted.cheats} cheats caught ({counted.detection_rate:.1%})")
    if counted.false_alarm_rate is not None:
        alarms = f"{len(counted.refused)} of {counted.honest} honest ones refused"
        parts.append(f"{alarms} ({counted.false_alarm_rate:.1%})")
    if counted.not_run:
        parts.append(f"{len(counted.not_run)} not run")
    if counted.errors:
        parts.append(f"{len(counted.errors)} without a verdict")
    console.print(f"{language}: {'; '.join(parts)}")


def _show_problems(console: PrintableConsole, results: tuple[CaseResult, ...]) -> None:
    for result in results:
        if result.state not in (CaseState.UNEXPECTED, CaseState.ERROR):
            continue
        reason = f" ({result.reported})" if result.reported else ""
        line = f"{result.case.name}: {result.detail}{reason}"
        console.print(line, style="red", soft_wrap=True)
