"""The array API standard, as ``array_api_strict`` (the reference implementation of its authors) states it."""

import inspect
from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import symc as sc

OWN = {"Device", "ArrayAPIStrictFlags", "set_array_api_strict_flags", "get_array_api_strict_flags",
       "reset_array_api_strict_flags"}  # fmt: skip
SPACES = {"": (strict, sc), "linalg": (strict.linalg, sc.linalg), "fft": (strict.fft, sc.fft)}
NAMES = [(space, name) for space, (theirs, _) in SPACES.items() for name in theirs.__all__ if name not in OWN]


def found(space: str, name: str) -> tuple[Any, Any]:
    theirs, ours = SPACES[space]
    return getattr(theirs, name), getattr(ours, name)


@pytest.mark.parametrize(("space", "name"), NAMES)
def test_names_and_arguments(space: str, name: str) -> None:
    wanted, ours = found(space, name)
    if not inspect.isfunction(wanted):
        return
    params, own = inspect.signature(wanted).parameters.values(), inspect.signature(ours)
    by_place = [p for p in params if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [p.name for p in params if p.kind is not p.POSITIONAL_ONLY and p.default is not p.empty]
    own.bind(*by_place)
    own.bind(*[p for p in by_place if p.default is p.empty], **dict.fromkeys(by_name))


def test_methods_and_properties() -> None:
    strict_array, ours = strict.asarray([1.0]), sc.matrix("x")
    names = [n for n in dir(strict_array) if not n.startswith("_") or n.startswith("__") and n not in dir(object)]
    private = {"__weakref__", "__dict__", "__module__", "__slots__", "__buffer__", "__annotations__"}
    assert [n for n in names if n not in private and not hasattr(ours, n)] == []


def unary(name: str) -> bool:
    wanted = getattr(strict, name, None)
    if not inspect.isfunction(wanted):
        return False
    params = list(inspect.signature(wanted).parameters.values())
    return bool(params) and params[0].name == "x" and all(p.default is not p.empty for p in params[1:])


DTYPES = ["bool", "int8", "uint8", "int32", "uint64", "int64", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", [name for space, name in NAMES if not space and unary(name)])
def test_results_of_functions_of_one_array(name: str) -> None:
    """Values, shapes and dtypes; what the standard refuses may have a meaning in NumPy."""
    call: Callable[[Any], Any] = getattr(strict, name)
    for dtype in DTYPES:
        a = np.asarray([[1, 0, 1], [0, 1, 1]] if dtype == "bool" else [[1, 3, 2], [2, 1, 4]], dtype)
        try:
            with np.errstate(all="ignore"):
                wanted = call(strict.asarray(a))
        except (TypeError, ValueError):
            continue
        got = getattr(sc, name)(sc.asarray(a))
        for g, w in zip(*[x if isinstance(x, tuple | list) else [x] for x in (got, wanted)], strict=True):
            g, w = np.asarray(g), np.asarray(w)
            assert g.shape == w.shape and g.dtype == w.dtype, dtype
            if name != "empty_like":  # whose values mean nothing
                np.testing.assert_allclose(g, w, rtol=1e-5)


def test_what_a_namespace_says() -> None:
    xp = sc.vector("x").__array_namespace__()
    info, wanted = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert {**wanted.capabilities(), **info.capabilities()} == info.capabilities()
    assert sorted(info.dtypes()) == sorted(wanted.dtypes())
    for kind in ("bool", "signed integer", "integral", "real floating", "complex floating", "numeric"):
        assert sorted(info.dtypes(kind=kind)) == sorted(wanted.dtypes(kind=kind)), kind
    assert sorted(info.default_dtypes()) == sorted(wanted.default_dtypes())
    assert info.devices() == [info.default_device()]
