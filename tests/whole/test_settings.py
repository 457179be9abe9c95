"""``sc.config``: what counts, what is refused, and that one table states every setting."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import symc as sc
from symc import settings

ROOT = Path(__file__).resolve().parents[2]


def test_what_says_most_closely_counts(monkeypatch):
    assert sc.config.mode == "default"
    monkeypatch.setenv("SYMC_FLAGS", "mode=debug; threads=3")
    assert (sc.config.mode, sc.config.threads) == ("debug", 3 if "SYMC_NUM_THREADS" not in __import__("os").environ
                                                   else sc.config.threads)
    monkeypatch.setenv("SYMC_MODE", "fast_compile")
    assert sc.config.mode == "fast_compile"
    sc.config.mode = "reference"
    try:
        assert sc.config.mode == "reference"
        with sc.config(mode="debug", full_traceback=True):
            assert (sc.config.mode, sc.config.full_traceback) == ("debug", True)
            with sc.config(mode="default"):
                assert (sc.config.mode, sc.config.full_traceback) == ("default", True)
            others = []
            t = threading.Thread(target=lambda: others.append(sc.config.mode))
            t.start()
            t.join()
            assert others == ["reference"]
        assert (sc.config.mode, sc.config.full_traceback) == ("reference", False)
    finally:
        del sc.config.mode
    assert sc.config.mode == "fast_compile" and "mode = 'fast_compile'" in repr(sc.config)


def test_functions_are_compiled_by_settings():
    x = sc.vector("x")
    with sc.config(mode="reference"):
        f = sc.compile(x * 2, [x])
    with sc.config(pipeline="canonicalize,fuse"):
        g = sc.compile(x * 2, [x])
    assert "mode 'reference'" in repr(f) and list(g.stages) == ["input", "canonicalize", "fuse"]
    np.testing.assert_array_equal(f([1.0]), [2.0])


def test_a_setting_decorates_and_comes_back_after_errors():
    @sc.config(mode="debug")
    def f():
        return sc.config.mode

    assert f() == "debug" and f() == "debug" and sc.config.mode == "default"
    with pytest.raises(ZeroDivisionError), sc.config(mode="debug"):
        _ = 1 / 0
    assert sc.config.mode == "default"


@pytest.mark.parametrize("ask", [lambda: sc.config.thread, lambda: setattr(sc.config, "thread", 3),
                                 lambda: sc.config(thread=3), lambda: delattr(sc.config, "thread")])
def test_unknown_names_suggest(ask):
    with pytest.raises(AttributeError, match="no setting 'thread'\n  help: did you mean 'threads'") as found:
        ask()
    assert isinstance(found.value, sc.InputError) and not hasattr(sc.config, "thread")


@pytest.mark.parametrize(("name", "bad"), [("threads", 0), ("threads", "many"), ("threads", True), ("blas", "mkl"),
                                           ("shadow", "maybe"), ("mode", 3), ("cache_dir", 4), ("cuda", "gpu")])
def test_wrong_values_say_what_is_taken(name, bad, monkeypatch):
    with pytest.raises(sc.InputError, match=f"{name}.*{bad!r} is no "):
        setattr(sc.config, name, bad)
    with pytest.raises(sc.InputError, match=f"{settings.SETTINGS[name].takes}"):
        sc.config(**{name: bad})
    if isinstance(bad, str):
        monkeypatch.setenv(settings.variable(name), bad)
        with pytest.raises(sc.InputError, match=f"{settings.variable(name)}: '{bad}' is no "):
            getattr(sc.config, name)


def test_programs_of_other_settings_have_other_keys():
    before = settings.for_programs()
    with sc.config(blas="scipy"):
        assert settings.for_programs() != before
    with sc.config(full_traceback=True):
        assert settings.for_programs() == before


def test_one_file_states_them_all():
    assert settings.page() in (ROOT / "docs" / "config.md").read_text("utf-8")
    named = {settings.variable(n) for n in settings.SETTINGS} | {settings.FLAGS}
    for path in (ROOT / "symc").rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name != "settings.py":
            assert not re.search(r"environ(\[|\.get\()\"SYMC_", text), path
        read = set(re.findall(r"\$?\bSYMC_[A-Z_]+\b(?==)", text)) & {f"SYMC_{n.upper()}" for n in settings.SETTINGS}
        assert read <= named, path
    assert set(dir(sc.config)) == set(settings.SETTINGS)
