"""Objects of a user's program as Python text: values as expressions, classes with all they need.

Whoever has the text can make the same objects without the program. What cannot be written is
refused by name, with the reason.
"""

import __future__

import ast
import builtins
import dataclasses
import inspect
import math
import symtable
import sys
import sysconfig
import textwrap
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

import torch
from torch import nn

_PLACES: Final = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")
)
_CONSTRUCTED_WITH: Final = "_kf_constructor_call"
"""Attribute of a module that was made after `keep_constructor_calls`."""
_TORCH: Final = ("torch", "torch.nn", "torch.nn.functional")
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


class NotWritableError(Exception):
    """An object cannot be written as Python; the message says which and why."""


class ConstructorCall:
    """The arguments that a module was made with; copies of the module share it."""

    def __init__(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.arguments = arguments
        self.named = named

    def __deepcopy__(self, memo: dict[int, Any]) -> "ConstructorCall":
        return self

    def __reduce__(self) -> tuple[type, tuple[()]]:
        # A model that the program saves can be loaded without this package.
        return (tuple, ())


def keep_constructor_calls() -> None:
    """Have every module that is made from now on know the arguments that it was made with."""

    def new(kind: type[nn.Module], *arguments: Any, **named: Any) -> nn.Module:
        made: nn.Module = object.__new__(kind)
        made.__dict__[_CONSTRUCTED_WITH] = ConstructorCall(arguments, named)
        return made

    nn.Module.__new__ = staticmethod(new)  # type: ignore[method-assign,assignment]


class PythonText:
    """A text that grows by what is asked of it: imports, then definitions in order."""

    def __init__(self) -> None:
        self._imports: dict[str, None] = {"import torch": None, "from torch import nn": None}
        self._definitions: dict[str, str] = {}
        self._values: dict[str, Any] = {"torch": torch, "nn": nn}
        self._future = False

    def imports(self) -> str:
        """Return the lines that import what the definitions need."""
        future = "from __future__ import annotations\n\n" if self._future else ""
        return future + "\n".join(sorted(self._imports))

    def definitions(self) -> str:
        """Return what was asked for, in the order in which each needs the others."""
        return "\n\n\n".join(text.strip("\n") for text in self._definitions.values()) + "\n"

    def free(self, name: str) -> str:
        """Return a name that nothing else in the text has."""
        while name in self._values or hasattr(builtins, name):
            name += "_"
        return name

    def define_model(self, kind: type[nn.Module]) -> None:
        """Add the class as `Model`.

        Raises:
            NotWritableError: something that it needs cannot be written, as below.
        """
        if _is_installed(kind.__module__):
            base = f"nn.{kind.__name__}" if _named_in(nn, kind) else self.name_of(kind)
            self._add("Model", f"class Model({base}):\n    pass", None)
            return
        source = self._source_of(kind)
        head = f"class {kind.__name__}"
        self._add("Model", source.replace(head, "class Model", 1), kind)
        if kind.__name__ != "Model" and kind.__name__ in _globals(source):
            self._add(kind.__name__, f"{kind.__name__} = Model", kind)

    def arguments_of(self, module: nn.Module) -> str:
        """Return what the constructor of a module took, by position.

        Raises:
            NotWritableError: an argument cannot be written, or is taken by keyword only.
        """
        call = self._constructor_call(module)
        kind = type(module)
        parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
        values, named = list(call.arguments), dict(call.named)
        for parameter in parameters[len(values) :]:
            if not named or parameter.kind not in _POSITIONAL:
                break
            if parameter.name in named:
                values.append(named.pop(parameter.name))
            elif parameter.default is not parameter.empty:
                values.append(parameter.default)
        if named:
            raise NotWritableError(
                f"the constructor of {kind.__name__} takes {', '.join(named)} by keyword, and a"
                " task's constructor has arguments by position"
            )
        texts = []
        for index, value in enumerate(values):
            name = parameters[index].name if index < len(parameters) else f"argument {index}"
            is_device = name == "device" or isinstance(value, torch.device)
            texts.append("None" if is_device else self.expression(value, name))
        return ", ".join(texts)

    def expression(self, value: Any, name: str) -> str:
        """Return an expression for a value; `name` is what an error calls it.

        Raises:
            NotWritableError: there is none.
        """
        if isinstance(value, Enum):
            return f"{self.name_of(type(value))}.{value.name}"
        if value is None or isinstance(value, bool | int | str | bytes | complex):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, torch.dtype | torch.Size):
            return str(value)
        if isinstance(value, dict):
            pairs = (
                f"{self.expression(k, name)}: {self.expression(v, name)}" for k, v in value.items()
            )
            return f"{{{', '.join(pairs)}}}"
        if type(value) in (list, tuple):
            items = ", ".join(self.expression(item, name) for item in value)
            comma = "," if type(value) is tuple and len(value) == 1 else ""
            return f"[{items}]" if type(value) is list else f"({items}{comma})"
        if isinstance(value, nn.Module):
            return self._module(value)
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            return self.name_of(value)
        if dataclasses.is_dataclass(value) and not _is_installed(type(value).__module__):
            return self._record(value, name)
        raise NotWritableError(f"{name} is a {type(value).__name__}, whose value has no text")

    def name_of(self, value: Any) -> str:
        """Return the name of a class or function, and add what makes it.

        Raises:
            NotWritableError: it is a lambda, a closure, or defined inside a function.
        """
        name = getattr(value, "__name__", "")
        place = getattr(value, "__module__", None) or ""
        if name == "<lambda>":
            raise NotWritableError(f"a lambda of {place}, which has no name; use `def`")
        if place == "builtins":
            return str(name)
        if home := _importable_from(value):
            if home in _TORCH:
                return f"{home}.{name}"
            self._add_import(f"from {home} import {name}", name, value)
        elif self._values.get(name) is not value:
            self._add(name, self._source_of(value), value)
        return str(name)

    def _module(self, module: nn.Module) -> str:
        call = self._constructor_call(module)
        kind = type(module)
        name = f"nn.{kind.__name__}" if _named_in(nn, kind) else self.name_of(kind)
        given = [self.expression(value, kind.__name__) for value in call.arguments]
        given += [
            f"{key}={self.expression(value, key)}"
            for key, value in call.named.items()
            if key != "device"
        ]
        return f"{name}({', '.join(given)})"

    def _constructor_call(self, module: nn.Module) -> ConstructorCall:
        call = vars(module).get(_CONSTRUCTED_WITH)
        if not isinstance(call, ConstructorCall):
            raise NotWritableError(
                f"the {type(module).__name__} was not made by its constructor in this run"
            )
        return call

    def _record(self, value: Any, name: str) -> str:
        kind = self.name_of(type(value))
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        given = (f"{k}={self.expression(v, f'{name}.{k}')}" for k, v in fields.items())
        return f"{kind}({', '.join(given)})"

    def _source_of(self, value: Any) -> str:
        """The source of a user's class or function; what it uses of its file is added before."""
        name = value.__name__
        self._check_free(name, value)
        if "<locals>" in value.__qualname__ or getattr(value, "__closure__", None):
            raise NotWritableError(f"{name} is defined inside a function; move it to the file")
        try:
            source = textwrap.dedent(inspect.getsource(value))
            ast.parse(source)
        except (OSError, TypeError, SyntaxError) as error:
            raise NotWritableError(f"the source of {name} cannot be read: {error}") from error
        home = sys.modules[value.__module__]
        self._future |= getattr(home, "annotations", None) is __future__.annotations
        known = self._values.get(name)
        self._values[name] = value  # what it uses may use it
        for used in sorted(_globals(source) - {name}):
            if used in vars(home):
                self._add_global(home, used, vars(home)[used])
        if known is None:
            del self._values[name]
        return source

    def _add_global(self, home: ModuleType, name: str, value: Any) -> None:
        if self._values.get(name) is value:
            return
        if isinstance(value, ModuleType):
            if not _is_installed(value.__name__):
                raise NotWritableError(
                    f"{name} is a module of the program as a whole; import from it what is used"
                )
            renamed = "" if name == value.__name__ else f" as {name}"
            self._add_import(f"import {value.__name__}{renamed}", name, value)
            return
        if source := _importable_from(value, name):
            own = getattr(value, "__name__", name)
            renamed = "" if own == name else f" as {name}"
            self._add_import(f"from {source} import {own}{renamed}", name, value)
            return
        if isinstance(value, type | FunctionType):
            own = self.name_of(value)
            if own != name:
                self._add(name, f"{name} = {own}", value)
            return
        if isinstance(value, nn.Module | torch.Tensor):
            raise NotWritableError(f"{name} of {home.__name__} is a {type(value).__name__}")
        self._add(name, f"{name} = {_own_text(home, name) or self.expression(value, name)}", value)

    def _add(self, name: str, text: str, value: Any) -> None:
        self._check_free(name, value)
        self._values[name] = value
        self._definitions[name] = text

    def _add_import(self, line: str, name: str, value: Any) -> None:
        self._check_free(name, value)
        self._values[name] = value
        self._imports[line] = None

    def _check_free(self, name: str, value: Any) -> None:
        if name in self._values and self._values[name] is not value:
            raise NotWritableError(f"two files of the program mean different things by {name}")


def _globals(source: str) -> set[str]:
    """Names that a definition reads and does not bind itself."""

    def names(table: symtable.SymbolTable) -> Iterable[str]:
        is_module = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (is_module or symbol.is_global()):
                yield symbol.get_name()
        for inner in table.get_children():
            yield from names(inner)

    return set(names(symtable.symtable(source, "definition", "exec")))


def _own_text(home: ModuleType, name: str) -> str:
    """The numbers that a file gives a name, as they stand there; "" for anything else."""
    tree = ast.parse(inspect.getsource(home))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in statement.targets
        ):
            plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
            if all(isinstance(node, plain) for node in ast.walk(statement.value)):
                return ast.unparse(statement.value)
    return ""


def _is_installed(module: str) -> bool:
    """Whether a module is Python's or a package's, no file of the user's."""
    if module == "__main__":
        return False
    file = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names or module in sys.stdlib_module_names
    return any(Path(file).resolve().is_relative_to(place) for place in _PLACES)


def _named_in(home: ModuleType | None, value: Any) -> bool:
    return home is not None and vars(home).get(getattr(value, "__name__", ""), None) is value


def _importable_from(value: Any, name: str = "") -> str:
    """The installed module that a value can be imported from by its name; "" for none."""
    place = getattr(value, "__module__", None) or ""
    own = getattr(value, "__name__", name)
    homes = [*_TORCH, place] if _is_installed(place) else _TORCH
    for home in homes:
        if own and getattr(sys.modules.get(home), own, None) is value:
            return home
    return ""
