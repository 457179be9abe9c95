"""Mistakes in blocks, graphs and examples: what is wrong, where, and what to do."""

import numpy as np
import pytest

import symc as sc
import symc.fold as fd
from symc.errors import IndexingError, InputError, NonFiniteError, ShapeError, SymcError

State = fd.Struct("State", h=fd.f32[4], c=fd.f32[4])
table = sc.shared(np.ones((6, 4), "float32"), "table")


@fd.block(out=State)
def leaf(word: fd.Attr(fd.i32)):
    return dict(h=table[word], c=table[word])


@fd.block(out=State)
def node(left: State, right: State):
    return dict(h=left.h + right.h, c=left.c * right.c)


@fd.block(out=fd.f32[4])
def logs(s: State):
    return sc.log(s.h - 1)


@fd.block(out=State)
def several(kids: fd.Many(State)):
    return dict(h=kids.sum(kids.h), c=kids.max(kids.c, initial=0.0))


def step(*blocks, **options):
    return fd.compile(list(blocks or (leaf, node, logs, several)), **options)


def raised(kind, fn, *parts):
    with pytest.raises(kind) as e:
        fn()
    text = "\n".join([str(e.value), *getattr(e.value, "__notes__", ())])
    for part in parts:
        assert part in text, text
    return text


def test_recording():
    with fd.record(step()) as g:
        g.example()
        x, y = g.leaf(1), g.logs(g.leaf(2))
        raised(InputError, lambda: g.node(x, y), "block node, port right, in example 0: expected State(h: f32[4], c: "
               "f32[4]), but node 2 (logs) is f32[4]", "test_fold_errors.py")
        raised(InputError, lambda: g.node(x, 99), "there is no node 99 yet, of 3", "a graph has no cycles")
        raised(InputError, lambda: g.node(x, -1), "there is no node -1 yet")
        raised(InputError, lambda: g.node(x, "y"), "expected a node of type State", "not str 'y'")
        raised(InputError, lambda: g.node(x), "block node takes 2 arguments, but got nothing at port right, in")
        raised(InputError, lambda: g.node(x, x, x), "3 arguments")
        raised(InputError, lambda: g.node(x, x, middle=x), "no port 'middle'")
        raised(InputError, lambda: g.several(x), "port kids, in example 0: expected a list of nodes of type State")
        raised(InputError, lambda: g.nod(x, x), "no block is called 'nod'", "did you mean 'node'?")
        assert len(g) == 3  # what was refused is not there


def test_attributes():
    with fd.record(step()) as g:
        g.leaf("one")
        raised(InputError, g.run, "block leaf: attribute word is i32, but was given 'one'")
    with fd.record(step()) as g:
        g.leaf(1)
        g.leaf(1.5)
        raised(InputError, g.run, "attribute word is i32, but was given 1.5")
    with fd.record(step()) as g:
        g.example()
        g.leaf(1)
        g.example()
        g.leaf(2)
        g.leaf(6)
        raised(IndexingError, lambda: g.run(train=False), "in block leaf(word: i32)", "node 1 of example 1")
        raised(IndexingError, g.flush, "node 1 of example 1")


def test_a_nan_is_named():
    s = step(nan_guard=True)
    table.set_value(np.full((6, 4), 2, "float32"))
    with fd.record(s) as g:
        for word in (1, 2):
            g.example()
            g.logs(g.leaf(word))
        assert g.run() == 0
        table.set_value(np.array([[2.0] * 4, [2.0] * 4, [1.0, 2, 2, 2], *[[2.0] * 4] * 3], "float32"))
        raised(NonFiniteError, g.run, "block logs, node 1 of example 1: its result is not finite")


def test_bodies():
    def wrong(**ports):
        return lambda fn: fd.block(out=State, **ports)(fn).batched

    raised(InputError, lambda: wrong(s=State)(lambda s: dict(h=s.x, c=s.c)), "s has no field 'x': it is State")
    raised(InputError, lambda: wrong(s=State)(lambda s: dict(h=s.h)), "returns no 'c'")
    raised(InputError, lambda: wrong(s=State)(lambda s: dict(h=s.h, c=s.c, d=s.c)), "returns 'd', which")
    raised(InputError, lambda: wrong(s=State)(lambda s: s.h), "returns Tensor, its output is State")
    raised(ShapeError, lambda: wrong(s=State)(lambda s: (s.h[:2], s.c)), "result 'h' is f32[2], its type says f32[4]")
    raised(InputError, lambda: wrong(k=fd.Many(State))(lambda k: (k.h, k.c)), "the result is another for each child")
    raised(InputError, lambda: wrong(s=State)(lambda s: ("a", s.c)), "result 'h' is not an array but str")


def test_declarations():
    raised(InputError, lambda: fd.block(out=State)(lambda x: x), "port x has no type")
    raised(InputError, lambda: fd.block(out="State")(lambda: 0), "out must be a type, not 'State'")
    raised(InputError, lambda: fd.block(out=State, y=State)(lambda x: x), "has no port 'y'")
    raised(InputError, lambda: fd.block(out=State, a=fd.Many(State), b=fd.Many(State))(lambda a, b: a), "several ports")
    raised(InputError, lambda: fd.Struct("S"), "S has no fields")
    raised(InputError, lambda: fd.Struct("S", x=3), "S.x must be an array type")
    raised(InputError, lambda: fd.Attr(State), "an attribute is an array type")
    raised(InputError, lambda: fd.Many(3), "fd.Many takes a type")


def test_models():
    raised(InputError, lambda: fd.compile([logs]), "no block makes what port s takes, State")
    raised(InputError, lambda: fd.compile(3), "a model of blocks, or a list of blocks, not 3")
    raised(InputError, lambda: step(schedule="deep"), "no schedule is called 'deep'")
    raised(InputError, lambda: step(leaf, leaf, fd.lib.embed(table, "leaf")), "a block is called 'leaf', and so is")
    raised(InputError, lambda: step(fd.lib.embed(table, "run")), "and so is a method of recorded graphs")
    raised(InputError, lambda: step(params=[3]), "params holds int 3, not a state")
    raised(InputError, lambda: step().encode([1]), "there is no model", "with fd.record(step) as g")
    raised(InputError, lambda: leaf(1, 2), "block leaf takes 1 arguments, not 2")
    raised(InputError, lambda: leaf(wort=1), "has no port 'wort'", "did you mean 'word'?")
    model = fd.OneOf(len, {1: fd.Nth(0) >> leaf(fd.InputTransform(int)), 2: node(fd.Nth(0), fd.Nth(1))})
    raised(InputError, lambda: fd.compile(model).encode([[1], [3, 4]]), "no node 3 yet", "in example 1: [3, 4]")
    s = fd.compile(model)
    raised(InputError, lambda: s.encode([[1]])[3], "there are 1 examples, not one with number 3")
    data = fd.compile(fd.InputTransform(int) >> leaf).encode([1])
    raised(InputError, lambda: s.loss(data), "this data was encoded for a step of other blocks")
    with fd.record(s) as g:
        raised(InputError, lambda: g.run(train=True), "there is no optimizer to train with")


def graph_of_mistakes():
    """Blocks, a step of them by hand, and one of a model over numbers and pairs."""
    rng = np.random.default_rng(0)
    table = sc.shared(rng.normal(size=(9, 4)), "table")

    @fd.block(out=fd.f64[4])
    def leaf(word: fd.Attr(fd.i32)):
        return table[word]

    @fd.block(out=fd.f64[4], left=fd.f64[4], right=fd.f64[4])
    def node(left, right):
        return left * right

    @fd.block(out=fd.f64, kids=fd.Many(fd.f64[4]))
    def pool(kids):
        return sc.sum(kids.sum(kids.value))

    @fd.loss(s=fd.f64[4])
    def nll(s):
        return sc.log(s[0])

    tree = fd.Rec("tree")
    tree.define(fd.OneOf(lambda x: isinstance(x, int), {True: leaf, False: node(tree[0], tree[1])}))
    return fd.compile([leaf, node, pool, nll]), fd.compile(tree >> nll, nan_guard=True), tree, nll


@pytest.mark.parametrize(("mistake", "said"), [
    (lambda g: g.node(g.leaf(1), g.pool([])), "expected f64[4], but node 1 (pool) is f64"),
    (lambda g: g.pool([g.leaf(1), g.pool([])]), "port kids, in example 0: expected f64[4], but node 1 (pool) is f64"),
    (lambda g: g.pool(g.leaf(1)), "expected a list of nodes of type f64[4], not one"),
    (lambda g: g.pool(x for x in [g.leaf(1)]), "not generator"),
    (lambda g: g.node(g.leaf(1), 7), "there is no node 7 yet, of 1"),
    (lambda g: g.value(3), "there is no node 3, of 0"),
    (lambda g: g.value("x"), "there is no node 'x'"), (lambda g: g.rewind(3), "what g.mark() gave, not 3"),
    (lambda g: g.value(g.node(g.leaf(1), g.leaf(2.5))), "was given 2.5, at node 1 of example 0"),
    (lambda g: g.value(g.leaf("a")), "was given 'a', at node 0 of example 0"),
    (lambda g: g.value(g.leaf(99)), "node 0 of example 0"),
])
def test_a_graph_by_hand_with_a_mistake_says_where(mistake, said):
    step = graph_of_mistakes()[0]
    with fd.record(step) as g, pytest.raises(SymcError) as e:
        g.example()
        mistake(g)
    text = str(e.value) + "".join(getattr(e.value, "__notes__", ()))
    assert said in text and "test_fold_errors.py" in text, text


@pytest.mark.parametrize(("mistake", "said"), [
    (lambda s, tree, nll: s.loss([(1, 2), (3, 99)]), "node 1 of example 1"),
    (lambda s, tree, nll: fd.compile(tree >> nll(fd.self_)).encode([1]), "fd.self_"),
    (lambda s, tree, nll: s.loss(nll), "examples are a sequence, not Block"),
    (lambda s, tree, nll: s.encode([1, 2])[5], "there are 2 examples, not one with number 5"),
    (lambda s, tree, nll: s.encode([1, 2])["a"], "taken by number"),
    (lambda s, tree, nll: s.encode([1, 2])[np.array([True])], "a mask of 2"),
    (lambda s, tree, nll: list(s.encode([1]).shuffled(0)), "some examples, not 0"),
    (lambda s, tree, nll: fd.compile(tree >> nll, seed="a"), "seed is a number"),
    (lambda s, tree, nll: fd.compile(tree >> nll, max_arena_bytes="1GB"), "max_arena_bytes is a number"),
    (lambda s, tree, nll: fd.lockstep(s, lambda g, x: 3, [1]), "generator function"),
    (lambda s, tree, nll: s.loss([(1, 2), (1, (2, 3)), 4] * 3), "is not finite"),
])
def test_a_mistake_in_data_says_where(mistake, said):
    _, step, tree, nll = graph_of_mistakes()
    with pytest.raises(SymcError) as e:
        mistake(step, tree, nll)
    text = str(e.value) + "".join(getattr(e.value, "__notes__", ()))
    assert said in text and "test_fold_errors.py" in text, text


def test_a_mask_takes_examples():
    step = graph_of_mistakes()[1]
    data = step.encode([1, (1, 2), 3])
    assert data[np.array([True, False, True])].picked.tolist() == [0, 2] and len(data[[]]) == 0
