"""BLAS with one thread while something runs. The pool counts who wants that, and knows the functions of BLAS."""

from __future__ import annotations

from typing import Any

from symc.runtime.cpu.native.pool_ir import Writer
from symc.runtime.cpu.native.pool_words import Pool


class Limit(Writer):
    """Writes ``symc_limit`` and ``symc_unlimit``."""

    def write(self) -> None:
        self.begin("symc_limit", self.i64, [])
        self.write_limit()
        self.begin("symc_unlimit", self.ir.VoidType(), [])
        self.write_unlimit()

    def write_limit(self) -> None:
        """Have BLAS use one thread until ``symc_unlimit``, of which there may be several at a time; 0 where that is not
        to be called, as BLAS has one anyway."""
        b = self.b
        ours, several, first, limit, taken, no, out = map(
            self.block, ("ours", "several", "first", "limit", "taken", "no", "out"))
        b.cbranch(self.equal(self.prepared(), self.const(1)), ours, out)
        b.position_at_end(ours)
        self.lock(Pool.BLAS_LOCK)
        b.cbranch(self.equal(self.load(Pool.USERS), self.const(0)), first, taken)
        b.position_at_end(first)
        get = b.inttoptr(self.load(Pool.GET), self.ir.FunctionType(self.i32, []).as_pointer())
        now = b.zext(b.call(get, []), self.i64)
        b.cbranch(b.icmp_unsigned(">", now, self.const(1)), limit, several)
        b.position_at_end(several)  # a process may have been forked while BLAS was limited
        b.cbranch(self.equal(self.load(Pool.BEFORE), self.const(0)), no, taken)
        b.position_at_end(limit)
        self.store(now, Pool.BEFORE)
        self.set_threads(self.const(1))
        b.branch(taken)
        b.position_at_end(taken)
        self.add(Pool.USERS, 1)
        self.unlock(Pool.BLAS_LOCK)
        b.ret(self.const(1))
        b.position_at_end(no)
        self.unlock(Pool.BLAS_LOCK)
        b.branch(out)
        b.position_at_end(out)
        b.ret(self.const(0))

    def write_unlimit(self) -> None:
        b = self.b
        self.lock(Pool.BLAS_LOCK)
        last = self.equal(self.add(Pool.USERS, -1), self.const(1))
        with b.if_then(last):
            self.set_threads(self.load(Pool.BEFORE))
            self.store(self.const(0), Pool.BEFORE)
        self.unlock(Pool.BLAS_LOCK)
        b.ret_void()

    def set_threads(self, n: Any) -> None:
        """Let BLAS use n threads."""
        kind = self.ir.FunctionType(self.ir.VoidType(), [self.i32]).as_pointer()
        self.b.call(self.b.inttoptr(self.load(Pool.SET), kind), [self.b.trunc(n, self.i32)])
