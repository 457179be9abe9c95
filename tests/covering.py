"""Pairwise covering, for tests over many parameters: what is wrong is nearly always wrong for one value, or for two
values together, so that of all combinations few find as much as all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

Case = TypeVar("Case")


def pairwise(cases: Iterable[Case], choices: Callable[[Case], Sequence[Hashable]] = tuple) -> list[Case]:
    """Few of the cases, the same in every run and in their order: every two of a case's choices, which are told apart
    by their positions, are together in one that is taken."""
    every = list(cases)
    pairs = [set(combinations(enumerate(choices(case)), 2)) for case in every]
    left: set = set().union(*pairs)
    taken = []
    queue = [(-len(p), k) for k, p in enumerate(pairs)]
    heapq.heapify(queue)
    while left:
        k = heapq.heappop(queue)[1]
        new = len(pairs[k] & left)
        if queue and (-new, k) > queue[0]:  # others cover more by now
            heapq.heappush(queue, (-new, k))
            continue
        left -= pairs[k]
        taken.append(k)
    return [every[k] for k in sorted(taken)]
