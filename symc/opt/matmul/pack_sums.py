"""Sums of products that become one product: `A @ C + B @ D -> [A | B] @ [C; D]`.

Only where both sides come together for nothing: the gradient that goes back through four gates is made by one kernel,
which writes its parts side by side, and the weights are concatenated once for all steps. Elsewhere a product that adds
to what is there already is as good, and copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symc.ir.ops.arithmetic import add, neg, sub
from symc.ir.ops.linalg import dot
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.opt.fusion.kernel_ops import MAX_CONCAT
from symc.opt.matmul.pack_costs import MARGIN, saved_by_joining
from symc.opt.matmul.pack_parts import Parts, Scene, arrange

#: What may be concatenated for nothing.
FREE = ("slices", "fixed", "made")


@dataclass(frozen=True)
class Term:
    """``sign`` times a value, which is a term of a sum."""

    sign: int
    value: Value


@dataclass
class Joined:
    """A sum and the products in it that become one: their operands side by side, and the other terms."""

    root: Value
    terms: list[Value]
    left: Parts
    right: Parts
    like: Value  # one of the products
    rest: list[Term]


def joining(scene: Scene, forms: Mapping[Value, Value]) -> list[Joined]:
    """The sums of products that become one product and gain by it."""
    out = []
    inner: set[Value] = set()
    for root in reversed(scene.values):
        if root.op in (add, sub) and root not in inner:
            terms = _terms(scene, root, inner)
            alike: dict[tuple, list[Term]] = {}
            for t in terms:
                if t.value in forms and scene.uses(t.value) == 1:
                    alike.setdefault(_key(forms[t.value]), []).append(t)
            found = max(alike.values(), key=len, default=[])
            if len(found) > 1 and (j := _joined(scene, root, terms, found, forms)) is not None:
                out.append(j)
    return out


def _terms(scene: Scene, root: Value, inner: set[Value]) -> list[Term]:
    """The terms of a sum, through sums that nothing else reads; those are noted in ``inner``."""
    out: list[Term] = []
    stack = [(1, root)]
    while stack:
        sign, v = stack.pop()
        if v is root or v.op in (add, sub, neg) and v.type is root.type and scene.uses(v) == 1:
            inner.add(v)
            signs = (-sign,) if v.op is neg else (sign, -sign if v.op is sub else sign)
            stack += list(zip(signs, v.operands, strict=True))[::-1]
        else:
            out.append(Term(sign, v))
    return out


def _key(form: Value) -> tuple:
    """Equal for products whose operands can be put side by side along the first contracted axes."""
    contract, batch = form.attrs["contract"], form.attrs["batch"]
    shapes = [tuple(n for a, n in enumerate(o.shape) if a != c[0]) if c else None
              for o, c in zip(form.operands, contract, strict=True)]
    return (contract, batch, *shapes, form.dtype.char)


def _joined(scene: Scene, root: Value, terms: list[Term], found: list[Term],
            forms: Mapping[Value, Value]) -> Joined | None:
    """The products of a sum as one, if that costs nothing."""
    if not forms[found[0].value].attrs["contract"][0]:
        return None
    found = found[:MAX_CONCAT]
    pairs: dict[Value, Value] = {}
    for t in found:  # (a product that is taken off is added with the sign in its left operand)
        a, b = forms[t.value].operands
        pairs[a if t.sign > 0 else neg(a)] = b
    contract = forms[found[0].value].attrs["contract"]
    sides = []
    for k, values in enumerate((list(pairs), list(pairs.values()))):
        if len(set(values)) < len(found):
            return None  # a common factor: the sum of the others is multiplied once, by a rule
        made = arrange(scene, values, contract[k][0])
        if len(made) != 1 or len(made[0].values) != len(found) or made[0].kind not in FREE:
            return None
        sides.append(made[0])
    if sides[0].kind == sides[1].kind == "made":
        return None  # (what is made at different times would all be kept)
    left, right = _in_one_order(sides[0], sides[1], pairs)
    own = {t.value for t in found}
    cost = sum(p.cost(scene.read_besides(p.values, own)) for p in (left, right))
    if saved_by_joining(root, len(found)) <= MARGIN * cost:
        return None
    for p in (left, right):
        scene.orders.setdefault(frozenset(p.values), tuple(p.values))
    return Joined(root, [t.value for t in found], left, right, forms[found[0].value],
                  [t for t in terms if t.value not in own])


def _in_one_order(left: Parts, right: Parts, pairs: Mapping[Value, Value]) -> tuple[Parts, Parts]:
    """Both sides in the order of the one that has an order: slices of an array, or what is fixed."""
    if left.kind == "slices" or right.kind == "made":
        return left, right.in_order([pairs[a] for a in left.values])
    back = {b: a for a, b in pairs.items()}
    return left.in_order([back[b] for b in right.values]), right


def sum_of(j: Joined, note: Callable[[Value, Sequence[Value]], None]) -> Value:
    """The sum with one product in place of several. ``note(new, olds)``: whose lines a new value has."""
    left, right = j.left.joined(), j.right.joined()
    out = dot(left, right, contract=j.like.attrs["contract"], batch=j.like.attrs["batch"])
    for v in (left, right, out):
        note(v, j.terms)
    for t in sorted(j.rest, key=lambda t: -t.sign):
        out = (add if t.sign > 0 else sub)(out, t.value)
        note(out, [j.root])
    return out
