"""Writes the exported file: what is different in each, the parts of `runtime/`, the data."""

import ast
import base64
import json
import pprint
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from kernel_foundry.domain.admission import TensorRole, WorkloadAdmission
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.evidence.python_literal import NAME, packed
from kernel_foundry.plan.from_admission import name_table
from kernel_foundry.plan.signature import KernelParameter, KernelSignature
from kernel_foundry.sdk.export.backward import BackwardPass
from kernel_foundry.sdk.export.plan_function import plan_function
from kernel_foundry.sdk.export.python_text import plain_text
from kernel_foundry.sdk.export.winner import Winner, sizes_in_calls, tensors_of
from kernel_foundry.task_source import parse_reference, size_constants

_RUNTIME: Final = Path(__file__).with_name("runtime")
_PACKAGE: Final = "kernel_foundry.sdk.export.runtime."
_DEVICES: Final = {Language.SYCL: "opencl", Language.CUDA: "cuda"}
PARTS: Final = (
    "plan", "QUEUE", "DEVICE", "reference", "tf32", "layouts", "scratch", "bound_call", "binding",
    "counts", "torch_operator", "known_call", "identity", "module", "same_source", "swap",
)  # fmt: skip
_WEIGHTS: Final = (TensorRole.PARAMETER, TensorRole.BUFFER)

_LINE: Final = 96
_NAMESPACE: Final = "kfoundry"
NAMESPACE_LINE: Final = f"NAMESPACE = {_NAMESPACE!r}"
"""Of a file: where its operators are in torch."""

_HEAD: Final = '''"""{task}: kernels for PyTorch that Kernel Foundry found, in one file.

{usage}

It needs torch {needs}; no compiler, no toolkit, no Kernel Foundry.

{figures}

A call runs the kernels where it is as it was judged: {types}
contiguous, of sizes between those that were judged. {otherwise}
{weights}
`kfoundry verify` reads the evidence in this file and judges the kernels again.
"""
'''
_USAGE: Final = """\
    from {module} import Module, swap, stats

    model = Module(...)           # in place of the reference's `Model`; or
    model = swap(model)           # replaces modules in a larger model whose class has the source
                                  # of `Model` below; swap(model, of=C) replaces those of class C
    print(stats())                # how often kernels ran, how often the reference, and why"""
_LAYS_OUT: Final = """
Weights are laid out once, and again when torch counts a change of them. It counts none of writes
through `.data` (`weight.data.copy_(...)`), nor of those by a replayed CUDA graph: call `relayout()`
after them.
"""
RUNS_REFERENCE: Final = "Every other call runs the reference,\nwhose source is below."
"""What most files do with calls that were not judged."""
_NEEDS: Final = {
    Language.SYCL: "on an x86-64 CPU, and `pip install intel-opencl-rt==2026.1.2`",
    Language.CUDA: "with an NVIDIA GPU of the architecture below and its driver",
}


def torch_file(
    winners: Sequence[Winner],
    module: str,
    *,
    backward: BackwardPass | None = None,
    usage: str = _USAGE,
    otherwise: str = RUNS_REFERENCE,
    more_parts: Sequence[str] = (),
    queue: str = "streams",
) -> str:
    """Return the text of an exported file.

    Args:
        winners: Of one task; those that come first are tried first.
        module: Name that the file will be imported by.
        backward: What computes gradients; None: the reference does.
        usage: How it is used, for the head of the file; "{module}" stands for its name.
        otherwise: What calls do that were not judged, for the head of the file.
        more_parts: Of `runtime/`, after those that every file has.
        queue: The part of `runtime/` that says where work of a GPU is queued.

    Raises:
        InvalidArgumentError: the winners are of different tasks, or of different devices.
    """
    first = winners[0]
    of_backward = backward.winners if backward else ()
    _check_alike(winners, of_backward)
    table = _Table(winners, backward)
    objects: list[str] = []
    plans = []
    specialisations = []
    for number, winner in enumerate((*winners, *of_backward)):
        name = f"_plan_{number}"
        workload = winner.workloads[0]
        names = name_table(workload.tensors, workload.scalars)
        plans.append(plan_function(winner.plan, name, names, winner.configuration))
        specialisations.append(_specialisation(winner, name, table, objects))
    forward_count = len(winners)
    task = first.record.task
    device = first.admission.device
    digest = content_digest(task.reference, *objects, *plans, *more_parts, queue)[:8]
    language = first.record.source.language
    outputs = tuple(t.name for t in tensors_of(table.first, TensorRole.OUTPUT))
    constants: dict[str, Any] = {
        "TASK": _identifier(task.name),
        "NAMESPACE": _NAMESPACE,
        "DIGEST": digest,
        "LANGUAGE": language.value,
        "ARCHITECTURE": device.architecture,
        "LIMITS": {
            "sub_group_size": device.sub_group_size,
            "shared_bytes": device.shared_bytes,
            "max_block": device.max_block,
        },
        "TRAINING": task.training,
        # Where forward does the same in both modes, so does its gradient, which may have no graph.
        "IGNORES_MODE": all(winner.admission.ignores_mode for winner in winners),
        "TF32": task.tf32,
        "CAST": {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}.get(
            str(task.precision), ""
        ),
        "DETERMINISTIC": is_deterministic(winners),
        "INPUTS": tuple(t.name for t in tensors_of(table.first, TensorRole.INPUT)),
        "OUTPUTS": outputs,
        "CONTAINER": first.container or ("tensor" if len(outputs) == 1 else "tuple"),
        "WORKLOADS": table.entries,
        "GRADS": backward.grads if backward else (),
        "GRADIENTS": backward.gradients if backward else (),
        "BACKWARD_DETERMINISTIC": is_deterministic(of_backward),
    }
    parts = [
        _runtime_part({"QUEUE": queue, "DEVICE": _DEVICES[language]}.get(part, part))
        for part in (*PARTS, *more_parts)
    ]
    imports = {line for lines, _ in parts for line in lines}
    written = [f"{name} = {_literal(value)}" for name, value in constants.items()]
    sections = [
        _head(winners, usage.format(module=module), otherwise),
        "# ruff: noqa",
        _joined_imports(imports),
        _rule("The reference, which runs wherever no kernel was judged"),
        f"REFERENCE = {_text_literal(task.reference)}",
        _rule("What was judged"),
        "\n".join(written),
        *(body for _, body in parts[:1]),
        _rule("Launch plans, as functions of sizes"),
        *plans,
        f"SPECIALISATIONS = {_specialisations_literal(specialisations[:forward_count])}",
        f"BACKWARD = {_specialisations_literal(specialisations[forward_count:])}",
        *(body for _, body in parts[1:]),
        _rule("Object code"),
        _data("OBJECTS", objects),
        _rule("The evidence: records of the verdicts, for `kfoundry verify`"),
        _data(NAME, [_packed_record(winner) for winner in (*winners, *of_backward)]),
    ]
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


class _Table:
    """The workloads of all winners, each once, with the sizes that make it."""

    def __init__(self, winners: Sequence[Winner], backward: BackwardPass | None) -> None:
        task = winners[0].record.task
        tree = parse_reference(task.reference, file_name=task.name)
        known = size_constants(tree)
        own = [(winner, winner) for winner in winners]
        if backward:
            own += [(winner, backward.of_forward(winner)) for winner in backward.winners]
        names = {name for w, _ in own for each in w.workloads for name in w.sizes(each)}
        self.first = winners[0].workloads[0]
        self.entries: list[dict[str, Any]] = []
        self._positions: list[tuple[Winner, str, int]] = []
        for winner, of_forward in own:
            for workload in of_forward.in_python(task.reference):
                sizes = {n: known[n] for n in sorted(names)} | winner.sizes(workload)
                entry = _entry(workload, sizes)
                if entry not in self.entries:
                    self.entries.append(entry)
                at = self.entries.index(entry)
                self._positions.append((winner, workload.workload, at))
        if not self.entries:
            listed = ", ".join(sorted(sizes_in_calls(task.reference) & names))
            raise InvalidArgumentError(
                f"the reference's own code reads {listed}, and no workload has the file's value: "
                "let the constructor take it as an argument",
                field="task",
            )
        for winner, _ in own[1:]:
            if not self.positions(winner):
                raise InvalidArgumentError(
                    "the reference's own code reads sizes of which a run has none of the file's: "
                    "let the constructor take them as arguments",
                    field="run",
                )

    def positions(self, winner: Winner) -> dict[str, int]:
        """Return the positions of a winner's workloads, by name."""
        return {name: at for owner, name, at in self._positions if owner is winner}


def _entry(workload: WorkloadAdmission, sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "sizes": sizes,
        "tensors": {t.name: (t.dtype, t.shape) for t in workload.tensors},
        "weights": {t.name: t.path for t in tensors_of(workload, *_WEIGHTS)},
    }


def _specialisation(winner: Winner, name: str, table: _Table, objects: list[str]) -> dict[str, Any]:
    positions = table.positions(winner)
    found = []
    for program in winner.programs(w for w in winner.built if w.workload in positions):
        data = base64.b85encode(zlib.compress(program.code, 9)).decode("ascii")
        if data not in objects:
            objects.append(data)
        found.append(
            {
                "macros": program.macros,
                "object": objects.index(data),
                "kernels": {kernel.name: kernel_declaration(kernel) for kernel in program.kernels},
            }
        )
    return {"plan": name, "workloads": tuple(sorted(set(positions.values()))), "objects": found}


def kernel_declaration(kernel: KernelSignature) -> tuple[Any, ...]:
    """Return a kernel as `runtime.plan.Kernel` takes it."""
    parameters = tuple(_parameter(i, p) for i, p in enumerate(kernel.parameters))
    return kernel.dimensions, parameters, kernel.max_threads


def _parameter(index: int, parameter: KernelParameter) -> tuple[str, str, str, int]:
    kind = "pointer" if parameter.is_pointer else "local" if parameter.is_local else "value"
    return parameter.name or f"#{index}", kind, parameter.ctype, parameter.lanes


def _check_alike(winners: Sequence[Winner], of_backward: Sequence[Winner]) -> None:
    first = winners[0]
    own = first.record.task.reference
    # The gradient's reference was compared when it became this one's backward pass.
    others = [(winner, winner.record.task.reference) for winner in winners[1:]]
    for winner, reference in [*others, *((winner, own) for winner in of_backward)]:
        pairs = {
            "reference": (own, reference),
            "precision": (first.record.task.precision, winner.record.task.precision),
            "training": (first.record.task.training, winner.record.task.training),
            "tf32": (first.record.task.tf32, winner.record.task.tf32),
            "language": (first.record.source.language, winner.record.source.language),
            "architecture": (
                first.admission.device.architecture,
                winner.admission.device.architecture,
            ),
        }
        for what, (one, other) in pairs.items():
            if one != other:
                raise InvalidArgumentError(
                    f"the runs differ in {what}: one file holds kernels of one task, for one kind "
                    "of device",
                    field="run",
                )


def is_deterministic(winners: Sequence[Winner]) -> bool:
    """Return whether repeated calls gave equal bits."""
    return all(
        result.correctness is None or result.correctness.bitwise_reproducible
        for winner in winners
        for result in winner.record.evaluation.workloads
    )


def _runtime_part(name: str) -> tuple[list[str], str]:
    text = (_RUNTIME / f"{name}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    tree = ast.parse(text)
    imports = []
    body_from = 0
    for statement in tree.body:
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)
        if not is_import and not isinstance(statement, ast.Expr):  # the docstring is one
            break
        line = ast.unparse(statement)
        if is_import and not line.startswith(f"from {_PACKAGE}"):
            imports.append(line)
        body_from = statement.end_lineno or 0
    title = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    return imports, f"{_rule(title)}\n\n" + "\n".join(lines[body_from:]).strip("\n")


def _joined_imports(lines: Iterable[str]) -> str:
    plain = sorted(line for line in lines if line.startswith("import "))
    named: dict[str, set[str]] = {}
    for line in lines:
        if line.startswith("from "):
            module, _, names = line.removeprefix("from ").partition(" import ")
            named.setdefault(module, set()).update(n.strip() for n in names.split(","))
    chosen = [f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(named.items())]
    return "\n".join([*plain, *chosen])


def _rule(title: str) -> str:
    return f"# {'-' * 8} {title}"


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=_LINE, compact=True, sort_dicts=False)


def _text_literal(text: str) -> str:
    """A text as Python writes it, over lines where it can be read."""
    marks = next((m for m in ('"""', "'''") if m not in text), None)
    if marks is None or "\\" in text or not text.endswith("\n"):
        return repr(text)
    return f"{marks}\\\n{text}{marks}"


def _specialisations_literal(found: Sequence[dict[str, Any]]) -> str:
    lines = ["("]
    for each in found:
        lines += ["    {", f'        "plan": {each["plan"]},']
        lines.append(f'        "workloads": {each["workloads"]!r},')
        lines += [f'        "objects": {_literal(each["objects"])},', "    },"]
    return "\n".join([*lines, ")"])


def _data(name: str, texts: Sequence[str]) -> str:
    lines = [f"{name} = ("]
    for text in texts:
        pieces = [text[i : i + _LINE] for i in range(0, len(text), _LINE)]
        lines += ["    (", *(f"        {piece!r}" for piece in pieces), "    ),"]
    return "\n".join([*lines, ")"])


def _packed_record(winner: Winner) -> str:
    text = json.dumps(winner.record.to_plain(), ensure_ascii=False, allow_nan=False)
    return packed(text.encode())


def _identifier(name: str) -> str:
    bare = "".join(c if c.isalnum() else "_" for c in name)
    return bare if bare[:1].isalpha() else f"task_{bare}"


def judged_times(winners: Sequence[Winner]) -> str:
    """Return a line for each timed workload, with its time and eager's."""
    lines = []
    for winner in winners:
        for result in winner.record.evaluation.workloads:
            if result.timing is None:
                continue
            eager = next((b for b in result.baselines if b.name == "eager"), None)
            beside = f", eager {eager.timing.median_ns / 1e3:.1f} µs" if eager else ""
            time = f"{result.timing.median_ns / 1e3:.1f} µs"
            device = winner.admission.device.name
            lines.append(f"{result.workload}: {time}{beside}, judged on {device}")
    return "\n".join(lines)


def _head(winners: Sequence[Winner], usage: str, otherwise: str) -> str:
    first = winners[0]
    types = {t.dtype for t in tensors_of(first.workloads[0], TensorRole.INPUT)}
    kind = {"sycl": "on the CPU", "cuda": "on a GPU"}[first.record.source.language.value]
    return _HEAD.format(
        task=plain_text(first.record.task.name),
        usage=usage,
        otherwise=otherwise,
        weights=_LAYS_OUT if any(w.plan.prepare is not None for w in winners) else "",
        needs=_NEEDS[first.record.source.language],
        figures=plain_text(judged_times(winners)),
        types=f"{' and '.join(sorted(types))} {kind},",
    )
