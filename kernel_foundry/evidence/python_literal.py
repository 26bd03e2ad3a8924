"""Evidence records inside an exported Python file: written as a literal, and read as one."""

import ast
import base64
import zlib
from typing import Final

NAME: Final = "EVIDENCE"
"""Of the literal: texts, each a record's JSON, compressed, in base 85."""
_MOST_BYTES: Final = 64 << 20
_MOST_RECORDS: Final = 64


def packed(record: bytes) -> str:
    """Return a record's JSON as it is in a Python file."""
    return base64.b85encode(zlib.compress(record, 9)).decode("ascii")


def records_in(text: str) -> tuple[bytes, ...]:
    """Return the records in the text of a Python file, as JSON; the text is not run.

    Raises:
        ValueError: it holds none, or too much.
        SyntaxError: it is no Python.
    """
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == NAME:
            texts = ast.literal_eval(statement.value)
            if not isinstance(texts, tuple) or not 0 < len(texts) <= _MOST_RECORDS:
                raise ValueError(f"its {NAME} is no tuple of records")
            return tuple(_unpacked(packed) for packed in texts)
    raise ValueError(f"it has no {NAME}")


def _unpacked(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError(f"its {NAME} holds a {type(text).__name__}")  # noqa: TRY004  of a file
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b85decode(text), _MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"its {NAME} is damaged: {error}") from error
    if not reader.eof:
        raise ValueError(f"its {NAME} is damaged or too long")
    return data
