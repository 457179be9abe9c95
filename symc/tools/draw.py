"""Pictures of functions: networkx graphs, Graphviz text, SVG and what Graphviz makes of it. Draws; decides nothing."""

from __future__ import annotations

import shutil
import subprocess
from html import escape
from pathlib import Path
from typing import Any

from symc.errors import InputError, named_packages
from symc.ir.function import Function
from symc.ir.ops.leaf import UNCOMPUTED
from symc.ir.text import splat_of
from symc.ir.value import Region, Value
from symc.tensors.callsite import caller
from symc.tools.explorer.graph import cut, family, label

#: Fill colours of families of ops.
_COLOURS = {"elementwise": "#dbeafe", "movement": "#fef3c7", "reduction": "#dcfce7", "control": "#fce7f3",
            "kernel": "#cffafe", "call": "#ede9fe", "leaf": "#f3f4f6"}


def _nodes(f: Function) -> list[tuple[str, Value, dict[str, Any]]]:
    """A name, the value and its attributes for everything the function computes, operands first."""
    out: list[tuple[str, Value, dict[str, Any]]] = []
    inputs = dict(zip(f.params, f.inputs, strict=True))
    for v in [*f.params, *[v for v in f.values() if v not in inputs]]:
        i, number = inputs.get(v), splat_of(v)
        op = i.role if i is not None else v.op.name
        says = i.name if i is not None else str(number) if number is not None else label(v)
        inside = "\n".join(_ops(r) for r in v.regions) if family(v) == "control" else ""
        facts = dict(op=op, label="\n".join(filter(None, [says, str(v.type), inside])), type=str(v.type),
                     lines=", ".join(map(str, f.locations(v))), colour=_COLOURS[family(v)])
        out.append((i.name if i is not None else f"%{len(out) - len(inputs)}", v, facts))
    return out


def _ops(region: Region) -> str:
    """Ops of a region, in a few words; kernels in it by what they compute."""
    from symc.ir.traverse import postorder

    values = postorder(region.results)
    ops = [v for v in values if v.op not in UNCOMPUTED and v.op.name != "broadcast"]
    said = [("" if v.op.name == "fused" else v.op.name) + "".join(map(_ops, v.regions)) for v in ops[:6]]
    if not ops:
        said = [str(n) for r in region.results if (n := splat_of(r)) is not None]
    return "{" + ", ".join(said) + (", ..." if len(ops) > 6 else "") + "}"


def to_networkx(f: Function) -> Any:
    """Nodes carry ``op``, ``label``, ``type``, ``lines`` and ``colour``; edges the operand's ``position``."""
    with named_packages():
        import networkx as nx

    graph = nx.MultiDiGraph(name=f.name)
    named: dict[Value, str] = {}
    for name, v, facts in _nodes(f):
        named[v] = name
        graph.add_node(name, **facts)
        for k, o in enumerate(v.operands):
            graph.add_edge(named[o], name, position=k)
    for k, (title, v) in enumerate(_results(f)):
        graph.add_node(f"result {k}", op="result", label=title, type=str(v.type), lines="", colour="#e5e7eb")
        graph.add_edge(named[v], f"result {k}", position=0)
    return graph


def _results(f: Function) -> list[tuple[str, Value]]:
    outs = [(f"output {k}", v) for k, v in enumerate(f.outputs)]
    return outs + [(f"new {f.inputs[k].name}", v) for k, v in zip(f.updates, f.update_values, strict=True)]


def to_dot(f: Function) -> str:
    """Graphviz text."""
    lines = [f'digraph "{_quoted(f.name)}" {{',
             '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];']
    place: dict[Value, int] = {}
    for k, (_, v, facts) in enumerate(_nodes(f)):
        place[v] = k
        tip = f', tooltip="{_quoted(facts["lines"])}"' if facts["lines"] else ""
        lines.append(f'  n{k} [label="{_quoted(facts["label"])}", fillcolor="{facts["colour"]}"{tip}];')
        lines += [f"  n{place[o]} -> n{k};" for o in v.operands]
    for k, (title, v) in enumerate(_results(f)):
        lines.append(f'  r{k} [label="{_quoted(title)}", shape=oval, fillcolor="#e5e7eb"];')
        lines.append(f"  n{place[v]} -> r{k};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- files ------------------------------------------------------------------------------------------------------------


def draw(f: Function, path: Any = None) -> str:
    """The picture as SVG; or written to a file, of the kind that its suffix says, whose path is returned.

    Graphviz draws it where it is installed. Elsewhere there is SVG all the same, in layers by networkx.
    """
    place = None if path is None else Path(path)
    kind = ".svg" if place is None else place.suffix.lower()
    if kind == ".dot":
        data = to_dot(f).encode()
    elif shutil.which("dot"):
        run = subprocess.run(["dot", f"-T{kind[1:] or 'svg'}"], input=to_dot(f).encode(), capture_output=True)
        if run.returncode:
            said = run.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise InputError(f"draw: Graphviz cannot write {str(path)!r}: {said}", where=[caller()],
                             help="names end in .svg, .png, .pdf or .dot")
        data = run.stdout
    elif kind == ".svg":
        data = layered_svg(f).encode()
    else:
        raise InputError(f"draw: {kind or 'a file without a suffix'} needs Graphviz, whose program 'dot' is not "
                         "installed", where=[caller()],
                         help="a name that ends in .svg or .dot needs nothing; its package is called graphviz")
    if place is None:
        return data.decode()
    place.write_bytes(data)
    return str(path)


#: Width and height of a box, and the room from one to the next.
BOX, STEP = (170, 34), (190, 70)


def layered_svg(f: Function) -> str:
    """The graph in layers, each value below its operands and each layer in the order of its operands: networkx says
    which layer a value is in and where."""
    with named_packages():
        import networkx as nx

    graph = to_networkx(f)
    at: dict[str, float] = {}
    ordered = nx.DiGraph()
    for depth, layer in enumerate(nx.topological_generations(graph)):
        mean = {n: sum(at[p] for p in graph.predecessors(n)) / max(1, graph.in_degree(n)) for n in layer}
        for k, n in enumerate(sorted(layer, key=lambda n: (mean[n], n))):
            at[n] = k - len(layer) / 2
            ordered.add_node(n, layer=depth)
    place = {n: (STEP[0] * at[n], STEP[1] * ordered.nodes[n]["layer"]) for n in ordered}
    left, wide, high = (f([p[k] for p in place.values()], default=0) for f, k in ((min, 0), (max, 0), (max, 1)))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left - 10} -10 {wide - left + BOX[0] + 20} '
           f'{high + BOX[1] + 20}" font-family="monospace" font-size="10"><defs><marker id="a" viewBox="0 0 8 8" '
           'refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z" fill="#64748b"/>'
           "</marker></defs>"]
    for a, b in dict.fromkeys(graph.edges()):
        (x, y), (u, v) = place[a], place[b]
        x, u, y, m = x + BOX[0] / 2, u + BOX[0] / 2, y + BOX[1], (y + BOX[1] + v) / 2
        out.append(f'<path d="M{x} {y}C{x} {m} {u} {m} {u} {v}" fill="none" stroke="#94a3b8" marker-end="url(#a)"/>')
    for n, (x, y) in place.items():
        facts = graph.nodes[n]
        lines = facts["label"].split("\n")
        texts = [f'<text x="{x + 6}" y="{y + 14 * k + 14}">{escape(cut(t, 26))}</text>'
                 for k, t in enumerate(lines[:2])]
        out.append(f'<g><title>{escape(n + chr(10) + facts["label"] + chr(10) + facts["lines"])}</title><rect x="{x}" '
                   f'y="{y}" width="{BOX[0]}" height="{BOX[1]}" rx="5" fill="{facts["colour"]}" stroke="#64748b"/>'
                   + "".join(texts) + "</g>")
    return "".join([*out, "</svg>"])
