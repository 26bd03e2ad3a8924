"""A reference whose module computes the gradient of what its file computes, as text.

The file stays as it is; what is added at its end puts `Model.forward` and `get_inputs` in the
gradient's place. So a task of a gradient is a task as any other, and its text says all of it.
"""

import ast
import re
from collections.abc import Sequence
from typing import Final

from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.task_source import parse_reference

_NAMES: Final = (
    *("float_tensors", "init_of_model", "forward_of_model", "inputs_of_forward"),
    *("init_with_names", "results_of_forward", "gradient"),
)
"""What the added text binds; each gets a `_` where the file has the word already."""

_WANTED: Final = "    wanted = "
_ADDED: Final = '''

# Added for `backward` of the sidecar: the task is the gradient of the module above.
import functools

import torch

{inputs_of_forward} = get_inputs
{forward_of_model} = Model.forward
{init_of_model} = Model.__init__


def {float_tensors}(value):
    """The tensors of floats in a tensor, a list or a tuple, in order."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in {float_tensors}(item)]


@functools.wraps({init_of_model})
def {init_with_names}(self, *arguments, **keywords):
    {init_of_model}(self, *arguments, **keywords)
    self._trained = tuple(name for name, value in self.named_parameters() if value.requires_grad)


def {gradient}(self{arguments}, {grad}):
    """Gradients of a loss by inputs of floats, then by trained parameters, in their order.

    `{grad}` is its gradient by what the module gives (a list where that is several tensors).
    """
    if {grad} is None:
        return {forward_of_model}(self{arguments})
    given = {{{mapping}}}
    weights = dict(self.named_parameters())
    wanted = {wanted!r} or (*given, *self._trained)
    of_inputs = {{
        name: value
        for name, value in given.items()
        if name in wanted and {float_tensors}(value)
    }}
    of_weights = {{name: weights[name] for name in self._trained if name in wanted}}
    if unknown := ", ".join(sorted(set(wanted) - {{*given, *of_weights}})):
        raise ValueError(f"backward: no input and no trained parameter {{unknown}}")
    if not of_inputs and not of_weights:
        raise ValueError("backward: nothing here has a gradient")

    def results(inputs, weights):
        # Running statistics change within, and not those of the module.
        buffers = {{name: value.clone() for name, value in self.named_buffers()}}
        values = ({{**given, **inputs}}).values()
        found = torch.func.functional_call(self, {{**buffers, **weights}}, (*values, None))
        return {float_tensors}(found)

    if torch.compiler.is_compiling():  # which follows no other way in one graph
        _, pull = torch.func.vjp(results, of_inputs, of_weights)
        found = pull({float_tensors}({grad}))
        return tuple({float_tensors}([*found[0].values(), *found[1].values()]))
    with torch.enable_grad():
        inputs, weights = torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda t: t.detach().requires_grad_(), (of_inputs, of_weights)
        )
        leaves = {float_tensors}([*inputs.values(), *weights.values()])
        found = results(inputs, weights)
        return torch.autograd.grad(found, leaves, {float_tensors}({grad}), materialize_grads=True)


def {results_of_forward}(values):
    """What the module gives for inputs: shapes alone, where they can be had without values."""
    try:
        with torch.device("meta"), torch.no_grad():
            moved = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), values)
            return {forward_of_model}(Model({init}), *moved)
    except (NotImplementedError, RuntimeError, TypeError):
        with torch.no_grad():
            return {forward_of_model}(Model({init}), *values)


def get_inputs():
    values = list({inputs_of_forward}())
    found = {float_tensors}({results_of_forward}(values))
    grads = [torch.randn(tensor.shape, dtype=tensor.dtype) for tensor in found]
    return [*values, grads[0] if len(grads) == 1 else grads]


Model.__init__ = {init_with_names}
Model.forward = {gradient}
'''


def with_gradient(text: str, wanted: Sequence[str] = (), *, file_name: str) -> str:
    """Return a reference with the gradient of its module in the module's place.

    Its inputs are those of forward, then the gradient by each of its results. It gives the
    gradients by inputs of floats, then by the parameters that are trained.

    Args:
        text: The reference.
        wanted: Inputs and parameters, by their names, of which it gives gradients; empty: all.
        file_name: For messages.

    Raises:
        TaskInvalidError: the module's forward has no plain arguments.
    """
    tree = parse_reference(text, file_name=file_name)
    names = _arguments(tree, file_name)
    free = {name: _free(name, text) for name in _NAMES}
    has_init = any(
        isinstance(n, ast.FunctionDef) and n.name == "get_init_inputs" for n in tree.body
    )
    parts = {
        "arguments": "".join(f", {name}" for name in names),
        "mapping": ", ".join(f'"{name}": {name}' for name in names),
        "grad": _free("grad_out", text),
        "init": "*get_init_inputs()" if has_init else "",
        "wanted": tuple(wanted),
    }
    return text.rstrip() + "\n" + _ADDED.format(**free, **parts)


def gradient_of(text: str, reference: str) -> tuple[str, ...] | None:
    """Return what a gradient's text wants the gradients of, by name; empty: of all there is.

    Args:
        text: Of the gradient.
        reference: Whose gradient it has to be.

    Returns:
        None where the text is not the gradient of this reference.
    """
    for found in re.findall(rf"{re.escape(_WANTED)}(\(.*\)) or ", text)[-1:]:
        try:
            wanted = ast.literal_eval(found)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
        if not isinstance(wanted, tuple):
            return None
        if with_gradient(reference, wanted, file_name="reference") == text:
            return tuple(wanted)
    return None


def _arguments(tree: ast.Module, file_name: str) -> list[str]:
    """Return the names of the arguments that forward is called with."""
    models = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
    methods = [n for m in models[-1:] for n in m.body if isinstance(n, ast.FunctionDef)]
    forward = next((m.args for m in methods if m.name == "forward"), None)
    if forward is None or forward.vararg or forward.kwonlyargs or forward.kwarg:
        raise TaskInvalidError(
            f"{file_name}: backward needs a forward in the class Model, with plain arguments",
            file=file_name,
            key="backward",
        )
    names = [a.arg for a in (*forward.posonlyargs, *forward.args)][1:]
    needed = len(names) - len(forward.defaults)
    return names[: max(_given_count(tree), needed)]


def _given_count(tree: ast.Module) -> int:
    """Return how many values `get_inputs` gives, where its text shows that; else 0."""
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_inputs"]
    returned = functions[-1].body[-1] if functions else None
    value = returned.value if isinstance(returned, ast.Return) else None
    is_listed = isinstance(value, ast.List | ast.Tuple)
    if not is_listed or any(isinstance(item, ast.Starred) for item in value.elts):  # type: ignore[union-attr]
        return 0
    return len(value.elts)  # type: ignore[union-attr]


def _free(name: str, text: str) -> str:
    while re.search(rf"\b{name}\b", text):
        name += "_"
    return name
