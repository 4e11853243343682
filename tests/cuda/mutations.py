#!/usr/bin/env python3
"""Breaks kernels, the device and the order of streams one line at a time, and sees whether cuda_tests
notices: a test fails, which findings of the shadow memory make it do, crashes or does not end.

    mutations.py BUILD            all of them: a row each; exit status 1 where one survives
    mutations.py BUILD NAME...    some
    mutations.py --self-test      whether the sources still have what the mutations change

BUILD is a build folder of Ninja whose cuda_tests is up to date. Neither it nor the sources are touched: what a
mutation changes is compiled and linked in a temporary folder.
"""

import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS_A_RUN = 240

# `old`, which the file has `nth` times or more, becomes `new` there. `compiled`: the source that is
# compiled, where the file is a header. `tests`: a filter.
Mutation = collections.namedtuple("Mutation", "name file old new tests nth compiled", defaults=(1, None))

STREAM = "core/device/cuda/cuda_stream.cc"
STAGING = "core/device/cuda/staging_buffers.cc"
RUNNER = "interpreter/run/instruction_runner.cc"
EVENTS = "interpreter/analysis/events.cc"
ORDER = "*CudaBlocks*:*CudaTrainingProgram*:*CudaNet*"
DEVICE = "CudaDevice*:CudaRun.*:*CudaBlocks*"
PEERS = "*CudaPeer*"

GRAPH = "interpreter/run/segment_graph.cc"
GRAPHS = "interpreter/run/graph_scheduler.cc"
IN_GRAPHS = "CudaGraph*:*CudaGraphPrograms*:*CudaBlocks*Graphs*"

MUTATIONS = [
    Mutation("fold without its first barrier", "kernels/cuda/fold.h", "  __syncthreads();\n", "",
             "Reduce*", compiled="kernels/cuda/reduce.cu"),
    Mutation("fold without its last barrier", "kernels/cuda/fold.h",
             "  __syncthreads();  // the next fold writes to `partial`\n", "",
             "CudaLayerNorm*", compiled="kernels/cuda/layer_norm.cu"),
    Mutation("columns read before they are written", "kernels/cuda/reduce.cu", "    __syncthreads();\n", "",
             "Reduce*"),
    Mutation("the next tile of columns comes early", "kernels/cuda/reduce.cu",
             "    __syncthreads();  // the next tile writes to `totals`\n", "", "Reduce*"),
    Mutation("every thread writes the sum", "kernels/cuda/reduce.cu",
             "if (threadIdx.x == 0) StoreTotal(", "StoreTotal(", "Reduce*"),
    Mutation("last part of a fold left out", "kernels/cuda/parts.h",
             "part < target.parts.count;", "part < target.parts.count - 1;", "Reduce*", compiled="kernels/cuda/reduce.cu"),
    Mutation("product planned for any bias", "kernels/cuda/product.cc",
             "AlignmentOf(operands.out),\n                                   AlignmentOf(operands.bias)};",
             "AlignmentOf(operands.out)};", "CudaProduct*"),
    Mutation("bias not told to the heuristic", "kernels/cuda/product.cc", "operands.bias)", "nullptr)",
             "CudaProduct*"),
    Mutation("tiles of Winograd in direct sums", "kernels/cuda/conv.cc",
             "    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:\n", "", "CudaConv*"),
    Mutation("tile not waited for", "kernels/cuda/strided_copy.cu", "    __syncthreads();\n", "", "CudaCopies*"),
    Mutation("the next tile comes early", "kernels/cuda/strided_copy.cu",
             "    __syncthreads();  // the next tile is written\n", "", "CudaCopies*"),
    Mutation("tile not transposed", "kernels/cuda/strided_copy.cu",
             "tile[threadIdx.x][i];", "tile[i][threadIdx.x];", "CudaCopies*"),
    Mutation("rows without an end", "kernels/cuda/strided_copy.cu",
             "row + threadIdx.x < rows.length && column", "column", "CudaCopies*"),
    Mutation("tail of a vector not looked at", "kernels/cuda/elementwise.cu",
             "chain.size - index < N ? static_cast<int>(chain.size - index) : N", "N", "Elementwise*"),
    Mutation("moments of a part by every thread", "kernels/cuda/batch_norm.cu",
             "if (threadIdx.x != 0) continue;", "", "CudaBatchNorm*"),
    Mutation("moments of the wrong part", "kernels/cuda/batch_norm.cu",
             "moments + 2 * channel * walk.parts", "moments + channel * walk.parts", "CudaBatchNorm*"),
    Mutation("gathered rows without an end", "kernels/cuda/gather.cu",
             "index >= 0 && index < args.rows", "index >= 0", "CudaGather*"),
    Mutation("a chain on the null stream", "kernels/cuda/elementwise.cu",
             "/*shared_bytes=*/0, stream, chain", "/*shared_bytes=*/0, nullptr, chain", ORDER),
    Mutation("event not recorded", STREAM, "ToStatus(cudaEventRecord(own.handle(), handle_)",
             "ToStatus(cudaSuccess", DEVICE),
    Mutation("event not waited for", STREAM, "ToStatus(cudaStreamWaitEvent(handle_, other.handle(), 0)",
             "ToStatus(cudaSuccess", DEVICE),
    Mutation("download on the null stream", STREAM, "cudaMemcpyDeviceToHost, handle_)",
             "cudaMemcpyDeviceToHost, nullptr)", DEVICE),
    Mutation("upload on the null stream", STREAM, "cudaMemcpyHostToDevice, handle_)",
             "cudaMemcpyHostToDevice, nullptr)", DEVICE),
    Mutation("source read before it is written", STREAM, "HostWrites::All().Pending(buffer.get())", "false",
             DEVICE),
    Mutation("staging buffer given back at once", STREAM, "enqueued.Update(device_.staging_.GiveAfter(staging, handle_));",
             "device_.staging_.Give(staging);", DEVICE),
    Mutation("staging buffer taken while in flight", STAGING, "return error != cudaSuccess && !LosesDevice(error);",
             "return false;", DEVICE),
    Mutation("plan's waits dropped", RUNNER, "    if (wait.blocks_host) continue;\n", "    continue;\n", ORDER),
    Mutation("plan's records dropped", RUNNER, "instruction.record >= 0)", "instruction.record >= 1000000)", ORDER),
    Mutation("use of memory not recorded", RUNNER,
             "devices_->pool(instruction.place).RecordUse(*tensor->buffer().get(), stream);", "", ORDER),
    Mutation("copies of peers not recorded", RUNNER, "    if (reads_peer) RecordUseOfPeers(bound);",
             "    static_cast<void>(reads_peer);", PEERS),
    Mutation("copies of peers not waited for", "core/device/stream_pool.cc",
             "if (ordered.ok()) ordered = stand_in->Wait(**copied);", "", PEERS),
    Mutation("waits between runs dropped", EVENTS, "if (crossing.empty()) return;", "return;", ORDER),
    Mutation("waits that block the host do not", EVENTS,
             "instruction.place.on_host() || edge.host_reads || from.place.kind != instruction.place.kind;",
             "edge.host_reads;", ORDER),
    Mutation("graph's inputs not copied again", GRAPH,
             "INTERP_RETURN_IF_ERROR(StageInputs());\n  for (const Result", "for (const Result", IN_GRAPHS),
    Mutation("graph's random numbers not new", GRAPHS, "absl::Status begun = random_.Update();",
             "absl::Status begun = captured_ ? absl::OkStatus() : random_.Update();", IN_GRAPHS),
    Mutation("random numbers on another stream", "interpreter/run/graph_random.cc",
             "parts_.devices->stream(on.stream).CopyToDevice(", "parts_.devices->stream(1).CopyToDevice(", IN_GRAPHS),
    Mutation("random numbers as they were captured", "kernels/cuda/random_numbers.h",
             "address == nullptr ? stream : *address", "stream", IN_GRAPHS, compiled="kernels/cuda/random.cu"),
    Mutation("graph's memory not waited for", GRAPHS,
             "INTERP_RETURN_IF_ERROR(parts_.devices->stream(segment.stream).Wait(*fences_[s]));", "", IN_GRAPHS),
    Mutation("graph's events not recorded", GRAPH,
             "INTERP_RETURN_IF_ERROR(parts_.run.runner->NoteEnqueued(id));", "", IN_GRAPHS),
    Mutation("graph waits for no events", GRAPH,
             "INTERP_RETURN_IF_ERROR(parts_.run.runner->AwaitEvents(id));", "", IN_GRAPHS),
    Mutation("graph's memory is the pool's", "interpreter/run/device_set.cc",
             "(in_graph_ ? of_graphs_ : usual_)", "usual_", IN_GRAPHS),
    Mutation("graph's parameters may move", GRAPH, "tensor.raw_data() != parameter.address || ", "", IN_GRAPHS),
    Mutation("graph writes what others hold", GRAPH,
             "return !tensor.has_memory() || !tensor.buffer().unique() || !tensor.buffer()->writable;",
             "return false;", IN_GRAPHS),
    Mutation("graph's results not looked for", GRAPH,
             "return result.value.buffer()->refs.load(std::memory_order_acquire) == result.holds;", "return true;",
             IN_GRAPHS),
]

# As the shadow memory words what it finds.
FINDING = re.compile(r"with no (?:barrier|event) between|never written|out of bounds|not aligned to \d")


def mutate(text, mutation):
    parts = text.split(mutation.old)
    if len(parts) <= mutation.nth:
        raise ValueError(f"{mutation.file} does not have it: {mutation.old.strip()}")
    return (mutation.old.join(parts[:mutation.nth]) + mutation.new + mutation.old.join(parts[mutation.nth:]))


class Build:
    """The commands of a build folder."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        commands = self.ninja("compdb")
        self.compile = [entry for entry in json.loads(commands) if " -c " in entry["command"]]
        lines = self.ninja("commands", "tests/cuda_tests").splitlines()
        self.link = {name: next(line for line in lines if f" -o {name} " in line)
                     for name in ("tests/cuda_tests", self.library(lines))}

    def ninja(self, tool, *arguments):
        done = subprocess.run(["ninja", "-t", tool, *arguments], cwd=self.folder, check=True, text=True,
                              capture_output=True)
        return done.stdout

    @staticmethod
    def library(lines):
        return next(match.group(1) for line in lines
                    for match in [re.search(r" -o (libinterp\.so\S*) ", line)] if match)

    def entry_of(self, source):
        """How a source is compiled for cuda_tests: by itself or with others."""
        path = os.path.join(ROOT, source)
        for entry in self.compile:
            if not any(f" {entry['output']} " in link for link in self.link.values()):
                continue
            if entry["file"] == path:
                return entry
            if "/Unity/" in entry["file"]:
                with open(entry["file"], encoding="utf-8") as file:
                    if f'"{path}"' in file.read():
                        return entry
        raise ValueError(f"{source} is no part of cuda_tests")


def run(command, build, **options):
    return subprocess.run(command, shell=True, cwd=build.folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace", **options)


def mutated_text(mutation):
    with open(os.path.join(ROOT, mutation.file), encoding="utf-8") as file:
        return mutate(file.read(), mutation)


def self_test():
    wrong = 0
    for mutation in MUTATIONS:
        try:
            mutated_text(mutation)
        except (OSError, ValueError) as error:
            print(f"{mutation.name}: {error}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


def write_source(mutation, original, folder):
    """Writes the mutant below `folder`, and gives what is compiled instead of `original`."""
    path = os.path.join(ROOT, mutation.file)
    copy = os.path.join(folder, mutation.file)
    os.makedirs(os.path.dirname(copy))
    with open(copy, "w", encoding="utf-8") as file:
        file.write(mutated_text(mutation))
    if mutation.compiled is not None:
        return original
    if original == path:
        return copy
    with open(original, encoding="utf-8") as file:
        text = file.read().replace(f'"{path}"', f'"{copy}"')
    united = os.path.join(folder, "unity.cc")
    with open(united, "w", encoding="utf-8") as file:
        file.write(text)
    return united


def build_mutant(build, mutation, folder):
    """The program to run, which takes libraries from `folder` before others."""
    entry = build.entry_of(mutation.compiled or mutation.file)
    source = write_source(mutation, entry["file"], folder)
    made = os.path.join(folder, "mutant.o")
    # The copy's folder comes first, for headers. Copies of .cu keep their language, and what a mutation
    # leaves unused is no error.
    command = entry["command"].replace(f" -o {entry['output']} ", f" -o {made} ")
    command = re.sub(r" -MD(?= )| -M[TF] \S+", "", command).replace(" -I", f" -I{folder} -I", 1)
    command = command.replace(f" -c {entry['file']}", f" -w -x c++ -c {source}")
    compiled = run(command, build)
    if compiled.returncode != 0:
        raise ValueError(f"does not compile:\n{compiled.stdout[-2000:]}")
    output, link = next(item for item in build.link.items() if f" {entry['output']} " in item[1])
    target = os.path.join(folder, os.path.basename(output))
    # The mutant's object comes first: of an inline function that several objects have, the linker takes
    # the first.
    link = link.replace(f" {entry['output']} ", " ").replace(f" -o {output} ", f" -o {target} ")
    link = re.sub(r" (?=\S+\.o )", f" {made} ", link, count=1)
    linked = run(link.split(" && cd ")[0].split(" && /usr/bin/cmake")[0], build)
    if not os.path.exists(target):
        raise ValueError(f"does not link:\n{linked.stdout[-2000:]}")
    if output == "tests/cuda_tests":
        return target
    soname = re.search(r"-soname,(\S+)", link).group(1)
    if not os.path.exists(os.path.join(folder, soname)):
        os.symlink(target, os.path.join(folder, soname))
    return os.path.join(build.folder, "tests/cuda_tests")


def how_seen(build, mutation):
    """What notices the mutation; '' where nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        program = build_mutant(build, mutation, folder)
        environment = dict(os.environ, LD_LIBRARY_PATH=folder)
        try:
            tests = run(f"exec {shlex.quote(program)} --gtest_fail_fast "
                        f"--gtest_filter={shlex.quote(mutation.tests)}", build, env=environment, timeout=SECONDS_A_RUN)
        except subprocess.TimeoutExpired:
            return "does not end"
    failed = re.search(r"^\[  FAILED  \] (\w\S*?)(?:,| \()", tests.stdout, re.MULTILINE)
    if failed:
        return failed.group(1) + (" by a finding" if FINDING.search(tests.stdout) else "")
    if tests.returncode != 0:
        return f"ends with {tests.returncode}"
    if "[  PASSED  ] 0 tests" in tests.stdout:
        raise ValueError(f"no test is named {mutation.tests}")
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.build is None:
        parser.error("which build folder?")
    unknown = set(args.names) - {mutation.name for mutation in MUTATIONS}
    if unknown:
        parser.error(f"no mutation is named {', '.join(sorted(unknown))}")
    build = Build(args.build)
    survivors = 0
    for mutation in MUTATIONS:
        if args.names and mutation.name not in args.names:
            continue
        try:
            seen = how_seen(build, mutation)
        except ValueError as error:
            print(f"{mutation.name}: {error}", file=sys.stderr)
            return 2
        survivors += not seen
        print(f"{mutation.name:<40} {os.path.basename(mutation.file):<22} {seen or 'SURVIVES'}", flush=True)
    print(f"{survivors} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
