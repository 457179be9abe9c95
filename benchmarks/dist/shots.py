"""Measurements in turns, each noted in a file as soon as it is made: a run that was stopped goes on where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

Numbers = dict[str, float]
#: The name of a shot, which a run makes once a round, and what measures it.
Shot = tuple[str, Callable[[], Numbers]]


class Notes:
    """Numbers of a part by shot and round, in a file of one JSON object a line. ``seconds``: how long a run of a part
    may begin new shots; each is made once whatever the time."""

    def __init__(self, path: Path, part: str, seconds: float):
        self.path, self.part, self.end = path, part, time.monotonic() + seconds
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = [row for row in map(json.loads, lines) if row["part"] == part]

    def run(self, shots: Iterable[Shot], rounds: int) -> None:
        """Make what is missing, in turns."""
        every = list(shots)
        for k in range(rounds):
            for name, measure in every:
                made = sum(row["shot"] == name for row in self.rows)
                if made > k or made and time.monotonic() > self.end:
                    continue
                row = {"part": self.part, "shot": name, **measure()}
                self.rows.append(row)
                with self.path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                numbers = ", ".join(f"{n} {x:.4g}" for n, x in row.items() if isinstance(x, float))
                print(f"  {self.part} {name}, round {made + 1} of {rounds}: {numbers}", flush=True)

    def least(self, shot: str, number: str) -> float:
        """The least of all rounds; nan where there is none."""
        return min((row[number] for row in self.rows if row["shot"] == shot and number in row), default=float("nan"))


def say(what: str, ratio: float, bound: str = "") -> None:
    """A line of the result."""
    print(f"{what}: {ratio:.2f}{f' ({bound})' if bound else ''}", flush=True)
