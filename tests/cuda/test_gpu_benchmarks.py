"""The benchmark for GPUs runs: every part of it, at tiny sizes, on the emulated device."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator

import pytest

from benchmarks.cuda import __main__ as runs
from benchmarks.cuda import ceilings, estimates, peers, worker
from benchmarks.cuda.__main__ import ROOT, main, table
from benchmarks.cuda.cases import CASES
from symc.testing import emulated_cuda


@pytest.fixture(scope="module", autouse=True)
def device() -> Iterator[None]:
    if shutil.which("g++") is None:
        pytest.skip("the emulated device needs g++")
    with emulated_cuda(checked=False):
        yield


@pytest.mark.parametrize("name", ["elementwise float16", "layernorm gradients", "scatter-add", "product tf32",
                                  "training step 1024", "small call", "solve", "eigenvalues of many"])
def test_a_case_is_measured_and_right(name):
    row = worker.main({"case": name, "peer": "symc", "full": False, "replays": 2})
    assert row["error"] is None if CASES[name].step else row["error"] <= CASES[name].tolerance
    assert min(row["seconds"], row["host"]) > 0 and row["buffers"] == (1 if CASES[name].step else 4)


def test_a_block_trains():
    case, peer = CASES["transformer block"], peers.Symc()
    given = [peer.put(a) for a in case.make(case.tiny)]
    function = worker.build(case, peer, given)
    first, again = (float(peer.get(function(*given)[0])) for _ in range(2))
    assert first == again and abs(first - 0.0408738) < 1e-5  # what JAX and PyTorch give for the same arrays


def test_ceilings_and_the_table():
    found = ceilings.main(full=False)
    assert min(v for k, v in found.items() if k.endswith("_s")) > 0
    rows = {"symc": {"seconds": 2e-6, "host": 1e-6, "first": 0.5, "error": 0.0},
            "jax": {"seconds": 4e-6, "host": 1e-6, "first": 1.5, "error": 0.0}, "cupy": {"failure": "no GPU"}}
    document = {"emulated": True, "ceilings": {**found, "copy_bytes_s": 5003 * 12 / 1e-6}, "cases": {
        "elementwise float32": rows, "product tf32": {"symc": {"failure": "it died"}}}}
    lines = table(document).split("\n")
    assert lines[2].startswith("| elementwise float32 | 2.0 us | 50% of copying | jax, 4.0 us | 0.50 |")
    assert lines[3].startswith("| product tf32 | failed |")


def test_every_case_has_sizes_for_both():
    for case in CASES.values():
        assert case.tiny.keys() == case.full.keys() and bool(case.formula) != bool(case.step)
        assert all(n <= case.full[k] for k, n in case.tiny.items())


def test_a_run_goes_on_where_it_stopped(monkeypatch, tmp_path, capsys):
    """symc's figures come first; what failed is kept whole, and done again with what is missing."""
    asked: list[tuple[str, str]] = []
    failing = {"jax"}

    def measured(arguments, emulated):
        job = json.loads(arguments[-1])
        asked.append((job["case"], job["peer"]))
        if job["peer"] in failing:
            return {"failure": "OutOfMemoryError", "text": "a\nlong\nstory"}
        return {"seconds": 2e-6, "host": 1e-6, "first": 0.5, "error": 0.0}

    monkeypatch.setattr(runs, "RESULTS", tmp_path)
    monkeypatch.setattr(runs, "no_device", lambda emulated: "")
    monkeypatch.setattr(runs, "_python", measured)
    command = ["benchmarks.cuda", "--steps", "cases", "-w", "small call,softmax 128", "-p", "symc,jax"]
    monkeypatch.setattr("sys.argv", command)
    assert main() == 0
    assert [p for _, p in asked] == ["symc", "symc", "jax", "jax"]
    kept = json.loads((tmp_path / "latest.json").read_text())["cases"]["small call"]
    assert kept["jax"]["text"] == "a\nlong\nstory" and kept["symc"]["seconds"] == 2e-6
    asked.clear(), failing.clear()
    monkeypatch.setattr("sys.argv", [*command, "--resume"])
    assert main() == 0
    assert [p for _, p in asked] == ["jax", "jax"]
    assert "| small call | 2.0 us |  | jax, 2.0 us | 1.00 |" in capsys.readouterr().out


def test_checks_that_fail_are_kept_whole():
    found = runs._checked([sys.executable, "-c", "import sys; print('first'); sys.exit('last')"], {})
    assert found == {"passed": False, "summary": "last", "text": "first\nlast"}
    assert runs._checked([sys.executable, "-c", "print('3 passed')"], {}) == {"passed": True, "summary": "3 passed"}


def test_estimates_need_no_gpu(monkeypatch, capsys):
    row = next(k for k, name in estimates.ROWS.items() if name == "softmax 4096")
    monkeypatch.setattr(estimates, "ROWS", {row: "softmax 4096"})
    monkeypatch.setattr("sys.argv", ["benchmarks.cuda", "--estimate"])
    assert main() == 0
    assert re.search(re.escape(row) + r" +63\.9us +63\.9us +1$", capsys.readouterr().out.strip())
    page = (ROOT / "docs" / "cuda.md").read_text()
    assert f"| {row} | 64 us | 64 us |" in page
