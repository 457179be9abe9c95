"""Kernels that are a whole loop (`loop`, ``symc.ir.ops.loop``): carries are variables, rows are loads and stores."""

from __future__ import annotations

from collections.abc import Sequence

from symc.codegen.cpu.render import Renderer, Source
from symc.codegen.cpu.text import stored
from symc.codegen.cpu.writer import Target
from symc.codegen.kernel.contraction import with_rounded_products
from symc.codegen.kernel.scalarize import Loops
from symc.ir.ops.kernel import projection, results_of
from symc.ir.ops.loop import is_long, loop, pack, steps_inside
from symc.ir.traverse import postorder, region_params
from symc.ir.value import Region, Value

#: (number of the kernel's result, element in a row, elements of a row) for results of a loop that are stored as it runs
Stores = dict[int, list[tuple[int, int, int]]]
#: After how many steps a long loop looks for signals, those of loops inside counted: that takes as long as a few.
STRIDE = 1024


def is_loop_kernel(region: Region) -> bool:
    """True if the region of a kernel is in the form of ``symc.opt.loops.small``."""
    return any(v.op is loop for v in postorder(region.results))


def render_loop(name: str, region: Region, interruptible: bool = True) -> Source:
    """The source of a kernel that is a loop, which looks for signals if it is long and ``interruptible``. Raises
    Unsupported for what the backend cannot express."""
    renderer = _LoopRenderer(name, Loops(with_rounded_products(region), False), ())
    renderer.interruptible = interruptible
    return renderer.run()


class _LoopRenderer(Renderer):
    interruptible = True

    def emit_block(self, region: Region, env: dict[Value, str], targets: list[Target | None], depth: int) -> list[str]:
        """Scalars and loops in order; what is no value of all steps is stored at the end."""
        stores: dict[Value, Stores] = {}
        late: list[tuple[int, int, Value]] = []
        for k, (r, target) in enumerate(zip(region.results, targets, strict=True)):
            parts = r.operands if r.op is pack else (r,)
            for e, part in enumerate(parts if target is not None else ()):
                source, j = projection(part)
                if part.ndim:
                    stores.setdefault(source, {}).setdefault(j, []).append((k, e, len(parts)))
                else:
                    late.append((k, e, part))
        for v in postorder(region.results):
            if v in env or v.op.name in ("constant", "get") or v.op is pack:
                continue
            if v.op is loop:
                self.emit_loop(v, env, stores.get(v, {}), depth)
            else:
                self.emit_scalar(v, env, depth)
        for k, e, part in late:
            self.line(depth, f"o{k}[{e}] = {stored(self.expression(part, env), part.dtype)}")
        return [self.expression(r, env) for r, t in zip(region.results, targets, strict=True) if t is None]

    def emit_loop(self, v: Value, env: dict[Value, str], stores: Stores, depth: int) -> None:
        carries = v.attrs["carry"]
        starts, captured = ([self.expression(o, env) for o in part]
                            for part in (v.operands[:carries], v.operands[carries:]))
        names = [self.fresh("c") for _ in starts]
        for name, start in zip(names, starts, strict=True):
            self.line(depth, f"{name} = {start}")
        index = self.fresh("i")
        seen = [index, *names, *captured]
        counted, outer = v.attrs["length"] is not None, depth
        stride = max(1, int(STRIDE // max(1, steps_inside(v)))) if self.interruptible and is_long(v) else 0
        left = "" if counted or not stride else self.fresh("c")
        self.polls |= stride > 0
        if left:
            self.line(depth, f"{left} = {stride}")
        if not counted:
            self.open_while(v, index, seen, depth)
        else:
            depth = self.open_for(v, index, depth, stride)
        inner = len(self.lines)
        found = self.emit_inner(v.regions[0], seen, depth + 1)
        for j, x in enumerate(found[carries:], carries):
            for k, e, width in stores.get(j, ()):
                place = self.offset([index, str(e)], (v.attrs["length"], width))
                self.line(depth + 1, f"o{k}[{place}] = {stored(x, v.regions[0].results[j].dtype)}")
        if names:
            self.line(depth + 1, f"{', '.join(names)} = {', '.join(found[:carries])}")
        if not counted:
            self.line(depth + 1, f"{index} = {index} + 1")
        elif len(self.lines) == inner:
            self.line(depth + 1, "pass")
        if stride:
            self.poll(left, stride, outer + 1)
        if self.polls and outer > 1:  # a loop around this one stops with it
            self.stop(outer)
        made = [*names, *([] if counted else [index])]
        for r, name in zip(results_of(v), made, strict=False):
            env[r] = name

    def open_for(self, v: Value, index: str, depth: int, stride: int) -> int:
        """Write the head of a loop over a range, if it is long in parts between which signals are looked for; its
        depth."""
        n, reverse = self.size(v.attrs["length"]), v.attrs["reverse"]
        if not stride:
            self.line(depth, f"for {index} in range({f'{n} - 1, -1, -1' if reverse else n}):")
            return depth
        part = self.fresh("c")
        self.line(depth, f"for {part} in range(0, {n}, {stride}):")
        first = f"{n} - 1 - {part}" if reverse else part
        last = f"max({first} - {stride}, -1), -1" if reverse else f"min({part} + {stride}, {n})"
        self.line(depth + 1, f"for {index} in range({first}, {last}):")
        return depth + 1

    def poll(self, left: str, stride: int, depth: int) -> None:
        """Write the look for signals after a part of a loop, or when ``left`` has been counted down."""
        if left:
            self.line(depth, f"{left} = {left} - 1")
            self.line(depth, f"if {left} == 0:")
            self.line(depth + 1, f"{left} = {stride}")
            depth += 1
        else:
            self.line(depth, "if not stop:")  # by a loop inside
        self.line(depth + (not left), "stop = polled(words)")
        self.stop(depth)

    def stop(self, depth: int) -> None:
        self.line(depth, "if stop:")
        self.line(depth + 1, "break")

    def open_while(self, v: Value, index: str, seen: Sequence[str], depth: int) -> None:
        limit = v.attrs["max_steps"]
        self.line(depth, f"{index} = 0")
        self.line(depth, f"while {index} < {self.size(limit)}:" if limit is not None else "while True:")
        (go,) = self.emit_inner(v.regions[1], seen, depth + 1)
        self.line(depth + 1, f"if not {go}:")
        self.line(depth + 2, "break")

    def emit_inner(self, region: Region, seen: Sequence[str], depth: int) -> list[str]:
        scope = dict(zip(region_params(region), seen, strict=True))
        return self.emit_block(region, scope, [None] * len(region.results), depth)
