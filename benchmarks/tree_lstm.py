"""Tree-LSTM over random trees, a loss at every node: forward, backward and all gradients, symc.fold beside others.

    taskset -c 0 python -m benchmarks.tree_lstm --torch PYTHON --dynet PYTHON [--hidden 150] [--trees 25]

``PYTHON``: one that has the package (of DyNet, ``dynet38``). PyTorch runs by hand-made batches, level by level on the
same trees, and one node at a time; DyNet batches by itself, by its agenda. They run in processes of their own, one
thread each, and take turns; the best of all rounds counts.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import turns

V, K = 1000, 5


def trees(count: int, seed: int = 0) -> list:
    """Nested pairs of words, each with a class: (class, word) or (class, left, right)."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        row = [(int(rng.integers(K)), int(rng.integers(V))) for _ in range(rng.integers(10, 51))]
        while len(row) > 1:
            k = int(rng.integers(len(row) - 1))
            row[k : k + 2] = [(int(rng.integers(K)), row[k], row[k + 1])]
        found.append(row[0])
    return found


def weights(h: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = dict(E=(V, h), W=(h, 3 * h), b=(3 * h,), U=(2 * h, 3 * h), F1=(h, h), F2=(h, h), bf=(h,), O=(h, K))
    return {k: (rng.standard_normal(s) * 0.1).astype("f4") for k, s in shapes.items()}


def with_symc(h: int, examples: list):
    """Function of the loss and all gradients, and the one that encodes the examples first."""
    import symc as sc
    import symc.fold as fd

    w = {k: sc.shared(a, k) for k, a in weights(h).items()}
    state = fd.Struct("State", h=fd.f32[h], c=fd.f32[h])
    sigmoid = sc.special.expit

    @fd.block(out=state, word=fd.Attr(fd.i32))
    def leaf(word):
        i, o, u = sc.split(w["E"][word] @ w["W"] + w["b"], 3)
        c = sigmoid(i) * sc.tanh(u)
        return dict(h=sigmoid(o) * sc.tanh(c), c=c)

    @fd.block(out=state, l=state, r=state)
    def node(l, r):
        i, o, u = sc.split(sc.concatenate([l.h, r.h]) @ w["U"] + w["b"], 3)
        f1, f2 = sigmoid(l.h @ w["F1"] + w["bf"]), sigmoid(r.h @ w["F2"] + w["bf"])
        c = sigmoid(i) * sc.tanh(u) + f1 * l.c + f2 * r.c
        return dict(h=sigmoid(o) * sc.tanh(c), c=c)

    @fd.loss(s=state, y=fd.Attr(fd.i32))
    def nll(s, y):
        z = s.h @ w["O"]
        return sc.special.logsumexp(z) - z[y]

    tree = fd.Rec("tree")
    tree.define(fd.OneOf(len, {2: leaf(lambda t: t[1]), 3: node(tree[1], tree[2])}).also(nll(fd.self_, lambda t: t[0])))
    step = fd.compile(tree, threads=1)
    data = step.encode(examples)
    return {"symc": lambda: step.gradients(data)[0], "symc forward": lambda: step.loss(data)}


def with_torch(h: int, examples: list):
    import torch

    torch.set_num_threads(1)
    w = {k: torch.tensor(a, requires_grad=True) for k, a in weights(h).items()}
    levels: list[list] = []
    leaves: list = []

    def place(t: list) -> tuple[int, int]:
        """The row of a node among all, and its level."""
        if len(t) == 2:
            leaves.append(t)
            return len(leaves) - 1, 0
        (a, da), (b, db) = place(t[1]), place(t[2])
        d = max(da, db)
        while len(levels) <= d:
            levels.append([])
        levels[d].append(((a, da), (b, db), t[0]))
        return len(levels[d]) - 1, d + 1

    for t in examples:
        place(t)
    starts = np.cumsum([0, len(leaves), *map(len, levels)])
    rows = [[torch.tensor([starts[x[s][1]] + x[s][0] for x in level]) for s in (0, 1)] for level in levels]
    words = torch.tensor([t[1] for t in leaves])
    labels = torch.tensor([t[0] for t in leaves] + [x[2] for level in levels for x in level])

    def of_leaves(words):
        i, o, u = (w["E"][words] @ w["W"] + w["b"]).chunk(3, -1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def of_nodes(lh, lc, rh, rc):
        i, o, u = (torch.cat([lh, rh], -1) @ w["U"] + w["b"]).chunk(3, -1)
        f1, f2 = torch.sigmoid(lh @ w["F1"] + w["bf"]), torch.sigmoid(rh @ w["F2"] + w["bf"])
        c = torch.sigmoid(i) * torch.tanh(u) + f1 * lc + f2 * rc
        return torch.sigmoid(o) * torch.tanh(c), c

    def finish(loss):
        for a in w.values():
            a.grad = None
        loss.backward()
        return float(loss.detach())

    def batched():
        hs, cs = ([x] for x in of_leaves(words))
        for left, right in rows:
            all_h, all_c = torch.cat(hs), torch.cat(cs)
            h1, c1 = of_nodes(all_h[left], all_c[left], all_h[right], all_c[right])
            hs.append(h1)
            cs.append(c1)
        return finish(torch.nn.functional.cross_entropy(torch.cat(hs) @ w["O"], labels, reduction="sum"))

    def eager():
        losses = []

        def run(t):
            h1, c1 = of_leaves(torch.tensor([t[1]])) if len(t) == 2 else of_nodes(*run(t[1]), *run(t[2]))
            losses.append(torch.nn.functional.cross_entropy(h1 @ w["O"], torch.tensor([t[0]]), reduction="sum"))
            return h1, c1

        for t in examples:
            run(t)
        return finish(sum(losses))

    return {"torch by hand": batched, "torch eager": eager}


def with_dynet(h: int, examples: list):
    import _dynet as dy

    p = dy.DynetParams()
    p.set_mem(2048)
    p.set_autobatch(1)
    p.init()
    m, w = dy.ParameterCollection(), weights(h)
    table = m.lookup_parameters_from_numpy(w.pop("E"))
    own = {k: m.parameters_from_numpy(a.T.copy() if a.ndim == 2 else a) for k, a in w.items()}

    def affine(b, k, x):
        return dy.affine_transform([own[b], own[k], x])

    def run(t, losses):
        if len(t) == 2:
            z = affine("b", "W", table[t[1]])
        else:
            (lh, lc), (rh, rc) = run(t[1], losses), run(t[2], losses)
            z = affine("b", "U", dy.concatenate([lh, rh]))
        i, o, u = (dy.pick_range(z, k * h, k * h + h) for k in range(3))
        c = dy.cmult(dy.logistic(i), dy.tanh(u))
        if len(t) > 2:
            c += dy.cmult(dy.logistic(affine("bf", "F1", lh)), lc) + dy.cmult(dy.logistic(affine("bf", "F2", rh)), rc)
        out = dy.cmult(dy.logistic(o), dy.tanh(c))
        losses.append(dy.pickneglogsoftmax(own["O"] * out, t[0]))
        return out, c

    def once():
        dy.renew_cg()
        losses: list = []
        for t in examples:
            run(t, losses)
        total = dy.esum(losses)
        value = total.scalar_value()
        total.backward()
        return value

    once.model = m  # type: ignore[attr-defined]  # parameters do not keep it
    return {"dynet": once}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=150)
    parser.add_argument("--trees", type=int, default=25)
    turns.arguments(parser)
    args = parser.parse_args()
    examples = trees(args.trees)
    makers = {"symc": with_symc, "torch": with_torch, "dynet": with_dynet}
    if args.serve:
        return turns.serve(makers[args.serve](args.hidden, examples))
    more = ["--hidden", str(args.hidden), "--trees", str(args.trees)]
    found = turns.measure(__file__, more, turns.peers(args, {"symc": "symc", "torch": "torch", "dynet": "dynet"}),
                          args.rounds, {"torch eager": 1, "dynet": 3})
    turns.report(f"{args.trees} trees, hidden {args.hidden}", found)


if __name__ == "__main__":
    main()
