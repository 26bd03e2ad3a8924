"""The reference at any sizes, and what sizes a module or a call has.

A call is one that the task describes when some sizes make the reference's own `get_inputs` give
tensors of these shapes, and its own constructor a module like this one.
"""

import ast
import inspect
import itertools
import keyword
import linecache
import math
import random
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from kernel_foundry.sdk.export.runtime.plan import NoKernelError
from kernel_foundry.sdk.export.runtime.task import (
    CAST,
    CONTAINER,
    DIGEST,
    IGNORES_MODE,
    INPUTS,
    OUTPUTS,
    REFERENCE,
    TASK,
    TRAINING,
    WORKLOADS,
)

Sizes = tuple[tuple[str, int], ...]
"""Values of module-level names of the reference, by name."""
Shape = tuple[int, ...]

_NAME: Final = f"{TASK}_{DIGEST}_reference"
"""How the names of its modules begin: torch.compile imports modules by name, so each has its own
among those that are loaded."""
_numbers: Final = itertools.count()
_OWN: Final = frozenset(vars(nn.Module())) | {
    "_is_replica",
    "_former_parameters",
    "_compiled_call_impl",
}
"""Attributes that every module may have: those of replicas of `nn.DataParallel`, and what
`compile()` of a module leaves, are among them."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
_LONGEST_TEXT: Final = 64
_RANDOM: Final = (torch.randn, torch.rand, torch.randint)
_TENSOR: Final = "tensor"
"""Stands for a tensor among the arguments of forward."""


@cache
def reference_at(sizes: Sizes) -> types.ModuleType:
    """Return the reference's module with these sizes; others are as in its file."""
    tree = ast.parse(REFERENCE)
    wanted = dict(sizes)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
        elif isinstance(statement, ast.AnnAssign):
            target = statement.target
        else:
            continue
        if isinstance(target, ast.Name) and target.id in wanted:
            statement.value = ast.copy_location(ast.Constant(wanted[target.id]), target)
    module = types.ModuleType(f"{_NAME}_{next(_numbers)}")
    file = f"<{module.__name__} {wanted}>"
    lines = REFERENCE.splitlines(keepends=True)
    linecache.cache[file] = (len(REFERENCE), None, lines, file)
    sys.modules[module.__name__] = module
    exec(compile(ast.fix_missing_locations(tree), file, "exec"), module.__dict__)
    return module


@cache
def skeleton(sizes: Sizes) -> nn.Module:
    """Return the module that the reference's constructor makes for these sizes, without memory."""
    source = reference_at(sizes)
    with _undisturbed():
        arguments: list[Any] = getattr(source, "get_init_inputs", list)()
        with torch.device("meta"), _Unfilled():
            model: nn.Module = source.Model(*arguments)
    for module in model.modules():
        for name in [k for k, v in vars(module).items() if type(v) is torch.Tensor]:
            module.register_buffer(name, vars(module).pop(name), persistent=False)
    model.to(device="meta", dtype=getattr(torch, CAST) if CAST else None)
    return model.train(TRAINING).requires_grad_(requires_grad=False)


def state_of(model: nn.Module, own: str = "") -> tuple[Any, ...]:
    """Return all of a module that decides what it computes, but its tensors.

    Args:
        model: The module.
        own: Name of the Python module where its own classes are; "" for the reference's.

    Raises:
        NoKernelError: an attribute is an object that cannot be compared.
    """
    state = []
    # A part that is used twice is two: what follows it may not be.
    for path, module in model.named_modules(remove_duplicate=False):
        name = _full_name(type(module), own) if path else ""
        described = [(n, _described(f"{path}.{n}", v, own)) for n, v in own_attributes(module)]
        state.append((path, name, tuple(sorted(described))))
    return tuple(state)


def scalars_of(model: nn.Module, constants: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the numbers and texts of a module and of constant arguments, by their plan names."""
    taken = set(WORKLOADS[0]["tensors"])
    found: dict[str, Any] = {}
    attributes = [
        (f"{path}.{name}" if path else name, value)
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "training"
    ]
    for path, value in [*constants, *attributes]:
        if _is_scalar(value):
            found[_free(path, taken)] = value
    return found


def inputs_at(sizes: Sizes) -> list[Any] | None:
    """Return what `get_inputs` gives for these sizes, without memory; None where it needs some."""
    try:
        with _undisturbed(), torch.device("meta"), _Unfilled():
            return list(reference_at(sizes).get_inputs())
    except Exception:  # noqa: BLE001  the user's own code may raise anything
        return None


def flat(values: Any) -> tuple[list[torch.Tensor], list[Any]]:
    """Return the tensors among arguments, and the arguments with a word in place of each."""
    tensors: list[torch.Tensor] = []
    rest: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            rest.append(_TENSOR)
        elif isinstance(value, list | tuple) and value and isinstance(value[0], torch.Tensor):
            tensors.extend(value)
            rest.append([_TENSOR] * len(value))
        else:
            rest.append(value)
    return tensors, rest


def filled(rest: list[Any], tensors: list[torch.Tensor]) -> list[Any]:
    """Return arguments from what `flat` made of them."""
    left = iter(tensors)
    return [
        next(left)
        if isinstance(item, str) and item == _TENSOR
        else [next(left) for _ in item]
        if isinstance(item, list) and item and item[0] == _TENSOR
        else item
        for item in rest
    ]


def sizes_of_module(model: nn.Module, own: str = "") -> Sizes:
    """Return sizes for which the reference's constructor makes a module like this one.

    Raises:
        NoKernelError: there are none, and why.
    """
    state = state_of(model, own)
    shapes = _weight_shapes(model)
    for workload in WORKLOADS:
        for sizes in (workload["sizes"], workload["sizes"] | _read(shapes)):
            found = tuple(sorted(sizes.items()))
            made = skeleton(found)
            if _weight_shapes(made) == shapes and state_of(made) == state:
                return found
    raise NoKernelError(_difference(state, state_of(skeleton(_judged_sizes()))))


@cache
def rest_of(kind: Sizes) -> list[Any]:
    """Return the arguments of a module's forward with a word in place of each tensor."""
    values = inputs_at(kind)
    return [_TENSOR] * len(INPUTS) if values is None else flat(values)[1]


@cache
def sizes_of_call(kind: Sizes, shapes: tuple[Shape, ...]) -> Sizes:
    """Return the sizes of a call.

    Raises:
        NoKernelError: the task does not describe such a call.
    """
    named = dict(zip(INPUTS, shapes, strict=True))
    judged = [workload["sizes"] for workload in WORKLOADS if _fits(workload, named)]
    for sizes in (*judged, dict(kind) | _read(named)):
        found = tuple(sorted(sizes.items()))
        values = inputs_at(found)
        tensors, rest = ([], rest_of(kind)) if values is None else flat(values)
        is_shaped = sizes in judged or [tuple(t.shape) for t in tensors] == list(shapes)
        if is_shaped and rest == rest_of(kind) and _is_same_module(found, kind):
            return found
    raise NoKernelError(f"the task has no inputs of the shapes {shapes} for this module")


@cache
def kind_for(shapes: tuple[Shape, ...]) -> Sizes:
    """Return the sizes of the module that a task calls with inputs and weights of some shapes.

    Where it names no such workload: of the first with such weights, else of its first.
    """
    weights = WORKLOADS[0]["weights"]
    named = dict(zip((*INPUTS, *weights), shapes, strict=True))
    own = {name: named[name] for name in weights}
    judged = [w["sizes"] for part in (named, own) for w in WORKLOADS if _fits(w, part)]
    return tuple(sorted([*judged, WORKLOADS[0]["sizes"]][0].items()))


@cache
def outputs_of(kind: Sizes, shapes: tuple[Shape, ...]) -> tuple[tuple[Shape, str], ...]:
    """Return shape and dtype of each output for inputs of some shapes.

    Raises:
        NoKernelError: the reference cannot tell without computing.
    """
    sizes = dict(sizes_of_call(kind, shapes))
    for workload in WORKLOADS:
        if workload["sizes"] == sizes:
            return tuple((workload["tensors"][n][1], workload["tensors"][n][0]) for n in OUTPUTS)
    dtypes = [WORKLOADS[0]["tensors"][name][0] for name in INPUTS]
    tensors = [
        torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    try:
        with torch.no_grad():
            results = results_of(skeleton(kind)(*filled(rest_of(kind), tensors)))
    except Exception as error:
        raise NoKernelError(f"the reference without memory: {error}") from error
    return tuple((tuple(r.shape), str(r.dtype).removeprefix("torch.")) for r in results)


def results_of(result: Any) -> list[torch.Tensor]:
    """Return a module's results as a list."""
    return [result] if isinstance(result, torch.Tensor) else list(result)


def returned(results: list[torch.Tensor]) -> Any:
    """Return results as the reference's forward does."""
    if CONTAINER == "tensor":
        return results[0]
    return results if CONTAINER == "list" else tuple(results)


def weights_of(model: nn.Module) -> list[torch.Tensor]:
    """Return parameters and buffers of a module, in the order of `WORKLOADS`.

    Raises:
        NoKernelError: one of them is gone.
    """
    found = []
    for path in WORKLOADS[0]["weights"].values():
        owner, _, name = path.rpartition(".")
        value = getattr(model.get_submodule(owner), name, None)
        if not isinstance(value, torch.Tensor):
            raise NoKernelError(f"the module has no tensor {path}")
        found.append(value)
    return found


def with_weights(
    kind: Sizes, inputs: list[torch.Tensor], weights: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Return the reference's results for given weights."""
    named = dict(zip(WORKLOADS[0]["weights"].values(), weights, strict=True))
    arguments = tuple(filled(rest_of(kind), inputs))
    return results_of(torch.func.functional_call(skeleton(kind), named, arguments))


def check_mode(model: nn.Module) -> None:
    """Refuse a module in another mode than the judged one, unless that is the same to it.

    Raises:
        NoKernelError: it is.
    """
    if not IGNORES_MODE and any(module.training is not TRAINING for module in model.modules()):
        mode = "training" if TRAINING else "evaluation"
        raise NoKernelError(f"the kernels were judged in {mode} mode alone")


def _is_same_module(sizes: Sizes, kind: Sizes) -> bool:
    return sizes == kind or (
        _weight_shapes(skeleton(sizes)) == _weight_shapes(skeleton(kind))
        and state_of(skeleton(sizes)) == state_of(skeleton(kind))
    )


def _judged_sizes() -> Sizes:
    return tuple(sorted(WORKLOADS[0]["sizes"].items()))


def own_attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a module that are neither tensors nor every module's."""
    for name, value in vars(module).items():
        if name not in _OWN and not isinstance(value, torch.Tensor) and not name.startswith("_kf"):
            yield name, value


def _full_name(value: Any, own: str) -> str:
    """Of a class or a function; those of the user's file are called as those of the reference's."""
    is_own = value.__module__ == own or str(value.__module__).startswith(_NAME)
    return f"{'' if is_own else value.__module__}.{value.__qualname__}"


def _described(path: str, value: Any, own: str) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple | set | frozenset):
        items = [_described(path, item, own) for item in value]
        return f"{type(value).__name__}{items}"
    if isinstance(value, dict):
        return f"dict{[(repr(k), _described(path, v, own)) for k, v in value.items()]}"
    is_named = isinstance(value, types.FunctionType | types.BuiltinFunctionType | type)
    if is_named and value.__name__ != "<lambda>":
        return _full_name(value, own)
    raise NoKernelError(f"{path} is a {type(value).__name__}, which cannot be compared")


def _weight_shapes(model: nn.Module) -> dict[str, Shape]:
    names = {path: name for name, path in WORKLOADS[0]["weights"].items()}
    found: dict[str, Shape] = {}
    tensors = [*model.named_parameters(), *model.named_buffers()]
    for path, module in model.named_modules():
        plain = [(k, v) for k, v in vars(module).items() if type(v) is torch.Tensor]
        tensors += [(f"{path}.{k}" if path else k, v) for k, v in plain]
    for path, value in tensors:
        found[names.get(path, path)] = tuple(value.shape)
    return found


def _fits(workload: dict[str, Any], shapes: dict[str, Shape]) -> bool:
    return all(workload["tensors"][name][1] == shape for name, shape in shapes.items())


def _read(shapes: dict[str, Shape]) -> dict[str, int]:
    """Sizes that stand as they are among some shapes, in every workload that was judged."""
    found: dict[str, int] = {}
    for size in WORKLOADS[0]["sizes"]:
        for name, dimension in _places(size):
            if name in shapes and dimension < len(shapes[name]):
                found.setdefault(size, shapes[name][dimension])
    return found


@cache
def _places(size: str) -> list[tuple[str, int]]:
    first = WORKLOADS[0]["tensors"]
    return [
        (name, dimension)
        for name, (_, shape) in first.items()
        for dimension in range(len(shape))
        if all(
            len(w["tensors"][name][1]) > dimension
            and w["tensors"][name][1][dimension] == w["sizes"][size]
            for w in WORKLOADS
        )
    ]


def _difference(state: tuple[Any, ...], judged: tuple[Any, ...]) -> str:
    known = {path: rest for path, *rest in judged}
    for path, name, attributes in state:
        if known.get(path) != [name, attributes]:
            return f"the module is none that was judged: {path or 'it'} has {dict(attributes)}"
    return "the module is none that was judged: sizes of its weights"


def _is_scalar(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    if isinstance(value, tuple):
        return bool(value) and all(type(item) in (int, float) for item in value)
    return isinstance(value, int)


def _free(path: str, taken: set[str]) -> str:
    """The identifier for a dotted path, made unique."""
    base = path.replace(".", "_")
    base = base if base.isidentifier() else f"_{base}"
    base = f"{base}_" if keyword.iskeyword(base) else base
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


class _Unfilled(TorchFunctionMode):
    """Makes random tensors without numbers: without memory torch's own first import SymPy."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        named = dict(kwargs or {})
        if func not in _RANDOM or named.keys() & {"device", "out"}:
            return func(*args, **named)
        if func is torch.randint:
            args = () if "size" in named else args[-1:]
            named["dtype"] = named.get("dtype") or torch.int64
        return torch.empty(
            *args, **{n: v for n, v in named.items() if n not in ("low", "high", "generator")}
        )


class _undisturbed:  # noqa: N801  a context, written as one
    """Keeps the generators that the reference may draw from as they are."""

    def __enter__(self) -> None:
        self._python = random.getstate()
        self._torch = torch.random.get_rng_state()

    def __exit__(self, *_: object) -> None:
        random.setstate(self._python)
        torch.random.set_rng_state(self._torch)


def argument_names() -> tuple[str, ...]:
    """Return the names of forward's arguments that can be given by position."""
    parameters = inspect.signature(reference_at(()).Model.forward).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(p.name for p in parameters if p.kind in kinds)[1:]


def constants_of(kind: Sizes) -> list[tuple[str, Any]]:
    """Return the arguments of a module's forward that are no tensors, by name."""
    named = zip(argument_names(), rest_of(kind), strict=False)
    return [(name, item) for name, item in named if item not in (_TENSOR, [_TENSOR])]
