"""Combinators: models over Python data, made of blocks.

A combinator builds the graph of one example: ``build(g, x)`` records blocks, and gives a node, or a list, tuple or dict
of nodes and data. Names and meaning are those of TensorFlow Fold. It runs once an example, when a data set is encoded.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from symc.errors import InputError, did_you_mean
from symc.fold.block import Block
from symc.fold.lib import constant
from symc.tensors.callsite import caller


class Combinator:
    """Builder of a part of a graph. ``a >> b``: what ``a`` gives goes to ``b``."""

    def build(self, g: Any, x: Any) -> Any:
        """The graph of an example, or of a part of one."""
        raise NotImplementedError

    def parts(self) -> Sequence[Any]:
        """The combinators and blocks that it is made of."""
        return ()

    def __rshift__(self, other: Any) -> Pipe:
        return Pipe(self, other)

    def __rrshift__(self, other: Any) -> Pipe:
        return Pipe(other, self)

    def also(self, call: Any) -> Also:
        """Block of this, and for each value of it another call, such as a loss, in which ``fd.self_`` is the value."""
        return Also(self, call)


def combinator(x: Any) -> Combinator:
    """Blocks, functions, lists and dicts as combinators. Raises InputError for anything else."""
    if isinstance(x, Combinator):
        return x
    if isinstance(x, Block):
        return Apply(x)
    if isinstance(x, tuple | list):
        return AllOf(*x)
    if isinstance(x, dict):
        return Record(x)
    if callable(x):
        return InputTransform(x)
    raise InputError(f"this is no part of a model: {x!r:.40}", where=[caller()],
                     help="blocks, combinators, functions of the example, or tuples and dicts of these")


def parts_of(model: Combinator) -> list[Any]:
    """The combinators and blocks of a model, each once, in the order in which they are met."""
    found: dict[int, Any] = {}
    pending: list[Any] = [model]
    while pending:
        c = pending.pop(0)
        if id(c) not in found:
            found[id(c)] = c
            pending += [] if isinstance(c, Block) else c.parts()
    return list(found.values())


def named_parts(given: Any) -> dict[Any, Combinator]:
    """Combinators by key: of a dict, of pairs of key and combinator, or by number."""
    items = list(given.items() if isinstance(given, Mapping) else given)
    if not isinstance(given, Mapping) and not all(isinstance(i, tuple | list) and len(i) == 2 and _is_key(i[0])
                                                  for i in items):
        items = list(enumerate(items))
    return {k: combinator(c) for k, c in items}


def _is_key(x: Any) -> bool:
    return not callable(x) and not isinstance(x, Combinator | Block | list | dict)


class Apply(Combinator):
    """A block of what comes in: one value, or a tuple or dict of arguments; nothing, where it has no ports."""

    def __init__(self, block: Block):
        self.block = block

    def parts(self) -> Sequence[Any]:
        return [self.block]

    def build(self, g: Any, x: Any) -> Any:
        add = g._added(self.block)
        if not self.block.asked:
            return add()
        if isinstance(x, dict):
            return add(**x)
        return add(*x) if len(self.block.asked) > 1 and isinstance(x, tuple | list) else add(x)


class Call(Combinator):
    """A block with its arguments: ``node(tree[1], tree[2])``, ``leaf(word=lambda t: ids[t])``. An argument is a
    combinator or function of the example, or a number."""

    def __init__(self, block: Block, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.block = block
        names = [p.name for p in block.asked]
        for name in kwargs:
            if name not in names:
                raise InputError(f"block {block.name} has no port {name!r}", where=[caller()],
                                 help=did_you_mean(name, names))
        if len(args) + len(kwargs) != len(names):
            raise InputError(f"block {block.name} takes {len(names)} arguments, not {len(args) + len(kwargs)}",
                             where=[caller()], help=f"it is {block!r}")
        self.args = [combinator(a) if callable(a) or isinstance(a, Combinator | Block) else Constant(a)
                     for a in [*args, *[kwargs[n] for n in names[len(args) :] if n in kwargs]]]

    def parts(self) -> Sequence[Any]:
        return [*self.args, self.block]

    def build(self, g: Any, x: Any) -> Any:
        given = []
        for a in self.args:
            given.append(a.build(g, x))
        return g._added(self.block)(*given)


Block.__call__ = lambda self, *args, **kwargs: Call(self, args, kwargs)  # type: ignore[method-assign]
Block.__rshift__ = lambda self, other: Pipe(self, other)
Block.also = lambda self, call: Also(self, call)


class Constant(Combinator):
    """The same for every example."""

    def __init__(self, value: Any):
        self.value = value

    def build(self, g: Any, x: Any) -> Any:
        return self.value


class InputTransform(Combinator):
    """A Python function of the example."""

    def __init__(self, fn: Callable[[Any], Any]):
        self.fn = fn

    def build(self, g: Any, x: Any) -> Any:
        return self.fn(x)


class Composition(Combinator):
    """A graph by hand: ``fn(g, x)`` records what it likes. ``blocks``: those it uses."""

    def __init__(self, fn: Callable[[Any, Any], Any], *blocks: Any):
        self.fn, self.uses = fn, blocks

    def parts(self) -> Sequence[Any]:
        return self.uses

    def build(self, g: Any, x: Any) -> Any:
        return self.fn(g, x)


class _Of(Combinator):
    """Combinator that is made of others."""

    def __init__(self, *inner: Any):
        self.inner = [combinator(c) for c in inner]

    def parts(self) -> Sequence[Any]:
        return self.inner


class Pipe(_Of):
    """One after the other."""

    def build(self, g: Any, x: Any) -> Any:
        for c in self.inner:
            x = c.build(g, x)
        return x


class Also(_Of):
    """A value, and what is recorded about it."""

    def build(self, g: Any, x: Any) -> Any:
        value = self.inner[0].build(g, x)
        g._selves.append(value)
        self.inner[1].build(g, x)
        return g._selves.pop()


class Self(Combinator):
    """The value that ``also`` is said of."""

    def build(self, g: Any, x: Any) -> Any:
        if not g._selves:
            raise InputError("fd.self_ stands for a value in what .also(...) is given, and for nothing elsewhere",
                             where=[caller()], help="c.also(nll(fd.self_, 1)), or c >> nll for one port")
        return g._selves[-1]


self_ = Self()


class Map(_Of):
    """Results of a block for each item of a sequence."""

    def build(self, g: Any, x: Any) -> Any:
        return [self.inner[0].build(g, item) for item in x]


class AllOf(_Of):
    """Several of the same, in a tuple."""

    def build(self, g: Any, x: Any) -> Any:
        return tuple([c.build(g, x) for c in self.inner])


class Record(Combinator):
    """Results for each item of a dict or sequence, in a dict or a tuple: ``Record({"left": a, "right": b})``."""

    def __init__(self, inner: Mapping[Any, Any] | Sequence[Any]):
        self.inner = named_parts(inner)
        self.named = isinstance(inner, Mapping) or list(self.inner) != [*range(len(self.inner))]

    def parts(self) -> Sequence[Any]:
        return list(self.inner.values())

    def build(self, g: Any, x: Any) -> Any:
        found = {k: c.build(g, x[k]) for k, c in self.inner.items()}
        return found if self.named else tuple(found.values())


class Fold(_Of):
    """``start``, then of the result so far and each item in turn: ``combine`` is of a tuple of both."""

    def __init__(self, combine: Any, start: Any, reverse: bool = False):
        super().__init__(combine, start)
        self.reverse = reverse

    def states(self, g: Any, x: Any) -> list[Any]:
        """The start, and the result after each item."""
        combine, start = self.inner
        found = [start.build(g, x)]
        for item in reversed(x) if self.reverse else x:
            found.append(combine.build(g, (found[-1], item)))
        return found

    def build(self, g: Any, x: Any) -> Any:
        return self.states(g, x)[-1]


class RNN(Fold):
    """``Fold``, of which all results are given, in the order of the items: ``cell`` is of a tuple of state and item."""

    def build(self, g: Any, x: Any) -> Any:
        found = self.states(g, x)[1:]
        return found[::-1] if self.reverse else found


class Reduce(_Of):
    """A sequence by a balanced tree of ``combine``, which is of a tuple of two; ``empty`` is for none."""

    def __init__(self, combine: Any, empty: Any = None):
        super().__init__(combine, *([] if empty is None else [empty]))

    def build(self, g: Any, x: Any) -> Any:
        row = list(x)
        if not row:
            if len(self.inner) == 1:
                raise InputError("fd.Reduce of an empty sequence", help="fd.Reduce(combine, empty)")
            return self.inner[1].build(g, x)
        while len(row) > 1:
            pairs = [self.inner[0].build(g, (row[k], row[k + 1])) for k in range(0, len(row) - 1, 2)]
            row = pairs + row[len(row) & ~1 :]
        return row[0]


class Broadcast(_Of):
    """The same value at every place of what it is zipped with."""

    def build(self, g: Any, x: Any) -> Any:
        return itertools.repeat(self.inner[0].build(g, x))


class Zip(Combinator):
    """A tuple of sequences as a sequence of tuples, as long as the shortest."""

    def build(self, g: Any, x: Any) -> Any:
        return list(zip(*(x.values() if isinstance(x, dict) else x), strict=False))


class ZipWith(_Of):
    """``Zip``, and each tuple to a combinator."""

    def build(self, g: Any, x: Any) -> Any:
        return [self.inner[0].build(g, item) for item in Zip().build(g, x)]


class OneOf(Combinator):
    """One of several, which ``key`` of the example says."""

    def __init__(self, key: Callable[[Any], Any], cases: Mapping[Any, Any] | Sequence[Any]):
        self.key = key
        self.cases = named_parts(cases)

    def parts(self) -> Sequence[Any]:
        return list(self.cases.values())

    def build(self, g: Any, x: Any) -> Any:
        key = self.key(x)
        if key not in self.cases:
            raise InputError(f"fd.OneOf has no case {key!r} of {list(self.cases)!r:.80}")
        return self.cases[key].build(g, x)


class Optional(_Of):
    """``some`` of what is not None, else ``none``: by default zeros, where ``some`` ends with a block."""

    def __init__(self, some: Any, none: Any = None):
        last: Any = combinator(some)
        while isinstance(last, Pipe):
            last = last.inner[-1]
        if none is None and not isinstance(last, Apply | Call):
            raise InputError("fd.Optional does not see what type of value None stands for", where=[caller()],
                             help="fd.Optional(some, none)")
        super().__init__(some, constant(last.block.out) if none is None else none)

    def build(self, g: Any, x: Any) -> Any:
        return self.inner[1 if x is None else 0].build(g, x)


class Metric(Combinator):
    """Marks a value, which ``step.metrics(batch)`` gives by this name."""

    def __init__(self, name: str):
        self.name = name

    def build(self, g: Any, x: Any) -> Any:
        g._metrics.setdefault(self.name, []).append(x)
        return x


class Rec(Combinator):
    """A combinator that is used before it is said: ``tree = fd.Rec(); tree.define(...)``; ``tree[1]``, or
    ``tree[lambda t: t.left]``, is of a part of the example."""

    def __init__(self, name: str = "forward declaration"):
        self.name = name
        self.inner: Combinator | None = None

    def define(self, c: Any) -> Rec:
        self.inner = combinator(c)
        return self

    resolve_to = define

    def __call__(self) -> Rec:
        return self

    def __getitem__(self, key: Any) -> Combinator:
        return Pipe(key if callable(key) else lambda x: x[key], self)

    def parts(self) -> Sequence[Any]:
        return [] if self.inner is None else [self.inner]

    def build(self, g: Any, x: Any) -> Any:
        if self.inner is None:
            raise InputError(f"{self.name} was used, but never defined", help="declared.define(...)")
        return self.inner.build(g, x)


ForwardDeclaration = Rec
