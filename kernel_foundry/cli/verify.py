"""`kfoundry verify`: check an evidence record, and judge its candidate again."""

from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from kernel_foundry.cli.console import PrintableConsole
from kernel_foundry.cli.main import EXIT_NOT_CONFIRMED
from kernel_foundry.cli.options import (
    device_of,
    device_option,
    json_option,
    open_foundry,
    target_options,
)
from kernel_foundry.cli.output import print_json
from kernel_foundry.cli.work_lines import work_lines
from kernel_foundry.domain.plain import to_plain
from kernel_foundry.evidence.fingerprint import fingerprint
from kernel_foundry.evidence.record import EvidenceRecord, is_program, read_records
from kernel_foundry.printable import one_line
from kernel_foundry.quantity_text import counted
from kernel_foundry.sdk.verdict_text import evaluation_object
from kernel_foundry.sdk.verification.signature import KEY
from kernel_foundry.sdk.verification.statement import CODE_OF_FILE, Agreement, Statement
from kernel_foundry.sdk.verification.verify import Verification

_MARKS: Final = {
    Agreement.AGREES: ("✓", "green"),
    Agreement.DIFFERS: ("✗", "bold red"),
    Agreement.INCONCLUSIVE: ("?", "bold yellow"),
    Agreement.NOT_COMPARABLE: ("–", "yellow"),
}

_UNCONFIRMED: Final = (
    "the numbers agree, the times were not confirmed: they were measured on another device, driver "
    "or number of threads (see environment). --device HOST:PORT uses an evaluator that has the "
    "device"
)
_INCONCLUSIVE: Final = (
    "the numbers agree, the times are inconclusive: they vary too much on this machine now to "
    "confirm or contradict those of the record. Verify it again when the machine is idle"
)
_UNKNOWN_KEY: Final = (
    "the record is intact, signed by an unknown key: the key's owner could have written "
    "anything into it. --key KEY trusts the key; without --no-run the candidate is "
    "judged again"
)
_CODE_UNCHECKED: Final = "the record {}; the code of the file was not checked, and may differ"


@click.command()
@click.argument("record", type=click.Path(path_type=Path, dir_okay=False))
@device_option
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Trust this public key, or the key with this fingerprint (the record's own is shown; ask "
    "its maker for theirs); repeatable.  [default: this machine's key]",
)
@click.option(
    "--run/--no-run",
    "runs_again",
    default=True,
    show_default=True,
    help="Judge the candidate again, on the same seeds.",
)
@click.option("--all", "shows_all", is_flag=True, help="Show what agrees, too.")
@json_option
@target_options
def command(
    record: Path,
    device: str,
    keys: tuple[str, ...],
    runs_again: bool,
    shows_all: bool,
    as_json: bool,
    **targets: Any,
) -> int:
    """Check RECORD, judge its candidate again, and list what agrees and what differs.

    Record files come from `kfoundry evaluate --record`, `kfoundry runs record` and `kfoundry
    optimize`. A Python file or solution.json of `kfoundry export` contains records, too: they are
    checked, but its code is neither run nor checked. The digest and the signature are checked
    first; if they do not match, nothing is run. A record's task is Python that the judge runs:
    verify only records of people whose programs you would run.

    Exit code 0 if everything agrees, 1 if something differs, 2 if the file is not a record. Exit
    code 4 if the numbers agree but the times were not confirmed (the record is from another device,
    or times vary too much here); also if nothing differs, but the file is an exported one, or, with
    --no-run, its key is neither this machine's nor one of --key.

    \b
    kfoundry verify softmax.record.json
    kfoundry verify softmax.record.json --all
    kfoundry verify softmax.record.json --no-run --key 5f0c6f1e8a3b9d24
    kfoundry verify fast_softmax.py
    """  # noqa: D301  a backspace keeps click from joining the lines
    records = read_records(record)
    device, targets["evaluator"] = device_of(device, targets["evaluator"])
    codes = []
    with work_lines(), open_foundry(**targets) as foundry:
        for found in records:
            verified = foundry.verify(found, device=device, keys=keys, runs_again=runs_again)
            if as_json:
                print_json(_object(record, found, verified))
            else:
                _show(PrintableConsole(), record, found, verified, shows_all=shows_all)
            codes.append(_exit_code(record, verified))
    return next((code for code in (1, EXIT_NOT_CONFIRMED) if code in codes), 0)


def _exit_code(path: Path, verified: Verification) -> int:
    is_open = verified.is_partial or verified.is_signed_by_unknown_key
    if is_open or (verified.agrees and is_program(path)):
        return EXIT_NOT_CONFIRMED
    return 0 if verified.agrees else 1


def _statements(path: Path, verified: Verification) -> tuple[Statement, ...]:
    return (*verified.statements, CODE_OF_FILE) if is_program(path) else verified.statements


def _object(path: Path, record: EvidenceRecord, verified: Verification) -> dict[str, Any]:
    attestation, again = record.attestation, verified.again
    return {
        "record": str(path),
        "agrees": verified.agrees and not is_program(path),
        "numbers_confirmed": verified.numbers_confirmed,
        "times_confirmed": verified.times_confirmed,
        "signed_by_unknown_key": verified.is_signed_by_unknown_key,
        "task": record.task.name,
        "candidate": record.source.digest,
        "digest": attestation.digest,
        "key_fingerprint": fingerprint(attestation.public_key),
        "statements": [to_plain(s) for s in _statements(path, verified)],
        "evaluation": again and evaluation_object(again, task_name=record.task.name),
    }


def _show(
    console: PrintableConsole,
    path: Path,
    record: EvidenceRecord,
    verified: Verification,
    *,
    shows_all: bool,
) -> None:
    evaluation = record.evaluation
    console.print(
        Text.assemble(
            (one_line(record.task.name), "bold"),
            one_line(f", candidate {evaluation.candidate[:8]} on {evaluation.device}"),
            f", trust {evaluation.trust.value}",
        )
    )
    _show_verdict(console, path, verified)
    statements = _statements(path, verified)
    # The statements that a reader looks for come first, with the key among them.
    shown = [s for s in statements if s.agreement is not Agreement.AGREES or s.subject == KEY]
    others = [s for s in statements if s not in shown]
    for statement in (*shown, *others) if shows_all else shown:
        line = Text.assemble(_MARKS[statement.agreement], " ", one_line(_line(statement)))
        console.print(line, highlight=False, soft_wrap=True)
    if others and not shows_all:
        agree = f"{counted(len(others), 'other')} {'agrees' if len(others) == 1 else 'agree'}"
        console.print(f"{agree}; --all shows what", style="dim", highlight=False)


def _show_verdict(console: PrintableConsole, path: Path, verified: Verification) -> None:
    if verified.is_partial:
        why = _INCONCLUSIVE if verified.is_inconclusive else _UNCONFIRMED
        console.print(why, style="bold yellow", soft_wrap=True)
    elif verified.is_signed_by_unknown_key:
        console.print(_UNKNOWN_KEY, style="bold yellow", soft_wrap=True)
    elif verified.agrees:
        is_whole = "is what was signed for" if verified.again is None else "agrees"
        if is_program(path):
            console.print(_CODE_UNCHECKED.format(is_whole), style="bold yellow", soft_wrap=True)
        else:
            console.print(f"the record {is_whole}", style="bold green")
    else:
        differing = [s.subject for s in verified.statements if s.agreement is Agreement.DIFFERS]
        console.print(f"the record does not agree: {', '.join(differing)}", style="bold red")


def _line(statement: Statement) -> str:
    values = statement.recorded
    if statement.found and statement.found != statement.recorded:
        values = f"{values} → {statement.found}" if values else statement.found
    parts = [part for part in (values, statement.note) if part]
    return f"{statement.subject}: {'; '.join(parts)}" if parts else statement.subject
