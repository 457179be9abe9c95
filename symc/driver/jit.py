"""``sc.jit``: trace an ordinary NumPy-style function once per signature of its arguments."""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import sys
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symc.driver.asked import MOST_VARIANTS
from symc.driver.compile import compile
from symc.driver.deferred_function import Made, Specializing, is_weak, trace_of, typed_input
from symc.driver.function import CompiledFunction
from symc.driver.short_rows import short_rows
from symc.driver.signature import own_out
from symc.driver.static_keys import Around, identities, key_of, key_of_nest
from symc.errors import InputError, SymbolicValueError, SymcError
from symc.ir.dtypes import dtype_code
from symc.ir.location import Loc
from symc.ir.traverse import postorder
from symc.numpy_api.making import symbolic_arrays
from symc.tensors.callsite import active, caller, scope, user_code
from symc.tensors.convert import default_float
from symc.tensors.deferred import contains_deferred
from symc.tensors.pytree import Nest, flatten, unflatten
from symc.tensors.state import SharedVariable, concrete
from symc.tensors.tensor import Tensor
from symc.tensors.tracing import Trace

#: How many signatures are kept; those that came first go.
MOST_SIGNATURES = 1024


class JitFunction(Specializing):
    """Result of ``jit``. Arguments are nests of arrays and numbers; results come in the function's own nest.

    Arrays and Python numbers are data; ``bool``, ``str``, ``None``, other objects and whatever ``static`` names belong
    to the signature, by what they are and hold in each call (``static_keys.py``). So do the variables around the
    function that its own code names, by what they are bound to. Called with symbolic values it is the function itself.
    """

    def __init__(self, fn: Callable[..., Any], static: Sequence[str | int] = (), **options: Any):
        super().__init__(options.pop("variants", MOST_VARIANTS))
        functools.update_wrapper(self, fn)
        self.name = options.pop("name", None) or getattr(fn, "__name__", "f")
        self._fn, self._options = fn, options
        self._signature_of = inspect.signature(fn)
        names = list(self._signature_of.parameters)
        kinds = {p.kind for p in self._signature_of.parameters.values()}
        self._plain = names if kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD} else None
        wanted = [static] if isinstance(static, str | int) else list(static)
        self._static = {names[s] if isinstance(s, int) and -len(names) <= s < len(names) else s for s in wanted}
        unknown = [s for s in self._static if s not in names]
        if unknown:
            raise InputError(f"jit: {self.name} has no parameter {unknown[0]!r}", where=[caller()])
        self._around = Around(fn)
        self._watched: dict[tuple, list[Any]] = {}  # what takes a variant along when it goes

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: ``self`` is the first argument, and static."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, /, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None and own_out(list(self._signature_of.parameters), args):
            kwargs, out = {**kwargs, "out": out}, None
        if self._around.changed():
            self._quick.clear()
        quick, compiled = self._seen(args) if not (kwargs or self._static) else (None, None)
        if compiled is not None:
            self._last = compiled
            return compiled(*args) if out is None else compiled(*args, out=out)  # a keyword takes the slow way
        loc = caller()
        bound = self._bound(args, kwargs)
        if "scipy.sparse" in sys.modules:
            import symc.sparse  # noqa: F401 - tells what its matrices are made of

        leaves, nest = flatten(bound)
        if contains_deferred(leaves) or active() is not None and any(isinstance(x, Tensor) for x in leaves):
            return self._fn(*args, **kwargs)
        if any(isinstance(x, Tensor) for x in leaves):  # there is no call, which has sizes
            with scope(Trace((), ())), symbolic_arrays():
                return self._fn(*args, **kwargs)
        try:
            key, compiled, arrays = self._found(leaves, nest)
            self._remember(quick, key, compiled)
            return compiled(*arrays) if out is None else compiled(*arrays, out=out)
        except SymcError as e:
            e.attach((), (loc,))
            raise

    @property
    def static(self) -> frozenset[str]:
        """The parameters whose values are part of the signature."""
        return frozenset(s for s in self._static if isinstance(s, str))

    def _found(self, leaves: Sequence[Any], nest: Nest) -> tuple[tuple, CompiledFunction, list[np.ndarray]]:
        """The function for arguments: its key, itself, and those arguments that are data."""
        places = self._places(nest)
        data = [k for k, x in enumerate(leaves) if self._is_data(x, places[k][0])]
        arrays = [concrete(leaves[k], f"{self.name}: {places[k][1]}") for k in data]
        key = self._key(leaves, nest, data, arrays)
        known = len(self.variants)
        compiled = self._variant(
            key, arrays, lambda: self._trace(leaves, nest, data, arrays, [places[k][1] for k in data]))
        if len(self.variants) != known:
            self._keep(key, leaves, nest, data, arrays)
            compiled._called = self._called(leaves, nest, data)
        return key, compiled, arrays

    def compiled_for(self, /, *args: Any, **kwargs: Any) -> tuple[CompiledFunction, list[np.ndarray]]:
        """The function that is compiled for arguments like these, and those of them that are data, in its order."""
        _, compiled, arrays = self._found(*flatten(self._bound(args, kwargs)))
        return compiled, arrays

    def _called(self, leaves: Sequence[Any], nest: Nest, data: Sequence[int]) -> dict[str, tuple[Nest, list[Any]]]:
        """The parameters by name, each with its nest and for each leaf of that None for data, else a number, text or
        the like as it was, in a tuple; ``(...,)`` is any other object. Those that were left out are their defaults."""
        rest = iter([None if k in data else _literal(x) for k, x in enumerate(leaves)])
        given = {name: (child, list(itertools.islice(rest, child.count)))
                 for name, child in zip(nest.keys, nest.children, strict=True)}
        usual = {n: flatten(p.default) for n, p in self._signature_of.parameters.items() if p.default is not p.empty}
        return {n: given[n] if n in given else (usual[n][1], list(map(_literal, usual[n][0])))
                for n in self._signature_of.parameters if n in given or n in usual}

    def _bound(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by parameter. Raises InputError for what the function does not take."""
        if self._plain is not None and not kwargs and len(args) == len(self._plain):
            return dict(zip(self._plain, args))  # as nearly always; ``bind`` takes 10 us
        try:
            return dict(self._signature_of.bind(*args, **kwargs).arguments)
        except TypeError as e:
            raise InputError(
                f"{self.name}: {e}", where=[caller()], help=f"it is defined as {self.name}{self._signature_of}"
            ) from None

    def _places(self, nest: Nest) -> list[tuple[str, str]]:
        """For every leaf its parameter and how it is reached from it."""
        out = []
        for name, child in zip(nest.keys, nest.children, strict=True):
            out += [(name, path) for path in child.paths(name)]
        return out

    def _is_data(self, item: Any, parameter: str) -> bool:
        if parameter in self._static or isinstance(item, bool | str | bytes | type | np.dtype) or callable(item):
            return False
        return isinstance(item, int | float | complex | np.ndarray | np.generic) or hasattr(item, "__array__")

    def _key(self, leaves: Sequence[Any], nest: Nest, data: Sequence[int], arrays: Sequence[np.ndarray]) -> tuple:
        types = tuple(
            [(dtype_code(a.dtype), tuple([s == 1 for s in a.shape]), is_weak(leaves[k])) for k, a in zip(data, arrays)]
        )
        fixed = tuple([(k, key_of(x, f"{self.name}: an argument")) for k, x in enumerate(leaves) if k not in data])
        return key_of_nest(nest), types, fixed, self._around.key, default_float()

    def _keep(self, key: tuple, *call: Any) -> None:
        """After a trace: what it changed itself (a counter, a cached value) is no change, and a variant of objects with
        an identity goes when one of them does."""
        self._around.changed()
        for k in {key, self._key(*call)}:
            kept: dict[Any, Any] = self._asked if key in self._asked else self.variants  # type: ignore[assignment]
            kept.setdefault(k, kept[key])
            gone = functools.partial(_forget, weakref.ref(self), k)
            self._watched[k] = [same.watch(gone) for same in identities(k)]
        for k in list(self._watched)[:-MOST_SIGNATURES]:  # one may come with each call: a text, a variable around
            self._quick.clear()
            _forget(weakref.ref(self), k, None)

    def __reduce__(self) -> Any:
        """Pickle by name where it has one; else by its function. It is traced again where it arrives."""
        fn: Any = self._fn
        if _named(fn) is self:
            if fn.__module__ != "__main__":
                return fn.__qualname__
            fn.__qualname__ += ".__wrapped__"  # the name that finds the function, now that its own finds this
        return _unpickled, (fn, tuple(sorted(self._static)), self.name, {**self._options, "variants": self._most})

    def _trace(
        self, leaves: Sequence[Any], nest: Nest, data: Sequence[int], arrays: Sequence[np.ndarray], names: Sequence[str]
    ) -> Made:
        """Run the function on symbolic values of these types, and compile what it returns.

        Where it asked for the number that a size is, it runs again with that number, which makes better code.
        """
        def run(fixed: set[tuple[int, int]]) -> tuple[Trace, list[Tensor], Any]:
            loc = _definition(self._fn)
            inputs = [typed_input(n, a, is_weak(leaves[k]), loc, {axis for at, axis in fixed if at == i})
                      for i, (n, k, a) in enumerate(zip(names, data, arrays, strict=True))]
            filled = list(leaves)
            for k, tensor in zip(data, inputs, strict=True):
                filled[k] = tensor
            bound = inspect.BoundArguments(self._signature_of, unflatten(nest, filled))
            trace = trace_of(inputs, arrays)
            with scope(trace), user_code(), symbolic_arrays():
                return trace, inputs, self._fn(*bound.args, **bound.kwargs)

        try:
            trace, inputs, outputs = run(set())
            if trace.fixed:
                _, inputs, outputs = run(trace.fixed)
        except SymbolicValueError as e:
            if "not known while" in e.what:
                e.help = f"{e.help}; or make the argument part of the signature: sc.jit(static=('name', ...))"
            raise
        except ValueError as e:
            own = e.__cause__ or e.__context__
            if not isinstance(own, SymbolicValueError):
                raise
            raise SymbolicValueError(  # which NumPy has put words of its own in the place of
                "a symbolic value is assigned to an array of NumPy's", values=own.values, where=own.where,
                help="make the array by np.zeros(shape) under this name, np.zeros_like(x), sc.zeros(shape) or "
                "sc.array([...])") from None
        _warn_of_length(self.name, outputs)
        options = {**self._options, "specialize": short_rows(arrays, self._options)}
        return compile(outputs, inputs, name=self.name, **options), list(trace.questions.values())


#: Programs with more operations than this take long to compile.
_LONG = 10_000


def _warn_of_length(name: str, outputs: Any) -> None:
    """Python's loops are unrolled, which is for few steps."""
    count = len(postorder([t.value for t in flatten(outputs)[0] if isinstance(t, Tensor)]))
    if count > _LONG:
        warnings.warn(f"{name}: {count} operations, as Python's loops are unrolled: sc.scan, sc.fori_loop and "
                      "sc.while_loop compile one step, for any number of steps", stacklevel=4)


def _literal(item: Any) -> tuple[Any]:
    """A number or text as it is; an ellipsis for anything else, which nothing here is to keep alive."""
    item = item.item() if isinstance(item, np.generic) else item
    return (item if isinstance(item, bool | int | float | complex | str | bytes) else ...,)


def _unpickled(fn: Callable[..., Any], static: Sequence[str], name: str, options: dict[str, Any]) -> JitFunction:
    return JitFunction(fn, static, name=name, **options)


def _named(fn: Any) -> Any:
    """The object that the name of a function finds."""
    found: Any = sys.modules.get(getattr(fn, "__module__", None) or "")
    for part in getattr(fn, "__qualname__", "<unnamed>").split("."):
        found = getattr(found, part, None)
    return found


def _forget(function: weakref.ref[JitFunction], key: tuple, _: Any) -> None:
    """Drop the variant of an object that went."""
    jitted = function()
    if jitted is not None:
        jitted.variants.pop(key, None)
        gone = jitted._asked.pop(key, None)
        if gone is not None:
            gone.clear()
            jitted._quick.clear()
        jitted._watched.pop(key, None)


def _definition(fn: Callable[..., Any]) -> Loc | None:
    """The line of ``def``, after the decorators."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return None
    for line in range(code.co_firstlineno, code.co_firstlineno + 20):
        if linecache.getline(code.co_filename, line).lstrip().startswith(("def ", "async def ")):
            return Loc(code.co_filename, line)
    return Loc(code.co_filename, code.co_firstlineno)


def jit(fn: Callable[..., Any] | None = None, *, static: Sequence[str | int] = (), variants: int = MOST_VARIANTS,
        **options: Any) -> Any:
    """Compile an ordinary NumPy-style function when it is called, once per signature (dtypes and ranks); every shape
    with these is served by the same compiled function, unless Python asks about sizes (``if n % 2``, ``range(n)``):
    then every shape with the same answers is. Arrays that the function makes may be written to.

    ``static``: names or positions of parameters whose values are part of the signature (an axis, a number of steps).
    ``variants``: how many answers to what Python asks of sizes are kept for one signature, 64 by default.
    Other options are those of ``compile``. Use as ``@sc.jit`` or ``@sc.jit(static=("n",))``.

    >>> @sc.jit
    ... def distance(a, b):
    ...     return np.sqrt(np.sum((a - b) ** 2))
    >>> distance(np.zeros(2), np.array([3.0, 4.0]))
    array(5.)
    """
    if fn is None:
        return lambda f: jit(f, static=static, variants=variants, **options)
    if isinstance(fn, SharedVariable | Tensor) or not callable(fn):
        raise InputError(
            f"jit takes a function, not {type(fn).__name__}",
            where=[caller()],
            help="sc.compile(value) compiles a value",
        )
    if variants < 1:
        raise InputError(f"jit: one variant at least is kept, not {variants}", where=[caller()])
    return JitFunction(fn, static, variants=variants, **options)
