"""The formats that are redrawn, and the changes as numpy makes them: an account of its own."""

import numpy as np
import numpy.typing as npt

FORMATS = {
    "float64": (np.uint64, 52),
    "float32": (np.uint32, 23),
    "float16": (np.uint16, 10),
    "bfloat16": (np.uint16, 7),
    "float8_e4m3fn": (np.uint8, 3),
    "float8_e5m2": (np.uint8, 2),
}
"""By torch's name: integers of an element's size, and bits of the mantissa."""

ORDERED = {
    "bool": np.uint8, "int8": np.uint8, "int16": np.uint16, "int32": np.uint32, "int64": np.uint64,
}  # fmt: skip
"""By torch's name: integers of an element's size, of which pairs change places."""

Bits = npt.NDArray[np.unsignedinteger]


def any_bits(dtype: str, count: int) -> Bits:
    """Return elements of every kind: zeros, subnormals, powers of two, infinities, NaN."""
    kind, mantissa = FORMATS[dtype]
    random = np.random.default_rng(count)
    bits = random.integers(0, np.iinfo(kind).max, count, dtype=kind, endpoint=True)
    bits[1::7] &= kind(np.iinfo(kind).max ^ ((1 << mantissa) - 1))  # powers of two
    bits[2::11] &= kind((1 << mantissa) - 1)  # subnormals
    bits[3::13] |= kind(greatest_exponent(dtype) << mantissa)
    bits[4::17] = 0
    return bits


def greatest_exponent(dtype: str) -> int:
    """Return that of infinities and NaN."""
    kind, mantissa = FORMATS[dtype]
    return int((1 << (8 * kind().itemsize - mantissa - 1)) - 1)


def philox(counter: Bits, key: int, rounds: int = 7) -> Bits:
    """Return Philox-4x32 of an array (…, 4) of words.

    Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    words = [counter[..., i].astype(np.uint64) for i in range(4)]
    low, high, mask = key & 0xFFFFFFFF, key >> 32, np.uint64(0xFFFFFFFF)
    for number in range(rounds):
        first = (low + number * 0x9E3779B9) & 0xFFFFFFFF
        second = (high + number * 0xBB67AE85) & 0xFFFFFFFF
        a, b = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (b >> np.uint64(32)) ^ words[1] ^ np.uint64(first), b & mask,
            (a >> np.uint64(32)) ^ words[3] ^ np.uint64(second), a & mask,
        ]  # fmt: skip
    return np.stack(words, axis=-1).astype(np.uint32)


def redrawn(bits: Bits, dtype: str, *, key: int, number: int, index: int) -> Bits:
    """Return elements, given by their bits, with the values of call `index`."""
    kind, mantissa_bits = FORMATS[dtype]
    size = kind().itemsize
    blocks = -(-bits.nbytes // 16)
    counter = np.zeros((blocks, 4), dtype=np.uint32)
    counter[:, 0], counter[:, 2], counter[:, 3] = np.arange(blocks), index, number
    random = philox(counter, key).reshape(-1).view(kind)[: bits.size]
    share = philox(np.array([0xFFFFFFFF, 0xFFFFFFFF, index, number], dtype=np.uint32), key)[0]
    share = 429496730 + (int(share) * 3435973836 >> 32)
    spare = 8 * size - mantissa_bits
    kept = {"float32": 13, "float64": 29}.get(dtype, 0)
    result = []
    for element, draw in zip(bits.tolist(), random.tolist(), strict=True):
        mantissa = element & ((1 << mantissa_bits) - 1)
        exponent = element >> mantissa_bits & greatest_exponent(dtype)
        if not mantissa or exponent == greatest_exponent(dtype):
            result.append(element)
            continue
        ending = mantissa & ((1 << kept) - 1)
        least = int(ending == 0)  # start of a mantissa that is not 0
        circle = (1 << (mantissa_bits - kept)) - least
        start = least + ((mantissa >> kept) - least + (draw >> (spare + kept))) % circle
        moved = start << kept | ending
        is_below_one = 0 < exponent < greatest_exponent(dtype) // 2
        if is_below_one and draw & ((1 << spare) - 1) < share >> (32 - spare):
            exponent += 1 if exponent % 2 else -1
        sign = element >> (8 * size - 1) << (8 * size - 1)
        result.append(sign | exponent << mantissa_bits | moved)
    return np.array(result, dtype=kind)


def reordered(elements: Bits, *, key: int, index: int) -> Bits:
    """Return integers in the places that they have in call `index`."""
    count = len(elements)
    words = philox(np.array([[0xFFFFFFFF, 0xFFFFFFFF, index, 0xFFFFFFFF]], dtype=np.uint32), key)[0]
    turn = (int(words[1]) << 32 | int(words[0])) % count
    pairs = np.arange(count // 2)
    counter = np.zeros((-(-len(pairs) // 128), 4), dtype=np.uint32)
    counter[:, 0], counter[:, 2], counter[:, 3] = np.arange(len(counter)), index, 0xFFFFFFFF
    bits = np.unpackbits(philox(counter, key).view(np.uint8).reshape(-1), bitorder="little")
    chosen = pairs[bits[: len(pairs)] == 1]
    one, other = (turn + chosen) % count, (turn - 1 - chosen) % count
    result = elements.copy()
    result[one], result[other] = elements[other], elements[one]
    return result
