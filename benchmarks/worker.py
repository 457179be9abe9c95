"""One peer on one case in a fresh process: ``python -m benchmarks.worker JOB``, where JOB is a JSON object.

The answer is JSON lines on standard output: first how the build and the first call went, then one line for each
request on standard input, ``{"seconds": s}`` for a slice of steady calls or ``{"check": true}`` for a check of a last
one. A job without a peer writes the reference outputs instead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.peers import PEERS

if TYPE_CHECKING:
    from benchmarks.workload import Array, Built

Job = dict[str, Any]
Message = dict[str, Any]


def main(job: Job) -> None:
    if job["cpus"]:
        os.sched_setaffinity(0, job["cpus"])
    if "peer" in job:
        _serve(job, _take_stdout())
    else:
        _write_reference(job)


def _serve(job: Job, send: Callable[[Message], None]) -> None:
    try:
        imported = _timed_import(PEERS[job["peer"]].modules)
        session = Session(job)
        send({**imported, **session.start()})
        for line in sys.stdin:
            request = json.loads(line)
            send(session.check() if "check" in request else session.run(request["seconds"]))
    except Exception as failure:
        traceback.print_exc()
        send({"failure": f"{type(failure).__name__}: {failure}"[:300]})


class Session:
    """A built function between the first call and the last. Imports wait until the peer's own was timed."""

    def __init__(self, job: Job) -> None:
        from benchmarks import kit
        from benchmarks.workload import Run
        from benchmarks.workloads import load

        self.kit, self.job, self.peer = kit, job, job["peer"]
        self.workload = load(job["workload"])
        self.case = self.workload.cases[job["case"]]
        self.inputs = kit.to_native(self.peer, self.workload.make_inputs(self.case))
        self.context = Run(self.case, self.peer, job["threads"])

    def start(self) -> Message:
        """Build, call once, check that call, and settle."""
        from benchmarks.measure import PeakMemory, Timer

        memory = PeakMemory()
        cpu, start = _cpu_seconds(), time.perf_counter()
        self.built = self._build()
        result = self._call()
        self.kit.wait(self.peer, result)
        ready = {"ready_s": time.perf_counter() - start, "ready_cpu_s": _cpu_seconds() - cpu}
        rise = memory.rise()
        accuracy = self._compare(result)
        self.timer = Timer(self._call, lambda last: self.kit.wait(self.peer, last), self.job["threads"])
        self.timer.warm_up(0.02)
        return {**ready, "memory_mib": rise, **accuracy, **self._versions()}

    def run(self, seconds: float) -> Message:
        wall, cpu = self.timer.run(seconds)
        return {"wall": wall, "cpu": cpu}

    def check(self) -> Message:
        """Compare one more call, in case reused buffers spoil results after the first."""
        return {} if self.built.stateful else self._compare(self._call())

    def _build(self) -> Built:
        from benchmarks import converted
        from benchmarks.workload import Built

        if self.peer not in self.workload.builders:
            return converted.build(self.workload, self.context, self.inputs)
        made = self.workload.builders[self.peer](self.context, *self.inputs)
        return made if isinstance(made, Built) else Built(made, self.inputs)

    def _call(self) -> Any:
        return self.built.function(*self.built.arguments)

    def _compare(self, result: Any) -> Message:
        import numpy as np

        with np.load(self.job["reference"]) as stored:
            wanted = [stored[f"arr_{i}"] for i in range(len(stored.files))]
        error = relative_error(self.kit.to_numpy(self.built.outputs(result)), wanted)
        return {"error": error, "ok": bool(error <= self.case.tolerance)}

    def _versions(self) -> Message:
        name = PEERS[self.peer].modules[0]
        module = importlib.import_module(name)
        version = getattr(module, "__version__", None) or importlib.metadata.version(_distribution(name))
        return {"version": str(version), "python": platform.python_version()}


def relative_error(got: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The largest error of any output, relative to the largest magnitude in that output."""
    import numpy as np

    shapes, expected = [g.shape for g in got], [w.shape for w in wanted]
    if shapes != expected:
        raise ValueError(f"outputs of shapes {shapes}, expected {expected}")
    tiny = np.finfo("float64").tiny
    errors = [np.max(np.abs(g - 1.0 * w)) / (np.max(np.abs(w)) + tiny) for g, w in zip(got, wanted)]
    return float(np.max(errors))  # np.max, unlike max, keeps a nan


def _distribution(module: str) -> str:
    """Name of the distribution that a module is of."""
    top = module.partition(".")[0]
    return importlib.metadata.packages_distributions().get(top, [top])[0]


def _write_reference(job: Job) -> None:
    import numpy as np

    from benchmarks.kit import to_numpy
    from benchmarks.workloads import load

    workload = load(job["workload"])
    case = workload.cases[job["case"]]
    inputs = [a.astype("float64") if a.dtype.kind == "f" else a for a in workload.make_inputs(case)]
    outputs = to_numpy(workload.compute_reference(case, *inputs))
    np.savez(job["reference"], *outputs)


def _timed_import(modules: Sequence[str]) -> Message:
    cpu, start = _cpu_seconds(), time.perf_counter()
    for name in modules:
        importlib.import_module(name)
    return {"import_s": time.perf_counter() - start, "import_cpu_s": _cpu_seconds() - cpu}


def _cpu_seconds() -> float:
    """CPU time of this process, its threads, and the compilers that it started and waited for."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def _take_stdout() -> Callable[[Message], None]:
    """Keep standard output for messages; whatever a library prints goes to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(message: Message) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    return send


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
