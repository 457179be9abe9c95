"""The graph of an ONNX model, run on symbolic values node by node.

Shapes are lists of sizes (``Sizes``) as long as nodes only compute with sizes; everything else is a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from symc import numpy_api as xp
from symc.errors import InputError, SymcError
from symc.export.onnx_file import onnx_package
from symc.ir.op import Op
from symc.ir.record import dataclass
from symc.ir.types import DTYPE_NAMES
from symc.tensors.convert import as_tensor
from symc.tensors.sizes import as_size, user_size
from symc.tensors.tensor import Tensor


class Sizes(list):
    """Integers that are sizes, along an axis, or one scalar."""

    def __init__(self, items: Sequence[Any], scalar: bool = False):
        super().__init__(items)
        self.scalar = scalar


@dataclass(frozen=True)
class Operators:
    """Meaning of operators: ops on elements of one shape; functions of sizes (None where these are data); functions of
    a node and its inputs as tensors, but for those in ``raw``, which see sizes and arrays as they are."""

    elementwise: Mapping[str, Op]
    of_sizes: Mapping[str, Callable[..., Any]]
    general: Mapping[str, Callable[..., Any]]
    raw: frozenset[str]


class Graph:
    """The nodes of one model."""

    def __init__(self, where: str, operators: Operators):
        self.where, self.operators, self.onnx = where, operators, onnx_package()

    def array(self, t: Any) -> np.ndarray:
        """A stored array, of a dtype that symc knows."""
        a = self.onnx.numpy_helper.to_array(t)
        if a.dtype not in DTYPE_NAMES:
            raise InputError(f"{self.where}: the array {t.name!r} has the dtype {a.dtype}")
        return a

    def tensor(self, x: Any) -> Tensor:
        """Sizes and arrays as data."""
        if isinstance(x, Sizes):
            parts = [as_tensor(s).astype("int64") for s in x]
            return parts[0] if x.scalar else xp.stack(parts) if parts else as_tensor(np.zeros(0, np.int64))
        return as_tensor(x)

    def run(self, graph: Any, values: Mapping[str, Any]) -> list[Any]:
        """The results of a graph; ``values`` are those around it."""
        known = {**values, **{t.name: self.array(t) for t in graph.initializer if t.name not in values}}
        for node in graph.node:
            at = Node(self, node, known)
            try:
                results = at.run()
            except SymcError as e:
                name = node.name or node.output[0]
                e.values = [*e.values, (f"node {name!r} ({node.op_type}) of {self.where}", None, None)]
                raise
            known.update(zip(node.output, results, strict=False))
        return [known[o.name] for o in graph.output]


class Node:
    """One node: its attributes, and its inputs as tensors or as numbers."""

    def __init__(self, graph: Graph, proto: Any, known: Mapping[str, Any]):
        self.graph, self.proto, self.known = graph, proto, known
        self.attrs = {a.name: a for a in proto.attribute}
        self.inputs = [known[n] if n else None for n in proto.input]

    def run(self) -> Sequence[Any]:
        """The results."""
        name, known = self.proto.op_type, self.graph.operators
        domain = self.proto.domain not in ("", "ai.onnx")
        if domain or name not in known.general and name not in known.elementwise:
            whole = f"{self.proto.domain}.{name}" if domain else name
            raise InputError(f"{self.graph.where}: node {self.proto.name or self.proto.output[0]!r} has the operator "
                             f"{whole}, which symc does not read",
                             help="docs/exporting.md says which it reads")
        out: Any = None
        if name in known.of_sizes:
            sizes = [self.sizes(k) for k in range(len(self.inputs))]
            if all(s is not None for s in sizes):
                out = known.of_sizes[name](self, *sizes)
        if out is None and name in known.elementwise:
            out = Tensor(known.elementwise[name](*[t.value for t in self.alike()]))
        elif out is None:
            given = [x if x is None or name in known.raw else self.graph.tensor(x) for x in self.inputs]
            out = known.general[name](self, *given)
        out = out if isinstance(out, tuple) else (out,)
        if any(self.proto.output[len(out) :]):
            raise InputError(f"its output {self.proto.output[len(out)]!r} is not read")
        return out

    def alike(self) -> list[Tensor]:
        """The inputs in one shape."""
        return list(xp.broadcast_arrays(*[self.graph.tensor(x) for x in self.inputs]))

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        if name not in self.attrs:
            return default
        found = self.graph.onnx.helper.get_attribute_value(self.attrs[name])
        return found.decode() if isinstance(found, bytes) else found

    def sizes(self, k: int) -> Sizes | None:
        """Input k as sizes, if it is numbers, or made of sizes alone."""
        x = self.inputs[k] if k < len(self.inputs) else None
        if isinstance(x, np.ndarray) and x.ndim < 2 and x.dtype == np.int64 and x.size < 1000:
            return Sizes([int(n) for n in x.ravel()], x.ndim == 0)
        return x if isinstance(x, Sizes) else None

    def numbers(self, k: int, name: str = "", default: Any = None) -> Any:
        """Input k, or the attribute that had its place in older models, as a list of sizes."""
        if k >= len(self.inputs) or self.inputs[k] is None:
            return list(self.get(name, default)) if self.get(name, default) is not None else None
        found = self.sizes(k)
        if found is not None:
            return list(found)
        x = self.graph.tensor(self.inputs[k]).reshape(-1)
        if not isinstance(x.shape[0], int):
            raise InputError("numbers that are data say sizes, and how many there are is not known")
        return [user_size(as_size(x[i])) for i in range(x.shape[0])]

    def body(self, name: str) -> Any:
        return self.attrs[name].g
