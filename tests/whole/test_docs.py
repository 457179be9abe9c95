"""Every Python block of the documents runs, and prints what the document says it prints.

A ```text block that follows a Python block directly is that block's output. User lines and digests of kernels are not
compared, since they change with every edit. ``python -m tests.whole.test_docs [DOCUMENT ...]`` writes the present
outputs into the documents, of which all take a minute.
"""

import contextlib
import io
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.M | re.S)


def run(document: Path) -> list[tuple[re.Match, str]]:
    """Run the blocks of a document, in order and in one namespace; gives what each one printed."""
    text = document.read_text("utf-8")
    scope: dict = {"__name__": "document"}
    out = []
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("code"))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block["code"], str(document), "exec"), scope)
        out.append((block, printed.getvalue()))
    return out


def comparable(text: str) -> list[str]:
    """Text without what changes with every edit: user lines, digests in names of kernels, blanks at ends."""
    text = re.sub(r" *// (?:(in place[, a-z]*|donated) \| )?(gradient of )?[\w.]+:\d+.*", r" \1", text)
    text = re.sub(r"(in )?\w+\.md:\d+", "line", text)
    text = re.sub(r"_[0-9a-f]{8}\b", "_digest", text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


#: Documents whose blocks run kernels on the emulated CUDA device.
ON_A_DEVICE = ("cuda.md", "cuda-emulator.md")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: str(d.relative_to(ROOT)))
def test_document(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if document.name in ON_A_DEVICE and shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    monkeypatch.chdir(tmp_path)
    for block, printed in run(document):
        if block["output"] is not None:
            assert comparable(printed) == comparable(block["output"]), (
                f"python -m tests.whole.test_docs {document.relative_to(ROOT)} renews it"
            )


def test_links() -> None:
    """Links between files of the repository lead somewhere."""
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_a_wrong_output_is_seen() -> None:
    assert comparable("%0 = add %x, %y : f64[n]  // guide.md:3") == comparable(
        "%0 = add %x, %y : f64[n]  // guide.md:99"
    )
    assert comparable("%0 = add %x, %y : f64[n]") != comparable("%0 = mul %x, %y : f64[n]")


def renew(document: Path) -> None:
    """Write the present outputs into a document."""
    text = document.read_text("utf-8")
    for block, printed in reversed(run(document)):
        if block["output"] is not None and comparable(printed) != comparable(block["output"]):
            start, end = block.span("output")
            text = (
                text[:start] + "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n" + text[end:]
            )
    document.write_text(text, "utf-8")


if __name__ == "__main__":
    import os
    import sys
    import tempfile

    for path in [ROOT / name for name in sys.argv[1:]] or DOCUMENTS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            renew(path)
