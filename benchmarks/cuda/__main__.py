"""``python -m benchmarks.cuda``: first contact, the contract of devices, compute-sanitizer, ceilings, and every case
with every peer.

One command for a machine with a GPU; ``--emulated`` runs all of it at tiny sizes on the emulated device, to see that it
runs. Results are written to ``benchmarks/results/cuda/TAG.json``; ``--show`` prints the table of a file again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.cuda.cases import CASES
from benchmarks.cuda.peers import PEERS

ROOT = Path(__file__).resolve().parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cuda"
#: Where compilers keep what they compiled: empty for every process, so that what is measured first is a cold start.
CACHES = ("SYMC_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
TIMEOUT = 600
#: Tests of correctness, of which each file takes less.
CONTRACT = ("tests/cuda/test_contract.py", "tests/cuda/test_contract_products.py", "tests/cuda/test_device_ops.py")
TOOLS = ("memcheck", "racecheck")


def main() -> int:
    options = _options()
    if options.estimate:
        from benchmarks.cuda.estimates import estimates

        print(estimates())
        return 0
    path = RESULTS / f"{options.tag}.json"
    if options.show:
        print(table(json.loads(path.read_text())))
        return 0
    if missing := no_device(options.emulated):
        print(missing)
        return 1
    document: dict[str, Any] = {"machine": machine.facts(), "emulated": options.emulated}
    if options.resume and path.exists():
        document = {**json.loads(path.read_text()), **document}
    document.setdefault("cases", {})
    for keys, run in parts(options):
        found = document
        for key in keys[:-1]:
            found = found.setdefault(key, {})
        done = found.get(keys[-1], {"failure": ""})
        if "failure" in done or not done.get("passed", True):
            found[keys[-1]] = run()
            print(" ".join(f"{key:20}" for key in keys), _line(found[keys[-1]]), flush=True)
            write(path, document)
    print(table(document))
    return 0


def parts(options: argparse.Namespace) -> Iterator[tuple[tuple[str, ...], Callable[[], dict[str, Any]]]]:
    """All parts of a run, with their place in the results: is it right, how fast is the device, what does symc take for
    every case, and then its peers."""
    wanted, emulated = options.steps.split(","), options.emulated
    for file in CONTRACT if "contract" in wanted else ():
        yield ("contract", file), partial(contract, file, emulated)
    tool = None if emulated else shutil.which("compute-sanitizer")
    for kind in (TOOLS if tool else ("none",)) if "sanitizer" in wanted else ():
        yield ("sanitizer", kind), partial(sanitizer, tool, kind, emulated)
    if "ceilings" in wanted:
        yield ("ceilings",), partial(_python, ["-m", "benchmarks.cuda.ceilings"], emulated)
    for case, peer in selected(options) if "cases" in wanted else ():
        job = {"case": case, "peer": peer, "full": not emulated, "replays": options.replays}
        yield ("cases", case, peer), partial(_python, ["-m", "benchmarks.cuda.worker", json.dumps(job)], emulated)


def no_device(emulated: bool) -> str:
    """The fault of the device, in a line; "" if it has none."""
    from symc.tools.first_contact import first_contact

    said: list[str] = []
    found = None if emulated else first_contact("cuda", said.append)
    if found is None:
        print("\n".join(said), flush=True)
        return ""
    return f"no benchmark: {' '.join(found.split())[:200]} (python -m symc doctor --device cuda says what to do)"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__.split("\n")[0])
    parser.add_argument("-w", "--only", default="", help="only cases with one of these texts in their name")
    parser.add_argument("-p", "--peers", default=",".join(PEERS), help="only these peers")
    parser.add_argument("--steps", default="contract,sanitizer,ceilings,cases", help="only these parts")
    parser.add_argument("--replays", type=int, default=20, help="calls in one slice that is timed")
    parser.add_argument("--emulated", action="store_true", help="tiny sizes on the emulated device, symc alone")
    parser.add_argument("--estimate", action="store_true", help="estimated times, without a GPU")
    parser.add_argument("--tag", default="latest", help="the name of the file of results")
    parser.add_argument("--resume", action="store_true", help="only what that file has not, or failed")
    parser.add_argument("--show", action="store_true", help="print a table again")
    return parser.parse_args()


def selected(options: argparse.Namespace) -> list[tuple[str, str]]:
    parts = [p for p in options.only.split(",") if p]
    peers = ["symc"] if options.emulated else [p for p in options.peers.split(",") if p]
    cases = [c for c in CASES if not parts or any(x in c for x in parts)]
    return [(c, p) for p in peers for c in cases if p not in CASES[c].skip]


def write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


# --- processes --------------------------------------------------------------------------------------------------------


def _environment(emulated: bool, caches: str) -> dict[str, str]:
    env = {**os.environ, **{name: os.path.join(caches, name) for name in CACHES},
           "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONPATH": str(ROOT)}
    if emulated:
        env["SYMC_CUDA"] = "emulated-fast"
    return env


def _python(arguments: list[str], emulated: bool) -> dict[str, Any]:
    """Last line of a process, or how it failed."""
    with tempfile.TemporaryDirectory() as caches:
        try:
            run = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=_environment(emulated, caches), text=True,
                                 capture_output=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return {"failure": f"it took more than {TIMEOUT} s"}
    lines = run.stdout.strip().split("\n")
    if run.returncode == 0 and lines[-1].startswith("{"):
        return json.loads(lines[-1])
    said = run.stderr.strip().split("\n")
    return {"failure": next((x for x in reversed(said) if "Error" in x), said[-1])[:300], "text": run.stderr}


def contract(file: str, emulated: bool) -> dict[str, Any]:
    """A file of tests, on the GPU."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **({} if emulated else {"SYMC_DEVICE": "cuda:0"})}
    return _checked([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", file], env)


def sanitizer(tool: str | None, kind: str, emulated: bool) -> dict[str, Any]:
    """Report of NVIDIA's checker of all cases; without it, or without a GPU, only that they run."""
    command = [tool, "--tool", kind, "--error-exitcode", "9"] if tool else []
    with tempfile.TemporaryDirectory() as caches:
        return _checked([*command, sys.executable, "-m", "benchmarks.cuda.sanitized"], _environment(emulated, caches))


def _checked(command: list[str], env: dict[str, str]) -> dict[str, Any]:
    """The end of a check, with all that it said if it failed."""
    try:
        run = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"passed": False, "summary": f"it took more than {TIMEOUT} s"}
    said = (run.stdout + run.stderr).strip()
    found = {"passed": run.returncode == 0, "summary": said.split("\n")[-1][:300]}
    return found if found["passed"] else found | {"text": said}


# --- tables -----------------------------------------------------------------------------------------------------------


def _line(row: dict[str, Any]) -> str:
    if "failure" in row or "seconds" not in row:
        return row.get("failure", row.get("summary", ""))
    error = "" if row["error"] is None else f"  error {row['error']:.1e}"
    return f"{row['seconds'] * 1e6:12.1f} us  host {row['host'] * 1e6:8.1f} us  first {row['first']:6.2f} s{error}"


def share(document: dict[str, Any], name: str, seconds: float) -> str:
    """Part of the ceiling that was measured in the same run a case reaches."""
    case, ceilings = CASES[name], document.get("ceilings", {})
    sizes = case.tiny if document["emulated"] else case.full
    if case.moved and "copy_bytes_s" in ceilings:
        return f"{case.moved(sizes) / seconds / ceilings['copy_bytes_s']:.0%} of copying"
    key = f"product {case.ceiling} {case.precision} flop_s"
    if case.flops and key in ceilings:
        return f"{case.flops(sizes) / seconds / ceilings[key]:.0%} of multiplying"
    return ""


def table(document: dict[str, Any]) -> str:
    """One line a case: symc, its part of the ceiling, and the best peer."""
    heads = ["case", "symc", "of the ceiling", "best peer", "symc / peer", "host", "first", "peer's first"]
    out = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, row in document["cases"].items():
        good = {p: r for p, r in row.items() if "failure" not in r}
        if "symc" not in good:
            out.append(f"| {name} | failed |" + " |" * 6)
            continue
        own = good.pop("symc")
        best = min(good, key=lambda p: good[p]["seconds"], default=None)
        peer = good[best] if best else None
        out.append(" | ".join([
            f"| {name}", f"{own['seconds'] * 1e6:.1f} us", share(document, name, own["seconds"]),
            f"{best}, {peer['seconds'] * 1e6:.1f} us" if peer else "-",
            f"{own['seconds'] / peer['seconds']:.2f}" if peer else "-", f"{own['host'] * 1e6:.1f} us",
            f"{own['first']:.2f} s", f"{peer['first']:.2f} s |" if peer else "- |"]))
    return "\n".join(out)


if __name__ == "__main__":
    sys.exit(main())
