"""``dist.sweep``: a function at every point of a grid, one durable file a point; what is there is not computed again.

Results are sent to the process that calls ``sweep``, which writes them: a file appears whole or not at all, and is data
alone. So whatever dies, the finished points stay.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import os
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from symc.dist.children import Child, share
from symc.dist.mapping import bar, client_now
from symc.driver.jit import JitFunction
from symc.errors import ExecutionError, InputError, SymcError, did_you_mean
from symc.params.files import read_arrays, write_arrays
from symc.tensors.callsite import caller
from symc.tensors.pytree import flatten, from_json, to_json, unflatten

#: What a file has beside the results, as bytes of JSON.
ABOUT, RESULT = "sweep/about", "sweep/result/"
#: How often a point is tried whose process dies.
TRIES = 3
#: How many seconds a result of a worker of Dask may be under way (one that dies meanwhile may take it along), and how
#: long there may be no worker: Dask starts none in place of one that dies while it starts.
ARRIVAL = 300.0
Key = dict[str, Any]


class Sweep(list[Any]):
    """Results of a sweep, in the order of the grid. ``keys``: the points; ``computed``: how many were not there before.

    ``found[{"rate": 0.1, "seed": 0}]`` and ``found.where(rate=0.1)`` find them by their points.
    """

    def __init__(self, keys: Sequence[Key], results: Sequence[Any], computed: int):
        super().__init__(results)
        self.keys, self.computed = list(keys), computed

    def where(self, **values: Any) -> list[Any]:
        """Results at all points that have these values."""
        if unknown := [n for n in values if not any(n in k for k in self.keys)]:
            raise KeyError(unknown[0])
        return [r for k, r in zip(self.keys, self, strict=True)
                if all(n in k and _text(k[n]) == _text(v) for n, v in values.items())]

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, Mapping):
            return super().__getitem__(at)
        known = [k for k, key in enumerate(self.keys) if _text(key) == _text(at)]
        if not known:
            raise KeyError(str(at))
        return super().__getitem__(known[0])


def sweep(f: Callable[..., Any], /, over: Any, store: Any = None, *, client: Any = None, processes: int | None = None,
          progress: bool | Callable[[int, int], Any] = False) -> Sweep:
    """``f(**point)`` for every point of a grid, and the results in its order.

    ``over``: ``{"rate": [0.1, 0.01], "seed": range(3)}``, all combinations; or a list of points, which are dicts.
    ``store``: a folder with one file a point; points that it has are not computed again, damaged files are. Raises
    InputError for a store of another function. ``client``: a Dask client that computes (by default the one that there
    is); ``processes``: so many processes of this machine instead; else points are computed here, one after another.
    ``f`` gives arrays, numbers and nests of them.

    An error at a point does not stop the others; at the end ExecutionError names the points that failed. A point whose
    process dies is tried three times.
    """
    loc = caller()
    try:
        keys = _points(over)
        _check_names(f, keys)
        named = {_text(k): k for k in keys}
        files = _Store(store, _program(f)) if store is not None else None
        found: dict[str, Any] = {}
        for text in named if files is not None else ():
            there, result = files.read(text)  # type: ignore[union-attr]
            if there:
                found[text] = result
        missing = {t: k for t, k in named.items() if t not in found}
        say = progress if callable(progress) else bar if progress else None
        failed: dict[str, BaseException] = {}
        client = client or (client_now() if processes is None else None)
        run = _by_dask(client) if client is not None else _by_processes(processes) if processes else _here
        for text, result in run(f, missing):
            if isinstance(result, BaseException):
                failed[text] = result
            else:
                found[text] = files.write(text, result) if files is not None else result
            if say is not None:
                say(len(found) + len(failed), len(named))
        if failed:
            raise _error(f, named, failed)
        return Sweep(keys, [found[_text(k)] for k in keys], len(missing))
    except SymcError as e:
        e.attach((), [loc])
        raise


def _error(f: Any, named: Mapping[str, Key], failed: Mapping[str, BaseException]) -> ExecutionError:
    text, first = next(iter(failed.items()))
    more = f" (and {len(failed) - 1} other points)" if len(failed) > 1 else ""
    error = ExecutionError(
        f"dist.sweep: {_name(f)} failed at {named[text]}{more}: {type(first).__name__}: {first}",
        help=f"the other {len(named) - len(failed)} points of {len(named)} are done")
    error.__cause__ = first
    return error


# --- points -----------------------------------------------------------------------------------------------------------


def _points(over: Any) -> list[Key]:
    if isinstance(over, Mapping):
        for name, values in over.items():
            if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
                raise InputError(f"dist.sweep: the values of {name!r} are {values!r:.40}", help="a list of them")
        return [dict(zip(over, p, strict=True)) for p in itertools.product(*map(list, over.values()))]
    points = list(over)
    wrong = [p for p in points if not isinstance(p, Mapping)]
    if wrong:
        raise InputError(f"dist.sweep: a point is a dict, not {wrong[0]!r:.40}", help='[{"rate": 0.1}, ...]')
    return [dict(p) for p in points]


def _text(item: Any) -> str:
    """A point as text: the same for equal numbers of Python and NumPy."""
    return json.dumps(item, sort_keys=True, default=_plain)


def _plain(item: Any) -> Any:
    if isinstance(item, np.generic | np.ndarray) and item.dtype.kind in "biufU" and item.size <= 1000:
        return item.tolist()
    raise InputError(f"dist.sweep: {item!r:.60} in a point is no number, string, bool or list of them",
                     help="give its name or number, and let the function make it")


def _check_names(f: Any, keys: Sequence[Key]) -> None:
    if not callable(f):
        raise InputError(f"dist.sweep takes a function, not {type(f).__name__}")
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return
    for key in keys:
        try:
            signature.bind(**key)
        except TypeError as e:
            name = next((n for n in key if n not in signature.parameters), "")
            raise InputError(f"dist.sweep: {_name(f)} cannot be called at {key}: {e}",
                             help=did_you_mean(name, list(signature.parameters)) if name else None) from None


def _name(f: Any) -> str:
    return str(getattr(f, "name", None) or getattr(f, "__name__", None) or type(f).__name__)


def _program(f: Any) -> str:
    """Digest of what a function computes: of a compiled one its program and states, of others their text."""
    if hasattr(f, "__dask_tokenize__"):
        return str(f.__dask_tokenize__())
    if isinstance(f, functools.partial):
        return f"{_program(f.func)} {f.args!r} {f.keywords!r}"
    inner = f.__wrapped__ if isinstance(f, JitFunction) else f
    try:
        text = textwrap.dedent(inspect.getsource(inner))
    except (OSError, TypeError):
        text = getattr(inner, "__qualname__", type(inner).__qualname__)
    return blake2b(text.encode(), digest_size=16).hexdigest()


# --- files ------------------------------------------------------------------------------------------------------------


class _Store:
    """A folder of results, one file a point."""

    def __init__(self, folder: Any, program: str):
        self.folder, self.program = os.fspath(folder), program
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as e:
            raise InputError(f"dist.sweep: store={self.folder!r} cannot be a folder: {e}") from None

    def path(self, text: str) -> str:
        return os.path.join(self.folder, blake2b(text.encode(), digest_size=12).hexdigest() + ".npz")

    def read(self, text: str) -> tuple[bool, Any]:
        """True and its result for a point that is there; a damaged file is not."""
        path = self.path(text)
        try:
            arrays = read_arrays(path)
            about = json.loads(arrays[ABOUT].tobytes())
            nest = from_json(about["nest"])
            result = unflatten(nest, [arrays[f"{RESULT}{k}"] for k in range(nest.count)])
        except (FileNotFoundError, InputError, KeyError, ValueError, TypeError):
            return False, None
        if about["point"] != text or about["program"] != self.program:
            raise InputError(f"dist.sweep: {path} is of another function, or of an older text of this one",
                             help="another store=, or remove the folder to compute all points anew")
        return True, result

    def write(self, text: str, result: Any) -> Any:
        """Write the result of a point; gives it as reading would."""
        leaves, nest = _arrays(result)
        about = json.dumps({"point": text, "program": self.program, "nest": to_json(nest)}).encode()
        write_arrays(self.path(text), {ABOUT: np.frombuffer(about, np.uint8),
                                       **{f"{RESULT}{k}": a for k, a in enumerate(leaves)}})
        return unflatten(nest, leaves)


def _arrays(result: Any) -> tuple[list[np.ndarray], Any]:
    leaves, nest = flatten(result)
    arrays = [np.asarray(x) for x in leaves]
    wrong = [x for x, a in zip(leaves, arrays, strict=True) if a.dtype.kind not in "biufc"]
    if wrong:
        raise InputError(f"a result is no array of numbers: {type(wrong[0]).__name__} {wrong[0]!r:.40}")
    return arrays, nest


# --- who computes -----------------------------------------------------------------------------------------------------

Results = Iterator[tuple[str, Any]]


def evaluated(f: Callable[..., Any], key: Key) -> Any:
    """The result at a point, as arrays; where it is computed."""
    leaves, nest = _arrays(f(**key))
    return unflatten(nest, leaves)


def _here(f: Any, missing: Mapping[str, Key]) -> Results:
    for text, key in missing.items():
        try:
            yield text, evaluated(f, key)
        except Exception as e:  # the point's own error, which is told at the end
            yield text, e


def _by_dask(client: Any) -> Callable[[Any, Mapping[str, Key]], Results]:
    def run(f: Any, missing: Mapping[str, Key]) -> Results:
        from distributed import KilledWorker

        again: list[str] = []
        texts = {client.submit(evaluated, f, key, pure=False): text for text, key in missing.items()}
        for future in _finished(client, texts):
            text = texts[future]
            try:
                result = future.result(timeout=ARRIVAL)
            except Exception as e:
                result = e
                lost = isinstance(e, TimeoutError) and future.status != "error"  # else it is the point's own
                if lost or isinstance(e, KilledWorker):
                    if len(missing) > 1:  # its worker may have died of another point: it is tried alone
                        again.append(text)
                        continue
                    result = ExecutionError("its result was lost" if lost else "the worker died in every try",
                                            help="it may need more memory than a worker has")
            finally:
                future.release()
            yield text, result
        for text in again:
            yield from run(f, {text: missing[text]})

    return run


def _finished(client: Any, futures: Iterable[Any]) -> Iterator[Any]:
    """Futures as they finish. Raises ExecutionError where no worker is left to compute them."""
    from distributed import as_completed

    with client.as_current():
        found = as_completed(futures)
    last = time.monotonic()
    while not found.is_empty():
        if found.has_ready():
            yield next(found)
            last = time.monotonic()
        elif time.monotonic() < last + ARRIVAL:
            time.sleep(0.005)
        elif client.scheduler_info(n_workers=-1)["workers"]:
            last = time.monotonic()
        else:
            raise ExecutionError(f"dist.sweep: the cluster has had no worker for {ARRIVAL:.0f} s",
                                 help="workers that die while they start are not replaced; a rerun does the rest")


def _by_processes(count: int) -> Callable[[Any, Mapping[str, Key]], Results]:
    def run(f: Any, missing: Mapping[str, Key]) -> Results:
        todo = deque(missing)
        tries = dict.fromkeys(missing, 0)
        env = share(count)
        children = [Child(env) for _ in range(min(count, len(todo)))]
        busy: dict[Any, tuple[Child, str]] = {child.connection: (child, "") for child in children}
        try:
            for connection, (child, _) in list(busy.items()):
                busy[connection] = child, _give(child, f, todo, missing, tries)
            while busy:
                for connection in wait(list(busy)):
                    child, text = busy.pop(connection)
                    try:
                        yield text, child.result()
                    except EOFError:
                        status = child.end()
                        if tries[text] < TRIES:
                            todo.appendleft(text)
                        else:
                            yield text, ExecutionError(f"its process died in {TRIES} tries, the last with {status}")
                        child = Child(env)
                    except Exception as e:  # the point's own error
                        yield text, e
                    if todo:
                        busy[child.connection] = child, _give(child, f, todo, missing, tries)
                    else:
                        child.end()
        finally:
            for child, _ in busy.values():
                child.end(now=True)

    return run


def _give(child: Child, f: Any, todo: deque[str], missing: Mapping[str, Key], tries: dict[str, int]) -> str:
    text = todo.popleft()
    tries[text] += 1
    child.send(evaluated, f, missing[text])
    return text
