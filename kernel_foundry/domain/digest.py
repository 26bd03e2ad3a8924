"""Content digests: the identity of sources, tasks and prompts.

Callers decide which bytes are canonical.
"""

import hashlib


def content_digest(*parts: str | bytes) -> str:
    """Return the SHA-256 hex digest of `parts`, each prefixed with its length.

    The length prefix keeps ("ab", "c") and ("a", "bc") apart.
    """
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()
