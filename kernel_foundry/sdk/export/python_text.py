"""Texts as files of a Python project hold them."""


def plain_text(text: str) -> str:
    """Return a text that ends no string: without quotation marks and backslashes."""
    return text.replace("\\", "/").replace('"', "'")


def package_name(module: str) -> str:
    """Return the name of the package of a module, as an index of packages takes it."""
    return module.lower().strip("_").replace("_", "-")
