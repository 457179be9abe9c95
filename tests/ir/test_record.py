"""Classes of named fields are what ``dataclasses`` makes of them; methods are compiled when they are used."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from symc.ir import record

OPTIONS: list[dict[str, Any]] = [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False}]


def pair(decorate: Any, field: Any, **options: Any) -> Any:
    @decorate(**options)
    class Base:
        KIND: ClassVar[str] = "base"
        first: int
        second: Any = 2

    @decorate(**options)
    class Record(Base):
        second: Any = 3
        third: list = field(default_factory=list)

        def __post_init__(self) -> None:
            self.__dict__["seen"] = self.first

    return Base, Record


@pytest.mark.parametrize("few", [0, 1, record.FEW])
@pytest.mark.parametrize("options", OPTIONS)
def test_as_dataclasses(options: dict[str, Any], few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "FEW", few)
    answers = []
    for module, field in ((dataclasses, dataclasses.field), (record, record.field)):
        base, made = pair(module.dataclass, field, **options)
        a, b, c = made(1), made(1, third=[]), made(1, 4)
        hashable = made.__hash__ is not None
        answers.append([
            repr(a), repr(base(5)), a == b, a == c, a == base(1), a != 1, a.third is b.third, a.__dict__["seen"],
            hashable, hashable and made(1, 2, ()) == made(1, 2, ()) and options.get("eq", True)
            and hash(made(1, 2, ())) == hash(made(1, 2, ())), made.second, hasattr(made, "third"), made.__match_args__,
            [f.name for f in dataclasses.fields(made)], repr(dataclasses.replace(c, first=7)),
            repr(module.replace(c, second=8)),
        ])
        with pytest.raises(TypeError):
            made()
        for given, named in (((1,), {"fourth": 2}), ((1,), {"first": 2}), ((1, 2, [], 4), {})):
            with pytest.raises(TypeError):
                made(*given, **named)
        if options.get("frozen"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                a.first = 3
            with pytest.raises(dataclasses.FrozenInstanceError):
                del a.first
    assert answers[0] == answers[1]


@record.dataclass(frozen=True)
class Plain:
    x: int
    y: str = "y"

    def __hash__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return "plain"


def test_own_methods_stay_and_objects_travel() -> None:
    there = pickle.loads(pickle.dumps(Plain(1)))
    assert there == Plain(1) and hash(there) == 5 and repr(there) == "plain"


def test_nothing_is_compiled_for_a_class_of_few_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = record._init
    monkeypatch.setattr(record, "_init", lambda cls, *rest: compiled.append(cls.__name__) or real(cls, *rest))
    _base, made = pair(record.dataclass, record.field)
    few = [made(1) for _ in range(record.FEW)]
    assert compiled == []
    more = [made(1) for _ in range(record.FEW)]
    assert compiled == ["Record"] and few == more
