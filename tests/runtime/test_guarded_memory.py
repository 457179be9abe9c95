"""One program, many sizes: right results, and nothing is touched beside the memory that a call has.

Arenas, memory of the code and results lie between guards, which are looked at after every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import symc as sc
from symc.codegen.plan.planner import make_plan
from symc.errors import SymcError
from symc.ir.reference import evaluate_function
from symc.opt import DEFAULT, optimize
from symc.runtime.cpu import executable, frame
from symc.runtime.cpu.program import load
from symc.tensors.pytree import flatten
from tests.codegen.plan.loop_cases import loop_functions
from tests.codegen.plan.plan_cases import SIZES, some_arrays

GUARD, MARK = 1 << 13, 0xA5
RNG = np.random.default_rng(0)


class Guards:
    """Gives out memory between guards."""

    def __init__(self) -> None:
        self.blocks: list[tuple[np.ndarray, int, int]] = []

    def aligned(self, nbytes: int) -> np.ndarray:
        raw = np.full(nbytes + 2 * GUARD + 64, MARK, np.uint8)
        start = GUARD + -(raw.ctypes.data + GUARD) % 64
        self.blocks.append((raw, start, nbytes))
        return raw[start : start + nbytes]

    def empty(self, shape: Any, dtype: Any = np.float64) -> np.ndarray:
        dtype = np.dtype(dtype)
        return self.aligned(math.prod(shape) * dtype.itemsize).view(dtype).reshape(shape)

    def __getattr__(self, name: str) -> Any:  # else it is NumPy
        return getattr(np, name)

    def intact(self) -> bool:
        return all((raw[:start] == MARK).all() and (raw[start + n :] == MARK).all() for raw, start, n in self.blocks)


@pytest.fixture
def guards(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guards]:
    found = Guards()
    monkeypatch.setattr(executable, "aligned", found.aligned)
    monkeypatch.setattr(frame, "np", found)
    yield found


def test_guards_are_looked_at() -> None:
    found = Guards()
    inside = found.empty((3,))
    inside[:] = 1
    assert found.intact()
    raw, start, n = found.blocks[0]
    raw[start + n] = 0
    assert not found.intact()


def scanned(x: Any, w: Any) -> Any:
    return sc.scan(lambda h, r: (sc.tanh(w @ h * 0.05 + r), h * 2), sc.zeros(w.shape[:1]), x)


def factors(a: Any, b: Any) -> list[Any]:
    definite = a @ a.T + sc.eye(a.shape[0])
    return [sc.linalg.cholesky(definite), sc.linalg.svd(b, compute_uv=False), sc.abs(sc.linalg.qr(b)[1])]


#: A function, and the shapes of its arguments.
PROGRAMS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "constant": (lambda: sc.sum(sc.asarray(np.arange(5.0)) * 2), []),
    "elementwise": (lambda x: sc.exp(x) + 1, ["nm"]),
    "sums": (lambda x: [sc.sum(x), sc.mean(sc.exp(x), axis=0), sc.softmax(x, axis=1)], ["nm"]),
    "products": (lambda x, y: [x @ y, x.T @ x, x @ sc.sum(y, axis=1), (x @ y).T @ x * 0.5], ["nm", "mk"]),
    "added": (lambda x, y, z: [x @ y * 0.5 + z, z - 2 * (x @ y)], ["nm", "mk", "nk"]),
    "scaled": (lambda x, y, s: s * (x @ y), ["nm", "mk", ""]),
    "batches": (lambda x, y: x @ y, ["bnm", "bmk"]),
    "scan": (scanned, ["nm", "mm"]),
    "reversed scan": (lambda x, w: sc.scan(lambda h, r: (h @ w + r, h[::-1]), sc.zeros(w.shape[:1]), x, reverse=True),
                      ["nm", "mm"]),
    "while": (lambda x: sc.while_loop(lambda a: sc.sum(abs(a)) > 1, lambda a: a[::-1] * 0.5, x), ["nm"]),
    "concatenate": (lambda x: sc.concatenate([x * 2, sc.flip(x, 0)], axis=0), ["nm"]),
    "solve": (lambda a, b: [sc.linalg.solve(a, b), sc.linalg.inv(a), sc.linalg.eigvalsh(a + a.T)], ["nn", "nk"]),
    "triangles": (lambda a, b: sc.linalg.solve_triangular(a, b, lower=True), ["nn", "nk"]),
    "factors": (factors, ["nn", "nk"]),
    "batched factors": (lambda a: sc.linalg.cholesky(a @ sc.swapaxes(a, -1, -2) + sc.eye(a.shape[-1])), ["bnn"]),
    "sorted": (lambda x: sc.cumsum(sc.sort(x, axis=0) * 2, axis=1), ["nm"]),
}
NUMBERS = [(3, 2, 4, 2), (0, 2, 3, 1), (1, 1, 1, 1), (5, 0, 2, 0), (33, 40, 1, 3), (1, 7, 65, 1), (130, 3, 130, 2),
           (2, 2, 2, 2), (70, 70, 5, 2)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_size_by_one_program(name: str, guards: Guards) -> None:
    make, shapes = PROGRAMS[name]
    inputs = [sc.input(f"x{k}", "float64", shape=tuple(s)) for k, s in enumerate(shapes)]
    f, reference = (sc.compile(make(*inputs), inputs, mode=mode) for mode in ("default", "reference"))
    for n, m, k, b in NUMBERS * 2:
        sizes = dict(n=n, m=m, k=k, b=b)
        arrays = [RNG.normal(size=tuple(sizes[c] for c in s)) + (9 * np.eye(n) if s[-2:] == "nn" else 0)
                  for s in shapes]
        try:
            wanted = reference(*arrays)
        except SymcError:
            with pytest.raises(SymcError):
                f(*arrays)
            continue
        for way in (f, f._call_path.call):
            found = way(*arrays)
            assert guards.intact()
            for a, w in zip(*[flatten(x)[0] for x in (found, wanted)], strict=True):
                np.testing.assert_allclose(a, w, rtol=1e-8, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(loop_functions)
def test_random_loops(f: Any) -> None:
    found = Guards()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "aligned", found.aligned)
        patch.setattr(frame, "np", found)
        program = load(make_plan(optimize(f, DEFAULT).function))
        arrays = some_arrays(f, SIZES)
        with np.errstate(all="ignore"):
            wanted = evaluate_function(f, [a.copy() for a in arrays])
        for a, b in zip(program.run(arrays), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
        assert found.intact()
