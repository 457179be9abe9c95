"""Parts of speech by a bidirectional LSTM over words, of which rare ones are spelled by LSTMs over their letters.

No sentence is padded: each has a graph of its own, and what can run together does, whatever the lengths. The files are
those of Universal Dependencies as columns, `form<tab>tag<tab>...`, with an empty line after a sentence; without files,
words of a made-up language are tagged, whose endings say what they are.
"""

import argparse
import gzip
from collections import Counter
from pathlib import Path

import numpy as np

import symc as sc
import symc.fold as fd

Sentence = tuple[list[str], list[str]]


def read(path: Path) -> list[Sentence]:
    """Words and tags of the sentences of a file."""
    found: list[Sentence] = [([], [])]
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            if line.startswith("#"):
                continue
            columns = line.rstrip("\n").split("\t")
            if len(columns) > 1:
                found[-1][0].append(columns[0])
                found[-1][1].append(columns[1])
            elif found[-1][0]:
                found.append(([], []))
    return [s for s in found if s[0]]


def made_up(count: int, rng: np.random.Generator) -> list[Sentence]:
    """Nouns end in a, verbs in ir or er, what stands between two nouns is a name without an ending of its own."""
    def stem() -> str:
        return "".join(rng.choice(list("bdfklmnprst")) + rng.choice(list("eiou")) for _ in range(rng.integers(1, 4)))

    found = []
    for _ in range(count):
        words, tags = [], []
        for _ in range(rng.integers(1, 6)):
            parts = [("a", "NOUN"), ("ir", "VERB"), ("", "NAME"), ("er", "VERB")][: rng.integers(2, 5)]
            words += [stem() + ending for ending, _ in parts]
            tags += [tag for _, tag in parts]
        found.append((words, tags))
    return found


class Weights:
    """Parameters by name, of random numbers."""

    def __init__(self, seed: int = 0):
        self.rng, self.all = np.random.default_rng(seed), []

    def __call__(self, name: str, *shape: int, scale: float | None = None) -> sc.Tensor:
        value = self.rng.standard_normal(shape) * (scale if scale is not None else 1 / np.sqrt(shape[0]))
        self.all.append(sc.shared(value.astype("float32"), name))
        return self.all[-1]


def bidirectional(p: Weights, name: str, inputs: int, size: int) -> tuple[fd.Combinator, fd.Struct]:
    """States of vectors by one LSTM from the left and one from the right, in pairs."""
    state = fd.Struct("State", h=fd.f32[size], c=fd.f32[size])

    def cell(name: str) -> fd.Block:
        w, u = p(f"{name} w", inputs, 4 * size), p(f"{name} u", size, 4 * size)
        return fd.lib.lstm(state, fd.f32[inputs], w, u, p(f"{name} b", 4 * size, scale=0), name)

    start = fd.lib.constant(state)()
    both = fd.AllOf(fd.RNN(cell(f"{name} forward"), start), fd.RNN(cell(f"{name} backward"), start, reverse=True))
    return both, state


def tagger(words: dict[str, int], letters: dict[str, int], tags: dict[str, int], size: int) -> tuple:
    """The model, and its parameters. Words that are not known are spelled."""
    p = Weights()
    word = fd.lib.embed(p("words", len(words), size, scale=0.1), "word")
    letter = fd.lib.embed(p("letters", len(letters) + 1, size // 4, scale=0.3), "letter")
    spelled, ends = bidirectional(p, "letter", size // 4, size // 2)
    whole, state = bidirectional(p, "word", size, size)
    out = p("out", 2 * size, len(tags))

    @fd.block(out=fd.f32[size], left=ends, right=ends)
    def joined(left, right):
        return sc.concatenate([left.h, right.h])

    @fd.block(out=fd.f32[len(tags)], left=state, right=state)
    def scores(left, right):
        return sc.concatenate([left.h, right.h]) @ out

    spell = (fd.Map(letter(lambda c: letters.get(c, len(letters)))) >> spelled
             >> joined(lambda s: s[0][-1], lambda s: s[1][0]))
    vectors = fd.Map(fd.OneOf(lambda w: w in words, {True: word(words.get), False: spell}))
    tagged = fd.Map(scores >> fd.Metric("scores"))
    nll = fd.lib.cross_entropy(fd.f32[len(tags)])
    model = (fd.AllOf(fd.Nth(0) >> vectors >> whole >> fd.Zip() >> tagged, fd.Nth(1) >> fd.Map(tags.get))
             >> fd.ZipWith(nll))
    return model, p.all


def main(train: Path | None = None, test: Path | None = None, size: int = 128, epochs: int = 3, batch: int = 32,
         rate: float = 0.05, count: int = 1000, show: bool = True) -> float:
    """Train, and return how many of the words of other sentences are tagged right."""
    rng = np.random.default_rng(0)
    sentences = read(train) if train else made_up(count, rng)
    others = read(test) if test else made_up(count // 4, rng)
    seen = Counter(w for words, _ in sentences for w in words)
    words = {w: k for k, w in enumerate(w for w, n in seen.items() if n > 5)}
    letters = {c: k for k, c in enumerate(sorted(set("".join(seen))))}
    tags = {t: k for k, t in enumerate(sorted({t for s in sentences for t in s[1]}))}
    model, params = tagger(words, letters, tags, size)
    step = fd.compile(model, params, sc.optim.adagrad(rate), mean=True)
    data, held = step.encode(sentences), step.encode(others)
    right = [tags[t] for s in others for t in s[1]]

    def accuracy() -> float:
        return float((step.metrics(held)["scores"].argmax(axis=1) == right).mean())

    for epoch in range(epochs):
        losses = [step(minibatch) for minibatch in data.shuffled(batch, seed=epoch)]
        if show:
            print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {accuracy():.4f}")
    if show:
        step.loss(data[:batch])
        print(step.explain())
    return accuracy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=Path, help="a file of tagged words; a made-up language by default")
    parser.add_argument("--test", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=128)
    arguments = parser.parse_args()
    main(arguments.train, arguments.test, arguments.size, arguments.epochs)
