#!/usr/bin/env python3
"""make_array_cases.py - golden cases of arrays and rank tables, of kernels/control_flow.

    python make_array_cases.py --out array && ./pack.sh array

Same needs and same format as make_goldens.py; array.tar.xz beside this file is the result. A case is a
program of several ops, since arrays and rank tables can be neither fed nor fetched. It is filed under the
op that it is about. `--seed` draws other lengths and values of the same cases.
"""
import argparse
import sys

import make_goldens as g
import numpy as np
from case_program import cases_of, make_all, register
from make_goldens import Builder, LoD, core

CASES = []   # (op, function Rng -> Programs)
cases = register(CASES)
DTYPES = ("float32", "float64", "int32", "int64", "bool")
KINDS = {"array": core.VarDesc.VarType.LOD_TENSOR_ARRAY, "table": core.VarDesc.VarType.LOD_RANK_TABLE}


class Program:
    """A case: feeds, then ops, each a method call, then fetches."""

    def __init__(self, name):
        self.name, self.op, self.b, self.types = name, None, Builder(), []

    def feed(self, name, value):
        self.b.feed(name, value)
        return name

    def var(self, name, kind="tensor"):
        if not self.b.block.has_var(name):
            if kind == "tensor":
                self.b.output(name)
            elif kind == "array":
                self.b.block.create_var(name=name, type=KINDS[kind], dtype="float32")
            else:
                self.b.block.create_var(name=name, type=KINDS[kind])
        return name

    def call(self, op, ins, outs, kind="tensor", **attrs):
        """Appends an op; `outs` maps slots to names. Returns the names."""
        for name in outs.values():
            self.var(name, kind)
        self.b.block.append_op(type=op, inputs={k: [v] for k, v in ins.items()}, outputs={k: [v] for k, v in outs.items()},
                               attrs=attrs)
        self.types.append(op)
        return list(outs.values())

    def index(self, value):
        name = f"i{value}"
        if not self.b.block.has_var(name):
            self.call("fill_constant", {}, {"Out": name}, shape=[1], dtype=g.INT64, value=float(value))
        return name

    def write(self, x, i, array):
        return self.call("write_to_array", {"X": x, "I": self.index(i)}, {"Out": array}, "array")[0]

    def read(self, array, i, out):
        return self.call("read_from_array", {"X": array, "I": self.index(i)}, {"Out": out})[0]

    def length(self, array, out="length"):
        return self.call("lod_array_length", {"X": array}, {"Out": out})[0]

    def table(self, x, level=0, out="table"):
        return self.call("lod_rank_table", {"X": x}, {"Out": out}, "table", level=level)[0]

    def fetch(self, *names):
        self.b.fetch.extend(names)
        return self


def make_case(out_dir, p):
    blob, results = p.b.run()
    fetches = {n: r for n, r in zip(p.b.fetch, results)}
    arrays = [a for a, _ in results] + [g.array_of(v) for v in p.b.feeds.values()]
    rtol, atol = g.tolerance(p.op, arrays)
    slots = {"inputs": {"feeds": list(p.b.feeds)}, "outputs": {"fetches": list(fetches)}}
    g.write_case(f"{out_dir}/{p.op}/{p.name}", 0, p.op, p.name, blob, p.b.feeds, fetches, slots, {}, p.types, rtol, atol, "")


# ----------------------------------------------------------------------------
# Sequences
# ----------------------------------------------------------------------------
def offsets(lengths):
    return [int(x) for x in np.concatenate([[0], np.cumsum(lengths)])]


def values(r, shape, dtype="float32"):
    if dtype == "bool":
        return r.i(shape, 0, 1).astype(bool)
    return r.f(shape, dtype=dtype) if dtype.startswith("float") else r.i(shape, -9, 9, dtype)


def seq(r, *levels, tail=(), dtype="float32"):
    """Random values with the LoD of these lengths, the coarsest level first."""
    return LoD(values(r, (sum(levels[-1]), *tail), dtype), [offsets(level) for level in levels])


def some_lengths(r, count, least=0, most=5):
    drawn = [r.n(least, most) for _ in range(count)]
    drawn[r.n(0, count - 1)] = most
    return drawn


def mask(*bits):
    return np.array(bits, bool).reshape(-1, 1)


# ----------------------------------------------------------------------------
# Arrays
# ----------------------------------------------------------------------------
@cases("write_to_array")
def _write(r, op):
    for dtype in DTYPES:
        p = Program(f"grows_{dtype}")
        xs = [p.feed(f"x{i}", values(r, (r.n(1, 4), 3), dtype)) for i in range(3)]
        for i, x in enumerate(xs):
            p.write(x, i, "array")
        outs = [p.read("array", i, f"out{i}") for i in (2, 0, 1)]
        yield p.fetch(*outs, p.length("array"))
    p = Program("beyond_the_end")
    p.write(p.feed("x", values(r, (2, 2))), 5, "array")
    yield p.fetch(p.read("array", 5, "out"), p.length("array"))
    p = Program("overwrites")
    x, y = p.feed("x", values(r, (2, 3))), p.feed("y", values(r, (4, 1)))
    p.write(x, 0, "array")
    p.write(x, 1, "array")
    p.write(y, 0, "array")
    yield p.fetch(p.read("array", 0, "out0"), p.read("array", 1, "out1"), p.length("array"))
    p = Program("keeps_lod")
    p.write(p.feed("x", seq(r, [2, 0, 1], tail=(2,))), 0, "array")
    p.write(p.feed("y", seq(r, [1, 2], [1, 3, 2])), 1, "array")
    yield p.fetch(p.read("array", 0, "out0"), p.read("array", 1, "out1"))
    p = Program("source_changes_afterwards")
    x = p.feed("x", values(r, (3, 4)))
    p.call("scale", {"X": x}, {"Out": "y"}, scale=2.0)
    p.write("y", 0, "array")
    p.call("scale", {"X": "y"}, {"Out": "y"}, scale=3.0)
    p.write("y", 1, "array")
    p.call("relu", {"X": "y"}, {"Out": "z"})
    yield p.fetch(p.read("array", 0, "out0"), p.read("array", 1, "out1"), "z")
    p = Program("result_changes_afterwards")
    x = p.feed("x", values(r, (3, 4)))
    p.call("scale", {"X": x}, {"Out": "y"}, scale=2.0)
    p.write("y", 0, "array")
    p.read("array", 0, "a")
    p.call("relu", {"X": "a"}, {"Out": "b"})
    p.call("scale", {"X": "a"}, {"Out": "a"}, scale=-1.0)
    yield p.fetch("a", "b", p.read("array", 0, "out"))
    p = Program("counter")
    i = p.call("fill_constant", {}, {"Out": "i"}, shape=[1], dtype=g.INT64, value=0.0)[0]
    x = p.feed("x", values(r, (2,)))
    for _ in range(3):
        p.call("write_to_array", {"X": x, "I": i}, {"Out": "array"}, "array")
        p.call("write_to_array", {"X": i, "I": i}, {"Out": "numbers"}, "array")
        p.call("increment", {"X": i}, {"Out": i}, step=1.0)
        p.call("scale", {"X": x}, {"Out": x}, scale=0.5)
    yield p.fetch(*[p.read("array", k, f"out{k}") for k in range(3)], *[p.read("numbers", k, f"n{k}") for k in range(3)], i)
    p = Program("scalar")
    p.write(p.feed("x", values(r, ())), 0, "array")
    yield p.fetch(p.read("array", 0, "out"))


@cases("read_from_array")
def _read(r, op):
    p = Program("beyond_the_end_keeps_out")
    x, y = p.feed("x", values(r, (2, 3))), p.feed("y", values(r, (4,)))
    p.write(x, 0, "array")
    p.call("assign", {"X": y}, {"Out": "out"})
    yield p.fetch(p.read("array", 3, "out"))
    p = Program("into_a_variable_in_use")
    x, y = p.feed("x", values(r, (2, 3))), p.feed("y", values(r, (4, 3)))
    p.write(x, 0, "array")
    p.call("scale", {"X": y}, {"Out": "out"}, scale=2.0)
    p.call("relu", {"X": "out"}, {"Out": "before"})
    yield p.fetch(p.read("array", 0, "out"), "before")
    for name, at in (("gradient", 0), ("gradient_beyond_the_end", 2)):
        p = Program(name)
        x, y = p.feed("x", values(r, (2, 3))), p.feed("y", seq(r, [1, 2], tail=(2,)))
        p.write(x, 0, "array")
        p.call("read_from_array", {"X": "array", "I": p.index(at), "X_W": y}, {"Out": "out"})
        yield p.fetch("out")


@cases("lod_array_length")
def _length(r, op):
    for count in (1, 4):
        p = Program(f"of{count}")
        x = p.feed("x", values(r, (2,)))
        for i in range(count):
            p.write(x, i, "array")
        yield p.fetch(p.length("array"))
    p = Program("grows")
    x = p.feed("x", values(r, (2,)))
    outs = []
    for i in (0, 1, 4, 2):
        p.write(x, i, "array")
        outs.append(p.length("array", f"length{i}"))
    yield p.fetch(*outs)


@cases("assign")
def _assign(r, op):
    p = Program("array")
    xs = [p.feed(f"x{i}", seq(r, [1, r.n(0, 3)], tail=(2,))) for i in range(2)]
    for i, x in enumerate(xs):
        p.write(x, i, "array")
    p.call("assign", {"X": "array"}, {"Out": "copy"}, "array")
    p.write(xs[0], 1, "array")
    p.write(xs[0], 2, "copy")
    yield p.fetch(p.read("copy", 0, "out0"), p.read("copy", 1, "out1"), p.read("array", 1, "changed"), p.length("copy"), p.length("array", "old"))
    p = Program("over_a_longer_array")
    x, y = p.feed("x", values(r, (2,))), p.feed("y", values(r, (3,)))
    for i in range(3):
        p.write(x, i, "long")
    p.write(y, 0, "array")
    p.call("assign", {"X": "array"}, {"Out": "long"}, "array")
    yield p.fetch(p.read("long", 0, "out"), p.length("long"))


# ----------------------------------------------------------------------------
# Rank tables
# ----------------------------------------------------------------------------
SHAPES = {"one_level": lambda r: [some_lengths(r, 5)], "no_empty_sequence": lambda r: [some_lengths(r, 4, least=1)],
          "ties": lambda r: [[2, 3, 2, 3, 2]], "one_sequence": lambda r: [[4]],
          "two_levels": lambda r: [[2, 1, 3], some_lengths(r, 6)],
          "two_levels_empty": lambda r: [[2, 0, 1], [1, 0, 3]],
          "three_levels": lambda r: [[1, 2], [2, 1, 2], some_lengths(r, 5, least=1)]}


def ranked(r, level_cases=True):
    """(name, lengths by level, level to rank)."""
    for name, make in SHAPES.items():
        levels = make(r)
        for level in range(len(levels) if level_cases else 1):
            yield f"{name}_at{level}" if len(levels) > 1 else name, levels, level


@cases("max_sequence_len", "lod_rank_table")
def _rank(r, op):
    for name, levels, level in ranked(r):
        p = Program(name)
        p.table(p.feed("x", seq(r, *levels, tail=(2,))), level)
        yield p.fetch(*p.call("max_sequence_len", {"RankTable": "table"}, {"Out": "length"}))


@cases("lod_tensor_to_array")
def _to_array(r, op):
    for name, levels, level in ranked(r):
        p = Program(name)
        x = p.feed("x", seq(r, *levels, tail=(r.n(1, 3), 2)))
        p.table(x, level)
        p.call("lod_tensor_to_array", {"X": x, "RankTable": "table"}, {"Out": "array"}, "array")
        steps = max(levels[level])
        yield p.fetch(*[p.read("array", t, f"step{t}") for t in range(steps)], p.length("array"))
    for dtype in DTYPES:
        p = Program(f"of_{dtype}")
        x = p.feed("x", seq(r, [2, 1, 3], tail=(3,), dtype=dtype))
        p.table(x)
        p.call("lod_tensor_to_array", {"X": x, "RankTable": "table"}, {"Out": "array"}, "array")
        yield p.fetch(*[p.read("array", t, f"step{t}") for t in range(3)])
    p = Program("table_of_another_tensor")
    x, y = p.feed("x", seq(r, [1, 3, 2], tail=(2,))), p.feed("y", seq(r, [1, 3, 2], tail=(1,)))
    p.table(y)
    p.call("lod_tensor_to_array", {"X": x, "RankTable": "table"}, {"Out": "array"}, "array")
    yield p.fetch(*[p.read("array", t, f"step{t}") for t in range(3)], p.length("array"))


@cases("array_to_lod_tensor")
def _to_tensor(r, op):
    for name, levels, level in ranked(r):
        p = Program(name)
        x = p.feed("x", seq(r, *levels, tail=(r.n(1, 3),)))
        p.table(x, level)
        p.call("lod_tensor_to_array", {"X": x, "RankTable": "table"}, {"Out": "array"}, "array")
        yield p.fetch(*p.call("array_to_lod_tensor", {"X": "array", "RankTable": "table"}, {"Out": "out"}))
    for dtype in DTYPES[:4]:
        p = Program(f"other_elements_{dtype}")
        x = p.feed("x", seq(r, [2, 1, 3]))
        p.table(x)
        for t, rows in enumerate((3, 2, 1)):
            p.write(p.feed(f"e{t}", values(r, (rows, 4), dtype)), t, "array")
        yield p.fetch(*p.call("array_to_lod_tensor", {"X": "array", "RankTable": "table"}, {"Out": "out"}))


@cases("shrink_rnn_memory")
def _shrink(r, op):
    for step in (0, 1, 2, 3):
        p = Program(f"step{step}")
        p.table(p.feed("x", seq(r, [1, 4, 2, 4])))
        memory = p.feed("memory", values(r, (4, 3)))
        yield p.fetch(*p.call("shrink_rnn_memory", {"X": memory, "RankTable": "table", "I": p.index(step)}, {"Out": "out"}))
    for name, levels in (("sequences", [[2, 0, 3]]), ("two_levels", [[1, 2, 1], [2, 1, 3, 2]])):
        for step in (0, 1):
            p = Program(f"{name}_step{step}")
            p.table(p.feed("x", seq(r, [1, 2, 3])))
            memory = p.feed("memory", seq(r, *levels, tail=(2,)))
            yield p.fetch(*p.call("shrink_rnn_memory", {"X": memory, "RankTable": "table", "I": p.index(step)}, {"Out": "out"}))
    p = Program("twice")
    p.table(p.feed("x", seq(r, [3, 1, 2])))
    memory = p.feed("memory", values(r, (3, 3)))
    p.call("scale", {"X": memory}, {"Out": "h"}, scale=2.0)
    outs = []
    for step in range(3):
        p.call("shrink_rnn_memory", {"X": "h", "RankTable": "table", "I": p.index(step)}, {"Out": f"out{step}"})
        p.call("scale", {"X": f"out{step}"}, {"Out": "h"}, scale=-1.5)
        outs.append(f"out{step}")
    yield p.fetch(*outs, "h")


@cases("reorder_lod_tensor_by_rank")
def _reorder(r, op):
    for name, levels, _ in ranked(r, level_cases=False):
        if name == "two_levels_empty_at0":     # Paddle cannot copy a sequence without rows
            continue
        p = Program(name)
        p.table(p.feed("x", seq(r, some_lengths(r, len(levels[0])))))
        y = p.feed("y", seq(r, *levels, tail=(2,)))
        yield p.fetch(*p.call("reorder_lod_tensor_by_rank", {"X": y, "RankTable": "table"}, {"Out": "out"}))
    for dtype in DTYPES:
        p = Program(f"rows_{dtype}")
        p.table(p.feed("x", seq(r, some_lengths(r, 5))))
        y = p.feed("y", values(r, (5, 2, 3), dtype))
        yield p.fetch(*p.call("reorder_lod_tensor_by_rank", {"X": y, "RankTable": "table"}, {"Out": "out"}))


# ----------------------------------------------------------------------------
# Branches by mask
# ----------------------------------------------------------------------------
def split_inputs(r):
    """(name, tensor, mask, level)."""
    for dtype in DTYPES:
        yield f"rows_{dtype}", values(r, (4, 3), dtype), mask(1, 0, 0, 1), 0
    yield "all_true", values(r, (3, 2)), mask(1, 1, 1), 0
    yield "all_false", values(r, (3, 2)), mask(0, 0, 0), 0
    yield "sequences", seq(r, [2, 1, 3], tail=(2,)), mask(0, 1, 0), 0
    yield "rows_of_sequences", seq(r, [2, 2], tail=(2,)), mask(0, 1, 1, 0), 1
    yield "two_levels", seq(r, [2, 1, 1], some_lengths(r, 4, least=1)), mask(1, 0, 1), 0
    yield "two_levels_at1", seq(r, [2, 2], some_lengths(r, 4, least=1)), mask(1, 0, 1, 0), 1


@cases("split_lod_tensor")
def _split(r, op):
    for name, x, m, level in list(split_inputs(r)) + [("with_empty_sequences", seq(r, [0, 2, 0, 1]), mask(0, 1, 1, 0), 0)]:
        p = Program(name)
        ins = {"X": p.feed("x", x), "Mask": p.feed("mask", m)}
        keep = [n for n, kept in (("t", m.any()), ("f", not m.all())) if kept]
        p.call(op, ins, {"OutTrue": "t", "OutFalse": "f"}, level=level)
        yield p.fetch(*keep)


@cases("merge_lod_tensor", "merge_lod_tensor_infer")
def _merge(r, op):
    for name, x, m, level in split_inputs(r):
        p = Program(name)
        p.feed("x", x), p.feed("mask", m)
        p.call("split_lod_tensor", {"X": "x", "Mask": "mask"}, {"OutTrue": "t", "OutFalse": "f"}, level=level)
        for branch in "tf":
            p.call("assign", {"X": branch}, {"Out": f"{branch}_done"})
        yield p.fetch(*p.call(op, {"X": "x", "Mask": "mask", "InTrue": "t_done", "InFalse": "f_done"}, {"Out": "out"}, level=level))
    p = Program("other_rows")
    p.feed("x", seq(r, [1, 2, 1], tail=(3,)))
    p.feed("mask", mask(0, 1, 0))
    p.feed("t", seq(r, [4], tail=(2,), dtype="float32"))
    p.feed("f", seq(r, [1, 2], tail=(2,), dtype="float32"))
    yield p.fetch(*p.call(op, {"X": "x", "Mask": "mask", "InTrue": "t", "InFalse": "f"}, {"Out": "out"}, level=0))


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    ap.add_argument("--seed", default="array")
    args = ap.parse_args()
    wanted = set(filter(None, args.ops.split(",")))
    make_all(args.out, cases_of(CASES, args.seed, wanted), make_case)


if __name__ == "__main__":
    sys.exit(main())
