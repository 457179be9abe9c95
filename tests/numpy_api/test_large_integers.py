"""Integers that no array has as a size, as any argument of any public function: an error of symc's, at once."""

from __future__ import annotations

import contextlib
import inspect
import warnings

import numpy as np
import pytest

import symc as sc
from symc.errors import InternalError
from symc.tensors.public import API

#: What functions take by position, as far as they need it.
GIVEN = [(), *[(x,) * k for x in (sc.input("x", "float64", (3,)), sc.input("u", "float64", ("n",)),
                                  sc.input("i", "int64", (3, 3))) for k in (1, 2)]]


def calls(name):
    """A function with one argument left open, for each that may be an integer."""
    with contextlib.suppress(ValueError):
        known = inspect.signature(API[name]).parameters.values()
        for p in known:
            if "int" not in str(p.annotation) and type(p.default) is not int:
                continue
            needed = [q for q in known if q.default is q.empty and q is not p and q.kind is not q.VAR_POSITIONAL]
            for given in GIVEN:
                if len(needed) == len(given) and all(q.kind is not q.POSITIONAL_ONLY for q in (*needed, p)):
                    names = dict(zip([q.name for q in needed], given, strict=True))
                    yield p.name, lambda n, names=names, last=p.name: API[name](**names, **{last: n})


@pytest.mark.parametrize("number", [2**31, 2**63, -(2**63) - 1, 10**30])
def test_large_integers_are_refused_or_mean_something(number):
    tried = 0
    for name in sorted(API):
        for argument, call in calls(name):
            tried += 1
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    call(number)
            except (OverflowError, RecursionError, MemoryError, InternalError) as e:
                raise AssertionError(f"{name}, {argument} = {number}: {type(e).__name__}: {e}") from e
            except Exception as e:  # a refusal, if not of the number
                assert "too large to convert" not in str(e), (name, argument, e)
    assert tried > 100
