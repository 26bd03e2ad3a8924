"""A user's program: `FILE.py` runs as a script, `FILE.py:NAME` has a module and inputs for it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from kernel_foundry.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class UserModel:
    """A user's module with what it is called with, on one device."""

    module: nn.Module
    inputs: tuple[Any, ...]
    device: torch.device


def run_file(file: Path, name: str) -> ModuleType:
    """Run a Python file as the module of a name, "__main__" for a script; return the module.

    Whatever it raises goes to the caller, SystemExit too. Its folder is the first that it imports
    from, as when Python runs it.
    """
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    sys.path.insert(0, str(file.resolve().parent))
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return module


def load_model(file: Path, name: str, device: str = "") -> UserModel:
    """Return the module `NAME(*get_init_inputs())` of a file and its `get_inputs()`.

    Args:
        file: As a task file: it has `get_inputs()`, and `get_init_inputs()` if the class takes
            arguments.
        name: The class.
        device: Where both go; "" is the GPU, where there is one.

    Raises:
        InvalidArgumentError: the file lacks one of them.
    """
    chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    source = run_file(file, file.stem)
    for needed in (name, "get_inputs"):
        if not hasattr(source, needed):
            raise InvalidArgumentError(
                f"{file}: no {needed}; a model's file has `class {name}(nn.Module)`,"
                " `get_inputs()` and `get_init_inputs()`",
                field="program",
            )
    torch.manual_seed(0)
    module = getattr(source, name)(*getattr(source, "get_init_inputs", list)())
    inputs = tuple(
        value.to(chosen) if isinstance(value, torch.Tensor) else value
        for value in source.get_inputs()
    )
    return UserModel(module=module.to(chosen).eval(), inputs=inputs, device=chosen)
