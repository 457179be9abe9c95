"""A second dtype of storage, which only tests have: where it fails, something knows bfloat16 by name.

Its functions stand in this file, which is a module of the library while the dtype is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from unittest.mock import patch

import numpy as np

from symc.codegen.language.helpers import inlined
from symc.codegen.language.names import bits32, f32, float32_of, i32, rint, u8, u16
from symc.ir import dtypes
from symc.ir.dtypes import DType, ForeignDtype
from symc.runtime import library
from symc.runtime.library.helpers import from_half

NAME = "float8_e5m2"
RECORD = DType("f8E5M2", cast(np.dtype, ForeignDtype(NAME, "ml_dtypes", "5", 1)), "f32", "u8", "from_float8({})",
               "to_float8({})", "round_float8({})", dlpack=12, safetensors="F8_E5M2")


@inlined
def from_float8(h):
    """The upper half of a float16."""
    return from_half(u16(u16(h) << 8))


@inlined
def to_float8(x):
    """Rounded to nearest, of ties to even: multiples of 2**-16 below the least normal number, else 2 bits."""
    y = f32(x)
    b = bits32(y)
    sign = (b >> 24) & 128
    size = b & 2147483647
    small = i32(rint(float32_of(size) * f32(65536.0)))
    near = i32((size + 1048575 + ((size >> 21) & 1)) >> 21) - 448
    whole = small if size < 947912704 else (near if near < 124 else 124)
    return u8((whole if y == y else 126) | sign)


@inlined
def round_float8(x):
    return from_float8(to_float8(x))


FUNCTIONS = ("from_float8", "to_float8", "round_float8")


@contextmanager
def another_float() -> Iterator[np.dtype]:
    """Within it symc has the dtype."""
    d = RECORD.numpy
    module = f"{library.__name__}.another_float"
    sys.modules[module] = sys.modules[__name__]
    with patch.dict(library.MODULE_OF, dict.fromkeys(FUNCTIONS, "another_float")), \
            patch.dict(dtypes.RECORDS, {d: RECORD}), patch.dict(dtypes.DTYPES, {RECORD.name: d}), \
            patch.dict(dtypes.DTYPE_NAMES, {d: RECORD.name}), patch.dict(dtypes._FOREIGN, {NAME: d, RECORD.name: d}):
        _forget()
        try:
            yield d
        finally:
            del sys.modules[module]
            _forget()


def _forget() -> None:
    """Forget what names of the library mean."""
    library.meaning.cache_clear()
    if "symc.runtime.compilers.numba_library" in sys.modules:
        sys.modules["symc.runtime.compilers.numba_library"].everything.cache_clear()
