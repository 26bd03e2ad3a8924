"""`kfoundry token`: the access tokens for the services of this machine."""

import datetime
from contextlib import closing
from pathlib import Path

import click
from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.name import as_called
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import tokens_path
from kernel_foundry.rpc.tokens import Role, Token, TokenFile
from kernel_foundry.rpc.usage_file import Usage, UsageFile

_file_option = click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    default=tokens_path,
    envvar="KERNEL_FOUNDRY_TOKENS",
    show_default="tokens.json in the data folder",
    help="The file that a service gets as --tokens.",
)
_usage_option = click.option(
    "--usage",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="KERNEL_FOUNDRY_USAGE",
    help="The file that a service gets as --usage.  [default: beside --tokens]",
)


@click.group()
def command() -> None:
    """Create, list and revoke the tokens by which services identify their callers.

    \b
    kfoundry token create ada --role run
    kfoundry serve evaluator --listen 0.0.0.0:50051 --tls-cert c.pem --tls-key k.pem --tokens t.json
    """  # noqa: D301  a backspace keeps click from joining the lines


@command.command("create")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.name.lower() for role in Role]),
    default=Role.RUN.name.lower(),
    show_default=True,
    help="read looks; run also judges, proposes, and makes and changes runs of its own; admin also "
    "changes those of others.",
)
@click.option("--days", type=click.FloatRange(0, 3650), default=90.0, show_default=True)
@click.option(
    "--evaluations",
    type=click.IntRange(min=0),
    help="Quota of NAME's evaluations; 8 configurations of a sweep count as one.",
)
@click.option("--usd", type=click.FloatRange(min=0), help="Quota of what NAME's proposals cost.")
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    help="Calls on devices that NAME may have at the same time; more wait.",
)
@click.option(
    "--priority",
    type=click.IntRange(0, 9),
    default=0,
    show_default=True,
    help="Highest priority that NAME's calls on devices may ask for, by KERNEL_FOUNDRY_PRIORITY.",
)
@_file_option
def create(
    name: str,
    role: str,
    days: float,
    evaluations: int | None,
    usd: float | None,
    at_once: int | None,
    priority: int,
    tokens: Path,
) -> int:
    """Create a token for NAME and print it, alone on standard output.

    It is shown once; only its hash is stored. Its id, expiry and file are printed on standard
    error.

    Quotas apply to NAME on each host, over all of its tokens: see docs/access.md.

    \b
    kfoundry token create ada --role run --days 30
    kfoundry token create bob --evaluations 5000 --usd 20 --at-once 2
    """  # noqa: D301  a backspace keeps click from joining the lines
    file = TokenFile(tokens)
    text = file.create(
        name,
        Role[role.upper()],
        days,
        evaluations=evaluations,
        usd=usd,
        at_once=at_once,
        priority=priority,
    )
    token = next(token for token in file.tokens() if text.startswith(f"kf_{token.id}_"))
    print_text(
        f"token {token.id} of {token.name}, role {token.role}, until {_until(token)}, is in"
        f" {tokens}",
        err=True,
    )
    print_text(text)
    return 0


@command.command("list")
@json_option
@_file_option
@_usage_option
def list_command(as_json: bool, tokens: Path, usage: Path | None) -> int:
    """List the tokens: id, user, role, expiry, and quotas with their usage on this host.

    The tokens themselves are not stored.

    \b
    kfoundry token list
    """  # noqa: D301  a backspace keeps click from joining the lines
    if not tokens.exists() and tokens != tokens_path():
        raise InvalidArgumentError(
            f"there is no {tokens}: `{as_called('token create NAME')} --tokens {tokens}` makes it",
            field="tokens",
        )
    found = TokenFile(tokens).tokens()
    with closing(_usage_file(tokens, usage)) as counted:
        used = {token.name: counted.of(token.name) for token in found}
    if as_json:
        print_json({"tokens": [_plain(token, used[token.name]) for token in found]})
        return 0
    table = Table("id", "name", "role", "expires", "evaluations", "USD", "at once", "priority", "")
    for token in found:
        revoked = "revoked" if token.is_revoked else ""
        evaluations, usd = token.most_evaluations, token.most_usd
        table.add_row(
            token.id,
            token.name,
            token.role,
            _until(token),
            "" if evaluations is None else f"{used[token.name].evaluations} of {evaluations}",
            "" if usd is None else f"{used[token.name].usd:.2f} of {usd:.2f}",
            "" if token.most_at_once is None else str(token.most_at_once),
            str(token.most_priority or ""),
            revoked,
        )
    PrintableConsole().print(table)
    return 0


@command.command("revoke")
@click.argument("token_id", metavar="ID")
@_file_option
def revoke(token_id: str, tokens: Path) -> int:
    """Revoke a token now: services read the file again at their next call.

    \b
    kfoundry token revoke 1f0c9a7e
    """  # noqa: D301  a backspace keeps click from joining the lines
    token = TokenFile(tokens).revoke(token_id)
    print_text(f"{token.id} of {token.name} is revoked", err=True)
    return 0


@command.command("reset")
@click.argument("name")
@_file_option
@_usage_option
def reset(name: str, tokens: Path, usage: Path | None) -> int:
    """Reset the quota usage of NAME to zero, on this host.

    \b
    kfoundry token reset ada
    """  # noqa: D301  a backspace keeps click from joining the lines
    if name not in {token.name for token in TokenFile(tokens).tokens()}:
        raise InvalidArgumentError(f"no token of {name!r} in {tokens}", field="name")
    with closing(_usage_file(tokens, usage)) as counted:
        counted.reset(name)
    print_text(f"the usage of {name} is counted from zero", err=True)
    return 0


def _until(token: Token) -> str:
    until = datetime.datetime.fromtimestamp(token.expires_unix_s, datetime.UTC)
    return f"{until:%Y-%m-%d %H:%M} UTC"


def _usage_file(tokens: Path, usage: Path | None) -> UsageFile:
    return UsageFile(usage) if usage else UsageFile.beside(tokens)


def _plain(token: Token, used: Usage) -> dict[str, str | float | bool | None]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "created_unix_s": token.created_unix_s,
        "expires_unix_s": token.expires_unix_s,
        "revoked": token.is_revoked,
        "most_evaluations": token.most_evaluations,
        "most_usd": token.most_usd,
        "most_at_once": token.most_at_once,
        "most_priority": token.most_priority,
        "used_evaluations": used.evaluations,
        "used_usd": used.usd,
    }
