#!/usr/bin/env python3
"""Items per second of interp, onnxruntime and OpenVINO, taking turns, each on as many CPUs as it may use.

  pip install paddlepaddle==2.6.2 "numpy<2" onnxruntime onnx paddle2onnx==1.2.4     (one environment)
  pip install openvino                                                              (another one)

  compare_throughput.py FOLDER --shape NAME:VAR=1x3x224x224 ... --openvino-bin DIR
      [--interp build/release/interp] [--duration 5] [--rounds 3]

FOLDER and --shape are those of compare_models.py; DIR holds benchmark_app of OpenVINO's package. interp is
`interp bench` with its own choice of streams, the best of them; OpenVINO is benchmark_app with the hint for
throughput, on random inputs; onnxruntime is this script: as many callers of one session as there are CPUs, and a
session of one thread for each caller, the better of both. Printed are medians over rounds, and interp's over that of
the better peer.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from compare_models import make_feeds


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME:VAR=DIMS")
    parser.add_argument("--openvino-bin", metavar="DIR")
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--duration", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ort", nargs=3, metavar=("MODEL", "SHAPES", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ort is None and (not args.folder or not args.shape):
        parser.error("FOLDER and --shape are needed")
    return args


def shapes_by_name(texts):
    shapes = {}
    for text in texts:
        name, _, rest = text.partition(":")
        var, _, dims = rest.partition("=")
        shapes.setdefault(name, {})[var] = tuple(int(d) for d in dims.split("x"))
    return shapes


def run_interp(args, name, feeds_file):
    stem = os.path.join(args.folder, name)
    output = subprocess.run(
        [args.interp, "bench", stem + ".pdmodel", "--params", stem + ".pdiparams", "--feed", feeds_file,
         "--duration", f"{int(args.duration * 1000)}ms", "--json"], capture_output=True, text=True, check=True)
    return max(run["items_per_s"] for run in json.loads(output.stdout)["results"])


def run_openvino(args, name, shapes):
    stem = os.path.join(args.folder, name)
    dims = ",".join(f"{var}[{','.join(map(str, shape))}]" for var, shape in shapes.items())
    output = subprocess.run(
        [os.path.join(args.openvino_bin, "benchmark_app"), "-m", stem + ".pdmodel", "-d", "CPU", "-hint", "throughput",
         "-t", str(max(1, round(args.duration))), "-shape", dims, "-infer_precision", "f32"],
        capture_output=True, text=True)
    found = re.search(r"Throughput:\s+([0-9.]+) FPS", output.stdout)
    if found is None:
        sys.exit(f"benchmark_app on {name}: {output.stdout[-800:]}{output.stderr[-800:]}")
    return float(found.group(1))


def items_per_second(sessions, feeds, seconds):
    """Of one caller for each of `sessions`."""
    counts = [0] * len(sessions)
    start = time.perf_counter()

    def call(at):
        while time.perf_counter() - start < seconds:
            sessions[at].run(None, feeds)
            counts[at] += 1

    callers = [threading.Thread(target=call, args=(at,)) for at in range(len(sessions))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return sum(counts) / (time.perf_counter() - start)


def measure_ort(model, shapes, seconds):
    import onnxruntime
    cpus = len(os.sched_getaffinity(0))

    def session(threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    feeds = make_feeds(shapes)
    best = 0
    for sessions in ([session(1) for _ in range(cpus)], [session(cpus)] * cpus):
        items_per_second(sessions, feeds, 0.3)
        best = max(best, items_per_second(sessions, feeds, seconds))
    return best


def run_ort(args, name, shapes):
    stem = os.path.join(args.folder, name)
    if not os.path.exists(stem + ".onnx"):
        import paddle2onnx
        paddle2onnx.export(stem + ".pdmodel", stem + ".pdiparams", stem + ".onnx", opset_version=13)
    output = subprocess.run([sys.executable, __file__, "--ort", stem + ".onnx", json.dumps(shapes), str(args.duration)],
                            capture_output=True, text=True, check=True)
    return float(output.stdout.strip().splitlines()[-1])


def main():
    args = parse_args()
    if args.ort:
        model, shapes, seconds = args.ort
        shapes = {var: tuple(shape) for var, shape in json.loads(shapes).items()}
        print(measure_ort(model, shapes, float(seconds)))
        return
    import numpy as np
    print(f"{'program':24} {'interp':>10} {'ort':>10} {'openvino':>10}  x better peer")
    for name, shapes in shapes_by_name(args.shape).items():
        figures = {"interp": [], "ort": [], "openvino": []}
        with tempfile.TemporaryDirectory() as folder:
            feeds_file = os.path.join(folder, "feeds.npz")
            np.savez(feeds_file, **make_feeds(shapes))
            for _ in range(args.rounds):
                figures["interp"].append(run_interp(args, name, feeds_file))
                figures["ort"].append(run_ort(args, name, shapes))
                if args.openvino_bin:
                    figures["openvino"].append(run_openvino(args, name, shapes))
        medians = {peer: statistics.median(values) for peer, values in figures.items() if values}
        best = max(value for peer, value in medians.items() if peer != "interp")
        cells = " ".join(f"{medians.get(peer, float('nan')):10.2f}" for peer in figures)
        print(f"{name:24} {cells}  {medians['interp'] / best:.2f}", flush=True)


if __name__ == "__main__":
    main()
