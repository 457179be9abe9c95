"""The ops of random programs with loops: each takes values from a pool, by kind, and makes one of a known kind.

A kind is a dtype and a shape: "s" (), "v" (3,), "m" (3, 3), "n" (n,), "r" (n, 3); and "key", a key of random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import symc

sc: Any = symc  # whose functions are made when it is imported
Made = tuple[str, Any]
Picks = Sequence[int]
SHAPES = ("s", "v", "m", "n", "r")
DTYPES = {"f8": "float64", "f4": "float32", "i8": "int64", "i4": "int32", "b1": "bool"}
RECENT = 6


class Pool:
    """The values a body can use, newest last, each with its kind."""

    def __init__(self, items: Sequence[Made], n: Any):
        self.items, self.n = list(items), n

    def pick(self, kind: str, k: int) -> Any:
        """One of the newest values of a kind, mostly of the newest two; a simple one if there is none."""
        fits = [t for own, t in self.items if own == kind]
        back = k % (RECENT if k % 3 == 0 else 2)
        return fits[-1 - back % len(fits)] if fits else start(kind, self)


def start(kind: str, pool: Pool) -> Any:
    """A value of a kind of which there is none yet, made from those that are always there."""
    dtype, shape = kind.split()
    if dtype == "f8":
        return sc.tanh(pool.pick("f8 n", 0))[:, None] * pool.pick("f8 v", 0) if shape == "r" else sc.asarray(0.5)
    return pool.pick(("i8 " if dtype in ("i4", "b1") else "f8 ") + shape, 0).astype(DTYPES[dtype])


OPS: dict[str, Callable[[Pool, Picks], Made]] = {}
SMOOTH: set[str] = set()


def op(smooth: bool = False) -> Callable[[Callable[[Pool, Picks], Made]], Callable[[Pool, Picks], Made]]:
    def declare(fn: Callable[[Pool, Picks], Made]) -> Callable[[Pool, Picks], Made]:
        OPS[fn.__name__] = fn
        if smooth:
            SMOOTH.add(fn.__name__)
        return fn

    return declare


def _shape(k: int) -> str:
    return SHAPES[(1, 0, 1, 2, 3, 4)[k % 6]]


def _index(p: Pool, k: int) -> Any:
    return p.pick("i8 s", k) % 3


@op(smooth=True)
def unary(p: Pool, k: Picks) -> Made:
    kind = "f8 " + _shape(k[0])
    x = p.pick(kind, k[1])
    forms = [sc.sin, sc.tanh, lambda x: -x, lambda x: sc.sqrt(1 + x * x), lambda x: sc.exp(-x * x), sc.cos,
             lambda x: sc.log1p(x * x), lambda x: x / (1 + x * x), lambda x: 1 / (1 + sc.exp(-x)), sc.arctan]
    return kind, forms[k[2] % len(forms)](x)


@op(smooth=True)
def binary(p: Pool, k: Picks) -> Made:
    kind = "f8 " + _shape(k[0])
    x, y = p.pick(kind, k[1]), p.pick(kind, k[2])
    forms = [lambda: x + y, lambda: x - y, lambda: x * sc.sin(y), lambda: x * 0.5 + y, lambda: x / (1 + y * y),
             lambda: sc.tanh(x * y), lambda: x * y * 0.3]
    return kind, forms[k[3] % len(forms)]()


@op(smooth=True)
def spread(p: Pool, k: Picks) -> Made:
    """Two shapes at once."""
    wide, narrow = (("v", "s"), ("m", "v"), ("r", "v"), ("n", "s"), ("m", "s"), ("r", "s"))[k[0] % 6]
    x, y = p.pick("f8 " + wide, k[1]), p.pick("f8 " + narrow, k[2])
    return "f8 " + wide, [x + 0.5 * y, x * sc.tanh(y), y - x][k[3] % 3]


@op(smooth=True)
def column(p: Pool, k: Picks) -> Made:
    wide, narrow = (("m", "v"), ("r", "n"))[k[0] % 2]
    return "f8 " + wide, p.pick("f8 " + wide, k[1]) * sc.cos(p.pick("f8 " + narrow, k[2]))[:, None]


@op(smooth=True)
def product(p: Pool, k: Picks) -> Made:
    v, m = p.pick("f8 v", k[1]), p.pick("f8 m", k[2])
    r = p.pick("f8 r", k[3])
    return [("f8 v", m @ v * 0.5), ("f8 v", v @ m * 0.5), ("f8 m", m @ p.pick("f8 m", k[4]) * 0.3),
            ("f8 r", r @ m * 0.5), ("f8 m", sc.tanh(r.T @ r)), ("f8 s", sc.tanh(v @ p.pick("f8 v", k[5]))),
            ("f8 m", sc.outer(v, v) * 0.5),
            ("f8 n", r @ v * 0.3), ("f8 v", sc.tanh(p.pick("f8 n", k[4]) @ r)),
            ("f8 m", sc.einsum("ij,kj->ki", m, p.pick("f8 m", k[4])) * 0.3)][k[0] % 10]


@op(smooth=True)
def total(p: Pool, k: Picks) -> Made:
    wide, narrow, axis = (("v", "s", None), ("m", "v", 0), ("m", "v", 1), ("r", "v", 0), ("r", "n", 1), ("n", "s", 0),
                          ("m", "s", None))[k[0] % 7]
    x = p.pick("f8 " + wide, k[1])
    y = [lambda: sc.sum(x, axis=axis), lambda: sc.sum(x * x, axis=axis) * 0.2,
         lambda: sc.log(1 + sc.sum(sc.exp(sc.sin(x)), axis=axis))][k[2] % 3]()
    return "f8 " + narrow, y


@op()
def extreme(p: Pool, k: Picks) -> Made:
    wide, narrow, axis = (("v", "s", None), ("m", "v", 0), ("m", "v", 1), ("r", "n", 1), ("m", "s", None))[k[0] % 5]
    x = p.pick("f8 " + wide, k[1])
    if k[2] % 4 == 0:
        return "i8 " + narrow, sc.argmax(x, axis=axis)
    return "f8 " + narrow, [sc.max, sc.min, sc.prod, sc.mean][k[3] % 4](x, axis=axis)


@op(smooth=True)
def running(p: Pool, k: Picks) -> Made:
    kind = "f8 " + ("v", "m", "n", "r")[k[0] % 4]
    x = p.pick(kind, k[1])
    axis = k[2] % x.ndim
    return kind, [lambda: sc.cumsum(x, axis=axis) * 0.5, lambda: sc.cumprod(sc.sin(x), axis=axis),
                  lambda: sc.flip(sc.cumsum(sc.flip(x, axis), axis=axis), axis) * 0.5][k[3] % 3]()


@op(smooth=True)
def cut(p: Pool, k: Picks) -> Made:
    """Slices, joined again."""
    x, y, m = p.pick("f8 v", k[1]), p.pick("f8 v", k[2]), p.pick("f8 m", k[3])
    return [("f8 v", sc.concatenate([x[1:], y[:1]])), ("f8 v", x[::-1]), ("f8 v", m[1]), ("f8 v", m[:, 2]),
            ("f8 m", sc.stack([x, y, x * y])), ("f8 m", sc.concatenate([m[1:], x[None]])), ("f8 s", x[-1]),
            ("f8 m", m.T), ("f8 v", sc.diag(m)), ("f8 m", sc.reshape(sc.roll(sc.reshape(m, (9,)), 2), (3, 3))),
            ("f8 v", sc.concatenate([y[:2], x[2:]])), ("f8 r", p.pick("f8 r", k[4])[::-1]),
            ("f8 m", sc.pad(m[:2, 1:], ((0, 1), (1, 0))))][k[0] % 13]


@op(smooth=True)
def gather(p: Pool, k: Picks) -> Made:
    x, m, i, j = p.pick("f8 v", k[1]), p.pick("f8 m", k[2]), _index(p, k[3]), p.pick("i8 v", k[4]) % 3
    return [("f8 s", x[i]), ("f8 v", m[i]), ("f8 v", m[:, i]), ("f8 v", x[j]), ("f8 m", m[j]), ("f8 v", m[j, j[::-1]]),
            ("f8 m", m[:, j]), ("f8 n", x[p.pick("i8 n", k[5]) % 3]), ("f8 r", m[p.pick("i8 n", k[5]) % 3]),
            ("f8 v", sc.take(m, i, axis=1)), ("f8 s", m[i, -1])][k[0] % 11]


@op(smooth=True)
def update(p: Pool, k: Picks) -> Made:
    x, y, s, m = p.pick("f8 v", k[1]), p.pick("f8 v", k[2]), p.pick("f8 s", k[3]), p.pick("f8 m", k[4])
    i, j = _index(p, k[5]), p.pick("i8 v", k[6]) % 3
    r, jn = p.pick("f8 r", k[3]), p.pick("i8 n", k[6]) % 3
    forms = [lambda: ("f8 v", x.at[i].set(s)), lambda: ("f8 v", x.at[i].add(s)), lambda: ("f8 m", m.at[i].set(x)),
             lambda: ("f8 m", m.at[:, i].add(x)), lambda: ("f8 v", x.at[j].add(y)),
             lambda: ("f8 v", x.at[1:].add(y[1:])),
             lambda: ("f8 m", m.at[1].multiply(x)), lambda: ("f8 v", x.at[0].set(sc.sin(s))),
             lambda: ("f8 m", m.at[jn].add(r * 0.5)), lambda: ("f8 m", m.at[i, 1].set(s)),
             lambda: ("f8 m", m.at[j].add(m * 0.5)), lambda: ("f8 r", r.at[:, i].set(p.pick("f8 n", k[7])))]
    return forms[k[0] % len(forms)]()


@op()
def order(p: Pool, k: Picks) -> Made:
    x, m, i = p.pick("f8 v", k[1]), p.pick("f8 m", k[2]), _index(p, k[3])
    forms = [lambda: ("f8 v", sc.sort(x)), lambda: ("i8 v", sc.argsort(x)), lambda: ("f8 m", sc.sort(m, axis=k[4] % 2)),
             lambda: ("f8 v", x.at[i].max(m[1, 1])), lambda: ("f8 v", x.at[i].min(0.25)), lambda: ("f8 v", sc.floor(x)),
             lambda: ("f8 v", sc.abs(x)), lambda: ("f8 v", sc.sign(x) * 0.5), lambda: ("f8 m", sc.clip(m, -0.5, 0.75)),
             lambda: ("i8 v", sc.sort(p.pick("i8 v", k[5])))]
    return forms[k[0] % len(forms)]()


@op(smooth=True)
def select(p: Pool, k: Picks) -> Made:
    kind = "f8 " + _shape(k[0])
    x, y = p.pick(kind, k[1]), p.pick(kind, k[2])
    return kind, [lambda: sc.where(x > 0.3, x, 0.5 * y), lambda: sc.maximum(x, y * 0.9 + 0.01),
                  lambda: sc.where(p.pick("f8 s", k[4]) < 0.2, x, sc.cos(y)),
                  lambda: sc.where(x < 0.1, sc.log(sc.where(x < 0.1, 1.2 - x, 1.0)), y)][k[3] % 4]()


@op()
def truth(p: Pool, k: Picks) -> Made:
    shape = _shape(k[0])
    x, y, a = p.pick("f8 " + shape, k[1]), p.pick("f8 " + shape, k[2]), p.pick("b1 " + shape, k[3])
    forms = [lambda: (shape, x > y), lambda: (shape, a & (x < 0.5)), lambda: (shape, ~a), lambda: (shape, a ^ (x > 0)),
             lambda: ("s", sc.any(a)), lambda: ("s", sc.all(a | (y > 0)))]
    shape, t = forms[k[4] % len(forms)]()
    return "b1 " + shape, t


@op(smooth=True)
def integer(p: Pool, k: Picks) -> Made:
    kind = "i8 " + ("s", "v", "n", "s")[k[0] % 4]
    x, y = p.pick(kind, k[1]), p.pick(kind, k[2])
    forms = [lambda: x + y, lambda: x * 3 - y, lambda: (x * y) % 1001, lambda: x // 2, lambda: x & (y + 1),
             lambda: x ^ y, lambda: sc.maximum(x, y), lambda: sc.where(x > y, x, y - 1), lambda: -x, lambda: x + 1,
             lambda: sc.abs(x) % 5, lambda: x // (1 + y % 4)]
    return kind, forms[k[3] % len(forms)]()


@op()
def narrow(p: Pool, k: Picks) -> Made:
    """float32 and int32."""
    x, y, i = p.pick("f4 v", k[1]), p.pick("f4 v", k[2]), p.pick("i4 s", k[3])
    forms = [lambda: ("f4 v", sc.tanh(x) + y), lambda: ("f4 v", x * 0.5), lambda: ("f8 v", x + p.pick("f8 v", k[4])),
             lambda: ("f4 v", p.pick("f8 v", k[4]).astype("float32")), lambda: ("f4 s", sc.sum(x)),
             lambda: ("f4 v", x * p.pick("f4 s", k[5])), lambda: ("i4 s", i * 7 + 3), lambda: ("f8 s", i * 0.25),
             lambda: ("i8 s", p.pick("i8 s", k[5]) + i), lambda: ("i4 s", p.pick("i8 s", k[6]).astype("int32")),
             lambda: ("f4 v", x.at[i % 3].set(y[1])), lambda: ("f4 v", sc.sort(x))]
    return forms[k[0] % len(forms)]()


@op()
def convert(p: Pool, k: Picks) -> Made:
    shape = ("s", "v")[k[1] % 2]
    whole = sc.floor(sc.clip(p.pick("f8 " + shape, k[2]) * 2, -50, 50))
    forms = [lambda: ("i8 " + shape, whole.astype("int64")), lambda: ("f8 " + shape, p.pick("i8 " + shape, k[2]) * 0.1),
             lambda: ("f8 " + shape, p.pick("b1 " + shape, k[2]) * 0.5), lambda: ("i8 s", sc.sum(p.pick("b1 v", k[2]))),
             lambda: ("b1 " + shape, p.pick("i8 " + shape, k[2]) % 2 == 0)]
    return forms[k[0] % len(forms)]()


@op(smooth=True)
def draw(p: Pool, k: Picks) -> Made:
    key, s = p.pick("key", k[1]), p.pick("f8 s", k[2])
    forms = [lambda: ("f8 v", sc.random.normal(key, (3,)) * sc.tanh(s)), lambda: ("f8 s", sc.random.uniform(key) + s),
             lambda: ("key", sc.random.split(key)[k[3] % 2]),
             lambda: ("key", sc.random.fold_in(key, p.pick("i8 s", k[4]))),
             lambda: ("f8 m", sc.random.normal(key, (3, 3)) * 0.3),
             lambda: ("i8 v", sc.random.integers(key, 0, 9, (3,))),
             lambda: ("f8 n", sc.random.uniform(key, (p.n,))), lambda: ("i8 s", sc.random.randint(key, (), 0, 5))]
    return forms[k[0] % len(forms)]()
