"""Links that leave the folder docs, and the list of pages that no table of contents names.

On GitHub a page may link to any file of the repository. Here links to the few documents outside of docs lead to pages
that include them, and those to code lead to the pages of sources.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import site_reference

HERE = Path(__file__).parents[1]
OUTSIDE = {"symc/opt/rules/README.md": "writing-rules.md", "benchmarks/README.md": "benchmarks.md",
           "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}
"""Documents outside of docs, and the pages that have what they say."""
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
WHOLE = re.compile(r"^\[[^\]]*\]\((\.\./[^)]+\.md)\)$", re.M)
"""A link alone in its line: here the document itself."""
OTHERS, KIN = "<!-- pages that are nowhere else -->", "coming-from-"


def lead_home(app: Any, docname: str, text: list[str]) -> None:
    """Turn links to files of the repository into links between pages."""
    page = HERE / f"{docname}.md"
    up = "../" * docname.count("/")
    text[0] = WHOLE.sub(lambda found: _linked((page.parent / found[1]).read_text("utf-8").partition("\n")[2],
                                              (page.parent / found[1]).resolve().parent, up), text[0])
    text[0] = _linked(text[0], page.parent, up)
    pages = sorted(p.stem for p in HERE.glob("*.md") if p.stem not in ("index", "README"))
    kin = [p for p in pages if p.startswith(KIN)]
    named = set(re.findall(r"^([\w/-]+)$", text[0], re.M))
    text[0] = text[0].replace("<!-- pages that begin with coming-from- -->", "\n".join(kin))
    text[0] = text[0].replace(OTHERS, "\n".join(p for p in pages if p not in named and p not in kin))


def _linked(text: str, folder: Path, up: str) -> str:
    def link(found: re.Match) -> str:
        words, target, anchor = found[1], (folder / found[2]).resolve(), found[3] or ""
        if not target.is_relative_to(HERE.parent):
            return found[0]
        path = target.relative_to(HERE.parent).as_posix()
        if target.is_relative_to(HERE):
            return f"[{words}]({up}{target.relative_to(HERE).as_posix()}{anchor})"
        if path == "README.md" and anchor == "#speed":
            return f"[{words}]({up}benchmarks.md#speed)"
        if path in OUTSIDE:
            return f"[{words}]({up}{OUTSIDE[path]}{anchor})"
        if path.endswith(".py"):
            site_reference.USED.add(path)
            return f'<a href="{up}source/{path.removesuffix(".py")}.html">{words.replace("`", "")}</a>'
        return words
    return LINK.sub(link, text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", lead_home)
    return {"parallel_read_safe": False}
