#!/usr/bin/env python3
"""make_linear_algebra_cases.py - golden cases of decompositions, systems of equations and products of matrices.

    python make_linear_algebra_cases.py --out linear_algebra && ./pack.sh linear_algebra

Same needs and same format as make_goldens.py; linear_algebra.tar.xz beside this file is the result. Vectors of
decompositions are determined up to a sign or a factor, so they are inputs of gradient cases alone; their values are
held to the definition by tests/kernels/linalg/linear_algebra_test.cc.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, forward_alone, make_all, register
from make_goldens import Case

CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
FLOATS = ("float32", "float64")


def positive(r, shape, dtype):
    a = r.f(shape, -1, 1, "float64")
    return (a @ np.swapaxes(a, -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


def regular(r, shape, dtype):
    return (r.f(shape, -1, 1, "float64") + 2 * np.eye(shape[-2], shape[-1])).astype(dtype)


@cases("cholesky")
def _cholesky(r, op):
    for dtype in FLOATS:
        for upper in (False, True):
            yield Case(f"{'upper' if upper else 'lower'}_{dtype}", {"X": positive(r, (2, 4, 4), dtype)}, "Out", {"upper": upper})


@cases("cholesky_solve")
def _cholesky_solve(r, op):
    for dtype in FLOATS:
        for upper in (False, True):
            factor = np.linalg.cholesky(positive(r, (2, 3, 3), "float64"))
            factor = np.swapaxes(factor, -1, -2) if upper else factor
            yield Case(f"{'upper' if upper else 'lower'}_{dtype}",
                       {"X": r.f((2, 3, 2), dtype=dtype), "Y": np.ascontiguousarray(factor).astype(dtype)}, "Out", {"upper": upper})


@cases("triangular_solve")
def _triangular_solve(r, op):
    for dtype in FLOATS:
        for upper in (False, True):
            for transpose in (False, True):
                for unit in (False, True):
                    name = f"{'upper' if upper else 'lower'}{'_transposed' if transpose else ''}{'_unit' if unit else ''}_{dtype}"
                    case = Case(name, {"X": regular(r, (2, 3, 3), dtype), "Y": r.f((2, 3, 2), dtype=dtype)}, "Out",
                                {"upper": upper, "transpose": transpose, "unitriangular": unit})
                    # Paddle leaves gradients above the diagonal there, which is not read.
                    yield forward_alone(case) if unit and not upper else case
    yield Case("broadcast", {"X": regular(r, (3, 3), "float32"), "Y": r.f((2, 3, 2))}, "Out",
               {"upper": True, "transpose": False, "unitriangular": False})


@cases("solve")
def _solve(r, op):
    for dtype in FLOATS:
        yield Case(f"plain_{dtype}", {"X": regular(r, (4, 4), dtype), "Y": r.f((4, 3), dtype=dtype)}, "Out")
        yield Case(f"batch_{dtype}", {"X": regular(r, (2, 3, 3), dtype), "Y": r.f((2, 3, 2), dtype=dtype)}, "Out")
        yield Case(f"vector_{dtype}", {"X": regular(r, (3, 3), dtype), "Y": r.f((3,), dtype=dtype)}, "Out")
    yield Case("vectors", {"X": regular(r, (2, 3, 3), "float32"), "Y": r.f((2, 3))}, "Out")


@cases("qr")
def _qr(r, op):
    for dtype in FLOATS:
        for shape in ((4, 3), (3, 3), (2, 3, 5)):
            yield Case(f"reduced_{'x'.join(map(str, shape))}_{dtype}", {"X": regular(r, shape, dtype)}, "Q,R", {"mode": "reduced"})
        yield forward_alone(Case(f"complete_{dtype}", {"X": regular(r, (4, 2), dtype)}, "Q,R", {"mode": "complete"}))
        yield forward_alone(Case(f"r_{dtype}", {"X": regular(r, (4, 2), dtype)}, "Q,R", {"mode": "r"}, nofetch=("Q",)))


@cases("svd")
def _svd(r, op):
    for dtype in FLOATS:
        for shape in ((3, 3), (2, 4, 3), (2, 4)):
            yield Case(f"thin_{'x'.join(map(str, shape))}_{dtype}", {"X": regular(r, shape, dtype)}, "U,S,VH", {"full_matrices": False})
        yield forward_alone(Case(f"full_{dtype}", {"X": regular(r, (4, 2), dtype)}, "U,S,VH", {"full_matrices": True}))


# Gradients of eigenvalues are held to differences by tests/kernels/linalg/linear_algebra_test.cc: Paddle's have wrong rows.
@cases("eigh", "eigvalsh")
def _eigh(r, op):
    for dtype in FLOATS + ("complex64", "complex128"):
        for triangle in "LU":
            yield forward_alone(Case(f"{triangle}_{dtype}", {"X": hermitian(r, (2, 3, 3), dtype)}, "Eigenvalues,Eigenvectors",
                                     {"UPLO": triangle, **({"is_test": False} if op == "eigvalsh" else {})}))
    for dtype in FLOATS + ("complex64", "complex128"):  # Paddle's gradients of batches are wrong
        yield Case(f"one_{dtype}", {"X": hermitian(r, (3, 3), dtype)}, "Eigenvalues,Eigenvectors",
                   {"UPLO": "L", **({"is_test": False} if op == "eigvalsh" else {})})


def hermitian(r, shape, dtype):
    a = r.f(shape, -1, 1, dtype)
    return (a + np.swapaxes(a, -1, -2).conj()).astype(dtype)


@cases("eig")
def _eig(r, op):
    for dtype in FLOATS + ("complex64", "complex128"):
        yield forward_alone(Case(dtype, {"X": r.f((2, 3, 3), dtype=dtype)}, "Eigenvalues,Eigenvectors"))
    # The gradients of a second matrix are none.
    for dtype in FLOATS + ("complex64", "complex128"):
        yield Case(f"one_{dtype}", {"X": r.f((4, 4), dtype=dtype)}, "Eigenvalues,Eigenvectors")


@cases("eigvals")
def _eigvals(r, op):
    for dtype in FLOATS + ("complex64", "complex128"):
        yield forward_alone(Case(dtype, {"X": r.f((2, 3, 3), dtype=dtype)}, "Out"))


@cases("lu")
def _lu(r, op):
    for dtype in FLOATS:
        for shape in ((3, 3), (2, 4, 3), (2, 3, 5)):
            yield Case(f"{'x'.join(map(str, shape))}_{dtype}", {"X": r.f(shape, dtype=dtype)}, "Out,Pivots,Infos", {"pivots": True})
    yield forward_alone(Case("singular", {"X": np.array([[0, 1], [0, 2]], "float32")}, "Out,Pivots,Infos", {"pivots": True}))


@cases("lu_unpack")
def _lu_unpack(r, op):
    for dtype in FLOATS:
        for shape in ((3, 3), (2, 4, 3), (2, 3, 5)):
            steps = min(shape[-2:])
            pivots = np.stack([r.i(shape[:-2], k + 1, shape[-2], "int32") for k in range(steps)], -1)
            yield Case(f"{'x'.join(map(str, shape))}_{dtype}", {"X": r.f(shape, dtype=dtype), "Pivots": pivots}, "Pmat,L,U",
                       {"unpack_ludata": True, "unpack_pivots": True}, no_grad=("Pivots",))


@cases("lstsq")
def _lstsq(r, op):
    for dtype in FLOATS:
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            for shape in ((4, 2), (2, 5, 3), (2, 4)):
                hidden = {"gels": ("Rank", "SingularValues"), "gelsy": ("SingularValues",)}.get(driver, ())
                hidden += ("Residuals",) if shape[-2] <= shape[-1] else ()
                yield forward_alone(Case(f"{driver}_{'x'.join(map(str, shape))}_{dtype}",
                                         {"X": regular(r, shape, dtype), "Y": r.f(shape[:-1] + (2,), dtype=dtype)},
                                         "Solution,Residuals,Rank,SingularValues", {"rcond": 1e-7, "driver": driver}, nofetch=hidden))


@cases("determinant", "slogdeterminant")
def _determinant(r, op):
    for dtype in FLOATS:
        yield Case(f"one_{dtype}", {"Input": r.f((3, 3), dtype=dtype)}, "Out")
        yield Case(f"batch_{dtype}", {"Input": r.f((2, 3, 2, 2), dtype=dtype)}, "Out")


@cases("matrix_power")
def _matrix_power(r, op):
    for dtype in FLOATS:
        for n in (-3, -1, 0, 1, 2, 5):
            yield Case(f"n{n}_{dtype}".replace("-", "m"), {"X": regular(r, (2, 3, 3), dtype)}, "Out", {"n": n})


@cases("matrix_rank")
def _matrix_rank(r, op):
    for dtype in FLOATS:
        a = r.f((3, 4, 2), dtype=dtype)
        yield forward_alone(Case(f"default_{dtype}", {"X": a @ np.swapaxes(a, -1, -2)}, "Out",
                                 {"tol": 0.0, "use_default_tol": True, "hermitian": False}))
        yield forward_alone(Case(f"tolerance_{dtype}", {"X": np.diag([0.5, 1, 2]).astype(dtype)}, "Out",
                                 {"tol": 0.7, "use_default_tol": False, "hermitian": True}))
        yield forward_alone(Case(f"tensor_{dtype}", {"X": np.diag([0.5, 1, 2]).astype(dtype), "TolTensor": np.array([0.1, 0.7, 3], dtype)},
                                 "Out", {"tol": 0.0, "use_default_tol": False, "hermitian": False}))


@cases("multi_dot")
def _multi_dot(r, op):
    for dtype in FLOATS:
        yield Case(f"matrices_{dtype}", {"X": [r.f(s, dtype=dtype) for s in ((2, 4), (4, 3), (3, 5))]}, "Out")
        yield Case(f"vectors_{dtype}", {"X": [r.f(s, dtype=dtype) for s in ((4,), (4, 3), (3,))]}, "Out")
    yield Case("two", {"X": [r.f((2, 4)), r.f((4, 3))]}, "Out")


@cases("mv")
def _mv(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype), "Vec": r.f((4,), dtype=dtype)}, "Out")


@cases("addmm")
def _addmm(r, op):
    for dtype in FLOATS:
        for name, shape in (("same", (3, 2)), ("row", (1, 2)), ("column", (3, 1)), ("vector", (2,))):
            yield Case(f"{name}_{dtype}", {"Input": r.f(shape, dtype=dtype), "X": r.f((3, 4), dtype=dtype), "Y": r.f((4, 2), dtype=dtype)},
                       "Out", {"Alpha": 0.5, "Beta": 2.0})


@cases("kron")
def _kron(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((2, 3), dtype=dtype), "Y": r.f((3, 2), dtype=dtype)}, "Out")
        yield Case(f"ranks_{dtype}", {"X": r.f((2,), dtype=dtype), "Y": r.f((2, 1, 3), dtype=dtype)}, "Out")
    for dtype in ("int32", "int64"):
        yield forward_alone(Case(dtype, {"X": r.i((2, 3), -9, 9, dtype), "Y": r.i((3, 2), -9, 9, dtype)}, "Out"))


@cases("cross")
def _cross(r, op):
    for dtype in FLOATS:
        yield Case(f"first_{dtype}", {"X": r.f((2, 3, 3), dtype=dtype), "Y": r.f((2, 3, 3), dtype=dtype)}, "Out", {"dim": 9})
        yield Case(f"last_{dtype}", {"X": r.f((2, 4, 3), dtype=dtype), "Y": r.f((2, 4, 3), dtype=dtype)}, "Out", {"dim": -1})
    for dtype in ("int32", "int64"):
        yield forward_alone(Case(dtype, {"X": r.i((3, 2), -9, 9, dtype), "Y": r.i((3, 2), -9, 9, dtype)}, "Out", {"dim": 0}))


@cases("renorm")
def _renorm(r, op):
    for dtype in FLOATS:
        for p in (1.0, 2.0, 3.0):
            yield Case(f"p{int(p)}_{dtype}", {"X": r.f((3, 4, 2), dtype=dtype)}, "Out", {"p": p, "axis": 1, "max_norm": 4.0})
    yield Case("first", {"X": r.f((3, 4))}, "Out", {"p": 2.0, "axis": 0, "max_norm": 1.0})


@cases("nanmedian")
def _nanmedian(r, op):
    for dtype in FLOATS:
        x = r.distinct((3, 5, 4), dtype=dtype)
        x[0, 1, 2] = x[2, :, 1] = np.nan
        for name, axis in (("middle", [1]), ("two", [0, 2]), ("all", [])):
            for keep in (False, True):
                yield Case(f"{name}_{'keep' if keep else 'drop'}_{dtype}", {"X": x}, "Out,MedianIndex", {"axis": axis, "keepdim": keep},
                           tol=(1e-6, 1e-6))
    for dtype in ("int32", "int64"):
        yield forward_alone(Case(dtype, {"X": r.i((3, 5), -9, 9, dtype)}, "Out,MedianIndex", {"axis": [1], "keepdim": False}))


@cases("logspace")
def _logspace(r, op):
    for dtype in FLOATS + ("int32", "int64"):
        for num in (1, 2, 7):
            yield forward_alone(Case(f"{dtype}_{num}", {"Start": np.array([0], dtype), "Stop": np.array([4], dtype),
                                                        "Num": np.array([num], "int32"), "Base": np.array([2], dtype)},
                                     "Out", {"dtype": g.DTYPE_CODE[dtype]}))


# What the forward case of an op does not record: see above, and the end of Paddle's MedianIndex is not set.
HIDDEN = {"svd": ("U", "VH"), "eigh": ("Eigenvectors",), "eigvalsh": ("Eigenvectors",), "eig": ("Eigenvectors",),
          "nanmedian": ("MedianIndex",)}


def make(out, case):
    """The case and, where it has one, that of its gradient."""
    single = any(g.array_of(v).dtype.name in ("float32", "complex64") for x in case.ins.values() for v in g.as_list(x))
    case.tol = case.tol or ((1e-4, 1e-4) if single else (1e-7, 1e-7))
    shown = case.nofetch
    case.nofetch = shown + HIDDEN.get(case.op, ())
    g.make_forward_case(out, 0, case)
    case.nofetch = shown
    if "forward alone" not in case.notes:
        g.make_grad_case(out, 0, g.Rng(0, f"linear_algebra/{case.op}/{case.name}"), case, case.op + "_grad")


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "linear_algebra", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
