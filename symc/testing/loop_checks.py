"""Properties of random programs with loops: every way to compute one gives the same numbers.

``python -m symc fuzz`` tries some on each of its programs, ``--replay loops:17`` on one. To try passes of one's own,
register them and call ``check_stages(program, pipeline="...")``.
"""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.codegen.plan.check_plan import check_plan
from symc.driver.read_saved import unpack
from symc.driver.save import pack
from symc.ir.function import Function
from symc.ir.parse import parse
from symc.ir.reference import evaluate_function
from symc.ir.text import print_function
from symc.ir.verify import verify
from symc.opt import DEFAULT, optimize
from symc.testing.loop_ops import sc
from symc.testing.loops import Loops, Program, Unrolled

Arrays = Sequence[np.ndarray]
SIZES = (3, 0, 1, 4)
HUGE = 1e6
#: Loops stay steps of the plan; loops stay as they were written.
STEPS = DEFAULT + ",-small_loops,-unroll"
PLAIN = "inline,open_blocks,decompose,check_indices,fuse"


class Disagreement(AssertionError):
    """Two ways to compute a program give different numbers."""


def compare(what: str, got: Arrays, want: Arrays, tolerance: float = 1e-7) -> None:
    """Raise Disagreement unless the arrays are equal up to rounding. Numbers that grew huge prove nothing."""
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype != b.dtype or a.shape != b.shape:
            raise Disagreement(f"{what}: result {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
        if b.dtype.kind != "f":
            same = np.array_equal(a, b)
        else:
            scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
            near = max(tolerance, 1e-3 if b.dtype == np.float32 else 0.0)
            same = scale > HUGE or bool(np.allclose(a, b, near, near * scale, equal_nan=True))
        if not same:
            raise Disagreement(f"{what}: result {k} is\n{a}\nnot\n{b}")


def sane(arrays: Arrays) -> bool:
    """True if numbers are of a size at which rounding does not decide."""
    return all(a.dtype.kind != "f" or bool(np.all(np.abs(a) < HUGE)) for a in map(np.asarray, arrays))


def unrolled(p: Program, n: int) -> Callable[..., list[np.ndarray]]:
    """A program without loops."""
    fixed = p.inputs(n)
    return sc.compile(p.outputs(Unrolled, fixed), fixed, mode="reference")


def check_values(p: Program, sizes: Sequence[int] = SIZES, modes: Sequence[str] = ("default",),
                 **options: Any) -> None:
    """Every mode gives what the program without loops gives, for several sizes, from one compilation each.

    ``options`` are those of ``compile``.
    """
    inputs = p.inputs()
    outputs = p.outputs(Loops, inputs)
    functions = {m: sc.compile(outputs, inputs, mode=m, **options) for m in modes}
    for f in functions.values():
        if f._compilation.plan is not None:
            check_plan(f._compilation.plan)
    for n in sizes:
        plain = unrolled(p, n)
        for seed in range(2):
            arrays = p.arrays(n, seed)
            want = plain(*arrays)
            if sane(want):
                for mode, f in functions.items():
                    for again in range(1 if mode == "reference" else 2):
                        got = f(*[a.copy() for a in arrays] if options else arrays)
                        compare(f"{mode}, n={n}, data {seed}, call {again + 1}", got, want)


def source(p: Program) -> Function:
    """The function of a program before any pass."""
    inputs = p.inputs()
    return sc.compile(p.outputs(Loops, inputs), inputs, mode="reference")._compilation.source


def check_stages(p: Program | Function, pipeline: str = DEFAULT, sizes: Sequence[int] = SIZES,
                 arrays: Callable[[int, int], Arrays] | None = None) -> None:
    """The reference gives the same after every pass; every stage is valid IR."""
    f = p if isinstance(p, Function) else source(p)
    data = p.arrays if isinstance(p, Program) else arrays
    assert data is not None
    stages = optimize(f, pipeline, strict=True, verify=True).stages
    for n, seed in [(n, seed) for seed in range(2) for n in sizes]:
        given = data(n, seed)
        want = evaluate_function(f, given)
        if not sane(want):
            continue
        before: Function | None = None
        for name, g in stages.items():
            if before is None or g is not before:
                compare(f"after {name}, n={n}, data {seed}", evaluate_function(g, given), want)
            before = g


def check_text(p: Program) -> None:
    """Text can be read back, at every stage that users see, and a saved function computes the same."""
    f = source(p)
    for g in (f, optimize(f).function):
        text = print_function(g, locations=False)
        back = parse(print_function(g))
        verify(back)
        if print_function(back) != text or list(back.body.results) != list(g.body.results):
            raise Disagreement("the text of a function does not give it back")
    inputs = p.inputs()
    f = sc.compile(p.outputs(Loops, inputs), inputs, mode="reference")
    arrays = p.arrays(3)
    compare("saved and loaded", unpack(pack(f, True))(*arrays), f(*arrays))


def check_threads(p: Program, threads: int = 8) -> None:
    """A function that is called from many threads at once gives each its own results."""
    inputs = p.inputs()
    outputs = p.outputs(Loops, inputs)
    f = sc.compile(outputs, inputs)
    data = [p.arrays(k % 4 + 1, k) for k in range(threads)]
    want, found = [f(*a) for a in data], []

    def call(k: int) -> None:
        try:
            for _ in range(20):
                compare(f"thread {k}", f(*data[k]), want[k], 0.0)
        except Exception as e:
            found.append(e)

    workers = [threading.Thread(target=call, args=(k,)) for k in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if found:
        raise found[0]


def check_states(p: Program, calls: int = 3, mode: str = "default", **options: Any) -> None:
    """Inputs that are states, each replaced by what the program made of its kind; others may be overwritten."""
    n = 3
    results: list[list[np.ndarray]] = []
    for how, more in ((mode, options), ("reference", {})):
        fixed = p.inputs(n)
        data = p.arrays(n)
        states = {k: sc.shared(data[k], x.name) for k, x in enumerate(fixed) if k % 3 != 2}
        leaves = [states.get(k, x) for k, x in enumerate(fixed)]
        outputs = p.outputs(Loops, leaves)
        updates, left = {}, list(outputs)
        for s in states.values():
            fits = [y for y in left if y.dtype == s.dtype and y.shape == s.shape]
            if fits:
                updates[s] = fits[0]
                left = [y for y in left if y is not fits[0]]
        given = [x for k, x in enumerate(fixed) if k not in states]
        f = sc.compile(outputs, given, updates=updates, donate=given if how == mode else (), mode=how, **more)
        got = []
        for _ in range(calls):
            got += f(*[data[k].copy() for k in range(len(fixed)) if k not in states])
            got += [s.get_value() for s in states.values()]
        results.append(got)
    if sane(results[1]):
        compare("states", results[0], results[1], 1e-6)


def check_budget(p: Program, n: int = 100) -> None:
    """Derivatives within fewer and fewer bytes, as far as it goes, are the same."""
    fixed = p.inputs(n)
    wrt = [x for x in fixed if x.dtype == np.float64]
    values = sc.grad(p.cost(Loops, fixed), wrt, disconnected="zero")
    f = sc.compile(values, fixed)
    arrays = p.arrays(n)
    want, peak = f(*arrays), int(f.memory())
    for share in (0.95, 0.9, 0.8, 0.6):
        try:
            g = sc.compile(values, fixed, max_bytes=int(peak * share))
        except sc.MemoryBudgetError:
            return
        check_plan(g._compilation.plan)
        compare(f"{share} of the bytes", g(*arrays), want)


def derivatives(p: Program, loops: Any, inputs: Sequence[Any]) -> list[Any]:
    """The cost, its gradient, a tangent, a Hessian times a direction, and that by reverse over reverse."""
    wrt = [x for x in inputs if x.dtype.kind == "f" and x.dtype.itemsize == 8]
    moves = [sc.cos(sc.sum(sc.asarray(k * 1.0)) + x * 0.1) for k, x in enumerate(wrt)]
    moves = [sc.stop_gradient(m) for m in moves]
    y = p.cost(loops, inputs)
    gradient = sc.grad(y, wrt, disconnected="zero")
    slope = sum(((g * m).sum() for g, m in zip(gradient, moves, strict=True)), sc.asarray(0.0))
    return [y, *gradient, sc.jvp(y, wrt, moves), *sc.hvp(y, wrt, moves, disconnected="zero"),
            *sc.grad(slope, wrt, disconnected="zero")]


def check_derivatives(p: Program, sizes: Sequence[int] = (3, 1, 0), mode: str = "reference",
                      stages: bool = True) -> None:
    """Derivatives of a smooth program are those of the program without loops, and of finite differences."""
    inputs = p.inputs()
    values = derivatives(p, Loops, inputs)
    f = sc.compile(values, inputs, mode=mode)
    for n in sizes:
        arrays, fixed = p.arrays(n), p.inputs(n)
        want = sc.compile(derivatives(p, Unrolled, fixed), fixed, mode="reference")(*arrays)
        if not sane(want):
            continue
        compare(f"derivatives, {mode}, n={n}", f(*arrays), want, 1e-6)
        if n == sizes[0]:
            _finite_differences(p, fixed, arrays, want)
    if stages:
        check_stages(f._compilation.source, sizes=sizes, arrays=p.arrays)


def _finite_differences(p: Program, fixed: Sequence[Any], arrays: Arrays, want: Arrays) -> None:
    wrt = [k for k, x in enumerate(fixed) if x.dtype == np.float64]
    moves = [np.cos(j + arrays[k] * 0.1) for j, k in enumerate(wrt)]
    g = sc.compile(p.cost(Loops, fixed), fixed, mode="reference")

    def at(step: float) -> float:
        moved = list(arrays)
        for k, m in zip(wrt, moves, strict=True):
            moved[k] = arrays[k] + step * m
        return float(g(*moved))

    slopes = [(at(e) - at(-e)) / (2 * e) for e in (1e-5, 1e-6)]
    tangent = float(want[1 + len(wrt)])
    near = 1e-4 * max(1.0, abs(tangent), abs(float(want[0])))
    if abs(slopes[0] - slopes[1]) < near and abs(slopes[1] - tangent) > 5 * near:  # else a kink is near
        raise Disagreement(f"finite differences give {slopes}, not {tangent}")


def check_batches(p: Program, entries: int = 2, n: int = 3, mode: str = "reference", stages: bool = True) -> None:
    """A batch of programs is the programs one by one."""
    inputs = [sc.input(x.name, x.dtype, (entries, *x.shape)) for x in p.inputs(n)]

    def one(*xs: Any) -> Any:
        made = p.outputs(Loops, xs)
        return (*made, *sc.grad(p.cost(Loops, xs), list(xs[:4]), disconnected="zero")) if p.smooth else tuple(made)

    f = sc.compile(sc.vmap(one)(*inputs), inputs, mode=mode)
    fixed = p.inputs(n)
    single = sc.compile(one(*fixed), fixed, mode="reference")
    rows = [p.arrays(n, seed) for seed in range(entries)]
    arrays = [np.stack(a) for a in zip(*rows, strict=True)]
    want = [np.stack(a) for a in zip(*[single(*r) for r in rows], strict=True)]
    if sane(want):
        compare(f"vmap, {mode}", f(*arrays), want)
        if stages:
            check_stages(f._compilation.source, sizes=(n,), arrays=lambda *_: arrays)


CHECKS: dict[str, Callable[[Program], None]] = {
    "values": check_values,
    "fast": lambda p: check_values(p, modes=["fast_compile"]),
    "reference": lambda p: check_values(p, modes=["reference"]),
    "steps": lambda p: check_values(p, pipeline=STEPS),
    "plain": lambda p: check_values(p, pipeline=PLAIN),
    "stages": check_stages,
    "text": check_text,
    "threads": check_threads,
    "states": check_states,
    "states_of_steps": lambda p: check_states(p, pipeline=STEPS),
    "budget": check_budget,
    "derivatives": check_derivatives,
    "native_derivatives": lambda p: check_derivatives(p, mode="default", stages=False),
    "batches": check_batches,
    "native_batches": lambda p: check_batches(p, mode="default", stages=False),
}


def failure(check: str, p: Program) -> str:
    """Words of a check about a program: "" when it holds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            CHECKS[check](p)
    except Exception as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        return f"{type(e).__name__} at {last.filename.rsplit('/', 1)[-1]}:{last.lineno}: {e}"
    return ""


def _fails_like(check: str, kind: str, p: Program) -> bool:
    return failure(check, p).startswith(kind)
