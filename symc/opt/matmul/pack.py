"""pack: products that share an operand, and sums of products, become one product.

`x @ W1, x @ W2` is `x @ [W1 | W2]` taken apart, and `A @ C + B @ D` is `[A | B] @ [C; D]` where that costs nothing. The
eight products of an LSTM's step so become two, of which `push_out` takes one out of the loop. Parts are slices that
kernels read where they lie; what a loop stacks, or takes as rows, in parts of one array becomes one stack or one row
(``loops.pieces``). When it pays, is in ``pack_costs``; which products, in ``pack_groups`` and ``pack_sums``.

What to do here and what in the pass `blas`: a sum of products whose operands lie apart is left alone, because a product
can add to what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from symc.errors import InternalError
from symc.ir.function import Function
from symc.ir.location import NOWHERE, Inside, add_lines, carrying, merge_inside
from symc.ir.traverse import resolve
from symc.ir.value import Region, Value
from symc.opt.cache_from_state import unchanged_states
from symc.opt.engine.pass_registry import standard_pass
from symc.opt.engine.provenance import Provenance
from symc.opt.engine.regions import as_function, with_bodies, with_lines
from symc.opt.loops.joined_slices import join_rows, join_stacks
from symc.opt.matmul.pack_groups import candidates, packed, sharing
from symc.opt.matmul.pack_parts import Scene
from symc.opt.matmul.pack_sums import joining, sum_of


@standard_pass(
    after=("dead_loop", "sink"),
    why="hoist takes the weights that it puts side by side out of loops, push_out moves one product where there were "
        "many; products of all steps meet others outside of their loops; what is read in parts alone, simplify "
        "computes in parts",
    on=("dot", "control"), reasons="of_pack",
)
def pack(provenance: Provenance, f: Function) -> Function:
    """Products that share an operand, and sums of products, become one product."""
    unchanged = set(unchanged_states(f))  # what is made of them is kept between calls
    varying = [p for p in f.params if p not in unchanged]
    return _Pack(provenance, f.inside).of(f, dict(zip(f.params, range(len(f.params)), strict=True)), varying, ())


class _Pack:
    def __init__(self, provenance: Provenance, inside: Inside):
        self.provenance = provenance
        self.inside: Inside = {region: dict(lines) for region, lines in inside.items()}
        self.done: dict[tuple, Region] = {}

    def of(self, f: Function, ranks: Mapping[Value, int], varying: Iterable[Value],
           stacked: Iterable[Value]) -> Function:
        """``f``: first its bodies, then its own products. See ``Scene`` for the rest."""
        f = self._enter(f, ranks)
        f = self._lines(join_stacks(self.provenance, f))
        scene = Scene(f, ranks, varying, stacked)
        f = self._lines(_edited(scene, self.provenance))
        return self._lines(join_rows(self.provenance, f))

    def _lines(self, f: Function) -> Function:
        if f.inside is not self.inside:
            merge_inside(self.inside, f.inside)
        return with_lines(f, self.inside)

    def _enter(self, f: Function, ranks: Mapping[Value, int]) -> Function:
        position = {v: (0, ranks[v]) if v in ranks else (1, k) for k, v in enumerate(f.values())}

        def bodies(v: Value) -> list[Region]:
            order = {p: k for k, p in enumerate(sorted({position[o] for o in v.operands}))}
            given = tuple(order[position[o]] for o in v.operands)
            return [self._body(v, k, given) for k in range(len(v.regions))]

        return with_lines(with_bodies(f, bodies), self.inside)

    def _body(self, v: Value, k: int, given: tuple[int, ...]) -> Region:
        """A region of a loop or branch, whose params are ordered as the operands are."""
        region = v.regions[k]
        count = len(region.params)
        given = given[len(given) - count :]  # (the operand that chooses a branch has no param)
        key = (region, v.op.name, given, v.attrs.get("carry"), v.attrs.get("xs"))
        found = self.done.get(key)
        if found is None:
            f = as_function(region, self.inside)
            carries = v.attrs.get("carry", count)
            changing = carries + v.attrs.get("xs", 0) if v.op.name in ("scan", "while") else count
            stacked = set(region.results[carries:] if v.op.name == "scan" else ()) - set(region.results[:carries])
            out = self.of(f, dict(zip(f.params, given, strict=True)), f.params[:changing], stacked)
            merge_inside(self.inside, {out.body: {x: locs for x, locs in out.hints.items() if locs}})
            found = self.done[key] = out.body
        return found


def _edited(scene: Scene, provenance: Provenance) -> Function:
    """The function with its own products packed."""
    forms = candidates(scene)
    if len(forms) < 2:
        return scene.f
    sums = joining(scene, forms)
    groups = sharing(scene, {t for j in sums for t in j.terms}, forms)
    if not sums and not groups:
        return scene.f
    hints = dict(scene.f.hints)

    def note(new: Value, olds: Sequence[Value]) -> None:
        if new.operands:
            add_lines(hints, new, NOWHERE.union(*[scene.f.hints.get(v, NOWHERE) for v in olds]))

    mapping: dict[Value, Value] = {}
    for j in sums:
        mapping[j.root] = sum_of(j, note)
    for g in groups:
        mapping.update(packed(g, note))
    made = resolve(scene.f.body.results, mapping, carrying(hints, hints))
    if made is None:
        raise InternalError("pack: products depend on each other in a circle")
    for old in mapping:
        if old in made:
            provenance.fired("pack", "pack", old, made[old], scene.f.hints.get(old, NOWHERE))
    return scene.f.with_results([made[r] for r in scene.f.body.results], hints)
