#!/usr/bin/env python3
"""make_higher_gradient_cases.py - golden cases of gradients of gradients.

    python make_higher_gradient_cases.py --out higher_gradient && ./pack.sh higher_gradient

Same needs and same format as make_goldens.py; higher_gradient.tar.xz beside this file is the result. A case is a call of
Paddle's API and its gradients up to the second, or the third, filed under the op of the last. What they start from is a
function of the values before, so that every input of that op counts.
"""
import sys

import make_goldens as g
import numpy as np
import paddle
import paddle.nn.functional as F
from case_program import arguments, cases_of, make_all, register
from make_api_cases import Call, declare, write_call

static = paddle.static
CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
DTYPES = ("float32", "float64")
ORDERS = {"grad_grad": 2, "double_grad": 2, "triple_grad": 3}


def order_of(op):
    return next(order for suffix, order in ORDERS.items() if op.endswith(suffix))


def forward_of(op):
    return next(op[:-len(suffix) - 1] for suffix in ORDERS if op.endswith(suffix))


def second_and_third(*types):
    """The ops of the second gradients, by whichever name Paddle has, and of the third ones that it has."""
    known = set(paddle.base.core.get_all_op_names())
    return [name for op in types for name in (f"{op}_{suffix}" for suffix in ORDERS) if name in known]


@cases(*second_and_third("sin", "cos", "tanh", "sigmoid", "square", "abs"))
def _of_any(r, op):
    fn = getattr(F if forward_of(op) == "sigmoid" else paddle, forward_of(op))
    for dtype in DTYPES:
        yield Call(dtype, fn, x=r.distinct((2, 3), dtype=dtype))
        yield Call(f"rank_0_{dtype}", fn, x=r.f((), 0.2, 1, dtype))


@cases(*second_and_third("sqrt", "rsqrt", "log"))
def _of_positive(r, op):
    for dtype in DTYPES:
        yield Call(dtype, getattr(paddle, forward_of(op)), x=r.f((2, 3), 0.3, 2, dtype))


def pow_by_tensor(x, n):
    block = static.default_main_program().global_block()
    out = block.create_var(name=f"{x.name}_pow", dtype=x.dtype, shape=x.shape)
    block.append_op(type="pow", inputs={"X": x, "FactorTensor": paddle.full([1], n, "float32")}, outputs={"Out": out}, attrs={"factor": 1.0})
    return out


@cases(*second_and_third("pow"))
def _pow(r, op):
    for n in (3.0, -1.5):
        yield Call(f"tensor_{str(n).replace('.', '_').replace('-', 'minus_')}", lambda x, n=n: pow_by_tensor(x, n), x=r.f((2, 3), 0.3, 2))
    yield Call("tensor_rank_0", lambda x: pow_by_tensor(x, 2.5), x=r.f((), 0.3, 2))
    for dtype in DTYPES:
        for n in (1, 2, 3, 0.5, -1.5):
            yield Call(f"{str(n).replace('.', '_').replace('-', 'minus_')}_{dtype}", lambda x, n=n: paddle.pow(x, n),
                       x=r.f((2, 3), 0.3, 2, dtype))


@cases(*second_and_third("relu", "leaky_relu", "elu", "celu", "softplus"))
def _activation(r, op):
    attrs = {"relu": {}, "leaky_relu": {"negative_slope": 0.2}, "softplus": {"beta": 2.0, "threshold": 1.5}}
    kind = forward_of(op)
    for dtype in DTYPES:
        yield Call(dtype, lambda x: getattr(F, kind)(x, **attrs.get(kind, {"alpha": 0.7})),
                   x=r.distinct((3, 5), 0.1, 2, dtype) * np.sign(r.f((3, 5), dtype=dtype)))


@cases("clip_double_grad")
def _clip(r, op):
    for dtype in DTYPES:
        yield Call(dtype, lambda x: paddle.clip(x, -0.5, 0.4), x=r.f((3, 5), dtype=dtype))
        yield Call(f"tensors_{dtype}", lambda x, d=dtype: paddle.clip(x, paddle.full([1], -0.5, d), paddle.full([1], 0.4, d)),
                   x=r.f((3, 5), dtype=dtype))


@cases(*second_and_third("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"))
def _arithmetic(r, op):
    fn = {"add": paddle.add, "sub": paddle.subtract, "mul": paddle.multiply, "div": paddle.divide}[op.split("_")[1]]
    shapes = {"same": ((2, 3), (2, 3)), "row": ((2, 3), (3,)), "number": ((2, 3), ()), "crossed": ((2, 1), (1, 3))}
    if op.startswith("elementwise_mul_triple"):
        shapes = {"same": shapes["same"]}           # Paddle's third one of others never ends
    for dtype in DTYPES:
        for name, (x, y) in shapes.items():
            yield Call(f"{name}_{dtype}", fn, x=r.f(x, 0.5, 2, dtype), y=r.f(y, 0.5, 2, dtype))


@cases(*second_and_third("matmul_v2"))
def _matmul(r, op):
    shapes = {"plain": ((2, 3), (3, 4), False, False), "transposed": ((3, 2), (4, 3), True, True),
              "batches": ((2, 2, 3), (3, 4), False, False), "vector": ((2, 3), (3,), False, False)}
    for dtype in DTYPES:
        for name, (x, y, *flags) in shapes.items():
            yield Call(f"{name}_{dtype}", lambda x, y, flags=flags: paddle.matmul(x, y, *flags), x=r.f(x, dtype=dtype),
                       y=r.f(y, dtype=dtype))


def append(type, x, y, slots, **attrs):
    block = static.default_main_program().global_block()
    out = block.create_var(dtype=x.dtype)
    block.append_op(type=type, inputs={slots[0]: x, slots[1]: y}, outputs={slots[2]: out}, attrs=attrs)
    return out


@cases("matmul_grad_grad", "mul_grad_grad")
def _old_products(r, op):
    attrs = {"matmul": {"transpose_X": True, "transpose_Y": False, "alpha": 1.5},
             "mul": {"x_num_col_dims": 1, "y_num_col_dims": 1}}[forward_of(op)]
    for dtype in DTYPES:
        yield Call(dtype, lambda x, y: append(forward_of(op), x, y, ("X", "Y", "Out"), **attrs),
                   x=r.f((3, 2) if forward_of(op) == "matmul" else (2, 3), dtype=dtype), y=r.f((3, 4), dtype=dtype))


@cases("conv2d_grad_grad", "conv3d_grad_grad")
def _convolution(r, op):
    fn = getattr(F, forward_of(op))
    size = (4, 5) if fn is F.conv2d else (3, 4, 3)
    kernel = (3, 2) if fn is F.conv2d else (2, 3, 2)
    attrs = {"plain": {}, "strides": {"stride": 2, "padding": 1}, "groups": {"groups": 2}}
    for dtype in DTYPES:
        for name, kw in attrs.items():
            yield Call(f"{name}_{dtype}", lambda x, w, kw=kw: fn(x, w, **kw), x=r.f((2, 4) + size, dtype=dtype),
                       w=r.f((2, 4 // kw.get("groups", 1)) + kernel, dtype=dtype))


@cases("pool2d_double_grad", "pad3d_double_grad", "reshape2_grad_grad")
def _linear(r, op):
    fn = {"pool2d": lambda x: F.avg_pool2d(x, 2, 1, 1), "pad3d": lambda x: F.pad(x, [1, 0, 2, 1], "reflect"),
          "reshape2": lambda x: paddle.reshape(x, [3, -1])}[forward_of(op)]
    for dtype in DTYPES:
        yield Call(dtype, fn, x=r.f((1, 2, 3, 4), dtype=dtype))


@cases("batch_norm_grad_grad", "instance_norm_double_grad")
def _norm(r, op):
    # Squares: gradients of what is normalised, started from the like of it, are next to zero.
    for dtype in DTYPES:
        for layout, shape in (("NCHW", (2, 3, 2, 4)), ("NHWC", (2, 2, 4, 3))):
            ins = {"x": r.f(shape, dtype=dtype), "w": r.f((3,), 0.5, 2, dtype), "b": r.f((3,), dtype=dtype)}
            if op == "batch_norm_grad_grad":
                for name, running in (("batch", False), ("running", True)):
                    yield Call(f"{name}_{layout}_{dtype}",
                               lambda x, w, b, running=running, layout=layout: paddle.square(F.batch_norm(
                                   x, filled(0.2, x), filled(1.5, x), w, b, True, data_format=layout,
                                   use_global_stats=running)),
                               **ins)
            elif layout == "NCHW":
                yield Call(dtype, lambda x, w, b: paddle.square(F.instance_norm(x, weight=w, bias=b)), **ins)
                yield Call(f"alone_{dtype}", lambda x: paddle.square(F.instance_norm(x)), x=ins["x"])


def filled(value, like):
    return paddle.full([3], value, like.dtype)


# ----------------------------------------------------------------------------
def make(out, case):
    """The program of the call and its gradients. Each starts from a multiple of what came before, which counts in the next."""
    b = g.Builder()
    with static.program_guard(b.prog, static.Program()), paddle.utils.unique_name.guard():
        wanted = [v for v in (declare(b, *item) for item in case.ins.items()) if not v.stop_gradient]
        values = [case.attrs["call"](*wanted)]
        for _ in range(order_of(case.op)):
            starts = [v * 0.7 + 0.3 for v in values]
            for start in starts:
                start.stop_gradient = False
            values = [v for v in static.gradients(values, wanted, starts) if v is not None]
            wanted = wanted + starts
        b.fetch = [v.name for v in values]
    write_call(out, case, b)


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "higher_gradient", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
