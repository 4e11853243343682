#!/usr/bin/env python3
"""Training steps of interp beside Paddle, JAX (XLA on CPU) and PyTorch, taking turns.

  python3 -m venv P && P/bin/pip install paddlepaddle==2.6.2 "numpy<2" setuptools
  python3 -m venv J && J/bin/pip install jax optax
  python3 -m venv T && T/bin/pip install torch numpy
  compare_training.py --paddle P/bin/python --jax J/bin/python --torch T/bin/python
      [--nets mlp lenet resnet8 lstm attention] [--threads 1] [--replicas 2] [--rounds 5] [--steps 30]

The networks are those of train_peers.py. Paddle builds the programs that it and interp run; interp starts from
its own random parameters. In each round all run once, in processes of their own that are bound to as many CPUs as
they have threads. Printed are medians over rounds of the median step, in ms, and the fastest peer's time over
interp's; `first` is interp's first step; `replicas` are interp's, each of as many threads on CPUs of its own. A peer
without a Python is left out.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {"paddle": ["paddle"], "jax": ["jax"], "torch": ["torch", "torch_cl"]}
BATCH = {"attention": 16}


def run(command, threads):
    def bind():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])

    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "GLOG_minloglevel": "3"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, preexec_fn=bind)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def peer(python, name, net, a, *more):
    command = [python, os.path.join(HERE, "train_peers.py"), name, net]
    command += ["--threads", str(a.threads), "--steps", str(a.steps), *more]
    return json.loads(run(command, a.threads).strip().splitlines()[-1])


def interp(folder, net, a, replicas=1):
    base = os.path.join(folder, net)
    command = [a.interp, "train", f"{base}.main.pdmodel", "--startup", f"{base}.startup.pdmodel"]
    command += ["--data", f"{base}.data.npz", "--batch-size", str(BATCH.get(net, 64)), "--no-shuffle"]
    command += ["--steps", str(a.steps + 1), "--threads", str(a.threads), "--replicas", str(replicas), "--json"]
    return json.loads(run(command, a.threads * replicas))


def compare(net, folder, pythons, a):
    """Medians by contender, and interp's first step."""
    times, first = {}, []
    for _ in range(a.rounds):
        report = interp(folder, net, a)
        times.setdefault("interp", []).append(report["step_median_ms"])
        first.append(report["first_ms"])
        if a.replicas > 1:
            times.setdefault("replicas", []).append(interp(folder, net, a, a.replicas)["step_median_ms"])
        for name, python in pythons.items():
            for variant in PEERS[name]:
                # Convolutions alone have channels to put last.
                if variant == "torch_cl" and net not in ("lenet", "resnet8"):
                    continue
                times.setdefault(variant, []).append(peer(python, variant, net, a)["median_ms"])
    return {name: statistics.median(values) for name, values in times.items()}, statistics.median(first)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--interp", default=os.path.join(HERE, "../../build/release/interp"))
    for name in PEERS:
        ap.add_argument(f"--{name}", help=f"Python with {name}")
    ap.add_argument("--nets", nargs="+", default=["mlp", "lenet", "resnet8", "lstm", "attention"])
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--replicas", type=int, default=1, help="a column of interp with so many, each of --threads")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--steps", type=int, default=30)
    a = ap.parse_args()
    pythons = {name: getattr(a, name) for name in PEERS if getattr(a, name)}
    if "paddle" not in pythons:
        ap.error("--paddle is needed: it builds the programs")
    columns = ["interp", *(["replicas"] if a.replicas > 1 else []), *(variant for name in pythons for variant in PEERS[name])]
    print(f"{a.threads} thread(s), ms per step, median of {a.rounds} rounds")
    print("".join(f"{c:>11}" for c in ["net", *columns, "best/interp", "first"]))
    with tempfile.TemporaryDirectory() as folder:
        for net in a.nets:
            peer(pythons["paddle"], "paddle", net, argparse.Namespace(threads=a.threads, steps=1), "--save", folder)
            medians, first = compare(net, folder, pythons, a)
            best = min(time for name, time in medians.items() if name not in ("interp", "replicas"))
            cells = [f"{medians[c]:.2f}" if c in medians else "" for c in columns]
            cells += [f"{best / medians['interp']:.2f}", f"{first:.1f}"]
            print("".join(f"{c:>11}" for c in [net, *cells]), flush=True)


if __name__ == "__main__":
    main()
