#!/usr/bin/env python3
"""What an op costs besides its work: interp and onnxruntime on chains and on a wide graph.

  pip install onnxruntime onnx "numpy<2" [paddlepaddle==2.6.2]

  compare_dispatch.py chain [--sizes 100 1000 10000 100000] [--paddle]
      chains of additions and relus on 8 floats. us per op, and the time to prepare: from the bytes
      of the file to the first run, that one excluded
  compare_dispatch.py wide [--branches 8 --depth 4 --side 256]
      branches of matrix products joined by a sum: one worker, two workers, and onnxruntime's
      sequential and parallel executors; "gain" is the time against one worker or thread

Peers take turns in every round, so that a slow moment of the machine meets all of them; the median
over rounds is printed.
"""
import argparse
import json
import os
import statistics
import struct
import subprocess
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOG_minloglevel", "2")
import numpy as np  # noqa: E402: thread counts are read when libraries load
import onnxruntime as ort  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def chain_text(length):
    """The chain as a program in interp's text form."""
    lines = ["program version=2006002", "block 0", "  var x float32[8]"]
    ops, last = [], "x"
    for i in range(length):
        out = f"h{i}"
        lines.append(f"  var {out} float32[8]")
        ops.append(f"  elementwise_add(X={last}, Y=x) -> (Out={out}) {{axis=-1}}" if i % 2 == 0
                   else f"  relu(X={last}) -> (Out={out})")
        last = out
    return "\n".join(lines + ops) + "\n", last


def wide_text(branches, depth, side):
    lines = ["program version=2006002", "block 0", f"  var x float32[{side},{side}]"]
    ops, ends = [], []
    for b in range(branches):
        last = "x"
        for d in range(depth):
            lines.append(f"  var w{b}_{d} float32[{side},{side}] param")
            lines.append(f"  var h{b}_{d} float32[{side},{side}]")
            ops.append(f"  matmul_v2(X={last}, Y=w{b}_{d}) -> (Out=h{b}_{d}) {{trans_x=false, trans_y=false}}")
            last = f"h{b}_{d}"
        ends.append(last)
    lines.append(f"  var y float32[{side},{side}]")
    ops.append(f"  sum(X=[{', '.join(ends)}]) -> (Out=y)")
    return "\n".join(lines + ops) + "\n"


def write_params(path, arrays):
    """Paddle's combined parameter file, float32."""
    with open(path, "wb") as file:
        for _, array in sorted(arrays.items()):
            desc = b"\x08\x05" + b"".join(b"\x10" + varint(d) for d in array.shape)
            file.write(struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + array.tobytes())


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def to_pdmodel(interp, text, path):
    """The text form as the bytes a user would have."""
    with open(path + ".txt", "w") as file:
        file.write(text)
    with open(path, "wb") as file:
        subprocess.run([interp, "dump", path + ".txt", "--stage", "program", "--format", "pb"], stdout=file, check=True)


def run_interp(interp, model, feed, fetch, repeat, *flags):
    command = [interp, "run", model, "--feed", feed, "--fetch", fetch, "--warmup", "2", "--repeat", str(repeat),
               "--threads", "1", "--json", *flags]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def onnx_model(nodes, inputs, outputs, initializers=()):
    def infos(shapes):
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs), list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def ort_session(model, intra=1, inter=1):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    parallel = inter > 1
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL if parallel else ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads, options.inter_op_num_threads = intra, inter
    options.log_severity_level = 3
    start = time.perf_counter()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session, time.perf_counter() - start


def median_seconds(function, repeat):
    function()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def paddle_chain(length):
    """(prepare seconds: the first run holds the analysis, function that runs once)."""
    import paddle
    paddle.enable_static()
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = h = paddle.static.data("x", [8], "float32")
        for i in range(length):
            h = paddle.add(h, x) if i % 2 == 0 else paddle.nn.functional.relu(h)
    executor = paddle.static.Executor(paddle.CPUPlace())
    data = np.ones(8, "float32")
    start = time.perf_counter()
    executor.run(program, feed={"x": data}, fetch_list=[h])
    return time.perf_counter() - start, lambda: executor.run(program, feed={"x": data}, fetch_list=[h])


def compare_chain(args, folder):
    print(f"{'ops':>7}  {'interp us/op':>12}  {'ort us/op':>9}  {'ratio':>5}  "
          f"{'interp prepare s':>16}  {'ort prepare s':>13}  {'ratio':>5}")
    x = np.ones(8, "float32")
    for length in args.sizes:
        text, last = chain_text(length)
        model = os.path.join(folder, f"chain_{length}.pdmodel")
        to_pdmodel(args.interp, text, model)
        nodes = [helper.make_node("Add", [f"h{i - 1}" if i else "x", "x"], [f"h{i}"]) if i % 2 == 0
                 else helper.make_node("Relu", [f"h{i - 1}"], [f"h{i}"]) for i in range(length)]
        onnx = onnx_model(nodes, {"x": [8]}, {last: [8]})
        times = {"interp": [], "ort": [], "interp prepare": [], "ort prepare": []}
        for _ in range(args.rounds):
            report = run_interp(args.interp, model, "x=random", last, args.repeat, "--scheduler", "trace")
            times["interp"].append(report["median_ms"] / 1e3)
            times["interp prepare"].append((report["load_ms"] + report["prepare_ms"]) / 1e3)
            session, seconds = ort_session(onnx)
            times["ort prepare"].append(seconds)
            times["ort"].append(median_seconds(lambda: session.run(None, {"x": x}), args.repeat))
        m = {key: statistics.median(values) for key, values in times.items()}
        per_op = 1e6 / length
        print(f"{length:>7}  {m['interp'] * per_op:>12.3f}  {m['ort'] * per_op:>9.3f}  {m['interp'] / m['ort']:>5.2f}  "
              f"{m['interp prepare']:>16.4f}  {m['ort prepare']:>13.4f}  {m['interp prepare'] / m['ort prepare']:>5.2f}",
              flush=True)
        if args.paddle:
            first, run = paddle_chain(length)
            print(f"{'':>7}  paddle: {median_seconds(run, 5) * per_op:.3f} us/op, first run {first:.3f} s", flush=True)


def compare_wide(args, folder):
    side, model, params = args.side, os.path.join(folder, "wide.pdmodel"), os.path.join(folder, "wide.pdiparams")
    rng = np.random.default_rng(0)
    weights = {f"w{b}_{d}": (rng.standard_normal((side, side)) / side ** 0.5).astype("float32")
               for b in range(args.branches) for d in range(args.depth)}
    to_pdmodel(args.interp, wide_text(args.branches, args.depth, side), model)
    write_params(params, weights)
    nodes = [helper.make_node("MatMul", [f"h{b}_{d - 1}" if d else "x", f"w{b}_{d}"], [f"h{b}_{d}"])
             for b in range(args.branches) for d in range(args.depth)]
    nodes.append(helper.make_node("Sum", [f"h{b}_{args.depth - 1}" for b in range(args.branches)], ["y"]))
    onnx = onnx_model(nodes, {"x": [side, side]}, {"y": [side, side]},
                      [numpy_helper.from_array(w, n) for n, w in weights.items()])
    x = rng.standard_normal((side, side)).astype("float32")
    sessions = {"onnxruntime, sequential, 1 thread": ort_session(onnx)[0],
                "onnxruntime, sequential, 2 threads": ort_session(onnx, intra=2)[0],
                "onnxruntime, parallel, 2 x 1": ort_session(onnx, inter=2)[0]}
    schedulers = {"interp, trace, 1 worker": ("--scheduler", "trace"),
                  "interp, async, 1 worker": ("--scheduler", "async", "--workers", "1"),
                  "interp, async, 2 workers": ("--scheduler", "async", "--workers", "2")}
    times = {label: [] for label in [*schedulers, *sessions]}
    for _ in range(args.rounds):
        for label, flags in schedulers.items():
            report = run_interp(args.interp, model, "x=random", "y", args.repeat, "--params", params, *flags)
            times[label].append(report["median_ms"])
        for label, session in sessions.items():
            times[label].append(1e3 * median_seconds(lambda: session.run(None, {"x": x}), args.repeat))
    medians = {label: statistics.median(values) for label, values in times.items()}
    print(f"{args.branches} branches of {args.depth} products of {side} x {side}")
    for label, median in medians.items():
        base = medians["interp, trace, 1 worker" if label.startswith("interp") else "onnxruntime, sequential, 1 thread"]
        print(f"  {label:<35} {median:8.3f} ms  gain {base / median:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    chain = commands.add_parser("chain")
    chain.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10000, 100000])
    chain.add_argument("--paddle", action="store_true", help="also Paddle's executor (slow beyond 1000 ops)")
    wide = commands.add_parser("wide")
    wide.add_argument("--branches", type=int, default=8)
    wide.add_argument("--depth", type=int, default=4)
    wide.add_argument("--side", type=int, default=256)
    for command in (chain, wide):
        command.add_argument("--interp", default="build/release/interp")
        command.add_argument("--repeat", type=int, default=20)
        command.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (compare_chain if args.command == "chain" else compare_wide)(args, folder)


if __name__ == "__main__":
    main()
