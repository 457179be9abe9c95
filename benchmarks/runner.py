"""Runs one case: cold and warm processes of every peer, then steady calls in turns."""

from __future__ import annotations

import dataclasses
import json
import select
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks import machine, peers, venvs
from benchmarks.workload import Case, Workload

Message = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Length and number of measurements."""

    settings: peers.Settings
    rounds: int = 5
    seconds: float = 0.3
    """Steady calls of one peer in one round."""
    timeout: float = 240
    warm: bool = True
    """Also start each compiling peer a second time, on the cache that its first process left."""
    starts: int = 1
    """How often a compiling peer starts cold and warm; the shortest counts. Slow compilers start once."""
    kept: Path | None = None
    """Where caches and cold numbers of slow compilers are kept between runs, if they are."""
    kept_only: bool = False
    """Leave slow compilers out where nothing is kept."""


class Worker:
    """A running worker process and the lines exchanged with it."""

    def __init__(self, job: Message, interpreter: Path, environment: dict[str, str], log: IO[str]) -> None:
        command = [str(interpreter), "-m", "benchmarks.worker", json.dumps(job)]
        self.process = subprocess.Popen(
            command,
            cwd=venvs.REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout

    def ask(self, request: Message, timeout: float) -> Message:
        try:
            self.requests.write(json.dumps(request) + "\n")
            self.requests.flush()
        except BrokenPipeError:
            return {"failure": "the process died"}
        return self.receive(timeout)

    def receive(self, timeout: float) -> Message:
        """The next message. A worker that fails or is late is ended."""
        ready, _, _ = select.select([self.answers], [], [], timeout)
        line = self.answers.readline() if ready else ""
        if line:
            return json.loads(line)
        self.end()
        return {"failure": f"died with status {self.process.returncode}" if ready else f"no answer in {timeout:g} s"}

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


class CaseRun:
    """The processes and measurements of one case; `document` is what a result file holds."""

    def __init__(self, workload: Workload[Any], case: Case, options: Options, folder: Path, log: IO[str]) -> None:
        self.workload, self.case, self.options, self.folder, self.log = workload, case, options, folder, log
        self.cpus = machine.usable_cores()[-options.settings.threads :]
        self.reference = str(folder / "reference.npz")
        self.rows: dict[str, Message] = {}
        self.live: dict[str, Worker] = {}

    def measure(self, names: list[str]) -> None:
        try:
            self._write_reference()
            for peer in map(peers.PEERS.__getitem__, names):
                if not (self.options.kept_only and peer.slow) or (self._cache(peer) / "cold.json").exists():
                    self._start(peer)
            for turn in range(self.options.rounds):
                self._round(turn)
            for name, worker in self.live.items():
                self._check(name, worker)
        finally:
            for worker in self.live.values():
                worker.end()

    def document(self) -> Message:
        return {
            "workload": self.workload.name,
            "title": self.workload.title,
            "case": dataclasses.asdict(self.case),
            "settings": dataclasses.asdict(self.options.settings),
            "rounds": self.options.rounds,
            "when": time.strftime("%Y-%m-%d %H:%M"),
            "machine": machine.facts(),
            "rows": {name: _summary(row) for name, row in self.rows.items()},
        }

    def _write_reference(self) -> None:
        environment = peers.environment(self.options.settings, "float64", self.folder)
        worker = Worker(self._job(), venvs.interpreter("main"), environment, self.log)
        worker.process.communicate()
        if worker.process.returncode:
            raise RuntimeError(f"{self.workload.name}/{self.case.name}: no reference, see {self.log.name}")

    def _start(self, peer: peers.Peer) -> None:
        """Cold numbers from first processes, warm ones from later ones, of which the last stays up for steady calls."""
        row = self.rows[peer.name] = {"wall": [], "cpu": []}
        worker, row["cold"] = self._start_cold(peer)
        if worker is None or (peer.compiles and self.options.warm and "failure" not in row["cold"]):
            if worker is not None:
                worker.end()
            worker, row["warm"] = self._repeated(peer, lambda turn: self._cache(peer))
        latest = row.get("warm") or row["cold"]
        if "failure" in latest:
            worker.end()
            row["failure"] = latest["failure"]
            print(f"  {peer.name}: {row['failure']}", file=sys.stderr)
        else:
            self.live[peer.name] = worker

    def _start_cold(self, peer: peers.Peer) -> tuple[Worker | None, Message]:
        """The process that a cold start left running, and its numbers; kept numbers of an earlier run have none."""
        kept = self._cache(peer) / "cold.json"
        if kept.exists():
            return None, json.loads(kept.read_text())
        cache = self._cache(peer)
        worker, message = self._repeated(peer, lambda turn: cache / f"{turn}" if turn else cache)
        if peer.slow and self.options.kept and "failure" not in message:
            kept.write_text(json.dumps(message))
        return worker, message

    def _repeated(self, peer: peers.Peer, cache: Callable[[int], Path]) -> tuple[Worker, Message]:
        """Start the peer as often as the options say: the last process, and the numbers of the fastest start."""
        times = self.options.starts if peer.compiles and not peer.slow else 1
        best: Message = {}
        for turn in range(times):
            worker, message = self._launch(peer, cache(turn))
            if "failure" in message:
                return worker, message
            best = min(best or message, message, key=lambda m: m["ready_cpu_s"])
            if turn < times - 1:
                worker.end()
        return worker, best

    def _cache(self, peer: peers.Peer) -> Path:
        """The folder of a peer's caches, made if need be."""
        cache = self.folder / peer.name
        if peer.slow and self.options.kept:
            source = Path(str(sys.modules[f"benchmarks.workloads.{self.workload.name}"].__file__)).read_bytes()
            name = f"{self.workload.name}.{self.case.name}.t{self.options.settings.threads}"
            cache = self.options.kept / f"{name}.{zlib.crc32(source):08x}" / peer.name
        cache.mkdir(parents=True, exist_ok=True)
        return cache

    def _launch(self, peer: peers.Peer, cache: Path) -> tuple[Worker, Message]:
        environment = peers.environment(self.options.settings, self.case.dtype, cache)
        worker = Worker(self._job(peer=peer.name), venvs.interpreter(peer.venv), environment, self.log)
        return worker, worker.receive(self.options.timeout)

    def _job(self, **peer: str) -> Message:
        where = {"workload": self.workload.name, "case": self.case.name, "reference": self.reference}
        return {**where, "threads": self.options.settings.threads, "cpus": self.cpus, **peer}

    def _round(self, turn: int) -> None:
        """A slice of calls of every peer, each round starting with another, so that noise falls on all alike."""
        names = list(self.live)
        shift = turn % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            answer = self.live[name].ask({"seconds": self.options.seconds}, self.options.timeout)
            if "failure" in answer:
                self.rows[name]["failure"] = answer["failure"]
                self.live.pop(name).end()
            else:
                self.rows[name]["wall"] += answer["wall"]
                self.rows[name]["cpu"] += answer["cpu"]

    def _check(self, name: str, worker: Worker) -> None:
        self.rows[name]["last"] = worker.ask({"check": True}, self.options.timeout)


def run_case(workload: Workload[Any], case: Case, names: list[str], options: Options, log: IO[str]) -> Message:
    """Measure the named peers on one case, in a scratch folder that holds their caches."""
    with tempfile.TemporaryDirectory(prefix="symc-bench-", ignore_cleanup_errors=True) as folder:
        run = CaseRun(workload, case, options, Path(folder), log)
        run.measure(names)
        return run.document()


def _summary(row: Message) -> Message:
    """Row of one peer: a failure, or the numbers of the tables."""
    if "failure" in row:
        return {"failure": row["failure"]}
    cold, warm = row["cold"], row.get("warm")
    phases = [phase for phase in (cold, warm, row["last"]) if phase and "ok" in phase]
    median = statistics.median(row["wall"])
    cpu = statistics.median(row["cpu"])
    latest = warm or cold
    return {
        "median_s": median,
        "min_s": min(row["wall"]),
        "cpu_s": cpu,
        "cpu_min_s": min(row["cpu"]),
        "batches": len(row["wall"]),
        "import_s": latest["import_s"],
        "import_cpu_s": latest["import_cpu_s"],
        **_start_numbers("cold", cold, median, cpu),
        **_start_numbers("warm", warm, median, cpu),
        "memory_cold_mib": cold["memory_mib"],
        "memory_warm_mib": warm and warm["memory_mib"],
        "error": max(phase["error"] for phase in phases),
        "ok": all(phase["ok"] for phase in phases) and "failure" not in row["last"],
        "version": latest["version"],
        "python": latest["python"],
    }


def _start_numbers(kind: str, phase: Message | None, wall: float, cpu: float) -> Message:
    """Compile: build and first call, less a steady call. Start: import, build and first call. Wall and CPU seconds."""
    names = ("compile", "start")
    if phase is None:
        return {f"{name}_{kind}{clock}": None for name in names for clock in ("_s", "_cpu_s")}
    return {
        f"compile_{kind}_s": max(0.0, phase["ready_s"] - wall),
        f"compile_{kind}_cpu_s": max(0.0, phase["ready_cpu_s"] - cpu),
        f"start_{kind}_s": phase["import_s"] + phase["ready_s"],
        f"start_{kind}_cpu_s": phase["import_cpu_s"] + phase["ready_cpu_s"],
    }
