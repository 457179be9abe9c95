"""Recordings: what functions were called on what, as nodes; their keys, by which equal recordings are one program."""

from __future__ import annotations

import contextvars
import itertools
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.ir.location import Loc
from symc.tensors.constants import known_array
from symc.tensors.deferred import Recorded, mapped
from symc.tensors.tensor import Tensor

#: Whether what is recorded may be differentiated, and whether calls run when they are made.
mode: contextvars.ContextVar[tuple[bool, bool]] = contextvars.ContextVar("symc_dyn", default=(True, False))
_serials = itertools.count()
_serial_of = operator.attrgetter("serial")
#: Constants that are told apart by type and value.
PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), type(Ellipsis)})


class Node:
    """A call of ``fn``, or an array (a leaf: ``fn`` is None). ``value``: what it gave, once somebody has looked.

    ``args``, ``kwargs``: nodes and constants, in lists, tuples, dicts and slices; ``parents``: the nodes among them.
    ``token``: what programs are told apart by, beside the parents; ``floats`` are not in it. ``needs``: a gradient may
    be asked of it. ``var``: the variable that shows it, if any. ``code``, ``line``: where it was written.
    """

    __slots__ = ("__weakref__", "args", "code", "floats", "fn", "kwargs", "line", "needs", "parents", "serial", "token",
                 "value", "var")

    def __init__(self, fn: Callable[..., Any] | None, args: tuple, parents: tuple[Node, ...], token: Any,
                 floats: tuple[float, ...], value: Any, needs: bool):
        self.fn, self.args, self.parents, self.token, self.floats = fn, args, parents, token, floats
        self.value, self.needs, self.serial = value, needs, next(_serials)
        self.kwargs: dict | None = None
        self.code: Any = None
        self.line = 0
        self.var: weakref.ref | None = None

    @property
    def loc(self) -> Loc | None:
        """The user's line."""
        return Loc(self.code.co_filename, self.line) if self.code is not None else None

    def forget(self) -> None:
        """Become a leaf: how the value was made is not known any more."""
        self.fn, self.args, self.kwargs, self.parents, self.floats = None, (), None, (), ()
        self.token = leaf_token(self.value)


def leaf_token(a: np.ndarray) -> tuple:
    """Token of an array, by which programs are told apart: dtype, and which axes have size 1."""
    return a.dtype, 1 in a.shape and tuple([n == 1 for n in a.shape]), a.ndim


def array_leaf(a: np.ndarray, needs: bool = False) -> Node:
    """A leaf. Its array belongs to the recording."""
    return Node(None, (), (), leaf_token(a), (), a, needs and a.dtype.kind in "fc")


def argument(item: Any) -> Any:
    """An argument of a call as a recording holds it: what may change later is copied."""
    return item if type(item) in PLAIN else mapped(_held, item)


def _held(item: Any) -> Any:
    if isinstance(item, Recorded) and hasattr(item, "_recorded"):
        return item._recorded()
    if isinstance(item, np.ndarray | np.generic):
        return array_leaf(np.array(item))
    if isinstance(item, Tensor):
        known = known_array(item.value)
        if known is not None:
            return array_leaf(known)
        raise InputError("a symbolic value is used together with a recorded one",
                         values=[("symbolic", item.value.type, None)],
                         help="give the recording arrays; to use a recorded value in a graph, take its .data")
    return item


def call_node(fn: Callable[..., Any], args: tuple, kwargs: dict | None) -> Node:
    """A call with arguments of any kind."""
    parents: list[Node] = []
    floats: list[float] = []
    token = fn, *[_token(a, parents, floats) for a in args]
    if kwargs:
        token = *token, "by name", _token(kwargs, parents, floats)
    node = Node(fn, args, tuple(parents), token, tuple(floats), None, False)
    node.kwargs = kwargs
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "symc":
        frame = frame.f_back
    node.code, node.line = frame.f_code, frame.f_lineno
    return node


def _token(item: Any, parents: list[Node], floats: list[float]) -> Any:
    """Token that stands for an argument, so that equal ones are equal and no others: nodes and floats are left out."""
    kind = type(item)
    if kind is Node:
        parents.append(item)
        return Node
    if kind is float:
        floats.append(item)
        return float
    if kind is complex:
        return kind, repr(item)  # of which there are four zeros
    if kind in PLAIN:
        return kind, item
    if isinstance(item, list | tuple):
        return kind, *[_token(i, parents, floats) for i in item]
    if isinstance(item, dict):
        return kind, *[(k, _token(v, parents, floats)) for k, v in item.items()]
    if isinstance(item, slice):
        return slice, *[_token(i, parents, floats) for i in (item.start, item.stop, item.step)]
    try:
        hash(item)
    except TypeError:
        raise InputError(f"an argument of type {kind.__name__} cannot be recorded",
                         help="give arrays, numbers, strings, or lists, tuples and dicts of them") from None
    if isinstance(item, FunctionType | MethodType):
        return kind, item, object()  # what it reads may be other things the next time
    return kind, item


def is_array(node: Node) -> bool:
    """True if the array of a node is known."""
    return type(node.value) is np.ndarray


def history(root: Node, through: bool) -> list[Node]:
    """The nodes that ``root`` is made of, operands first; not ``through`` what has an array already."""
    seen = {root}
    stack = [root]
    while stack:
        for p in stack.pop().parents:
            if p not in seen:
                seen.add(p)
                if p.parents and (through or type(p.value) is not np.ndarray):
                    stack.append(p)
    return sorted(seen, key=_serial_of)


class Trace:
    """A part of a recording: its nodes, which of them are leaves, and the key of the program that computes it.

    ``wanted``: what is computed: the root, and all that a variable shows and nobody has looked at. ``by``: with what
    gradients are taken of, if they are (``through``): leaves and retained variables that need one, each with its
    variable. ``floats``: those among the arguments, which are not in the key.
    """

    __slots__ = ("by", "floats", "key", "leaves", "nodes", "wanted")

    def __init__(self, root: Node, through: bool):
        self.nodes = nodes = history(root, through)
        self.leaves: list[Node] = []
        self.wanted: list[Node] = []
        self.by: list[tuple[Node, Any]] = []
        self.floats: list[float] = []
        place: dict[Node, int] = {}
        key: list[Any] = [through]
        for node in nodes:
            place[node] = len(place)
            var = node.var() if node.var is not None else None
            known = type(node.value) is np.ndarray
            if node.fn is None or known and not through:
                self.leaves.append(node)
                key.append(leaf_token(node.value) if node.fn is not None else node.token)
            else:
                key.append(node.token)
                for p in node.parents:
                    key.append(place[p])
                if node.floats:
                    self.floats += node.floats
                if node.value is None and (node is root or var is not None):
                    self.wanted.append(node)
                    key.append("wanted")
            if through and var is not None and node.needs and (node.fn is None or getattr(var, "_retain", False)):
                self.by.append((node, var))
                key.append("by")
        self.key = tuple(key)


@contextmanager
def no_backprop_mode() -> Iterator[None]:
    """Context in which what is recorded has no gradient, and keeps nothing for one."""
    with _in_mode(False, mode.get()[1]):
        yield


@contextmanager
def eager() -> Iterator[None]:
    """Every call runs when it is made: for a debugger, and for errors that are raised at their own line."""
    with _in_mode(mode.get()[0], True):
        yield


@contextmanager
def _in_mode(differentiable: bool, eagerly: bool) -> Iterator[None]:
    token = mode.set((differentiable, eagerly))
    try:
        yield
    finally:
        mode.reset(token)
