#!/usr/bin/env python3
"""make_graph_cases.py - golden cases of messages along the edges of graphs, pooling over segments, and heads of
training programs that the other programs lack.

    python make_graph_cases.py --out graph && ./pack.sh graph

Same needs and same format as make_goldens.py; graph.tar.xz beside this file is the result.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, forward_alone, make_all, register
from make_goldens import Case

CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
FLOATS = ("float32", "float64")


def numbers(r, shape, dtype):
    return r.distinct(shape, dtype=dtype) if "float" in dtype else r.i(shape, -9, 9, dtype)


@cases("segment_pool")
def _segment_pool(r, op):
    ids = np.array([0, 0, 2, 2, 2, 3], "int64")
    for pool in ("SUM", "MEAN", "MAX", "MIN"):
        for dtype in FLOATS:
            yield Case(f"{pool.lower()}_{dtype}", {"X": numbers(r, (6, 3), dtype), "SegmentIds": ids}, "Out,SummedIds",
                       {"pooltype": pool}, no_grad=("SegmentIds",))
        if pool != "MEAN":
            for dtype in ("int32", "int64"):
                yield forward_alone(Case(f"{pool.lower()}_{dtype}", {"X": numbers(r, (6, 3), dtype), "SegmentIds": ids.astype("int32")},
                                         "Out,SummedIds", {"pooltype": pool}))


@cases("graph_send_recv")
def _graph_send_recv(r, op):
    src, dst = np.array([0, 1, 2, 0, 3], "int64"), np.array([1, 2, 1, 0, 1], "int64")
    for reduce in ("SUM", "MEAN", "MAX", "MIN"):
        for dtype in FLOATS:
            yield Case(f"{reduce.lower()}_{dtype}", {"X": numbers(r, (4, 3), dtype), "Src_index": src, "Dst_index": dst}, "Out,Dst_count",
                       {"reduce_op": reduce, "out_size": [0]}, no_grad=("Src_index", "Dst_index"))
        if reduce != "MEAN":
            for dtype in ("int32", "int64"):
                yield forward_alone(Case(f"{reduce.lower()}_{dtype}", {"X": numbers(r, (4, 3), dtype), "Src_index": src.astype("int32"),
                                                                       "Dst_index": dst.astype("int32")},
                                         "Out,Dst_count", {"reduce_op": reduce, "out_size": [0]}))
    yield forward_alone(Case("out_size", {"X": r.f((4, 3)), "Src_index": src, "Dst_index": dst}, "Out,Dst_count",
                             {"reduce_op": "SUM", "out_size": [6]}))


@cases("graph_send_ue_recv")
def _graph_send_ue_recv(r, op):
    edges = {"Src_index": np.array([0, 1, 2, 0, 3], "int64"), "Dst_index": np.array([1, 2, 1, 0, 1], "int64")}
    for reduce in ("SUM", "MEAN", "MAX", "MIN"):
        for message in ("ADD", "MUL"):
            for dtype in FLOATS:
                for name, row in (("same", (3,)), ("one", (1,))):
                    yield Case(f"{reduce.lower()}_{message.lower()}_{name}_{dtype}",
                               {"X": numbers(r, (4, 3), dtype), "Y": numbers(r, (5,) + row, dtype), **edges}, "Out,Dst_count",
                               {"message_op": message, "reduce_op": reduce, "out_size": [0]}, no_grad=tuple(edges))
    for dtype in ("int32", "int64"):
        for reduce in ("SUM", "MEAN", "MAX", "MIN"):
            yield forward_alone(Case(f"{reduce.lower()}_{dtype}", {"X": numbers(r, (4, 3), dtype), "Y": numbers(r, (5, 3), dtype), **edges},
                                     "Out,Dst_count", {"message_op": "MUL", "reduce_op": reduce, "out_size": [0]}))


@cases("graph_send_uv")
def _graph_send_uv(r, op):
    src, dst = np.array([0, 1, 2, 0], "int64"), np.array([1, 2, 1, 0], "int64")
    for message in ("ADD", "MUL"):
        for dtype in FLOATS:
            yield Case(f"{message.lower()}_{dtype}", {"x": r.f((3, 2), 1, 2, dtype), "y": r.f((3, 2), 1, 2, dtype), "src_index": src,
                                                      "dst_index": dst}, "out", {"message_op": message}, no_grad=("src_index", "dst_index"))
    yield Case("broadcast", {"x": r.f((3, 2, 4)), "y": r.f((3, 1, 4)), "src_index": src, "dst_index": dst}, "out", {"message_op": "MUL"},
               no_grad=("src_index", "dst_index"))
    for dtype in ("int32", "int64"):
        yield forward_alone(Case(dtype, {"x": numbers(r, (3, 2), dtype), "y": numbers(r, (3, 2), dtype), "src_index": src,
                                         "dst_index": dst}, "out", {"message_op": "MUL"}))


@cases("spectral_norm")
def _spectral_norm(r, op):
    for dtype in FLOATS:
        for iterations in (1, 300):
            # Paddle's gradient is no derivative, however many iterations there are.
            yield forward_alone(Case(f"rows_{iterations}_{dtype}",
                                     {"Weight": r.f((3, 2, 2), dtype=dtype), "U": r.f((3,), dtype=dtype), "V": r.f((4,), dtype=dtype)},
                                     "Out", {"dim": 0, "power_iters": iterations, "eps": 1e-12}))
        yield forward_alone(Case(f"columns_{dtype}",
                                 {"Weight": r.f((3, 2, 2), dtype=dtype), "U": r.f((2,), dtype=dtype), "V": r.f((6,), dtype=dtype)},
                                 "Out", {"dim": 1, "power_iters": 300, "eps": 1e-12}))


@cases("bilinear_tensor_product")
def _bilinear_tensor_product(r, op):
    for dtype in FLOATS:
        ins = {"X": r.f((3, 4), dtype=dtype), "Y": r.f((3, 2), dtype=dtype), "Weight": r.f((5, 4, 2), dtype=dtype)}
        yield Case(f"plain_{dtype}", ins, "Out")
        yield Case(f"bias_{dtype}", {**ins, "Bias": r.f((1, 5), dtype=dtype)}, "Out")


@cases("fused_softmax_mask")
def _fused_softmax_mask(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((2, 3, 4, 4), dtype=dtype), "Mask": np.where(r.b((2, 1, 4, 4)), -1e4, 0).astype(dtype)}, "Out",
                   no_grad=("Mask",))


@cases("rrelu")
def _rrelu(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out,Noise", {"is_test": True, "lower": 0.1, "upper": 0.3})


@cases("graph_sample_neighbors", "weighted_sample_neighbors")
def _sample_neighbors(r, op):
    row, pointers = np.array([3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7]), np.array([0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13])
    for dtype in ("int32", "int64"):
        for eids in (False, True):
            of_edges = {"Eids": np.arange(20, 33).astype(dtype)} if eids else {}
            ins = {"Row": row.astype(dtype), "Col_Ptr": pointers.astype(dtype), "X": np.array([0, 8, 1, 7, 2]).astype(dtype)}
            outs = ("Out", "Out_Count", "Out_Eids")
            if op == "weighted_sample_neighbors":
                ins = {"row": ins["Row"], "colptr": ins["Col_Ptr"], "edge_weight": r.f((13,), 0.5, 1), "input_nodes": ins["X"]}
                of_edges, outs = {n.lower(): v for n, v in of_edges.items()}, ("out_neighbors", "out_count", "out_eids")
            yield forward_alone(Case(f"all{'_eids' if eids else ''}_{dtype}", {**ins, **of_edges}, ",".join(outs),
                                     {"sample_size": 2, "return_eids": eids}, nofetch=() if eids else outs[2:]))


@cases("gumbel_softmax")
def _gumbel_softmax(r, op):
    for dtype in FLOATS:
        case = Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out", {"temperature": 0.5, "hard": False, "axis": -1})
        case.notes = "gradient alone"
        yield case


@cases("poisson", "uniform_random_inplace")
def _no_gradient(r, op):
    for dtype in FLOATS:
        case = Case(dtype, {"X": r.f((3, 4), 0, 4, dtype)}, "Out")
        case.notes = "gradient alone"
        yield case


def make(out, case):
    """The case and, where it has one, that of its gradient."""
    # What Paddle leaves uninitialised, with what its gradient op is fed then.
    unset = {"SummedIds": np.zeros((0, 1), "float32")} if case.op == "segment_pool" else {}
    if case.attrs.get("reduce_op", "MEAN") != "MEAN":
        unset = {"Dst_count": np.zeros((0,), "int32")}
    g.NEVER_FETCH -= {"SummedIds", "Dst_count"}
    g.NEVER_FETCH |= set(unset)
    case.override = unset
    single = any(g.array_of(v).dtype.name == "float32" for x in case.ins.values() for v in g.as_list(x))
    case.tol = case.tol or ((1e-5, 1e-5) if single else (1e-9, 1e-9))
    if case.notes != "gradient alone":
        g.make_forward_case(out, 0, case)
    if case.notes != "forward alone":
        g.make_grad_case(out, 0, g.Rng(0, f"graph/{case.op}/{case.name}"), case, case.op + "_grad")


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "graph", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
