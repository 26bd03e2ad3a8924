"""Digests of bytes on the device, to tell whether two runs wrote the same without keeping both.

Multilinear hashing of 32-bit words with 64-bit weights that nobody else knows: two contents that
differ have the same digest with a chance of 2^-32 at most.
Source: D. Lemire, O. Kaser, "Strongly universal string hashing is fast", 2014.
"""

import secrets
from typing import Final

import torch

_BLOCK_WORDS: Final = 1 << 22
_MODULUS: Final = 1 << 64
_WORD_BYTES: Final = 4


class Digester:
    """Digests under one secret key.

    Args:
        device: Where the bytes lie.
        most_bytes: Of what is digested.
    """

    def __init__(self, device: torch.device, *, most_bytes: int) -> None:
        generator = torch.Generator(device).manual_seed(secrets.randbits(63))
        count = min(most_bytes // _WORD_BYTES, _BLOCK_WORDS)
        self._weights = torch.randint(
            -(1 << 63), (1 << 63) - 1, (count,), generator=generator, device=device
        )
        self._step = secrets.randbits(64) | 1

    def digest(self, data: torch.Tensor) -> int:
        """Return the digest of a flat tensor of bytes, below 2^64."""
        whole = data.numel() - data.numel() % _WORD_BYTES
        words = data[:whole].view(torch.int32)
        sums = [
            (part * self._weights[: part.numel()]).sum()
            for part in torch.split(words, _BLOCK_WORDS)
            if part.numel()
        ]
        values = [*torch.stack(sums).tolist()] if sums else []
        total = data.numel()
        for value in (*values, *data[whole:].tolist()):
            total = (total * self._step + value) % _MODULUS
        return total
