"""The public names of symc, and which of them a marker in a page of docs/reference stands for.

``<!-- reference: sc.linalg -->`` is every name of a room, ``<!-- reference: sc of ufuncs -->`` the functions that are
written in one file of ``symc/numpy_api`` (a family of docs/numpy.md), ``<!-- reference: sc grad vjp -->`` those names,
``<!-- reference: sc errors -->`` exceptions, and ``<!-- reference: sc others -->`` what no other marker stands for.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import symc as sc
from symc import numpy_api
from symc.numpy_api.ufuncs import UFUNCS
from symc.tensors.public import API

PAGES = Path(__file__).parents[1] / "reference"
MARKER = re.compile(r"<!-- reference: ([\w.]+)((?: \w+)*) -->")
ROOMS = ("debug", "fft", "init", "linalg", "nn", "optim", "parallel", "random", "sparse", "special", "stats")
APART = ("dyn", "fold", "opt", "testing")
"""Packages that are imported by themselves."""
CLASSES = ("CompiledFunction", "Params", "SharedVariable", "Tensor")


@cache
def rooms() -> dict[str, dict[str, Any]]:
    """The public names of each room, and what they are."""
    modules = {"sc": sc, **{f"sc.{n}": getattr(sc, n) for n in ROOMS},
               **{f"symc.{n}": importlib.import_module(f"symc.{n}") for n in APART}}
    found = {room: {n: getattr(m, n) for n in m.__all__} for room, m in modules.items()}
    for name in CLASSES:
        known = dir(sc.Tensor) if name == "SharedVariable" else dir(object)
        cls = getattr(sc, name)
        found[f"sc.{name}"] = {n: inspect.getattr_static(cls, n) for n in dir(cls) if n[0] != "_" and n not in known}
    return {room: {n: item for n, item in names.items() if _is_a_name(item)} for room, names in found.items()}


def _is_a_name(item: Any) -> bool:
    """Modules have rooms of their own; dictionaries and what ``typing`` lends are no functions."""
    return not isinstance(item, types.ModuleType | dict) and getattr(item, "__module__", "") != "typing"


@cache
def families() -> dict[str, list[str]]:
    """NumPy's functions by the file that they are in."""
    ufuncs = {u.__name__ for u in UFUNCS}
    out: dict[str, list[str]] = {}
    for name in numpy_api.FUNCTIONS:
        fn = API[name]
        family = "ufuncs" if fn.__name__ in ufuncs else inspect.unwrap(fn).__module__.rsplit(".", 1)[-1]
        out.setdefault(family, []).append(name)
    return out


def names(room: str, rest: str) -> list[str]:
    """The objects that a marker stands for."""
    chosen = rest.split()
    if chosen[:1] == ["of"]:
        return [n for family in chosen[1:] for n in families()[family] if n in rooms()[room]]
    if chosen == ["errors"]:
        return [n for n, item in rooms()[room].items() if isinstance(item, type) and issubclass(item, Exception)]
    if chosen == ["others"]:
        return [n for n in rooms()[room] if f"{room}.{n}" not in documented("others")]
    return chosen or sorted(rooms()[room], key=lambda n: (n.lower(), n))


def aliases(room: str, chosen: list[str]) -> Iterator[list[str]]:
    """The names of each thing, in the order of the first."""
    groups: dict[int, list[str]] = {}
    for n in chosen:
        groups.setdefault(id(rooms()[room][n]), []).append(n)
    for group in groups.values():
        same = isinstance(rooms()[room][group[0]], Callable)  # type: ignore[arg-type]
        yield from [group] if same else [[n] for n in group]


@cache
def documented(without: str = "") -> list[str]:
    """Every name that a page has, once for each time."""
    found = []
    for page in sorted(PAGES.glob("*.md")):
        for marker in MARKER.finditer(page.read_text("utf-8")):
            if not without or marker[2].strip() != without:
                found += [f"{marker[1]}.{n}" for n in names(marker[1], marker[2])]
    return found


def everything() -> list[str]:
    """Every public name."""
    return [f"{room}.{n}" for room, names in rooms().items() for n in names]
