"""Pairwise covering: no pair is lost, and few cases are left."""

from itertools import combinations, product

import pytest

from tests.covering import pairwise


@pytest.mark.parametrize("counts", [(2, 2), (3, 3, 3, 3), (5, 2, 4), (4, 4, 1), (10, 3, 2, 2)])
def test_every_pair_is_in_a_case_that_is_taken(counts):
    cases = list(product(*map(range, counts)))
    taken = pairwise(cases)
    pairs = {pair for case in cases for pair in combinations(enumerate(case), 2)}
    assert {pair for case in taken for pair in combinations(enumerate(case), 2)} == pairs
    first, second = sorted(counts)[-2:]
    assert first * second <= len(taken) <= 1.7 * first * second
    assert taken == [c for c in cases if c in taken] == pairwise(cases)


def test_choices_are_told_apart_by_their_positions():
    assert pairwise(["ab", "ba", "aa", "ab"]) == ["ab", "ba", "aa"]
    assert pairwise([1, 2, 3, 4], lambda n: (n % 2, n > 4)) == [1, 2]
    assert pairwise([]) == []
