"""`kfoundry suite run`: run a suite, continue one, or estimate its cost and time."""

import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.main import EXIT_NOTHING_CORRECT
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.optimize import StopShare
from kernel_foundry.cli.options import (
    ABOVE_ZERO,
    json_option,
    language_option,
    model_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.cli.suite_live import LiveSuite, PlainSuite, estimate_text
from kernel_foundry.cli.suite_show import show_numbers
from kernel_foundry.domain.archive import STRATEGY_NAMES
from kernel_foundry.domain.mechanisms import MECHANISMS
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.errors import KernelFoundryError
from kernel_foundry.paths import suites_path
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.loop.budget import DEFAULT_EVALUATIONS
from kernel_foundry.sdk.services import Services, Targets
from kernel_foundry.sdk.suite.entry import EntryState, entries_of
from kernel_foundry.sdk.suite.estimate import SuiteEstimate, estimated, pace_of
from kernel_foundry.sdk.suite.plan import SuitePlan, WholeBudget, read_plan, start_place
from kernel_foundry.sdk.suite.results import results_of
from kernel_foundry.sdk.suite.starting_points import check_start_from
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sdk.suite.suite_run import devices_of, run_suite
from kernel_foundry.sdk.suite.summary import summary_of
from kernel_foundry.sdk.suite.tables import suite_object


@click.command("run")
@click.argument("source", required=False, type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the suite.  [default: SOURCE's, with the time]")
@click.option(
    "--resume",
    is_flag=True,
    help="Continue --name, or the newest suite, with its plan. Only the options --total-… have an "
    "effect: they replace its budget.",
)
@click.option("--retry", is_flag=True, help="With --resume: retry refused and failed runs.")
@click.option("--estimate", is_flag=True, help="Show the expected cost and time; start nothing.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    help="Device such as cuda:0, or cuda for all of that kind; repeatable. As many tasks are in "
    "progress as there are devices.  [default: those that run the language]",
)
@language_option("Language of the kernels.  [default: that of --device, else sycl]")
@model_option
@click.option(
    "--evaluations",
    type=click.IntRange(min=1),
    help="Most evaluations of each run.  "
    f"[default: {DEFAULT_EVALUATIONS}, unless minutes or USD are given]",
)
@click.option("--minutes", type=ABOVE_ZERO, help="Most minutes of each run.")
@click.option("--usd", type=ABOVE_ZERO, help="Most that the models of one run may cost.")
@click.option("--tokens", type=click.IntRange(min=1), help="Most tokens of each run, in and out.")
@click.option("--total-usd", type=ABOVE_ZERO, help="Most that the models of all runs may cost.")
@click.option("--total-tokens", type=click.IntRange(min=1), help="Most tokens of all runs.")
@click.option("--total-hours", type=ABOVE_ZERO, help="Most hours of the suite.")
@click.option("--stop-at", type=StopShare(), metavar="SHARE|never", help="As for `optimize`.")
@click.option("--repeats", type=click.IntRange(min=1), help="Runs of each task.  [default: 1]")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the first.  [default: 0]")
@click.option("--strategy", type=click.Choice(STRATEGY_NAMES), help="As for `optimize`.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(MECHANISMS),
    help="Switch off a mechanism, as for `optimize`; repeatable.",
)
@click.option(
    "--from",
    "start_from",
    multiple=True,
    metavar="FOLDER|FILE|SUITE",
    help="Start each task from the files in FOLDER that have its name (TASK.md, TASK.cu, "
    "TASK.json, TASK/…), from its kernel in a file that `suite judge` takes (.json, .jsonl), or "
    "from its winners in another suite, as `optimize --from` does; repeatable.",
)
@click.option(
    "--requests-per-minute", type=click.IntRange(min=1), help="Most requests of each run to models."
)
@json_option
@target_options
def run_command(
    source: Path | None,
    name: str,
    resume: bool,
    retry: bool,
    estimate: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Optimise every task of SOURCE: a folder of task files, or a plan in YAML.

    \b
    kfoundry suite run tasks --evaluations 40
    kfoundry suite run plan.yaml --total-usd 50 --total-hours 12 --estimate
    kfoundry suite run --resume

    Keys of a plan: tasks, devices, language, models, each and whole (budgets of a run and of all),
    repeats, seed and more (docs/suites.md). Options here replace them. A run gets an equal share
    of what is left of the total; later runs get what earlier ones did not use.

    Ctrl-C and kills are safe: --resume continues, and nothing is judged twice. Tasks that trivial
    answers pass are judged, too, and reported separately. The exit code is 1 if a run was refused,
    failed or had no budget left.
    """  # noqa: D301  a backspace keeps click from joining the lines
    if (source is None) == (not resume):
        raise click.UsageError("give SOURCE, or --resume to go on with a suite")
    if retry and not resume:
        raise click.UsageError("--retry needs --resume")
    targets = {field.name: given.pop(field.name) for field in fields(Targets)}
    whole = {key: given.pop(f"total_{key}") for key in ("usd", "tokens", "hours")}
    with closing(SuiteStore(suites_path())) as suites, open_foundry(**targets) as foundry:
        if source is not None:
            plan = read_plan(source, name, **_settings(given, whole))
            if estimate:
                return _show_estimate(foundry, plan, len(entries_of(plan)), as_json=as_json)
            check_start_from(plan.start_from, suites)
            suite = suites.create(plan)
        else:
            suite = suites.find(name)
            plan = replace(suite.plan, whole=_more(suite.plan.whole, whole))
            if retry:
                suite.begin_again()
            if estimate:
                left = sum(not entry.has_ended for entry in suite.entries)
                return _show_estimate(foundry, plan, left, as_json=as_json)
            suites.replace_plan(suite, plan)
        _make(foundry, suites, suite, as_json=as_json)
        return _finish(foundry, suite, as_json=as_json)


def _settings(given: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Options as arguments of `read_plan`; models of the environment yield to the plan's."""
    values = dict(given)
    each = {key: values.pop(key) for key in ("evaluations", "minutes", "usd", "tokens")}
    of_source = click.get_current_context().get_parameter_source("models")
    models = values.pop("models")
    defaults = {"models": list(models)} if models else {}
    values["from"] = [start_place(name, Path(name)) for name in values.pop("start_from")]
    replaced = {key: value for key, value in values.items() if value}
    if models and of_source is ParameterSource.COMMANDLINE:
        replaced["models"] = list(models)
    for key, group in (("each", each), ("whole", whole)):
        kept = {name: value for name, value in group.items() if value is not None}
        if kept:
            replaced[key] = kept
    return {"given": replaced, "defaults": defaults}


def _more(kept: WholeBudget, given: Mapping[str, Any]) -> WholeBudget:
    return WholeBudget(
        cost_usd=kept.cost_usd if given["usd"] is None else given["usd"],
        tokens=kept.tokens if given["tokens"] is None else given["tokens"],
        hours=kept.hours if given["hours"] is None else given["hours"],
    )


def _make(foundry: Foundry, suites: SuiteStore, suite: Suite, *, as_json: bool) -> None:
    is_live = sys.stderr.isatty() and not as_json
    progress = LiveSuite(suite) if is_live else PlainSuite(suite)
    try:
        with progress:
            foundry.with_services(lambda services: run_suite(services, suites, suite, progress.on))
    except (KernelFoundryError, KeyboardInterrupt):
        words = f"suite run --resume --name {suite.plan.name}"
        command = as_called(words)
        print_text(f"suite {suite.plan.name} is stored: `{command}` continues it", err=True)
        raise


def _show_estimate(foundry: Foundry, plan: SuitePlan, runs: int, *, as_json: bool) -> int:
    async def ask(services: Services) -> SuiteEstimate:
        devices = await devices_of(services.evaluator, plan.devices, plan.language)
        pace = await pace_of(services.archive, plan)
        return estimated(plan, pace, runs=runs, devices=len(devices))

    found = foundry.with_services(ask)
    if as_json:
        print_json(to_plain(found))
    else:
        print_text(estimate_text(found))
    return 0


def _finish(foundry: Foundry, suite: Suite, *, as_json: bool) -> int:
    results = foundry.ask_archive(lambda archive: results_of(archive, suite))
    if as_json:
        print_json(suite_object(suite, results))
    else:
        show_numbers(PrintableConsole(), summary_of(results))
        _print_unfinished(suite)
    return 0 if suite.count(EntryState.FINISHED) == len(suite.entries) else EXIT_NOTHING_CORRECT


def _print_unfinished(suite: Suite) -> None:
    name = suite.plan.name
    begun = [e.progress.device for e in suite.entries if e.state is EntryState.BEGUN]
    if begun:
        devices = ", ".join(dict.fromkeys(begun))
        print_text(f"begun on {devices}, which is not available: {counted(len(begun), 'run')}")
    if suite.count(EntryState.WAITING):
        more = as_called(f"suite run --resume --name {name} --total-usd …")
        print_text(f"the suite's budget is used up: `{more}` gives it more")
    if suite.count(EntryState.REFUSED) + suite.count(EntryState.FAILED):
        again = as_called(f"suite run --resume --retry --name {name}")
        print_text(f"`{again}` retries refused and failed runs; `suite show` has the reasons")
