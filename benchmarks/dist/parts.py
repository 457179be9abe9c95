"""The parts: each makes its shots, and says what they come to."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import symc as sc
from benchmarks.dist import peers
from benchmarks.dist.shots import Notes, Numbers, Shot, say
from benchmarks.exported import LENGTHS

#: ``max_bytes`` of the map, and how much more a worker may have at its peak: a block that is read, one that is
#: computed, and what Dask has of both.
MAX_BYTES, BOUND = 64, 256


@contextlib.contextmanager
def cluster(workers: int, memory: str = "2GB") -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=memory, host="127.0.0.1",
                      dashboard_address=None) as made, Client(made) as client:
        yield client


def tasks(notes: Notes, rounds: int, count: int = 200) -> None:
    """Tasks of 1,000 numbers each, by two workers."""
    x = sc.vector("x")
    kinds: dict[str, Callable[..., Any]] = {"symc": sc.compile(sc.tanh(x).sum(), [x]), "numpy": peers.of_numpy}
    if importlib.util.find_spec("jax") is not None:
        kinds["jax"] = peers.of_jax
    arrays = [np.full(1000, k / count) for k in range(count)]
    with contextlib.ExitStack() as stack:
        held: list[Any] = []

        def measure(f: Any) -> Numbers:
            if not held:
                held.append(stack.enter_context(cluster(2)))
            (client,) = held
            client.gather(client.map(f, arrays[:8], pure=False))  # workers load the function
            begin = time.perf_counter()
            client.gather(client.map(f, arrays, pure=False))
            return {"seconds": (time.perf_counter() - begin) / count}

        notes.run([(k, partial(measure, f)) for k, f in kinds.items()], rounds)
    each = {k: notes.least(k, "seconds") for k in kinds}
    print("tasks a second, 2 workers: " + ", ".join(f"{k} {1 / s:.0f}" for k, s in each.items()))
    for k in [k for k in kinds if k != "symc"]:
        say(f"tasks a second, symc over {k}", each[k] / each["symc"])


def mapped(notes: Notes, rounds: int, gib: float) -> None:
    """A map over a file, by one worker and by two, and the most memory of a worker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        rows = int(gib * (1 << 30)) // 800
        np.lib.format.open_memmap(path, mode="w+", dtype="f8", shape=(rows, 100)).flush()  # zeros, which take no disk

        def measure(workers: int) -> Numbers:
            with cluster(workers, "1GB") as client:
                small = sc.dist.map(_formula, np.zeros((8 * workers, 100)), max_bytes="1MB")
                small.compute()  # what workers import is no part of the map
                y = sc.dist.map(_formula, path, max_bytes=f"{MAX_BYTES}MB")
                before = max(client.run(peers.peak).values())
                begin = time.perf_counter()
                y.compute()
                took = time.perf_counter() - begin
                return {"seconds": took, "grown_mib": (max(client.run(peers.peak).values()) - before) / 1024}

        notes.run([(f"{k} of {gib} GiB", partial(measure, k)) for k in (1, 2)], rounds)
    one, two = (notes.least(f"{k} of {gib} GiB", "seconds") for k in (1, 2))
    say(f"map over {gib} GiB, 1 worker {one:.2f} s over 2 workers {two:.2f} s", one / two, "at least 1.6")
    say(f"memory that a worker grows by, MiB, max_bytes={MAX_BYTES} MB",
        max(notes.least(f"{k} of {gib} GiB", "grown_mib") for k in (1, 2)), f"at most {BOUND}")


def _formula(x: Any) -> Any:
    return sc.tanh(sc.exp(x) - 0.5).sum(0)


def sums(notes: Notes, rounds: int, hidden: int = 512, layers: int = 4) -> None:
    """A training step of two ranks with gradients that are added up afterwards and meanwhile; the gradients alone."""
    P = sc.Params(seed=0)
    x, y = sc.input("x", "float32", shape=("n", 784)), sc.input("y", "int64", shape=("n",))
    h = x
    for k in range(layers):
        h = sc.nn.dense(P.sub(f"l{k}"), h, hidden, activation="relu")
    u = sc.optim.adam(1e-3).updates(sc.nn.cross_entropy(sc.nn.dense(P.sub("out"), h, 10), y), P)
    step = sc.compile(u.loss, [x, y], updates=u)
    data = np.random.default_rng(0).normal(size=(256, 784)).astype("f4"), np.zeros(256, "i8")
    both = {how: sc.dist.DataParallel(step, comm=sc.dist.local(2), overlap=how == "meanwhile")
            for how in ("afterwards", "meanwhile")}

    warm: set[Any] = set()

    def measure(f: Any, args: Any) -> Numbers:
        for _ in range(0 if f in warm else 2):
            f(*args)
        warm.add(f)
        took = []
        for _ in range(5):
            begin = time.perf_counter()
            f(*args)
            took.append(time.perf_counter() - begin)
        return {"seconds": min(took)}

    half = [a[:128] for a in data]
    shots: list[Shot] = [(how, partial(measure, tr, data)) for how, tr in both.items()]
    notes.run([*shots, ("gradients", partial(measure, both["afterwards"]._first, half))], 3 * rounds)
    steps = [s.value.op.name for s in both["meanwhile"]._first._compilation.plan.steps]
    taps, last = [k for k, n in enumerate(steps) if n == "tap"], max(k for k, n in enumerate(steps) if n != "tap")
    after, meanwhile, alone = (notes.least(k, "seconds") * 1e3 for k in ("afterwards", "meanwhile", "gradients"))
    print(f"step of 2 ranks, {P.size * 4 / 1e6:.1f} MB of gradients in {len(taps)} buckets, of which "
          f"{sum(k < last for k in taps)} are handed over before the last kernel; the gradients alone {alone:.1f} ms")
    say(f"sums meanwhile {meanwhile:.1f} ms over afterwards {after:.1f} ms", meanwhile / after)
    for tr in both.values():
        tr.comm.close()


def start(notes: Notes, rounds: int, pytensor: str = "") -> None:
    """From a pickle to the first result in a new process, import included, with and without code on disk; and
    ``sc.load`` alone. ``pytensor``: the interpreter of an environment that has it."""
    x = sc.vector("x")
    f = sc.compile([sc.tanh(x).sum(), sc.grad(sc.tanh(x).sum(), x)], [x])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        f.save(path + ".symc")
        Path(path).write_bytes(pickle.dumps(f))
        if pytensor:
            _output(pytensor, peers.PYTENSOR.format(path=path + "p"), os.path.join(folder, "made"))

        def measure(python: str, text: str, own: str, warm: bool) -> Numbers:
            """Seconds of a program with caches of its own; ``warm``: of its second run."""
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                place = os.path.join(folder, own) if warm else fresh
                if warm and not os.path.exists(place):
                    _output(python, peers.START.format(path=path + ("p" if python == pytensor else "")), place)
                wall, cpu = map(float, _output(python, text, place).split())
            return {"seconds": wall, "cpu_seconds": cpu}

        shots: list[Shot] = []
        for warm in (False, True):
            for peer, python in [("symc", sys.executable), *([("pytensor", pytensor)] if pytensor else [])]:
                text = peers.START.format(path=path + ("p" if peer == "pytensor" else ""))
                shots.append((f"{peer} {'warm' if warm else 'cold'}", partial(measure, python, text, peer, warm)))
        text = peers.LOAD.format(path=path + ".symc")
        notes.run([*shots, ("load", partial(measure, sys.executable, text, "symc", True))], rounds)
    for how in ("cold", "warm"):
        ours, theirs = (notes.least(f"{peer} {how}", "seconds") for peer in ("symc", "pytensor"))
        say(f"from a pickle to the first result, {how}: symc {ours:.2f} s over PyTensor {theirs:.2f} s", ours / theirs)
    say("sc.load after the import, ms of CPU", notes.least("load", "cpu_seconds") * 1e3, "at most 15")


def _output(python: str, text: str, own: str) -> str:
    """The output of a program whose caches lie in a folder."""
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},base_compiledir={own}".lstrip(",")
    env = {n: x for n, x in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([python, "-c", text], env={**env, "SYMC_CACHE_DIR": own, "PYTENSOR_FLAGS": flags},
                          check=True, capture_output=True, text=True).stdout


def exported(notes: Notes, rounds: int) -> None:
    """Functions in C beside the same in symc, one thread each, in processes of their own."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "SYMC_NUM_THREADS": "1"}

    def measure(name: str, n: int) -> Numbers:
        text = f"import json; from benchmarks.exported import measured; print(json.dumps(measured({name!r}, {n})))"
        done = subprocess.run([sys.executable, "-c", text], env=env, check=True, capture_output=True, text=True)
        found: Numbers = json.loads(done.stdout)
        return found

    programs = [(name, n) for name, lengths in LENGTHS.items() for n in lengths]
    notes.run([(f"{name} n={n}", partial(measure, name, n)) for name, n in programs], rounds)
    for name, n in programs:
        ours, library, alone = (notes.least(f"{name} n={n}", k) for k in ("symc_us", "library_us", "c_us"))
        say(f"{name} n={n}, symc {ours:.1f} us: library over symc {library / ours:.2f}, C alone over symc",
            alone / ours, "at most 1.2")
