"""What a reference is like, by the operators that it ran: which inputs it may be tried with."""

from collections.abc import Iterable

from evaluator_svc.judge.reference.operators import MATRIX_PRODUCTS, OperatorLog

_ASSERTING = (
    "assert", "bernoulli", "cross_entropy", "ctc_loss", "embedding", "gather", "index", "kthvalue",
    "multinomial", "nll_loss", "one_hot", "put", "scatter", "take", "unpool",
)  # fmt: skip
"""Parts of the names of operators that check values on the device: indices and probabilities."""

_SIZING = (
    "local_scalar", "bincount", "ctc", "embedding_bag", "nested", "packed", "repeat_interleave",
    "segment", "sparse", "unpool",
)  # fmt: skip
"""Parts of the names of operators that take a tensor's values for sizes, or that fault on some."""

_ROUNDS = 8
"""Fewest runs of one operator that may be an iteration."""
_COMBINED_ROUNDS = 2
"""Fewest runs if each result combines many elements, as a sum does."""
_ITERATING = ("eig", "inverse", "linalg", "matrix_exp", "solve", "svd")
"""Parts of the names of operators that iterate themselves."""

_RECURRENT = ("gru", "lstm", "rnn")
"""Parts of the names of operators that go through a sequence."""

_ROW_PRODUCTS = frozenset({"cumprod", "prod"})
"""Operators that multiply many elements."""
_SCANS = frozenset({"cumsum", "logcumsumexp", *_ROW_PRODUCTS})
"""Operators that go along an axis; some multiply its elements, or add up their logarithms."""
_MULTIPLYING = ("addcmul", "mul", "mul_")
"""Operators that multiply many elements when run in a loop."""

_ORDERING = ("max", "median", "min", "sort", "kthvalue", "topk")
"""Parts of the names of operators that put values in order."""
_DIVIDING = (
    "corr", "cosine", "cov", "div", "entropy", "log", "norm", "pow", "reciprocal", "rsqrt", "sqrt",
    "std", "var",
)  # fmt: skip
"""Parts of the names of operators that give no number for some values, or large ones."""

_LOGARITHMS = frozenset({"log", "log_", "log10", "log2", "xlogy"})
"""Operators whose result is small where an element is close to one."""

_UNCOUNTED = ("attention", *_RECURRENT)
"""Parts of the names of operators whose products are not counted."""


class ReferenceTraits:
    """Traits of a reference.

    Args:
        log: Of a call of it.
    """

    def __init__(self, log: OperatorLog) -> None:
        self._log = log
        self.operators = log.operators
        """How often each operator ran, by its name."""

    @property
    def may_assert(self) -> bool:
        """Whether an operator of the reference checks values on the device."""
        return self._has_operator(_ASSERTING)

    @property
    def sizes_by_values(self) -> bool:
        """Whether numbers of a tensor may decide how much memory or time the reference takes."""
        return self._has_operator(_SIZING)

    @property
    def iterates(self) -> bool:
        """Whether the reference may do the same again and again, until it has converged."""
        return (
            any(count >= _COMBINED_ROUNDS for count in self._log.combinations.values())
            or any(count >= _ROUNDS for count in self.operators.values())
            or self._has_operator(_ITERATING)
        )

    @property
    def has_recurrence(self) -> bool:
        """Whether one operator of the reference goes through many steps."""
        return self._has_operator(_RECURRENT)

    @property
    def has_matrix_products(self) -> bool:
        """Whether the reference has products of matrices or convolutions, attention included."""
        return self._has_operator(MATRIX_PRODUCTS)

    @property
    def combines(self) -> bool:
        """Whether elements of any result are made of many."""
        return any(self._log.combinations.values())

    @property
    def is_pointwise(self) -> bool:
        """Whether elements of results are made of one element of each input, and go nowhere."""
        return self._log.is_pointwise

    @property
    def combines_by_order(self) -> bool:
        """Whether elements of a result are made of many only as the largest, or the like."""
        found = (name for name, count in self._log.combinations.items() if count)
        return all("soft" not in n and any(part in n for part in _ORDERING) for n in found)

    @property
    def looks_for_least(self) -> bool:
        """Whether the reference looks for the least of several, and never for the largest."""
        return self._has_operator(("min",)) and not self._has_operator(("max",))

    @property
    def combines_many(self) -> bool:
        """Whether the reference may multiply or add up as many elements as there are."""
        repeats = sum(self.operators[name] for name in _MULTIPLYING)
        return not _SCANS.isdisjoint(self.operators) or repeats >= _ROUNDS

    @property
    def orders(self) -> bool:
        """Whether the reference looks for the largest values, or the like."""
        names = (name for name in self.operators if "softmax" not in name)
        return any(part in name for name in names for part in _ORDERING)

    @property
    def may_overflow(self) -> bool:
        """Whether an operator gives infinity, or no number, for large values or other signs."""
        return self._has_operator((*_DIVIDING, "cosh", "exp", "sinh"))

    @property
    def divides(self) -> bool:
        """Whether the reference has operators that give no number for zero, or for less."""
        names = (name for name in self.operators if "softmax" not in name)
        return any(part in name for name in names for part in _DIVIDING)

    @property
    def divides_sums(self) -> bool:
        """Whether a divisor, or what a root is taken of, may be a sum."""
        return self.divides and (self.combines or self._has_operator(("norm",)))

    def is_across(self, seed: int) -> bool:
        """Whether unusual slices go across samples: by the seed, if the reference does so."""
        return self._log.is_across and seed % 2 == 1

    @property
    def is_whole(self) -> bool:
        """Whether no operator of the reference computes numbers of floating point."""
        return not self._log.dtypes

    @property
    def takes_logarithms(self) -> bool:
        """Whether the reference takes logarithms of single elements, and combines nothing."""
        return not self.combines and not _LOGARITHMS.isdisjoint(self.operators)

    @property
    def multiplies_many(self) -> bool:
        """Whether the reference multiplies the elements of a row."""
        return not _ROW_PRODUCTS.isdisjoint(self.operators)

    @property
    def has_uncounted_products(self) -> bool:
        """Whether the reference has products whose operations torch does not count."""
        return self._has_operator(_UNCOUNTED)

    def _has_operator(self, parts: Iterable[str]) -> bool:
        return any(part in name for name in self.operators for part in parts)
