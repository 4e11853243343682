"""What the programs that make golden cases share: their arguments, their cases, the loop over them."""
import argparse
import shutil

import make_goldens as g
from make_goldens import Rng


def arguments(doc):
    """The folder to write to, and the set of op types that are wanted; empty: all."""
    ap = argparse.ArgumentParser(description=doc.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--ops", default="", help="comma separated op types")
    args = ap.parse_args()
    return args.out, set(filter(None, args.ops.split(",")))


def register(table, gradients=None):
    """A decorator of generator functions, which puts them into `table` for the op types that it is given, and these
    into the set `gradients` where it is told to."""
    def cases(*ops, gradient=False):
        def deco(fn):
            table.extend((op, fn) for op in ops)
            if gradient:
                gradients.update(ops)
            return fn
        return deco
    return cases


def forward_alone(case):
    """The case, of which none is made of the gradient."""
    case.notes = "forward alone"
    return case


def cases_of(table, seed, wanted):
    """The cases of `table`, pairs of an op type and a generator function, each with its op. Every op draws from a
    stream of its own, of the name `seed`/op."""
    for op, generate in table:
        if wanted and op not in wanted:
            continue
        for case in generate(Rng(0, f"{seed}/{op}"), op):
            case.op = op
            yield case


def make_all(out, cases, make):
    """Calls make(out, case) for each; one that Paddle refuses is said and leaves nothing behind."""
    made = failed = 0
    for case in cases:
        try:
            make(out, case)
            made += 1
        except Exception as e:
            failed += 1
            shutil.rmtree(f"{out}/{case.op}/{case.name}", ignore_errors=True)
            print(f"SKIP {case.op}/{case.name}: {g.short_error(e)}")
    print(f"{made} cases in {out}, {failed} failed")


def build_without_kernel(case):
    """Program with case.op, for which Paddle need not have a kernel here; returns (builder, op, slots). Outputs have the
    dtype of the first input of floats."""
    b, ins, outs = g.Builder(), {}, {}
    op = b.block.desc.append_op()       # block.append_op asks for a kernel
    op.set_type(case.op)
    for slot, values in case.ins.items():
        ins[slot] = [f"{slot}_{i}" for i in range(len(values))] if isinstance(values, list) else [slot]
        for name, value in zip(ins[slot], g.as_list(values)):
            b.feed(name, value)
        op.set_input(slot, ins[slot])
    dtype = next(a.dtype.name for a in map(g.array_of, b.feeds.values()) if a.dtype.kind == "f")
    for slot, count in case.out_counts().items():
        outs[slot] = [slot] if count == 1 else [f"{slot}_{i}" for i in range(count)]
        for name in outs[slot]:
            b.output(g.safe(name), dtype)
        op.set_output(slot, [g.safe(name) for name in outs[slot]])
    for name, value in g.coerce_attrs(case.op, case.attrs).items():
        if isinstance(value, bool):
            op._set_bool_attr(name, value)      # an int of the attributes that the op does not declare
        else:
            op._set_attr(name, value)
    b.fetch = [g.safe(name) for names in outs.values() for name in names]
    return b, op, {"inputs": ins, "outputs": {s: [g.safe(n) for n in names] for s, names in outs.items()}}


def write_modelled_case(out_dir, case, results, notes):
    """Writes the case with `results`, arrays or LoDs by the names of the outputs, in place of what Paddle computes."""
    b, op, slots = build_without_kernel(case)
    for name, value in results.items():
        if isinstance(value, g.LoD):
            b.block.var(name).desc.set_lod_level(len(value.lod))
    blob = b._with_feed_fetch(b.prog.desc.serialize_to_string())
    fetches = {name: (g.array_of(results[name]), getattr(results[name], "lod", [])) for name in b.fetch}
    rtol, atol = case.tol or g.tolerance(case.op, [a for a, _ in fetches.values()])
    g.write_case(f"{out_dir}/{case.op}/{case.name}", 0, case.op, case.name, blob, b.feeds, fetches, slots,
                 g.visible_attrs(case.op, op), [case.op], rtol, atol, notes)
