"""Text of a model in a form that every store and wire carries, and every reader reads alike."""


def plain_text(text: str) -> str:
    """Return `text` with plain line ends, and without NUL, byte order mark and half characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")  # halves of characters become "?"
    plain = whole.replace("\0", "").removeprefix("\ufeff")
    return plain.replace("\r\n", "\n").replace("\r", "\n")
