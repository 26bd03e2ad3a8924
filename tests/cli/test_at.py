"""`--at`: one address for all services, where nothing else is said of one."""

import json

import click
import pytest
from click.testing import CliRunner

from kernel_foundry.cli.options import target_options
from kernel_foundry.errors import InvalidArgumentError

GATEWAY = {"evaluator": "gateway:50050/*", "archive": "gateway:50050", "generator": "gateway:50050"}


@click.command()
@target_options
def show(**targets: object) -> None:
    """Print where the services are."""
    services = ("evaluator", "archive", "generator")
    click.echo(json.dumps({name: targets[name] for name in services}))


@pytest.mark.parametrize(
    ("arguments", "environment", "other"),
    [
        (["--at", "gateway:50050"], {}, {}),
        ([], {"AT": "gateway:50050"}, {}),
        (["--at", "gateway:50050/h200"], {}, {"evaluator": "gateway:50050/h200"}),
        (["--archive", "local", "--at", "gateway:50050"], {}, {"archive": "local"}),
        ([], {"AT": "gateway:50050", "ARCHIVE": "a:1"}, {"archive": "a:1"}),
        (["--at", "gateway:50050"], {"ARCHIVE": "a:1"}, {}),
        ([], {}, {"evaluator": "local", "archive": "local", "generator": "local"}),
    ],
)
def test_what_is_said_nearer_counts(
    arguments: list[str],
    environment: dict[str, str],
    other: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An option counts before the environment, and there a service's own before that of all."""
    for name in ("AT", "EVALUATOR", "ARCHIVE", "GENERATOR"):
        monkeypatch.delenv(f"KERNEL_FOUNDRY_{name}", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(f"KERNEL_FOUNDRY_{name}", value)
    result = CliRunner().invoke(show, arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == GATEWAY | other


@pytest.mark.parametrize("address", ["gateway", "unix:/run/s", ":1", "gateway:x", "gateway/h200"])
def test_what_is_no_address_of_a_gateway_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match="HOST:PORT"):
        CliRunner().invoke(show, ["--at", address], catch_exceptions=False)
