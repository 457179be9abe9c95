"""Functions of numbers one by one: nanoseconds for each element, in cache, of symc and of its peers.

``python -m benchmarks.vector_math`` prints a table and writes ``results/TAG/vector_math.json``. One process for each
environment; they take turns, function by function, and the least of a few rounds counts. A time is the
difference of two sizes, in CPU time, so that what a call costs is left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, venvs
from benchmarks.peers import Settings, environment
from benchmarks.report import markdown

#: Elements. The larger operands and result take at most 360 KB; more for JAX, whose calls cost more and vary more.
SMALL, LARGE, LARGER = 1000, 15000, 60000
ROUNDS, SECONDS = 5, 0.003
ENVIRONMENTS = {"main": ("symc", "numpy", "numba", "libmvec", "jax"), "torch": ("torch",)}
PEERS = tuple(peer for peers in ENVIRONMENTS.values() for peer in peers)
DTYPES = ("float64", "float32")
Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """A function: what peers call it (none where a peer has none), and the intervals of its operands."""

    symc: str
    numpy: str
    jax: str
    torch: str
    loop: str = ""
    vectors: str = ""
    intervals: tuple[tuple[float, float], ...] = ((-5.0, 5.0),)


def _named(name: str, *intervals: tuple[float, float], short: str = "", torch: bool = True) -> Row:
    """One that all libraries call alike; Python's own name and that of vector C libraries may be shorter."""
    c = short or name
    loop = f"{'np' if name in ('exp2', 'cbrt') else 'math'}.{c}(x)"
    return Row(name, name, f"numpy.{name}", name if torch else "", loop, c, intervals or ((-5.0, 5.0),))


POSITIVE, UNIT = (0.001, 1000.0), (-1.0, 1.0)
FUNCTIONS = {
    row.symc: row
    for row in (
        *(_named(n) for n in ("exp", "exp2", "expm1")),
        *(_named(n, POSITIVE) for n in ("log", "log2", "log10")),
        _named("log1p", (0.0, 10.0)),
        *(_named(n) for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")),
        _named("arcsin", UNIT, short="asin"),
        _named("arccos", UNIT, short="acos"),
        _named("arctan", short="atan"),
        _named("arcsinh", short="asinh"),
        _named("arccosh", (1.0, 100.0), short="acosh"),
        _named("arctanh", UNIT, short="atanh"),
        _named("cbrt", torch=False),
        Row("power", "power", "numpy.power", "pow", "x ** y", "pow", ((0.01, 5.0), (-5.0, 5.0))),
        Row("arctan2", "arctan2", "numpy.arctan2", "atan2", "math.atan2(x, y)", "atan2", ((-5.0, 5.0), (-5.0, 5.0))),
        Row("hypot", "hypot", "numpy.hypot", "hypot", "math.hypot(x, y)", "hypot", ((-5.0, 5.0), (-5.0, 5.0))),
        Row("sigmoid", "special.expit", "nn.sigmoid", "sigmoid", "1 / (1 + math.exp(-x))"),
        Row("softplus", "", "nn.softplus", "nn.functional.softplus", "math.log1p(math.exp(x))"),
        Row("erf", "special.erf", "scipy.special.erf", "erf", "math.erf(x)", "erf"),
        Row("erfc", "special.erfc", "scipy.special.erfc", "erfc", "math.erfc(x)", "erfc"),
        Row("erfinv", "special.erfinv", "scipy.special.erfinv", "erfinv", "", "", (UNIT,)),
        Row("gammaln", "special.gammaln", "scipy.special.gammaln", "lgamma", "math.lgamma(x)", "", ((0.1, 20.0),)),
        Row("digamma", "special.psi", "scipy.special.digamma", "digamma", "", "", ((0.1, 20.0),)),
    )
}


def operands(row: Row, dtype: str, n: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.uniform(low, high, n).astype(dtype) for low, high in row.intervals]


# --- what each peer runs ----------------------------------------------------------------------------------------------


def _found(module: str, path: str) -> Callable[..., Any]:
    value: Any = importlib.import_module(module)
    for k, part in enumerate(path.split(".")):
        value = getattr(value, part, None) or importlib.import_module(".".join([module, *path.split(".")[: k + 1]]))
    return value


def _symc(row: Row, xs: list[np.ndarray]) -> Call:
    import symc as sc

    leaves = [sc.input(f"x{k}", x.dtype.name, shape=("n",)) for k, x in enumerate(xs)]
    f = sc.compile(getattr(sc, row.symc)(*leaves), leaves)
    return lambda: f(*xs)


def _numpy(row: Row, xs: list[np.ndarray]) -> Call:
    f = _found("scipy", row.numpy) if row.numpy.startswith("special.") else getattr(np, row.numpy)
    out = np.empty_like(xs[0])
    return lambda: f(*xs, out=out)


def _loop(expression: str, scope: dict[str, Any], xs: list[np.ndarray]) -> Call:
    """A loop that Numba compiles."""
    import numba

    names = "xy"[: len(xs)]
    reads = "".join(f"        {name} = {name}s[i]\n" for name in names)
    heads = ", ".join(f"{name}s" for name in names)
    exec(f"def f({heads}, out):\n    for i in range(out.size):\n{reads}        out[i] = {expression}\n", scope)
    f = numba.njit(error_model="numpy", fastmath={"contract"})(scope["f"])
    out = np.empty_like(xs[0])
    return lambda: f(*xs, out)


def _numba(row: Row, xs: list[np.ndarray]) -> Call:
    import math

    return _loop(row.loop, {"math": math, "np": np}, xs)


def _libmvec(row: Row, xs: list[np.ndarray]) -> Call:
    from benchmarks.libmvec import function

    f = function(row.vectors, len(xs))
    return _loop(f"f_({', '.join('xy'[: len(xs)])})", {"f_": f}, xs)


def _jax(row: Row, xs: list[np.ndarray]) -> Call:
    import jax

    f = jax.jit(_found("jax", row.jax))
    given = [jax.numpy.asarray(x) for x in xs]
    return lambda: f(*given).block_until_ready()


def _torch(row: Row, xs: list[np.ndarray]) -> Call:
    import torch

    torch.set_num_threads(1)
    f, given, out = _found("torch", row.torch), [torch.from_numpy(x) for x in xs], torch.empty(0)
    if row.torch.startswith("nn."):
        return lambda: f(*given)
    out = torch.empty_like(given[0])
    return lambda: f(*given, out=out)


BUILDERS = {"symc": _symc, "numpy": _numpy, "numba": _numba, "libmvec": _libmvec, "jax": _jax, "torch": _torch}
FIELDS = {"symc": "symc", "numpy": "numpy", "numba": "loop", "libmvec": "vectors", "jax": "jax", "torch": "torch"}


# --- one environment's process ----------------------------------------------------------------------------------------


def serve(peers: list[str]) -> None:
    """Answer requests of (function, dtype), a line each: of all peers that can be asked here, seconds for each size."""
    built: dict[tuple[str, str, str], list[Call]] = {}
    for line in sys.stdin:
        name, dtype = json.loads(line)
        row, times = FUNCTIONS[name], dict[str, list[float]]()
        for peer in peers:
            key = (name, dtype, peer)
            if key not in built:
                built[key] = _calls(peer, row, dtype)
            if built[key]:
                times[peer] = [_seconds(call) for call in built[key]]
        print(json.dumps(times), flush=True)


def _large(peer: str) -> int:
    return LARGER if peer == "jax" else LARGE


def _calls(peer: str, row: Row, dtype: str) -> list[Call]:
    if not getattr(row, FIELDS[peer]):
        return []
    try:
        calls = [BUILDERS[peer](row, operands(row, dtype, n)) for n in (SMALL, _large(peer))]
        for call in calls * 3:  # compiled by the first, and settled
            call()
    except (ImportError, OSError, LookupError):  # not installed, or not on this machine
        return []
    return calls


def _seconds(call: Call) -> float:
    """The least CPU time of a call in batches of an eighth of the time given, of all threads: JAX has its own."""
    least, end = float("inf"), time.perf_counter() + SECONDS
    number = 1
    while True:
        start = time.process_time()
        for _ in range(number):
            call()
        least = min(least, max(time.process_time() - start, 1e-9) / number)
        if time.perf_counter() > end:
            return least
        number = max(number, int(SECONDS / 8 / least))


# --- the run ----------------------------------------------------------------------------------------------------------


def measured(names: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Nanoseconds by function, dtype and peer."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as cache:
        workers = []
        for venv, peers in ENVIRONMENTS.items():
            settings = environment(Settings(), "float64", Path(cache))
            command = [str(venvs.interpreter(venv)), "-m", "benchmarks.vector_math", "--serve", ",".join(peers)]
            workers.append(subprocess.Popen(command, env=settings, text=True, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE))
        for name in names:
            for dtype in DTYPES:
                least: dict[str, list[float]] = {}
                for _ in range(ROUNDS):
                    for worker in workers:
                        for peer, seconds in _asked(worker, name, dtype).items():
                            least[peer] = list(map(min, seconds, least.get(peer, seconds)))
                ns = {peer: (large - small) / (_large(peer) - SMALL) * 1e9 for peer, (small, large) in least.items()}
                found.setdefault(name, {})[dtype] = {peer: round(x, 3) for peer, x in ns.items() if x > 0}
                print(f"{name} {dtype}", file=sys.stderr, flush=True)
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()
    return found


def _asked(worker: subprocess.Popen, name: str, dtype: str) -> dict[str, list[float]]:
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write(json.dumps([name, dtype]) + "\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def table(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """Times in float64 / float32, and how symc's relate to the best of the others."""
    lines = []
    for name, dtypes in found.items():
        cells = [" / ".join(f"{dtypes[d][peer]:.2f}" if peer in dtypes[d] else "-" for d in DTYPES) for peer in PEERS]
        cells = ["" if set(cell) <= set("- /") else cell for cell in cells]
        ratios = []
        for d in DTYPES:
            others = [ns for peer, ns in dtypes[d].items() if peer != "symc"]
            ratios.append(f"{dtypes[d]['symc'] / min(others):.2f}" if others else "-")
        lines.append([name, *cells, " / ".join(ratios)])
    return markdown(["ns, f64 / f32", *PEERS, "symc / best"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vector_math", description=__doc__)
    parser.add_argument("-f", "--functions", default=",".join(FUNCTIONS), help="only these, by comma")
    parser.add_argument("--tag", default="latest", help="write to results/TAG/")
    parser.add_argument("--show", action="store_true", help="print the table of results/TAG/ again")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve.split(","))
        return
    file = Path(__file__).parent / "results" / options.tag / "vector_math.json"
    if not options.show:
        found = measured(options.functions.split(","))
        file.parent.mkdir(parents=True, exist_ok=True)
        document = {"unit": "ns per element, in cache, one thread", "machine": machine.facts(), "rows": found}
        file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(table(json.loads(file.read_text(encoding="utf-8"))["rows"]))


if __name__ == "__main__":
    main()
