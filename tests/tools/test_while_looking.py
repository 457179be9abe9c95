"""Looking at a program: shadow arrays while it is built, nan_guard while it runs, scripts that repeat a call."""

import subprocess
import sys

import numpy as np
import pytest

import symc as sc
from symc.runtime.reference_program import ReferenceProgram


def test_shadow_arrays_show_errors_where_they_are_built():
    A, x = sc.input("A", "f8", ("n", "n")), sc.input("x", "f8", ("n",))
    sc.debug.sample(A, np.eye(4))
    with sc.config(shadow=True):
        y = sc.linalg.solve(A, x) + 1
        assert sc.debug.shadow(y).shape == (4,)
        np.testing.assert_array_equal(sc.debug.shadow(A @ A), np.eye(4))
        sc.debug.sample(A, np.zeros((4, 4)))
        with pytest.raises(sc.LinAlgError, match=r"test_while_looking\.py:\d+ +z = sc\.linalg\.inv\(A\)"):
            z = sc.linalg.inv(A)
    z = sc.linalg.inv(A)  # off: nothing is computed
    assert z.shape[0] is not None


def test_shadow_arrays_go_through_loops_state_and_defaults():
    x, w = sc.vector("x"), sc.shared(np.arange(3.0), "w")
    rate = sc.scalar("rate", default=0.5)
    with sc.config(shadow=True):
        h, ys = sc.scan(lambda c, r: (c + r * rate, c), 0.0, w)
        total = sc.cond(h > 0, lambda: h, lambda: -h) + sc.grad((x**2).sum(), x).sum()
    assert sc.debug.shadow(h) == 1.5 and sc.debug.shadow(ys).shape == (3,) and np.isfinite(sc.debug.shadow(total))
    with pytest.raises(sc.InputError, match=r"debug\.sample: an array of shape \(2, 2\)"):
        sc.debug.sample(x, np.ones((2, 2)))


# --- nan_guard --------------------------------------------------------------------------------------------------------

MASK = np.array([True, False, True])


def scanned(x):
    return sc.scan(lambda c, r: (c * 0.5 + sc.sqrt(r), sc.cond(r < 2, lambda: sc.log(r), lambda: r)), 0.0, x)[0]


PROGRAMS = {
    "plain": lambda x: sc.log(x).sum(),
    "hidden by where": lambda x: sc.where(x > 0, sc.log(x), 0.0),
    "hidden by a comparison": lambda x: sc.log(x) > 0,
    "masked with infinity": lambda x: sc.exp(sc.where(MASK, x, -np.inf)),
    "scan": scanned,
    "inside a branch": lambda x: sc.scan(lambda c, r: (sc.cond(r < 2, lambda: sc.log(r), lambda: c), c), 0.0, x)[1],
    "while": lambda x: sc.while_loop(lambda c: c[1] < 3, lambda c: (sc.sqrt(c[0] - 0.5), c[1] + 1), (x, 0))[0],
    "inner product": lambda x: (x[:, None] * x) @ sc.log(x),
    "overflow": lambda x: sc.exp(x * 300) * 0 + 1,
    "narrowed": lambda x: (x * 1e38).astype("f4"),
    "matrices": lambda x: sc.linalg.inv(x[:, None] * x + sc.eye(3)),
    "nan of infinities": lambda x: sc.where(MASK, x, np.inf) - sc.where(MASK, 0.0, np.inf),
}
ARRAYS = [[1.0, 2.0, 3.0], [1.0, -2.0, 3.0], [0.5, 0.0, 1.0], [4.0, 5.0, 6.0], [-1.0, -1.0, 0.2]]


@pytest.fixture(scope="module")
def counted():
    """How often the references of a program ran."""
    runs = []
    plain = ReferenceProgram.run

    def run(self, *args, **kwargs):
        runs.append(self)
        return plain(self, *args, **kwargs)

    patch = pytest.MonkeyPatch()
    patch.setattr(ReferenceProgram, "run", run)
    yield runs
    patch.undo()


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_find_what_the_references_find(name, counted):
    x = sc.input("x", "f8", (3,))
    y = PROGRAMS[name](x)
    compiled, slow = sc.compile(y, [x], mode="nan_guard"), sc.compile(y, [x], mode="nan_guard")
    slow._compilation.program._compiled = False
    for a in ARRAYS:
        said = []
        for f in (compiled, slow):
            counted.clear()
            try:
                said.append(f(a))
            except sc.NonFiniteError as e:
                said.append(str(e))
            if f is compiled and not isinstance(said[0], str):
                assert not counted, "the references ran without need"
        if isinstance(said[0], str) or isinstance(said[1], str):
            assert said[0] == said[1]
        else:
            np.testing.assert_allclose(said[0], said[1], rtol=1e-12)


def test_nan_guard_leaves_states_and_buffers_alone():
    x, w = sc.vector("x"), sc.shared(np.ones(3), "w")
    f = sc.compile(sc.log(x), [x], updates={w: w + sc.log(x)}, mode="nan_guard")
    out = np.full(3, 7.0)
    with pytest.raises(sc.NonFiniteError):
        f([1.0, -1.0, 1.0], out=out)
    assert (w.get_value() == 1).all() and (out == 7).all()
    assert f([1.0, np.e, 1.0], out=out) is out and out[1] == 1 and w.get_value()[1] == 2
    with pytest.raises(sc.NonFiniteError, match="the input x holds nan"):
        f([1.0, np.nan, 1.0])


# --- scripts that repeat a call ---------------------------------------------------------------------------------------


def run(path):
    return subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=path.parent,
                          env={**__import__("os").environ, "PYTHONPATH": str(sc.__path__[0]) + "/.."})


def test_a_script_repeats_a_call(tmp_path):
    A, w = sc.input("A", "f8", ("n", "n")), sc.shared(np.ones(2), "w")
    f = sc.compile(sc.linalg.inv(A) @ w, [A], updates={w: w + 1}, name="f")
    path = f.save_repro(tmp_path / "a.py", np.diag([2.0, 4.0]))
    assert run(path).stdout == "[0.5  0.25]\n[2. 2.]\nthe results are those of the references\n"
    assert "%w" in path.read_text() and not (tmp_path / "a.npz").exists() and (w.get_value() == 1).all()
    with pytest.raises(sc.LinAlgError):
        f(np.zeros((2, 2)))
    assert "singular" in run(f.save_repro(tmp_path / "b.py")).stderr
    with pytest.raises(sc.SymcError):
        f.save_repro(tmp_path / "c.py", np.zeros(3))


def test_a_script_without_a_call_draws_its_inputs(tmp_path):
    x = sc.input("x", "f4", ("n", 30))
    f = sc.compile(sc.tanh(x).sum(axis=0), [x], mode="nan_guard")
    done = run(f.save_repro(tmp_path / "a.py", np.ones((40, 30), "f4")))
    assert done.returncode == 0 and (tmp_path / "a.npz").exists()
    f.save_repro(tmp_path / "b.py")
    assert "drawn at random" in (tmp_path / "b.py").read_text()


@pytest.mark.parametrize("make", [lambda x: x[x > 0].sum(), lambda x: sc.unique(x), lambda x: sc.sparse.csr(
    sc.asarray([0, 2, 3]), sc.asarray([0, 2, 1]), x[:3], (2, 3)) @ x[:3]], ids=["mask", "unique", "sparse"])
def test_scripts_of_values_that_fit_one_another(tmp_path, make):
    x = sc.vector("x")
    done = run(sc.compile(make(x), [x]).save_repro(tmp_path / "a.py", np.array([1.0, -2.0, 3.0, 1.0])))
    assert done.stdout.endswith("the results are those of the references\n"), done.stderr


def test_a_script_is_not_made_of_arguments_that_are_wrong(tmp_path):
    x, S = sc.vector("x"), sc.sparse.input("S")
    for f in sc.compile(x[x > 0], [x]), sc.compile(S @ x, [S, x]):
        with pytest.raises(sc.InputError, match=r"no arguments that were drawn at random are right[^$]*of a call"):
            f.save_repro(tmp_path / "a.py")
        assert not (tmp_path / "a.py").exists()
