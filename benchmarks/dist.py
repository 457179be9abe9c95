"""Functions on Dask and training on several processes: what tasks cost, what a second worker gains, what sums cost.

    python -m benchmarks.dist [--gib 2] [--rounds 3] [--pytensor PYTHON] [tasks] [map] [sums] [start]

Everything runs on this machine. Peers that are not installed are left out; kinds take turns, and the best round counts.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import symc as sc


@contextmanager
def cluster(workers: int, memory: str = "2GB") -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=memory, host="127.0.0.1",
                      dashboard_address=None) as made, Client(made) as client:
        yield client


def of_numpy(a: np.ndarray) -> Any:
    return np.tanh(a).sum()


_jitted: list[Any] = []


def of_jax(a: np.ndarray) -> Any:
    """A function of JAX's that cannot be pickled is made where it runs."""
    if not _jitted:
        import jax

        _jitted.append(jax.jit(lambda x: jax.numpy.tanh(x).sum()))
    return float(_jitted[0](a))


def tasks(rounds: int, count: int = 200) -> None:
    """Tasks a second of 1,000 numbers each."""
    x = sc.vector("x")
    kinds: dict[str, Callable[..., Any]] = {"symc": sc.compile(sc.tanh(x).sum(), [x]), "numpy": of_numpy}
    try:
        import jax  # noqa: F401

        kinds["jax"] = of_jax
    except ImportError:
        pass
    best = dict.fromkeys(kinds, 0.0)
    arrays = [np.full(1000, k / count) for k in range(count)]
    with cluster(2) as client:
        for _ in range(rounds + 1):
            for kind, f in kinds.items():
                begin = time.perf_counter()
                client.gather(client.map(f, arrays, pure=False))
                best[kind] = max(best[kind], count / (time.perf_counter() - begin))
    print("tasks a second, 2 workers:", ", ".join(f"{k} {v:.0f}" for k, v in best.items()), flush=True)


def _peak() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def mapped(rounds: int, gib: float) -> None:
    """Seconds of a map over a file, by one worker and by two, and the most memory of a worker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        rows = int(gib * (1 << 30)) // 800
        np.lib.format.open_memmap(path, mode="w+", dtype="f8", shape=(rows, 100)).flush()  # zeros, which take no disk
        best: dict[int, tuple[float, float]] = {}
        for _ in range(rounds):
            for workers in (1, 2):
                with cluster(workers, "1GB") as client:
                    y = sc.dist.map(lambda x: sc.tanh(sc.exp(x) - 0.5).sum(0), path, max_bytes="64MB")
                    before = max(client.run(_peak).values())
                    begin = time.perf_counter()
                    y.compute()
                    took = time.perf_counter() - begin
                    peak = (max(client.run(_peak).values()) - before) / 1024
                    best[workers] = min(best.get(workers, (1e9, 0.0)), (took, peak))
    print(f"map over {gib} GiB: 1 worker {best[1][0]:.2f} s, 2 workers {best[2][0]:.2f} s "
          f"({best[1][0] / best[2][0]:.2f} times), a worker grows by {best[1][1]:.0f}, {best[2][1]:.0f} MiB; "
          "max_bytes is 64 MB")


def sums(rounds: int, hidden: int = 512, layers: int = 4) -> None:
    """Milliseconds of a training step of two ranks with gradients that are added up afterwards and meanwhile, in turns;
    the gradients alone; and how many buckets were there before the last kernel of the step."""
    P = sc.Params(seed=0)
    x, y = sc.input("x", "float32", shape=("n", 784)), sc.input("y", "int64", shape=("n",))
    h = x
    for k in range(layers):
        h = sc.nn.dense(P.sub(f"l{k}"), h, hidden, activation="relu")
    u = sc.optim.adam(1e-3).updates(sc.nn.cross_entropy(sc.nn.dense(P.sub("out"), h, 10), y), P)
    step = sc.compile(u.loss, [x, y], updates=u)
    data = np.random.default_rng(0).normal(size=(256, 784)).astype("f4"), np.zeros(256, "i8")
    both = {how: sc.dist.DataParallel(step, comm=sc.dist.local(2), overlap=how) for how in (False, True)}
    took: dict[bool, list[float]] = {False: [], True: []}
    alone = []
    for k in range(10 * rounds + 2):
        for how, tr in both.items():
            begin = time.perf_counter()
            tr(*data)
            took[how] += [time.perf_counter() - begin] if k > 1 else []  # compiled in the first
        begin = time.perf_counter()
        both[False]._first(*[a[:128] for a in data])
        alone.append(time.perf_counter() - begin)
    steps = [s.value.op.name for s in both[True]._first._compilation.plan.steps]
    taps, last = [k for k, n in enumerate(steps) if n == "tap"], max(k for k, n in enumerate(steps) if n != "tap")
    print(f"step of 2 ranks, {P.size * 4 / 1e6:.1f} MB of gradients in {len(taps)} buckets, of which "
          f"{sum(k < last for k in taps)} are handed over before the last kernel: afterwards "
          f"{min(took[False]) * 1e3:.1f} ms, meanwhile {min(took[True]) * 1e3:.1f} ms (median "
          f"{np.median(took[False]) * 1e3:.1f}, {np.median(took[True]) * 1e3:.1f}); the gradients alone "
          f"{min(alone) * 1e3:.1f} ms", flush=True)
    for tr in both.values():
        tr.comm.close()


START = """
import time, sys, pickle
data = open({path!r}, "rb").read()
begin = time.perf_counter()
f = pickle.loads(data)
import numpy as np
f(np.ones(1000))
print(time.perf_counter() - begin)
"""


#: A pickle of the same function by PyTensor.
PYTENSOR = """
import pickle, pytensor, pytensor.tensor as pt
x = pt.dvector()
f = pytensor.function([x], [pt.tanh(x).sum(), pytensor.grad(pt.tanh(x).sum(), x)])
pickle.dump(f, open({path!r}, "wb"))
"""


def start(rounds: int, pytensor: str = "") -> None:
    """Seconds from a pickle to the first result in a new process, import included; with and without code on disk.
    ``pytensor``: the interpreter of an environment that has it."""
    x = sc.vector("x")
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        Path(path).write_bytes(pickle.dumps(sc.compile([sc.tanh(x).sum(), sc.grad(sc.tanh(x).sum(), x)], [x])))

        def run(python: str, text: str, own: str) -> str:
            flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},base_compiledir={own}".lstrip(",")
            return subprocess.run([python, "-c", text], env={**os.environ, "SYMC_CACHE_DIR": own,
                                  "PYTENSOR_FLAGS": flags}, check=True, capture_output=True, text=True).stdout

        if pytensor:
            run(pytensor, PYTENSOR.format(path=path + "p"), os.path.join(folder, "made"))
        for k in range(rounds):
            for kind in ("cold", "warm"):
                for peer, python in (("", sys.executable), ("p", pytensor))[: 1 + bool(pytensor)]:
                    name = f"{'PyTensor' if peer else 'symc'} {kind}"
                    took = float(run(python, START.format(path=path + peer), os.path.join(folder, str(k))))
                    found[name] = min(found.get(name, 1e9), took)
    said = ", ".join(f"{k} {v:.2f} s" for k, v in found.items())
    print(f"from a pickle to the first result in a new process: {said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="tasks, map, sums, start (default: all)")
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pytensor", default="", help="the interpreter of an environment that has PyTensor")
    args = parser.parse_args()
    parts = {"tasks": lambda: tasks(args.rounds), "map": lambda: mapped(args.rounds, args.gib),
             "sums": lambda: sums(args.rounds), "start": lambda: start(args.rounds, args.pytensor)}
    for name in args.parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
