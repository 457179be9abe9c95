"""Integers wrap around inside of kernels as between them: what an operation makes of the result of another, at the ends
of every type, for all pairs of operations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import symc as sc

FORMS = {
    "neg": lambda x: -x, "abs": abs, "sub": lambda x: x - 5, "from": lambda x: 3 - x, "mul": lambda x: x * 7,
    "floordiv": lambda x: x // 7, "below": lambda x: x // -7, "mod": lambda x: x % 7, "fmod": lambda x: sc.fmod(x, 7),
    "sign": sc.sign, "max": lambda x: sc.maximum(x, -x), "shl": lambda x: x << 1, "shr": lambda x: x >> 1,
    "less": lambda x: sc.where(-x > 3, 1, 0), "real": lambda x: x / 7,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64"])
def test_pairs_of_operations_at_the_ends_of_a_type(dtype: str) -> None:
    info = np.iinfo(dtype)
    ends = [info.min, info.max, info.min + 1, info.max - 1, info.max // 2, 0, 1, 7, 100]
    x, a = sc.input("x", dtype, shape=("n",)), np.array(ends, dtype)
    names = [n for n in FORMS if info.min < 0 or n != "below"]
    pairs = [(g, f) for f, g in itertools.product(names, names) if f != "real"]
    made = [FORMS[g](FORMS[f](x)) for g, f in pairs]
    got = sc.compile(made, [x])(a)
    want = sc.compile(made, [x], mode="reference")(a)
    for pair, mine, right in zip(pairs, got, want, strict=True):
        np.testing.assert_array_equal(mine, right, err_msg=f"{pair[0]} of {pair[1]} of {ends}")
