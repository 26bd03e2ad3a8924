"""`kfoundry token`: who may call the services of this machine."""

import datetime
from pathlib import Path

import click
from rich.table import Table

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.options import json_option
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.paths import tokens_path
from kernel_foundry.rpc.tokens import Role, Token, TokenFile

_file_option = click.option(
    "--tokens",
    type=click.Path(dir_okay=False, path_type=Path),
    default=tokens_path,
    envvar="KERNEL_FOUNDRY_TOKENS",
    show_default="tokens.json in the data folder",
    help="The file that a service gets as --tokens.",
)


@click.group()
def command() -> None:
    """Make, list and revoke the tokens by which a service knows its callers.

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
    help="read looks, run also judges, proposes and records, admin also deletes.",
)
@click.option("--days", type=click.FloatRange(0, 3650), default=90.0, show_default=True)
@_file_option
def create(name: str, role: str, days: float, tokens: Path) -> int:
    """Make a token for NAME and print it. It is shown once; only its hash is kept.

    \b
    kfoundry token create ada --role run --days 30
    """  # noqa: D301  a backspace keeps click from joining the lines
    print_text(TokenFile(tokens).create(name, Role[role.upper()], days))
    return 0


@command.command("list")
@json_option
@_file_option
def list_command(as_json: bool, tokens: Path) -> int:
    """Show the tokens: id, whose, role, until when. The tokens themselves are not kept.

    \b
    kfoundry token list
    """  # noqa: D301  a backspace keeps click from joining the lines
    found = TokenFile(tokens).tokens()
    if as_json:
        print_json({"tokens": [_plain(token) for token in found]})
        return 0
    table = Table("id", "name", "role", "expires", "")
    for token in found:
        until = datetime.datetime.fromtimestamp(token.expires_unix_s, datetime.UTC)
        revoked = "revoked" if token.is_revoked else ""
        table.add_row(token.id, token.name, token.role, f"{until:%Y-%m-%d %H:%M} UTC", revoked)
    PrintableConsole().print(table)
    return 0


@command.command("revoke")
@click.argument("token_id", metavar="ID")
@_file_option
def revoke(token_id: str, tokens: Path) -> int:
    """End a token now: services read the file at the next call.

    \b
    kfoundry token revoke 1f0c9a7e
    """  # noqa: D301  a backspace keeps click from joining the lines
    token = TokenFile(tokens).revoke(token_id)
    print_text(f"{token.id} of {token.name} is revoked", err=True)
    return 0


def _plain(token: Token) -> dict[str, str | float | bool]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "created_unix_s": token.created_unix_s,
        "expires_unix_s": token.expires_unix_s,
        "revoked": token.is_revoked,
    }
