"""Ordinary NumPy functions under ``sc.jit``: what they write to, what they ask of sizes, and that nothing is silently
different from NumPy."""

import copy
import threading
import warnings

import numpy as np
import pytest

import symc as sc
from symc.ir.op import lookup
from tests.numpy_api import alias_fuzz
from tests.numpy_api.traced_cases import CASES


def results(x):
    return x if isinstance(x, tuple) else (x,)


def same(got, want, exact=False):
    for a, b in zip(results(got), results(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-12)
        assert np.asarray(a).dtype == np.asarray(b).dtype


def run_case(case, mode):
    f = sc.jit(case.function, mode=mode)
    for n in (*case.sizes, *case.sizes):
        arguments = case.arguments(np.random.default_rng(n), n)
        before = copy.deepcopy(arguments)
        same(f(*arguments), case.function(*copy.deepcopy(arguments)))
        same(arguments, before, exact=True)
    return f


@pytest.mark.parametrize("name", CASES)
def test_functions_of_numpy_run_as_they_are(name):
    """Every size twice: the second call of each finds the variant of the first."""
    f = run_case(CASES[name], "reference")
    assert len(f.variants) <= len(CASES[name].sizes)


@pytest.mark.parametrize("name", ["heat", "clipped", "one_hot", "median_or_mean", "matrix_power"])
def test_functions_of_numpy_run_as_native_code(name):
    run_case(CASES[name], "default")


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.smooth])
def test_gradients_of_functions_of_numpy(name):
    case = CASES[name]
    r = np.random.default_rng(1)
    x, *rest = case.arguments(r, 3)
    weights = [r.normal(size=np.shape(y)) for y in results(case.function(x.copy(), *copy.deepcopy(rest)))]

    def cost(x, *rest):
        return sum((w * y).sum() for w, y in zip(weights, results(case.function(x, *rest)), strict=True))

    def gradient(x, *rest):
        return sc.grad(cost(x, *rest), x)

    direction, step = r.normal(size=x.shape), 1e-6
    ends = [cost(x + s * step * direction, *copy.deepcopy(rest)) for s in (1, -1)]
    found = np.sum(sc.jit(gradient, mode="reference")(x, *rest) * direction)
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-7)


# --- aliases ----------------------------------------------------------------------------------------------------------

#: What may be refused, as it is not known before a call.
REFUSED = "it is not known whether|is not written to"


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_every_name_holds_what_it_holds_in_numpy(first):
    done = 0
    for seed in range(first, first + 10):
        text = alias_fuzz.program(seed)
        with np.errstate(all="ignore"):
            want = alias_fuzz.function(text)(*alias_fuzz.arguments())
        try:
            got = sc.jit(alias_fuzz.function(text), mode="reference")(*alias_fuzz.arguments())
        except sc.SymcError as e:
            assert any(part in str(e) for part in REFUSED.split("|")), (text, str(e))
            continue
        done += 1
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=text)
    assert done >= 7


def trace(fn, *arguments):
    return sc.jit(fn, mode="reference")(*arguments)


V, M = np.arange(4.0), np.arange(12.0).reshape(3, 4)


def test_numbers_are_no_views():
    def f(x):
        x = x.copy()
        a, total = x[1], x.sum()
        old = total
        a += 10
        total += 1
        x[1] = -1
        return x, a, total, old

    same(trace(f, V), f(V))


def test_arrays_without_axes_are_changed_in_place():
    def f(x):
        a = np.zeros(())
        b = a
        b += x[0]
        c = x.copy()[1, ...]
        d = c
        d *= 3
        return a, b, c, d

    same(trace(f, V + 1), f(V + 1))


def test_layouts_decide_what_shares_memory():
    def f(x):
        a = x.copy()
        merged, copied, back = a.reshape(-1), a.T.reshape(-1), a.T.ravel(order="F")
        merged[0], copied[1], back[2] = 10, 20, 30
        return a, merged, copied, back

    for shape in ((3, 4), (1, 4), (4, 1), (0, 3)):
        x = np.arange(float(np.prod(shape))).reshape(shape)
        if x.size > 2:
            same(trace(f, x), f(x))


def test_a_layout_that_is_not_known_is_refused_when_it_matters():
    def late(x):
        y = np.copy(x)
        z = y.ravel()
        z[0] = 1
        return y

    def never(x):
        y = np.copy(x)
        z = y.ravel()
        z[0] = 100
        return z

    with pytest.raises(sc.SymbolicValueError, match="it is not known whether"):
        trace(late, M)
    same(trace(never, M), never(M))
    same(trace(never, np.asfortranarray(M)), never(np.asfortranarray(M)))


def test_an_argument_is_not_written_to():
    for change in (lambda x: x.__setitem__(0, 1), lambda x: x.__iadd__(1), lambda x: x[1:].fill(0), lambda x: x.sort(),
                   lambda x: np.add(x, 1, out=x), lambda x: np.copyto(x.reshape(-1), 0), lambda x: x.T.__imul__(2)):
        with pytest.raises(sc.SymbolicValueError, match="x is an argument"):
            trace(lambda x, change=change: change(x), V)


def test_bodies_of_loops_change_their_own_arrays_alone():
    def inside(x):
        def step(carry, row):
            carry[0] += row
            tail = carry[1:]
            tail *= 2
            return carry, carry.sum()
        return sc.scan(step, np.ones(3), x)[0]

    want = np.ones(3)
    for row in V:
        want[0] += row
        want[1:] *= 2
    same(trace(inside, V), want)

    def outside(x):
        hits = np.zeros(1)
        def step(carry, row):
            hits[0] += 1
            return carry, row
        return sc.scan(step, 0.0, x)[0], hits

    with pytest.raises(sc.SymbolicValueError, match="made outside of the function"):
        trace(outside, V)


def test_states_and_what_was_made_before_are_not_written_to():
    w, c = sc.shared(np.zeros(3), "w"), sc.asarray(V)
    with pytest.raises(sc.SymbolicValueError, match="w is a state"):
        trace(lambda x: w.__setitem__(0, x[0]), V)
    with pytest.raises(sc.SymbolicValueError, match="outside of the traced function"):
        trace(lambda x: c.__setitem__(0, x[0]), V)


def test_elsewhere_values_never_change():
    v = sc.vector("v")
    w = v
    w += 1
    assert w is not v
    for change in (lambda: v.__setitem__(0, 1), lambda: v.fill(0)):
        with pytest.raises(sc.SymbolicValueError, match="symbolic values never change"):
            change()
    assert np.array_equal(sc.compile(v.sort(), mode="reference")([2.0, 1.0]), [1, 2])


def test_a_jitted_function_writes_in_a_graph_too():
    @sc.jit
    def f(x):
        y = np.zeros(3)
        y[1:] = x[:2] ** 2
        y *= 3
        return y

    x = sc.vector("x")
    both = sc.compile([f(x), sc.grad(sc.sum(f(x)), x)], mode="reference")
    same(tuple(both(V)), (f(V), np.array([0, 6.0, 0, 0])))

    @sc.jit(mode="reference")
    def caller(x):
        def add(v):
            v += 1
        y = x.copy()
        sc.jit(add)(y)
        return y

    same(caller(V), V + 1)


def test_gradients_are_of_the_value_that_is_held():
    def f(x):
        y = x.copy()
        y *= 2
        total = (y**2).sum()
        before = sc.grad(total, x)
        y += 1
        return before, sc.grad((y**2).sum(), y)

    same(trace(f, V), (8 * V, 2 * (2 * V + 1)))


def test_only_lines_of_the_traced_function_get_symbolic_arrays():
    seen = {}

    def f(x):
        def elsewhere():
            seen["thread"] = type(np.zeros(2))
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        a, b = np.random.default_rng(0).normal(size=3), np.empty(3)
        seen["state"] = np.random.default_rng(0).bit_generator.state["state"]["state"]  # calls np.empty
        seen["random"], seen["own"], seen["numbers"] = type(a), type(b), type(np.array([1.0]))
        b[...] = a
        return x + b

    same(trace(f, np.ones(3)), np.ones(3) + np.random.default_rng(0).normal(size=3))
    assert seen.pop("state") == np.random.default_rng(0).bit_generator.state["state"]["state"]
    assert issubclass(seen.pop("numbers"), np.ndarray)  # which takes a symbolic index, and is NumPy's in all else
    assert seen == {"thread": np.ndarray, "random": np.ndarray, "own": sc.Tensor}
    assert type(np.zeros(2)) is np.ndarray and np.zeros.__module__ == "numpy"


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_the_answer_is_what_a_variant_is_for():
    traced = []

    @sc.jit(mode="reference")
    def f(x):
        traced.append(1)
        return x.sum() if x.shape[0] % 2 == 0 else x.max()

    for n in range(2, 30):
        assert f(np.arange(float(n))) == (n * (n - 1) / 2 if n % 2 == 0 else n - 1)
    assert len(traced) == len(f.variants) == 2
    assert len(f.questions) == 1 and "whether mod(x.shape[0], 2) equals 0" in f.questions[0]
    assert "test_traced_functions.py" in f.questions[0]
    assert repr(f) == "<f, compiled for 2 signatures; asked whether mod(x.shape[0], 2) equals 0: True>"


ASKING = {
    "shapes": lambda x: x * 2 if x.shape == (3, 4) else x,
    "rank": lambda x: x if x.ndim == 2 and x.shape[0] < x.shape[1] else x.T,
    "range": lambda x: sum(x[i] * i for i in range(x.shape[0])),
    "len": lambda x: sum(x[i].sum() * i for i in range(len(x))),
    "int": lambda x: x[: int(x.shape[0] // 2)],
    "float": lambda x: x / float(x.shape[0]),
    "made of sizes": lambda x: x * int(np.ceil(x.shape[0] / 2)),
    "compared with a float": lambda x: x + 1 if x.shape[0] / 2 > 1.2 else x,
    "rows": lambda x: np.stack([r[::-1] for r in x]),
    "unpacked": lambda x: [a * b for a, b in zip(x, x[::-1], strict=True)],
    "min and max": lambda x: x[: min(x.shape), : max(2, x.shape[1])],
    "key": lambda x: x * {2: 5, 3: 7}.get(x.shape[0], 1),
    "in": lambda x: x + 1 if x.shape[0] in (2, 5) else x,
    "split": lambda x: np.split(x, 2, axis=1)[0] if x.shape[1] % 2 == 0 else x,
    "squeezed": lambda x: np.squeeze(x[: x.shape[0] - 1]),
    "repeated": lambda x: np.concatenate([x] * x.shape[0]),
    "truth": lambda x: x.sum() if x.shape[0] else x,
}  # fmt: skip


@pytest.mark.parametrize("name", ASKING)
def test_what_python_asks_of_sizes(name):
    f = sc.jit(ASKING[name], mode="reference")
    for shape in ((3, 4), (2, 4), (3, 4), (5, 3), (2, 4), (1, 2)):
        x = np.random.default_rng(0).normal(size=shape)
        got, want = f(x), ASKING[name](x)
        same(tuple(got) if isinstance(got, list) else got, tuple(want) if isinstance(want, list) else want)
    variants = len(f.variants)
    f(np.ones((3, 4)))
    assert len(f.variants) == variants <= 4


def test_a_condition_on_a_loop_counter():
    def f(x):
        k, out = 1, x
        while k < x.shape[0]:
            out, k = out * 2, k * 2
        return out

    g = sc.jit(f, mode="reference")
    for n in (1, 2, 3, 4, 5, 8, 7, 6):
        same(g(np.ones(n)), f(np.ones(n)))
    assert len(g.variants) == 4  # 1, 2, up to 4, up to 8


def test_known_numbers_make_better_code():
    f = sc.jit(lambda x: sum(x[i] for i in range(len(x))), mode="reference")
    f(np.ones(3))
    assert "f64[3]" in f.dump("input")


def test_variants_are_bounded():
    f = sc.jit(lambda x: x * len(x), mode="reference", variants=3)
    with pytest.warns(UserWarning, match="more than 3 answers"):
        for n in range(2, 8):
            f(np.ones(n))
    assert len(f.variants) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(f(np.ones(n))[0] == n for n in (7, 2, 6, 2))


def test_deferred_functions_ask_too():
    a = sc.Variable("a")
    f = sc.compile(sc.squeeze(a[: a.shape[0] - 1]), mode="reference")
    assert f(np.ones((2, 3))).shape == (3,) and f(np.ones((4, 3))).shape == (3, 3) and len(f.variants) == 2
    assert f(np.ones((2, 5))).shape == (5,) and len(f.variants) == 2


def test_sizes_of_others_are_not_known():
    n = sc.input("y", shape=("n",)).shape[0]
    with pytest.raises(sc.SymbolicValueError, match="whether the size n equals 2"):
        sc.jit(lambda x: x if n == 2 else -x, mode="reference")(1.0)


def test_long_loops_say_what_else_there_is():
    @sc.jit(mode="reference")
    def f(x):
        v = x.value
        for _ in range(10_001):
            v = lookup("neg")(v)
        return sc.Tensor(v)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"sc\.scan"):  # before it is compiled
            f(1.0)
