"""Decorator that makes a function public: it notes the user's line, defers for deferred arguments, and serves NumPy's
names.

One decorator does the three. Every function of the front end that takes or makes tensors wears it, so the tables here
are the list of what ``sc.*`` offers (``API``) and of which NumPy functions work on tensors (``DISPATCH``).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from symc.errors import SymcError
from symc.ir import location
from symc.ir.location import Loc
from symc.settings import shadowing
from symc.tensors.callsite import active, caller
from symc.tensors.deferred import recorder_in
from symc.tensors.guidance import endless
from symc.tracebacks import trim

#: So many public functions inside of each other in a recursion that has no end.
ENDLESS = 8
F = TypeVar("F", bound=Callable[..., Any])

#: Public functions by name.
API: dict[str, Callable[..., Any]] = {}
#: NumPy's functions (not ufuncs) and what runs when they get a tensor.
DISPATCH: dict[Any, Callable[..., Any]] = {}
#: What the results of public functions share with their arguments.
MEMORY: dict[Any, str] = {}
#: What methods of tensors call that is written on top of tensors: "ufunc", "function", "at", "assign" and the like.
PROTOCOLS: dict[str, Callable[..., Any]] = {}


def located(fn: F, memory: str = "") -> F:
    """Note the user's line in a call, and record the call instead when an argument is deferred.

    In a trace, results share the memory of arguments as NumPy's do (``memory``: "view", "item", "always" or "new").

    Only the outermost call notes its line; a call made by symc itself belongs to the line that is in force.
    """

    name = getattr(fn, "__name__", "").strip("_")

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = recorder_in(args)
        if recorder is None and kwargs:
            recorder = recorder_in(kwargs)
        if recorder is not None:
            return recorder.record(call, args, kwargs)
        if location.here():
            return fn(*args, **kwargs)
        loc = caller(name)
        with location.at((loc,)):
            try:
                labelled = "label" in PROTOCOLS
                if labelled:
                    args, kwargs = PROTOCOLS["named_axes"](fn, args, kwargs)
                out, scope = fn(*args, **kwargs), active()
                if shadowing():
                    from symc.tensors.shadow import compute  # off in most programs

                    compute(out)
                if labelled:
                    PROTOCOLS["label"](fn, args, kwargs, out)
                return out if scope is None else PROTOCOLS["settled"](memory, scope, args, kwargs, out)
            except SymcError as e:
                _with_line(e, loc)
                raise
            except RecursionError as e:
                if not _again(e, call):
                    raise
                raise endless(name, loc) from None
            except Exception as e:
                _with_line(e, loc)
                raise

    as_wraps(call, fn)
    call.runs = fn  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def _with_line(e: Exception, loc: Loc) -> None:
    """Name the user's line in an error, also in Python's own, such as a wrong number of arguments."""
    if isinstance(e, SymcError):
        e.attach((), (loc,))
    else:
        e.add_note(f"in {loc}         {loc.text}")
    trim(e)


def called(fn: F, name: str, doc: str | None) -> F:
    """One of several functions that are made alike, with a name and documentation of its own."""
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = doc
    return fn


def as_wraps(call: Any, fn: Any) -> None:
    """Lets ``call`` look like ``fn``, as ``functools.wraps`` does, at a third of the price for functions."""
    if type(fn) is not FunctionType:
        functools.update_wrapper(call, fn)
        return
    call.__module__, call.__name__, call.__qualname__ = fn.__module__, fn.__name__, fn.__qualname__
    call.__doc__, call.__annotations__ = fn.__doc__, fn.__annotations__
    call.__dict__.update(fn.__dict__)
    call.__wrapped__ = fn


def _again(e: RecursionError, call: Any) -> bool:
    """True if the public function called is the outermost one of a recursion through such functions."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if frame.f_code is call.__code__:
            return False
        frame = frame.f_back
    found, trace = 0, e.__traceback__
    while trace is not None:
        found += trace.tb_frame.f_code is call.__code__
        trace = trace.tb_next
    return found > ENDLESS


def public(
    *numpy_functions: Any, name: str | None = None, aliases: tuple[str, ...] = (), memory: str = ""
) -> Callable[[F], F]:
    """``@public(np.sum)``: a public function, and what the NumPy functions named run on tensors. ``memory``: what its
    results share with its arguments (``symc.numpy_api.aliasing``)."""

    def wrap(fn: F) -> F:
        call = located(fn, memory)
        for n in (name or fn.__name__.rstrip("_"), *aliases):
            API[n] = call
        MEMORY[call] = memory
        for np_function in numpy_functions:
            DISPATCH[np_function] = call
        return call

    return wrap
