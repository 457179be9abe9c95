"""``checkpoint``: a function whose intermediate values are computed again for its derivative instead of being kept.

How much memory a whole compiled function may use is said to ``compile`` (``max_bytes``); this is the part for those who
know where.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from symc.errors import InputError, SymcError, did_you_mean
from symc.ir import location
from symc.ir.bodies import branch_captures, built, close
from symc.ir.ops.kernel import results_of
from symc.ir.ops.remat import POLICIES
from symc.ir.ops.remat import checkpoint as checkpoint_op
from symc.ir.value import Value, first_line, fresh_input
from symc.tensors import pytree as nest
from symc.tensors.callsite import caller, user_code
from symc.tensors.convert import as_tensor
from symc.tensors.labels import dims_of
from symc.tensors.leaves import Leaf, leaf_of, register_leaf
from symc.tensors.public import API, located
from symc.tensors.tensor import Tensor


def checkpoint(fn: Callable[..., Any] | None = None, *, policy: str = "nothing") -> Callable[..., Any]:
    """``fn``, of whose intermediate values a derivative keeps none: it computes them again, when it needs them.

    The results are the same. Reverse mode then holds only the arguments (and what ``fn`` uses from outside) between the
    forward and the backward computation, at the price of a second forward one. A chain of checkpointed parts needs the
    memory of one part and of all the values between parts. In the step of a loop it means that carries and rows alone
    are kept for every step.
    ``policy``: what is kept nevertheless: "nothing", or "dots", the results of matrix products.

    Arguments and results may be nests; arguments that are not symbolic are passed as they are. It may be nested, and
    used as a decorator: ``@sc.checkpoint``, ``@sc.checkpoint(policy="dots")``.
    Raises InputError for something that is no function, and for an unknown policy.

    >>> x = sc.vector("x")
    >>> layer = sc.checkpoint(lambda h: sc.tanh(sc.sin(h)))
    >>> sc.compile(sc.grad(sc.sum(layer(x)), x))([0.0, 1.0])
    array([1.        , 0.28560257])
    """
    if fn is None:
        return functools.partial(checkpoint, policy=policy)
    if isinstance(fn, Tensor) or not callable(fn):
        raise InputError(f"checkpoint takes a function, not {type(fn).__name__}", where=[caller()])
    if policy not in POLICIES:
        raise InputError(f"checkpoint: no policy is called {policy!r}", help=did_you_mean(str(policy), POLICIES),
                         where=[caller()])
    call = located(functools.partial(_call, fn, policy))
    return functools.update_wrapper(call, fn)


API["checkpoint"] = checkpoint


def _call(fn: Callable[..., Any], policy: str, /, *args: Any, **kwargs: Any) -> Any:
    given, structure = nest.flatten((args, kwargs))
    symbolic = [x for x in given if isinstance(x, Tensor)]
    inputs = [leaf_in_body(x) for x in symbolic]
    filled = iter([Tensor(v, x.weak) for v, x in zip(inputs, symbolic, strict=True)])
    args, kwargs = nest.unflatten(structure, [next(filled) if isinstance(x, Tensor) else x for x in given])
    with built() as made, user_code():
        found = fn(*args, **kwargs)
    results, out = nest.flatten(found)
    values = [_result(x, path) for x, path in zip(results, out.paths(), strict=True)]
    if not values:
        return found
    return nest.unflatten(out, [Tensor(v) for v in _made(inputs, [x.value for x in symbolic], values, made, policy)])


def _made(inputs: Sequence[Value], outside: Sequence[Value], results: Sequence[Value], made: set[Value],
          policy: str) -> list[Value]:
    """The results of the op. What was built before is an operand, like the arguments."""
    captured = [v for v in branch_captures(results, made) if v not in set(inputs)]
    body = close(inputs, captured, results)
    v = checkpoint_op(*outside, *captured, policy=policy, regions=[body.region])
    location.note_inside(v, body.notes)
    return results_of(v)


def _result(x: Any, path: str) -> Value:
    try:
        t = as_tensor(x)
    except SymcError as e:
        raise InputError(f"checkpoint: result{path} is not an array: {type(x).__name__} {x!r:.40}".rstrip()) from e
    return (API["asarray"](t) if t.weak else t).value  # a number would promote like one; a result does not


def leaf_in_body(outside: Tensor) -> Value:
    """A leaf of a body, for a value from outside."""
    known, v = leaf_of(outside.value), outside.value
    leaf = Leaf(known.name, known.loc or first_line(v), "body", dims=dims_of(outside))
    return register_leaf(fresh_input(v.type), leaf)
