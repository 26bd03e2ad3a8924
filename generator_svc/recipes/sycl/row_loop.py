"""The loop over a row's elements, in the shapes that differ in speed on real devices."""

from collections.abc import Callable

VECTOR = "kf::Vector"
"""Type of an explicit vector: 16 floats, one register of the widest units, one cache line."""

_STRIDES = {"item": "1", "vector": "16", "group": "BLOCK", "sub_group": "SG"}

Body = Callable[[str, str], list[str]]
"""(accumulator's index, element type) to the statements for element `i`."""


class RowLoop:
    """Spells one pass over the row.

    Args:
        kind: "lane" (the counter starts at the lane), "masked" (uniform counter, every access
            masked) or "uniform" (uniform counter, unmasked and unrolled, masked tail).
        who: Who shares a row: "item", "vector", "group" or "sub_group".
    """

    def __init__(self, *, kind: str, who: str) -> None:
        self._kind = "lane" if who == "item" and kind == "masked" else kind
        self._is_vector = who == "vector"
        self._stride = _STRIDES[who]

    @property
    def element_type(self) -> str:
        """Type of the elements that the main loop works on."""
        return VECTOR if self._is_vector else "float"

    @property
    def accumulators(self) -> str:
        """How many independent accumulators there are."""
        return "UNROLL" if self._kind == "uniform" or self._is_vector else "1"

    @property
    def kept_count(self) -> str:
        """Elements of a private copy of what one work-item meets."""
        return (
            "COLS"
            if self._stride in ("1", "16")
            else f"(COLS + {self._stride} - 1) / {self._stride}"
        )

    def lines(self, body: Body) -> list[str]:
        """Return the loop around `body`."""
        if self._is_vector:
            return self._vector_lines(body)
        stride = self._stride
        if self._kind == "lane":
            head = f"for (int i = lane, slot = 0; i < cols; i += {stride}, ++slot) {{"
            return [head, *_indented(body("0", "float")), "}"]
        masked = [
            f"  const int i = base + lane, slot = base / {stride};",
            "  if (i < cols) {",
            *_indented(_indented(body("0", "float"))),
            "  }",
            "}",
        ]
        if self._kind == "masked":
            return [f"for (int base = 0; base < cols; base += {stride}) {{", *masked]
        index = f"const int i = base + u * {stride} + lane, slot = base / {stride} + u;"
        tail = [f"for (int base = whole; base < cols; base += {stride}) {{", *masked]
        return ["{", *self._unrolled(index, body("u", "float")), *tail, "}"]

    def _vector_lines(self, body: Body) -> list[str]:
        """Return whole unrolled steps, single vectors, and the last elements one by one."""
        return [
            "{",
            *self._unrolled("const int i = base + u * 16;", body("u", VECTOR)),
            "for (int i = whole; i + 16 <= cols; i += 16) {",
            *_indented(body("0", VECTOR)),
            "}",
            "for (int i = cols / 16 * 16; i < cols; ++i) {",
            *_indented(body("0", "float")),
            "}",
            "}",
        ]

    def _unrolled(self, index: str, statements: list[str]) -> list[str]:
        return [
            f"const int step = {self._stride} * UNROLL, whole = cols / step * step;",
            "for (int base = 0; base < whole; base += step) {",
            "#pragma unroll",
            "  for (int u = 0; u < UNROLL; ++u) {",
            f"    {index}",
            *_indented(_indented(statements)),
            "  }",
            "}",
        ]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
