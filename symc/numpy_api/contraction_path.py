"""Order in which the operands of an einsum are multiplied: pairs, so that the fewest multiplications are needed.

Up to ``EXACT`` operands all orders are compared, by dynamic programming over sets of operands; beyond that, the pair is
taken whose product shrinks what there is the most. Sizes that are not known count as their nominal number. A chain of
matrices is ordered once more by the optimizer (pass ``chains``), which lets a call choose where sizes decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

#: Up to so many operands the order is the best of all.
EXACT = 7


def contraction_path(operands: Sequence[int], output: int, sizes: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of positions in the list of operands; the product of each pair goes to its end.

    ``operands`` and ``output`` are sets of labels as bits; ``sizes`` by bit.
    """
    if len(operands) <= 2:
        return [(0, 1)][: len(operands) - 1]
    if len(operands) > EXACT:
        return _greedy(list(operands), output, sizes)
    return _positions(_best(operands, output, sizes), len(operands))


def volume(labels: int, sizes: Mapping[int, int]) -> int:
    """The number of elements of an array with these labels."""
    total = 1
    while labels:
        bit = labels & -labels
        total *= sizes[bit]
        labels ^= bit
    return total


def _best(operands: Sequence[int], output: int, sizes: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """The best way to take each set of operands apart in two, by set."""
    count = len(operands)
    every = (1 << count) - 1
    union = [0] * (every + 1)  # the labels of a set of operands
    for s in range(1, every + 1):
        union[s] = union[s & (s - 1)] | operands[(s & -s).bit_length() - 1]
    left = [union[s] & (output | union[every ^ s]) for s in range(every + 1)]  # those that are not summed in it
    cost = [0] * (every + 1)
    apart: dict[int, tuple[int, int]] = {}
    for s in range(1, every + 1):
        if s & (s - 1):
            best: tuple[int, int, int] | None = None
            for a in _halves(s):
                b = s ^ a
                total = cost[a] + cost[b] + volume(left[a] | left[b], sizes)
                if best is None or total < best[0]:
                    best = (total, a, b)
            assert best is not None
            cost[s], apart[s] = best[0], best[1:]
    return apart


def _halves(s: int) -> Iterator[int]:
    """Every part of a set that holds its first member, but for the whole; the other half is the rest."""
    rest = s & (s - 1)
    part = (rest - 1) & rest
    while True:
        yield s ^ rest ^ part
        if part == 0:
            return
        part = (part - 1) & rest


def _positions(apart: Mapping[int, tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """The steps of a tree as positions in a list from which pairs are taken."""
    path: list[tuple[int, int]] = []
    there = [1 << k for k in range(count)]
    order: list[int] = []
    stack = [(1 << count) - 1]
    while stack:
        s = stack.pop()
        if s in apart:
            order.append(s)
            stack += apart[s]
    for s in reversed(order):
        i, j = sorted(there.index(part) for part in apart[s])
        path.append((i, j))
        there = [x for k, x in enumerate(there) if k not in (i, j)] + [s]
    return path


def _greedy(work: list[int], output: int, sizes: Mapping[int, int]) -> list[tuple[int, int]]:
    """One pair after another: those that have labels in common first, then what shrinks most."""
    path = []
    while len(work) > 1:
        once = twice = thrice = 0  # labels of so many operands at least
        for x in work:
            once, twice, thrice = once | x, twice | once & x, thrice | twice & x
        volumes = [volume(x, sizes) for x in work]
        best: tuple[tuple[bool, int], int, int, int] | None = None
        for j, y in enumerate(work):
            for i, x in enumerate(work[:j]):
                made = (x | y) & (output | thrice) | (x ^ y) & twice
                key = (not x & y, volume(made, sizes) - volumes[i] - volumes[j])
                if best is None or key < best[0]:
                    best = (key, i, j, made)
        assert best is not None
        _, i, j, made = best
        work = [x for k, x in enumerate(work) if k not in (i, j)] + [made]
        path.append((i, j))
    return path
