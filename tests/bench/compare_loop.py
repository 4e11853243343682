#!/usr/bin/env python3
"""What a trip of a loop costs: `while` of interp and of Paddle, and onnxruntime's Loop, taking turns.

  pip install paddlepaddle==2.6.2 "numpy<2" onnx onnxruntime

  compare_loop.py [--trips 10000] [--rounds 7] [--repeat 5] [--peers ort paddle]

Two loops that add to eight floats, count and compare:
  carried    as static.nn.while_loop writes it: new values, then three assignments
  in place   as a While block of older programs does it: elementwise_add, increment, less_than
onnxruntime's Loop has the addition alone; it counts by itself. Printed are microseconds per trip,
medians over rounds in which all run once, and how the memory of interp grows from --trips to
--long-trips: the most that variables took, and that of the process.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOG_minloglevel", "3")
import numpy as np  # noqa: E402: thread counts are read when libraries load

HEAD = """program version=2006002
block 0
  var x float32[8]
  var n int64[1]
  var i int64[1]
  var y float32[8]
  var go_on bool[1]
  var steps step_scopes
  fill_constant() -> (Out=i) {dtype=3, shape=longs:[1], value=0.0}
  scale(X=x) -> (Out=y) {scale=1.0, bias=0.0, bias_after_scale=true}
  less_than(X=i, Y=n) -> (Out=go_on) {axis=-1}
  while(X=[i, n, x, y], Condition=go_on) -> (Out=[go_on, i, y], StepScopes=steps) {is_test=false, sub_block=block:1}
block 1 parent=0
"""
LOOPS = {
    "carried": HEAD + """  var next_i int64[1]
  var next_y float32[8]
  var next_go_on bool[1]
  scale(X=i) -> (Out=next_i) {scale=1.0, bias=1.0, bias_after_scale=true}
  elementwise_add(X=y, Y=x) -> (Out=next_y) {axis=-1}
  less_than(X=next_i, Y=n) -> (Out=next_go_on) {axis=-1}
  assign(X=next_i) -> (Out=i)
  assign(X=next_y) -> (Out=y)
  assign(X=next_go_on) -> (Out=go_on)
""",
    "in place": HEAD + """  elementwise_add(X=y, Y=x) -> (Out=y) {axis=-1}
  increment(X=i) -> (Out=i) {step=1.0}
  less_than(X=i, Y=n) -> (Out=go_on) {axis=-1}
""",
}


def feeds(trips):
    return {"x": np.ones(8, "float32"), "n": np.array([trips], "int64")}


def peak_kib(pid):
    """The most memory a running process has had. What wait4 tells counts the process that it was forked from."""
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


class Interp:
    """`interp run` on a loop."""

    def __init__(self, interp, text, folder, name):
        self.interp, self.folder = interp, folder
        self.program = os.path.join(folder, name.replace(" ", "_") + ".txt")
        with open(self.program, "w") as file:
            file.write(text)

    def run(self, trips, repeat, fetched="y"):
        """The report of `interp run --json`, and the most memory of the process in KiB."""
        command = [self.interp, "run", self.program, "--json", "--scheduler", "trace", "--threads", "1",
                   "--repeat", str(repeat), "--fetch", fetched, "--fetch", "i"]
        for name, value in feeds(trips).items():
            path = os.path.join(self.folder, name + ".npy")
            np.save(path, value)
            command += ["--feed", f"{name}={path}"]
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process, most_kib = subprocess.Popen(command, stdout=out, stderr=err), 0
            while process.poll() is None:
                most_kib = max(most_kib, peak_kib(process.pid))
                time.sleep(0.001)
            out.seek(0)
            err.seek(0)
            if process.returncode != 0:
                sys.exit(err.read().strip())
            return json.loads(out.read()), most_kib

    def us_per_trip(self, trips, repeat):
        return self.run(trips, repeat)[0]["median_ms"] * 1e3 / trips

    def bytes(self, interp):
        """The program as a ProgramDesc."""
        path = self.program + ".pb"
        with open(path, "wb") as file:
            subprocess.run([interp, "dump", self.program, "--stage", "program", "--format", "pb"], stdout=file, check=True)
        with open(path, "rb") as file:
            return file.read()


def paddle_loop(blob, trips):
    """A function that runs the loop, once it has been seen to give the right sum."""
    import paddle
    paddle.enable_static()
    program = paddle.static.Program.parse_from_string(blob)
    executor, fed = paddle.static.Executor(paddle.CPUPlace()), feeds(trips)
    run = lambda: executor.run(program, feed=fed, fetch_list=["y", "i"])
    y, i = run()
    assert i[0] == trips and y[0] == trips + 1
    return run


def onnx_loop(trips):
    import onnxruntime
    from onnx import TensorProto, helper
    floats, flag = [8], []
    body = helper.make_graph(
        [helper.make_node("Add", ["y_in", "x"], ["y_out"]), helper.make_node("Identity", ["go_in"], ["go_out"])], "body",
        [helper.make_tensor_value_info("trip", TensorProto.INT64, []), helper.make_tensor_value_info("go_in", TensorProto.BOOL, flag),
         helper.make_tensor_value_info("y_in", TensorProto.FLOAT, floats)],
        [helper.make_tensor_value_info("go_out", TensorProto.BOOL, flag), helper.make_tensor_value_info("y_out", TensorProto.FLOAT, floats)])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "loop",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, floats), helper.make_tensor_value_info("n", TensorProto.INT64, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, floats)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fed = {"x": np.ones(8, "float32"), "n": np.array(trips, "int64")}
    run = lambda: session.run(None, fed)
    assert run()[0][0] == trips + 1
    return run


def timed(run, trips, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6 / trips


def measure(args, loops):
    """Medians by what ran."""
    runs = {f"interp, {name}": lambda loop=loop: loop.us_per_trip(args.trips, args.repeat) for name, loop in loops.items()}
    if "ort" in args.peers:
        session = onnx_loop(args.trips)
        runs["onnxruntime Loop"] = lambda: timed(session, args.trips, args.repeat)
    if "paddle" in args.peers:
        for name, loop in loops.items():
            trips = max(args.trips // 10, 1)    # it is slow
            executor = paddle_loop(loop.bytes(args.interp), trips)
            runs[f"Paddle, {name}"] = lambda executor=executor, trips=trips: timed(executor, trips, 1)
    times = {what: [] for what in runs}
    for _ in range(args.rounds):
        for what, run in runs.items():
            times[what].append(run())
    return {what: statistics.median(values) for what, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--peers", nargs="*", default=["ort", "paddle"], choices=["ort", "paddle"])
    parser.add_argument("--trips", type=int, default=10_000)
    parser.add_argument("--long-trips", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        loops = {name: Interp(args.interp, text, folder, name) for name, text in LOOPS.items()}
        medians = measure(args, loops)
        best = medians.get("onnxruntime Loop")
        for what, median in medians.items():
            ratio = f"  {median / best:.2f} x onnxruntime" if best and what.startswith("interp") else ""
            print(f"{what:<20} {median:8.3f} us per trip{ratio}")
        for name, loop in loops.items():
            (short, short_kib), (long, long_kib) = loop.run(args.trips, 1), loop.run(args.long_trips, 0)
            print(f"interp, {name}: peak of variables {short['peak_bytes']} bytes for {args.trips} trips, {long['peak_bytes']} for "
                  f"{args.long_trips}; of the process {short_kib / 1024:.1f} and {long_kib / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
