#!/usr/bin/env python3
"""make_control_flow_cases.py - random programs with control flow, as Paddle runs them.

    python make_control_flow_cases.py --out control_flow && ./pack.sh control_flow
    python make_control_flow_cases.py --out DIR --count 1000 --seed 7
    tools/compare_cases.py DIR/* --tolerance 2e-4

Same needs and same format as make_goldens.py (its op cases, with programs of several blocks);
control_flow.tar.xz beside this file is the result of the first line. Each program is written as a case for each of
its feeds: DIR/OP/pNNNN_fK, where OP is the op the program is about.

A program is drawn from statements nested up to three deep: element-wise ops, products, while_loop, While
blocks that assign to variables outside, cond, case, switch_case, tensor arrays, in-place counters. Trip counts,
branches and indices depend on what is fed; loops may run zero times. Every sixth program is one of a family written
out below: recurrent, loops over the steps of sequences, decoding with beams, rows split by a mask.
Each program is built and run in a process of its own, so that one that Paddle cannot stand costs nothing else.
"""
from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

import argparse
import os
import signal
import sys

import make_goldens as g
import numpy as np
import paddle
from make_goldens import LoD, Rng
from paddle.base import core

static, nn = paddle.static, paddle.static.nn
While, ConditionalBlock = nn.control_flow.While, nn.control_flow.ConditionalBlock
VarType = core.VarDesc.VarType

RTOL, ATOL = 2e-4, 2e-5
FEEDS_PER_PROGRAM = 2
MOST_DEPTH = 3
SECONDS_PER_PROGRAM = 60


def number(value, dtype="int64"):
    return paddle.full([1], value, dtype)


# ----------------------------------------------------------------------------
# Random programs
# ----------------------------------------------------------------------------
class Names:
    """The variables that a statement may use, by kind; those of a block are gone behind it."""

    def __init__(self, floats, ints, bools, arrays):
        self.floats, self.ints, self.bools, self.arrays = list(floats), list(ints), list(bools), list(arrays)

    def inner(self):
        return Names(self.floats, self.ints, self.bools, self.arrays)


class RandomProgram:
    """Writes random statements into the current program. All floats have the shape [rows, width], all integers and
    bools [1]; values stay small, so that no loop makes rounding errors large."""

    def __init__(self, r, width, weights, allow_feeds_written):
        self.r, self.width, self.weights = r, width, weights
        self.allow_feeds_written = allow_feeds_written
        self.statements_left = r.n(14, 30)

    # Values
    def float_var(self, v):
        return self.r.pick(*v.floats)

    def int_var(self, v):
        return self.r.pick(*v.ints)

    def new_float(self, v):
        r, x, y = self.r, self.float_var(v), self.float_var(v)
        kind = r.n(0, 19)
        if kind == 0:
            return paddle.tanh(x + y)
        if kind == 1:
            return paddle.tanh(x * y)
        if kind == 2:
            return paddle.clip(x - y, -2.5, 2.5)
        if kind == 3:
            return paddle.nn.functional.sigmoid(x)
        if kind == 4:
            return paddle.nn.functional.relu(x)
        if kind == 5:
            return paddle.scale(x, r.scalar(-0.9, 0.9), r.scalar(-0.5, 0.5))
        if kind == 6:
            return paddle.tanh(paddle.matmul(x, r.pick(*self.weights), transpose_y=bool(r.n(0, 1))))
        if kind == 7:
            return paddle.maximum(x, y)
        if kind == 8:
            return paddle.minimum(x, paddle.abs(y))
        if kind == 9:
            return paddle.tanh(x * paddle.cast(self.int_var(v), "float32"))
        if kind == 10:
            return paddle.nn.functional.softmax(x)
        if kind == 11:
            return x - paddle.mean(y, axis=-1, keepdim=True)
        if kind == 12:
            return paddle.where(x > r.scalar(-0.5, 0.5), y, x * 0.5)
        if kind == 13:
            return paddle.concat([x[:, :1], y[:, 1:]], axis=1)
        if kind == 14 and v.bools:
            return x * paddle.cast(r.pick(*v.bools), "float32")
        if kind == 15:
            return paddle.tanh(paddle.matmul(paddle.matmul(x, y, transpose_y=True), x))
        if kind == 16:
            column = self.int_var(v) % self.width
            return x * paddle.slice(y, axes=[1], starts=[column], ends=[column + 1])
        if kind == 17:
            column = self.int_var(v) % self.width
            return static.setitem(paddle.assign(x), (slice(None), slice(column, column + 1)), y[:, :1])
        if kind == 18:
            return static.setitem(paddle.assign(x), (slice(None), r.n(0, 1)), r.scalar(-1, 1))
        return paddle.assign(x)

    def new_int(self, v):
        r, i, j = self.r, self.int_var(v), self.int_var(v)
        kind = r.n(0, 6)
        if kind == 0:
            return (i + j) % r.n(2, 9)
        if kind == 1:
            return (i * r.n(2, 5) + r.n(0, 3)) % r.n(3, 7)
        if kind == 2:
            return paddle.maximum(i, j) - paddle.minimum(i, j)
        if kind == 3:
            return i // r.n(2, 3)
        if kind == 4 and v.bools:
            return paddle.cast(r.pick(*v.bools), "int64") + i % 3
        if kind == 5 and v.arrays:
            return paddle.tensor.array_length(r.pick(*v.arrays)) % 8
        return paddle.assign(i)

    def new_bool(self, v):
        r, i, j = self.r, self.int_var(v), self.int_var(v)
        kind = r.n(0, 6)
        if kind == 0:
            return i < j
        if kind == 6:
            return paddle.is_empty(self.float_var(v)).reshape([1])
        if kind == 1:
            return paddle.equal(i % 2, number(r.n(0, 1)))
        if kind == 2:
            return paddle.mean(self.float_var(v), keepdim=False).reshape([1]) > r.scalar(-0.3, 0.3)
        if kind == 3 and v.bools:
            return paddle.logical_not(r.pick(*v.bools))
        if kind == 4 and len(v.bools) > 1:
            return r.pick(paddle.logical_and, paddle.logical_or, paddle.logical_xor)(r.pick(*v.bools), r.pick(*v.bools))
        return i >= r.n(1, 3)

    def value(self, v):
        kind = self.r.n(0, 9)
        if kind < 6:
            v.floats.append(self.new_float(v))
        elif kind < 8:
            v.ints.append(self.new_int(v))
        else:
            v.bools.append(self.new_bool(v))

    # Statements
    def statements(self, v, depth, most):
        """Up to `most` statements, the first of them a simple one."""
        self.value(v)
        for _ in range(self.r.n(1, most)):
            if self.statements_left <= 0:
                return
            self.statements_left -= 1
            self.statement(v, depth)

    def statement(self, v, depth):
        r = self.r
        if depth < MOST_DEPTH and r.n(0, 9) < (7 if depth == 0 else 4):
            r.pick(self.while_loop, self.while_block, self.cond, self.case, self.switch_case, self.cond)(v, depth)
        elif r.n(0, 9) < 3:
            self.array(v)
        elif depth > 0 and r.n(0, 9) < 3:
            self.assign_outer(v)
        elif r.n(0, 9) == 0:
            nn.control_flow.Assert(self.int_var(v) >= 0, [self.float_var(v)])
        else:
            self.value(v)

    def results(self, v, kinds):
        """Variables of `v` of these kinds, preferably new ones."""
        pools = {"float": v.floats, "int": v.ints, "bool": v.bools}
        return [self.r.pick(*pools[kind][-3:]) if pools[kind] else self.new_bool(v) for kind in kinds]

    def kinds(self):
        return [self.r.pick("float", "float", "float", "int", "bool") for _ in range(self.r.n(1, 3))]

    def keep(self, v, kinds, results):
        for kind, result in zip(kinds, results if isinstance(results, (list, tuple)) else [results]):
            {"float": v.floats, "int": v.ints, "bool": v.bools}[kind].append(result)

    def trip_count(self, v, depth):
        return self.int_var(v) % self.r.n(2, 6 - depth)

    def while_loop(self, v, depth):
        """Carries values: those of the body become those of the next trip, one after the other."""
        r, count = self.r, self.trip_count(v, depth)
        carried = [number(0), paddle.assign(self.float_var(v)), paddle.assign(self.int_var(v))]
        if r.n(0, 1):
            carried.append(paddle.assign(self.float_var(v)) if not self.allow_feeds_written else self.float_var(v))
        array = r.pick(*v.arrays) if v.arrays and r.n(0, 2) == 0 else None

        def body(i, x, k, *rest):
            rest = list(rest)
            more = rest[:1] if len(carried) > 3 else []
            inner = v.inner()
            inner.floats += [x, *more]
            inner.ints += [i, k]
            self.statements(inner, depth + 1, 4)
            x_next, k_next = self.results(inner, ["float", "int"])
            if array is not None:
                paddle.tensor.array_write(x_next, paddle.tensor.array_length(array), array)
            # Sometimes two change places, and what is assigned first is seen by what comes next.
            swapped = [x] if more and r.n(0, 2) == 0 else self.results(inner, ["float"] * len(more))
            return [i + 1, x_next, k_next, *swapped, *rest[len(more):]]

        variables = carried + ([array] if array is not None else [])
        carried[0], *after = nn.while_loop(lambda i, *_: i < count, body, variables, is_test=bool(r.n(0, 1)))
        v.ints += [carried[0], after[1]]
        v.floats += [after[0], *after[2:len(carried) - 1]]

    def while_block(self, v, depth):
        """Assigns to variables outside, counts in place; sometimes it ends early."""
        r, i, count = self.r, number(0), self.trip_count(v, depth)
        total, state = paddle.assign(self.int_var(v)), paddle.assign(self.float_var(v))
        go_on = paddle.less_than(i, count)
        loop = While(go_on, is_test=bool(r.n(0, 1)))
        with loop.block():
            inner = v.inner()
            inner.floats.append(state)
            inner.ints += [i, total]
            self.statements(inner, depth + 1, 4)
            x, k = self.results(inner, ["float", "int"])
            paddle.assign(x, state)
            paddle.assign((total + k) % 11, total)
            paddle.increment(i)
            if r.n(0, 2) == 0:
                paddle.assign(paddle.logical_and(i < count, total < 9), go_on)
            else:
                paddle.assign(paddle.less_than(i, count), go_on)
        v.ints += [i, total]
        v.floats.append(state)
        v.bools.append(go_on)

    def branch(self, v, depth, kinds):
        def build():
            inner = v.inner()
            self.statements(inner, depth + 1, 3)
            return self.results(inner, kinds)
        return build

    def condition(self, v):
        if v.bools and self.r.n(0, 1):
            return self.r.pick(*v.bools)
        return self.new_bool(v)

    def cond(self, v, depth):
        kinds = self.kinds()
        self.keep(v, kinds, nn.cond(self.condition(v), self.branch(v, depth, kinds), self.branch(v, depth, kinds)))

    def case(self, v, depth):
        kinds = self.kinds()
        pairs = [(self.condition(v), self.branch(v, depth, kinds)) for _ in range(self.r.n(1, 3))]
        self.keep(v, kinds, nn.case(pairs, self.branch(v, depth, kinds)))

    def switch_case(self, v, depth):
        kinds = self.kinds()
        keys = self.r.perm(5)[:self.r.n(1, 3)]
        branches = [(key, self.branch(v, depth, kinds)) for key in sorted(keys)]
        self.keep(v, kinds, nn.switch_case(self.int_var(v) % 5, branches, self.branch(v, depth, kinds)))

    def array(self, v):
        r, T = self.r, paddle.tensor
        if not v.arrays or r.n(0, 5) == 0:
            made = T.create_array("float32")
            T.array_write(self.float_var(v), number(0), made)
            v.arrays.append(made)
        array = r.pick(*v.arrays)
        index = r.pick(lambda: T.array_length(array), lambda: self.int_var(v) % T.array_length(array))()
        if r.n(0, 1):
            T.array_write(self.float_var(v), index, array)
        v.floats.append(T.array_read(array, self.int_var(v) % T.array_length(array)))

    def assign_outer(self, v):
        """Changes a variable that may belong to a block around this one."""
        if self.r.n(0, 1):
            target, value = self.float_var(v), self.float_var(v)
            value = paddle.tanh(value) if value is target else value
        else:
            target, value = self.int_var(v), (self.int_var(v) + 1) % 5
        fed = target.name in self.fed
        if fed and not self.allow_feeds_written:
            return
        paddle.assign(value, target)

    def build(self):
        """Returns what to fetch."""
        r, d = self.r, self.width
        x = static.data("x", [-1 if r.n(0, 1) else 3, d], "float32")
        y = static.data("y", [x.shape[0], d], "float32")
        n, k = static.data("n", [1], "int64"), static.data("k", [1], "int64")
        flag = static.data("flag", [1], "bool")
        self.fed = {"x", "y", "n", "k", "flag"}
        v = Names([x, y], [n, k], [flag], [])
        while self.statements_left > 0:
            self.statements(v, 0, 6)
        fetched = {var.name: var for var in v.floats[-4:] + v.ints[-3:] + v.bools[-2:] if var.name not in self.fed}
        for array in v.arrays[:1]:
            joined, _ = paddle.tensor.manipulation.tensor_array_to_tensor(array, axis=0, use_stack=bool(r.n(0, 1)))
            length = paddle.tensor.array_length(array)
            fetched.update({joined.name: joined, length.name: length})
        return list(fetched.values())


def random_program(r):
    """A random program; its feeds and what to fetch."""
    width = r.n(2, 5)
    weights = [static.data(f"w{i}", [width, width], "float32") for i in range(2)]
    program = RandomProgram(r, width, weights, allow_feeds_written=r.n(0, 4) == 0)
    fetched = program.build()
    block = static.default_main_program().global_block()
    used = {name for op in block.ops for name in op.input_arg_names + op.output_arg_names}
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        rows = 3 if block.var("x").shape[0] == 3 else r.n(1, 5)
        feed = {"x": r.f((rows, width)), "y": r.f((rows, width)), "n": r.i((1,), 0, 9), "k": r.i((1,), 0, 9),
                "flag": r.b((1,)), "w0": r.f((width, width), -1, 1), "w1": r.f((width, width), -1, 1)}
        feeds.append({name: value for name, value in feed.items() if name in used})
    return feeds, fetched


# ----------------------------------------------------------------------------
# Families: what old releases made, op by op
# ----------------------------------------------------------------------------
class Ops:
    """Appends ops to the current block; their outputs are new variables."""

    def __init__(self):
        self.program = static.default_main_program()

    def var(self, dtype="float32", shape=(-1,), kind=VarType.LOD_TENSOR, name=None, lod_level=0):
        block = self.program.current_block()
        name = name or paddle.utils.unique_name.generate("v")
        if kind in (VarType.LOD_RANK_TABLE, VarType.STEP_SCOPES):
            return block.create_var(name=name, type=kind)
        if kind == VarType.LOD_TENSOR_ARRAY:
            return block.create_var(name=name, type=kind, dtype=dtype)
        return block.create_var(name=name, type=kind, dtype=dtype, shape=list(shape), lod_level=lod_level)

    def append(self, type, inputs, outputs, **attrs):
        op = self.program.current_block().append_op(
            type=type, inputs=inputs, outputs=outputs, attrs=g.coerce_attrs(type, attrs))
        return op

    def op(self, type, inputs, dtype="float32", shape=(-1,), kind=VarType.LOD_TENSOR, slot="Out", **attrs):
        out = self.var(dtype, shape, kind)
        self.append(type, inputs, {slot: [out]}, **attrs)
        return out


def feed_var(name, shape, dtype="float32", lod_level=0):
    return static.data(name, shape, dtype, lod_level)


def offsets(lengths):
    return [int(x) for x in np.concatenate([[0], np.cumsum(lengths)])]


def append_recurrent(ops, r, x, w, u, starts):
    """Appends a StaticRNN over dim 0 of `x`; its outputs."""
    d = w.shape[0]
    out = [ops.var(shape=(-1, -1, d)) for _ in starts]
    inner = ops.program._create_block()
    step = ops.var(shape=(-1, d), name=x.name)
    before = [ops.var(shape=(-1, d)) for _ in starts]
    mixed = paddle.matmul(step, w)
    for state in before:
        mixed = mixed + paddle.matmul(state, u)
    if r.n(0, 1):
        count = number(r.n(0, 3))
        _, mixed = nn.while_loop(lambda i, m: i < count, lambda i, m: [i + 1, paddle.tanh(m) + step], [number(0), mixed])
    after = [paddle.tanh(mixed)] + [paddle.nn.functional.sigmoid(mixed - b) for b in before[1:]]
    for outside, state in zip(out, after):
        ops.append("assign", {"X": [state]}, {"Out": [ops.var(shape=(-1, d), name=outside.name)]})
    ops.program._rollback()
    ops.append("recurrent", {"inputs": [x], "initial_states": starts, "parameters": [w, u]},
               {"outputs": out, "step_scopes": [ops.var(kind=VarType.STEP_SCOPES)]},
               has_states=True, ex_states=[b.name for b in before], states=[a.name for a in after], sub_block=inner,
               reverse=bool(r.n(0, 1)), is_train=bool(r.n(0, 1)))
    return out


def recurrent(r):
    """StaticRNN: one or two states over the steps of dim 0, with a loop in each or none."""
    ops, d, states = Ops(), r.n(2, 4), r.n(1, 2)
    x = feed_var("x", [-1, -1, d])
    w, u = feed_var("w", [d, d]), feed_var("u", [d, d])
    starts = [feed_var(f"start{i}", [-1, d]) for i in range(states)]
    out = append_recurrent(ops, r, x, w, u, starts)
    fetched = [*out, paddle.mean(out[0], axis=0)]
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        steps, rows = r.n(1, 6), r.n(1, 3)
        feeds.append({"x": r.f((steps, rows, d)), "w": r.f((d, d), -1, 1), "u": r.f((d, d), -1, 1),
                      **{s.name: r.f((rows, d)) for s in starts}})
    return feeds, fetched


def recurrent_in_while(r):
    """A loop whose trips are runs of a StaticRNN over what the trip before gave."""
    ops, d = Ops(), r.n(2, 4)
    x, n = feed_var("x", [-1, -1, d]), feed_var("n", [1], "int64")
    w, u, start = feed_var("w", [d, d]), feed_var("u", [d, d]), feed_var("start", [-1, d])
    i, rows = number(0), paddle.assign(x)
    go_on = paddle.less_than(i, n)
    with While(go_on, is_test=bool(r.n(0, 1))).block():
        steps = paddle.scale(rows, 0.9)
        out, = append_recurrent(ops, r, steps, w, u, [start])
        paddle.assign(out, rows)
        paddle.increment(i)
        paddle.assign(paddle.less_than(i, n), go_on)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        steps, rows_fed = r.n(1, 4), r.n(1, 3)
        feeds.append({"x": r.f((steps, rows_fed, d)), "n": r.i((1,), 0, 4), "w": r.f((d, d), -1, 1),
                      "u": r.f((d, d), -1, 1), "start": r.f((rows_fed, d))})
    return feeds, [rows, i]


def stateless_recurrent(r):
    """StaticRNN without states, on two inputs."""
    ops, d = Ops(), r.n(2, 4)
    x, y = feed_var("x", [-1, -1, d]), feed_var("y", [-1, -1, d])
    out = ops.var(shape=(-1, -1, d), name="out")
    inner = ops.program._create_block()
    for name in ("x", "y"):
        ops.var(shape=(-1, d), name=name)
    value = paddle.nn.functional.softmax(inner.var("x") * inner.var("y"))
    ops.append("assign", {"X": [value]}, {"Out": [ops.var(shape=(-1, d), name="out")]})
    ops.program._rollback()
    ops.append("recurrent", {"inputs": [x, y], "initial_states": [], "parameters": []},
               {"outputs": [out], "step_scopes": [ops.var(kind=VarType.STEP_SCOPES)]},
               has_states=False, ex_states=[], states=[], sub_block=inner, reverse=bool(r.n(0, 1)), is_train=False)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        shape = (r.n(1, 6), r.n(1, 3), d)
        feeds.append({"x": r.f(shape), "y": r.f(shape)})
    return feeds, [out]


def dynamic_rnn(r):
    """DynamicRNN: a loop over the steps of sequences, longest first, whose rows become fewer."""
    ops, T, d = Ops(), paddle.tensor, r.n(2, 4)
    x, start = feed_var("x", [-1, d], lod_level=1), feed_var("start", [-1, d])
    w, u = feed_var("w", [d, d]), feed_var("u", [d, d])
    table = ops.op("lod_rank_table", {"X": [x]}, kind=VarType.LOD_RANK_TABLE, level=0)
    longest = ops.op("max_sequence_len", {"RankTable": [table]}, "int64", [1])
    steps = ops.op("lod_tensor_to_array", {"X": [x], "RankTable": [table]}, kind=VarType.LOD_TENSOR_ARRAY)
    ranked = ops.op("reorder_lod_tensor_by_rank", {"X": [start], "RankTable": [table]}, shape=(-1, d))
    i, states = number(0), ops.var(kind=VarType.LOD_TENSOR_ARRAY)
    ops.append("write_to_array", {"X": [ranked], "I": [i]}, {"Out": [states]})
    outputs = ops.var(kind=VarType.LOD_TENSOR_ARRAY)
    go_on = paddle.less_than(i, longest)
    with While(go_on, is_test=bool(r.n(0, 1))).block():
        step = ops.op("read_from_array", {"X": [steps], "I": [i]}, shape=(-1, d))
        state = ops.op("read_from_array", {"X": [states], "I": [i]}, shape=(-1, d))
        state = ops.op("shrink_rnn_memory", {"X": [state], "I": [i], "RankTable": [table]}, shape=(-1, d))
        state = paddle.tanh(paddle.matmul(step, w) + paddle.matmul(state, u))
        ops.append("write_to_array", {"X": [paddle.scale(state, 2.0, 0.5)], "I": [i]}, {"Out": [outputs]})
        paddle.increment(i)
        ops.append("write_to_array", {"X": [state], "I": [i]}, {"Out": [states]})
        paddle.assign(paddle.less_than(i, longest), go_on)
    joined = ops.op("array_to_lod_tensor", {"X": [outputs], "RankTable": [table]}, shape=(-1, d))
    length = T.array_length(states)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        lengths = [r.n(1, 5) for _ in range(r.n(1, 4))]
        feeds.append({"x": LoD(r.f((sum(lengths), d)), [offsets(lengths)]), "start": r.f((len(lengths), d)),
                      "w": r.f((d, d), -1, 1), "u": r.f((d, d), -1, 1)})
    return feeds, [joined, length, longest]


def beam_decoder(r):
    """Decodes with beams until all have ended or the longest is reached."""
    ops, d, words, beams, end = Ops(), r.n(3, 5), r.n(5, 9), r.n(2, 3), 1
    ids, scores = feed_var("ids", [-1, 1], "int64", 2), feed_var("scores", [-1, 1], "float32", 2)
    start, limit = feed_var("start", [-1, d]), feed_var("limit", [1], "int64")
    table, w, u, head = (feed_var(n, s) for n, s in
                         (("table", [words, d]), ("w", [d, d]), ("u", [d, d]), ("head", [d, words])))
    i = number(0)
    arrays = [ops.op("write_to_array", {"X": [x], "I": [i]}, dtype, kind=VarType.LOD_TENSOR_ARRAY)
              for x, dtype in ((ids, "int64"), (scores, "float32"), (start, "float32"))]
    go_on = paddle.less_than(i, limit)
    with While(go_on, is_test=bool(r.n(0, 1))).block():
        pre_ids, pre_scores, pre_state = (
            ops.op("read_from_array", {"X": [a], "I": [i]}, dtype, shape)
            for a, dtype, shape in zip(arrays, ("int64", "float32", "float32"), ((-1, 1), (-1, 1), (-1, d))))
        state = ops.op("sequence_expand", {"X": [pre_state], "Y": [pre_scores]}, shape=(-1, d), ref_level=-1)
        word = ops.op("lookup_table", {"Ids": [pre_ids], "W": [table]}, shape=(-1, d), padding_idx=-1)
        state = paddle.tanh(paddle.matmul(word, w) + paddle.matmul(state, u))
        with_lod = ops.op("lod_reset", {"X": [state], "Y": [pre_scores]}, shape=(-1, d))
        chances = paddle.nn.functional.softmax(ops.op("mul", {"X": [with_lod], "Y": [head]}, shape=(-1, words)))
        best, candidates = ops.var(shape=(-1, beams + 1)), ops.var("int64", (-1, beams + 1))
        ops.append("top_k", {"X": [chances]}, {"Out": [best], "Indices": [candidates]}, k=beams + 1)
        sums = ops.op("elementwise_add", {"X": [paddle.log(best)], "Y": [paddle.reshape(pre_scores, [-1])]},
                      shape=(-1, beams + 1), axis=0)
        chosen, chosen_scores, parents = ops.var("int64", (-1, 1)), ops.var(shape=(-1, 1)), ops.var("int32", (-1,))
        ops.append("beam_search",
                   {"pre_ids": [pre_ids], "pre_scores": [pre_scores], "ids": [candidates], "scores": [sums]},
                   {"selected_ids": [chosen], "selected_scores": [chosen_scores], "parent_idx": [parents]},
                   level=0, beam_size=beams, end_id=end, is_accumulated=True)
        paddle.increment(i)
        for array, value in zip(arrays, (chosen, chosen_scores, state)):
            ops.append("write_to_array", {"X": [value], "I": [i]}, {"Out": [array]})
        empty = ops.op("is_empty", {"X": [chosen]}, "bool", [1])
        paddle.assign(paddle.logical_and(paddle.less_than(i, limit), paddle.logical_not(empty)), go_on)
    sentences, chances = ops.var("int64", (-1, 1), lod_level=2), ops.var(shape=(-1, 1), lod_level=2)
    ops.append("beam_search_decode", {"Ids": [arrays[0]], "Scores": [arrays[1]]},
               {"SentenceIds": [sentences], "SentenceScores": [chances]}, beam_size=beams, end_id=end)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        rows = r.n(1, 3)
        lod = [list(range(rows + 1))] * 2
        feeds.append({"ids": LoD(np.zeros((rows, 1), "int64"), lod), "scores": LoD(np.zeros((rows, 1), "float32"), lod),
                      "start": r.f((rows, d)), "limit": r.i((1,), 1, 6), "table": r.f((words, d)),
                      "w": r.f((d, d), -1, 1), "u": r.f((d, d), -1, 1), "head": r.f((d, words))})
    return feeds, [sentences, chances, i]


def rows_by_mask(r):
    """IfElse: the rows of a mask go through one block, the others through another; each block runs if it has rows."""
    ops, d = Ops(), r.n(2, 4)
    x, limit = feed_var("x", [-1, d]), feed_var("limit", [1])
    mask = paddle.sum(x, axis=1, keepdim=True) > limit
    yes, no = ops.var(shape=(-1, d)), ops.var(shape=(-1, d))
    ops.append("split_lod_tensor", {"X": [x], "Mask": [mask]}, {"OutTrue": [yes], "OutFalse": [no]}, level=0)
    outs = []
    for part, change in ((yes, paddle.tanh), (no, lambda v: v * 2.0 - 1.0)):
        out = ops.var(shape=(-1, d))
        inner = ops.program._create_block()
        value = change(part)
        ops.append("assign", {"X": [value]}, {"Out": [out]})
        ops.program._rollback()
        ops.append("conditional_block", {"Cond": [part], "Input": [part]},
                   {"Out": [out], "Scope": [ops.var(kind=VarType.STEP_SCOPES)]}, sub_block=inner,
                   is_scalar_condition=False)
        outs.append(out)
    joined = ops.op("merge_lod_tensor", {"X": [x], "Mask": [mask], "InTrue": [outs[0]], "InFalse": [outs[1]]},
                    shape=(-1, d), level=0)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        rows = r.f((r.n(2, 6), d))
        sums = np.sort(rows.sum(1))
        middle = (sums[0] + sums[-1]) / 2     # so that both sides have rows
        feeds.append({"x": rows, "limit": np.array([middle], "float32")})
    return feeds, [joined]


def growing(r):
    """Shapes that change from trip to trip: rows are appended, joined and taken away."""
    d = r.n(2, 4)
    x, n = feed_var("x", [-1, d]), feed_var("n", [1], "int64")
    i, rows, sums = number(0), paddle.assign(x), paddle.zeros([1, d])
    rows.desc.set_shape([-1, d])
    go_on = paddle.less_than(i, n)
    with While(go_on, is_test=bool(r.n(0, 1))).block():
        longer = paddle.concat([rows, paddle.tanh(rows[:2]) + paddle.cast(i, "float32") * 0.1], axis=0)
        dropped = nn.cond(paddle.equal(i % 3, number(2)), lambda: longer[1:], lambda: longer * 1.0)
        paddle.assign(dropped, rows)
        paddle.assign(paddle.tanh(sums + paddle.mean(rows, axis=0, keepdim=True)), sums)
        paddle.increment(i)
        paddle.assign(paddle.less_than(i, n), go_on)
    feeds = [{"x": r.f((r.n(2, 4), d)), "n": np.array([r.n(0, 6)], "int64")} for _ in range(FEEDS_PER_PROGRAM)]
    return feeds, [rows, sums, i]


def choose_output(r):
    """select_output and select_input by a fed index."""
    ops, d = Ops(), r.n(2, 4)
    x, k = feed_var("x", [-1, d]), feed_var("k", [1], "int32")
    sides = [ops.var(shape=(-1, d)) for _ in range(2)]
    ops.append("select_output", {"X": [x], "Mask": [k]}, {"Out": sides})
    wanted = paddle.cast(k, "bool")
    outs = [ops.var(shape=(-1, d)) for _ in range(2)]
    for side, out, condition, change in zip(sides, outs, (paddle.logical_not(wanted), wanted),
                                            (paddle.tanh, lambda v: v * 3.0)):
        inner = ops.program._create_block()
        value = change(side)
        ops.append("assign", {"X": [value]}, {"Out": [out]})
        ops.program._rollback()
        ops.append("conditional_block", {"Cond": [condition], "Input": [side]},
                   {"Out": [out], "Scope": [ops.var(kind=VarType.STEP_SCOPES)]}, sub_block=inner,
                   is_scalar_condition=True)
    joined = ops.op("select_input", {"X": outs, "Mask": [k]}, shape=(-1, d))
    feeds = [{"x": r.f((r.n(1, 4), d)), "k": np.array([i % 2], "int32")} for i in range(FEEDS_PER_PROGRAM)]
    return feeds, [joined]


FAMILIES = {"recurrent": [recurrent, recurrent_in_while, stateless_recurrent],
            "lod_tensor_to_array": [dynamic_rnn, dynamic_rnn],
            "beam_search": [beam_decoder, beam_decoder],
            "split_lod_tensor": [rows_by_mask], "select_output": [choose_output], "while": [growing]}


# ----------------------------------------------------------------------------
# Cases
# ----------------------------------------------------------------------------
def build(seed, index):
    """Program `index`: (op it is about, program, feeds, fetched variables)."""
    r = Rng(seed, f"control_flow/{index}")
    main = static.Program()
    g.reset_names()
    with paddle.utils.unique_name.guard(), static.program_guard(main, static.Program()):
        if index % 6 == 5:
            flat = [(op, family) for op, families in FAMILIES.items() for family in families]
            op, family = flat[index // 6 % len(flat)]
            return op, main, *family(r)
        feeds, fetched = random_program(r)
    if r.n(0, 3) == 0:
        for op in (op for block in main.blocks for op in block.ops if op.type == "conditional_block"):
            op.desc.set_type("conditional_block_infer")    # as inference passes leave it
    types = {op.type for block in main.blocks for op in block.ops}
    about = next(op for op in ("while", "conditional_block", "conditional_block_infer", "write_to_array", "assign", "tanh") if op in types or op == "tanh")
    return about, main, feeds, fetched


def make_program(out, seed, index):
    """Writes the cases of program `index`; one that Paddle refuses raises and leaves nothing behind."""
    op, main, feeds, fetched = build(seed, index)
    names = [v.name for v in fetched]
    results = []
    for feed in feeds:
        builder = g.Builder()
        builder.prog, builder.block, builder.fetch = main.clone(), None, names
        builder.feeds = feed
        blob = builder._with_feed_fetch(main.desc.serialize_to_string())
        got = g.run_program(blob, feed, names)
        if any(not np.isfinite(a).all() for a, _ in got):
            raise g.Unsupported("a result is not finite")
        results.append((blob, feed, got))
    ops = sorted({o.type for block in main.blocks for o in block.ops})
    for k, (blob, feed, got) in enumerate(results):
        case = f"p{index:04d}_f{k}"
        files = {g.safe(name): value for name, value in zip(names, got)}
        assert len(files) == len(names)
        g.write_case(f"{out}/{op}/{case}", seed, op, case, blob, feed, dict(zip(names, got)), {}, {}, ops, RTOL, ATOL,
                     f"{len(main.blocks)} blocks")


def make_in_child(out, seed, index):
    """Whether program `index` was made. Paddle starts its threads in the child alone."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS_PER_PROGRAM)
        try:
            make_program(out, seed, index)
        except Exception as e:
            print(f"SKIP program {index}: {g.short_error(e)}", flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        print(f"SKIP program {index}: Paddle ended by signal {os.WTERMSIG(status)}")
    return status == 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--count", type=int, default=60, help="programs")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--first", type=int, default=0, help="number of the first program")
    args = ap.parse_args()
    made = sum(make_in_child(args.out, args.seed, i) for i in range(args.first, args.first + args.count))
    print(f"{made} of {args.count} programs in {args.out}, {FEEDS_PER_PROGRAM} cases each")


if __name__ == "__main__":
    main()
