"""How many items a list method returns, by what its request says."""

from kernel_foundry.errors import InvalidArgumentError


def page_size(asked: int, field: str, *, most: int, default: int | None = None) -> int:
    """Return the size of a page; larger ones are lowered to `most`.

    Args:
        asked: What the request says; 0 leaves it to the service.
        field: Where it says so.
        most: The largest.
        default: What 0 stands for; None: the largest.

    Raises:
        InvalidArgumentError: it is negative.
    """
    if asked < 0:
        raise InvalidArgumentError(f"{field} is {asked}, expected >= 0", field=field)
    return min(asked or default or most, most)
