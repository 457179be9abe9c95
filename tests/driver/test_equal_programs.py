"""Equal programs are equal, whatever a process made before: one function, one text of every stage, one key on disk.

Programs of many kinds are made twice, with other inputs, states, keys and effects made in between. Sizes that nobody
named are counted meanwhile, from one digit to three.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symc as sc
from benchmarks.workload import Run
from benchmarks.workloads import load_all
from symc.driver import stages
from symc.driver.build import build
from symc.ir import dim
from symc.ir.dim import fresh_size, product, size_name
from symc.ir.function import Function, Guard, Input, bound_names, function
from symc.ir.location import Loc
from symc.ir.size_values import evaluate, names, substitute
from symc.ir.traverse import Substitution, every_value
from symc.ir.types import TensorType
from symc.ir.value import fresh_input, make
from symc.runtime.cache import object_cache
from symc.runtime.cpu.kernels import compile_count
from symc.tensors.pytree import flatten
from symc.testing.fuzz import campaign as _campaign  # noqa: F401 - declares the generators
from symc.testing.fuzz.front import Writer
from symc.testing.fuzz.grower import MISTAKES
from symc.testing.fuzz.programs import GENERATORS
from symc.testing.fuzz.straight import random_function
from tests.driver.equal_programs import PROGRAMS, is_warm
from tests.ir import op_cases

ROOT = Path(__file__).parents[2]


def unrelated() -> list[Any]:
    """What has nothing to do with the program, and is counted as it is."""
    made: list[Any] = [sc.vector(f"z{k}") for k in range(7)]
    made += [sc.shared(np.zeros(2), shape=(None,)), sc.random.Generator(1).normal(()), sc.random.key(5)]
    made += [sc.debug.assert_(made[0], made[0] > 0), sc.function_op(vjp=lambda g, t: g)(lambda t: sc.sin(t))(made[1])]
    return [*made, sc.scan(lambda c, r: (c + r, None), 0.0, made[2])]


def closed(made: tuple[Any, Any, dict]) -> Function:
    outputs, inputs, options = made
    return build(outputs, inputs, options.get("updates"), options.get("givens"), (), "f", Loc("program.py", 1)).function


def assert_equal(f: Function, g: Function, lines: bool = True) -> None:
    """Interned, so that all that follows is the same; and what stands beside the body. ``lines``: the user's too. (What
    depends on no input is one value for all programs that hold it, and has the lines of all.)"""
    assert [t if lines else t.partition("  //")[0] for t in str(f).split("\n")] == [
        t if lines else t.partition("  //")[0] for t in str(g).split("\n")]
    assert f.body is g.body and f.body.fingerprint == g.body.fingerprint and f.updates == g.updates
    assert [(i.name, i.type, i.role, i.declared) for i in f.inputs] == [
        (i.name, i.type, i.role, i.declared) for i in g.inputs]
    assert list(map(written, f.guards)) == list(map(written, g.guards)) and "?" not in str(f.guards)


def written(guard: Guard) -> tuple:
    """A guard by the lines that it comes from, whatever called these."""
    return guard.left, guard.right, guard.least, sorted((loc.file, loc.line) for loc in guard.locs)


# --- as users write them ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_one_function(name: str) -> None:
    made, alive = [], []
    for _ in range(4):
        alive.append(PROGRAMS[name]())
        made.append(closed(alive[-1]))
        alive.append(unrelated())
    for g in made[1:]:
        assert_equal(made[0], g)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_plays_no_part_which_size_was_made_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the inputs had been made in other orders."""
    first = closed(PROGRAMS[name]())
    monkeypatch.setattr(dim, "_fresh", itertools.count(10**6, -1))
    assert_equal(first, closed(PROGRAMS[name]()))
    mixed = 10**7 + np.random.default_rng(0).permutation(999)
    monkeypatch.setattr(dim, "_fresh", iter(mixed.tolist()))
    assert_equal(first, closed(PROGRAMS[name]()))


@pytest.mark.parametrize("seed", range(20))
def test_a_random_program_is_one_function(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by the fuzzer as a user writes, with a size that nobody named where it names one."""
    found = []
    make_input = sc.input
    for _ in range(2):
        sizes: dict[str, Any] = {}

        def nameless(name: str, dtype: Any = None, shape: Any = (), sizes: dict[str, Any] = sizes) -> Any:
            entries = [shape] if isinstance(shape, int | str) else shape
            for s in entries:
                if isinstance(s, str) and s not in sizes:
                    sizes[s] = sc.vector(s).shape[0]
            return make_input(name, dtype, [sizes[s] if isinstance(s, str) else s for s in entries])

        monkeypatch.setattr(sc, "input", nameless)
        writer = Writer(np.random.default_rng(seed))
        monkeypatch.setattr(sc, "input", make_input)
        writer.write(12)
        outputs = writer.made[-4:]
        with contextlib.suppress(*MISTAKES):
            outputs = [*outputs, *writer.gradient()]
        found.append(closed((outputs, writer.inputs, {})))
        unrelated()
    assert_equal(*found, lines=False)


# --- any function, with sizes that nobody named -----------------------------------------------------------------------


def again(f: Function) -> Function:
    """The function, opened and closed: its sizes are new ones without names."""
    new = Substitution({n: fresh_size() for n in bound_names(i.declared or i.type for i in f.inputs)})
    leaves = [fresh_input(new.swap(t)) for t in f.body.params]
    results = new.values(f.body.results, dict(zip(f.params, leaves, strict=True)))
    interface = [(v, Input(i.name, v.type, i.role)) for v, i in zip(leaves, f.inputs, strict=True)]
    n = len(f.outputs)
    return function(f.name, interface, results[:n], list(zip(f.updates, results[n:], strict=True)))


@pytest.mark.parametrize("kind", sorted(GENERATORS))
def test_random_functions_are_one_whatever_their_sizes_were(kind: str) -> None:
    for seed in range(8):
        f = GENERATORS[kind](seed, "").function
        first = again(f)
        unrelated()
        assert_equal(first, again(f))


def test_random_programs_have_no_ops_of_users() -> None:
    sc.op(lambda a: a + 1.0, name="of_a_user_for_random_programs")
    made = [random_function(seed) for seed in range(150)]
    made += [GENERATORS[kind](seed, "").function for kind in sorted(GENERATORS) for seed in range(8)]
    assert not [v.op for f in made for v in every_value(f.body) if v.op.facts.custom is not None]


@pytest.mark.parametrize("op", op_cases.SAMPLED, ids=lambda op: op.name)
def test_every_op_is_one_function(op: Any) -> None:
    arrays, attrs = op_cases.cases(op)[0]

    def once(symbolic: bool) -> Function:
        sizes: dict[int, Any] = {}
        types = [TensorType(a.dtype, [sizes.setdefault(n, fresh_size()) if symbolic and n > 1 else n for n in a.shape])
                 for a in arrays]
        leaves = [fresh_input(t) for t in types]
        v = make(op, leaves, op_cases.Attrs(attrs))
        return function("f", [(x, Input(f"x{k}", x.type)) for k, x in enumerate(leaves)], op_cases.results_of(v))

    try:
        first = once(True)
    except (sc.SymcError, ValueError, TypeError, KeyError, IndexError):  # its attributes say how large operands are
        first = once(False)
        assert_equal(first, once(False))
        return
    unrelated()
    assert_equal(first, once(True))


class Enough(Exception):
    """The program is known; it does not have to run."""


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Function]:
    """The functions that are closed by ``compile``, which then does no more."""
    found: list[Function] = []

    def closes(*args: Any, **options: Any) -> Any:
        found.append(build(*args, **options).function)
        raise Enough

    monkeypatch.setattr("symc.driver.compile.build", closes)
    return found


@pytest.mark.parametrize("name", sorted(n for n, w in load_all().items() if "symc" in w.builders))
def test_a_model_is_one_function(name: str, built: list[Function]) -> None:
    """What the benchmarks compile; and with sizes instead of its numbers."""
    workload = load_all()[name]
    case = next(iter(workload.cases.values()))
    arrays = workload.make_inputs(case)
    for _ in range(2):
        with pytest.raises(Enough):
            made = workload.builders["symc"](Run(case, "symc", 1), *arrays)
            getattr(made, "function", made)(*getattr(made, "arguments", arrays))
        unrelated()
    assert_equal(*built)
    assert_equal(again(built[0]), again(built[1]))


@pytest.mark.parametrize("name", ["hello", "rosenbrock", "newton", "kalman", "hmc", "char_lstm", "gaussian_process"])
def test_an_example_is_one_function(name: str, built: list[Function]) -> None:
    module = importlib.import_module(f"examples.{name}")
    for _ in range(2):
        with pytest.raises(Enough):
            module.main()
        unrelated()
    assert_equal(*built)


# --- what follows from it ---------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setenv(object_cache.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


#: Of these, few are compiled: with states, loops, a gradient, sizes of several inputs, and effects.
COMPILED = ["sizes_that_must_be_equal", "network_in_place", "loops", "nested_loops", "random_numbers", "parts_of_sizes",
            "batches", "states_of_any_size", "opaque_blocks"]


def arguments(f: Any) -> list[np.ndarray]:
    """Arrays for a function: all sizes are 3."""
    shapes = [[s if isinstance(s, int) else evaluate(s, dict.fromkeys(names(s), 3)) for s in i.type.shape]
              for i in f.inputs]
    return [np.linspace(0.1, 1, int(np.prod(s))).reshape(s) for s in shapes]


@pytest.mark.parametrize("name", COMPILED)
def test_every_stage_is_the_same_text(name: str) -> None:
    texts, alive = [], []
    for _ in range(2):
        outputs, inputs, options = PROGRAMS[name]()
        f = sc.compile(outputs, inputs, **options)
        alive += [f, unrelated()]
        texts.append({**f.stages, "plan": f.plan, "source": f.source, "kernels": str([k.name for k in f.kernels]),
                      "explain": f.explain(), "sizes": str(f.inputs)})
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", COMPILED)
def test_what_was_compiled_is_not_compiled_again(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are alive, and give the same results; the second has asked neither optimizer nor planner nor compiler."""
    outputs, inputs, options = PROGRAMS[name]()
    first = sc.compile(outputs, inputs, **options)
    given = arguments(first)
    want = first(*given)
    unrelated()
    outputs, inputs, options = PROGRAMS[name]()
    before = compile_count()
    monkeypatch.setattr(stages, "optimize", None)
    second = sc.compile(outputs, inputs, **options)
    assert is_warm(second) and compile_count() == before
    for a, b in zip(flatten(want)[0], flatten(second(*given))[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert {phase for phase, *_ in second.compile_profile} <= {"build", "look for function on disk", "lower"}


def test_a_jitted_function_is_traced_to_the_same(place: Path) -> None:
    def traced() -> Any:
        f = sc.jit(lambda a, b: sc.sum(sc.tanh(a) @ b, axis=0))
        f(np.ones((2, 3)), np.ones((3, 4)))
        return next(iter(f.variants.values()))

    first = traced()
    unrelated()
    assert_equal(first._compilation.source, traced()._compilation.source)
    assert is_warm(traced())


FRESH = """
import sys, numpy as np, symc as sc
from tests.driver.equal_programs import PROGRAMS, is_warm
for k in range(int(sys.argv[1])):
    sc.vector("z"), sc.shared(np.zeros(2), shape=(None,)), sc.debug.assert_(sc.scalar("s"), sc.scalar("c", "bool"))
for name in ("sizes_that_must_be_equal", "loops", "network_in_place"):
    outputs, inputs, options = PROGRAMS[name]()
    f = sc.compile(outputs, inputs, **options)
    f(*[np.full([s if isinstance(s, int) else 3 for s in i.type.shape], 0.5) for i in f.inputs])
    print(name, is_warm(f))
"""


def test_another_process_finds_it_whatever_it_made_before(place: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = [subprocess.run([sys.executable, "-c", FRESH, str(k)], env=env, capture_output=True, text=True, timeout=100,
                            check=True).stdout.split()[1::2] for k in (0, 11)]
    assert found == [["False"] * 3, ["True"] * 3]


# --- what stays apart -------------------------------------------------------------------------------------------------


def test_sizes_of_two_inputs_are_two() -> None:
    x, y = sc.vector("x"), sc.vector("y")
    f = sc.compile((sc.sum(x), sc.sum(y)), [x, y])
    assert f(np.ones(2), np.ones(3)) == (2, 3)
    assert [str(i.type) for i in f.inputs] == ["f64[_0]", "f64[_1]"]
    assert f.memory(_0=1000, _1=1) > f.memory(_0=1, _1=1)


def test_a_name_of_a_user_is_no_number_of_ours() -> None:
    """Also where only an input that is not in the interface has it."""
    x, y = sc.vector("x"), sc.input("y", "float64", shape=("_0",))
    f = sc.compile((x * 2, y + 1), [x, y])
    assert [str(i.type) for i in f.inputs] == ["f64[_1]", "f64[_0]"]
    assert f(np.ones(2), np.ones(3))[1].shape == (3,)
    with pytest.raises(sc.InputError, match="the size _0 is not known from any input"):
        sc.compile(sc.sum(x) * y.shape[0], [x])
    found = sc.compile(sc.sum(x) * y.shape[0])
    assert found(np.ones(2), np.ones(5)) == 10


@pytest.mark.parametrize("name", ["?0", "?12", "n m", "2n", ""])
def test_no_user_names_a_size_as_we_do(name: str) -> None:
    for ask in (lambda: sc.input("x", "float64", shape=(name,)), lambda: sc.shared(np.ones(2), "w", shape=(name,)),
                 lambda: sc.scan(lambda c, _: (c + 1, None), 0.0, length=name)):
        with pytest.raises(sc.InputError, match="cannot name a size"):
            ask()


def test_pickles_of_another_process_bring_sizes_of_their_own() -> None:
    script = "import sys, pickle, symc as sc; x = sc.vector('x'); "
    script += "sys.stdout.buffer.write(pickle.dumps((x, x.shape[0])))"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    given = [subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, check=True).stdout
             for _ in range(2)]
    (x, n), (y, m) = map(pickle.loads, given)
    again, _ = pickle.loads(given[0])
    assert again.value is x.value and x.shape[0] == n and y.shape[0] == m
    f = sc.compile((x * n, y * m), [x, y])
    a, b = f(np.ones(2), np.ones(3))
    np.testing.assert_array_equal(a, [2, 2])
    np.testing.assert_array_equal(b, [3, 3, 3])


def test_states_of_files_have_sizes_of_their_own(tmp_path: Path) -> None:
    loaded = []
    for k in (2, 3):
        w = sc.shared(np.ones(k), "w", shape=(None,))
        sc.compile(w * 2, updates={w: w + 1}).save(tmp_path / "f")
        loaded.append(sc.load(tmp_path / "f").shared["w"])
    f = sc.compile(tuple(w * 2 for w in loaded))
    assert [a.shape for a in f()] == [(2,), (3,)]


def test_division_is_found_whatever_sizes_are_called() -> None:
    """A product is divided by its factor under every order of the names: no graph depends on how many there were."""
    rng = np.random.default_rng(0)
    names = ["a", "b", "c"]

    def polynomial(terms: int) -> Any:
        return sum(int(rng.choice([1, 2, 3, -1])) * product(
            [size_name(n) for n in names for _ in range(int(rng.choice([0, 0, 1, 2])))]) for _ in range(terms))

    for _ in range(150):
        quotient, divisor = polynomial(2), polynomial(int(rng.choice([2, 3])))
        if isinstance(divisor, int):
            continue
        for order in itertools.permutations(names):
            to = dict(zip(names, map(size_name, order), strict=True))
            whole, part = substitute(quotient * divisor, to), substitute(divisor, to)
            assert whole // part == substitute(quotient, to)
