"""`kfoundry verify`: check an evidence record, and run it again."""

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
    "the numbers agree, the times were not confirmed: they are of another device, driver or number "
    "of threads (see environment), and only its maker's word. --device HOST:PORT asks an evaluator "
    "that has the device"
)
_INCONCLUSIVE: Final = (
    "the numbers agree, the times are inconclusive: they vary too much on this machine now to "
    "confirm the record's or to contradict them. Verify it again when the machine is quiet"
)
_UNKNOWN_KEY: Final = (
    "the record is intact, signed by an unknown key: whoever has that key could have written "
    "anything into it. --key KEY says that you know whose it is; without --no-run the candidate is "
    "judged again"
)
_CODE_UNCHECKED: Final = "the record {}; the code of the file was not checked, and may be another's"


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
    """Check RECORD, judge its candidate again, and say whether it agrees and what does not.

    Record files come from `kfoundry evaluate --record`, `kfoundry runs record` and `kfoundry
    optimize`; a Python file or solution.json of `kfoundry export` holds records, too, and is read,
    not run: its records are checked, its code is not. First
    come the parts, the digest and the signature; a record that is not what
    was signed for is not run. Its task is Python that the judge runs: run records only of
    people whose programs you would run.

    Exit code 0 when everything agrees, 1 when something does not, 2 when the file is no record,
    4 when the numbers agree and the times were not confirmed: the record is of another device,
    or times vary too much here to tell; also when nothing differs and the file is an exported one,
    or, with --no-run, its key is neither this machine's nor one of --key.

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
    # What a reader looks for comes first; whose key it is concerns everybody.
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
