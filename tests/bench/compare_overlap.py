#!/usr/bin/env python3
"""What streams gain: copies to a simulated device beside its kernels, against all work on one stream.

  compare_overlap.py INTERP [--branches 8] [--depth 1] [--side 512] [--trace out.json]
      branches of matrix products, each on a matrix that is fed and so must be copied first. Prints the
      time by the device's simulated clock, which is the same in every run, for both plans, and the
      bound: what the busier of the copies and the kernels take alone.

--trace writes the trace of the plan with streams, for chrome://tracing or ui.perfetto.dev.
"""
import argparse
import json
import os
import subprocess
import tempfile

COPY_BYTES_PER_S = 12e9
FLOPS_PER_S = 4e12


def program(branches, depth, side):
    lines = ["program version=2006002", "block 0"]
    ops, ends = [], []
    for b in range(branches):
        lines.append(f"  var x{b} float32[{side},{side}]")
        last = f"x{b}"
        for d in range(depth):
            lines.append(f"  var h{b}_{d} float32[{side},{side}]")
            ops.append(f"  matmul_v2(X={last}, Y={last}) -> (Out=h{b}_{d})")
            last = f"h{b}_{d}"
        ends.append(last)
    lines.append(f"  var y float32[{side},{side}]")
    ops.append(f"  sum(X=[{', '.join(ends)}]) -> (Out=y)")
    return "\n".join(lines + ops) + "\n"


def run(interp, path, args, *flags):
    command = [interp, "run", path, "--fetch", "y", "--place", "sim", "--repeat", "3", "--json",
               f"--sim-copy-gbps={COPY_BYTES_PER_S / 1e9}", f"--sim-gflops={FLOPS_PER_S / 1e9}", *flags]
    for b in range(args.branches):
        command += ["--feed", f"x{b}=random:{args.side}x{args.side}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interp")
    parser.add_argument("--branches", type=int, default=8)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--trace")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "overlap.txt")
        with open(path, "w") as file:
            file.write(program(args.branches, args.depth, args.side))
        one = run(args.interp, path, args, "--single-stream")["device_median_ms"]
        streams = run(args.interp, path, args,
                      *(["--trace", args.trace] if args.trace else []))["device_median_ms"]
    copies = args.branches * args.side ** 2 * 4 / COPY_BYTES_PER_S * 1e3
    kernels = args.branches * args.depth * 2 * args.side ** 3 / FLOPS_PER_S * 1e3
    print(f"copies alone {copies:.3f} ms, products alone {kernels:.3f} ms")
    print(f"one stream   {one:.3f} ms")
    print(f"streams      {streams:.3f} ms, {one / streams:.2f} x as fast")


if __name__ == "__main__":
    main()
