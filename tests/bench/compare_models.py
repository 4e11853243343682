#!/usr/bin/env python3
"""Times programs with interp and with what a user would run instead, taking turns.

  pip install paddlepaddle==2.6.2 "numpy<2" onnxruntime onnx paddle2onnx==1.2.4     (one environment)
  pip install openvino                                                       (another one)

  compare_models.py FOLDER --shape NAME:VAR=1x3x224x224 ... [--openvino-python PYTHON]
      [--peers ort openvino paddle paddle_plain paddle_new] [--threads 1 2] [--rounds 5] [--repeat 20]
      [--precision bf16]
  compare_models.py --case CASE ... [--peers paddle paddle_plain paddle_new]

For each NAME given by --shape (several for one NAME when it has several inputs) FOLDER holds
NAME.pdmodel and NAME.pdiparams; NAME.onnx is made by paddle2onnx when missing. Inputs are standard
normal; scale_factor is 1, im_shape the size of the image, and ids are word numbers below 1,000. A CASE is a folder with a program, its
parameters and what to feed, sequences among them (tools/compare_cases.py); only Paddle can be its peer.

Every peer is a process of its own that waits while the others run. A round is `repeat` runs of each;
the median of a peer is taken over all its runs. "x best" is interp's median over that of the fastest
peer. `paddle` is the inference predictor with oneDNN, `paddle_plain` without, `paddle_new` with oneDNN and its
newer executor. With --precision bf16 interp, OpenVINO and Paddle with oneDNN compute in bfloat16, and
interp_float32 is interp without.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = ["ort", "openvino", "paddle", "paddle_plain", "paddle_new"]


class Subject:
    """What is timed: a program with its parameters and its feeds."""

    def __init__(self, model, params, shapes=None, case=None):
        self.model, self.params, self.shapes, self.case = model, params, shapes, case
        self.fetches, self.lods = [], {}
        if case:
            with open(os.path.join(case, "case.json")) as file:
                described = json.load(file)
            self.fetches, self.lods, self.feed_names = described["fetches"], described["lod"], described["feeds"]

    def spec(self):
        """The arguments that make it anew."""
        return [self.model, self.params, self.shapes, self.case]

    def feeds(self):
        if not self.case:
            return make_feeds(self.shapes)
        import numpy as np
        return {name: np.load(os.path.join(self.case, "in_" + name.replace("/", "_") + ".npy")) for name in self.feed_names}


def make_feeds(shapes):
    import numpy as np
    rng = np.random.default_rng(1)
    size = next((s[-1] for s in shapes.values() if len(s) == 4), 1)
    special = {"scale_factor": 1, "im_shape": size}

    def feed(name, shape):
        if name == "ids":
            return rng.integers(1, 1000, shape)
        return np.full(shape, special[name], "float32") if name in special else rng.standard_normal(shape).astype("float32")

    return {name: feed(name, shape) for name, shape in shapes.items()}


def onnx_session(subject, threads):
    import onnxruntime
    path = os.path.splitext(subject.model)[0] + ".onnx"
    if not os.path.exists(path):
        import paddle2onnx
        paddle2onnx.export(subject.model, subject.params, path, opset_version=13)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def openvino_request(subject, threads, precision):
    import openvino
    core = openvino.Core()
    network = core.read_model(subject.model, subject.params)
    network.reshape(subject.shapes)
    request = core.compile_model(network, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": {"float32": "f32"}.get(precision, precision),
        "PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
    return lambda feeds: list(request.infer(feeds).values())


def with_feed_and_fetch(subject, folder):
    """The program of a case as the predictor wants it: it has no feed and fetch ops."""
    import paddle
    from paddle.static.io import append_fetch_ops, prepend_feed_ops
    paddle.enable_static()
    with open(subject.model, "rb") as file:
        program = paddle.static.Program.parse_from_string(file.read())
    prepend_feed_ops(program, subject.feed_names)
    append_fetch_ops(program, subject.fetches)
    path = os.path.join(folder, "program.pdmodel")
    with open(path, "wb") as file:
        file.write(program.desc.serialize_to_string())
    return path


def paddle_predictor(subject, threads, peer, precision):
    import paddle.inference
    with tempfile.TemporaryDirectory() as folder:
        model = with_feed_and_fetch(subject, folder) if subject.case else subject.model
        config = paddle.inference.Config(model, subject.params)
        config.disable_gpu()
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(threads)
        config.enable_memory_optim()
        config.enable_new_executor(peer == "paddle_new")
        if peer == "paddle_plain":
            config.disable_mkldnn()  # on unless one says so
        elif precision == "bf16":
            config.enable_mkldnn()
            config.enable_mkldnn_bfloat16()
        predictor = paddle.inference.create_predictor(config)

    def run(feeds):
        for name, value in feeds.items():
            handle = predictor.get_input_handle(name)
            handle.copy_from_cpu(value)
            if name in subject.lods:
                handle.set_lod(subject.lods[name])
        predictor.run()
        return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]
    return run


def worker(peer, threads, precision, *spec):
    """Loads, then answers each line "N" on stdin with the times of N runs in ms."""
    subject = Subject(*spec)
    feeds = subject.feeds()
    start = time.perf_counter()
    if peer == "ort":
        run = onnx_session(subject, threads)
    elif peer == "openvino":
        run = openvino_request(subject, threads, precision)
    else:
        run = paddle_predictor(subject, threads, peer, precision)
    load = time.perf_counter() - start
    start = time.perf_counter()
    run(feeds)
    print(json.dumps({"load_ms": load * 1e3, "first_ms": (time.perf_counter() - start) * 1e3}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            run(feeds)
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(times), flush=True)


class Peer:
    """A worker process."""

    def __init__(self, python, peer, threads, precision, subject):
        spec = json.dumps([peer, threads, precision, *subject.spec()])
        self.process = subprocess.Popen([python, __file__, "--worker", spec], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=dict(os.environ, OMP_NUM_THREADS=str(threads), GLOG_minloglevel="3"))
        self.start = self.answer()

    def answer(self):
        for line in self.process.stdout:
            try:
                return json.loads(line)
            except ValueError:
                continue  # libraries print, too
        raise RuntimeError("the peer ended early")

    def times(self, repeat):
        self.process.stdin.write(f"{repeat}\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def interp_times(args, subject, threads, precision, feeds, folder):
    import numpy as np
    command = [args.interp, "run", subject.model, "--threads", str(threads), "--json",
               "--no-check-shape", "--warmup", "3", "--repeat", str(args.repeat), "--precision", precision]
    if os.path.exists(subject.params):
        command += ["--params", subject.params]
    for name, value in feeds.items():
        path = os.path.join(folder, name.replace("/", "_") + ".npy")
        np.save(path, value)
        command += ["--feed", f"{name}={path}"]
    for name, lod in subject.lods.items():
        command += ["--feed-lod", name + "=" + "/".join(",".join(map(str, level)) for level in lod)]
    if subject.fetches:
        command += [word for fetch in subject.fetches for word in ("--fetch", fetch)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def compare(args, name, subject, threads, folder):
    feeds = subject.feeds()
    peers, times = {}, {column: [] for column in args.own}
    for peer in args.peers:
        python = args.openvino_python if peer == "openvino" else args.python
        try:
            peers[peer] = Peer(python, peer, threads, args.precision, subject)
            times[peer] = []
        except RuntimeError as error:
            print(f"{name}: {peer}: {error}", file=sys.stderr)
    start = {}
    for _ in range(args.rounds):
        for column in args.own:
            precision = args.precision if column == "interp" else "float32"
            report = interp_times(args, subject, threads, precision, feeds, folder)
            times[column].append(report["median_ms"])
        start = {"load_ms": report["load_ms"] + report["prepare_ms"], "first_ms": report["first_ms"]}
        for peer, process in peers.items():
            times[peer].append(statistics.median(process.times(args.repeat)))
    starts = {"interp": start, **{peer: process.start for peer, process in peers.items()}}
    for process in peers.values():
        process.close()
    return {peer: statistics.median(values) for peer, values in times.items()}, starts


def parse_shapes(specs):
    """NAME:VAR=1x3x224x224 -> {NAME: {VAR: [1, 3, 224, 224]}}"""
    models = {}
    for spec in specs:
        name, rest = spec.split(":", 1)
        var, dims = rest.rsplit("=", 1)
        models.setdefault(name, {})[var] = [int(d) for d in dims.split("x")]
    return models


def subjects(args):
    """The programs by name."""
    found = {}
    for name, shapes in parse_shapes(args.shape).items():
        model, params = (os.path.join(args.folder, name + ending) for ending in (".pdmodel", ".pdiparams"))
        found[name] = Subject(model, params, shapes=shapes)
    for case in args.case:
        model, params = (os.path.join(case, name) for name in ("program.pdmodel", "params.pdiparams"))
        found[os.path.basename(os.path.normpath(case))] = Subject(model, params, case=case)
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--case", nargs="+", default=[])
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--peers", nargs="*", choices=PEERS)
    parser.add_argument("--python", default=sys.executable, help="has paddle, onnxruntime and paddle2onnx")
    parser.add_argument("--openvino-python", default=sys.executable, help="has openvino")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    args = parser.parse_args()
    # The last one's load and first run are shown.
    args.own = ["interp"] if args.precision == "float32" else ["interp_float32", "interp"]
    if not args.case and not args.shape or args.shape and not args.folder:
        parser.error("give FOLDER and --shape, or --case")
    if args.peers is None:
        args.peers = PEERS[2:] if args.case else PEERS[:3]
    if args.case and not set(args.peers) <= set(PEERS[2:]):
        parser.error("only Paddle can be the peer of a case")
    return args


def main():
    if sys.argv[1:2] == ["--worker"]:
        worker(*json.loads(sys.argv[2]))
        return
    args = arguments()
    columns = [*args.own, *args.peers]
    print(f"{'program':<28} {'threads':>7} " + " ".join(f"{c + ' ms':>15}" for c in columns) +
          f" {'x best':>7}  load + first run, ms")
    for name, subject in subjects(args).items():
        for threads in args.threads:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    medians, starts = compare(args, name, subject, threads, folder)
                except RuntimeError as error:
                    print(f"{name:<28} {error}", flush=True)
                    continue
            best = min((v for k, v in medians.items() if k not in args.own), default=float("nan"))
            cells = " ".join(f"{medians[c]:>15.3f}" if c in medians else f"{'-':>15}" for c in columns)
            loads = ", ".join(f"{c} {s['load_ms']:.0f} + {s['first_ms']:.1f}" for c, s in starts.items())
            print(f"{name:<28} {threads:>7} {cells} {medians['interp'] / best:>7.2f}  {loads}", flush=True)


if __name__ == "__main__":
    main()
