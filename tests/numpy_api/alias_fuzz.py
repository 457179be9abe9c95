"""Random programs of NumPy that copy, look at and write to arrays: what every name holds in the end."""

import numpy as np

#: Expressions that make an array of one or two names, and statements that write.
MAKES = (
    "{a}.copy()", "np.copy({a})", "np.array({a})", "np.asarray({a})", "{a}", "{a}[{i}]", "{a}[{i}]", "{a}[{i}]",
    "{a}[{i}]", "{a}.T", "{a}.transpose()", "{a}.reshape(-1)", "{a}.reshape({shape})", "{a}.ravel()",
    "{a}.flatten()", "{a}[None]", "np.flip({a}, 0)", "np.squeeze({a})", "np.swapaxes({a}, 0, -1)",
    "np.moveaxis({a}, 0, -1)", "np.expand_dims({a}, 0)", "np.atleast_2d({a})", "{a} + {b}", "{a} * 2", "-{a}",
    "+{a}", "np.maximum({a}, {b})", "np.where({a} > 0, {a}, {b})", "np.zeros({a}.shape)", "np.zeros_like({a})",
    "np.ones(3)", "np.full((2, 2), {s})", "{a}[[0, 1]]", "{a}[..., [1, 0]]", "np.diagonal({a})",
    "np.broadcast_to({a}, (2,) + {a}.shape)", "np.split({a}, [1, 2])[1]", "np.rot90({a})",
    "np.concatenate([{a}, {a}])", "np.ravel({a}, order='F')", "np.einsum('ij->ji', {a})", "np.einsum('ii->i', {a})",
    "{a}.real", "{a}.astype('float64')", "np.sort({a})", "{a}[{a} > 0].sum()", "np.stack([{a}, {a}])",
    "np.roll({a}, 1)", "np.tile({a}, 1)", "np.ascontiguousarray({a})", "{a}.reshape({shape}).T",
    "{a}.T.reshape(-1)", "np.diag({a})", "{a}.sum(axis=0)", "np.broadcast_arrays({a}, {a})[0]",
    "{a}.swapaxes(0, 1)", "np.array_split({a}, 2)[0]", "np.hsplit({a}, [1])[0]", "np.triu({a})", "np.eye(3)",
    "np.tensordot({a}, {b}, 0)", "{a}.clip(-1, 1)",
)  # fmt: skip
WRITES = (
    "{a}[{i}] = {s}", "{a}[{i}] = {s}", "{a}[{i}] = {b}", "{a}[{i}] += {s}", "{a}[{i}] *= {b}",
    "{a}[{i}] -= {a}[{j}]", "{a}[{i}] = {a}[{j}]", "{a} += {s}", "{a} += {b}", "{a} *= {a}", "{a} /= 2",
    "{a}[{a} > 0] *= {s}", "{a}[{a} > {s}] = 0", "{a}[{b} > 0] = {b}[{b} > 0] + 1", "{a}[...] = {b}",
    "np.add({a}, {b}, out={a})", "np.add({a}, 1, out={b})", "np.multiply({a}, 2, out={a}, where={a} > 0)",
    "{a}.sort()", "{a}.sort(0)", "{a}.fill({s})", "np.copyto({a}, {b})", "{a}.flat[1] = {s}", "{a}.T[{i}] = {s}",
    "{a}.reshape(-1)[0] = {s}", "{a}[[0, 1]] = {a}[[1, 0]]", "{a}[[0, 1]] += {s}",
    "{a}[0], {a}[1] = {a}[1].copy(), {a}[0].copy()", "{a}[0], {a}[1] = {a}[1], {a}[0]",
    "np.fill_diagonal({a}, {s})", "np.add.at({a}, [0, 0], {s})", "np.putmask({a}, {a} > 0, {s})",
    "np.put({a}, [0, 2], {s})", "for r in {a}: r += {s}", "for r in {a}.T: r *= {s}", "{a}, {b} = {b}, {a}",
    "{a} = {a} + 1", "np.cumsum({a}, out={a})", "np.clip({a}, -1, 1, out={a})", "np.negative({a}, {a})",
    "{a}[{i}][{j}] = {s}", "{a}[{i}].T[...] = {s}",
)  # fmt: skip
INDICES = ("0", "-1", "1:", ":-1", "::2", "::-1", "1:3", "...", ":", "0, 1", ":, 0", "..., 1", "1:, ::2", "None", "-2:",
           "0, ...", "1, 1:", "::-1, 0", "2:0:-1")  # fmt: skip
SHAPES = ("2, -1", "-1, 2", "4, 3", "3, 4", "12", "-1, 1", "1, -1", "2, 2, -1", "6, 2")


def program(seed: int, length: int = 8) -> str:
    """The text of a function of a matrix and a vector. All statements run in NumPy."""
    r = np.random.default_rng(seed)
    lines, names = ["a = x.copy()", "b = y * 1"], ["a", "b"]
    while len(lines) < length + 2:
        writes = r.random() < 0.5
        new = str(r.choice([*names, *"cdefgh"[: max(0, 6 - len(names))]]))
        text = str(r.choice(WRITES)) if writes else f"{new} = {r.choice(MAKES)}"
        line = text.format(a=r.choice(names), b=r.choice(names), i=r.choice(INDICES), j=r.choice(INDICES),
                           s=round(float(r.normal()), 1), shape=r.choice(SHAPES))
        found = outcome([*lines, line], sorted({*names, new} if not writes else names))
        if found is not None:
            lines.append(line)
            names = sorted({*names, new} if not writes else names)
    return source(lines, names)


def source(lines, names) -> str:
    return "\n".join(["def f(x, y):", *[f"    {line}" for line in lines], f"    return {', '.join(names)},"])


def arguments():
    r = np.random.default_rng(0)
    return r.normal(size=(3, 4)).round(1), r.normal(size=4).round(1)


def outcome(lines, names):
    """What the names hold; None if a statement is an error, or what it makes is too large."""
    try:
        with np.errstate(all="ignore"):
            out = function(source(lines, names))(*arguments())
    except (ValueError, IndexError, TypeError, AttributeError):
        return None
    return out if all(isinstance(o, np.ndarray | np.generic) and o.size <= 100 for o in out) else None


def function(text: str):
    found: dict = {"np": np}
    exec(compile(text, "<program>", "exec"), found)
    return found["f"]
