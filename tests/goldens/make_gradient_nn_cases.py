#!/usr/bin/env python3
"""make_gradient_nn_cases.py - golden cases of gradients of kernels/nn and its neighbours.

    python make_gradient_nn_cases.py --out gradient_nn && ./pack.sh gradient_nn

Same needs and same format as make_goldens.py; gradient_nn.tar.xz beside this file is the result. Gradients
of ops that the seeded sets leave out, in both dtypes, and attributes at their edges. Where the gradient
reads what only the forward op of the same program can give (the Reserve of rnn), or names variables of it as outputs
that it leaves alone (data_norm), the case is a program of both.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, make_all, register
from make_goldens import Case, LoD, core
from make_nn_cases import conv_case, transpose_case

CASES = []   # (op, function Rng -> Cases); the op is the forward one
cases = register(CASES)
DTYPES = ("float32", "float64")
WITH_FORWARD = ("rnn", "data_norm")


# ----------------------------------------------------------------------------
# Products
# ----------------------------------------------------------------------------
@cases("mul")
def _mul(r, op):
    yield Case("one_row", {"X": r.f((1, 37)), "Y": r.f((37, 19))}, "Out", {"x_num_col_dims": 1, "y_num_col_dims": 1})
    yield Case("one_column_double", {"X": r.f((9, 7), dtype="float64"), "Y": r.f((7, 1), dtype="float64")}, "Out",
               {"x_num_col_dims": 1, "y_num_col_dims": 1})
    yield Case("only_y", {"X": r.f((5, 6)), "Y": r.f((6, 4))}, "Out", {"x_num_col_dims": 1, "y_num_col_dims": 1}, no_grad=("X",))


@cases("matmul_v2")
def _matmul_v2(r, op):
    for dtype in DTYPES:
        yield Case(f"broadcast_trans_{dtype}", {"X": r.f((4, 3), dtype=dtype), "Y": r.f((2, 3, 5, 4), dtype=dtype)}, "Out",
                   {"trans_x": True, "trans_y": True})
    yield Case("rows_times_one", {"X": r.f((3, 5, 8)), "Y": r.f((8, 33))}, "Out", {"trans_x": False, "trans_y": False})
    yield Case("rows_times_one_trans", {"X": r.f((3, 5, 8)), "Y": r.f((7, 8))}, "Out", {"trans_x": False, "trans_y": True})
    yield Case("batched_vector", {"X": r.f((2, 3, 5)), "Y": r.f((5,))}, "Out", {"trans_x": False, "trans_y": False})
    yield Case("vector_batched", {"X": r.f((4,)), "Y": r.f((2, 4, 3))}, "Out", {"trans_x": False, "trans_y": False})
    yield Case("only_x", {"X": r.f((3, 5)), "Y": r.f((5, 2))}, "Out", {"trans_x": False, "trans_y": False}, no_grad=("Y",))


@cases("matmul")
def _matmul(r, op):
    for tx in (False, True):
        for ty in (False, True):
            yield Case(f"alpha_{int(tx)}{int(ty)}", {"X": r.f((2, 4, 3) if tx else (2, 3, 4), dtype="float64"),
                                                     "Y": r.f((2, 5, 4) if ty else (2, 4, 5), dtype="float64")}, "Out",
                       {"transpose_X": tx, "transpose_Y": ty, "alpha": -0.7})


@cases("bmm")
def _bmm(r, op):
    yield Case("wide", {"X": r.f((3, 1, 40)), "Y": r.f((3, 40, 17))}, "Out")


@cases("dot")
def _dot(r, op):
    for dtype in DTYPES:
        for k, shape in enumerate(((7,), (3, 5))):
            yield Case(f"rank{k + 1}_{dtype}", {"X": r.f(shape, dtype=dtype), "Y": r.f(shape, dtype=dtype)}, "Out")


# ----------------------------------------------------------------------------
# Convolutions
# ----------------------------------------------------------------------------
@cases("conv2d")
def _conv2d(r, op):
    f64 = "float64"
    yield conv_case("float64_groups", r.f((2, 4, 6, 5), dtype=f64), r.f((6, 2, 3, 2), dtype=f64), groups=2, paddings=[2, 1])
    yield conv_case("float64_nhwc_dilated", r.f((1, 7, 6, 2), dtype=f64), r.f((3, 2, 2, 3), dtype=f64), dilations=[3, 2],
                    paddings=[1, 0, 2, 1], strides=[2, 1], data_format="NHWC")
    yield conv_case("window_sticks_out", r.f((2, 3, 1, 5)), r.f((4, 3, 2, 3)), strides=[2, 2], paddings=[0, 1])
    yield conv_case("padding_beyond_kernel", r.f((1, 2, 4, 3)), r.f((3, 2, 2, 2)), paddings=[3, 4])
    yield conv_case("stride_beyond_kernel", r.f((1, 3, 11, 10)), r.f((2, 3, 2, 1)), strides=[5, 4])
    yield conv_case("uneven_padding", r.f((1, 8, 7, 6)), r.f((16, 8, 2, 2)), paddings=[0, 1, 0, 1])
    yield conv_case("strided_pointwise", r.f((1, 5, 6, 7)), r.f((3, 5, 1, 1)), strides=[2, 2])
    yield conv_case("many_channels", r.f((2, 17, 5, 4)), r.f((18, 17, 3, 3)), paddings=[1, 1])
    yield conv_case("groups_equal_channels", r.f((1, 6, 5, 4)), r.f((12, 1, 3, 3)), groups=6, paddings=[1, 1])
    c = conv_case("only_filter", r.f((2, 3, 5, 4)), r.f((4, 3, 2, 2)))
    c.no_grad = ("Input",)
    yield c


@cases("depthwise_conv2d")
def _depthwise(r, op):
    yield conv_case("float64", r.f((2, 3, 6, 5), dtype="float64"), r.f((3, 1, 3, 3), dtype="float64"), groups=3,
                    paddings=[1, 1], strides=[2, 1])
    yield conv_case("many_channels", r.f((1, 37, 5, 6)), r.f((37, 1, 5, 5)), groups=37, paddings=[2, 2])
    yield conv_case("many_channels_stride2", r.f((1, 33, 8, 7)), r.f((33, 1, 3, 3)), groups=33, paddings=[1, 1], strides=[2, 2])


@cases("conv3d")
def _conv3d(r, op):
    yield conv_case("float64", r.f((1, 2, 4, 5, 3), dtype="float64"), r.f((4, 1, 2, 3, 2), dtype="float64"), rank=3, groups=2,
                    paddings=[1, 0, 1], strides=[2, 1, 1])


@cases("conv2d_transpose", "depthwise_conv2d_transpose")
def _conv2d_transpose(r, op):
    depthwise = op.startswith("depthwise")
    for dtype in DTYPES:
        if depthwise:
            yield transpose_case(f"stride1_{dtype}", r.f((1, 5, 4, 3), dtype=dtype), r.f((5, 1, 3, 2), dtype=dtype), groups=5,
                                 paddings=[1, 0])
            yield transpose_case(f"stride2_{dtype}", r.f((2, 3, 4, 3), dtype=dtype), r.f((3, 1, 3, 3), dtype=dtype), groups=3,
                                 paddings=[1, 1], strides=[2, 2])
            continue
        yield transpose_case(f"stride_is_kernel_{dtype}", r.f((2, 5, 4, 3), dtype=dtype), r.f((5, 3, 2, 2), dtype=dtype),
                             strides=[2, 2])
        yield transpose_case(f"dilated_groups_{dtype}", r.f((1, 4, 3, 5), dtype=dtype), r.f((4, 3, 2, 3), dtype=dtype),
                             groups=2, dilations=[2, 1], paddings=[1, 0, 2, 1], strides=[1, 2])
        yield transpose_case(f"nhwc_{dtype}", r.f((1, 3, 5, 4), dtype=dtype), r.f((4, 3, 2, 3), dtype=dtype),
                             data_format="NHWC", strides=[2, 1])


@cases("conv3d_transpose")
def _conv3d_transpose(r, op):
    for dtype in DTYPES:
        yield transpose_case(f"strided_{dtype}", r.f((1, 2, 2, 3, 3), dtype=dtype), r.f((2, 3, 2, 3, 2), dtype=dtype), rank=3,
                             paddings=[0, 1, 0], strides=[2, 1, 2])


# ----------------------------------------------------------------------------
# Pooling
# ----------------------------------------------------------------------------
def pool_case(name, x, kind, ksize, **attrs):
    rank = len(ksize)
    base = {"pooling_type": kind, "ksize": ksize, "strides": [1] * rank, "paddings": [0] * rank, "global_pooling": False,
            "adaptive": False, "ceil_mode": False, "exclusive": True, "padding_algorithm": "EXPLICIT",
            "data_format": "NCHW" if rank == 2 else "NCDHW"}
    base.update(attrs)
    return Case(name, {"X": x}, "Out", base)


@cases("pool2d")
def _pool2d(r, op):
    for dtype in DTYPES:
        x = np.round(r.f((2, 19, 7, 6), -2, 2, dtype))          # ties: the first element takes all
        yield pool_case(f"max_ties_{dtype}", x, "max", [3, 3], strides=[2, 2], paddings=[1, 1])
        yield pool_case(f"avg_overlaps_{dtype}", r.f((1, 3, 7, 6), dtype=dtype), "avg", [3, 2], strides=[1, 2], exclusive=False)
    yield pool_case("max_nhwc", r.f((2, 6, 5, 3)), "max", [2, 3], strides=[2, 1], data_format="NHWC")
    yield pool_case("avg_nhwc_padded", r.f((2, 6, 5, 3)), "avg", [2, 3], strides=[2, 1], paddings=[1, 1], data_format="NHWC")
    yield pool_case("global_avg_many_channels", r.f((1, 70, 4, 4)), "avg", [1, 1], global_pooling=True)


@cases("pool3d")
def _pool3d(r, op):
    for dtype in DTYPES:
        yield pool_case(f"max_{dtype}", r.f((1, 2, 4, 5, 4), dtype=dtype), "max", [2, 2, 3], strides=[2, 1, 1], paddings=[1, 0, 1])


# ----------------------------------------------------------------------------
# Normalisation
# ----------------------------------------------------------------------------
@cases("batch_norm")
def _batch_norm(r, op):
    for dtype in DTYPES:
        for layout in ("NCHW", "NHWC"):
            shape = (2, 5, 3, 4) if layout == "NCHW" else (2, 3, 4, 5)
            for stats in (False, True):
                yield Case(f"{layout.lower()}_{'global' if stats else 'train'}_{dtype}",
                           {"X": r.f(shape, dtype=dtype), "Scale": r.f((5,), 0.5, 1.5, dtype), "Bias": r.f((5,), dtype=dtype),
                            "Mean": r.f((5,), dtype=dtype), "Variance": r.f((5,), 0.5, 2, dtype)},
                           "Y,MeanOut,VarianceOut,SavedMean,SavedVariance,ReserveSpace",
                           {"epsilon": 1e-4, "momentum": 0.9, "is_test": False, "data_layout": layout, "use_global_stats": stats,
                            "trainable_statistics": False},
                           alias={"MeanOut": "Mean", "VarianceOut": "Variance"}, no_grad=("Mean", "Variance"),
                           nofetch=("SavedMean", "SavedVariance") if stats else ())


@cases("layer_norm")
def _layer_norm(r, op):
    for dtype in DTYPES:
        yield Case(f"many_rows_{dtype}", {"X": r.f((5, 9, 37), dtype=dtype), "Scale": r.f((37,), dtype=dtype),
                                          "Bias": r.f((37,), dtype=dtype)}, "Y,Mean,Variance", {"epsilon": 1e-5, "begin_norm_axis": 2})


@cases("group_norm")
def _group_norm(r, op):
    for dtype in DTYPES:
        yield Case(f"groups3_{dtype}", {"X": r.f((3, 6, 5, 4), dtype=dtype), "Scale": r.f((6,), dtype=dtype),
                                        "Bias": r.f((6,), dtype=dtype)}, "Y,Mean,Variance",
                   {"epsilon": 1e-4, "groups": 3, "data_layout": "NCHW"})
    yield Case("nchw_6d", {"X": r.f((2, 4, 2, 1, 3, 2)), "Scale": r.f((4,)), "Bias": r.f((4,))}, "Y,Mean,Variance",
               {"epsilon": 1e-4, "groups": 2, "data_layout": "NCHW"})


@cases("instance_norm")
def _instance_norm(r, op):
    for dtype in DTYPES:
        yield Case(f"affine_{dtype}", {"X": r.f((3, 4, 5, 4), dtype=dtype), "Scale": r.f((4,), dtype=dtype),
                                       "Bias": r.f((4,), dtype=dtype)}, "Y,SavedMean,SavedVariance", {"epsilon": 1e-4})


@cases("affine_channel")
def _affine(r, op):
    for layout in ("NCHW", "NHWC"):
        shape = (2, 3, 4, 5) if layout == "NCHW" else (2, 4, 5, 3)
        yield Case(f"float64_{layout.lower()}", {"X": r.f(shape, dtype="float64"), "Scale": r.f((3,), dtype="float64"),
                                                 "Bias": r.f((3,), dtype="float64")}, "Out", {"data_layout": layout})


@cases("lrn")
def _lrn(r, op):
    for layout in ("NCHW", "NHWC"):
        shape = (2, 7, 3, 4) if layout == "NCHW" else (2, 3, 4, 7)
        yield Case(layout.lower(), {"X": r.f(shape, -3, 3)}, "Out,MidOut",
                   {"n": 3, "k": 1.5, "alpha": 0.3, "beta": 0.6, "data_format": layout})


@cases("data_norm")
def _data_norm(r, op):
    for dtype in DTYPES:
        for slots in (False, True):
            x = r.f((5, 6), dtype=dtype)
            if slots:
                x[1, 0] = x[1, 3] = x[2, 3] = 0
            yield Case(f"{'slots' if slots else 'plain'}_{dtype}",
                       {"X": x, "BatchSize": r.f((6,), 5, 9, dtype), "BatchSum": r.f((6,), dtype=dtype),
                        "BatchSquareSum": r.f((6,), 5, 9, dtype)}, "Y,Means,Scales",
                       {"epsilon": 1e-3, "slot_dim": 3 if slots else -1, "enable_scale_and_shift": False})
        x = r.f((5, 6), dtype=dtype)
        x[1, 0] = x[1, 3] = x[2, 3] = 0
        yield Case(f"slots_scaled_{dtype}",
                   {"X": x, "BatchSize": r.f((6,), 5, 9, dtype), "BatchSum": r.f((6,), dtype=dtype), "BatchSquareSum": r.f((6,), 5, 9, dtype),
                    "scale_w": r.f((6,), dtype=dtype), "bias": r.f((6,), dtype=dtype)}, "Y,Means,Scales",
                   {"epsilon": 1e-3, "slot_dim": 3, "enable_scale_and_shift": True})
    yield Case("scaled", {"X": r.f((4, 3)), "BatchSize": r.f((3,), 5, 9), "BatchSum": r.f((3,)), "BatchSquareSum": r.f((3,), 5, 9),
                          "scale_w": r.f((3,)), "bias": r.f((3,))}, "Y,Means,Scales",
               {"epsilon": 1e-3, "slot_dim": -1, "enable_scale_and_shift": True})


@cases("softmax", "log_softmax")
def _softmax(r, op):
    for axis in (1, -1):
        yield Case(f"axis{axis}_double", {"X": r.f((3, 35, 5), dtype="float64")}, "Out", {"axis": axis})
    yield Case("long_rows", {"X": r.f((4, 133))}, "Out", {"axis": -1})


@cases("dropout_nd")
def _dropout_nd(r, op):
    for dtype in ("float32", "float64"):
        for mode in ("upscale_in_train", "downgrade_in_infer"):
            # With fewer axes Paddle reads beyond the mask.
            yield Case(f"all_{mode[:2]}_{dtype}", {"X": r.f((3, 4, 5), dtype=dtype), "Seed": np.array([7], "int32")}, "Out,Mask",
                       {"dropout_prob": 0.3, "dropout_implementation": mode, "axis": [0, 1, 2]})


@cases("dropout")
def _dropout(r, op):
    for dtype in DTYPES:
        for mode in ("upscale_in_train", "downgrade_in_infer"):
            for p in (0.3, 1.0):
                yield Case(f"{mode}_{p}_{dtype}".replace(".", ""), {"X": r.f((4, 5), dtype=dtype)}, "Out,Mask",
                           {"dropout_prob": p, "is_test": False, "dropout_implementation": mode, "fix_seed": True, "seed": 7})


@cases("lookup_table")
def _lookup_table(r, op):
    for dtype in DTYPES:
        yield Case(f"repeats_{dtype}", {"W": r.f((7, 3), dtype=dtype), "Ids": np.array([[[2], [2]], [[0], [6]], [[2], [0]]], "int64")},
                   "Out", {"padding_idx": -1})


@cases("lookup_table_v2")
def _lookup_table_v2(r, op):
    yield Case("repeats", {"W": r.f((7, 3)), "Ids": np.array([[2, 2, 0], [6, 2, 5]], "int64")}, "Out", {"padding_idx": 5})


# ----------------------------------------------------------------------------
# Recurrent networks
# ----------------------------------------------------------------------------
def rnn_case(r, name, mode, layers=1, bi=False, seq=False, dtype="float32", batch=3, hidden=3, **attrs):
    t, i = 4, 2
    gates = {"LSTM": 4, "GRU": 3}.get(mode, 1)
    dirs = 2 if bi else 1
    weights, biases = [], []
    for layer in range(layers):
        for _ in range(dirs):
            weights += [r.f((gates * hidden, i if layer == 0 else hidden * dirs), -0.6, 0.6, dtype),
                        r.f((gates * hidden, hidden), -0.6, 0.6, dtype)]
            biases += [r.f((gates * hidden,), -0.3, 0.3, dtype), r.f((gates * hidden,), -0.3, 0.3, dtype)]
    states = [r.f((layers * dirs, batch, hidden), -0.5, 0.5, dtype) for _ in range(2 if mode == "LSTM" else 1)]
    if bi and seq:      # here Paddle takes the state before the last row of a short sequence for zero, in the gradient
        states = [np.zeros_like(s) for s in states]
    ins = {"Input": r.f((t, batch, i), -1, 1, dtype), "PreState": states, "WeightList": weights + biases}
    if seq:
        ins["SequenceLength"] = np.array([t] + [r.n(1, t - 1) for _ in range(batch - 1)], "int32")
    return Case(name, ins, {"Out": 1, "DropoutState": 1, "State": len(states), "Reserve": 1},
                {"mode": mode, "input_size": i, "hidden_size": hidden, "num_layers": layers, "is_bidirec": bi,
                 "dropout_prob": 0.0, "is_test": False, "seed": 0, **attrs})


@cases("rnn")
def _rnn(r, op):
    for mode in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"):
        short = mode.lower()
        for dtype in DTYPES:
            yield rnn_case(r, f"{short}_{dtype}", mode, dtype=dtype)
        yield rnn_case(r, f"{short}_bi_seq", mode, bi=True, seq=True)
        yield rnn_case(r, f"{short}_2layer_bi_seq", mode, 2, True, True, dtype="float64")
    yield rnn_case(r, "lstm_3layer_dropout", "LSTM", 3, dropout_prob=0.4, seed=7)
    yield rnn_case(r, "gru_2layer_bi_dropout", "GRU", 2, True, dropout_prob=0.3, seed=5)
    yield rnn_case(r, "lstm_many_rows", "LSTM", 1, True, True, batch=14, hidden=5)
    c = rnn_case(r, "gru_only_weights", "GRU", 2)
    c.no_grad = ("Input", "PreState")
    yield c


# ----------------------------------------------------------------------------
# Images
# ----------------------------------------------------------------------------
@cases("nearest_interp", "nearest_interp_v2", "bilinear_interp", "bilinear_interp_v2", "bicubic_interp", "bicubic_interp_v2",
       "linear_interp", "linear_interp_v2", "trilinear_interp", "trilinear_interp_v2")
def _interp(r, op):
    v2, method = op.endswith("_v2"), op.split("_")[0]
    for rank in {"nearest": (2, 3) if v2 else (2,), "linear": (1,), "trilinear": (3,)}.get(method, (2,)):
        sizes = (5, 4, 7)[-rank:]
        for name, dtype, corners, nhwc in (("corners", "float32", True, False), ("half", "float64", False, False),
                                           ("nhwc", "float32", False, True)):
            base = {"data_layout": "NHWC" if nhwc else "NCHW", "interp_method": method, "align_corners": corners, "align_mode": 0,
                    "scale": [] if v2 else 0.0, "out_d": -1, "out_h": -1, "out_w": -1}
            base.update(zip(("out_d", "out_h", "out_w")[-rank:], sizes))
            yield Case(f"{name}_{rank}d_{dtype}", {"X": g.conv_in(r, 2, 3, (3, 5, 4)[-rank:], nhwc).astype(dtype)}, "Out", base,
                       tol=(1e-5, 1e-6))         # coordinates are float32
    for other in ("nearest", "bilinear", "bicubic"):      # the attribute says how, whatever the op is called
        if other != method:
            yield Case(f"as_{other}", {"X": r.f((2, 3, 5, 4))}, "Out",
                       {"data_layout": "NCHW", "interp_method": other, "align_corners": False, "align_mode": 0, "scale": [] if v2 else 0.0,
                        "out_d": -1, "out_h": 4, "out_w": 7}, tol=(1e-5, 1e-6))


@cases("pad")
def _pad(r, op):
    for dtype in DTYPES:
        yield Case(f"rank3_{dtype}", {"X": r.f((2, 3, 4), dtype=dtype)}, "Out", {"paddings": [0, 1, 2, 0, 3, 1], "pad_value": 0.5})


@cases("pad3d")
def _pad3d(r, op):
    for mode in ("constant", "reflect", "replicate", "circular"):
        for layout in ("NCDHW", "NDHWC"):
            shape = (2, 3, 4, 3, 5) if layout == "NCDHW" else (2, 4, 3, 5, 3)
            yield Case(f"{mode}_{layout.lower()}_float64", {"X": r.f(shape, dtype="float64")}, "Out",
                       {"paddings": [2, 1, 1, 2, 0, 3], "mode": mode, "value": 0.0, "data_format": layout})


@cases("pixel_shuffle")
def _pixel_shuffle(r, op):
    yield Case("float64", {"X": r.f((2, 8, 2, 3), dtype="float64")}, "Out", {"upscale_factor": 2, "data_format": "NCHW"})


@cases("shuffle_channel")
def _shuffle_channel(r, op):
    yield Case("square", {"X": r.f((2, 9, 2, 3))}, "Out", {"group": 3})


@cases("grid_sampler")
def _grid_sampler(r, op):
    for mode in ("bilinear", "nearest"):
        for pad in ("zeros", "border", "reflection"):
            for corners in (True, False):
                yield Case(f"{mode}_{pad}_{int(corners)}_float64",
                           {"X": r.f((3, 2, 4, 5), dtype="float64"), "Grid": r.f((3, 3, 4, 2), -2.4, 2.4, "float64")}, "Output",
                           {"mode": mode, "padding_mode": pad, "align_corners": corners})
    yield Case("volume", {"X": r.f((1, 2, 3, 4, 5)), "Grid": r.f((1, 2, 3, 2, 3), -1.2, 1.2)}, "Output",
               {"mode": "bilinear", "padding_mode": "border", "align_corners": False})


def rois(r, dtype):
    return {"X": r.f((2, 3, 8, 7), dtype=dtype), "ROIs": r.boxes(5, 13.0).astype(dtype), "RoisNum": np.array([2, 3], "int32")}


@cases("roi_align")
def _roi_align(r, op):
    for dtype in DTYPES:
        yield Case(f"overlaps_{dtype}", rois(r, dtype), "Out", {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 0.5,
                                                              "sampling_ratio": -1, "aligned": True}, no_grad=("ROIs",))


@cases("roi_pool")
def _roi_pool(r, op):
    for dtype in DTYPES:
        yield Case(f"overlaps_{dtype}", rois(r, dtype), "Out,Argmax", {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 0.5},
                   no_grad=("ROIs",))


@cases("deformable_conv", "deformable_conv_v1")
def _deformable(r, op):
    for dtype in DTYPES:
        for name, groups, dg in (("plain", 1, 1), ("groups", 2, 1), ("both", 2, 4)):
            n, ci, co, k, h, w, p, s = 2, 4, 8, 3, 5, 4, 1, 2
            ho, wo = (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1
            ins = {"Input": r.f((n, ci, h, w), dtype=dtype), "Offset": r.f((n, 2 * dg * k * k, ho, wo), -1.2, 1.2, dtype),
                   "Filter": r.f((co, ci // groups, k, k), dtype=dtype)}
            if op == "deformable_conv":
                ins["Mask"] = r.f((n, dg * k * k, ho, wo), 0, 1, dtype)
            yield Case(f"{name}_{dtype}", ins, "Output", {"strides": [s, s], "paddings": [p, p], "dilations": [1, 1], "groups": groups,
                                                          "deformable_groups": dg, "im2col_step": 1})


def make_with_forward(out_dir, rng, case):
    """A program of the forward op and of the gradient op that Paddle's maker gives; the gradients of the outputs are fed."""
    b, op, ins, outs = g.build_forward(case)
    stop = {n + "@GRAD" for slot, names in ins.items() for n in names
            if slot in case.no_grad or g.array_of(b.feeds[n]).dtype.kind != "f"}
    (desc,), _ = core.get_grad_op_desc(op.desc, stop, [])
    b.fetch = [n[:-5] for n in desc.input_arg_names() if n.endswith("@GRAD")]
    _, res = b.run()
    shapes = {n: a.shape for n, (a, _) in zip(b.fetch, res)}
    dtype = res[0][0].dtype.name
    fetch = []
    for n in desc.input_arg_names():
        if n.endswith("@GRAD"):
            b.feed(g.safe(n), rng.f(shapes[n[:-5]], -1, 1, dtype))
            desc._rename_input(n, g.safe(n))
    for n in desc.output_arg_names():
        if n.endswith("@GRAD"):
            b.output(g.safe(n), dtype)
            desc._rename_output(n, g.safe(n))
            fetch.append(g.safe(n))
    added = b.block.desc.append_op()
    added.copy_from(desc)
    added._set_attr("op_role", 1)
    b.prog._sync_with_cpp()
    b.fetch = fetch
    blob, res = b.run()
    op_type = desc.type()
    slots = {"inputs": {s: list(desc.input(s)) for s in desc.input_names()},
             "outputs": {s: list(desc.output(s)) for s in desc.output_names()}}
    rtol, atol = g.tolerance(op_type, [a for a, _ in res])
    g.write_case(f"{out_dir}/{op_type}/{case.name}", 0, op_type, case.name, blob, b.feeds, dict(zip(fetch, res)), slots,
                 g.visible_attrs(op_type, desc), [case.op, op_type], rtol, atol, f"{case.op} and its gradient.")


def main():
    out, wanted = arguments(__doc__)

    def make(out, case):
        rng = g.Rng(0, f"gradient/{case.op}/{case.name}")
        if case.op in WITH_FORWARD:
            make_with_forward(out, rng, case)
        else:
            g.make_grad_case(out, 0, rng, case, case.op + "_grad")

    make_all(out, cases_of(CASES, "gradient_nn", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
