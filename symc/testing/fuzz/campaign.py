"""Many programs, one after another: counts what they reach, aims at what they did not, and writes down what fails."""

from __future__ import annotations

import itertools
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from symc.errors import InternalError
from symc.ir.ops.effect import quiet
from symc.ir.record import dataclass, field
from symc.opt import all_passes
from symc.testing.fuzz import arguments as _arguments  # noqa: F401 - declares its generator
from symc.testing.fuzz import derivatives as _derivatives  # noqa: F401 - declares its checks
from symc.testing.fuzz import front as _front  # noqa: F401 - declares its generator
from symc.testing.fuzz import looped, moved
from symc.testing.fuzz import outside as _outside  # noqa: F401 - declares its checks
from symc.testing.fuzz import patterns as _patterns  # noqa: F401 - declares its check
from symc.testing.fuzz import sized as _sized  # noqa: F401 - declares its generator
from symc.testing.fuzz.checks import Trial, of_error, run
from symc.testing.fuzz.generators import aimed_rules, sampled_ops
from symc.testing.fuzz.grower import MISTAKES
from symc.testing.fuzz.programs import Program, Reached, make
from symc.tools.debugging.blame import BROKEN, Blame, text_of
from symc.tools.debugging.repro import write_repro

#: How often each generator is taken, and each check is run, of a hundred.
WEIGHTS = {"rules": 30, "front": 18, "mixed": 14, "ops": 13, "arguments": 7, "sized": 6, "straight": 6,
           "loops": 6, "moved": 8}  # fmt: skip
SHARES = {"passes": 100, "fast_passes": 25, "again": 15, "text": 20, "files": 8, "outside": 10, "gradients": 30,
          "differences": 15, "batches": 25, "patterns": 15}  # fmt: skip
NATIVE_SHARES = {"native": 60, "fast_native": 20, "plain_native": 30, "memory": 20, "signals": 15,
                 "outside_native": 6}
#: Backends that are compared alone, and the check that does.
ALONE = {"device": "on_device", "numba": "by_numba"}
#: Of how many programs kernels are compiled when everything is tried.
NATIVE_PROGRAMS = 25
#: Checks that cost too much for programs with loops in them.
NOT_FOR_LOOPS = frozenset({"gradients", "differences", "batches", "again"})


@dataclass
class Failure:
    """A program that failed a check, and what was made of it."""

    program: str
    check: str
    blame: Blame
    source: Any = None  # a small program with loops, where there is no function

    def key(self) -> tuple[str, ...]:
        """Failures with one key are taken for one mistake."""
        g = self.blame
        return g.kind, g.name if g.kind != "kernel" else "", g.rule, re.sub(r"\d+", "", g.error)[:60]

    def __str__(self) -> str:
        g = self.blame
        said = g.said
        out = [f"{self.program}, check {self.check}: {headline(g)}", f"  {said}",
               f"  again: python -m symc fuzz --replay {self.program}"]
        if g.change:
            out.append(f"  it turned {g.change}")
        if self.source is not None:
            out.append(f"  {self.source}")
        return "\n".join(out + ([text_of(g.sample)] if g.sample is not None else []))


def headline(g: Blame) -> str:
    return f"check {g.name!r} fails" if g.kind == "check" else g.headline()


@dataclass
class Summary:
    """Summary of a campaign."""

    seed: int
    programs: int = 0
    values: int = 0
    calls: int = 0
    skipped: int = 0
    seconds: float = 0.0
    checks: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    reached: Reached = field(default_factory=Reached)
    failures: dict[tuple[str, ...], Failure] = field(default_factory=dict)
    repeated: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def __str__(self) -> str:
        minutes, seconds = divmod(round(self.seconds), 60)
        lines = [
            f"{self.programs} programs of {self.values} values, on {self.calls} sets of arrays, in {minutes} min "
            f"{seconds} s; seed {self.seed}",
            "made by: " + ", ".join(f"{n} {k}" for n, k in sorted(self.made.items())),
            "checks: " + ", ".join(f"{n} {k}" for n, k in sorted(self.checks.items())),
            _coverage("passes", self.reached.passes, [p.name for p in all_passes()]),
            _coverage("rules", self.reached.rules, aimed_rules()),
            _coverage("ops", self.reached.ops, list(sampled_ops())),
        ]
        if self.skipped:
            lines.append(f"{self.skipped} programs could not be made or are defined for none of their arrays")
        total = sum(self.repeated.values())
        lines.append("nothing is wrong" if not total else f"{len(self.failures)} mistakes in {total} programs")
        return "\n".join(lines)


def _coverage(what: str, counts: dict[str, int], names: list[str]) -> str:
    never = [n for n in names if not counts.get(n)]
    total = sum(counts.get(n, 0) for n in names)
    tail = f"; never: {', '.join(never)}" if never else ""
    return f"{what}: {len(names) - len(never)} of {len(names)} ({total} times){tail}"


@dataclass
class Campaign:
    """Goes through programs until time is over or there were enough. The same seed gives the same programs.

    ``backend``: "reference" (no kernels), "native" (kernels for every program), "all" (kernels for some), "device"
    (kernels of an emulated CUDA device for every program, and no other check) or "numba" (the same by Numba).
    ``edges``: infinities and nans among the inputs, too.
    ``out``: where failing programs are written, as ``.ir`` and as tests. ``say``: is told what is found, at once.
    """

    seed: int = 0
    minutes: float = 5.0
    programs: int | None = None
    backend: str = "all"
    out: Path | None = None
    say: Callable[[str], None] = print
    shrink_seconds: float = 20.0
    generators: tuple[str, ...] = ()
    edges: bool = False
    until: Callable[[Summary], bool] = lambda summary: False  # stop when it says so

    def run(self) -> Summary:
        """All of it."""
        out = Summary(self.seed)
        start = time.monotonic()
        for k in itertools.count():
            if time.monotonic() - start >= 60 * self.minutes or k == self.programs or self.until(out):
                break
            self.one(out, k)
        out.seconds = time.monotonic() - start
        return out

    def one(self, out: Summary, k: int) -> None:
        """Program ``k``."""
        rng = np.random.default_rng([self.seed, k])
        name = self._name(rng, out.reached, self.seed * 1_000_003 + k)
        try:
            with warnings.catch_warnings(), quiet():
                warnings.simplefilter("ignore")
                program = self._made(name, out)
                if program is not None:
                    self.try_one(program, out, rng)
        except Exception as e:  # a mistake of what makes, judges or writes programs is found like any other
            self._failed(Failure(name, "itself", of_error("itself", e)), out)

    def _made(self, name: str, out: Summary) -> Program | None:
        """The program called ``name``; None if symc refuses it."""
        try:
            return make(name)
        except InternalError:
            raise
        except MISTAKES:
            out.skipped += 1
            return None

    def _name(self, rng: np.random.Generator, reached: Reached, seed: int) -> str:
        names = [g for g in WEIGHTS if not self.generators or g in self.generators]
        weights = np.array([WEIGHTS[g] for g in names], float)
        kind = str(rng.choice(names, p=weights / weights.sum()))
        if kind == "rules":
            return f"rules:{seed}:{reached.least('rules', aimed_rules(), rng)}"
        if kind == "moved":
            return f"moved:{seed}" + (f":{rng.choice(moved.moving_rules())}" if rng.random() < 0.7 else "")
        return f"ops:{seed}:{reached.least('ops', sampled_ops(), rng)}" if kind == "ops" else f"{kind}:{seed}"

    def try_one(self, program: Program, out: Summary, rng: np.random.Generator) -> None:
        """All checks that are this program's turn; a failure ends it."""
        data = program.data + (program.edges if self.edges else ())
        trial = Trial(program.function, data, program.donated, self.shrink_seconds)
        blame = run("reference", trial)
        if blame is None and not trial.oracles:
            out.skipped += 1
            self._aimed(program, out)
            return
        out.programs += 1
        if blame is not None:
            self._failed(Failure(program.name, "reference", blame), out)
            return
        out.made[program.name.partition(":")[0]] += 1
        out.values += len(program.function.values())
        out.calls += len(trial.oracles)
        for check in self._turn(program, rng):
            out.checks[check] += 1
            blame = run(check, trial)
            if blame is not None:
                self._failed(Failure(program.name, check, blame), out)
                break
        if program.source is not None:
            self._without_loops(program, out, rng)
        self._note(program, trial, out)

    def _without_loops(self, program: Program, out: Summary, rng: np.random.Generator) -> None:
        """Compare loops with the same program without."""
        if self.backend in ALONE:
            return
        native = {"reference": False, "native": True, "all": bool(rng.random() < 0.3)}[self.backend]
        for check in looped.turn(program.source, rng, native):
            out.checks[f"loops: {check}"] += 1
            found = looped.run(check, program.source)
            if found is not None:
                blame, small = found
                self._failed(Failure(program.name, check, blame, small), out)
                break

    def _turn(self, program: Program, rng: np.random.Generator) -> list[str]:
        if self.backend in ALONE:
            return [ALONE[self.backend]]
        share = {"reference": 0, "native": 100, "all": NATIVE_PROGRAMS}[self.backend]
        turn = [c for c, p in SHARES.items() if 100 * rng.random() < p]
        if 100 * rng.random() < share:
            own = [c for c, p in NATIVE_SHARES.items() if 100 * rng.random() < p]
            turn += own or ["native"]
        if program.source is not None:
            turn = [c for c in turn if c not in NOT_FOR_LOOPS]
        return turn

    def _note(self, program: Program, trial: Trial, out: Summary) -> None:
        reached = out.reached
        for op in {v.op.name for v in program.function.values()}:
            reached.ops[op] = reached.ops.get(op, 0) + 1
        try:
            optimized = trial.optimized
        except BROKEN:
            return
        for f in optimized.provenance.firings:
            reached.rules[f.rule] = reached.rules.get(f.rule, 0) + 1
        before = None
        for name, stage in optimized.stages.items():
            if before is not None and stage.body is not before.body:
                base = name.partition(".")[0]
                reached.passes[base] = reached.passes.get(base, 0) + 1
            before = stage
        self._aimed(program, out)

    def _aimed(self, program: Program, out: Summary) -> None:
        """Counts what was aimed at as reached a little, so that the aim moves on."""
        kind, _, *aim = program.name.split(":", 2)
        if aim:
            table = out.reached.tried.setdefault(kind, {})
            table[aim[0]] = table.get(aim[0], 0) + 1

    def _failed(self, failure: Failure, out: Summary) -> None:
        key = failure.key()
        out.repeated[key] += 1
        if key in out.failures:
            return
        out.failures[key] = failure
        self.say(str(failure))
        if self.out is not None and (failure.blame.sample is not None or failure.source is not None):
            for path in write(failure, self.out):
                self.say(f"  written: {path}")


def write(failure: Failure, folder: Path) -> list[Path]:
    """The smallest function as ``.ir``, and a test that fails as long as the mistake is there."""
    folder.mkdir(parents=True, exist_ok=True)
    g = failure.blame
    stem = re.sub(r"\W+", "_", "_".join(x for x in (failure.check, g.rule or g.name, failure.program) if x))[:90]
    if g.sample is None:
        return [looped.write(folder / f"test_{stem}.py", headline(g), failure.check, failure.source)]
    ir = folder / f"{stem}.ir"
    ir.write_text(text_of(g.sample), "utf-8")
    said = g.said
    script = write_repro(folder / f"test_{stem}.py", g.sample, headline(g),
    f"Found: {said}\nProgram: {failure.program}",
                         pipeline=g.pipeline if g.kind == "pass" else None,
                         check=failure.check if g.kind == "check" else None)
    return [ir, script]


