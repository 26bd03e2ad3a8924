"""Embedding vectors without a model: hashed words, so that like texts have like vectors."""

import base64
import hashlib
import math
import re
import struct
from typing import Any, Final

DIMENSIONS: Final = 256
_WORD: Final = re.compile(r"\w+")


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return the unit vector of `text`, the same on every machine."""
    counts = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [""]:
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
        counts[number // 2 % dimensions] += 1.0 if number % 2 else -1.0
    length = math.sqrt(sum(count * count for count in counts))
    if length == 0.0:  # words that cancel each other out
        return [1.0] + [0.0] * (dimensions - 1)
    return [count / length for count in counts]


def document(request: dict[str, Any]) -> dict[str, Any]:
    """Return the body that answers an embeddings request."""
    asked = request["input"]
    texts = [asked] if isinstance(asked, str) else list(asked)
    dimensions = int(request.get("dimensions") or DIMENSIONS)
    vectors: list[Any] = [vector(str(text), dimensions) for text in texts]
    if request.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack(f"<{dimensions}f", *v)).decode() for v in vectors]
    tokens = sum(len(str(text)) // 4 + 1 for text in texts)
    return {
        "object": "list",
        "model": request.get("model", ""),
        "data": [
            {"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
