"""Arrays that keep what is assumed of them: what tests of rules and random programs compute with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.ir.ops.assume import adjoint_array, assume
from symc.ir.traverse import postorder
from symc.ir.value import Value


def kept(roots: Sequence[Value], leaves: Sequence[Value], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arrays, changed where they break what ``roots`` assume of a leaf."""
    out = list(arrays)
    for k, promise in _promises(roots, leaves):
        out[k] = _with_structure(_with_range(out[k], promise), promise["structure"])
    return out


def along(v: Value, leaves: Sequence[Value], leaf: Value, arrays: Sequence[np.ndarray], g: np.ndarray) -> np.ndarray:
    """The part of a gradient that matters: along the matrices that have the structure that is assumed of the leaf."""
    for k, promise in _promises([v], leaves):
        if leaves[k] is leaf:
            for name in promise["structure"]:
                g = _projected(name, g, arrays[k])
    return g


def _promises(roots: Sequence[Value], leaves: Sequence[Value]) -> Iterator[tuple[int, dict[str, Any]]]:
    places = {x: k for k, x in enumerate(leaves)}
    for x in postorder(roots):
        if x.op is assume:
            inner = x
            while inner.op is assume:
                inner = inner.operands[0]
            if inner in places:
                yield places[inner], dict(x.attrs)


def _with_range(a: np.ndarray, p: dict[str, Any]) -> np.ndarray:
    """Elements in the range, whole, finite or not zero; what may be infinite or -0.0 stays so."""
    if a.dtype.kind not in "iuf":
        return a
    low, high = p["low"], p["high"]
    x = a.astype(np.float64)
    if low is not None or high is not None or p["finite"] or p["integer"]:
        x = np.where(np.isnan(x), 1.0, x)
    if p["finite"]:
        x = np.where(np.isinf(x), 2.0, x)
    if p["integer"]:
        x = np.rint(x)
    if low is not None and high is not None:
        inside = (x >= low) & (x <= high)
        small = np.abs(np.where(np.isinf(x), 2.0, x))
        x = np.where(inside, x, low + (high - low) * (small / (1 + small)))
        x = np.rint(x) if p["integer"] or a.dtype.kind in "iu" else x
    elif low is not None:
        x = np.where(x >= low, x, low + np.abs(x))
    elif high is not None:
        x = np.where(x <= high, x, high - np.abs(x))
    if p["nonzero"]:
        one = -1.0 if high is not None and high <= 0 else 1.0
        x = np.where(x == 0, one, x)
    with np.errstate(all="ignore"):
        out = np.asarray(x.astype(a.dtype))
    if low is not None and high is not None and a.dtype.kind == "f":  # rounding may have left the range
        out = np.asarray(np.clip(out, a.dtype.type(low), a.dtype.type(high)))
    if p["nonzero"] and a.dtype.kind == "f":
        out = np.where(out == 0, a.dtype.type(-1 if high is not None and high <= 0 else 1), out)
    return out


def _with_structure(a: np.ndarray, names: Sequence[str]) -> np.ndarray:
    for name in names:
        if name == "unique":
            a = np.argsort(a, -1, kind="stable").astype(a.dtype)
        elif name == "sorted":
            a = np.sort(a, -1)
    matrix = [n for n in names if n not in ("unique", "sorted")]
    if not matrix or not a.size:
        return a
    dtype, a = a.dtype, np.where(np.isfinite(a), a, 0.25)
    a = np.where(np.abs(a) < 9, a, 1.5)
    for name in sorted(matrix, key=lambda n: n == "unit"):
        a = _structured(name, a)
    return np.asarray(a, dtype)


def _structured(name: str, a: np.ndarray) -> np.ndarray:
    """A well-conditioned matrix of this structure."""
    n = a.shape[-1]
    eye = np.eye(a.shape[-2], n)
    if name in ("symmetric", "hermitian"):
        b = np.swapaxes(a, -1, -2) if name == "symmetric" else adjoint_array(a)
        return (a + b) / 2
    if name in ("psd", "pd"):
        b = a @ adjoint_array(a) / 8 + 2 * eye
        return (b + adjoint_array(b)) / 2  # to the last bit: rules believe it
    if name in ("lower", "upper"):
        return (np.tril(a, -1) if name == "lower" else np.triu(a, 1)) / 2 + (a + 3 * np.where(a.real < 0, -1, 1)) * eye
    if name == "diagonal":
        return (a + np.where(a.real < 0, -1, 1)) * eye
    if name == "unit":
        return a * (1 - eye) + eye
    if name == "orthogonal":
        return np.linalg.qr(a + 3 * eye)[0]
    order = np.argsort(np.abs(a).sum(-1), -1, kind="stable") if name == "permutation" else np.arange(n)
    return np.eye(n)[order] + np.zeros(a.shape)


def _projected(name: str, g: np.ndarray, a: np.ndarray) -> np.ndarray:
    if name in ("symmetric", "hermitian", "psd", "pd"):
        return (g + adjoint_array(g)) / 2
    if name == "lower":
        return np.tril(g)
    if name == "upper":
        return np.triu(g)
    if name == "diagonal":
        return g * np.eye(g.shape[-1])
    if name == "unit":
        return g * (1 - np.eye(*g.shape[-2:]))
    if name == "orthogonal":
        return g - a @ (adjoint_array(a) @ g + adjoint_array(g) @ a) / 2
    return g if name in ("unique", "sorted") else np.zeros_like(g)
