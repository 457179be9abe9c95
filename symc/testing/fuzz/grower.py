"""Programs of IR values of many dtypes, grown op by op. Most ops find operands, because there are few shapes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np

from symc.errors import InternalError, SymcError
from symc.ir.attrs import Attrs
from symc.ir.dim import Size, size_name
from symc.ir.op import lookup, make, splat
from symc.ir.ops.kernel import results_of
from symc.ir.ops.leaf import array
from symc.ir.types import DTYPES, TensorType
from symc.ir.value import Value, fresh_input
from symc.testing.choices import one_of, recent
from symc.testing.fuzz.sampled import elementwise_ops, library_ops, pick_sample

N: Size = size_name("n")
SHAPES: tuple[tuple[Size, ...], ...] = ((N, 3), (3,), (N,), (3, 3), (), (3, N), (2, 3, 3))
FAMILIES = (("f64",), ("f64", "bool", "i64"), ("f32", "bool", "i32"), ("f64", "f32", "f16", "i64", "bool"),
            ("i64", "i32", "u8", "bool", "i8"), ("c128", "f64", "bool"), ("c64", "f32", "c128", "f64"),
            ("f32", "f64", "i64", "bool"), ("i16", "u16", "u64", "i64", "f32"),
            ("u32", "i8", "f16", "c64"))  # fmt: skip
MISTAKES = (SymcError, TypeError, ValueError, IndexError, KeyError, NotImplementedError)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Passes over what public functions refuse; a bug that they report themselves is none of that."""
    try:
        yield
    except InternalError:
        raise
    except MISTAKES:
        pass


class Grower:
    """A pool of values. ``step`` adds one; the same seed gives the same."""

    shapes = SHAPES

    def __init__(self, rng: np.random.Generator, dtypes: tuple[str, ...] | None = None):
        self.rng = rng
        self.dtypes = dtypes or one_of(rng, FAMILIES)
        self.ops = elementwise_ops()
        self.leaves: list[Value] = []
        self.pool: list[Value] = []
        for _ in range(int(rng.integers(2, 5))):
            shape = one_of(rng, self.shapes)
            self.leaf(TensorType(DTYPES[str(rng.choice(self.dtypes))], shape))

    def leaf(self, t: TensorType) -> Value:
        v = fresh_input(t)
        self.leaves.append(v)
        self.pool.append(v)
        return v

    def grow(self, steps: int) -> None:
        forms = self.forms()
        for _ in range(steps):
            for _ in range(8):
                try:
                    v = one_of(self.rng, forms)()
                except MISTAKES:
                    continue
                self.pool.append(v)
                break

    def forms(self) -> list[Callable[[], Value]]:
        e, m = self.elementwise, self.movement
        return [e, e, e, e, self.cast, self.compare, self.where, self.reduce, self.reduce, m, m, m, self.product,
                self.running, self.gather, self.scatter, self.concat, self.window, self.order, self.stable,
                self.library, self.library]

    # -- operands

    def pick(self, fits: Callable[[Value], bool] | None = None) -> Value:
        return recent(self.rng, self.pool, fits)

    def like(self, t: TensorType) -> Value:
        same = [v for v in self.pool if v.type is t]
        if same and self.rng.random() < 0.8:
            return one_of(self.rng, same)
        if t.dtype.kind == "b":
            return splat(bool(self.rng.random() < 0.5), t)
        if t.dtype.kind == "u":
            return splat(int(self.rng.integers(0, 4)), t)
        return splat(self.rng.choice([0, 1, -1, 2, 3] if t.dtype.kind == "i" else [0.0, 1.0, -1.0, 2.0, 0.5]).item(), t)

    # -- steps

    def elementwise(self) -> Value:
        op = one_of(self.rng, self.ops)
        x = self.pick(lambda v: v.dtype.kind in (op.facts.kinds or "f"))
        if op.name == "where":
            return self.where()
        try:
            return op(x)
        except TypeError:
            operands = [x, self.like(x.type)]
            return op(*(operands if self.rng.random() < 0.5 else operands[::-1]))

    def cast(self) -> Value:
        x = self.pick()
        target = DTYPES[str(self.rng.choice(self.dtypes))]
        if x.dtype.kind == "c" and target.kind != "c":
            return lookup("real")(x)
        if x.dtype.kind == "f" and target.kind in "iu":  # what is out of range has no meaning
            low = 0 if target.kind == "u" else -100
            clipped = lookup("minimum")(lookup("maximum")(x, splat(low, x.type)), splat(100, x.type))
            x = lookup("where")(lookup("isfinite")(clipped), clipped, splat(0, x.type))
        return lookup("cast")(x, dtype=target)

    def compare(self) -> Value:
        x = self.pick(lambda v: v.dtype.kind in "biuf")
        name = str(self.rng.choice(["eq", "ne", "lt", "le", "gt", "ge"]))
        return lookup(name)(x, self.like(x.type))

    def where(self) -> Value:
        x = self.pick()
        return lookup("where")(self.like(x.type.with_dtype("bool")), x, self.like(x.type))

    def stable(self) -> Value:
        """Forms that the stability rules look for."""
        x = self.pick(lambda v: v.dtype.kind == "f" and v.dtype.itemsize > 2)
        y = self.like(x.type)
        make = lookup
        forms = [lambda: make("log")(1 + make("exp")(x)), lambda: make("log")(make("exp")(x) + make("exp")(y)),
                 lambda: 1 / (1 + make("exp")(-x)), lambda: make("exp")(x) - 1,
                 lambda: make("log")(1 - make("sigmoid")(x)),
                 lambda: make("sqrt")(x * x + y * y), lambda: make("log")(make("exp")(x) * make("exp")(y)),
                 lambda: x * x - y * y, lambda: (x + y) - x, lambda: make("exp")(make("log")(x)), lambda: x / y * y,
                 lambda: make("pow")(x, splat(2.0, x.type)), lambda: x * 3.0 + x * 0.5 - x]
        return one_of(self.rng, forms)()

    def reduce(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0)
        axes = tuple(a for a in range(x.ndim) if self.rng.random() < 0.6)
        names = {"b": ["any", "all", "sum"], "c": ["sum", "prod"], "f": ["sum", "max", "min", "logsumexp", "norm",
                 "sum"]}
        name = str(self.rng.choice(names.get(x.dtype.kind, ["sum", "max", "min", "prod"])))
        if self.rng.random() < 0.15 and x.dtype.kind in "iuf":
            return lookup(str(self.rng.choice(["argmax", "argmin"])))(x, axis=int(self.rng.integers(x.ndim)))
        return lookup(name)(x, axes=axes)

    def movement(self) -> Value:
        x = self.pick()
        k = int(self.rng.integers(6))
        if k == 0:
            return lookup("transpose")(x, perm=tuple(int(p) for p in self.rng.permutation(x.ndim)))
        if k == 1:
            wide = self.pick(lambda v: v.ndim > x.ndim)
            places = self.rng.permutation(wide.ndim)[: x.ndim]
            return lookup("broadcast")(x, axes=tuple(sorted(int(p) for p in places)), shape=wide.shape)
        if k == 2:
            flat = self.rng.random() < 0.5
            return lookup("reshape")(x, shape=(x.type.size,) if flat else (*x.shape[:1], 1, *x.shape[1:]))
        if k == 3:
            return self.cut(x)
        if k == 4:
            low = tuple(int(self.rng.integers(0, 2)) for _ in x.shape)
            return lookup("pad")(x, self.like(TensorType(x.dtype, ())), low=low, high=low[::-1], interior=(0,) * x.ndim)
        return self.expanded(x)

    def cut(self, x: Value) -> Value:
        """A slice: a part, or backwards."""
        start: list[Size] = []
        size: list[Size] = []
        step = []
        for s in x.shape:
            k = int(self.rng.integers(4)) if isinstance(s, int) and s > 1 else 0
            start.append({0: 0, 1: 1, 2: 0, 3: s - 1}[k])
            size.append({0: s, 1: s - 1, 2: s - 1, 3: s}[k])
            step.append(-1 if k == 3 else 1)
        return lookup("slice")(x, start=tuple(start), size=tuple(size), step=tuple(step))

    def expanded(self, x: Value) -> Value:
        """One more axis, and an op over it."""
        if x.dtype.kind not in "f":
            raise ValueError
        wide = lookup("broadcast")(x, axes=tuple(range(x.ndim)), shape=(*x.shape, 2))
        return lookup("sum")(wide * 0.5, axes=(x.ndim,))

    def product(self) -> Value:
        x = self.pick(lambda v: v.dtype.kind in "fc" and v.ndim > 0)
        y = self.pick(lambda v: v.dtype is x.dtype and v.ndim > 0)
        pairs = [(a, b) for a in range(x.ndim) for b in range(y.ndim) if x.shape[a] == y.shape[b]]
        a, b = one_of(self.rng, pairs)
        batch: tuple = ((), ())
        more = [(c, d) for c, d in pairs if c != a and d != b]
        if more and self.rng.random() < 0.3:
            c, d = one_of(self.rng, more)
            batch = ((c,), (d,))
        p = lookup("dot")(x, y, contract=((a,), (b,)), batch=batch)
        k = self.rng.random()
        if k < 0.2:
            return p * 0.5 + self.like(p.type) * 2.0
        return p + lookup("dot")(x, y * 0.5, contract=((a,), (b,)), batch=batch) if k < 0.3 else p

    def running(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0 and v.dtype.kind in "iufc")
        name = str(self.rng.choice(["cumsum", "cumprod"]))
        return lookup(name)(x, axis=int(self.rng.integers(x.ndim)), reverse=bool(self.rng.random() < 0.5))

    def index(self, shape: tuple[Size, ...], size: int) -> Value:
        """Places below ``size``: often the first or the last."""
        t = TensorType("i64", shape)
        found = [v for v in self.pool if v.dtype.kind == "i" and v.shape == shape]
        k = lookup("cast")(found[-1], dtype=DTYPES["i64"]) if found else splat(int(self.rng.integers(size)), t)
        if self.rng.random() < 0.3:
            return lookup("maximum")(lookup("minimum")(k, splat(size - 1, t)), splat(0, t))
        return lookup("mod")(k, splat(size, t))

    def gather(self) -> Value:
        x = self.pick(lambda v: any(s == 3 for s in v.shape))
        axis = x.shape.index(3)
        shape = ((), (3,), (N,))[int(self.rng.integers(3))]
        return lookup("gather")(x, self.index(shape, 3), axes=(axis,))

    def scatter(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0 and v.shape[0] == 3 and v.dtype.kind != "b")
        into = x if self.rng.random() < 0.6 else splat(0, x.type)
        modes = ["set", "add", "mul"] + (["max", "min"] if x.dtype.kind != "c" else [])
        return lookup("scatter")(into, self.like(x.type), self.index((3,), 3), axes=(0,),
                                 mode=str(self.rng.choice(modes)))

    def concat(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0)
        axis = int(self.rng.integers(x.ndim))
        return lookup("concat")(x, self.like(x.type), axis=axis)

    def window(self) -> Value:
        x = self.pick(lambda v: v.shape == (3, 3))
        start = [self.index((), 4), self.index((), 3)]
        part = lookup("dynamic_slice")(x, *start, size=(2, 3))
        return part if self.rng.random() < 0.5 else lookup("dynamic_update_slice")(self.like(x.type), part, *start)

    def library(self) -> Value:
        """An op that few numbers can be given to, on a sample of its own times a computed number near 1."""
        special = self.rng.random() < 0.3
        names = [n for n in library_ops() if ("elementwise" in lookup(n).traits) == special]
        op = lookup(one_of(self.rng, names))
        arrays, attrs = pick_sample(op, self.rng)
        y = self.pick()
        y = lookup("cast")(lookup("real")(y) if y.dtype.kind == "c" else y, dtype=DTYPES["f64"])
        near = lookup("tanh")(lookup("sum")(y, axes=tuple(range(y.ndim)))) * 0.02
        near = lookup("where")(lookup("isfinite")(near), near, splat(0, near.type)) + 1.0
        operands = []
        for a in arrays:
            x = array(a)
            if a.dtype.kind in "fc" and a.size:
                factor = lookup("cast")(near, dtype=a.dtype) if a.dtype != near.dtype else near
                x = x * (lookup("broadcast")(factor, axes=(), shape=a.shape) if a.shape else factor)
            operands.append(x)
        made = results_of(make(op, operands, Attrs(attrs)))
        self.pool += made[1:]
        return made[0]

    def order(self) -> Value:
        x = self.pick(lambda v: v.ndim > 0 and v.dtype.kind in "biuf")
        return lookup(str(self.rng.choice(["sort", "sort", "argsort"])))(x, axis=int(self.rng.integers(x.ndim)))
