"""Which judged module a module is, what to watch for changes, and its calls that are known."""

import json
from operator import is_, itemgetter
from typing import Any, Final

import torch
from torch import nn

from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.known_call import KnownCall, Watched, known_call, watched
from kernel_foundry.sdk.export.runtime.plan import NoKernelError
from kernel_foundry.sdk.export.runtime.reference import (
    own_attributes,
    sizes_of_module,
    weights_of,
)
from kernel_foundry.sdk.export.runtime.task import WORKLOADS

_MOST_KNOWN: Final = 8
"""Kinds of calls that a module is quick with."""
_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_ITEMS: Final = (bool, int, float, str, type(None))
_PLACES: Final = ("_modules", "_parameters", "_buffers")
"""Attributes of a module where its parts and its weights are."""


class Identity:
    """Which judged module a module is.

    Args:
        module: The module.
        own: Name of the Python module where its own classes are.
    """

    def __init__(self, module: nn.Module, own: str) -> None:
        self.module = module
        """It."""
        self.kind = self.reason = ""
        self.parts = list(module.modules())
        try:
            kind = sizes_of_module(module, own)
            weights_of(module)
            self.kind = json.dumps(dict(kind))
        except NoKernelError as error:
            self.reason = str(error)
        self._names = [
            (vars(p), vars(p).keys() | ({"_kf"} if p is module else ()), p._modules, [*p._modules])
            for p in self.parts
        ]
        self._ties = _ties(self.parts)
        self._attributes = [
            _attributes(p._modules, list(p._modules)) for p in self.parts if p._modules
        ]
        for part in self.parts:
            names = [*_PLACES, *(name for name, _ in own_attributes(part))]
            self._attributes.append(_attributes(vars(part), names))
        self.attributes = [
            (part, name, value)
            for part in self.parts
            for name, value in own_attributes(part)
            if isinstance(value, bool | int | float | str | None)
            or (isinstance(value, tuple) and all(type(item) in _ITEMS for item in value))
        ]
        """Those that are plain, each with its module and its name."""
        self.children = [(part, list(part._modules.items())) for part in self.parts]
        """Of each part, by their names."""
        self.hooks = self._inner_hooks()
        """Of the parts: torch.compile watches them here, but not where the parts have them."""
        self._weights = [_owner(module, path) for path in WORKLOADS[0]["weights"].values()]
        owners = [owner for owner, _ in self._weights]
        places = [place for p in self.parts for place in (vars(p), *_places_of(p))]
        self._places = list({id(place): place for place in (*places, *owners)}.values())
        self._versions: tuple[int, ...] = ()
        self.known: tuple[KnownCall, ...] = ()
        """Calls of forward, by tensors alone, that were as judged; None comes of any other."""
        self.known_whole: tuple[KnownCall, ...] = ()
        """The same of a module without hooks of its own, where forward is all of its call."""

    @property
    def is_stale(self) -> bool:
        """Whether an attribute, a part or a weight is new, gone or, but for weights, replaced."""
        for values, names, parts, children in self._names:
            if values.keys() != names or list(parts) != children:
                return True
        if _ties(self.parts) != self._ties:
            return True
        try:
            for values, read, known in self._attributes:
                if not all(map(is_, read(values), known)):
                    return True
        except KeyError:
            return True
        return False

    @property
    def has_hooks(self) -> bool:
        """Whether a part of the module has hooks, which kernels would not run."""
        return any(self._inner_hooks())

    def watched(self) -> Watched | None:
        """Return the module as it is now; None where torch cannot tell whether it changes."""
        return watched(self._places, self._inner_hooks())

    def know(
        self,
        arguments: tuple[Any, ...],
        call: BoundCall,
        tensors: list[torch.Tensor],
        before: Watched,
        *,
        is_whole: bool,
    ) -> None:
        """Remember a call that was as judged, if all its arguments are tensors.

        Args:
            arguments: Of forward.
            call: Bound to them.
            tensors: Inputs and weights.
            before: The module as it was before any of this was looked at.
            is_whole: Whether forward is all of a call of the module, but for hooks.
        """
        if not all(isinstance(argument, torch.Tensor) for argument in arguments):
            return
        weights = tensors[len(arguments) :]
        if [id(owner.get(name)) for owner, name in self._weights] != list(map(id, weights)):
            return  # they are made anew in each call, by a parametrization
        known = known_call(call, list(arguments), weights, before)
        if known is None:
            return
        if before.versions != self._versions:
            # What was known of other weights would hold them for ever.
            self.known = self.known_whole = ()
        self._versions = before.versions
        self.known = (known, *self.known[: _MOST_KNOWN - 1])
        own = [getattr(self.module, name) for name in _HOOKS]
        of_all = [getattr(nn.modules.module, f"_global{name}") for name in _HOOKS]
        outside = before._replace(empty=(*before.empty, *own, *of_all))
        if is_whole and (whole := known_call(call, list(arguments), weights, outside)):
            self.known_whole = (whole, *self.known_whole[: _MOST_KNOWN - 1])
        else:
            self.known_whole = ()

    def _inner_hooks(self) -> list[Any]:
        return [getattr(part, name) for part in self.parts[1:] for name in _HOOKS]


def _attributes(
    values: dict[str, Any], names: list[str]
) -> tuple[dict[str, Any], Any, tuple[Any, ...]]:
    """Attributes, what reads some of them at once, and what it reads now."""
    read = itemgetter(*names, names[0])  # of one name it would return no tuple
    return values, read, read(values)


def _places_of(part: nn.Module) -> list[dict[str, Any]]:
    return [vars(part)[name] for name in _PLACES]


def _ties(parts: list[nn.Module]) -> list[int]:
    """For each place of a weight, which one is there, counted in order: -1 for none."""
    found: dict[int, int] = {}
    return [
        -1 if weight is None else found.setdefault(id(weight), len(found))
        for part in parts
        for place in (part._parameters, part._buffers)
        for weight in place.values()
    ]


def _owner(module: nn.Module, path: str) -> tuple[dict[str, Any], str]:
    """The attributes among which a parameter or buffer is, and its name there."""
    owner, _, name = path.rpartition(".")
    try:
        part = module.get_submodule(owner)
    except AttributeError:
        return {}, name
    places: tuple[dict[str, Any], ...] = (vars(part), part._parameters, part._buffers)
    return next((place for place in places if name in place), {}), name
