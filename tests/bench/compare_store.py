#!/usr/bin/env python3
"""What a store's push and pull cost, beside MXNet 1.9.1's of kind `local`.

  compare_store.py --mxnet PYTHON [--rounds 5] [--bench build/release/tests/store_bench]

A round pushes 100 arrays to 100 keys, pulls them and waits for all. Cases:

  one      one value each
  two      two values each, which are added up
  touched  two values each; what was pulled is added to in place, so that copies that were put off
           are made
  sgd      two values each, an optimizer on the store

PYTHON is that of an environment with mxnet 1.9.1. Both programs take turns; each runs one round to
warm up and then some that count; medians of all are printed.
"""
import argparse
import os
import statistics
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASES = ("one", "two", "touched", "sgd")
SIZES = {"1 KB": (1 << 10, 50), "16 MB": (16 << 20, 3)}
ARRAYS = 100

PEER = """
import sys, time
import mxnet as mx
what, arrays, size, rounds = sys.argv[1], *map(int, sys.argv[2:])
store = mx.kv.create('local')
if what == 'sgd':
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, wd=0))
keys = [str(k) for k in range(arrays)]
# Two contexts of the host stand for two devices, as MXNet's own tests have it.
contexts = [mx.cpu(0)] if what == 'one' else [mx.cpu(0), mx.cpu(1)]
values = [[mx.nd.full((size // 4,), k, ctx=c) for c in contexts] for k in range(arrays)]
outs = [mx.nd.full((size // 4,), k) for k in range(arrays)]
for key, out in zip(keys, outs):
    store.init(key, out)
mx.nd.waitall()
for _ in range(rounds):
    start = time.perf_counter()
    for k in range(arrays):
        store.push(keys[k], values[k], priority=-k)
    for k in range(arrays):
        store.pull(keys[k], outs[k], priority=-k)
    if what == 'touched':
        for out in outs:
            out += 1
    mx.nd.waitall()
    print(time.perf_counter() - start)
"""


def times(command, environment):
    run = subprocess.run(command, env={**os.environ, **environment}, text=True, check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return [float(line) for line in run.stdout.split()][1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mxnet", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bench", default=os.path.join(ROOT, "build/release/tests/store_bench"))
    parser.add_argument("--cases", nargs="*", default=CASES, choices=CASES)
    args = parser.parse_args()
    print(f"{'':10}{'':>8}{'interp':>12}{'MXNet':>12}{'ratio':>8}")
    for size, (size_bytes, repeats) in SIZES.items():
        for case in args.cases:
            ours, peer = [], []
            numbers = [case, str(ARRAYS), str(size_bytes), str(repeats + 1)]
            for _ in range(args.rounds):
                ours += times([args.bench, *numbers], {})
                peer += times([args.mxnet, "-c", PEER, *numbers],
                              {"MXNET_CPU_WORKER_NTHREADS": "2"})
            a, b = statistics.median(ours), statistics.median(peer)
            print(f"{case:10}{size:>8}{a * 1e3:>9.2f} ms{b * 1e3:>9.2f} ms{b / a:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
