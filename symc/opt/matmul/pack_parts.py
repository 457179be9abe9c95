"""Parts in which products differ, side by side: the order in which they are concatenated, and its cost.

Slices of one array that follow one another are that array. *Fixed* parts are the same in every step of the loop around,
or in every call: they are concatenated once. *Made* parts come from a kernel, which writes each where it belongs. Any
others are copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from symc.ir.function import Function
from symc.ir.ops.effect import has_effect
from symc.ir.ops.linalg import dot
from symc.ir.ops.shape import concat, reshape, slice_
from symc.ir.record import dataclass, field
from symc.ir.traverse import users
from symc.ir.types import TensorType
from symc.ir.value import Value
from symc.opt.fusion.kernel_ops import MAX_CONCAT, is_free, is_kernel_op
from symc.opt.matmul.pack_costs import copies

Rank = tuple[int, int]

#: Of what more values use, it is not looked up who they are.
MOST_USERS = 32


class Scene:
    """A function or body: who uses what, what is the same in every step, and in which order leaves are named.

    ``ranks`` orders the params by what they are outside: the loops of a value and of its gradient then concatenate the
    same weights in the same order. ``varying``: the params that change from step to step. ``stacked``: the results that
    a loop stacks, of which parts can be taken outside.
    """

    def __init__(self, f: Function, ranks: Mapping[Value, int], varying: Iterable[Value], stacked: Iterable[Value]):
        self.f, self.ranks, self.stacked = f, ranks, set(stacked)
        self.values = f.values()
        self.position = {v: k for k, v in enumerate(self.values)}
        self.users = users(self.values)
        self.results = set(f.body.results)
        self.keys: Mapping[tuple[Value, Value], Sequence[tuple]] = {}
        self.alike: dict[tuple, set[Value]] = {}
        self.orders: dict[frozenset[Value], tuple[Value, ...]] = {}  # how parts are concatenated elsewhere
        changing = set(varying)
        for v in self.values:
            if v not in changing and (has_effect(v) or any(o in changing for o in v.operands)):
                changing.add(v)
        self.changing = changing

    def uses(self, v: Value) -> int:
        """The number of values and results that use ``v``."""
        return len(self.users.get(v, ())) + (v in self.results)

    def is_fixed(self, v: Value) -> bool:
        """True if ``v`` is the same in every step, or in every call."""
        return v not in self.changing if v in self.position else all(map(self.is_fixed, v.operands))

    def is_made(self, v: Value) -> bool:
        """True if a kernel of this body makes ``v``, which can write it anywhere."""
        computed = "elementwise" in v.op.traits and bool(v.operands) and not v.regions
        return computed and is_kernel_op(v) and not is_free(v)

    def rank(self, v: Value) -> Rank:
        """Leaves by what they are outside, then everything else as it is met."""
        return (0, self.ranks[v]) if v in self.ranks else (1, self.position.get(v, 0))

    def in_kernels(self, v: Value) -> bool:
        """True if kernels alone read ``v``: a part of an array costs them nothing."""
        return self._is_inner(v) and all(self._reads(u, v) for u in self.users[v])

    def read_besides(self, parts: Sequence[Value], own: Collection[Value]) -> list[Value]:
        """The parts that are arrays of their own as well: something reads them that is neither a kernel, nor a product
        in ``own``, nor one that is packed with those of the other parts."""
        return [v for v in parts if not self._is_inner(v) or len(self.users.get(v, ())) > MOST_USERS or not all(
            u in own or self._reads(u, v) or self._in_parallel(u, v, parts) for u in self.users.get(v, ()))]

    def _in_parallel(self, user: Value, v: Value, parts: Sequence[Value]) -> bool:
        """True if each of the parts is read by a product that differs from this one in it alone."""
        return any(self.alike[key].issuperset(parts) for key in self.keys.get((user, v), ()))

    def note_products(self, keys: Mapping[tuple[Value, Value], Sequence[tuple]]) -> None:
        """Keys by product and part: what is equal for products that can be one."""
        self.keys = keys
        for (_, part), own in keys.items():
            for key in own:
                self.alike.setdefault(key, set()).add(part)

    def _is_inner(self, v: Value) -> bool:
        return v not in self.results or v in self.stacked

    def _reads(self, user: Value, v: Value) -> bool:
        if user.op.name == "scan":  # a row of the loop; rows of one array become one (``loops.pieces``)
            carries, rows = user.attrs["carry"], user.attrs["xs"]
            places = [k for k, o in enumerate(user.operands) if o is v]
            return all(carries <= k < carries + rows for k in places)
        if user.op is reshape and user.shape[: v.ndim - 1] == v.shape[:-1]:  # heads: a rule slices after it
            return user not in self.results and all(map(is_kernel_op, self.users[user]))
        return is_kernel_op(user)


@dataclass
class Parts:
    """Distinct values of one shape but for ``axis``, in the order in which they are concatenated.

    ``kind``: "slices", "fixed", "made" or "any". Along ``axis`` None they are stacked on a new first axis.
    """

    kind: str
    values: list[Value]
    axis: int | None
    source: Value | None = field(default=None)

    @property
    def equal(self) -> bool:
        return all(v.type is self.values[0].type for v in self.values)

    def in_order(self, values: list[Value]) -> Parts:
        """The same parts in another order."""
        kind = "any" if self.kind == "slices" and values != self.values else self.kind
        return Parts(kind, values, self.axis, self.source)

    def cost(self, also_read: Sequence[Value] = ()) -> float:
        """The time of putting them side by side; ``also_read`` are those that must be arrays of their own as well."""
        if self.kind in ("fixed", "slices"):  # (a slice that a product reads is copied in any case)
            return 0.0
        if self.kind == "made" and self.axis is not None:
            return copies(also_read)
        return copies(self.values)

    def _whole(self) -> bool:
        assert self.source is not None
        return self.axis is not None and length(self.values, self.axis) == self.source.shape[self.axis]

    def joined(self) -> Value:
        """All of them as one value."""
        if self.kind == "slices":
            return self._window()
        if self.axis is None:
            return concat(*[reshape(v, shape=(1, *v.shape)) for v in self.values], axis=0)
        return concat(*self.values, axis=self.axis)

    def _window(self) -> Value:
        assert self.source is not None and self.axis is not None
        if self._whole():
            return self.source
        first, n = self.values[0], length(self.values, self.axis)
        size = tuple(n if a == self.axis else s for a, s in enumerate(first.shape))
        return slice_(self.source, start=first.attrs["start"], size=size, step=first.attrs["step"])


def length(values: Sequence[Value], axis: int):
    """The sum of the sizes along an axis."""
    total = values[0].shape[axis]
    for v in values[1:]:
        total = total + v.shape[axis]
    return total


def arrange(scene: Scene, values: Sequence[Value], axis: int | None) -> list[Parts]:
    """Parts by kind, each group of two at least and of ``MAX_CONCAT`` at most."""
    values = list(dict.fromkeys(values))
    out = [] if axis is None else _runs(values, axis)
    taken = {v for p in out for v in p.values}
    kinds: dict[str, list[Value]] = {}
    for v in values:
        if v not in taken:
            kind = "fixed" if scene.is_fixed(v) else "made" if scene.is_made(v) else "any"
            kinds.setdefault(kind, []).append(v)
    for kind, members in kinds.items():
        members.sort(key=scene.rank)
        for k in range(0, len(members), MAX_CONCAT):
            chunk = members[k : k + MAX_CONCAT]
            parts = Parts(kind, list(scene.orders.get(frozenset(chunk), chunk)), axis)
            if kind == "made" and not parts.equal:
                parts.kind = "any"
            out.append(parts)
    return [p for p in out if len(p.values) > 1]


def _runs(values: Sequence[Value], axis: int) -> list[Parts]:
    """Slices of one array that follow one another along an axis."""
    at: dict[tuple, Value] = {}  # by the array and where the slice starts
    for v in values:
        if v.op is slice_ and _is_window(v, axis):
            at.setdefault((v.operands[0], v.attrs["start"][axis]), v)
    after = {k: (k[0], k[1] + v.shape[axis]) for k, v in at.items() if v.shape[axis] != 0}
    firsts = set(at) - set(after.values())
    out = []
    for key, v in at.items():
        if key in firsts:
            run = [v]
            while key in after and after[key] in at:
                key = after[key]
                run.append(at[key])
            if len(run) > 1:
                out.append(Parts("slices", run, axis, v.operands[0]))
    return out


def _is_window(v: Value, axis: int) -> bool:
    """A slice of neighbours along one axis, whole along the others."""
    a, source = v.attrs, v.operands[0]
    return a["step"][axis] == 1 and all(
        k == axis or (start == 0 and step == 1 and size == n)
        for k, (start, step, size, n) in enumerate(zip(a["start"], a["step"], v.shape, source.shape, strict=True)))


def is_product(v: Value) -> bool:
    """A product that a library computes."""
    return v.op is dot and isinstance(v.type, TensorType) and v.dtype.char in "fdFD"
