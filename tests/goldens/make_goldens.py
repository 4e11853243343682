#!/usr/bin/env python3
"""make_goldens.py - reference ("golden") data for Paddle operators and programs.

    python make_goldens.py --out DIR --seed N [--ops conv2d,relu_grad,programs/mlp_sgd]
    python make_goldens.py --check DIR        # replay DIR with Paddle, compare
    ./pack.sh DIR                             # DIR.tar.xz, as kept beside this file

The tests never run this program: they read set_a.tar.xz, made with --seed 1.

Needs:  pip install paddlepaddle==2.6.2 "numpy<2"      (CPU build)

Every case is a tiny static ProgramDesc that holds the op under test plus
feed/fetch ops.  It is built with block.append_op (legacy op names, slots and
attributes), serialised, parsed back and run by paddle.static.Executor on CPU.
A case is one folder DIR/<op_type>/<case_name>/ - see README.md for the format.

How this file is organised
  1. runtime   : building, running and writing one case
  2. registry  : @gen("op_type") generators yield Case objects
  3. forward ops, grouped by family
  4. gradient ops, derived from forward cases through Paddle's own grad makers
  5. programs  : whole training programs (startup/main, 5 steps)
  6. check     : replays a written set from its files
  7. main

All random choices of an op come from (seed, op name), so --ops gives the same
cases as a full run.
"""
import os
import sys

from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

# One thread, no run-to-run variation.  Must be set before paddle is imported.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", MKL_CBWR="COMPATIBLE",
                  OPENBLAS_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="",
                  GLOG_minloglevel="2", FLAGS_new_executor_serial_run="1",
                  FLAGS_use_mkldnn="0", FLAGS_call_stack_level="0")

import argparse
import glob
import json
import re
import shutil
import warnings
import zlib
from dataclasses import dataclass, field

import numpy as np
import paddle
from paddle.base import core
from paddle.base.framework import OpProtoHolder
from paddle.static.io import append_fetch_ops, prepend_feed_ops

warnings.filterwarnings("ignore")
paddle.enable_static()
EXE = paddle.static.Executor(paddle.CPUPlace())

# VarType.Type codes used in dtype attributes
BOOL, INT16, INT32, INT64, FP16, FP32, FP64, UINT8, INT8 = 0, 1, 2, 3, 4, 5, 6, 20, 21
DTYPE_CODE = {"bool": BOOL, "int16": INT16, "int32": INT32, "int64": INT64,
              "float16": FP16, "float32": FP32, "float64": FP64,
              "uint8": UINT8, "int8": INT8, "complex64": 23, "complex128": 24}


# ----------------------------------------------------------------------------
# 1. runtime: build, run and write one case
# ----------------------------------------------------------------------------
@dataclass
class LoD:
    """A fed value that carries a level of detail (offset form: [[0, 2, 5]])."""
    array: np.ndarray
    lod: list


@dataclass
class Case:
    """One op invocation.

    ins    slot -> array | LoD | list of those
    outs   slot -> number of variables; or a string "Out,XShape" (one each)
    alias  output slot -> input slot whose variable it reuses (in-place ops)
    nofetch  output slots that are produced but not recorded
    """
    name: str
    ins: dict
    outs: object
    attrs: dict = field(default_factory=dict)
    op: str = None
    alias: dict = field(default_factory=dict)
    nofetch: tuple = ()
    tol: tuple = None            # (rtol, atol) override
    notes: str = ""
    dyn: bool = False            # declare the leading dimension of feeds as -1
    # used only when the case serves as the base of a gradient case
    no_grad: tuple = ()          # input slots that get no gradient
    override: dict = field(default_factory=dict)  # forward outputs replaced by given arrays

    def out_counts(self):
        if isinstance(self.outs, str):
            return {s.strip(): 1 for s in self.outs.split(",")}
        return dict(self.outs)


# Outputs with no defined content (shape carriers, workspaces).
NEVER_FETCH = {"XShape", "Reserve", "ReserveSpace", "DropoutState", "StepScopes"}

# Ops whose float32 result depends on summation order or on a polynomial
# approximation; everything else is held to rtol 1e-5.
LOOSE = re.compile(r"conv|matmul|^mul|bmm|norm|rnn|pool|softmax|reduce|mean|^sum|interp|"
                   r"cumsum|grid_sampler|roi_align|lamb|adam|gelu|erf|mish|cross_entropy|"
                   r"deformable|quantize|nms|l2_norm")


def tolerance(op, arrays):
    kinds = {a.dtype.name for a in arrays if a.dtype.kind == "f"}
    if not kinds:
        return 0.0, 0.0
    if "float16" in kinds:
        return 4e-3, 2e-3
    if kinds == {"float64"}:
        return 1e-7, 1e-8
    rtol, atol = (1e-4, 1e-5) if LOOSE.search(op) else (1e-5, 1e-6)
    # Cancellation leaves an error relative to the largest value, not to the result.
    top = max([float(np.abs(a).max()) for a in arrays if a.dtype == "float32" and a.size and np.isfinite(a).all()] or [0])
    return rtol, float(f"{max(atol, 5e-7 * top):.1e}") if top < 1e6 else atol


def as_list(v):
    return list(v) if isinstance(v, (list, tuple)) else [v]


def safe(name):
    """A variable name that is also a file name ('x@GRAD' -> 'x_GRAD')."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)


def coerce_attrs(op, attrs):
    """Give Python numbers the exact type the OpProto asks for (1 -> 1.0 for FLOAT)."""
    proto = OpProtoHolder.instance().op_proto_map.get(op)
    types = {a.name: a.type for a in proto.attrs} if proto else {}
    FLOAT, FLOATS, FLOAT64S = 1, 4, 12
    out = {}
    for k, v in attrs.items():
        if types.get(k) == FLOAT:
            v = float(v)
        elif types.get(k) in (FLOATS, FLOAT64S):
            v = [float(x) for x in v]
        elif isinstance(v, (list, tuple)):
            v = [x.item() if isinstance(x, np.generic) else x for x in v]
        elif isinstance(v, np.generic):
            v = v.item()
        out[k] = v
    return out


class Unsupported(Exception):
    pass


def short_error(e):
    """The one line of a Paddle exception that says what is wrong."""
    lines = [l.strip() for l in str(e).splitlines() if l.strip()]
    picked = [l for l in lines if re.search(r"Error:|not (been )?(registered|supported|found|implemented)", l)]
    return re.sub(r"\s+", " ", (picked or lines or [repr(e)])[0])[:220]


def feed_value(v):
    if not isinstance(v, LoD):
        return v
    t = core.LoDTensor()
    t.set(v.array, core.CPUPlace())
    t.set_lod(v.lod)
    return t


def array_of(v):
    return v.array if isinstance(v, LoD) else v


def serialize(prog):
    """Serialised ProgramDesc with version, without op_callstack (Python file names and lines)."""
    for block in prog.blocks:
        for op in block.ops:
            if op.desc.has_attr("op_callstack"):
                op.desc.remove_attr("op_callstack")
    prog.desc._set_version()
    return prog.desc.serialize_to_string()


def plain_json(v):
    """JSON has no infinities: write them as the strings "inf", "-inf", "nan"."""
    if isinstance(v, dict):
        return {k: plain_json(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain_json(x) for x in v]
    return str(v) if isinstance(v, float) and not np.isfinite(v) else v


def write_json(path, doc):
    """One top-level key per line: readable and small."""
    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(plain_json(doc[k]), allow_nan=False)}"
                                   for k in sorted(doc)) + "\n}\n")


def run_program(blob, feeds, fetch_names):
    """Parse a serialised program, run it once; returns [(array, lod)]."""
    prog = paddle.static.Program.parse_from_string(blob)
    with paddle.static.scope_guard(core.Scope()):
        res = EXE.run(prog, feed={k: feed_value(v) for k, v in feeds.items()},
                      fetch_list=list(fetch_names), return_numpy=False,
                      use_program_cache=False)
        out = []
        for name, t in zip(fetch_names, res):
            if not t._is_initialized():     # fetch would report shape [0], whatever the op inferred
                raise Unsupported(f"output {name} was left uninitialised")
            out.append((np.array(t), t.lod()))
    return out


class Builder:
    """Holds the Program of one case: feeds, the op(s), fetches."""

    def __init__(self, dyn=False):
        self.prog = paddle.static.Program()
        self.block = self.prog.global_block()
        self.feeds, self.fetch, self.dyn = {}, [], dyn

    def feed(self, name, value):
        a = array_of(value)
        shape = list(a.shape)
        if self.dyn and shape:
            shape[0] = -1
        lod_level = len(value.lod) if isinstance(value, LoD) else 0
        var = self.block.create_var(name=name, shape=shape, dtype=a.dtype.name,
                                    lod_level=lod_level, stop_gradient=False)
        var.desc.set_need_check_feed(True)
        self.feeds[name] = value

    def output(self, name, dtype="float32", shape=None):
        kw = {} if shape is None else {"shape": list(shape)}
        self.block.create_var(name=name, dtype=dtype, stop_gradient=False, **kw)

    def run(self):
        """Adds feed/fetch ops, runs; fixes declared output dtypes to the real ones."""
        body = self.prog.desc.serialize_to_string()
        blob = self._with_feed_fetch(body)
        res = run_program(blob, self.feeds, self.fetch)
        changed = False
        for name, (a, lod) in zip(self.fetch, res):
            var = self.block.var(name)
            if var.dtype != DTYPE_CODE.get(a.dtype.name):
                var.desc.set_dtype(core.VarDesc.VarType(DTYPE_CODE[a.dtype.name]))
                changed = True
            if lod and var.lod_level < len(lod):
                var.desc.set_lod_level(len(lod))
                changed = True
        if changed:
            blob = self._with_feed_fetch(self.prog.desc.serialize_to_string())
            res = run_program(blob, self.feeds, self.fetch)
        return blob, res

    def _with_feed_fetch(self, body):
        prog = paddle.static.Program.parse_from_string(body)
        prepend_feed_ops(prog, list(self.feeds))
        append_fetch_ops(prog, self.fetch)
        return serialize(prog)


def build_forward(case):
    """Program with case.op; returns (builder, op, {slot: [var]} in, {slot: [var]} out)."""
    b = Builder(case.dyn)
    ins, outs = {}, {}
    for slot, val in case.ins.items():
        vals, many = as_list(val), isinstance(val, (list, tuple))
        ins[slot] = []
        for i, v in enumerate(vals):
            name = f"{slot}_{i}" if many else slot
            b.feed(name, v)
            ins[slot].append(name)
    for slot, n in case.out_counts().items():
        if slot in case.alias:
            outs[slot] = list(ins[case.alias[slot]])
            continue
        base = slot if not b.block.has_var(slot) else slot + "_out"
        outs[slot] = [base] if n == 1 else [f"{base}_{i}" for i in range(n)]
        for name in outs[slot]:
            b.output(name)
    op = b.block.append_op(type=case.op, inputs=ins, outputs=outs,
                           attrs=coerce_attrs(case.op, case.attrs))
    return b, op, ins, outs


def visible_attrs(op, desc):
    """Attributes worth showing: the op's own, without framework bookkeeping."""
    hidden = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device",
              "with_quant_attr", "use_mkldnn", "use_quantizer", "mkldnn_data_type",
              "use_cudnn", "workspace_size_MB", "exhaustive_search", "sub_block", "name"}
    out = {}
    for name in sorted(desc.attr_names()):
        if name in hidden or name.startswith(("Scale_", "fuse_", "fused_")):
            continue
        try:
            v = desc.attr(name)
            json.dumps(v)
            out[name] = v
        except Exception:       # blocks, Scalars: read them from program.pb
            continue
    return out


def write_case(folder, seed, op, case, blob, feeds, fetches, slots, attrs, ops, rtol, atol, notes):
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/program.pb", "wb") as f:
        f.write(blob)
    doc = {"op": op, "case": case, "seed": seed, "ops": ops, "attrs": attrs, "slots": slots,
           "feeds": {}, "fetches": {}, "lod": {}, "rtol": rtol, "atol": atol, "notes": notes}
    for name, v in feeds.items():
        np.save(f"{folder}/in_{name}.npy", array_of(v))
        doc["feeds"][name] = f"in_{name}.npy"
        if isinstance(v, LoD):
            doc["lod"][name] = v.lod
    for name, (a, lod) in fetches.items():
        np.save(f"{folder}/out_{name}.npy", a)
        doc["fetches"][name] = f"out_{name}.npy"
        if lod:
            doc["lod"]["out:" + name] = lod
    write_json(f"{folder}/case.json", doc)


def make_forward_case(out_dir, seed, case):
    b, op, ins, outs = build_forward(case)
    hidden = NEVER_FETCH | set(case.nofetch)
    b.fetch = list(dict.fromkeys(n for s, ns in outs.items() if s not in hidden for n in ns))
    blob, res = b.run()
    fetches = dict(zip(b.fetch, res))
    rtol, atol = case.tol or tolerance(case.op, [a for a, _ in res])
    write_case(f"{out_dir}/{case.op}/{case.name}", seed, case.op, case.name, blob, b.feeds,
               fetches, {"inputs": ins, "outputs": outs}, visible_attrs(case.op, op.desc),
               [case.op], rtol, atol, case.notes)
    return case.op


# In 2.6.2 these raise when X and Y do not also fit with trailing alignment, and give wrong numbers when they do.
AXIS_BLIND_GRADS = ("elementwise_max_grad", "elementwise_min_grad", "elementwise_pow_grad")


def make_grad_case(out_dir, seed, rng, case, expect):
    """The gradient op(s) Paddle's grad maker emits for `case`, run on their own.

    Forward inputs and outputs that the gradient op reads are fed with the values
    of a real forward run; every <out>@GRAD is fed with random numbers.
    """
    if expect in AXIS_BLIND_GRADS and any(k in case.name for k in ("axis1_channel", "axis_mid", "axis0_prefix")):
        raise Unsupported("Paddle bug: this gradient kernel ignores axis and aligns trailing dimensions")
    fb, fop, ins, outs = build_forward(case)
    stop = set()
    for slot, names in ins.items():
        for n in names:
            if slot in case.no_grad or array_of(fb.feeds[n]).dtype.kind not in "fc":
                stop.add(n + "@GRAD")
    descs, _ = core.get_grad_op_desc(fop.desc, stop, [])
    if not descs:
        raise Unsupported("Paddle's grad maker returns no op")
    out_names = [n for ns in outs.values() for n in ns]
    slot_of = {n: s for s, ns in outs.items() for n in ns}

    # Forward values of everything that may be needed (XShape is shape-only).
    xshapes = {n for n in out_names if slot_of[n] == "XShape"}
    fb.fetch = [n for n in dict.fromkeys(out_names)
                if n not in xshapes and slot_of[n] not in NEVER_FETCH]
    _, res = fb.run()
    known = dict(fb.feeds)
    known.update({n: (LoD(a, lod) if lod else a) for n, (a, lod) in zip(fb.fetch, res)})
    for n in xshapes:                   # its declared shape has a 0 in it: nothing but a shape carrier
        known[n] = np.zeros(fb.block.var(n).shape, "float32")
    for n in out_names:                 # workspaces the CPU kernels do not read
        if slot_of[n] == "ReserveSpace":
            known[n] = np.zeros([0], "float32")
    for n in out_names:                 # content undefined in this mode
        if slot_of[n] in case.nofetch:
            known[n] = np.zeros_like(array_of(known[n]))
    for slot, a in case.override.items():
        known[outs[slot][0]] = a

    g = Builder()
    produced, types = [], []
    new = {n: safe(n) for d in descs for n in d.input_arg_names() + d.output_arg_names()}
    for d in descs:
        types.append(d.type())
        for n in dict.fromkeys(d.input_arg_names()):
            if n == "@EMPTY@" or new[n] in produced or new[n] in g.feeds:
                continue
            if n.endswith("@GRAD"):
                like = array_of(known[n[:-5]])
                g.feed(new[n], rng.f(like.shape, -1, 1, like.dtype.name))
            else:
                g.feed(new[n], known[n])
        for n in dict.fromkeys(d.output_arg_names()):
            if n == "@EMPTY@":
                continue
            like = array_of(known[n.split("@")[0]])
            g.output(new[n], like.dtype.name, like.shape)
            produced.append(new[n])
    for d in descs:
        for n in dict.fromkeys(d.input_arg_names()):
            if n != "@EMPTY@" and new[n] != n:
                d._rename_input(n, new[n])
        for n in dict.fromkeys(d.output_arg_names()):
            if n != "@EMPTY@" and new[n] != n:
                d._rename_output(n, new[n])
        nd = g.block.desc.append_op()
        nd.copy_from(d)
        nd._set_attr("op_role", 1)          # Backward, as append_backward marks it
        nd.infer_var_type(g.block.desc)
        nd.infer_shape(g.block.desc)
    g.prog._sync_with_cpp()
    g.fetch = produced
    blob, res = g.run()
    fetches = dict(zip(g.fetch, res))
    op_type = types[0]
    name = case.name if op_type == expect else f"grad_of_{case.op}_{case.name}"
    slots = {"inputs": {s: [a for a in descs[0].input(s)] for s in descs[0].input_names()},
             "outputs": {s: [a for a in descs[0].output(s)] for s in descs[0].output_names()}}
    rtol, atol = case.tol or tolerance(op_type, [a for a, _ in res])
    notes = (f"gradient of {case.op}. " + case.notes).strip()
    write_case(f"{out_dir}/{op_type}/{name}", seed, op_type, name, blob, g.feeds, fetches,
               slots, visible_attrs(op_type, descs[0]), types, max(rtol, 2e-5 if rtol > 1e-6 else rtol),
               atol, notes)
    return op_type


# ----------------------------------------------------------------------------
# 2. registry and random helper
# ----------------------------------------------------------------------------
class Rng:
    """All random choices of one op."""

    def __init__(self, seed, key):
        self.g = np.random.default_rng([seed, zlib.crc32(key.encode())])

    def n(self, lo, hi):
        """integer in [lo, hi]"""
        return int(self.g.integers(lo, hi + 1))

    def shape(self, rank, lo=2, hi=4):
        return tuple(self.n(lo, hi) for _ in range(rank))

    def f(self, shape, lo=-2.0, hi=2.0, dtype="float32"):
        if dtype.startswith("complex"):
            return (self.g.uniform(lo, hi, shape) + 1j * self.g.uniform(lo, hi, shape)).astype(dtype)
        return np.asarray(self.g.uniform(lo, hi, shape)).astype(dtype)

    def scalar(self, lo, hi, digits=3):
        return round(float(self.g.uniform(lo, hi)), digits)

    def distinct(self, shape, lo=-2.0, hi=2.0, dtype="float32"):
        """values that are pairwise different, so sort/max/argmax have no ties"""
        k = int(np.prod(shape))
        v = np.linspace(lo, hi, max(k, 1))[:k]
        return self.g.permutation(v).reshape(shape).astype(dtype)

    def i(self, shape, lo, hi, dtype="int64"):
        return np.asarray(self.g.integers(lo, hi + 1, shape)).astype(dtype)

    def b(self, shape, p=0.5):
        return np.asarray(self.g.random(shape) < p)

    def pick(self, *options):
        return options[self.n(0, len(options) - 1)]

    def axis(self, rank):
        return self.n(-rank, rank - 1)

    def perm(self, k):
        return [int(x) for x in self.g.permutation(k)]

    def boxes(self, k, size=1.0, dtype="float32"):
        """k boxes x1 < x2, y1 < y2 inside [0, size]"""
        p = self.g.uniform(0, 0.5, (k, 2))
        wh = self.g.uniform(0.2, 0.5, (k, 2))
        return (np.concatenate([p, p + wh], 1) * size).astype(dtype)


GENERATORS = {}       # op type -> generator function
GRADS = {}            # grad op type -> (forward op, options)


def gen(*op_types):
    """Registers a generator for one or several op types: fn(rng, op_type) -> Cases."""
    def deco(fn):
        for t in op_types:
            GENERATORS[t] = fn
        return fn
    return deco


def cases_of(seed, op):
    for c in GENERATORS[op](Rng(seed, op), op):
        c.op = c.op or op
        yield c


_KERNELS = core._get_all_register_op_kernels("all")


def has_cpu_kernel(op, dtype):
    """True when op has a CPU kernel for dtype (phi/fluid registry)."""
    keys = _KERNELS.get(op, [])
    pat = {"float32": "float", "float64": "double", "float16": "float16|::paddle::platform::float16",
           "int32": "int|int32", "int64": "int64_t|int64", "bool": "bool"}[dtype]
    return any(re.search(rf"data_type\[({pat})\].*place\[Place\(cpu\)\].*PLAIN", k) for k in keys)


# ----------------------------------------------------------------------------
# 3a. elementwise binary, comparison, logical
# ----------------------------------------------------------------------------
def broadcast_pairs(r):
    """(name, shape X, shape Y, axis): the legacy broadcast rules."""
    a, b, c, d = r.shape(4, 2, 4)
    yield "same", (a, b, c), (a, b, c), -1
    yield "trailing", (a, b, c), (b, c), -1
    yield "axis1_channel", (a, b, c, d), (b,), 1
    yield "axis_mid", (a, b, c, d), (b, c), 1
    yield "both_ones", (a, 1, c), (1, b, c), -1
    yield "axis0_prefix", (a, b, c), (a,), 0
    yield "y_trailing_ones", (a, b, c, d), (b, 1, 1), 1
    yield "x_smaller", (c,), (a, b, c), -1


@gen("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div",
     "elementwise_max", "elementwise_min", "elementwise_pow", "elementwise_mod",
     "elementwise_floordiv")
def _elementwise(r, op):
    pairs = list(broadcast_pairs(r))
    keep = pairs[:1] + pairs[2:3] + [pairs[i + 1 if i == 0 else i + 2] for i in sorted(r.perm(6)[:2])]

    def data(shape, dtype, rhs):
        if op == "elementwise_pow":
            return (r.f(shape, -2, 3, dtype) if rhs else r.f(shape, 0.2, 3, dtype)) \
                if dtype.startswith("float") else (r.i(shape, 0, 3, dtype) if rhs else r.i(shape, -4, 4, dtype))
        if dtype.startswith("float"):
            v = r.f(shape, -5, 5, dtype)
            return np.where(np.abs(v) < 0.3, np.asarray(0.7, dtype), v).astype(dtype) if rhs else v
        v = r.i(shape, -9, 9, dtype)
        return np.where(v == 0, np.asarray(4, dtype), v).astype(dtype) if rhs else v

    seen = set()
    floatish = has_cpu_kernel(op, "float32")
    for name, sx, sy, axis in keep:
        if name in seen:
            continue
        seen.add(name)
        dt = "float32" if floatish else "int32"
        yield Case(f"{name}_{dt}", {"X": data(sx, dt, False), "Y": data(sy, dt, True)}, "Out", {"axis": axis})
    for dt in ("float64", "int32", "int64", "float16", "bool"):
        if dt == "bool" or not has_cpu_kernel(op, dt):
            continue
        name, sx, sy, axis = r.pick(*pairs)
        yield Case(f"{dt}_{name}", {"X": data(sx, dt, False), "Y": data(sy, dt, True)}, "Out", {"axis": axis},
                   notes="integer operands of both signs" if dt.startswith("int") else "")
    dt = "float32" if floatish else "int64"
    yield Case("zero_dim", {"X": data((), dt, False), "Y": data((), dt, True)}, "Out", {"axis": -1})
    yield Case("zero_dim_y", {"X": data(r.shape(2), dt, False), "Y": data((), dt, True)}, "Out", {"axis": -1})
    n = r.n(2, 4)
    yield Case("empty", {"X": np.zeros((0, n), dt), "Y": np.zeros((0, n), dt)}, "Out", {"axis": -1})
    if op == "elementwise_add":
        yield Case("dynamic_batch", {"X": r.f((r.n(2, 4), n)), "Y": r.f((1, n))}, "Out", {"axis": -1}, dyn=True)


@gen("minus")
def _minus(r, op):
    s = r.shape(2)
    yield Case("same", {"X": r.f(s), "Y": r.f(s)}, "Out")


@gen("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
def _compare(r, op):
    pairs = list(broadcast_pairs(r))
    # Unlike the arithmetic ops, comparisons only align at the trailing axis: 2.6.2 ignores `axis`.
    picks = [pairs[0], pairs[1], r.pick(pairs[4], pairs[6], pairs[7])]
    for (name, sx, sy, axis), dt in zip(picks, r.pick(("float32", "int64", "int32"),
                                                      ("int32", "float32", "int64"),
                                                      ("int64", "int32", "float64"))):
        yield Case(f"{name}_{dt}", {"X": r.i(sx, -2, 2, dt), "Y": r.i(sy, -2, 2, dt)}, "Out",
                   {"axis": -1 if name == "y_trailing_ones" else axis})
    yield Case("zero_dim", {"X": r.f(()), "Y": r.f(())}, "Out")
    s = r.shape(2)
    yield Case("bool", {"X": r.b(s), "Y": r.b(s)}, "Out")
    yield Case("nan_inf", {"X": np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.nan], "float32"),
                           "Y": np.array([np.nan, np.inf, np.inf, -0.0, 0.0, 1.0], "float32")}, "Out")


@gen("logical_and", "logical_or", "logical_xor", "logical_not")
def _logical(r, op):
    binary = op != "logical_not"
    for dt in ("bool", "int32", "float32"):
        a, b, c = r.shape(3)
        make = (lambda s: r.b(s)) if dt == "bool" else (lambda s: r.i(s, -1, 1, dt))
        ins = {"X": make((a, b, c))}
        if binary:
            ins["Y"] = make(r.pick((a, b, c), (b, c), (c,), (a, 1, c)))
        yield Case(dt, ins, "Out")
    ins = {"X": r.b(())}
    if binary:
        ins["Y"] = r.b(())
    yield Case("zero_dim", ins, "Out")


@gen("isfinite_v2", "isnan_v2", "isinf_v2")
def _isfinite(r, op):
    for dt in ("float32", "float64", "float16", "int32", "int64"):
        s = r.shape(2, 3, 5)
        v = r.f(s, -9, 9, dt)
        if dt.startswith("float"):
            flat = v.reshape(-1)
            for k, bad in zip(r.perm(flat.size), (np.nan, np.inf, -np.inf)):
                flat[k] = bad
        yield Case(dt, {"X": v}, "Out")
    yield Case("zero_dim", {"X": np.array(np.inf, "float32")}, "Out")


# ----------------------------------------------------------------------------
# 3b. unary
# ----------------------------------------------------------------------------
# op -> (low, high, attribute choices)
UNARY = {
    "relu": (-3, 3, {}), "relu6": (-4, 9, {}), "leaky_relu": (-3, 3, {"alpha": (0.01, 0.2, 0.5, 1.5)}),
    "sigmoid": (-6, 6, {}), "tanh": (-4, 4, {}), "exp": (-3, 3, {}), "log": (0.05, 6, {}),
    "sqrt": (0.05, 9, {}), "rsqrt": (0.1, 9, {}), "square": (-4, 4, {}), "abs": (-4, 4, {}),
    "floor": (-4, 4, {}), "ceil": (-4, 4, {}), "round": (-4, 4, {}), "reciprocal": (0.2, 4, {}),
    "gelu": (-4, 4, {"approximate": (False, True)}), "swish": (-4, 4, {"beta": (1.0,)}),
    "silu": (-4, 4, {}), "hard_sigmoid": (-5, 5, {"slope": (0.2, 0.1666667), "offset": (0.5, 0.3)}),
    "hard_swish": (-5, 8, {"threshold": (6.0, 4.0), "scale": (6.0, 5.0), "offset": (3.0, 2.0)}),
    "softplus": (-6, 6, {"beta": (1.0, 2.0, 0.5), "threshold": (20.0, 3.0)}),
    "mish": (-6, 6, {"threshold": (20.0,)}), "elu": (-4, 4, {"alpha": (1.0, 0.3, 1.7)}),
    "erf": (-3, 3, {}), "sin": (-6, 6, {}), "cos": (-6, 6, {}),
    "softsign": (-4, 4, {}), "sign": (-4, 4, {}), "log1p": (-0.5, 4, {}), "logsigmoid": (-5, 5, {}),
    "tanh_shrink": (-3, 3, {}), "atan": (-3, 3, {}),
}
SPECIAL_OK = {"relu", "abs", "floor", "ceil", "round", "exp", "log", "sqrt", "square", "reciprocal", "tanh",
              "sigmoid"}


@gen(*UNARY)
def _unary(r, op):
    lo, hi, choices = UNARY[op]
    combos = [{k: v[0] for k, v in choices.items()}]
    for k in range(1, max([len(v) for v in choices.values()] or [1])):
        combos.append({n: v[k % len(v)] for n, v in choices.items()})
    for k, attrs in enumerate(combos):
        yield Case(f"float32_{k}", {"X": r.f(r.shape(r.n(1, 4)), lo, hi)}, "Out", attrs)
    attrs = r.pick(*combos)
    yield Case("float64", {"X": r.f(r.shape(r.n(2, 3)), lo, hi, "float64")}, "Out", attrs)
    yield Case("zero_dim", {"X": r.f((), lo, hi)}, "Out", attrs)
    yield Case("empty", {"X": np.zeros((r.n(1, 3), 0), "float32")}, "Out", attrs)
    for dt in ("float16", "int32", "int64"):
        if has_cpu_kernel(op, dt) and (dt == "float16" or r.n(0, 1)):
            v = r.f(r.shape(2), lo, hi, dt) if dt == "float16" else r.i(r.shape(2), max(1, int(lo)), 6, dt)
            yield Case(dt, {"X": v}, "Out", attrs)
    if op in SPECIAL_OK:
        yield Case("special", {"X": np.array([np.inf, -np.inf, 0.0, -0.0, 1e-38, 88.0, -88.0, 3e38], "float32")},
                   "Out", attrs, notes="infinities, signed zero, large magnitudes")
    if op == "round":
        yield Case("halves", {"X": np.arange(-4, 5).astype("float32") + 0.5}, "Out")
    if op in ("floor", "abs", "sqrt", "exp"):
        yield Case("nan", {"X": np.array([np.nan, 1.5, np.nan, 0.25, 2.0], "float32")}, "Out", attrs)


@gen("pow")
def _pow(r, op):
    yield Case("square", {"X": r.f(r.shape(3))}, "Out", {"factor": 2.0})
    yield Case("fraction", {"X": r.f(r.shape(2), 0.1, 4)}, "Out", {"factor": r.scalar(0.3, 2.7)})
    yield Case("negative", {"X": r.f(r.shape(2), 0.3, 4, "float64")}, "Out", {"factor": -r.scalar(0.3, 2)})
    yield Case("factor_tensor", {"X": r.f(r.shape(2), 0.1, 4), "FactorTensor": r.f((1,), 1, 3)}, "Out",
               {"factor": 1.0}, no_grad=("FactorTensor",), notes="FactorTensor wins over the attribute")
    yield Case("int32", {"X": r.i(r.shape(2), -4, 4, "int32")}, "Out", {"factor": 3.0})
    yield Case("zero_dim", {"X": r.f((), 0.5, 2)}, "Out", {"factor": 3.0})


@gen("clip")
def _clip(r, op):
    lo, hi = -r.scalar(0.3, 1.5), r.scalar(0.3, 1.5)
    yield Case("attrs", {"X": r.f(r.shape(3), -3, 3)}, "Out", {"min": lo, "max": hi})
    yield Case("min_tensor", {"X": r.f(r.shape(2), -3, 3), "Min": np.array([lo / 2], "float32")}, "Out",
               {"min": lo, "max": hi}, no_grad=("Min", "Max"), notes="Min tensor wins over attr min")
    yield Case("both_tensors", {"X": r.f(r.shape(2), -3, 3, "float64"), "Min": np.array([lo], "float64"),
                                "Max": np.array([hi / 2], "float64")}, "Out", {"min": -9.0, "max": 9.0},
               no_grad=("Min", "Max"))
    yield Case("int64", {"X": r.i(r.shape(2), -9, 9)}, "Out", {"min": -3.0, "max": 4.0})
    yield Case("zero_dim", {"X": r.f((), -3, 3)}, "Out", {"min": lo, "max": hi})
    yield Case("edges", {"X": np.array([lo, hi, 0, lo, hi], "float32")}, "Out",
               {"min": float(np.float32(lo)), "max": float(np.float32(hi))}, notes="values exactly on the bounds")


@gen("scale")
def _scale(r, op):
    s, b = r.scalar(-3, 3), r.scalar(-2, 2)
    yield Case("bias_after", {"X": r.f(r.shape(3))}, "Out", {"scale": s, "bias": b, "bias_after_scale": True})
    yield Case("bias_before", {"X": r.f(r.shape(2))}, "Out", {"scale": s, "bias": b, "bias_after_scale": False})
    yield Case("scale_tensor", {"X": r.f(r.shape(2)), "ScaleTensor": r.f((1,))}, "Out",
               {"scale": 1.0, "bias": b, "bias_after_scale": True}, no_grad=("ScaleTensor",))
    for dt in ("int32", "int64", "float64", "float16"):
        v = r.i(r.shape(2), -9, 9, dt) if dt.startswith("int") else r.f(r.shape(2), -2, 2, dt)
        yield Case(dt, {"X": v}, "Out", {"scale": r.pick(2.0, 2.5, -1.5), "bias": r.pick(1.0, 0.75),
                                         "bias_after_scale": bool(r.n(0, 1))},
                   notes="scale and bias are cast to the integer type" if dt.startswith("int") else "")
    yield Case("zero_dim", {"X": r.f(())}, "Out", {"scale": s, "bias": b, "bias_after_scale": True})


@gen("cast")
def _cast(r, op):
    plans = [("float32", "int32"), ("float32", "bool"), ("int64", "float32"), ("bool", "float32"),
             ("float32", "float16"), ("float16", "float32"), ("float32", "float64"), ("int32", "int64"),
             ("float64", "int64"), ("float32", "uint8"), ("int64", "bool"), ("float32", "int8")]
    for src, dst in plans:
        s = r.shape(r.n(1, 3))
        if src == "bool":
            v = r.b(s)
        elif src.startswith("int"):
            v = r.i(s, -3, 3, src)
        else:
            v = r.f(s, 0 if dst == "uint8" else -5, 5, src)
            v.reshape(-1)[0] = 0
        yield Case(f"{src}_to_{dst}", {"X": v}, "Out", {"in_dtype": DTYPE_CODE[src], "out_dtype": DTYPE_CODE[dst]})
    yield Case("zero_dim", {"X": r.f(())}, "Out", {"in_dtype": FP32, "out_dtype": FP64})


@gen("increment")
def _increment(r, op):
    yield Case("float32", {"X": r.f((1,))}, "Out", {"step": r.scalar(-2, 2)})
    yield Case("int64_inplace", {"X": r.i((1,), 0, 9)}, "Out", {"step": 1.0}, alias={"Out": "X"})
    yield Case("int32_fraction", {"X": r.i((1,), 0, 9, "int32")}, "Out", {"step": 2.7})


# ----------------------------------------------------------------------------
# 3c. convolution, pooling, normalisation
# ----------------------------------------------------------------------------
def conv_in(r, n, c, spatial, nhwc):
    return r.f((n, *spatial, c) if nhwc else (n, c, *spatial))


@gen("conv2d")
def _conv2d(r, op):
    def one(name, ci, co, k, groups=1, dt="float32", nhwc=False, **attrs):
        hw = (r.n(5, 8), r.n(5, 8))
        base = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": groups,
                "padding_algorithm": "EXPLICIT", "data_format": "NHWC" if nhwc else "NCHW"}
        base.update(attrs)
        return Case(name, {"Input": conv_in(r, r.n(1, 2), ci, hw, nhwc).astype(dt),
                           "Filter": r.f((co, ci // groups, *k), -1, 1, dt)}, "Output", base)
    yield one("plain", r.n(1, 4), r.n(1, 4), (3, 3), strides=[r.n(1, 2), r.n(1, 2)], paddings=[r.n(0, 2), r.n(0, 2)])
    yield one("pad4", 3, r.n(2, 4), (3, 2), paddings=[r.n(0, 2), r.n(1, 2), 0, r.n(1, 3)], strides=[r.n(1, 2), 1])
    yield one("same", r.n(1, 3), 2, (3, r.pick(2, 3)), padding_algorithm="SAME", strides=[r.n(1, 3), r.n(1, 2)])
    yield one("valid", r.n(1, 3), 2, (2, 3), padding_algorithm="VALID", paddings=[1, 1], strides=[2, 1])
    g = r.n(2, 3)
    yield one("groups_dilation", 2 * g, 2 * g, (2, 3), groups=g, dilations=[2, r.n(1, 2)], paddings=[1, 2])
    yield one("pointwise", r.n(2, 5), r.n(2, 5), (1, 1), dt=r.pick("float64", "float32"))
    yield one("nhwc", r.n(2, 3), r.n(2, 3), (3, 3), nhwc=True, paddings=[1, 1], strides=[r.n(1, 2)] * 2)
    yield one("same_dilated", 2, 2, (3, 3), padding_algorithm="SAME", dilations=[2, 2],
              strides=[1, 1])


@gen("depthwise_conv2d")
def _depthwise(r, op):
    def one(name, c, mult, k, nhwc=False, **attrs):
        base = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": c,
                "padding_algorithm": "EXPLICIT", "data_format": "NHWC" if nhwc else "NCHW"}
        base.update(attrs)
        return Case(name, {"Input": conv_in(r, r.n(1, 2), c, (r.n(5, 7), r.n(5, 7)), nhwc),
                           "Filter": r.f((c * mult, 1, k, k), -1, 1)}, "Output", base)
    yield one("plain", r.n(2, 4), 1, 3, paddings=[1, 1])
    yield one("stride2", r.n(2, 4), 1, r.pick(3, 5), strides=[2, 2], paddings=[r.n(1, 2)] * 2)
    yield one("multiplier", r.n(2, 3), 2, 3, strides=[r.n(1, 2), 1])
    yield one("same_dilated", r.n(2, 3), 1, 3, padding_algorithm="SAME", dilations=[r.n(1, 2)] * 2)
    yield one("nhwc", r.n(2, 4), 1, 3, nhwc=True, paddings=[1, 1])
    yield one("pad4", r.n(2, 3), 1, 3, paddings=[0, 1, 2, 1], strides=[r.n(1, 2)] * 2)


@gen("conv2d_transpose")
def _conv2d_transpose(r, op):
    def one(name, ci, co, k, groups=1, nhwc=False, hw=None, **attrs):
        base = {"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": groups,
                "output_padding": [], "output_size": [], "padding_algorithm": "EXPLICIT",
                "data_format": "NHWC" if nhwc else "NCHW"}
        base.update(attrs)
        hw = hw or (r.n(3, 5), r.n(3, 5))
        return Case(name, {"Input": conv_in(r, r.n(1, 2), ci, hw, nhwc),
                           "Filter": r.f((ci, co // groups, *k), -1, 1)}, "Output", base)
    yield one("plain", r.n(1, 3), r.n(1, 3), (3, 3), strides=[r.n(1, 2), r.n(1, 2)], paddings=[r.n(0, 1)] * 2)
    yield one("output_padding", 2, r.n(1, 3), (3, 3), strides=[2, 2], paddings=[1, 1], output_padding=[1, r.n(0, 1)])
    h, w = r.n(3, 4), r.n(3, 4)
    yield one("output_size", 2, 2, (3, 3), hw=(h, w), strides=[2, 2], paddings=[1, 1],
              output_size=[2 * h, 2 * w - r.n(0, 1)])
    g = r.n(2, 3)
    yield one("groups_dilation", 2 * g, g, (2, 2), groups=g, dilations=[2, 1], strides=[1, 2])
    yield one("same", 2, 2, (3, 3), strides=[2, 2], padding_algorithm="SAME")
    yield one("valid_pad4", 2, 1, (3, 2), strides=[2, r.n(1, 2)], paddings=[0, 1, 1, 0])
    yield one("nhwc", r.n(2, 3), 2, (3, 3), strides=[2, 2], paddings=[1, 1], nhwc=True)


@gen("depthwise_conv2d_transpose")
def _depthwise_transpose(r, op):
    c = r.n(2, 4)
    yield Case("plain", {"Input": r.f((r.n(1, 2), c, 4, 3)), "Filter": r.f((c, 1, 3, 3), -1, 1)}, "Output",
               {"strides": [2, 2], "paddings": [1, 1], "dilations": [1, 1], "groups": c,
                "padding_algorithm": "EXPLICIT", "data_format": "NCHW"})


@gen("conv3d")
def _conv3d(r, op):
    def one(name, ci, co, groups=1, ndhwc=False, **attrs):
        base = {"strides": [1, 1, 1], "paddings": [0, 0, 0], "dilations": [1, 1, 1], "groups": groups,
                "padding_algorithm": "EXPLICIT", "data_format": "NDHWC" if ndhwc else "NCDHW"}
        base.update(attrs)
        return Case(name, {"Input": conv_in(r, 1, ci, (r.n(4, 5), r.n(4, 5), r.n(4, 5)), ndhwc),
                           "Filter": r.f((co, ci // groups, 2, 3, r.n(1, 3)), -1, 1)}, "Output", base)
    yield one("plain", 2, r.n(1, 3), strides=[r.n(1, 2), 1, r.n(1, 2)], paddings=[1, 0, 1])
    yield one("pad6", 1, 2, paddings=[0, 1, 1, 0, 1, 2])
    yield one("same_groups", 4, 2, groups=2, padding_algorithm="SAME", strides=[1, 2, 1])
    yield one("dilated", 1, 2, dilations=[2, 1, 1], paddings=[1, 1, 1])
    yield one("ndhwc", 2, 2, ndhwc=True, paddings=[1, 1, 1])


@gen("pool2d")
def _pool2d(r, op):
    def one(name, ptype, k, nhwc=False, dt="float32", hw=None, **attrs):
        base = {"pooling_type": ptype, "ksize": list(k), "strides": [1, 1], "paddings": [0, 0],
                "global_pooling": False, "ceil_mode": False, "exclusive": True, "adaptive": False,
                "padding_algorithm": "EXPLICIT", "data_format": "NHWC" if nhwc else "NCHW"}
        base.update(attrs)
        x = conv_in(r, r.n(1, 2), r.n(1, 3), hw or (r.n(5, 8), r.n(5, 8)), nhwc)
        return Case(name, {"X": x.astype(dt)}, "Out", base)
    yield one("max", "max", (r.n(2, 3), 2), strides=[2, r.n(1, 2)], paddings=[r.n(0, 1), 1])
    yield one("max_ceil", "max", (3, 3), strides=[2, 2], ceil_mode=True, hw=(r.pick(6, 8), r.pick(6, 8)))
    yield one("avg_exclusive", "avg", (3, 3), strides=[2, 2], paddings=[1, 1])
    yield one("avg_inclusive_ceil", "avg", (3, 2), strides=[2, 2], paddings=[1, 0], exclusive=False, ceil_mode=True,
              hw=(r.pick(5, 6), r.pick(5, 7)))
    yield one("avg_ceil_exclusive", "avg", (3, 3), strides=[2, 2], paddings=[1, 1], ceil_mode=True, hw=(6, 6))
    yield one("adaptive_avg", "avg", (r.n(2, 4), r.n(1, 3)), adaptive=True)
    yield one("adaptive_max", "max", (r.n(2, 4), r.n(2, 3)), adaptive=True)
    yield one("global_avg", "avg", (3, 3), global_pooling=True, paddings=[1, 1])
    yield one("global_max", "max", (2, 2), global_pooling=True, dt="float64")
    yield one("same_max", "max", (3, 3), strides=[2, r.n(1, 2)], padding_algorithm="SAME")
    yield one("valid_avg", "avg", (3, 2), strides=[2, 2], padding_algorithm="VALID", paddings=[1, 1])
    yield one("pad4_avg", "avg", (3, 3), paddings=[0, 2, 1, 0], strides=[r.n(1, 2)] * 2, exclusive=bool(r.n(0, 1)))
    yield one("nhwc_avg", "avg", (2, 2), nhwc=True, strides=[2, 2], paddings=[1, 0])
    yield one("nhwc_max", "max", (3, 3), nhwc=True, strides=[r.n(1, 2)] * 2)


@gen("pool3d")
def _pool3d(r, op):
    def one(name, ptype, k, ndhwc=False, **attrs):
        base = {"pooling_type": ptype, "ksize": list(k), "strides": [1, 1, 1], "paddings": [0, 0, 0],
                "global_pooling": False, "ceil_mode": False, "exclusive": True, "adaptive": False,
                "padding_algorithm": "EXPLICIT", "data_format": "NDHWC" if ndhwc else "NCDHW"}
        base.update(attrs)
        return Case(name, {"X": conv_in(r, 1, r.n(1, 2), (r.n(4, 6), r.n(4, 6), r.n(4, 6)), ndhwc)}, "Out", base)
    yield one("max", "max", (2, 2, r.n(2, 3)), strides=[2, 1, 2], paddings=[r.n(0, 1), 1, 0])
    yield one("avg_inclusive", "avg", (2, 3, 2), strides=[2, 2, 1], paddings=[1, 1, 1], exclusive=False)
    yield one("avg_ceil", "avg", (3, 2, 3), strides=[2, 2, 2], ceil_mode=True)
    yield one("adaptive", r.pick("avg", "max"), (2, r.n(1, 3), 3), adaptive=True)
    yield one("global", "avg", (2, 2, 2), global_pooling=True)
    yield one("ndhwc", r.pick("avg", "max"), (2, 2, 2), ndhwc=True, strides=[2, 2, 2])


@gen("batch_norm")
def _batch_norm(r, op):
    def one(name, rank, nhwc=False, dt="float32", **attrs):
        c = r.n(2, 4)
        spatial = [r.n(2, 4) for _ in range(rank - 2)]
        shape = (r.n(2, 4), *spatial, c) if nhwc else (r.n(2, 4), c, *spatial)
        base = {"is_test": False, "momentum": r.pick(0.9, 0.8, 0.99), "epsilon": r.pick(1e-5, 1e-3),
                "data_layout": "NHWC" if nhwc else "NCHW", "use_global_stats": False, "trainable_statistics": False}
        base.update(attrs)
        return Case(name, {"X": r.f(shape, -2, 3, dt), "Scale": r.f((c,), 0.5, 2, dt), "Bias": r.f((c,), -1, 1, dt),
                           "Mean": r.f((c,), -1, 1, dt), "Variance": r.f((c,), 0.5, 2, dt)},
                    "Y,MeanOut,VarianceOut,SavedMean,SavedVariance,ReserveSpace", base,
                    alias={"MeanOut": "Mean", "VarianceOut": "Variance"},
                    nofetch=("SavedMean", "SavedVariance") if base["is_test"] or base["use_global_stats"] else (),
                    no_grad=("Mean", "Variance"),
                    notes="MeanOut/VarianceOut are the Mean/Variance variables themselves; "
                          "SavedVariance holds 1/sqrt(var+eps)")
    yield one("train_4d", 4)
    yield one("test_4d", 4, is_test=True)
    yield one("train_nhwc", 4, nhwc=True)
    yield one("test_nhwc", 4, nhwc=True, is_test=True)
    yield one("train_2d", 2)
    yield one("global_stats", r.n(3, 4), use_global_stats=True)
    yield one("train_5d_double", 5, dt="float64")
    yield one("test_3d", 3, is_test=True)


@gen("layer_norm")
def _layer_norm(r, op):
    for name, rank, begin, use, dt in (("scale_bias", 3, 2, 3, "float32"), ("begin1", 4, 1, 3, "float32"),
                                       ("no_affine", 3, r.n(1, 2), 0, "float32"), ("scale_only", 2, 1, 1, "float32"),
                                       ("bias_only", 3, 1, 2, "float32"), ("double", 3, 2, 3, "float64")):
        s = r.shape(rank, 2, 5)
        k = int(np.prod(s[begin:]))
        ins = {"X": r.f(s, -3, 3, dt)}
        if use & 1:
            ins["Scale"] = r.f((k,), 0.5, 2, dt)
        if use & 2:
            ins["Bias"] = r.f((k,), -1, 1, dt)
        yield Case(name, ins, "Y,Mean,Variance", {"epsilon": r.pick(1e-5, 1e-3, 1e-12), "begin_norm_axis": begin})


@gen("group_norm")
def _group_norm(r, op):
    for name, nhwc, affine, rank in (("nchw", False, True, 4), ("nhwc", True, True, 4), ("no_affine", False, False, 4),
                                     ("rank3", False, True, 3), ("groups1", False, True, 4)):
        g = 1 if name == "groups1" else r.n(2, 3)
        c = g * r.n(1, 3)
        sp = r.shape(rank - 2, 2, 4)
        ins = {"X": r.f((r.n(1, 2), *sp, c) if nhwc else (r.n(1, 2), c, *sp))}
        if affine:
            ins.update(Scale=r.f((c,), 0.5, 2), Bias=r.f((c,), -1, 1))
        yield Case(name, ins, "Y,Mean,Variance", {"epsilon": r.pick(1e-5, 1e-3), "groups": g,
                                                  "data_layout": "NHWC" if nhwc else "NCHW"})


@gen("instance_norm")
def _instance_norm(r, op):
    for name, affine, rank, dt in (("affine", True, 4, "float32"), ("plain", False, 4, "float32"),
                                   ("rank3", True, 3, "float32"), ("rank5_double", True, 5, "float64")):
        s = (r.n(1, 3), r.n(2, 4)) + r.shape(rank - 2, 2, 4)
        ins = {"X": r.f(s, -2, 2, dt)}
        if affine:
            ins.update(Scale=r.f((s[1],), 0.5, 2, dt), Bias=r.f((s[1],), -1, 1, dt))
        yield Case(name, ins, "Y,SavedMean,SavedVariance", {"epsilon": r.pick(1e-5, 1e-3)},
                   notes="SavedVariance holds 1/sqrt(var+eps)")


@gen("affine_channel")
def _affine_channel(r, op):
    c = r.n(2, 4)
    for layout in ("NCHW", "NHWC"):
        s = (2, c, 3, r.n(2, 3)) if layout == "NCHW" else (2, 3, r.n(2, 3), c)
        yield Case(layout.lower(), {"X": r.f(s), "Scale": r.f((c,)), "Bias": r.f((c,))}, "Out",
                   {"data_layout": layout})


@gen("softmax", "log_softmax")
def _softmax(r, op):
    yield Case("last", {"X": r.f(r.shape(2, 2, 6), -4, 4)}, "Out", {"axis": -1})
    yield Case("axis", {"X": r.f(r.shape(4), -4, 4)}, "Out", {"axis": r.n(0, 2)})
    yield Case("negative_axis", {"X": r.f(r.shape(3), -4, 4)}, "Out", {"axis": r.pick(-2, -3)})
    yield Case("double", {"X": r.f(r.shape(3), -4, 4, "float64")}, "Out", {"axis": r.axis(3)})
    yield Case("zero_dim", {"X": r.f(())}, "Out", {"axis": -1})
    yield Case("extreme", {"X": np.array([[-1e4, 0, 1e4, 3.0], [-200, -200, -200, -200]], "float32")}, "Out",
               {"axis": -1}, notes="softmax clips the shifted logits at -64 on CPU")


@gen("norm")
def _norm(r, op):
    yield Case("axis1", {"X": r.f(r.shape(4))}, "Out,Norm", {"axis": 1, "epsilon": r.pick(1e-10, 1e-5)})
    yield Case("negative_axis", {"X": r.f(r.shape(3))}, "Out,Norm", {"axis": -1, "epsilon": 1e-10})
    yield Case("is_test", {"X": r.f(r.shape(2), -2, 2)}, "Out,Norm", {"axis": 0, "epsilon": 1e-3, "is_test": True},
               nofetch=("Norm",))


@gen("p_norm")
def _p_norm(r, op):
    for name, p, axis, keep, asvec in (("l2", 2.0, -1, False, False), ("l1", 1.0, 0, True, False),
                                       ("inf", float("inf"), 1, False, False), ("minus_inf", float("-inf"), 1, True, False),
                                       ("zero", 0.0, -1, False, False), ("fraction", r.scalar(1.2, 3.8), r.axis(3), False, False),
                                       ("asvector", 2.0, -1, bool(r.n(0, 1)), True)):
        v = r.f(r.shape(3), -2, 2)
        if p == 0:
            v[np.abs(v) < 0.8] = 0
        yield Case(name, {"X": v}, "Out", {"porder": p, "axis": axis, "keepdim": keep, "asvector": asvec,
                                           "epsilon": 1e-12})
    yield Case("double", {"X": r.f(r.shape(2), -2, 2, "float64")}, "Out", {"porder": 2.0, "axis": 0,
                                                                         "keepdim": False, "epsilon": 1e-12})


# ----------------------------------------------------------------------------
# 3d. matrix products
# ----------------------------------------------------------------------------
@gen("matmul", "matmul_v2")
def _matmul(r, op):
    v2 = op == "matmul_v2"
    tx, ty = ("trans_x", "trans_y") if v2 else ("transpose_X", "transpose_Y")

    def one(name, sx, sy, a=False, b=False, dt="float32", **extra):
        swap = lambda s: s[:-2] + (s[-1], s[-2])
        return Case(name, {"X": r.f(swap(sx) if a else sx, -2, 2, dt), "Y": r.f(swap(sy) if b else sy, -2, 2, dt)},
                    "Out", {tx: a, ty: b, **extra})
    m, k, n, p, q = r.shape(5, 2, 5)
    alpha = {} if v2 else {"alpha": r.scalar(0.3, 2)}
    yield one("plain", (m, k), (k, n))
    yield one("trans_x", (m, k), (k, n), a=True, **alpha)
    yield one("trans_y", (m, k), (k, n), b=True, dt=r.pick("float32", "float64"))
    yield one("trans_both", (p, m, k), (p, k, n), a=True, b=True)
    yield one("batched_by_2d", (p, q, m, k), (k, n))
    yield one("vector_vector", (k,), (k,))
    yield one("matrix_vector", (p, m, k), (k,))
    yield one("vector_matrix", (k,), (p, k, n) if v2 else (k, n))
    if v2:
        yield one("broadcast_batch", (p, 1, m, k), (q, k, n))
        yield one("double", (m, k), (k, n), dt="float64", b=True)
    else:
        yield one("batched4", (p, q, m, k), (p, q, k, n), b=bool(r.n(0, 1)), **alpha)


@gen("mul")
def _mul(r, op):
    a, b, c, d = r.shape(4, 2, 4)
    yield Case("plain", {"X": r.f((a, b)), "Y": r.f((b, c))}, "Out", {"x_num_col_dims": 1, "y_num_col_dims": 1})
    yield Case("x_cols1", {"X": r.f((a, b, c)), "Y": r.f((b * c, d))}, "Out",
               {"x_num_col_dims": 1, "y_num_col_dims": 1})
    yield Case("x_cols2", {"X": r.f((a, d, b, c)), "Y": r.f((b * c, d))}, "Out",
               {"x_num_col_dims": 2, "y_num_col_dims": 1})
    yield Case("y_cols2", {"X": r.f((a, b * c)), "Y": r.f((b, c, d))}, "Out",
               {"x_num_col_dims": 1, "y_num_col_dims": 2})
    yield Case("double", {"X": r.f((a, b), -1, 1, "float64"), "Y": r.f((b, c), -1, 1, "float64")}, "Out",
               {"x_num_col_dims": 1, "y_num_col_dims": 1})


@gen("bmm")
def _bmm(r, op):
    for k, dt in enumerate(("float32", "float64")):
        b, m, n, p = r.shape(4)
        yield Case(dt, {"X": r.f((b, m, n), -2, 2, dt), "Y": r.f((b, n, p), -2, 2, dt)}, "Out")


# ----------------------------------------------------------------------------
# 3e. shape manipulation
# ----------------------------------------------------------------------------
@gen("concat")
def _concat(r, op):
    for name, dt, axis in (("float32", "float32", r.axis(3)), ("int64", "int64", 0), ("negative", "float64", -1),
                           ("bool", "bool", 1)):
        s, parts = list(r.shape(3)), []
        for _ in range(r.n(2, 4)):
            s[axis] = r.n(1, 3)
            parts.append(r.b(s) if dt == "bool" else r.i(s, -9, 9, dt) if dt == "int64" else r.f(s, -2, 2, dt))
        yield Case(name, {"X": parts}, "Out", {"axis": axis})
    n = r.n(2, 3)
    yield Case("axis_tensor", {"X": [r.f((n, 2)), r.f((n, 3))], "AxisTensor": np.array([1], "int32")}, "Out",
               {"axis": 0}, no_grad=("AxisTensor",))
    yield Case("single", {"X": [r.f(r.shape(2))]}, "Out", {"axis": 0})
    yield Case("with_empty", {"X": [r.f((2, n)), np.zeros((0, n), "float32"), r.f((1, n))]}, "Out", {"axis": 0})
    if has_cpu_kernel(op, "float16"):
        yield Case("float16", {"X": [r.f((2, n), dtype="float16"), r.f((3, n), dtype="float16")]}, "Out", {"axis": 0})


@gen("split")
def _split(r, op):
    k = r.n(2, 3)
    yield Case("num", {"X": r.f((2, k * r.n(1, 3), 2))}, {"Out": k}, {"num": k, "sections": [], "axis": 1})
    sec = [r.n(1, 3) for _ in range(3)]
    yield Case("sections", {"X": r.f((sum(sec), r.n(2, 3)))}, {"Out": 3}, {"sections": sec, "axis": 0, "num": 0})
    yield Case("section_minus1", {"X": r.f((2, sum(sec)))}, {"Out": 3},
               {"sections": [sec[0], -1, sec[2]], "axis": -1, "num": 0})
    yield Case("axis_tensor", {"X": r.i((3, 2 * k), -9, 9), "AxisTensor": np.array([1], "int32")}, {"Out": k},
               {"num": k, "axis": 0, "sections": []})
    yield Case("sections_tensors", {"X": r.f((sum(sec[:2]), 2)),
                                    "SectionsTensorList": [np.array([v], "int32") for v in sec[:2]]}, {"Out": 2},
               {"sections": [-1, -1], "axis": 0, "num": 0}, no_grad=("SectionsTensorList",))


@gen("stack")
def _stack(r, op):
    for name, axis, dt in (("front", 0, "float32"), ("back", -1, "int64"), ("middle", r.n(1, 2), "float64"),
                           ("negative", -2, "float32")):
        s = r.shape(2)
        yield Case(name, {"X": [r.i(s, -9, 9, dt) if dt == "int64" else r.f(s, -2, 2, dt) for _ in range(r.n(2, 4))]},
                   {"Y": 1}, {"axis": axis})
    yield Case("zero_dim", {"X": [r.f(()) for _ in range(3)]}, {"Y": 1}, {"axis": 0})


@gen("unstack", "unbind")
def _unstack(r, op):
    slot = "Y" if op == "unstack" else "Out"
    for name, axis in (("axis0", 0), ("axis1", 1), ("negative", -1)):
        s = r.shape(3, 2, 3)
        attrs = {"axis": axis}
        if op == "unstack":
            attrs["num"] = s[axis]
        yield Case(name, {"X": r.f(s) if name != "axis1" else r.i(s, -9, 9, "int64" if r.n(0, 1) else "int32")},
                   {slot: s[axis]}, attrs)
    yield Case("rank1", {"X": r.f((3,))}, {slot: 3}, {"axis": 0, **({"num": 3} if op == "unstack" else {})})


@gen("slice")
def _slice(r, op):
    def one(name, x, axes, starts, ends, decrease=(), extra=None, flags=None, **kw):
        return Case(name, {"Input": x, **(extra or {})}, "Out",
                    {"axes": axes, "starts": starts, "ends": ends, "decrease_axis": list(decrease),
                     "infer_flags": flags or [1] * len(axes)}, **kw)
    yield one("plain", r.f((r.n(3, 5), r.n(3, 5), 2)), [0, 1], [1, 0], [3, r.n(2, 3)])
    yield one("negative", r.f((4, r.n(4, 6))), [1], [-r.n(2, 4)], [-1])
    yield one("beyond_end", r.i((3, r.n(3, 5)), -9, 9), [0, 1], [1, -1000], [1000, 2 ** 31 - 1])
    k = r.n(0, 3)
    yield one("decrease", r.f((r.n(2, 4), 4, 2)), [1], [k], [k + 1], decrease=[1])
    yield one("decrease_last", r.f((r.n(2, 4), 3)), [1], [-1], [2 ** 31 - 1], decrease=[1],
              notes="x[:, -1]")
    k = r.n(0, 3)
    yield one("decrease_to_0d", r.f((4,)), [0], [k], [k + 1], decrease=[0])
    yield one("tensor_bounds", r.f((5, 4)), [0, 1], [0, 0], [5, 4], flags=[-1, -1],
              extra={"StartsTensor": np.array([r.n(0, 2), 1], "int32"), "EndsTensor": np.array([4, r.n(2, 4)], "int32")},
              no_grad=("StartsTensor", "EndsTensor"))
    yield one("tensor_list", r.f((5, 4)), [0], [-1], [-1], flags=[-1],
              extra={"StartsTensorList": [np.array([r.n(0, 2)], "int32")],
                     "EndsTensorList": [np.array([r.n(3, 5)], "int32")]},
              no_grad=("StartsTensorList", "EndsTensorList"))
    yield one("bool", r.b((4, 3)), [0], [r.n(0, 1)], [3])
    yield one("to_empty", r.f((3, 4)), [0], [2], [2])


@gen("strided_slice")
def _strided_slice(r, op):
    def one(name, x, axes, starts, ends, strides, extra=None, flags=None, decrease=()):
        return Case(name, {"Input": x, **(extra or {})}, "Out",
                    {"axes": axes, "starts": starts, "ends": ends, "strides": strides,
                     "infer_flags": flags or [1] * len(axes), "decrease_axis": list(decrease)})
    yield one("step2", r.f((r.n(5, 8), 4)), [0, 1], [r.n(0, 1), 1], [5, 4], [2, r.n(1, 2)])
    yield one("reverse", r.f((3, r.n(4, 7))), [1], [-1], [-100], [-r.n(1, 2)])
    yield one("int64", r.i((6, 3), -9, 9), [0], [r.n(3, 5)], [0], [-2])
    yield one("tensors", r.f((6, 3)), [0], [0], [6], [1], flags=[-1],
              extra={"StartsTensor": np.array([1], "int32"), "EndsTensor": np.array([r.n(4, 6)], "int32"),
                     "StridesTensor": np.array([2], "int32")})


@gen("gather")
def _gather(r, op):
    n = r.n(3, 5)
    yield Case("axis0", {"X": r.f((n, 3)), "Index": r.i((r.n(2, 5),), 0, n - 1)}, "Out", {"axis": 0})
    yield Case("axis1_int32", {"X": r.f((2, n, 2)), "Index": r.i((4,), 0, n - 1, "int32")}, "Out", {"axis": 1})
    yield Case("axis_tensor", {"X": r.i((2, n), -9, 9), "Index": r.i((3,), 0, n - 1), "Axis": np.array([1], "int32")},
               "Out", {"axis": 0}, no_grad=("Axis",))
    yield Case("index_column", {"X": r.f((n, 2)), "Index": r.i((3, 1), 0, n - 1)}, "Out", {"axis": 0},
               notes="Index of shape [k,1] is accepted and treated as [k]")
    yield Case("index_0d", {"X": r.f((n, 2)), "Index": r.i((), 0, n - 1)}, "Out", {"axis": 0})
    yield Case("empty_index", {"X": r.f((n, 2)), "Index": np.zeros((0,), "int64")}, "Out", {"axis": 0})


@gen("gather_nd")
def _gather_nd(r, op):
    a, b, c = r.shape(3, 2, 4)
    idx = lambda lead, dims, dt="int64": np.stack([r.i(lead, 0, d - 1, dt) for d in dims], -1)
    yield Case("full", {"X": r.f((a, b, c)), "Index": idx((3,), (a, b, c))}, "Out")
    yield Case("partial", {"X": r.f((a, b, c)), "Index": idx((2, r.n(1, 3)), (a, b), "int32")}, "Out")
    yield Case("one", {"X": r.i((a, b), -9, 9), "Index": idx((4,), (a,))}, "Out")
    yield Case("to_0d", {"X": r.f((a, b)), "Index": idx((), (a, b))}, "Out")


@gen("scatter")
def _scatter(r, op):
    n, m = r.n(4, 6), r.n(2, 3)
    ids = np.array(r.perm(n)[:3], "int64")
    dup = np.array([1, 2, 1], "int64")
    yield Case("overwrite", {"X": r.f((n, m)), "Ids": ids, "Updates": r.f((3, m))}, "Out", {"overwrite": True})
    yield Case("add", {"X": r.f((n, m)), "Ids": dup, "Updates": r.f((3, m))}, "Out", {"overwrite": False},
               notes="overwrite=False zeroes the addressed rows first, then accumulates")
    yield Case("int32_ids", {"X": r.f((n,)), "Ids": ids.astype("int32"), "Updates": r.f((3,))}, "Out",
               {"overwrite": True})
    yield Case("int64_data", {"X": r.i((n, m), -9, 9), "Ids": ids, "Updates": r.i((3, m), -9, 9)}, "Out",
               {"overwrite": bool(r.n(0, 1))})


@gen("scatter_nd_add")
def _scatter_nd_add(r, op):
    a, b = r.shape(2, 3, 4)
    yield Case("rows", {"X": r.f((a, b)), "Index": r.i((4, 1), 0, a - 1), "Updates": r.f((4, b))}, "Out")
    yield Case("elements", {"X": r.f((a, b)), "Index": r.i((5, 2), 0, 2), "Updates": r.f((5,))}, "Out")


@gen("index_select")
def _index_select(r, op):
    n = r.n(3, 5)
    for dim, dt in ((0, "int64"), (1, "int32"), (-1, "int64")):
        s = [2, 3, 2]
        s[dim] = n
        yield Case(f"dim{dim}".replace("-", "m"), {"X": r.f(s), "Index": r.i((r.n(2, 5),), 0, n - 1, dt)}, "Out",
                   {"dim": dim})


@gen("index_sample")
def _index_sample(r, op):
    s = r.shape(2, 2, 5)
    yield Case("float32", {"X": r.f(s), "Index": r.i((s[0], 3), 0, s[1] - 1)}, "Out")


@gen("take_along_axis")
def _take_along_axis(r, op):
    yield Case("axis1", {"Input": r.f((3, 4)), "Index": r.i((3, r.n(1, 3)), 0, 3)}, "Result", {"Axis": 1})


@gen("transpose2")
def _transpose2(r, op):
    for rank, dt in ((2, "float32"), (3, "int64"), (4, "float32"), (5, "float64"), (3, "bool"), (4, "float16")):
        s = r.shape(rank, 2, 3)
        v = r.b(s) if dt == "bool" else r.i(s, -9, 9) if dt == "int64" else r.f(s, -2, 2, dt)
        yield Case(f"rank{rank}_{dt}", {"X": v}, "Out,XShape", {"axis": r.perm(rank)})
    yield Case("negative_axes", {"X": r.f(r.shape(3))}, "Out,XShape", {"axis": [0, -1, 1]})
    yield Case("zero_dim", {"X": r.f(())}, "Out,XShape", {"axis": []})


@gen("reshape2")
def _reshape2(r, op):
    a, b, c = r.shape(3)
    yield Case("minus1", {"X": r.f((a, b, c))}, "Out,XShape", {"shape": [a, -1]})
    yield Case("copy_dim", {"X": r.f((a, b, c))}, "Out,XShape", {"shape": [0, 0, c, 1]}, notes="0 copies the input dim")
    yield Case("copy_and_infer", {"X": r.i((a, b, c), -9, 9)}, "Out,XShape", {"shape": [0, -1]})
    yield Case("shape_tensor", {"X": r.f((a, b)), "Shape": np.array([b, a], "int32")}, "Out,XShape", {"shape": [-1]},
               no_grad=("Shape",))
    yield Case("shape_tensor_list", {"X": r.f((a, b)), "ShapeTensor": [np.array([b], "int32"), np.array([-1], "int32")]},
               "Out,XShape", {"shape": [-1, -1]}, no_grad=("ShapeTensor",))
    yield Case("to_0d", {"X": r.f((1, 1))}, "Out,XShape", {"shape": []})
    yield Case("from_0d", {"X": r.f(())}, "Out,XShape", {"shape": [1, 1]})
    yield Case("empty", {"X": np.zeros((0, b), "float32")}, "Out,XShape", {"shape": [0, b, 1]})
    yield Case("dynamic_batch", {"X": r.f((a, b, c))}, "Out,XShape", {"shape": [-1, b * c]}, dyn=True)


@gen("flatten2")
def _flatten2(r, op):
    for axis in (0, 1, 2):
        yield Case(f"axis{axis}", {"X": r.f(r.shape(r.n(3, 4), 2, 3))}, "Out,XShape", {"axis": axis})


@gen("flatten_contiguous_range")
def _flatten_range(r, op):
    for name, a, b, rank in (("all", 0, -1, 3), ("tail", 1, -1, 4), ("middle", 1, 2, 4), ("negative", -3, -2, 4)):
        yield Case(name, {"X": r.f(r.shape(rank, 2, 3))}, "Out,XShape", {"start_axis": a, "stop_axis": b})
    yield Case("zero_dim", {"X": r.f(())}, "Out,XShape", {"start_axis": 0, "stop_axis": 0})


@gen("squeeze2")
def _squeeze2(r, op):
    a, b = r.shape(2)
    yield Case("axes", {"X": r.f((a, 1, b, 1))}, "Out,XShape", {"axes": [1]})
    yield Case("all", {"X": r.f((1, a, 1, b))}, "Out,XShape", {"axes": []})
    yield Case("negative", {"X": r.f((a, 1, b, 1))}, "Out,XShape", {"axes": [-1, 1]})
    yield Case("not_one", {"X": r.f((a, 1, b))}, "Out,XShape", {"axes": [0, 1]}, notes="axis 0 is not 1 and is kept")
    yield Case("to_0d", {"X": r.i((1,), -9, 9)}, "Out,XShape", {"axes": [0]})


@gen("unsqueeze2")
def _unsqueeze2(r, op):
    a, b = r.shape(2)
    yield Case("front", {"X": r.f((a, b))}, "Out,XShape", {"axes": [0]})
    yield Case("several", {"X": r.f((a, b))}, "Out,XShape", {"axes": [0, 2, 4]})
    yield Case("negative", {"X": r.f((a, b))}, "Out,XShape", {"axes": [-1, 1]},
               notes="axes are applied one after the other")
    yield Case("axes_tensor", {"X": r.f((a, b)), "AxesTensor": np.array([1], "int32")}, "Out,XShape", {"axes": []},
               no_grad=("AxesTensor",))
    yield Case("zero_dim", {"X": r.i((), -9, 9)}, "Out,XShape", {"axes": [0]})


@gen("expand_v2")
def _expand_v2(r, op):
    a, b, c = r.shape(3)
    yield Case("ones", {"X": r.f((1, b))}, "Out", {"shape": [a, b]})
    yield Case("minus1_newdim", {"X": r.f((b, 1))}, "Out", {"shape": [a, -1, c]})
    yield Case("shape_tensor", {"X": r.f((1, b)), "Shape": np.array([a, b], "int32")}, "Out", {"shape": [-1, -1]},
               no_grad=("Shape",))
    yield Case("shape_list", {"X": r.i((1, b), -9, 9), "expand_shapes_tensor": [np.array([a], "int32"),
                                                                               np.array([b], "int32")]},
               "Out", {"shape": [-1, -1]}, no_grad=("expand_shapes_tensor",))
    yield Case("zero_dim", {"X": r.f(())}, "Out", {"shape": [a, b]})
    yield Case("bool", {"X": r.b((1, b))}, "Out", {"shape": [a, b]})


@gen("expand_as_v2")
def _expand_as(r, op):
    a, b, c = r.shape(3)
    yield Case("y", {"X": r.f((1, c)), "Y": r.f((a, b, c))}, "Out", {"target_shape": [a, b, c]}, no_grad=("Y",))
    yield Case("attr_only", {"X": r.i((b, 1), -9, 9, "int32")}, "Out", {"target_shape": [a, b, c]})


@gen("tile")
def _tile(r, op):
    a, b = r.shape(2)
    yield Case("plain", {"X": r.f((a, b))}, "Out", {"repeat_times": [2, r.n(1, 3)]})
    yield Case("more_repeats", {"X": r.f((a, b))}, "Out", {"repeat_times": [r.n(1, 2), 2, 1]})
    yield Case("fewer_repeats", {"X": r.i((a, b, 2), -9, 9)}, "Out", {"repeat_times": [r.n(2, 3)]})
    yield Case("tensor", {"X": r.f((a, b)), "RepeatTimes": np.array([1, 2], "int32")}, "Out", {"repeat_times": [-1, -1]},
               no_grad=("RepeatTimes",))
    yield Case("zero_dim", {"X": r.f(())}, "Out", {"repeat_times": [r.n(2, 3)]})
    yield Case("bool", {"X": r.b((a, b))}, "Out", {"repeat_times": [2, 1]})


@gen("shape", "size")
def _shape(r, op):
    for name, v in (("rank3", r.f(r.shape(3))), ("rank1", r.i(r.shape(1), 0, 3)), ("zero_dim", r.f(())),
                    ("empty", np.zeros((0, r.n(2, 4)), "float32"))):
        yield Case(name, {"Input": v}, "Out")
    yield Case("dynamic_batch", {"Input": r.f(r.shape(2))}, "Out", dyn=True)


@gen("roll")
def _roll(r, op):
    yield Case("axis", {"X": r.f(r.shape(2, 3, 5))}, "Out", {"shifts": [r.n(-3, 3)], "axis": [r.axis(2)]})
    yield Case("several", {"X": r.i(r.shape(3), -9, 9)}, "Out", {"shifts": [r.n(1, 7), -r.n(1, 2)], "axis": [0, -1]})
    yield Case("flat", {"X": r.f(r.shape(2))}, "Out", {"shifts": [r.n(1, 3)], "axis": []})
    yield Case("shifts_tensor", {"X": r.f(r.shape(2)), "ShiftsTensor": np.array([2], "int64")}, "Out",
               {"shifts": [], "axis": [1]}, no_grad=("ShiftsTensor",))


@gen("flip")
def _flip(r, op):
    yield Case("one", {"X": r.f(r.shape(3))}, "Out", {"axis": [r.axis(3)]})
    yield Case("two", {"X": r.i(r.shape(3), -9, 9)}, "Out", {"axis": [0, -1]})
    yield Case("bool", {"X": r.b(r.shape(2))}, "Out", {"axis": [1]})


@gen("meshgrid")
def _meshgrid(r, op):
    for k, dt in ((2, "float32"), (3, "int64")):
        yield Case(f"n{k}", {"X": [r.i((r.n(1, 4),), -9, 9, dt) for _ in range(k)]}, {"Out": k})


@gen("pixel_shuffle")
def _pixel_shuffle(r, op):
    for name, nhwc in (("nchw", False), ("nhwc", True)):
        u = r.n(2, 3)
        c = u * u * r.n(1, 2)
        yield Case(name, {"X": conv_in(r, r.n(1, 2), c, (2, r.n(2, 3)), nhwc)}, "Out",
                   {"upscale_factor": u, "data_format": "NHWC" if nhwc else "NCHW"})


@gen("shuffle_channel")
def _shuffle_channel(r, op):
    g = r.n(2, 3)
    yield Case("nchw", {"X": r.f((2, g * 2, 2, 3))}, "Out", {"group": g})


@gen("pad2d")
def _pad2d(r, op):
    for name, mode, fmt in (("constant", "constant", "NCHW"), ("reflect", "reflect", "NCHW"), ("edge", "edge", "NCHW"),
                            ("constant_nhwc", "constant", "NHWC"), ("reflect_nhwc", "reflect", "NHWC")):
        yield Case(name, {"X": conv_in(r, 1, 2, (r.n(3, 4), r.n(3, 4)), fmt == "NHWC")}, "Out",
                   {"paddings": [r.n(0, 2) for _ in range(4)], "mode": mode, "pad_value": r.scalar(-1, 1),
                    "data_format": fmt}, notes="paddings = top, bottom, left, right")
    yield Case("tensor", {"X": r.f((1, 2, 3, 3)), "Paddings": r.i((4,), 0, 2, "int32")}, "Out",
               {"paddings": [0, 0, 0, 0], "mode": "constant", "pad_value": 0.5, "data_format": "NCHW"},
               no_grad=("Paddings",))


@gen("pad3d")
def _pad3d(r, op):
    for name, mode, fmt in (("constant", "constant", "NCDHW"), ("reflect", "reflect", "NCDHW"),
                            ("replicate", "replicate", "NCDHW"), ("circular", "circular", "NCDHW"),
                            ("constant_ndhwc", "constant", "NDHWC"), ("reflect_ndhwc", "reflect", "NDHWC")):
        yield Case(name, {"X": conv_in(r, 1, 2, (3, r.n(3, 4), r.n(3, 4)), fmt == "NDHWC")}, "Out",
                   {"paddings": [r.n(0, 2) for _ in range(6)], "mode": mode, "value": r.scalar(-1, 1),
                    "data_format": fmt}, notes="paddings = left, right, top, bottom, front, back (W first)")
    yield Case("tensor", {"X": r.f((1, 2, 2, 3, 3)), "Paddings": r.i((6,), 0, 2, "int32")}, "Out",
               {"paddings": [0] * 6, "mode": "constant", "value": 0.25, "data_format": "NCDHW"}, no_grad=("Paddings",))
    yield Case("int64", {"X": r.i((1, 1, 2, 2, 3), -9, 9)}, "Out",
               {"paddings": [1, 0, 0, 1, 1, 1], "mode": "constant", "value": 2.0, "data_format": "NCDHW"})


@gen("pad")
def _pad(r, op):
    yield Case("rank2", {"X": r.f(r.shape(2))}, "Out", {"paddings": [r.n(0, 2) for _ in range(4)],
                                                       "pad_value": r.scalar(-1, 1)})
    yield Case("rank3", {"X": r.f(r.shape(3, 1, 3))}, "Out", {"paddings": [r.n(0, 2) for _ in range(6)],
                                                            "pad_value": r.scalar(-1, 1)})


# ----------------------------------------------------------------------------
# 3f. creation
# ----------------------------------------------------------------------------
@gen("fill_constant")
def _fill_constant(r, op):
    s = list(r.shape(2))
    for dt in ("float32", "int64", "bool", "float64", "int32", "float16"):
        yield Case(dt, {}, "Out", {"shape": s, "dtype": DTYPE_CODE[dt],
                                   "value": 1.0 if dt == "bool" else float(r.pick(-1, 1) * r.n(1, 5)), "str_value": ""})
    yield Case("str_value", {}, "Out", {"shape": s, "dtype": FP32, "value": 1.0, "str_value": str(r.scalar(-2, 2, 6))},
               notes="a non-empty str_value wins over value")
    yield Case("str_inf", {}, "Out", {"shape": s, "dtype": FP32, "value": 0.0, "str_value": r.pick("inf", "-inf", "nan")})
    yield Case("str_int64", {}, "Out", {"shape": [1], "dtype": INT64, "value": 0.0, "str_value": "9007199254740993"})
    yield Case("shape_tensor", {"ShapeTensor": np.array(s, "int64")}, "Out",
               {"shape": [], "dtype": FP32, "value": 2.5})
    yield Case("shape_list", {"ShapeTensorList": [np.array([v], "int32") for v in s]}, "Out",
               {"shape": [-1, -1], "dtype": INT32, "value": 7.0})
    yield Case("value_tensor", {"ValueTensor": r.f((1,))}, "Out", {"shape": s, "dtype": FP32, "value": 0.0})
    yield Case("zero_dim", {}, "Out", {"shape": [], "dtype": FP32, "value": 1.5})
    yield Case("empty", {}, "Out", {"shape": [0, s[0]], "dtype": FP32, "value": 1.5})


@gen("fill_constant_batch_size_like")
def _fill_cbsl(r, op):
    yield Case("dim0", {"Input": r.f(r.shape(3))}, "Out", {"shape": [-1, r.n(2, 4)], "dtype": FP32, "value": 1.25,
                                                          "str_value": "", "input_dim_idx": 0, "output_dim_idx": 0})
    yield Case("dim1_int64", {"Input": r.f(r.shape(3))}, "Out",
               {"shape": [r.n(1, 3), -1], "dtype": INT64, "value": 3.0, "str_value": "", "input_dim_idx": 2,
                "output_dim_idx": 1})
    yield Case("str_value", {"Input": r.i(r.shape(2), 0, 3)}, "Out",
               {"shape": [-1, 2], "dtype": FP32, "value": 0.0, "str_value": "-0.75", "input_dim_idx": 1,
                "output_dim_idx": 0})


@gen("fill_any_like")
def _fill_any_like(r, op):
    yield Case("same_dtype", {"X": r.f(r.shape(3))}, "Out", {"value": r.scalar(-3, 3), "dtype": -1})
    yield Case("to_int64", {"X": r.f(r.shape(2))}, "Out", {"value": 3.0, "dtype": INT64})
    yield Case("int_to_float", {"X": r.i(r.shape(2), 0, 3, "int32")}, "Out", {"value": 0.5, "dtype": FP32})
    yield Case("bool", {"X": r.f(())}, "Out", {"value": 1.0, "dtype": BOOL})


@gen("fill_zeros_like", "fill_zeros_like2")
def _fill_zeros_like(r, op):
    for dt in ("float32", "int64"):
        yield Case(dt, {"X": r.i(r.shape(2), -3, 3, dt)}, "Out", {} if op == "fill_zeros_like" else {"dtype": DTYPE_CODE[dt]})


@gen("assign")
def _assign(r, op):
    for dt in ("float32", "int64", "bool", "float16"):
        s = r.shape(r.n(1, 3))
        yield Case(dt, {"X": r.b(s) if dt == "bool" else r.i(s, -9, 9, dt)}, "Out")
    yield Case("zero_dim", {"X": r.f(())}, "Out")


@gen("assign_value")
def _assign_value(r, op):
    a, b = r.shape(2)
    for dt, key in (("float32", "fp32_values"), ("int32", "int32_values"), ("int64", "int64_values"),
                    ("bool", "bool_values"), ("float64", "fp64_values")):
        v = r.f(a * b) if dt.startswith("float") else r.i(a * b, 0 if dt == "bool" else -9, 1 if dt == "bool" else 9)
        yield Case(dt, {}, "Out", {"shape": [a, b], "dtype": DTYPE_CODE[dt], key: [x.item() for x in v]})


@gen("range")
def _range(r, op):
    for dt in ("float32", "int64", "int32", "float64"):
        lo, step = r.n(-3, 3), r.n(1, 3)
        mk = lambda v: np.array([v], dt)
        frac = 0.25 if dt.startswith("float") else 0
        yield Case(dt, {"Start": mk(lo), "End": mk(lo + r.n(4, 12) + frac), "Step": mk(step + frac)}, "Out")
    yield Case("negative_step", {"Start": np.array([7], "int64"), "End": np.array([r.n(-2, 2)], "int64"),
                                 "Step": np.array([-2], "int64")}, "Out")
    yield Case("zero_dim", {"Start": np.array(0, "float32"), "End": np.array(r.n(3, 6), "float32"),
                            "Step": np.array(0.5, "float32")}, "Out")


@gen("linspace")
def _linspace(r, op):
    for dt in ("float32", "float64", "int32"):
        yield Case(dt, {"Start": np.array([r.n(-3, 3)], dt), "Stop": np.array([r.n(4, 9)], dt),
                        "Num": np.array([r.n(3, 8)], "int32")}, "Out", {"dtype": DTYPE_CODE[dt]})
    yield Case("one", {"Start": r.f((1,)), "Stop": r.f((1,)), "Num": np.array([1], "int32")}, "Out", {"dtype": FP32})


@gen("eye")
def _eye(r, op):
    yield Case("square", {}, "Out", {"num_rows": r.n(2, 5), "num_columns": -1, "dtype": FP32})
    yield Case("wide_int64", {}, "Out", {"num_rows": r.n(2, 3), "num_columns": r.n(3, 5), "dtype": INT64})


@gen("one_hot_v2")
def _one_hot(r, op):
    d = r.n(3, 6)
    yield Case("rank1", {"X": r.i(r.shape(1), 0, d - 1)}, "Out", {"depth": d, "dtype": FP32, "allow_out_of_range": False})
    yield Case("rank2_int32", {"X": r.i(r.shape(2), 0, d - 1, "int32")}, "Out", {"depth": d, "dtype": FP32})
    yield Case("depth_tensor", {"X": r.i(r.shape(1), 0, d - 1), "depth_tensor": np.array([d], "int32")}, "Out",
               {"depth": d, "dtype": FP32})
    yield Case("out_of_range", {"X": r.i(r.shape(1, 4, 6), -1, d)}, "Out",
               {"depth": d, "dtype": FP32, "allow_out_of_range": True})


@gen("lookup_table_v2")
def _lookup_v2(r, op):
    v, d = r.n(4, 8), r.n(2, 4)
    yield Case("plain", {"W": r.f((v, d)), "Ids": r.i(r.shape(2), 0, v - 1)}, "Out", {"padding_idx": -1})
    yield Case("padding_idx", {"W": r.f((v, d)), "Ids": r.i((6,), 0, 2)}, "Out", {"padding_idx": r.n(0, 2)})
    yield Case("int32_double", {"W": r.f((v, d), -1, 1, "float64"), "Ids": r.i((2, 1, 3), 0, v - 1, "int32")}, "Out",
               {"padding_idx": -1})


@gen("lookup_table")
def _lookup(r, op):
    v, d = r.n(4, 8), r.n(2, 4)
    yield Case("plain", {"W": r.f((v, d)), "Ids": r.i((r.n(2, 4), 1), 0, v - 1)}, "Out", {"padding_idx": -1},
               notes="v1: the last dimension of Ids is 1 and is dropped")
    yield Case("padding_idx", {"W": r.f((v, d)), "Ids": r.i((5, 1), 0, 2)}, "Out", {"padding_idx": r.n(0, 2)})


# ----------------------------------------------------------------------------
# 3g. search, selection, cumulative
# ----------------------------------------------------------------------------
@gen("where")
def _where(r, op):
    for dt in ("float32", "int64", "float64"):
        s = r.shape(r.n(1, 3))
        mk = lambda: r.i(s, -9, 9, dt) if dt == "int64" else r.f(s, -2, 2, dt)
        yield Case(dt, {"Condition": r.b(s), "X": mk(), "Y": mk()}, "Out")
    yield Case("zero_dim", {"Condition": r.b(()), "X": r.f(()), "Y": r.f(())}, "Out")


@gen("where_index")
def _where_index(r, op):
    yield Case("bool2", {"Condition": r.b(r.shape(2))}, "Out")
    yield Case("float3", {"Condition": r.i(r.shape(3, 2, 3), 0, 1, "float32")}, "Out")
    yield Case("int64", {"Condition": r.i(r.shape(1, 4, 6), 0, 1)}, "Out")
    yield Case("none_true", {"Condition": np.zeros((2, 3), "bool")}, "Out")


@gen("masked_select")
def _masked_select(r, op):
    for dt in ("float32", "int64"):
        s = r.shape(r.n(1, 3))
        yield Case(dt, {"X": r.i(s, -9, 9, dt), "Mask": r.b(s)}, {"Y": 1})
    yield Case("none", {"X": r.f((2, 3)), "Mask": np.zeros((2, 3), "bool")}, {"Y": 1})


@gen("top_k_v2")
def _top_k_v2(r, op):
    k = r.n(1, 3)
    yield Case("last", {"X": r.distinct((3, r.n(4, 6)))}, "Out,Indices", {"k": k, "axis": -1, "largest": True, "sorted": True})
    yield Case("axis0_smallest", {"X": r.distinct((r.n(4, 6), 3))}, "Out,Indices",
               {"k": k, "axis": 0, "largest": False, "sorted": True})
    yield Case("axis1_rank3", {"X": r.distinct((2, 5, 2), -40, 40, "int64")}, "Out,Indices",
               {"k": k, "axis": 1, "largest": bool(r.n(0, 1)), "sorted": True})
    yield Case("k_tensor", {"X": r.distinct((2, 5), dtype="float64"), "K": np.array([k], "int32")}, "Out,Indices",
               {"k": 1, "axis": -1, "largest": True, "sorted": True}, no_grad=("K",))


@gen("top_k")
def _top_k(r, op):
    yield Case("plain", {"X": r.distinct((r.n(2, 3), r.n(4, 7)))}, "Out,Indices", {"k": r.n(1, 4)})
    yield Case("k_tensor", {"X": r.distinct((2, 2, 5)), "K": np.array([r.n(1, 4)], "int32")}, "Out,Indices", {"k": 1},
               no_grad=("K",))


@gen("argsort")
def _argsort(r, op):
    yield Case("last", {"X": r.distinct((2, r.n(4, 7)))}, "Out,Indices", {"axis": -1, "descending": False})
    yield Case("axis0_desc", {"X": r.distinct((r.n(3, 5), 3))}, "Out,Indices", {"axis": 0, "descending": True})
    yield Case("axis1_int64", {"X": r.distinct((2, 5, 2), -40, 40, "int64")}, "Out,Indices",
               {"axis": 1, "descending": bool(r.n(0, 1))})
    yield Case("ties", {"X": r.i((2, 6), 0, 2, "float32")}, "Out,Indices",
               {"axis": -1, "descending": bool(r.n(0, 1))}, nofetch=("Indices",),
               notes="equal keys: only the values are recorded")


@gen("arg_max", "arg_min")
def _arg_max(r, op):
    def one(name, x, **a):
        return Case(name, {"X": x}, "Out", {"axis": -1, "keepdims": False, "flatten": False, "dtype": INT64, **a})
    yield one("last", r.distinct((3, r.n(3, 5))))
    yield one("axis_keep", r.distinct((2, 3, r.n(2, 4))), axis=r.n(0, 1), keepdims=True)
    yield one("flatten_int32", r.distinct((2, r.n(3, 5))), flatten=True, dtype=INT32)
    yield one("int64_axis0", r.distinct((r.n(3, 5), 2), -30, 30, "int64"), axis=0)
    yield one("ties", r.i((3, 5), 0, 1, "float32"))
    yield one("default_dtype", r.distinct((2, 4), dtype="float64"), dtype=-1)


@gen("cumsum")
def _cumsum(r, op):
    yield Case("last", {"X": r.f(r.shape(2))}, "Out", {"axis": -1, "flatten": False, "exclusive": False, "reverse": False})
    yield Case("exclusive", {"X": r.f(r.shape(3))}, "Out", {"axis": r.n(0, 2), "exclusive": True, "reverse": False})
    yield Case("reverse", {"X": r.i(r.shape(3), -9, 9)}, "Out", {"axis": r.axis(3), "exclusive": False, "reverse": True})
    yield Case("both_double", {"X": r.f(r.shape(2), -2, 2, "float64")}, "Out", {"axis": 0, "exclusive": True, "reverse": True})
    yield Case("flatten", {"X": r.f(r.shape(2))}, "Out", {"axis": -1, "flatten": True})


@gen("tril_triu")
def _tril_triu(r, op):
    for lower in (True, False):
        yield Case("tril" if lower else "triu", {"X": r.f(r.shape(2, 3, 5))}, "Out",
                   {"diagonal": r.n(-2, 2), "lower": lower})
    yield Case("batched_int64", {"X": r.i(r.shape(3, 2, 4), -9, 9)}, "Out", {"diagonal": r.n(-1, 1), "lower": bool(r.n(0, 1))})


# ----------------------------------------------------------------------------
# 3h. reductions
# ----------------------------------------------------------------------------
@gen("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_any", "reduce_all")
def _reduce(r, op):
    logical = op in ("reduce_any", "reduce_all")
    mk = (lambda s, dt="float32": r.b(s, 0.7 if op == "reduce_all" else 0.3)) if logical else \
        (lambda s, dt="float32": r.i(s, -4, 4, dt) if dt.startswith("int")
         else r.distinct(s, -2, 2, dt) if op in ("reduce_max", "reduce_min") else r.f(s, -2, 2, dt))

    def one(name, x, dim, keep=False, all_=False, **kw):
        return Case(name, {"X": x}, "Out", {"dim": dim, "keep_dim": keep, "reduce_all": all_,
                                            "in_dtype": -1, "out_dtype": -1, **kw})
    yield one("dim0", mk(r.shape(3)), [0])
    yield one("negative_keep", mk(r.shape(3)), [-1], True)
    yield one("two_dims", mk(r.shape(4, 2, 3)), [1, -1], bool(r.n(0, 1)))
    yield one("reduce_all", mk(r.shape(3)), [0], False, True)
    yield one("reduce_all_keep", mk(r.shape(2)), [0], True, True)
    yield one("all_dims_listed", mk(r.shape(2)), [0, 1])
    yield one("zero_dim", mk(()), [], False, True)
    if not logical:
        yield one("double", mk(r.shape(3), "float64"), [r.axis(3)])
        if op != "reduce_mean":
            yield one("int64", mk(r.shape(2), "int64"), [0], bool(r.n(0, 1)))
            yield one("int32", mk(r.shape(2), "int32"), [1])
        if op == "reduce_sum":
            yield one("out_dtype", mk(r.shape(2)), [0], in_dtype=FP32, out_dtype=FP64)
            yield one("bool_to_int64", r.b(r.shape(2)), [1], in_dtype=BOOL, out_dtype=INT64)
            yield one("empty", np.zeros((0, 3), "float32"), [0])


@gen("mean")
def _mean(r, op):
    yield Case("float32", {"X": r.f(r.shape(3))}, "Out")
    yield Case("float64", {"X": r.f(r.shape(2), -2, 2, "float64")}, "Out")
    yield Case("zero_dim", {"X": r.f(())}, "Out")


@gen("sum")
def _sum(r, op):
    for dt, k in (("float32", 2), ("float64", 3), ("int64", r.n(2, 4)), ("int32", 2)):
        s = r.shape(r.n(1, 3))
        yield Case(dt, {"X": [r.i(s, -9, 9, dt) if dt.startswith("int") else r.f(s, -2, 2, dt) for _ in range(k)]}, "Out")
    yield Case("single", {"X": [r.f(r.shape(2))]}, "Out")


@gen("logsumexp")
def _logsumexp(r, op):
    yield Case("axis", {"X": r.f(r.shape(3))}, "Out", {"axis": [r.axis(3)], "keepdim": bool(r.n(0, 1)), "reduce_all": False})


@gen("squared_l2_norm")
def _squared_l2(r, op):
    yield Case("rank2", {"X": r.f(r.shape(2))}, "Out")
    yield Case("double", {"X": r.f(r.shape(3), -2, 2, "float64")}, "Out")


@gen("clip_by_norm")
def _clip_by_norm(r, op):
    yield Case("clipped", {"X": r.f(r.shape(2), -3, 3)}, "Out", {"max_norm": r.scalar(0.5, 1.5)})
    yield Case("untouched", {"X": r.f(r.shape(2), -0.1, 0.1)}, "Out", {"max_norm": 5.0})


# ----------------------------------------------------------------------------
# 3i. resize, sampling
# ----------------------------------------------------------------------------
@gen("nearest_interp", "bilinear_interp", "nearest_interp_v2", "bilinear_interp_v2", "bicubic_interp_v2")
def _interp(r, op):
    v2, method = op.endswith("_v2"), op.split("_")[0]

    def one(name, extra=None, nhwc=False, hw=None, no_grad=(), **a):
        scale = a.pop("scale", None)
        base = {"data_layout": "NHWC" if nhwc else "NCHW", "out_d": -1, "out_h": -1, "out_w": -1,
                "interp_method": method, "align_corners": False, "align_mode": 1}
        base["scale"] = (list(scale) if scale else []) if v2 else (scale[0] if scale else 0.0)
        base.update(a)
        x = conv_in(r, r.n(1, 2), r.n(1, 3), hw or (r.n(3, 5), r.n(3, 5)), nhwc)
        return Case(name, {"X": x, **(extra or {})}, "Out", base, no_grad=no_grad or tuple(extra or ()))
    yield one("out_hw", out_h=r.n(5, 8), out_w=r.n(2, 7))
    yield one("align_corners", out_h=r.n(5, 8), out_w=r.n(2, 7), align_corners=True)
    yield one("align_mode0", out_h=r.n(5, 8), out_w=r.n(6, 9), align_mode=0)
    yield one("scale_attr", scale=(r.pick(2.0, 1.5), r.pick(3.0, 0.7)), align_mode=r.n(0, 1))
    yield one("scale_fraction", scale=(1.7, 1.3), hw=(5, 6), align_corners=bool(r.n(0, 1)))
    yield one("out_size_tensor", {"OutSize": np.array([r.n(4, 7), r.n(2, 6)], "int32")}, out_h=3, out_w=3)
    yield one("size_tensor_list", {"SizeTensor": [np.array([r.n(4, 7)], "int32"), np.array([r.n(2, 6)], "int32")]},
              out_h=3, out_w=3)
    yield one("scale_tensor", {"Scale": np.array([2.0], "float32")}, out_h=3, out_w=3)
    yield one("nhwc", nhwc=True, out_h=r.n(5, 8), out_w=r.n(2, 7))


@gen("grid_sampler")
def _grid_sampler(r, op):
    for k, (mode, pad, ac) in enumerate([("bilinear", "zeros", True), ("bilinear", "border", False),
                                         ("bilinear", "reflection", True), ("nearest", "zeros", False),
                                         ("nearest", "border", True), ("bilinear", "reflection", False)]):
        n, c, h, w = r.n(1, 2), r.n(1, 2), r.n(3, 5), r.n(3, 5)
        yield Case(f"{mode}_{pad}_{'ac' if ac else 'noac'}",
                   {"X": r.f((n, c, h, w)), "Grid": r.f((n, r.n(2, 4), r.n(2, 4), 2), -1.4, 1.4)}, "Output",
                   {"mode": mode, "padding_mode": pad, "align_corners": ac})


@gen("roi_align")
def _roi_align(r, op):
    def rois(k):
        return r.boxes(k, 14.0)
    for name, aligned, ratio in (("aligned", True, 2), ("legacy", False, -1), ("ratio", False, r.n(1, 3))):
        yield Case(name, {"X": r.f((2, r.n(1, 3), 8, 8)), "ROIs": rois(5), "RoisNum": np.array([2, 3], "int32")}, "Out",
                   {"pooled_height": r.n(1, 3), "pooled_width": r.n(2, 3), "spatial_scale": r.pick(0.5, 0.25, 1.0),
                    "sampling_ratio": ratio, "aligned": aligned}, no_grad=("ROIs",))
    yield Case("lod", {"X": r.f((2, 2, 6, 7)), "ROIs": LoD(rois(4), [[0, 1, 4]])}, "Out",
               {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 0.5, "sampling_ratio": -1, "aligned": False},
               no_grad=("ROIs",))


@gen("roi_pool")
def _roi_pool(r, op):
    yield Case("plain", {"X": r.f((2, 2, 8, 8)), "ROIs": r.boxes(4, 14.0), "RoisNum": np.array([1, 3], "int32")},
               "Out,Argmax", {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 0.5})


@gen("deformable_conv")
def _deformable(r, op):
    for name, groups, dg in (("plain", 1, 1), ("groups", 2, 1), ("deformable_groups", 1, 2)):
        n, ci, co, k, h, w = 1, 4, r.n(1, 2) * 2, r.pick(2, 3), r.n(4, 5), r.n(4, 5)
        p, s, d = r.n(0, 1), r.n(1, 2), 1
        ho, wo = (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1
        yield Case(name, {"Input": r.f((n, ci, h, w)), "Offset": r.f((n, 2 * dg * k * k, ho, wo), -1.2, 1.2),
                          "Mask": r.f((n, dg * k * k, ho, wo), 0, 1), "Filter": r.f((co, ci // groups, k, k))}, "Output",
                   {"strides": [s, s], "paddings": [p, p], "dilations": [d, d], "groups": groups,
                    "deformable_groups": dg, "im2col_step": 1})


@gen("im2sequence")
def _im2sequence(r, op):
    yield Case("plain", {"X": r.f((r.n(1, 2), 2, 4, r.n(4, 5)))}, "Out",
               {"kernels": [2, r.n(1, 3)], "strides": [1, r.n(1, 2)], "paddings": [0, 0, 0, 0]})
    yield Case("padded", {"X": r.f((2, 1, 3, 4))}, "Out",
               {"kernels": [2, 2], "strides": [2, 1], "paddings": [1, r.n(0, 1), 1, 0]})


# ----------------------------------------------------------------------------
# 3j. dropout, losses, metrics
# ----------------------------------------------------------------------------
@gen("dropout")
def _dropout(r, op):
    for impl in ("downgrade_in_infer", "upscale_in_train"):
        yield Case(f"test_{impl}", {"X": r.f(r.shape(2))}, "Out,Mask",
                   {"dropout_prob": r.scalar(0.1, 0.7), "is_test": True, "dropout_implementation": impl},
                   nofetch=("Mask",))
    for prob, name in ((0.0, "train_p0"), (1.0, "train_p1")):
        impl = r.pick("downgrade_in_infer", "upscale_in_train")
        yield Case(f"{name}", {"X": r.f(r.shape(2))}, "Out,Mask",
                   {"dropout_prob": prob, "is_test": False, "dropout_implementation": impl, "fix_seed": True, "seed": 7},
                   notes="p=0 and p=1 do not depend on random numbers")


def _dropout_train(r):
    """base cases of dropout_grad; the Mask is supplied, so no random stream matters"""
    for impl in ("downgrade_in_infer", "upscale_in_train"):
        s = r.shape(2)
        yield Case(f"train_{impl}", {"X": r.f(s)}, "Out,Mask",
                   {"dropout_prob": r.scalar(0.2, 0.6), "is_test": False, "dropout_implementation": impl,
                    "fix_seed": True, "seed": 7}, override={"Mask": r.i(s, 0, 1, "uint8")}, op="dropout")


@gen("cross_entropy2")
def _cross_entropy2(r, op):
    for name, lead, ignore in (("rank2", (r.n(2, 4),), -100), ("rank3", r.shape(2), -100), ("ignore", (5,), 1)):
        c = r.n(3, 5)
        p = r.f(lead + (c,), 0.05, 1)
        p /= p.sum(-1, keepdims=True)
        yield Case(name, {"X": p, "Label": r.i(lead + (1,), 0, c - 1)}, "Y,XShape,MatchX", {"ignore_index": ignore})


@gen("cross_entropy")
def _cross_entropy(r, op):
    c = r.n(3, 5)
    p = r.f((4, c), 0.05, 1)
    p /= p.sum(-1, keepdims=True)
    yield Case("hard", {"X": p, "Label": r.i((4, 1), 0, c - 1)}, "Y", {"soft_label": False, "ignore_index": -100})
    q = r.f((4, c), 0.05, 1)
    yield Case("soft", {"X": p, "Label": (q / q.sum(-1, keepdims=True)).astype("float32")}, "Y", {"soft_label": True})


@gen("softmax_with_cross_entropy")
def _swce(r, op):
    def one(name, shape, axis=-1, soft=False, ignore=-100, dt="float32", **a):
        c = shape[axis]
        lab_shape = list(shape)
        lab_shape[axis] = 1
        if soft:
            lab = r.f(shape, 0.05, 1, dt)
            lab = (lab / lab.sum(axis, keepdims=True)).astype(dt)
        else:
            lab = r.i(lab_shape, 0, c - 1)
        return Case(name, {"Logits": r.f(shape, -3, 3, dt), "Label": lab}, "Softmax,Loss",
                    {"soft_label": soft, "axis": axis, "ignore_index": ignore, "numeric_stable_mode": True,
                     "use_softmax": True, **a}, no_grad=("Label",))
    yield one("hard", (r.n(2, 5), r.n(3, 6)))
    yield one("soft", (r.n(2, 5), r.n(3, 6)), soft=True)
    yield one("hard_ignore", (6, 3), ignore=1)
    yield one("hard_axis1", (2, r.n(3, 5), 3), axis=1)
    yield one("soft_rank3", (2, r.n(2, 3), 4), soft=True, axis=r.pick(1, -1))
    yield one("hard_double", (3, 4), dt="float64")


@gen("sigmoid_cross_entropy_with_logits")
def _sigmoid_ce(r, op):
    s = r.shape(2)
    yield Case("plain", {"X": r.f(s, -4, 4), "Label": r.f(s, 0, 1)}, "Out", {"normalize": False, "ignore_index": -100},
               no_grad=("Label",))
    lab = r.i((3, 4), -1, 1, "float32")
    yield Case("ignore_normalize", {"X": r.f((3, 4), -4, 4), "Label": lab}, "Out",
               {"normalize": True, "ignore_index": -1}, no_grad=("Label",))
    yield Case("double", {"X": r.f(s, -4, 4, "float64"), "Label": r.f(s, 0, 1, "float64")}, "Out",
               {"normalize": False, "ignore_index": -100}, no_grad=("Label",))


@gen("bce_loss", "log_loss")
def _bce(r, op):
    s = (r.n(2, 5), 1)
    p, l = r.f(s, 0.05, 0.95), r.i(s, 0, 1, "float32")
    if op == "bce_loss":
        yield Case("plain", {"X": p, "Label": l}, "Out", no_grad=("Label",))
    else:
        yield Case("plain", {"Predicted": p, "Labels": l}, "Loss", {"epsilon": 1e-4}, no_grad=("Labels",))


@gen("huber_loss")
def _huber(r, op):
    for k in range(2):
        s = (r.n(2, 5), 1) if k == 0 else r.shape(2)
        yield Case(f"delta{k}", {"X": r.f(s), "Y": r.f(s)}, "Out,Residual", {"delta": r.scalar(0.3, 1.5)})


@gen("kldiv_loss")
def _kldiv(r, op):
    s = r.shape(2)
    for red in ("mean", "batchmean", "none"):
        yield Case(red, {"X": r.f(s, -2, 0), "Target": r.f(s, 0, 1)}, {"Loss": 1}, {"reduction": red}, no_grad=("Target",))


@gen("label_smooth")
def _label_smooth(r, op):
    c = r.n(3, 5)
    lab = np.eye(c, dtype="float32")[r.i((4,), 0, c - 1)]
    yield Case("uniform", {"X": lab}, "Out", {"epsilon": 0.1})


# Composite losses of the old API: what they lower to in 2.6.2.
@gen("square_error_cost")
def _square_error(r, op):
    s = r.shape(2)
    yield Case("from_square_error_cost_minus", {"X": r.f(s), "Y": r.f(s)}, "Out", {"axis": -1}, op="elementwise_sub")
    yield Case("from_square_error_cost_square", {"X": r.f(s)}, "Out", {}, op="square")


@gen("smooth_l1_loss", "target_assign")
def _absent(r, op):
    yield Case("absent", {"X": r.f((2, 2)), "Y": r.f((2, 2))}, "Out", {})


@gen("accuracy")
def _accuracy(r, op):
    for name, k in (("top1", 1), ("topk", r.n(2, 3))):
        n, c = r.n(4, 8), 6
        idx = np.stack([r.perm(c)[:k] for _ in range(n)]).astype("int64")
        lab = r.i((n, 1), 0, c - 1)
        lab[: n // 2, 0] = idx[: n // 2, -1]
        yield Case(name, {"Out": r.f((n, k), 0, 1), "Indices": idx, "Label": lab}, "Accuracy,Correct,Total")


@gen("auc")
def _auc(r, op):
    n, t = 8, 15
    p = r.f((n, 2), 0, 1)
    yield Case("plain", {"Predict": p, "Label": r.i((n, 1), 0, 1), "StatPos": np.zeros((1, t + 1), "int64"),
                         "StatNeg": np.zeros((1, t + 1), "int64")}, "AUC,StatPosOut,StatNegOut",
               {"curve": "ROC", "num_thresholds": t, "slide_steps": 0},
               alias={"StatPosOut": "StatPos", "StatNegOut": "StatNeg"})


# ----------------------------------------------------------------------------
# 3k. detection
# ----------------------------------------------------------------------------
@gen("yolo_box")
def _yolo_box(r, op):
    for name, clip, aware in (("plain", True, False), ("no_clip", False, False), ("iou_aware", True, True)):
        na, c = r.n(1, 3), r.n(1, 3)
        h, w = r.n(2, 3), r.n(2, 3)
        ch = na * ((6 if aware else 5) + c)
        n = r.n(1, 2)
        yield Case(name, {"X": r.f((n, ch, h, w), -2, 2), "ImgSize": r.i((n, 2), 60, 200, "int32")}, "Boxes,Scores",
                   {"anchors": [r.n(8, 60) for _ in range(2 * na)], "class_num": c, "conf_thresh": r.pick(0.01, 0.4),
                    "downsample_ratio": r.pick(16, 32), "clip_bbox": clip, "scale_x_y": r.pick(1.0, 1.05),
                    "iou_aware": aware, "iou_aware_factor": 0.4})


@gen("prior_box")
def _prior_box(r, op):
    def one(name, **a):
        base = {"min_sizes": [r.n(4, 10)], "max_sizes": [], "aspect_ratios": [1.0], "variances": [0.1, 0.1, 0.2, 0.2],
                "flip": False, "clip": False, "step_w": 0.0, "step_h": 0.0, "offset": 0.5,
                "min_max_aspect_ratios_order": False}
        base.update(a)
        return Case(name, {"Input": r.f((1, 2, r.n(2, 3), r.n(2, 4))), "Image": r.f((1, 1, r.n(20, 24), r.n(20, 26)))},
                    "Boxes,Variances", base)
    yield one("plain")
    yield one("max_flip", max_sizes=[r.n(12, 18)], aspect_ratios=[1.0, 2.0, r.pick(3.0, 0.5)], flip=True)
    yield one("order_clip", min_sizes=[4, 9], max_sizes=[8, 15], aspect_ratios=[2.0], clip=True,
              min_max_aspect_ratios_order=True, flip=True)
    yield one("steps", step_w=r.pick(6.0, 8.0), step_h=7.0, offset=r.pick(0.0, 0.5), aspect_ratios=[1.0, 2.0])


@gen("density_prior_box")
def _density_prior(r, op):
    for flat in (False, True):
        yield Case("flat" if flat else "plain",
                   {"Input": r.f((1, 1, r.n(2, 3), 2)), "Image": r.f((1, 1, r.n(16, 20), r.n(16, 20)))}, "Boxes,Variances",
                   {"variances": [0.1, 0.1, 0.2, 0.2], "clip": flat, "flatten_to_2d": flat,
                    "step_w": r.pick(0.0, 8.0), "step_h": r.pick(0.0, 8.0), "offset": 0.5, "fixed_sizes": [4.0, 8.0],
                    "fixed_ratios": [1.0, r.pick(2.0, 0.5)], "densities": [r.n(1, 2), 1]})


@gen("anchor_generator")
def _anchor_generator(r, op):
    for k in range(2):
        yield Case(f"case{k}", {"Input": r.f((1, 1, r.n(2, 3), r.n(2, 4)))}, "Anchors,Variances",
                   {"anchor_sizes": [32.0, float(r.n(40, 90))][: r.n(1, 2)], "aspect_ratios": [0.5, 1.0, r.pick(2.0, 1.7)],
                    "variances": [0.1, 0.1, 0.2, 0.2], "stride": [16.0, r.pick(8.0, 16.0)], "offset": r.pick(0.5, 0.0)})


@gen("box_coder")
def _box_coder(r, op):
    m, n = r.n(2, 4), r.n(2, 4)
    var = r.f((m, 4), 0.1, 0.3)
    enc = lambda **a: {"code_type": "encode_center_size", "box_normalized": True, "axis": 0, "variance": [], **a}
    dec = lambda **a: enc(**{"code_type": "decode_center_size", **a})
    yield Case("encode_var_tensor", {"PriorBox": r.boxes(m), "PriorBoxVar": var, "TargetBox": r.boxes(n)}, "OutputBox", enc())
    yield Case("encode_var_attr", {"PriorBox": r.boxes(m, 20), "TargetBox": r.boxes(n, 20)}, "OutputBox",
               enc(box_normalized=False, variance=[0.1, 0.1, 0.2, 0.2]))
    yield Case("decode_axis0", {"PriorBox": r.boxes(m), "PriorBoxVar": var, "TargetBox": r.f((n, m, 4), -1, 1)},
               "OutputBox", dec())
    yield Case("decode_axis1", {"PriorBox": r.boxes(m, 20), "PriorBoxVar": var, "TargetBox": r.f((m, n, 4), -1, 1)},
               "OutputBox", dec(axis=1, box_normalized=False))
    yield Case("decode_var_attr", {"PriorBox": r.boxes(m), "TargetBox": r.f((n, m, 4), -1, 1)}, "OutputBox",
               dec(variance=[0.1, 0.1, 0.2, 0.3]))
    yield Case("decode_no_var", {"PriorBox": r.boxes(m), "TargetBox": r.f((n, m, 4), -1, 1)}, "OutputBox", dec())


@gen("iou_similarity")
def _iou(r, op):
    yield Case("normalized", {"X": r.boxes(r.n(3, 6)), "Y": r.boxes(r.n(3, 6))}, "Out", {"box_normalized": True})
    yield Case("pixels", {"X": r.boxes(3, 20), "Y": r.boxes(r.n(2, 4), 20)}, "Out", {"box_normalized": False})
    yield Case("lod", {"X": LoD(r.boxes(4), [[0, 1, 4]]), "Y": r.boxes(3)}, "Out", {"box_normalized": True})


@gen("box_clip")
def _box_clip(r, op):
    yield Case("lod", {"Input": LoD(r.boxes(4, 60) - 5, [[0, 2, 4]]),
                       "ImInfo": np.array([[30, 40, 1.0], [25, 30, 0.5]], "float32")}, "Output")


def nms_scores(r, *shape):
    return r.distinct(shape, 0.02, 0.98)


@gen("multiclass_nms", "multiclass_nms2", "multiclass_nms3")
def _multiclass_nms(r, op):
    def one(name, boxes, scores, extra=None, **a):
        base = {"background_label": r.pick(0, -1), "score_threshold": 0.1, "nms_top_k": r.pick(-1, 6),
                "nms_threshold": r.pick(0.3, 0.45), "nms_eta": 1.0, "keep_top_k": r.pick(-1, 5), "normalized": True}
        base.update(a)
        outs = {"multiclass_nms": "Out", "multiclass_nms2": "Out,Index", "multiclass_nms3": "Out,Index,NmsRoisNum"}[op]
        return Case(name, {"BBoxes": boxes, "Scores": scores, **(extra or {})}, outs, base)

    def batch(n, m, size=1.0):
        return np.stack([r.boxes(m, size) for _ in range(n)])
    n, m, c = r.n(1, 2), r.n(6, 9), r.n(2, 4)
    yield one("plain", batch(n, m), nms_scores(r, n, c, m))
    yield one("pixels", batch(2, m, 40.0), nms_scores(r, 2, c, m), normalized=False, keep_top_k=4)
    yield one("eta", batch(1, m), nms_scores(r, 1, c, m), nms_eta=0.9, nms_threshold=0.7, background_label=-1)
    yield one("per_class_order", batch(2, m), nms_scores(r, 2, c, m), background_label=-1, keep_top_k=3, nms_top_k=4)
    yield one("nothing_found", batch(n, 4), nms_scores(r, n, c, 4), score_threshold=1.5)
    rois = np.stack([r.boxes(c) for _ in range(5)])
    if op == "multiclass_nms3":
        yield one("rois_num", rois, nms_scores(r, 5, c), {"RoisNum": np.array([2, 3], "int32")}, background_label=-1)
    else:
        yield one("lod", LoD(rois, [[0, 2, 5]]), LoD(nms_scores(r, 5, c), [[0, 2, 5]]), background_label=-1)


@gen("matrix_nms")
def _matrix_nms(r, op):
    for name, gauss, post in (("linear", False, 0.0), ("gaussian", True, 0.0), ("post_threshold", False, 0.3)):
        n, m, c = r.n(1, 2), r.n(6, 9), r.n(2, 3)
        yield Case(name, {"BBoxes": np.stack([r.boxes(m) for _ in range(n)]), "Scores": nms_scores(r, n, c, m)},
                   "Out,Index,RoisNum",
                   {"background_label": r.pick(0, -1), "score_threshold": 0.1, "post_threshold": post,
                    "nms_top_k": r.pick(-1, 7), "keep_top_k": r.pick(-1, 6), "use_gaussian": gauss,
                    "gaussian_sigma": r.pick(2.0, 0.5), "normalized": bool(r.n(0, 1))})


@gen("bipartite_match")
def _bipartite(r, op):
    for name, mt in (("bipartite", "bipartite"), ("per_prediction", "per_prediction")):
        yield Case(name, {"DistMat": r.distinct((r.n(2, 4), r.n(3, 6)), 0.05, 0.95)},
                   "ColToRowMatchIndices,ColToRowMatchDist", {"match_type": mt, "dist_threshold": r.pick(0.5, 0.3)})
    yield Case("lod", {"DistMat": LoD(r.distinct((5, 4), 0.05, 0.95), [[0, 2, 5]])},
               "ColToRowMatchIndices,ColToRowMatchDist", {"match_type": r.pick("bipartite", "per_prediction"),
                                                          "dist_threshold": 0.4})


@gen("mine_hard_examples")
def _mine_hard(r, op):
    n, m = 2, r.n(6, 8)
    match = np.where(r.b((n, m), 0.6), -1, r.i((n, m), 0, 2)).astype("int32")
    match[:, 0], match[:, 1] = r.n(0, 2), -1
    yield Case("max_negative", {"ClsLoss": r.distinct((n, m), 0, 3), "MatchIndices": match, "MatchDist": r.f((n, m), 0, 0.7)},
               "NegIndices,UpdatedMatchIndices",
               {"neg_pos_ratio": r.pick(1.0, 3.0), "neg_dist_threshold": 0.5, "sample_size": 0, "mining_type": "max_negative"})
    yield Case("hard_example", {"ClsLoss": r.distinct((n, m), 0, 3), "LocLoss": r.f((n, m), 0, 1e-3),
                                "MatchIndices": match, "MatchDist": r.f((n, m), 0, 0.6)}, "NegIndices,UpdatedMatchIndices",
               {"neg_pos_ratio": 1.0, "neg_dist_threshold": 0.5, "sample_size": r.n(2, 4), "mining_type": "hard_example"})


# ----------------------------------------------------------------------------
# 3l. recurrent
# ----------------------------------------------------------------------------
@gen("rnn")
def _rnn(r, op):
    def one(name, mode, layers=1, bi=False, seq=False, is_test=True, dt="float32"):
        t, b, i, h = r.n(3, 5), r.n(2, 3), r.n(2, 4), r.n(2, 4)
        g = {"LSTM": 4, "GRU": 3}.get(mode, 1)
        dirs = 2 if bi else 1
        weights, biases = [], []
        for layer in range(layers):
            for _ in range(dirs):
                weights += [r.f((g * h, i if layer == 0 else h * dirs), -0.6, 0.6, dt), r.f((g * h, h), -0.6, 0.6, dt)]
                biases += [r.f((g * h,), -0.3, 0.3, dt), r.f((g * h,), -0.3, 0.3, dt)]
        states = [r.f((layers * dirs, b, h), -0.5, 0.5, dt) for _ in range(2 if mode == "LSTM" else 1)]
        ins = {"Input": r.f((t, b, i), -1, 1, dt), "PreState": states, "WeightList": weights + biases}
        if seq:
            ins["SequenceLength"] = np.array([t] + [r.n(1, t - 1) for _ in range(b - 1)], "int32")
        return Case(name, ins, {"Out": 1, "DropoutState": 1, "State": len(states), "Reserve": 1},
                    {"mode": mode, "input_size": i, "hidden_size": h, "num_layers": layers, "is_bidirec": bi,
                     "dropout_prob": 0.0, "is_test": is_test, "seed": 0},
                    notes="WeightList: (w_ih, w_hh) per layer and direction, then (b_ih, b_hh) in the same order; "
                          "Input is time-major [T,B,I]")
    yield one("lstm", "LSTM", is_test=bool(r.n(0, 1)))
    yield one("lstm_bi_2layer_seq", "LSTM", 2, True, True)
    yield one("lstm_seq_train", "LSTM", 1, False, True, is_test=False)
    yield one("gru", "GRU", is_test=bool(r.n(0, 1)))
    yield one("gru_bi_seq", "GRU", r.n(1, 2), True, True)
    yield one("tanh_2layer", "RNN_TANH", 2)
    yield one("relu_bi", "RNN_RELU", 1, True, bool(r.n(0, 1)), dt=r.pick("float32", "float64"))


# ----------------------------------------------------------------------------
# 3m. quantisation
# ----------------------------------------------------------------------------
@gen("fake_quantize_dequantize_moving_average_abs_max")
def _fake_qdq_ma(r, op):
    sc = np.array([r.scalar(0.5, 2)], "float32")
    yield Case("test", {"X": r.f(r.shape(2)), "InScale": sc}, "Out,OutScale",
               {"moving_rate": 0.9, "bit_length": r.pick(8, 4), "is_test": True}, nofetch=("OutScale",))
    yield Case("train", {"X": r.f(r.shape(2)), "InScale": sc, "InAccum": r.f((1,), 0.5, 2), "InState": r.f((1,), 0.5, 2)},
               "Out,OutScale,OutState,OutAccum", {"moving_rate": r.pick(0.9, 0.99), "bit_length": 8, "is_test": False},
               no_grad=("InScale", "InAccum", "InState"))


@gen("fake_quantize_moving_average_abs_max", "fake_quantize_abs_max", "fake_quantize_dequantize_abs_max")
def _fake_q(r, op):
    sc = np.array([r.scalar(0.5, 2)], "float32")
    if op == "fake_quantize_moving_average_abs_max":
        yield Case("test", {"X": r.f(r.shape(2)), "InScale": sc}, "Out,OutScale",
                   {"moving_rate": 0.9, "bit_length": 8, "is_test": True}, nofetch=("OutScale",))
    else:
        yield Case("bits", {"X": r.f(r.shape(2))}, "Out,OutScale", {"bit_length": r.pick(8, 4)})


@gen("fake_channel_wise_quantize_dequantize_abs_max", "fake_channel_wise_quantize_abs_max")
def _fake_channel(r, op):
    for axis in (0, 1):
        yield Case(f"axis{axis}", {"X": r.f(r.shape(r.pick(2, 4), 2, 3))}, "Out,OutScale",
                   {"bit_length": r.pick(8, 4), "quant_axis": axis})


@gen("quantize_linear", "dequantize_linear")
def _quantize_linear(r, op):
    for name, axis in (("per_tensor", -1), ("axis0", 0), ("axis1", 1)):
        s = r.shape(3, 2, 4)
        k = 1 if axis < 0 else s[axis]
        x = r.f(s, -3, 3) if op == "quantize_linear" else np.round(r.f(s, -127, 127)).astype("float32")
        yield Case(name, {"X": x, "Scale": r.f((k,), 0.5, 2), "ZeroPoint": np.zeros((k,), "float32")}, {"Y": 1},
                   {"quant_axis": axis, "bit_length": 8, "round_type": r.n(0, 1) if op == "quantize_linear" else 0,
                    "is_test": True, "only_observer": False}, notes="round_type 0: half to even, 1: half away from zero")
    if op == "dequantize_linear":
        s = r.shape(2)
        yield Case("int8_input", {"X": r.i(s, -127, 127, "int8"), "Scale": r.f((s[0],), 0.5, 2),
                                  "ZeroPoint": np.zeros((s[0],), "float32")}, {"Y": 1},
                   {"quant_axis": 0, "bit_length": 8, "round_type": 0, "is_test": True, "only_observer": False})
    else:
        yield Case("halves", {"X": (np.arange(-6, 7) + 0.5).astype("float32"), "Scale": np.array([127], "float32"),
                              "ZeroPoint": np.zeros((1,), "float32")}, {"Y": 1},
                   {"quant_axis": -1, "bit_length": 8, "round_type": r.n(0, 1), "is_test": True, "only_observer": False})


# ----------------------------------------------------------------------------
# 3n. optimizers
# ----------------------------------------------------------------------------
def opt_state(r, **slots):
    """Param, Grad and extra state slots (name -> (low, high)) of one shape."""
    s = r.shape(r.n(1, 3))
    d = {"Param": r.f(s), "Grad": r.f(s), "LearningRate": np.array([r.scalar(0.01, 0.3)], "float32")}
    for k, (lo, hi) in slots.items():
        d[k] = r.f(s, lo, hi)
    return d


@gen("sgd")
def _sgd(r, op):
    yield Case("plain", opt_state(r), "ParamOut")
    yield Case("inplace", opt_state(r), "ParamOut", alias={"ParamOut": "Param"})
    s = r.shape(2)
    yield Case("double", {"Param": r.f(s, -2, 2, "float64"), "Grad": r.f(s, -2, 2, "float64"),
                          "LearningRate": np.array([0.05], "float64")}, "ParamOut")


@gen("momentum")
def _momentum(r, op):
    outs, al = "ParamOut,VelocityOut", {"ParamOut": "Param", "VelocityOut": "Velocity"}
    for name, nest, reg in (("plain", False, ""), ("nesterov", True, ""), ("l2_decay", False, "l2_decay"),
                            ("nesterov_l2", True, "l2_decay")):
        yield Case(name, opt_state(r, Velocity=(-1, 1)), outs,
                   {"mu": r.pick(0.9, 0.5), "use_nesterov": nest, "regularization_method": reg,
                    "regularization_coeff": r.scalar(0.01, 0.2) if reg else 0.0, "rescale_grad": r.pick(1.0, 0.5)},
                   alias=al if r.n(0, 1) else {})


def adam_ins(r):
    d = opt_state(r, Moment1=(-1, 1), Moment2=(0, 1))
    t = r.n(1, 5)
    d["Beta1Pow"], d["Beta2Pow"] = np.array([0.9 ** t], "float32"), np.array([0.999 ** t], "float32")
    return d


ADAM_OUT = "ParamOut,Moment1Out,Moment2Out,Beta1PowOut,Beta2PowOut"
ADAM_ALIAS = {"ParamOut": "Param", "Moment1Out": "Moment1", "Moment2Out": "Moment2",
              "Beta1PowOut": "Beta1Pow", "Beta2PowOut": "Beta2Pow"}


@gen("adam", "adamw")
def _adam(r, op):
    w = op == "adamw"
    base = lambda **a: {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8,
                        **({"coeff": r.scalar(0.01, 0.2), "with_decay": True, "lr_ratio": 1.0} if w else {}), **a}
    yield Case("plain", adam_ins(r), ADAM_OUT, base())
    yield Case("inplace", adam_ins(r), ADAM_OUT, base(beta1=0.8, beta2=0.99, epsilon=r.pick(1e-8, 1e-3)), alias=ADAM_ALIAS)
    yield Case("skip_update", {**adam_ins(r), "SkipUpdate": np.array([True])}, ADAM_OUT, base(), alias=ADAM_ALIAS)
    yield Case("beta_tensors", {**adam_ins(r), "Beta1Tensor": np.array([0.7], "float32"),
                                "Beta2Tensor": np.array([0.95], "float32")}, ADAM_OUT, base(), alias=ADAM_ALIAS)
    yield Case("global_beta_pow", adam_ins(r), ADAM_OUT, base(use_global_beta_pow=True), alias=ADAM_ALIAS,
               nofetch=("Beta1PowOut", "Beta2PowOut"))
    if w:
        yield Case("lr_ratio", adam_ins(r), ADAM_OUT, base(lr_ratio=0.5))
        yield Case("no_decay", adam_ins(r), ADAM_OUT, base(with_decay=False))


@gen("adagrad")
def _adagrad(r, op):
    for k in range(2):
        yield Case(f"case{k}", opt_state(r, Moment=(0, 1)), "ParamOut,MomentOut", {"epsilon": r.pick(1e-6, 1e-3)})


@gen("adamax")
def _adamax(r, op):
    d = opt_state(r, Moment=(-1, 1), InfNorm=(0.1, 1))
    d["Beta1Pow"] = np.array([0.9], "float32")
    yield Case("plain", d, "ParamOut,MomentOut,InfNormOut", {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8})


@gen("adadelta")
def _adadelta(r, op):
    yield Case("plain", opt_state(r, AvgSquaredGrad=(0, 1), AvgSquaredUpdate=(0, 1)),
               "ParamOut,AvgSquaredGradOut,AvgSquaredUpdateOut", {"rho": 0.95, "epsilon": 1e-6})


@gen("rmsprop")
def _rmsprop(r, op):
    for name, cen, mom in (("plain", False, 0.0), ("momentum", False, r.scalar(0.1, 0.9)), ("centered", True, r.scalar(0, 0.9))):
        d = opt_state(r, MeanSquare=(1.5, 3), Moment=(-1, 1), MeanGrad=(-0.5, 0.5))
        yield Case(name, d, "ParamOut,MomentOut,MeanSquareOut,MeanGradOut",
                   {"epsilon": r.pick(1e-10, 1e-6), "decay": r.pick(0.9, 0.95), "momentum": mom, "centered": cen},
                   alias={"ParamOut": "Param", "MomentOut": "Moment", "MeanSquareOut": "MeanSquare", "MeanGradOut": "MeanGrad"})


@gen("lamb")
def _lamb(r, op):
    for name, wd, always in (("decay", r.scalar(0.01, 0.2), False), ("no_decay", 0.0, False), ("always_adapt", 0.0, True)):
        yield Case(name, adam_ins(r), ADAM_OUT, {"weight_decay": wd, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6,
                                                 "always_adapt": always}, alias=ADAM_ALIAS)


@gen("lars_momentum")
def _lars(r, op):
    d = opt_state(r, Velocity=(-1, 1))
    yield Case("plain", {k: ([v]) for k, v in d.items()}, {"ParamOut": 1, "VelocityOut": 1},
               {"mu": 0.9, "lars_coeff": 0.001, "lars_weight_decay": [0.0005], "epsilon": 0.0})


@gen("check_finite_and_unscale")
def _check_finite(r, op):
    for name, bad in (("finite", None), ("inf", np.inf), ("nan", np.nan)):
        xs = [r.f(r.shape(2)) for _ in range(2)]
        if bad is not None:
            xs[1].reshape(-1)[r.n(0, xs[1].size - 1)] = bad
        yield Case(name, {"X": xs, "Scale": np.array([r.pick(2.0, 1024.0)], "float32")}, {"Out": 2, "FoundInfinite": 1}, {},
                   alias={"Out": "X"}, notes="with inf/nan found the outputs are not used by update_loss_scaling" if bad else "",
                   nofetch=("Out",) if bad is not None else ())


@gen("update_loss_scaling")
def _update_loss(r, op):
    for name, inf, good, badsteps, stop in (("good_step", False, 0, 1, False), ("increase", False, 1, 0, False),
                                            ("first_bad", True, 2, 0, False), ("decrease", True, 2, 1, False),
                                            ("stop", True, 2, 1, True)):
        yield Case(name, {"X": [r.f(r.shape(2)), r.f(r.shape(1))], "FoundInfinite": np.array([inf]),
                          "PrevLossScaling": np.array([r.pick(8.0, 1024.0)], "float32"),
                          "InGoodSteps": np.array([good], "int32"), "InBadSteps": np.array([badsteps], "int32")},
                   {"Out": 2, "LossScaling": 1, "OutGoodSteps": 1, "OutBadSteps": 1},
                   {"incr_every_n_steps": 2, "decr_every_n_nan_or_inf": 2, "incr_ratio": r.pick(2.0, 3.0),
                    "decr_ratio": r.pick(0.5, 0.8), "stop_update": stop},
                   alias={"Out": "X", "LossScaling": "PrevLossScaling", "OutGoodSteps": "InGoodSteps",
                          "OutBadSteps": "InBadSteps"})


# ----------------------------------------------------------------------------
# 4. gradient ops, derived from the forward cases
# ----------------------------------------------------------------------------
# grad op -> (forward generator, names of forward cases to use or None, how many)
def grads(*ops, only=None, skip=(), limit=3):
    for op in ops:
        name = "cross_entropy_grad2" if op == "cross_entropy2" else op + "_grad"
        GRADS[name] = (op, only, skip, limit)


grads("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div", "elementwise_max",
      "elementwise_min", "elementwise_pow", limit=5, skip=("empty", "float16", "zero_dim"))
grads("relu", "relu6", "leaky_relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "square", "abs", "floor", "ceil",
      "reciprocal", "swish", "silu", "hard_sigmoid", "hard_swish", "softplus", "mish", "elu", "erf", "sin", "cos",
      "gelu", "log1p", "softsign", "logsigmoid", skip=("special", "nan", "empty", "float16"), limit=3)
grads("pow", skip=("factor_tensor",))
grads("clip", limit=5)
grads("scale", "cast", "mean", "sum", "bmm", "minus", skip=("float16",), limit=3)
grads("softmax", "log_softmax", skip=("extreme",), limit=5)
grads("matmul", "matmul_v2", limit=8)
grads("mul", limit=5)
grads("conv2d", "depthwise_conv2d", limit=7)
grads("conv2d_transpose", limit=5)
grads("conv3d", "pool3d", limit=3)
grads("pool2d", limit=12)
grads("batch_norm", skip=("test_4d", "test_nhwc", "test_3d"), limit=6)
grads("layer_norm", "group_norm", "instance_norm", limit=5)
grads("norm", skip=("is_test",))
grads("p_norm", skip=("zero",), limit=4)
grads("affine_channel", limit=2)
grads("reshape2", limit=5, skip=("empty",))
grads("transpose2", "flatten2", "flatten_contiguous_range", "squeeze2", "unsqueeze2", "expand_v2", "tile", "roll", "flip",
      "tril_triu", limit=4, skip=("rank4_float16", "bool"))
grads("concat", limit=3, skip=("with_empty", "single", "float16"))
grads("split", "stack", "unstack", "unbind", "meshgrid", limit=3)
grads("slice", limit=8, skip=("to_empty",))
grads("strided_slice", "gather", "gather_nd", "scatter", "index_select", "where", "cumsum", "expand_as_v2",
      limit=4, skip=("empty_index",))
grads("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", limit=6, skip=("empty", "int64", "int32"))
grads("pad2d", "pad3d", limit=7)
grads("nearest_interp_v2", "bilinear_interp_v2", "nearest_interp", "bilinear_interp", limit=6)
grads("pixel_shuffle", "grid_sampler", "roi_align", "deformable_conv", limit=4)
grads("top_k_v2", "argsort", limit=3, skip=("ties",))
grads("lookup_table_v2", "lookup_table", limit=3)
grads("cross_entropy2", "huber_loss", "sigmoid_cross_entropy_with_logits", limit=3)
grads("softmax_with_cross_entropy", limit=6)
grads("squared_l2_norm", limit=2)
grads("fake_quantize_dequantize_moving_average_abs_max", only=("train",))
grads("fake_channel_wise_quantize_dequantize_abs_max", limit=2)
# rnn_grad reads the opaque Reserve workspace of rnn; it is covered by programs/lstm and programs/gru_seqlen.
GRADS["dropout_grad"] = (_dropout_train, None, (), 2)


def grad_cases(seed, grad_op):
    source, only, skip, limit = GRADS[grad_op]
    if callable(source):
        pool = list(source(Rng(seed, grad_op)))
    else:
        pool = list(cases_of(seed, source))
    count = 0
    for c in pool:
        floats = [array_of(a) for s, v in c.ins.items() for a in as_list(v)
                  if s not in c.no_grad and array_of(a).dtype.kind == "f"]
        if (only and c.name not in only) or c.name in skip or any(c.name.startswith(s + "_") for s in skip) \
                or not floats or count == limit:
            continue
        if any(a.dtype == "float16" for a in floats):
            continue
        c.alias = {k: v for k, v in c.alias.items() if k in ("MeanOut", "VarianceOut")}
        c.dyn = False
        count += 1
        yield c


# ----------------------------------------------------------------------------
# 5. whole programs
# ----------------------------------------------------------------------------
PROGRAMS = {}
STEPS = 5


@dataclass
class Net:
    """What a program builder returns: feeds per step and what to fetch."""
    feeds: list                      # one {name: array} per step
    fetch: list                      # variables
    set_vars: list = None            # per step {persistable name: array} written before the step
    notes: str = ""
    scheduler: object = None
    rtol: float = 1e-4
    atol: float = 1e-5


def program(fn):
    PROGRAMS[fn.__name__.strip("_")] = fn
    return fn


def class_feeds(r, batch, shape, classes, x="x", y="label"):
    """Random features that carry some information about their label."""
    out = []
    protos = r.f((classes,) + shape, -1, 1)
    for _ in range(STEPS):
        lab = r.i((batch, 1), 0, classes - 1)
        out.append({x: (protos[lab[:, 0]] + r.f((batch,) + shape, -0.5, 0.5)).astype("float32"), y: lab})
    return out


def mlp(r, make_opt):
    st, F = paddle.static, paddle.nn.functional
    d, h, c = r.n(5, 9), r.n(4, 8), r.n(3, 5)
    x, y = st.data("x", [-1, d], "float32"), st.data("label", [-1, 1], "int64")
    hid = st.nn.fc(x, h, activation=r.pick("relu", "tanh"))
    logits = st.nn.fc(hid, c)
    loss = paddle.mean(F.softmax_with_cross_entropy(logits, y))
    acc = st.accuracy(F.softmax(logits), y)
    make_opt().minimize(loss)
    return Net(class_feeds(r, r.n(4, 8), (d,), c), [loss, acc])


O = paddle.optimizer


@program
def seed_fc_mean_sgd(r):
    x = paddle.static.data("X", [-1, r.n(2, 5)], "float32")
    hidden = paddle.static.nn.fc(x, r.n(2, 4))
    # the old `mean` op; paddle.mean of 2.6 emits reduce_mean
    block = paddle.static.default_main_program().global_block()
    loss = block.create_var(name="loss", dtype="float32")
    block.append_op(type="mean", inputs={"X": hidden}, outputs={"Out": loss})
    O.SGD(r.scalar(0.05, 0.3)).minimize(loss)
    return Net([{"X": r.f((r.n(2, 5), x.shape[1]))} for _ in range(STEPS)], [loss],
               notes="the batch size differs from step to step")


@program
def mlp_sgd(r):
    return mlp(r, lambda: O.SGD(0.2))


@program
def mlp_momentum(r):
    return mlp(r, lambda: O.Momentum(0.1, 0.9, use_nesterov=bool(r.n(0, 1)), weight_decay=paddle.regularizer.L2Decay(1e-2)))


@program
def mlp_adam(r):
    return mlp(r, lambda: O.Adam(0.02))


@program
def mlp_adamw(r):
    return mlp(r, lambda: O.AdamW(0.02, weight_decay=0.05))


@program
def mlp_rmsprop_l1(r):
    return mlp(r, lambda: O.RMSProp(0.01, centered=bool(r.n(0, 1)), weight_decay=paddle.regularizer.L1Decay(1e-3)))


@program
def mlp_lamb(r):
    return mlp(r, lambda: O.Lamb(0.02))


@program
def mlp_adagrad(r):
    return mlp(r, lambda: O.Adagrad(0.05))


@program
def clip_global_norm(r):
    return mlp(r, lambda: O.SGD(0.5, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1)))


@program
def clip_norm_each(r):
    return mlp(r, lambda: O.Momentum(0.2, 0.9, grad_clip=paddle.nn.ClipGradByNorm(0.05)))


@program
def clip_value(r):
    return mlp(r, lambda: O.SGD(0.5, grad_clip=paddle.nn.ClipGradByValue(0.02)))


@program
def lr_scheduler_var(r):
    """The scheduler lives outside; it writes the persistable learning-rate variable."""
    sched = O.lr.PiecewiseDecay([2, 4], [0.4, 0.1, 0.02])
    net = mlp(r, lambda: O.SGD(sched))
    net.scheduler = sched
    net.notes = "set_vars: values written into the learning-rate variable before each step"
    return net


@program
def lr_decay_in_program(r):
    """Step counter and learning-rate formula are ops of the program."""
    st = paddle.static
    step = st.create_global_var([1], 0, "int64", persistable=True, name="global_step")
    paddle.increment(step)
    lr = paddle.scale(paddle.pow(paddle.full([1], 0.5), paddle.cast(step, "float32")), 0.4)
    lr.stop_gradient = True
    d = r.n(3, 5)
    x, y = st.data("x", [-1, d], "float32"), st.data("y", [-1, 1], "float32")
    loss = paddle.mean(paddle.nn.functional.square_error_cost(st.nn.fc(x, 1), y))
    opt = O.SGD(0.1)
    opt._learning_rate_map[st.default_main_program()] = lr
    opt.minimize(loss)
    return Net([{"x": r.f((4, d)), "y": r.f((4, 1))} for _ in range(STEPS)], [loss, lr])


@program
def convnet_bn(r):
    st, F = paddle.static, paddle.nn.functional
    hw, c = 2 * r.n(3, 4), r.n(2, 3)
    x, y = st.data("x", [-1, 1, hw, hw], "float32"), st.data("label", [-1, 1], "int64")
    h = st.nn.conv2d(x, r.n(2, 4), 3, padding=1, bias_attr=r.pick(None, False))
    h = st.nn.batch_norm(h, act="relu")
    h = F.max_pool2d(h, 2, 2)
    h = st.nn.conv2d(h, r.n(2, 4), 3, padding=1, act="relu")
    h = F.avg_pool2d(h, hw // 2)
    logits = st.nn.fc(h, c)
    loss = paddle.mean(F.softmax_with_cross_entropy(logits, y))
    O.Momentum(0.05, 0.9).minimize(loss)
    return Net(class_feeds(r, 4, (1, hw, hw), c), [loss, logits])


@program
def depthwise_convnet(r):
    st, F = paddle.static, paddle.nn.functional
    c = r.n(2, 3)
    x, y = st.data("x", [-1, c, 6, 6], "float32"), st.data("label", [-1, 1], "int64")
    h = st.nn.conv2d(x, c, 3, padding=1, groups=c, use_cudnn=False)
    h = F.hardswish(st.nn.batch_norm(h))
    h = F.interpolate(h, scale_factor=2, mode=r.pick("nearest", "bilinear"))
    h = F.adaptive_avg_pool2d(st.nn.conv2d(h, 4, 1), 1)
    logits = st.nn.fc(paddle.flatten(h, 1), 3)
    loss = F.cross_entropy(logits, y)
    O.Adam(0.01).minimize(loss)
    return Net(class_feeds(r, 3, (c, 6, 6), 3), [loss])


@program
def lstm(r):
    st, F = paddle.static, paddle.nn.functional
    t, i, h, c = r.n(3, 5), r.n(2, 4), r.n(3, 4), 3
    x, y = st.data("x", [-1, t, i], "float32"), st.data("label", [-1, 1], "int64")
    out, _ = paddle.nn.LSTM(i, h, direction=r.pick("forward", "bidirect"))(x)
    logits = st.nn.fc(out[:, -1, :], c)
    loss = paddle.mean(F.softmax_with_cross_entropy(logits, y))
    O.Adam(0.02).minimize(loss)
    return Net(class_feeds(r, 3, (t, i), c), [loss])


@program
def gru_seqlen(r):
    st = paddle.static
    t, i, h = r.n(3, 5), r.n(2, 4), r.n(2, 4)
    x, n = st.data("x", [-1, t, i], "float32"), st.data("seq_len", [-1], "int32")
    out, last = paddle.nn.GRU(i, h)(x, sequence_length=n)
    loss = paddle.mean(paddle.square(out)) + paddle.mean(last)
    O.SGD(0.2).minimize(loss)
    return Net([{"x": r.f((3, t, i)), "seq_len": np.array([t, r.n(1, t), r.n(1, t)], "int32")} for _ in range(STEPS)], [loss])


def embedding_net(r, sparse, make_opt):
    st, F = paddle.static, paddle.nn.functional
    v, d, t, c = r.n(8, 12), r.n(3, 5), r.n(2, 4), 3
    ids, y = st.data("ids", [-1, t], "int64"), st.data("label", [-1, 1], "int64")
    emb = st.nn.embedding(ids, [v, d], is_sparse=sparse, padding_idx=0)
    logits = st.nn.fc(paddle.sum(emb, 1), c)
    loss = paddle.mean(F.softmax_with_cross_entropy(logits, y))
    make_opt().minimize(loss)
    return Net([{"ids": r.i((4, t), 0, v - 1), "label": r.i((4, 1), 0, c - 1)} for _ in range(STEPS)], [loss])


@program
def embedding_softmax(r):
    return embedding_net(r, False, lambda: O.SGD(0.3))


@program
def embedding_sparse_sgd(r):
    return embedding_net(r, True, lambda: O.SGD(0.3))


@program
def embedding_sparse_adam(r):
    return embedding_net(r, True, lambda: O.Adam(0.02, lazy_mode=False))


@program
def attention_block(r):
    """matmul / transpose / softmax / layer_norm / gelu, as in a transformer layer."""
    st, F = paddle.static, paddle.nn.functional
    t, d, heads = r.n(3, 4), 4, 2
    x, y = st.data("x", [-1, t, d], "float32"), st.data("label", [-1, 1], "int64")
    q, k, v = (paddle.transpose(paddle.reshape(st.nn.fc(x, d, num_flatten_dims=2), [0, 0, heads, d // heads]),
                                [0, 2, 1, 3]) for _ in range(3))
    w = F.softmax(paddle.matmul(q * (d // heads) ** -0.5, k, transpose_y=True))
    o = paddle.reshape(paddle.transpose(paddle.matmul(w, v), [0, 2, 1, 3]), [0, 0, d])
    h = st.nn.layer_norm(x + st.nn.fc(o, d, num_flatten_dims=2), begin_norm_axis=2)
    h = F.gelu(st.nn.fc(h, 6, num_flatten_dims=2))
    logits = st.nn.fc(paddle.mean(h, axis=1), 3)
    loss = paddle.mean(F.cross_entropy(logits, y))
    O.Adam(0.01).minimize(loss)
    return Net(class_feeds(r, 3, (t, d), 3), [loss])


@program
def while_loop(r):
    """Forward only: sums i*x while i < n, n comes from a feed."""
    st = paddle.static
    x, n = st.data("x", [2, 3], "float32"), st.data("n", [1], "int64")
    i, acc = paddle.full([1], 0, "int64"), paddle.zeros([2, 3])
    i, acc = st.nn.while_loop(lambda i, a: i < n, lambda i, a: [i + 1, a + x * paddle.cast(i, "float32")], [i, acc])
    return Net([{"x": r.f((2, 3)), "n": np.array([r.n(0, 5)], "int64")} for _ in range(STEPS)], [i, acc])


@program
def while_loop_train(r):
    """A recurrent cell unrolled by while, with while_grad."""
    st = paddle.static
    d, steps = r.n(2, 4), r.n(2, 4)
    x = st.data("x", [-1, d], "float32")
    w = st.create_parameter([d, d], "float32", name="w_loop")
    i, n = paddle.full([1], 0, "int64"), paddle.full([1], steps, "int64")
    h = x + 0.0
    h.stop_gradient = False
    _, h = st.nn.while_loop(lambda i, h: i < n, lambda i, h: [i + 1, paddle.tanh(paddle.matmul(h, w)) + 0.1 * x], [i, h])
    loss = paddle.mean(paddle.square(h))
    O.SGD(0.1).minimize(loss)
    return Net([{"x": r.f((3, d))} for _ in range(STEPS)], [loss])


@program
def while_loop_train_chain(r):
    """The gradient flows through the loop into ops before it; the trip count is fed."""
    st = paddle.static
    d = r.n(2, 4)
    x, n = st.data("x", [-1, d], "float32"), st.data("n", [1], "int64")
    w = st.create_parameter([d, d], "float32", name="w_before")
    v = st.create_parameter([d, d], "float32", name="w_inside")
    i = paddle.full([1], 0, "int64")
    _, h = st.nn.while_loop(lambda i, h: i < n, lambda i, h: [i + 1, paddle.tanh(paddle.matmul(h, v) + h)],
                            [i, paddle.matmul(x, w)])
    loss = paddle.mean(paddle.square(h))
    O.Momentum(0.1, 0.9).minimize(loss)
    return Net([{"x": r.f((3, d)), "n": np.array([r.n(1, 4)], "int64")} for _ in range(STEPS)], [loss])


@program
def nested_while(r):
    st = paddle.static
    n = st.data("n", [1], "int64")
    i, total = paddle.full([1], 0, "int64"), paddle.full([1], 0, "int64")

    def outer(i, total):
        j = paddle.full([1], 0, "int64")
        j, total = st.nn.while_loop(lambda j, t: j <= i, lambda j, t: [j + 1, t + i * 10 + j], [j, total])
        return [i + 1, total]
    i, total = st.nn.while_loop(lambda i, t: i < n, outer, [i, total])
    return Net([{"n": np.array([r.n(1, 4)], "int64")} for _ in range(STEPS)], [i, total])


@program
def cond_train(r):
    """Two branches with different parameters; the feed decides which one is trained."""
    st = paddle.static
    d = r.n(2, 4)
    x = st.data("x", [-1, d], "float32")
    a = st.create_parameter([d, 2], "float32", name="w_true")
    b = st.create_parameter([d, 2], "float32", name="w_false")
    pred = paddle.mean(x) > 0
    y = st.nn.cond(pred, lambda: paddle.tanh(paddle.matmul(x, a)), lambda: paddle.square(paddle.matmul(x, b)))
    loss = paddle.mean(y)
    O.SGD(0.2).minimize(loss)
    return Net([{"x": r.f((3, d), -1 + k % 2, 0.2 + k % 2)} for k in range(STEPS)], [loss, pred])


@program
def switch_case(r):
    st = paddle.static
    x, k = st.data("x", [2, 2], "float32"), st.data("k", [1], "int32")
    y = st.nn.switch_case(k, {0: lambda: x + 1.0, 1: lambda: x * 2.0, 2: lambda: paddle.exp(x)}, default=lambda: -x)
    return Net([{"x": r.f((2, 2)), "k": np.array([j], "int32")} for j in r.perm(STEPS)], [y])


@program
def tensor_array(r):
    """write_to_array / read_from_array / lod_array_length inside a while."""
    st, T = paddle.static, paddle.tensor
    x, n = st.data("x", [2, 3], "float32"), st.data("n", [1], "int64")
    i = paddle.full([1], 0, "int64")
    arr = T.array_write(x, i)
    i2 = paddle.full([1], 1, "int64")
    cond = paddle.less_than(i2, n)
    loop = st.nn.control_flow.While(cond)
    with loop.block():
        prev = T.array_read(arr, i2 - 1)
        T.array_write(prev * 2.0 + 1.0, i2, arr)
        paddle.increment(i2)
        paddle.assign(paddle.less_than(i2, n), cond)
    return Net([{"x": r.f((2, 3)), "n": np.array([r.n(1, 5)], "int64")} for _ in range(STEPS)],
               [T.array_length(arr), T.array_read(arr, i2 - 1), T.array_read(arr, paddle.full([1], 0, "int64"))])


@program
def tensor_array_concat(r):
    """A gradient through array writes and reads."""
    st, T = paddle.static, paddle.tensor
    d = r.n(2, 4)
    x = st.data("x", [-1, d], "float32")
    w = st.create_parameter([d, d], "float32", name="w_arr")
    arr = T.array_write(paddle.matmul(x, w), paddle.full([1], 0, "int64"))
    T.array_write(paddle.tanh(x), paddle.full([1], 1, "int64"), arr)
    arr.stop_gradient = False
    both = paddle.concat([T.array_read(arr, paddle.full([1], k, "int64")) for k in (0, 1)], axis=0)
    loss = paddle.mean(paddle.square(both))
    O.SGD(0.1).minimize(loss)
    return Net([{"x": r.f((2, d))} for _ in range(STEPS)], [loss])


@program
def inplace_assign(r):
    """A persistable running mean updated by assign to itself, plus a counter."""
    st = paddle.static
    d = r.n(2, 4)
    x = st.data("x", [-1, d], "float32")
    run = st.create_global_var([d], 0.0, "float32", persistable=True, name="running")
    count = st.create_global_var([1], 0, "int64", persistable=True, name="count")
    paddle.increment(count)
    paddle.assign(run * 0.9 + paddle.mean(x, 0) * 0.1, output=run)
    loss = paddle.mean(paddle.square(st.nn.fc(x - run, 2)))
    O.SGD(0.1).minimize(loss)
    return Net([{"x": r.f((r.n(2, 4), d))} for _ in range(STEPS)], [loss, run])


@program
def shared_weight(r):
    """One parameter used twice: its gradient is the sum of two ops' gradients."""
    st = paddle.static
    d = r.n(2, 4)
    x = st.data("x", [-1, d], "float32")
    w = st.create_parameter([d, d], "float32", name="w_shared")
    loss = paddle.mean(paddle.matmul(paddle.tanh(paddle.matmul(x, w)), w))
    O.SGD(0.2).minimize(loss)
    return Net([{"x": r.f((3, d))} for _ in range(STEPS)], [loss])


@program
def amp_style_loss_scaling(r):
    """check_finite_and_unscale + update_loss_scaling; one step has an infinite gradient."""
    st = paddle.static
    d = r.n(2, 4)
    x = st.data("x", [-1, d], "float32")
    scaling = st.create_global_var([1], 8.0, "float32", persistable=True, name="loss_scaling")
    good = st.create_global_var([1], 0, "int32", persistable=True, name="good_steps")
    bad = st.create_global_var([1], 0, "int32", persistable=True, name="bad_steps")
    loss = paddle.mean(paddle.square(st.nn.fc(x, 2)))
    opt = O.SGD(0.1)
    pairs = opt.backward(loss * scaling)
    gs = [g for _, g in pairs]
    blk = st.default_main_program().global_block()
    found = blk.create_var(name="found_inf", dtype="bool", shape=[1])
    blk.append_op(type="check_finite_and_unscale", inputs={"X": gs, "Scale": scaling},
                  outputs={"Out": gs, "FoundInfinite": found})
    blk.append_op(type="update_loss_scaling",
                  inputs={"X": gs, "FoundInfinite": found, "PrevLossScaling": scaling, "InGoodSteps": good, "InBadSteps": bad},
                  outputs={"Out": gs, "LossScaling": scaling, "OutGoodSteps": good, "OutBadSteps": bad},
                  attrs={"incr_every_n_steps": 2, "decr_every_n_nan_or_inf": 1, "incr_ratio": 2.0, "decr_ratio": 0.5,
                         "stop_update": False})
    opt.apply_gradients(pairs)
    feeds = [{"x": r.f((3, d))} for _ in range(STEPS)]
    feeds[2]["x"][0, 0] = 1e30
    return Net(feeds, [loss, found])


def run_step(prog, state, feed, fetch):
    """One training step.  `state` (persistable name -> array) is read and updated.

    Each step gets a fresh scope holding only the persistables: Paddle 2.6.2 otherwise
    leaves tensor arrays of the previous run behind and accumulates into them.
    """
    scope = core.Scope()
    for n, a in state.items():
        scope.var(n).get_tensor().set(a, core.CPUPlace())
    with paddle.static.scope_guard(scope):
        res = EXE.run(prog, feed=feed, fetch_list=fetch, use_program_cache=False)
        for n in state:
            state[n] = np.array(scope.find_var(n).get_tensor())
    return res


def reset_names():
    """Forget the process-wide op_namescope counters, so a program does not depend on earlier ones."""
    framework = paddle.base.framework
    framework._name_scope = framework.NameScope()


def make_program_case(out_dir, seed, name):
    reset_names()
    r = Rng(seed, "programs/" + name)
    main, startup = paddle.static.Program(), paddle.static.Program()
    main.random_seed = startup.random_seed = seed % 100000 + 1
    folder = f"{out_dir}/programs/{name}"
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, startup), \
            paddle.static.scope_guard(core.Scope()):
        net = PROGRAMS[name](r)
        scope = paddle.static.global_scope()
        EXE.run(startup)
        # coalesce_tensor (cuDNN weight packing of paddle.nn.LSTM) makes a flat alias of other parameters.
        flat = {n for op in startup.global_block().ops if op.type == "coalesce_tensor" for n in op.output("FusedOutput")}
        persist = sorted(v.name for v in main.list_vars()
                         if v.persistable and v.name not in flat and v.name not in ("feed", "fetch")
                         and v.type == core.VarDesc.VarType.LOD_TENSOR and scope.find_var(v.name) is not None
                         and scope.find_var(v.name).get_tensor()._is_initialized())
        state = {n: np.array(scope.find_var(n).get_tensor()) for n in persist}
        os.makedirs(folder, exist_ok=True)
        doc = {"op": "programs", "case": name, "seed": seed, "notes": net.notes or (PROGRAMS[name].__doc__ or ""),
               "rtol": net.rtol, "atol": net.atol, "steps": [], "params": {}, "lod": {},
               "feed_order": list(net.feeds[0]), "fetch_order": [v.name for v in net.fetch],
               "ops": sorted({op.type for b in main.blocks for op in b.ops})}
        for n in persist:
            np.save(f"{folder}/init_{safe(n)}.npy", state[n])
            doc["params"][n] = {"init": f"init_{safe(n)}.npy", "final": f"final_{safe(n)}.npy",
                                "trainable": isinstance(main.global_block().vars.get(n), paddle.base.framework.Parameter)}
        names = [v.name for v in net.fetch]
        with_io = paddle.static.Program.parse_from_string(main.desc.serialize_to_string())
        prepend_feed_ops(with_io, doc["feed_order"])
        append_fetch_ops(with_io, names)
        for fname, prog in (("main.pb", main), ("startup.pb", startup), ("main_io.pb", with_io)):
            with open(f"{folder}/{fname}", "wb") as f:
                f.write(serialize(prog))
        # Run what was serialised, not the Python objects.
        with open(f"{folder}/main.pb", "rb") as f:
            runner = paddle.static.Program.parse_from_string(f.read())
        for k, feed in enumerate(net.feeds):
            step = {"feeds": {}, "fetches": {}, "set_vars": {}}
            if net.scheduler is not None:
                lr_name = net.scheduler._var_name
                value = state[lr_name] = np.array([net.scheduler()], "float32")
                np.save(f"{folder}/step{k}_set_{safe(lr_name)}.npy", value)
                step["set_vars"][lr_name] = f"step{k}_set_{safe(lr_name)}.npy"
            res = run_step(runner, state, feed, names)
            for n, a in feed.items():
                np.save(f"{folder}/step{k}_in_{safe(n)}.npy", a)
                step["feeds"][n] = f"step{k}_in_{safe(n)}.npy"
            for n, a in zip(names, res):
                np.save(f"{folder}/step{k}_out_{safe(n)}.npy", a)
                step["fetches"][n] = f"step{k}_out_{safe(n)}.npy"
            if net.scheduler is not None:
                net.scheduler.step()
            doc["steps"].append(step)
        moved = 0
        for n in persist:
            final = state[n]
            np.save(f"{folder}/final_{safe(n)}.npy", final)
            moved += doc["params"][n]["trainable"] and not np.array_equal(final, np.load(f"{folder}/init_{safe(n)}.npy"))
        if not moved and any(p["trainable"] for p in doc["params"].values()):
            raise Unsupported("no parameter was trained: append_backward found no path")
        write_json(f"{folder}/case.json", doc)


def inference_models():
    """name -> builder(rng) giving (feed variables, fetch variables, one feed dict)."""
    st, F = paddle.static, paddle.nn.functional

    def cnn(r):
        x = st.data("x", [-1, 3, 8, 8], "float32")
        h = st.nn.batch_norm(st.nn.conv2d(x, r.n(3, 5), 3, padding=1), is_test=True, act="relu")
        h = F.max_pool2d(F.hardswish(h), 2, 2)
        return [x], [F.softmax(st.nn.fc(paddle.flatten(h, 1), r.n(3, 5)))], {"x": r.f((2, 3, 8, 8))}

    def text(r):
        ids = st.data("ids", [-1, 4], "int64")
        e = st.nn.embedding(ids, [r.n(9, 12), 6])
        h = st.nn.layer_norm(e, begin_norm_axis=2)
        return [ids], [st.nn.fc(h, 3, num_flatten_dims=2), paddle.argmax(h, -1)], {"ids": r.i((2, 4), 0, 8)}
    return {"infer_cnn": cnn, "infer_text": text}


def neutral_callstacks(path):
    """Replaces the paths and line numbers of this machine, so that files are reproducible."""
    with open(path, "rb") as f:
        prog = paddle.static.Program.parse_from_string(f.read())
    for block in prog.blocks:
        for op in block.ops:
            if op.desc.has_attr("op_callstack"):
                op.desc._set_attr("op_callstack", ['  File "model.py", line 1, in <module>', "    main()"])
    with open(path, "wb") as f:
        f.write(prog.desc.serialize_to_string())


def make_inference_case(out_dir, seed, name):
    """model.pdmodel + model.pdiparams as save_inference_model writes them, but for op_callstack."""
    reset_names()
    r = Rng(seed, "programs/" + name)
    main, startup = paddle.static.Program(), paddle.static.Program()
    startup.random_seed = seed % 100000 + 1
    folder = f"{out_dir}/programs/{name}"
    os.makedirs(folder, exist_ok=True)
    with paddle.utils.unique_name.guard(), paddle.static.program_guard(main, startup), \
            paddle.static.scope_guard(core.Scope()):
        feed_vars, fetch_vars, feed = inference_models()[name](r)
        EXE.run(startup)
        paddle.static.save_inference_model(f"{folder}/model", feed_vars, fetch_vars, EXE, program=main)
    neutral_callstacks(f"{folder}/model.pdmodel")
    with paddle.static.scope_guard(core.Scope()):
        prog, feed_names, fetches = paddle.static.load_inference_model(f"{folder}/model", EXE)
        res = EXE.run(prog, feed=feed, fetch_list=fetches)
    doc = {"op": "programs", "case": name, "seed": seed, "kind": "inference", "model": "model.pdmodel",
           "params_file": "model.pdiparams", "feeds": {}, "fetches": {}, "feed_order": feed_names,
           "fetch_order": [v.name for v in fetches], "rtol": 1e-4, "atol": 1e-5, "lod": {},
           "notes": "parameters are in model.pdiparams, concatenated in sorted name order"}
    for n, a in feed.items():
        np.save(f"{folder}/in_{safe(n)}.npy", a)
        doc["feeds"][n] = f"in_{safe(n)}.npy"
    for v, a in zip(fetches, res):
        np.save(f"{folder}/out_{safe(v.name)}.npy", a)
        doc["fetches"][v.name] = f"out_{safe(v.name)}.npy"
    write_json(f"{folder}/case.json", doc)


# ----------------------------------------------------------------------------
# 6. check: replay a written set from its files alone
# ----------------------------------------------------------------------------
def compare(got, want, rtol, atol):
    """None when equal within tolerance, else a short description."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        return None if np.array_equal(got, want) else "integer/bool values differ"
    ok = np.allclose(got.astype("float64"), want.astype("float64"), rtol, atol, equal_nan=True)
    return None if ok else f"max difference {np.nanmax(np.abs(got.astype('float64') - want.astype('float64')))}"


def check_program(folder, doc):
    """Runs main_io.pb from the init_*.npy values; yields (what, got, want)."""
    load = lambda f: np.load(f"{folder}/{f}")
    with open(f"{folder}/main_io.pb", "rb") as f:
        prog = paddle.static.Program.parse_from_string(f.read())
    state = {name: load(p["init"]) for name, p in doc["params"].items()}
    for step in doc["steps"]:
        state.update({name: load(f) for name, f in step["set_vars"].items()})
        res = run_step(prog, state, {n: load(f) for n, f in step["feeds"].items()}, doc["fetch_order"])
        for name, got in zip(doc["fetch_order"], res):
            yield step["fetches"][name], got, load(step["fetches"][name])
    for name, p in doc["params"].items():
        yield p["final"], state[name], load(p["final"])


def check_op(folder, doc):
    with open(f"{folder}/program.pb", "rb") as f:
        blob = f.read()
    feeds = {}
    for name, f in doc["feeds"].items():
        a = np.load(f"{folder}/{f}")
        feeds[name] = LoD(a, doc["lod"][name]) if name in doc["lod"] else a
    for (name, f), (got, lod) in zip(doc["fetches"].items(), run_program(blob, feeds, list(doc["fetches"]))):
        assert lod == doc["lod"].get("out:" + name, []), f"lod of {name}"
        yield f, got, np.load(f"{folder}/{f}")


def check_inference(folder, doc):
    with paddle.static.scope_guard(core.Scope()):
        prog, _, fetches = paddle.static.load_inference_model(f"{folder}/model", EXE)
        res = EXE.run(prog, feed={n: np.load(f"{folder}/{f}") for n, f in doc["feeds"].items()}, fetch_list=fetches)
    for name, got in zip(doc["fetch_order"], res):
        yield name, got, np.load(f"{folder}/{doc['fetches'][name]}")


def check_set(root):
    total = bad = 0
    for case_json in sorted(glob.glob(f"{root}/*/*/case.json")):
        folder = os.path.dirname(case_json)
        with open(case_json) as f:
            doc = json.load(f)
        checker = check_inference if doc.get("kind") == "inference" else check_program if "steps" in doc else check_op
        total += 1
        try:
            errors = [f"{w}: {e}" for w, got, want in checker(folder, doc)
                      if (e := compare(got, want, doc["rtol"], doc["atol"]))]
        except Exception as e:
            errors = [short_error(e)]
        if errors:
            bad += 1
            print(f"FAIL {folder}: {'; '.join(errors)}")
    print(f"{total} cases replayed, {bad} failed")
    return bad


# ----------------------------------------------------------------------------
# 7. main
# ----------------------------------------------------------------------------
def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--check", metavar="DIR", help="replay an existing set instead of writing one")
    ap.add_argument("--out")
    ap.add_argument("--seed", type=int)
    ap.add_argument("--ops", default="", help="comma separated op types; grad ops by name; programs/<name>")
    args = ap.parse_args()
    if args.check:
        sys.exit(1 if check_set(args.check) else 0)
    if not args.out or args.seed is None:
        ap.error("--out and --seed are required")
    wanted = [o for o in args.ops.split(",") if o]
    programs = ["programs/" + n for n in list(PROGRAMS) + list(inference_models())]
    every = list(GENERATORS) + list(GRADS) + programs
    unknown = [o for o in wanted if o not in every]
    if unknown:
        sys.exit("unknown op: " + ", ".join(unknown))

    made, skipped, reasons = {}, {}, []

    def attempt(key, label, fn, folder=None):
        """Runs fn; a failure is recorded with its reason, never swallowed.

        folder: what fn may have half written, removed again on failure
        """
        try:
            fn()
            made[key] = made.get(key, 0) + 1
        except Exception as e:     # Paddle raises many types; the message is what matters
            skipped[key] = skipped.get(key, 0) + 1
            reasons.append((label, short_error(e)))
            print(f"SKIP {label}: {short_error(e)}", flush=True)
            if folder:
                shutil.rmtree(folder, ignore_errors=True)

    for key in wanted or every:
        print(f"-- {key}", file=sys.stderr, flush=True)
        if key.startswith("programs/"):
            name = key.split("/")[1]
            maker = make_program_case if name in PROGRAMS else make_inference_case
            attempt(key, key, lambda: maker(args.out, args.seed, name), f"{args.out}/{key}")
        elif key in GRADS:
            for k, c in enumerate(grad_cases(args.seed, key)):
                rng = Rng(args.seed, f"{key}/{c.name}")
                attempt(key, f"{key}/{c.name}", lambda: make_grad_case(args.out, args.seed, rng, c, key))
        else:
            for c in cases_of(args.seed, key):
                attempt(key, f"{key}/{c.name}", lambda: make_forward_case(args.out, args.seed, c))

    print(f"\n{'op':52} {'cases':>5} {'skipped':>7}")
    for key in wanted or every:
        print(f"{key:52} {made.get(key, 0):5d} {skipped.get(key, 0):7d}")
    print(f"{'total':52} {sum(made.values()):5d} {sum(skipped.values()):7d}")
    os.makedirs(args.out, exist_ok=True)
    if not wanted:
        with open(f"{args.out}/index.json", "w") as f:
            json.dump({"seed": args.seed, "paddle": paddle.__version__, "cases": made,
                       "skipped": [{"case": a, "reason": b} for a, b in reasons]}, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
