"""The training loop: batches, early stopping, checkpoints, and exact resume."""

import json

import numpy as np
import pytest

import symc as sc

DATA = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
TARGET = (DATA @ np.float32([1, -2, 0.5])).astype("float32")


def setup(rate=0.05):
    P, opt = sc.Params(0), sc.optim.adam(rate)
    x, y = sc.input("x", "float32", ("n", 3)), sc.input("y", "float32", ("n",))
    h = sc.nn.dropout(P, sc.nn.dense(P.sub("h"), x, 8, "tanh"), 0.2, True)
    loss = sc.nn.mse(sc.nn.dense(P.sub("o"), h, 1)[:, 0], y)
    u = opt.updates(loss, P)
    return {"model": P, "optimizer": opt}, sc.compile(u.loss, [x, y], updates=u)


def arrays(params):
    return {**{k: s.get_value() for k, s in params["model"].items()},
            **{k: s.get_value() for k, s in params["optimizer"].states.items()}}


def quiet(*args, **more):
    return sc.optim.fit(*args, progress=False, **more)


def test_every_row_is_seen_once_an_epoch_in_another_order():
    seen = []
    quiet(lambda x, k: seen.append(k) or [0.5], (DATA, np.arange(50)), 3, 16)
    assert [len(k) for k in seen] == [13, 13, 12, 12] * 3
    epochs = [np.concatenate(seen[4 * e : 4 * e + 4]) for e in range(3)]
    assert all(np.array_equal(np.sort(e), np.arange(50)) for e in epochs)
    assert len({tuple(e) for e in epochs}) == 3
    again = []
    quiet(lambda x, k: again.append(k) or 0.5, (DATA, np.arange(50)), 3, 16)
    assert all(np.array_equal(a, b) for a, b in zip(seen, again, strict=True))


def test_batches_of_ones_own_and_progress():
    lines = []
    run = sc.optim.fit(lambda k: float(k), lambda epoch, rng: [(epoch,), (epoch + 2,)], 2, progress=lines.append)
    assert run.losses == [1.0, 2.0]
    assert [line.rsplit("  ", 1)[0] for line in lines] == ["epoch 1/2  loss 1", "epoch 2/2  loss 2"]


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_run_that_was_stopped_goes_on_to_the_bit(tmp_path, ending):
    whole, step = setup()
    want = quiet(step, (DATA, TARGET), 6, 16)
    path = tmp_path / f"c.{ending}"
    for epochs in (2, 2, 5, 6):  # asked again for what is done, it does nothing
        params, step = setup()
        got = quiet(step, (DATA, TARGET), epochs, 16, params=params, checkpoint=path)
    assert got.losses == want.losses
    for name, a in arrays(whole).items():
        np.testing.assert_array_equal(arrays(params)[name], a)


def test_the_best_epoch_is_kept_and_patience_ends(tmp_path):
    params, step = setup()
    errors = iter([5.0, 3.0, 4.0, 3.5, 1.0, 2.0, 2.0, 2.0, 2.0])
    snapshots = []

    def validate():
        snapshots.append(arrays(params))
        return next(errors)

    path = tmp_path / "c.npz"
    run = quiet(step, (DATA, TARGET), 7, 16, params=params, validate=validate, checkpoint=path, patience=3)
    assert (run.best, run.epoch, run.stopped) == (1.0, 5, False)
    params, step = setup()  # in another process
    run = quiet(step, (DATA, TARGET), 20, 16, params=params, validate=validate, checkpoint=path, patience=3)
    assert (run.best, run.epoch, run.stopped) == (1.0, 5, True)
    assert run.validation == [5, 3, 4, 3.5, 1, 2, 2, 2] and len(run.losses) == 8
    for name, a in snapshots[4].items():
        np.testing.assert_array_equal(arrays(params)[name], a)
    again = quiet(step, (DATA, TARGET), 30, 16, params=params, validate=validate, checkpoint=path, patience=3)
    assert again.validation == run.validation
    assert json.loads(np.load(path)["fit/run"].tobytes())["stopped"]


def test_mistakes(tmp_path):
    params, step = setup()
    with pytest.raises(sc.InputError, match="need params="):
        quiet(step, (DATA, TARGET), 1, checkpoint=tmp_path / "c.npz")
    with pytest.raises(sc.InputError, match="patience needs validate="):
        quiet(step, (DATA, TARGET), 1, patience=1)
    with pytest.raises(sc.InputError, match=r"arrays of \[49, 50\] rows"):
        quiet(step, (DATA, TARGET[1:]), 1)
    with pytest.raises(sc.InputError, match="has no batches"):
        quiet(step, lambda epoch, rng: [], 1)
    with pytest.raises(FloatingPointError, match="nan at step 1 of epoch 1"):
        quiet(lambda x, y: np.nan, (DATA, TARGET), 1)
    sc.save_params(tmp_path / "p.npz", params)
    with pytest.raises(sc.InputError, match="is no checkpoint"):
        quiet(step, (DATA, TARGET), 1, params=params, checkpoint=tmp_path / "p.npz")
