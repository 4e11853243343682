#!/usr/bin/env python3
"""What the dependency engine costs, beside MXNet 1.9.1's.

  compare_engine.py [patterns] [policies] [split] [scaling] [--mxnet WHEEL] [--rounds 31]

  patterns   us per operation by kind of push, function and all: both engines with all their features,
             one worker each
  policies   the same for the policies, with one worker and two
  split      what the thread that pushes spends, and what the worker does when it has stood by until
             all was pushed
  scaling    bodies of 1, 10 and 100 us on one worker and two: the time of the bodies in a plain loop
             over workers times the time taken

WHEEL is mxnet-1.9.1-...-linux_x86_64.whl, or the folder `mxnet` of an installed one; without it only
core/engine is measured. The peer is compiled beside the bench (BENCH, build/release/tests/engine_bench)
when that was not done yet. All programs live through all rounds and take turns in every one, so that
a slow moment of the machine meets all of them; medians are printed.
"""
import argparse
import os
import statistics
import subprocess
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
KINDS = ("patterns", "policies", "split", "scaling")

# What is timed, and how many of it a round has.
PATTERNS = {
    "chain": (100000, "chain: all write one variable"),
    "independent": (100000, "independent: 1,024 variables in turn"),
    "random": (100000, "random: 2 read, 1 written, of 1,024"),
    "recorded-chain": (100000, "recorded operators, chain"),
    "recorded-random": (100000, "recorded operators, random"),
    "recorded-batch": (102400, "recorded operators, random, batches of 1,024"),
    "round-trip": (5000, "push and wait for it"),
    "new-delete": (30000, "make and delete a variable"),
    "wait-ready": (100000, "wait for a variable that is ready"),
}
BODIES = {1: 5000, 10: 1000, 100: 200}


class Program:
    """An engine that answers questions."""

    def __init__(self, command, **environment):
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, pattern, count):
        self.process.stdin.write(f"{pattern} {count}\n")
        answer = self.process.stdout.readline().split()
        if len(answer) != 2 or float(answer[0]) < 0:
            raise SystemExit(f"{self.process.args}: no answer to '{pattern}'")
        return tuple(map(float, answer))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def unpack(wheel, folder):
    """The folder `mxnet` of a wheel."""
    if os.path.isdir(wheel):
        return wheel
    target = os.path.join(folder, "mxnet_wheel")
    if not os.path.isdir(target):
        with zipfile.ZipFile(wheel) as file:
            file.extractall(target)
    return os.path.join(target, "mxnet")


def build_peer(args):
    folder = os.path.dirname(os.path.abspath(args.bench))
    program = os.path.join(folder, "mxnet_engine_peer")
    sources = [os.path.join(HERE, name) for name in ("mxnet_engine_peer.cc", "engine_patterns.h")]
    if os.path.exists(program) and all(os.path.getmtime(s) < os.path.getmtime(program) for s in sources):
        return program
    mxnet = os.path.abspath(unpack(args.mxnet, folder))
    subprocess.run([args.compiler, "-std=c++17", "-O3", "-march=native", "-DMSHADOW_USE_MKL=0",
                    "-DMSHADOW_USE_CBLAS=1", "-DMSHADOW_USE_CUDA=0", "-DMXNET_USE_MKLDNN=0", f"-I{ROOT}",
                    "-isystem", os.path.join(mxnet, "include"), sources[0], "-o", program, f"-L{mxnet}",
                    "-lmxnet", f"-Wl,-rpath,{mxnet}"], check=True)
    return program


class Programs:
    """The programs of one table, by label."""

    def __init__(self, args):
        self.prefix = ["chrt", "-f", "10"] if args.realtime else []
        self.bench, self.peer = args.bench, args.peer
        self.rounds = args.rounds
        self.by_label = {}

    def add(self, label, policy="per-device", workers=1):
        self.by_label[label] = Program([*self.prefix, self.bench], INTERP_ENGINE=policy,
                                       INTERP_ENGINE_WORKERS=str(workers))

    def add_peer(self, label, workers=1):
        if self.peer:
            self.by_label[label] = Program([*self.prefix, self.peer], MXNET_CPU_WORKER_NTHREADS=str(workers))

    def answers(self, questions):
        """(label, question) -> the answers of all rounds, one to warm up left out."""
        answers = {(label, q): [] for label in self.by_label for q in questions}
        for turn in range(self.rounds + 1):
            for question, count in questions.items():
                for label, program in self.by_label.items():
                    answer = program.ask(question, count)
                    if turn > 0:
                        answers[label, question].append(answer)
        for program in self.by_label.values():
            program.close()
        return answers


def median(answers, field=0):
    return statistics.median(answer[field] for answer in answers)


def print_table(title, heads, rows):
    print(f"\n{title}")
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def compare_patterns(args):
    programs = Programs(args)
    programs.add("interp")
    programs.add_peer("MXNet")
    answers = programs.answers({name: count for name, (count, _) in PATTERNS.items()})
    heads, rows = ["us per operation", *programs.by_label], []
    if args.peer:
        heads.append("times as fast")
    for name, (_, what) in PATTERNS.items():
        us = [median(answers[label, name]) for label in programs.by_label]
        rows.append([what, *(f"{x:.3f}" for x in us)])
        if args.peer:
            rows[-1].append(f"{us[1] / us[0]:.1f}")
    print_table(f"One worker each, median of {args.rounds} rounds", heads, rows)


def compare_policies(args):
    programs = Programs(args)
    programs.add("naive", "naive")
    for workers in (1, 2):
        for policy in ("pooled", "per-device"):
            programs.add(f"{policy}, {workers}", policy, workers)
    for workers in (1, 2):
        programs.add_peer(f"MXNet, {workers}", workers=workers)
    answers = programs.answers({name: count for name, (count, _) in PATTERNS.items()})
    rows = [[name, *(f"{median(answers[label, name]):.3f}" for label in programs.by_label)] for name in PATTERNS]
    print_table(f"By policy and workers, us per operation, median of {args.rounds} rounds",
                ["", *programs.by_label], rows)


def compare_split(args):
    programs = Programs(args)
    programs.add("interp")
    programs.add_peer("MXNet")
    names = ("chain", "independent", "random")
    answers = programs.answers({f"{held}{name}": 16384 if held else 30000 for name in names for held in ("", "held-")})
    rows = []
    for name in names:
        for label in programs.by_label:
            held = answers[label, f"held-{name}"]
            push = median(held, 1)
            run = statistics.median(whole - pushed for whole, pushed in held)
            rows.append([name, label, f"{push:.3f}", f"{run:.3f}", f"{median(answers[label, name]):.3f}"])
    print_table(f"Cost split, us per operation, median of {args.rounds} rounds",
                ["", "", "pushing, alone", "running and completing, alone", "both at once"], rows)


def compare_scaling(args):
    programs = Programs(args)
    for workers in (1, 2):
        programs.add(f"interp, {workers}", workers=workers)
    for workers in (1, 2):
        programs.add_peer(f"MXNet, {workers}", workers=workers)
    answers = programs.answers({f"{kind}-{us}": count for us, count in BODIES.items() for kind in ("loop", "body")})
    rows = []
    for us in BODIES:
        row = [f"{us} us"]
        for label in programs.by_label:
            loops, bodies = answers[label, f"loop-{us}"], answers[label, f"body-{us}"]
            speedup = statistics.median(loop[0] / body[0] for loop, body in zip(loops, bodies))
            row.append(f"{speedup / int(label[-1]):.2f}")
        rows.append(row)
    print_table(f"Efficiency by length of the body and workers, median of {args.rounds} rounds",
                ["body", *programs.by_label], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; default: patterns")
    parser.add_argument("--bench", default="build/release/tests/engine_bench")
    parser.add_argument("--mxnet", metavar="WHEEL")
    parser.add_argument("--compiler", default="g++", help="for the peer")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--realtime", action="store_true", help="under chrt -f, against noise; needs the right to")
    args = parser.parse_args()
    for kind in args.kinds:
        if kind not in KINDS:
            parser.error(f"no kind is named '{kind}'; there are: {', '.join(KINDS)}")
    args.bench = os.path.abspath(args.bench)
    args.peer = build_peer(args) if args.mxnet else None
    for kind in args.kinds or ("patterns",):
        globals()[f"compare_{kind}"](args)


if __name__ == "__main__":
    main()
