"""The ``max_bytes=`` of ``compile``: how a number of bytes is written, and for which sizes it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from symc.errors import InputError, did_you_mean
from symc.ir.function import Function, bound_names
from symc.ir.size_values import names
from symc.tensors.sizes import whole

if TYPE_CHECKING:
    from symc.codegen.plan.budget import Budget

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
         "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}  # fmt: skip
HOW = 'such as 200_000_000, "200MB", "1.5 GiB", or ("200MB", {"n": 1000}) where the size n is symbolic'


def read_max_bytes(given: Any) -> list[Any] | None:
    """``[bytes, {size name: number}]``: the option as data. Raises InputError for what is no number of bytes."""
    if given is None:
        return None
    sizes: Any = {}
    if isinstance(given, tuple | list) and len(given) == 2:
        given, sizes = given
    count = _bytes(given)
    numbers = {k: whole(n) for k, n in sizes.items()} if isinstance(sizes, Mapping) else None
    good = numbers is not None and all(isinstance(k, str) and n is not None and n >= 0 for k, n in numbers.items())
    if count is None or not good:
        raise InputError(f"max_bytes must be a number of bytes, not {given if good else sizes!r}", help=HOW)
    return [count, numbers]


def _bytes(given: Any) -> int | None:
    if (number := whole(given)) is not None:
        return number if number > 0 else None
    if isinstance(given, str):
        match = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([a-z]*)", given.strip().lower())
        if match and match[2] in UNITS:
            return int(float(match[1].replace("_", "")) * UNITS[match[2]]) or None
    return None


def budget_of(option: list[Any] | None, f: Function) -> Budget | None:
    """The budget of a function. Raises InputError for a size name without a number, and for one that it does not
    have."""
    if option is None:
        return None
    count, sizes = option
    known = bound_names(i.type for i in f.inputs)
    for name in sizes:
        if name not in known:
            raise InputError(f"max_bytes: {f.name} has no size {name!r}", help=did_you_mean(name, known))
    missing = [n for n in known if n not in sizes]
    if missing:
        wanted = set(missing)
        rows = [(f"%{i.name}", i.type, i.loc) for i in f.inputs if any(wanted & names(s) for s in i.type.shape)]
        example = ", ".join(f'"{n}": 1000' for n in known)
        raise InputError(
            f"max_bytes: how many bytes {f.name} takes depends on {', '.join(missing)}", values=rows,
            help=f"say for which sizes it must hold: max_bytes=({count}, {{{example}}})",
        )
    from symc.codegen.plan.budget import Budget

    return Budget(count, sizes)
