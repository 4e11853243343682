#!/usr/bin/env python3
"""make_composed_cases.py - golden cases of ops that are a composition of two others: a norm of a difference, a sum or
product with an activation.

    python make_composed_cases.py --out composed && ./pack.sh composed

Same needs and same format as make_goldens.py; composed.tar.xz beside this file is the result.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, forward_alone, make_all, register
from make_goldens import Case

CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
FLOATS = ("float32", "float64")

# The outer function first, as functor_list has it; the pairs that Paddle has kernels for.
PAIRS = (("elementwise_add", "scale"), ("scale", "elementwise_add"), ("elementwise_add", "relu"),
         ("relu", "elementwise_add"), ("elementwise_mul", "scale"), ("tanh", "elementwise_add"),
         ("elementwise_mul", "tanh"), ("elementwise_mul", "sigmoid"), ("gelu", "elementwise_add"))


@cases("dist")
def _dist(r, op):
    for dtype in FLOATS:
        for p in (0.0, 1.0, 2.0, 3.0, 0.5, np.inf, -np.inf):
            yield Case(f"p{p}_{dtype}".replace("-", "minus_").replace(".", "_"),
                       {"X": r.distinct((2, 3, 4), dtype=dtype), "Y": r.distinct((2, 3, 4), 3, 5, dtype)}, "Out", {"p": p})
        for name, x, y in (("row", (2, 3), (3,)), ("both", (2, 1, 3), (4, 1)), ("scalar", (), (2, 2))):
            yield Case(f"{name}_{dtype}", {"X": r.f(x, dtype=dtype), "Y": r.f(y, dtype=dtype)}, "Out", {"p": 2.0})
        same = r.f((2, 3), dtype=dtype)
        # No derivative: Paddle's gradient is NaN there.
        yield forward_alone(Case(f"same_{dtype}", {"X": same, "Y": same}, "Out", {"p": 2.0}))


@cases("fused_elemwise_activation", "fused_elemwise_add_activation")
def _fused_elemwise_activation(r, op):
    for pair in PAIRS:
        if op == "fused_elemwise_add_activation" and "elementwise_add" not in pair:
            continue
        for dtype in FLOATS:
            for keep in (False, True):
                for name, y, axis in (("same", (2, 3, 4), -1), ("row", (4,), -1), ("middle", (3,), 1)):
                    if keep or name != "middle":
                        case = Case(f"{'_'.join(pair)}_{name}{'_kept' if keep else ''}_{dtype}",
                                    {"X": r.distinct((2, 3, 4), dtype=dtype), "Y": r.distinct(y, dtype=dtype)},
                                    "Out,IntermediateOut",
                                    {"functor_list": list(pair), "axis": axis, "scale": 0.5, "save_intermediate_out": keep})
                        yield forward_alone(case) if is_wrong(op, pair, name, keep) else case


def is_wrong(op, pair, name, keep):
    """Whether Paddle's gradient is no derivative; GradientCheckTest holds ours to differences."""
    if name == "middle":    # IntermediateOut@GRAD lacks a part of the sum
        return pair[0].startswith("elementwise")
    if keep:
        return False
    if op == "fused_elemwise_add_activation":   # X and Y have no values any more
        return pair in (("elementwise_add", "relu"), ("gelu", "elementwise_add"))
    # Y is taken for the result of the function.
    return name == "row" and pair in (("elementwise_mul", "tanh"), ("elementwise_mul", "sigmoid"))


def make(out, case):
    """The case and, where it has one, that of its gradient."""
    # What Paddle leaves uninitialised and its gradient op does not read.
    g.NEVER_FETCH -= {"IntermediateOut"}
    g.NEVER_FETCH |= set() if case.attrs.get("save_intermediate_out", True) else {"IntermediateOut"}
    single = any(g.array_of(v).dtype.name == "float32" for x in case.ins.values() for v in g.as_list(x))
    case.tol = case.tol or ((1e-5, 1e-5) if single else (1e-7, 1e-7))
    g.make_forward_case(out, 0, case)
    if case.notes != "forward alone":
        g.make_grad_case(out, 0, g.Rng(0, f"composed/{case.op}/{case.name}"), case, case.op + "_grad")


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "composed", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
