#!/usr/bin/env python3
"""make_tensor_cases.py - golden cases of kernels/tensor and kernels/quant that the seeded sets of
make_goldens.py do not have.

    python make_tensor_cases.py --out tensor && ./pack.sh tensor

Same needs and same format as make_goldens.py; tensor.tar.xz beside this file is the result.

  1. cases by Paddle's kernels: remaining dtypes, LoD, bounds at their edges, sizes and scales that
     contradict each other, training modes of the quantisation ops
  2. ops that 2.6.2 no longer has under their old name: run as their successor, recorded renamed
  3. ops without a CPU kernel: results by NumPy, or by a wider dtype and rounded
"""
import shutil
import sys

import make_extra_cases as extra
import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, register
from make_goldens import Case, LoD, Rng
from paddle.base.proto import framework_pb2

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
LOD = [[0, 2, 5]]
INTERP_FLOATS = ("float32", "float64")


def i32(*values):
    return np.array(values, "int32")


def i64(*values):
    return np.array(values, "int64")


def rows(r, *shape, dtype="float32"):
    """A tensor of five rows in two sequences."""
    return LoD(r.f((5, *shape), dtype=dtype), LOD)


# ----------------------------------------------------------------------------
# 1. by Paddle's own kernels
# ----------------------------------------------------------------------------
@cases("share_data", "assign")
def _assign(r, op):
    yield Case("lod", {"X": rows(r, 3)}, "Out")
    yield Case("image", {"X": r.f((2, 3, 4, 5))}, "Out")
    if op == "assign":
        yield Case("uint8", {"X": r.i((3, 2), 0, 255, "uint8")}, "Out")


@cases("fill_constant_batch_size_like")
def _batch_size_like(r, op):
    yield Case("counts_sequences", {"Input": rows(r, 4)}, "Out", {"shape": [-1, 3], "dtype": g.FP32, "value": 1.0})


@cases("concat")
def _concat(r, op):
    yield Case("joins_sequences", {"X": [rows(r, 4), rows(r, 4), r.f((2, 4))]}, "Out", {"axis": 0})
    yield Case("first_without_lod", {"X": [r.f((2, 4)), rows(r, 4)]}, "Out", {"axis": 0})
    yield Case("keeps_lod", {"X": [rows(r, 1), rows(r, 3)]}, "Out", {"axis": -1})
    yield Case("channels", {"X": [r.f((2, c, 3, 5)) for c in (3, 16, 1)]}, "Out", {"axis": 1})
    yield Case("volumes", {"X": [r.f((1, c, 2, 3, 2)) for c in (4, 2)]}, "Out", {"axis": 1})
    yield Case("height", {"X": [r.f((2, 3, h, 4)) for h in (1, 2)]}, "Out", {"axis": 2})
    yield Case("with_nothing", {"X": [np.zeros((0, 4), "float32"), r.f((2, 4))]}, "Out", {"axis": 0})


@cases("split")
def _split(r, op):
    yield Case("lod", {"X": rows(r, 4)}, {"Out": 2}, {"axis": 1, "num": 2})
    yield Case("lod_rows", {"X": rows(r, 4)}, {"Out": 2}, {"axis": 0, "sections": [2, 3], "num": 0})
    yield Case("channels", {"X": r.f((2, 7, 3, 4))}, {"Out": 3}, {"axis": 1, "sections": [4, 1, 2], "num": 0})
    yield Case("empty_part", {"X": r.f((2, 4))}, {"Out": 3}, {"axis": 1, "sections": [0, 3, 1], "num": 0})
    yield Case("flat_middle", {"X": r.f((2, 3, 4))}, {"Out": 2}, {"axis": -2, "sections": [1, -1], "num": 0},
               notes="sections with a negative axis are cut from the elements in order")


@cases("slice")
def _slice(r, op):
    def one(name, x, axes, starts, ends, decrease=(), ins=None, flags=None):
        return Case(name, {"Input": x, **(ins or {})}, "Out",
                    {"axes": axes, "starts": starts, "ends": ends, "decrease_axis": list(decrease),
                     "infer_flags": flags or [1] * len(axes)})
    yield one("lod_rows", rows(r, 4), [0], [1], [3])
    yield one("lod_columns", rows(r, 4), [1], [1], [3])
    yield one("start_beyond", r.f((5, 4)), [0], [7], [9])
    yield one("far_negative", r.f((5, 4)), [0], [-10], [-9])
    yield one("all_dropped", r.f((5, 4)), [0, 1], [1, 1], [2, 2], [0, 1])
    yield one("image", r.f((2, 5, 4, 6)), [1, 3], [1, 2], [4, 6])
    yield one("image_drops_height", r.f((2, 5, 4, 6)), [2], [1], [2], [2])
    yield one("last_by_tensors", r.f((5, 4)), [0], [-1], [0], [0], flags=[-1],
              ins={"StartsTensorList": [i32(-1)], "EndsTensorList": [i32(0)]})
    yield one("nothing_left", np.zeros((0, 4), "float32"), [0], [0], [1])


@cases("strided_slice")
def _strided_slice(r, op):
    def one(name, start, end, stride, decrease=()):
        return Case(name, {"Input": r.f((5, 4))}, "Out",
                    {"axes": [0], "starts": [start], "ends": [end], "strides": [stride], "infer_flags": [1],
                     "decrease_axis": list(decrease)})
    for k, (s, e, st) in enumerate([(4, -1, -1), (-1, -6, -1), (4, -7, -2), (10, 0, -1), (-10, 3, 1), (2, -10, -1), (0, 0, 1),
                                    (-1, -1, 1), (5, 9, 1), (4, 0, -3), (0, 5, 7), (4, -5, -1), (4, -1, -2), (-6, -9, -1)]):
        yield one(f"bounds_{k}", s, e, st)
    yield one("dropped", 1, 2, 1, [0])
    yield Case("all_dropped", {"Input": r.f((5,))}, "Out",
               {"axes": [0], "starts": [1], "ends": [2], "strides": [1], "infer_flags": [1], "decrease_axis": [0]})
    yield Case("image", {"Input": r.f((2, 6, 5, 7))}, "Out",
               {"axes": [1, 2, 3], "starts": [5, 0, 6], "ends": [-1, 5, 1], "strides": [-2, 2, -3], "infer_flags": [1] * 3,
                "decrease_axis": []})


@cases("stack", "unbind", "unstack")
def _stack(r, op):
    if op == "stack":
        yield Case("lod", {"X": [rows(r, 2), rows(r, 2)]}, {"Y": 1}, {"axis": -1})
        yield Case("many_narrow", {"X": [r.i((40,), -9, 9, "int32") for _ in range(5)]}, {"Y": 1}, {"axis": 1})
        return
    attrs = {"axis": 1, **({"num": 4} if op == "unstack" else {})}
    yield Case("lod", {"X": rows(r, 4, 3)}, {"Y" if op == "unstack" else "Out": 4}, attrs)


@cases("squeeze2", "unsqueeze2", "reshape2", "flatten2", "flatten_contiguous_range", "transpose2")
def _views(r, op):
    x = LoD(r.f((5, 1, 4)), LOD)
    plans = {"squeeze2": [("lod", {"axes": [1]}), ("twice", {"axes": [1, -2]})],
             "unsqueeze2": [("lod", {"axes": [1]}), ("front", {"axes": [0]}), ("order", {"axes": [2, 0]}), ("twice", {"axes": [1, 1]})],
             "reshape2": [("lod", {"shape": [5, 2, 2]}), ("other_rows", {"shape": [10, 2]})],
             "flatten2": [("lod", {"axis": 1}), ("one_column", {"axis": 3}), ("one_row", {"axis": 0})],
             "flatten_contiguous_range": [("lod", {"start_axis": 1, "stop_axis": 2}), ("rows", {"start_axis": 0, "stop_axis": 1})],
             "transpose2": [("rows_stay", {"axis": [0, 2, 1]})]}
    for name, attrs in plans[op]:
        yield Case(name, {"X": x}, "Out,XShape", attrs)
    if op == "transpose2":
        for k, (shape, axis) in enumerate([((2, 37, 19, 5), [0, 2, 3, 1]), ((2, 19, 5, 37), [0, 3, 1, 2]), ((33, 70), [1, 0]),
                                           ((2, 3, 4, 5, 6), [4, 0, 2, 1, 3]), ((17, 3, 2, 9), [2, 1, 3, 0])]):
            for dtype in ("float32", "int8", "int16", "int64"):
                x = r.f(shape) if dtype == "float32" else r.i(shape, -99, 99, dtype)
                yield Case(f"blocks_{k}_{dtype}", {"X": x}, "Out,XShape", {"axis": axis})


@cases("expand", "expand_v2", "expand_as_v2", "tile")
def _expand(r, op):
    if op == "expand":
        yield Case("lod", {"X": rows(r, 4)}, "Out", {"expand_times": [1, 3]})
        yield Case("rows", {"X": r.i((2, 3), -9, 9, "int32")}, "Out", {"expand_times": [3, 2]})
        yield Case("tensor", {"X": r.f((2, 3)), "ExpandTimes": i32(2, 1)}, "Out", {"expand_times": [-1, -1]})
        yield Case("tensors", {"X": r.f((2, 3)), "expand_times_tensor": [i32(1), i32(2)]}, "Out", {"expand_times": [-1, -1]})
    elif op == "expand_v2":
        yield Case("lod", {"X": rows(r, 1)}, "Out", {"shape": [5, 4]})
        yield Case("new_rows", {"X": rows(r, 4)}, "Out", {"shape": [2, -1, -1]})
        yield Case("image", {"X": r.f((2, 5, 1, 1))}, "Out", {"shape": [2, 5, 3, 4]})
        yield Case("image_channels", {"X": r.f((2, 1, 3, 4))}, "Out", {"shape": [-1, 6, -1, -1]})
        yield Case("vector_to_image", {"X": r.f((4,))}, "Out", {"shape": [2, 3, 5, 4]})
    elif op == "expand_as_v2":
        yield Case("attribute_wins", {"X": r.f((5, 4)), "Y": r.f((3, 5, 4))}, "Out", {"target_shape": [2, 5, 4]})
        yield Case("open_dims", {"X": r.f((1, 4)), "Y": r.f((3, 4))}, "Out", {"target_shape": [-1, 4]})
    else:
        yield Case("lod", {"X": rows(r, 4)}, "Out", {"repeat_times": [1, 2]})
        yield Case("no_repeats", {"X": rows(r, 4)}, "Out", {"repeat_times": []})
        yield Case("image", {"X": r.f((1, 3, 2, 4))}, "Out", {"repeat_times": [2, 2, 3, 2]})
        yield Case("repeat_times_tensor", {"X": r.f((2, 3)), "repeat_times_tensor": [i32(2), i32(1), i32(3)]}, "Out",
                   {"repeat_times": [-1, -1, -1]})


@cases("gather", "gather_nd", "index_select", "take_along_axis")
def _gather(r, op):
    if op == "gather":
        yield Case("lod", {"X": rows(r, 4), "Index": i64(4, 0, 0, 3, 1)}, "Out", {"axis": 0})
        yield Case("column_axis1", {"X": r.f((5, 4)), "Index": i64(1, 2).reshape(2, 1)}, "Out", {"axis": 1})
        yield Case("middle", {"X": r.f((3, 4, 7)), "Index": i32(3, 1, 1)}, "Out", {"axis": 1})
        yield Case("uint8", {"X": r.i((4, 3), 0, 255, "uint8"), "Index": i32(3, 1)}, "Out", {"axis": 0})
    elif op == "gather_nd":
        yield Case("lod", {"X": rows(r, 4), "Index": r.i((5, 1), 0, 4)}, "Out")
        yield Case("whole", {"X": r.f((3, 2)), "Index": np.zeros((2, 0), "int64")}, "Out")
        yield Case("no_tuple", {"X": r.f((3, 2)), "Index": np.zeros((0, 1), "int64")}, "Out")
    elif op == "index_select":
        yield Case("lod", {"X": rows(r, 4), "Index": i64(0, 1, 1, 2, 3)}, "Out", {"dim": 0})
    else:
        for axis in (0, 1, 2):
            shape = [3, 4, 5]
            shape[axis] = 6
            x = r.f((3, 4, 5))
            yield Case(f"rank3_axis{axis}", {"Input": x, "Index": r.i(shape, 0, x.shape[axis] - 1, "int32")},
                       "Result", {"Axis": axis})


@cases("scatter", "scatter_nd_add")
def _scatter(r, op):
    for dtype in ("float64", "int32", "int64") + (("uint8",) if op == "scatter_nd_add" else ()):
        f = lambda s: r.i(s, 0, 50, dtype)
        if op == "scatter":
            for overwrite in (True, False):
                yield Case(f"{dtype}_{'set' if overwrite else 'add'}", {"X": f((5, 3)), "Ids": i64(3, 1, 3), "Updates": f((3, 3))},
                           "Out", {"overwrite": overwrite})
        else:
            yield Case(dtype, {"X": f((5, 3)), "Index": i32(3, 1, 3).reshape(3, 1), "Updates": f((3, 3))}, "Out")
    if op == "scatter":
        yield Case("lod", {"X": rows(r, 4), "Ids": i64(0, 1), "Updates": r.f((2, 4))}, "Out", {"overwrite": True})
        yield Case("column", {"X": r.f((5, 4)), "Ids": i64(0, 3).reshape(2, 1), "Updates": r.f((2, 4))}, "Out", {"overwrite": True})
        yield Case("single", {"X": r.f((5, 4)), "Ids": np.array(2, "int64"), "Updates": r.f((4,))}, "Out", {"overwrite": True})
    else:
        yield Case("everywhere", {"X": r.f((2, 3)), "Index": np.zeros((2, 0), "int64"), "Updates": r.f((2, 2, 3))}, "Out")


@cases("masked_select", "where", "where_index", "tril_triu")
def _choose(r, op):
    x = r.f((4, 5))
    if op == "masked_select":
        yield Case("mask_broadcast", {"X": x, "Mask": x[:1] > 0}, {"Y": 1})
        yield Case("x_broadcast", {"X": x[:1], "Mask": x > 0}, {"Y": 1})
    elif op == "where":
        yield Case("lod", {"Condition": r.b((5, 4)), "X": rows(r, 4), "Y": r.f((5, 4))}, "Out")
        yield Case("image", {"Condition": r.b((2, 3, 4, 5)), "X": r.f((2, 3, 4, 5)), "Y": r.f((2, 3, 4, 5))}, "Out")
    elif op == "where_index":
        for dtype in ("int16", "int32", "float64"):
            yield Case(dtype, {"Condition": r.i((3, 4), 0, 1, dtype)}, "Out")
        yield Case("special", {"Condition": np.array([np.nan, -0.0, 1, np.inf], "float32")}, "Out")
    else:
        yield Case("lod", {"X": rows(r, 4)}, "Out", {"diagonal": 0, "lower": True})
        for k, lower in ((9, True), (-9, True), (9, False), (-9, False)):
            yield Case(f"far_{'tril' if lower else 'triu'}_{k}".replace("-", "m"), {"X": x}, "Out", {"diagonal": k, "lower": lower})


@cases("lookup_table", "lookup_table_v2", "one_hot_v2")
def _lookup(r, op):
    if op == "one_hot_v2":
        yield Case("lod", {"X": LoD(i64(0, 1, 4, 3, 2), LOD)}, "Out", {"depth": 5, "dtype": g.FP32})
        for name in ("bool", "int32", "int64", "float64", "uint8"):
            yield Case(name, {"X": i64(1, 0, 2)}, "Out", {"depth": 3, "dtype": g.DTYPE_CODE[name]})
        return
    column = op == "lookup_table"
    ids = lambda a: a.reshape(*a.shape, 1) if column else a
    yield Case("lod", {"W": r.f((6, 3)), "Ids": LoD(ids(i64(0, 5, 5, 3, 4)), LOD)}, "Out", {"padding_idx": -1})
    yield Case("rank2", {"W": r.f((6, 3)), "Ids": ids(i64(0, 5, 5, 3).reshape(2, 2))}, "Out", {"padding_idx": 5})
    if not column:
        yield Case("padding_beyond", {"W": r.f((6, 3)), "Ids": i64(0, 9)}, "Out", {"padding_idx": 9})
        yield Case("zero_dim", {"W": r.f((6, 3)), "Ids": np.array(1, "int64")}, "Out", {"padding_idx": -1})


@cases("pad", "pad3d")
def _pad(r, op):
    if op == "pad":
        yield Case("lod", {"X": rows(r, 4)}, "Out", {"paddings": [0, 0, 1, 1], "pad_value": 0.5})
        yield Case("more_rows", {"X": rows(r, 4)}, "Out", {"paddings": [1, 0, 1, 1], "pad_value": 0.5})
        yield Case("image", {"X": r.f((2, 3, 4, 5))}, "Out", {"paddings": [0, 0, 1, 2, 0, 1, 2, 0], "pad_value": -1.0})
        yield Case("int32", {"X": r.i((3, 2), -9, 9, "int32")}, "Out", {"paddings": [1, 0, 0, 2], "pad_value": 2.7})
        return
    for mode in ("constant", "reflect", "replicate", "circular"):
        for name, p in (("cuts", [-1, 1, 0, -1, 0, 0]), ("all", [2, 1, 1, 2, 1, 1]), ("none", [0] * 6)):
            yield Case(f"{mode}_{name}", {"X": r.f((2, 3, 2, 3, 4))}, "Out",
                       {"paddings": p, "mode": mode, "value": 0.75, "data_format": "NCDHW"})
        yield Case(f"{mode}_double_ndhwc", {"X": r.f((1, 2, 3, 4, 3), dtype="float64")}, "Out",
                   {"paddings": [3, 1, 0, 2, 1, 0], "mode": mode, "value": 0.75, "data_format": "NDHWC"})
    yield Case("circular_wraps_twice", {"X": r.f((1, 2, 2, 2, 3))}, "Out",
               {"paddings": [7, 5, 0, 0, 0, 4], "mode": "circular", "data_format": "NCDHW"})
    yield Case("cut_to_nothing", {"X": r.f((1, 2, 2, 2, 3))}, "Out",
               {"paddings": [-1, -2, 0, 0, 0, 0], "mode": "constant", "data_format": "NCDHW"})


@cases("flip", "reverse", "roll", "meshgrid", "pixel_shuffle", "shuffle_channel", "label_smooth", "linspace")
def _others(r, op):
    if op in ("flip", "reverse"):
        yield Case("lod", {"X": rows(r, 4)}, "Out", {"axis": [1]})
        yield Case("image", {"X": r.f((2, 3, 4, 5))}, "Out", {"axis": [1, 3]})
    elif op == "roll":
        yield Case("lod", {"X": rows(r, 4)}, "Out", {"shifts": [1], "axis": [1]})
        yield Case("twice", {"X": r.f((3, 4))}, "Out", {"shifts": [1, 2], "axis": [1, 1]})
        yield Case("image", {"X": r.f((2, 3, 4, 5))}, "Out", {"shifts": [-1, 9], "axis": [1, 3]})
    elif op == "meshgrid":
        yield Case("zero_dim", {"X": [np.array(3, "int64"), i64(1, 2)]}, {"Out": 2})
    elif op == "pixel_shuffle":
        yield Case("double", {"X": r.f((2, 18, 3, 2), dtype="float64")}, "Out", {"upscale_factor": 3, "data_format": "NCHW"})
        yield Case("many", {"X": r.f((1, 16, 9, 17))}, "Out", {"upscale_factor": 2, "data_format": "NCHW"})
    elif op == "shuffle_channel":
        yield Case("three_by_four", {"X": r.f((2, 12, 3, 2))}, "Out", {"group": 3})
    elif op == "label_smooth":
        for dtype in ("float32", "float64"):
            yield Case(f"prior_{dtype}", {"X": rows(r, 4, dtype=dtype), "PriorDist": r.f((1, 4), 0, 1, dtype)}, "Out", {"epsilon": 0.2})
            yield Case(f"uniform_{dtype}", {"X": r.f((2, 3), dtype=dtype)}, "Out", {"epsilon": 0.1})
    else:
        yield Case("int64", {"Start": i64(0), "Stop": i64(10), "Num": i32(4)}, "Out", {"dtype": g.INT64})
        yield Case("cast_down", {"Start": r.f((1,)), "Stop": r.f((1,), 5, 9), "Num": i32(5)}, "Out", {"dtype": g.INT32})
        yield Case("two", {"Start": r.f((1,)), "Stop": r.f((1,)), "Num": i32(2)}, "Out", {"dtype": g.FP32})


@cases("nearest_interp", "nearest_interp_v2", "bilinear_interp", "bilinear_interp_v2", "bicubic_interp", "bicubic_interp_v2",
       "linear_interp", "linear_interp_v2", "trilinear_interp", "trilinear_interp_v2")
def _interp(r, op):
    v2, method = op.endswith("_v2"), op.split("_")[0]
    ranks = {"nearest": (2, 3) if v2 else (2,), "bilinear": (2,), "bicubic": (2,), "linear": (1,), "trilinear": (3,)}[method]

    def one(name, rank, dtype, extra_ins=None, nhwc=False, size=None, scale=None, channels=3, **a):
        base = {"data_layout": "NHWC" if nhwc else "NCHW", "out_d": -1, "out_h": -1, "out_w": -1, "interp_method": method,
                "align_corners": False, "align_mode": 1}
        if size:
            base.update(zip(("out_d", "out_h", "out_w")[-rank:], size[-rank:]))
        scale = (list(scale[-rank:]) if v2 else scale[-1]) if scale else ([] if v2 else 0.0)
        spatial = (3, 5, 4)[-rank:]
        x = g.conv_in(r, 2, channels, spatial, nhwc).astype(dtype)
        if dtype == "uint8":
            x = np.full_like(x, 100)
        return Case(f"{name}_{rank}d_{dtype}", {"X": x, **(extra_ins or {})}, "Out", {**base, "scale": scale, **a})
    for rank in ranks:
        for dtype in INTERP_FLOATS:
            for nhwc in (False, True) if dtype == "float32" else (False,):
                tag = "_nhwc" if nhwc else ""
                yield one("corners" + tag, rank, dtype, nhwc=nhwc, size=(5, 7, 9), align_corners=True)
                yield one("mode0" + tag, rank, dtype, nhwc=nhwc, size=(2, 9, 3), align_mode=0)
                yield one("mode1" + tag, rank, dtype, nhwc=nhwc, size=(6, 2, 8), channels=17)
        f = "float32"
        yield one("double_size", rank, f, scale=(2.0, 2.0, 2.0))
        yield one("third", rank, f, scale=(0.5, 0.34, 0.34), align_mode=0)
        yield one("one_pixel", rank, f, size=(1, 1, 1), align_corners=True)
        yield one("same_size", rank, f, size=(3, 5, 4), align_mode=0)
        yield one("size_against_scale", rank, f, {"OutSize": i32(4, 6, 7)[-rank:]}, scale=(1.3, 1.7, 2.5))
        yield one("sizes_against_size", rank, f, {"OutSize": i32(4, 6, 7)[-rank:],
                                                  "SizeTensor": [i32(v) for v in (5, 3, 6)[-rank:]]}, scale=(1.3, 1.7, 2.5))
        yield one("tensor_against_scale", rank, f, {"Scale": np.array([1.5], "float32")}, scale=(3.0, 3.0, 3.0))
        if v2 and rank > 1:
            yield one("scale_per_dim", rank, f, {"Scale": np.array([1.5, 0.7, 2.2][-rank:], "float32")})
        if method == "nearest":
            yield one("same_bytes", rank, "uint8", size=(5, 7, 9))
        elif method != "bicubic":
            yield one("flat_image", rank, "uint8", size=(6, 10, 8), notes="")
        if method != "nearest":
            yield extra.recast(one("half", rank, f, size=(5, 8, 7)), np.dtype(f), "float16")
    # Nobody reads the scale beside a SizeTensor.
    yield one("sizes_beside_whole_scale", rank, f, {"SizeTensor": [i32(v) for v in (5, 3, 6)[-rank:]], "Scale": i32(2)})
    # The attribute says how, whatever the op is called.
    for other, rank in (("nearest", 2), ("bilinear", 2), ("bicubic", 2), ("linear", 1), ("trilinear", 3)):
        if other != method and (v2 or rank == 2):
            yield one(f"as_{other}", rank, "float32", size=(5, 7, 9), interp_method=other)


@cases("fake_quantize_abs_max", "fake_quantize_dequantize_abs_max", "fake_channel_wise_quantize_abs_max",
       "fake_channel_wise_quantize_dequantize_abs_max")
def _fake_quantize(r, op):
    halves = np.concatenate([np.arange(-6, 7) + 0.5, [127]]).astype("float32")
    channel = {"quant_axis": 1} if "channel" in op else {}
    for round_type in (0, 1):
        a = {"bit_length": 8, "round_type": round_type, **channel}
        yield Case(f"halves_round{round_type}", {"X": np.stack([halves, -halves], 1)}, "Out,OutScale", a)
        yield Case(f"image_round{round_type}", {"X": r.f((2, 3, 4, 5))}, "Out,OutScale", {**a, "bit_length": 5})
    yield Case("zeros", {"X": np.zeros((3, 2), "float32")}, "Out,OutScale", {"bit_length": 8, **channel})


@cases("fake_quantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max", "moving_average_abs_max_scale",
       "fake_quantize_range_abs_max")
def _moving(r, op):
    x = r.f((2, 3, 4, 5))
    scale, state, accum = r.f((1,), 1, 2), r.f((1,), 1, 2), r.f((1,), 1, 2)
    if op == "fake_quantize_range_abs_max":
        yield Case("grows", {"X": x, "InScale": r.f((1,), 0.1, 0.2), "Iter": i64(0)}, "Out,OutScale,OutScales",
                   {"window_size": 4, "bit_length": 8, "is_test": False}, nofetch=("OutScales",))
        yield Case("test", {"X": x, "InScale": scale}, "Out,OutScale", {"window_size": 4, "bit_length": 8, "is_test": True},
                   nofetch=("OutScale",))
        return
    ins = {"X": x, "InAccum": accum, "InState": state}
    if op != "moving_average_abs_max_scale":
        ins["InScale"] = scale
    yield Case("train", ins, "Out,OutScale,OutState,OutAccum", {"moving_rate": 0.8, "is_test": False})
    if op == "moving_average_abs_max_scale":
        yield Case("test", {"X": x}, "Out,OutScale", {"is_test": True}, nofetch=("OutScale",))
    else:
        for round_type in (0, 1):
            yield Case(f"test_round{round_type}", {"X": x, "InScale": scale}, "Out,OutScale",
                       {"bit_length": 4, "round_type": round_type, "is_test": True}, nofetch=("OutScale",))


@cases("fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs", "quantize_linear", "dequantize_linear")
def _dequantize(r, op):
    for dtype in ("float32", "float64"):
        x = r.i((2, 3, 4, 5), -127, 127, dtype)
        if op == "fake_dequantize_max_abs":
            yield Case(dtype, {"X": x, "Scale": r.f((1,), 1, 2, dtype)}, "Out", {"max_range": 127.0})
        elif op == "fake_channel_wise_dequantize_max_abs":
            for axis in (0, 1):
                yield Case(f"axis{axis}_{dtype}", {"X": x, "Scales": [r.f((x.shape[axis],), 1, 2, dtype)]}, "Out",
                           {"quant_bits": [8], "quant_axis": axis})
                yield Case(f"two_dim{axis + 1}_{dtype}", {"X": x, "Scales": [r.f((x.shape[axis + 1],), 1, 2, dtype), r.f((1,), 1, 2, dtype)]},
                           "Out", {"quant_bits": [8, 7], "quant_axis": 1, "x_num_col_dims": axis + 1})
    zero = np.zeros(1, "float32")
    if op == "dequantize_linear":
        x = r.i((2, 3), -9, 9, "float64")
        yield Case("float64", {"X": x, "Scale": r.f((3,), 1, 2, "float64"), "ZeroPoint": np.zeros(3)}, {"Y": 1}, {"quant_axis": 1})
        yield Case("observer", {"X": r.f((2, 3)), "Scale": zero + 1, "ZeroPoint": zero}, {"Y": 1}, {"quant_axis": -1, "only_observer": True})
    if op == "quantize_linear":
        x = r.f((2, 3, 4, 5))
        for round_type in (0, 1):
            yield Case(f"clips_round{round_type}", {"X": 100 * x, "Scale": zero + 1.5, "ZeroPoint": zero}, {"Y": 1},
                       {"quant_axis": -1, "is_test": True, "round_type": round_type})
        yield Case("observer", {"X": x, "Scale": zero + 1, "ZeroPoint": zero}, {"Y": 1},
                   {"quant_axis": -1, "is_test": True, "only_observer": True})
        yield Case("train", {"X": x, "Scale": zero + 1, "ZeroPoint": zero, "InAccum": r.f((1,), 1, 2), "InState": r.f((1,), 1, 2)},
                   "Y,OutState,OutAccum,OutScale", {"quant_axis": -1, "is_test": False})
        for axis in (0, 1):
            ones = np.ones(x.shape[axis], "float32")
            yield Case(f"train_axis{axis}", {"X": x, "Scale": ones, "ZeroPoint": 0 * ones}, "Y,OutScale",
                       {"quant_axis": axis, "is_test": False})


# ----------------------------------------------------------------------------
# 2. old names
# ----------------------------------------------------------------------------
def renamed_cases(r):
    """(successor's case, old name)"""
    for op in ("squeeze2", "unsqueeze2", "flatten2"):
        for case in [c for c in g.cases_of(1, op) if c.name not in ("empty",)][:4]:
            yield case, op[:-1]
    for case in g.cases_of(1, "reshape2"):
        if case.name in ("minus1", "copy_dim", "shape_tensor", "shape_tensor_list"):
            yield case, "reshape"
    for axis in ([1, 0, 2], [0, 2, 1]):
        yield Case("axis_" + "".join(map(str, axis)), {"X": r.f((3, 4, 5))}, "Out,XShape", {"axis": axis}, op="transpose2"), "transpose"
    x = r.i((4, 3), 0, 4)
    yield Case("columns", {"X": x}, "Out", {"depth": 5, "dtype": g.FP32}, op="one_hot_v2"), "one_hot"


def rename(blob, old, new):
    desc = framework_pb2.ProgramDesc()
    desc.ParseFromString(blob)
    for op in desc.blocks[0].ops:
        if op.type == old:
            op.type = new
            for slot in [s for s in op.outputs if s.parameter == "XShape"]:
                op.outputs.remove(slot)
    return desc


def make_renamed(out_dir, case, new):
    b, op, ins, outs = g.build_forward(case)
    outs.pop("XShape", None)
    b.fetch = outs["Out"]
    blob, res = b.run()
    desc, feeds = rename(blob, case.op, new), b.feeds
    if new == "one_hot":        # its X has a last dimension of 1
        feeds = {"X": feeds["X"].reshape(*feeds["X"].shape, 1)}
        next(v for v in desc.blocks[0].vars if v.name == "X").type.lod_tensor.tensor.dims.append(1)
    rtol, atol = g.tolerance(new, [a for a, _ in res])
    g.write_case(f"{out_dir}/{new}/{case.name}", 0, new, case.name, desc.SerializeToString(), feeds, dict(zip(b.fetch, res)),
                 {"inputs": ins, "outputs": outs}, g.visible_attrs(case.op, op.desc), [new], rtol, atol,
                 f"computed as {case.op}, which took its place")


# ----------------------------------------------------------------------------
# 3. pad2d: no CPU kernel in 2.6.2
# ----------------------------------------------------------------------------
def make_pad2d(out_dir, case):
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge"}
    a = case.attrs
    top, bottom, left, right = case.ins["Paddings"] if "Paddings" in case.ins else a["paddings"]
    margins = [(0, 0), (0, 0), (top, bottom), (left, right)]
    if a["data_format"] == "NHWC":
        margins = [margins[i] for i in (0, 2, 3, 1)]
    kw = {"constant_values": a["pad_value"]} if a["mode"] == "constant" else {}
    want = np.pad(case.ins["X"], margins, modes[a["mode"]], **kw)
    b, op, ins, outs = g.build_forward(case)
    b.fetch = outs["Out"]
    blob = b._with_feed_fetch(b.prog.desc.serialize_to_string())
    g.write_case(f"{out_dir}/pad2d/{case.name}", 0, "pad2d", case.name, blob, b.feeds, {outs["Out"][0]: (want, [])},
                 {"inputs": ins, "outputs": outs}, g.visible_attrs("pad2d", op.desc), ["pad2d"], 0.0, 0.0, "computed by numpy.pad")


def attempt(out_dir, op, name, make):
    try:
        make()
        return True
    except Exception as e:
        shutil.rmtree(f"{out_dir}/{op}/{name}", ignore_errors=True)
        print(f"SKIP {op}/{name}: {g.short_error(e)}")
        return False


def main():
    out, wanted = arguments(__doc__)
    todo = [(case.op, case.name, lambda case=case: extra.make_case(out, case))
            for case in cases_of(CASES, "tensor", wanted)]
    for case, new in renamed_cases(Rng(0, "tensor/renamed")):
        todo.append((new, case.name, lambda case=case, new=new: make_renamed(out, case, new)))
    for case in g.cases_of(1, "pad2d"):
        todo.append(("pad2d", case.name, lambda case=case: make_pad2d(out, case)))
    todo = [t for t in todo if not wanted or t[0] in wanted]
    made = sum(attempt(out, *t) for t in todo)
    print(f"{made} cases in {out}, {len(todo) - made} failed")


if __name__ == "__main__":
    sys.exit(main())
