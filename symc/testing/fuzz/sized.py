"""Programs of functions of NumPy on arrays of unknown sizes, which are called with the sizes 0, 1, 2 and 3.

Each is an expression that means the same on arrays and on symbolic values, so NumPy says what is right. Sizes become
positions, counts, shapes and lengths; where one has no value, or another meaning than the integer, it shows here.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import symc
from symc.driver.measured import MeasuredFunction
from symc.errors import SymcError
from symc.tensors.public import API
from symc.testing.fuzz.grower import refusals
from symc.testing.fuzz.programs import Program, generator

sc: Any = symc
#: The inputs of all programs, and the sizes of each.
SHAPES = {"x": ("n",), "y": ("n",), "z": ("m",), "a": ("n", "m"), "b": ("m", "n"), "t": ("n", "m", 2), "i": ("n",)}
CALLS = """f(a, axis=0) | f(x, y) | f(x, z) | f(x, 2) | f(x, m) | f(a, 1) | f(a, b) | f(a, -n, 1) | f(x, -1) | f(n)
f([x, z]) | f([a, a], axis=1) | f(a, z) | f(t, axis=(0, 1)) | f(x, i % 2) | f(a, i % 2, axis=0) | f(n, m) | f((n, m))
f(x, (n, m)) | f(a, (2, n)) | f(a, (m, -1)) | f(t, 1, 0) | f(t, 0, -1) | f(x > 1, x, y) | f(0.5, 1.0, n)
f(x, (2, 1), mode='reflect') | f(x, (2, 1), mode='edge') | f(x, (1, 3), mode='wrap') | f(x, m, mode='symmetric')
f(x, [1.0, 2.0, 0.5]) | f([1.0, 2.0, 0.5], x, 'same') | f(x, [1.0, 2.0], 'valid') | f(x, [1.0, 2.0], 'full')
f(i) | f(z, x, y) | f(a, 3, axis=0) | f(a, k=m - 1) | f(a, ddof=1, axis=0) | f(x, n=2) | f(a, (1, m), (0, 1))
f(a, 0.3, axis=0) | f(a, (m, -1), axis=1) | f(a.shape) + 0 * a | f(n, m, k=1) | f(x, weights=y) | f(i, minlength=3)
f(x) | f(a) | f(x, n // 2) | f(x, (2, -1))
f(x, 0, z[:1])""".replace("\n", " | ").split(" | ")
READS = """
x[1:] x[:-1] x[n//2:] x[:n//2] x[1::2] x[::-2] x[-2:] x[:2] x[1:-1] x[n-1:] x[:n-1] x[:n-2] x[:n-3] x[m:] x[:-m] x[m:n]
x[:m-1] x[n-1::-1] x[n-2::-1] x[n-3::-1] x[:0:-1] x[:n-3:-1] x[-2::-1] x[5:1:-1] x[m//2::2] x[n%2:] x[:n-n%2] x[0]
x[-1] x[1] x[n-1] x[n//2] x[-n] x[m] x[:(n-3)//2] x[(n-5)//2:] x[n-m::-1] x[:n-m] x[:2*n-5] x[:n//(m+1)] x[:n%(m+1)]
x[n//2:n-1] x[:n//m] a[1:,::2] a[n//2] a[:,m//2:] a[::-1,:m-1] x[:n//2]+x[n-n//2:] x[i%2] a.reshape(m,n) a.reshape(-1)
a.reshape(n*m) a.reshape(m,-1) t.reshape(n,-1) t.reshape(-1,4) t.reshape(2*m,-1) x[:n//2*2].reshape(-1,2)
x*n x//n n//2*x x*(n//m) x%(m-n) a.T[m-1:] t.swapaxes(0,2)[1:] a.at[1:].get() x[:,None]*z x[m:][:n] x[:m][::-1] a[:m,:n]
x[n-n//3::2]
""".split()


def functions() -> dict[str, Any]:
    """NumPy's functions that symc has, by name; not what reads a text, which NumPy does alone."""
    found = {}
    for name in sorted(API.keys() - {"genfromtxt"}):
        module, _, last = name.rpartition(".")
        with contextlib.suppress(AttributeError):
            found[name] = getattr(getattr(np, module) if module else np, last)
    return found


def ours(name: str) -> Any:
    """The function of symc called ``name``."""
    module, _, last = name.rpartition(".")
    return getattr(getattr(sc, module) if module else sc, last)


def inputs() -> dict[str, Any]:
    """Symbolic values for all programs."""
    return {k: sc.input(k, "int64" if k == "i" else "float64", s) for k, s in SHAPES.items()}


def arrays(n: int, m: int) -> dict[str, np.ndarray]:
    """Positive numbers, in order in vectors, so that they are points, bins and weights, too."""
    rng = np.random.default_rng([n, m])
    sizes: dict[Any, Any] = {"n": n, "m": m}
    out = {k: rng.uniform(0.5, 3.0, [sizes.get(s, s) for s in shape]) for k, shape in SHAPES.items()}
    out |= {k: np.sort(out[k]) for k in ("x", "z")}
    return out | {"i": rng.permutation(n) + 1}


def run(text: str, f: Any, given: Mapping[str, Any]) -> list[Any]:
    """The results of an expression, one after another. ``given`` may say what n and m are."""
    names = {"f": f, "n": given["x"].shape[0], "m": given["z"].shape[0], **given}
    return _flat(eval(text, {"__builtins__": {}}, names))


def _flat(item: Any) -> list[Any]:
    return [x for part in item for x in _flat(part)] if isinstance(item, list | tuple) else [item]


def sizes(most: int = 3) -> Iterator[tuple[int, ...]]:
    """Numbers for n and m."""
    return itertools.product(range(most + 1), repeat=2)


@generator("sized")
def sized(seed: int, aim: str = "") -> Program:
    """A few expressions, and what one reads of the result of another; the first that can be made."""
    rng = np.random.default_rng(seed)
    while True:
        with refusals():
            g = _written(rng, aim)
            data = [tuple(arrays(n, m).values()) for n, m in sizes(2)]
            accepted = tuple(d for d in (_accepted(g, given) for given in data) if d is not None)
            if accepted:
                return Program(f"sized:{seed}" + (f":{aim}" if aim else ""), g._compilation.source, accepted)


def _written(rng: np.random.Generator, aim: str) -> Any:
    leaves, names = inputs(), list(functions())
    made: list[Any] = []
    for k in range(20):  # most functions refuse most of what they are called with
        reading = k > 0 and rng.random() < 0.4
        text = str(rng.choice(READS if reading else CALLS))
        f = None if reading else ours(aim if aim and not k else str(rng.choice(names)))
        with refusals():
            made += [y for y in run(text, f, leaves) if isinstance(y, sc.Tensor)]
    if made and made[0].ndim == 1 and rng.random() < 0.5:
        made += run(str(rng.choice([t for t in READS if t.startswith("x[")])), None, {**leaves, "x": made[0]})
    return sc.compile(made or leaves["x"], list(leaves.values()), mode="reference")


def _accepted(g: Any, given: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...] | None:
    """The arguments of the function (of the last of a chain), if sizes that must be equal, or large enough, are."""
    try:
        own = tuple(g.extended(list(given))) if isinstance(g, MeasuredFunction) else given
        g._signature.sizes(own)
    except SymcError:
        return None
    return own
