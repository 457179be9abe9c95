
"""Checks of the explorer in a real browser: ``python -m tests.tools.browser_check [FOLDER]``.

It needs Chromium, and is not a part of the suite, whose tests ask about the data of the page. Each page is opened,
driven by a script that is put into it, and must answer every question with true; FOLDER gets screenshots.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import symc as sc
from symc.opt import optimize
from symc.tools.explorer.model import model_of_ir
from symc.tools.explorer.page import page

#: Time in the browser is virtual and does not wait for workers: the layout is made in the page.
BEFORE = "<script>window.Worker = undefined;</script>"
#: Questions that every page answers; the page's own come after them.
COMMON = """
ask("everything was drawn", () => document.querySelectorAll("#view .node").length === graph.nodes.size && graph.nodes.size > 1);
ask("nothing failed", () => failures.length === 0);
ask("arrows lead from box to box", () => graph.edges.every(e => graph.nodes.has(e.from) && graph.nodes.has(e.to)));
ask("there is no other origin", () => performance.getEntriesByType("resource").length === 0);
ask("text is text", () => !document.querySelector("img") && document.getElementById("title").textContent === model.name);
for (let k = 0; k < model.stages.length; k++) {
  show(k);
  ask("stage " + k + " marks what is new", () => document.querySelectorAll(".row.new[onclick], .row.new").length >= stage().change.new.length
    && document.querySelectorAll(".row.gone").length === stage().change.gone.length);
}
"""
STEP = """
const dots = [...document.querySelectorAll("#view .call")], kernel = document.querySelector("#view .kernel");
ask("a click on a box chooses its line, kernel and step", () => { kernel.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  return state.lines.size > 0 && state.kernels.size === 1 && state.steps.size === 1 && document.querySelectorAll(".chip").length >= 4; });
const step = [...state.steps][0];
ask("from the kernel to its step", () => { tab("kernels"); document.querySelector(".kernel-text.pick summary").click(); return state.steps.has(step); });
ask("from the step to its line", () => { tab("plan"); document.querySelectorAll("#panel .row")[step].click(); return state.lines.size > 0; });
ask("from the line back to its boxes", () => { tab("lines"); document.querySelector("#panel .row.pick").click();
  return document.querySelectorAll("#view .node.pick").length > 0; });
ask("from memory to the step that writes it", () => { document.querySelector("#memory rect.buffer").dispatchEvent(new MouseEvent("click"));
  return state.steps.size > 0 && document.querySelector("#memory rect.pick"); });
ask("a double click opens a kernel", () => { const count = graph.nodes.size; document.querySelector("#view .kernel").dispatchEvent(
  new MouseEvent("dblclick", { bubbles: true })); return graph.nodes.size > count && document.querySelector("#view .cluster"); });
ask("search finds and goes there", () => { const box = document.getElementById("search"); box.value = "softplus"; box.oninput();
  nextHit(); return state.hits.length > 0 && state.values.has(state.hits[0].value) && document.querySelector("#view .hit"); });
ask("nothing is undefined", () => !/undefined|NaN|\\[object/.test(document.body.innerText));
ask("steps have times", () => model.steps.every(s => s.seconds > 0) && document.querySelectorAll("#memory .time").length > 0);
tab("text");
"""
LOOPS = """
reopen(openable(model, stage(), state.by, true), false);
ask("bodies are inside of their loops", () => [...graph.nodes.values()].some(n => n.box && n.value !== undefined));
ask("a carry goes back", () => graph.edges.some(e => e.back) && document.querySelector(".edge.back"));
"""
LARGE = """
show(0);
ask("2,000 values are groups", () => model.regions[stage().region].values.length >= 2000 && graph.nodes.size < 200);
document.getElementById("unfold").click();
ask("too many are not drawn at once", () => graph.nodes.size <= MOST);
const lasts = f => { const begin = Date.now(); f(); return Date.now() - begin; };
ask("a click, a search and a stage take less than three seconds each", () => lasts(() => choose([model.regions[stage().region].values[1000]])) < 3000
  && lasts(() => { document.getElementById("search").value = "tanh"; search(); }) < 3000 && lasts(() => show(1)) < 3000);
"""


def pages() -> dict[str, tuple[str, str]]:
    """Pages by name, and the questions of each."""
    from symc.tools.inspection import html

    x, w = sc.input("x", "float64", ("n", 3)), sc.shared(np.full((3, 2), 0.1), "w")
    hidden = sc.log(sc.exp(x @ w) + 1)
    loss = sc.sum(hidden * hidden)
    step = sc.compile(loss, [x], updates={w: w - 0.1 * sc.grad(loss, w)}, name="step")
    xs, m = sc.input("</script><img src=x>", "float64", ("t", 40)), sc.input("m", "float64", (40, 40))
    body = lambda h, r: (sc.cond(sc.sum(h) > 0, lambda: sc.tanh(h @ m) + r, lambda: r), None)
    loop = sc.compile(sc.scan(body, xs[0], xs)[0], [xs, m], name="</script><img src=x>")
    y = v = sc.input("x", shape=("n",))
    for k in range(700):
        y = sc.tanh(y) * (1 + k) + v
    source = sc.compile(y, [v], mode="reference")._compilation.source
    out = optimize(source, "canonicalize,fold,stabilize,simplify")
    return {"step": (html(step, (np.ones((4, 3)),)), STEP), "loop": (html(loop), LOOPS),
            "large": (page(model_of_ir("large", out.stages, out)), LARGE)}


def questioned(text: str, questions: str) -> str:
    """The page with a script that asks, and writes the answers into it."""
    script = """<script>
const failures = [], answers = {};
window.onerror = (message, file, line) => { failures.push(message + " at " + line); };
const ask = (what, f) => { try { answers[what] = !!f(); } catch (e) { answers[what] = false; failures.push(what + ": " + e); } };
QUESTIONS
ask("nothing is undefined", () => !/undefined|NaN|\\[object/.test(document.body.innerText));
ask("nothing failed", () => failures.length === 0);
const said = document.createElement("pre"); said.id = "answers"; said.hidden = true;
said.textContent = JSON.stringify({ answers, failures }); document.body.append(said);
</script>"""
    text = text.replace('<script type="application/json"', BEFORE + '<script type="application/json"', 1)
    return text.replace("</body>", script.replace("QUESTIONS", COMMON + questions) + "</body>")


def main(folder: Path) -> int:
    """Ask, print what is not so, and return how many."""
    browser = next((b for n in ("chromium", "chromium-browser", "google-chrome") if (b := shutil.which(n))), None)
    if browser is None:
        sys.exit("browser_check needs Chromium")
    folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name, (text, questions) in pages().items():
        file = folder / f"{name}.html"
        file.write_text(questioned(text, questions), "utf-8")
        run = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", "--virtual-time-budget=60000"]
        dom = subprocess.run([*run, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=300).stdout
        subprocess.run([*run, f"--screenshot={folder / name}.png", file.as_uri()], capture_output=True, timeout=300)
        found = re.search(r'<pre id="answers"[^>]*>(.*?)</pre>', dom, re.S)
        said = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")) if found else {}
        failed = [q for q, true in said.get("answers", {"the page answers": False}).items() if not true]
        wrong += len(failed)
        print(f"{name}: {len(said.get('answers', {})) - len(failed)} of {len(said.get('answers', {}))}", *failed,
              *said.get("failures", []), sep="\n  ")
    return wrong


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    print(f"pages and screenshots in {where}")
    sys.exit(bool(main(where)))
