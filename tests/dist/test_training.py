"""``dist.DataParallel``: ranks have the same bits, which are those of one process to rounding; whatever dies, a run
goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from symc.dist import comm as comms
from symc.dist import sums
from symc.params.files import read_arrays, write_arrays
from tests.dist.ranks import X, Y, step_of

ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or "mpiexec"
LAUNCH = [sys.executable, "-m", "symc", "launch", "-n", "2", "-m"]
STARTS = {"world": LAUNCH, "mpi": [MPIEXEC, "-n", "2", sys.executable, "-m"]}


# --- ranks as threads, each with states of its own --------------------------------------------------------------------


@pytest.fixture
def folder() -> Iterator[str]:
    at = comms.job_folder()
    yield at
    shutil.rmtree(at)


def in_ranks(folder: str, size: int, work: Callable[[Any], Any], kind: Any = comms.Shared) -> list[Any]:
    """What ``work`` gives for each of the ranks, which are threads that share memory as processes do."""
    out: list[Any] = [None] * size

    def one(rank: int) -> None:
        comm = kind(folder, rank, size)
        try:
            out[rank] = work(comm)
        finally:
            comm.close()

    threads = [threading.Thread(target=one, args=(r,)) for r in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return out


@pytest.mark.parametrize("size", [2, 3])
def test_sums_rows_and_copies(folder: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comms, "PIECE", 1 << 10)
    given = [np.random.default_rng(r).normal(size=(r + 1) * 100) for r in range(size)]

    def work(comm: Any) -> Any:
        a = np.random.default_rng(comm.rank).normal(size=(7, 67)).astype("f4")
        comm.allreduce(a)
        rows = comm.allgather(given[comm.rank].reshape(-1, 4))
        none = comm.allgather(np.zeros((0, 3), "i4"))
        same = np.full(1000, comm.rank)
        comm.bcast(same)
        few = np.ones(1)
        comm.allreduce(few)
        return a, rows, none.shape, same, few

    found = in_ranks(folder, size, work)
    want = sum(np.random.default_rng(r).normal(size=(7, 67)).astype("f4") for r in range(size))
    for a, rows, none, same, few in found:
        assert a.tobytes() == found[0][0].tobytes() and none == (0, 3) and few == size
        np.testing.assert_allclose(a, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(rows, np.concatenate(given).reshape(-1, 4))
        assert not same.any()


def test_a_rank_that_is_gone_is_named(folder: str) -> None:
    def work(comm: Any) -> Any:
        if comm.rank == 1:
            return None
        with pytest.raises(sc.errors.ExecutionError, match=r"rank 1 of 2 is gone, and rank 0 waited for it"):
            comm.allreduce(np.ones(3))
        return True

    assert in_ranks(folder, 2, work)[0]


def model(kind: str) -> Callable[[], tuple[Any, Any, Any]]:
    """A step, its states, and rows for it."""
    def make() -> tuple[Any, Any, Any]:
        P = sc.Params(seed=0, dtype="float64")
        if kind.startswith("table"):
            i = sc.input("i", "int64", shape=("n", 3))
            E = P.lookup("E", 50, 4)
            loss = sc.mean(sc.sum(sc.tanh(E[i]), axis=(1, 2)) ** 2)
            opt = {"table-sgd": sc.optim.sgd(0.1), "table-lazy": sc.optim.adam(0.1),
                   "table-exact": sc.optim.momentum(0.1, sparse="exact")}[kind]
            u = opt.updates(loss, P)
            return sc.compile(u.loss, [i], updates=u, mode="reference"), {"m": P, "o": opt}, [
                (np.random.default_rng(k).integers(0, 50, (6, 3)),) for k in range(3)]
        x, rate = sc.input("x", "float64", shape=("n", 5)), sc.scalar("rate")
        h = x @ P.weight("w", (5, 3))
        if kind == "norm":
            mean = P.state("mean", (3,))
            P.updates[mean] = 0.9 * mean + 0.1 * sc.mean(h, axis=0)
        loss = sc.mean((sc.tanh(h) - 0.3) ** 2)
        opt = sc.optim.sgd(rate)
        if kind == "clip":
            opt = sc.optim.chain(sc.optim.clip_by_global_norm(0.01), sc.optim.adam(rate))
        u = opt.updates(loss, P)
        if kind == "bound":
            u[P["w"]] = sc.clip(u[P["w"]], -0.3, 0.3)
        step = sc.compile({"loss": u.loss, "rows": h[:, 0]}, [x, rate], updates=u, mode="reference")
        return step, {"m": P, "o": opt}, [(X[k * 7 : k * 7 + 7], 0.1) for k in range(3)]

    return make


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("kind", ["plain", "norm", "clip", "bound", "table-sgd", "table-lazy", "table-exact"])
def test_ranks_have_the_bits_of_each_other_and_the_numbers_of_one(kind: str, overlap: bool, folder: str) -> None:
    make = model(kind)
    step, states, batches = make()
    losses = [step(*b) for b in batches]

    def work(comm: Any) -> Any:
        own, kept, given = make()
        tr = sc.dist.DataParallel(own, comm=comm, overlap=overlap)
        return [tr(*b) for b in given], {n: s.get_value() for n, s in sc.params.files.states_by_name(kept).items()}

    found = in_ranks(folder, 2, work)
    for got, kept in found:
        for name, s in sc.params.files.states_by_name(states).items():
            assert kept[name].tobytes() == found[0][1][name].tobytes()
            np.testing.assert_allclose(kept[name], s.get_value(), rtol=1e-9, atol=1e-12, err_msg=name)
        for a, b in zip(got, losses, strict=True):
            for key in a if isinstance(a, dict) else ():
                np.testing.assert_allclose(a[key], b[key], rtol=1e-9)
            assert isinstance(a, dict) or abs(a - b) < 1e-9


class Noting(comms.Shared):
    """Notes what it adds up, and how many buckets it has been handed."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sums: list[int] = []
        self.began, self.handed = threading.Event(), 0

    def allreduce(self, a: np.ndarray) -> None:
        self.began.set()
        super().allreduce(a)
        self.sums.append(a.size)


def deep(layers: int = 4, width: int = 8) -> Any:
    P = sc.Params(seed=0)
    x, y = sc.input("x", "float32", shape=("n", width)), sc.input("y", "int64", shape=("n",))
    h = x
    for k in range(layers):
        h = sc.nn.dense(P.sub(f"l{k}"), h, width, activation="tanh")
    u = sc.optim.adam(1e-2).updates(sc.nn.cross_entropy(h, y), P)
    data = np.random.default_rng(0).normal(size=(12, width)).astype("f4"), np.arange(12) % width
    return sc.compile(u.loss, [x, y], updates=u, name="deep"), P, data


def test_sums_begin_before_the_last_gradient_is_there(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "BUCKET", 300)  # of weights of 256 bytes

    add = sums.Sums.add

    def handed(self: Any, flat: Any) -> None:
        add(self, flat)
        comm = self._comm
        comm.handed += flat is not None
        if comm.handed == 3 and flat is not None:  # the step has not ended: it waits here
            assert comm.began.wait(20)

    monkeypatch.setattr(sums.Sums, "add", handed)

    def work(comm: Any, overlap: bool = True) -> Any:
        step, P, data = deep()
        tr = sc.dist.DataParallel(step, comm=comm, overlap=overlap)
        losses = [tr(*data) for _ in range(3)]
        steps = [s.value.op.name for s in tr._first._compilation.plan.steps]
        return losses, comm.sums, steps, [s.get_value() for s in P.values()]

    (losses, added, steps, states), other = in_ranks(folder, 2, work, Noting)
    assert len(added) > 3 * 3 and other[0] == losses and other[1] == added
    taps = [k for k, name in enumerate(steps) if name == "tap"]
    made = [k for k, name in enumerate(steps) if name not in ("tap", "after")]
    assert len(taps) * 3 == len(added)
    assert sum(k < made[-1] for k in taps) >= len(taps) - 2  # all but those of the first layer
    os.mkdir(f"{folder}/plain")
    plain = in_ranks(f"{folder}/plain", 2, lambda comm: work(comm, False), Noting)
    assert plain[0][1] == added and not any(name == "tap" for name in plain[0][2])
    for got, want, third in zip(states, other[3], plain[1][3], strict=True):
        assert got.tobytes() == want.tobytes() == third.tobytes()


def test_an_error_of_a_sum_is_that_of_the_step(folder: str) -> None:
    def work(comm: Any) -> Any:
        step, _, data = deep()
        tr = sc.dist.DataParallel(step, comm=comm, overlap=True)
        tr(*data)
        if comm.rank:
            comm.close()
            return None
        with pytest.raises(sc.errors.ExecutionError, match="rank 1 of 2 is gone"):
            tr(*data)
        return None

    in_ranks(folder, 2, work)


def test_overlap_is_for_communicators_that_may_be_used_beside() -> None:
    class Alone(sc.dist.Comm):
        rank, size = 0, 2

    with pytest.raises(sc.errors.InputError, match="Alone is for one thread"):
        sc.dist.DataParallel(step_of()[0], comm=Alone(), overlap=True)
    assert not sc.dist.DataParallel(step_of()[0], comm=Alone()).overlap
    assert not sc.dist.DataParallel(step_of()[0], overlap=True).overlap


def test_a_batch_with_fewer_rows_than_ranks(folder: str) -> None:
    def work(comm: Any) -> Any:
        step, P = step_of(mode="reference")
        sc.dist.DataParallel(step, comm=comm)(X[:1], Y[:1])
        return P["h"].get_value()

    step, P = step_of(mode="reference")
    step(X[:1], Y[:1])
    for w in in_ranks(folder, 2, work):
        np.testing.assert_allclose(w, P["h"].get_value(), rtol=1e-9)


# --- processes --------------------------------------------------------------------------------------------------------


def run(kind: str, checkpoint: Path, kill: int = -1) -> tuple[int, list[str], str]:
    done = subprocess.run([*STARTS[kind], "tests.dist.ranks", kind, str(checkpoint), str(kill)], cwd=ROOT,
                          capture_output=True, text=True, timeout=400)
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


@pytest.mark.long
def test_a_killed_rank_ends_the_job_and_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    status, whole, errors = run("world", tmp_path / "whole")
    assert status == 0 and len(whole) == 2, errors
    assert whole[0].split(" ", 1)[1] == whole[1].split(" ", 1)[1]
    for kind in ("world", "mpi"):  # which add up in the same order, of two
        status, said, errors = run(kind, tmp_path / kind, kill=14)
        assert status != 0 and not any(line.startswith(("0 2", "1 2")) for line in said)
        assert kind == "mpi" or status == 137 and "rank 1 was killed by signal 9" in errors
        about = json.loads(read_arrays(tmp_path / f"{kind}.npz")["dist/run"].tobytes())
        assert (about["epoch"], about["step"]) == (1, 4)
        status, again, errors = run(kind, tmp_path / kind)
        assert status == 0 and again == whole, errors


def test_local_processes_follow_the_caller(tmp_path: Path) -> None:
    step, P = step_of()
    tr = sc.dist.DataParallel(step, comm=sc.dist.local(2))
    first = tr(X[:10], Y[:10])
    P["h"].set_value(P["h"].get_value() * 0.5)  # the others are told
    found = tr.fit((X, Y), epochs=1, batch=32)
    alone, Q = step_of()
    one = sc.dist.DataParallel(alone, comm=sc.dist.Comm())
    assert abs(one(X[:10], Y[:10]) - first) < 1e-12
    Q["h"].set_value(Q["h"].get_value() * 0.5)
    np.testing.assert_allclose(one.fit((X, Y), epochs=1, batch=32).losses, found.losses)
    np.testing.assert_allclose(P["h"].get_value(), Q["h"].get_value(), rtol=1e-9)
    with pytest.raises(sc.errors.ShapeError):
        tr(X[:10, :3], Y[:10])
    with pytest.raises(sc.errors.InputError, match="how many processes"):
        sc.dist.local()


# --- what is refused --------------------------------------------------------------------------------------------------


def test_checkpoints_that_are_damaged_or_foreign(tmp_path: Path) -> None:
    step, P = step_of(mode="reference")
    tr = sc.dist.DataParallel(step)
    tr.fit((X, Y), epochs=1, batch=32, checkpoint=tmp_path / "ck")
    file = tmp_path / "ck.npz"
    before = P["h"].get_value()
    arrays = read_arrays(file)
    for change, match in [({"dist/run": None}, "is no checkpoint"), ({"0/h": np.zeros(3)}, "0/h is float64"),
                          ({"more": np.zeros(3)}, "has 'more'")]:
        changed = {k: v for k, v in {**arrays, **change}.items() if v is not None}
        write_arrays(file, changed)
        with pytest.raises(sc.errors.InputError, match=match):
            tr.fit((X, Y), epochs=2, checkpoint=tmp_path / "ck")
    write_arrays(file, arrays)
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(sc.errors.InputError):
        tr.fit((X, Y), epochs=2, checkpoint=tmp_path / "ck")
    np.testing.assert_array_equal(P["h"].get_value(), before)


def test_steps_that_cannot_be_taken_apart() -> None:
    x, w = sc.input("x", "float64", shape=("n", 2)), sc.shared(np.ones(2), "w")
    loss = sc.mean(x @ w)
    u = sc.optim.sgd(0.1).updates(loss, [w])
    count, seen = sc.shared(0, "count"), sc.shared(0.0, "seen")
    for step, match in [
        (sc.compile(loss, [x], updates={w: w - sc.grad(loss, w)}), "with the updates of an optimizer"),
        (lambda x: x, "takes a compiled step"), (sc.compile(sc.count_nonzero(x), [x], updates=u), "a mean of it over"),
        (sc.compile(w[0], updates=sc.optim.sgd(0.1).updates(w[0], [w])), "no input of f has rows"),
    ]:
        with pytest.raises(sc.errors.InputError, match=match) as e:
            sc.dist.DataParallel(step)
        assert "test_training.py" in str(e.value)
    u[count] = count + sc.count_nonzero(x)
    with pytest.raises(sc.errors.InputError, match="new value of count would be another one"):
        sc.dist.DataParallel(sc.compile(loss, [x], updates=u))
    del u[count]
    u[seen] = seen + 1
    step = sc.compile(loss, [x], updates=u)
    sc.dist.DataParallel(step)(np.ones((4, 2)))
    assert seen.get_value() == 1
    with pytest.raises(sc.errors.InputError, match=r"arrays of \[3, 4\] rows"):
        sc.dist.DataParallel(step_of(mode="reference")[0])(X[:4], Y[:3])
    with pytest.raises(sc.errors.InputError, match="comm= is 3"):
        sc.dist.DataParallel(step, comm=3)  # type: ignore[arg-type]


def test_ranks_that_differ_are_found(folder: str, tmp_path: Path) -> None:
    def work(comm: Any) -> Any:
        step, P = step_of(mode="reference")
        tr = sc.dist.DataParallel(step, comm=comm)
        tr(X, Y)
        P["h"].set_value(P["h"].get_value() + comm.rank)
        with pytest.raises(sc.errors.ExecutionError, match="states of the ranks differ"):
            tr.fit((X, Y), epochs=1, checkpoint=str(tmp_path / "ck"))
        return True

    assert in_ranks(folder, 2, work) == [True, True]


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    from symc.__main__ import main

    assert main(["launch", "-n", "2"]) == 1 and "how many processes" in capsys.readouterr().err
    assert main(["launch", "-n", "1", "-c", "import sys; sys.exit(3)"]) == 3


def test_nccl_by_a_backend_that_counts() -> None:
    """The interface alone: what CuPy's backend is asked for, by one rank of two that have the same numbers."""
    class Array(np.ndarray):
        def get(self) -> np.ndarray:
            return np.array(self)

    class Cupy:
        asarray = staticmethod(lambda a: np.array(a).view(Array))
        zeros = staticmethod(lambda shape, dtype: np.zeros(shape, dtype).view(Array))

    class Backend:
        def all_reduce(self, given: Any, out: Any, op: str) -> None:
            assert op == "sum"
            out[...] = given * 2

        def all_gather(self, given: Any, out: Any, count: int) -> None:
            assert count == given.size
            out[...] = np.concatenate([given.reshape(-1)] * 2).reshape(out.shape)

        def broadcast(self, a: Any, root: int) -> None:
            assert root == 0

    comm = comms.NCCL(Backend(), 0, 2, Cupy)
    a = np.ones(3)
    comm.allreduce(a)
    comm.bcast(a)
    assert a.tolist() == [2, 2, 2]
    assert comm.allgather(np.arange(4).reshape(2, 2)).tolist() == [[0, 1], [2, 3]] * 2
    step, P = step_of(mode="reference")
    want, Q = step_of(mode="reference")
    sc.dist.DataParallel(step, comm=comm)(np.concatenate([X[:8]] * 2), np.concatenate([Y[:8]] * 2))
    want(X[:8], Y[:8])
    np.testing.assert_allclose(P["h"].get_value(), Q["h"].get_value(), rtol=1e-9)
