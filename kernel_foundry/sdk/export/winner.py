"""A run's winner with all that an exported file needs of it: record, names and object code."""

import ast
import base64
import symtable
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kernel_foundry.domain.admission import Admission, NamedTensor, TensorRole, WorkloadAdmission
from kernel_foundry.domain.evaluation import EvaluationOutcome, ObjectCode, Setting
from kernel_foundry.errors import BackendUnavailableError, InvalidArgumentError
from kernel_foundry.evidence.record import EvidenceRecord
from kernel_foundry.plan.configuration import chosen_values, constants
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.signature import KernelSignature, kernels
from kernel_foundry.plan.tree import Plan, TuneValue
from kernel_foundry.sdk.client import Foundry
from kernel_foundry.sdk.record_of_run import record_of_run
from kernel_foundry.task_source import parse_reference, size_constants


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltProgram:
    """Object code of a winner, and what it was built with."""

    macros: dict[str, TuneValue]
    """Values of TUNE and CONST."""
    code: bytes
    kernels: tuple[KernelSignature, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """A winner's record, and the object code that the compiler built from it."""

    record: EvidenceRecord
    admission: Admission
    objects: tuple[ObjectCode, ...]
    container: str = ""
    """What its reference returns results in: "tensor", "tuple" or "list". Empty where nobody asked:
    a tensor, or a tuple of several."""

    @property
    def plan(self) -> Plan:
        """The launch plan."""
        return parse(self.record.source.plan)

    @property
    def configuration(self) -> tuple[Setting, ...]:
        """Values of TUNE that were judged."""
        return self.record.evaluation.configuration

    @property
    def workloads(self) -> tuple[WorkloadAdmission, ...]:
        """The workloads that it was found right on: timed, held out and generated ones.

        Generated ones that change a size in one place of several, or a number of forward's, are
        left out: an exported file knows module-level sizes alone.
        """
        results = self.record.evaluation.workloads
        right = {result.workload for result in results if result.correctness is not None}
        known = self._file_sizes()
        return tuple(
            workload
            for workload in self.admission.workloads
            if workload.workload in right and known.keys() >= _sizes(workload).keys()
        )

    @property
    def built(self) -> tuple[WorkloadAdmission, ...]:
        """Those of `workloads` that there is object code for."""
        names = {name for code in self.objects for name in code.workloads}
        return tuple(workload for workload in self.workloads if workload.workload in names)

    def in_python(self, reference: str) -> tuple[WorkloadAdmission, ...]:
        """Return those of `workloads` whose modules and calls an exported Python file can tell.

        Its class is that of the reference's file, so what this reads in a call is as it is there.

        Args:
            reference: That the exported file has.
        """
        return tuple(w for w in self.workloads if not self._fixed_otherwise(w, reference))

    def left_out(self, reference: str) -> dict[str, str]:
        """Return those of `workloads` that an exported Python file cannot serve, each with why.

        Args:
            reference: That the exported file has.
        """
        built = {workload.workload for workload in self.built}
        found = {}
        for workload in self.workloads:
            if fixed := self._fixed_otherwise(workload, reference):
                listed = ", ".join(f"{name} = {value}" for name, value in fixed.items())
                found[workload.workload] = (
                    f"forward reads a size of the file itself, which has {listed}: let the"
                    " constructor take it as an argument"
                )
            elif workload.workload not in built:
                found[workload.workload] = "there is no object code for it"
        return found

    def _fixed_otherwise(self, workload: WorkloadAdmission, reference: str) -> dict[str, int]:
        """Sizes that a reference reads in a call and a workload changes, as the file has them."""
        known, own = self._file_sizes(), _sizes(workload)
        return {
            name: known[name]
            for name in sorted(sizes_in_calls(reference) & known.keys() & own.keys())
            if own[name] != known[name]
        }

    def programs(self, workloads: Iterable[WorkloadAdmission]) -> tuple[BuiltProgram, ...]:
        """Return the programs of some of `built`, each once, in order."""
        source = self.record.source
        found: list[BuiltProgram] = []
        for workload in workloads:
            macros = self._macros(workload)
            if any(program.macros == macros for program in found):
                continue
            code = next(each.code for each in self.objects if workload.workload in each.workloads)
            signatures = kernels(source.device_code, source.language.value, macros)
            found.append(
                BuiltProgram(macros=macros, code=base64.b64decode(code), kernels=signatures)
            )
        return tuple(found)

    def _macros(self, workload: WorkloadAdmission) -> dict[str, TuneValue]:
        chosen = chosen_values(self.plan, self.configuration)
        names = name_table(workload.tensors, workload.scalars)
        limits = device_limits(self.admission.device)
        return {**chosen, **constants(self.plan, names, chosen, limits)}

    def sizes(self, workload: WorkloadAdmission) -> dict[str, int]:
        """Return the sizes of a workload: all that some workload overrides."""
        known, own = self._file_sizes(), _sizes(workload)
        return {
            name: own.get(name, known[name]) for other in self.workloads for name in _sizes(other)
        }

    def _file_sizes(self) -> dict[str, int]:
        task = self.record.task
        return size_constants(parse_reference(task.reference, file_name=task.name))


def winner_of_run(foundry: Foundry, run: str) -> Winner:
    """Return the winner of a run ("" for the newest), built for the device it was judged on.

    Raises:
        EliteNotFoundError: nothing of it passed.
        InvalidArgumentError: nobody signed for it, or its task is one that no file can hold.
        BackendUnavailableError: the device is not here.
    """
    record = record_of_run(foundry, run)
    if record.task.constants:
        listed = ", ".join(record.task.constants)
        raise InvalidArgumentError(
            f"the task says that {listed} never change, so kernels may rely on their values, "
            "which an exported file cannot promise: leave `constants` out of the sidecar",
            field="constants",
        )
    scalars = sorted({s.name for w in record.task.workloads for s in w.scalars})
    if scalars:
        raise InvalidArgumentError(
            f"workloads of the task differ in {', '.join(scalars)}, and an exported file is tried"
            " on sizes alone: make a task for each value",
            field="workloads",
        )
    device = record.evaluation.device
    admission = foundry.admit(record.task, device=device.partition(":")[0])
    built = foundry.evaluate(
        record.task,
        record.source,
        device=device.partition(":")[0],
        configuration=record.evaluation.configuration,
        build_only=True,
        with_objects=True,
    )
    if built.outcome is not EvaluationOutcome.BUILT or built.compile is None:
        raise BackendUnavailableError(
            f"the winner cannot be built again here: {built.outcome.value}: "
            + "; ".join(finding.message for finding in built.findings)
        )
    return Winner(record=record, admission=admission, objects=built.compile.objects)


def tensors_of(workload: WorkloadAdmission, *roles: TensorRole) -> tuple[NamedTensor, ...]:
    """Return the tensors of a workload in some roles, in order."""
    return tuple(tensor for tensor in workload.tensors if tensor.role in roles)


def sizes_in_calls(reference: str) -> frozenset[str]:
    """Return the module-level names that a reference's own classes and functions read in a call.

    Those of `get_inputs` and `get_init_inputs` are left out: they only make arguments. So are
    those that a constructor itself reads, as the module that it makes tells them: unless a call
    reads the name of its class, and may make another one.
    """
    reads = _reads(ast.parse(reference))
    tables = symtable.symtable(reference, "reference", "exec").get_children()
    arguments = ("get_inputs", "get_init_inputs")
    wanted = [n for t in tables if t.get_name() not in arguments for n in _globals(t, "__init__")]
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            wanted += reads.get(name, ())
            wanted += [n for t in tables if t.get_name() == name for n in _globals(t)]
    return frozenset(found)


def _globals(table: symtable.SymbolTable, without: str = "") -> Iterator[str]:
    """Names of the module that a class or a function reads, but for functions of a name."""
    if table.get_name() != without:  # a function inside it may be called later
        yield from (
            s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()
        )
    for inner in table.get_children():
        yield from _globals(inner, without)


def _reads(tree: ast.Module) -> Mapping[str, set[str]]:
    """Names that are read where a name of the module gets its value."""
    found: dict[str, set[str]] = {}
    for statement in tree.body:
        read: list[ast.AST]
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                defaults = [*statement.args.defaults, *statement.args.kw_defaults]
                read = [*filter(None, defaults), *statement.decorator_list]
                stored = {statement.name}
            case ast.ClassDef():
                read = [*statement.bases, *statement.decorator_list]
                stored = {statement.name}
            case _:
                read = [statement]
                stored = _names(statement, ast.Store)
        for name in stored:
            found.setdefault(name, set()).update(*(_names(node, ast.Load) for node in read))
    return found


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


def _sizes(workload: WorkloadAdmission) -> dict[str, int]:
    """The sizes in a workload's name, which is made of them: "batch=3,dim=1001"."""
    if "=" not in workload.workload:
        return {}
    pairs = (part.partition("=") for part in workload.workload.split(","))
    return {name: int(value) for name, _, value in pairs}
