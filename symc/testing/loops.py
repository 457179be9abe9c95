"""Random programs with loops and branches, for properties that must hold of every program.

A program is data: a list of statements, some with bodies of statements, so it can be printed, made smaller and run
again. It is built with symc's loops (``Loops``) or with none at all (``Unrolled``: Python loops, ``where`` for
choices); both mean the same. What must hold of a program is in ``symc.testing.loop_checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.ir.record import dataclass, replace
from symc.testing.choices import one_of
from symc.testing.loop_ops import OPS, SMOOTH, Pool, sc

Body = tuple["Statement", ...]
NESTED = {"scan": 1, "while": 1, "cond": 2, "switch": 3, "fori": 1, "map": 1, "checkpoint": 1, "vmap": 1}
CARRIES = ("f8 v", "f8 s", "i8 s", "f8 m", "f4 v", "b1 s", "i8 v", "f8 n", "f8 r", "key", "i4 s", "f4 s")
SMOOTH_CARRIES = ("f8 v", "f8 s", "f8 m", "f8 n", "f8 r", "i8 s")
LENGTHS = ("n", 3, 0, 1, 2, 5, "n", 3)
#: Rows of loops, by length: what a whole array is, and what a row of it is.
ROWS = {"n": (("f8 r", "f8 v"), ("f8 n", "f8 s"), ("i8 n", "i8 s")),
        3: (("f8 m", "f8 v"), ("f8 v", "f8 s"), ("i8 v", "i8 s"))}  # fmt: skip
STACKED = {"f8 s": "f8 n", "f8 v": "f8 r", "i8 s": "i8 n"}
INPUTS = {"v": "f8 v", "r": "f8 r", "w": "f8 m", "s": "f8 s", "t": "f8 n", "i": "i8 s", "j": "i8 v", "jn": "i8 n",
          "f": "f4 v", "key": "key"}  # fmt: skip
MOST_WHILE_STEPS = 3


@dataclass(frozen=True)
class Statement:
    """One step: an op or a loop, numbers that choose its operands and its form, and the bodies of a loop."""

    name: str
    picks: tuple[int, ...]
    bodies: tuple[Body, ...] = ()


#: Loops as symc has them.
Loops: Any = sc


class Unrolled:
    """The same loops as ordinary expressions, for lengths that are ints."""

    @staticmethod
    def scan(step: Any, init: Any, xs: Any, length: Any = None, reverse: bool = False) -> Any:
        n = int(xs[0].value.shape[0] if xs else length)
        if n == 0:
            _, y = step(init, tuple(sc.zeros(x.shape[1:], x.dtype) for x in xs))
            return init, tuple(sc.zeros((0, *a.shape), a.dtype) for a in y)
        carry, ys = init, {}
        for t in reversed(range(n)) if reverse else range(n):
            carry, ys[t] = step(carry, tuple(x[t] for x in xs))
        return carry, tuple(sc.stack([ys[t][k] for t in range(n)]) for k in range(len(ys[0])))

    @staticmethod
    def while_loop(cond: Any, body: Any, init: Any, max_steps: int | None = None) -> Any:
        going, carry = sc.asarray(True), init
        for _ in range(MOST_WHILE_STEPS if max_steps is None else min(max_steps, MOST_WHILE_STEPS)):
            going = going & cond(carry)
            carry = tuple(sc.where(going, new, old) for new, old in zip(body(carry), carry, strict=True))
        return carry

    @staticmethod
    def cond(pred: Any, yes: Any, no: Any, *operands: Any) -> Any:
        return tuple(sc.where(pred, a, b) for a, b in zip(yes(*operands), no(*operands), strict=True))

    @staticmethod
    def switch(index: Any, branches: Any, *operands: Any) -> Any:
        results = [b(*operands) for b in branches]
        out = results[-1]
        for k in range(len(results) - 2, -1, -1):
            out = tuple(sc.where(index <= k, a, b) for a, b in zip(results[k], out, strict=True))
        return out

    @classmethod
    def fori_loop(cls, low: Any, high: Any, body: Any, init: Any) -> Any:
        if isinstance(high, int):
            for i in range(low, high):
                init = body(sc.asarray(i), init)
            return init
        return cls.while_loop(lambda c: c[0] < high, lambda c: (c[0] + 1, *body(c[0], c[1:])),
                              (sc.asarray(low), *init))[1:]

    @classmethod
    def map(cls, fn: Any, *xs: Any) -> Any:
        return cls.scan(lambda _, row: ((), fn(*row)), (), xs)[1]

    @staticmethod
    def checkpoint(fn: Any) -> Any:
        return fn

    @classmethod
    def vmap(cls, fn: Any) -> Any:
        return lambda *xs: cls.map(fn, *xs)


# --- making -----------------------------------------------------------------------------------------------------------


def random_body(rng: np.random.Generator, depth: int, steps: int, smooth: bool = False, loops: float = 1.0) -> Body:
    """Statements, of which about ``loops`` are loops whose bodies go ``depth`` - 1 deeper."""
    names = sorted(SMOOTH) if smooth else sorted(OPS)
    out = []
    for _ in range(steps):
        bodies: tuple[Body, ...] = ()
        name = one_of(rng, names)
        if depth and rng.random() < loops / steps:
            name = list(NESTED)[int(rng.choice(8, p=[0.34, 0.2, 0.16, 0.06, 0.08, 0.06, 0.05, 0.05]))]
            bodies = tuple(random_body(rng, depth - 1, int(rng.integers(2, 7)), smooth) for _ in range(NESTED[name]))
        out.append(Statement(name, tuple(int(k) for k in rng.integers(0, 60, 8)), bodies))
    return tuple(out)


@dataclass(frozen=True)
class Program:
    """A body over inputs of several kinds; those of kinds "n" and "r" have ``n`` rows."""

    body: Body
    smooth: bool = False

    def inputs(self, n: Any = "n") -> list[Any]:
        """Inputs; ``n`` is the name of a size, or an int."""
        return [sc.input(name, *_type(kind, n)) for name, kind in INPUTS.items()]

    def outputs(self, loops: Any, inputs: Sequence[Any]) -> list[Any]:
        """Results of the loops, and the last value of every kind, built with ``Loops`` or ``Unrolled``."""
        items = list(zip(INPUTS.values(), inputs, strict=True))
        pool, made = Pool(items, inputs[1].shape[0]), []
        for s in self.body:
            before = len(pool.items)
            run([s], pool, loops, self.smooth)
            made += [t for _, t in pool.items[before:] if s.bodies]
        return [*dict(pool.items[len(items):]).values(), *made] or [inputs[0] * 2.0]

    def cost(self, loops: Any, inputs: Sequence[Any]) -> Any:
        """One number that depends on every float output."""
        floats = [y for y in self.outputs(loops, inputs) if y.dtype.kind == "f"]
        terms = [sc.sum(y.astype("float64") * sc.cos(1.0 + k + sc.arange(y.shape[-1]) if y.ndim else 1.0 + k))
                 for k, y in enumerate(floats)]
        return sum(terms, sc.sum(inputs[0]) * 0.5 + sc.sum(inputs[1]) * 0.25)

    def arrays(self, n: int, seed: int = 0) -> list[np.ndarray]:
        """Ordinary numbers for the inputs."""
        rng = np.random.default_rng([seed, n])
        out = []
        for kind in INPUTS.values():
            dtype, shape = _type(kind, n)
            whole = rng.integers(0, 1 << 40, shape) if kind == "key" else rng.integers(-2, 7, shape)
            out.append(np.asarray(rng.normal(size=shape) if dtype[0] == "f" else whole).astype(dtype))
        return out


def random_program(seed: int, depth: int = 2, steps: int = 8, smooth: bool = False) -> Program:
    """The same seed gives the same program. ``smooth``: of float64 and differentiable almost everywhere."""
    return Program(random_body(np.random.default_rng(seed), depth, steps, smooth, loops=2.0), smooth)


def _type(kind: str, n: Any) -> tuple[str, tuple[Any, ...]]:
    if kind == "key":
        return "uint64", (2,)
    dtype, shape = kind.split()
    names = {"f8": "float64", "f4": "float32", "i8": "int64", "i4": "int32", "b1": "bool"}
    return names[dtype], {"s": (), "v": (3,), "m": (3, 3), "n": (n,), "r": (n, 3)}[shape]


# --- running ----------------------------------------------------------------------------------------------------------


def run(body: Sequence[Statement], pool: Pool, loops: Any, smooth: bool) -> None:
    """Add to ``pool`` what the statements make."""
    for s in body:
        if s.bodies:
            made = FORMS[s.name](pool, s, loops, smooth)
        else:
            made = [OPS[s.name](pool, s.picks)]
        pool.items += made


def _inner(pool: Pool, items: Sequence[tuple[str, Any]], body: Body, loops: Any, smooth: bool) -> Pool:
    inside = Pool([*pool.items, *items], pool.n)
    run(body, inside, loops, smooth)
    return inside


def _kinds(picks: Sequence[int], smooth: bool) -> list[str]:
    names = SMOOTH_CARRIES if smooth else CARRIES
    return [names[(picks[k + 1] * (k + 1)) % len(names)] for k in range(1 + picks[0] % 3)]


def settle(kind: str, t: Any, how: int) -> Any:
    """A value that does not grow without end when a loop makes it from itself."""
    if kind[0] != "f" or how % 5 == 0:
        return t % 1000 if kind[:2] in ("i8", "i4") and how % 2 else t
    return [None, sc.sin, sc.tanh, lambda x: x * 0.5, lambda x: x / (1 + x * x)][how % 5](t)


def _rows(length: Any, pool: Pool, picks: Sequence[int]) -> tuple[Any, list[tuple[str, Any]]]:
    """The length of a loop as a size, and the kinds and arrays of its rows."""
    kinds = ROWS.get(length)
    if kinds:
        chosen = [kinds[(picks[5] + k) % len(kinds)] for k in range(picks[6] % 3)]
        return pool.n if length == "n" else length, [(row, pool.pick(whole, picks[7])) for whole, row in chosen]
    if picks[6] % 3 == 0:
        return length, []
    steps = sc.arange(length)
    return length, [("f8 v", pool.pick("f8 v", picks[7]) * (0.5 + steps[:, None])), ("i8 s", steps)][: picks[6] % 3]


def _scan(pool: Pool, s: Statement, loops: Any, smooth: bool) -> list[tuple[str, Any]]:
    which = LENGTHS[s.picks[4] % len(LENGTHS)]
    carries, (length, xs) = _kinds(s.picks, smooth), _rows(which, pool, s.picks)
    ys_kinds = [("f8 s", "f8 v", "i8 s")[(s.picks[3] + k) % 3] for k in range(s.picks[2] % 3)]

    def step(carry: Any, row: Any) -> Any:
        items = [*zip(carries, carry, strict=True), *zip([k for k, _ in xs], row, strict=True)]
        inside = _inner(pool, items, s.bodies[0], loops, smooth)
        new = tuple(settle(k, inside.pick(k, s.picks[j]), s.picks[-j - 1]) for j, k in enumerate(carries))
        return new, tuple(inside.pick(k, s.picks[-j - 1]) for j, k in enumerate(ys_kinds))

    init = tuple(pool.pick(k, s.picks[j + 2]) for j, k in enumerate(carries))
    final, ys = loops.scan(step, init, tuple(x for _, x in xs), length=length, reverse=s.picks[7] % 2 == 1)
    made = list(zip(carries, final, strict=True))
    for kind, y in zip(ys_kinds, ys, strict=True):
        if which == "n":
            made.append((STACKED[kind], y))
        elif s.picks[1] % 3 and length:
            made.append((kind, y[-1 if s.picks[1] % 3 == 1 else 0]))
        else:
            made.append((kind, sc.sum(y, axis=0)))
    return made[::-1] if s.picks[1] % 2 else made


def _while(pool: Pool, s: Statement, loops: Any, smooth: bool) -> list[tuple[str, Any]]:
    carries = ["i8 s", *_kinds(s.picks, smooth)]
    limit = pool.pick("i8 s", s.picks[6]) % (MOST_WHILE_STEPS + 1) if s.picks[5] % 2 else s.picks[5] % 4
    bound = pool.pick("f8 v", s.picks[7])

    def go(carry: Any) -> Any:
        more = carry[0] < limit
        if s.picks[4] % 3 == 0:
            return more
        inside = Pool([*pool.items, *zip(carries, carry, strict=True)], pool.n)
        return more & (sc.sum(inside.pick("f8 v", 0) * bound) < 2.5)

    def advance(carry: Any) -> Any:
        inside = _inner(pool, list(zip(carries, carry, strict=True)), s.bodies[0], loops, smooth)
        new = [settle(k, inside.pick(k, s.picks[j]), s.picks[-j - 1]) for j, k in enumerate(carries[1:])]
        return (carry[0] + 1, *new)

    init = (sc.asarray(0), *[pool.pick(k, s.picks[j + 1]) for j, k in enumerate(carries[1:])])
    most = (None, 2, None, 5, 1)[s.picks[3] % 5]
    return list(zip(carries, loops.while_loop(go, advance, init, max_steps=most), strict=True))


def _choice(pool: Pool, s: Statement, loops: Any, smooth: bool) -> list[tuple[str, Any]]:
    kinds = _kinds(s.picks, smooth)
    given = ["f8 v", "i8 s", "f8 s"][: s.picks[7] % 4]

    def branch(body: Body, j: int) -> Callable[..., Any]:
        def fn(*operands: Any) -> Any:
            inside = _inner(pool, list(zip(given, operands, strict=True)), body, loops, smooth)
            return tuple(inside.pick(k, s.picks[(i + j) % 8]) for i, k in enumerate(kinds))
        return fn

    fns = [branch(b, j) for j, b in enumerate(s.bodies)]
    operands = [pool.pick(k, s.picks[5]) for k in given]
    if s.name == "switch":
        out = loops.switch(pool.pick("i8 s", s.picks[6]), fns, *operands)
    else:
        pred = pool.pick("b1 s", s.picks[6]) if s.picks[4] % 2 and not smooth else pool.pick("f8 s", s.picks[6]) > 0.1
        out = loops.cond(pred, *fns, *operands)
    return list(zip(kinds, out, strict=True))


def _fori(pool: Pool, s: Statement, loops: Any, smooth: bool) -> list[tuple[str, Any]]:
    carries = _kinds(s.picks, smooth)
    high = pool.pick("i8 s", s.picks[6]) % 3 if s.picks[5] % 2 else s.picks[5] % 4

    def body(i: Any, carry: Any) -> Any:
        inside = _inner(pool, [*zip(carries, carry, strict=True), ("i8 s", i)], s.bodies[0], loops, smooth)
        return tuple(settle(k, inside.pick(k, s.picks[j]), s.picks[-j - 1]) for j, k in enumerate(carries))

    init = tuple(pool.pick(k, s.picks[j + 1]) for j, k in enumerate(carries))
    return list(zip(carries, loops.fori_loop(0, high, body, init), strict=True))


def _rowwise(pool: Pool, s: Statement, loops: Any, smooth: bool) -> list[tuple[str, Any]]:
    kinds = [("f8 s", "f8 v", "i8 s")[(s.picks[3] + k) % 3] for k in range(1 + s.picks[2] % 2)]
    by_n = s.picks[4] % 2
    rows = ROWS["n" if by_n else 3][: 1 + s.picks[5] % 3]

    def fn(*row: Any) -> Any:
        items = [(k, r) for (_, k), r in zip(rows, row, strict=True)]
        inside = _inner(pool, items, s.bodies[0], loops, smooth)
        return tuple(inside.pick(k, s.picks[j]) for j, k in enumerate(kinds))

    out = getattr(loops, s.name)(fn)(*_whole(pool, rows, s)) if s.name == "vmap" else loops.map(
        fn, *_whole(pool, rows, s))
    return [(STACKED[k], y) if by_n else (k, sc.sum(y, axis=0)) for k, y in zip(kinds, out, strict=True)]


def _whole(pool: Pool, rows: Sequence[tuple[str, str]], s: Statement) -> list[Any]:
    return [pool.pick(whole, s.picks[6]) for whole, _ in rows]


def _checkpoint(pool: Pool, s: Statement, loops: Any, smooth: bool) -> list[tuple[str, Any]]:
    kinds = _kinds(s.picks, smooth)

    def fn(v: Any, i: Any) -> Any:
        inside = _inner(pool, [("f8 v", v), ("i8 s", i)], s.bodies[0], loops, smooth)
        return tuple(inside.pick(k, s.picks[j]) for j, k in enumerate(kinds))

    out = loops.checkpoint(fn)(pool.pick("f8 v", s.picks[5]), pool.pick("i8 s", s.picks[6]))
    return list(zip(kinds, out, strict=True))


FORMS: dict[str, Callable[..., list[tuple[str, Any]]]] = {
    "scan": _scan, "while": _while, "cond": _choice, "switch": _choice, "fori": _fori, "map": _rowwise,
    "vmap": _rowwise, "checkpoint": _checkpoint}  # fmt: skip


# --- making smaller ---------------------------------------------------------------------------------------------------


def smaller(body: Body) -> list[Body]:
    """Bodies with one statement less, or one whose place its own body takes, at any depth; then simpler choices."""
    return [*_shorter(body), *_plainer(body)]


def _shorter(body: Body) -> list[Body]:
    out: list[Body] = []
    for k, s in enumerate(body):
        out += [body[:k] + body[k + 1 :], *(body[:k] + b + body[k + 1 :] for b in s.bodies)]
        out += _with_bodies(body, k, _shorter)
    return out


def _plainer(body: Body) -> list[Body]:
    out: list[Body] = []
    for k, s in enumerate(body):
        for j, p in enumerate(s.picks):
            if p:
                out.append((*body[:k], replace(s, picks=(*s.picks[:j], 0, *s.picks[j + 1 :])), *body[k + 1 :]))
        out += _with_bodies(body, k, _plainer)
    return out


def _with_bodies(body: Body, k: int, change: Callable[[Body], list[Body]]) -> list[Body]:
    s = body[k]
    return [(*body[:k], replace(s, bodies=(*s.bodies[:j], c, *s.bodies[j + 1 :])), *body[k + 1 :])
            for j, b in enumerate(s.bodies) for c in change(b)]


def shrink(program: Program, fails: Callable[[Program], bool], most: int = 400) -> Program:
    """A program as small as greedy steps make it for which ``fails`` still holds."""
    tries, at = 0, 0
    while tries < most:
        candidates = smaller(program.body)
        if at >= len(candidates):
            break
        candidate = replace(program, body=candidates[at])
        tries += 1
        if fails(candidate):
            program, at = candidate, 0
        else:
            at += 1
    return program
