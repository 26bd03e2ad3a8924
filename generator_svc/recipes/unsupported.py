"""What recipes say when they cannot do a task."""


class RecipeUnsupported(Exception):  # noqa: N818  a limit, not an error
    """No recipe covers the task; the message names what cannot be done, as a noun phrase."""
