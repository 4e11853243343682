#!/usr/bin/env python3
"""What each kernel of libinterp_cuda.so takes of a GPU: registers, local memory, shared memory.

    kernel_resources.py LIBRARY      a row per kernel, of its instances for all dtypes the most of each
    kernel_resources.py --self-test

Local memory, in bytes of a thread, holds arrays that are indexed by what only runs tell, frames of
functions that are called, and registers that were spilled. Kernels of files in HOT are to have none
beyond KNOWN: where one does, it is named and the exit status is 1. It is 2 where nothing could be read.

Needs cuobjdump of the CUDA toolkit; --cuobjdump says where it is.
"""

import argparse
import collections
import re
import subprocess
import sys

# Files of kernels/cuda whose kernels most of a run's time goes into.
HOT = {"batch_norm", "elementwise", "gather", "lamb", "layer_norm", "optimizer", "reduce", "softmax",
       "strided_copy"}
# Bytes by file and kernel, with a reason.
KNOWN = {
    # Sines of huge arguments: the digits of 2/pi, in a function of CUDA's mathematics.
    ("elementwise", "RunChain"): 48,
}

ENTRY = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
ARCHITECTURE = re.compile(r"^arch = (\S+)", re.MULTILINE)
# nvcc's name of the anonymous namespace of a file, then the kernel's.
NAME = re.compile(r"_GLOBAL__N__[0-9a-f]{8}_\d+_(\w+?)_cu_[0-9a-f]{8}(\d+)([A-Za-z]\w*)")

Kernel = collections.namedtuple("Kernel", "instances registers local shared")


def file_and_kernel(mangled):
    """('reduce', 'ReduceRows') of a mangled name; ('', the name) where it is of no file of ours."""
    match = NAME.search(mangled)
    if match is None:
        return "", mangled
    # The length of the kernel's name follows the namespace's, whose own end may be digits.
    return match.group(1), match.group(3)[:int(match.group(2))]


def kernels_of(text):
    """The most of each resource that an instance takes, by file and kernel."""
    kernels = {}
    for mangled, registers, stack, shared, local in ENTRY.findall(text):
        key = file_and_kernel(mangled)
        old = kernels.get(key, Kernel(0, 0, 0, 0))
        kernels[key] = Kernel(old.instances + 1, max(old.registers, int(registers)),
                              max(old.local, int(stack) + int(local)), max(old.shared, int(shared)))
    return kernels


def wrong_kernels(kernels):
    return [(file, name, kernel.local) for (file, name), kernel in sorted(kernels.items())
            if file in HOT and kernel.local > KNOWN.get((file, name), 0)]


def print_table(kernels):
    row = "{:<18} {:<24} {:>9} {:>9} {:>7} {:>7}".format
    print(row("file", "kernel", "instances", "registers", "local", "shared"))
    for (file, name), kernel in sorted(kernels.items()):
        print(row(file + (" *" if file in HOT else ""), name, *kernel))


def self_test():
    space = "_ZN6interp4cuda43_GLOBAL__N__669893e7_9_reduce_cu_9782ce48"
    text = "".join(f" Function {space}{name}:\n  REG:{reg} STACK:{stack} SHARED:8 LOCAL:0 CONSTANT[0]:9\n"
                   for name, reg, stack in (("10ReduceRowsIfEEvPT_", 30, 0),
                                            ("10ReduceRowsIdEEvPT_", 20, 16)))
    kernels = kernels_of(text)
    assert kernels == {("reduce", "ReduceRows"): Kernel(2, 30, 16, 8)}, kernels
    assert wrong_kernels(kernels) == [("reduce", "ReduceRows", 16)]
    known = {("elementwise", "RunChain"): Kernel(1, 40, 40, 0), ("accuracy", "Any"): Kernel(1, 1, 99, 0)}
    assert wrong_kernels(known) == []


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?")
    parser.add_argument("--cuobjdump", default="cuobjdump")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.library is None:
        parser.error("names no library")
    try:
        dump = subprocess.run([args.cuobjdump, "--dump-resource-usage", args.library], text=True,
                              capture_output=True)
    except OSError as error:
        print(f"cannot run {args.cuobjdump}: {error.strerror}", file=sys.stderr)
        return 2
    kernels = kernels_of(dump.stdout)
    if not kernels:
        print(f"{args.library} has no kernels: {dump.stderr.strip()}", file=sys.stderr)
        return 2
    print("GPUs:", ", ".join(sorted(set(ARCHITECTURE.findall(dump.stdout)))))
    print_table(kernels)
    wrong = wrong_kernels(kernels)
    for file, name, local in wrong:
        print(f"{file}.cu: {name} takes {local} bytes of local memory", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
