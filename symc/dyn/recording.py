"""Recordings: what functions were called on what, as nodes; their keys, by which equal recordings are one program."""

from __future__ import annotations

import contextvars
import itertools
import operator
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from sys import getrefcount
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.ir.location import Loc
from symc.tensors.callsite import is_inside
from symc.tensors.constants import known_array
from symc.tensors.deferred import Recorded, mapped
from symc.tensors.tensor import Tensor

#: Whether what is recorded may be differentiated, and whether calls run when they are made.
USUAL = True, False
mode: contextvars.ContextVar[tuple[bool, bool]] = contextvars.ContextVar("symc_dyn", default=USUAL)
next_serial = itertools.count().__next__
_serial_of = operator.attrgetter("serial")
#: Constants that are told apart by type and value.
PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), type(Ellipsis)})


class _Defaults:
    """Defaults of most nodes; as attributes of the class they cost nothing where a node is made."""

    __slots__ = ()
    needs: int
    serial: int
    value: Any
    args: tuple
    token: Any
    at: int
    fn: Callable[..., Any] | None = None
    parents: tuple[Node, ...] = ()
    kwargs: dict | None = None
    floats: tuple[float, ...] = ()
    code: Any = None
    exposed = False
    var: weakref.ref | None = None


class Node(_Defaults):
    """An array, or a call that gives one. ``value``: that, once somebody has looked. ``needs``: a gradient may be asked
    of it. The class itself stands for a node in ``args`` and ``kwargs`` of a call."""

    __slots__ = ("__weakref__", "needs", "serial", "value")

    @property
    def loc(self) -> Loc | None:
        """The user's line."""
        return None

    def forget(self) -> None:
        """Become a leaf: how the value was made is not known any more."""


class Leaf(Node):
    """An array. ``var``: the variable that shows it, if any. ``exposed``: somebody outside may write to it."""

    __slots__ = ("exposed", "var")

    def __init__(self, value: np.ndarray, needs: bool):
        self.value, self.needs, self.serial = value, needs, next_serial()
        self.exposed, self.var = False, None


class Call(Node):
    """A call of ``fn``; a leaf once ``fn`` is None. ``args``: nodes (as ``Node``) and constants, in lists, tuples,
    dicts and slices; ``parents``: the nodes. ``token``: what programs are told apart by, beside the parents. ``code``,
    ``at``: where it was written."""

    __slots__ = ("args", "at", "code", "fn", "parents", "token")

    @property
    def loc(self) -> Loc | None:
        if self.code is None:
            return None
        lines = (line for begin, end, line in self.code.co_lines() if begin <= self.at < end)
        return Loc(self.code.co_filename, next(lines, None) or self.code.co_firstlineno)

    def forget(self) -> None:
        self.fn, self.args, self.parents = None, (), ()


class AnyCall(Call):
    """A call with arguments by name, or with floats, which are not in the token."""

    __slots__ = ("floats", "kwargs")

    def forget(self) -> None:
        super().forget()
        self.kwargs, self.floats = None, ()


_is_one = (1).__eq__


def array_leaf(a: np.ndarray, needs: int = False) -> Leaf:
    """A leaf. Its array belongs to the recording."""
    return Leaf(a, bool(needs) and a.dtype.kind in "fc")


def node_of(item: Any) -> Any:
    """The node of an argument of a call that is an array or a variable; else the argument itself."""
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


def any_call(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> Call:
    """A call with arguments of any kind. What may change later is copied."""
    parents: list[Node] = []
    floats: list[float] = []

    def held(item: Any) -> Any:
        found = node_of(item)
        if isinstance(found, Node):
            parents.append(found)
            return Node
        return found

    node = AnyCall()
    node.fn, node.args = fn, tuple([a if type(a) in PLAIN else mapped(held, a) for a in args])
    node.kwargs = mapped(held, dict(kwargs)) if kwargs else None
    token = fn, *[_token(a, floats) for a in node.args]
    node.token = (*token, "by name", _token(node.kwargs, floats)) if kwargs else token
    node.parents, node.floats, node.value, node.serial = tuple(parents), tuple(floats), None, next_serial()
    frame = sys._getframe(2)
    while frame.f_back is not None and is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    node.code, node.at = frame.f_code, frame.f_lasti
    return node


def _token(item: Any, floats: list[float]) -> Any:
    """Token of an argument, so that equal ones are equal and no others. Floats are left out."""
    kind = type(item)
    if item is Node:
        return item
    if kind is float:
        floats.append(item)
        return float
    if kind is complex:
        return kind, repr(item)  # of which there are four zeros
    if kind in PLAIN:
        return kind, item
    if isinstance(item, list | tuple):
        return kind, *[_token(i, floats) for i in item]
    if isinstance(item, dict):
        return kind, *[(k, _token(v, floats)) for k, v in item.items()]
    if isinstance(item, slice):
        return slice, *[_token(i, floats) for i in (item.start, item.stop, item.step)]
    try:
        hash(item)
    except TypeError:
        raise InputError(f"an argument of type {kind.__name__} cannot be recorded",
                         help="give arrays, numbers, strings, or lists, tuples and dicts of them") from None
    if isinstance(item, FunctionType | MethodType):
        return kind, item, object()  # what it reads may be other things the next time
    return kind, item


def uses(root: Node, through: bool) -> dict[Node, int]:
    """The nodes that ``root`` is made of, and how often each is a parent of others; not ``through`` what has an array
    already."""
    found = {root: 0}
    stack = [root]
    while stack:
        for p in stack.pop().parents:
            if p in found:
                found[p] += 1
            else:
                found[p] = 1
                if p.parents and (through or type(p.value) is not np.ndarray):
                    stack.append(p)
    return found


#: ``needs`` of a call whose gradient was asked for, and the variables of these.
RETAINED = 2
retained: weakref.WeakKeyDictionary[Node, weakref.ref] = weakref.WeakKeyDictionary()
#: References to a node of a trace that are neither a variable's nor a child's: those that a function has of what it is
#: given (their number depends on the version of Python), and those of a dict and a list.
_OWN = (lambda node: getrefcount(node))(object()) + 2


class Trace:
    """A part of a recording: its nodes, which of them are leaves, and the key of the program that computes it. Of
    leaves that is the dtype, and which axes have size 1.

    ``wanted``: what is computed: the root, and all that somebody holds and has not looked at. ``by``: with what
    gradients are taken of, if they are (``through``): leaves and retained variables that need one, each with its
    variable. ``floats``: those among the arguments, which are not in the key.
    """

    __slots__ = ("by", "floats", "key", "leaves", "nodes", "wanted")
    leaves: list[Node]
    wanted: list[Node]
    by: list[tuple[Node, Any]]
    floats: list[float]

    def __init__(self, root: Node, through: bool):
        places = uses(root, through)
        self.nodes = nodes = sorted(places, key=_serial_of)
        leaves = self.leaves = []
        wanted = self.wanted = []
        by = self.by = []
        floats = self.floats = []
        key: list[Any] = [through]
        array, k = np.ndarray, 0
        for node in nodes:
            value = node.value
            if node.fn is None or not through and type(value) is array:
                leaves.append(node)
                shape = value.shape
                ones = shape.count(1)
                key += value.dtype, len(shape), ones and (ones == len(shape) or (*map(_is_one, shape),))
            else:
                key.append(node.token)
                for p in node.parents:
                    key.append(places[p])
                if node.floats:
                    floats += node.floats
                if value is None and (node is root or getrefcount(node) - places[node] > _OWN):
                    wanted.append(node)
                    key.append("wanted")
            places[node] = k
            k += 1  # noqa: SIM113 - enumerate would hold the node, too
            if through and (needs := node.needs) and (needs is RETAINED or node.fn is None):
                ref = node.var or retained.get(node)
                if ref is not None and (var := ref()) is not None:
                    by.append((node, var))
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
