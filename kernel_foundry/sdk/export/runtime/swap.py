"""Puts exported modules in place of the reference's in a larger model."""

from typing import Any

from torch import nn

from kernel_foundry.sdk.export.runtime.module import Module, identity_of
from kernel_foundry.sdk.export.runtime.same_source import is_same_source
from kernel_foundry.sdk.export.runtime.task import TASK


def swap(model: nn.Module, of: type[nn.Module] | None = None) -> nn.Module:
    """Replace the reference's modules in a model; they keep their parameters and buffers.

    Args:
        model: Its modules are replaced in place.
        of: Class of the modules to replace; without it, those whose class has the same source as
            the reference's.

    Returns:
        The model; its replacement, where it is such a module itself.

    Raises:
        ValueError: there is no such module in it.
    """
    made: dict[int, nn.Module] = {}
    seen: set[int] = set()

    def replaced(module: nn.Module) -> nn.Module:
        kind: Any = type(module)
        if "_kf_class" in vars(module):  # of this file or of another one: its parts are its own
            return module
        if id(module) in made:
            return made[id(module)]
        if kind is of if of else is_same_source(kind):
            made[id(module)] = adopted(module)
            return made[id(module)]
        if id(module) not in seen:
            seen.add(id(module))
            for name, child in module._modules.items():
                if child is not None:
                    module._modules[name] = replaced(child)
        return module

    result = replaced(model)
    if not made:
        looked_for = of or f"a class with the source of `Model` in this file, of task {TASK}"
        raise ValueError(
            f"the model has no module of {looked_for}; swap(model, of=CLASS) names one"
        )
    return result


def adopted(module: nn.Module, to: type[nn.Module] = Module) -> nn.Module:
    """Return an exported module in place of one, whose parts are the user's own once more."""
    given_back: dict[int, nn.Module] = {}
    for part in module.modules():
        for name, child in part._modules.items():
            kind = None if child is None else vars(child).get("_kf_class")
            if child is not None and kind is not None and kind is not type(child):
                if id(child) not in given_back:
                    given_back[id(child)] = _alike(child, kind)
                part._modules[name] = given_back[id(child)]
    made = _alike(module, to)
    made.__dict__["_kf_class"] = type(module)
    made.__dict__["_kf"] = identity_of(made)
    return made


def _alike(module: nn.Module, kind: type[nn.Module]) -> nn.Module:
    """A module of another class with the same attributes, parameters and parts."""
    made: nn.Module = kind.__new__(kind)
    made.__dict__.update({n: v for n, v in vars(module).items() if not n.startswith("_kf")})
    return made
