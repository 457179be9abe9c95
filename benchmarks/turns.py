"""Programs in processes of their own, one thread each, that take turns: the best time of all rounds counts."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Ways = Mapping[str, Callable[[], float]]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of who measures."""
    parser.add_argument("--torch", help="a Python that has PyTorch")
    parser.add_argument("--dynet", help="a Python that has dynet38")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--serve", help=argparse.SUPPRESS)


def peers(args: argparse.Namespace, roles: Mapping[str, str]) -> dict[str, str]:
    """The Python of each role, of those whose package is at hand: ``roles`` says which each needs."""
    pythons = {"symc": sys.executable, "torch": args.torch, "dynet": args.dynet}
    return {role: pythons[package] for role, package in roles.items() if pythons[package]}


def serve(ways: Ways) -> None:
    """Answer each line of input, the name of a way and how often, by the best time and the loss."""
    print(json.dumps(list(ways)), flush=True)
    for line in sys.stdin:
        name, _, times = line.strip().rpartition(" ")
        best, loss = 1e9, 0.0
        for _ in range(int(times)):
            start = time.perf_counter()
            loss = ways[name]()
            best = min(best, time.perf_counter() - start)
        print(json.dumps([best, loss]), flush=True)


def measure(script: str, more: Sequence[str], roles: Mapping[str, str], rounds: int,
            often: Mapping[str, int] | None = None) -> dict[str, tuple[float, float]]:
    """The best time of each way of each role, and its loss. ``often``: how often a way runs in its turn, else 10."""
    root = str(Path(__file__).resolve().parent.parent)
    env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": root}
    found: dict[str, tuple[float, float]] = {}
    running: dict[str, subprocess.Popen] = {}
    for role, python in roles.items():
        p = subprocess.Popen([python, script, *more, "--serve", role], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, env=env)
        assert p.stdout
        running |= dict.fromkeys(json.loads(next(line for line in p.stdout if line.startswith("["))), p)
    for _ in range(rounds):
        for name, p in running.items():
            assert p.stdin and p.stdout
            p.stdin.write(f"{name} {(often or {}).get(name, 10)}\n")
            p.stdin.flush()
            seconds, loss = json.loads(p.stdout.readline())
            found[name] = min(found.get(name, (1e9, 0.0)), (seconds, loss))
    for p in set(running.values()):
        p.communicate()
    return found


def report(title: str, found: Mapping[str, tuple[float, float]]) -> None:
    """A line a way: its time, how many times that of the first, and the loss."""
    print(title)
    first = next(iter(found.values()))[0]
    for name, (seconds, loss) in found.items():
        print(f"{name:16} {1e3 * seconds:9.2f} ms  {seconds / first:6.2f}  loss {loss:.4f}")
