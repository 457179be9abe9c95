"""What makes a function public: it notes the user's line, defers for deferred arguments, and serves NumPy's names.

One decorator does the three. Every function of the front end that takes or makes tensors wears it, so the tables here
are the list of what ``sc.*`` offers (``API``) and of which NumPy functions work on tensors (``DISPATCH``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from symc.errors import SymcError
from symc.ir import location
from symc.tensors.callsite import caller
from symc.tensors.deferred import recorder_in

F = TypeVar("F", bound=Callable[..., Any])

#: Public functions by name.
API: dict[str, Callable[..., Any]] = {}
#: NumPy's functions (not ufuncs) and what runs when they get a tensor.
DISPATCH: dict[Any, Callable[..., Any]] = {}
#: What methods of tensors call that is written on top of tensors: "ufunc", "function", "namespace" and "at".
PROTOCOLS: dict[str, Callable[..., Any]] = {}


def located(fn: F) -> F:
    """Note the user's line in a call, and record the call instead when an argument is deferred.

    Only the outermost call notes its line; a call made by symc itself belongs to the line that is in force.
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = recorder_in(args)
        if recorder is None and kwargs:
            recorder = recorder_in(kwargs)
        if recorder is not None:
            return recorder.record(call, args, kwargs)
        if location.here():
            return fn(*args, **kwargs)
        loc = caller()
        with location.at((loc,)):
            try:
                return fn(*args, **kwargs)
            except SymcError as e:
                e.attach((), (loc,))
                raise
            except Exception as e:  # Python's own errors, such as a wrong number of arguments, name the line too
                e.add_note(f"in {loc}         {loc.text}")
                raise

    return call  # type: ignore[return-value]


def public(*numpy_functions: Any, name: str | None = None, aliases: tuple[str, ...] = ()) -> Callable[[F], F]:
    """``@public(np.sum)``: a public function, and what the NumPy functions named run on tensors."""

    def wrap(fn: F) -> F:
        call = located(fn)
        for n in (name or fn.__name__.rstrip("_"), *aliases):
            API[n] = call
        for np_function in numpy_functions:
            DISPATCH[np_function] = call
        return call

    return wrap
