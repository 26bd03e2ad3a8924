"""The statements for VEC neighbouring elements: packs loaded first, then elements one by one.

Where the elements lie is given by the kernels.
"""

from generator_svc.recipes.expression import Extent, Load


class PackBody:
    """Collects what one step of a loop loads, computes and stores.

    Args:
        prefix: Starts the names of the packs; no other body of the kernel has it.
        subscript: Follows a pack's name, such as "[u]" where each step has its own.
    """

    def __init__(self, *, prefix: str, subscript: str) -> None:
        self.before: list[str] = []
        """Statements ahead of the loop over the elements."""
        self.elements: list[str] = []
        """Statements for element `j`."""
        self.after: list[str] = []
        """Statements behind it, such as stores."""
        self._prefix = prefix
        self._subscript = subscript
        self._loads: dict[str, Load] = {}

    def read(self, load: Load) -> str:
        """Return element `j` of a tensor, which is loaded as a pack."""
        self._loads[load.name] = load
        return f"{self._pack(load.name)}.v[j]"

    @property
    def loads(self) -> tuple[Load, ...]:
        """What is loaded, in order of first use."""
        return tuple(self._loads.values())

    @property
    def declarations(self) -> list[str]:
        """Declarations of the packs, each for UNROLL steps when they have a subscript."""
        count = "[UNROLL]" if self._subscript else ""
        return [f"Pack {self._prefix}_{name}{count};" for name in self._loads]

    def load_lines(self, *, full: str, column: str, last: frozenset[str]) -> list[str]:
        """Return the loads.

        Args:
            full: Index of the pack in a FULL tensor.
            column: Index of the pack in a COLUMN tensor.
            last: FULL tensors that nothing reads afterwards, and that need no cache.
        """
        lines = []
        for name, load in self._loads.items():
            is_full = load.extent is Extent.FULL
            function = "load_last" if is_full and name in last else "load"
            at = full if is_full else column
            lines.append(f"{self._pack(name)} = {function}({name}_in + {at});")
        return lines

    def statements(self) -> list[str]:
        """Return what comes after the loads."""
        return [
            *self.before,
            *loop("#pragma unroll", "for (int j = 0; j < VEC; ++j)", self.elements),
            *self.after,
        ]

    def _pack(self, name: str) -> str:
        return f"{self._prefix}_{name}{self._subscript}"


def loop(pragma: str, head: str, body: list[str]) -> list[str]:
    """Return a loop or condition around `body`; no pragma when it is empty."""
    return [*([pragma] if pragma else []), f"{head} {{", *(f"  {line}" for line in body), "}"]
