#!/usr/bin/env python3
"""make_api_cases.py - golden cases built by functions of Paddle's API, and ops at the edges that these reach.

    python make_api_cases.py --out api && ./pack.sh api

Same needs and same format as make_goldens.py; api.tar.xz beside this file is the result. A case of a function is a
program of all ops that it adds and their gradients, filed under the one that it is about. Attributes that are
variables (AttrType VAR and VARS), the order of equal elements, coordinates of images in float64.
"""
import sys

import make_goldens as g
import numpy as np
import paddle
import paddle.nn.functional as F
from case_program import arguments, cases_of, forward_alone, make_all, register
from make_goldens import Case

static = paddle.static
CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
DTYPES = ("float32", "float64")


class Call(Case):
    """A call of `attrs["call"]` with the inputs, by name, as variables."""

    def __init__(self, name, call, **ins):
        super().__init__(name, ins, "", {"call": call})


def ints(*values):
    return np.array(values, "int32")


# ----------------------------------------------------------------------------
# Attributes that are variables
# ----------------------------------------------------------------------------
@cases("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
def _reduce(r, op):
    reduce = getattr(paddle, op[len("reduce_"):])
    for dtype in DTYPES:
        x = r.distinct((2, 3, 4), 0.5, 2, dtype)
        yield Call(f"axis_variable_{dtype}", lambda x, a: reduce(x, a), x=x, a=ints(-2))
        yield Call(f"axes_variable_{dtype}", lambda x, a: reduce(x, a, keepdim=True), x=x, a=ints(0, -1))
        yield Call(f"axes_variables_{dtype}", lambda x, a, b: reduce(x, [a, b]), x=x, a=ints(0), b=ints(1))


@cases("cumsum")
def _cumsum(r, op):
    for dtype in DTYPES:
        yield Call(f"axis_variable_{dtype}", lambda x, a: paddle.cumsum(x, a), x=r.f((2, 3), dtype=dtype), a=ints(-2))


@cases("arg_max", "arg_min")
def _arg(r, op):
    find = paddle.argmax if op == "arg_max" else paddle.argmin
    for axis in (0, -1):
        yield Call(f"axis_variable_{axis % 3}", lambda x, a: find(x, a, True), x=r.distinct((2, 3, 4)), a=ints(axis))


@cases("squeeze2")
def _squeeze2(r, op):
    x = r.f((1, 3, 1, 2))
    yield Call("axis_variable", lambda x, a: paddle.squeeze(x, a), x=x, a=ints(2))
    yield Call("axes_variable", lambda x, a: paddle.squeeze(x, a), x=x, a=ints(0, -2))
    yield Call("axes_variables", lambda x, a, b: paddle.squeeze(x, [a, b]), x=x, a=ints(0), b=ints(-2))


@cases("eye")
def _eye(r, op):
    yield Call("rows_variable", lambda n: paddle.eye(n, dtype="float64"), n=ints(3))
    yield Call("both_variables", lambda n, m: paddle.eye(n, m, dtype="int32"), n=ints(2), m=ints(4))


@cases("bincount")
def _bincount(r, op):
    yield Call("minlength_variable", lambda x, n: paddle.bincount(x, minlength=n), x=r.i((7,), 0, 4), n=ints(9))


@cases("pad")
def _pad(r, op):
    for dtype in DTYPES:
        yield Call(f"value_variable_{dtype}", lambda x, v: F.pad(x, [1, 0, 2, 1], value=v), x=r.f((2, 3), dtype=dtype),
                   v=np.array([1.5], "float32"))


@cases("pool2d")
def _pool2d(r, op):
    for dtype in DTYPES:
        yield Call(f"size_variables_{dtype}", lambda x, h: F.adaptive_avg_pool2d(x, [h, 3]), x=r.f((2, 2, 5, 7), dtype=dtype),
                   h=ints(2))


@cases("conv2d_transpose")
def _conv2d_transpose(r, op):
    for dtype in DTYPES:
        ins = {"x": r.f((1, 2, 3, 4), dtype=dtype), "w": r.f((2, 3, 3, 3), dtype=dtype)}
        yield Call(f"size_variable_{dtype}", lambda x, w, s: F.conv2d_transpose(x, w, stride=2, output_size=s),
                   s=ints(8, 9), **ins)


# ----------------------------------------------------------------------------
# Equal elements
# ----------------------------------------------------------------------------
def tied(r, n, dtype):
    x = r.i((2, n), 0, 3, dtype)
    if dtype.startswith("float"):
        x[0, n // 2] = np.nan
    return x


@cases("argsort", "top_k", "top_k_v2", "kthvalue", "mode")
def _tied(r, op):
    for n in (5, 17, 300):
        # kthvalue and mode have gradients, but no derivatives here.
        for dtype in {"top_k": DTYPES, "kthvalue": ("int64",), "mode": ("int64",)}.get(op, (*DTYPES, "int64")):
            x = tied(r, n, dtype)
            for k in ((2, n // 2) if op not in ("argsort", "mode") else (1,)):
                for flag in ((False, True) if op != "top_k" else (True,)):
                    attrs = {"argsort": {"axis": -1, "descending": flag}, "top_k": {"k": k},
                             "top_k_v2": {"k": k, "axis": -1, "largest": flag, "sorted": True},
                             "kthvalue": {"k": k, "axis": -1, "keepdim": flag}, "mode": {"axis": -1, "keepdim": flag}}[op]
                    yield forward_alone(Case(f"tied_{n}_{k}_{int(flag)}_{dtype}", {"X": x}, "Out,Indices", attrs))
    if op == "top_k_v2":
        for k in (2, 15):
            yield forward_alone(Case(f"unsorted_{k}", {"X": tied(r, 40, "float32")}, "Out,Indices",
                                     {"k": k, "axis": -1, "largest": True, "sorted": False}))


# ----------------------------------------------------------------------------
# Images
# ----------------------------------------------------------------------------
@cases("linear_interp_v2", "bilinear_interp_v2", "trilinear_interp_v2", "bicubic_interp_v2")
def _interp(r, op):
    dims = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}[op.split("_")[0]]
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[dims]
    for name, align in (("corners", (True, 1)), ("centres", (False, 0)), ("edges", (False, 1))):
        for scale in (0.6, 2.3):
            yield Call(f"{name}_{str(scale).replace('.', '_')}",
                       lambda x: F.interpolate(x, scale_factor=[scale] * dims, mode=op.split("_")[0], align_corners=align[0],
                                               align_mode=align[1], data_format=layout),
                       x=r.f((1, 2) + (7, 6, 5)[:dims], dtype="float64"))


@cases("roi_align")
def _roi_align(r, op):
    for dtype in DTYPES:
        boxes = r.boxes(4, 9.0, dtype)
        boxes[:2, 2:] = boxes[:2, :2] + 1.5     # less than a pixel at this scale
        yield Case(f"small_aligned_{dtype}", {"X": r.f((2, 2, 6, 5), dtype=dtype), "ROIs": boxes, "RoisNum": ints(1, 3)}, "Out",
                   {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 0.5, "sampling_ratio": 2, "aligned": True},
                   no_grad=("ROIs",))


@cases("max_pool2d_with_index")
def _max_pool_with_index(r, op):
    base = {"ksize": [3, 3], "strides": [2, 2], "paddings": [0, 0]}
    for dtype in DTYPES:
        yield Case(f"adaptive_global_{dtype}", {"X": r.distinct((1, 2, 4, 3), dtype=dtype)}, "Out,Mask",
                   {**base, "adaptive": True, "global_pooling": True})


@cases("batch_norm")
def _batch_norm(r, op):
    for dtype in DTYPES:
        yield Call(f"test_with_statistics_of_batch_{dtype}",
                   lambda x, m, v, w, b: F.batch_norm(x, m * 1, v * 1, w, b, False, 0.8, use_global_stats=False),
                   x=r.f((3, 2, 3, 2), dtype=dtype), **{n: r.f((2,), 0.5, 2, dtype) for n in "mvwb"})


# ----------------------------------------------------------------------------
# float16
# ----------------------------------------------------------------------------
@cases("atan2")
def _atan2(r, op):
    yield forward_alone(Case("float16", {"X1": r.f((3, 4), dtype="float16"), "X2": r.f((3, 4), dtype="float16")}, "Out"))


@cases("trace")
def _trace(r, op):
    yield forward_alone(Case("float16", {"Input": r.f((3, 4, 2), dtype="float16")}, "Out", {"offset": 1, "axis1": 0, "axis2": 1}))


# ----------------------------------------------------------------------------
# Others
# ----------------------------------------------------------------------------
@cases("gaussian_inplace")
def _gaussian_inplace(r, op):
    for dtype in DTYPES:
        yield Case(dtype, {"x": r.f((3, 5), dtype=dtype)}, "out", {"mean": 1.5, "std": 2.5, "seed": 7}, tol=(0.0, 0.0))
    yield forward_alone(Case("zero_size", {"x": np.zeros((0, 2), "float32")}, "out", {"mean": 0.0, "std": 1.0, "seed": 7}))


@cases("rank_loss")
def _rank_loss(r, op):
    column, flat = (4, 1), (4,)
    for i, shapes in enumerate(((flat, column, column), (column, flat, column), (column, column, flat), (flat, flat, column))):
        label, left, right = shapes
        yield Case(f"mixed_{i}", {"Label": r.f(label, 0, 1), "Left": r.f(left), "Right": r.f(right)}, "Out")


@cases("check_finite_and_unscale")
def _check_finite_and_unscale(r, op):
    for name, value in (("nan", np.nan), ("infinity", np.inf)):
        for dtype in DTYPES:
            xs = [r.f((2, 3), dtype=dtype) for _ in range(3)]
            xs[1][1, 0] = value
            yield forward_alone(Case(f"{name}_in_second_{dtype}", {"X": xs, "Scale": np.array([0.5], dtype)},
                                     {"Out": 3, "FoundInfinite": 1}))


@cases("coalesce_tensor")
def _coalesce_tensor(r, op):
    yield forward_alone(Case("aligned_constant", {"Input": [r.f((3, 2)), r.f((5,)), r.f((1,))]}, {"Output": 3, "FusedOutput": 1},
                             {"copy_data": False, "set_constant": True, "constant": 0.5, "dtype": g.FP32, "use_align": True}))
    yield forward_alone(Case("size_of_dtype", {"Input": [r.f((3, 2)), r.f((5,)), r.f((1,))]}, {"Output": 3, "FusedOutput": 1},
                             {"copy_data": False, "set_constant": True, "constant": 0.5, "dtype": g.FP32, "use_align": True,
                              "align_size": 16, "user_defined_size_of_dtype": 2}))


@cases("npu_identity")
def _npu_identity(r, op):
    yield forward_alone(Case("matrix", {"x": r.f((3, 2))}, "out", {"format": 3}))
    yield forward_alone(Case("integers", {"x": r.i((4,), 0, 9)}, "out", {}))


@cases("warprnnt", "warprnnt_grad")
def _warprnnt(r, op):
    def case(name, size, rows, labels, dtype="float32", blank=0, emit=0.0):
        return Call(f"{name}_{dtype}", lambda x, a, n, m: F.rnnt_loss(x, a, n, m, blank, emit, "none"),
                    x=r.f((len(rows),) + size, dtype=dtype),
                    a=(r.i((len(rows), size[1] - 1), 1, size[2] - 1, "int32") + blank) % size[2], n=ints(*rows), m=ints(*labels))
    for dtype in DTYPES:
        yield case("full", (4, 3, 5), [4, 4], [2, 2], dtype)
        yield case("ragged", (4, 3, 5), [4, 2, 1], [2, 1, 0], dtype, blank=2)
        yield case("emit", (3, 3, 4), [3, 3], [2, 1], dtype, emit=0.5)


@cases("eig")
def _eig(r, op):
    def lengths(x):
        values, vectors = paddle.linalg.eig(x)
        sizes = paddle.abs(vectors)
        return paddle.sum(paddle.real(values * values)) + paddle.sum(sizes * sizes * sizes)
    for dtype in DTYPES:
        yield Call(f"lengths_{dtype}", lengths, x=r.f((4, 4), dtype=dtype))


@cases("check_numerics")
def _check_numerics(r, op):
    debugging = paddle.amp.debugging
    for dtype in (*DTYPES, "float16"):
        for name, values in (("numbers", [1, 2, 0, -3.5]), ("nans", [1, np.nan, np.inf, 0, -2, np.nan])):
            for k, result in enumerate(("stats", "values")):
                yield Call(f"{name}_{result}_{dtype}",
                           lambda x, k=k: debugging.check_numerics(x, "relu", "y", debugging.DebugMode.CHECK_NAN_INF)[k],
                           x=np.array(values, dtype))


@cases("set_value")
def _set_value(r, op):
    for dtype in ("complex64", "complex128"):
        for name, value in (("real", 2.0), ("complex", 1 - 2j)):
            yield Call(f"{name}_number_{dtype}", lambda x, value=value: static.setitem(x * 1, (slice(None), 1), value),
                       x=r.f((2, 3), dtype=dtype))
    fractions, complexes = np.array([0.7, -1.7, 300.5]), np.array([1 + 2j, 0j, 2j])
    for dtype in ("int32", "int64", "bool", "float32"):
        for name, value in (("fractions", fractions), ("complexes", complexes)):
            yield Call(f"{name}_to_{dtype}",
                       lambda x, value=value, dtype=dtype: static.setitem(paddle.cast(x, dtype), (slice(None), 1), value),
                       x=r.i((2, 3, 3), 0, 5, "int32"))


# ----------------------------------------------------------------------------
# Gradients of whole numbers that floats were cast to
# ----------------------------------------------------------------------------
OF_WHOLE_NUMBERS = {
    "abs_grad": lambda x, y, i: paddle.abs(x),
    "argsort_grad": lambda x, y, i: paddle.sort(x, 1),
    "clip_grad": lambda x, y, i: paddle.clip(x, -3, 4),
    "cumsum_grad": lambda x, y, i: paddle.cumsum(x, 1),
    "elementwise_add_grad": lambda x, y, i: x + y[0],
    "elementwise_div_grad": lambda x, y, i: paddle.divide(x, paddle.abs(y) + 1),
    "elementwise_max_grad": lambda x, y, i: paddle.maximum(x, y),
    "elementwise_min_grad": lambda x, y, i: paddle.minimum(x, y),
    "elementwise_mul_grad": lambda x, y, i: x * y[0],
    "elementwise_sub_grad": lambda x, y, i: x[0] - y,
    "expand_as_v2_grad": lambda x, y, i: paddle.expand_as(x[0], y),
    "expand_v2_grad": lambda x, y, i: paddle.expand(x, [2, 4, 3]),
    "gather_grad": lambda x, y, i: paddle.gather(x, i),
    "gather_nd_grad": lambda x, y, i: paddle.gather_nd(x, paddle.unsqueeze(i, 1)),
    "index_sample_grad": lambda x, y, i: paddle.index_sample(x, paddle.expand(i, [4, 4])),
    "index_select_grad": lambda x, y, i: paddle.index_select(x, i, 1),
    "masked_select_grad": lambda x, y, i: paddle.masked_select(x, x > 1),
    "reduce_max_grad": lambda x, y, i: paddle.max(x, 1),
    "reduce_min_grad": lambda x, y, i: paddle.min(x, 0),
    "reduce_sum_grad": lambda x, y, i: paddle.sum(x, 0),
    "set_value_grad": lambda x, y, i: static.setitem(x * 1, (slice(None), 1), y[:, 0]),
    "square_grad": lambda x, y, i: paddle.square(x),
    "take_along_axis_grad": lambda x, y, i: paddle.take_along_axis(x, paddle.expand(i[:1], [4, 1]), 1),
    "tile_grad": lambda x, y, i: paddle.tile(x, [2, 1]),
    "top_k_v2_grad": lambda x, y, i: paddle.topk(x, 2, 1)[0],
}


@cases(*OF_WHOLE_NUMBERS)
def _of_whole_numbers(r, op):
    def call(dtype):
        return lambda x, y, i: paddle.cast(OF_WHOLE_NUMBERS[op](paddle.cast(x, dtype), paddle.cast(y, dtype), i), "float32")
    for dtype in ("int32", "int64"):
        yield Call(f"whole_{dtype}", call(dtype), x=r.distinct((4, 3), -6, 7), y=r.distinct((4, 3), -5, 6), i=ints(2, 0, 2, 1))


# ----------------------------------------------------------------------------
def declare(b, name, value):
    b.feed(name, value)
    var = b.block.var(name)
    var.stop_gradient = g.array_of(value).dtype.kind != "f"
    return var


def make_call(out, case):
    """The program of a Call and the gradients of its inputs, from a sum of squares."""
    b = g.Builder()
    with static.program_guard(b.prog, static.Program()), paddle.utils.unique_name.guard():
        ins = {name: declare(b, name, value) for name, value in case.ins.items()}
        result = case.attrs["call"](**ins)
        b.fetch = [result.name]
        wanted = [v for v in ins.values() if not v.stop_gradient]
        if wanted and not result.stop_gradient:
            loss = paddle.sum(result * result * 0.5 + result)
            b.fetch += [v.name for v in static.gradients([loss], wanted) if v is not None]
    write_call(out, case, b)


def write_call(out, case, b):
    """Runs what the builder holds by now and writes the case, whose names are those of files."""
    ops = [op.type for op in b.block.ops]
    assert case.op in ops, ops
    renamed = {name: g.safe(name) for name in b.fetch}
    blob = rename(b.prog.desc.serialize_to_string(), renamed)
    b.prog = static.Program.parse_from_string(blob)
    b.block, b.fetch = b.prog.global_block(), list(renamed.values())
    blob, res = b.run()
    rtol, atol = g.tolerance(case.op, [a for a, _ in res])
    g.write_case(f"{out}/{case.op}/{case.name}", 0, case.op, case.name, blob, b.feeds, dict(zip(b.fetch, res)), {}, {}, ops,
                 rtol, atol, "a call of Paddle's API")


def rename(blob, names):
    """The program with other names of variables: those of gradients are no names of files."""
    prog = static.Program.parse_from_string(blob)
    for old, new in names.items():
        if old != new:
            prog.global_block().desc._rename_var(old.encode(), new.encode())
    return prog.desc.serialize_to_string()


def make(out, case):
    if isinstance(case, Call):
        return make_call(out, case)
    g.make_forward_case(out, 0, case)
    if case.notes != "forward alone":
        g.make_grad_case(out, 0, g.Rng(0, f"api/{case.op}/{case.name}"), case, case.op + "_grad")
    return None


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "api", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
