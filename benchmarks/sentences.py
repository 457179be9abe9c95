"""Sentences of different lengths: forward, backward and all gradients, symc.fold beside PyTorch and DyNet.

    taskset -c 0 python -m benchmarks.sentences --torch PYTHON --dynet PYTHON [--program tagger]

``lstm``: 64 sequences of 5 to 60 vectors (``--equal``: of 30), D 128, H 256; PyTorch packs or pads them. ``tagger``:
32 sentences, words by their vectors or, if rare, by LSTMs over their letters, a bidirectional LSTM and an MLP, of the
sizes of dynet-benchmark; DyNet batches by agenda (1) and by depth (2).
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from benchmarks import turns

D, H = 128, 256
WORD, LETTER, SPELLED, HIDDEN, MLP, TAGS, LETTERS, WORDS = 128, 20, 64, 50, 32, 9, 60, 2000


def drawn(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.1).astype("f4")


# --- a recurrence -----------------------------------------------------------------------------------------------------


def sequences(equal: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Vectors, longest sequence first, and the weights, gates in the order i, f, o, g."""
    rng = np.random.default_rng(0)
    lengths = np.sort(np.full(64, 30) if equal else rng.integers(5, 61, 64))[::-1]
    return [drawn(rng, n, D) for n in lengths], [drawn(rng, D, 4 * H), drawn(rng, H, 4 * H), drawn(rng, 4 * H)]


def lstm_symc(equal: bool) -> turns.Ways:
    import symc as sc
    import symc.fold as fd

    rows, made = sequences(equal)
    w = [sc.shared(a, n) for a, n in zip(made, "wub", strict=True)]
    table, state = sc.shared(np.concatenate(rows), "x"), fd.Struct("State", h=fd.f32[H], c=fd.f32[H])

    @fd.loss(s=state)
    def loss(s):
        return sc.sum(s.h)

    cell = fd.lib.lstm(state, fd.f32[D], *w)
    model = fd.Map(fd.lib.embed(table)) >> fd.RNN(cell, fd.lib.constant(state)()) >> fd.Map(loss)
    step = fd.compile(model, w, threads=1)
    ends = np.cumsum([0, *map(len, rows)]).tolist()
    data = step.encode([list(range(a, b)) for a, b in itertools.pairwise(ends)])
    return {"symc": lambda: step.gradients(data)[0]}


def lstm_torch(equal: bool) -> turns.Ways:
    import torch

    torch.set_num_threads(1)
    rows, (w, u, b) = sequences(equal)
    order = np.r_[: 2 * H, 3 * H : 4 * H, 2 * H : 3 * H]  # its gates are i, f, g, o
    net = torch.nn.LSTM(D, H)
    with torch.no_grad():
        for p, a in ((net.weight_ih_l0, w.T), (net.weight_hh_l0, u.T), (net.bias_ih_l0, b), (net.bias_hh_l0, 0 * b)):
            p.copy_(torch.tensor(a[order]))
    xs = [torch.tensor(x) for x in rows]
    lengths = torch.tensor([len(x) for x in rows])
    padded = torch.nn.utils.rnn.pad_sequence(xs)
    mask = (torch.arange(int(lengths.max()))[:, None] < lengths[None]).float()[:, :, None]

    def finish(loss):
        net.zero_grad()
        loss.backward()
        return float(loss.detach())

    return {"torch packed": lambda: finish(net(torch.nn.utils.rnn.pack_sequence(xs))[0].data.sum()),
            "torch padded": lambda: finish((net(padded)[0] * mask).sum())}


# --- a tagger ---------------------------------------------------------------------------------------------------------


def sentences() -> list[list[tuple[int, list[int], int]]]:
    """Words as their number (-1 if rare), letters and tag."""
    rng = np.random.default_rng(0)
    letters = [rng.integers(0, LETTERS, rng.integers(2, 11)).tolist() for _ in range(2 * WORDS)]

    def word() -> tuple[int, list[int], int]:
        k = int(min(rng.zipf(1.3), 2 * WORDS) - 1)
        return (k if k < WORDS // 4 else -1), letters[k], int(rng.integers(TAGS))

    return [[word() for _ in range(rng.integers(5, 45))] for _ in range(32)]


def tagger_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    made = {"E": drawn(rng, WORDS, WORD), "C": drawn(rng, LETTERS, LETTER), "M": drawn(rng, 2 * HIDDEN, MLP),
            "O": drawn(rng, MLP, TAGS)}
    for name, inputs, size in (("cf", LETTER, SPELLED), ("cb", LETTER, SPELLED), ("f", WORD, HIDDEN),
                               ("b", WORD, HIDDEN)):
        made |= {f"{name}w": drawn(rng, inputs, 4 * size), f"{name}u": drawn(rng, size, 4 * size),
                 f"{name}b": drawn(rng, 4 * size)}
    return made


def tagger_symc(_: bool) -> turns.Ways:
    import symc as sc
    import symc.fold as fd

    p = {k: sc.shared(a, k) for k, a in tagger_weights().items()}

    def both(one: str, other: str, inputs: int, size: int) -> tuple:
        state = fd.Struct("State", h=fd.f32[size], c=fd.f32[size])
        cells = [fd.lib.lstm(state, fd.f32[inputs], p[n + "w"], p[n + "u"], p[n + "b"], n) for n in (one, other)]
        return cells, fd.lib.constant(state)(), state

    (cf, cb), none, spelled = both("cf", "cb", LETTER, SPELLED)
    (f, b), start, state = both("f", "b", WORD, HIDDEN)

    @fd.block(out=fd.f32[WORD], x=spelled, y=spelled)
    def ends(x, y):
        return sc.concatenate([x.h, y.h])

    @fd.loss(x=state, y=state, tag=fd.Attr(fd.i32))
    def nll(x, y, tag):
        z = sc.tanh(sc.concatenate([x.h, y.h]) @ p["M"]) @ p["O"]
        return sc.special.logsumexp(z) - z[tag]

    spell = (fd.InputTransform(lambda w: w[1]) >> fd.Map(fd.lib.embed(p["C"], "letter"))
             >> fd.AllOf(fd.Fold(cf, none), fd.Fold(cb, none, reverse=True)) >> ends)
    word = fd.OneOf(lambda w: w[0] < 0, {True: spell, False: fd.lib.embed(p["E"], "word")(lambda w: w[0])})
    states = fd.Map(word) >> fd.AllOf(fd.RNN(f, start), fd.RNN(b, start, reverse=True)) >> fd.Zip()
    tags = fd.InputTransform(lambda s: [w[2] for w in s])
    model = fd.AllOf(states, tags) >> fd.ZipWith(nll(lambda x: x[0][0], lambda x: x[0][1], lambda x: x[1]))
    step = fd.compile(model, list(p.values()), threads=1)
    data = step.encode(sentences())
    return {"symc": lambda: step.gradients(data)[0]}


def tagger_dynet(strategy: int) -> turns.Ways:
    import _dynet as dy

    init = dy.DynetParams()
    init.set_mem(2048)
    init.set_autobatch(strategy)
    init.init()
    w, m, examples = tagger_weights(), dy.ParameterCollection(), sentences()
    words, letters = m.lookup_parameters_from_numpy(w["E"]), m.lookup_parameters_from_numpy(w["C"])
    mlp, out = m.parameters_from_numpy(w["M"].T.copy()), m.parameters_from_numpy(w["O"].T.copy())
    cells = {}
    for name, inputs, size in (("cf", LETTER, SPELLED), ("cb", LETTER, SPELLED), ("f", WORD, HIDDEN),
                               ("b", WORD, HIDDEN)):
        cells[name] = dy.VanillaLSTMBuilder(1, inputs, size, m)
        bias = w[name + "b"].copy()
        bias[size : 2 * size] -= 1  # it adds 1 to the forget gate
        for q, a in zip(cells[name].get_parameters()[0], (w[name + "w"].T, w[name + "u"].T, bias), strict=True):
            q.set_value(np.ascontiguousarray(a))

    def once() -> float:
        dy.renew_cg()
        losses = []
        start = {k: c.initial_state() for k, c in cells.items()}
        for s in examples:
            xs = []
            for k, spelled, _ in s:
                if k < 0:
                    c = [letters[i] for i in spelled]
                    xs.append(dy.concatenate([start["cf"].transduce(c)[-1], start["cb"].transduce(c[::-1])[-1]]))
                else:
                    xs.append(words[k])
            left, right = start["f"].transduce(xs), start["b"].transduce(xs[::-1])[::-1]
            for h, g, (_, _, tag) in zip(left, right, s, strict=True):
                losses.append(dy.pickneglogsoftmax(out * dy.tanh(mlp * dy.concatenate([h, g])), tag))
        total = dy.esum(losses)
        value = total.scalar_value()
        total.backward()
        return value

    once.model = m  # type: ignore[attr-defined]  # parameters do not keep it
    return {f"dynet {strategy}": once}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", choices=("lstm", "tagger"), default="lstm")
    parser.add_argument("--equal", action="store_true")
    turns.arguments(parser)
    args = parser.parse_args()
    if args.serve:
        role, _, strategy = args.serve.partition("-")
        maker = {"symc": {"lstm": lstm_symc, "tagger": tagger_symc}[args.program], "torch": lstm_torch,
                 "dynet": tagger_dynet}[role]
        return turns.serve(maker(int(strategy) if strategy else args.equal))
    roles = {"lstm": {"symc": "symc", "torch": "torch"},
             "tagger": {"symc": "symc", "dynet-1": "dynet", "dynet-2": "dynet"}}[args.program]
    more = ["--program", args.program, *(["--equal"] if args.equal else [])]
    found = turns.measure(__file__, more, turns.peers(args, roles), args.rounds, {"dynet 1": 2, "dynet 2": 2})
    words = sum(map(len, sentences())) if args.program == "tagger" else sum(map(len, sequences(args.equal)[0]))
    turns.report(f"{args.program}, {words} words", found)


if __name__ == "__main__":
    main()
