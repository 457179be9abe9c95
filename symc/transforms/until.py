"""Loops with stacked results that end when a condition holds: ``scan(..., until=)``.

A loop without results finds how many steps there are; that number is the size of the scan, which is a scan like any
other: its derivatives, too. What the steps do, is done twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from symc.tensors import pytree as nest
from symc.tensors.convert import as_tensor
from symc.tensors.public import API
from symc.transforms.taps import has_taps, without_taps


def steps_until(step: Callable[[Any, Any], Any], init: Any, xs: Any, n: Any, reverse: bool,
                until: Callable[[Any, Any], Any], while_count: Callable[..., tuple[Any, Any]]) -> tuple[Any, Any]:
    """The rows of ``xs``, of which there are ``n``, that are visited until ``until(carry, y)`` holds, and their number.
    ``while_count``: a loop that counts its steps."""
    rows, structure = nest.flatten(xs)
    total = as_tensor(n)
    returned: list[Any] = []

    def noting(carry: Any, x: Any) -> Any:
        out = step(carry, x)
        returned[:] = out if isinstance(out, tuple | list) else [out]
        return out

    inner, start = without_taps(noting, init)[:2] if has_taps(init) else (noting, init)

    def body(state: Any) -> Any:
        t, _, carry = state
        place = total - 1 - t if reverse else t
        out = inner(carry, nest.unflatten(structure, [API["getitem"](x, place) for x in rows]))
        return t + 1, until(*returned), out[0]

    count = while_count(lambda state: API["logical_not"](state[1]), body, (0, False, start), n)[1]
    there = slice(total - count, None) if reverse else slice(None, count)
    return nest.unflatten(structure, [API["getitem"](x, there) for x in rows]), count
