"""Evidence records inside an exported Python file: written as a literal, and read as one.

The file is somebody else's, and may be long: only the literal's own characters are looked at, and
never Python's parser, which takes hundreds of bytes of memory for each character.
"""

import base64
import re
import zlib
from typing import Final

NAME: Final = "EVIDENCE"
"""Of the literal: texts, each a record's JSON, compressed, in base 85."""
_MOST_BYTES: Final = 64 << 20
"""Most bytes of all records together, unpacked."""
_MOST_RECORDS: Final = 64

_BEGIN: Final = re.compile(rb"^%b[ \t]*=[ \t]*\(" % NAME.encode(), re.MULTILINE)
# Base 85 has neither quotes nor backslashes, so that a text ends at the first quote.
_TOKEN: Final = re.compile(rb"\s*(?:'([^'\\\n]*)'|\"([^\"\\\n]*)\"|([(),]))")


def packed(record: bytes) -> str:
    """Return a record's JSON as it is in a Python file."""
    return base64.b85encode(zlib.compress(record, 9)).decode("ascii")


def records_in(content: bytes) -> tuple[bytes, ...]:
    """Return the records in a Python file, as JSON; the file is not run.

    Raises:
        ValueError: it holds none, or too much, or several lines assign `EVIDENCE`: a line may be
            inside a string, so that Python reads another one than this reader.
    """
    begins = [found.end() for found in _BEGIN.finditer(content)]
    if not begins:
        raise ValueError(f"it has no {NAME}")
    if len(begins) > 1:
        raise ValueError(f"{len(begins)} of its lines assign {NAME}, expected one")
    texts = _texts(content, begins[0])
    if not texts:
        raise ValueError(f"its {NAME} has no records")
    records: list[bytes] = []
    left = _MOST_BYTES
    for text in texts:
        records.append(_unpacked(text, left))
        left -= len(records[-1])
    return tuple(records)


def _texts(content: bytes, position: int) -> list[bytes]:
    """The texts of a tuple behind its parenthesis, each in one piece."""
    texts: list[bytes] = []
    pieces: list[bytes] = []
    depth = 1
    while depth:
        token = _TOKEN.match(content, position)
        if token is None:
            raise ValueError(f"its {NAME} is not a tuple of records")
        position = token.end()
        mark = token[3]
        if mark is None:
            pieces.append(token[1] or token[2] or b"")
            continue
        if pieces:
            if len(texts) == _MOST_RECORDS:
                raise ValueError(f"its {NAME} has more than {_MOST_RECORDS} records")
            texts.append(b"".join(pieces))
            pieces = []
        depth += {b"(": 1, b")": -1}.get(mark, 0)
    return texts


def _unpacked(text: bytes, most: int) -> bytes:
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(base64.b85decode(text), max(most, 1))  # 0 would be no limit
    except zlib.error as error:
        raise ValueError(f"its {NAME} is damaged: {error}") from error
    if not reader.eof:
        raise ValueError(f"its {NAME} is damaged, or has more than {_MOST_BYTES} bytes")
    return data
