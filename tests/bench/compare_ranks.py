#!/usr/bin/env python3
"""Data-parallel training by ranks of one thread beside one process of one thread, taking turns.

  compare_ranks.py [--interp build/release/interp] [--ranks 2] [--width 512] [--depth 8] [--batch 2048]
      [--bucket-size 1M] [--rounds 7] [--steps 10]

The network is a chain of products and tanh. In each round one process, the ranks, and the ranks with all gradients in
one bucket, which starts when the backward part has ended, train the same batches, each rank on a CPU of its own.
Printed are medians over rounds: of the median step in ms; of what the last step's trace says of one rank:

  communication  time in which a collective of ring 0 is under way, waiting for other ranks included
  waited         time in which ops of the program wait for it: c_bucket_wait and c_allreduce_rows
  hidden         the rest of the communication, which went on behind the backward part
"""
import argparse
import array
import json
import os
import shutil
import statistics
import subprocess
import tempfile

WAITS = ("c_bucket_wait", "c_allreduce_rows")


def program(width, depth, startup):
    lines = ["program version=0", "block 0"]
    lines += [f"  var w{i} float32[{width},{width}] param" for i in range(depth)]
    if startup:
        bound = (3 / width) ** 0.5
        return "\n".join(lines + [f"  uniform_random() -> (Out=w{i}) {{dtype=5, shape=longs:[{width},{width}], "
                                  f"min=-{bound:.5f}, max={bound:.5f}, seed={i + 1}}}" for i in range(depth)]) + "\n"
    ops, last = [], "x"
    lines.append(f"  var x float32[-1,{width}] check_feed")
    for i in range(depth):
        lines += [f"  var m{i} float32[-1,{width}]", f"  var h{i} float32[-1,{width}]"]
        ops += [f"  matmul_v2(X={last}, Y=w{i}) -> (Out=m{i})", f"  tanh(X=m{i}) -> (Out=h{i})"]
        last = f"h{i}"
    lines.append("  var loss float32[1]")
    return "\n".join(lines + ops + [f"  mean(X={last}) -> (Out=loss)"]) + "\n"


def write_samples(path, count, width):
    """An .npy file of float32[count,width]."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, {width}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    values = array.array("f", ((i * 37 + 11) % 19 / 19 - 0.5 for i in range(count * width)))
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values.tobytes())


def prepare(folder, args):
    forward, startup = os.path.join(folder, "forward.txt"), os.path.join(folder, "startup.txt")
    for path, is_startup in ((forward, False), (startup, True)):
        with open(path, "w") as file:
            file.write(program(args.width, args.depth, is_startup))
    write_samples(os.path.join(folder, "x.npy"), args.batch, args.width)
    subprocess.run([args.interp, "backward", forward, "--loss", "loss", "--optimizer", "sgd:learning_rate=0.01",
                    "--startup-from", startup, "--startup", os.path.join(folder, "first.pdmodel"), "-o",
                    os.path.join(folder, "train.pdmodel")], check=True, capture_output=True)


def train(folder, args, ranks, bucket_size):
    """The report of rank 0, and the events of its trace."""
    trace = os.path.join(folder, "trace.json")
    command = [args.interp, "train", os.path.join(folder, "train.pdmodel"), "--startup",
               os.path.join(folder, "first.pdmodel"), "--data", os.path.join(folder, "x.npy"), "--batch-size",
               str(args.batch), "--steps", str(args.steps), "--threads", "1", "--json", "--trace", trace]
    if ranks > 1:
        command += ["--data-parallel", "--bucket-size", bucket_size]
        launch = ["mpirun", "-n", str(ranks), "--bind-to", "none", "--oversubscribe"]
        command = launch + (["--allow-run-as-root"] if os.geteuid() == 0 else []) + command
    cpus = sorted(os.sched_getaffinity(0))[:ranks]
    done = subprocess.run(command, check=True, capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cpus))
    with open(trace) as file:
        return json.loads(done.stdout), json.load(file)["traceEvents"]


def covered(slices):
    """How long at least one of (start, end) was under way."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(slices):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def communication(events):
    """Milliseconds of communication, and of waiting for it."""
    slices = [event for event in events if event["ph"] == "X"]
    span = lambda event: (event["ts"], event["ts"] + event["dur"])
    comm = covered([span(e) for e in slices if e["cat"] == "comm"])
    waited = sum(e["dur"] for e in slices if e["name"] in WAITS)
    return comm / 1e3, waited / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interp", default="build/release/interp")
    for name, default in (("ranks", 2), ("width", 512), ("depth", 8), ("batch", 2048), ("rounds", 7), ("steps", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--bucket-size", default="1M")
    args = parser.parse_args()
    if shutil.which("mpirun") is None:
        parser.error("there is no mpirun (Debian: openmpi-bin)")
    contenders = {"one process": (1, ""), f"{args.ranks} ranks": (args.ranks, args.bucket_size),
                  f"{args.ranks} ranks, one bucket": (args.ranks, "1G")}
    seen = {name: [] for name in contenders}
    with tempfile.TemporaryDirectory() as folder:
        prepare(folder, args)
        for _ in range(args.rounds):
            for name, (ranks, bucket_size) in contenders.items():
                report, events = train(folder, args, ranks, bucket_size)
                seen[name].append((report["step_median_ms"], *communication(events)))
    one = [step for step, _, _ in seen["one process"]]
    for name, rounds in seen.items():
        steps = [step for step, _, _ in rounds]
        line = f"{name:20} {statistics.median(steps):9.2f} ms a step"
        if rounds is not seen["one process"]:
            gains = [a / b for a, b in zip(one, steps)]
            comm, waited = (statistics.median(column) for column in list(zip(*rounds))[1:])
            hidden = statistics.median(1 - w / c for _, c, w in rounds)
            line += (f", {statistics.median(gains):.2f} x ({min(gains):.2f} to {max(gains):.2f}); communication "
                     f"{comm:.2f} ms, waited {waited:.2f} ms, hidden {hidden:.0%}")
        print(line)


if __name__ == "__main__":
    main()
