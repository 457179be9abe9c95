"""``theano.Op``: ops of users, with ``make_node`` (or ``itypes`` and ``otypes``), ``perform`` and ``grad``."""

# mypy: disable-error-code="attr-defined"
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import symc as sc
from symc.compat.theano.variable import Apply, TensorVariable, plain, tensor_of, wrap
from symc.errors import InputError

_numbers = itertools.count()


class Op:
    """Base of ops that are written in Python. C code (``c_code``, ``make_thunk``) is not run: ``perform`` is."""

    itypes: Any = None
    otypes: Any = None
    infer_shape: Callable[..., Any]
    grad: Callable[..., Any]
    R_op: Callable[..., Any]
    L_op: Callable[..., Any]

    def make_node(self, *inputs: Any) -> Apply:
        if self.itypes is None or self.otypes is None:
            raise NotImplementedError("an Op has make_node, or itypes and otypes")
        if len(inputs) != len(self.itypes):
            raise TypeError(f"{self} takes {len(self.itypes)} inputs, {len(inputs)} are given")
        variables = [wrap(tensor_of(x)) for x in inputs]
        for v, t in zip(variables, self.itypes, strict=True):
            if (v.dtype, v.ndim) != (t.dtype, t.ndim):
                raise TypeError(f"{self}: the input is {v.type}, and must be {t}")
        return Apply(self, variables, [t() for t in self.otypes])

    def perform(self, node: Apply, inputs: list[Any], output_storage: list[list[Any]]) -> None:
        raise InputError(f"{self} has no perform", help="C code of Theano's is not run; write perform in Python")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        node = self.make_node(*inputs)
        found = self._record(node)(*[tensor_of(x) for x in node.inputs])
        out = [wrap(t) for t in (found if isinstance(found, tuple) else (found,))]
        return out[0] if len(out) == 1 and not options.get("return_list") else out

    def _record(self, node: Apply) -> Callable[..., Any]:
        """The op of symc for one node, whose outputs say the dtypes."""
        single = len(node.outputs) == 1

        def run(*arrays: Any) -> Any:
            storage: list[list[Any]] = [[None] for _ in node.outputs]
            self.perform(node, [a.copy() for a in arrays], storage)
            return storage[0][0] if single else tuple(s[0] for s in storage)

        def infer(*specs: Any) -> Any:
            pairs = list(zip([o.dtype for o in node.outputs], self._shapes(node, specs), strict=True))
            return pairs[0] if single else pairs

        def vjp(g: Any, *operands: Any) -> Any:
            found = self.grad([wrap(t) for t in operands], [wrap(t) for t in ((g,) if single else g)])
            return tuple(None if d is None else tensor_of(d) for d in found)

        def vjp_of_results(g: Any, *operands: Any) -> Any:
            xs = [wrap(t) for t in operands]
            outs = self(*xs, return_list=True)
            found = self.L_op(xs, outs, [wrap(t) for t in ((g,) if single else g)])
            return tuple(None if d is None else tensor_of(d) for d in found)

        def jvp(tangents: Any, *operands: Any) -> Any:
            found = [plain(d) for d in self.R_op([wrap(t) for t in operands], [wrap(t) for t in tangents])]
            return found[0] if single else tuple(found)

        run.__name__ = type(self).__name__
        return sc.op(run, name=f"{type(self).__name__}_{next(_numbers)}", infer=infer,
                     vjp=vjp_of_results if hasattr(self, "L_op") else vjp if hasattr(self, "grad") else None,
                     jvp=jvp if hasattr(self, "R_op") else None)

    def _shapes(self, node: Apply, specs: Sequence[Any]) -> list[Any]:
        """Shapes of the outputs: of ``infer_shape``, else those of the first input with as many axes, which is checked
        when it is computed."""
        if hasattr(self, "infer_shape"):
            given = [tuple(wrap(tensor_of(n)) for n in s.shape) for s in specs]
            return [tuple(plain(n) for n in shape) for shape in self.infer_shape(node, given)]
        out: list[Any] = []
        for o in node.outputs:
            like = [s.shape for s in specs if s.ndim == o.ndim]
            if o.ndim and not like:
                raise InputError(f"{self}: the shape of an output with {o.ndim} axes is not known",
                                 help="write infer_shape(self, node, input_shapes)")
            out.append(like[0] if o.ndim else ())
        return out

    def _key(self) -> Any:
        props = getattr(self, "__props__", None)
        return id(self) if props is None else (type(self), *[getattr(self, p) for p in props])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        props = ", ".join(f"{p}={getattr(self, p)!r}" for p in getattr(self, "__props__", ()))
        return type(self).__name__ + (f"{{{props}}}" if props else "")

    __repr__ = __str__


def as_op(itypes: Any, otypes: Any, infer_shape: Callable[..., Any] | None = None) -> Callable[..., Op]:
    """A decorator that makes an op of a function of arrays."""
    def listed(items: Any) -> list[Any]:
        return list(items) if isinstance(items, list | tuple) else [items]

    def make(fn: Callable[..., Any]) -> Op:
        def perform(self: Op, node: Apply, inputs: list[Any], storage: list[list[Any]]) -> None:
            found = fn(*inputs)
            for cell, item in zip(storage, found if isinstance(found, tuple | list) else [found], strict=True):
                cell[0] = item
        members: dict[str, Any] = {"perform": perform, "itypes": listed(itypes), "otypes": listed(otypes)}
        if infer_shape is not None:
            members["infer_shape"] = lambda self, node, shapes: infer_shape(node, shapes)
        return type(fn.__name__, (Op,), members)()
    return make


def clone(output: Any, replace: Any = None, strict: bool = True, share_inputs: bool = True, **options: Any) -> Any:
    """A variable, or a list of them, with variables that it is made of replaced."""
    pairs = [(tensor_of(k), tensor_of(v)) for k, v in (replace.items() if hasattr(replace, "items") else replace or [])]
    many = isinstance(output, list | tuple)
    found = sc.clone([tensor_of(o) for o in (output if many else [output])], pairs or None, strict=strict,
                     share_inputs=share_inputs)
    return [wrap(t) for t in found] if many else wrap(found[0])


class OpFromGraph:
    """A graph as a function of variables."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], **options: Any):
        self.inputs, self.outputs = list(inputs), list(outputs)

    def __call__(self, *given: Any) -> Any:
        if len(given) != len(self.inputs):
            raise InputError(f"OpFromGraph: {len(self.inputs)} inputs, {len(given)} are given")
        found = clone(self.outputs, dict(zip(self.inputs, given, strict=True)), strict=False)
        return found if len(found) > 1 else found[0]


__all__ = ["Op", "OpFromGraph", "TensorVariable", "as_op", "clone"]
