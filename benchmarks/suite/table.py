"""One task of the suite: what its file says, at full size and small enough for any machine."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kernel_foundry.domain.task import Size, Task, Workload

_FILE: Final = '''"""{title}"""

import torch
from torch import nn
from torch.nn import functional as F

{sizes}
{helpers}

class Model(nn.Module):
    """{title}"""

    def __init__(self):
        super().__init__()
{init}

    def forward(self, {arguments}):
{forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTask:
    """A reference in KernelBench's format, with its sizes beside it."""

    name: str
    title: str
    sizes: Mapping[str, tuple[int, int]]
    """Module-level constants: (full size, small size)."""
    inputs: str
    """Expressions of `get_inputs`, separated by commas."""
    forward: str
    """Body of the method; the last line returns."""
    arguments: str = "x"
    init: str = ""
    """Body of the constructor."""
    helpers: str = ""
    """Module-level code before the class."""
    is_degenerate: bool = False
    """Refused by right: a trivial answer passes."""
    workload_names: tuple[str, str] = field(default=("full", "small"), repr=False)

    @property
    def reference(self) -> str:
        """The text of its file."""
        return _FILE.format(
            title=self.title,
            sizes="\n".join(f"{name} = {full}" for name, (full, _) in self.sizes.items()),
            helpers=f"\n\n{textwrap.dedent(self.helpers).strip()}\n" if self.helpers else "",
            init=_indented(self.init or "pass"),
            arguments=self.arguments,
            forward=_indented(self.forward),
            inputs=self.inputs,
        )

    def task(self, *, small: bool = False) -> Task:
        """Return it at full size, or small."""
        name = self.workload_names[int(small)]
        sizes = tuple(Size(name=n, value=values[int(small)]) for n, values in self.sizes.items())
        workload = Workload(name=name, sizes=sizes)
        return Task(name=self.name, reference=self.reference, workloads=(workload,))


def _indented(body: str) -> str:
    return textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
