"""What travels to other processes: every public function, class and error, and user functions that mention them."""

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import types
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import symc as sc
from symc import errors
from symc.ir.dim import size_name
from symc.ir.location import Loc
from symc.ir.types import TensorType

ROOT = Path(__file__).resolve().parents[2]
MODULES = [sc, sc.linalg, sc.fft, sc.random, sc.nn, sc.special, sc.debug, sc.parallel]
NAMES = [(m, n) for m in MODULES for n in dir(m) if not n.startswith("_") and not isinstance(getattr(m, n), type(sc))]


def both(item):
    """The item after a journey of either kind."""
    return [p.loads(p.dumps(item)) for p in (pickle, cloudpickle)]


@sc.jit(mode="reference")
def tripled(x):
    return x * 3


class Model:
    @sc.jit(mode="reference", static=("k",))
    def power(self, x, k=2):
        return x**k


def test_every_public_name_is_found_again():
    lost = []
    for module, name in NAMES:
        item = getattr(module, name)
        if inspect.isroutine(item) or inspect.isclass(item):
            try:
                ok = all(again is item for again in both(item))
            except Exception as e:
                ok = e
            if ok is not True:
                lost.append((module.__name__, name, ok))
    assert len(NAMES) > 400 and not lost


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_modules_are_found_again(module):
    assert cloudpickle.loads(cloudpickle.dumps(module)) is module
    assert isinstance(module, types.ModuleType) and sys.modules[module.__name__] is module


def test_the_package_can_be_loaded_again():
    code = (
        "import importlib, symc as sc; f = sc.compile(sc.vector('x') * 2, mode='reference'); sc.jit, sc.grad\n"
        "again = importlib.reload(sc); assert again is sc and sc.vmap(sc.sin) and not hasattr(sc, 'no_such_name')\n"
        "print(f([1.0]).tolist(), sc.compile(sc.vector('x') * 2, mode='reference')([1.0]).tolist(), callable(sc.jit))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert run.stdout.split() == ["[2.0]", "[2.0]", "True"]


ERRORS = sorted({e for e in vars(errors).values() if inspect.isclass(e) and issubclass(e, errors.SymcError)},
                key=lambda e: e.__name__)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda e: e.__name__)
def test_errors_arrive_whole(kind):
    rows = [("%x", TensorType("f4", (size_name("n"), 3)), Loc(__file__, 3))]
    e = kind("no", values=rows, where=[Loc(__file__, 5)], help="do")
    e.text = "func @f"
    e.add_note("a note")
    for again in (*both(e), copy.copy(e)):
        assert type(again) is kind and str(again) == str(e) and again.__notes__ == ["a note"]
        assert (again.what, again.help, again.where, again.text) == (e.what, e.help, e.where, e.text)


def test_errors_that_were_raised_arrive_whole():
    x = sc.vector("x")
    f = sc.compile(x + sc.shared(np.ones(3), "w"), mode="reference")
    for bad in (lambda: f(np.ones(2)), lambda: f(), lambda: sc.reshape(x, (3, 4, "q")), lambda: bool(x),
                lambda: sc.parse("func"), lambda: sc.load("/no/such/file"), lambda: sc.compile(x, mode="no")):
        with pytest.raises((sc.SymcError, OSError)) as found:
            bad()
        for again in both(found.value):
            assert str(again) == str(found.value) and type(again) is found.type


def samples():
    """An instance of what users hold, and what it computes."""
    x, A = sc.vector("x"), sc.Variable("A")
    w = sc.shared(np.arange(3.0), "w")
    f = sc.compile(x * w, [x], updates={w: w + 1}, mode="reference")
    m = sc.input("m", "f4", ("n", 3))
    rng = sc.random.Generator(3)
    return {
        "tensor": (x * 2 + 1, str), "shared": (w, lambda v: v.get_value().tolist()), "compiled": (f, lambda g: g(
            np.ones(3)).tolist()), "size": (m.shape[0] * 2 + 1, str), "deferred": (sc.sin(A) * 2 + A[0], repr),
        "deferred function": (sc.compile(sc.sin(A) * A.sum(), mode="reference"), lambda g: g(np.ones(3)).tolist()),
        "jitted": (tripled, lambda g: g(np.ones(3)).tolist()), "place": (x.at[1:2], lambda p: str(p.set(0.0))),
        "jitted method": (Model().power, lambda g: g(np.full(3, 3.0)).tolist()), "constant": (sc.asarray([1.0]), str),
        "generator": (rng, lambda r: (r.seed, r.state.get_value().tolist())), "bound": (x.sum, lambda s: str(s())),
        "profile": (f.compile_profile, lambda p: [row[:2] for row in p]), "lint": (sc.lint(x * 2), str),
        "memory": (sc.compile(x * 2, [x]).memory(np.ones(3)), int), "dtype": (sc.float32, str),
    }  # fmt: skip


@pytest.mark.parametrize("name", samples())
def test_what_users_hold_travels(name):
    item, shown = samples()[name]
    travelled = both(item)
    want = shown(item)
    assert [shown(again) for again in travelled] == [want, want]


def test_functions_and_their_states_stay_together():
    rng, w = sc.random.Generator(0), sc.shared(np.zeros(2), "w")
    f = sc.compile(rng.normal((2,)) + w, updates={**rng.updates(), w: w + 1}, mode="reference")
    for again, its_rng, its_w in both((f, rng, w)):
        first = again()
        assert its_w.get_value().tolist() == [1, 1]
        its_rng.reset()
        its_w.set_value([0, 0])
        np.testing.assert_array_equal(again(), first)


def test_jitted_functions_keep_their_name():
    assert all(again is tripled for again in both(tripled)) and copy.deepcopy(tripled) is tripled
    assert both(Model.power)[0] is Model.power
    other = both(sc.jit(np.sin, mode="reference"))
    assert [g(0.0) for g in other] == [0, 0]
    k = 2.0
    (inner,) = [cloudpickle.loads(cloudpickle.dumps(sc.jit(lambda x: x * k, mode="reference", name="twice")))]
    assert inner(3.0) == 6 and inner.name == "twice"


SCRIPT = """
import pickle, sys
import numpy as np, symc as sc
import cloudpickle
def dense(x): return sc.linalg.det(x) + sc.sum(sc.random.uniform(sc.random.key(0), (2,))) + sc.special.erf(x).sum()
@sc.jit(mode="reference")
def cube(x): return x ** 3
class Model:
    @sc.jit(mode="reference")
    def __call__(self, x): return cube(x) + self.k
m = Model(); m.k = 2.0
def user(a):
    x = sc.matrix("x")
    f = sc.compile(sc.grad(dense(x), x), mode="reference")
    return f(a), cube(a), m(a), sc.jit(dense, mode="reference")(a), sc.vmap(sc.sin), sc.nn, sc.ShapeError
if __name__ == "__main__":
    sys.stdout.buffer.write(cloudpickle.dumps(user))
    assert pickle.loads(pickle.dumps(cube))(2.0) == 8
"""


def test_user_functions_of_a_script_travel(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    sent = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, check=True,
                          env={"PYTHONPATH": str(ROOT), "PATH": ""}).stdout
    a = np.eye(2) + 0.5
    here: dict = {"__name__": "elsewhere"}
    exec(SCRIPT, here)
    for got, want in zip(cloudpickle.loads(sent)(a)[:4], here["user"](a), strict=False):
        np.testing.assert_array_equal(got, want)


def test_partials_and_closures_travel():
    fns = [functools.partial(sc.multiply, 2.0), lambda x: sc.sin(x) + sc.linalg.norm(x), sc.value_and_grad(sc.sum),
           sc.vmap(lambda r: sc.sum(r)), sc.checkpoint(sc.tanh)]
    for fn in fns:
        again = cloudpickle.loads(cloudpickle.dumps(fn))
        a = np.ones((2, 3))
        got, want = (sc.jit(g, mode="reference")(a) for g in (again, fn))
        assert str(got) == str(want)
