#!/usr/bin/env python3
"""mutate_cases.py - golden cases in other forms: attributes, dtypes, shapes, LoDs and values that differ a little.

    python mutate_cases.py --from SET... --out DIR --seed 7 --per-case 3 [--ops conv2d,relu_grad]
    INTERP_GOLDENS=DIR build/release/tests/kernels_tests --gtest_filter='*AgreesWithPaddle*'

SET is an unpacked set of op cases (README.md); DIR gets those mutants that Paddle runs, in the same format. A mutant
is a case of one op with one to three changes. Values of attributes are taken from other cases of the op, too.
Each op is run in a process of its own: a mutant that Paddle cannot stand costs nothing else.
"""
from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

import argparse
import collections
import glob
import json
import os
import shutil
import signal

import make_goldens as g
import numpy as np
import paddle
from make_goldens import LoD, Rng
from paddle.base import core

FLOATS = ("float32", "float64", "float16")
SECONDS_PER_CASE = 3
NEVER = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", "use_mkldnn",
         "use_cudnn", "use_quantizer", "mkldnn_data_type", "sub_block", "seed", "name", "use_global_beta_pow"}


class Base:
    """A case as it was: the op, what it was fed and what was fetched."""

    def __init__(self, folder):
        self.folder = folder
        with open(f"{folder}/case.json") as f:
            self.doc = json.load(f)
        with open(f"{folder}/program.pb", "rb") as f:
            self.blob = f.read()
        load = lambda f: np.load(f"{folder}/{f}")  # noqa: E731
        self.feeds = {n: load(f) for n, f in self.doc["feeds"].items()}
        for n in self.feeds:
            if n in self.doc["lod"]:
                self.feeds[n] = LoD(self.feeds[n], self.doc["lod"][n])
        self.prog = paddle.static.Program.parse_from_string(self.blob)
        block = self.prog.global_block()
        self.ops = [op.desc for op in block.ops if op.type not in ("feed", "fetch")]
        self.var = {n: (v.dtype, list(v.shape) if v.type == core.VarDesc.VarType.LOD_TENSOR else None)
                    for n, v in block.vars.items() if v.name not in ("feed", "fetch")
                    and v.type == core.VarDesc.VarType.LOD_TENSOR}
        self.plain = len(self.ops) == 1 and len(self.prog.blocks) == 1 and all(
            v.type in (core.VarDesc.VarType.LOD_TENSOR, core.VarDesc.VarType.FEED_MINIBATCH,
                       core.VarDesc.VarType.FETCH_LIST) for v in block.vars.values())


def attr_values(desc):
    values = {}
    for name in desc.attr_names():
        if name in NEVER or name.startswith(("Scale_", "fuse_", "fused_")):
            continue
        try:
            v = desc.attr(name)
            json.dumps(v)
            values[name] = v
        except Exception:
            continue
    return values


class Mutant:
    """Changes of one case, in place."""

    def __init__(self, base, pool, r):
        self.base, self.pool, self.r = base, pool, r
        self.feeds = dict(base.feeds)
        self.attrs, self.dropped, self.said, self.dtype = {}, [], [], {}

    def change(self):
        kinds = [self.attribute] * 5 + [self.other_attributes, self.shape, self.shape, self.one_dim, self.rank,
                 self.dtypes, self.lod, self.values, self.grow, self.drop]
        for _ in range(self.r.n(1, 3)):
            self.r.pick(*kinds)()
        return bool(self.said)

    def set(self, name, array):
        old = self.feeds[name]
        self.feeds[name] = LoD(array, old.lod) if isinstance(old, LoD) else array

    def attribute(self):
        r, known = self.r, attr_values(self.base.ops[0])
        if not known:
            return
        name = r.pick(*sorted(known))
        v = self.attrs.get(name, known[name])
        if r.n(0, 1) and len(self.pool[name]) > 1:
            new = json.loads(r.pick(*sorted(self.pool[name])))
        elif isinstance(v, bool):
            new = not v
        elif isinstance(v, int):
            new = r.pick(v + 1, v - 1, -v, -1, 0, 1, 2, -2)
        elif isinstance(v, float):
            new = r.pick(v * 2, -v, 0.0, v + 0.5, 1.0, v / 3)
        elif isinstance(v, list) and v and isinstance(v[0], (int, float)) and not isinstance(v[0], bool):
            new, i = list(v), r.n(0, len(v) - 1)
            what = r.n(0, 6)
            if what == 0:
                new.pop(i)
            elif what == 1:
                new.insert(i, new[i])
            elif what == 2:
                new[i] = -new[i]
            elif what == 3 and len(new) > 1:
                new.reverse()
            else:
                new[i] += r.pick(-1, 1, 1, 2)
        elif isinstance(v, list):
            new = [r.n(0, 2)]
        else:
            return
        if new != v:
            self.attrs[name] = new
            self.said.append(f"{name}={new}")

    def other_attributes(self):
        donors = self.pool["*"]
        if len(donors) > 1:
            new = json.loads(self.r.pick(*sorted(donors)))
            self.attrs.update(new)
            self.said.append("attributes of another case")

    def shape(self):
        """Every dim of one size becomes another size."""
        r = self.r
        sizes = sorted({d for v in self.feeds.values() if not isinstance(v, LoD) for d in v.shape})
        if not sizes:
            return
        old, new = r.pick(*sizes), r.pick(0, 1, 1, 2, 3, 5, 8, 9, 17)
        if old == new:
            return
        for n, v in self.feeds.items():
            a = g.array_of(v)
            dims = [new if d == old and not (isinstance(v, LoD) and i == 0) else d for i, d in enumerate(a.shape)]
            self.resize(n, dims)
        self.said.append(f"{old} -> {new}")

    def one_dim(self):
        r, n = self.r, self.r.pick(*self.feeds) if self.feeds else None
        if n is None or isinstance(self.feeds[n], LoD) or self.feeds[n].ndim == 0:
            return
        a = self.feeds[n]
        d = r.n(0, a.ndim - 1)
        dims = list(a.shape)
        dims[d] = r.pick(0, 1, 1, 1, dims[d] + 1, dims[d] * 2)
        self.resize(n, dims)
        self.said.append(f"{n}{dims}")

    def rank(self):
        r = self.r
        where, up = r.pick(0, -1), r.n(0, 1)
        names = list(self.feeds) if r.n(0, 1) else [r.pick(*self.feeds)] if self.feeds else []
        for n in names:
            if isinstance(self.feeds[n], LoD):
                return
        for n in names:
            dims = list(self.feeds[n].shape)
            if up:
                dims.insert(0 if where == 0 else len(dims), r.pick(1, 1, 2))
            elif dims:
                dims.pop(where)
            self.resize(n, dims)
        self.said.append(f"rank{'+' if up else '-'}{where} {','.join(names)}"[:60])

    def grow(self):
        """Rows for whole vectors and several threads."""
        r = self.r
        by = r.pick(3, 7, 16)
        at = r.pick(0, -1)
        ranks = {v.ndim for v in self.feeds.values() if not isinstance(v, LoD)}
        if any(isinstance(v, LoD) for v in self.feeds.values()) or not ranks or max(ranks) == 0:
            return
        size = max((v.shape[at] for v in self.feeds.values() if v.ndim), default=0)
        for n, v in self.feeds.items():
            self.resize(n, [d * by if d == size else d for d in v.shape])
        self.said.append(f"x{by}")

    def resize(self, n, dims):
        a = g.array_of(self.feeds[n])
        if int(np.prod(dims)) > 60000:
            return
        flat = a.reshape(-1)
        if flat.size == 0:
            flat = np.ones(1, a.dtype)
        k = int(np.prod(dims))
        out = np.resize(flat, k)
        if a.dtype.kind == "f" and k > flat.size:
            out = (out * (1 + 0.01 * self.r.g.standard_normal(k))).astype(a.dtype)
        self.set(n, out.reshape(dims))

    def dtypes(self):
        r = self.r
        kinds = sorted({g.array_of(v).dtype.name for v in self.feeds.values()})
        if not kinds:
            return
        old = r.pick(*kinds)
        new = r.pick("float64", "float64", "float16", "int32", "int64", "bool", "uint8", "int16", "int8", "float32")
        if old in ("int64", "int32"):
            new = r.pick("int32", "int64", "int32", "int64", "float32", "int16")
        if new == old:
            return
        names = [n for n, v in self.feeds.items() if g.array_of(v).dtype.name == old]
        if r.n(0, 3) == 0:
            names = [r.pick(*names)]
        else:
            self.dtype[old] = new
        for n in names:
            with np.errstate(all="ignore"):
                self.set(n, g.array_of(self.feeds[n]).astype(new))
        code = g.DTYPE_CODE
        for k, v in attr_values(self.base.ops[0]).items():
            if k in ("dtype", "out_dtype", "in_dtype") and v == code.get(old):
                self.attrs[k] = code[new]
        self.said.append(f"{old} -> {new}")

    def lod(self):
        r = self.r
        names = [n for n, v in self.feeds.items() if isinstance(v, LoD)]
        if not names:
            if r.n(0, 3) or not self.feeds:
                return
            names = [r.pick(*self.feeds)]
            if self.feeds[names[0]].ndim == 0:
                return
            self.feeds[names[0]] = LoD(self.feeds[names[0]], [[0, len(self.feeds[names[0]])]])
        n = r.pick(*names)
        a = self.feeds[n].array
        same = [m for m in names if self.feeds[m].lod == self.feeds[n].lod]
        if a.ndim == 0:
            return
        if r.n(0, 9) == 0:
            new = []
        else:
            levels = r.pick(len(self.feeds[n].lod), len(self.feeds[n].lod), 1, 2)
            cuts = len(self.feeds[n].lod[-1]) - 1 if self.feeds[n].lod and r.n(0, 1) else r.n(1, 5)
            new = [[0, *sorted(r.n(0, len(a)) for _ in range(cuts - 1)), len(a)]]
            for _ in range(levels - 1):
                top = len(new[0]) - 1
                new.insert(0, [0, *sorted(r.n(0, top) for _ in range(r.n(0, 2))), top])
        for m in same if r.n(0, 2) else [n]:
            self.feeds[m] = LoD(self.feeds[m].array, new) if new else self.feeds[m].array
        self.said.append(f"{n} lod {new}")

    def values(self):
        r = self.r
        if not self.feeds:
            return
        n = r.pick(*self.feeds)
        a = g.array_of(self.feeds[n]).copy()
        if a.size == 0:
            return
        kind = r.n(0, 4)
        flat = a.reshape(-1)
        if a.dtype.kind == "f":
            if kind == 0:
                flat[:] = np.round(flat)
            elif kind == 1:
                flat[r.n(0, flat.size - 1)] = r.pick(np.nan, np.inf, -np.inf)
            elif kind == 2:
                flat[:] = 0
            elif kind == 3:
                flat *= r.pick(10, 100)
            else:
                flat[r.n(0, flat.size - 1):] = flat[0]
        elif a.dtype.kind in "iu":
            if kind <= 2:
                flat[:] = flat[0]
            else:
                flat[r.n(0, flat.size - 1)] = flat[r.n(0, flat.size - 1)]
        else:
            flat[:] = r.n(0, 1)
        self.set(n, a)
        self.said.append(f"{n} values {kind}")

    def drop(self):
        desc, r = self.base.ops[0], self.r
        slots = [(s, "in") for s in desc.input_names() if desc.input(s)] + \
                [(s, "out") for s in desc.output_names() if desc.output(s)]
        slot = r.pick(*slots)
        self.dropped.append(slot)
        self.said.append(f"no {slot[0]}")


def make(out, seed, base, mutant, name):
    desc = base.ops[0]
    b = g.Builder()
    gone_in = {s for s, k in mutant.dropped if k == "in"}
    gone_out = {s for s, k in mutant.dropped if k == "out"}
    used = {n for s in desc.input_names() if s not in gone_in for n in desc.input(s)}
    for n, v in mutant.feeds.items():
        if n in used:
            b.feed(n, v)
    outs = [n for s in desc.output_names() if s not in gone_out for n in desc.output(s) if n != "@EMPTY@"]
    codes = {v: k for k, v in g.DTYPE_CODE.items()}
    for n in dict.fromkeys(outs):
        if n in b.feeds:
            continue
        dtype = "float32"
        if n in base.var:
            dtype = codes.get(int(base.var[n][0]), "float32")
        b.output(n, mutant.dtype.get(dtype, dtype))
    nd = b.block.desc.append_op()
    nd.copy_from(desc)
    for s in gone_in:
        nd.set_input(s, [])
    for s in gone_out:
        nd.set_output(s, [])
    for k, v in g.coerce_attrs(desc.type(), mutant.attrs).items():
        nd._set_attr(k, v)
    nd.infer_var_type(b.block.desc)
    nd.infer_shape(b.block.desc)
    b.prog._sync_with_cpp()
    b.fetch = [n for n in base.doc["fetches"] if n in outs]
    if not b.fetch:
        raise g.Unsupported("nothing to fetch")
    blob, res = b.run()
    again = b.run()[1]
    for (x, lx), (y, ly) in zip(res, again):
        if lx != ly or x.dtype != y.dtype or x.tobytes() != y.tobytes():
            raise g.Unsupported("differs from run to run")
    rtol, atol = g.tolerance(desc.type(), [a for a, _ in res])
    slots = {"inputs": {s: desc.input(s) for s in desc.input_names()},
             "outputs": {s: desc.output(s) for s in desc.output_names()}}
    g.write_case(f"{out}/{desc.type()}/{name}", seed, desc.type(), name, blob, b.feeds, dict(zip(b.fetch, res)), slots,
                 g.visible_attrs(desc.type(), nd), [desc.type()], max(rtol, 2e-4 if rtol else 0), atol * 4,
                 "; ".join(mutant.said)[:300])


def run_op(out, op, folders, seed, per_case, progress, start):
    bases = []
    for f in folders:
        try:
            base = Base(f)
        except Exception:
            continue
        if base.plain:
            bases.append(base)
    pool = collections.defaultdict(set)
    for base in bases:
        values = attr_values(base.ops[0])
        for k, v in values.items():
            pool[k].add(json.dumps(v))
        pool["*"].add(json.dumps(values))
    made, count = 0, 0
    for base in bases:
        for k in range(per_case):
            count += 1
            if count <= start:
                continue
            r = Rng(seed, f"{base.doc['op']}/{base.doc['case']}/{k}")
            progress(count)
            name = f"{base.doc['case']}_m{k}"
            try:
                mutant = Mutant(base, pool, r)
                if mutant.change():
                    signal.alarm(SECONDS_PER_CASE)
                    make(out, seed, base, mutant, name)
                    made += 1
            except Exception:
                shutil.rmtree(f"{out}/{op}/{name}", ignore_errors=True)
            signal.alarm(0)
    return made


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--from", dest="sets", nargs="+", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--per-case", type=int, default=3)
    ap.add_argument("--ops", default="")
    a = ap.parse_args()
    wanted = set(filter(None, a.ops.split(",")))
    by_op = collections.defaultdict(list)
    for s in a.sets:
        for f in sorted(glob.glob(f"{s}/*/*/case.json")):
            op = f.split("/")[-3]
            if op != "programs" and (not wanted or op in wanted):
                by_op[op].append(os.path.dirname(f))
    os.makedirs(a.out, exist_ok=True)
    state = f"{a.out}/.progress"
    for op in sorted(by_op):
        start = 0
        while True:
            with open(state, "w") as f:
                f.write(str(start))
            child = os.fork()
            if child == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

                def progress(n):
                    with open(state, "w") as f:
                        f.write(str(n))
                code = 0
                try:
                    run_op(a.out, op, by_op[op], a.seed, a.per_case, progress, start)
                except BaseException:
                    code = 1
                os._exit(code)
            status = os.waitpid(child, 0)[1]
            with open(state) as f:
                at = int(f.read() or 0)
            if status == 0 or at <= start:
                break
            print(f"{op}: Paddle ended at mutant {at} (status {status})", flush=True)
            start = at
    os.remove(state)
    print(sum(1 for _ in glob.glob(f"{a.out}/*/*/case.json")), "mutants in", a.out)


if __name__ == "__main__":
    main()
