#!/usr/bin/env python3
"""make_gradient_math_cases.py - golden cases of the gradients of kernels/math, loss and quant that the seeded sets lack.

    python make_gradient_math_cases.py --out gradient_math && ./pack.sh gradient_math

Same needs and same format as make_goldens.py; gradient_math.tar.xz beside this file is the result. The cases below are
those of forward ops; what is filed is the gradient that Paddle's own maker gives, in both dtypes of floats.
"""
import sys

import make_goldens as g
import make_math_cases as math_cases
import numpy as np
from case_program import arguments, cases_of, make_all, register
from make_goldens import Case, LoD

CASES = []   # (forward op, function Rng -> Cases)
cases = register(CASES)
FLOATS = ("float32", "float64")
INF = float("inf")


# ----------------------------------------------------------------------------
# functions of one tensor
# ----------------------------------------------------------------------------
# op -> (low, high, attribute choices)
UNARY = {op: values[:3] for op, values in math_cases.UNARY.items()}
UNARY.update({
    "tanh_shrink": (-3, 3, [{}]), "atan": (-3, 3, [{}]), "round": (-3, 3, [{}]),
    "elu": (-3, 3, [{"alpha": 0.7}]), "leaky_relu": (-3, 3, [{"alpha": 0.3}]),
    "softplus": (-4, 4, [{}, {"beta": 1.5, "threshold": 2.0}]), "mish": (-3, 3, [{}, {"threshold": 1.0}]),
    "gelu": (-3, 3, [{"approximate": True}, {"approximate": False}]), "relu6": (-3, 9, [{}]),
    "hard_sigmoid": (-3, 3, [{"slope": 0.3, "offset": 0.4}]), "hard_swish": (-5, 5, [{}]),
})
del UNARY["acosh"]
UNARY["acosh"] = (1.1, 5, [{}])


@cases(*UNARY)
def _unary(r, op):
    lo, hi, choices = UNARY[op]
    inner = 0.9 if op in ("asin", "acos") else 1      # away from infinite slopes
    for dtype in FLOATS:
        for k, attrs in enumerate(choices):
            # selu: Paddle multiplies its attributes in float32.
            yield Case(f"values{k}_{dtype}", {"X": r.f((3, 5), lo * inner, hi * inner, dtype)}, "Out", attrs,
                       tol=(1e-5, 1e-7) if op == "selu" else None)
    if op not in ("mish", "soft_relu"):               # these lose the LoD
        yield Case("lod", {"X": LoD(r.f((4, 2), lo * inner, hi * inner), [[0, 1, 4]])}, "Out", choices[0])


# Long enough for vector code and its remainder, and far into the tails.
@cases("sigmoid", "tanh", "gelu", "silu", "swish", "mish", "softplus", "logsigmoid", "elu", "softsign", "erf", "hard_swish")
def _wide(r, op):
    yield Case("wide", {"X": r.distinct((67,), -30, 30)}, "Out")


@cases("relu", "relu6", "leaky_relu", "hard_swish", "hard_sigmoid", "brelu", "hard_shrink", "softshrink", "thresholded_relu",
       "abs", "elu", "clip")
def _corners(r, op):
    x = np.array([-3, -1, -0.5, -0.0, 0.0, 0.5, 1, 3, 6, 24], "float32")
    yield Case("corners", {"X": x}, "Out", {"min": -1.0, "max": 1.0} if op == "clip" else {})


@cases("pow")
def _pow(r, op):
    for dtype in FLOATS:
        for factor in (2.0, -1.5, 1.0, 0.0):
            yield Case(f"{dtype}_{factor}".replace(".", "_"), {"X": r.f((3, 4), 0.3, 3, dtype)}, "Out", {"factor": factor})
        yield Case(f"tensor_{dtype}", {"X": r.f((3, 4), 0.3, 3, dtype), "FactorTensor": np.array([2.5], "float32")}, "Out",
                   {"factor": 1.0}, no_grad=("FactorTensor",))


@cases("clip")
def _clip(r, op):
    yield Case("float64", {"X": r.f((3, 4), dtype="float64")}, "Out", {"min": -1.0, "max": 0.5})
    for dtype in FLOATS:
        yield Case(f"tensors_{dtype}", {"X": r.f((3, 4), dtype=dtype), "Min": np.array([-0.5], dtype), "Max": np.array([1], dtype)},
                   "Out", {"min": 0.0, "max": 0.0}, no_grad=("Min", "Max"))


@cases("cumsum")
def _cumsum(r, op):
    for dtype in FLOATS:
        for axis, exclusive, reverse in ((0, False, False), (1, True, False), (-1, False, True), (1, True, True)):
            yield Case(f"axis{axis}_{exclusive}_{reverse}_{dtype}".lower().replace("-", "m"), {"X": r.f((2, 5, 3), dtype=dtype)},
                       "Out", {"axis": axis, "exclusive": exclusive, "reverse": reverse, "flatten": False})
        yield Case(f"flatten_{dtype}", {"X": r.f((2, 5), dtype=dtype)}, "Out",
                   {"axis": -1, "exclusive": False, "reverse": False, "flatten": True})


@cases("prelu")
def _prelu(r, op):
    for dtype in FLOATS:
        for name, x, alpha, mode, fmt in (
                ("all", (2, 3, 4), (1,), "all", "NCHW"), ("channel", (2, 3, 4, 2), (3,), "channel", "NCHW"),
                ("channel_nhwc", (2, 3, 4, 5), (5,), "channel", "NHWC"), ("channel_rank2", (3, 4), (4,), "channel", "NCHW"),
                ("rank5", (1, 3, 2, 2, 2), (1, 3, 1, 1, 1), "channel", "NCHW"), ("element", (3, 2, 4), (1, 2, 4), "element", "NCHW")):
            yield Case(f"{name}_{dtype}", {"X": r.f(x, -2, 2, dtype), "Alpha": r.f(alpha, 0, 1, dtype)}, "Out",
                       {"mode": mode, "data_format": fmt})
    # Of an Alpha with several samples the first one counts.
    for dtype in FLOATS:
        yield Case(f"element_of_samples_{dtype}", {"X": r.f((3, 2, 4), -2, 2, dtype), "Alpha": r.f((3, 2, 4), 0, 1, dtype)},
                   "Out", {"mode": "element", "data_format": "NCHW"})


# ----------------------------------------------------------------------------
# functions of two tensors
# ----------------------------------------------------------------------------
SHAPES = (("same", (3, 5), (3, 5), -1), ("bias", (4, 3), (3,), -1), ("channel", (2, 3, 4, 2), (3,), 1),
          ("scalar", (2, 3, 4), (1,), -1), ("zero_dim", (2, 3), (), -1), ("gate", (2, 3, 2, 2), (2, 3, 1, 1), -1),
          ("spatial", (2, 3, 2, 2), (2, 1, 2, 2), -1), ("both_ways", (2, 1, 4, 1), (1, 3, 1, 5), -1),
          ("x_smaller", (1, 4), (3, 4), -1), ("x_lower", (4,), (2, 3, 4), -1), ("x_one", (1,), (2, 3), -1),
          ("long_rows", (2, 3, 11, 13), (3,), 1), ("middle", (2, 3, 4, 2), (3, 4), 1), ("wide_bias", (3, 300), (300,), -1),
          ("rank3_on_4", (2, 3, 4, 5), (3, 4, 5), -1), ("plane", (2, 3, 4, 5), (4, 5), -1),
          ("rank4_on_5", (2, 3, 2, 3, 2), (3, 2, 3, 2), -1), ("rank5_gate", (2, 3, 2, 3, 2), (2, 3, 1, 1, 1), -1))


@cases("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max", "elementwise_min",
       "elementwise_pow", "elementwise_fmax", "elementwise_fmin")
def _elementwise(r, op):
    for name, x, y, axis in SHAPES:
        if axis != -1 and op not in ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"):
            continue                    # 2.6.2's kernels of the others ignore axis
        for dtype in FLOATS if name in ("same", "bias", "both_ways") else FLOATS[:1]:
            yield Case(f"{name}_{dtype}", {"X": r.f(x, 0.3, 3, dtype), "Y": r.f(y, 0.5, 2, dtype)}, "Out", {"axis": axis})
    yield Case("ties", {"X": r.i((3, 5), 1, 2, "float32"), "Y": r.i((3, 5), 1, 2, "float32")}, "Out", {"axis": -1})
    if op in ("elementwise_max", "elementwise_min", "elementwise_fmax", "elementwise_fmin"):
        nan = float("nan")
        yield Case("nan", {"X": np.array([nan, 1, nan, 2, 3], "float32"), "Y": np.array([1, nan, nan, 1, 4], "float32")}, "Out", {"axis": -1})


# ----------------------------------------------------------------------------
# reductions and norms
# ----------------------------------------------------------------------------
REDUCTIONS = (("outer_inner", (2, 3, 2, 3), [0, 3], False), ("rank5", (2, 3, 2, 3, 2), [2], False), ("middle", (2, 3, 4), [1], True), ("last", (3, 40), [-1], False),
              ("first", (40, 3), [0], False), ("scalar", (), [0], False))


@cases("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_amax", "reduce_amin")
def _reduce(r, op):
    for dtype in FLOATS:
        for name, shape, dim, keep in REDUCTIONS:
            if op == "reduce_mean" and name == "scalar":
                continue                # its gradient raises
            x = r.f(shape, 0.5, 1.5, dtype) if op == "reduce_prod" else r.distinct(shape, dtype=dtype)
            yield math_cases.reduction(f"{name}_{dtype}", x, dim, keep)
        whole = math_cases.reduction(f"all_{dtype}", r.f((2, 3), 0.5, 1.5, dtype), [0, 1])
        whole.attrs["reduce_all"] = True
        yield whole
    yield math_cases.reduction("ties", r.i((4, 6), 1, 2, "float32"), [1])


@cases("mean")
def _mean(r, op):
    yield Case("float64", {"X": r.f((3, 4), dtype="float64")}, "Out")


@cases("logsumexp")
def _logsumexp(r, op):
    for dtype in FLOATS:
        for name, axis, keep, whole in (("axis", [1], False, False), ("two", [0, 2], True, False), ("all", [0], False, True)):
            yield Case(f"{name}_{dtype}", {"X": r.f((2, 3, 4), -3, 3, dtype)}, "Out",
                       {"axis": axis, "keepdim": keep, "reduce_all": whole})


@cases("p_norm")
def _p_norm(r, op):
    for dtype in FLOATS:
        for p in (0.0, 1.0, 2.0, 3.5, INF, -INF, -1.0):
            yield Case(f"p{p}_{dtype}".replace(".", "_").replace("-", "m"), {"X": r.distinct((3, 5), 0.5, 2, dtype)}, "Out",
                       {"porder": p, "axis": 1, "keepdim": False, "epsilon": 1e-12, "asvector": False})
        yield Case(f"vector_{dtype}", {"X": r.distinct((3, 5), -2, 2, dtype)}, "Out",
                   {"porder": 2.0, "axis": -1, "keepdim": False, "epsilon": 1e-12, "asvector": True})
        yield Case(f"negative_{dtype}", {"X": r.distinct((3, 6), -2, 2, dtype)}, "Out",
                   {"porder": 3.0, "axis": 0, "keepdim": True, "epsilon": 1e-12, "asvector": False})


@cases("frobenius_norm")
def _frobenius(r, op):
    for dtype in FLOATS:
        yield math_cases.reduction(f"axes_{dtype}", r.f((2, 3, 4), dtype=dtype), [1, 2])
        yield math_cases.reduction(f"all_{dtype}", r.f((2, 3, 4), dtype=dtype), [0, 1, 2], reduce_all=True)


@cases("l1_norm", "squared_l2_norm")
def _whole_norm(r, op):
    for dtype in FLOATS[:1] if op == "l1_norm" else FLOATS:
        yield Case(f"values_{dtype}", {"X": r.f((3, 4), dtype=dtype)}, "Out")


@cases("norm")
def _norm(r, op):
    for dtype in FLOATS:
        yield Case(f"middle_{dtype}", {"X": r.f((2, 3, 4), dtype=dtype)}, "Out,Norm", {"axis": 1, "epsilon": 1e-6})
        yield Case(f"last_{dtype}", {"X": r.f((3, 40), dtype=dtype)}, "Out,Norm", {"axis": -1, "epsilon": 1e-10})


# ----------------------------------------------------------------------------
# orders and matrices
# ----------------------------------------------------------------------------
@cases("argsort")
def _argsort(r, op):
    for dtype in FLOATS:
        yield Case(f"middle_{dtype}", {"X": r.distinct((3, 7, 2), dtype=dtype)}, "Out,Indices", {"axis": 1, "descending": True})
    yield Case("scalar", {"X": r.f(())}, "Out,Indices", {"axis": -1, "descending": False})


@cases("top_k")
def _top_k(r, op):
    for dtype in FLOATS:
        yield Case(f"two_{dtype}", {"X": r.distinct((3, 6), dtype=dtype)}, "Out,Indices", {"k": 2})
        yield Case(f"rank3_{dtype}", {"X": r.distinct((2, 3, 5), dtype=dtype)}, "Out,Indices", {"k": 3})


@cases("top_k_v2")
def _top_k_v2(r, op):
    for dtype in FLOATS:
        yield Case(f"middle_{dtype}", {"X": r.distinct((3, 7, 2), dtype=dtype)}, "Out,Indices",
                   {"k": 3, "axis": -2, "largest": False, "sorted": True})
    yield Case("scalar", {"X": r.f(())}, "Out,Indices", {"k": 1, "axis": -1, "largest": True, "sorted": True})


@cases("inverse")
def _inverse(r, op):
    for dtype in FLOATS:
        yield Case(f"one_{dtype}", {"Input": r.f((3, 3), dtype=dtype) + 3 * np.eye(3, dtype=dtype)}, "Output")
        yield Case(f"batch_{dtype}", {"Input": r.f((2, 2, 4, 4), dtype=dtype) + 4 * np.eye(4, dtype=dtype)}, "Output")


# ----------------------------------------------------------------------------
# losses
# ----------------------------------------------------------------------------
def probabilities(r, shape, dtype="float32"):
    x = r.f(shape, 0.1, 1, dtype)
    return (x / x.sum(-1, keepdims=True)).astype(dtype)


@cases("cross_entropy")
def _cross_entropy(r, op):
    for dtype in FLOATS:
        yield Case(f"hard_{dtype}", {"X": probabilities(r, (5, 4), dtype), "Label": r.i((5, 1), 0, 3)}, "Y",
                   {"soft_label": False, "ignore_index": 2}, no_grad=("Label",))
        yield Case(f"soft_{dtype}", {"X": probabilities(r, (5, 4), dtype), "Label": probabilities(r, (5, 4), dtype)}, "Y",
                   {"soft_label": True}, no_grad=("Label",))
        yield Case(f"rank3_{dtype}", {"X": probabilities(r, (2, 3, 4), dtype), "Label": r.i((2, 3, 1), 0, 3)}, "Y",
                   {"soft_label": False}, no_grad=("Label",))


@cases("cross_entropy2")
def _cross_entropy2(r, op):
    for dtype in FLOATS:
        yield Case(f"ignored_{dtype}", {"X": probabilities(r, (6, 4), dtype), "Label": r.i((6, 1), 0, 3)}, "Y,XShape,MatchX",
                   {"ignore_index": 1}, no_grad=("Label",))


@cases("softmax_with_cross_entropy")
def _softmax_with_cross_entropy(r, op):
    def one(name, logits, label, **a):
        return Case(name, {"Logits": logits, "Label": label}, "Softmax,Loss",
                    {"soft_label": False, "ignore_index": -100, "numeric_stable_mode": True, "axis": -1, "use_softmax": True, **a},
                    no_grad=("Label",))
    for dtype in FLOATS:
        yield one(f"hard_{dtype}", r.f((5, 7), dtype=dtype), r.i((5, 1), 0, 6))
        yield one(f"ignored_{dtype}", r.f((6, 3), dtype=dtype), r.i((6, 1), 0, 2), ignore_index=1)
        yield one(f"axis_{dtype}", r.f((2, 5, 3), dtype=dtype), r.i((2, 1, 3), 0, 4), axis=1)
        yield one(f"soft_{dtype}", r.f((5, 7), dtype=dtype), probabilities(r, (5, 7), dtype), soft_label=True)
        yield one(f"soft_axis_{dtype}", r.f((2, 5, 3), dtype=dtype), probabilities(r, (2, 5, 3), dtype), soft_label=True, axis=1)
        yield one(f"probabilities_{dtype}", probabilities(r, (5, 7), dtype), r.i((5, 1), 0, 6), use_softmax=False)
        yield one(f"soft_probabilities_{dtype}", probabilities(r, (5, 7), dtype), probabilities(r, (5, 7), dtype),
                  use_softmax=False, soft_label=True)
    yield one("int32", r.f((5, 7)), r.i((5, 1), 0, 6, "int32"))


@cases("sigmoid_cross_entropy_with_logits")
def _sigmoid_cross_entropy(r, op):
    for dtype in FLOATS:
        ins = {"X": r.f((5, 4), -3, 3, dtype), "Label": r.i((5, 4), 0, 1).astype(dtype)}
        yield Case(f"plain_{dtype}", ins, "Out", {"normalize": False, "ignore_index": -100}, no_grad=("Label",))
        yield Case(f"normalize_{dtype}", ins, "Out", {"normalize": True, "ignore_index": 0}, no_grad=("Label",))
        yield Case(f"weight_{dtype}", {**ins, "pos_weight": r.f((5, 4), 0.5, 2, dtype)}, "Out",
                   {"normalize": False, "ignore_index": -100}, no_grad=("Label", "pos_weight"))


@cases("bce_loss")
def _bce(r, op):
    for dtype in FLOATS:
        x = r.f((5, 4), 0.05, 0.95, dtype)
        yield Case(f"values_{dtype}", {"X": x, "Label": r.f((5, 4), 0, 1, dtype)}, "Out", no_grad=("Label",))
    yield Case("edges", {"X": np.array([0, 1, 0, 1], "float32"), "Label": np.array([0, 1, 0.5, 0.5], "float32")}, "Out",
               no_grad=("Label",))


@cases("huber_loss")
def _huber(r, op):
    for dtype in FLOATS:
        yield Case(f"values_{dtype}", {"X": r.f((6, 3), dtype=dtype), "Y": r.f((6, 3), dtype=dtype)}, "Residual,Out", {"delta": 0.8})


@cases("kldiv_loss")
def _kldiv(r, op):
    for dtype in FLOATS:
        for reduction in ("none", "mean", "sum", "batchmean"):
            target = r.f((4, 3), -0.2, 1, dtype)
            yield Case(f"{reduction}_{dtype}", {"X": r.f((4, 3), -2, 0, dtype), "Target": target}, "Loss",
                       {"reduction": reduction}, no_grad=("Target",))


@cases("log_loss")
def _log_loss(r, op):
    yield Case("values", {"Predicted": r.f((6, 1), 0.05, 0.95), "Labels": r.i((6, 1), 0, 1, "float32")}, "Loss",
               {"epsilon": 1e-4}, no_grad=("Labels",))


@cases("hinge_loss")
def _hinge(r, op):
    yield Case("values", {"Logits": r.f((6, 1), -2, 2), "Labels": r.i((6, 1), 0, 1, "float32")}, "Loss", no_grad=("Labels",))


@cases("rank_loss")
def _rank(r, op):
    yield Case("values", {"Label": r.i((6, 1), 0, 1, "float32"), "Left": r.f((6, 1)), "Right": r.f((6, 1))}, "Out",
               no_grad=("Label",))


# ----------------------------------------------------------------------------
# gradients that are ordinary ops
# ----------------------------------------------------------------------------
@cases("sign")
def _sign(r, op):
    yield Case("values", {"X": r.f((3, 4))}, "Out")


@cases("scale")
def _scale(r, op):
    yield Case("bias_before", {"X": r.f((3, 4))}, "Out", {"scale": 2.5, "bias": 1.5, "bias_after_scale": False})


def gradient_name(op):
    return {"cross_entropy2": "cross_entropy_grad2"}.get(op, op + "_grad")


def make(out, case):
    rng = g.Rng(0, f"gradient_math/{case.op}/{case.name}")
    g.make_grad_case(out, 0, rng, case, gradient_name(case.op))


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "gradient_math", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
