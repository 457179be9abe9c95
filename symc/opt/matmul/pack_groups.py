"""Products that share an operand: which of them become one.

`x @ W1, x @ W2` is `x @ [W1 | W2]`, taken apart. Products of one group have one depth, counted in products that could
be packed: no product depends on another of its depth, and what is made of several groups at once has no circle. That is
linear in the size of the graph, and needs no search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from symc.ir.dim import Size
from symc.ir.ops.linalg import dot, free_axes
from symc.ir.ops.shape import reshape, slice_along
from symc.ir.record import dataclass
from symc.ir.value import Value
from symc.opt.matmul.pack_costs import MARGIN, copies, saved_by_sharing
from symc.opt.matmul.pack_parts import Parts, Scene, arrange, is_product
from symc.opt.matmul.products import is_made_line_by_line, is_small
from symc.opt.rules.linalg import dot_of_transpose


@dataclass(frozen=True)
class Product:
    """A product as it is packed: ``form`` is it without transposes below, ``side`` the operand that is shared."""

    value: Value
    form: Value
    side: int

    @property
    def shared(self) -> Value:
        return self.form.operands[self.side]

    @property
    def part(self) -> Value:
        return self.form.operands[1 - self.side]

    @property
    def axis(self) -> int | None:
        """The axis of the part along which parts are concatenated: the first free one."""
        free = self._free
        return free[0] if free else None

    @property
    def _free(self) -> tuple[int, ...]:
        other = 1 - self.side
        return free_axes(self.part, self.form.attrs["contract"][other], self.form.attrs["batch"][other])

    @property
    def result_axis(self) -> int:
        """The axis of the result that is the part's axis."""
        contract, batch = self.form.attrs["contract"], self.form.attrs["batch"]
        before = len(free_axes(self.shared, contract[0], batch[0])) if self.side == 0 else 0
        return len(batch[0]) + before

    def key(self) -> tuple:
        """Equal for products that can be one."""
        contract, batch = self.form.attrs["contract"], self.form.attrs["batch"]
        other = 1 - self.side
        axis = self.axis
        rest = tuple(n for a, n in enumerate(self.part.shape) if a != axis)
        return (self.side, self.shared, contract[self.side], contract[other], batch[self.side], batch[other],
                self.part.ndim, rest, self.part.dtype.char)


@dataclass
class Group:
    """Products that become one, and what that gains in nanoseconds."""

    products: list[Product]
    parts: Parts
    gain: float


def absorbed(v: Value) -> Value:
    """A product without transposes below it, its contracted axes in the order of the left operand."""
    while (new := dot_of_transpose.build(v)) is not None:  # type: ignore[misc]
        v = new
    left, right = v.attrs["contract"]
    pairs = sorted(zip(left, right, strict=True))
    ordered = (tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))
    return v if ordered == (left, right) else dot(*v.operands, contract=ordered, batch=v.attrs["batch"])


def sharing(scene: Scene, taken: set[Value], forms: Mapping[Value, Value]) -> list[Group]:
    """The groups that pay; those that gain most first, and no product in two of them."""
    alike: dict[tuple, list[Product]] = {}
    for v, form in forms.items():
        if v not in taken:
            for side in (0, 1):
                p = Product(v, form, side)
                alike.setdefault(p.key(), []).append(p)
    buckets = [ps for ps in alike.values() if len(ps) > 1]
    depth = _depths(scene, {p.value for ps in buckets for p in ps})
    found: list[Group] = []
    for ps in buckets:
        by_depth: dict[int, list[Product]] = {}
        for p in ps:
            by_depth.setdefault(depth[p.value], []).append(p)
        for same in by_depth.values():
            found += _groups(scene, same)
    chosen: list[Group] = []
    gone = set(taken)
    for g in sorted(found, key=lambda g: -g.gain):
        left = [p for p in g.products if p.value not in gone]
        for again in [g] if len(left) == len(g.products) else _groups(scene, left):
            chosen.append(again)
            gone.update(p.value for p in again.products)
    return chosen


def candidates(scene: Scene) -> dict[Value, Value]:
    """The products that a library computes, as they are packed."""
    forms = {v: absorbed(v) for v in scene.values
             if is_product(v) and not is_small(v) and not is_made_line_by_line(v)}
    depth = _depths(scene, set(forms))
    keys: dict[tuple[Value, Value], list[tuple]] = {}
    for v, form in forms.items():
        for side in (0, 1):
            p = Product(v, form, side)
            keys.setdefault((v, p.part), []).append((*p.key(), depth[v]))
    scene.note_products(keys)
    return forms


def _depths(scene: Scene, counted: set[Value]) -> dict[Value, int]:
    """Depth of each value: how many of the values counted lie one above another below it, itself included."""
    depth: dict[Value, int] = {}
    for v in scene.values:
        depth[v] = max((depth[o] for o in v.operands), default=0) + (v in counted)
    return depth


def _groups(scene: Scene, products: Sequence[Product]) -> list[Group]:
    """Products that can be one, by how their parts come together; only what pays."""
    out: list[Group] = []
    if len(products) < 2 or products[0].axis is None and products[0].form.attrs["batch"] != ((), ()):
        return out
    for parts in arrange(scene, [p.part for p in products], products[0].axis):
        own = set(parts.values)
        members = [p for p in products if p.part in own]
        saved = saved_by_sharing(members[0].shared, len(parts.values))
        copied = parts.cost(scene.read_besides(parts.values, {p.value for p in members}))
        copied += copies([p.value for p in members if not scene.in_kernels(p.value)])
        if saved > MARGIN * copied:
            out.append(Group(members, parts, saved - copied))
    return out


def packed(group: Group, note: Callable[[Value, Sequence[Value]], None]) -> dict[Value, Value]:
    """The values that take the place of each product of a group. ``note(new, olds)``: whose lines a new value has."""
    first = group.products[0]
    olds = [p.value for p in group.products]
    joined = group.parts.joined()
    note(joined, olds)
    attrs = {k: list(first.form.attrs[k]) for k in ("contract", "batch")}
    if first.axis is None:  # the parts are vectors: rows of a matrix
        for k in attrs:
            attrs[k][1 - first.side] = tuple(a + 1 for a in attrs[k][1 - first.side])
    operands = (first.shared, joined) if first.side == 0 else (joined, first.shared)
    whole = dot(*operands, contract=tuple(attrs["contract"]), batch=tuple(attrs["batch"]))
    note(whole, olds)
    axis, made = first.result_axis, {}
    at: Size = 0
    for part in group.parts.values:
        n: Size = 1 if first.axis is None else part.shape[first.axis]
        made[part] = slice_along(whole, axis, at, n)
        at = at + n
    out = {}
    for p in group.products:
        piece = made[p.part]
        out[p.value] = piece if first.axis is not None else reshape(piece, shape=p.value.shape)
        note(piece, [p.value])
        note(out[p.value], [p.value])
    return out
