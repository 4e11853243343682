#!/usr/bin/env python3
"""make_more_fused_cases.py - golden cases of attention, ops that Paddle has for GPUs alone, matching, and fused products.

    python make_more_fused_cases.py --out more_fused && ./pack.sh more_fused

Same needs and same format as make_goldens.py; more_fused.tar.xz beside this file is the result. Every case of an op of
GRADIENTS is also one of its gradient. Ops of MODELS have no kernel on CPU: their results are those of NumPy.
"""
import json
import struct
import sys

import make_goldens as g
import numpy as np
import paddle
from case_program import arguments, build_without_kernel, cases_of, make_all, register, write_modelled_case
from make_fused_cases import ACTIVATIONS, MORE_ACTIVATIONS, ONEDNN, lod, loose, make_onednn_case
from make_goldens import Case

CASES = []          # (op, function Rng -> Cases)
GRADIENTS = set()   # ops whose cases are also made of their gradients
cases = register(CASES, GRADIENTS)
MODELS = {}         # op -> function Case -> {output: array}
FLOATS = ("float32", "float64")


def model(op):
    def deco(fn):
        MODELS[op] = fn
        return fn
    return deco


# ----------------------------------------------------------------------------
# Matching and graphs
# ----------------------------------------------------------------------------
@cases("var_conv_2d", gradient=True)
def _var_conv(r, op):
    def one(name, heights, widths, channels=(2, 3), kernel=(3, 3), stride=(1, 1)):
        sizes = [channels[0] * h * w for h, w in zip(heights, widths)]
        attrs = dict(zip(("InputChannel", "OutputChannel", "KernelH", "KernelW", "StrideH", "StrideW"), (*channels, *kernel, *stride)))
        return Case(name, {"X": lod(r.f((sum(sizes), 1)), sizes), "ROW": lod(r.f((sum(heights), 1)), heights),
                           "COLUMN": lod(r.f((sum(widths), 1)), widths), "W": r.f((channels[1], channels[0] * kernel[0] * kernel[1]))},
                    "Out,Col", attrs, tol=loose("float32"), no_grad=("ROW", "COLUMN"))
    yield one("plain", [3, 1, 4], [2, 5, 3])
    yield one("strided", [5, 4], [6, 3], stride=(2, 3))
    yield one("even_kernel", [4, 2], [3, 5], kernel=(2, 4))
    yield one("wide_kernel", [2, 3], [2, 1], (1, 2), (5, 5))
    yield one("empty", [3, 0, 2], [2, 4, 0], (1, 1))
    yield one("point", [3], [4], (3, 1), (1, 1))


def murmur(key, seed):
    """MurmurHash3, x64, 128 bits, as two numbers."""
    mask, rotl = (1 << 64) - 1, lambda v, n: (v << n | v >> 64 - n) & (1 << 64) - 1
    a = b = seed
    c1, c2, size = 0x87c37b91114253d5, 0x4cf5ad432745937f, len(key)
    for i in range(0, size - 15, 16):
        k1, k2 = struct.unpack("<QQ", key[i:i + 16])
        a = (rotl(a ^ rotl(k1 * c1 & mask, 31) * c2 & mask, 27) + b) * 5 + 0x52dce729 & mask
        b = (rotl(b ^ rotl(k2 * c2 & mask, 33) * c1 & mask, 31) + a) * 5 + 0x38495ab5 & mask
    rest = key[size // 16 * 16:].ljust(16, b"\0")
    k1, k2 = struct.unpack("<QQ", rest)
    b ^= rotl(k2 * c2 & mask, 33) * c1 & mask
    a ^= rotl(k1 * c1 & mask, 31) * c2 & mask

    def mix(k):
        k = (k ^ k >> 33) * 0xff51afd7ed558ccd & mask
        k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53 & mask
        return k ^ k >> 33
    a, b = a ^ size, b ^ size
    a = a + b & mask
    b = b + a & mask
    a, b = mix(a), mix(b)
    a = a + b & mask
    return a, b + a & mask


def bloom(keys, bits=512, pairs=3):
    """A filter that has the runs of ids `keys`, as Paddle keeps it in floats."""
    vector = bytearray(bits // 8)
    for key in keys:
        for i in range(pairs):
            for value in murmur(np.array(key, "float32").tobytes(), i):
                bit = value % bits
                vector[bit >> 3] |= 1 << 7 - (bit & 7)
    return np.frombuffer(struct.pack("<QQQQ", 17070416, bits, pairs, len(keys)) + bytes(vector), "float32").reshape(-1, 1)


@cases("pyramid_hash")
def _pyramid_hash(r, op):
    lengths = [4, 1, 0, 6, 2]
    ids = r.i((sum(lengths), 1), 1, 9000, "int32")

    def one(name, white=(), black=(), **attrs):
        ins = {"X": lod(ids, lengths), "W": r.f((50 + 4, 1))}
        for slot, runs in (("White", white), ("Black", black)):
            ins[f"{slot}List"] = bloom(runs) if runs else np.zeros((1, 1), "float32")
            attrs[f"{slot.lower()}_list_len"] = len(ins[f"{slot}List"]) if runs else 0
        return Case(name, ins, "Out,DropPos,X_Temp_Out", {"num_emb": 12, "space_len": 50, "pyramid_layer": 4, "rand_len": 4, "seed": 3,
                                                           "drop_out_percent": 0.75, "is_training": 0, "use_filter": True, "lr": 0.1, **attrs},
                    nofetch=("DropPos",))
    yield one("plain")
    yield one("two_layers", pyramid_layer=2, drop_out_percent=1.0)
    yield one("long_runs", pyramid_layer=6, num_emb=4)
    yield one("training", is_training=1, drop_out_percent=0.4)
    flat = ids.ravel()
    runs = [flat[0:2], flat[1:4], flat[5:7], flat[6:10], flat[11:13]]
    yield one("white", white=runs)
    yield one("black", black=runs)
    yield one("white_and_black", white=runs, black=runs[:2])
    yield one("no_filter", white=runs, use_filter=False)


@cases("graph_khop_sampler")
def _khop(r, op):
    # All neighbors, so that nothing is random. In Paddle every hop has as many nodes as X.
    row, pointers = [3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7], [0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]
    for dtype in ("int32", "int64"):
        outs = "Out_Src,Out_Dst,Sample_Index,Reindex_X,Out_Eids"
        ins = {"Row": np.array(row, dtype), "Eids": np.arange(100, 113).astype(dtype), "Col_Ptr": np.array(pointers, dtype)}
        for name, x, sizes in (("one_hop", [8, 1, 2], [5]), ("repeated", [0, 0, 3], [9]), ("two_hops", [4, 2], [5, 5])):
            given = {**ins, "X": np.array(x, dtype)}
            yield Case(f"{name}_eids_{dtype}", given, outs, {"sample_sizes": sizes, "return_eids": True})
            yield Case(f"{name}_{dtype}", {k: v for k, v in given.items() if k != "Eids"}, outs,
                       {"sample_sizes": sizes, "return_eids": False}, nofetch=("Out_Eids",))


# ----------------------------------------------------------------------------
# Attention
# ----------------------------------------------------------------------------
def attention(q, k, v, mask, ahead, scale):
    """Of [batch, length, heads, width]; the result, the weights and the logarithms of the sums."""
    repeat = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeat, 2), np.repeat(v, repeat, 2)
    scores = np.einsum("bihd,bjhd->bhij", q, k) * scale
    if mask is not None:
        scores = scores + mask
    if ahead is not None:
        i, j = np.indices(scores.shape[2:])
        scores = np.where(j > i + ahead, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    e = np.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    with np.errstate(divide="ignore"):
        logs = (np.log(total) + top)[..., 0]
    cast = lambda a: np.ascontiguousarray(a.astype(q.dtype))
    return cast(np.einsum("bhij,bjhd->bihd", weights, v)), cast(weights), cast(logs)


def heads(r, dtype, names, batch=2, queries=5, keys=5, count=4, shared=4, width=6, values=6):
    return dict(zip(names, (r.f((batch, queries, count, width), dtype=dtype), r.f((batch, keys, shared, width), dtype=dtype),
                            r.f((batch, keys, shared, values), dtype=dtype))))


@cases("flash_attn")
def _flash(r, op):
    for dtype in FLOATS:
        base = {"dropout": 0.0, "causal": False, "return_softmax": False, "is_test": True, "rng_name": ""}
        for name, sizes, attrs in (("plain", {}, {}), ("causal", {}, {"causal": True}), ("grouped", {"shared": 2}, {"causal": True}),
                                   ("longer_keys", {"keys": 8}, {"causal": True}), ("longer_queries", {"keys": 3}, {"causal": True}),
                                   ("weights", {"keys": 7}, {"return_softmax": True}), ("dropout_of_test", {}, {"dropout": 0.5})):
            for mask in (None, (2, 4), (2, 1)) if name in ("plain", "weights") else (None,):
                ins = heads(r, dtype, "qkv", **sizes)
                if mask:
                    ins["attn_mask"] = r.f((*mask, 5, ins["k"].shape[1]), dtype=dtype)
                yield Case(f"{name}{'' if mask is None else f'_mask{mask[1]}'}_{dtype}", ins, "out,softmax,softmax_lse,seed_offset",
                           {**base, **attrs}, tol=loose(dtype))


@model("flash_attn")
def _flash_model(case):
    q, k, v = (case.ins[n] for n in "qkv")
    out, weights, logs = attention(q, k, v, case.ins.get("attn_mask"), k.shape[1] - q.shape[1] if case.attrs["causal"] else None,
                                   q.shape[3] ** -0.5)
    return {"out": out, "softmax": weights if case.attrs["return_softmax"] else np.zeros((0,), q.dtype), "softmax_lse": logs,
            "seed_offset": np.zeros(2, "int64")}


@cases("memory_efficient_attention")
def _efficient(r, op):
    for dtype in FLOATS:
        for name, sizes, bias, attrs in (("plain", {}, None, {}), ("bias", {"keys": 7}, (2, 4), {}), ("one_bias", {}, (1, 1), {}),
                                         ("causal", {"keys": 8, "values": 3}, None, {"causal": True}), ("scale", {}, None, {"scale": 0.7})):
            ins = heads(r, dtype, ("query", "key", "value"), **sizes)
            if bias:
                ins["bias"] = r.f((*bias, 5, ins["key"].shape[1]), dtype=dtype)
            yield Case(f"{name}_{dtype}", ins, "output,logsumexp,seed_and_offset",
                       {"causal": False, "dropout_p": 0.0, "scale": -1.0, "is_test": True, **attrs}, tol=loose(dtype))


@model("memory_efficient_attention")
def _efficient_model(case):
    q, k, v = (case.ins[n] for n in ("query", "key", "value"))
    scale = case.attrs["scale"] if case.attrs["scale"] > 0 else q.shape[3] ** -0.5
    out, _, logs = attention(q, k, v, case.ins.get("bias"), 0 if case.attrs["causal"] else None, scale)
    return {"output": out, "logsumexp": logs, "seed_and_offset": np.zeros(2, "int64")}


@cases("fused_rotary_position_embedding")
def _rotary(r, op):
    for dtype in FLOATS:
        for neox in (True, False):
            for name, count, tables, ids in (("plain", 3, False, False), ("tables", 2, True, False), ("positions", 2, True, True), ("q", 1, False, False)):
                ins = {n: r.f((2, 5, 3 if n == "q" else 2, 8), dtype=dtype) for n in "qkv"[:count]}
                if tables:
                    angle = np.repeat(np.outer(np.arange(7), 10000 ** -(np.arange(0, 8, 2) / 8)), 2, 1)
                    rows = angle[:7 if ids else 5].astype(dtype)[None, :, None]
                    ins.update(sin=np.sin(rows), cos=np.cos(rows))
                if ids:
                    ins["position_ids"] = r.i((2, 5), 0, 6)
                yield Case(f"{name}_{'neighbors' if neox else 'halves'}_{dtype}", ins, ",".join(f"out_{n}" for n in "qkv"[:count]),
                           {"use_neox_rotary_style": neox}, tol=loose(dtype))


@model("fused_rotary_position_embedding")
def _rotary_model(case):
    v, results = case.ins, {}
    places = v.get("position_ids", np.tile(np.arange(5), (2, 1)))
    if "sin" in v:
        sin, cos = (v[n].reshape(-1, 8)[places] for n in ("sin", "cos"))
    else:
        angle = places[..., None] / 10000 ** (np.arange(8) // 2 * 2 / 8)
        sin, cos = np.sin(angle), np.cos(angle)
    for n in "qkv":
        if n not in v:
            continue
        x = v[n].astype("float64")
        if case.attrs["use_neox_rotary_style"]:
            turned = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
        else:
            turned = np.concatenate([-x[..., 4:], x[..., :4]], -1)
        results[f"out_{n}"] = (x * cos[:, :, None] + turned * sin[:, :, None]).astype(v[n].dtype)
    return results


# ----------------------------------------------------------------------------
# What oneDNN fuses into products
# ----------------------------------------------------------------------------
@cases("fused_matmul")
def _fused_matmul(r, op):
    def one(name, x, y, residual=None, **attrs):
        ins = {"X": r.f(x), "Y": r.f(y)}
        if residual:
            ins["ResidualData"] = r.f(residual)
        base = {"trans_x": False, "trans_y": False, "matmul_alpha": 1.0, "fused_output_scale": 1.0, "fuse_activation": ""}
        return Case(name, ins, "Out", {**ONEDNN, **base, **attrs}, tol=(1e-4, 1e-5))
    yield one("residual", (2, 3, 4), (2, 4, 5), (2, 3, 5))
    yield one("residual_row", (2, 2, 3, 4), (2, 2, 4, 5), (2, 1, 1, 5), matmul_alpha=0.5)
    yield one("scale", (3, 4), (4, 5), fused_output_scale=0.3)
    yield one("residual_scale_tanh", (3, 4), (4, 5), (3, 5), fused_output_scale=2.5, fuse_activation="tanh")
    yield one("heads", (2, 5, 12), (2, 5, 12), (2, 1, 1, 5), trans_y=True, matmul_alpha=0.5,
              **{f"fused_{k}_{n}": v for n in "XY" for k, v in (("reshape", [0, 0, 3, 4]), ("transpose", [0, 2, 1, 3]))})
    yield one("values", (2, 3, 5, 5), (2, 5, 12), fused_reshape_Y=[0, 0, 3, 4], fused_transpose_Y=[0, 2, 1, 3])
    yield one("joined", (2, 3, 5, 5), (2, 3, 5, 4), fused_transpose_Out=[0, 2, 1, 3], fused_reshape_Out=[0, 0, 12])
    for name, given in {**ACTIVATIONS, **MORE_ACTIVATIONS}.items():
        yield one(name, (3, 4), (4, 5), fuse_activation=name, **given)
        yield one(f"residual_{name}", (3, 4), (4, 5), (3, 5), fuse_activation=name, **given)


@cases("fc")
def _fc(r, op):
    # Without ResidualData, which Paddle's kernel does not read by itself.
    def one(name, **attrs):
        return Case(name, {"Input": r.f((3, 4)), "W": r.f((4, 5)), "Bias": r.f((5,))}, "Out",
                    {**ONEDNN, "in_num_col_dims": 1, "activation_type": "", **attrs}, tol=(1e-4, 1e-5))
    yield one("scale", fused_output_scale=0.3)
    yield one("relu_scale", activation_type="relu", fused_output_scale=0.3)
    yield one("tanh_scale", fuse_activation="tanh", fused_output_scale=2.5)
    yield one("reshaped", fused_reshape2_shape=[5, -1])
    yield one("scale_reshaped", fused_output_scale=0.25, fused_reshape2_shape=[1, 3, 5])
    for name, given in {**ACTIVATIONS, **MORE_ACTIVATIONS}.items():
        yield one(f"onednn_{name}", fuse_activation=name, **given)


@cases("fused_conv2d")
def _fused_conv(r, op):
    for name, given in MORE_ACTIVATIONS.items():
        for kernel in (1, 3):
            yield Case(f"{name}_{kernel}", {"Input": r.f((1, 4, 6, 6)), "Filter": r.f((8, 4, kernel, kernel)), "Bias": r.f((8,))}, "Output",
                       {**ONEDNN, "strides": [1, 1], "paddings": [kernel // 2] * 2, "dilations": [1, 1], "groups": 1, "data_format": "NCHW",
                        "padding_algorithm": "EXPLICIT", "fuse_activation": name, **given}, tol=(1e-4, 1e-5))


# Programs that Paddle has converted for oneDNN in bfloat16: an input is quantised to it, and a dequantize follows, unless
# the product gives float32 itself. A name without "quantised" leaves the input as float32, which Paddle converts.
BFLOAT16 = {"use_mkldnn": True, "mkldnn_data_type": "bfloat16"}
WINDOW = {"strides": [1, 1], "paddings": [1, 1], "dilations": [1, 1], "groups": 1, "data_format": "NCHW", "padding_algorithm": "EXPLICIT"}


@cases("fc", "fused_matmul", "fused_conv2d")
def _bfloat16(r, op):
    def one(name, **attrs):
        ins, out, base = {
            "fc": ({"Input": r.f((3, 4)), "W": r.f((4, 5)), "Bias": r.f((5,))}, "Out", {"in_num_col_dims": 1, "activation_type": ""}),
            "fused_matmul": ({"X": r.f((3, 4)), "Y": r.f((4, 5))}, "Out", {"trans_x": False, "trans_y": False, "matmul_alpha": 1.0}),
            "fused_conv2d": ({"Input": r.f((1, 4, 6, 6)), "Filter": r.f((8, 4, 3, 3)), "Bias": r.f((8,))}, "Output", WINDOW)}[op]
        return Case(name, ins, out, {**BFLOAT16, **base, **attrs}, tol=(2e-2, 4e-2))
    yield one("bfloat16_quantised")
    if op in ("fc", "fused_conv2d"):
        yield one("bfloat16_quantised_forced", force_fp32_output=True)
    if op == "fused_conv2d":
        yield one("bfloat16")


def make_bfloat16_case(out, case):
    """The product with what Paddle's passes put around it."""
    b, op, slots = build_without_kernel(case)
    result, types = b.fetch[0], [case.op]
    operands = list(b.feeds)[:2 if case.op == "fused_matmul" else 1] if "quantised" in case.name else []
    for name in operands:
        b.output(f"{name}_quantised", "uint16")
        op._rename_input(name, f"{name}_quantised")
        add_rescale(b.block.desc._prepend_op(), "quantize", name, f"{name}_quantised")
        types.insert(0, "quantize")
    if "forced" not in case.name:
        b.output("product", "uint16")
        op._rename_output(result, "product")
        add_rescale(b.block.desc.append_op(), "dequantize", "product", result)
        types.append("dequantize")
    blob, results = b.run()
    g.write_case(f"{out}/{case.op}/{case.name}", 0, case.op, case.name, blob, b.feeds, dict(zip(b.fetch, results)), slots,
                 g.visible_attrs(case.op, op), types, *case.tol, "computed by oneDNN")


def add_rescale(op, kind, source, target):
    op.set_type(kind)
    op.set_input("Input", [source])
    op.set_output("Output", [target])
    op._set_bool_attr("bfloat16", True)
    op._set_bool_attr("use_mkldnn", True)
    op._set_attr("Scale", 1.0)
    op._set_attr("Shift", 0.0)
    op._set_attr("output_format", "NCHW")



@cases("fused_conv3d")
def _fused_conv3d(r, op):
    def one(name, residual=False, **attrs):
        ins = {"Input": r.f((1, 4, 3, 4, 5)), "Filter": r.f((6, 4, 3, 3, 3)), "Bias": r.f((6,))}
        if residual:
            ins["ResidualData"] = r.f((1, 6, 3, 4, 5))
        return Case(name, ins, "Output", {**ONEDNN, "strides": [1, 1, 1], "paddings": [1, 1, 1], "dilations": [1, 1, 1], "groups": 1,
                                          "data_format": "NCDHW", "padding_algorithm": "EXPLICIT", "fuse_activation": "",
                                          "fuse_residual_connection": residual, **attrs}, tol=(1e-4, 1e-5))
    yield one("bias")
    yield one("residual", True)
    for name, given in {**ACTIVATIONS, **MORE_ACTIVATIONS}.items():
        yield one(name, fuse_activation=name, **given)
    yield one("residual_relu", True, fuse_activation="relu")


# ----------------------------------------------------------------------------
# Layers
# ----------------------------------------------------------------------------
@cases("self_dp_attention")
def _self_dp_attention(r, op):
    for dtype in FLOATS:
        for name, shape, alpha in (("heads", (2, 8, 3, 4, 16), 0.25), ("one_head", (2, 33, 3, 1, 32), 0.2), ("odd", (1, 5, 3, 2, 7), 1.0),
                                   ("one_step", (3, 1, 3, 2, 4), 0.5)):
            # Paddle computes exponentials in float for float64, too.
            yield Case(f"{name}_{dtype}", {"X": r.f(shape, dtype=dtype)}, "Out", {"alpha": alpha, "head_number": shape[3]}, tol=(1e-5, 2e-6))


@cases("fused_dropout_add")
def _dropout_add(r, op):
    for dtype in FLOATS:
        for name, attrs in (("test", {"p": 0.3, "is_test": True}), ("test_downgraded", {"p": 0.3, "is_test": True, "mode": "downgrade_in_infer"}),
                            ("nothing_dropped", {"p": 0.0, "is_test": False})):
            yield Case(f"{name}_{dtype}", {"x": r.f((2, 3, 4), dtype=dtype), "y": r.f((2, 3, 4), dtype=dtype)}, "out",
                       {"mode": "upscale_in_train", "seed": 0, "fix_seed": False, **attrs})


@model("fused_dropout_add")
def _dropout_add_model(case):
    factor = 1 - float(np.float32(case.attrs["p"])) if case.attrs["mode"] == "downgrade_in_infer" else 1
    return {"out": (case.ins["x"] * np.array(factor, case.ins["x"].dtype) + case.ins["y"]).astype(case.ins["x"].dtype)}


@cases("fused_bias_dropout_residual_layer_norm")
def _bias_dropout(r, op):
    for dtype in FLOATS:
        for name, slots in (("all", ("Bias", "LnScale", "LnBias")), ("plain", ()), ("norm", ("LnScale", "LnBias"))):
            ins = {"X": r.f((2, 3, 8), dtype=dtype), "Residual": r.f((2, 3, 8), dtype=dtype), **{s: r.f((8,), 0.5, 1.5, dtype) for s in slots}}
            yield Case(f"{name}_{dtype}", ins, "Y,BiasDropoutResidualOut,LnMean,LnVariance",
                       {"dropout_rate": 0.4, "is_test": True, "dropout_fix_seed": False, "dropout_seed": 0,
                        "dropout_implementation": "upscale_in_train", "ln_epsilon": 1e-4}, tol=loose(dtype))


@model("fused_bias_dropout_residual_layer_norm")
def _bias_dropout_model(case):
    v = case.ins
    total = v["X"] + v.get("Bias", 0) + v["Residual"]
    mean, variance = total.mean(-1), total.var(-1)
    y = (total - mean[..., None]) / np.sqrt(variance[..., None] + 1e-4) * v.get("LnScale", 1) + v.get("LnBias", 0)
    dtype = v["X"].dtype
    return {"Y": y.astype(dtype), "BiasDropoutResidualOut": total.astype(dtype), "LnMean": mean.ravel().astype(dtype),
            "LnVariance": variance.ravel().astype(dtype)}


@cases("cudnn_lstm")
def _cudnn_lstm(r, op):
    for dtype in FLOATS:
        for name, layers, both, lists, lengths in (("one", 1, False, False, None), ("both_ways", 2, True, False, None),
                                                   ("list", 2, False, True, None), ("lengths", 1, True, True, [4, 2, 3])):
            ways, width, hidden = 2 if both else 1, 5, 3
            shapes = [s for i in range(layers) for _ in range(ways)
                      for s in ((4 * hidden, width if i == 0 else hidden * ways), (4 * hidden, hidden))]
            parts = [r.f(s, -0.7, 0.7, dtype) for s in shapes + [(4 * hidden,)] * len(shapes)]
            ins = {"Input": r.f((4, 3, width), dtype=dtype)}
            ins.update({n: r.f((layers * ways, 3, hidden), dtype=dtype) for n in ("InitH", "InitC")})
            ins.update({"WeightList": parts} if lists else {"W": np.concatenate([p.ravel() for p in parts])})
            if lengths:
                ins["SequenceLength"] = np.array(lengths, "int32")
            case = Case(f"{name}_{dtype}", ins, "Out,LastH,LastC", {"is_bidirec": both, "input_size": width, "hidden_size": hidden,
                                                                     "num_layers": layers, "is_test": True, "dropout_prob": 0.0, "seed": 0},
                        tol=loose(dtype))
            case.parts = parts
            yield case


@model("cudnn_lstm")
def _cudnn_lstm_model(case):
    """What Paddle's rnn gives."""
    v, a = case.ins, case.attrs
    rnn = Case("rnn", {"Input": v["Input"], "PreState": [v["InitH"], v["InitC"]], "WeightList": case.parts,
                       **({"SequenceLength": v["SequenceLength"]} if "SequenceLength" in v else {})},
               {"Out": 1, "State": 2, "Reserve": 1, "DropoutState": 1}, {**{k: a[k] for k in a}, "mode": "LSTM"}, op="rnn")
    b, *_ = g.build_forward(rnn)
    b.fetch = ["Out", "State_0", "State_1"]
    _, results = b.run()
    return dict(zip(("Out", "LastH", "LastC"), (array for array, _ in results)))


@cases("correlation")
def _correlation(r, op):
    for dtype in FLOATS:
        for name, shape, values in (("plain", (2, 3, 6, 7), (4, 1, 4, 1, 1)), ("strided", (1, 2, 9, 8), (3, 3, 2, 2, 2)),
                                    ("window", (1, 2, 7, 7), (2, 3, 1, 1, 1)), ("no_padding", (1, 1, 6, 6), (0, 1, 1, 1, 1))):
            yield Case(f"{name}_{dtype}", {"Input1": r.f(shape, dtype=dtype), "Input2": r.f(shape, dtype=dtype)}, "Output",
                       {**dict(zip(("pad_size", "kernel_size", "max_displacement", "stride1", "stride2"), values)), "corr_type_multiply": 1},
                       tol=loose(dtype))


def displacements(case, gradient=None):
    """The result, or with that of Output the gradients of both images."""
    pad, kernel, most, stride, step = (case.attrs[n] for n in ("pad_size", "kernel_size", "max_displacement", "stride1", "stride2"))
    one, two = (np.pad(case.ins[f"Input{i}"], ((0, 0), (0, 0), (pad, pad), (pad, pad))) for i in (1, 2))
    n, c, h, w = one.shape
    rad, steps = (kernel - 1) // 2, most // step
    ys, xs = (range(most, most + int(np.ceil((s - 2 * (most + rad)) / stride)) * stride, stride) for s in (h, w))
    wide = lambda a: np.pad(a, ((0, 0), (0, 0), (rad, rad), (rad, rad)))
    one, two = wide(one), wide(two)
    out = np.zeros((n, (2 * steps + 1) ** 2, len(ys), len(xs)))
    grads = np.zeros(one.shape), np.zeros(one.shape)
    for d, (dy, dx) in enumerate((j * step, i * step) for j in range(-steps, steps + 1) for i in range(-steps, steps + 1)):
        for a, y in enumerate(ys):
            for b, x in enumerate(xs):
                first = np.s_[:, :, y:y + 2 * rad + 1, x:x + 2 * rad + 1]
                second = np.s_[:, :, y + dy:y + dy + 2 * rad + 1, x + dx:x + dx + 2 * rad + 1]
                out[:, d, a, b] = (one[first] * two[second]).sum((1, 2, 3)) / (kernel * kernel * c)
                if gradient is not None:
                    factor = gradient[:, d, a, b].reshape(n, 1, 1, 1) / (kernel * kernel * c)
                    grads[0][first] += factor * two[second]
                    grads[1][second] += factor * one[first]
    inner = np.s_[:, :, pad + rad:h - pad + rad, pad + rad:w - pad + rad]
    return out if gradient is None else tuple(np.ascontiguousarray(grad[inner]) for grad in grads)


@model("correlation")
def _correlation_model(case):
    return {"Output": displacements(case).astype(case.ins["Input1"].dtype)}


@cases("correlation_grad")
def _correlation_grad(r, op):
    for case in _correlation(r, op):
        case.ins["Output@GRAD"] = r.f(displacements(case).shape, dtype=case.ins["Input1"].dtype.name)
        yield Case(case.name, case.ins, "Input1@GRAD,Input2@GRAD", case.attrs, tol=case.tol)


@model("correlation_grad")
def _correlation_grad_model(case):
    grads = displacements(case, case.ins["Output@GRAD"])
    return {f"Input{i + 1}_GRAD": grad.astype(case.ins["Input1"].dtype) for i, grad in enumerate(grads)}


# ----------------------------------------------------------------------------
# Weights of 8 and 4 bits
# ----------------------------------------------------------------------------
@cases("weight_quantize")
def _weight_quantize(r, op):
    def one(name, shape, algo="weight_only_int8", arch=80):
        # Scales are powers of 2: where Paddle rounds to float16 on a CPU, it cuts off.
        most = (7 if algo.endswith("4") else 127) * 2.0 ** -(np.arange(shape[1]) % 3 + (2 if algo.endswith("4") else 6))
        x = np.clip(r.f(shape), -most, most).astype("float16")
        x[5] = np.where(np.arange(shape[1]) % 2, most, -most)
        x[:, 3] = 0
        return Case(name, {"x": x}, "out,scale", {"algo": algo, "arch": arch}, tol=(0, 0))
    yield one("int8", (64, 32))
    yield one("int8_tiles", (192, 48), arch=75)
    yield one("int8_rows", (64, 32), arch=70)
    yield one("int4", (64, 32), "weight_only_int4")
    yield one("int4_tiles", (192, 48), "weight_only_int4", 86)
    yield one("int4_rows", (64, 32), "weight_only_int4", 70)
    yield one("llm", (64, 32), "llm.int8")


def quantized(weights, algo, arch):
    """What Paddle's weight_quantize makes of weights of float16, and the real values that it stands for."""
    paddle.disable_static()
    whole, scale = (t.numpy() for t in paddle.nn.quant.weight_quantize(paddle.to_tensor(weights), algo, arch))
    paddle.enable_static()
    most = 7 if algo.endswith("4") else 127
    quotient = weights.astype("float32") / scale.astype("float32")
    points = np.clip(np.trunc(quotient + np.copysign(0.5, quotient)), -most, most)
    return whole, scale, points * scale.astype("float32")


@cases("weight_dequantize")
def _weight_dequantize(r, op):
    for algo in ("weight_only_int8", "weight_only_int4", "llm.int8"):
        whole, scale, real = quantized(r.f((128, 32), dtype="float16"), algo, 80)
        attrs = {"algo": algo}
        for dtype in ("float16", "float32"):
            attrs["out_dtype"] = {"float16": 4, "float32": 5}[dtype]
            scale = scale.astype(dtype)
            name = algo.replace(".", "_") + ("" if dtype == "float16" else "_float32")
            case = Case(name, {"x": whole, "scale": scale}, "out", dict(attrs), tol=(0, 0))
            case.real = real
            yield case


@model("weight_dequantize")
def _weight_dequantize_model(case):
    scale = case.ins["scale"]
    points = np.round(case.real / scale.astype("float32"))
    return {"out": (points * scale.astype("float32")).astype(scale.dtype)}


@cases("weight_only_linear")
def _weight_only_linear(r, op):
    def one(name, rows, shape=(128, 48), dtype="int8", arch=80, bias=True):
        whole, scale, real = quantized(r.f(shape, dtype="float16"), f"weight_only_{dtype}", arch)
        ins = {"x": r.f((*rows, shape[0])), "weight": whole, "weight_scale": scale.astype("float32")}
        if bias:
            ins["bias"] = r.f((shape[1],))
        case = Case(name, ins, "out", {"weight_dtype": dtype, "arch": arch}, tol=(1e-5, 1e-5))
        case.real = real
        return case
    yield one("int8", (2, 3))
    yield one("int8_one_row", (1,), bias=False)
    yield one("int8_deep", (5,), (576, 16))
    yield one("int8_rows", (2, 3), arch=70)
    yield one("int4", (2, 3), dtype="int4")
    yield one("int4_many_rows", (40,), (64, 112), dtype="int4", arch=86)
    yield one("int4_rows", (3,), dtype="int4", arch=70)


@model("weight_only_linear")
def _weight_only_linear_model(case):
    out = case.ins["x"].astype("float64") @ case.real.astype("float64") + case.ins.get("bias", 0)
    return {"out": out.astype("float32")}


# ----------------------------------------------------------------------------
def widen(out, op, name):
    """A copy of a case of float32, which is all that Paddle has, as float64."""
    folder = f"{out}/{op}/{name}"
    with open(f"{folder}/case.json") as f:
        old = json.load(f)
    wide = lambda file: np.load(f"{folder}/{file}").astype("float64")
    given = {n: lod_of(wide(file), old["lod"].get(n)) for n, file in old["feeds"].items()}
    fetched = {n: lod_of(wide(file), old["lod"].get(f"out:{n}")) for n, file in old["fetches"].items()}
    slots = lambda kind: {s: [n for n in names if n in (given if kind == "inputs" else fetched)] for s, names in old["slots"][kind].items()}
    ins = {s: given[names[0]] for s, names in slots("inputs").items() if names}
    outs = {s: 1 for s, names in slots("outputs").items() if names}
    case = Case(f"{name}_float64", ins, outs, old["attrs"], op=op, tol=(old["rtol"], old["atol"]))
    results = {g.safe(s): fetched[names[0]] for s, names in slots("outputs").items() if names}
    write_modelled_case(out, case, results, "what Paddle computed as float32")


def lod_of(array, offsets):
    return g.LoD(array, offsets) if offsets else array


# ----------------------------------------------------------------------------
def make(out, case):
    if case.name.startswith("bfloat16"):
        make_bfloat16_case(out, case)
        return
    if "use_mkldnn" in case.attrs:
        make_onednn_case(out, case)
        return
    if case.op in MODELS:
        write_modelled_case(out, case, MODELS[case.op](case), "computed with NumPy: Paddle has no kernel for CPU")
        return
    g.make_forward_case(out, 0, case)
    if case.op in GRADIENTS:
        g.make_grad_case(out, 0, g.Rng(0, f"more_fused/{case.op}/{case.name}"), case, case.op + "_grad")
        for op in (case.op, case.op + "_grad"):
            widen(out, op, case.name)


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "more_fused", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
