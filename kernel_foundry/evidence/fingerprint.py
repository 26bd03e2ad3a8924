"""The short name of a public key, for people."""

import hashlib
from typing import Final

_DIGITS: Final = 16


def fingerprint(public_key: str) -> str:
    """Return the first 16 digits of the SHA-256 of a key given in hexadecimal; "" for none."""
    try:
        key = bytes.fromhex(public_key)
    except ValueError:
        return ""
    return hashlib.sha256(key).hexdigest()[:_DIGITS] if key else ""
