"""Functions that are typed by their calls: one compiled function per signature, kept.

A signature is the dtypes and ranks of the arguments, which of their axes have size 1 (those broadcast), and which are
Python numbers (those promote as such).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from symc.driver.asked import MOST_VARIANTS, Asked, Shapes
from symc.driver.build import free_leaves
from symc.driver.function import CompiledFunction
from symc.driver.short_rows import short_rows
from symc.driver.signature import Arguments, Slot, own_out, signature_of
from symc.errors import InputError, PipelineError, SymcError
from symc.ir import location
from symc.ir.dtypes import dtype_code
from symc.ir.location import Loc
from symc.ir.locks import new_lock
from symc.ir.types import as_dtype
from symc.notebook import Shown, table
from symc.tensors.callsite import caller, no_scope, scope
from symc.tensors.convert import as_tensor, default_float, promotes_weakly
from symc.tensors.deferred import Deferred, free_variables, held_tensors, instantiate
from symc.tensors.inputs import input as make_input
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.pytree import flatten, unflatten
from symc.tensors.state import concrete, converted
from symc.tensors.tensor import Tensor
from symc.tensors.tracing import Question, Trace

if TYPE_CHECKING:
    from symc.driver.push import PushedCall


class Identities(list):
    """Symbolic values, told apart by identity: their ``==`` is symbolic."""

    def __contains__(self, item: object) -> bool:
        return any(item is x for x in self)


#: Methods and properties of the compiled function that stand for those of the signature called last.
TOOLS = ("dump", "stages", "plan", "source", "kernels", "memory", "explain", "why_not", "to_networkx", "to_dot",
         "to_html", "draw", "inputs", "compile_count", "trace", "profile", "compile_profile", "shared")  # fmt: skip


_INT64 = 2**63 - 1
#: A function, and what was asked about sizes while it was traced.
Made = tuple[CompiledFunction, list[Question]]


class Specializing(Shown):
    """Keeps one compiled function per signature; subclasses make them. Tools show the one that was called last."""

    name: str

    def __init__(self, most: int = MOST_VARIANTS) -> None:
        self.variants: dict[Any, CompiledFunction] = {}
        self._last: CompiledFunction | None = None
        self._quick: dict[tuple, CompiledFunction | Asked] = {}  # by dtypes, ranks and axes of size 1
        self._asked: dict[Any, Asked] = {}  # by signature, where something was asked about sizes
        self._most = most
        self._lock = new_lock()
        self._float = default_float()

    def _seen(self, args: tuple) -> tuple[tuple | None, CompiledFunction | None]:
        """For arguments that are plain arrays and numbers: a key, and the function that served it before."""
        if default_float() is not self._float:
            self._float = default_float()
            self._quick.clear()
        found: list[Any] = []
        for a in args:
            kind = type(a)
            if kind is np.ndarray:
                shape = a.shape
                found.append((a.dtype, tuple([s == 1 for s in shape]) if 1 in shape else len(shape)))
            elif kind is float or kind is int and abs(a) <= _INT64:  # a larger one has another dtype
                found.append(kind)
            else:
                return None, None
        key = tuple(found)
        known = self._quick.get(key)
        return key, known.find(tuple([np.shape(a) for a in args])) if type(known) is Asked else known  # type: ignore

    def _remember(self, quick: tuple | None, key: Any, compiled: CompiledFunction) -> None:
        if quick is not None:
            self._quick[quick] = self._asked.get(key, compiled)

    def _find(self, key: Any, shapes: Shapes) -> CompiledFunction | None:
        asked = self._asked.get(key)
        return self.variants.get(key) if asked is None else asked.find(shapes)

    def _variant(self, key: Any, arrays: Sequence[np.ndarray], make: Callable[[], Made]) -> CompiledFunction:
        """The function for a signature and these sizes, made if it is not there. ``make`` says what it asked."""
        shapes = tuple([a.shape for a in arrays])
        found = self._find(key, shapes)
        if found is None:
            with self._lock:
                found = self._find(key, shapes)
                if found is None:
                    found, questions = make()
                    if not questions:
                        self.variants[key] = found
                    else:
                        asked = self._asked.setdefault(key, Asked(self.name, self.variants, self._most))
                        asked.add(questions, (key, tuple([q.answer for q in questions])), found)
        self._last = found
        return found

    @property
    def questions(self) -> list[str]:
        """Questions that Python asked about sizes while the function was traced, on which lines: each answer has a
        variant."""
        return list(dict.fromkeys(str(q) for a in self._asked.values() for q in a.questions()))

    def __getattr__(self, name: str) -> Any:
        if name not in TOOLS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if self._last is None:
            raise PipelineError(
                f"{self.name} has no {name} yet: it is compiled for the types of its first call",
                where=[caller()],
                help="call it once",
            )
        return getattr(self._last, name)

    def compiled_for(self, /, *args: Any, **kwargs: Any) -> tuple[CompiledFunction, list[np.ndarray]]:
        """The function that is compiled for arguments like these, and those of them that are data, in its order."""
        raise NotImplementedError

    def push(self, /, *args: Any, **kwargs: Any) -> PushedCall:
        """A call in the background, as of ``CompiledFunction.push``. It is typed now, so calls that were pushed and are
        arguments are waited for."""
        from symc.driver.push import PushedCall

        own = own_out(list(signature(self).parameters), args)  # type: ignore[arg-type]
        out = {} if own or "out" not in kwargs else {"out": kwargs.pop("out")}
        leaves, nest = flatten((args, kwargs))
        args, kwargs = unflatten(nest, [x.result() if isinstance(x, PushedCall) else x for x in leaves])
        compiled, arrays = self.compiled_for(*args, **kwargs)
        return compiled.push(*arrays, **out)

    def save(self, path: Any) -> None:
        """Raises InputError: only functions with known types are data."""
        raise InputError(
            f"{self.name} is compiled anew for every signature and cannot be saved as one",
            where=[caller()],
            help="save what it compiled for a signature: next(iter(f.variants.values())).save(path)",
        )

    def export_c(self, directory: Any) -> Any:
        """As of a compiled function, where there is one signature."""
        return self.only("export_c").export_c(directory)

    def export_library(self, path: Any) -> Any:
        """As of a compiled function, where there is one signature."""
        return self.only("export_library").export_library(path)

    def to_onnx(self, path: Any) -> None:
        """As of a compiled function, where there is one signature."""
        self.only("to_onnx").to_onnx(path)

    def to_stablehlo(self, **sizes: int) -> str:
        """As of a compiled function, where there is one signature."""
        return self.only("to_stablehlo").to_stablehlo(**sizes)

    def only(self, what: str) -> CompiledFunction:
        """The function of the one signature there is. Raises InputError: an export has known types."""
        if len(self.variants) == 1:
            return next(iter(self.variants.values()))
        if not self.variants:
            raise InputError(f"{self.name} has no signature yet, and an export is for one", where=[caller()],
                             help=f"call it once with arrays of the types that it is to have, then {what}")
        signatures = [(f"variant {k}", ", ".join(f"{i.name}: {i.type}" for i in f.inputs), None)
                      for k, f in enumerate(self.variants.values())]
        raise InputError(f"{self.name} has {len(self.variants)} signatures, and an export is for one",
                         values=signatures, where=[caller()],
                         help=f"choose one: list({self.name}.variants.values())[0].{what}(...)")

    def __getstate__(self) -> dict[str, Any]:
        """Without what was compiled: that is compiled again where it is called."""
        return {**self.__dict__, "variants": {}, "_asked": {}, "_last": None, "_quick": {}, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=new_lock())

    def _html_(self) -> str:
        rows = enumerate(map(repr, self.variants.values()), 1)
        return table(["", "compiled for a signature"], list(rows), caption=repr(self))

    def __str__(self) -> str:
        return self._last.dump() if self._last is not None else repr(self)

    def __repr__(self) -> str:
        asked = "".join(f"; asked {q.partition(', asked in')[0]}" for q in self.questions[:3])
        return (f"<{self.name}, compiled for {len(self.variants)} signature{'' if len(self.variants) == 1 else 's'}"
                f"{asked}>")


class DeferredFunction(Specializing):
    """Result of ``compile`` for an expression over variables of unknown type. ``compiler``: ``compile`` itself."""

    def __init__(self, compiler: Callable[..., Any], outputs: Any, inputs: Any, updates: Any, givens: Any, donate: Any,
                 options: Mapping[str, Any], loc: Loc):
        super().__init__()
        self._compiler = compiler
        self.name, self._options, self._loc = options["name"], dict(options), loc
        pairs = [list(x.items()) if isinstance(x, Mapping) else list(x or ()) for x in (updates, givens)]
        self._leaves, self._nest = flatten([outputs, *pairs, flatten(donate)[0]])
        self._given = Identities(k for k, _ in pairs[1])
        self._variables, self._slots = self._find_inputs(inputs)
        self.__signature__ = signature_of(self._slots)
        self._arguments = Arguments(self.name, self._slots, [_row(k, v) for k, v in enumerate(self._variables)])

    def _find_inputs(self, inputs: Any) -> tuple[list[Any], list[Slot]]:
        """The variables and inputs in positional order."""
        if inputs is None:
            given = [k.value for k in self._given if isinstance(k, Tensor)]
            held = free_leaves([t.value for t in held_tensors(self._leaves)])
            tensors = [Tensor(v) for v in held if leaf_of(v).role == "arg" and v not in given]
            found: list[Any] = [*[v for v in free_variables(self._leaves) if v not in self._given], *tensors]
            found.sort(key=lambda v: v.serial if isinstance(v, Deferred) else v.value.attrs["serial"])
            return found, [Slot(_name(v), default=_default(v)) for v in found]
        items = (
            list(inputs.items())
            if isinstance(inputs, Mapping)
            else [("", i) for i in ([inputs] if isinstance(inputs, Tensor | Deferred) else inputs)]
        )
        for k, (_, item) in enumerate(items):
            if not (isinstance(item, Tensor) or (isinstance(item, Deferred) and item.is_variable)):
                raise InputError(
                    f"input {k} is not an input or a variable: {item!r:.60}",
                    where=[self._loc],
                    help="with variables of unknown type, inputs are single values made by sc.Variable or sc.input",
                )
        found = [item for _, item in items]
        absent = [v for v in free_variables(self._leaves) if v not in Identities(found) and v not in self._given]
        if absent:
            raise InputError(
                f"the outputs depend on {absent[0].name}, which is not among the inputs",
                where=[self._loc],
                values=[(f"%{v.name}", "type unknown", v.loc) for v in absent],
                help="add it to inputs, or give it a value in givens",
            )
        return found, [Slot(n or _name(v), default=_default(v)) for n, v in items]

    def __call__(self, /, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and own_out([s.name for s in self._slots], args):
            kwargs, out = {**kwargs, "out": out}, None
        quick, compiled = self._seen(args) if not kwargs else (None, None)
        if compiled is not None:
            self._last = compiled
            return compiled(*args) if out is None else compiled(*args, out=out)  # a keyword takes the slow way
        try:
            key, compiled, arrays = self._found(args, kwargs)
            self._remember(quick, key, compiled)
        except SymcError as e:
            e.attach((), (caller(),))
            raise
        return compiled(*arrays) if out is None else compiled(*arrays, out=out)

    def _found(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, CompiledFunction, list[np.ndarray]]:
        """The function for arguments: its key, itself, and the arrays."""
        given = self._arguments.bind(args, kwargs)
        arrays = [self._array(k, item) for k, item in enumerate(given)]
        weak = list(map(is_weak, given))
        types = tuple([(dtype_code(a.dtype), tuple([s == 1 for s in a.shape]), w) for a, w in zip(arrays, weak)])
        key = types, default_float()
        return key, self._variant(key, arrays, lambda: self._compile(arrays, weak)), arrays

    def compiled_for(self, /, *args: Any, **kwargs: Any) -> tuple[CompiledFunction, list[np.ndarray]]:
        return self._found(args, kwargs)[1:]

    def _array(self, k: int, item: Any) -> np.ndarray:
        v = self._variables[k]
        label = f"{self.name}: {self._slots[k].name or f'argument {k}'}"
        try:
            a = concrete(item, label)
            known = v.known_dtype if isinstance(v, Deferred) else v.dtype
            return a if known is None else converted(a, known, label, listed=isinstance(item, list | tuple))
        except SymcError as e:
            e.attach([_row(k, v)], ())
            raise

    def _compile(self, arrays: Sequence[np.ndarray], weak: Sequence[bool]) -> Made:
        """Type the expressions for these arrays, and compile them."""
        mapping: dict[Deferred, Tensor] = {}
        inputs: list[Tensor] = []
        for v, a, w in zip(self._variables, arrays, weak, strict=True):
            tensor = v if isinstance(v, Tensor) else typed_input(_name(v), a, w, v.loc, default=_default(v))
            inputs.append(tensor)
            if isinstance(v, Deferred):
                mapping[v] = tensor
        trace = trace_of(inputs, arrays)
        with scope(trace):
            self._map_givens(mapping)
            outputs, updates, givens, donate = unflatten(self._nest, instantiate(self._leaves, mapping))
        compiled = self._compiler(
            outputs,
            inputs,
            updates=updates,
            givens=[(k, v) for k, v in givens if k is not v],
            donate=donate,
            **{**self._options, "specialize": short_rows(arrays, self._options)},
        )
        return compiled, list(trace.questions.values())

    def _map_givens(self, mapping: dict[Deferred, Tensor]) -> None:
        """A variable that is given a value takes its type from it."""
        for k, v in unflatten(self._nest, self._leaves)[2]:
            if isinstance(k, Deferred) and k.is_variable:
                mapping[k] = as_tensor(instantiate([v], mapping)[0])


def is_weak(item: Any) -> bool:
    """A number that promotes by its kind alone inside the function: all that do but what only uint64 holds."""
    return promotes_weakly(item) and not (isinstance(item, int) and abs(item) > _INT64)


def trace_of(inputs: Sequence[Tensor], arrays: Sequence[np.ndarray]) -> Trace:
    """The trace of a call with these arrays."""
    return Trace([(leaf_of(t.value).name, t.value.shape) for t in inputs], [a.shape for a in arrays])


def typed_input(name: str, array: np.ndarray, weak: bool, loc: Loc | None, fixed: Collection[int] = (),
                default: Any = None) -> Tensor:
    """An input for arrays like this one: its dtype and rank, size 1 where it has it and the sizes of the axes that are
    ``fixed``, a size of its own elsewhere."""
    with location.at((loc,) if loc else ()), no_scope():
        t = make_input(name, as_dtype(array.dtype),
                       [s if s == 1 or axis in fixed else None for axis, s in enumerate(array.shape)])
    if loc is not None:
        register_leaf(t.value, Leaf(name, loc, default=default))
    with no_scope():
        return Tensor(t.value, weak=weak)


def _name(v: Any) -> str:
    return v.name if isinstance(v, Deferred) else leaf_of(v.value).name


def _default(v: Any) -> Any:
    return v.default if isinstance(v, Deferred) else leaf_of(v.value).default


def _loc(v: Any) -> Loc | None:
    return v.loc if isinstance(v, Deferred) else leaf_of(v.value).loc


def _row(k: int, v: Any) -> tuple[str, Any, Any]:
    return f"argument {k}, %{_name(v)}", "type unknown" if isinstance(v, Deferred) else v.value.type, _loc(v)
