"""What no recursive port goes into is computed for all instances at once: nothing but the number of calls differs."""

import functools
import re

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from tests.fold.fold_cases import H, V, Weights

w = Weights(1)
State, Other = (fd.Struct(name, h=fd.f64[H], c=fd.f64[H]) for name in ("State", "Other"))
X, Letter = fd.f64[3], fd.f64[2]


@fd.block(out=X)
def word(k: fd.Attr(fd.i32)):
    return sc.tanh(w("E", V, 3)[k])


@fd.block(out=Letter)
def letter(k: fd.Attr(fd.i32)):
    return w("L", V, 2)[k]


@fd.block(out=X)
def spelled(s: Other):
    return sc.tanh(s.h @ w("S", H, 3))


@fd.block(out=State)
def tree(k: fd.Attr(fd.i32), x: X, kids: fd.Many(State)):
    """A lookup, a product of a port that is not recursive, both spread to children, and what is not dear."""
    given = w("T", V, H)[k] + x @ w("W", 3, H)
    forget = sc.sigmoid(given + kids.h @ w("U", H, H) + sc.sum(x))
    c = sc.tanh(given) + kids.sum(forget * kids.c) + x[0]
    return dict(h=sc.tanh(c + sc.exp(given)), c=c)


@fd.block(out=State)
def dropped(s: State, x: X, key: fd.Key):
    h = sc.tanh(fd.lib.dropout(x @ w("D", 3, H), 0.3, key) + s.h)
    return dict(h=h, c=s.c * sc.sum(x**2))


@fd.block(out=State)
def passed(x: X, s: State):
    """A field is made ahead altogether."""
    return dict(h=s.h * s.c, c=sc.exp(x @ w("P", 3, H)))


@fd.loss
def loss(s: State, y: fd.Attr(fd.f64)):
    return sc.sum((s.h - y) ** 2) + sc.sum(s.c)


letters = fd.lib.lstm(Other, Letter, w("lw", 2, 4 * H), w("lu", H, 4 * H), w("lb", 4 * H), "letters")
BLOCKS = [word, letter, fd.lib.constant(State, 0.1, "start"), fd.lib.constant(Other, 0.0, "none"), letters, spelled,
          tree, dropped, passed, loss]


@functools.cache
def step(how):
    for b in BLOCKS:
        assert b.batched
    return fd.compile(BLOCKS, w.values(), schedule=how, seed=3)


def graph(how, seed):
    """A random graph: words, some by their letters, in chains and trees."""
    rng = np.random.default_rng(seed)
    with fd.record(step(how)) as g:
        for _ in range(rng.integers(1, 4)):
            g.example()
            xs, states = [], [g.start()]
            for _ in range(rng.integers(1, 12)):
                s = g.none()
                for k in rng.integers(0, V, rng.integers(0, 4)):
                    s = g.letters(s, g.letter(k))
                xs.append(g.spelled(s) if rng.random() < 0.5 else g.word(rng.integers(0, V)))
                x = xs[rng.integers(len(xs))]
                some = [states[k] for k in rng.integers(0, len(states), rng.integers(0, 4))]
                make = [lambda: g.tree(rng.integers(0, V), x, some), lambda: g.dropped(states[-1], x),  # noqa: B023
                        lambda: g.passed(x, states[rng.integers(len(states))])]  # noqa: B023
                states.append(make[rng.integers(3)]())
                g.loss(states[-1], rng.standard_normal())
    return g


@pytest.mark.parametrize("seed", range(6))
def test_gradients_are_those_of_batches_alone(seed):
    (a, mine), (b, others) = (graph(how, seed).gradients() for how in ("auto", "depth"))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    assert mine.keys() == others.keys() and len(mine) == len(w.values())
    for p, g in mine.items():
        if isinstance(g, fd.RowGradient):
            g, other = (np.zeros(p.shape) for _ in range(2))
            np.add.at(g, mine[p].rows, mine[p].values)
            np.add.at(other, others[p].rows, others[p].values)
        else:
            other = others[p]
        np.testing.assert_allclose(g, other, rtol=1e-9, atol=1e-12, err_msg=p.name)


@pytest.mark.parametrize("seed", range(3))
def test_values_are_too_and_in_pieces(seed):
    values = []
    for how in ("auto", "depth"):
        g = graph(how, seed)
        values.append([g.value(k) for k in range(len(g))])
        np.testing.assert_allclose(g.run(train=False), graph(how, seed).run(train=False), rtol=1e-12)
    for x, y in zip(*values, strict=True):
        for f in ("h", "c") if hasattr(x, "h") else ("",):
            np.testing.assert_allclose(getattr(x, f, x), getattr(y, f, y), rtol=1e-10, atol=1e-13)


def test_a_product_with_what_comes_in_is_one_call():
    s = step("auto")
    program = s.program
    graph("auto", 0).gradients()
    assert {program.blocks[k].name for k in program.hoisted} == {"letters", "tree", "dropped", "passed"}
    assert "computed in part for all instances at once: letters, tree, dropped, passed" in s.explain()
    products = {f.name: len(re.findall(r"call (?:dot|gemm)", f.plan)) for f in s.functions}
    assert products["letters_pre"] == products["letters_fwd_save"] == 1
    assert [f.name for f in step("depth").functions if "_pre" in f.name] == []
    assert step("depth").program.hoisted == []


def test_a_mistake_there_names_the_node():
    @fd.block(out=State)
    def looking(s: State, k: fd.Attr(fd.i32)):
        return dict(h=s.h + w("E", V, 3)[k] @ w("D", 3, H), c=s.c)

    s = fd.compile([looking, fd.lib.constant(State, 0.0, "start")])
    with fd.record(s) as g:
        g.example()
        state = g.start()
        for k in (1, V + 2, 3):
            state = g.looking(state, k)
        with pytest.raises(sc.IndexingError, match=f"{V + 2}") as e:
            g.value(state)
    assert s.program.hoisted == [0]
    assert any("block looking(" in n and "node 2 of example 0" in n for n in e.value.__notes__)
