"""Kernels of the executor: functions in the subset of Python that the kernel compiler takes, compiled natively.

Arrays are flat, numbers and indices 64 bits wide. ``native.Kernel`` takes their text; nobody calls them here.
"""

from __future__ import annotations

from typing import Any

I = Any  # a number, or an array of numbers


def gather(n: I, w: I, near: I, size: I, source_at: I, target_at: I, index: I, source: I, target: I, place: I) -> None:
    """Rows of an arena, one after the other, of ``w`` numbers and ``size`` bytes. ``place`` becomes where they are: if
    they lie so already, and ``near`` is 1, in the arena; else at ``target``, where they are copied."""
    apart = 1 - near
    if n > 0 and near > 0:
        first = index[0]
        for i in range(n):
            if index[i] != first + i:
                apart = 1
        place[0] = source_at + first * size
    if apart > 0:
        place[0] = target_at
        for i in range(n):
            at = index[i] * w
            for k in range(w):
                target[i * w + k] = source[at + k]


def copy_rows(n: I, w: I, source: I, target: I) -> None:
    """Rows that lie together, to another place."""
    for k in range(n * w):
        target[k] = source[k]


def scatter_add(n: I, w: I, index: I, source: I, target: I) -> None:
    """Add rows to those of an arena."""
    for i in range(n):
        at = index[i] * w
        for k in range(w):
            target[at + k] = target[at + k] + source[i * w + k]


def sum_rows(n: I, w: I, index: I, source: I, board: I, rows: I, target: I, found: I) -> None:
    """Add rows to the sum of those of their index, of which ``found`` says how many there are so far. ``board``: for
    every index the place of its sum, or -1."""
    count = found[0]
    for i in range(n):
        r = index[i]
        k = board[r]
        if k < 0:
            board[r] = count
            rows[count] = r
            for j in range(w):
                target[count * w + j] = source[i * w + j]
            count = count + 1
        else:
            for j in range(w):
                target[k * w + j] = target[k * w + j] + source[i * w + j]
    found[0] = count


def clear_board(n: I, rows: I, board: I) -> None:
    """Forget where sums are."""
    for i in range(n):
        board[rows[i]] = -1


def merge(e: I, picked: I, nptr: I, mptr: I, op_in: I, aptr_in: I, args_in: I, apos_in: I, op: I, aptr: I, args: I,
          apos: I) -> None:
    """The graphs of some examples as one. ``nptr`` and ``mptr``: where the nodes and arguments of each begin."""
    n = 0
    m = 0
    aptr[0] = 0
    for k in range(e):
        x = picked[k]
        first = nptr[x]
        count = nptr[x + 1] - first
        arg = mptr[x]
        for i in range(count):
            op[n + i] = op_in[first + i]
            apos[n + i] = apos_in[first + i]
            aptr[n + i + 1] = aptr_in[first + i + 1] - arg + m
        total = mptr[x + 1] - arg
        for j in range(total):
            args[m + j] = args_in[arg + j] - first + n
        n = n + count
        m = m + total


def prepare(n: I, m: I, nb: I, ports: I, op: I, aptr: I, args: I, singles: I, depth: I, uptr: I, users: I, cursor: I,
            counts: I, many: I, sums: I, rank: I, reach: I, ibase: I, mbase: I, abase: I, found: I) -> None:
    """Depths, users of nodes (an argument below 0 is a row that is there already), instances of blocks and where their
    arguments will lie, and an order of blocks in which none comes before one that it is made of (they share a rank
    where each is made of the other: then ``found`` is 1)."""
    for b in range(nb):
        counts[b] = 0
        many[b] = 0
        sums[b] = 0
    for k in range(nb * nb):
        reach[k] = 0
    for i in range(n + 1):
        uptr[i] = 0
    for j in range(m):
        if args[j] >= 0:
            uptr[args[j] + 1] = uptr[args[j] + 1] + 1
    for i in range(n):
        uptr[i + 1] = uptr[i + 1] + uptr[i]
        cursor[i] = uptr[i]
    for i in range(n):
        kind = op[i]
        d = 0
        for j in range(aptr[i], aptr[i + 1]):
            arg = args[j]
            if arg >= 0:
                users[cursor[arg]] = i
                cursor[arg] = cursor[arg] + 1
                reach[op[arg] * nb + kind] = 1
                if depth[arg] >= d:
                    d = depth[arg] + 1
        depth[i] = d
        counts[kind] = counts[kind] + 1
        sums[kind] = sums[kind] + d
        many[kind] = many[kind] + aptr[i + 1] - aptr[i] - singles[kind]
    for k in range(nb):
        for a in range(nb):
            if reach[a * nb + k] > 0:
                for b in range(nb):
                    if reach[k * nb + b] > 0:
                        reach[a * nb + b] = 1
    at = 0
    node = 0
    found[0] = 0
    for b in range(nb):
        above = 1
        for a in range(nb):
            if a != b and reach[a * nb + b] > 0:
                above = above + 1
                if reach[b * nb + a] > 0:
                    found[0] = 1
        rank[b] = above
        abase[b] = node
        node = node + counts[b]
        for p in range(singles[b]):
            ibase[b * ports + p] = at
            at = at + counts[b]
        mbase[b] = at
        at = at + many[b]


def by_depth(n: I, nb: I, op: I, depth: I, counts: I, bucket: I, first: I, order: I, block: I, size: I,
             found: I) -> None:
    """Batches of one depth and block."""
    at = 0
    for b in range(nb):
        bucket[b] = at
        at = at + counts[b]
    for i in range(n):
        first[bucket[op[i]]] = i
        bucket[op[i]] = bucket[op[i]] + 1
    for i in range(n + 1):
        bucket[i] = 0
    for i in range(n):
        bucket[depth[i] + 1] = bucket[depth[i] + 1] + 1
    for i in range(n):
        bucket[i + 1] = bucket[i + 1] + bucket[i]
    for k in range(n):
        x = first[k]
        order[bucket[depth[x]]] = x
        bucket[depth[x]] = bucket[depth[x]] + 1
    made = 0
    was = -1
    level = -1
    for k in range(n):
        y = order[k]
        if op[y] != was or depth[y] != level:
            was = op[y]
            level = depth[y]
            block[made] = was
            size[made] = 0
            made = made + 1
        size[made - 1] = size[made - 1] + 1
    found[0] = made


def by_agenda(n: I, nb: I, strata: I, op: I, aptr: I, args: I, uptr: I, users: I, counts: I, sums: I, rank: I,
              waiting: I, after: I, head: I, tail: I, ready: I, order: I, block: I, size: I, found: I) -> None:
    """Batches of what is ready, of one block at a time: that of least average depth; with ``strata`` of least rank
    first."""
    for b in range(nb):
        ready[b] = 0
        head[b] = -1
        tail[b] = -1
    for i in range(n):
        wait = 0
        for j in range(aptr[i], aptr[i + 1]):
            if args[j] >= 0:
                wait = wait + 1
        waiting[i] = wait
        if wait == 0:
            kind = op[i]
            after[i] = -1
            if ready[kind] == 0:
                head[kind] = i
            else:
                after[tail[kind]] = i
            tail[kind] = i
            ready[kind] = ready[kind] + 1
    done = 0
    made = 0
    while done < n:
        best = -1
        for b in range(nb):
            if ready[b] > 0:
                better = 0
                if best < 0:
                    better = 1
                else:
                    if strata > 0 and rank[b] != rank[best]:
                        if rank[b] < rank[best]:
                            better = 1
                    else:
                        if sums[b] * counts[best] < sums[best] * counts[b]:
                            better = 1
                if better > 0:
                    best = b
        node = head[best]
        block[made] = best
        size[made] = ready[best]
        made = made + 1
        ready[best] = 0
        while node >= 0:
            order[done] = node
            done = done + 1
            for j in range(uptr[node], uptr[node + 1]):
                u = users[j]
                waiting[u] = waiting[u] - 1
                if waiting[u] == 0:
                    of = op[u]
                    if ready[of] == 0:
                        head[of] = u
                    else:
                        after[tail[of]] = u
                    after[u] = -1
                    tail[of] = u
                    ready[of] = ready[of] + 1
            node = after[node]
    found[0] = made


def rows(nb: I, batches: I, ports: I, words: I, aptr: I, args: I, apos: I, type_of: I, singles: I,
         order: I, block: I, size: I, ibase: I, mbase: I, abase: I, trow: I, place: I, element: I, row: I, records: I,
         index: I, local: I, whole: I, attr_at: I, row_at: I, node_at: I) -> None:
    """Records of batches; the row of each node; and for each block, instances in the order in which they run, the rows
    of arguments, the instance that each ragged argument belongs to (in its batch, and of all), and places of attrs."""
    for b in range(nb):
        place[b] = 0
        element[b] = 0
    done = 0
    for s in range(batches):
        kind = block[s]
        of = type_of[kind]
        at = s * words
        records[at] = kind
        records[at + 1] = size[s]
        records[at + 2] = trow[of]
        records[at + 3] = place[kind]
        records[at + 4] = element[kind]
        top = trow[of]
        behind = place[kind]
        before = abase[kind] + behind
        single = singles[kind]
        port = kind * ports
        e = element[kind]
        many = mbase[kind]
        for k in range(size[s]):
            i = order[done + k]
            row[i] = top + k
            attr_at[before + k] = apos[i]
            row_at[before + k] = top + k
            node_at[before + k] = i
            first = aptr[i]
            for j in range(single):
                arg = args[first + j]
                index[ibase[port + j] + behind + k] = row[arg] if arg >= 0 else -1 - arg
            for j in range(first + single, aptr[i + 1]):
                other = args[j]
                index[many + e] = row[other] if other >= 0 else -1 - other
                local[many + e] = k
                whole[many + e] = behind + k
                e = e + 1
        element[kind] = e
        records[at + 5] = element[kind] - records[at + 4]
        records[at + 6] = 0
        trow[of] = trow[of] + size[s]
        place[kind] = place[kind] + size[s]
        done = done + size[s]
