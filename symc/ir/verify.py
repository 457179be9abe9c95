"""The verifier: what must hold for a Function, whatever pass made it."""

from __future__ import annotations

from symc.errors import InternalError, SymcError
from symc.ir.function import Function
from symc.ir.traverse import postorder
from symc.ir.types import TensorType, TupleType
from symc.ir.value import Region, Value


def verify(f: Function) -> None:
    """Raise InternalError, with the function's text, if ``f`` is not valid IR.

    Types are inferred again; regions are closed over their own params; interface and body agree; tuples are used only
    through ``get``; updates match the state they replace.
    """
    try:
        _verify_region(f.body)
        if tuple(i.type for i in f.inputs) != f.body.params:
            raise InternalError(f"@{f.name}: the inputs' types are not those of the body's params")
        if len(set(f.updates)) != len(f.updates):
            raise InternalError(f"@{f.name}: a state is updated twice")
        for k, v in zip(f.updates, f.update_values, strict=True):
            if v.type is not f.inputs[k].type:
                raise InternalError(
                    f"@{f.name}: the update of {f.inputs[k].name} has type {v.type}, not {f.inputs[k].type}"
                )
    except InternalError as e:
        e.text = e.text or _text(f)
        raise


def _text(f: Function) -> str:
    from symc.ir.text import print_function

    try:
        return print_function(f)
    except (ValueError, SymcError) as e:
        return f"(no text: {e})"


def _verify_region(region: Region) -> None:
    pending = [region]
    while pending:
        r = pending.pop()
        for v in postorder(r.results):
            _verify_value(v, r)
            pending.extend(v.regions)
        if any(isinstance(v.type, TupleType) for v in r.results):
            raise InternalError("a tuple is yielded whole; yield its results")


def _verify_value(v: Value, region: Region) -> None:
    if v.op.name == "param":
        index = v.attrs["index"]
        if not (0 <= index < len(region.params) and region.params[index] is v.type):
            raise InternalError(f"param {index} : {v.type} does not belong to this region {region.params}")
        return
    if v.op.name == "input":
        raise InternalError("a region reaches a free leaf")
    if v.op.name != "get" and any(not isinstance(o.type, TensorType) for o in v.operands):
        raise InternalError(f"{v.op.name} takes a tuple whole; take its results")
    try:
        again = v.op.infer(*[o.type for o in v.operands], **v.attrs, **({"regions": v.regions} if v.regions else {}))
    except SymcError as e:
        raise InternalError(f"{v.op.name} does not accept its operands any more: {e.what}") from e
    if again is not v.type:
        raise InternalError(f"{v.op.name} is typed {v.type}, but infers {again}")
