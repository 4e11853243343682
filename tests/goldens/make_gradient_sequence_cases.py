#!/usr/bin/env python3
"""make_gradient_sequence_cases.py - golden cases of the gradients of kernels/sequence, recurrent and crf.

    python make_gradient_sequence_cases.py --out gradient_sequence && ./pack.sh gradient_sequence

Same needs and same format as make_goldens.py; gradient_sequence.tar.xz beside this file is the result. A case is a
program of a forward op, with the inputs of a case of make_sequence_cases.py or make_recurrent_cases.py, and of what
Paddle's append_backward adds for it (paddle.static.gradients); the gradients of the outputs are fed. It is filed under
the gradient op. Some of Paddle's kernels give no LoD; here the gradient of a variable has the variable's. `--seed` draws other lengths and values of the same cases.
"""
import argparse
import sys

import make_goldens as g
import make_recurrent_cases
import make_sequence_cases
import paddle
from case_program import make_all
from make_goldens import LoD, Rng
from make_recurrent_cases import LENGTHS, gru_case, lstm_case
from make_sequence_cases import FLOATS

CASES = []   # (op, output slots whose gradients are fed, function Rng -> Cases)


def cases(op, *targets):
    def deco(fn):
        CASES.append((op, targets, fn))
        return fn
    return deco


def forward_cases(skip=()):
    """The forward cases of the op, but those whose names start with one of `skip`."""
    def generate(r, op):
        for module in (make_sequence_cases, make_recurrent_cases):
            for other, fn in module.CASES:
                if other == op:
                    yield from (c for c in fn(r, op) if is_float(g.as_list(next(iter(c.ins.values())))[0])
                                and not c.name.startswith(tuple(skip)))
    return generate


@cases("lstm", "Hidden", "Cell")
def _lstm(r, op):
    for name, reverse in (("ragged", False), ("empties", True), ("one_row", False), ("equal", True)):
        for states in (False, True)[:1 + (name != "empties")]:    # of states of empty sequences Paddle makes garbage
            yield lstm_case(r, f"{name}_states{int(states)}", LENGTHS[name], d=3, h0=states, c0=states, is_reverse=reverse)
    yield lstm_case(r, "float64", LENGTHS["ragged"], d=4, dtype="float64", h0=True, c0=True, is_reverse=True)
    yield lstm_case(r, "no_peepholes", LENGTHS["ragged"], use_peepholes=False)
    yield lstm_case(r, "no_peepholes_float64", LENGTHS["ragged"], dtype="float64", use_peepholes=False, is_reverse=True)
    for k, act in enumerate(make_recurrent_cases.ACTIVATIONS):
        for slot in ("gate_activation", "cell_activation", "candidate_activation"):
            yield lstm_case(r, f"{slot}_{act}", LENGTHS["ragged"], d=3, dtype=FLOATS[k % 2], **{slot: act})
    yield lstm_case(r, "many", LENGTHS["many"], d=9)
    yield lstm_case(r, "wide", LENGTHS["ragged"], d=19, h0=True, c0=True)


@cases("gru", "Hidden")
def _gru(r, op):
    for name, reverse in (("ragged", False), ("empties", True), ("one_row", False), ("equal", True)):
        for states in (False, True)[:1 + (name != "empties")]:
            yield gru_case(r, f"{name}_states{int(states)}", LENGTHS[name], d=3, h0=states, is_reverse=reverse)
    yield gru_case(r, "float64", LENGTHS["ragged"], d=4, dtype="float64", h0=True, is_reverse=True)
    yield gru_case(r, "origin", LENGTHS["ragged"], origin_mode=True)
    yield gru_case(r, "origin_states_float64", LENGTHS["ragged"], dtype="float64", h0=True, origin_mode=True, is_reverse=True)
    yield gru_case(r, "no_bias", LENGTHS["ragged"], bias=False, h0=True)
    for k, act in enumerate(make_recurrent_cases.ACTIVATIONS):
        for slot in ("gate_activation", "activation"):
            yield gru_case(r, f"{slot}_{act}", LENGTHS["ragged"], d=3, dtype=FLOATS[k % 2], **{slot: act})
    yield gru_case(r, "many", LENGTHS["many"], d=9)
    yield gru_case(r, "wide", LENGTHS["ragged"], d=19, h0=True)


cases("gru_unit", "Hidden", "Gate", "ResetHiddenPrev")(forward_cases())
cases("warpctc", "Loss")(forward_cases())
cases("linear_chain_crf", "LogLikelihood")(forward_cases(skip=("large_scores",)))
cases("sequence_pool", "Out")(forward_cases(skip=("max_test", "first_wide", "last_wide", "sqrt_wide", "average_wide", "sum_long")))
cases("sequence_softmax", "Out")(forward_cases())
cases("sequence_expand", "Out")(forward_cases(skip=("nothing_left",)))     # Paddle raises there
cases("sequence_expand_as", "Out")(forward_cases())
# Paddle raises for windows in front of sequences, and makes garbage of those behind.
cases("sequence_conv", "Out")(forward_cases(skip=("start-5", "start-4", "start3_padded0", "start7_padded0", "window_of_one_before",
                                                  "many_rows")))
cases("sequence_concat", "Out")(forward_cases())
cases("sequence_slice", "Out")(forward_cases())
cases("sequence_pad", "Out")(forward_cases())
cases("sequence_unpad", "Out")(forward_cases())
cases("sequence_reverse", "Y")(forward_cases())
cases("sequence_reshape", "Out")(forward_cases())
cases("sequence_scatter", "Out")(forward_cases())
cases("add_position_encoding", "Out")(forward_cases())
cases("row_conv", "Out")(forward_cases())
cases("lod_reset", "Out")(forward_cases())


def is_float(value):
    return g.array_of(value).dtype.kind == "f"


def make(out, seed, targets, case):
    b, op, ins, outs = g.build_forward(case)
    feeds = {n: v for n, v in b.feeds.items()}
    for n, v in feeds.items():
        b.block.var(n).stop_gradient = not is_float(v)
    wanted = [n for slot, names in ins.items() for n in names if is_float(feeds[n])]
    out_names = [n for slot in targets for n in outs[slot]]
    b.fetch = list(out_names)
    _, forward = b.run()
    b.prog._sync_with_cpp()
    forward_ops = len(b.block.ops)
    rng = Rng(seed, f"{case.op}/{case.name}")
    gradients = []
    for n, (a, lod) in zip(out_names, forward):
        b.block.var(n).desc.set_shape(list(a.shape))     # compared with that of the gradient
        value = rng.f(a.shape, -1, 1, a.dtype.name)
        b.feed(n + "_GRAD", LoD(value, lod) if lod else value)
        gradients.append(b.block.var(n + "_GRAD"))
    with paddle.static.program_guard(b.prog):
        results = paddle.static.gradients([b.block.var(n) for n in out_names], [b.block.var(n) for n in wanted], gradients)
    results = [v for v in results if v is not None]
    added = b.block.ops[forward_ops:]
    b.fetch = [v.name for v in results]
    blob, res = b.run()
    lods = [getattr(feeds[n[:-len("@GRAD")]], "lod", []) for n in b.fetch]
    for n, (_, lod), expected in zip(b.fetch, res, lods):
        if lod not in ([], expected):
            print(f"{case.op}/{case.name}: {n} has the LoD {lod}, its variable {expected}")
    res = [(a, lod) for (a, _), lod in zip(res, lods)]
    op_type = added[0].type
    name = case.name if op_type == case.op + "_grad" else f"grad_of_{case.op}_{case.name}"
    slots = {"inputs": {s: added[0].input(s) for s in added[0].input_names},
             "outputs": {s: added[0].output(s) for s in added[0].output_names}}
    rtol, atol = case.tol or g.tolerance(op_type, [a for a, _ in res])
    g.write_case(f"{out}/{op_type}/{name}", seed, op_type, name, blob, b.feeds, dict(zip(b.fetch, res)), slots,
                 g.visible_attrs(op_type, added[0].desc), [o.type for o in b.block.ops], max(rtol, 2e-5 if rtol > 1e-6 else rtol),
                 atol, f"gradient of {case.op}")


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    ap.add_argument("--seed", default="gradient_sequence")
    args = ap.parse_args()
    wanted = set(filter(None, args.ops.split(",")))

    def all_cases():
        for op, targets, generate in CASES:
            if not wanted or op in wanted:
                for case in generate(Rng(0, f"{args.seed}/{op}"), op):
                    case.op = op
                    case.targets = targets
                    yield case
    make_all(args.out, all_cases(), lambda out, case: make(out, 0, case.targets, case))


if __name__ == "__main__":
    sys.exit(main())
