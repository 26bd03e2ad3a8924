"""Options that several commands share."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.output import print_text
from kernel_foundry.domain.agents import permit
from kernel_foundry.domain.device_class import CLASS_NAME, own_id
from kernel_foundry.domain.language import Language
from kernel_foundry.sdk.client import Foundry, connect
from kernel_foundry.sdk.services import LOCAL, SPAWN, Targets

ABOVE_ZERO = click.FloatRange(min=0, min_open=True)
"""Seconds, minutes or money: more than zero."""

_AT = "kernel_foundry.at"
_WHERE = "local (in this process), spawn (a process of its own), unix:/PATH or HOST:PORT."


class _ServiceOption(click.Option):
    """An option that --help-services shows, and --help does not."""

    def get_help_record(self, _context: click.Context) -> tuple[str, str] | None:
        """Return nothing for --help."""
        return None

    def service_record(self, context: click.Context) -> tuple[str, str] | None:
        """Return the option's two columns of help."""
        return super().get_help_record(context)


def _show_services(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if not is_asked or context.resilient_parsing:
        return
    options = (p for p in context.command.params if isinstance(p, _ServiceOption))
    records = [record for option in options if (record := option.service_record(context))]
    formatter = context.make_formatter()
    with formatter.section("Services"):
        formatter.write_dl(records)
    print_text(formatter.getvalue().rstrip())
    context.exit()


def store_option(
    command: Callable[..., Any], kind: type[click.Option] = click.Option
) -> Callable[..., Any]:
    """Add --store: where the archive's store is."""
    return click.option(
        "--store",
        cls=kind,
        default="",
        envvar="KERNEL_FOUNDRY_STORE",
        metavar="URL",
        help="Store of the archive, such as sqlite:///runs.db or postgresql://me@host/runs.  "
        "[default: runs.db in the data folder, see `kfoundry clean`]",
    )(command)


def _keep_address(context: click.Context, _option: click.Parameter, address: str) -> None:
    context.meta[_AT] = (context.get_parameter_source("at"), address)


def _target(context: click.Context, option: click.Parameter, given: str) -> str:
    """The target that was given for a service, or else that of --at."""
    at_source, address = context.meta.get(_AT, (None, ""))
    source = context.get_parameter_source(option.name or "")
    is_explicit = source is ParameterSource.COMMANDLINE or (
        source is ParameterSource.ENVIRONMENT and at_source is not ParameterSource.COMMANDLINE
    )
    if is_explicit or not address:
        return given
    return str(getattr(Targets.at(address), option.name or ""))


def at_option(
    command: Callable[..., Any], kind: type[click.Option] = click.Option
) -> Callable[..., Any]:
    """Add --at: one address for all services that have no option of their own."""
    return click.option(
        "--at",
        cls=kind,
        default="",
        envvar="KERNEL_FOUNDRY_AT",
        metavar="HOST:PORT[/APPLICATION]",
        is_eager=True,
        expose_value=False,
        callback=_keep_address,
        help="A gateway (`kfoundry serve gateway`): one address for evaluators, archive and "
        "generator.",
    )(command)


def generator_option(
    command: Callable[..., Any], kind: type[click.Option] = click.Option
) -> Callable[..., Any]:
    """Add --generator and --at: where the generator is."""
    with_address = at_option(command, kind)
    return click.option(
        "--generator",
        cls=kind,
        default=LOCAL,
        show_default=True,
        envvar="KERNEL_FOUNDRY_GENERATOR",
        metavar="TARGET",
        callback=_target,
        help=f"Where the generator is: {_WHERE}",
    )(with_address)


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the addresses of the services, and the archive's store.

    --help has them in one line, --help-services in full.
    """
    for option in (
        click.option(
            "--help-services",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_services,
            help="Show --evaluator, --archive, --generator, --at, --store and --unsafe-no-sandbox: "
            "where the services are and what they may do.  [default: all in this process]",
        ),
        click.option(
            "--unsafe-no-sandbox",
            cls=_ServiceOption,
            is_flag=True,
            envvar="KERNEL_FOUNDRY_UNSAFE_NO_SANDBOX",
            help="Run candidates even if this host cannot sandbox them.",
        ),
        partial(store_option, kind=_ServiceOption),
        partial(generator_option, kind=_ServiceOption),
        click.option(
            "--archive",
            cls=_ServiceOption,
            default=LOCAL,
            show_default=True,
            envvar="KERNEL_FOUNDRY_ARCHIVE",
            metavar="TARGET",
            callback=_target,
            help="Where the archive is; see --evaluator.",
        ),
        click.option(
            "--evaluator",
            cls=_ServiceOption,
            default=LOCAL,
            show_default=True,
            envvar="KERNEL_FOUNDRY_EVALUATOR",
            metavar="TARGET",
            callback=_target,
            help=f"Where the evaluator is: {_WHERE} Several: HOST:PORT,HOST:PORT or a fleet "
            "file (.yaml), see docs/fleet.md.",
        ),
    ):
        command = option(command)
    return command


def device_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --device; `device_of` reads it."""
    return click.option(
        "--device",
        default="",
        help="A device such as sycl:0 or cuda:1, cuda for all GPUs of the host (each call takes "
        "the least busy one), or an evaluator's address; for `optimize` also several classes, such "
        "as h200,sycl.  [default: any that runs the language]",
    )(command)


def model_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --model: the models that propose candidates."""
    return click.option(
        "--model",
        "models",
        multiple=True,
        metavar="MODEL",
        envvar="KERNEL_FOUNDRY_MODEL",
        callback=_permit_agents,
        help="A LiteLLM model name such as anthropic/claude-sonnet-4-5, or recipes (the built-in "
        "offline generator, the default when no provider key is set), or agent:claude, "
        "agent:codex or agent:COMMAND (a coding agent in a scratch folder, see docs/models.md); "
        "repeat for several. memory=MODEL is used by that expert alone (fusion, memory, "
        "parallelism, compute).",
    )(command)


def _permit_agents(
    _context: click.Context, _option: click.Parameter, models: tuple[str, ...]
) -> tuple[str, ...]:
    """Permit a generator in this process to start the agents that the user named."""
    permit(models, os.environ)
    return models


def language_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds --language, with `text` as its help."""
    languages = [language.value for language in Language]
    return click.option("--language", type=click.Choice(languages), help=text)


def degenerate_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --admit-degenerate, an argument of `read_task`."""
    return click.option(
        "--admit-degenerate",
        is_flag=True,
        help="Accept a task even if a trivial answer, such as a constant output, passes it; every "
        "verdict then has trust: degenerate.",
    )(command)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json: one JSON object on stdout."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else on stdout."
    )(command)


def open_foundry(**targets: Any) -> Foundry:
    """Return a `Foundry` on the services of the target options, the fields of `Targets`."""
    return connect(Targets(**targets))


def device_of(device: str, evaluator: str) -> tuple[str, str]:
    """Return (device id, evaluator target): a --device that is an address selects an evaluator.

    "cuda:1" is a device of the evaluator, "cuda" the least busy one of the kind;
    "gpuhost:50051" is another evaluator's address. In a fleet, "cuda:nvidia-h200-1f0c9a7e" is a
    class, and "cuda:1@gpuhost:50051" one device.

    Raises:
        click.BadParameter: it is none of these.
    """
    kind, _, number = own_id(device).partition(":")
    is_kind = kind in ("sycl", "cuda", "null")
    is_device = number.isdigit() or device == kind or CLASS_NAME.fullmatch(device) is not None
    if not device or (is_kind and is_device):
        return device, evaluator
    port = device.partition("/")[0].rpartition(":")[2] if ":" in device else ""
    has_port = port.isdigit() and int(port) > 0
    is_address = device in (LOCAL, SPAWN) or device.startswith("unix:") or has_port
    if is_kind or not is_address:
        raise click.BadParameter(
            f"{device!r}: expected a device such as sycl:0 or cuda:0, a kind such as cuda, a class "
            "of a fleet's devices, or an "
            "evaluator's address (HOST:PORT or unix:/PATH); "
            f"`{as_called('devices')}` lists devices",
            param_hint="--device",
        )
    return "", device


def language_of(named: str | None, device: str) -> Language:
    """Return the language that was given, else the device's, else SYCL.

    Raises:
        click.UsageError: the device runs another language.
    """
    kind = device.partition(":")[0]
    device_language = Language(kind) if kind in list(Language) else None
    if named is None:
        return device_language or Language.SYCL
    if device_language is not None and device_language.value != named:
        raise click.UsageError(
            f"--device {device} runs {device_language.value}, not {named}: "
            "leave one of the two options out"
        )
    return Language(named)
