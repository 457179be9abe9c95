"""Schedules: exact numbers of batches, and what must hold of every one."""

import numpy as np
import pytest

from symc.fold.native import Rec
from symc.fold.schedule import SCHEDULES, Blocks, Graph, Workspace, merged, schedule


class Nodes:
    """A graph by hand: of each block its type and how many ports are not ragged."""

    def __init__(self, types, singles):
        self.op, self.aptr, self.args = [], [0], []
        self.blocks = Blocks(np.array(types), max(types) + 1, np.array(singles))

    def __call__(self, op, *args):
        self.op.append(op)
        self.args += args
        self.aptr.append(len(self.args))
        return len(self.op) - 1

    def graph(self):
        return Graph(*(np.array(x, np.int64) for x in (self.op, self.aptr, self.args, range(len(self.op)))))

    def batches(self, how):
        return schedule(self.graph(), self.blocks, how).batches


LEAF, NODE, LOSS = range(3)


def trees(count, seed=0):
    """Tree-LSTM with a loss at every node."""
    rng, g = np.random.default_rng(seed), Nodes([0, 0, 1], [0, 2, 1])
    for _ in range(count):
        row = [g(LEAF) for _ in range(rng.integers(10, 51))]
        for x in row:
            g(LOSS, x)
        while len(row) > 1:
            k = int(rng.integers(len(row) - 1))
            row[k : k + 2] = [g(NODE, row[k], row[k + 1])]
            g(LOSS, row[k])
    return g


def tagger(sentences, seed=0):
    """A bidirectional LSTM over words, some of which are made of characters by two LSTMs; a loss a word."""
    word, char, fc, bc, pair, fw, bw, start, wstart, loss = range(10)
    rng = np.random.default_rng(seed)
    g = Nodes([0, 1, 2, 2, 0, 3, 3, 2, 3, 4], [0, 0, 2, 2, 2, 2, 2, 0, 0, 2])
    for _ in range(sentences):
        row = []
        for _ in range(rng.integers(5, 40)):
            if rng.random() < 0.5:
                row.append(g(word))
                continue
            letters = [g(char) for _ in range(rng.integers(1, 15))]
            f = b = g(start)
            for x in letters:
                f = g(fc, f, x)
            for x in reversed(letters):
                b = g(bc, b, x)
            row.append(g(pair, f, b))
        f = b = g(wstart)
        forward, back = [], []
        for x in row:
            forward.append(f := g(fw, f, x))
        for x in reversed(row):
            back.append(b := g(bw, b, x))
        for a, c in zip(forward, reversed(back)):
            g(loss, a, c)
    return g


def language_model(sentences, seed=0):
    """An LSTM of different lengths, with a softmax a step."""
    word, cell, start, loss = range(4)
    rng, g = np.random.default_rng(seed), Nodes([0, 1, 1, 2], [0, 2, 0, 1])
    for _ in range(sentences):
        s = g(start)
        for _ in range(rng.integers(3, 40)):
            s = g(cell, s, g(word))
            g(loss, s)
    return g


def longest(g, block):
    """The longest chain of a block: no schedule runs it in fewer batches."""
    depth = []
    for k, op in enumerate(g.op):
        below = [depth[a] for a in g.args[g.aptr[k] : g.aptr[k + 1]]]
        depth.append(max(below, default=0) + (op == block))
    return max(depth)


def test_trees_take_a_batch_a_level_and_one_of_losses():
    g = trees(25)
    levels = longest(g, NODE)
    assert {how: g.batches(how) for how in SCHEDULES} == {
        "depth": 2 * levels + 2, "agenda": 2 * levels + 2, "strata": levels + 2, "auto": levels + 2}


def test_the_tagger_and_the_language_model_take_as_few_as_chains_are_long():
    g = tagger(32)
    chars, words = longest(g, 2), longest(g, 5)
    assert g.batches("strata") == 2 * chars + 2 * words + 6
    assert g.batches("depth") > g.batches("agenda") >= g.batches("strata") == g.batches("auto")
    g = language_model(32)
    assert g.batches("strata") == longest(g, 1) + 3
    assert g.batches("depth") == 2 * longest(g, 1) + 2


def random_graph(seed, nodes=200):
    rng, g = np.random.default_rng(seed), Nodes([0, 1, 0, 1, 2, 0], [0, 1, 2, 3, 0, 1])
    g(0)
    for _ in range(nodes):
        op = int(rng.integers(6))
        extra = rng.integers(0, 4) if op in (4, 5) else 0
        g(op, *[int(rng.integers(len(g.op))) for _ in range([0, 1, 2, 3, 0, 1][op] + extra)])
    return g


@pytest.mark.parametrize("how", SCHEDULES)
@pytest.mark.parametrize("seed", range(20))
def test_every_schedule_is_one(how, seed):
    """Arguments before what takes them, one block a batch, each node once, and rows that say where."""
    g, made = random_graph(seed), random_graph(seed)
    s = schedule(g.graph(), g.blocks, how)
    when, place, nodes = {}, dict.fromkeys(range(6), 0), []
    for k, r in enumerate(s.records):
        block, count = r[Rec.BLOCK], r[Rec.COUNT]
        assert count > 0 and r[Rec.PLACE] == place[block]
        these = s.node_at[s.abase[block] + place[block] :][:count].tolist()
        assert {g.op[i] for i in these} == {block}
        assert [s.row[i] for i in these] == list(range(r[Rec.ROW], r[Rec.ROW] + count))
        place[block] += count
        when |= dict.fromkeys(these, k)
        nodes += these
    assert sorted(nodes) == list(range(len(made.op)))
    for i in range(len(g.op)):
        assert all(when[a] < when[i] for a in g.args[g.aptr[i] : g.aptr[i + 1]])
    for t in range(3):
        rows = sorted(s.row[i] for i in range(len(g.op)) if g.blocks.types[g.op[i]] == t)
        assert rows == list(range(s.sizes[t]))
    arguments_are_rows(g, s)


def arguments_are_rows(g, s):
    ports = g.blocks.ports
    for b in range(6):
        singles, element = int(g.blocks.singles[b]), 0
        for p in range(int(s.counts[b])):
            i = s.node_at[s.abase[b] + p]
            rows = [s.row[a] for a in g.args[g.aptr[i] : g.aptr[i + 1]]]
            assert [s.index[s.ibase[b * ports + j] + p] for j in range(singles)] == rows[:singles]
            for row in rows[singles:]:
                at = s.mbase[b] + element
                assert (s.index[at], s.whole[at]) == (row, p)
                element += 1
        assert element == s.many[b]


def test_empty_and_single_and_deep():
    g = Nodes([0, 0], [0, 1])
    assert [g.batches(how) for how in SCHEDULES] == [0] * 4
    x = g(0)
    assert [g.batches(how) for how in SCHEDULES] == [1] * 4
    for _ in range(10_000):
        x = g(1, x)
    assert [g.batches(how) for how in SCHEDULES] == [10_001] * 4


def test_merged_examples_are_their_graphs_side_by_side():
    g, nptr, rng = random_graph(3), [0], np.random.default_rng(0)
    g = Nodes([0, 1], [0, 2])
    for _ in range(10):
        first = g(0)
        for _ in range(rng.integers(0, 6)):
            g(1, int(rng.integers(first, len(g.op))), first)
        nptr.append(len(g.op))
    whole, nptr = g.graph(), np.array(nptr)
    picked = np.array([7, 2, 2, 9])
    m = merged(picked, nptr, whole.aptr[nptr], whole)
    at = 0
    for x in picked:
        for i in range(nptr[x], nptr[x + 1]):
            assert m.op[at] == g.op[i] and m.apos[at] == i
            args = np.array(g.args[g.aptr[i] : g.aptr[i + 1]])
            np.testing.assert_array_equal(m.args[m.aptr[at] : m.aptr[at + 1]] - (at - i), args)
            at += 1
    assert at == len(m.op)


def test_a_workspace_may_be_used_again():
    space = Workspace()
    for seed in range(5):
        g = random_graph(seed, nodes=50 * (1 + seed % 3))
        mine = schedule(g.graph(), g.blocks, "strata", space)
        fresh = schedule(g.graph(), g.blocks, "strata")
        np.testing.assert_array_equal(mine.records, fresh.records)
        np.testing.assert_array_equal(mine.row, fresh.row)


@pytest.mark.parametrize("how", SCHEDULES)
def test_together_takes_no_more_batches_than_one_by_one(how):
    examples = [trees(1, seed) for seed in range(6)] + [trees(2, 9)]
    alone = [g.batches(how) for g in examples]
    whole = Nodes([0, 0, 1], [0, 2, 1])
    for g in examples:
        first = len(whole.op)
        for k, op in enumerate(g.op):
            whole(op, *[a + first for a in g.args[g.aptr[k] : g.aptr[k + 1]]])
    assert max(alone) <= whole.batches(how) < sum(alone)
