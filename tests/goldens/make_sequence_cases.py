#!/usr/bin/env python3
"""make_sequence_cases.py - golden cases of kernels/sequence.

    python make_sequence_cases.py --out sequence && ./pack.sh sequence

Same needs and same format as make_goldens.py; sequence.tar.xz beside this file is the result. Every
kernel in every dtype, LoD of one to three levels, empty sequences, tensors without rows, windows and
padding beyond a sequence. `--seed` draws other lengths and values of the same cases.
"""
import argparse
import sys

import make_goldens as g
import numpy as np
from case_program import cases_of, make_all, register
from make_goldens import Case, LoD

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
FLOATS = ("float32", "float64")
INTS = ("int32", "int64")
MOVED = FLOATS + INTS     # of ops that only move rows


# ----------------------------------------------------------------------------
# Sequences
# ----------------------------------------------------------------------------
def offsets(lengths):
    return [int(x) for x in np.concatenate([[0], np.cumsum(lengths)])]


def lengths(r, count, most=5):
    """Random lengths; one of them, at least, is `most` and one is 0 where there are three."""
    drawn = [r.n(0, most) for _ in range(count)]
    drawn[r.n(0, count - 1)] = most
    if count > 2 and 0 not in drawn:
        drawn[drawn.index(min(drawn))] = 0
    return drawn


def values(r, shape, dtype):
    return r.f(shape, dtype=dtype) if dtype in FLOATS else r.i(shape, 0, 9, dtype)


def seq(r, *levels, tail=(), dtype="float32"):
    """Random values with the LoD of these lengths, the coarsest level first."""
    return LoD(values(r, (sum(levels[-1]), *tail), dtype), [offsets(level) for level in levels])


def group(r, count):
    """Lengths that divide `count` parts into groups, an empty one among them."""
    first = r.n(0, count)
    return [first, 0, count - first]


def one_to_three_levels(r, count=4, most=4):
    """Lengths by level."""
    low = lengths(r, count, most)
    middle = group(r, count)
    yield "one_level", [low]
    yield "two_levels", [middle, low]
    yield "three_levels", [group(r, len(middle)), middle, low]


# ----------------------------------------------------------------------------
# Cases
# ----------------------------------------------------------------------------
@cases("sequence_conv")
def _sequence_conv(r, op):
    def one(name, x, size, start, width, padded=False):    # float32: Paddle's float64 kernel raises
        ins = {"X": x, "Filter": r.f((size * x.array.shape[1], width))}
        if padded:
            rows = max(0, -start) + max(0, start + size - 1)
            ins["PaddingData"] = r.f((rows, x.array.shape[1]))
        return Case(name, ins, "Out", {"contextLength": size, "contextStart": start, "contextStride": 1, "paddingTrainable": padded})
    yield one("around", seq(r, lengths(r, 5, 6), tail=(4,)), 3, -1, 5)
    yield one("padded", seq(r, lengths(r, 5, 6), tail=(3,)), 4, -2, 6, True)
    for start in (-5, -4, -2, 0, 1, 3, 7):
        for padded in (False, True):
            yield one(f"start{start}_padded{int(padded)}", seq(r, lengths(r, 4, 6), tail=(r.n(1, 4),)), 4, start, r.n(1, 9), padded)
    yield one("window_of_one", seq(r, lengths(r, 4), tail=(3,)), 1, 0, 4)
    yield one("window_of_one_before", seq(r, lengths(r, 4), tail=(3,)), 1, -2, 4)
    yield one("longer_than_sequences", seq(r, [1, 2, 0, 3], tail=(2,)), 9, -4, 3, True)
    yield one("one_sequence", seq(r, [17], tail=(8,)), 3, -1, 40)
    yield one("many_rows", seq(r, lengths(r, 40, 20), tail=(5,)), 3, -1, 33)
    yield one("all_empty", seq(r, [0, 0], tail=(3,)), 3, -1, 4)


@cases("sequence_pool")
def _sequence_pool(r, op):
    kinds = ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST")

    def one(name, x, kind, pad_value=0.0, is_test=False):
        index = ("MaxIndex",) if is_test or kind != "MAX" else ()
        return Case(name, {"X": x}, "Out,MaxIndex", {"pooltype": kind, "pad_value": pad_value, "is_test": is_test}, nofetch=index)
    for kind in kinds:
        for dtype in FLOATS:
            yield one(f"{kind.lower()}_{dtype}", seq(r, lengths(r, 5), tail=(r.n(1, 6),), dtype=dtype), kind, pad_value=-1.5)
        yield one(f"{kind.lower()}_test", seq(r, lengths(r, 4), tail=(3,)), kind, is_test=True)
        yield one(f"{kind.lower()}_rank3", seq(r, lengths(r, 4), tail=(2, 3)), kind)
        yield one(f"{kind.lower()}_wide", seq(r, lengths(r, 3, 7), tail=(r.n(60, 200),)), kind)
        yield one(f"{kind.lower()}_two_levels", seq(r, group(r, 4), lengths(r, 4), tail=(3,)), kind)
        yield one(f"{kind.lower()}_one_column", seq(r, lengths(r, 6, 9), tail=(1,)), kind)
    yield one("max_ties", LoD(r.i((9, 4), 0, 2, "float32"), [[0, 4, 4, 9]]), "MAX")
    nan = r.f((6, 3))
    nan[0, 0] = nan[3, 1] = np.nan
    nan[1:4, 2] = -np.inf
    yield one("max_not_a_number", LoD(nan, [[0, 3, 6]]), "MAX")
    yield one("sum_long", seq(r, [700, 0, 33], tail=(5,)), "SUM")


@cases("sequence_softmax")
def _sequence_softmax(r, op):
    for dtype in FLOATS:
        for name, levels in one_to_three_levels(r):
            yield Case(f"{name}_{dtype}", {"X": seq(r, *levels, tail=(1,), dtype=dtype)}, "Out")
        yield Case(f"vector_{dtype}", {"X": seq(r, lengths(r, 4), dtype=dtype)}, "Out")
        yield Case(f"long_{dtype}", {"X": seq(r, [1, 150, 0, 37], dtype=dtype)}, "Out")


@cases("sequence_expand")
def _sequence_expand(r, op):
    def one(name, x, y, ref_level=-1):
        return Case(name, {"X": x, "Y": y}, "Out", {"ref_level": ref_level})
    for dtype in MOVED:
        yield one(f"rows_{dtype}", values(r, (4, 3), dtype), seq(r, lengths(r, 4), tail=(1,)))
        yield one(f"sequences_{dtype}", seq(r, lengths(r, 4), tail=(2,), dtype=dtype), seq(r, lengths(r, 4, 3)))
    for level in (-1, 0, 1):
        groups, low = group(r, 4), lengths(r, 4)
        count = len(groups) if level == 0 else 4
        yield one(f"rows_by_level{level}", r.f((count, 2)), seq(r, groups, low, tail=(1,)), level)
        yield one(f"sequences_by_level{level}", seq(r, lengths(r, count, 3), tail=(1,)), seq(r, groups, low, tail=(1,)), level)
    yield one("three_levels", r.f((3, 2)), seq(r, group(r, 3), [2, 0, 1], lengths(r, 3)), 1)
    yield one("rank3", seq(r, lengths(r, 3), tail=(2, 2)), seq(r, lengths(r, 3)))
    yield one("nothing_left", seq(r, [2, 1], tail=(2,)), seq(r, [0, 0], tail=(1,)))


@cases("sequence_expand_as")
def _sequence_expand_as(r, op):
    for dtype in MOVED:
        yield Case(dtype, {"X": values(r, (4, 3), dtype), "Y": seq(r, lengths(r, 4), tail=(1,))}, "Out")
    yield Case("rank3", {"X": r.f((3, 2, 2)), "Y": seq(r, lengths(r, 3))}, "Out")
    yield Case("other_dtype", {"X": r.f((3, 2)), "Y": seq(r, lengths(r, 3), dtype="int64")}, "Out")
    yield Case("with_lod", {"X": seq(r, [2, 2], tail=(2,)), "Y": seq(r, lengths(r, 4))}, "Out")


@cases("sequence_concat")
def _sequence_concat(r, op):
    for dtype in MOVED:
        yield Case(dtype, {"X": [seq(r, lengths(r, 4), tail=(3,), dtype=dtype) for _ in range(3)]}, "Out")
    yield Case("rank3", {"X": [seq(r, lengths(r, 3), tail=(2, 2)) for _ in range(2)]}, "Out")
    yield Case("empty_together", {"X": [seq(r, [2, 0, 1], tail=(2,)), seq(r, [1, 0, 3], tail=(2,))]}, "Out")


@cases("sequence_slice")
def _sequence_slice(r, op):
    def one(name, lens, dtype="float32", tail=(3,), whole=False):
        start = [0 if whole else r.n(0, n) for n in lens]
        count = [n if whole else r.n(0, n - s) for n, s in zip(lens, start)]
        column = lambda v: np.array(v, "int64").reshape(-1, 1)
        return Case(name, {"X": seq(r, lens, tail=tail, dtype=dtype), "Offset": column(start), "Length": column(count)}, "Out")
    for dtype in MOVED:
        yield one(dtype, lengths(r, 5), dtype)
    yield one("rank3", lengths(r, 4), tail=(2, 2))
    yield one("whole", lengths(r, 4), whole=True)
    yield Case("nothing", {"X": seq(r, [3, 2], tail=(2,)), "Offset": np.array([[3], [0]]), "Length": np.array([[0], [0]])}, "Out")


@cases("sequence_pad")
def _sequence_pad(r, op):
    def one(name, x, pad, length=-1):
        return Case(name, {"X": x, "PadValue": pad}, "Out,Length", {"padded_length": length})
    for dtype in MOVED:
        x = seq(r, lengths(r, 4), tail=(3,), dtype=dtype)
        yield one(f"scalar_{dtype}", x, values(r, (1,), dtype))
        yield one(f"step_{dtype}", x, values(r, (3,), dtype), 7)
    yield one("exact_length", seq(r, lengths(r, 4, 5), tail=(1,)), r.f((1,)), 5)
    yield one("rank3", seq(r, lengths(r, 4), tail=(2, 2)), r.f((2, 2)))
    yield one("rank4", seq(r, lengths(r, 3), tail=(2, 1, 3)), r.f((1,)), 6)


@cases("sequence_unpad")
def _sequence_unpad(r, op):
    def one(name, shape, lens, dtype="float32"):
        return Case(name, {"X": values(r, shape, dtype), "Length": np.array(lens, "int64")}, "Out")
    for dtype in MOVED:
        yield one(f"matrix_{dtype}", (4, 5), lengths(r, 4), dtype)
        yield one(f"steps_{dtype}", (4, 5, 3), lengths(r, 4), dtype)
    yield one("rank4", (3, 4, 2, 2), lengths(r, 3, 4))
    yield one("whole", (3, 4, 2), [4, 4, 4])


@cases("sequence_mask")
def _sequence_mask(r, op):
    for dtype in MOVED:
        x = values(r, (3, 2), dtype) if dtype in INTS else r.f((3, 2), 0, 6, dtype)
        yield Case(f"longest_{dtype}", {"X": x}, "Y", {"maxlen": -1, "out_dtype": 3})
        yield Case(f"attribute_{dtype}", {"X": x}, "Y", {"maxlen": 4, "out_dtype": 5})
        yield Case(f"tensor_{dtype}", {"X": x, "MaxLenTensor": np.array([3], "int32")}, "Y", {"maxlen": 9, "out_dtype": 2})
    for name, code in g.DTYPE_CODE.items():
        yield Case(f"to_{name}", {"X": r.i((5,), 0, 6)}, "Y", {"maxlen": 5, "out_dtype": code})
    yield Case("rank0", {"X": np.array(3, "int64")}, "Y", {"maxlen": -1, "out_dtype": 3})
    yield Case("negative", {"X": np.array([-2, 3, 0], "int64")}, "Y", {"maxlen": -1, "out_dtype": 3})
    yield Case("all_zero", {"X": np.zeros([3], "int64")}, "Y", {"maxlen": -1, "out_dtype": 3})
    yield Case("wide", {"X": r.i((3,), 0, 99)}, "Y", {"maxlen": 99, "out_dtype": 5})


@cases("sequence_reverse")
def _sequence_reverse(r, op):
    for dtype in MOVED + ("uint8",):
        yield Case(dtype, {"X": seq(r, lengths(r, 5), tail=(3,), dtype=dtype)}, "Y")
    yield Case("rank3", {"X": seq(r, lengths(r, 4), tail=(2, 2))}, "Y")
    yield Case("one_sequence", {"X": seq(r, [7], tail=(1,), dtype="int64")}, "Y")


@cases("sequence_enumerate")
def _sequence_enumerate(r, op):
    for dtype in INTS:
        for size in (2, 3, 7):
            yield Case(f"window{size}_{dtype}", {"X": seq(r, lengths(r, 5), tail=(1,), dtype=dtype)}, "Out",
                       {"win_size": size, "pad_value": r.n(-3, 3)})


@cases("sequence_erase")
def _sequence_erase(r, op):
    def one(name, x, tokens):
        return Case(name, {"X": x}, "Out", {"tokens": tokens})
    for dtype in INTS:
        for name, levels in one_to_three_levels(r):
            yield one(f"{name}_{dtype}", seq(r, *levels, tail=(1,), dtype=dtype), [r.n(0, 4), r.n(5, 9), 77])
    yield one("nothing_erased", seq(r, lengths(r, 3), tail=(1,), dtype="int64"), [100])
    yield one("no_tokens", seq(r, lengths(r, 3), tail=(1,), dtype="int64"), [])
    yield one("many_tokens", seq(r, lengths(r, 5, 9), tail=(1,), dtype="int64"), [8, 1, 3, -5, 40, 41, 42, 43, 44, 45, 46, 3])
    yield one("whole_sequence", LoD(np.array([[2], [2], [5]], "int64"), [[0, 2, 3]]), [2])


@cases("sequence_reshape")
def _sequence_reshape(r, op):
    even = [2 * n for n in lengths(r, 4, 3)]
    for dtype in MOVED:
        yield Case(f"narrower_{dtype}", {"X": seq(r, lengths(r, 4), tail=(6,), dtype=dtype)}, "Out", {"new_dim": 2})
        yield Case(f"wider_{dtype}", {"X": seq(r, even, tail=(2,), dtype=dtype)}, "Out", {"new_dim": 4})
    yield Case("same", {"X": seq(r, lengths(r, 3), tail=(3,))}, "Out", {"new_dim": 3})
    yield Case("coprime", {"X": seq(r, [3, 0, 6], tail=(2,))}, "Out", {"new_dim": 3})


@cases("sequence_scatter")
def _sequence_scatter(r, op):
    for dtype in MOVED:
        lens = lengths(r, 4)
        ids = LoD(r.i((sum(lens), 1), 0, 5), [offsets(lens)])
        updates = LoD(values(r, (sum(lens), 1), dtype), [offsets(lens)])
        yield Case(dtype, {"X": values(r, (4, 6), dtype), "Ids": ids, "Updates": updates}, "Out")
    ids = LoD(np.array([[1], [1], [1], [0]]), [[0, 3, 4]])
    yield Case("repeated", {"X": r.f((2, 3)), "Ids": ids, "Updates": LoD(r.f((4, 1)), [[0, 3, 4]])}, "Out")
    yield Case("rows_left", {"X": r.f((5, 3)), "Ids": ids, "Updates": LoD(r.f((4, 1)), [[0, 3, 4]])}, "Out")
    yield Case("rank3", {"X": r.f((2, 2, 3)), "Ids": LoD(r.i((4, 1), 0, 5), [[0, 1, 4]]), "Updates": LoD(r.f((4, 1)), [[0, 1, 4]])}, "Out")


@cases("lod_reset")
def _lod_reset(r, op):
    x = lambda dtype="float32": seq(r, [2, 3, 1], tail=(2,), dtype=dtype)
    for dtype in MOVED:
        yield Case(f"attribute_{dtype}", {"X": x(dtype)}, "Out", {"target_lod": [0, 4, 4, 6]})
    yield Case("attribute_no_lod", {"X": r.f((6, 2))}, "Out", {"target_lod": [0, 1, 6]})
    yield Case("vector", {"X": r.f((6,))}, "Out", {"target_lod": [0, 1, 6]})
    yield Case("values", {"X": x(), "Y": np.array([0, 2, 6], "int32")}, "Out", {"target_lod": [0, 6]})
    yield Case("values_matrix", {"X": x(), "Y": np.array([[0, 0, 6]], "int32")}, "Out")
    yield Case("lod", {"X": x(), "Y": seq(r, [1, 0, 5], tail=(1,))}, "Out", {"target_lod": [0, 6]})
    yield Case("lod_other_dtype", {"X": x(), "Y": seq(r, [1, 0, 5], tail=(1,), dtype="int64")}, "Out")
    yield Case("two_levels", {"X": x(), "Y": seq(r, [2, 1], [1, 0, 5])}, "Out")
    yield Case("from_two_levels", {"X": seq(r, [2, 1], [1, 0, 5])}, "Out", {"target_lod": [0, 6]})
    yield Case("append", {"X": x()}, "Out", {"target_lod": [0, 1, 2, 3, 4, 5, 6], "append": True})
    yield Case("append_no_lod", {"X": r.f((6, 2))}, "Out", {"target_lod": [0, 1, 6], "append": True})
    yield Case("append_values", {"X": x(), "Y": np.arange(7, dtype="int32")}, "Out", {"append": True})
    yield Case("append_lod", {"X": x(), "Y": seq(r, [1] * 6)}, "Out", {"append": True})


@cases("row_conv")
def _row_conv(r, op):
    # Without empty sequences, on which Paddle's kernel raises.
    yield Case("sequences", {"X": seq(r, [r.n(1, 6) for _ in range(5)], tail=(3,)), "Filter": r.f((3, 3))}, "Out")
    yield Case("batch", {"X": r.f((2, 5, 4)), "Filter": r.f((2, 4))}, "Out")
    yield Case("longer_than_sequences", {"X": seq(r, [2, 4, 1], tail=(2,)), "Filter": r.f((6, 2))}, "Out")
    yield Case("wide", {"X": seq(r, [9, r.n(1, 9)], tail=(70,)), "Filter": r.f((4, 70))}, "Out")


@cases("im2sequence")
def _im2sequence(r, op):
    def one(name, x, sizes, kernels=(2, 2), strides=(1, 1), paddings=(0, 0, 0, 0), out_stride=(1, 1)):
        return Case(name, {"X": x, "Y": np.array(sizes, "float32")}, "Out",
                    {"kernels": list(kernels), "strides": list(strides), "paddings": list(paddings), "out_stride": list(out_stride)})
    yield one("real_sizes", r.f((3, 2, 6, 7)), [[6, 7], [r.n(2, 6), r.n(2, 7)], [3, 2]])
    yield one("real_sizes_strided", r.f((2, 1, 6, 7)), [[r.n(4, 6), 7], [6, r.n(3, 7)]], strides=(2, 3), paddings=(1, 0, 1, 2))
    yield one("out_stride", r.f((2, 2, 4, 5)), [[8, 15], [5, 10]], out_stride=(2, 3))
    yield one("out_stride_rounds_up", r.f((2, 1, 4, 5)), [[7, 13], [5, 9]], out_stride=(2, 3))
    yield one("one_image", r.f((1, 2, 4, 5)), [[2, 2]])
    yield one("fraction", r.f((2, 1, 4, 5)), [[3.9, 4.2], [4, 5]])
    yield one("beyond_the_image", r.f((2, 1, 3, 4)), [[4, 5], [3, 4]])
    yield one("wide", r.f((2, 2, 4, 29)), [[4, 29], [3, r.n(12, 28)]], kernels=(3, 2), paddings=(1, 2, 0, 1))
    yield one("wide_strided", r.f((2, 1, 3, 40)), [[3, 40], [2, r.n(25, 39)]], kernels=(2, 3), strides=(1, 2), paddings=(0, 1, 1, 2))


@cases("is_empty")
def _is_empty(r, op):
    for dtype in MOVED:
        yield Case(dtype, {"X": values(r, (2, 3), dtype)}, "Out")
        yield Case(f"empty_{dtype}", {"X": np.zeros((0, 3), dtype)}, "Out")
    yield Case("rank0", {"X": np.array(2.0, "float32")}, "Out")
    yield Case("sequences", {"X": seq(r, [0, 0], tail=(2,))}, "Out")


@cases("edit_distance")
def _edit_distance(r, op):
    def strings(*lens):
        return LoD(r.i((sum(lens), 1), 0, 3), [offsets(lens)])
    for normalized in (False, True):
        attrs = {"normalized": normalized}
        yield Case(f"sequences_normalized{int(normalized)}",
                   {"Hyps": strings(*lengths(r, 5, 6)), "Refs": strings(*[r.n(1, 6) for _ in range(5)])}, "Out,SequenceNum", attrs)
        yield Case(f"padded_normalized{int(normalized)}",
                   {"Hyps": r.i((4, 6), 0, 3), "Refs": r.i((4, 5), 0, 3), "HypsLength": np.array(lengths(r, 4, 6), "int64"),
                    "RefsLength": np.array([r.n(1, 5) for _ in range(4)], "int64")}, "Out,SequenceNum", attrs)
    yield Case("empty_references", {"Hyps": strings(3, 0, 2), "Refs": strings(0, 0, 4)}, "Out,SequenceNum", {"normalized": False})
    yield Case("equal", {"Hyps": LoD(np.array([[1], [2], [3]]), [[0, 3]]), "Refs": LoD(np.array([[1], [2], [3]]), [[0, 3]])},
               "Out,SequenceNum", {"normalized": True})
    yield Case("long", {"Hyps": strings(90, 70), "Refs": strings(64, 100)}, "Out,SequenceNum", {"normalized": True})


@cases("ctc_align")
def _ctc_align(r, op):
    for dtype in INTS:
        for merge in (False, True):
            attrs = {"blank": r.n(0, 2), "merge_repeated": merge, "padding_value": r.n(0, 9)}
            lens = lengths(r, 4, 7)
            x = LoD(r.i((sum(lens), 1), 0, 3, dtype), [offsets(lens)])
            yield Case(f"sequences_merge{int(merge)}_{dtype}", {"Input": x}, "Output", attrs)
            yield Case(f"padded_merge{int(merge)}_{dtype}", {"Input": r.i((4, 7), 0, 3, dtype), "InputLength": np.array(lens, dtype).reshape(-1, 1)},
                       "Output,OutputLength", attrs)
    yield Case("only_blanks", {"Input": LoD(np.full((4, 1), 5, "int64"), [[0, 3, 4]])}, "Output", {"blank": 5, "merge_repeated": True})
    groups, low = [2, 0, 2], lengths(r, 4)
    yield Case("two_levels", {"Input": LoD(r.i((sum(low), 1), 0, 3), [offsets(groups), offsets(low)])}, "Output", {"blank": 0, "merge_repeated": True})


@cases("hash")
def _hash(r, op):
    for dtype in INTS:
        big = 2**31 - 1 if dtype == "int32" else 2**62
        for width in (1, 2, 3, 4, 5, 7, 9, 13):
            x = LoD(r.i((6, width), -big, big, dtype), [[0, 2, 2, 6]])
            yield Case(f"width{width}_{dtype}", {"X": x}, "Out", {"num_hash": r.n(1, 4), "mod_by": r.n(2, 2**30)})
    yield Case("defaults", {"X": r.i((4, 2), 0, 99)}, "Out")
    yield Case("large_modulus", {"X": r.i((4, 2), 0, 99)}, "Out", {"num_hash": 2, "mod_by": 2**62 + 11})


@cases("add_position_encoding")
def _add_position_encoding(r, op):
    for dtype in FLOATS:
        attrs = {"alpha": r.scalar(0.5, 2), "beta": r.scalar(0, 2)}
        yield Case(f"batch_{dtype}", {"X": r.f((2, 5, 8), dtype=dtype)}, "Out", attrs)
        yield Case(f"sequences_{dtype}", {"X": seq(r, lengths(r, 4, 9), tail=(6,), dtype=dtype)}, "Out", attrs)
        yield Case(f"two_columns_{dtype}", {"X": r.f((2, 3, 2), dtype=dtype)}, "Out", {"alpha": 1.0, "beta": 1.0})
    yield Case("long", {"X": r.f((1, 300, 4))}, "Out", {"alpha": 0.0, "beta": 1.0})


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    ap.add_argument("--seed", default="sequence")
    args = ap.parse_args()
    wanted = set(filter(None, args.ops.split(",")))
    make_all(args.out, cases_of(CASES, args.seed, wanted), lambda out, case: g.make_forward_case(out, 0, case))


if __name__ == "__main__":
    sys.exit(main())
