"""The examples of dynamic graphs run, and learn what there is to learn."""

import numpy as np

import symc.fold as fd
from examples import calculator, sentiment, tagger


def test_sentiment(tmp_path):
    assert sentiment.main(size=16, epochs=3, batch=20, count=600, rate=0.1, show=False) > 0.85
    trees = sentiment.made_up(60, np.random.default_rng(1))
    path = tmp_path / "trees.txt"
    path.write_text("\n".join(map(written, trees)) + "\n", encoding="utf-8")
    assert sentiment.read(path) == trees
    assert sentiment.main(path, path, size=8, epochs=8, batch=10, rate=0.2, show=False) > 0.5


def written(t):
    return f"({t[0]} {t[1]})" if len(t) == 2 else f"({t[0]} {written(t[1])} {written(t[2])})"


def test_tagger(tmp_path):
    assert tagger.main(size=16, epochs=2, batch=10, count=150, rate=0.1, show=False) > 0.9
    sentences = tagger.made_up(5, np.random.default_rng(1))
    lines = ["# a comment"]
    for words, tags in sentences:
        lines += [f"{w}\t{t}\tX" for w, t in zip(words, tags, strict=True)] + [""]
    (tmp_path / "words.tsv").write_text("\n".join(lines), encoding="utf-8")
    assert tagger.read(tmp_path / "words.tsv") == sentences


def test_calculator(capsys):
    assert calculator.main(size=16, epochs=5, count=400, depth=2) > 0.5
    assert "of new expressions are right" in capsys.readouterr().out


def test_rows_that_no_minibatch_has_read_stay():
    import symc as sc

    table = sc.shared(np.ones((6, 3), "float32"), "table")
    word = fd.lib.embed(table, "word")
    step = fd.compile(
        fd.AllOf(word, fd.Constant(1)) >> fd.lib.cross_entropy(fd.f32[3]), [table], sc.optim.adagrad(0.1))
    step([2, 4, 2])
    changed = (table.get_value() != 1).any(axis=1)
    assert changed.tolist() == [False, False, True, False, True, False]
