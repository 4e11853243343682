#!/usr/bin/env python3
"""What it costs to make a program ready: interp and Paddle on chains and random graphs.

  pip install paddlepaddle==2.6.2 "numpy<2"     (for --paddle)

  compare_analysis.py INTERP [--sizes 1000 10000 100000 1000000] [--paddle] [--paddle-most 10000]

interp: passes, plan and binding (prepare_ms of `interp run`), and `interp verify`'s proof. Paddle:
what its first run takes longer than a later one; its executor keeps a matrix of ops by ops, so sizes
beyond --paddle-most are left out. In a random graph each op adds two of the hundred results before
it. Every time is the median of three.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

SHAPE = "float32[4]"


def inputs_of(shape, i, rng):
    """Indices of the values that op i adds; value 0 is fed, op i makes value i + 1."""
    if shape == "chain":
        return i, i
    return rng.randint(max(0, i - 99), i), rng.randint(max(0, i - 99), i)


def write_program(path, shape, size):
    rng = random.Random(size)
    with open(path, "w") as file:
        file.write("program version=2006002\nblock 0\n")
        for v in range(size + 1):
            file.write(f"  var v{v} {SHAPE}\n")
        for i in range(size):
            a, b = inputs_of(shape, i, rng)
            file.write(f"  elementwise_add(X=v{a}, Y=v{b}) -> (Out=v{i + 1})\n")


def interp_times(interp, path, size):
    """(prepare s, proof s)"""
    prepare, proof = [], []
    for _ in range(3):
        out = subprocess.run([interp, "run", path, "--feed", "v0=random:4", "--fetch", f"v{size}",
                              "--scheduler", "trace", "--json", "--no-prune"],
                             check=True, capture_output=True, text=True).stdout
        prepare.append(json.loads(out)["prepare_ms"] / 1e3)
    for _ in range(3):
        out = subprocess.run([interp, "verify", path, "--fetch", f"v{size}", "--no-prune"],
                             check=True, capture_output=True, text=True).stdout
        found = re.search(r"took +([0-9.]+) (ms|s)", out)
        proof.append(float(found[1]) / (1e3 if found[2] == "ms" else 1))
    return statistics.median(prepare), statistics.median(proof)


def paddle_time(shape, size):
    import numpy as np
    import paddle
    paddle.enable_static()
    times = []
    for _ in range(3):
        rng = random.Random(size)
        program = paddle.static.Program()
        with paddle.static.program_guard(program, paddle.static.Program()):
            values = [paddle.static.data("v0", [4], "float32")]
            for i in range(size):
                a, b = inputs_of(shape, i, rng)
                values.append(paddle.add(values[a], values[b]))
        executor = paddle.static.Executor(paddle.CPUPlace())
        feed = {"v0": np.zeros(4, "float32")}
        took = []
        for _ in range(4):
            start = time.perf_counter()
            executor.run(program, feed=feed, fetch_list=[values[-1]])
            took.append(time.perf_counter() - start)
        times.append(took[0] - min(took[1:]))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interp")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10000, 100000, 1000000])
    parser.add_argument("--paddle", action="store_true")
    parser.add_argument("--paddle-most", type=int, default=10000)
    args = parser.parse_args()
    os.environ.setdefault("GLOG_minloglevel", "2")
    print("| graph | ops | interp prepare s | us per op | proof s | Paddle s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in ("chain", "random"):
        for size in args.sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "program.txt")
                write_program(path, shape, size)
                prepare, proof = interp_times(args.interp, path, size)
            paddle = (f"{paddle_time(shape, size):.3f}"
                      if args.paddle and size <= args.paddle_most else "")
            print(f"| {shape} | {size:,} | {prepare:.4f} | {prepare / size * 1e6:.2f} | {proof:.4f} | {paddle} |",
                  flush=True)


if __name__ == "__main__":
    main()
