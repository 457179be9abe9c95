"""A minimum cut of a graph whose nodes have weights: the cheapest set of nodes that every path must pass.

Dinic's algorithm on integers. (NetworkX has one; importing it takes longer than cutting the body of a loop.)
"""

from __future__ import annotations

from collections.abc import Sequence

INFINITE = 1 << 60


class Network:
    """Nodes 0..n-1, each with a weight; edges cost nothing. Paths lead from sources to sinks."""

    def __init__(self, weights: Sequence[int]):
        n = len(weights)
        self._source, self._sink = 2 * n, 2 * n + 1
        self._edges: list[list[int]] = [[] for _ in range(2 * n + 2)]  # of every end: numbers of edges
        self._to: list[int] = []
        self._room: list[int] = []  # edge k and its reverse k ^ 1
        for k, weight in enumerate(weights):
            self._add(2 * k, 2 * k + 1, weight)

    def source(self, k: int) -> None:
        """Paths may begin at node ``k``."""
        self._add(self._source, 2 * k, INFINITE)

    def sink(self, k: int) -> None:
        """Paths may end at node ``k``."""
        self._add(2 * k + 1, self._sink, INFINITE)

    def edge(self, a: int, b: int) -> None:
        """Paths may go from ``a`` to ``b``."""
        self._add(2 * a + 1, 2 * b, INFINITE)

    def cut(self) -> list[int]:
        """The nodes of a cut of least weight, the one nearest to the sources."""
        level = self._levels()
        while level[self._sink] >= 0:
            place = [0] * len(self._edges)
            while self._push(level, place):
                pass
            level = self._levels()
        return [k for k in range(len(self._edges) // 2 - 1) if level[2 * k] >= 0 and level[2 * k + 1] < 0]

    def _add(self, a: int, b: int, room: int) -> None:
        self._edges[a].append(len(self._to))
        self._edges[b].append(len(self._to) + 1)
        self._to += [b, a]
        self._room += [room, 0]

    def _levels(self) -> list[int]:
        """The distance of every end from the source, over edges with room; -1 for none."""
        level = [-1] * len(self._edges)
        level[self._source] = 0
        front = [self._source]
        while front:
            following = []
            for a in front:
                for e in self._edges[a]:
                    b = self._to[e]
                    if self._room[e] and level[b] < 0:
                        level[b] = level[a] + 1
                        following.append(b)
            front = following
        return level

    def _push(self, level: list[int], place: list[int]) -> int:
        """Send flow along one shortest path. ``place``: which edges of an end were not tried in vain."""
        path: list[int] = []
        at = self._source
        while at != self._sink:
            edges = self._edges[at]
            while place[at] < len(edges):
                e = edges[place[at]]
                if self._room[e] and level[self._to[e]] == level[at] + 1:
                    break
                place[at] += 1
            else:
                if not path:
                    return 0
                at = self._to[path.pop() ^ 1]
                place[at] += 1
                continue
            path.append(e)
            at = self._to[e]
        flow = min(self._room[e] for e in path)
        for e in path:
            self._room[e] -= flow
            self._room[e ^ 1] += flow
        return flow
