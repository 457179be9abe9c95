"""Pictures of functions: networkx graphs, Graphviz text, and one HTML file with every stage. Draws; decides nothing."""

from __future__ import annotations

import difflib
import html
from pathlib import Path
from typing import Any

from symc.errors import named_packages
from symc.ir.function import Function
from symc.ir.text import print_function, splat_of
from symc.ir.value import Region, Value

#: Fill colours of op families, by trait.
_COLOURS = {"elementwise": "#dbeafe", "movement": "#fef3c7", "reduction": "#dcfce7"}


def _nodes(f: Function) -> list[tuple[str, Value, dict[str, Any]]]:
    """A name, the value and its attributes for everything the function computes, operands first."""
    out: list[tuple[str, Value, dict[str, Any]]] = []
    names = {p: i for p, i in zip(f.params, f.inputs, strict=True)}
    count = 0
    for v in [*f.params, *[v for v in f.values() if v not in names]]:
        lines = ", ".join(map(str, f.locations(v)))
        if v in names:
            i = names[v]
            out.append(
                (
                    i.name,
                    v,
                    dict(op=i.role, label=f"{i.name}\n{v.type}", type=str(v.type), lines=lines, colour="#f3f4f6"),
                )
            )
            continue
        number = splat_of(v)
        if number is not None:
            label = f"{number}\n{v.type}"
        else:
            label = f"{v.op.name}\n{v.type}" + ("" if not v.regions else "\n" + "\n".join(_ops(r) for r in v.regions))
        colour = next((c for t, c in _COLOURS.items() if t in v.op.traits), "#fce7f3" if v.regions else "#ffffff")
        out.append((f"%{count}", v, dict(op=v.op.name, label=label, type=str(v.type), lines=lines, colour=colour)))
        count += 1
    return out


def _ops(region: Region) -> str:
    """Ops of a region, in a few words; kernels in it by what they compute."""
    from symc.ir.traverse import postorder

    values = postorder(region.results)
    ops = [v for v in values if v.op.name not in ("param", "constant", "broadcast", "get")]
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
    for k, (label, v) in enumerate(_results(f)):
        graph.add_node(f"result {k}", op="result", label=label, type=str(v.type), lines="", colour="#e5e7eb")
        graph.add_edge(named[v], f"result {k}", position=0)
    return graph


def _results(f: Function) -> list[tuple[str, Value]]:
    outs = [(f"output {k}", v) for k, v in enumerate(f.outputs)]
    return outs + [(f"new {f.inputs[k].name}", v) for k, v in zip(f.updates, f.update_values, strict=True)]


def to_dot(f: Function) -> str:
    """Graphviz text."""
    lines = [f'digraph "{f.name}" {{', '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];']
    place: dict[Value, int] = {}
    for k, (_, v, facts) in enumerate(_nodes(f)):
        place[v] = k
        tip = f', tooltip="{_quoted(facts["lines"])}"' if facts["lines"] else ""
        lines.append(f'  n{k} [label="{_quoted(facts["label"])}", fillcolor="{facts["colour"]}"{tip}];')
        lines += [f"  n{place[o]} -> n{k};" for o in v.operands]
    for k, (label, v) in enumerate(_results(f)):
        lines.append(f'  r{k} [label="{_quoted(label)}", shape=oval, fillcolor="#e5e7eb"];')
        lines.append(f"  n{place[v]} -> r{k};")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# --- one page ---------------------------------------------------------------------------------------------------------

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.4 sans-serif; margin: 1.5em; }} nav label {{ margin-right: 1em; }}
pre {{ font: 12px/1.45 monospace; background: #f8fafc; padding: 1em; overflow: auto; }}
.add {{ background: #dcfce7; }} .gone {{ background: #fee2e2; }}
.stage {{ display: none; }} .stage.on {{ display: block; }}
svg text {{ font: 10px monospace; }} svg {{ border: 1px solid #e5e7eb; max-width: 100%; }}
</style></head><body><h1>{title}</h1>
<nav>stage <input type="range" id="at" min="0" max="{last}" value="{last}"> <b id="name"></b></nav>
{stages}{rest}
<script>
const stages = [...document.querySelectorAll(".stage")], at = document.getElementById("at");
function show() {{ stages.forEach((s, k) => s.classList.toggle("on", k == at.value));
  document.getElementById("name").textContent = stages[at.value].dataset.name; }}
at.addEventListener("input", show); show();
</script></body></html>
"""


def to_html(function: Any, path: Any) -> None:
    """Write the page: a slider over the stages, each with its text, what changed in it, and its graph."""
    stages = function._compilation.stages
    parts, before = [], ""
    for name, f in [*stages.items(), ("final", function._compilation.final)]:
        text = print_function(f)
        parts.append(
            f'<div class="stage" data-name="{html.escape(name)}"><pre>{_difference(before, text)}</pre>{_svg(f)}</div>'
        )
        before = text
    rest = ""
    if function._compilation.plan is not None:
        rest += f"<h2>Plan</h2><pre>{html.escape(function.plan)}</pre>"
        rest += f"<h2>Source</h2><pre>{html.escape(function.source)}</pre>"
    Path(path).write_text(
        _PAGE.format(title=html.escape(function.name), last=len(parts) - 1, stages="".join(parts), rest=rest), "utf-8"
    )


def _difference(before: str, after: str) -> str:
    if not before:
        return html.escape(after)
    out = []
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        kind = {"+ ": "add", "- ": "gone"}.get(line[:2])
        if kind:
            out.append(f'<span class="{kind}">{html.escape(line)}</span>')
        elif line[:2] == "  ":
            out.append(html.escape(line))
    return "\n".join(out)


#: Larger graphs are shown as text alone.
_DRAWN = 400


def _svg(f: Function) -> str:
    """The graph in rows by depth."""
    nodes = _nodes(f)
    if len(nodes) > _DRAWN:
        return ""
    depth: dict[Value, int] = {}
    rows: dict[int, list[Value]] = {}
    for _, v, _facts in nodes:
        depth[v] = 1 + max((depth[o] for o in v.operands), default=-1)
        rows.setdefault(depth[v], []).append(v)
    place = {v: (20 + 150 * k, 20 + 60 * d) for d, row in rows.items() for k, v in enumerate(row)}
    width = 30 + 150 * max(map(len, rows.values()), default=1)
    out = [f'<svg viewBox="0 0 {width} {40 + 60 * len(rows)}" width="{width}" xmlns="http://www.w3.org/2000/svg">']
    for _, v, _facts in nodes:
        x, y = place[v]
        out += [
            f'<line x1="{place[o][0] + 65}" y1="{place[o][1] + 34}" x2="{x + 65}" y2="{y}" stroke="#94a3b8"/>'
            for o in v.operands
        ]
    for name, v, facts in nodes:
        x, y = place[v]
        first, _, second = facts["label"].partition("\n")
        tip = html.escape(f"{name} {facts['label']} {facts['lines']}")
        out.append(
            f'<g><title>{tip}</title><rect x="{x}" y="{y}" width="130" height="34" rx="5" '
            f'fill="{facts["colour"]}" stroke="#64748b"/>'
            f'<text x="{x + 6}" y="{y + 14}">{html.escape(first[:20])}</text>'
            f'<text x="{x + 6}" y="{y + 28}">{html.escape(second.split(chr(10))[0][:20])}</text></g>'
        )
    return "".join([*out, "</svg>"])
