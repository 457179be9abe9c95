"""``sc.optim.fit``: a training loop with batches, progress, early stopping, checkpoints, and exact resume.

It calls a compiled step; what a step does is said by who compiled it. What is drawn (the order of the examples) depends
on the seed and on the number of the epoch alone, so a run that was stopped and resumed is the run that was not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from symc.errors import InputError
from symc.ir.record import dataclass, field
from symc.notebook import progress_bar
from symc.params.files import assign, read_arrays, states_by_name, write_arrays

#: What a checkpoint has beside the states, as bytes of JSON, and how the best states are called in it.
RUN, BEST = "fit/run", "fit/best/"


@dataclass(eq=False)
class Fit:
    """History of a training run. ``losses`` and ``validation``: one number an epoch; ``best``: the best of the latter,
    and ``epoch``, where it was (from 1 on); ``stopped``: before the last epoch, because nothing got better."""

    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: float | None = None
    epoch: int = 0
    stopped: bool = False

    def note(self, value: float) -> bool:
        """Note a validation; true if it is the best so far."""
        self.validation.append(value)
        if self.best is not None and not value < self.best:
            return False
        self.best, self.epoch = value, len(self.validation)
        return True


def fit(step: Callable[..., Any], data: Any, epochs: int, batch: int = 64, *, seed: int = 0, params: Any = None,
        validate: Callable[[], Any] | None = None, patience: int | None = None, checkpoint: Any = None,
        progress: bool | Callable[[str], Any] = True) -> Fit:
    """Call ``step`` on batches of ``data``, each epoch in another order, and return what the losses were.

    ``data``: arrays of the same length, of which a step gets rows; or a function of (epoch, rng) that gives the batches
    as tuples. ``step`` returns the loss, or several values of which it is the first.
    ``params``: what is trained, as for ``save_params`` (``{"model": P, "optimizer": opt}``); needed for what follows.
    ``validate()`` gives a number after each epoch, the lower the better (the error; the negative accuracy); at the end
    the states are those of the best epoch. ``patience``: stop after so many epochs without a better one.
    ``checkpoint``: a file that is written after each epoch; if it is there at the start, training goes on from it.
    ``progress``: a bar of tqdm's in terminals and notebooks, where that is installed, else a line an epoch; or a
    function that gets the lines. Raises FloatingPointError when a loss is nan.
    """
    if (validate is not None or checkpoint is not None) and params is None:
        raise InputError("sc.optim.fit: validate and checkpoint need params=", help='{"model": P, "optimizer": opt}')
    if patience is not None and validate is None:
        raise InputError("sc.optim.fit: patience needs validate=", help="it returns the error on other data")
    bar = progress_bar(total=epochs, unit="epoch") if progress is True else None
    say = progress if callable(progress) else print if progress else lambda line: None
    run, best = Fit(), dict[str, np.ndarray]()
    if checkpoint is not None and os.path.exists(checkpoint):
        run, best = _resume(checkpoint, params)
    batches = data if callable(data) else _rows_of(data, batch)
    line = ""
    for epoch in range(len(run.losses), epochs):
        if run.stopped:
            break
        begin = time.perf_counter()
        run.losses.append(_epoch(step, batches(epoch, np.random.default_rng([seed, epoch])), epoch))
        line = f"epoch {epoch + 1}/{epochs}  loss {run.losses[-1]:.4g}"
        if validate is not None:
            if run.note(float(validate())):
                best = {name: s.get_value() for name, s in states_by_name(params).items()}
            line += f"  validation {run.validation[-1]:.4g}"
            run.stopped = patience is not None and epoch + 1 - run.epoch >= patience
        if bar is not None:
            bar.set_postfix_str(line.partition("  ")[2], refresh=False)
            bar.update(epoch + 1 - bar.n)
        else:
            say(f"{line}  {time.perf_counter() - begin:.1f} s")
        if checkpoint is not None:
            _keep(checkpoint, params, run, best)
    if bar is not None:
        bar.close()
        say(line)
    if best:
        assign(states_by_name(params), best, "the best epoch", True)
    return run


def _epoch(step: Callable[..., Any], batches: Iterable[Sequence[Any]], epoch: int) -> float:
    """The mean of the losses."""
    total, count = 0.0, 0
    for rows in batches:
        loss = step(*rows)
        while isinstance(loss, tuple | list):
            loss = loss[0]
        total, count = total + float(loss), count + 1
        if total != total:
            raise FloatingPointError(f"the loss is nan at step {count} of epoch {epoch + 1}; "
                                     'sc.compile(..., mode="nan_guard") says where that begins')
    if not count:
        raise InputError(f"sc.optim.fit: epoch {epoch + 1} has no batches")
    return total / count


def _rows_of(data: Any, batch: int) -> Callable[[int, np.random.Generator], Iterable[tuple[Any, ...]]]:
    """Batches of arrays, all of nearly the same number of rows, at most ``batch``."""
    arrays = [np.asarray(a) for a in (data if isinstance(data, tuple | list) else (data,))]
    sizes = {len(a) for a in arrays}
    if len(sizes) != 1 or not sizes.isdisjoint({0}) or batch < 1:
        raise InputError(f"sc.optim.fit: arrays of {sorted(sizes)} rows cannot be taken in batches of {batch}")
    (n,) = sizes

    def batches(epoch: int, rng: np.random.Generator) -> Iterable[tuple[Any, ...]]:
        for rows in np.array_split(rng.permutation(n), -(-n // batch)):
            yield tuple(a[rows] for a in arrays)

    return batches


def _keep(path: Any, params: Any, run: Fit, best: dict[str, np.ndarray]) -> None:
    now = {name: s.get_value() for name, s in states_by_name(params).items()}
    about = json.dumps(run.__dict__).encode()
    write_arrays(path, {**now, **{BEST + name: a for name, a in best.items()}, RUN: np.frombuffer(about, np.uint8)})


def _resume(path: Any, params: Any) -> tuple[Fit, dict[str, np.ndarray]]:
    arrays = read_arrays(path)
    if RUN not in arrays:
        raise InputError(f"{path} is no checkpoint of sc.optim.fit", help="load_params reads files of save_params")
    about = json.loads(arrays.pop(RUN).tobytes())
    best = {name.removeprefix(BEST): arrays.pop(name) for name in list(arrays) if name.startswith(BEST)}
    assign(states_by_name(params), arrays, path, True)
    return Fit(**about), best


__all__ = ["Fit", "fit"]
