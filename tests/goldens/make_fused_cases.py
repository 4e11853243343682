#!/usr/bin/env python3
"""make_fused_cases.py - golden cases of ops that Paddle's inference passes fuse, and of further ops of old programs.

    python make_fused_cases.py --out fused && ./pack.sh fused

Same needs and same format as make_goldens.py; fused.tar.xz beside this file is the result. Every case of an op of
GRADIENTS is also one of its gradient. Ops of MODELS have no kernel on CPU: their results are those of NumPy.
"""
import sys

import make_goldens as g
import numpy as np
from case_program import arguments, build_without_kernel, cases_of, make_all, register, write_modelled_case
from make_goldens import Case, LoD

CASES = []          # (op, function Rng -> Cases)
GRADIENTS = set()   # ops whose cases are also made of their gradients
cases = register(CASES, GRADIENTS)
MODELS = {}         # op -> function Case -> {output: array}
FLOATS = ("float32", "float64")
# Cases that Paddle computes wrongly: its identity leaves what was there, operands of other sizes are exchanged for a
# quotient, and the scale of a difference goes to X alone.
WRONG = {"attention_lstm/relu_float32", "attention_lstm/relu_float64", "fused_elementwise_div/wide_y", "fused_elementwise_sub/scales"}
LENGTHS = {"ragged": [3, 1, 4], "equal": [2, 2], "one": [5], "long": [7, 2, 9, 1]}


def model(op):
    def deco(fn):
        MODELS[op] = fn
        return fn
    return deco


def lod(array, lengths):
    return LoD(array, [np.cumsum([0] + lengths).tolist()])


def sequences(r, lengths, width, dtype="float32", lo=-1, hi=1):
    return lod(r.f((sum(lengths), width), lo, hi, dtype), lengths)


def loose(dtype):
    return (1e-4, 1e-5) if dtype == "float32" else (1e-6, 1e-7)


# ----------------------------------------------------------------------------
# Sequences
# ----------------------------------------------------------------------------
@cases("fusion_seqpool_cvm_concat")
def _seqpool_cvm_concat(r, op):
    for kind in ("SUM", "AVERAGE", "SQRT"):
        for name, lengths in (("ragged", ([3, 1, 4], [2, 2, 1], [1, 5, 3])), ("one", ([2, 3],))):
            for dtype in FLOATS:
                xs = [sequences(r, n, 6, dtype, 0, 3) for n in lengths]
                yield Case(f"{kind.lower()}_{name}_{dtype}", {"X": xs, "CVM": r.f((len(lengths[0]), 2), 0, 3, dtype)}, "Out",
                           {"pooltype": kind, "use_cvm": True, "axis": 1})


def pooled(x, pad):
    offsets = x.lod[0]
    return np.stack([x.array[a:b].sum(0) + x.array.dtype.type(pad) for a, b in zip(offsets, offsets[1:])])


@cases("fused_seqpool_cvm")
def _fused_seqpool_cvm(r, op):
    for dtype in FLOATS:
        for use_cvm in (True, False):
            for name, lengths, pad in (("ragged", ([3, 1, 4], [2, 2, 1]), 0.0), ("empties", ([0, 3, 0], [1, 0, 2]), 0.5)):
                xs = [sequences(r, n, w, dtype, 0, 3) for n, w in zip(lengths, (6, 4))]
                yield Case(f"{name}{'' if use_cvm else '_left_out'}_{dtype}", {"X": xs, "CVM": r.f((3, 2), 0, 3, dtype)}, {"Out": 2},
                           {"pooltype": "SUM", "pad_value": pad, "use_cvm": use_cvm, "cvm_offset": 2}, tol=loose(dtype))


@model("fused_seqpool_cvm")
def _seqpool_cvm_model(case):
    results = {}
    for i, x in enumerate(case.ins["X"]):
        y = pooled(x, case.attrs["pad_value"])
        if case.attrs["use_cvm"]:
            show, click = np.log(y[:, 0] + 1), np.log(y[:, 1] + 1)
            y[:, 0], y[:, 1] = show, click - show
        results[f"Out_{i}"] = y if case.attrs["use_cvm"] else np.ascontiguousarray(y[:, 2:])
    return results


@cases("fused_seqpool_cvm_grad")
def _fused_seqpool_cvm_grad(r, op):
    for case in _fused_seqpool_cvm(r, op):
        out = _seqpool_cvm_model(case)
        case.ins["Out@GRAD"] = [r.f(out[f"Out_{i}"].shape, dtype=out[f"Out_{i}"].dtype.name) for i in range(2)]
        yield Case(case.name, case.ins, {"X@GRAD": 2}, case.attrs, tol=loose("float32"))


@model("fused_seqpool_cvm_grad")
def _seqpool_cvm_grad_model(case):
    results = {}
    for i, (x, grad) in enumerate(zip(case.ins["X"], case.ins["Out@GRAD"])):
        rows = np.repeat(np.arange(3), np.diff(x.lod[0]))
        given = grad[:, 2:] if case.attrs["use_cvm"] else grad
        results[f"X_GRAD_{i}"] = LoD(np.concatenate([case.ins["CVM"], given], 1)[rows], x.lod)
    return results


@cases("fusion_seqconv_eltadd_relu")
def _seqconv_relu(r, op):
    for dtype in FLOATS:
        for name, lengths in LENGTHS.items():
            for start, length in ((-1, 3), (0, 1), (-2, 5), (0, 3), (-2, 3)):
                if sum(lengths) < 2 * len(lengths) and start < -1:
                    continue
                yield Case(f"{name}_{length}_from_{start}_{dtype}".replace("-", "minus_"),
                           {"X": sequences(r, lengths, 4, dtype), "Filter": r.f((4 * length, 5), dtype=dtype),
                            "Bias": r.f((1, 5), dtype=dtype)}, "Out,ColMat",
                           {"contextLength": length, "contextStart": start, "contextStride": 1}, nofetch=("ColMat",), tol=loose(dtype))


@cases("fusion_seqexpand_concat_fc")
def _seqexpand_concat_fc(r, op):
    for dtype in FLOATS:
        for act in ("identity", "relu", "tanh", "sigmoid"):
            for name, widths, bias in (("two", (4, 3), True), ("three", (3, 2, 5), True), ("no_bias", (2, 3), False)):
                lengths = LENGTHS["ragged"]
                xs = [sequences(r, lengths, widths[0], dtype)] + [sequences(r, [1] * len(lengths), w, dtype) for w in widths[1:]]
                ins = {"X": xs, "FCWeight": r.f((sum(widths), 6), dtype=dtype)}
                if bias:
                    ins["FCBias"] = r.f((1, 6), dtype=dtype)
                yield Case(f"{name}_{act}_{dtype}", ins, "Out,FCOut", {"fc_activation": act}, nofetch=("FCOut",),
                           tol=loose(dtype) if dtype == "float32" else (1e-5, 1e-5))     # Paddle's tanh stops at 13


# ----------------------------------------------------------------------------
# Recurrences
# ----------------------------------------------------------------------------
@cases("attention_lstm")
def _attention_lstm(r, op):
    outs = "Hidden,Cell,AttentionedX,AttentionFCOut,LSTMX,LSTMOUT"

    def one(name, lengths, m, d, dtype="float32", h0=False, bias=False, scalar=False, scalar_bias=False, **attrs):
        ins = {"X": sequences(r, lengths, m, dtype), "C0": r.f((len(lengths), d), dtype=dtype), "AttentionWeight": r.f((m + d, 1), dtype=dtype),
               "LSTMWeight": r.f((m + d, 4 * d), -0.8, 0.8, dtype), "LSTMBias": r.f((1, 4 * d), dtype=dtype)}
        if h0:
            ins["H0"] = r.f((len(lengths), d), dtype=dtype)
        for given, slot in ((bias, "AttentionBias"), (scalar, "AttentionScalar"), (scalar_bias, "AttentionScalarBias")):
            if given:
                ins[slot] = r.f((1, 1), 0.2, 1, dtype)
        base = {"gate_activation": "sigmoid", "cell_activation": "tanh", "candidate_activation": "tanh"}
        return Case(f"{name}_{dtype}", ins, outs, {**base, **attrs}, nofetch=tuple(outs.split(",")[2:]), tol=loose(dtype) if dtype == "float32" else (1e-5, 3e-6))
    for dtype in FLOATS:
        for name, lengths in LENGTHS.items():
            yield one(name, lengths, 4, 3, dtype)
        yield one("all", LENGTHS["ragged"], 3, 5, dtype, True, True, True, True)
        yield one("scalar", LENGTHS["ragged"], 3, 5, dtype, h0=True, scalar=True)
        yield one("bias", LENGTHS["ragged"], 3, 5, dtype, bias=True)
        yield one("relu", LENGTHS["ragged"], 2, 4, dtype, True, candidate_activation="relu", cell_activation="identity", gate_activation="tanh")
    yield one("wide", LENGTHS["long"], 19, 16, h0=True, bias=True)


@cases("fused_embedding_fc_lstm")
def _embedding_lstm(r, op):
    outs = "Hidden,Cell,XX,BatchedInput,BatchedHidden,BatchedCell,ReorderedH0,ReorderedC0"

    def one(name, lengths, d, dtype="float32", state=False, peepholes=False, **attrs):
        ins = {"Ids": lod(r.i((sum(lengths), 1), 0, 8), lengths), "Embeddings": r.f((9, 4 * d), -0.8, 0.8, dtype),
               "WeightH": r.f((d, 4 * d), -0.8, 0.8, dtype), "Bias": r.f((1, (7 if peepholes else 4) * d), dtype=dtype)}
        for slot in ("H0", "C0") if state else ():
            ins[slot] = r.f((len(lengths), d), dtype=dtype)
        base = {"use_peepholes": peepholes, "is_reverse": False, "use_seq": True, "gate_activation": "sigmoid",
                "cell_activation": "tanh", "candidate_activation": "tanh"}
        return Case(f"{name}_{dtype}", ins, outs, {**base, **attrs}, nofetch=tuple(outs.split(",")[2:]),
                    tol=loose(dtype) if dtype == "float32" else (1e-5, 3e-6))
    for dtype in FLOATS:
        for name, lengths in LENGTHS.items():
            yield one(name, lengths, 5, dtype)
            yield one(f"{name}_batched", lengths, 5, dtype, use_seq=False)
        yield one("reverse_state", LENGTHS["ragged"], 3, dtype, state=True, is_reverse=True)
        yield one("peepholes", LENGTHS["ragged"], 4, dtype, peepholes=True, state=True)
        yield one("peepholes_batched_reverse", LENGTHS["ragged"], 4, dtype, peepholes=True, is_reverse=True, use_seq=False)


@cases("multi_gru")
def _multi_gru(r, op):
    def one(name, lengths, m, sizes, bias=True, origin=False):
        ins = {"X": sequences(r, lengths, m), "WeightX": [], "WeightH": [], "Bias": []}
        for d in sizes:
            for _ in range(2):
                ins["WeightX"].append(r.f((m, 3 * d), -0.8, 0.8))
                ins["WeightH"].append(r.f((d, 3 * d), -0.8, 0.8))
                ins["Bias"].append(r.f((1, 3 * d)))
            m = 2 * d
        if not bias:
            del ins["Bias"]
        return Case(name, ins, "Hidden", {"layers": len(sizes), "origin_mode": origin, "activation": "tanh", "gate_activation": "sigmoid",
                                          "use_mkldnn": True, "mkldnn_data_type": "float32"}, tol=(1e-4, 1e-5))
    for name, lengths in LENGTHS.items():
        yield one(name, lengths, 4, [5])
        yield one(f"{name}_two_layers", lengths, 4, [5, 3])
    yield one("no_bias", LENGTHS["ragged"], 6, [4], bias=False)
    yield one("origin", LENGTHS["ragged"], 6, [4, 4], origin=True)
    yield one("three_layers_wide", LENGTHS["long"], 16, [16, 8, 16])


# ----------------------------------------------------------------------------
# What oneDNN fuses
# ----------------------------------------------------------------------------
ONEDNN = {"use_mkldnn": True, "mkldnn_data_type": "float32"}
ACTIVATIONS = {"relu": {}, "swish": {"fuse_alpha": 1.0}, "leaky_relu": {"fuse_alpha": 0.1}, "tanh": {}, "sigmoid": {}, "gelu_erf": {},
               "mish": {}, "relu6": {"fuse_beta": 6.0}, "hard_sigmoid": {"fuse_alpha": 0.2, "fuse_beta": 0.5},
               "hard_swish": {"fuse_alpha": 1 / 6, "fuse_beta": 0.5}}
MORE_ACTIVATIONS = {"abs": {}, "sqrt": {}, "gelu_tanh": {}, "clip": {"fuse_alpha": -0.5, "fuse_beta": 1.5}}


@cases("fused_elementwise_add", "fused_elementwise_sub", "fused_elementwise_mul", "fused_elementwise_div")
def _fused_elementwise(r, op):
    def one(name, x, y, **attrs):
        return Case(name, {"X": r.f(x, -2, 2), "Y": r.f(y, 0.5, 2)}, "Out", {**ONEDNN, "axis": -1, **attrs}, tol=(1e-4, 1e-5))
    yield one("plain", (2, 3, 4), (2, 3, 4))
    for name, given in ACTIVATIONS.items():
        yield one(name, (2, 3, 4), (2, 3, 4), fuse_activation=name, **given)
    yield one("row", (2, 3, 4), (4,), fuse_activation="relu", fused_output_scale=0.5)
    yield one("middle", (2, 3, 4), (3,), axis=1)
    yield one("wide_y", (2, 1, 4), (2, 3, 4))
    yield one("scales", (2, 3), (2, 3), scale_x=2.0, scale_y=3.0, scale_out=5.0, fuse_activation="tanh", fused_output_scale=0.25)
    yield one("unsqueezed", (2, 3), (2, 3), fused_unsqueeze2_axes=[1])
    yield one("unsqueezed_twice", (2, 3), (3,), fused_unsqueeze2_axes=[0, 3])
    for name, given in MORE_ACTIVATIONS.items():
        yield one(name, (2, 3, 4), (2, 3, 4), fuse_activation=name, **given)


@cases("fused_softplus")
def _fused_softplus(r, op):
    for beta in (1.0, 2.5):
        for name, given in {"": {}, **ACTIVATIONS}.items():
            yield Case(f"{name or 'plain'}_{beta}".replace(".", "_"), {"X": r.f((3, 7), -8, 8)}, "Out",
                       {**ONEDNN, "beta": beta, "threshold": 2.0, "fuse_activation": name, **given}, tol=(1e-4, 1e-5))


@cases("fused_transpose")
def _fused_transpose(r, op):
    for name, x, axis, attrs in (("plain", (2, 3, 4), [0, 2, 1], {}), ("scaled", (2, 3, 4, 5), [3, 1, 0, 2], {"scale": 0.5}),
                                 ("reshaped", (2, 3, 4), [2, 0, 1], {"fused_reshape2_shape": [4, -1]}),
                                 ("unsqueezed", (2, 3, 4), [1, 2, 0], {"fused_unsqueeze2_axes": [0, 2]}),
                                 ("squeezed", (1, 3, 1, 4), [1, 0], {"fused_squeeze2_axes": [0, 2]}),
                                 ("squeezed_reshaped", (2, 1, 3, 4), [2, 0, 1], {"fused_squeeze2_axes": [1], "fused_reshape2_shape": [2, 12]}),
                                 ("fp32", (3, 4), [1, 0], {"output_data_type": "fp32"})):
        yield Case(name, {"X": r.f(x)}, "Out,XShape", {**ONEDNN, "axis": axis, **attrs})


@cases("fused_fc_elementwise_layernorm")
def _fc_layernorm(r, op):
    def one(name, x, rows, width, begin, bias0=True, scale=True, bias1=True, act=""):
        w = r.f((int(np.prod(x[rows:])), width))
        y = r.f(x[:rows] + (width,))
        columns = int(np.prod(y.shape[begin:]))
        ins = {"X": r.f(x), "W": w, "Y": y}
        for given, slot, size in ((bias0, "Bias0", width), (scale, "Scale", columns), (bias1, "Bias1", columns)):
            if given:
                ins[slot] = r.f((size,), 0.5, 1.5)
        return Case(name, ins, "Out,Mean,Variance", {"x_num_col_dims": rows, "begin_norm_axis": begin, "epsilon": 1e-5, "activation_type": act},
                    tol=(1e-4, 1e-5))
    yield one("matrix", (3, 5), 1, 4, 1)
    yield one("batch", (2, 3, 5), 2, 8, 2, act="relu")
    yield one("two_columns", (3, 2, 5), 1, 6, 1, bias0=False)
    yield one("joined_rows", (2, 3, 5), 2, 4, 1, scale=False)
    yield one("bare", (2, 7), 1, 9, 1, bias0=False, scale=False, bias1=False)


@model("fused_fc_elementwise_layernorm")
def _fc_layernorm_model(case):
    v = {slot: x.astype("float64") for slot, x in case.ins.items()}
    y = v["X"].reshape(-1, v["W"].shape[0]) @ v["W"] + v.get("Bias0", 0)
    y = (np.maximum(y, 0) if case.attrs["activation_type"] else y).reshape(v["Y"].shape) + v["Y"]
    flat = y.reshape(int(np.prod(y.shape[:case.attrs["begin_norm_axis"]])), -1)
    mean, variance = flat.mean(1), flat.var(1)
    out = (flat - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5) * v.get("Scale", 1) + v.get("Bias1", 0)
    return {k: x.astype("float32") for k, x in (("Out", out.reshape(y.shape)), ("Mean", mean), ("Variance", variance))}


# ----------------------------------------------------------------------------
# Further ops
# ----------------------------------------------------------------------------
@cases("fill_any", gradient=True)
def _fill_any(r, op):
    for dtype in FLOATS + ("int32", "int64"):
        x = r.f((2, 3), dtype=dtype) if dtype in FLOATS else r.i((2, 3), -5, 5, dtype)
        yield Case(f"plain_{dtype}", {"X": x}, "Out", {"value": 3.0})
    yield Case("scalar", {"X": r.f(())}, "Out", {"value": -0.5})


@cases("crop", gradient=True)
def _crop(r, op):
    for dtype in FLOATS:
        x = r.f((4, 5, 6), dtype=dtype)
        yield Case(f"attrs_{dtype}", {"X": x}, "Out", {"shape": [2, 3, 4], "offsets": [1, 2, 0]})
        yield Case(f"of_y_{dtype}", {"X": x, "Y": r.f((3, 1, 2), dtype=dtype)}, "Out", {"offsets": [1, 0, 4]}, no_grad=("Y",))
        yield Case(f"offsets_{dtype}", {"X": x, "Offsets": np.array([0, 1, 2], "int32")}, "Out", {"shape": [4, 4, 4]})
    yield Case("vector", {"X": r.f((7,))}, "Out", {"shape": [3], "offsets": [4]})


@cases("match_matrix_tensor", gradient=True)
def _match_matrix_tensor(r, op):
    for name, of_x, of_y, width, slices in (("ragged", [3, 1, 4], [2, 5, 1], 3, 2), ("one", [4], [3], 5, 1),
                                            ("wide", [5, 2], [3, 6], 17, 4)):
        yield Case(name, {"X": sequences(r, of_x, width), "Y": sequences(r, of_y, width), "W": r.f((width, slices, width))}, "Out,Tmp",
                   {"dim_t": slices}, tol=(1e-4, 1e-5))


@cases("batch_fc", "batch_fc_grad")
def _batch_fc(r, op):
    for dtype in FLOATS:
        for name, s, b, i, o in (("plain", 2, 3, 4, 5), ("one_slot", 1, 2, 3, 1), ("wide", 3, 5, 17, 9)):
            ins = {"Input": r.f((s, b, i), dtype=dtype), "W": r.f((s, i, o), dtype=dtype), "Bias": r.f((s, o), dtype=dtype)}
            if op == "batch_fc_grad":
                ins["Out@GRAD"] = r.f((s, b, o), dtype=dtype)
            outs = "Out" if op == "batch_fc" else "Input@GRAD,W@GRAD,Bias@GRAD"
            yield Case(f"{name}_{dtype}", ins, outs, tol=loose(dtype))


@model("batch_fc")
def _batch_fc_model(case):
    return {"Out": case.ins["Input"] @ case.ins["W"] + case.ins["Bias"][:, None]}


@model("batch_fc_grad")
def _batch_fc_grad_model(case):
    x, w, grad = (case.ins[slot] for slot in ("Input", "W", "Out@GRAD"))
    return {"Input_GRAD": grad @ w.swapaxes(1, 2), "W_GRAD": x.swapaxes(1, 2) @ grad, "Bias_GRAD": grad.sum(1)}


@cases("similarity_focus")
def _similarity_focus(r, op):
    for dtype in FLOATS:
        for axis in (1, 2, 3):
            for name, indexes in (("one", [1]), ("two", [0, 2])):
                yield Case(f"{name}_axis{axis}_{dtype}", {"X": r.distinct((2, 3, 4, 5), dtype=dtype)}, "Out", {"axis": axis, "indexes": indexes})


@cases("graph_reindex")
def _graph_reindex(r, op):
    outs = "Reindex_Src,Reindex_Dst,Out_Nodes"
    for dtype in ("int32", "int64"):
        x, neighbors, count = np.array([0, 5, 2], dtype), np.array([8, 9, 0, 4, 7, 6, 7], dtype), np.array([2, 3, 2], "int32")
        yield Case(f"plain_{dtype}", {"X": x, "Neighbors": neighbors, "Count": count}, outs)
        yield Case(f"none_of_some_{dtype}", {"X": x, "Neighbors": neighbors[:4], "Count": np.array([0, 4, 0], "int32")}, outs)
        yield Case(f"twice_{dtype}", {"X": np.array([3, 1, 3], dtype), "Neighbors": neighbors, "Count": count}, outs)


@cases("rms_norm")
def _rms_norm(r, op):
    def one(name, x, begin, bias=False, residual=False, norm_bias=False, dtype="float32"):
        columns = (int(np.prod(x[begin:])),)
        ins = {"x": r.f(x, dtype=dtype), "norm_weight": r.f(columns, 0.5, 1.5, dtype)}
        for given, slot, shape in ((bias, "bias", columns), (residual, "residual", x), (norm_bias, "norm_bias", columns)):
            if given:
                ins[slot] = r.f(shape, dtype=dtype)
        return Case(f"{name}_{dtype}", ins, "out,residual_out" if residual else "out",
                    {"epsilon": 1e-5, "begin_norm_axis": begin, "quant_scale": -1.0, "quant_round_type": 0, "quant_max_bound": 0.0,
                     "quant_min_bound": 0.0}, tol=loose(dtype))
    for dtype in FLOATS:
        yield one("plain", (2, 3, 8), 2, dtype=dtype)
        yield one("all", (2, 3, 8), 2, True, True, True, dtype)
        yield one("residual", (4, 5), 1, residual=True, dtype=dtype)
        yield one("two_dims", (3, 2, 5), 1, norm_bias=True, dtype=dtype)


@model("rms_norm")
def _rms_norm_model(case):
    v = case.ins
    total = v["x"]
    if "residual" in v:
        total = total + v["residual"] + (v["bias"] if "bias" in v else 0)
    flat = total.reshape(-1, v["norm_weight"].size)
    scale = 1 / np.sqrt((flat * flat).mean(1, keepdims=True) + 1e-5)
    out = (flat * scale * v["norm_weight"] + v.get("norm_bias", 0)).reshape(v["x"].shape).astype(v["x"].dtype)
    return {"out": out, "residual_out": total} if "residual" in v else {"out": out}


@cases("depend")
def _depend(r, op):
    for dtype in FLOATS:
        yield Case(dtype, {"X": r.f((2, 3), dtype=dtype), "Dep": [r.f((1,)), r.f((2,))]}, "Out", alias={"Out": "X"})


# ----------------------------------------------------------------------------
def make_onednn_case(out, case):
    """The op with use_mkldnn, which block.append_op drops where the op does not declare it."""
    b, op, slots = build_without_kernel(case)
    b.fetch = [n for n in b.fetch if n not in g.NEVER_FETCH]
    blob, results = b.run()
    g.write_case(f"{out}/{case.op}/{case.name}", 0, case.op, case.name, blob, b.feeds, dict(zip(b.fetch, results)), slots,
                 g.visible_attrs(case.op, op), [case.op], *(case.tol or (1e-5, 1e-6)), "computed by oneDNN")


def make(out, case):
    if "use_mkldnn" in case.attrs and case.op != "multi_gru":
        make_onednn_case(out, case)
        return
    if case.op in MODELS:
        write_modelled_case(out, case, MODELS[case.op](case), "computed with NumPy: Paddle has no kernel for CPU")
        return
    g.make_forward_case(out, 0, case)
    first = g.array_of(next(iter(case.ins.values())))
    if case.op in GRADIENTS and first.dtype.kind == "f":
        g.make_grad_case(out, 0, g.Rng(0, f"fused/{case.op}/{case.name}"), case, case.op + "_grad")


def main():
    out, wanted = arguments(__doc__)
    right = (case for case in cases_of(CASES, "fused", wanted) if f"{case.op}/{case.name}" not in WRONG)
    make_all(out, right, make)


if __name__ == "__main__":
    sys.exit(main())
