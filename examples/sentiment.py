"""Sentiment of sentences by a Tree-LSTM: a graph of another shape for each sentence, trained in minibatches.

The trees are those of the Stanford Sentiment Treebank, files of lines such as `(3 (2 It) (4 works))`; without files the
words of a small grammar are used, in which `not` turns what it stands before. Blocks say what a leaf and a node
compute, for one; `fd.compile` runs the nodes of all trees of a minibatch together, level by level.
"""

import argparse
import gzip
import re
from pathlib import Path

import numpy as np

import symc as sc
import symc.fold as fd


def read(path: Path) -> list:
    """The trees of a file: (label, word) or (label, left, right)."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [parse(line) for line in file if line.strip().startswith("(")]


def parse(line: str) -> tuple:
    stack: list[list] = [[]]
    for token in re.findall(r"\(|\)|[^ ()\n]+", line):
        if token == "(":
            stack.append([])
        elif token == ")":
            label, *rest = stack.pop()
            stack[-1].append((int(label), *rest))
        else:
            stack[-1].append(token)
    return stack[0][0]


def leaves(t: tuple) -> list[str]:
    return [t[1]] if len(t) == 2 else leaves(t[1]) + leaves(t[2])


def made_up(count: int, rng: np.random.Generator) -> list:
    """Trees over words with a value each, which `not` negates and an inner node adds up."""
    words = {"good": 1, "great": 2, "bad": -1, "awful": -2, "film": 0, "plot": 0}

    def tree(depth: int) -> tuple[int, tuple]:
        if depth == 0 or rng.random() < 0.2:
            word = list(words)[rng.integers(len(words))]
            return words[word], (int(np.clip(words[word], -2, 2)) + 2, word)
        value, right = tree(depth - 1)
        if rng.random() < 0.3:
            value, left = -value, (2, "not")
        else:
            more, left = tree(depth - 1)
            value = int(np.clip(value + more, -2, 2))
        return value, (value + 2, left, right)

    return [tree(4)[1] for _ in range(count)]


def tree_lstm(words: dict[str, int], size: int, rng: np.random.Generator) -> tuple[fd.Combinator, list]:
    """The model and its parameters: a class at every node, and the scores of the root as a metric."""
    def weights(name: str, *shape: int) -> sc.Tensor:
        return sc.shared((rng.standard_normal(shape) / np.sqrt(shape[0])).astype("float32"), name)

    table = sc.shared(rng.standard_normal((len(words) + 1, size)).astype("float32") * 0.1, "words")
    w, u, f = weights("w", size, 3 * size), weights("u", 2 * size, 3 * size), weights("f", 2 * size, 2 * size)
    b, out = sc.shared(np.zeros(5 * size, "float32"), "b"), weights("out", size, 5)
    state = fd.Struct("State", h=fd.f32[size], c=fd.f32[size])

    @fd.block(out=state, word=fd.Attr(fd.i32))
    def leaf(word):
        i, o, g = sc.split(table[word] @ w + b[: 3 * size], 3)
        c = sc.sigmoid(i) * sc.tanh(g)
        return dict(h=sc.sigmoid(o) * sc.tanh(c), c=c)

    @fd.block(out=fd.f32[5], s=state)
    def scores(s):
        return s.h @ out

    node, nll = fd.lib.tree_lstm(state, u, f, b), fd.lib.cross_entropy(fd.f32[5])
    tree = fd.Rec("tree")
    tree.define(
        fd.OneOf(len, {2: leaf(lambda t: words.get(t[1], len(words))), 3: node(tree[1], tree[2])})
        .also(nll(scores(fd.self_), lambda t: t[0])))
    return tree >> scores >> fd.Metric("scores"), [table, w, u, f, b, out]


def accuracy(step: fd.Step, data: fd.Dataset, trees: list) -> float:
    """Share of trees whose root has the right class."""
    return float((step.metrics(data)["scores"].argmax(axis=1) == [t[0] for t in trees]).mean())


def main(train: Path | None = None, test: Path | None = None, size: int = 128, epochs: int = 3, batch: int = 50,
         rate: float = 0.05, count: int = 2000, show: bool = True) -> float:
    """Train, and return the accuracy on trees that were not trained on."""
    rng = np.random.default_rng(0)
    trees = read(train) if train else made_up(count, rng)
    others = read(test) if test else made_up(count // 4, rng)
    known = dict.fromkeys(word for t in trees for word in leaves(t))
    model, params = tree_lstm({word: k for k, word in enumerate(known)}, size, rng)
    step = fd.compile(model, params, sc.optim.adagrad(rate), mean=True)
    data, held = step.encode(trees), step.encode(others)
    for epoch in range(epochs):
        losses = [step(minibatch) for minibatch in data.shuffled(batch, seed=epoch)]
        if show:
            print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy(step, held, others):.3f}")
    if show:
        print(step.explain())
    return accuracy(step, held, others)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, help="a file of trees; a small grammar's by default")
    parser.add_argument("--test", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=128)
    arguments = parser.parse_args()
    main(arguments.train, arguments.test, arguments.size, arguments.epochs)
