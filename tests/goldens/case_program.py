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
