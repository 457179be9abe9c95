"""Bits and bytes of those who hash, encrypt and compress: whole numbers of few bits, tables, signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import program

SHIFTED = np.array([0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11])


@program(4_096, 5, lambda r, n: [r.integers(0, 256, (n, 16), dtype=np.uint8), r.permutation(256).astype(np.uint8)])
def cipher_round(xp: Any, state: Any, box: Any) -> Any:
    """Bytes by a table, rows shifted, columns mixed, as AES does it."""

    def twice(v: Any) -> Any:
        return (v << np.uint8(1)) ^ ((v >> np.uint8(7)) * np.uint8(0x1B))

    t = box[state][:, SHIFTED].reshape(-1, 4, 4)
    a, b, c, d = (t[:, :, i] for i in range(4))
    return xp.stack([twice(a) ^ twice(b) ^ b ^ c ^ d, a ^ twice(b) ^ twice(c) ^ c ^ d,
                     a ^ b ^ twice(c) ^ twice(d) ^ d, twice(a) ^ a ^ b ^ c ^ twice(d)], axis=2)  # fmt: skip


@program(100_000, 30, lambda r, n: [r.integers(0, 2**16, n, dtype=np.uint32) for _ in range(2)])
def interleaved_bits(xp: Any, x: Any, y: Any) -> Any:
    """Places along Morton's curve."""

    def spread(v: Any) -> Any:
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            v = (v | (v << np.uint32(shift))) & np.uint32(mask)
        return v

    return spread(x) | (spread(y) << np.uint32(1))


@program(20_000, 30, lambda r, n: [r.integers(0, 2**32, n, dtype=np.uint32)])
def min_hashes(xp: Any, shingles: Any) -> Any:
    factors = xp.asarray(np.arange(1, 65, dtype=np.uint32) * np.uint32(2_654_435_761) + np.uint32(1))
    h = shingles[:, None] * factors
    return xp.min(h ^ (h >> np.uint32(15)), axis=0)


@program(200_000, 64, lambda r, n: [r.normal(size=n)], dtype="float32")
def weights_in_four_bits(xp: Any, x: Any) -> Any:
    """Packed in blocks of 32 with a scale each, and unpacked."""
    block = x.reshape(-1, 32)
    scale = xp.max(xp.abs(block), axis=1, keepdims=True) / np.float32(7)
    scale = xp.where(scale == 0, np.float32(1), scale)
    q = (xp.clip(xp.round(block / scale), -8, 7).astype("int8") + np.int8(8)).astype("uint8")
    packed = q[:, ::2] | (q[:, 1::2] << np.uint8(4))
    low, high = ((packed >> np.uint8(s) & np.uint8(15)).astype("float32") - 8 for s in (0, 4))
    return packed, (xp.stack([low, high], axis=-1).reshape(-1, 32) * scale).reshape(-1)
