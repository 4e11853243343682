#!/usr/bin/env python3
"""make_optimizer_cases.py - golden cases of kernels/optimizer and of selected rows.

    python make_optimizer_cases.py --out optimizer && ./pack.sh optimizer

Same needs and same format as make_goldens.py; optimizer.tar.xz beside this file is the result. `--seed`
draws other values of the same cases. Selected rows can be neither fed nor fetched: those cases are programs,
in which lookup_table_v2_grad makes them and get_tensor_from_selected_rows shows them.
"""
import argparse
import sys

import make_goldens as g
import numpy as np
from case_program import cases_of, make_all, register
from make_array_cases import Program, make_case
from make_goldens import Builder, Case, core

CASES = []   # (op, function Rng -> Cases and Programs)
cases = register(CASES)
FLOATS = ("float32", "float64")
SHAPES = ((3, 5), (1100,), ())   # the second is more than one piece of kernels/optimizer/chunk.h

# op -> its states with the range of their values, outputs of other names, forms of attributes
STATES = {
    "sgd": {},
    "momentum": {"Velocity": (-1, 1)},
    "adam": {"Moment1": (-1, 1), "Moment2": (0, 1)},
    "adamw": {"Moment1": (-1, 1), "Moment2": (0, 1)},
    "lamb": {"Moment1": (-1, 1), "Moment2": (0, 1)},
    "adamax": {"Moment": (-1, 1), "InfNorm": (0.1, 1)},
    "adagrad": {"Moment": (0.1, 1)},
    "decayed_adagrad": {"Moment": (0.1, 1)},
    "adadelta": {"AvgSquaredGrad": (0, 1), "AvgSquaredUpdate": (0, 1)},
    "rmsprop": {"MeanSquare": (1.5, 3), "Moment": (-1, 1), "MeanGrad": (-0.5, 0.5)},
    "ftrl": {"SquaredAccumulator": (0.1, 1), "LinearAccumulator": (-2, 2)},
    "proximal_gd": {},
    "proximal_adagrad": {"Moment": (0.1, 1)},
    "dpsgd": {},
}
OUT_OF = {"SquaredAccumulator": "SquaredAccumOut", "LinearAccumulator": "LinearAccumOut"}
POWS = ("adam", "adamw", "lamb")
FORMS = {
    "momentum": ({"mu": 0.9}, {"mu": 0.9, "use_nesterov": True, "regularization_method": "l2_decay", "regularization_coeff": 0.1}),
    "adam": ({"epsilon": 1e-3}, {"beta1": 0.5, "beta2": 0.8}),
    "adamw": ({"coeff": 0.1, "lr_ratio": 0.5}, {"coeff": 0.1, "beta1": 0.5}),
    "lamb": ({"weight_decay": 0.1}, {"weight_decay": 0.0}),
    "adadelta": ({"rho": 0.9, "epsilon": 1e-3},),
    "rmsprop": ({"decay": 0.9, "momentum": 0.5}, {"decay": 0.9, "centered": True}),
    "ftrl": ({"l1": 0.5, "l2": 0.2}, {"l1": 0.1, "l2": 0.0, "lr_power": -0.7}),
    "proximal_gd": ({"l1": 0.5, "l2": 0.2}, {"l1": 0.0, "l2": 0.2}, {}),
    "proximal_adagrad": ({"l1": 0.5, "l2": 0.2}, {"l1": 0.0, "l2": 0.2}),
    "dpsgd": ({"clip": 1.0, "sigma": 0.0}, {"clip": 1e6, "sigma": 0.0}),
    "decayed_adagrad": ({"decay": 0.8},),
}


def out_of(name):
    return OUT_OF.get(name, name + "Out")


def inputs(r, op, shape, dtype="float32"):
    d = {"Param": r.f(shape, dtype=dtype), "Grad": r.f(shape, dtype=dtype),
         "LearningRate": np.array([r.scalar(0.01, 0.3)], dtype)}
    for name, (lo, hi) in STATES[op].items():
        d[name] = r.f(shape, lo, hi, dtype)
    if op in POWS:
        d["Beta1Pow"], d["Beta2Pow"] = np.array([0.9 ** 3], dtype), np.array([0.999 ** 3], dtype)
    if op == "adamax":
        d["Beta1Pow"] = np.array([0.9 ** 3], dtype)
    return d


def outputs(op):
    """Output slot -> input slot of which it is the new value."""
    names = {"ParamOut": "Param", **{out_of(s): s for s in STATES[op]}}
    if op in POWS:
        names |= {"Beta1PowOut": "Beta1Pow", "Beta2PowOut": "Beta2Pow"}
    return names


# ----------------------------------------------------------------------------
# Dense updates
# ----------------------------------------------------------------------------
@cases(*STATES)
def _dense(r, op):
    outs = outputs(op)
    for k, attrs in enumerate(FORMS.get(op, ({},))):
        for dtype in FLOATS:
            yield Case(f"form{k}_{dtype}", inputs(r, op, SHAPES[0], dtype), ",".join(outs), attrs, alias=outs)
    if op in ("adam", "lamb"):
        yield Case("long", inputs(r, op, SHAPES[1]), ",".join(outs), FORMS.get(op, ({},))[0], alias=outs)
    yield Case("rank0", inputs(r, op, SHAPES[2]), ",".join(outs), FORMS.get(op, ({},))[0], alias=outs)
    if op != "rmsprop":   # it insists on updating in place
        yield Case("apart", inputs(r, op, SHAPES[0]), ",".join(outs), FORMS.get(op, ({},))[0])


@cases("adam", "adamw")
def _adam(r, op):
    outs = outputs(op)
    ins = inputs(r, op, (3, 4))
    yield Case("epsilon_tensor", {**ins, "EpsilonTensor": np.array([0.1], "float32")}, ",".join(outs), {}, alias=outs)
    yield Case("skip_apart", {**ins, "SkipUpdate": np.array([True])}, ",".join(outs), {}, alias={})
    yield Case("not_skipped", {**ins, "SkipUpdate": np.array([False])}, ",".join(outs), {}, alias=outs)


@cases("lamb")
def _lamb(r, op):
    outs = outputs(op)
    ins = inputs(r, op, (3, 4))
    yield Case("skip", {**ins, "SkipUpdate": np.array([True])}, ",".join(outs), {"weight_decay": 0.1}, alias=outs)
    yield Case("zero_param", {**ins, "Param": np.zeros((3, 4), "float32")}, ",".join(outs), {"weight_decay": 0.1}, alias=outs)
    zero = {k: np.zeros_like(v) for k, v in ins.items() if k in ("Grad", "Moment1", "Moment2")}
    yield Case("zero_direction", {**ins, **zero}, ",".join(outs), {"always_adapt": True, "weight_decay": 0.0}, alias=outs)


def lists(r, op, count, dtype="float32", one_rate=False):
    """Inputs of several parameters of different shapes, each slot a list."""
    each = [inputs(r, op, (2 + i, 3), dtype) for i in range(count)]
    ins = {name: [d[name] for d in each] for name in each[0]}
    if one_rate:
        ins["LearningRate"] = ins["LearningRate"][:1]
    return ins


@cases("merged_adam")
def _merged_adam(r, op):
    outs = outputs("adam")
    for dtype in FLOATS:
        yield Case(f"three_{dtype}", lists(r, "adam", 3, dtype), {name: 3 for name in outs}, {"beta1": 0.8, "epsilon": 1e-3}, alias=outs)
    yield Case("global_pows", lists(r, "adam", 2), {name: 2 for name in outs}, {"use_global_beta_pow": True}, alias=outs)


@cases("fused_adam")
def _fused_adam(r, op):
    names = {"Param": "Params", "Grad": "Grads", "LearningRate": "LearningRate", "Moment1": "Moments1", "Moment2": "Moments2",
             "Beta1Pow": "Beta1Pows", "Beta2Pow": "Beta2Pows"}
    outs = {f"{names[slot]}Out": names[slot] for slot in outputs("adam").values()}

    def one(name, dtype="float32", apart=False, skip=None, **attrs):
        ins = {names[slot]: values for slot, values in lists(r, "adam", 3, dtype, one_rate=True).items()}
        ins["LearningRate"] = ins["LearningRate"][0]
        if skip is not None:
            ins["SkipUpdate"] = np.array([skip])
        return Case(name, ins, {name: 3 for name in outs}, {"epsilon": 1e-3, "chunk_size": 65536, **attrs}, alias={} if apart else outs)
    for dtype in FLOATS:
        yield one(f"plain_{dtype}", dtype, beta1=0.8)
        yield one(f"decay_{dtype}", dtype, use_adamw=True, weight_decay=0.1)
    yield one("decay_unused", weight_decay=0.1)
    yield one("global_pows", use_global_beta_pow=True)
    yield one("apart", apart=True)
    yield one("skipped", skip=True)
    yield one("not_skipped", skip=False, use_adamw=True, weight_decay=0.1)


@cases("sparse_momentum")
def _sparse_momentum(r, op):
    def one(name, rows, dtype="float32", axis=0, shape=(6, 5), index="int64", tensor=False, **attrs):
        ins = inputs(r, "momentum", shape, dtype)
        ins["Grad"] = r.f((len(rows), shape[1]) if axis == 0 else (shape[0], len(rows)), dtype=dtype)
        ins["Index"] = np.array(rows, index)
        if tensor:
            ins["Axis"] = np.array([axis], "int32")
        return Case(name, ins, "ParamOut,VelocityOut", {"mu": 0.9, "axis": 0 if tensor else axis, **attrs},
                    alias=outputs("momentum"))
    l2 = {"regularization_method": "l2_decay", "regularization_coeff": 0.1}
    for dtype in FLOATS:
        for axis in (0, 1):
            yield one(f"axis{axis}_{dtype}", [4, 1], dtype, axis)
            yield one(f"repeats{axis}_{dtype}", [3, 1, 1, 1, 0], dtype, axis, use_nesterov=True, rescale_grad=0.5, **l2)
    yield one("int32", [2, 5], index="int32", **l2)
    yield one("axis_tensor", [2, 3, 0], tensor=True, axis=1)
    yield one("one_row", [0], shape=(1, 3))


@cases("merged_momentum")
def _merged_momentum(r, op):
    outs = outputs("momentum")
    for dtype in FLOATS:
        yield Case(f"plain_{dtype}", lists(r, "momentum", 3, dtype), {name: 3 for name in outs}, {"mu": 0.9}, alias=outs)
    yield Case("one_rate", lists(r, "momentum", 3, one_rate=True), {name: 3 for name in outs}, {"mu": 0.9}, alias=outs)
    yield Case("decay", lists(r, "momentum", 3), {name: 3 for name in outs},
               {"mu": 0.9, "use_nesterov": True, "regularization_method": ["l2_decay", "", "l2_decay"],
                "regularization_coeff": [0.1, 0.2, 0.3]}, alias=outs)


@cases("lars_momentum")
def _lars(r, op):
    outs = outputs("momentum")
    for dtype in FLOATS:
        yield Case(f"three_{dtype}", lists(r, "momentum", 3, dtype), {name: 3 for name in outs},
                   {"mu": 0.9, "lars_coeff": 0.1, "lars_weight_decay": [0.1, 0.0, 0.2], "epsilon": 0.01}, alias=outs)
    zero = lists(r, "momentum", 2)
    zero["Param"][0] *= 0
    zero["Grad"][1] *= 0
    yield Case("zeros", zero, {name: 2 for name in outs}, {"mu": 0.9, "lars_weight_decay": [0.1, 0.1]}, alias=outs)
    yield Case("rescaled", lists(r, "momentum", 1), {name: 1 for name in outs},
               {"mu": 0.9, "lars_weight_decay": [0.1], "rescale_grad": 0.5}, alias=outs)


# ----------------------------------------------------------------------------
# Averages, loss scaling, seeds
# ----------------------------------------------------------------------------
@cases("average_accumulates")
def _average(r, op):
    outs = {"out_" + s: "in_" + s for s in ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates", "num_updates")}
    for name, updates, accumulated in (("adds", 4, 4), ("full", 99, 30), ("moves", 16383, 3), ("both", 16383, 999), ("early", 9, 3)):
        for dtype in FLOATS:
            ins = {"param": r.f((2, 3), dtype=dtype), **{f"in_sum_{i}": r.f((2, 3), dtype=dtype) for i in (1, 2, 3)},
                   "in_num_accumulates": np.array([accumulated], "int64"), "in_old_num_accumulates": np.array([7], "int64"),
                   "in_num_updates": np.array([updates], "int64")}
            yield Case(f"{name}_{dtype}", ins, ",".join(outs),
                       {"average_window": 0.3 if name != "early" else 0.7, "min_average_window": 4, "max_average_window": 40}, alias=outs)


@cases("check_finite_and_unscale")
def _check_finite(r, op):
    scale = np.array([8.0], "float32")
    for dtype in FLOATS:
        xs = [r.f((2, 3), dtype=dtype), r.f((11,), dtype=dtype)]
        yield Case(f"apart_{dtype}", {"X": xs, "Scale": scale.astype(dtype)}, {"Out": 2, "FoundInfinite": 1})
    for name, value in (("inf", np.inf), ("minus_inf", -np.inf), ("nan", np.nan)):
        x = r.f((110,))
        x[107] = value
        yield Case(f"last_{name}", {"X": [r.f((2, 3)), x], "Scale": scale}, {"Out": 2, "FoundInfinite": 1}, nofetch=("Out",))


@cases("update_loss_scaling")
def _update_loss_scaling(r, op):
    outs = {"Out": "X", "LossScaling": "PrevLossScaling", "OutGoodSteps": "InGoodSteps", "OutBadSteps": "InBadSteps"}
    counts = {"Out": 2, "LossScaling": 1, "OutGoodSteps": 1, "OutBadSteps": 1}
    for name, dtype, found, good, scale in (("double", "float64", True, 0, 8.0), ("least", "float32", True, 1, 1.5), ("most", "float32", False, 1, 3e38)):
        yield Case(name, {"X": [r.f((2, 3), dtype=dtype), r.f((4,), dtype=dtype)], "FoundInfinite": np.array([found]),
                          "PrevLossScaling": np.array([scale], dtype), "InGoodSteps": np.array([good], "int32"),
                          "InBadSteps": np.array([1], "int32")}, counts,
                   {"incr_every_n_steps": 2, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.5}, alias=outs)
    yield Case("stop_tensor", {"X": [r.f((2, 3)), r.f((4,))], "FoundInfinite": np.array([True]), "StopUpdate": np.array([True]),
                               "PrevLossScaling": np.array([8.0], "float32"), "InGoodSteps": np.array([1], "int32"),
                               "InBadSteps": np.array([1], "int32")}, counts,
               {"incr_every_n_steps": 2, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.5}, alias=outs)


@cases("seed")
def _seed(r, op):
    yield Case("given", {}, "Out", {"seed": 17})


# ----------------------------------------------------------------------------
# Selected rows
# ----------------------------------------------------------------------------
ROWS = core.VarDesc.VarType.SELECTED_ROWS
HEIGHT, WIDTH = 7, 3
IDS = {"repeats": [4, 1, 4, 6, 1, 4], "each_once": [5, 0, 3], "one": [2], "all": [6, 5, 4, 3, 2, 1, 0]}


class RowsProgram(Program):
    def rows_var(self, name, width=WIDTH):
        if not self.b.block.has_var(name):
            self.b.block.create_var(name=name, type=ROWS, dtype="float32", shape=(HEIGHT, width))
        return name

    def rows(self, r, ids, name="grad", dtype="float32", width=WIDTH):
        """Selected rows of a table of HEIGHT rows."""
        table = self.feed(f"{name}_table", r.f((HEIGHT, width), dtype=dtype))
        index = self.feed(f"{name}_ids", np.array(ids, "int64"))
        values = self.feed(f"{name}_values", r.f((len(ids), width), dtype=dtype))
        self.rows_var(name, width)
        # Python appends no gradient ops: this one is made of the forward op that would have it.
        side = Builder()
        for var, value in list(self.b.feeds.items())[-3:]:
            side.feed(var, value)
        side.output("found")
        forward = side.block.append_op(type="lookup_table_v2", inputs={"W": [table], "Ids": [index]}, outputs={"Out": ["found"]},
                                       attrs={"is_sparse": True, "padding_idx": -1})
        op = self.b.block.desc.append_op()
        op.copy_from(core.get_grad_op_desc(forward.desc, set(), [])[0][0])
        op.set_input("Out@GRAD", [values])
        op.set_output("W@GRAD", [name])
        self.types.append("lookup_table_v2_grad")
        return name

    def on_rows(self, op, ins, out, **attrs):
        """An op whose result is selected rows."""
        self.rows_var(out)
        self.call(op, ins, {"Out": out}, **attrs)
        return out

    def show(self, rows, out=None):
        """Fetches rows and values."""
        out = out or f"{rows}_shown"
        self.fetch(*self.call("get_tensor_from_selected_rows", {"X": rows}, {"Out": out}))
        return self

    def show_rows(self, rows, dtype="float32"):
        """Fetches the tall tensor."""
        zeros = self.feed(f"{rows}_zeros", np.zeros((HEIGHT, WIDTH), dtype))
        self.var(f"{rows}_tall")
        self.sum([zeros, rows], f"{rows}_tall")
        return self.fetch(f"{rows}_tall")

    def sum(self, names, out):
        self.b.block.append_op(type="sum", inputs={"X": names}, outputs={"Out": [out]})
        self.types.append("sum")


SPARSE = {
    "sgd": ({},), "momentum": FORMS["momentum"], "adam": ({"lazy_mode": False}, {"lazy_mode": True}),
    "adagrad": ({},),
    "rmsprop": FORMS["rmsprop"], "ftrl": FORMS["ftrl"], "lamb": FORMS["lamb"],
}


@cases(*SPARSE)
def _sparse(r, op):
    for k, attrs in enumerate(SPARSE[op]):
        for dtype in FLOATS if k == 0 else FLOATS[:1]:
            for name, ids in IDS.items() if dtype == "float32" else [("repeats", IDS["repeats"])]:
                p = RowsProgram(f"rows_{name}_form{k}_{dtype}")
                if op in ("momentum", "rmsprop") and len(set(ids)) == len(ids):
                    ids = sorted(ids)   # Paddle does not sort them, but looks for rows by bisection
                grad = p.rows(r, ids, dtype=dtype)
                ins = inputs(r, op, (HEIGHT, WIDTH), dtype)
                del ins["Grad"]
                fed = {slot: p.feed(slot, value) for slot, value in ins.items()}
                outs = {out: fed[slot] for out, slot in outputs(op).items()}
                p.call(op, {**fed, "Grad": grad}, outs, **attrs)
                yield p.fetch(*outs.values())
    if op == "sgd":
        p = RowsProgram("rows_wide")   # a row of more than one piece
        grad = p.rows(r, [3, 0, 3], width=1030)
        ins = inputs(r, op, (HEIGHT, 1030))
        del ins["Grad"]
        fed = {slot: p.feed(slot, value) for slot, value in ins.items()}
        outs = {out: fed[slot] for out, slot in outputs(op).items()}
        p.call(op, {**fed, "Grad": grad}, outs)
        yield p.fetch("Param")


@cases("merge_selected_rows")
def _merge(r, op):
    for dtype in FLOATS:
        for name, ids in IDS.items():
            p = RowsProgram(f"{name}_{dtype}")
            yield p.show(p.on_rows(op, {"X": p.rows(r, ids, dtype=dtype)}, "merged"))


@cases("get_tensor_from_selected_rows")
def _get_tensor(r, op):
    for dtype in FLOATS:
        p = RowsProgram(f"repeats_{dtype}")
        yield p.show(p.rows(r, IDS["repeats"], dtype=dtype))


@cases("sum")
def _sum(r, op):
    for dtype in FLOATS:
        p = RowsProgram(f"rows_{dtype}")
        a, b = p.rows(r, IDS["repeats"], "a", dtype), p.rows(r, IDS["each_once"], "b", dtype)
        p.rows_var("total")
        p.sum([a, b], "total")
        merged = p.on_rows("merge_selected_rows", {"X": "total"}, "merged")
        yield p.show(merged).show_rows(merged, dtype)
        p = RowsProgram(f"rows_and_tensor_{dtype}")
        a, b = p.rows(r, IDS["repeats"], "a", dtype), p.rows(r, IDS["each_once"], "b", dtype)
        x = p.feed("x", r.f((HEIGHT, WIDTH), dtype=dtype))
        p.var("total")
        p.sum([x, a, b], "total")
        yield p.fetch("total")


# clip, sign, cast and elementwise_div read selected rows as a tensor in Paddle 2.6.2, and crash.
UNARY_ON_ROWS = {"scale": {"scale": 2.5, "bias": 0.5}, "clip_by_norm": {"max_norm": 1.0}, "square": {}, "sqrt": {}, "assign": {}}


@cases(*UNARY_ON_ROWS)
def _unary_on_rows(r, op):
    for name in ("repeats", "each_once"):
        for dtype in FLOATS if op != "clip_by_norm" else FLOATS[:1]:
            p = RowsProgram(f"rows_{name}_{dtype}")
            x = p.rows(r, IDS[name], dtype=dtype)
            x = p.on_rows("square", {"X": x}, "positive") if op == "sqrt" else x
            out = p.on_rows(op, {"X": x}, "out", **UNARY_ON_ROWS[op])
            yield p.show(out).show_rows(out, dtype)
    p = RowsProgram("rows_in_place")
    x = p.rows(r, IDS["each_once"])
    x = p.on_rows("square", {"X": x}, "positive") if op == "sqrt" else x
    if op != "assign":
        p.on_rows(op, {"X": x}, x, **UNARY_ON_ROWS[op])
        yield p.show(x).show_rows(x)


@cases("squared_l2_norm")
def _squared_l2_norm(r, op):
    p = RowsProgram("rows")
    x = p.on_rows("merge_selected_rows", {"X": p.rows(r, IDS["repeats"])}, "merged")
    tensor = p.call("get_tensor_from_selected_rows", {"X": x}, {"Out": "tensor"})[0]
    yield p.fetch(*p.call(op, {"X": tensor}, {"Out": "norm"}))


@cases("elementwise_mul")
def _by_scalar(r, op):
    for dtype in FLOATS:
        p = RowsProgram(f"rows_{dtype}")
        x, y = p.rows(r, IDS["repeats"], dtype=dtype), p.feed("y", np.array([0.3], dtype))
        out = p.on_rows(op, {"X": x, "Y": y}, "out", axis=-1)
        yield p.show(out).show_rows(out, dtype)
    p = RowsProgram("rows_in_place")
    x, y = p.rows(r, IDS["repeats"]), p.feed("y", np.array([0.3], "float32"))
    p.on_rows(op, {"X": x, "Y": y}, x, axis=-1)
    yield p.show(x).show_rows(x)


def make(out, case):
    if isinstance(case, Program):
        make_case(out, case)
    else:
        g.make_forward_case(out, 0, case)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    ap.add_argument("--seed", default="optimizer")
    args = ap.parse_args()
    wanted = set(filter(None, args.ops.split(",")))
    make_all(args.out, cases_of(CASES, args.seed, wanted), make)


if __name__ == "__main__":
    sys.exit(main())
