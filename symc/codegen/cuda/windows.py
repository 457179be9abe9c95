"""Windows that are added where they were taken from (the gradient of a convolution, of pooling): one thread for each
element of the result, which looks into which windows it lies.

A place is a sum of multiples of indices: for an element and an index within the window there is one window or none.
What is added comes in the order of the loops, and nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from symc.codegen.cpu.text import rounded
from symc.codegen.cuda.store_places import Nest, held, nest_of, step
from symc.codegen.cuda.writer import BLOCK, Kernel, Text, Variants, Writer, scalar_type
from symc.ir.dim import Size, ceildiv, product
from symc.ir.dtypes import is_narrow

_KINDS = ("add", "maximum", "minimum")


def windows(kernel: Kernel) -> Windows | None:
    """The variants of a kernel that adds up windows; None for another."""
    nest = nest_of(kernel) if kernel.loops.starts and not kernel.is_complex else None
    if nest is None or nest.elements or len(nest.stores) != 1 or nest.stores[0].kind not in _KINDS:
        return None
    axes = [a for terms in nest.terms for a, _ in terms or ()]
    if None in nest.terms or sorted(axes) != list(range(len(nest.space))) or any(
            len(t or ()) > 2 or any(c < 1 for _, c in t or ()) for t in nest.terms):
        return None
    return Windows(kernel, nest) if any(len(t or ()) == 2 for t in nest.terms) else None


class Windows(Variants):
    def __init__(self, kernel: Kernel, nest: Nest):
        self.kernel, self.nest = kernel, nest

    def choose(self, number: Callable[[Size], int]) -> str:
        return self.chosen("", number)

    def write(self, words: Sequence[str], name: str) -> Text:
        return self._write("wide" in words, name)

    def _write(self, wide: bool, name: str) -> Text:
        nest, (store,) = self.nest, self.nest.stores
        w = Writer(self.kernel, "i64" if wide else "i32")
        n = product(store.shape)
        w.thread("p", n)
        place = w.unravel("p", store.shape, 1)
        dtype = store.value.dtype
        w.line(1, f"{scalar_type(dtype)} s = {held(w, store, 'p')};")
        index, ends = self._loops(w, place)
        depth = 1 + len(ends)
        env = step(w, nest.levels, [index[a] for a in range(len(nest.space))], depth)
        x = w.expression(store.value.operands[0], env)
        w.line(depth, f"s = {w.combined(store.kind, 's', x, dtype)};")
        for d in reversed(ends):
            w.line(d, "}")
        found = "s"
        if is_narrow(dtype):
            w.line(1, f"const {scalar_type(dtype)} found = {w.cxx(rounded('s', dtype))};")
            found = "found"
        w.line(1, f"o{store.result}[p] = {w.stored(found, dtype)};")
        return w.launches([(name, (ceildiv(n, BLOCK), 1, 1), BLOCK, w.lines)])

    def _loops(self, w: Writer, place: Sequence[str]) -> tuple[dict[int, str], list[int]]:
        """Write the loops within a window, and the tests for whether the element lies in one. The names of the indices
        of the steps that put there, by axis, and how deep each of what must be closed is."""
        nest = self.nest
        index: dict[int, str] = {}
        depth, ends = 1, []
        for at, terms in zip(place, nest.terms, strict=True):
            assert terms is not None
            *within, (axis, factor) = sorted(terms)
            rest = w.is_index(w.fresh("r"), nest.space[axis])
            if within:
                ((inner, times),) = within
                index[inner] = w.new_index(nest.space[inner])
                i = index[inner]
                w.line(depth, f"for ({w.index} {i} = 0; {i} < {w.size(nest.space[inner])}; ++{i}) {{")
                ends.append(depth)
                depth += 1
                at = f"{at} - {i} * {times}"
            w.line(depth, f"const {w.index} {rest} = {at};")
            index[axis] = rest
            tests = [f"{rest} >= 0"] if within else []
            if factor > 1:
                index[axis] = w.new_index(nest.space[axis])
                w.line(depth, f"const {w.index} {index[axis]} = {rest} / {factor};")
                tests.append(f"{index[axis]} * {factor} == {rest}")
            tests.append(f"{index[axis]} < {w.size(nest.space[axis])}")
            w.line(depth, f"if ({' && '.join(tests)}) {{")
            ends.append(depth)
            depth += 1
        return index, ends
