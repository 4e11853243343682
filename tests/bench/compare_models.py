#!/usr/bin/env python3
"""Times programs with interp and with what a user would run instead, taking turns.

  pip install paddlepaddle==2.6.2 "numpy<2" onnxruntime onnx paddle2onnx     (one environment)
  pip install openvino                                                       (another one)

  compare_models.py FOLDER --shape NAME:VAR=1x3x224x224 ... [--openvino-python PYTHON]
      [--peers ort openvino paddle] [--threads 1 2] [--rounds 5] [--repeat 20]

For each NAME given by --shape (several for one NAME when it has several inputs) FOLDER holds
NAME.pdmodel and NAME.pdiparams; NAME.onnx is made by paddle2onnx when missing. Every peer is a
process of its own that waits while the others run. A round is `repeat` runs of each; the median of
a peer is taken over all its runs. "x best" is interp's median over that of the fastest peer.
Inputs are standard normal; scale_factor is 1 and im_shape the size of the image.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PEERS = ["ort", "openvino", "paddle"]


def make_feeds(shapes):
    import numpy as np
    rng = np.random.default_rng(1)
    size = next((s[-1] for s in shapes.values() if len(s) == 4), 1)
    special = {"scale_factor": 1, "im_shape": size}
    return {name: np.full(shape, special[name], "float32") if name in special
            else rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def onnx_session(model, params, threads):
    import onnxruntime
    path = os.path.splitext(model)[0] + ".onnx"
    if not os.path.exists(path):
        import paddle2onnx
        paddle2onnx.export(model, params, path, opset_version=13)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def openvino_request(model, params, threads, shapes):
    import openvino
    core = openvino.Core()
    network = core.read_model(model, params)
    network.reshape(shapes)
    request = core.compile_model(network, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
    return lambda feeds: list(request.infer(feeds).values())


def paddle_predictor(model, params, threads):
    import paddle.inference
    config = paddle.inference.Config(model, params)
    config.disable_gpu()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(threads)
    config.enable_mkldnn()
    predictor = paddle.inference.create_predictor(config)

    def run(feeds):
        for name, value in feeds.items():
            predictor.get_input_handle(name).copy_from_cpu(value)
        predictor.run()
        return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]
    return run


def worker(peer, model, params, threads, shapes):
    """Loads, then answers each line "N" on stdin with the times of N runs in ms."""
    feeds = make_feeds(shapes)
    start = time.perf_counter()
    if peer == "ort":
        run = onnx_session(model, params, threads)
    elif peer == "openvino":
        run = openvino_request(model, params, threads, shapes)
    else:
        run = paddle_predictor(model, params, threads)
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

    def __init__(self, python, peer, model, params, threads, shapes):
        spec = json.dumps([peer, model, params, threads, shapes])
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


def interp_times(args, model, params, threads, feeds, folder):
    import numpy as np
    command = [args.interp, "run", model, "--params", params, "--threads", str(threads), "--json",
               "--warmup", "3", "--repeat", str(args.repeat)]
    for name, value in feeds.items():
        path = os.path.join(folder, name.replace("/", "_") + ".npy")
        np.save(path, value)
        command += ["--feed", f"{name}={path}"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def compare(args, name, shapes, threads, folder):
    model, params = (os.path.join(args.folder, name + ending) for ending in (".pdmodel", ".pdiparams"))
    feeds = make_feeds(shapes)
    peers, times = {}, {"interp": []}
    for peer in args.peers:
        python = args.openvino_python if peer == "openvino" else args.python
        try:
            peers[peer] = Peer(python, peer, model, params, threads, shapes)
            times[peer] = []
        except RuntimeError as error:
            print(f"{name}: {peer}: {error}", file=sys.stderr)
    start = {}
    for _ in range(args.rounds):
        report = interp_times(args, model, params, threads, feeds, folder)
        times["interp"].append(report["median_ms"])
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


def main():
    if sys.argv[1:2] == ["--worker"]:
        worker(*json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--shape", action="append", required=True)
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    parser.add_argument("--python", default=sys.executable, help="has paddle, onnxruntime and paddle2onnx")
    parser.add_argument("--openvino-python", default=sys.executable, help="has openvino")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    columns = ["interp", *args.peers]
    print(f"{'program':<28} {'threads':>7} " + " ".join(f"{c + ' ms':>11}" for c in columns) +
          f" {'x best':>7}  load + first run, ms")
    for name, shapes in parse_shapes(args.shape).items():
        for threads in args.threads:
            with tempfile.TemporaryDirectory() as folder:
                medians, starts = compare(args, name, shapes, threads, folder)
            best = min((v for k, v in medians.items() if k != "interp"), default=float("nan"))
            cells = " ".join(f"{medians[c]:>11.3f}" if c in medians else f"{'-':>11}" for c in columns)
            loads = ", ".join(f"{c} {s['load_ms']:.0f} + {s['first_ms']:.1f}" for c, s in starts.items())
            print(f"{name:<28} {threads:>7} {cells} {medians['interp'] / best:>7.2f}  {loads}", flush=True)


if __name__ == "__main__":
    main()
