"""``sc.check_op``: does an op do what its declaration says? Each check says in words what does not agree.

What is compared with what: types with the function, symbolic sizes with numbers, strided arrays with contiguous ones,
kernels with the function, derivatives with finite differences, batches with single entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symc.driver.compile import compile
from symc.errors import CheckError, InputError, SymcError
from symc.ir.attrs import Attrs
from symc.ir.dim import size_name
from symc.ir.facts import CustomOp
from symc.ir.op import Decompose, Element, Op, lookup
from symc.ir.record import dataclass
from symc.ir.types import TensorType, TupleType, concrete_shape
from symc.ir.value import make
from symc.tensors.callsite import caller
from symc.tensors.inputs import input
from symc.tensors.tensor import Tensor
from symc.tools.gradcheck import verify_grad
from symc.transforms.custom_op import sample
from symc.transforms.vmap import vmap

#: How far compiled code may be from the function, relative to the largest number, by bytes of the narrowest float.
TOLERANCE = {2: 1e-2, 4: 1e-5, 8: 1e-12}
ENTRIES = 3


def check_op(op: Any, *samples: Any) -> None:
    """Try an op made by ``sc.op`` on sample operands; raise CheckError with all that is wrong, in words.

    A sample is an array, or a tuple of arrays, one an operand, with a dict of attributes at its end if the op has any.
    Without samples, those of ``sc.op(samples=...)`` are used. Derivatives are tried on samples of floats, at which the
    op should be smooth.
    """
    record = op if isinstance(op, Op) else lookup(op) if isinstance(op, str) else getattr(op, "op", None)
    own = record.facts.custom if isinstance(record, Op) else None
    if not isinstance(record, Op) or own is None:
        raise InputError(f"check_op takes an op made by sc.op, not {op!r:.60}", where=[caller()])
    given = [sample(s, own.defaults) for s in samples] or (list(record.samples()) if record.samples else [])
    if not given:
        raise InputError(f"check_op: there are no samples for {record.name}", where=[caller()],
                         help="check_op(op, array, ...), or sc.op(samples=[array, ...])")  # fmt: skip
    problems: dict[str, None] = {}
    for arrays, attrs in given:
        problems.update(dict.fromkeys(_Case(record, own, list(arrays), attrs).problems()))
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise CheckError(f"check_op: {record.name} has {count}", values=[(p, None, "") for p in problems],
                         where=[own.line])  # fmt: skip


@dataclass
class _Case:
    """One op on the arrays and attributes of one sample."""

    op: Op
    own: CustomOp
    arrays: list[np.ndarray]
    attrs: dict[str, Any]

    def problems(self) -> Iterator[str]:
        """Problems, one line each. Later checks need what earlier ones establish."""
        stated = self.own.attributes(self.attrs)
        self.held = Attrs(stated | ({"serial": -1} if "effect" in self.op.traits else {}))
        found = list(self._types())
        yield from found
        if found:
            return
        yield from self._repeats()
        yield from self._sizes()
        yield from self._kernels()
        yield from self._derivatives()
        yield from self._batches()

    def __str__(self) -> str:
        shown = [f"{a.dtype}{list(a.shape)}" for a in self.arrays] + [f"{k}={v!r}" for k, v in self.attrs.items()]
        return f"{self.op.name}({', '.join(shown)})"

    # -- the op on arrays and tensors

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The function itself."""
        with np.errstate(all="ignore"):
            found = self.op.reference(*arrays, **self.held.concrete({}))
        return list(found) if isinstance(found, tuple) else [found]

    def build(self, *tensors: Tensor) -> Any:
        """The op in a graph: a tensor, or a tuple of tensors."""
        v = make(self.op, [t.value for t in tensors], self.held)
        return tuple(Tensor(v[k]) for k in range(len(v.type.items))) if isinstance(v.type, TupleType) else Tensor(v)

    # -- checks

    def _types(self) -> Iterator[str]:
        """infer and the function agree. (The record's reference raises where they do not.)"""
        try:
            self.run([np.array(a) for a in self.arrays])
        except SymcError as e:
            yield f"{self}: {e.what.removeprefix(self.op.name + ': ')}"
        except Exception as e:
            hint = "; it writes into an operand" if "read-only" in str(e) else ""
            yield f"{self}: the function raises {type(e).__name__}: {e}{hint}"

    def _repeats(self) -> Iterator[str]:
        """The same arrays give the same result, in any layout."""
        once = self.run(self.arrays)
        if any(map(_differs, self.run(self.arrays), once)):
            yield f"{self}: the function gives something else when it is called again"
        elif any(map(_differs, self.run([_strided(a) for a in self.arrays]), once)):
            yield f"{self}: the function gives something else for arrays that are not contiguous"

    def _sizes(self) -> Iterator[str]:
        """infer knows the shape of the result also where sizes are symbolic."""
        names = {f"{chr(97 + k)}{a}": n for k, array in enumerate(self.arrays) for a, n in enumerate(array.shape)}
        types = [TensorType(x.dtype, [size_name(f"{chr(97 + k)}{a}") if n != 1 else 1 for a, n in enumerate(x.shape)])
                 for k, x in enumerate(self.arrays)]  # fmt: skip
        if "elementwise" in self.op.traits:
            return  # operands of one shape, and a result of the same
        try:
            found = self.op.infer(*types, **self.held)
        except Exception as e:
            yield f"{self}: infer fails for symbolic sizes: {type(e).__name__}: {e}"
            return
        known = found.items if isinstance(found, TupleType) else (found,)
        for k, (t, x) in enumerate(zip(known, self.run(self.arrays), strict=True)):
            shape = concrete_shape(t.shape, names)
            if shape != x.shape:
                which = f"result {k} has" if len(known) > 1 else "the result has"
                yield f"{self}: by infer on symbolic sizes {which} shape {list(shape)}, by the function {list(x.shape)}"

    def _kernels(self) -> Iterator[str]:
        """Compiled code computes what the function does."""
        what = {Element: "numba=", Decompose: "expression="}.get(type(self.op.lowering), "the compiled function")
        tensors = [input(f"x{k}", a.dtype, a.shape) for k, a in enumerate(self.arrays)]
        try:
            got = _tuple(compile(self.build(*tensors), tensors)(*self.arrays))
        except Exception as e:
            yield f"{self}: {what} cannot be compiled or run: {_short(e)}"
            return
        yield from self._compared(what, got, self.run(self.arrays))

    def _compared(self, what: str, got: Sequence[Any], want: Sequence[np.ndarray]) -> Iterator[str]:
        for g, w in zip(got, want, strict=True):
            place = _first_difference(np.asarray(g), w)
            if place is not None:
                at = f" at {list(place)}" if place else ""
                yield f"{self}: {what} gives {np.asarray(g)[place]}{at} where the function gives {w[place]}"
                return

    def _derivatives(self) -> Iterator[str]:
        if self.op.derivative is None or not any(a.dtype.kind in "fc" for a in self.arrays):
            return
        numbers = [a for a in self.arrays if a.dtype.kind in "fc"]
        if "effect" in self.op.traits or any(a.dtype.itemsize < 8 or a.dtype == np.complex64 for a in numbers):
            return  # differences need all digits
        try:
            verify_grad(self._inexact, self.arrays)
        except SymcError as e:
            rows = "; ".join(" ".join(str(row[0]).split()) for row in e.values[:2])
            yield f"{self}: {e.what.replace('verify_grad', 'derivative')}{': ' + rows if rows else ''}"
        except Exception as e:
            yield f"{self}: its derivative raises {type(e).__name__}: {e}"

    def _inexact(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(t for t in _tuple(self.build(*tensors)) if t.dtype.kind in "fc")

    def _batches(self) -> Iterator[str]:
        """A batch is every entry, whichever operands are batched."""
        if not self.arrays:
            return
        single = [np.eye(len(self.arrays), dtype=bool)[k].tolist() for k in range(len(self.arrays))]
        for flags in dict.fromkeys(map(tuple, [*single, [True] * len(self.arrays)])):
            problem = self._batch(flags)
            if problem:
                yield problem
                return

    def _batch(self, flags: Sequence[bool]) -> str | None:
        stacks = [np.stack([_turned(a, k) for k in range(ENTRIES)]) if f else a for a, f in zip(self.arrays, flags)]
        tensors = [input(f"x{k}", a.dtype, a.shape) for k, a in enumerate(stacks)]
        try:
            out = vmap(self.build, tuple(0 if f else None for f in flags))(*tensors)
            got = _tuple(compile(out, tensors, mode="reference")(*stacks))
        except Exception as e:
            return f"{self}: it fails inside vmap: {_short(e)}"
        for k in range(ENTRIES):
            want = self.run([s[k] if f else s for s, f in zip(stacks, flags)])
            for problem in self._compared(f"entry {k} of a batch", [g[k] for g in got], want):
                return problem
        return None


# --- arrays -----------------------------------------------------------------------------------------------------------


def _tuple(found: Any) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def _short(e: Exception) -> str:
    return f"{type(e).__name__}: {e.what if isinstance(e, SymcError) else str(e).strip().partition(chr(10))[0]}"


def _turned(a: np.ndarray, k: int) -> np.ndarray:
    """The same numbers at other places."""
    return np.roll(a, k).reshape(a.shape)


def _strided(a: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * n for n in a.shape], a.dtype)
    backwards: Any = (*[slice(None, None, -2)] * a.ndim, ...)
    view = wide[backwards]
    view[...] = a
    return view


def _differs(a: np.ndarray, b: np.ndarray) -> bool:
    return _first_difference(a, b) is not None


def _first_difference(got: np.ndarray, want: np.ndarray) -> tuple[int, ...] | None:
    """The first element that is not the wanted one, up to rounding; () for arrays of other types."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return ()
    if want.dtype.kind not in "fc":
        wrong = got != want
    else:
        width = want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1)
        finite = np.abs(want[np.isfinite(want)]) if want.size else np.zeros(0)
        scale = TOLERANCE[width] * max(1e-300, float(finite.max(initial=0)))
        wrong = ~np.isclose(got, want, TOLERANCE[width], scale, equal_nan=True)
    places = np.argwhere(wrong)
    return tuple(int(i) for i in places[0]) if len(places) else None
