#!/usr/bin/env python3
"""make_complex_cases.py - golden cases of ops on complex numbers and of Fourier transforms, with their gradients.

    python make_complex_cases.py --out complex && ./pack.sh complex

Same needs and same format as make_goldens.py; complex.tar.xz beside this file is the result. Complex results are
compared part by part.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, forward_alone, make_all, register
from make_goldens import Case

CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
MIXED = (("float32", "complex64"), ("float64", "complex64"), ("float32", "complex128"), ("complex64", "complex128"),
         ("complex64", "float64"))


# ----------------------------------------------------------------------------
# parts
# ----------------------------------------------------------------------------
@cases("complex")
def _complex(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((2, 3), dtype=dtype), "Y": r.f((2, 3), dtype=dtype)}, "Out")
        yield Case(f"broadcast_{dtype}", {"X": r.f((2, 1, 3), dtype=dtype), "Y": r.f((4, 1), dtype=dtype)}, "Out")
    yield Case("scalars", {"X": r.f(()), "Y": r.f(())}, "Out")


@cases("real", "imag", "conj", "as_real", "angle")
def _parts(r, op):
    for dtype in COMPLEX:
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out")
    yield Case("scalar", {"X": r.f((), dtype="complex64")}, "Out")
    if op == "angle":
        for dtype in FLOATS:
            yield Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out")
        yield Case("axes", {"X": np.array([0, 1, -1, 1j, -1j], "complex64")}, "Out")
    if op == "conj":
        for dtype in FLOATS:
            yield Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out")
        for dtype in ("int32", "int64"):
            yield forward_alone(Case(dtype, {"X": r.i((3, 4), -9, 9, dtype)}, "Out"))


@cases("as_complex")
def _as_complex(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((3, 4, 2), dtype=dtype)}, "Out")


@cases("abs")
def _abs(r, op):
    for dtype in COMPLEX:
        yield Case(f"of_{dtype}", {"X": r.f((3, 4), dtype=dtype)}, "Out")
    yield Case("of_zero", {"X": np.array([0, 1, 3 - 4j], "complex64")}, "Out")


@cases("exp", "expm1", "sigmoid", "silu", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh",
       "atanh")
def _elementary(r, op):
    for dtype in COMPLEX:
        # Paddle's exp of complex128 is off by 5e-7.
        yield Case(f"of_{dtype}", {"X": r.f((3, 4), dtype=dtype)}, "Out", tol=(1e-5, 1e-6))
    yield Case("of_scalar", {"X": r.f((), dtype="complex64")}, "Out")


# ----------------------------------------------------------------------------
# arithmetic
# ----------------------------------------------------------------------------
@cases("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div")
def _arithmetic(r, op):
    for dtype in COMPLEX:
        yield Case(f"same_{dtype}", {"X": r.f((3, 4), dtype=dtype), "Y": r.f((3, 4), 1, 2, dtype=dtype)}, "Out", {"axis": -1})
        yield Case(f"rows_{dtype}", {"X": r.f((3, 4), dtype=dtype), "Y": r.f((4,), 1, 2, dtype=dtype)}, "Out", {"axis": -1})
        yield Case(f"both_{dtype}", {"X": r.f((3, 1, 4), dtype=dtype), "Y": r.f((2, 1), 1, 2, dtype=dtype)}, "Out", {"axis": -1})
    # Of two types: Out is complex, whatever the program declares. Paddle makes the gradients of real operands real by
    # their names, which are others here.
    for x, y in MIXED:
        yield forward_alone(Case(f"{x}_{y}", {"X": r.f((3, 4), dtype=x), "Y": r.f((4,), 1, 2, dtype=y)}, "Out", {"axis": -1}))


@cases("matmul_v2")
def _matmul(r, op):
    for dtype in COMPLEX:
        yield Case(f"plain_{dtype}", {"X": r.f((3, 4), dtype=dtype), "Y": r.f((4, 2), dtype=dtype)}, "Out",
                   {"trans_x": False, "trans_y": False})
        yield Case(f"both_{dtype}", {"X": r.f((2, 4, 3), dtype=dtype), "Y": r.f((2, 2, 4), dtype=dtype)}, "Out",
                   {"trans_x": True, "trans_y": True})
        yield Case(f"batch_{dtype}", {"X": r.f((2, 3, 4), dtype=dtype), "Y": r.f((4, 2), dtype=dtype)}, "Out",
                   {"trans_x": False, "trans_y": False})
    yield Case("vector", {"X": r.f((3, 4), dtype="complex64"), "Y": r.f((4,), dtype="complex64")}, "Out",
               {"trans_x": False, "trans_y": False})
    for x, y in MIXED:
        yield forward_alone(Case(f"{x}_{y}", {"X": r.f((2, 3, 4), dtype=x), "Y": r.f((4, 2), dtype=y)}, "Out",
                                 {"trans_x": False, "trans_y": False}))


@cases("dot")
def _dot(r, op):
    for dtype in COMPLEX:
        yield Case(f"of_{dtype}", {"X": r.f((3, 4), dtype=dtype), "Y": r.f((3, 4), dtype=dtype)}, "Out")


@cases("index_select")
def _index_select(r, op):
    for dtype in COMPLEX:
        yield Case(f"of_{dtype}", {"X": r.f((3, 4), dtype=dtype), "Index": np.array([2, 0, 2], "int32")}, "Out", {"dim": 1},
                   no_grad=("Index",))


@cases("cumprod")
def _cumprod(r, op):
    for dtype in COMPLEX:
        yield forward_alone(Case(f"of_{dtype}", {"X": r.f((2, 3, 4), dtype=dtype)}, "Out", {"dim": 1}))


@cases("reduce_sum", "reduce_mean")
def _reduce(r, op):
    for dtype in COMPLEX:
        yield Case(f"axis_{dtype}", {"X": r.f((3, 4, 2), dtype=dtype)}, "Out", {"dim": [1], "keep_dim": False, "reduce_all": False})
        yield Case(f"all_{dtype}", {"X": r.f((3, 4), dtype=dtype)}, "Out", {"dim": [0], "keep_dim": False, "reduce_all": True})


@cases("mean")
def _mean(r, op):
    for dtype in COMPLEX:
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out")


@cases("scale", "sum")
def _linear(r, op):
    for dtype in COMPLEX:
        if op == "scale":
            yield forward_alone(Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out", {"scale": 2.0, "bias": 0.5}))
        else:
            yield forward_alone(Case(dtype, {"X": [r.f((3, 4), dtype=dtype) for _ in range(3)]}, "Out"))


@cases("cast")
def _cast(r, op):
    for a in COMPLEX:
        for b in ("bool", "int32", "int64") + FLOATS + COMPLEX:
            yield forward_alone(Case(f"{a}_to_{b}", {"X": r.f((3, 4), -5, 5, dtype=a)}, "Out",
                                     {"in_dtype": g.DTYPE_CODE[a], "out_dtype": g.DTYPE_CODE[b]}))
            if b not in COMPLEX:
                x = r.b((3, 4)) if b == "bool" else r.i((3, 4), -5, 5, b) if "int" in b else r.f((3, 4), dtype=b)
                yield forward_alone(Case(f"{b}_to_{a}", {"X": x}, "Out",
                                         {"in_dtype": g.DTYPE_CODE[b], "out_dtype": g.DTYPE_CODE[a]}))


@cases("kron")
def _kron(r, op):
    for dtype in COMPLEX:
        yield Case(dtype, {"X": r.f((2, 3), dtype=dtype), "Y": r.f((3, 2), dtype=dtype)}, "Out")


# ----------------------------------------------------------------------------
# predicates
# ----------------------------------------------------------------------------
@cases("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(r, op):
    for dtype in COMPLEX:
        ins = {name: np.array([[0, 1, 1j], [0, 0, 2 - 1j]], dtype)[:, order] for name, order in (("X", [0, 1, 2]), ("Y", [1, 0, 2]))}
        if op == "logical_not":
            del ins["Y"]
        yield forward_alone(Case(dtype, ins, "Out"))


@cases("isclose")
def _close(r, op):
    for dtype in COMPLEX:
        x = r.f((2, 3), dtype=dtype)
        y = x + np.array([[0, 1e-3, 1e-3j], [1j, 0, 1e-1]], dtype)
        yield forward_alone(Case(dtype, {"Input": x, "Other": y}, "Out", {"rtol": "1e-5", "atol": "0.01", "equal_nan": False}))


# ----------------------------------------------------------------------------
# transforms
# ----------------------------------------------------------------------------
NORMS = ("backward", "forward", "ortho")


@cases("fft_c2c")
def _fft_c2c(r, op):
    for dtype in COMPLEX:
        for norm in NORMS:
            for forward in (True, False):
                yield Case(f"{norm}_{'to' if forward else 'from'}_{dtype}", {"X": r.f((3, 6), dtype=dtype)}, "Out",
                           {"axes": [1], "normalization": norm, "forward": forward})
    yield Case("planes", {"X": r.f((2, 5, 4), dtype="complex64")}, "Out", {"axes": [0, 1, 2], "normalization": "ortho", "forward": True})
    yield Case("first", {"X": r.f((7, 3), dtype="complex64")}, "Out", {"axes": [0], "normalization": "backward", "forward": True})
    for n in (1, 2, 67, 96, 101, 134):
        yield Case(f"length{n}", {"X": r.f((n,), dtype="complex128")}, "Out", {"axes": [0], "normalization": "backward", "forward": True})


@cases("fft_r2c")
def _fft_r2c(r, op):
    for dtype in FLOATS:
        for onesided in (True, False):
            for forward in (True, False):
                tag = f"{'half' if onesided else 'whole'}_{'to' if forward else 'from'}_{dtype}"
                for n in (6, 7):
                    yield Case(f"{tag}_{n}", {"X": r.f((3, n), dtype=dtype)}, "Out",
                               {"axes": [1], "normalization": r.pick(*NORMS), "forward": forward, "onesided": onesided})
    yield Case("planes", {"X": r.f((2, 5, 4))}, "Out", {"axes": [1, 2], "normalization": "ortho", "forward": True, "onesided": True})
    yield Case("turned", {"X": r.f((4, 5, 3))}, "Out", {"axes": [1, 0], "normalization": "backward", "forward": True, "onesided": True})
    yield Case("prime", {"X": r.f((2, 71), dtype="float64")}, "Out", {"axes": [1], "normalization": "backward", "forward": True, "onesided": True})


@cases("fft_c2r")
def _fft_c2r(r, op):
    for dtype in COMPLEX:
        for forward in (True, False):
            for n in (0, 6, 7):
                yield Case(f"{'to' if forward else 'from'}_{n}_{dtype}", {"X": r.f((3, 4), dtype=dtype)}, "Out",
                           {"axes": [1], "normalization": r.pick(*NORMS), "forward": forward, "last_dim_size": n})
    yield Case("planes", {"X": r.f((2, 5, 3), dtype="complex64")}, "Out",
               {"axes": [1, 2], "normalization": "ortho", "forward": False, "last_dim_size": 5})


@cases("stft")
def _stft(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((2, 20), dtype=dtype), "Window": r.f((8,), 0, 1, dtype)}, "Out",
                   {"n_fft": 8, "hop_length": 3, "normalized": False, "onesided": True}, no_grad=("Window",))
    yield Case("odd", {"X": r.f((1, 15)), "Window": r.f((7,), 0, 1)}, "Out",
               {"n_fft": 7, "hop_length": 2, "normalized": True, "onesided": True}, no_grad=("Window",))


# ----------------------------------------------------------------------------
def make(out, case):
    """The case and, where it has one, that of its gradient."""
    single = any(g.array_of(v).dtype.name in ("float32", "complex64") for x in case.ins.values() for v in g.as_list(x))
    case.tol = case.tol or ((2e-5, 1e-5) if single else (1e-7, 1e-8))
    if case.op == "cast":
        case.tol = (1e-6, 1e-6)
    g.make_forward_case(out, 0, case)
    if "forward alone" not in case.notes:
        g.make_grad_case(out, 0, g.Rng(0, f"complex/{case.op}/{case.name}"), case, case.op + "_grad")


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "complex", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
