"""Ops with the operands that their records name as legal: what programs draw from."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from symc.ir.op import Op, all_ops, lookup
from symc.testing.choices import one_of

#: Ops that wait for someone, print, or have bodies: other generators make those that can be made.
STRUCTURE = frozenset({
    "constant", "input", "param", "get", "fused", "generate", "fold", "load", "store", "store_running", "insert",
    "packed_concat", "store_packed", "insert_place", "bisect", "loop", "pack", "scan", "while", "cond", "checkpoint",
    "root", "call", "breakpoint", "print", "assert", "bounded", "after", "again", "below", "gemm", "cached",
})  # fmt: skip
#: The most samples of an op that are tried, and the most elements of one.
MOST_SAMPLES, MOST_ELEMENTS = 400, 400

Sample = tuple[list[np.ndarray], dict[str, Any]]


def elementwise_ops() -> list[Op]:
    """Every elementwise op that any numbers can be given to."""
    return [op for op in all_ops() if "elementwise" in op.traits and not op.facts.wild and op.name != "cast"
            and op.facts.custom is None]


@functools.cache
def sampled_ops() -> tuple[str, ...]:
    """The ops that state samples of legal operands."""
    return tuple(op.name for op in all_ops() if op.samples is not None and op.name not in STRUCTURE
                 and "checks" not in op.traits and op.facts.custom is None)


@functools.cache
def library_ops() -> tuple[str, ...]:
    """Ops that programs are not grown of otherwise: matrices, transforms, special functions, orders, searches."""
    others = {op.name for op in elementwise_ops()}
    return tuple(name for name in sampled_ops() if name not in others
                 and not lookup(name).traits & {"movement", "effect"})


@functools.cache
def samples_of(op: Op) -> list[Sample]:
    """Legal operands and attributes of an op, small ones."""
    assert op.samples is not None
    found = [([np.asarray(a) for a in arrays], attrs) for arrays, attrs in op.samples()]
    small = [s for s in found if sum(a.size for a in s[0]) <= MOST_ELEMENTS and "regions" not in s[1]] or found[:1]
    return small[:: max(1, len(small) // MOST_SAMPLES)]


def pick_sample(op: Op, rng: np.random.Generator) -> Sample:
    """One of them."""
    found = samples_of(op)
    return one_of(rng, found)
