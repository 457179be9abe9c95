"""Programs as users write them: NumPy's names, operators, indexing, updates, linear algebra, derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symc
from symc.testing.choices import recent
from symc.testing.fuzz.grower import refusals
from symc.testing.fuzz.programs import STYLES, Numbers, Program, generator

sc: Any = symc  # whose functions are made when it is imported
#: Dtypes whose pairs promote in ways of their own: integers and bools of all widths, half precision.
_OTHERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64", "float16", "complex64")
INPUTS = (("float64", ("n", 3)), ("float64", (3,)), ("float64", (3, 3)), ("float64", ("n",)), ("float64", ()),
          ("int64", (3,)), ("int64", ()), ("int64", ("n",)), ("bool", ("n", 3)), ("float32", (3, 3)),
          ("complex128", (3,)), ("float64", (2, 3, 3)), ("float64", (1, 3)), *[(d, (3,)) for d in _OTHERS])  # fmt: skip


class Writer:
    """A user, at random."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng
        chosen = [0, 1, 2, *rng.choice(np.arange(3, len(INPUTS)), 4, replace=False).tolist()]
        self.inputs = [sc.input(f"x{k}", INPUTS[k][0], INPUTS[k][1]) for k in sorted(chosen)]
        self.pool = list(self.inputs)
        self.made: list[Any] = []

    def pick(self, fits: Callable[[Any], bool] | None = None) -> Any:
        return recent(self.rng, self.pool, fits)

    def real(self, ndim: int | None = None) -> Any:
        return self.pick(lambda x: x.dtype.kind == "f" and (ndim is None or x.ndim == ndim))

    def square(self) -> Any:
        return self.pick(lambda x: x.dtype.kind == "f" and x.shape == (3, 3))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def k(self, n: int) -> int:
        return int(self.rng.integers(n))

    def write(self, steps: int) -> None:
        forms = [self.arithmetic, self.arithmetic, self.function, self.function, self.reduction, self.index,
                 self.movement,
                 self.product, self.product, self.update, self.mask, self.convert, self.statistics, self.algebra,
                 self.ordering, self.joined, self.normalised, self.draw]
        for _ in range(steps):
            for _ in range(6):
                y = None
                with refusals():
                    y = forms[self.k(len(forms))]()
                if hasattr(y, "dtype") and y.ndim <= 4:
                    self.pool.append(y)
                    self.made.append(y)
                    break

    # -- steps

    def arithmetic(self) -> Any:
        x, y = self.pick(), self.pick()
        number = [0, 1, -1, 2, 0.5, 3.0][self.k(6)]
        forms = [lambda: x + y, lambda: x - y, lambda: x * y, lambda: x / y, lambda: x * number, lambda: number - x,
                 lambda: x**2, lambda: x / (1 + abs(y)), lambda: -x, lambda: x + number, lambda: x // 2, lambda: x % 3,
                 lambda: number / (x * x + 1), lambda: x * x - y * y, lambda: 0.5 * x + 2 * y, lambda: abs(x) ** 0.5,
                 lambda: x - x * y, lambda: (x + y) * (x - y)]
        return forms[self.k(len(forms))]()

    def function(self) -> Any:
        x = self.real()
        y = self.real()
        forms = [sc.exp, sc.tanh, sc.sin, sc.sqrt, sc.log1p, sc.expm1, sc.abs, sc.floor, sc.sign, sc.arctan, sc.cosh,
                 lambda x: sc.log(1 + sc.exp(x)), lambda x: 1 / (1 + sc.exp(-x)),
                 lambda x: sc.log(sc.sum(sc.exp(x), -1)),
                 lambda x: sc.log(1 / (1 + sc.exp(-x))), lambda x: sc.sqrt(sc.sum(x * x)), lambda x: sc.exp(x) - 1,
                 lambda x: sc.maximum(x, 0), lambda x: sc.clip(x, -0.5, 0.75), lambda x: sc.where(x > 0, x, 0.1 * x),
                 lambda x: sc.log(sc.abs(x) + 1e-3), lambda x: sc.hypot(x, y), lambda x: sc.logaddexp(x, y),
                 lambda x: sc.minimum(x, y), lambda x: sc.exp(sc.log(sc.abs(x) + 1)), lambda x: sc.square(x),
                 lambda x: 1 - sc.tanh(x) ** 2, lambda x: sc.log(sc.exp(x) + sc.exp(y)),
                 lambda x: sc.softmax(x, axis=-1),
                 lambda x: sc.log(sc.softmax(x, axis=-1)), lambda x: sc.power(sc.abs(x) + 0.1, 1.5),
                 lambda x: sc.cbrt(x)]
        return forms[self.k(len(forms))](x)

    def reduction(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0)
        axis = None if self.chance(0.3) else self.k(x.ndim) - (x.ndim if self.chance(0.3) else 0)
        keep = self.chance(0.25)
        names = ["any", "all", "sum"] if x.dtype.kind == "b" else ["sum", "sum", "mean", "prod", "max", "min"]
        if x.dtype.kind == "c":
            names = ["sum", "mean"]
        return getattr(sc, names[self.k(len(names))])(x, axis=axis, keepdims=keep)

    def index(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0 and x.shape[-1] == 3)
        j = self.pick(lambda x: x.dtype.kind == "i")
        forms = [lambda: x[..., 0], lambda: x[..., -1], lambda: x[..., ::-1], lambda: x[..., 1:], lambda: x[..., :2],
                 lambda: x[..., j % 3], lambda: x[..., -1 - j % 3], lambda: x[..., sc.clip(j, 0, 2)],
                 lambda: x[..., None],
                 lambda: x[None], lambda: x[..., [2, 0, 0]], lambda: x[..., ::2], lambda: sc.take(x, j % 3, axis=-1),
                 lambda: x[..., 1:][..., :1], lambda: x[..., sc.asarray([0, 1, 2, 2, -3])], lambda: x[::-1],
                 lambda: x[::2], lambda: sc.flip(x, 0)]
        return forms[self.k(len(forms))]()

    def movement(self) -> Any:
        x = self.pick()
        forms = [lambda: x.T, lambda: sc.swapaxes(x, 0, -1), lambda: x.reshape(-1), lambda: sc.expand_dims(x, 0),
                 lambda: sc.broadcast_to(x, (2, *x.shape)), lambda: sc.moveaxis(x, 0, -1),
                 lambda: sc.roll(x, 1, axis=0),
                 lambda: sc.pad(x, 1), lambda: sc.repeat(x, 2, axis=0), lambda: sc.tile(x, 2), lambda: sc.squeeze(x),
                 lambda: sc.ravel(x), lambda: x.reshape((x.shape[0], -1)), lambda: sc.broadcast_to(x, (3, 3)),
                 lambda: sc.tril(x), lambda: sc.diag(x), lambda: x.T.reshape(-1)]
        return forms[self.k(len(forms))]()

    def product(self) -> Any:
        m, v, r = self.square(), self.real(1), self.real(2)
        q, c = self.square(), self.real(2)
        forms = [lambda: m @ v, lambda: v @ m, lambda: r @ m, lambda: m @ q, lambda: m.T @ q, lambda: m @ q.T,
                 lambda: r.T @ r,
                 lambda: 0.5 * (m @ q) + 2 * self.square(), lambda: m @ q + q @ m, lambda: m @ q - m @ self.square(),
                 lambda: r @ m + v, lambda: sc.outer(v, v), lambda: sc.einsum("ij,kj->ki", m, q), lambda: sc.dot(v, v),
                 lambda: sc.tensordot(m, q, 1), lambda: sc.einsum("ij,jk,kl->il", m, q, m), lambda: m @ q @ v,
                 lambda: m @ (q @ self.square()), lambda: (m @ q).sum(), lambda: sc.trace(m @ q), lambda: m @ m.T,
                 lambda: sc.concatenate([m, q], 0) @ v, lambda: (r @ m)[:, :2], lambda: sc.vdot(m, q), lambda: -(m @ q),
                 lambda: m @ q * 3.0, lambda: sc.kron(m, q), lambda: c @ c.T @ c, lambda: sc.matmul(m, self.real(3)),
                 lambda: sc.einsum("bij,jk->bik", self.real(3), m), lambda: m @ sc.eye(3), lambda: sc.inner(m, q)]
        return forms[self.k(len(forms))]()

    def update(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0 and x.shape[-1] == 3 and x.dtype.kind == "f")
        j = self.pick(lambda x: x.dtype.kind == "i" and x.ndim <= 1 and x.shape in ((), (3,)))
        s = self.pick(lambda x: x.ndim == 0 and x.dtype.kind == "f")
        forms = [lambda: x.at[..., 0].set(s), lambda: x.at[..., -1].add(s), lambda: x.at[..., j % 3].add(s),
                 lambda: x.at[..., 1:].multiply(0.5), lambda: x.at[..., j % 3].set(1.0),
                 lambda: x.at[..., j % 3].max(s),
                 lambda: x.at[..., ::-1].add(x), lambda: x.at[..., [0, 0, 2]].add(s), lambda: x.at[:].set(0.0)]
        return forms[self.k(len(forms))]()

    def mask(self) -> Any:
        x, y = self.real(), self.real()
        forms = [lambda: x > y, lambda: x >= 0, lambda: sc.where(x > y, x, y), lambda: sc.where(x == 0, 1.0, x),
                 lambda: sc.where(sc.isfinite(x), x, 0), lambda: (x > 0) & (y < 0), lambda: ~(x > y),
                 lambda: sc.isnan(x),
                 lambda: sc.where(x > 0, sc.log(sc.where(x > 0, x, 1)), 0), lambda: sc.logical_or(x > 0, x < -1),
                 lambda: sc.where((x > 0) | (x <= 0), x, y), lambda: (x != y).astype("float64"),
                 lambda: sc.nan_to_num(x),
                 lambda: sc.where(self.pick(lambda b: b.dtype.kind == "b"), x, y)]
        return forms[self.k(len(forms))]()

    def convert(self) -> Any:
        x = self.pick(lambda x: x.dtype.kind != "c")
        name = ["float32", "float64", "int64", "bool", "float16", "int32"][self.k(6)]
        if x.dtype.kind == "f" and name.startswith("int"):
            x = sc.clip(sc.where(sc.isfinite(x), x, 0), -100, 100)
        if self.chance(0.15):
            z = self.pick(lambda x: x.dtype.kind == "c")
            return [z.real, z.imag, sc.conj(z), abs(z), z * z, sc.exp(z)][self.k(6)]
        return x.astype(name)

    def statistics(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0 and x.dtype.kind == "f")
        forms = [lambda: sc.var(x, axis=-1), lambda: sc.std(x), lambda: sc.cumsum(x, axis=0), lambda: sc.diff(x),
                 lambda: sc.argmax(x, axis=-1), lambda: x - x.mean(axis=0), lambda: sc.cumprod(x, axis=-1),
                 lambda: sc.ptp(x),
                 lambda: (x - x.mean()) / sc.sqrt(((x - x.mean()) ** 2).mean() + 1e-5), lambda: sc.count_nonzero(x > 0)]
        return forms[self.k(len(forms))]()

    def algebra(self) -> Any:
        """Linear algebra on matrices that are well conditioned."""
        m = self.square()
        a = sc.tanh(m) + 4 * sc.eye(3)
        p = sc.tanh(m) @ sc.tanh(m).T + sc.eye(3)
        v, linalg = self.pick(lambda x: x.dtype.kind == "f" and x.shape in ((3,), (3, 3))), sc.linalg
        forms = [lambda: linalg.inv(a), lambda: linalg.solve(a, v), lambda: linalg.det(a), lambda: linalg.slogdet(a)[1],
                 lambda: linalg.cholesky(p), lambda: linalg.inv(a) @ v, lambda: linalg.solve(p, v),
                 lambda: linalg.inv(p) @ v,
                 lambda: linalg.svd(a)[1], lambda: linalg.eigvalsh(p), lambda: linalg.det(linalg.cholesky(p)),
                 lambda: sc.log(linalg.det(p)), lambda: linalg.qr(a)[0] @ linalg.qr(a)[1], lambda: linalg.norm(m),
                 lambda: linalg.pinv(a), lambda: sc.trace(linalg.inv(p) @ m), lambda: linalg.inv(linalg.inv(a)),
                 lambda: linalg.solve(a, linalg.solve(p, v)), lambda: linalg.matrix_power(a, 3),
                 lambda: linalg.inv(a.T)]
        return forms[self.k(len(forms))]()

    def ordering(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0 and x.dtype.kind in "fi")
        return [lambda: sc.sort(x, axis=-1), lambda: sc.argsort(x, axis=-1), lambda: sc.median(x, axis=-1),
                lambda: sc.sort(x, axis=0)[::-1]][self.k(4)]()

    def joined(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0)
        y = self.pick(lambda t: t.shape == x.shape)
        return [lambda: sc.concatenate([x, y]), lambda: sc.stack([x, y]), lambda: sc.stack([x, y], axis=-1)[..., 0],
                lambda: sc.concatenate([x, y], axis=-1), lambda: sc.concatenate([x[:1], y[1:]]),
                lambda: sc.split(x, 3, -1)[1],
                lambda: sc.concatenate([x, y], axis=-1)[..., :3], lambda: sc.vstack([x, y])][self.k(8)]()

    def normalised(self) -> Any:
        x = self.pick(lambda x: x.ndim > 0 and x.dtype.kind == "f")
        e = sc.exp(x - sc.max(x, axis=-1, keepdims=True))
        return [lambda: e / e.sum(axis=-1, keepdims=True),
                lambda: x / sc.sqrt(sc.sum(x * x, axis=-1, keepdims=True) + 1e-8),
                lambda: sc.log(e.sum(axis=-1)), lambda: -sc.mean(sc.log(sc.softmax(x, axis=-1)))][self.k(4)]()

    def draw(self) -> Any:
        key = sc.random.key(self.k(100))
        forms = [lambda: sc.random.normal(key, (3,)), lambda: sc.random.uniform(key, (3, 3)),
                 lambda: sc.random.normal(sc.random.fold_in(key, 1), (3,)) * self.real()]
        return forms[self.k(len(forms))]()

    def gradient(self) -> list[Any]:
        """The derivatives of a cost made of what was written last."""
        parts = [y for y in self.made[-4:] if y.dtype.kind == "f"]
        cost = sum((sc.sum(y.astype("float64") * (1.0 + 0.3 * k)) for k, y in enumerate(parts)), sc.asarray(0.0))
        wrt = [x for x in self.inputs if x.dtype == np.float64]
        return list(sc.grad(cost, wrt, disconnected="zero"))


@generator("front")
def front(seed: int, aim: str = "") -> Program:
    """A program in NumPy's manner; of every third one the derivatives, too."""
    rng = np.random.default_rng(seed)
    w = Writer(rng)
    w.write(int(rng.integers(3, 14)))
    outputs = w.made[-3:] or [w.pool[0] * 1.0]
    if seed % 3 == 0:
        with refusals():
            outputs = [*outputs[-1:], *w.gradient()]
    f = sc.compile(outputs, w.inputs, mode="reference")._compilation.source
    data = []
    for style, n in zip((*STYLES, "edges"), (4, 1, 0, 2, 3), strict=True):
        numbers = Numbers(rng, style)
        data.append(tuple(numbers.array(i.type, {"n": n}) for i in f.inputs))
    return Program(f"front:{seed}", f, tuple(data[:-1]), edges=tuple(data[-1:]))
