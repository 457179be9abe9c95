"""Derivatives of functions: what ``sc.grad(fn)`` returns, a function of arrays that builds its own values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import InputError
from symc.ir.value import fresh_input
from symc.tensors import pytree as nest
from symc.tensors.callsite import caller
from symc.tensors.convert import as_tensor
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.tensor import Tensor
from symc.transforms.substitution import substitute


def is_function(x: Any) -> bool:
    """Is x a function of Python, not a value?"""
    return callable(x) and not hasattr(x, "dtype")


def of_function(what: str, fn: Callable[..., Any], argnums: Any,
                derivative: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Function of arrays that returns ``derivative(fn(*args), wrt)``, wrt being the arguments ``argnums``.

    Each of these is a leaf while ``fn`` is called: equal values are one, in the arguments and in what it uses besides.
    Raises InputError for ``argnums`` that are no numbers of arguments.
    """
    places = _numbers(what, fn, argnums)

    @functools.wraps(fn, assigned=("__name__", "__doc__"))
    def call(*args: Any, **kwargs: Any) -> Any:
        own = [_as_tensors(a) for a in args]
        given: list[tuple[Any, Any]] = []
        for k in places:
            if not -len(own) <= k < len(own):
                raise InputError(f"{what}: argnums has {k}, and {_name(fn)} was called with {len(own)} arguments",
                                 where=[caller()], help="arguments to differentiate by are given by position")
            leaves, structure = nest.flatten(own[k])
            placed = [_place(t) for t in leaves]
            given += [(p, t) for p, t in zip(placed, leaves, strict=True) if p is not t]
            own[k] = nest.unflatten(structure, placed)
        picked = own[argnums] if isinstance(argnums, int) else tuple(own[k] for k in places)
        return substitute(derivative(fn(*own, **kwargs), picked), given)

    return call


def _numbers(what: str, fn: Callable[..., Any], argnums: Any) -> Sequence[int]:
    """The positions in ``argnums``, which are one number or several."""
    found = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(found, (tuple, list)) or not all(isinstance(k, int) for k in found):
        raise InputError(f"{what} of the function {_name(fn)!r}: arguments are said by number, not {argnums!r:.60}",
                         where=[caller()],
                         help=f"sc.{what}(fn, 0) is a function of arrays; of values write sc.{what}(fn(x), x)")
    return found


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", fn))


def _as_tensors(x: Any) -> Any:
    leaves, structure = nest.flatten(x)
    return nest.unflatten(structure, [as_tensor(leaf) for leaf in leaves])


def _place(t: Any) -> Any:
    """An input in the place of a value, of its type."""
    if not isinstance(t, Tensor):
        return t
    leaf = Leaf(leaf_of(t.value).name or "value", caller())
    found = Tensor(register_leaf(fresh_input(t.value.type), leaf), weak=t.weak)
    found.labels = t.labels
    return found
