"""The peers on a GPU: each puts arrays there, builds a function of a case, and times calls by events of its device.

A call is what is cheapest for who knows that its arguments stay where they are: a graph that was captured by hand
(PyTorch), or that symc captures by itself, a compiled function (JAX), or plain operations (CuPy, eager PyTorch).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.cuda.cases import Case, mlp, transformer
from benchmarks.workload import Run

Function = Callable[..., Any]


def numpy_words() -> Any:
    """The vocabulary of formulas, for the reference."""
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def add_at(x: Any, i: Any, v: Any) -> Any:
        out = x.copy()
        np.add.at(out, i, v)
        return out

    return SimpleNamespace(
        sqrt=np.sqrt, abs=np.abs, maximum=np.maximum, matmul=np.matmul, softmax=softmax, add_at=add_at,
        mean=lambda x: x.mean(-1, keepdims=True), sum=np.sum, turned=np.transpose, take=lambda x, i: x[i],
        linalg=np.linalg)


class Peer:
    """Base of all peers. ``steps``: builders of whole steps, by name."""

    name = ""
    modules: tuple[str, ...] = ()
    steps: dict[str, Callable[[Case, Sequence[Any]], Function]]

    def put(self, array: np.ndarray) -> Any:
        raise NotImplementedError

    def get(self, x: Any) -> np.ndarray:
        raise NotImplementedError

    def build(self, case: Case, arrays: Sequence[Any]) -> Function:
        raise NotImplementedError

    def fixed(self, function: Function, arrays: Sequence[Any]) -> Callable[[], Any]:
        """A call with arguments that stay where they are."""
        return lambda: function(*arrays)

    def wait(self) -> None:
        raise NotImplementedError

    def seconds(self, work: Callable[[], None]) -> float:
        """Seconds that the device takes for what ``work`` gives it."""
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - start


class Symc(Peer):
    name, modules = "symc", ("symc",)

    def __init__(self) -> None:
        import symc as sc
        from symc.runtime.cuda.devices import context

        self.sc, self.context = sc, context("cuda")
        self.device = self.context.device
        self.steps = {"training": self.training, "block": self.block}

    def words(self) -> Any:
        sc = self.sc
        return SimpleNamespace(
            sqrt=sc.sqrt, abs=sc.abs, maximum=sc.maximum, matmul=sc.matmul, softmax=lambda x: sc.softmax(x, axis=1),
            add_at=lambda x, i, v: x.at[i].add(v), mean=lambda x: sc.mean(x, axis=-1, keepdims=True),
            sum=lambda x, axis: sc.sum(x, axis=axis), turned=lambda x: x.T, take=lambda x, i: x[i],
            linalg=np.linalg)

    def put(self, array: np.ndarray) -> Any:
        return self.sc.device_array(array)

    def get(self, x: Any) -> np.ndarray:
        return x.numpy()

    def inputs(self, arrays: Sequence[Any]) -> list[Any]:
        return [self.sc.input(f"x{k}", a.dtype, a.shape) for k, a in enumerate(arrays)]

    def build(self, case: Case, arrays: Sequence[Any]) -> Function:
        assert case.formula is not None
        given = self.inputs(arrays)
        values = given[:-1] if case.backward else given
        result = case.formula(self.words(), *values)
        outputs = self.sc.grad(self.sc.sum(result * given[-1]), values) if case.backward else result
        return self.sc.compile(outputs, given, device="cuda", precision=case.precision)

    def training(self, case: Case, arrays: Sequence[Any]) -> Function:
        sc = self.sc
        x, labels = self.inputs(arrays[:2])
        shared = [sc.shared(a.numpy(), f"p{k}") for k, a in enumerate(arrays[2:])]
        hidden = x
        for weight, bias in mlp.layers(shared)[:-1]:
            hidden = sc.maximum(hidden @ weight + bias, 0)
        logits = sc.log_softmax(hidden @ shared[-2] + shared[-1], axis=1)
        loss = -sc.mean(sc.take_along_axis(logits, labels[:, None], axis=1))
        updates = {p: p - mlp.RATE * g for p, g in zip(shared, sc.grad(loss, shared), strict=True)}
        step = sc.compile(loss, [x, labels], updates=updates, device="cuda", precision=case.precision)
        return lambda *given: step(*given[:2])

    def block(self, case: Case, arrays: Sequence[Any]) -> Function:
        sc = self.sc
        m = SimpleNamespace(exp=sc.exp, tanh=sc.tanh, sqrt=sc.sqrt, transpose=sc.transpose,
                            top=lambda s: sc.max(s, axis=-1, keepdims=True))
        given = self.inputs(arrays)
        value = transformer.loss(m, arrays[0].shape[2], given[0], given[1], given[2:])
        return sc.compile([value, *sc.grad(value, given[2:])], given, device="cuda", precision=case.precision)

    def wait(self) -> None:
        self.context.synchronize()

    def seconds(self, work: Callable[[], None]) -> float:
        start, end = self.device.event(), self.device.event()
        self.device.record(start, self.context.stream)
        work()
        self.device.record(end, self.context.stream)
        self.wait()
        return self.device.elapsed(start, end) / 1e3


class Torch(Peer):
    """Eager PyTorch, on ``where``."""

    name, modules, compiles = "torch", ("torch",), False

    def __init__(self, where: str = "cuda") -> None:
        import torch

        self.torch, self.where = torch, where
        self.steps = {"training": self.training, "block": self.block}

    def words(self) -> Any:
        t = self.torch
        return SimpleNamespace(
            sqrt=t.sqrt, abs=t.abs, matmul=t.matmul, softmax=lambda x: t.softmax(x, 1),
            maximum=t.maximum, add_at=lambda x, i, v: x.index_add(0, i, v), mean=lambda x: x.mean(-1, keepdim=True),
            sum=lambda x, axis: x.sum() if axis is None else x.sum(axis), turned=lambda x: x.t().contiguous(),
            take=lambda x, i: x[i], linalg=t.linalg)

    def put(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.where)

    def get(self, x: Any) -> np.ndarray:
        return x.detach().cpu().numpy()

    def precision(self, case: Case) -> None:
        names = {"highest": "highest", "tf32": "high", "bf16": "medium"}
        self.torch.set_float32_matmul_precision(names[case.precision])

    def build(self, case: Case, arrays: Sequence[Any]) -> Function:
        self.precision(case)
        words, formula = self.words(), case.formula
        assert formula is not None

        def forward(*given: Any) -> Any:
            return formula(words, *given)

        called = self.torch.compile(forward, dynamic=False) if self.compiles else forward
        if not case.backward:
            return called

        def gradients(*given: Any) -> Any:
            leaves = [g.detach().requires_grad_(True) for g in given[:-1]]
            return self.torch.autograd.grad(called(*leaves), leaves, given[-1])

        return gradients

    def training(self, case: Case, arrays: Sequence[Any]) -> Function:
        self.precision(case)
        return self._step(mlp.torch_builder(self._run(case), *arrays), 2)

    def block(self, case: Case, arrays: Sequence[Any]) -> Function:
        self.precision(case)
        return self._step(transformer.torch_builder(self._run(case), *arrays), 2)

    def _run(self, case: Case) -> Any:
        return Run(SimpleNamespace(), "torch.compile" if self.compiles else "torch", 1)  # type: ignore[type-var]

    @staticmethod
    def _step(built: Any, count: int) -> Function:
        return lambda *given: built.function(*given[:count])

    def wait(self) -> None:
        if self.where == "cuda":
            self.torch.cuda.synchronize()

    def seconds(self, work: Callable[[], None]) -> float:
        if self.where != "cuda":
            return super().seconds(work)
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3


class TorchCompile(Torch):
    name, compiles = "torch.compile", True

    def fixed(self, function: Function, arrays: Sequence[Any]) -> Callable[[], Any]:
        if self.where != "cuda":
            return super().fixed(function, arrays)
        cuda, side = self.torch.cuda, self.torch.cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(3):
                function(*arrays)
        cuda.current_stream().wait_stream(side)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            kept = function(*arrays)

        def replay() -> Any:
            graph.replay()
            return kept

        return replay


class Jax(Peer):
    name, modules = "jax", ("jax", "jaxlib")

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.jax, self.jnp, self.last = jax, jnp, None
        self.steps = {"training": self.training, "block": self.block}

    def words(self) -> Any:
        jnp, jax = self.jnp, self.jax
        return SimpleNamespace(
            sqrt=jnp.sqrt, abs=jnp.abs, maximum=jnp.maximum, matmul=jnp.matmul, softmax=lambda x: jax.nn.softmax(x, 1),
            add_at=lambda x, i, v: x.at[i].add(v), mean=lambda x: x.mean(-1, keepdims=True), sum=jnp.sum,
            turned=jnp.transpose, take=lambda x, i: x[i], linalg=jnp.linalg)

    def put(self, array: np.ndarray) -> Any:
        return self.jnp.asarray(array)

    def get(self, x: Any) -> np.ndarray:
        return np.asarray(x)

    def kept(self, case: Case, function: Function) -> Function:
        """With the precision of the case while it is traced, and the last result, for who waits for it."""
        precision = {"highest": "highest", "tf32": "tensorfloat32", "bf16": "bfloat16"}[case.precision]

        def call(*given: Any) -> Any:
            with self.jax.default_matmul_precision(precision):
                self.last = function(*given)
            return self.last

        return call

    def build(self, case: Case, arrays: Sequence[Any]) -> Function:
        words, formula = self.words(), case.formula
        assert formula is not None

        def forward(*given: Any) -> Any:
            return formula(words, *given)

        def gradients(*given: Any) -> Any:
            return self.jax.vjp(forward, *given[:-1])[1](given[-1])

        return self.kept(case, self.jax.jit(gradients if case.backward else forward))

    def training(self, case: Case, arrays: Sequence[Any]) -> Function:
        step = self.kept(case, mlp.jax_builder(None, *arrays).function)  # type: ignore[arg-type]
        return lambda *given: step(*given[:2])

    def block(self, case: Case, arrays: Sequence[Any]) -> Function:
        run = Run(SimpleNamespace(width=arrays[0].shape[2]), "jax", 1)  # type: ignore[type-var]
        return self.kept(case, transformer.jax_builder(run, *arrays))

    def wait(self) -> None:
        if self.last is not None:
            self.jax.block_until_ready(self.last)


class Cupy(Peer):
    name, modules = "cupy", ("cupy",)
    steps: dict = {}

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy

    def words(self) -> Any:
        cp = self.cupy

        def softmax(x: Any) -> Any:
            e = cp.exp(x - x.max(1, keepdims=True))
            return e / e.sum(1, keepdims=True)

        def add_at(x: Any, i: Any, v: Any) -> Any:
            out = x.copy()
            cp.add.at(out, i, v)
            return out

        return SimpleNamespace(
            sqrt=cp.sqrt, abs=cp.abs, maximum=cp.maximum, matmul=cp.matmul, softmax=softmax, add_at=add_at,
            mean=lambda x: x.mean(-1, keepdims=True), sum=cp.sum, turned=lambda x: cp.ascontiguousarray(x.T),
            take=lambda x, i: x[i], linalg=cp.linalg)

    def put(self, array: np.ndarray) -> Any:
        return self.cupy.asarray(array)

    def get(self, x: Any) -> np.ndarray:
        return self.cupy.asnumpy(x)

    def build(self, case: Case, arrays: Sequence[Any]) -> Function:
        words, formula = self.words(), case.formula
        assert formula is not None
        return lambda *given: formula(words, *given)

    def wait(self) -> None:
        self.cupy.cuda.runtime.deviceSynchronize()

    def seconds(self, work: Callable[[], None]) -> float:
        start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, end) / 1e3


PEERS: dict[str, Callable[[], Peer]] = {p.name: p for p in (Symc, TorchCompile, Torch, Jax, Cupy)}
