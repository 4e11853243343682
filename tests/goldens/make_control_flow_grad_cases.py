#!/usr/bin/env python3
"""make_control_flow_grad_cases.py - gradients of random programs with control flow, as Paddle makes and runs them.

    python make_control_flow_grad_cases.py --out control_flow_grad && ./pack.sh control_flow_grad
    python make_control_flow_grad_cases.py --out DIR --count 1000 --seed 7
    tools/compare_cases.py DIR/* --tolerance 2e-4

Same needs and same format as make_control_flow_cases.py, whose generator writes the forward part; control_flow_grad.tar.xz
beside this file is the result of the first line. Most programs end in a loss, and append_backward makes the rest; every
fourth moves elements alone, and its gradients start from ones. Fetched are results, the loss, and the gradients of all
floats that are fed.

Left out are programs whose gradients by Paddle 2.6.2 are not those of the loss, by finite differences: it loses some
where a branch reads what a loop carries. Losses that are not smooth there go with them.
"""
from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

import argparse
import sys

import make_control_flow_cases as forward
import make_goldens as g
import numpy as np
import paddle
from make_control_flow_cases import FEEDS_PER_PROGRAM, Ops, VarType, feed_var, nn, number, offsets, static
from make_goldens import LoD, Rng

T = paddle.tensor


# ----------------------------------------------------------------------------
# Random programs
# ----------------------------------------------------------------------------
class Differentiable(forward.RandomProgram):
    """Values of ops whose gradients programs meet most; control flow by functions that return what they give."""

    def __init__(self, r, width, weights, linear):
        super().__init__(r, width, weights, allow_feeds_written=False)
        self.linear = linear

    def new_float(self, v):
        r, x, y = self.r, self.float_var(v), self.float_var(v)
        kind = r.n(0, 5) if self.linear else r.n(0, 15)
        if kind == 0:
            return paddle.scale(x, r.scalar(-0.9, 0.9), r.scalar(-0.5, 0.5))
        if kind == 1:
            return paddle.concat([x[:, :1], y[:, 1:]], axis=1)
        if kind == 2:
            both = paddle.transpose(paddle.stack([x, y], axis=0), [1, 2, 0])
            return paddle.reshape(both, [-1, 2 * self.width])[:, :self.width]
        if kind == 3:
            return paddle.scale(paddle.tile(y[:, :1], [1, self.width]), 0.8)
        if kind == 4:
            return paddle.scale(paddle.concat([y[:, -1:], x[:, :-1]], axis=1), 0.7)
        if kind == 5:
            return paddle.assign(x)
        if kind == 6:
            return paddle.tanh(x + y)
        if kind == 7:
            return paddle.tanh(x * y)
        if kind == 8:
            return paddle.nn.functional.sigmoid(x)
        if kind in (9, 10, 11):
            return paddle.tanh(paddle.matmul(x, r.pick(*self.weights), transpose_y=bool(r.n(0, 1))))
        if kind == 12:
            return x - paddle.mean(y, axis=-1, keepdim=True)
        if kind == 13:
            return paddle.tanh(x * paddle.cast(self.int_var(v), "float32"))
        if kind == 14:
            return x - y * 0.5
        return paddle.nn.functional.relu(x)

    def statement(self, v, depth):
        r = self.r
        if depth < forward.MOST_DEPTH and r.n(0, 9) < (6 if depth == 0 else 4):
            r.pick(self.while_loop, self.while_loop, self.cond, self.case, self.switch_case)(v, depth)
        elif depth == 0 and r.n(0, 9) < 3:
            self.array(v)
        else:
            self.value(v)

    def while_loop(self, v, depth):
        """Carries two floats; sometimes one result is there for each trip, in an array."""
        r, count = self.r, self.trip_count(v, depth)
        carried = [number(0), paddle.assign(self.float_var(v)), paddle.assign(self.float_var(v))]

        def body(i, x, y):
            inner = v.inner()
            inner.floats += [x, y]
            inner.ints.append(i)
            self.statements(inner, depth + 1, 3)
            return [i + 1, *self.results(inner, ["float", "float"])]

        i, x, y = nn.while_loop(lambda i, *_: i < count, body, carried)
        v.ints.append(i)
        v.floats += [x, y]

    def array(self, v):
        """Written and read once per element, at indices that are known."""
        made = T.create_array("float32")
        for k in range(self.r.n(1, 3)):
            T.array_write(self.float_var(v), number(k), made)
        joined, _ = T.manipulation.tensor_array_to_tensor(made, axis=1)
        v.floats.append(T.array_read(made, number(0)))
        v.floats.append(joined[:, -self.width:])

    def kinds(self):
        return ["float"] * self.r.n(1, 2) + ["int"] * self.r.n(0, 1)

    def build(self):
        r, d = self.r, self.width
        x, y = static.data("x", [-1, d], "float32"), static.data("y", [-1, d], "float32")
        n, k = static.data("n", [1], "int64"), static.data("k", [1], "int64")
        flag = static.data("flag", [1], "bool")
        for var in (x, y, *self.weights):
            var.stop_gradient = False
        self.fed = {"x", "y", "n", "k", "flag"}
        v = forward.Names([x, y], [n, k], [flag], [])
        while self.statements_left > 0:
            self.statements(v, 0, 5)
        return [var for var in v.floats[-4:] if var.name not in self.fed]


def random_program(r, linear):
    width = r.n(2, 4)
    weights = [static.data(f"w{i}", [width, width], "float32") for i in range(2)]
    program = Differentiable(r, width, weights, linear=linear)
    program.statements_left = r.n(5, 14)
    results = program.build()
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        rows = r.n(1, 4)
        feeds.append({"x": r.f((rows, width)), "y": r.f((rows, width)), "n": r.i((1,), 0, 9), "k": r.i((1,), 0, 9),
                      "flag": r.b((1,)), "w0": r.f((width, width), -1, 1), "w1": r.f((width, width), -1, 1)})
    return feeds, results


# ----------------------------------------------------------------------------
# Families
# ----------------------------------------------------------------------------
def trained(name, shape, lod_level=0):
    var = feed_var(name, shape, lod_level=lod_level)
    var.stop_gradient = False
    return var


def recurrent(r):
    """StaticRNN. Without rnn_memory_helper, which 2.6.2 lacks, only a state that is an output hands its gradient on."""
    ops, d = Ops(), r.n(2, 4)
    x, start = trained("x", [-1, -1, d]), trained("start", [-1, d])
    w, u = trained("w", [d, d]), trained("u", [d, d])
    out = ops.var(shape=(-1, -1, d))
    inner = ops.program._create_block()
    step, before = ops.var(shape=(-1, d), name=x.name), ops.var(shape=(-1, d))
    state = paddle.tanh(paddle.matmul(step, w) + paddle.matmul(before, u))
    row = ops.var(shape=(-1, d), name=out.name)
    ops.append("assign", {"X": [state]}, {"Out": [row]})
    ops.program._rollback()
    ops.append("recurrent", {"inputs": [x], "initial_states": [start], "parameters": [w, u]},
               {"outputs": [out], "step_scopes": [ops.var(kind=VarType.STEP_SCOPES)]}, has_states=True,
               ex_states=[before.name], states=[r.pick(row, row, state).name], sub_block=inner, reverse=bool(r.n(0, 1)),
               is_train=True)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        steps, rows = r.n(1, 5), r.n(1, 3)
        feeds.append({"x": r.f((steps, rows, d)), "start": r.f((rows, d)), "w": r.f((d, d), -1, 1),
                      "u": r.f((d, d), -1, 1)})
    return feeds, [out]


def dynamic_rnn(r):
    """DynamicRNN: arrays read and written by the steps of a loop, rows that become fewer."""
    ops, d = Ops(), r.n(2, 4)
    x, start = trained("x", [-1, d], lod_level=1), trained("start", [-1, d])
    w, u = trained("w", [d, d]), trained("u", [d, d])
    table = ops.op("lod_rank_table", {"X": [x]}, kind=VarType.LOD_RANK_TABLE, level=0)
    longest = ops.op("max_sequence_len", {"RankTable": [table]}, "int64", [1])
    steps = ops.op("lod_tensor_to_array", {"X": [x], "RankTable": [table]}, kind=VarType.LOD_TENSOR_ARRAY)
    ranked = ops.op("reorder_lod_tensor_by_rank", {"X": [start], "RankTable": [table]}, shape=(-1, d))
    i, states = number(0), ops.var(kind=VarType.LOD_TENSOR_ARRAY)
    i.stop_gradient = True
    ops.append("write_to_array", {"X": [ranked], "I": [i]}, {"Out": [states]})
    outputs = ops.var(kind=VarType.LOD_TENSOR_ARRAY)
    for var in (table, longest):
        var.stop_gradient = True
    go_on = paddle.less_than(i, longest)
    with forward.While(go_on, is_test=False).block():
        step = ops.op("read_from_array", {"X": [steps], "I": [i]}, shape=(-1, d))
        state = ops.op("read_from_array", {"X": [states], "I": [i]}, shape=(-1, d))
        state = ops.op("shrink_rnn_memory", {"X": [state], "I": [i], "RankTable": [table]}, shape=(-1, d))
        state = paddle.tanh(paddle.matmul(step, w) + paddle.matmul(state, u))
        ops.append("write_to_array", {"X": [paddle.scale(state, 2.0, 0.5)], "I": [i]}, {"Out": [outputs]})
        paddle.increment(i)
        ops.append("write_to_array", {"X": [state], "I": [i]}, {"Out": [states]})
        paddle.assign(paddle.less_than(i, longest), go_on)
    joined = ops.op("array_to_lod_tensor", {"X": [outputs], "RankTable": [table]}, shape=(-1, d))
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        lengths = [r.n(1, 4) for _ in range(r.n(1, 4))]
        feeds.append({"x": LoD(r.f((sum(lengths), d)), [offsets(lengths)]), "start": r.f((len(lengths), d)),
                      "w": r.f((d, d), -1, 1), "u": r.f((d, d), -1, 1)})
    return feeds, [joined]


def rows_by_mask(r):
    """IfElse: rows go through one block or the other."""
    ops, d = Ops(), r.n(2, 4)
    x, limit = trained("x", [-1, d]), feed_var("limit", [1])
    mask = paddle.sum(x, axis=1, keepdim=True) > limit
    mask.stop_gradient = True
    yes, no = ops.var(shape=(-1, d)), ops.var(shape=(-1, d))
    ops.append("split_lod_tensor", {"X": [x], "Mask": [mask]}, {"OutTrue": [yes], "OutFalse": [no]}, level=0)
    outs = []
    for part, change in ((yes, paddle.tanh), (no, lambda v: v * 2.0 - 1.0)):
        out = ops.var(shape=(-1, d))
        inner = ops.program._create_block()
        ops.append("assign", {"X": [change(part)]}, {"Out": [out]})
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
        feeds.append({"x": rows, "limit": np.array([(sums[0] + sums[-1]) / 2], "float32")})
    return feeds, [joined]


def first_rows(r):
    """The rows of sequences that have a step left."""
    ops, d = Ops(), r.n(2, 4)
    x, start, i = feed_var("x", [-1, d], lod_level=1), trained("start", [-1, d]), feed_var("i", [1], "int64")
    table = ops.op("lod_rank_table", {"X": [x]}, kind=VarType.LOD_RANK_TABLE, level=0)
    kept = ops.op("shrink_rnn_memory", {"X": [start], "I": [i], "RankTable": [table]}, shape=(-1, d))
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        lengths = [r.n(1, 4) for _ in range(r.n(2, 4))]
        feeds.append({"x": LoD(r.f((sum(lengths), d)), [offsets(lengths)]), "start": r.f((len(lengths), d)),
                      "i": np.array([r.n(0, max(lengths) - 1)], "int64")})
    return feeds, [paddle.scale(kept, 1.5)]


def ranked(r):
    """Sequences in the order of their lengths."""
    ops, d = Ops(), r.n(2, 4)
    x, start = feed_var("x", [-1, d], lod_level=1), trained("start", [-1, d])
    table = ops.op("lod_rank_table", {"X": [x]}, kind=VarType.LOD_RANK_TABLE, level=0)
    sorted_rows = ops.op("reorder_lod_tensor_by_rank", {"X": [start], "RankTable": [table]}, shape=(-1, d))
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        lengths = [r.n(1, 4) for _ in range(r.n(2, 5))]
        feeds.append({"x": LoD(r.f((sum(lengths), d)), [offsets(lengths)]), "start": r.f((len(lengths), d))})
    return feeds, [sorted_rows[:1]]


def plain_loop(r):
    """A sum that grows with what a loop carries."""
    d = r.n(2, 4)
    x, y, n = trained("x", [-1, d]), trained("y", [-1, d]), feed_var("n", [1], "int64")

    def body(i, a, b):
        return [i + 1, paddle.add_n([paddle.scale(a, 0.5), y]), paddle.add_n([b, paddle.scale(a, 0.3)])]

    _, a, b = nn.while_loop(lambda i, *_: i < n, body, [number(0), paddle.assign(x), paddle.scale(x, 2.0)])
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        rows = r.n(1, 3)
        feeds.append({"x": r.f((rows, d)), "y": r.f((rows, d)), "n": np.array([r.n(1, 4)], "int64")})
    return feeds, [a, b]


def plain_recurrent(r):
    """StaticRNN whose state is its output."""
    ops, d = Ops(), r.n(2, 4)
    x, start, w = trained("x", [-1, -1, d]), trained("start", [-1, d]), trained("w", [-1, d])
    out = ops.var(shape=(-1, -1, d))
    inner = ops.program._create_block()
    step, before = ops.var(shape=(-1, d), name=x.name), ops.var(shape=(-1, d))
    row = ops.var(shape=(-1, d), name=out.name)
    ops.append("assign", {"X": [paddle.add_n([paddle.scale(before, 0.6), step, w])]}, {"Out": [row]})
    ops.program._rollback()
    ops.append("recurrent", {"inputs": [x], "initial_states": [start], "parameters": [w]},
               {"outputs": [out], "step_scopes": [ops.var(kind=VarType.STEP_SCOPES)]}, has_states=True,
               ex_states=[before.name], states=[row.name], sub_block=inner, reverse=bool(r.n(0, 1)), is_train=True)
    feeds = []
    for _ in range(FEEDS_PER_PROGRAM):
        steps, rows = r.n(1, 5), r.n(1, 3)
        feeds.append({"x": r.f((steps, rows, d)), "start": r.f((rows, d)), "w": r.f((rows, d))})
    return feeds, [out]


def growing(r):
    """Shapes that change from trip to trip."""
    d = r.n(2, 4)
    x, w, n = trained("x", [-1, d]), trained("w", [d, d]), feed_var("n", [1], "int64")

    def body(i, rows, sums):
        longer = paddle.concat([rows, paddle.tanh(paddle.matmul(rows[:1], w))], axis=0)
        kept = nn.cond(paddle.equal(i % 3, number(2)), lambda: longer[1:], lambda: longer * 0.9)
        return [i + 1, kept, paddle.tanh(sums + paddle.mean(kept, axis=0, keepdim=True))]

    rows = paddle.assign(x)
    rows.desc.set_shape([-1, d])
    _, rows, sums = nn.while_loop(lambda i, *_: i < n, body, [number(0), rows, x[:1] * 0.5])
    feeds = [{"x": r.f((r.n(2, 4), d)), "w": r.f((d, d), -1, 1), "n": np.array([r.n(0, 5)], "int64")}
             for _ in range(FEEDS_PER_PROGRAM)]
    return feeds, [rows, sums]


def steps_of_array(r):
    """A loop that reads an element a trip and writes one: gradients of arrays that are carried and that are not."""
    d = r.n(2, 4)
    x, w, n = trained("x", [-1, d]), trained("w", [d, d]), feed_var("n", [1], "int64")
    read, written = T.create_array("float32"), T.create_array("float32")
    for k in range(4):
        T.array_write(x * (0.5 + k), number(k), read)
    T.array_write(paddle.tanh(x), number(0), written)

    def body(i, state, out):
        state = paddle.tanh(paddle.matmul(state, w) + T.array_read(read, i))
        T.array_write(state * 1.5, i + 1, out)
        return [i + 1, state, out]

    _, state, written = nn.while_loop(lambda i, *_: i < n, body, [number(0), paddle.assign(x), written])
    feeds = [{"x": r.f((r.n(1, 3), d)), "w": r.f((d, d), -1, 1), "n": np.array([r.n(1, 4)], "int64")}
             for _ in range(FEEDS_PER_PROGRAM)]
    return feeds, [state, T.array_read(written, number(1)) + T.array_read(written, number(0))]


FAMILIES = {"recurrent_grad": [recurrent, plain_recurrent],
            "while_grad": [dynamic_rnn, growing, steps_of_array, plain_loop],
            "split_lod_tensor": [rows_by_mask], "shrink_rnn_memory_grad": [first_rows],
            "reorder_lod_tensor_by_rank_grad": [ranked]}
LINEAR = (plain_recurrent, plain_loop, first_rows, ranked)     # as random programs that move elements alone


# ----------------------------------------------------------------------------
# Cases
# ----------------------------------------------------------------------------
def add_gradients(results, feeds, linear):
    """Appends the backward part; what to fetch."""
    block = static.default_main_program().global_block()
    inputs = [block.var(name) for name in feeds[0] if not block.var(name).stop_gradient]
    if linear:
        target = paddle.scale(results[-1] if len(results) == 1 else paddle.concat(results, axis=0), 0.5)
        gradients = static.gradients([target], inputs)
        return [target] + results + [gradient for gradient in gradients if gradient is not None]
    loss = paddle.add_n([paddle.mean(paddle.tanh(result)) for result in results])
    static.append_backward(loss, parameter_list=[var.name for var in inputs])
    return [loss] + [block.var(var.name + "@GRAD") for var in inputs if block.has_var(var.name + "@GRAD")]


def build(seed, index):
    """Program `index`: (op it is about, program, feeds, fetched variables)."""
    r = Rng(seed, f"control_flow_grad/{index}")
    main = static.Program()
    g.reset_names()
    with paddle.utils.unique_name.guard(), static.program_guard(main, static.Program()):
        op, linear = None, index % 4 == 0
        if index % 4 == 3:
            flat = [(about, family) for about, families in FAMILIES.items() for family in families]
            op, family = flat[index // 4 % len(flat)]
            feeds, results = family(r)
            linear = family in LINEAR
        else:
            feeds, results = random_program(r, linear)
        fetched = list({var.name: var for var in add_gradients(results, feeds, linear)}.values())
    block = main.global_block()
    used = {name for b in main.blocks for o in b.ops for name in o.input_arg_names + o.output_arg_names}
    feeds = [{name: value for name, value in feed.items() if name in used} for feed in feeds]
    types = {o.type for o in block.ops}
    op = op or next((t for t in ("while_grad", "conditional_block_grad") if t in types), "assign")
    return op, main, feeds, fetched


def check_gradients(main, feed, names):
    """Raises unless the gradients among the fetched `names` agree with a difference of the first one, the loss, in
    a random direction."""
    r = Rng(0, "direction")
    got = dict(zip(names, static.Executor().run(main, feed, names)))
    ways = {v: r.f(feed[v].shape, -1, 1) for v in feed if v + "@GRAD" in got}
    slope = sum(float((got[v + "@GRAD"].astype("float64") * way).sum()) for v, way in ways.items())
    step = 5e-3
    losses = [float(static.Executor().run(main, {v: a + sign * step * ways[v] if v in ways else a for v, a in feed.items()},
                                          names[:1])[0].sum()) for sign in (1, -1)]
    difference = (losses[0] - losses[1]) / (2 * step)
    if abs(difference - slope) > 1e-3 + 2e-2 * max(abs(slope), abs(difference)):
        raise g.Unsupported(f"the gradients give a slope of {slope:.4f}, differences one of {difference:.4f}")


def make_program(out, seed, index):
    op, main, feeds, fetched = build(seed, index)
    if op in ("while_grad", "conditional_block_grad") and not any(isinstance(v, LoD) for v in feeds[0].values()):
        for feed in feeds:
            check_gradients(main, feed, [var.name for var in fetched])
    forward.build = lambda *_: (op, main, feeds, fetched)
    write_program(out, seed, index)


write_program = forward.make_program


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--count", type=int, default=60, help="programs")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--first", type=int, default=0, help="number of the first program")
    args = ap.parse_args()
    forward.make_program = make_program
    made = sum(forward.make_in_child(args.out, args.seed, i) for i in range(args.first, args.first + args.count))
    print(f"{made} of {args.count} programs in {args.out}, {FEEDS_PER_PROGRAM} cases each")


if __name__ == "__main__":
    sys.exit(main())
