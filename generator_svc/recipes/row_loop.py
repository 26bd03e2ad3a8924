"""The loop over a row's elements, in the shapes that differ in speed on real devices."""

from collections.abc import Callable

_STRIDES = {"item": "1", "group": "BLOCK", "sub_group": "SG"}


class RowLoop:
    """Spells one pass over the row.

    Args:
        kind: "lane" (the counter starts at the lane), "masked" (uniform counter, every access
            masked) or "uniform" (uniform counter, unmasked and unrolled, masked tail).
        who: Who shares a row: "item", "group" or "sub_group".
    """

    def __init__(self, *, kind: str, who: str) -> None:
        self._kind = "lane" if who == "item" and kind == "masked" else kind
        self._stride = _STRIDES[who]

    @property
    def accumulators(self) -> str:
        """How many independent accumulators there are."""
        return "UNROLL" if self._kind == "uniform" else "1"

    @property
    def slot_count(self) -> str:
        """Elements that one work-item meets, at most."""
        return f"(COLS + {self._stride} - 1) / {self._stride}"

    def lines(self, body: Callable[[str], list[str]]) -> list[str]:
        """Return the loop around `body`, which is given the accumulator's index."""
        stride = self._stride
        if self._kind == "lane":
            head = f"for (int i = lane, slot = 0; i < cols; i += {stride}, ++slot) {{"
            return [head, *self._indented(body("0")), "}"]
        masked = [
            f"  const int i = base + lane, slot = base / {stride};",
            "  if (i < cols) {",
            *(f"    {line}" for line in body("0")),
            "  }",
            "}",
        ]
        if self._kind == "masked":
            return [f"for (int base = 0; base < cols; base += {stride}) {{", *masked]
        return [
            "{",
            f"const int step = {stride} * UNROLL, whole = cols / step * step;",
            "for (int base = 0; base < whole; base += step) {",
            "#pragma unroll",
            "  for (int u = 0; u < UNROLL; ++u) {",
            f"    const int i = base + u * {stride} + lane, slot = base / {stride} + u;",
            *(f"    {line}" for line in body("u")),
            "  }",
            "}",
            f"for (int base = whole; base < cols; base += {stride}) {{",
            *masked,
            "}",
        ]

    def _indented(self, lines: list[str]) -> list[str]:
        return [f"  {line}" for line in lines]
