"""Checks of the patterns of derivatives: no entry of a Jacobian lies outside, whatever a program is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symc.grad import jvp, vmap
from symc.ir.dim import Dim
from symc.ir.reference import run_values
from symc.ir.size_values import names
from symc.ir.traverse import Substitution, every_value, region_params
from symc.ir.types import TensorType, substitute_type
from symc.ir.value import Value, fresh_input
from symc.sparse.structure import Patterns, count, every
from symc.testing.fuzz.checks import REFUSED, Trial, check, first_wrong
from symc.testing.fuzz.derivatives import NOT_POSSIBLE
from symc.tools.debugging.blame import Blame
from symc.tools.debugging.observe import sizes_of
from symc.tools.debugging.sample import Sample
from symc.transforms.jacobians import basis


def lost(y: Value, w: Value, wrt: Sequence[Value], leaves: Sequence[Value], arrays: Sequence[np.ndarray]) -> int | None:
    """The number of entries of the Jacobian of y by w, at these numbers, that its pattern lacks; None if none."""
    seed = fresh_input(w.type)
    (column,) = jvp([y], list(wrt), [seed if x is w else None for x in wrt])
    if column is None:
        return None
    n = count(w)
    found = Patterns({seed: [every(n)]}, {}, n).of([column])[0]
    (columns,) = vmap([column], [seed], [basis(w.type)], n)
    with np.errstate(all="ignore"):
        (dense,) = run_values([columns], dict(zip(leaves, arrays, strict=True)), {})
    dense = dense.reshape(n, count(y)).T
    there = np.zeros(dense.shape, bool) if found is None else found.toarray()
    return int(np.sum(np.isfinite(dense) & (dense != 0) & ~there))


@check("patterns")
def patterns(t: Trial) -> Blame | None:
    """No entry of a Jacobian lies outside of its pattern."""
    return first_wrong("patterns", t, entries_lost)


def entries_lost(s: Sample) -> str:
    """The entries that a pattern of a function lacks; "" if none."""
    f = s.function
    measured = any(isinstance(d, Dim) and not names(d) <= sizes_of(f, s.arrays).keys() for v in every_value(f.body)
                   if isinstance(v.type, TensorType) for d in v.shape)
    if measured or any("effect" in v.op.traits for v in f.values()):
        return ""
    sizes = sizes_of(f, s.arrays)
    leaves = [fresh_input(substitute_type(t, sizes)) for t in f.body.params]  # type: ignore[arg-type]
    roots = Substitution(sizes).values(f.body.results, dict(zip(region_params(f.body), leaves, strict=True)))
    wrt = [x for x in leaves if x.dtype.kind == "f"]
    for k, y in enumerate(roots):
        for j, w in enumerate(wrt if y.dtype.kind == "f" else []):
            try:
                number = lost(y, w, wrt, leaves, s.arrays)
            except (*NOT_POSSIBLE, *REFUSED):
                continue
            if number:
                return f"result {k} by input {j}: the pattern lacks {number} entries"
    return ""
