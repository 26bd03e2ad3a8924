"""What the epilogue of a matrix product reads, whatever the language; each has its `finish`."""

from generator_svc.recipes.expression import Extent, Load, loaded_tensors
from generator_svc.recipes.matmul_program import PRODUCT, MatmulProgram
from generator_svc.recipes.unsupported import RecipeUnsupported


class MatmulEpilogue:
    """Reads everything but the present element of a tensor, which differs by language.

    Args:
        program: The product and what is done to each of its elements.
    """

    def __init__(self, program: MatmulProgram) -> None:
        self.tensors = tuple(n for n in loaded_tensors((program.value,)) if n != PRODUCT)
        self.call = "".join(f", {t}_in" for t in self.tensors)

    def first(self, load: Load) -> str:
        """Refuse: an epilogue has no rows."""
        raise RecipeUnsupported(f"the first element of {load.name} after a matrix product")

    def row(self, load: Load) -> str:
        """Return a scalar tensor's element."""
        if load.extent is not Extent.SCALAR:
            raise RecipeUnsupported(f"{load.name}, one value a row, after a matrix product")
        return f"{load.name}_in[0]"
