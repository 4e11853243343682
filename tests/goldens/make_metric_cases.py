#!/usr/bin/env python3
"""make_metric_cases.py - golden cases of losses, metrics and other ops of evaluation programs.

    python make_metric_cases.py --out metric && ./pack.sh metric

Same needs and same format as make_goldens.py; metric.tar.xz beside this file is the result. `--seed`
draws other values of the same cases.
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


def probabilities(r, shape, dtype="float32", axis=-1):
    p = r.f(shape, 0.05, 1, dtype)
    return (p / p.sum(axis, keepdims=True)).astype(dtype)


# ----------------------------------------------------------------------------
# Losses
# ----------------------------------------------------------------------------
@cases("bce_loss")
def _bce_loss(r, op):
    for dtype in FLOATS:
        yield Case(f"matrix_{dtype}", {"X": r.f((4, 3), 0.01, 0.99, dtype), "Label": r.f((4, 3), 0, 1, dtype)}, "Out")
    yield Case("bounds", {"X": np.array([0, 1, 0, 1, 1e-45, 1], "float32"), "Label": np.array([0, 0, 1, 1, 1, 0.5], "float32")}, "Out")
    yield Case("rank0", {"X": np.array(0.3, "float32"), "Label": np.array(1, "float32")}, "Out")
    yield Case("empty", {"X": np.zeros((0, 3), "float32"), "Label": np.zeros((0, 3), "float32")}, "Out")
    yield Case("long", {"X": r.f((300, 70), 0.01, 0.99), "Label": r.i((300, 70), 0, 1, "float32")}, "Out")
    yield Case("lod", {"X": LoD(r.f((5, 2), 0.1, 0.9), [[0, 2, 5]]), "Label": r.f((5, 2), 0, 1)}, "Out")


@cases("log_loss")
def _log_loss(r, op):
    for eps in (1e-4, 0.1, 0.0):
        yield Case(f"epsilon{eps}", {"Predicted": r.f((6, 1), 0.01, 0.99), "Labels": r.f((6, 1), 0, 1)}, "Loss", {"epsilon": eps})
    yield Case("bounds", {"Predicted": np.array([[0], [1], [0], [1]], "float32"), "Labels": np.array([[0], [0], [1], [1]], "float32")},
               "Loss", {"epsilon": 1e-4})


@cases("hinge_loss")
def _hinge_loss(r, op):
    yield Case("plain", {"Logits": r.f((7, 1), -3, 3), "Labels": r.i((7, 1), 0, 1, "float32")}, "Loss")
    yield Case("lod", {"Logits": LoD(r.f((5, 1), -3, 3), [[0, 2, 5]]), "Labels": r.i((5, 1), 0, 1, "float32")}, "Loss")


@cases("rank_loss")
def _rank_loss(r, op):
    s = (6, 1)
    yield Case("plain", {"Label": r.i(s, 0, 1, "float32"), "Left": r.f(s, -3, 3), "Right": r.f(s, -3, 3)}, "Out")
    yield Case("large", {"Label": r.f(s, 0, 1), "Left": r.f(s, -70, 70), "Right": r.f(s, -10, 10)}, "Out")


@cases("huber_loss")
def _huber_loss(r, op):
    for dtype in FLOATS:
        yield Case(f"matrix_{dtype}", {"X": r.f((4, 3), -3, 3, dtype), "Y": r.f((4, 3), -3, 3, dtype)}, "Out,Residual", {"delta": 1.2})
    yield Case("delta0", {"X": r.f((4, 1)), "Y": r.f((4, 1))}, "Out,Residual", {"delta": 0.0})
    yield Case("rank0", {"X": np.array(0.3, "float32"), "Y": np.array(2, "float32")}, "Out,Residual", {"delta": 1.0})
    yield Case("lod", {"X": LoD(r.f((5, 2)), [[0, 2, 5]]), "Y": r.f((5, 2))}, "Out,Residual", {"delta": 0.5})


@cases("kldiv_loss")
def _kldiv_loss(r, op):
    for red in ("none", "mean", "sum", "batchmean"):
        for dtype in FLOATS:
            yield Case(f"{red}_{dtype}", {"X": r.f((5, 3, 2), -3, 0, dtype), "Target": r.f((5, 3, 2), -0.2, 1, dtype)}, "Loss", {"reduction": red})
    yield Case("vector", {"X": r.f((5,), -3, 0), "Target": r.f((5,), 0, 1)}, "Loss", {"reduction": "batchmean"})
    yield Case("long", {"X": r.f((200, 90), -3, 0), "Target": r.f((200, 90), 0, 1)}, "Loss", {"reduction": "sum"})


@cases("sigmoid_cross_entropy_with_logits")
def _sigmoid_cross_entropy(r, op):
    def one(name, x, label, normalize=False, ignore=-100, **ins):
        return Case(name, {"X": x, "Label": label, **ins}, "Out", {"normalize": normalize, "ignore_index": ignore})
    for dtype in FLOATS:
        x = r.f((4, 3), -6, 6, dtype)
        yield one(f"plain_{dtype}", x, r.f((4, 3), 0, 1, dtype))
        yield one(f"pos_weight_{dtype}", x, r.f((4, 3), 0, 1, dtype), pos_weight=r.f((4, 3), 0.2, 3, dtype))
        yield one(f"normalize_{dtype}", x, r.i((4, 3), -1, 1, dtype), True, -1)
        yield one(f"fractions_ignored_{dtype}", x, r.f((4, 3), -0.9, 1.9, dtype), True, 0)
    yield one("all_ignored", r.f((2, 3)), np.full((2, 3), 7, "float32"), True, 7)
    yield one("large", np.array([-90, 90, -200, 200], "float32"), np.array([0, 1, 1, 0], "float32"))
    yield one("rank0", np.array(0.3, "float32"), np.array(1, "float32"))
    yield one("lod", LoD(r.f((5, 2)), [[0, 2, 5]]), r.f((5, 2), 0, 1))


@cases("cross_entropy", "cross_entropy2")
def _cross_entropy(r, op):
    outs = "Y" if op == "cross_entropy" else "Y,XShape,MatchX"

    def one(name, x, label, **attrs):
        return Case(name, {"X": x, "Label": label}, outs, {"ignore_index": -100, **attrs})
    for dtype in FLOATS:
        for label in INTS[1:]:
            yield one(f"hard_{dtype}_{label}", probabilities(r, (5, 4), dtype), r.i((5, 1), 0, 3, label))
            yield one(f"rank3_{dtype}_{label}", probabilities(r, (3, 2, 4), dtype), r.i((3, 2, 1), 0, 3, label))
            yield one(f"no_column_{dtype}_{label}", probabilities(r, (3, 2, 4), dtype), r.i((3, 2), 0, 3, label))
            yield one(f"ignored_{dtype}_{label}", probabilities(r, (6, 3), dtype), r.i((6, 1), 0, 2, label), ignore_index=1)
        if op == "cross_entropy":
            yield one(f"soft_{dtype}", probabilities(r, (5, 4), dtype), probabilities(r, (5, 4), dtype), soft_label=True)
            yield one(f"soft_rank3_{dtype}", probabilities(r, (5, 2, 3), dtype), probabilities(r, (5, 2, 3), dtype), soft_label=True)
    zero = np.array([[0, 1, 0], [1, 0, 0]], "float32")
    yield one("zero", zero, np.array([[0], [1]]))
    if op == "cross_entropy":
        yield one("soft_zero", zero, np.array([[0.5, 0.5, 0], [0, 0, 1]], "float32"), soft_label=True)
    yield one("lod", LoD(probabilities(r, (5, 4)), [[0, 2, 5]]), LoD(r.i((5, 1), 0, 3), [[0, 2, 5]]))
    if op == "cross_entropy":
        for dtype in FLOATS:      # of labels as well; what is behind the point is dropped
            yield one(f"label_of_{dtype}", probabilities(r, (4, 3)), np.array([[1], [2.7], [-0.4], [0]], dtype))


@cases("softmax_with_cross_entropy")
def _softmax_with_cross_entropy(r, op):
    def one(name, logits, label, axis=-1, **attrs):
        return Case(name, {"Logits": logits, "Label": label}, "Softmax,Loss",
                    {"axis": axis, "soft_label": False, "ignore_index": -100, "numeric_stable_mode": True, "use_softmax": True, **attrs})
    for dtype in FLOATS:
        for label in INTS:
            yield one(f"hard_{dtype}_{label}", r.f((5, 4), -4, 4, dtype), r.i((5, 1), 0, 3, label))
            yield one(f"axis1_{dtype}_{label}", r.f((3, 4, 2, 2), -4, 4, dtype), r.i((3, 1, 2, 2), 0, 3, label), 1)
            yield one(f"axis0_{dtype}_{label}", r.f((4, 3), -4, 4, dtype), r.i((1, 3), 0, 3, label), -2, ignore_index=2)
        yield one(f"soft_{dtype}", r.f((5, 4), -4, 4, dtype), probabilities(r, (5, 4), dtype), soft_label=True)
        yield one(f"soft_axis1_{dtype}", r.f((2, 4, 3), -4, 4, dtype), probabilities(r, (2, 4, 3), dtype, 1), 1, soft_label=True)
        yield one(f"given_{dtype}", probabilities(r, (5, 4), dtype), r.i((5, 1), 0, 3), use_softmax=False)
        yield one(f"given_soft_{dtype}", probabilities(r, (5, 4), dtype), probabilities(r, (5, 4), dtype), use_softmax=False, soft_label=True)
    yield one("far_apart", np.array([[0, 200, -300], [90, 0, 1]], "float32"), np.array([[0], [2]]))
    yield one("not_stable", r.f((5, 4), -4, 4), r.i((5, 1), 0, 3), numeric_stable_mode=False)
    yield one("vector", r.f((4,), -4, 4), np.array([2]), 0)
    yield one("wide", r.f((3, 700), -4, 4), r.i((3, 1), 0, 699))
    yield one("lod", LoD(r.f((5, 4)), [[0, 2, 5]]), r.i((5, 1), 0, 3))
    for dtype in FLOATS:
        yield one(f"label_of_{dtype}", r.f((4, 3)), np.array([[1], [2.7], [-0.4], [0]], dtype))


# ----------------------------------------------------------------------------
# Parts, matrices, int8
# ----------------------------------------------------------------------------
@cases("set_value")
def _set_value(r, op):
    code = g.DTYPE_CODE

    def some(shape, dtype):
        if dtype == "bool":
            return r.i(shape, 0, 1, "int64").astype(bool)
        return r.f(shape, -3, 3, dtype) if dtype in FLOATS else r.i(shape, -9, 9, dtype)

    def one(name, x, value, axes, starts, ends, steps=None, decrease=(), none=(), lists="", inplace=False, **more):
        """`value`: an array, given as ValueTensor, or a list of numbers with its shape."""
        bounds = {"starts": list(starts), "ends": list(ends), "steps": list(steps or [1] * len(axes))}
        attrs = {"axes": list(axes), "decrease_axes": list(decrease), "none_axes": list(none), "dtype": code[x.dtype.name], **bounds, **more}
        ins = {"Input": x}
        if isinstance(value, np.ndarray):
            ins["ValueTensor"] = value
        else:
            attrs["values"], attrs["shape"] = value
        for key in lists.split():
            ins[f"{key.capitalize()}TensorList"] = [np.array([v], r.pick("int32", "int64")) for v in bounds[key]]
            del attrs[key]
        return Case(name, ins, "Out", attrs, alias={"Out": "Input"} if inplace else {})
    for dtype in ("float32", "float64", "int32", "int64", "bool"):
        x = some((4, 5, 3), dtype)
        number = [True] if dtype == "bool" else [2] if dtype not in FLOATS else [2.5]
        yield one(f"number_{dtype}", x, (number, [1]), [0], [1], [3])
        yield one(f"tensor_{dtype}", x, some((2, 5, 3), dtype), [0], [1], [3])
        yield one(f"tensor_inplace_{dtype}", x, some((5, 3), dtype), [0], [1], [3], inplace=True)
    x = r.f((4, 5, 3))
    yield one("values", x, ([1.0, 2.0, 3.0], [3]), [1], [0], [5], [2])
    yield one("values_matrix", x, ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 1, 3]), [0, 1], [0, 1], [4, 4], [3, 1])
    yield one("all", x, ([7.0], [1]), [], [], [])
    yield one("index", x, r.f((3,)), [0, 1], [2, -1], [3, 5], decrease=[0, 1])
    yield one("index_row", x, r.f((5, 3)), [0], [-1], [2147483647], decrease=[0])
    yield one("index_all", x, ([7.5], []), [0, 1, 2], [1, 2, 0], [2, 3, 1], decrease=[0, 1, 2])
    yield one("index_middle", x, r.f((4, 1)), [1], [3], [4], decrease=[1])
    yield one("new_first", x, r.f((1, 2, 5, 3)), [0], [0], [2], none=[0])
    yield one("new_middle", x, r.f((2, 1, 5, 1)), [0], [1], [3], none=[1])
    yield one("new_last", x, r.f((4, 5, 3, 1)), [], [], [], none=[3])
    yield one("new_twice", x, r.f((1, 3, 1)), [1], [1], [2], decrease=[1], none=[0, 3])
    yield one("new_after_index", x, r.f((4, 1, 3)), [1], [1], [2], decrease=[1], none=[1])
    yield one("step", x, r.f((2, 3, 3)), [0, 1], [0, 0], [4, 5], [2, 2])
    yield one("backwards", x, r.f((4, 5, 3)), [0], [3], [-2147483648], [-1])
    yield one("backwards_part", x, r.f((2, 2, 3)), [0, 1], [-1, 4], [0, 0], [-2, -3])
    yield one("backwards_broadcast", x, r.f((3,)), [1], [4], [1], [-2])
    yield one("backwards_with_new", x, r.f((1, 4, 5, 1)), [0], [3], [-9], [-1], none=[0])
    yield one("beyond", x, r.f((2, 5, 3)), [0], [2], [99])
    yield one("step_beyond", x, r.f((1, 5, 3)), [0], [1], [4], [77])
    yield one("nothing", x, r.f((5, 3)), [0], [2], [2])
    yield one("nothing_backwards", x, r.f((1,)), [0], [1], [1], [-1])
    yield one("leading_ones", x, r.f((1, 1, 1, 3)), [0], [1], [3])
    yield one("scalar_tensor", x, np.array(3.5, "float32"), [0], [1], [3])
    yield one("infinite", x, np.array([np.inf, -np.inf, np.nan], "float32"), [0], [1], [3])
    yield one("vector", r.f((6,)), r.f((3,)), [0], [0], [6], [2])
    yield one("rank6", r.f((2, 1, 2, 1, 3, 2)), r.f((2, 1)), [0, 4], [0, 1], [1, 3], inplace=True)
    for lists in ("starts", "ends", "steps", "starts ends", "starts steps", "ends steps", "starts ends steps"):
        yield one("list_" + lists.replace(" ", "_"), x, r.f((2, 3, 3)), [0, 1], [0, 0], [4, 5], [2, 2], lists=lists)
        yield one("list_values_" + lists.replace(" ", "_"), x, ([2.0], [1]), [0, 1], [0, 3], [4, 1], [2, -1], lists=lists)


@cases("inverse")
def _inverse(r, op):
    for dtype in FLOATS:
        for name, shape in (("one", (1, 1)), ("matrix", (4, 4)), ("batch", (3, 5, 5)), ("batches", (2, 2, 3, 3)), ("wide", (40, 40))):
            x = r.f(shape, -1, 1, dtype)
            yield Case(f"{name}_{dtype}", {"Input": x + 0.1 * shape[-1] * np.eye(shape[-1], dtype=dtype)}, "Output", tol=(1e-3, 1e-4) if dtype == "float32" else None)
    yield Case("exchanges", {"Input": np.array([[0, 2, 0], [0, 0, 4], [1, 0, 0]], "float32")}, "Output")


def int8(r, shape, dtype):
    return r.i(shape, 0, 255, dtype) if dtype == "uint8" else r.i(shape, -128, 127, dtype)


@cases("quantize")
def _quantize(r, op):
    def one(name, x, scale, shift=0.0, negative=False):
        return Case(name, {"Input": x}, "Output", {"Scale": scale, "Shift": shift, "is_negative_input": negative, "output_format": "NHWC",
                                                   "bfloat16": False, "use_mkldnn": True})
    yield one("positive", r.f((2, 3, 4, 5), 0, 2), 127.0)
    yield one("negative", r.f((2, 3, 4, 5), -2, 2), 80.0, negative=True)
    yield one("shift", r.f((2, 3, 4), -2, 2), 60.0, 128.0, True)
    yield one("shift_positive", r.f((2, 7), -2, 2), 60.0, 100.0)
    yield one("ties", np.array([0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5], "float32"), 1.0, negative=True)
    yield one("clipped", np.array([-1e9, 1e9, -129, 128, 255.6, 300], "float32"), 1.0)
    yield one("clipped_negative", np.array([-1e9, 1e9, -129, 128, 255.6, 300], "float32"), 1.0, negative=True)


@cases("dequantize")
def _dequantize(r, op):
    for dtype in ("int8", "uint8"):
        for shift in (0.0, 100.0):
            yield Case(f"shift{int(shift)}_{dtype}", {"Input": int8(r, (2, 3, 4, 5), dtype)}, "Output",
                       {"Scale": r.scalar(20, 130), "Shift": shift, "use_mkldnn": True})


@cases("requantize")
def _requantize(r, op):
    def one(name, dtype, scale_in, scale_out, shift_in=0.0, shift_out=0.0):
        return Case(name, {"Input": int8(r, (2, 3, 4, 5), dtype)}, "Output",
                    {"Scale_in": scale_in, "Scale_out": scale_out, "Shift_in": shift_in, "Shift_out": shift_out, "use_mkldnn": True})
    for dtype in ("int8", "uint8"):
        yield one(f"down_{dtype}", dtype, 2.0, 1.5)
        yield one(f"up_{dtype}", dtype, 60.0, 127.0)
        yield one(f"to_shift_{dtype}", dtype, 60.0, 30.0, 0.0, 128.0)
    yield one("shifts", "uint8", 60.0, 50.0, 128.0, 128.0)
    yield one("from_shift", "uint8", 60.0, 50.0, 20.0, 0.0)


# ----------------------------------------------------------------------------
# Metrics
# ----------------------------------------------------------------------------
@cases("accuracy")
def _accuracy(r, op):
    def one(name, n, k, classes=6, dtype="float32"):
        idx = np.stack([r.perm(classes)[:k] for _ in range(n)]).astype("int64")
        lab = r.i((n, 1), 0, classes - 1)
        return Case(name, {"Out": r.f((n, k), 0, 1, dtype), "Indices": idx, "Label": lab}, "Accuracy,Correct,Total")
    for dtype in FLOATS:
        yield one(f"top1_{dtype}", 9, 1, dtype=dtype)
        yield one(f"top3_{dtype}", 9, 3, dtype=dtype)
    idx = np.array([[2, 2], [1, 0]])
    yield Case("repeated", {"Out": r.f((2, 2)), "Indices": idx, "Label": np.array([[2], [3]])}, "Accuracy,Correct,Total")


@cases("auc")
def _auc(r, op):
    def one(name, n, t, slide=0, curve="ROC", width=2, runs=0, weight=None, label=(1,)):
        size = (slide + 1) * (t + 1) + (1 if slide else 0)
        stats = {s: r.i((size,) if slide else (1, size), 0, 5) for s in ("StatPos", "StatNeg")}
        if slide:     # the sum of the steps, and the number of runs
            for s in stats.values():
                s[slide * (t + 1):-1] = s[:slide * (t + 1)].reshape(slide, t + 1).sum(0)
                s[-1] = runs
        ins = {"Predict": r.f((n, width), 0, 1), "Label": r.i((n, *label), 0, 1), **stats}
        if weight is not None:
            ins["InsTagWeight"] = np.array([[weight]], "float32")
        # Paddle leaves AUC as it was for a batch without data and no steps.
        return Case(name, ins, "AUC,StatPosOut,StatNegOut", {"curve": curve, "num_thresholds": t, "slide_steps": slide},
                    alias={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"}, nofetch=("AUC",) if weight == 0 and not slide else ())
    yield one("two_columns", 20, 15)
    yield one("one_column", 20, 15, width=1)
    yield one("many_thresholds", 30, 4095)
    yield one("labels_of_rank1", 9, 7, label=())
    yield one("slide1", 20, 15, 1)
    for runs in range(4):
        yield one(f"slide3_run{runs}", 12, 7, 3, runs=runs)
    yield one("weight1", 12, 7, weight=1)
    yield one("weight0", 12, 7, weight=0)
    yield one("slide_weight0", 12, 7, 2, runs=1, weight=0)
    edges = np.array([[0], [1], [1], [0]], "float32")
    zero = np.zeros((1, 4), "int64")
    yield Case("edges", {"Predict": edges, "Label": np.array([[0], [1], [0], [1]]), "StatPos": zero, "StatNeg": zero.copy()},
               "AUC,StatPosOut,StatNegOut", {"num_thresholds": 3, "slide_steps": 0}, alias={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"})
    yield Case("one_class", {"Predict": r.f((4, 1), 0, 1), "Label": np.ones((4, 1), "int64"), "StatPos": zero, "StatNeg": zero.copy()},
               "AUC,StatPosOut,StatNegOut", {"num_thresholds": 3, "slide_steps": 0}, alias={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"})
    yield Case("own_outputs", {"Predict": r.f((4, 1), 0, 1), "Label": r.i((4, 1), -1, 1), "StatPos": r.i((1, 4), 0, 3), "StatNeg": r.i((1, 4), 0, 3)},
               "AUC,StatPosOut,StatNegOut", {"num_thresholds": 3, "slide_steps": 0})
    # As paddle.static.auc with slide_steps=0 has them: the last element is dropped.
    yield Case("further_elements", {"Predict": r.f((9, 2), 0, 1), "Label": r.i((9, 1), 0, 1), "StatPos": r.i((9,), 0, 3), "StatNeg": r.i((9,), 0, 3)},
               "AUC,StatPosOut,StatNegOut", {"num_thresholds": 7, "slide_steps": 0})


@cases("chunk_eval")
def _chunk_eval(r, op):
    outs = "Precision,Recall,F1-Score,NumInferChunks,NumLabelChunks,NumCorrectChunks"
    tags = {"IOB": 2, "IOE": 2, "IOBES": 4, "plain": 1}

    def labels(n, scheme, types, outside=0.3):
        most = tags[scheme] * types
        guess = r.i((n,), 0, most)
        real = np.where(r.f((n,), 0, 1) < 0.7, guess, r.i((n,), 0, most))
        return guess, real
    for scheme in tags:
        for types in (1, 3):
            lens = [7, 1, 12, 5]
            lod = [[0, *np.cumsum(lens).tolist()]]
            guess, real = labels(sum(lens), scheme, types)
            for excluded in ([], [0, 2]) if types > 1 else ([],):
                attrs = {"num_chunk_types": types, "chunk_scheme": scheme, "excluded_chunk_types": excluded}
                yield Case(f"lod_{scheme}_{types}_{len(excluded)}", {"Inference": LoD(guess.reshape(-1, 1), lod), "Label": LoD(real.reshape(-1, 1), lod)},
                           outs, attrs)
                guess2, real2 = labels(40, scheme, types)
                yield Case(f"padded_{scheme}_{types}_{len(excluded)}",
                           {"Inference": guess2.reshape(4, 10), "Label": real2.reshape(4, 10), "SeqLength": np.array([10, 3, 0, 7])}, outs, attrs)
    attrs = {"num_chunk_types": 2, "chunk_scheme": "IOB"}
    lod = [[0, 4]]
    nothing = np.full((4, 1), 4)
    yield Case("no_chunk", {"Inference": LoD(nothing, lod), "Label": LoD(nothing.copy(), lod)}, outs, attrs)
    yield Case("none_found", {"Inference": LoD(nothing, lod), "Label": LoD(np.array([[0], [1], [2], [3]]), lod)}, outs, attrs)
    yield Case("rank3", {"Inference": r.i((2, 5, 1), 0, 4), "Label": r.i((2, 5, 1), 0, 4), "SeqLength": np.array([[5], [2]])}, outs, attrs)


@cases("precision_recall")
def _precision_recall(r, op):
    outs = "BatchMetrics,AccumMetrics,AccumStatesInfo"

    def one(name, n, classes, dtype="float32", weights=False, states=False):
        labels = r.i((n, 1), 0, classes - 1, "int32")
        indices = np.where(r.f((n, 1), 0, 1) < 0.6, labels, r.i((n, 1), 0, classes - 1, "int32")).astype("int32")
        ins = {"MaxProbs": r.f((n, 1), 0, 1, dtype), "Indices": indices, "Labels": labels}
        if weights:
            ins["Weights"] = r.f((n, 1), 0, 2, dtype)
        if states:
            ins["StatesInfo"] = r.i((classes, 4), 0, 9, dtype)
        return Case(name, ins, outs, {"class_number": classes})
    for dtype in FLOATS:
        yield one(f"batch_{dtype}", 12, 4, dtype)
        yield one(f"weights_{dtype}", 12, 4, dtype, weights=True)
        yield one(f"states_{dtype}", 12, 4, dtype, states=True)
        yield one(f"all_{dtype}", 12, 4, dtype, weights=True, states=True)
    yield one("one_class", 5, 1)
    yield one("classes_without_samples", 2, 9)


# ----------------------------------------------------------------------------
# Recommendation
# ----------------------------------------------------------------------------
@cases("data_norm")
def _data_norm(r, op):
    def one(name, x, c, dtype="float32", slot=-1, affine=False, **attrs):
        n = r.f((c,), 5, 20, dtype)
        ins = {"X": x, "BatchSize": n, "BatchSum": r.f((c,), -9, 9, dtype), "BatchSquareSum": r.f((c,), 1, 30, dtype)}
        if affine:
            ins.update(scale_w=r.f((c,), dtype=dtype), bias=r.f((c,), dtype=dtype))
        return Case(name, ins, "Y,Means,Scales", {"epsilon": 1e-4, "slot_dim": slot, "enable_scale_and_shift": affine, "data_layout": "NCHW", **attrs})
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", r.f((5, 6), dtype=dtype), 6, dtype)
        yield one(f"affine_{dtype}", r.f((5, 6), dtype=dtype), 6, dtype, affine=True)
        shown = r.f((7, 6), 0.5, 2, dtype)
        shown[::2, 0] = 0
        shown[1::3, 3] = 1e-8
        shown[3, 3] = -5e-8
        yield one(f"slots_{dtype}", shown, 6, dtype, 3)
        yield one(f"slots_affine_{dtype}", shown, 6, dtype, 3, True)
    yield one("nhwc", r.f((5, 6)), 6, data_layout="NHWC")
    yield one("lod", LoD(r.f((5, 4)), [[0, 2, 5]]), 4)


@cases("cvm")
def _cvm(r, op):
    for dtype in FLOATS:
        for use in (True, False):
            x, counts = r.f((5, 6), 0, 9, dtype), r.f((5, 2), 0, 9, dtype)
            yield Case(f"use{int(use)}_{dtype}", {"X": x, "CVM": counts}, "Y", {"use_cvm": use})
            yield Case(f"lod_use{int(use)}_{dtype}", {"X": LoD(x, [[0, 2, 5]]), "CVM": r.f((2, 2), 0, 9, dtype)}, "Y", {"use_cvm": use})
    yield Case("only_counts", {"X": r.f((3, 2), 0, 9), "CVM": r.f((3, 2), 0, 9)}, "Y", {"use_cvm": True})


# ----------------------------------------------------------------------------
# Detection
# ----------------------------------------------------------------------------
@cases("generate_proposals")
def _generate_proposals(r, op):
    n, na, h, w = 2, 3, 4, 5
    for name, a in (("plain", {}), ("eta", {"eta": 0.8, "nms_thresh": 0.9}), ("none_left", {"min_size": 500.0}), ("top", {"post_nms_topN": 4}),
                    ("all", {"pre_nms_topN": 0, "nms_thresh": 0.0}), ("min_size", {"min_size": 12.0})):
        for dtype in FLOATS:
            grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1)[:, :, None, :] * 12.0
            anchors = np.concatenate([grid - 10 - r.f((h, w, na, 2), 0, 9), grid + 10 + r.f((h, w, na, 2), 0, 9)], -1).astype(dtype)
            yield Case(f"{name}_{dtype}",
                       {"Scores": r.distinct((n, na, h, w), 0, 1, dtype), "BboxDeltas": r.f((n, 4 * na, h, w), -0.5, 0.5, dtype),
                        "ImInfo": np.array([[48, 60, 1.5], [40, 50, 0.8]], dtype), "Anchors": anchors,
                        "Variances": r.f((h, w, na, 4), 0.5, 1.5, dtype)}, "RpnRois,RpnRoiProbs,RpnRoisNum",
                       {"pre_nms_topN": 40, "post_nms_topN": 20, "nms_thresh": 0.5, "min_size": 3.0, "eta": 1.0, **a})


# ----------------------------------------------------------------------------
# Beams and arrays
# ----------------------------------------------------------------------------
@cases("beam_search")
def _beam_search(r, op):
    def one(name, sources, width, beam, end=0, ids=True, ended=(), ties=False, accumulated=True):
        """`sources`: the number of prefixes of each."""
        n = sum(sources)
        lod = [[0, *np.cumsum(sources).tolist()], list(range(n + 1))]
        scores = np.round(r.f((n, width), 0.1, 0.9), 1 if ties else 5).astype("float32")
        pre_ids = r.i((n, 1), 1, 20)
        pre_ids[list(ended)] = end
        ins = {"pre_ids": LoD(pre_ids, lod), "pre_scores": LoD(np.round(r.f((n, 1), 0.1, 0.9), 1 if ties else 5).astype("float32"), lod),
               "scores": LoD(scores, lod)}
        if ids:
            ins["ids"] = LoD(r.i((n, width), 0, 20), lod)
        return Case(name, ins, "selected_ids,selected_scores,parent_idx",
                    {"level": 0, "beam_size": beam, "end_id": end, "is_accumulated": accumulated})
    yield one("first_step", [1, 1, 1], 4, 2)
    yield one("step", [2, 2], 3, 2)
    yield one("ids_are_columns", [2, 2], 5, 2, ids=False)
    yield one("probabilities", [2, 3, 1], 4, 3, accumulated=False)
    yield one("ended_prefixes", [2, 2, 2], 3, 2, ended=(0, 3))
    yield one("ended_sources", [2, 2, 2], 3, 2, ended=(2, 3))
    yield one("all_ended", [2, 2], 3, 2, ended=(0, 1, 2, 3))
    yield one("wide_beam", [1, 2], 3, 9)
    yield one("beam_of_one", [1, 1, 1], 6, 1, ended=(1,))
    yield one("source_without_prefix", [2, 0, 2], 3, 2)
    for k in range(4):
        yield one(f"ties{k}", [3, 4], 6, 3, ties=True, ended=(1, 5))


@cases("print")
def _print(r, op):
    """What passes through; what is shown, tests/kernels/io/print_assert_test.cc checks."""
    for dtype in FLOATS + INTS + ("bool",):
        x = r.f((2, 3), dtype=dtype) if dtype in FLOATS else r.i((2, 3), 0, 1).astype(dtype)
        yield Case(dtype, {"In": x}, "Out", {"first_n": -1, "message": dtype, "summarize": 3, "print_tensor_name": True, "print_tensor_type": True,
                                             "print_tensor_shape": True, "print_tensor_layout": True, "print_tensor_lod": True, "print_phase": "BOTH"})
    yield Case("lod", {"In": LoD(r.f((3, 1)), [[0, 2, 3]])}, "Out", {"first_n": 1, "message": "", "summarize": -1, "print_phase": "BACKWARD"})


class ArrayCase:
    """`op` on arrays: slot -> their elements, each written by a write_to_array of its own."""

    def __init__(self, name, arrays, outs, attrs):
        self.name, self.arrays, self.outs, self.attrs, self.op = name, arrays, outs, attrs, None


def make_array_case(out, case):
    b = g.Builder()
    slots = {}
    for slot, elements in case.arrays.items():
        dtype = g.array_of(elements[0]).dtype.name
        array = b.block.create_var(name=slot, type=g.core.VarDesc.VarType.LOD_TENSOR_ARRAY, dtype=dtype)
        slots[slot] = [slot]
        for i, element in enumerate(elements):
            name = f"{slot}_{i}"
            b.feed(name, element)
            b.output(f"{name}_index", "int64")
            b.block.append_op(type="fill_constant", outputs={"Out": [f"{name}_index"]},
                              attrs={"shape": [1], "dtype": g.INT64, "value": float(i), "force_cpu": True})
            b.block.append_op(type="write_to_array", inputs={"X": [name], "I": [f"{name}_index"]}, outputs={"Out": [array]})
    outs = case.outs.split(",")
    for name in outs:
        b.output(name)
    op = b.block.append_op(type=case.op, inputs=slots, outputs={name: [name] for name in outs}, attrs=case.attrs)
    b.fetch = [name for name in outs if name != "OutIndex"]     # which Paddle's executor leaves without a value
    blob, res = b.run()
    fetches = dict(zip(b.fetch, res))
    rtol, atol = g.tolerance(case.op, [a for a, _ in res])
    ops = ["fill_constant", "write_to_array", case.op]
    g.write_case(f"{out}/{case.op}/{case.name}", 0, case.op, case.name, blob, b.feeds, fetches,
                 {"inputs": slots, "outputs": {name: [name] for name in outs}}, g.visible_attrs(case.op, op.desc), ops, rtol, atol, "")


@cases("tensor_array_to_tensor")
def _tensor_array_to_tensor(r, op):
    for dtype in FLOATS + INTS:
        def some(*shape):
            return r.f(shape, dtype=dtype) if dtype in FLOATS else r.i(shape, -9, 9, dtype)
        for axis in (0, 1):
            lengths = [2, 3, 1]
            parts = [some(n, 3) if axis == 0 else some(2, n) for n in lengths]
            yield ArrayCase(f"concat_axis{axis}_{dtype}", {"X": parts}, "Out,OutIndex", {"axis": axis, "use_stack": False})
            yield ArrayCase(f"stack_axis{axis}_{dtype}", {"X": [some(2, 3) for _ in range(4)]}, "Out,OutIndex", {"axis": axis, "use_stack": True})
    yield ArrayCase("one", {"X": [r.f((2, 3))]}, "Out,OutIndex", {"axis": 0, "use_stack": False})
    yield ArrayCase("one_stacked", {"X": [r.f((2, 3))]}, "Out,OutIndex", {"axis": 1, "use_stack": True})
    yield ArrayCase("rank4", {"X": [r.f((1, 2, n, 3)) for n in (2, 1)]}, "Out,OutIndex", {"axis": 2, "use_stack": False})


@cases("beam_search_decode")
def _beam_search_decode(r, op):
    """Steps of a search that is made up: each source keeps `beam` prefixes until all of them have ended."""
    def one(name, sources, beam, steps, end, dtype="float32", ending=0.3):
        alive = [True] * sources
        before = [[0] for _ in range(sources)]     # ids of the prefixes of each source
        ids, scores = [], []
        for step in range(steps):
            levels = [[0], [0]]
            step_ids = []
            for s in range(sources):
                levels[0].append(levels[0][-1] + len(before[s]))
                if not alive[s] or not before[s]:
                    levels[1] += [levels[1][-1]] * len(before[s])
                    before[s] = []
                    continue
                parents = sorted(r.n(0, len(before[s]) - 1) for _ in range(beam))
                chosen = [end if before[s][p] == end or (step > 0 and r.scalar(0, 1) < ending) else r.n(end + 1, 30) for p in parents]
                for p in range(len(before[s])):
                    levels[1].append(levels[1][-1] + parents.count(p))
                alive[s] = not all(c == end for c in chosen)
                step_ids += chosen
                before[s] = chosen
            ids.append(LoD(np.array(step_ids, "int64").reshape(-1, 1), levels))
            scores.append(LoD(r.f((len(step_ids), 1), -5, 0, dtype), levels))
            if not any(alive):
                break
        return ArrayCase(name, {"Ids": ids, "Scores": scores}, "SentenceIds,SentenceScores", {"beam_size": beam, "end_id": end})
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", 2, 2, 4, 1, dtype)
        yield one(f"one_source_{dtype}", 1, 3, 5, 1, dtype)
    yield one("one_step", 3, 2, 1, 1)
    yield one("beam_of_one", 3, 1, 6, 1)
    yield one("never_ends", 2, 3, 5, 1, ending=0)
    for k in range(4):
        yield one(f"long{k}", 3, 4, 12, 1, ending=0.25)


def make(out, case):
    if isinstance(case, ArrayCase):
        make_array_case(out, case)
    else:
        g.make_forward_case(out, 0, case)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    ap.add_argument("--seed", default="metric")
    args = ap.parse_args()
    wanted = set(filter(None, args.ops.split(",")))
    make_all(args.out, cases_of(CASES, args.seed, wanted), make)


if __name__ == "__main__":
    sys.exit(main())
