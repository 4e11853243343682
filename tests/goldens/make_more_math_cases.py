#!/usr/bin/env python3
"""make_more_math_cases.py - golden cases of ops of tensors and numbers that make_goldens.py does not know: what
is put and found by index, statistics along an axis, running extremes, special functions, diagonals, windows and
decompositions, with their gradients.

    python make_more_math_cases.py --out more_math && ./pack.sh more_math

Same needs and same format as make_goldens.py; more_math.tar.xz beside this file is the result. A case of an op in
GRADIENTS is made twice: the op itself, and its gradient as Paddle's own maker writes it.
"""
import sys

import make_extra_cases as extra
import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, make_all, register
from make_goldens import Case, Rng

CASES = []        # (op, function Rng -> Cases)
GRADIENTS = set()
cases = register(CASES, GRADIENTS)
FLOATS = ("float32", "float64")
NUMBERS = ("float32", "float64", "int32", "int64")
NAN, INF = float("nan"), float("inf")


def i64(*values):
    return np.array(values, "int64")


def i32(*values):
    return np.array(values, "int32")


def f32(*values):
    return np.array(values, "float32")


def numbers(r, shape, dtype, lo=-4, hi=4):
    return r.f(shape, lo, hi, dtype) if "float" in dtype else r.i(shape, lo, hi, dtype)


def forward_alone(case):
    """A case whose gradient is not recorded: Paddle has none there, or one that is no derivative."""
    case.notes = (case.notes + " forward alone").strip()
    return case


# ----------------------------------------------------------------------------
# by index
# ----------------------------------------------------------------------------
@cases("put_along_axis", gradient=True)
def _put_along_axis(r, op):
    def one(name, shape, index, value, axis, reduce="assign", own=True, dtype="float32", index_dtype="int64"):
        length = shape[axis]
        return Case(name, {"Input": numbers(r, shape, dtype, 1, 4), "Index": r.i(index, 0, length - 1, index_dtype),
                           "Value": numbers(r, value, dtype, 1, 4)}, "Result",
                    {"Axis": axis, "Reduce": reduce, "Include_self": own}, no_grad=("Index",))
    for reduce in ("assign", "add", "mul", "multiply", "mean", "amax", "amin"):
        for own in (True, False):
            for dtype in FLOATS:
                yield one(f"{reduce}_{'self' if own else 'alone'}_{dtype}", (3, 4), (3, 6), (3, 6), 1, reduce, own, dtype)
    for dtype in ("int32", "int64", "uint8"):
        for reduce in ("assign", "add", "mul", "amax"):
            yield forward_alone(one(f"{reduce}_{dtype}", (3, 4), (3, 6), (3, 6), 1, reduce, True, dtype, "int32"))
    yield one("first_axis", (3, 2, 4), (5, 2, 4), (5, 2, 4), 0)
    yield one("middle_axis", (3, 2, 4), (3, 3, 4), (3, 3, 4), 1, "add")
    yield one("part", (4, 5), (2, 3), (2, 3), 1)
    yield forward_alone(one("large_value", (4, 5), (2, 3), (3, 4), 1, "add"))
    yield Case("ties", {"Input": f32(1, 2, 3), "Index": i64(0, 0, 1, 1, 2), "Value": f32(1, 1, 5, 5, 3)}, "Result",
                {"Axis": 0, "Reduce": "amax", "Include_self": True}, no_grad=("Index",))


@cases("index_add", gradient=True)
def _index_add(r, op):
    for axis in (0, 1, -1):
        for dtype in FLOATS:
            shape = [3, 4, 2]
            length, shape[axis] = shape[axis], 5
            yield Case(f"axis{axis % 3}_{dtype}", {"X": r.f((3, 4, 2), dtype=dtype), "Index": r.i((5,), 0, length - 1, "int32"),
                                                   "AddValue": r.f(shape, dtype=dtype)}, "Out", {"axis": axis}, no_grad=("Index",))
    for dtype in ("int32", "int64"):
        yield forward_alone(Case(dtype, {"X": r.i((4, 3), -9, 9, dtype), "Index": i64(3, 0, 3), "AddValue": r.i((3, 3), -9, 9, dtype)},
                                 "Out", {"axis": 0}))
    yield Case("vector", {"X": r.f((4,)), "Index": i64(3, 0, 3), "AddValue": r.f((3,))}, "Out", {"axis": 0}, no_grad=("Index",))


@cases("index_put", gradient=True)
def _index_put(r, op):
    def one(name, shape, indices, value, accumulate=False, dtype="float32"):
        return Case(name, {"x": numbers(r, shape, dtype), "indices": indices, "value": numbers(r, value, dtype)}, "out",
                    {"accumulate": accumulate}, no_grad=("indices",))
    for accumulate in (False, True):
        tag = "add" if accumulate else "put"
        for dtype in FLOATS:
            rows, columns = (i64(0, 2, 1), i64(1, 3, 1)) if not accumulate else (i64(0, 2, 0), i64(1, 3, 1))
            yield one(f"{tag}_points_{dtype}", (3, 4), [rows, columns], (3,), accumulate, dtype)
            yield one(f"{tag}_rows_{dtype}", (3, 4), [i64(2, 0)], (2, 4), accumulate, dtype)
        yield one(f"{tag}_one_value", (3, 4), [i64(2, 0), i64(1, 1)], (1,), accumulate)
        yield one(f"{tag}_broadcast", (3, 4, 2), [i64(2, 0).reshape(2, 1), i64(1, 3, 0)], (2, 3, 2), accumulate)
        yield one(f"{tag}_negative", (3, 4), [i64(-1, 0), i64(1, -4)], (2,), accumulate)
        yield one(f"{tag}_broadcast_value", (3, 4), [i64(2, 0)], (4,), accumulate)
        for dtype in ("int32", "int64"):
            yield forward_alone(one(f"{tag}_{dtype}", (3, 4), [i64(2, 0), i64(1, 3)], (2,), accumulate, dtype))
    mask = np.array([[True, False, True], [False, True, False]])
    yield one("mask", (2, 3), [mask], (3,))
    yield one("mask_rows", (3, 4), [np.array([True, False, True])], (2, 4), True)
    yield forward_alone(Case("bool", {"x": r.b((3, 4)), "indices": [i64(2, 0), i64(1, 3)], "value": r.b((2,))}, "out",
                             {"accumulate": False}))


@cases("multiplex", gradient=True)
def _multiplex(r, op):
    ids = i32(2, 0, 1, 2).reshape(4, 1)
    for dtype in NUMBERS:
        case = Case(dtype, {"X": [numbers(r, (4, 3), dtype) for _ in range(3)], "Ids": ids}, "Out", no_grad=("Ids",))
        yield case if "float" in dtype else forward_alone(case)
    yield Case("rank3", {"X": [r.f((2, 3, 2)), r.f((2, 3, 2))], "Ids": i32(1, 1).reshape(2, 1)}, "Out", no_grad=("Ids",))


@cases("gather_tree")
def _gather_tree(r, op):
    for dtype in ("int32", "int64"):
        yield Case(dtype, {"Ids": r.i((5, 2, 3), 0, 99, dtype), "Parents": r.i((5, 2, 3), 0, 2, dtype)}, "Out")
    yield Case("one_step", {"Ids": r.i((1, 2, 3), 0, 99), "Parents": r.i((1, 2, 3), 0, 2)}, "Out")


@cases("searchsorted")
def _searchsorted(r, op):
    for dtype in NUMBERS:
        for right in (False, True):
            yield Case(f"{dtype}_{'right' if right else 'left'}",
                       {"SortedSequence": np.sort(r.i((2, 6), 0, 5).astype(dtype), -1), "Values": r.i((2, 4), -1, 6).astype(dtype)},
                       "Out", {"out_int32": right, "right": right})
    yield Case("vector", {"SortedSequence": f32(1, 2, 2, 3), "Values": r.f((2, 3, 2), 0, 4)}, "Out", {"right": True})
    yield Case("extremes", {"SortedSequence": f32(-1, 0, 1), "Values": f32(-INF, INF, NAN, 0)}, "Out")


@cases("shard_index")
def _shard_index(r, op):
    for dtype in ("int32", "int64"):
        for shard in (0, 2):
            yield Case(f"{dtype}_{shard}", {"X": r.i((6, 1), 0, 19, dtype)}, "Out",
                       {"index_num": 20, "nshards": 3, "shard_id": shard, "ignore_value": -1 if shard else 7})


@cases("unique")
def _unique(r, op):
    for dtype in NUMBERS:
        x = r.i((9,), 0, 4).astype(dtype)
        yield Case(f"old_{dtype}", {"X": x}, "Out,Index", {"dtype": g.INT64 if "64" in dtype else g.INT32, "is_sorted": False})
        for axis in ([], [0], [1], [-1]):
            x = r.i((4, 3), 0, 1).astype(dtype) if axis else r.i((2, 5), 0, 4).astype(dtype)
            yield Case(f"sorted_{dtype}_{axis[0] if axis else 'flat'}".replace("-", "m"), {"X": x}, "Out,Indices,Index,Counts",
                       {"dtype": g.INT64, "return_index": True, "return_inverse": True, "return_counts": True, "axis": axis,
                        "is_sorted": True})
    for is_sorted in (False, True):
        yield Case(f"scalar_{'sorted' if is_sorted else 'old'}", {"X": np.array(3, "float32")}, "Out,Index",
                   {"dtype": g.INT64, "return_inverse": True, "axis": [], "is_sorted": is_sorted})
    yield Case("int32_indices", {"X": r.i((7,), 0, 3)}, "Out,Indices,Index,Counts",
               {"dtype": g.INT32, "return_index": True, "return_inverse": True, "return_counts": True, "axis": [], "is_sorted": True})
    yield Case("values_alone", {"X": r.i((7,), 0, 3)}, "Out,Indices,Index,Counts", {"dtype": g.INT64, "axis": [], "is_sorted": True},
               nofetch=("Indices", "Index", "Counts"))
    yield Case("rank3", {"X": r.i((2, 4, 2), 0, 1)}, "Out,Indices,Index,Counts",
               {"dtype": g.INT64, "return_index": True, "return_inverse": True, "return_counts": True, "axis": [1], "is_sorted": True})


@cases("unique_with_counts")
def _unique_with_counts(r, op):
    for dtype in NUMBERS:
        yield Case(dtype, {"X": r.i((9,), 0, 4).astype(dtype)}, "Out,Index,Count", {"dtype": g.INT64 if "64" in dtype else g.INT32})


@cases("unique_consecutive")
def _unique_consecutive(r, op):
    for dtype in NUMBERS:
        for axis in ([], [0], [-1]):
            x = r.i((5, 2), 0, 1).astype(dtype)
            yield Case(f"{dtype}_{axis[0] if axis else 'flat'}".replace("-", "m"), {"X": x}, "Out,Index,Counts",
                       {"dtype": g.INT64 if "64" in dtype else g.INT32, "return_inverse": True, "return_counts": True, "axis": axis})


# ----------------------------------------------------------------------------
# along an axis
# ----------------------------------------------------------------------------
@cases("kthvalue", gradient=True)
def _kthvalue(r, op):
    for dtype in NUMBERS:
        case = Case(f"middle_{dtype}", {"X": r.distinct((3, 7, 2), -40, 40, dtype)}, "Out,Indices", {"k": 3, "axis": 1})
        yield case if "float" in dtype else forward_alone(case)
    yield Case("keep", {"X": r.distinct((3, 4))}, "Out,Indices", {"k": 4, "axis": -1, "keepdim": True})
    yield Case("vector", {"X": r.distinct((5,))}, "Out,Indices", {"k": 1, "axis": 0})
    yield forward_alone(Case("ties", {"X": f32(2, 1, 2, 1, 2)}, "Out,Indices", {"k": 3, "axis": 0}, nofetch=("Indices",)))
    yield forward_alone(Case("nan", {"X": f32(2, NAN, 0, 1)}, "Out,Indices", {"k": 3, "axis": 0}))
    yield forward_alone(Case("scalar", {"X": r.f(())}, "Out,Indices", {"k": 1, "axis": -1}))


@cases("mode", gradient=True)
def _mode(r, op):
    for dtype in NUMBERS:
        case = Case(f"middle_{dtype}", {"X": r.i((3, 7, 2), 0, 3).astype(dtype)}, "Out,Indices", {"axis": 1})
        yield case if "float" in dtype else forward_alone(case)
    yield Case("keep", {"X": r.i((3, 6), 0, 3).astype("float32")}, "Out,Indices", {"axis": -1, "keepdim": True})
    yield Case("all_differ", {"X": r.distinct((5,))}, "Out,Indices", {"axis": 0})
    yield forward_alone(Case("scalar", {"X": r.f(())}, "Out,Indices", {"axis": -1}))


@cases("cummax", "cummin", gradient=True)
def _cummax(r, op):
    for dtype in NUMBERS:
        case = Case(f"middle_{dtype}", {"x": r.i((2, 7, 3), -3, 3).astype(dtype)}, "out,indices",
                    {"axis": 1, "dtype": g.INT32 if dtype == "int32" else g.INT64})
        yield case if "float" in dtype else forward_alone(case)
    yield Case("last", {"x": r.f((3, 5))}, "out,indices", {"axis": -1, "dtype": g.INT64})
    yield Case("int32_indices", {"x": r.f((3, 5))}, "out,indices", {"axis": 0, "dtype": g.INT32})
    yield forward_alone(Case("nan", {"x": f32(1, 3, NAN, 5, NAN, -2)}, "out,indices", {"axis": 0, "dtype": g.INT64}))


@cases("cumprod", gradient=True)
def _cumprod(r, op):
    for dtype in NUMBERS:
        case = Case(f"middle_{dtype}", {"X": numbers(r, (2, 5, 3), dtype, -2, 2)}, "Out", {"dim": 1})
        yield case if "float" in dtype else forward_alone(case)
    x = r.f((3, 6), dtype="float64")
    x[0, 2] = x[1, 0] = x[2, 1] = x[2, 4] = 0
    yield Case("zeros", {"X": x}, "Out", {"dim": -1})


@cases("logcumsumexp", gradient=True)
def _logcumsumexp(r, op):
    for dtype in FLOATS:
        for reverse in (False, True):
            yield Case(f"{'reverse' if reverse else 'forward'}_{dtype}", {"X": r.f((2, 5, 3), dtype=dtype)}, "Out",
                       {"axis": 1, "reverse": reverse})
        yield forward_alone(Case(f"exclusive_{dtype}", {"X": r.f((2, 5), dtype=dtype)}, "Out", {"axis": 1, "exclusive": True}))
    yield Case("flatten", {"X": r.f((3, 4))}, "Out", {"axis": -1, "flatten": True})
    yield Case("far_apart", {"X": f32(-300, 5, 200, 201, -40)}, "Out", {"axis": 0})


@cases("bincount")
def _bincount(r, op):
    for dtype in ("int32", "int64"):
        yield Case(dtype, {"X": r.i((8,), 0, 5, dtype)}, "Out", {"minlength": 0})
        for weights in NUMBERS:
            yield Case(f"{dtype}_{weights}", {"X": r.i((8,), 0, 5, dtype), "Weights": numbers(r, (8,), weights)}, "Out", {"minlength": 9})
    yield Case("empty", {"X": np.zeros((0,), "int64")}, "Out", {"minlength": 0})


@cases("histogram")
def _histogram(r, op):
    for dtype in NUMBERS:
        yield Case(f"range_{dtype}", {"X": numbers(r, (4, 6), dtype, -5, 5)}, "Out", {"bins": 4, "min": -3, "max": 3})
        yield Case(f"own_range_{dtype}", {"X": numbers(r, (4, 6), dtype, -5, 5)}, "Out", {"bins": 7, "min": 0, "max": 0})
    yield Case("all_equal", {"X": f32(2, 2, 2)}, "Out", {"bins": 5, "min": 0, "max": 0})
    for dtype in NUMBERS:
        for bins, low, high in ((10, 0, 6), (21, -3, 4), (7, 0, 0)):
            x = np.linspace(low, high or 7, bins + 1).astype(dtype)
            yield Case(f"edges_{bins}_{dtype}", {"X": x}, "Out", {"bins": bins, "min": low, "max": high})


# ----------------------------------------------------------------------------
# element by element
# ----------------------------------------------------------------------------
SPECIAL = {"lgamma": (0.1, 20), "digamma": (0.1, 20), "erfinv": (-0.99, 0.99), "i0": (-9, 9), "i0e": (-90, 90),
           "i1": (-9, 9), "i1e": (-90, 90)}


@cases(*SPECIAL, gradient=True)
def _special(r, op):
    slot, out = ("x", "out") if op.startswith("i") else ("X", "Out")
    lo, hi = SPECIAL[op]
    for dtype in FLOATS:
        yield Case(dtype, {slot: r.f((3, 7), lo, hi, dtype)}, out)
    yield Case("scalar", {slot: r.f((), lo, hi)}, out)
    yield Case("near_zero", {slot: np.array([1e-9, 1e-4, 0.01, 0.1, 0.5], "float64")}, out)
    if op in ("lgamma", "digamma"):
        yield Case("negative", {slot: np.array([-0.5, -1.3, -7.9, -20.25], "float64")}, out, tol=(1e-6, 1e-8))
        yield Case("large", {slot: np.array([1e3, 1e6, 1e9], "float64")}, out)
    elif op == "erfinv":
        yield Case("near_one", {slot: np.array([0.999, -0.99999, 0.9999999, 1 - 1e-12], "float64")}, out, tol=(1e-5, 1e-8))
        yield forward_alone(Case("ends", {slot: f32(-1, 1, 0, 2)}, out))
    else:
        yield Case("negative", {slot: np.array([-1e-3, -0.7, -8.1, -31, -29.5], "float64")}, out)


@cases("polygamma", gradient=True)
def _polygamma(r, op):
    for n in (1, 2, 5):
        for dtype in FLOATS:
            yield Case(f"n{n}_{dtype}", {"x": r.f((3, 4), 0.5, 12, dtype)}, "out", {"n": n}, tol=(1e-4, 1e-5) if dtype == "float32" else None)


@cases("atan2", gradient=True)
def _atan2(r, op):
    for dtype in NUMBERS:
        case = Case(dtype, {"X1": numbers(r, (3, 5), dtype), "X2": numbers(r, (3, 5), dtype)}, "Out")
        yield case if "float" in dtype else forward_alone(case)
    yield forward_alone(Case("axes", {"X1": f32(0, 0, 1, -1, 0, -0.0), "X2": f32(1, -1, 0, 0, 0, -1)}, "Out"))
    yield Case("scalar", {"X1": r.f(()), "X2": r.f(())}, "Out")


@cases("nextafter")
def _nextafter(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"x": r.f((3, 5), dtype=dtype), "y": r.f((3, 5), dtype=dtype)}, "out", tol=(0.0, 0.0))
    yield Case("edges", {"x": f32(0, 0, 1, INF, NAN, 1), "y": f32(1, -1, 1, 0, 1, NAN)}, "out", tol=(0.0, 0.0))


@cases("elementwise_heaviside", gradient=True)
def _heaviside(r, op):
    for dtype in NUMBERS:
        case = Case(dtype, {"X": r.i((3, 5), -1, 1).astype(dtype), "Y": numbers(r, (3, 5), dtype)}, "Out")
        yield case if "float" in dtype else forward_alone(case)
    yield Case("broadcast_y", {"X": r.i((3, 5), -1, 1).astype("float32"), "Y": r.f((5,))}, "Out")
    # X of fewer dimensions than Y: Paddle swaps the operands.
    yield Case("broadcast_both", {"X": r.i((3, 1), -1, 1).astype("float32"), "Y": r.f((1, 5))}, "Out")
    yield forward_alone(Case("nan", {"X": f32(NAN, 0, INF), "Y": f32(2, NAN, 3)}, "Out"))


@cases("lerp", gradient=True)
def _lerp(r, op):
    for dtype in FLOATS:
        for name, x, y, w in (("same", (3, 4), (3, 4), (3, 4)), ("one_weight", (3, 4), (3, 4), (1,)),
                              ("broadcast", (3, 1, 4), (2, 1), (2, 4)), ("scalars", (), (), ())):
            yield Case(f"{name}_{dtype}", {"X": r.f(x, dtype=dtype), "Y": r.f(y, dtype=dtype), "Weight": r.f(w, 0, 1, dtype)}, "Out")


@cases("allclose", "isclose")
def _close(r, op):
    def one(name, x, y, extra_ins=None, **a):
        return Case(name, {"Input": x, "Other": y, **(extra_ins or {})}, "Out", {"rtol": "1e-05", "atol": "1e-08", "equal_nan": False, **a})
    for dtype in FLOATS:
        x = r.i((2, 3), 0, 9).astype(dtype)
        yield one(f"same_{dtype}", x, x.copy())
        yield one(f"differ_{dtype}", x, r.i((2, 3), 0, 9).astype(dtype))
    x = np.array([1, 1e3, 1e-9, 0, INF, -INF, INF, NAN, NAN], "float64")
    y = np.array([1 + 9e-6, 1e3 + 0.011, 0, 1e-8, INF, INF, 1, NAN, 1], "float64")
    for nan in (False, True):
        yield one(f"edges_{nan}", x, y, equal_nan=nan)
    yield one("nans", f32(NAN, 1), f32(NAN, 1), equal_nan=True)
    yield one("tolerances", f32(1, 2), f32(1.05, 2.3), rtol="0.1", atol="0.0")
    yield one("tensors", f32(1, 2), f32(1.05, 2.3), {"Rtol": np.array([0.0], "float64"), "Atol": np.array([0.1], "float64")})


@cases("equal_all")
def _equal_all(r, op):
    for dtype in NUMBERS + ("bool",):
        x = r.i((2, 3), 0, 1).astype(dtype)
        yield Case(f"same_{dtype}", {"X": x, "Y": x.copy()}, "Out")
        yield Case(f"differ_{dtype}", {"X": x, "Y": (1 - x.astype("int32")).astype(dtype)}, "Out")
    yield Case("other_shape", {"X": r.f((2, 3)), "Y": r.f((3, 2))}, "Out")


@cases("isnan", "isinf")
def _is_any(r, op):
    yield Case("none", {"X": r.f((2, 3))}, "Out")
    yield Case("nan", {"X": f32(1, NAN)}, "Out")
    yield Case("inf", {"X": f32(1, INF)}, "Out")
    yield Case("float64", {"X": np.array([NAN, INF])}, "Out")


# ----------------------------------------------------------------------------
# diagonals
# ----------------------------------------------------------------------------
@cases("diagonal", "trace", gradient=True)
def _diagonal(r, op):
    for dtype in NUMBERS:
        case = Case(f"matrix_{dtype}", {"Input": numbers(r, (3, 4), dtype)}, "Out", {"offset": 0, "axis1": 0, "axis2": 1})
        yield case if "float" in dtype else forward_alone(case)
    for offset in (2, -1):
        yield Case(f"offset{offset}".replace("-", "m"), {"Input": r.f((3, 4, 5))}, "Out", {"offset": offset, "axis1": 2, "axis2": 0})
    yield Case("negative_axes", {"Input": r.f((2, 3, 4), dtype="float64")}, "Out", {"offset": 1, "axis1": -2, "axis2": -1})
    yield Case("rank4", {"Input": r.f((2, 3, 4, 3))}, "Out", {"offset": 0, "axis1": 1, "axis2": 3})


@cases("diag_embed")
def _diag_embed(r, op):
    for dtype in NUMBERS:
        yield Case(dtype, {"Input": numbers(r, (2, 3), dtype)}, "Out", {"offset": 0, "dim1": -2, "dim2": -1})
    for offset in (1, -2):
        yield Case(f"offset{offset}".replace("-", "m"), {"Input": r.f((2, 3))}, "Out", {"offset": offset, "dim1": 0, "dim2": 2})
    yield Case("vector", {"Input": r.f((3,))}, "Out", {"offset": -1, "dim1": 0, "dim2": 1})
    yield Case("swapped", {"Input": r.f((2, 3))}, "Out", {"offset": 1, "dim1": 2, "dim2": 1})


@cases("diag_v2", gradient=True)
def _diag_v2(r, op):
    for dtype in NUMBERS:
        for offset in (0, 2, -1):
            tag = f"{offset}_{dtype}".replace("-", "m")
            both = (Case(f"vector{tag}", {"X": numbers(r, (3,), dtype)}, "Out", {"offset": offset, "padding_value": 2.5}),
                    Case(f"matrix{tag}", {"X": numbers(r, (3, 4), dtype)}, "Out", {"offset": offset, "padding_value": 0.0}))
            yield from both if "float" in dtype else map(forward_alone, both)


@cases("fill_diagonal", gradient=True)
def _fill_diagonal(r, op):
    for dtype in NUMBERS:
        case = Case(f"square_{dtype}", {"X": numbers(r, (3, 3), dtype)}, "Out", {"value": 7.0, "offset": 0, "wrap": False})
        yield case if "float" in dtype else forward_alone(case)
    for shape in ((7, 3), (3, 7)):
        for wrap in (False, True):
            for offset in (0, 1, -2):
                yield Case(f"{shape[0]}x{shape[1]}_{'wrap' if wrap else 'end'}_{offset}".replace("-", "m"), {"X": r.f(shape)}, "Out",
                           {"value": -1.5, "offset": offset, "wrap": wrap})
    yield Case("cube", {"X": r.f((3, 3, 3))}, "Out", {"value": 2.0, "offset": 0, "wrap": False})


@cases("fill_diagonal_tensor", gradient=True)
def _fill_diagonal_tensor(r, op):
    for dtype in NUMBERS:
        case = Case(f"matrix_{dtype}", {"X": numbers(r, (3, 4), dtype), "Y": numbers(r, (3,), dtype)}, "Out",
                    {"offset": 0, "dim1": 0, "dim2": 1}, no_grad=("Y",))
        yield case if "float" in dtype else forward_alone(case)
    yield Case("offset", {"X": r.f((3, 4, 2)), "Y": r.f((2, 2))}, "Out", {"offset": 2, "dim1": 0, "dim2": 1}, no_grad=("Y",))
    yield Case("below", {"X": r.f((2, 4, 5)), "Y": r.f((2, 3))}, "Out", {"offset": -1, "dim1": 1, "dim2": 2}, no_grad=("Y",))


@cases("tril_indices", "triu_indices")
def _triangle(r, op):
    rows, columns = ("rows", "cols") if op == "tril_indices" else ("row", "col")
    for offset in (0, 1, -2, 9, -9):
        for dtype in (g.INT32, g.INT64):
            yield Case(f"offset{offset}_{dtype}".replace("-", "m"), {}, "out", {rows: 4, columns: 3, "offset": offset, "dtype": dtype})


# ----------------------------------------------------------------------------
# products
# ----------------------------------------------------------------------------
@cases("einsum")
def _einsum(r, op):
    def one(name, equation, *shapes, dtype="float32"):
        n = len(shapes)
        return Case(name, {"Operands": [r.f(s, dtype=dtype) for s in shapes]}, {"Out": 1, "InnerCache": n, "XShape": n},
                    {"equation": equation}, nofetch=("InnerCache",), tol=(1e-4, 1e-5) if dtype == "float32" else None)
    for dtype in FLOATS:
        yield one(f"product_{dtype}", "ij,jk->ik", (3, 4), (4, 5), dtype=dtype)
        yield one(f"attention_{dtype}", "bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5), dtype=dtype)
    yield one("batch", "bij,bjk->bik", (2, 3, 4), (2, 4, 5))
    yield one("shared_weight", "bij,jk->bik", (2, 3, 4), (4, 5))
    yield one("heads", "bnhd,bmhd->bhnm", (2, 3, 2, 4), (2, 5, 2, 4))
    yield one("swapped", "ij,jk->ki", (3, 4), (4, 5))
    yield one("outer", "i,j->ij", (3,), (4,))
    yield one("dot", "i,i->", (5,), (5,))
    yield one("elementwise", "ij,ij->ij", (3, 4), (3, 4))
    yield one("transpose", "ijk->kij", (2, 3, 4))
    yield one("sum", "ijk->j", (2, 3, 4))
    yield one("sum_all", "ij->", (3, 4))
    yield one("ellipsis", "...ij,...jk->...ik", (2, 3, 4), (2, 4, 5))
    yield one("ellipsis_broadcast", "...ij,jk->...ik", (2, 2, 3, 4), (4, 5))
    yield one("ellipsis_alone", "...i->...", (2, 3, 4))
    yield one("summed_in_one", "ij,jk->k", (3, 4), (4, 5))
    yield one("diagonal", "ii->i", (4, 4))
    yield one("trace", "ii->", (4, 4))


# ----------------------------------------------------------------------------
# windows and channels
# ----------------------------------------------------------------------------
@cases("unfold", gradient=True)
def _unfold(r, op):
    def one(name, kernel, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), dtype="float32"):
        return Case(name, {"X": r.f((2, 3, 5, 6), dtype=dtype)}, {"Y": 1},
                    {"kernel_sizes": list(kernel), "strides": list(strides), "paddings": list(paddings), "dilations": list(dilations)})
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", (2, 3), dtype=dtype)
    yield one("strides", (3, 2), (2, 3))
    yield one("paddings", (3, 3), (2, 2), (1, 0, 2, 3))
    yield one("dilations", (2, 2), (1, 1), (1, 1, 1, 1), (2, 3))


@cases("fold", gradient=True)
def _fold(r, op):
    def one(name, kernel, windows, strides=(1, 1), paddings=(0, 0, 0, 0), dilations=(1, 1), dtype="float32"):
        return Case(name, {"X": r.f((2, 3 * kernel[0] * kernel[1], windows), dtype=dtype)}, {"Y": 1},
                    {"output_sizes": [5, 6], "kernel_sizes": list(kernel), "strides": list(strides), "paddings": list(paddings),
                     "dilations": list(dilations)})
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", (2, 3), 16, dtype=dtype)
    yield one("strides", (3, 2), 4, (2, 3))
    yield one("paddings", (3, 3), 9, (2, 2), (1, 1, 1, 1))


@cases("frame", gradient=True)
def _frame(r, op):
    for axis, shape in ((-1, (2, 9)), (0, (9, 2)), (-1, (7,)), (0, (7,)), (-1, (2, 3, 8))):
        for dtype in NUMBERS:
            case = Case(f"{'first' if axis == 0 else 'last'}_rank{len(shape)}_{dtype}", {"X": numbers(r, shape, dtype)}, "Out",
                        {"frame_length": 4, "hop_length": 2, "axis": axis})
            yield case if "float" in dtype else forward_alone(case)
    yield Case("apart", {"X": r.f((2, 11))}, "Out", {"frame_length": 2, "hop_length": 4, "axis": -1})


@cases("overlap_add", gradient=True)
def _overlap_add(r, op):
    for axis, shape in ((-1, (2, 4, 3)), (0, (3, 4, 2)), (-1, (4, 3)), (0, (3, 4))):
        for dtype in NUMBERS:
            case = Case(f"{'first' if axis == 0 else 'last'}_rank{len(shape)}_{dtype}", {"X": numbers(r, shape, dtype)}, "Out",
                        {"hop_length": 2, "axis": axis})
            yield case if "float" in dtype else forward_alone(case)


@cases("channel_shuffle", "pixel_unshuffle", "temporal_shift", gradient=True)
def _channels(r, op):
    attrs = {"channel_shuffle": {"groups": 3}, "pixel_unshuffle": {"downscale_factor": 2},
             "temporal_shift": {"seg_num": 3, "shift_ratio": 0.25}}[op]
    for dtype in FLOATS:
        for last in (False, True):
            shape = (6, 4, 2, 12) if last else (6, 12, 4, 2)
            yield Case(f"{'nhwc' if last else 'nchw'}_{dtype}", {"X": r.f(shape, dtype=dtype)}, "Out",
                       {**attrs, "data_format": "NHWC" if last else "NCHW"})
    if op == "temporal_shift":
        yield Case("one_frame", {"X": r.f((2, 5, 2, 2))}, "Out", {"seg_num": 1, "shift_ratio": 0.4, "data_format": "NCHW"})


@cases("repeat_interleave", gradient=True)
def _repeat_interleave(r, op):
    for dim in (0, 1, 2):
        for dtype in NUMBERS:
            both = (Case(f"times_{dim}_{dtype}", {"X": numbers(r, (3, 2, 4), dtype)}, "Out", {"Repeats": 2, "dim": dim}),
                    Case(f"tensor_{dim}_{dtype}", {"X": numbers(r, (3, 2, 4), dtype),
                                                       "RepeatsTensor": r.i(((3, 2, 4)[dim],), 0 if dim == 0 else 1, 3, "int32")},
                         "Out", {"dim": dim}, no_grad=("RepeatsTensor",)))
            yield from both if "float" in dtype else map(forward_alone, both)


@cases("broadcast_tensors", gradient=True)
def _broadcast_tensors(r, op):
    for dtype in NUMBERS + ("bool",):
        make = (lambda s: r.b(s)) if dtype == "bool" else (lambda s: numbers(r, s, dtype))
        case = Case(dtype, {"X": [make((3, 1, 4)), make((2, 1)), make((4,))]}, {"Out": 3})
        yield case if "float" in dtype else forward_alone(case)
    yield Case("same", {"X": [r.f((2, 3)), r.f((2, 3))]}, {"Out": 2})
    yield forward_alone(Case("scalar", {"X": [r.f((2, 3)), r.f(())]}, {"Out": 2}))


@cases("crop_tensor", gradient=True)
def _crop_tensor(r, op):
    for dtype in NUMBERS:
        case = Case(dtype, {"X": numbers(r, (4, 5, 3), dtype)}, "Out", {"shape": [2, 3, -1], "offsets": [1, 2, 1]})
        yield case if "float" in dtype else forward_alone(case)
    yield Case("tensors", {"X": r.f((4, 5)), "Shape": i32(2, 3), "Offsets": i32(2, 0)}, "Out", {"shape": [-1, -1], "offsets": [0, 0]},
               no_grad=("Shape", "Offsets"))
    yield Case("lists", {"X": r.f((4, 5)), "ShapeTensor": [i32(2), i32(3)], "OffsetsTensor": [i32(1), i32(2)]}, "Out",
               {"shape": [-1, -1], "offsets": [-1, -1]}, no_grad=("ShapeTensor", "OffsetsTensor"))


@cases("grad_add")
def _grad_add(r, op):
    for dtype in NUMBERS:
        yield Case(dtype, {"X": numbers(r, (3, 4), dtype), "Y": numbers(r, (3, 4), dtype)}, "Out", {"axis": -1})


@cases("memcpy")
def _memcpy(r, op):
    for dtype in NUMBERS:
        yield Case(dtype, {"X": numbers(r, (3, 4), dtype)}, "Out", {"dst_place_type": 0})


# MORE


def make(out, case):
    """The case, and that of its gradient."""
    if case.op.endswith("_grad"):
        case.op = case.op[:-5]
        g.make_grad_case(out, 0, Rng(0, f"more_math/{case.op}/{case.name}"), case, case.op + "_grad")
    else:
        extra.make_case(out, case)


def with_gradients(table):
    """The table with each differentiable op again under the name of its gradient."""
    def gradients_of(generate, op):
        return lambda r, _: (case for case in generate(r, op) if "forward alone" not in case.notes)
    return [pair for op, generate in table
            for pair in [(op, generate)] + ([(op + "_grad", gradients_of(generate, op))] if op in GRADIENTS else [])]


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(with_gradients(CASES), "more_math", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
