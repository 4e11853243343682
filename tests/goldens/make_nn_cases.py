#!/usr/bin/env python3
"""make_nn_cases.py - golden cases of kernels/nn that the seeded sets of make_goldens.py do not have.

    python make_nn_cases.py --out nn && ./pack.sh nn

Same needs and same format as make_goldens.py; nn.tar.xz beside this file is the result. Every kernel
in every dtype, and attributes at their edges: windows that stick out, padding beyond the kernel,
uneven padding, strides beyond the kernel, empty batches, vectors and empty sums in products.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, make_all, register
from make_goldens import Case

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
DTYPES = ("float32", "float64")


def conv_case(name, x, w, rank=2, **attrs):
    base = {"strides": [1] * rank, "paddings": [0] * rank, "dilations": [1] * rank, "groups": 1,
            "padding_algorithm": "EXPLICIT", "data_format": "NCHW" if rank == 2 else "NCDHW"}
    base.update(attrs)
    return Case(name, {"Input": x, "Filter": w}, "Output", base)


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
    yield conv_case("one_by_one_map", r.f((2, 24, 1, 1)), r.f((6, 24, 1, 1)))
    yield conv_case("strided_pointwise", r.f((1, 5, 6, 7)), r.f((3, 5, 1, 1)), strides=[2, 2])
    yield conv_case("groups_equal_channels", r.f((1, 6, 5, 4)), r.f((12, 1, 3, 3)), groups=6, paddings=[1, 1])


@cases("depthwise_conv2d")
def _depthwise(r, op):
    yield conv_case("float64", r.f((2, 3, 6, 5), dtype="float64"), r.f((3, 1, 3, 3), dtype="float64"), groups=3,
                    paddings=[1, 1], strides=[2, 1])
    yield conv_case("many_channels", r.f((1, 37, 5, 6)), r.f((37, 1, 5, 5)), groups=37, paddings=[2, 2])
    yield conv_case("many_channels_stride2", r.f((1, 33, 8, 7)), r.f((33, 1, 3, 3)), groups=33, paddings=[1, 1], strides=[2, 2])
    yield conv_case("flat", r.f((1, 18, 1, 9)), r.f((18, 1, 5, 5)), groups=18, paddings=[2, 2], strides=[1, 2])


@cases("conv3d")
def _conv3d(r, op):
    yield conv_case("float64", r.f((1, 2, 4, 5, 3), dtype="float64"), r.f((4, 1, 2, 3, 2), dtype="float64"), rank=3, groups=2,
                    paddings=[1, 0, 1], strides=[2, 1, 1])


def transpose_case(name, x, w, rank=2, **attrs):
    c = conv_case(name, x, w, rank, **{"output_padding": [], "output_size": [], **attrs})
    c.attrs["data_format"] = attrs.get("data_format", "NCHW")
    return c


@cases("conv2d_transpose", "depthwise_conv2d_transpose")
def _conv2d_transpose(r, op):
    depthwise = op.startswith("depthwise")
    for dtype in DTYPES:
        if depthwise:
            yield transpose_case(f"stride1_{dtype}", r.f((1, 5, 4, 3), dtype=dtype), r.f((5, 1, 3, 2), dtype=dtype), groups=5,
                                 paddings=[1, 0])
            continue
        yield transpose_case(f"stride_is_kernel_{dtype}", r.f((2, 5, 4, 3), dtype=dtype), r.f((5, 3, 2, 2), dtype=dtype),
                             strides=[2, 2])
        yield transpose_case(f"gaps_{dtype}", r.f((1, 4, 3, 3), dtype=dtype), r.f((4, 2, 2, 3), dtype=dtype), groups=2,
                             strides=[3, 4], paddings=[1, 2])
        yield transpose_case(f"dilated_{dtype}", r.f((1, 2, 4, 3), dtype=dtype), r.f((2, 3, 2, 3), dtype=dtype),
                             dilations=[2, 3], paddings=[1, 1], output_padding=[1, 0], strides=[2, 1])


@cases("conv3d_transpose")
def _conv3d_transpose(r, op):
    for dtype in DTYPES:
        yield transpose_case(f"ncdhw_{dtype}", r.f((2, 2, 3, 4, 3), dtype=dtype), r.f((2, 3, 2, 3, 3), dtype=dtype), rank=3,
                             strides=[2, 1, 2], paddings=[1, 0, 1], output_padding=[1, 0, 1])
        yield transpose_case(f"ndhwc_{dtype}", r.f((1, 3, 2, 3, 4), dtype=dtype), r.f((4, 1, 2, 3, 3), dtype=dtype), rank=3,
                             groups=2, strides=[1, 2, 2], data_format="NHWC")


@cases("deformable_conv", "deformable_conv_v1")
def _deformable(r, op):
    for dtype in DTYPES:
        for name, groups, dg, k in (("plain", 1, 1, 3), ("split", 1, 3, 2), ("crossed", 3, 2, 3)):
            n, c, h, w = 2, 6, 5, 4
            ins = {"Input": r.f((n, c, h, w), dtype=dtype), "Offset": r.f((n, 2 * dg * k * k, h + 2 - k + 1, w + 2 - k + 1), -2.5, 2.5, dtype),
                   "Filter": r.f((6, c // groups, k, k), dtype=dtype)}
            if op == "deformable_conv":
                ins["Mask"] = r.f((n, dg * k * k, h + 2 - k + 1, w + 2 - k + 1), 0, 1, dtype)
            yield Case(f"{name}_{dtype}", ins, "Output", {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1],
                                                          "groups": groups, "deformable_groups": dg, "im2col_step": 2})


@cases("pool2d")
def _pool2d(r, op):
    def one(name, kind, x, k, **attrs):
        base = {"pooling_type": kind, "ksize": k, "strides": [1, 1], "paddings": [0, 0], "global_pooling": False,
                "ceil_mode": False, "exclusive": True, "adaptive": False, "padding_algorithm": "EXPLICIT", "data_format": "NCHW"}
        return Case(name, {"X": x}, "Out", {**base, **attrs})
    for dtype in DTYPES:
        yield one(f"avg_{dtype}", "avg", r.f((2, 3, 5, 6), dtype=dtype), [3, 2], paddings=[1, 1], strides=[2, 1], exclusive=False)
        yield one(f"adaptive_{dtype}", "avg", r.f((2, 3, 5, 7), dtype=dtype), [3, 5], adaptive=True)
    yield one("window_sticks_out", "max", r.f((1, 2, 1, 5)), [2, 2], strides=[2, 2])
    yield one("large_overlap", "max", r.f((1, 3, 9, 8)), [5, 7], paddings=[2, 3])
    yield one("large_overlap_uneven", "max", r.f((2, 19, 8, 7)), [5, 4], paddings=[2, 1, 0, 3])
    yield one("uneven_inclusive", "avg", r.f((1, 2, 6, 5)), [3, 3], paddings=[0, 2, 1, 0], strides=[2, 2], exclusive=False, ceil_mode=True)
    yield one("many_channels", "avg", r.f((1, 70, 3, 4)), [2, 2], ceil_mode=True, strides=[2, 2])
    yield one("global_many_channels", "avg", r.f((2, 37, 4, 3)), [1, 1], global_pooling=True)
    yield one("stride_beyond_kernel", "max", r.f((1, 2, 9, 8)), [2, 1], strides=[4, 3])
    yield one("adaptive_max_strided", "max", r.f((1, 2, 6, 7)), [2, 3], strides=[2, 2], adaptive=True)
    yield one("infinite", "max", np.full((1, 1, 3, 3), -np.inf, "float32"), [2, 2])


@cases("pool3d")
def _pool3d(r, op):
    for dtype in DTYPES:
        for kind in ("max", "avg"):
            yield Case(f"{kind}_{dtype}", {"X": r.f((1, 2, 4, 5, 4), dtype=dtype)}, "Out",
                       {"pooling_type": kind, "ksize": [2, 3, 3], "strides": [1, 1, 1], "paddings": [1, 1, 1], "global_pooling": False,
                        "ceil_mode": True, "exclusive": False, "adaptive": False, "padding_algorithm": "EXPLICIT", "data_format": "NCDHW"})


@cases("batch_norm")
def _batch_norm(r, op):
    for dtype in DTYPES:
        for name, shape, layout, test in (("train_3d", (2, 3, 5), "NCHW", False), ("test_2d", (4, 5), "NCHW", True),
                                          ("train_nhwc_5d", (2, 2, 3, 2, 3), "NHWC", False), ("one_pixel", (1, 4, 1, 1), "NCHW", False)):
            c = shape[-1] if layout == "NHWC" else shape[1]
            yield Case(f"{name}_{dtype}", {"X": r.f(shape, -2, 3, dtype), "Scale": r.f((c,), 0.5, 2, dtype), "Bias": r.f((c,), -1, 1, dtype),
                                           "Mean": r.f((c,), -1, 1, dtype), "Variance": r.f((c,), 0.5, 2, dtype)},
                       "Y,MeanOut,VarianceOut,SavedMean,SavedVariance,ReserveSpace",
                       {"is_test": test, "momentum": 0.7, "epsilon": 1e-4, "data_layout": layout, "use_global_stats": False,
                        "trainable_statistics": False},
                       alias={"MeanOut": "Mean", "VarianceOut": "Variance"},
                       nofetch=("SavedMean", "SavedVariance") + (("MeanOut", "VarianceOut") if name == "one_pixel" else ()))


@cases("group_norm")
def _group_norm(r, op):
    for dtype in DTYPES:
        for name, shape, layout in (("nchw_3d", (2, 6, 5), "NCHW"), ("nhwc_5d", (1, 2, 2, 3, 6), "NHWC"), ("pairs", (3, 6, 1, 1), "NCHW"),
                                    ("nchw_6d", (2, 6, 2, 1, 3, 2), "NCHW")):
            yield Case(f"{name}_{dtype}", {"X": r.f(shape, -2, 3, dtype), "Scale": r.f((6,), dtype=dtype), "Bias": r.f((6,), dtype=dtype)},
                       "Y,Mean,Variance", {"epsilon": 1e-4, "groups": 3, "data_layout": layout})


@cases("instance_norm")
def _instance_norm(r, op):
    for dtype in DTYPES:
        yield Case(f"large_{dtype}", {"X": r.f((2, 3, 7, 9), 5, 9, dtype), "Scale": r.f((3,), dtype=dtype), "Bias": r.f((3,), dtype=dtype)},
                   "Y,SavedMean,SavedVariance", {"epsilon": 1e-5})


@cases("layer_norm")
def _layer_norm(r, op):
    for dtype in DTYPES:
        yield Case(f"long_rows_{dtype}", {"X": r.f((2, 3, 150), 3, 9, dtype), "Scale": r.f((150,), dtype=dtype), "Bias": r.f((150,), dtype=dtype)},
                   "Y,Mean,Variance", {"epsilon": 1e-5, "begin_norm_axis": 2})


@cases("softmax", "log_softmax")
def _softmax(r, op):
    for dtype in DTYPES:
        yield Case(f"long_{dtype}", {"X": r.f((3, 300), -20, 20, dtype)}, "Out", {"axis": -1})
        yield Case(f"columns_{dtype}", {"X": r.f((2, 5, 70), -9, 9, dtype)}, "Out", {"axis": 1})
        for axis in range(4):
            yield Case(f"rank4_axis{axis}_{dtype}", {"X": r.f((2, 3, 4, 2), -9, 9, dtype)}, "Out", {"axis": axis})


@cases("dropout")
def _dropout(r, op):
    for k, dtype in enumerate(DTYPES):
        for impl in ("downgrade_in_infer", "upscale_in_train"):
            base = {"dropout_implementation": impl, "dropout_prob": 0.3 + 0.2 * k}
            yield Case(f"seeded_{impl}_{dtype}", {"X": r.f((7, 9), dtype=dtype)}, "Out,Mask",
                       {**base, "is_test": False, "fix_seed": True, "seed": 11 + k}, notes="the mask follows from the seed")
            yield Case(f"test_{impl}_{dtype}", {"X": r.f((3, 5), dtype=dtype)}, "Out,Mask", {**base, "is_test": True}, nofetch=("Mask",))
    yield Case("seed_tensor", {"X": r.f((5, 6)), "Seed": np.array([5], "int32")}, "Out,Mask",
               {"dropout_implementation": "upscale_in_train", "dropout_prob": 0.4, "is_test": False})


@cases("rnn")
def _rnn(r, op):
    def one(name, mode, layers, bi, seq, is_test, dtype, dropout=0.0, seed=0, t=4, b=3, i=5, h=6):
        gates = {"LSTM": 4, "GRU": 3}.get(mode, 1)
        dirs = 2 if bi else 1
        weights, biases = [], []
        for layer in range(layers):
            for _ in range(dirs):
                weights += [r.f((gates * h, i if layer == 0 else h * dirs), -0.6, 0.6, dtype), r.f((gates * h, h), -0.6, 0.6, dtype)]
                biases += [r.f((gates * h,), -0.3, 0.3, dtype), r.f((gates * h,), -0.3, 0.3, dtype)]
        states = [r.f((layers * dirs, b, h), -0.5, 0.5, dtype) for _ in range(2 if mode == "LSTM" else 1)]
        ins = {"Input": r.f((t, b, i), -1, 1, dtype), "PreState": states, "WeightList": weights + biases}
        if seq:
            ins["SequenceLength"] = np.array([2, t, 1][:b], "int32")
        return Case(name, ins, {"Out": 1, "DropoutState": 1, "State": len(states), "Reserve": 1},
                    {"mode": mode, "input_size": i, "hidden_size": h, "num_layers": layers, "is_bidirec": bi,
                     "dropout_prob": dropout, "is_test": is_test, "seed": seed})
    for dtype in DTYPES:
        for mode in ("LSTM", "GRU", "RNN_RELU"):
            yield one(f"{mode.lower()}_{dtype}", mode, 2, True, True, False, dtype)
    yield one("lstm_many_rows", "LSTM", 1, True, False, True, "float32", b=14, t=3, i=2, h=3)
    yield one("gru_dropout", "GRU", 3, True, False, False, "float32", dropout=0.4, seed=9)


@cases("mul")
def _mul(r, op):
    yield Case("wide", {"X": r.f((15, 41)), "Y": r.f((41, 37))}, "Out", {"x_num_col_dims": 1, "y_num_col_dims": 1})


@cases("matmul")
def _matmul(r, op):
    def one(name, x, y, a=False, b=False, alpha=1.0):
        return Case(name, {"X": x, "Y": y}, "Out", {"transpose_X": a, "transpose_Y": b, "alpha": alpha})
    yield one("regrouped_batch", r.f((2, 3, 4, 5)), r.f((6, 5, 2)))
    yield one("y_batched", r.f((4, 5)), r.f((3, 5, 2)))
    yield one("outer_product", r.f((4,)), r.f((5,)), True, True, 0.5)
    yield one("float64_batched", r.f((2, 5, 4), dtype="float64"), r.f((2, 3, 5), dtype="float64"), True, True, 2.0)
    yield one("row_times_vector", r.f((1, 5)), r.f((5,)))


@cases("matmul_v2")
def _matmul_v2(r, op):
    def one(name, x, y, a=False, b=False):
        return Case(name, {"X": x, "Y": y}, "Out", {"trans_x": a, "trans_y": b})
    for dtype in ("int32", "int64"):
        yield one(f"batch_{dtype}", r.i((2, 3, 4), -9, 9).astype(dtype), r.i((2, 4, 5), -9, 9).astype(dtype))
    yield one("wide", r.f((17, 45)), r.f((45, 70)))
    yield one("wide_transposed", r.f((45, 17)), r.f((70, 45)), True, True)
    yield one("deep", r.f((3, 600), -0.5, 0.5), r.f((600, 5), -0.5, 0.5))
    yield one("row_times_wide", r.f((1, 33)), r.f((33, 150)))
    yield one("broadcast_both", r.f((3, 1, 2, 4)), r.f((1, 5, 4, 3)))
    yield one("one_column", r.f((6, 40)), r.f((40, 1)))
    yield one("batched_vector_left", r.f((4,)), r.f((2, 3, 4, 5)))
    yield one("transposed_batch_of_one", r.f((1, 5, 4)), r.f((3, 5, 2)), True)


@cases("fc")
def _fc(r, op):
    for act in ("", "relu"):
        yield Case(f"act_{act}", {"Input": r.f((2, 3, 5)), "W": r.f((5, 7)), "Bias": r.f((7,))}, "Out",
                   {"in_num_col_dims": 2, "activation_type": act})
    yield Case("no_bias", {"Input": r.f((4, 2, 3)), "W": r.f((6, 33))}, "Out", {"in_num_col_dims": 1, "activation_type": ""})


@cases("dot")
def _dot(r, op):
    for dtype in ("float32", "float64", "int32", "int64"):
        for k, shape in enumerate(((7,), (3, 5))):
            yield Case(f"rank{k + 1}_{dtype}", {"X": r.f(shape, -9, 9).astype(dtype), "Y": r.f(shape, -9, 9).astype(dtype)}, "Out")


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
        yield Case(layout.lower(), {"X": r.f(shape, -3, 3)}, "Out,MidOut", {"n": 3, "k": 1.5, "alpha": 0.3, "beta": 0.6, "data_format": layout})


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "nn", wanted), lambda out, case: g.make_forward_case(out, 0, case))


if __name__ == "__main__":
    sys.exit(main())
