#!/usr/bin/env python3
"""make_recurrent_cases.py - golden cases of the recurrent ops over sequences, of CRFs and of CTC.

    python make_recurrent_cases.py --out recurrent && ./pack.sh recurrent

Same needs and same format as make_goldens.py; recurrent.tar.xz beside this file is the result, of --seed 1.
Ragged and empty sequences, one row, equal lengths, both directions, widths that are no multiple of a vector,
both dtypes, every activation. Paddle gives BatchGate and BatchHidden a LoD of steps,
rows and sequences, which interp does not: it is left out here.
"""
import argparse
import itertools
import json
import sys

import make_goldens as g
import numpy as np
from case_program import cases_of, make_all, register
from make_goldens import Case, LoD

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
DTYPES = ("float32", "float64")
ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")
SORTED = 16  # Of more sequences Paddle's std::sort puts equal ones in an order of its own: no outputs in batch rows.
# Lengths of sequences. In the last ones step after step fewer sequences are left.
LENGTHS = {"one_row": [1], "one_sequence": [5], "ragged": [3, 1, 6, 2], "empties": [0, 3, 0, 1, 0], "equal": [3, 3, 3],
           "many": [4, 1, 7, 2, 2, 5, 1, 3, 6, 4, 1, 2, 7, 3]}


def offsets(lengths):
    return [[0] + [int(x) for x in np.cumsum(lengths)]]


def tolerance(dtype):
    return (1e-4, 1e-5) if dtype == "float32" else (1e-5, 3e-6)   # Paddle's sigmoid stops at 13


def lstm_case(r, name, lengths, d=5, dtype="float32", h0=False, c0=False, test=False, **attrs):
    n, t = len(lengths), sum(lengths)
    attrs = {"use_peepholes": True, "is_reverse": False, **attrs}
    ins = {"Input": LoD(r.f((t, 4 * d), -1.5, 1.5, dtype), offsets(lengths)), "Weight": r.f((d, 4 * d), -0.8, 0.8, dtype),
           "Bias": r.f((1, (7 if attrs["use_peepholes"] else 4) * d), -0.7, 0.7, dtype)}
    if h0:
        ins["H0"] = r.f((n, d), -1, 1, dtype)
    if c0:
        ins["C0"] = r.f((n, d), -1, 1, dtype)
    if test:
        attrs["is_test"] = True
    return Case(name, ins, "Hidden,Cell,BatchGate,BatchCellPreAct", attrs, tol=tolerance(dtype),
                nofetch=("BatchGate", "BatchCellPreAct") if test or n > SORTED else ())


@cases("lstm")
def _lstm(r, op):
    for (name, lengths), reverse in itertools.product(LENGTHS.items(), (False, True)):
        yield lstm_case(r, name + "_reverse" * reverse, lengths, d=3 if name == "many" else 5, is_reverse=reverse)
    for name, reverse in (("ragged", False), ("empties", True), ("one_row", False)):
        yield lstm_case(r, f"state_{name}", LENGTHS[name], h0=True, c0=True, is_reverse=reverse)
        yield lstm_case(r, f"float64_{name}", LENGTHS[name], dtype="float64", h0=True, c0=True, is_reverse=not reverse)
    yield lstm_case(r, "cell_state_alone", LENGTHS["ragged"], c0=True)
    yield lstm_case(r, "no_peepholes", LENGTHS["ragged"], use_peepholes=False)
    yield lstm_case(r, "no_peepholes_float64", LENGTHS["equal"], dtype="float64", use_peepholes=False, is_reverse=True)
    yield lstm_case(r, "test", LENGTHS["ragged"], test=True)
    yield lstm_case(r, "test_reverse", LENGTHS["empties"], h0=True, c0=True, test=True, is_reverse=True, use_peepholes=False)
    for act in ACTIVATIONS:
        for k, slot in enumerate(("gate_activation", "cell_activation", "candidate_activation")):
            yield lstm_case(r, f"{slot}_{act}", LENGTHS["ragged"], dtype=DTYPES[k % 2], **{slot: act})
    for d in (1, 8, 16, 19):
        yield lstm_case(r, f"width_{d}", LENGTHS["ragged"], d=d)
    yield lstm_case(r, "width_9_float64", LENGTHS["ragged"], d=9, dtype="float64")
    for n in (2, 6, 11, 13, 25):
        yield lstm_case(r, f"sequences_{n}", [r.n(1, 4) for _ in range(n)], d=3)


def gru_case(r, name, lengths, d=5, dtype="float32", h0=False, bias=True, **attrs):
    n, t = len(lengths), sum(lengths)
    ins = {"Input": LoD(r.f((t, 3 * d), -1.5, 1.5, dtype), offsets(lengths)), "Weight": r.f((d, 3 * d), -0.8, 0.8, dtype)}
    if bias:
        ins["Bias"] = r.f((1, 3 * d), -0.7, 0.7, dtype)
    if h0:
        ins["H0"] = r.f((n, d), -1, 1, dtype)
    return Case(name, ins, "Hidden,BatchGate,BatchResetHiddenPrev,BatchHidden",
                {"is_reverse": False, "origin_mode": False, **attrs}, tol=tolerance(dtype),
                nofetch=("BatchGate", "BatchResetHiddenPrev", "BatchHidden") if n > SORTED else ())


@cases("gru")
def _gru(r, op):
    for (name, lengths), reverse in itertools.product(LENGTHS.items(), (False, True)):
        yield gru_case(r, name + "_reverse" * reverse, lengths, d=3 if name == "many" else 5, is_reverse=reverse)
    for k, (name, reverse) in enumerate((("ragged", False), ("empties", True), ("one_row", False))):
        for origin in (False, True):
            yield gru_case(r, f"state_{name}" + "_origin" * origin, LENGTHS[name], h0=True, is_reverse=reverse,
                           origin_mode=origin, dtype=DTYPES[(k + origin) % 2])
    yield gru_case(r, "origin", LENGTHS["ragged"], origin_mode=True)
    yield gru_case(r, "no_bias", LENGTHS["ragged"], bias=False)
    yield gru_case(r, "no_bias_float64", LENGTHS["equal"], bias=False, dtype="float64", is_reverse=True, h0=True)
    for act in ACTIVATIONS:
        for k, slot in enumerate(("gate_activation", "activation")):
            yield gru_case(r, f"{slot}_{act}", LENGTHS["ragged"], dtype=DTYPES[k], **{slot: act})
    for d in (1, 8, 16, 19):
        yield gru_case(r, f"width_{d}", LENGTHS["ragged"], d=d)
    yield gru_case(r, "width_9_float64", LENGTHS["ragged"], d=9, dtype="float64")
    for n in (2, 6, 11, 13, 25):
        yield gru_case(r, f"sequences_{n}", [r.n(1, 4) for _ in range(n)], d=3)


@cases("gru_unit")
def _gru_unit(r, op):
    def one(name, n=3, d=5, dtype="float32", bias=True, **attrs):
        ins = {"Input": r.f((n, 3 * d), -1.5, 1.5, dtype), "HiddenPrev": r.f((n, d), -1, 1, dtype),
               "Weight": r.f((d, 3 * d), -0.8, 0.8, dtype)}
        if bias:
            ins["Bias"] = r.f((1, 3 * d), -0.7, 0.7, dtype)
        return Case(name, ins, "Gate,ResetHiddenPrev,Hidden", attrs, tol=tolerance(dtype))
    for dtype in DTYPES:
        yield one(f"defaults_{dtype}", dtype=dtype)
        yield one(f"origin_{dtype}", dtype=dtype, origin_mode=True)
        yield one(f"no_bias_{dtype}", dtype=dtype, bias=False, n=14, d=9)
    for act in range(4):
        yield one(f"gate_activation_{act}", gate_activation=act)
        yield one(f"activation_{act}", activation=act, dtype="float64")
    yield one("one_row", n=1, d=19)


@cases("linear_chain_crf")
def _crf(r, op):
    outs = "Alpha,EmissionExps,TransitionExps,LogLikelihood"

    def joined(name, lengths, tags, dtype="float32", lo=-2, hi=2):
        lod = offsets(lengths)
        t = sum(lengths)
        return Case(name, {"Emission": LoD(r.f((t, tags), lo, hi, dtype), lod), "Transition": r.f((tags + 2, tags), -1, 1, dtype),
                           "Label": LoD(r.i((t, 1), 0, tags - 1), lod)}, outs, tol=tolerance(dtype))

    def padded(name, lengths, steps, tags, dtype="float32", flat=False):
        n = len(lengths)
        return Case(name, {"Emission": r.f((n, steps, tags), -2, 2, dtype), "Transition": r.f((tags + 2, tags), -1, 1, dtype),
                           "Label": r.i((n, steps) if flat else (n, steps, 1), 0, tags - 1),
                           "Length": np.array(lengths, "int64").reshape(-1, 1)}, outs, tol=tolerance(dtype))
    for k, (name, lengths) in enumerate(LENGTHS.items()):
        if name != "empties":     # Alpha of rows that belong to no sequence is not written: none here
            yield joined(name, lengths, (4, 1, 7, 5, 19, 5)[k], DTYPES[k % 2])
    yield joined("empties", LENGTHS["empties"], 5)
    yield joined("one_row_float32", LENGTHS["one_row"], 3)
    yield joined("large_scores", LENGTHS["ragged"], 4, lo=-60, hi=60)
    for dtype in DTYPES:
        yield padded(f"padded_{dtype}", [3, 5, 1], 5, 4, dtype)
        yield padded(f"padded_flat_label_{dtype}", [2, 4], 4, 17, dtype, flat=True)
    yield padded("padded_empties", [0, 3, 0], 4, 3)


@cases("crf_decoding")
def _crf_decoding(r, op):
    def joined(name, lengths, tags, dtype="float32", label=False, values=None):
        lod = offsets(lengths)
        t = sum(lengths)
        make = values or (lambda shape: r.f(shape, -2, 2, dtype))
        ins = {"Emission": LoD(make((t, tags)), lod), "Transition": make((tags + 2, tags))}
        if label:
            ins["Label"] = LoD(r.i((t, 1), 0, tags - 1), lod)
        return Case(name, ins, "ViterbiPath")

    def padded(name, lengths, steps, tags, dtype="float32", label=None):
        n = len(lengths)
        ins = {"Emission": r.f((n, steps, tags), -2, 2, dtype), "Transition": r.f((tags + 2, tags), -1, 1, dtype),
               "Length": np.array(lengths, "int64").reshape(-1, 1)}
        if label:
            ins["Label"] = r.i((n, steps) if label == 2 else (n, steps, 1), 0, min(tags - 1, 2))
        return Case(name, ins, "ViterbiPath")
    for (name, lengths), dtype in itertools.product(LENGTHS.items(), DTYPES):
        if name != "empties":
            yield joined(f"{name}_{dtype}", lengths, r.pick(2, 4, 7), dtype)
    for tags in (1, 8, 15, 16, 17, 34):
        yield joined(f"tags_{tags}", LENGTHS["ragged"], tags, DTYPES[tags % 2])
    yield joined("ties", LENGTHS["many"], 6, values=lambda shape: r.i(shape, 0, 2).astype("float32"))
    yield joined("ties_many_tags", LENGTHS["ragged"], 35, values=lambda shape: r.i(shape, 0, 1).astype("float32"))
    yield joined("label", LENGTHS["ragged"], 3, label=True)
    yield joined("label_float64", LENGTHS["equal"], 2, "float64", label=True)
    for dtype in DTYPES:
        yield padded(f"padded_{dtype}", [3, 5, 1], 5, 4, dtype)
        yield padded(f"padded_label_{dtype}", [2, 4, 1], 4, 3, dtype, label=2)
    yield padded("padded_label_rank3", [2, 4, 1], 4, 3, label=3)


@cases("viterbi_decode")
def _viterbi(r, op):
    def one(name, lengths, steps, tags, dtype="float32", ends=True, values=None):
        make = values or (lambda shape: r.f(shape, -2, 2, dtype))
        return Case(name, {"Input": make((len(lengths), steps, tags)), "Transition": make((tags, tags)),
                           "Length": np.array(lengths, "int64")}, "Scores,Path", {"include_bos_eos_tag": ends}, tol=tolerance(dtype))
    for dtype, ends in itertools.product(DTYPES, (False, True)):
        name = dtype + ("_ends" if ends else "")
        yield one(f"ragged_{name}", [3, 1, 6, 2], 6, 5, dtype, ends)
        yield one(f"shorter_than_input_{name}", [2, 4, 1], 7, 4, dtype, ends)
        yield one(f"one_step_{name}", [1], 1, 3, dtype, ends)
        yield one(f"many_tags_{name}", [4, 4, 2], 4, 18, dtype, ends)
    yield one("empty_sequence", [2, 0, 3], 3, 4)
    yield one("ties", [5, 3, 4], 5, 6, ends=False, values=lambda shape: r.i(shape, 0, 2).astype("float32"))


@cases("warpctc")
def _warpctc(r, op):
    def joined(name, rows, labels, tags, dtype="float32", blank=0, times=False, values=None, hi=2):
        values = values or [[v + (v >= blank) for v in r.i((n,), 0, tags - 2)] for n in labels]
        flat = np.array([v for vs in values for v in vs], "int32").reshape(-1, 1)
        return Case(name, {"Logits": LoD(r.f((sum(rows), tags), -hi, hi, dtype), offsets(rows)),
                           "Label": LoD(flat, offsets([len(v) for v in values]))}, "Loss,WarpCTCGrad",
                    {"blank": blank, "norm_by_times": times}, tol=tolerance(dtype))

    def padded(name, steps, rows, labels, width, tags, dtype="float32", blank=0):
        n = len(rows)
        return Case(name, {"Logits": r.f((steps, n, tags), -2, 2, dtype), "Label": r.i((n, width), 1, tags - 1, "int32"),
                           "LogitsLength": np.array(rows, "int64"), "LabelLength": np.array(labels, "int64")}, "Loss,WarpCTCGrad",
                    {"blank": blank, "norm_by_times": False}, tol=tolerance(dtype))
    for dtype in DTYPES:
        yield joined(f"ragged_{dtype}", [7, 4, 9], [3, 2, 4], 6, dtype)
        yield joined(f"last_blank_{dtype}", [5, 6], [2, 3], 5, dtype, blank=4)
        yield padded(f"padded_{dtype}", 8, [8, 5, 6], [3, 2, 4], 4, 6, dtype)
    yield joined("one_row", [1], [1], 3)
    yield joined("repeats", [8, 6], None, 4, values=[[2, 2, 1, 1], [3, 3, 3]])
    yield joined("exact_length", [5, 4], None, 4, values=[[2, 2, 1, 3], [1, 2, 3, 1]])
    yield joined("too_few_rows", [3, 6], None, 4, values=[[2, 2, 1], [1, 2]])
    yield joined("norm_by_times", [7, 4], [3, 2], 6, times=True)
    yield joined("wide", [12, 17], [4, 6], 40, hi=6)
    yield padded("padded_shorter", 9, [5, 3], [2, 1], 5, 4)


def make(out, seed, case):
    g.make_forward_case(out, seed, case)
    path = f"{out}/{case.op}/{case.name}/case.json"
    with open(path) as f:
        doc = json.load(f)
    for name in ("out:BatchGate", "out:BatchHidden"):
        doc["lod"].pop(name, None)
    g.write_json(path, doc)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    wanted = set(filter(None, args.ops.split(",")))
    make_all(args.out, cases_of(CASES, f"recurrent{args.seed}", wanted), lambda out, case: make(out, args.seed, case))


if __name__ == "__main__":
    sys.exit(main())
