"""An ONNX graph under construction: names, constants, sizes, nodes, and bodies of loops, which see all around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from symc.export.pure import Sized
from symc.ir.dtypes import DTYPES, dtype_code
from symc.ir.function import Function
from symc.ir.record import dataclass
from symc.ir.types import TensorType
from symc.ir.value import Region, Value

OPSET, IR_VERSION = 18, 8
#: Dtypes in which engines compute, for those in which few do: all digits that count are the same.
WIDE = {DTYPES[a]: DTYPES[b] for a, b in {"f16": "f32", "bool": "i32", "i8": "i32", "u8": "i32", "i16": "i32",
                                          "u16": "i32", "u32": "i64"}.items()}
I64 = DTYPES["i64"]
_INTS = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "mod": "Mod", "min": "Min", "max": "Max"}


def onnx_type(dtype: np.dtype) -> int:
    """The number that the format has for a dtype."""
    from onnx.helper import np_dtype_to_tensor_dtype

    return np_dtype_to_tensor_dtype(np.dtype(dtype))


def value_info(name: str, t: TensorType) -> Any:
    """Declaration of a value; sizes that are no numbers keep their names."""
    from onnx.helper import make_tensor_value_info

    return make_tensor_value_info(name, onnx_type(t.dtype), [s if isinstance(s, int) else str(s) for s in t.shape])


def live(nodes: Sequence[Any], wanted: set[str]) -> list[Any]:
    """The nodes that ``wanted`` results need, which gains the names of all that these read, in bodies too."""
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            kept.append(node)
            wanted.update(node.input)
            for attr in node.attribute:
                if attr.HasField("g"):
                    wanted.update(n for inner in attr.g.node for n in _reads(inner))
    return kept[::-1]


def _reads(node: Any) -> Iterator[str]:
    yield from node.input
    for attr in node.attribute:
        if attr.HasField("g"):
            for inner in attr.g.node:
                yield from _reads(inner)


def rename(nodes: Sequence[Any], names: dict[str, str]) -> None:
    """Other names for values, in bodies too."""
    for node in nodes:
        for where in (node.input, node.output):
            where[:] = [names.get(n, n) for n in where]
        for attr in node.attribute:
            if attr.HasField("g"):
                rename(attr.g.node, names)
                for result in attr.g.output:
                    result.name = names.get(result.name, result.name)


@dataclass(frozen=True)
class Body:
    """A graph inside a node."""

    graph: Any


class Graph(Sized):
    """A walk that adds nodes. Names of values are unique in the whole model, as bodies see those around them."""

    target = "ONNX"

    def __init__(self, f: Function, spelled: Callable[[Graph, Value], Any]):
        super().__init__(f, spelled)
        self.initializers: dict[str, np.ndarray] = {}
        self._taken: set[str] = set()
        self._constants: dict[tuple, str] = {}
        self.inputs = [self.fresh(i.name, exact=True) for i in f.inputs]

    def fresh(self, like: str, exact: bool = False) -> str:
        """A new name: ``like`` itself, if it is to be exact and free, else with a number."""
        like = re.sub(r"\W+", "_", like, flags=re.ASCII).strip("_") or "x" if not exact else like
        name, k = like if exact else f"{like}_1", 1
        while name in self._taken:
            k += 1
            name = f"{like}_{k}"
        self._taken.add(name)
        return name

    def add(self, op: str, *inputs: str, out: str | None = None, results: int = 1, **attrs: Any) -> Any:
        """A node; the names of its results."""
        from onnx.helper import make_node

        names = [out or self.fresh(op.lower()) for _ in range(results)]
        attrs = {k: a.graph if isinstance(a, Body) else a for k, a in attrs.items()}
        self.nodes.append(make_node(op, list(inputs), names, name=names[0], **attrs))
        return names[0] if results == 1 else names

    def constant(self, data: Any, dtype: Any = None) -> str:
        """The name of an initializer with these numbers."""
        array = np.asarray(data, dtype)
        key = (dtype_code(array.dtype), array.shape, array.tobytes())
        if key not in self._constants:
            name = self._constants[key] = self.fresh("c")
            self.initializers[name] = array
        return self._constants[key]

    def ints(self, *numbers: int) -> str:
        """i64 numbers along an axis."""
        return self.constant(numbers, np.int64)

    # --- sizes --------------------------------------------------------------------------------------------------------

    def int_op(self, fn: str, a: str, b: str) -> str:
        return self.add(_INTS[fn], a, b)

    def axis_size(self, k: int, axis: int) -> str:
        return self.add("Shape", self.inputs[k], start=axis, end=axis + 1)

    def joined(self, parts: Sequence[str]) -> str:
        return self.add("Concat", *parts, axis=0)

    # --- bodies -------------------------------------------------------------------------------------------------------

    def subgraph(self, name: str, region: Region, called: Sequence[str], params: Sequence[tuple[str, Any]] = (),
                 extra: Any = None) -> Body:
        """A body. ``called``: the names of all params of the region, of which ``params`` are the graph's own.
        ``extra(results)`` may add nodes, and gives all results as (name, type)."""
        from onnx.helper import make_graph

        outer, self.nodes = self.nodes, []
        try:
            with self.body(region, called):
                results = [(self.value(r), r.type) for r in region.results]
            if extra is not None:
                results = extra(results)
            outs = [(n, t) for n, (_, t) in zip(self.own([n for n, _ in results]), results, strict=True)]
            nodes = live(self.nodes, {n for n, _ in outs})
            graph = make_graph(nodes, self.fresh(name), [value_info(n, t) for n, t in params],
                               [value_info(n, t) for n, t in outs])
        finally:
            self.nodes = outer
        return Body(graph)

    def own(self, names: Sequence[str]) -> list[str]:
        """The names, with another for what no node of this body makes, and for what comes again."""
        made = {o for node in self.nodes for o in node.output}
        out: list[str] = []
        for n in names:
            out.append(n if n in made and n not in out else self.add("Identity", n))
        return out

    def cast(self, name: str, dtype: np.dtype) -> str:
        return self.add("Cast", name, to=onnx_type(dtype))

    def scalar(self, name: str) -> str:
        """i64[1] as a scalar."""
        return self.add("Reshape", name, self.constant(np.zeros(0, np.int64)))
