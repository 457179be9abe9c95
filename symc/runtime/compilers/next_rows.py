"""Rows that are read ahead: while a loop over one row computes, the next row comes from memory.

Kernels of row statistics go over a row several times. The first time they wait for memory, later for arithmetic, if
they call functions: a softmax of 4096 x 1024 f32 takes 0.8 of the time if the next row is asked for before the
exponentials of this one (AVX2). Processors read ahead by themselves, but not from one page to the next.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from symc.codegen.language.syntax import every
from symc.codegen.language.typed import Pointer, Scalar, width
from symc.runtime.compilers.called import helpers_in
from symc.runtime.compilers.llvm_expressions import Blocks
from symc.runtime.cpu.large_results import LINE

#: Shorter rows, in bytes, are not read ahead: the processor is as fast.
LEAST = 1024


class Row(NamedTuple):
    """Row that a loop of ``length`` steps, over ``inner``, reads in each step of the one around it, over ``outer``."""

    place: ast.Subscript
    outer: str
    inner: str
    length: ast.expr


def rows_ahead(tree: ast.FunctionDef) -> dict[ast.For, list[Row]]:
    """For each loop before which a next row is asked for, what that is."""
    found: dict[ast.For, list[Row]] = {}
    for loop in every(tree):
        if not isinstance(loop, ast.For):
            continue
        parts = [s for s in loop.body if isinstance(s, ast.For)]
        if len(parts) < 2 or helpers_in(parts[0]):
            continue
        later = next((s for s in parts[1:] if helpers_in(s)), None)
        if later is not None:
            found[later] = _rows(parts[0], ast.unparse(loop.target))
    return found


def _rows(first: ast.For, outer: str) -> list[Row]:
    """Rows of operands that a loop reads from front to end, whole or in chunks."""
    assert isinstance(first.iter, ast.Call)
    length, leaf = first.iter.args[min(1, len(first.iter.args) - 1)], first
    while (parts := [s for s in leaf.body if isinstance(s, ast.For)]):
        leaf = parts[0]
    inner = ast.unparse(leaf.target)
    found = {}
    for n in every(*leaf.body):
        if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) and isinstance(n.value, ast.Name):
            at = n.slice
            if n.value.id[0] == "a" and isinstance(at, ast.BinOp) and isinstance(at.op, ast.Add) and (
                    _is(at.right, inner) and any(_is(x, outer) for x in every(at.left))
                    and not any(_is(x, inner) for x in every(at.left))):
                found[ast.unparse(n)] = Row(n, outer, inner, length)
    return list(found.values())


def _is(e: ast.AST, name: str) -> bool:
    return isinstance(e, ast.Name) and e.id == name


def ask(f: Blocks, row: Row, note: str) -> None:
    """Write a loop that asks for the lines of the next row. ``note``: what its branch back is marked with."""
    array = f.value(row.place.value)
    assert isinstance(array, Pointer)
    size = max(1, width(array.element) // 8)
    length = f.emit(f"and i64 {f.cast(f.scalar(row.length), 'i64').ref}, {-(LEAST // size)}")
    none, inside, after, before = f.emit(f"icmp eq i64 {length}, 0"), f.label(), f.label(), f.block
    this = f.scalar(ast.Name(row.outer, ast.Load()))
    f.names[row.outer] = Scalar("i64", f.emit(f"add i64 {this.ref}, 1"))
    f.branch(Scalar("bool", none), after, inside)
    f.place(inside)
    f.do(f"%k{inside} = phi i64 [ 0, %{before} ], [ %n{inside}, %{inside} ]")
    f.names[row.inner] = Scalar("i64", f"%k{inside}")
    f.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    f.do(f"call void @llvm.prefetch.p0(ptr {f.place_of(row.place)[1]}, i32 0, i32 3, i32 1)")
    f.do(f"%n{inside} = add nuw nsw i64 %k{inside}, {LINE // size}")
    more = f.emit(f"icmp ult i64 %n{inside}, {length}")
    f.do(f"br i1 {more}, label %{inside}, label %{after}{note}")
    f.open = False
    f.names[row.outer] = this
    f.place(after)
