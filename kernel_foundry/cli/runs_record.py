"""`kfoundry runs record`: the evidence record of a stored verdict, as a file."""

from pathlib import Path
from typing import Any

import click

from kernel_foundry.cli.options import json_option, open_foundry, target_options
from kernel_foundry.cli.output import print_json, print_text
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.evidence.record import write_record
from kernel_foundry.sdk.record_of_run import record_of_run


@click.command("record")
@click.argument("run", default="")
@click.option(
    "--candidate",
    default="",
    metavar="DIGEST",
    help="Digest, or its beginning, of a candidate that passed.  [default: the winner]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write.  [default: CANDIDATE.record.json in this folder]",
)
@json_option
@target_options
def record_command(
    run: str, candidate: str, out: Path | None, as_json: bool, **targets: Any
) -> int:
    """Write the signed evidence record of a run's winner.

    `kfoundry verify` checks such a file and judges its candidate again.

    \b
    kfoundry runs record softmax-1 --out softmax.json
    """  # noqa: D301  a backspace keeps click from joining the lines
    with open_foundry(**targets) as foundry:
        record = record_of_run(foundry, run, candidate)
    path = out or Path(f"{record.source.digest[:16]}.record.json")
    write_record(record, path)
    attestation = record.attestation
    name = fingerprint(attestation.public_key)
    if as_json:
        answer = {
            "file": str(path),
            "task": record.task.name,
            "candidate": record.source.digest,
            "digest": attestation.digest,
            "key_fingerprint": name,
        }
        print_json(answer)
    else:
        print_text(f"{path}: digest {attestation.digest[:16]}, signed with key {name}")
    return 0
