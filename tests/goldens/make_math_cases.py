#!/usr/bin/env python3
"""make_math_cases.py - golden cases of kernels/math that the seeded sets of make_goldens.py do not have.

    python make_math_cases.py --out math && ./pack.sh math

Same needs and same format as make_goldens.py; math.tar.xz beside this file is the result.

  1. functions of one tensor that have no generator there
  2. written cases: values and attributes at their edges, layouts of broadcasts, ties, NaN
  3. recast cases (see make_extra_cases.py): every op in the dtypes no other case has
"""
import sys

import make_extra_cases as extra
import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, make_all, register
from make_goldens import DTYPE_CODE, FP32, FP64, INT32, INT64, Case

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
NAN, INF = float("nan"), float("inf")


def f32(*values):
    return np.array(values, "float32")


# ----------------------------------------------------------------------------
# 1. functions of one tensor
# ----------------------------------------------------------------------------
# op -> (low, high, attribute choices, integer dtypes)
UNARY = {
    "selu": (-3, 3, [{}, {"scale": 1.3, "alpha": 0.7}], ()),
    "celu": (-3, 3, [{}, {"alpha": 0.4}], ()),
    "brelu": (-5, 30, [{}, {"t_min": -1.0, "t_max": 2.5}], ()),
    "hard_shrink": (-2, 2, [{}, {"threshold": 1.1}], ()),
    "softshrink": (-2, 2, [{}, {"lambda": 0.9}], ()),
    "thresholded_relu": (-3, 3, [{}, {"threshold": -0.5}], ()),
    "stanh": (-4, 4, [{}, {"scale_a": 1.1, "scale_b": 0.6}], ()),
    "soft_relu": (-6, 6, [{}, {"threshold": 2.0}], ()),
    "logit": (0.01, 0.99, [{}, {"eps": 0.2}, {"eps": 0.0}], ()),
    "expm1": (-3, 3, [{}], ("int32", "int64")),
    "log2": (0.05, 9, [{}], ("int32", "int64")),
    "log10": (0.05, 9, [{}], ("int32", "int64")),
    "tan": (-1.4, 1.4, [{}], ()), "asin": (-1, 1, [{}], ()), "acos": (-1, 1, [{}], ()),
    "sinh": (-3, 3, [{}], ()), "cosh": (-3, 3, [{}], ()), "asinh": (-3, 3, [{}], ()),
    "acosh": (1, 5, [{}], ()), "atanh": (-0.95, 0.95, [{}], ()),
    "trunc": (-4, 4, [{}], ("int32", "int64")),
}


@cases(*UNARY)
def _unary(r, op):
    lo, hi, choices, integers = UNARY[op]
    for k, attrs in enumerate(choices):
        yield Case(f"values{k}", {"X": r.f(r.shape(3), lo, hi)}, "Out", attrs)
    attrs = choices[-1]
    for dtype in ("float64", "float16") + integers:
        v = r.i(r.shape(2), 1, 6, dtype) if dtype in integers else r.f(r.shape(2), lo, hi, dtype)
        yield Case(f"values_as_{dtype}", {"X": v}, "Out", attrs)
    yield Case("zero_dim", {"X": r.f((), lo, hi)}, "Out", attrs)


# Long enough for vector code and its remainder, and far into the tails.
@cases("exp", "tanh", "sigmoid", "erf", "gelu", "silu", "swish", "mish", "softplus", "logsigmoid", "elu", "tanh_shrink",
       "softsign", "hard_swish", "hard_sigmoid", "relu6")
def _wide(r, op):
    yield Case("wide", {"X": r.distinct((67,), -60, 60)}, "Out")


@cases("log", "log1p", "sqrt", "rsqrt", "reciprocal", "log2", "log10")
def _positive(r, op):
    yield Case("wide", {"X": np.exp(r.distinct((67,), -30, 30)).astype("float32")}, "Out")


# ----------------------------------------------------------------------------
# 2. written cases
# ----------------------------------------------------------------------------
@cases("prelu")
def _prelu(r, op):
    for dtype in ("float32", "float64", "float16"):
        def one(name, x, alpha, mode, fmt="NCHW"):
            return Case(f"{name}_as_{dtype}", {"X": r.f(x, -2, 2, dtype), "Alpha": r.f(alpha, 0, 1, dtype)}, "Out",
                        {"mode": mode, "data_format": fmt})
        yield one("all", (2, 3, 4), (1,), "all")
        yield one("channel", (2, 3, 4, 2), (3,), "channel")
        yield one("channel_nhwc", (2, 3, 4, 5), (5,), "channel", "NHWC")
        yield one("channel_rank2", (3, 4), (4,), "channel")
        yield one("channel_rank5", (1, 3, 2, 2, 2), (1, 3, 1, 1, 1), "channel")
        yield one("element", (3, 2, 4), (1, 2, 4), "element")
    # Of an Alpha with several samples the first one counts.
    for dtype in ("float32", "float64"):
        yield Case(f"element_of_samples_{dtype}", {"X": r.f((3, 2, 4), -2, 2, dtype), "Alpha": r.f((3, 2, 4), 0, 1, dtype)},
                   "Out", {"mode": "element", "data_format": "NCHW"})


@cases("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max", "elementwise_min",
       "elementwise_pow", "elementwise_mod", "elementwise_floordiv")
def _broadcasts(r, op):
    # In these ops axis is the legacy one; a divisor or exponent is never near 0.
    for name, x, y, axis in (("rank5_channel", (2, 3, 2, 3, 2), (3,), 1), ("rank5_mid", (2, 3, 2, 3, 2), (2, 3), 2),
                             ("gate", (2, 5, 3, 3), (2, 5, 1, 1), -1), ("spatial", (2, 5, 3, 3), (2, 1, 3, 3), -1),
                             ("rank3_on_4", (2, 3, 4, 5), (3, 4, 5), -1), ("trailing_ones", (2, 3, 4), (3, 1), 1),
                             ("one_element", (2, 3, 4), (1,), -1), ("one_element_x", (1,), (2, 3, 4), -1),
                             ("outer", (7, 1), (1, 9), -1), ("long_rows", (2, 3, 11, 13), (3,), 1),
                             ("both_ways", (2, 1, 4, 1), (1, 3, 1, 5), -1)):
        yield Case(f"broadcast_{name}", {"X": r.f(x, 0.3, 3), "Y": r.f(y, 0.5, 2)}, "Out", {"axis": axis})


@cases("elementwise_fmax", "elementwise_fmin")
def _fmax(r, op):
    for dtype in ("float32", "float64", "float16", "int32", "int64"):
        make = (lambda s: r.i(s, -9, 9, dtype)) if dtype.startswith("int") else (lambda s: r.f(s, -3, 3, dtype))
        yield Case(f"same_as_{dtype}", {"X": make((3, 4)), "Y": make((3, 4))}, "Out")
        yield Case(f"broadcast_as_{dtype}", {"X": make((2, 3, 4)), "Y": make((3, 1))}, "Out")
    yield Case("nan", {"X": f32(NAN, 1, NAN, -0.0, INF), "Y": f32(1, NAN, NAN, 0.0, -INF)}, "Out")


@cases("elementwise_max", "elementwise_min")
def _max_nan(r, op):
    yield Case("nan", {"X": f32(NAN, 1, NAN, INF, -INF), "Y": f32(1, NAN, NAN, 1, 1)}, "Out")
    # Paddle takes an X of fewer dimensions for the second operand.
    for dtype in ("float32", "float64"):
        row, table = f32(NAN, 1, NAN, 2).astype(dtype), f32([1, NAN, NAN, 2], [NAN, 3, 0, NAN]).astype(dtype)
        yield Case(f"nan_row_first_{dtype}", {"X": row, "Y": table}, "Out")
        yield Case(f"nan_row_last_{dtype}", {"X": table, "Y": row}, "Out")
        yield Case(f"nan_one_row_{dtype}", {"X": row[None], "Y": table}, "Out")
        yield Case(f"nan_number_first_{dtype}", {"X": np.array(NAN, dtype), "Y": table}, "Out")
        yield Case(f"nan_column_first_{dtype}", {"X": row[:2], "Y": table}, "Out", {"axis": 0})


@cases("elementwise_mod", "elementwise_floordiv")
def _division_edges(r, op):
    x = f32(7, -7, 7, -7, 0, -0.0, 5, 6, -6, 0.3, 1e30, 5)
    y = f32(2.5, 2.5, -2.5, -2.5, 3, 3, 5, 2, 2, 0.1, 7, INF)
    yield Case("signs", {"X": x, "Y": y}, "Out")
    yield Case("signs_float64", {"X": x.astype("float64"), "Y": y.astype("float64")}, "Out")


@cases("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def _bitwise(r, op):
    for dtype in ("bool", "int32", "int64", "int16", "int8", "uint8"):
        make = (lambda s: r.b(s)) if dtype == "bool" else (lambda s: r.i(s, 0 if dtype == "uint8" else -99, 99, dtype))
        ins = {"X": make((2, 3, 4))}
        if op != "bitwise_not":
            ins["Y"] = make((3, 1))
        yield Case(f"values_{dtype}", ins, "Out")


@cases("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(r, op):
    for dtype in ("float64", "int64", "int16", "int8"):
        make = lambda s: r.i(s, -1, 1, dtype)
        yield Case(f"values_{dtype}", {"X": make((3, 4)), **({} if op == "logical_not" else {"Y": make((4,))})}, "Out")


@cases("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
def _compare(r, op):
    for dtype in ("float64", "float32", "float16", "int32", "int64", "int16", "int8", "uint8"):
        make = lambda s: r.i(s, 0, 3, dtype)
        yield Case(f"values_{dtype}", {"X": make((2, 3, 4)), "Y": make((3, 4))}, "Out")
    yield Case("scalar_left", {"X": r.i((1,), 1, 2), "Y": r.i((70,), 0, 3)}, "Out")


@cases("cast")
def _cast(r, op):
    names = ("bool", "int16", "int32", "int64", "float16", "float32", "float64", "uint8", "int8")
    for src in names:
        for dst in names:
            v = r.b((5,)) if src == "bool" else r.i((5,), 0, 100, src) if "int" in src else r.f((5,), 0, 100, src)
            yield Case(f"all_{src}_to_{dst}", {"X": v}, "Out", {"in_dtype": DTYPE_CODE[src], "out_dtype": DTYPE_CODE[dst]})
    odd = f32(NAN, INF, -INF, 3e9, -3e9, 2147483648, -2147483648, -1.9, 0.5, -0.0, 1e-40)
    for dst in ("int32", "int64", "bool", "float16", "float64"):
        yield Case(f"odd_float32_to_{dst}", {"X": odd}, "Out", {"in_dtype": FP32, "out_dtype": DTYPE_CODE[dst]})
        yield Case(f"odd_float64_to_{dst}", {"X": odd.astype("float64")}, "Out",
                   {"in_dtype": FP64, "out_dtype": DTYPE_CODE[dst]})
    wide = np.array([-1, 255, 256, 65537, -32769, 2 ** 40 + 5], "int64")
    for dst in ("uint8", "int8", "int16", "int32", "float32"):
        yield Case(f"wide_int64_to_{dst}", {"X": wide}, "Out", {"in_dtype": INT64, "out_dtype": DTYPE_CODE[dst]})


@cases("scale")
def _scale(r, op):
    for dtype in ("int16", "int8", "uint8"):
        yield Case(f"values_{dtype}", {"X": r.i((3, 4), 0, 9, dtype)}, "Out",
                   {"scale": 3.0, "bias": 2.0, "bias_after_scale": dtype == "int8"})


@cases("clip")
def _clip(r, op):
    yield Case("one_sided_int32", {"X": r.i((3, 4), -9, 9, "int32")}, "Out", {"min": 0.0, "max": 100.0})
    yield Case("nan", {"X": f32(NAN, INF, -INF, 0.5)}, "Out", {"min": -1.0, "max": 1.0})
    yield Case("fraction_int64", {"X": r.i((3, 4), -9, 9)}, "Out", {"min": -2.7, "max": 2.7})


@cases("increment")
def _increment(r, op):
    yield Case("float64", {"X": r.f((1,), dtype="float64")}, "Out", {"step": -2.5})


@cases("sum")
def _sum(r, op):
    yield Case("three_inputs", {"X": [r.f((3, 700)) for _ in range(3)]}, "Out")
    yield Case("absent_input", {"X": [r.f((2, 3)), np.zeros((0,), "float32"), r.f((2, 3))]}, "Out")
    yield Case("absent_first", {"X": [np.zeros((0,), "float32"), r.f((2, 3)), r.f((2, 3))]}, "Out")
    yield Case("absent_matrices", {"X": [np.zeros((0, 4), "float32"), r.f((2, 3)), np.zeros((0, 0), "float32"), r.f((2, 3))]}, "Out")


def reduction(name, x, dim, keep=False, **kw):
    return Case(name, {"X": x}, "Out", {"dim": dim, "keep_dim": keep, "reduce_all": False, "in_dtype": -1, "out_dtype": -1, **kw})


@cases("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
def _reduce(r, op):
    near_one = lambda s: r.f(s, 0.9, 1.1)
    yield reduction("rank5_outer_inner", near_one((2, 3, 2, 3, 4)), [0, 2, 4])
    yield reduction("rank5_middle", near_one((2, 3, 2, 3, 4)), [1, 3], True)
    yield reduction("spatial", near_one((2, 5, 7, 7)), [2, 3], True)
    yield reduction("channels", near_one((2, 5, 3, 7)), [1])
    yield reduction("long_row", near_one((3, 211)), [1])
    yield reduction("long_column", near_one((211, 3)), [0])
    yield reduction("scalar_axis", near_one(()), [0])
    if op == "reduce_mean":
        for dtype in ("int32", "int64"):
            yield reduction(f"negative_{dtype}", np.array([[-9, 2, 0], [7, 1, 1]], dtype), [1])
    if op == "reduce_sum":
        yield reduction("int32_kept", r.i((3, 4), -9, 9, "int32"), [0], out_dtype=INT32, in_dtype=INT32)
        for dtype in ("int16", "int8", "uint8"):
            yield reduction(f"narrow_{dtype}", r.i((3, 4), 0, 9, dtype), [0])


@cases("reduce_amax", "reduce_amin")
def _amax(r, op):
    for dtype in ("float32", "float64", "float16", "int32", "int64"):
        make = (lambda s: r.i(s, -40, 40, dtype)) if dtype.startswith("int") else (lambda s: r.distinct(s, dtype=dtype))
        yield reduction(f"axis_as_{dtype}", make((2, 5, 3)), [1])


@cases("reduce_all", "reduce_any")
def _all(r, op):
    for dtype in ("float32", "float64", "int32", "int64"):
        yield reduction(f"values_{dtype}", r.i((3, 4, 2), 0, 1, dtype), [1], dtype == "int32")


@cases("mean")
def _mean(r, op):
    yield Case("values_as_float16", {"X": r.f((3, 4), dtype="float16")}, "Out")
    yield Case("large", {"X": r.f((40, 60))}, "Out")


@cases("logsumexp")
def _logsumexp(r, op):
    for dtype in ("float32", "float64"):
        yield Case(f"all_{dtype}", {"X": r.f((2, 3, 4), dtype=dtype)}, "Out", {"axis": [0], "keepdim": True, "reduce_all": True})
        yield Case(f"two_axes_{dtype}", {"X": r.f((2, 3, 4), 50, 99, dtype)}, "Out", {"axis": [0, 2], "keepdim": False})
    yield Case("shifted", {"X": r.f((3, 5), -200, 200)}, "Out", {"axis": [-1], "keepdim": False})


@cases("p_norm")
def _p_norm(r, op):
    for p in (0.0, 1.0, 2.0, 3.5, INF, -INF, -1.0):
        yield Case(f"float64_{p}".replace(".", "_"), {"X": r.f((3, 5), 0.5, 2, "float64")}, "Out",
                   {"porder": p, "axis": 0, "keepdim": True})
    yield Case("rank1", {"X": r.f((5,))}, "Out", {"porder": 3.0, "axis": 0})


@cases("frobenius_norm")
def _frobenius(r, op):
    for dtype in ("float32", "float64"):
        yield reduction(f"axes_{dtype}", r.f((2, 3, 4), dtype=dtype), [1, 2])
        yield reduction(f"all_{dtype}", r.f((2, 3, 4), dtype=dtype), [0], reduce_all=True)


@cases("l1_norm")
def _l1(r, op):
    yield Case("values", {"X": r.f((3, 4))}, "Out")


@cases("norm")
def _norm(r, op):
    yield Case("float64", {"X": r.f((2, 3, 4), dtype="float64")}, "Out,Norm", {"axis": 1, "epsilon": 1e-6})


@cases("arg_max", "arg_min")
def _arg(r, op):
    def one(name, x, **a):
        return Case(name, {"X": x}, "Out", {"axis": -1, "keepdims": False, "flatten": False, "dtype": INT64, **a})
    yield one("long_line", r.distinct((3, 131)))
    yield one("long_ties", r.i((3, 131), 0, 4, "float32"))
    yield one("channels", r.distinct((2, 5, 3, 51)), axis=1)
    yield one("flatten_keep", r.distinct((2, 3, 5)), flatten=True, keepdims=True)
    yield one("scalar", r.f(()), axis=0)
    for dtype in ("int32", "int16", "uint8", "float16"):
        yield one(f"values_as_{dtype}", r.distinct((4, 6), 0, 23, dtype), axis=0, dtype=INT32)


@cases("top_k")
def _top_k(r, op):
    yield Case("float64", {"X": r.distinct((2, 3, 5), dtype="float64")}, "Out,Indices", {"k": 5})


@cases("top_k_v2")
def _top_k_v2(r, op):
    for dtype in ("float32", "float64", "int32", "int64"):
        yield Case(f"middle_{dtype}", {"X": r.distinct((3, 7, 2), -40, 40, dtype)}, "Out,Indices",
                   {"k": 3, "axis": -2, "largest": False, "sorted": True})
    yield Case("nan", {"X": f32(1, NAN, 2, 5, 3)}, "Out,Indices", {"k": 3, "axis": 0, "largest": True, "sorted": True})
    for k in (1, 3):
        yield Case("scalar" if k == 1 else f"scalar_k{k}", {"X": r.f(())}, "Out,Indices", {"k": k, "axis": -1, "largest": True, "sorted": True})


@cases("argsort")
def _argsort(r, op):
    for dtype in ("float32", "float64", "int32", "int64"):
        yield Case(f"middle_{dtype}", {"X": r.distinct((3, 7, 2), -40, 40, dtype)}, "Out,Indices",
                   {"axis": 1, "descending": dtype == "int32"})
    for descending in (False, True):
        yield Case(f"nan_{descending}", {"X": f32(1, NAN, 2, NAN, 0, 1)}, "Out,Indices", {"axis": 0, "descending": descending},
                   notes="stable")
    yield Case("scalar", {"X": r.f(())}, "Out,Indices", {"axis": -1, "descending": False})


@cases("cumsum")
def _cumsum(r, op):
    for dtype in ("int32", "int16", "float64"):
        make = (lambda s: r.i(s, -9, 9, dtype)) if "int" in dtype else (lambda s: r.f(s, dtype=dtype))
        yield Case(f"middle_{dtype}", {"X": make((2, 5, 3))}, "Out", {"axis": 1, "exclusive": dtype == "int16", "reverse": True})
    yield Case("scalar_exclusive", {"X": r.f(())}, "Out", {"axis": 0, "exclusive": True})
    yield Case("flatten_reverse", {"X": r.f((3, 4))}, "Out", {"axis": -1, "flatten": True, "reverse": True, "exclusive": True})
    yield Case("many_columns", {"X": r.f((4, 150))}, "Out", {"axis": 0})


# ----------------------------------------------------------------------------
# 3. recast cases
# ----------------------------------------------------------------------------
FLOAT16 = """abs sqrt rsqrt square reciprocal ceil floor round sign relu relu6 leaky_relu gelu sigmoid tanh swish silu
    hard_sigmoid hard_swish softplus mish elu softsign logsigmoid tanh_shrink sin cos atan pow clip exp log log1p erf
    elementwise_add elementwise_sub elementwise_mul elementwise_div elementwise_max elementwise_min elementwise_pow
    elementwise_mod elementwise_floordiv reduce_sum reduce_mean reduce_max reduce_min reduce_prod sum""".split()
RECAST = {op: ["float16"] for op in FLOAT16}
for _op in ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_floordiv", "elementwise_mod"):
    RECAST[_op] += ["int32", "int64", "int16", "int8", "uint8"]
RECAST["elementwise_mul"] += ["bool"]
for _op in ("elementwise_max", "elementwise_min", "elementwise_pow", "pow", "clip", "exp", "log", "log1p", "abs", "square"):
    RECAST[_op] += ["int32", "int64"]
RECAST["sign"] += ["int32", "int64", "int16", "int8", "uint8"]


def main():
    out, wanted = arguments(__doc__)
    cases = list(cases_of(CASES, "math", wanted))
    cases += [c for op, dtypes in RECAST.items() if not wanted or op in wanted for d in dtypes
              for c in extra.recast_cases(op, d)]
    make_all(out, cases, extra.make_case)


if __name__ == "__main__":
    sys.exit(main())
