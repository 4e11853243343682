#!/usr/bin/env python3
"""make_random_cases.py - golden cases of the ops that draw random numbers.

    python make_random_cases.py --out random && ./pack.sh random

Same needs and same format as make_goldens.py; random.tar.xz beside this file is the result. Ops with a
seed of their own, whose numbers are those of std::mt19937_64 and the same everywhere; and cases of the
others whose result does not depend on chance. Tolerances are zero but for truncated_gaussian_random,
where Paddle computes a quantile in the precision of the output.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, make_all, register
from make_goldens import Case

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
FLOATS = {"float32": 5, "float64": 6}
INTS = {"int32": 2, "int64": 3}
EXACT = (0.0, 0.0)


def shape_forms(**attrs):
    """The ways of giving a shape, and which of them wins."""
    dim = lambda v, dtype="int32": np.array([v], dtype)
    yield "tensor_int32", {"ShapeTensor": np.array([2, 3], "int32")}, {"shape": [], **attrs}
    yield "tensor_int64", {"ShapeTensor": np.array([3, 1, 2], "int64")}, {"shape": [], **attrs}
    yield "attribute_before_tensor", {"ShapeTensor": np.array([2, 3], "int64")}, {"shape": [4], **attrs}
    yield "list", {"ShapeTensorList": [dim(2), dim(3, "int64")]}, {"shape": [-1, -1], **attrs}
    yield "list_of_0d", {"ShapeTensorList": [np.array(2, "int32"), np.array(3, "int32")]}, {"shape": [-1, -1], **attrs}
    yield "list_before_tensor", {"ShapeTensorList": [dim(5)], "ShapeTensor": np.array([2, 3], "int32")}, {"shape": [], **attrs}
    yield "empty_tensor", {"ShapeTensor": np.zeros([0], "int64")}, {"shape": [], **attrs}
    yield "rank0", {}, {"shape": [], **attrs}
    yield "zero_size", {}, {"shape": [2, 0, 3], **attrs}


@cases("uniform_random")
def _uniform(r, op):
    for dtype, code in FLOATS.items():
        base = {"dtype": code, "min": -2.5, "max": 3.25}
        yield Case(dtype, {}, "Out", {"shape": [7, 9], "seed": 7, **base}, tol=EXACT)
        yield Case(f"{dtype}_negative_seed", {}, "Out", {"shape": [11], "seed": -3, **base}, tol=EXACT)
        yield Case(f"{dtype}_diagonal", {}, "Out",
                   {"shape": [4, 5], "seed": 2024, "diag_num": 4, "diag_step": 5, "diag_val": 9.5, **base}, tol=EXACT)
    one = {"dtype": 5, "seed": 1}
    yield Case("defaults", {}, "Out", {"shape": [6], **one}, tol=EXACT)
    yield Case("reversed_bounds", {}, "Out", {"shape": [6], "min": 3.0, "max": -2.0, **one}, tol=EXACT)
    yield Case("equal_bounds", {}, "Out", {"shape": [6], "min": 3.0, "max": 3.0, **one}, tol=EXACT)
    yield Case("diagonal_of_one", {}, "Out", {"shape": [3], "diag_num": 1, "diag_step": -4, **one}, tol=EXACT)
    for name, ins, attrs in shape_forms(dtype=5, seed=11, min=0.0, max=1.0):
        yield Case("shape_" + name, ins, "Out", attrs, tol=EXACT)


@cases("uniform_random_batch_size_like")
def _uniform_like(r, op):
    for dtype, code in FLOATS.items():
        yield Case(dtype, {"Input": r.f((4, 2))}, "Out", {"shape": [-1, 3], "dtype": code, "seed": 5, "min": 0.0, "max": 2.0},
                   tol=EXACT)
    yield Case("other_dims", {"Input": r.f((4, 2, 5))}, "Out",
               {"shape": [3, -1], "input_dim_idx": 2, "output_dim_idx": 1, "dtype": 5, "seed": 5, "diag_num": 3, "diag_step": 1},
               tol=EXACT)


@cases("gaussian_random")
def _gaussian(r, op):
    for dtype, code in FLOATS.items():
        base = {"dtype": code, "seed": 7}
        yield Case(dtype, {}, "Out", {"shape": [7, 9], "mean": 1.5, "std": 2.5, **base}, tol=EXACT)
        yield Case(f"{dtype}_no_deviation", {}, "Out", {"shape": [3], "mean": 1.5, "std": 0.0, **base}, tol=EXACT)
        yield Case(f"{dtype}_negative_deviation", {}, "Out", {"shape": [3], "mean": 1.5, "std": -1.0, **base}, tol=EXACT)
    for name, ins, attrs in shape_forms(dtype=5, seed=11, mean=0.0, std=1.0):
        yield Case("shape_" + name, ins, "Out", attrs, tol=EXACT)


@cases("truncated_gaussian_random")
def _truncated(r, op):
    for dtype, code in FLOATS.items():
        tol = (2e-6, 4e-6) if dtype == "float32" else (1e-12, 1e-12)
        base = {"dtype": code, "seed": 7}
        yield Case(dtype, {}, "Out", {"shape": [13, 17], "mean": 1.5, "std": 2.5, **base}, tol=tol)
        yield Case(f"{dtype}_negative_deviation", {}, "Out", {"shape": [5], "mean": 0.0, "std": -1.0, **base}, tol=tol)
    base = {"dtype": 5, "seed": 3, "mean": 2.0, "std": 0.0}
    for name, shape in (("rank0", []), ("zero_size", [2, 0]), ("no_deviation", [3])):
        yield Case(name, {}, "Out", {"shape": shape, **base}, tol=EXACT)


@cases("randint")
def _randint(r, op):
    # Paddle 2.6.2 seeds with the number of the dtype whatever the seed, so only this seed agrees
    # with what the attribute says.
    for dtype, code in INTS.items():
        yield Case(dtype, {}, "Out", {"shape": [7, 9], "low": -50, "high": 73, "seed": code, "dtype": code})
        yield Case(f"{dtype}_all", {}, "Out", {"shape": [9], "low": -2**31, "high": 2**31 - 1, "seed": code, "dtype": code})
        yield Case(f"{dtype}_one_value", {}, "Out", {"shape": [9], "low": 5, "high": 6, "dtype": code})
    for name, ins, attrs in shape_forms(dtype=2, seed=2, low=0, high=100):
        yield Case("shape_" + name, ins, "Out", attrs)


@cases("randperm")
def _randperm(r, op):
    for dtype, code in {**INTS, **FLOATS}.items():
        yield Case(f"{dtype}_one", {}, "Out", {"n": 1, "dtype": code})
    yield Case("none", {}, "Out", {"n": 0, "dtype": 3})


@cases("bernoulli")
def _bernoulli(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.i((5, 7), 0, 1, dtype)}, "Out")
    yield Case("rank0", {"X": np.array(1, "float32")}, "Out")
    yield Case("zero_size", {"X": np.zeros((0, 3), "float32")}, "Out")


@cases("multinomial")
def _multinomial(r, op):
    for dtype in FLOATS:
        x = np.array([[0, 2, 0], [0.5, 0, 0]], dtype)
        yield Case(dtype, {"X": x}, "Out", {"num_samples": 1, "replacement": False})
        yield Case(f"{dtype}_replacement", {"X": x}, "Out", {"num_samples": 5, "replacement": True})
    yield Case("vector", {"X": np.array([0, 0, 1], "float32")}, "Out", {"num_samples": 2, "replacement": True})
    yield Case("no_rows", {"X": np.zeros((0, 3), "float32")}, "Out", {"num_samples": 1, "replacement": False})


@cases("dropout_nd")
def _dropout_nd(r, op):
    for mode in ("upscale_in_train", "downgrade_in_infer"):
        base = {"dropout_prob": 0.3, "dropout_implementation": mode}
        for name, axis in (("rows", [0]), ("columns", [1]), ("two", [0, 2]), ("all", [0, 1, 2]), ("whole", [])):
            for dtype in ("float32", "float64"):
                yield Case(f"{name}_{mode[:2]}_{dtype}", {"X": r.f((3, 4, 5), dtype=dtype), "Seed": np.array([7], "int32")}, "Out,Mask",
                           {**base, "axis": axis})
        yield Case(f"test_{mode[:2]}", {"X": r.f((3, 4, 5))}, "Out,Mask", {**base, "axis": [1], "is_test": True}, nofetch=("Mask",))
    yield Case("nothing_dropped", {"X": r.f((3, 4)), "Seed": np.array([3], "int32")}, "Out,Mask", {"dropout_prob": 0.0, "axis": [0]})


@cases("dropout")
def _dropout(r, op):
    for dtype in FLOATS:
        for k, impl in enumerate(("downgrade_in_infer", "upscale_in_train")):
            yield Case(f"seeded_{dtype}_{impl}", {"X": r.f((7, 9), dtype=dtype)}, "Out,Mask",
                       {"dropout_prob": 0.3 + 0.4 * k, "dropout_implementation": impl, "fix_seed": True, "seed": 7 - 12 * k},
                       tol=EXACT)
    yield Case("seed_input", {"X": r.f((4, 6)), "Seed": np.array([13], "int32")}, "Out,Mask",
               {"dropout_prob": 0.5, "dropout_implementation": "upscale_in_train", "fix_seed": True, "seed": 99}, tol=EXACT)
    yield Case("image", {"X": r.f((2, 3, 4, 5))}, "Out,Mask",
               {"dropout_prob": 0.5, "dropout_implementation": "upscale_in_train", "fix_seed": True, "seed": 4}, tol=EXACT)


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "random", wanted), lambda out, case: g.make_forward_case(out, 0, case))


if __name__ == "__main__":
    sys.exit(main())
