"""Damage, as files get it: flipped bits, cuts, pieces lost or doubled, numbers that claim too much."""

from __future__ import annotations

import random
import struct

_NUMBERS = [
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
    1 << 40,
    1 << 60,
    (1 << 63) - 1,
    (1 << 64) - 1,
]


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to four changes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        _change(changed, rng)
    return bytes(changed)


def _change(data: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(data) + 1)
    length = min(rng.choice((1, 1, 2, 4, 8, 16, 100, 1000)), len(data) - place)
    match rng.randrange(8):
        case 0 if place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        case 1 if place < len(data):
            data[place] = rng.randrange(256)
        case 2:
            del data[place:]
        case 3:
            del data[place : place + length]
        case 4:
            data[place:place] = data[place : place + length]
        case 5:
            data[place:place] = rng.randbytes(rng.choice((1, 2, 12, 300)))
        case 6:
            number = struct.pack(rng.choice("<>") + "Q", rng.choice(_NUMBERS))
            size = rng.choice((1, 2, 4, 8))
            data[place : place + size] = number[:size]
        case _:
            other = rng.randrange(len(data) + 1)
            data[place : place + length] = data[other : other + length]
