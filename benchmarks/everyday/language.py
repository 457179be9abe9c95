"""Programs of language processing: counts of words, embeddings, attention, sampling, alignment."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.everyday import counts, program, repeat, running


@program(200_000, 100, lambda r, n: [r.integers(0, 500, n)])
def word_counts(xp: Any, words: Any) -> Any:
    return counts(xp, words, 500)


@program(200_000, 100, lambda r, n: [r.integers(0, 100, n)])
def bigram_probabilities(xp: Any, words: Any) -> Any:
    pairs = counts(xp, words[:-1] * 100 + words[1:], 10_000).reshape((100, 100)) + 1.0
    return pairs / xp.sum(pairs, axis=1, keepdims=True)


@program(400, 8, lambda r, n: [r.poisson(0.3, (n, 600)).astype("float64")])
def tf_idf_similarity(xp: Any, table: Any) -> Any:
    present = xp.sum(table > 0, axis=0)
    weighted = table * xp.log((1 + table.shape[0]) / (1 + present))
    unit = weighted / xp.maximum(xp.linalg.norm(weighted, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


@program(64, 3, lambda r, n: [r.normal(size=(5000, 64)), r.integers(0, 5000, (n, 40)), r.integers(1, 40, n)],
         "float32")
def mean_embedding(xp: Any, table: Any, words: Any, lengths: Any) -> Any:
    mask = (xp.arange(40)[None, :] < lengths[:, None]).astype("float32")
    return xp.sum(table[words] * mask[:, :, None], axis=1) / lengths.astype("float32")[:, None]


@program(128, 7, lambda r, n: [r.normal(size=(8, n, 32)) for _ in range(3)], "float32")
def causal_attention(xp: Any, q: Any, k: Any, v: Any) -> Any:
    n = q.shape[1]
    scores = q @ xp.matrix_transpose(k) / np.float32(np.sqrt(32))
    scores = xp.where(xp.arange(n)[:, None] >= xp.arange(n)[None, :], scores, np.float32(-1e9))
    e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True) @ v


@program(512, 5, lambda r, n: [r.normal(size=(n, 256)), r.normal(size=256), r.normal(size=256)], "float32")
def layer_norm(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred**2, axis=-1, keepdims=True) + np.float32(1e-5)) * scale + shift


@program(32, 3, lambda r, n: [r.normal(size=(n, 2000)), r.integers(0, 2000, n)])
def perplexity(xp: Any, logits: Any, targets: Any) -> Any:
    top = xp.max(logits, axis=1, keepdims=True)
    log_p = logits - top - xp.log(xp.sum(xp.exp(logits - top), axis=1, keepdims=True))
    return xp.exp(-xp.mean(log_p[xp.arange(targets.shape[0]), targets]))


@program(64, 3, lambda r, n: [r.normal(size=(n, 2000)), r.uniform(0, 1, n)])
def nucleus_sample(xp: Any, logits: Any, u: Any) -> Any:
    order = xp.argsort(-logits, axis=1)
    e = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    p = xp.take_along_axis(e / xp.sum(e, axis=1, keepdims=True), order, axis=1)
    total = xp.cumsum(p, axis=1)
    kept = xp.where(total - p < 0.9, total, 2.0)
    reach = xp.max(xp.where(kept < 2, kept, 0.0), axis=1)
    pick = xp.sum(kept < (u * reach)[:, None], axis=1)
    return xp.take_along_axis(order, pick[:, None], axis=1)[:, 0]


@program(300, 9, lambda r, n: [r.integers(0, 4, n), r.integers(0, 4, n)])
def edit_distance(xp: Any, a: Any, b: Any) -> Any:
    """Row by row: a running minimum takes the place of the insertions."""
    at = xp.arange(b.shape[0] + 1)

    def row(i: Any, above: Any) -> Any:
        changed = xp.minimum(above[1:] + 1, above[:-1] + (b != a[i]))
        start = xp.concatenate([above[:1] + 1, changed])
        return running(xp, "minimum", start - at) + at

    return repeat(xp, a.shape[0], row, at)[-1]


@program(100_000, 60, lambda r, n: [r.integers(97, 123, n, dtype=np.uint8)])
def rolling_hash(xp: Any, text: Any) -> Any:
    wide = text.astype("int64")
    h = xp.zeros_like(wide[7:])
    for k in range(8):
        h = (h * 257 + wide[k : wide.shape[0] - 7 + k]) % 1_000_003
    return h


@program(100_000, 60, lambda r, n: [r.integers(32, 127, n, dtype=np.uint8)])
def upper_case(xp: Any, text: Any) -> Any:
    return xp.where((text >= 97) & (text <= 122), text - np.uint8(32), text)


@program(100_000, 60, lambda r, n: [r.integers(97, 123, n)])
def caesar_cipher(xp: Any, text: Any) -> Any:
    return (text - 97 + 13) % 26 + 97


@program(200, 9, lambda r, n: [r.normal(size=(n, 8)), r.normal(size=(8, 8)), r.normal(size=8)])
def viterbi(xp: Any, emitted: Any, change: Any, first: Any) -> Any:
    return repeat(xp, emitted.shape[0], lambda t, v: emitted[t] + xp.max(v[:, None] + change, axis=0), first)


@program(60_000, 30, lambda r, n: [r.integers(0, 4, n)])
def six_letter_counts(xp: Any, bases: Any) -> Any:
    code = bases[:-5]
    for k in range(1, 6):
        code = code * 4 + bases[k : bases.shape[0] - 5 + k]
    return counts(xp, code, 4096)


@program(90_000, 30, lambda r, n: [r.integers(0, 256, n, dtype=np.uint8)])
def base64(xp: Any, data: Any) -> Any:
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    three = data.reshape(-1, 3).astype("uint32")
    bits = (three[:, 0] << np.uint32(16)) | (three[:, 1] << np.uint32(8)) | three[:, 2]
    places = xp.stack([(bits >> np.uint32(s)) & np.uint32(63) for s in (18, 12, 6, 0)], axis=1)
    return xp.asarray(np.frombuffer(letters, np.uint8))[places].reshape(-1)


@program(50_000, 60, lambda r, n: [r.integers(97, 123, n, dtype=np.uint8)])
def vigenere(xp: Any, text: Any) -> Any:
    key = xp.asarray(np.array([3, 1, 4, 1, 5], dtype=np.uint8))[xp.arange(text.shape[0]) % 5]
    return (text - np.uint8(97) + key) % np.uint8(26) + np.uint8(97)


@program(50_000, 40, lambda r, n: [r.integers(0, 4, n), r.normal(size=(8, 4))])
def motif_scores(xp: Any, bases: Any, weights: Any) -> Any:
    n = bases.shape[0] - 7
    return sum(weights[k][bases[k : n + k]] for k in range(8))


@program(10_000, 40, lambda r, n: [r.integers(0, 256, n, dtype=np.uint8)])
def checksum(xp: Any, data: Any) -> Any:
    """A cyclic redundancy check of 32 bits, by its table."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    known, wide = xp.asarray(table), data.astype("uint32")

    def step(i: Any, c: Any) -> Any:
        return known[(c ^ wide[i]) & np.uint32(255)] ^ (c >> np.uint32(8))

    return repeat(xp, data.shape[0], step, wide[0] * np.uint32(0) + np.uint32(0xFFFFFFFF))


@program(128, 6, lambda r, n: [r.normal(size=(n, 8, 64))], dtype="float32")
def rotary_positions(xp: Any, x: Any) -> Any:
    n, heads, d = x.shape
    turn = xp.arange(n).astype("float32")[:, None] * xp.asarray((1e-4 ** (np.arange(0, d, 2) / d)).astype(np.float32))
    c, s = xp.cos(turn)[:, None], xp.sin(turn)[:, None]
    a, b = x[..., ::2], x[..., 1::2]
    return xp.stack([a * c - b * s, a * s + b * c], axis=-1).reshape(n, heads, d)


@program(100, 12, lambda r, n: [r.normal(size=(n, 30)), r.integers(1, 30, n // 5)])
def labels_in_time(xp: Any, logits: Any, labels: Any) -> Any:
    """Minus the log of the probability of labels in order with blanks between them (CTC)."""
    p = logits - xp.log(xp.sum(xp.exp(logits), axis=1, keepdims=True))
    states = xp.concatenate([xp.stack([xp.zeros_like(labels), labels], axis=1).reshape(-1), xp.zeros_like(labels[:1])])
    skips = xp.concatenate([states[:2] < 0, (states[2:] != 0) & (states[2:] != states[:-2])])
    never = np.full(2, -1e30)

    def step(t: Any, a: Any) -> Any:
        one = xp.concatenate([xp.asarray(never[:1]), a[:-1]])
        two = xp.where(skips, xp.concatenate([xp.asarray(never), a[:-2]]), -1e30)
        return xp.logaddexp(xp.logaddexp(a, one), two) + p[t + 1][states]

    a = repeat(xp, logits.shape[0] - 1, step, xp.where(xp.arange(states.shape[0]) < 2, p[0][states], -1e30))
    return -xp.logaddexp(a[-1], a[-2])


@program(100_000, 60, lambda r, n: [r.integers(0, 20_000, n), r.permutation(20_000)[:3_000]])
def known_words(xp: Any, words: Any, vocabulary: Any) -> Any:
    return xp.mean(xp.isin(words, vocabulary))
