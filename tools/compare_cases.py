#!/usr/bin/env python3
"""Compares interp with what Paddle gave for whole programs, under every scheduler and on a simulated device.

  compare_cases.py CASE... [--interp build/release/interp] [--tolerance 1e-3] [--json FILE]

A CASE is a folder that holds a program as Paddle ran it, in one of two forms. One is that of the golden cases,
tests/goldens/README.md. The other has parameters and several steps:
  program.pdmodel      the program, without feed and fetch ops
  params.pdiparams     all persistable tensors before the first step, combined; need not be there
  in_VAR.npy           what was fed in every step
  out_VAR.npy          what was fetched in the last one
  end_VAR.npy          persistable tensors that the steps have changed
  case.json            {"feeds": [VAR...], "fetches": [VAR...], "lod": {VAR: LOD}, "out_lod": {VAR: LOD},
                        "steps": N, "changed": [VAR...]}
('/' in a name becomes '_' in the name of a file). A folder without case.json stands for all cases below it.

Printed per case, for each of trace, async with 4 workers, engine, and the simulated device sim:0:
the largest error of a fetch or of a changed tensor, that is the larger of |a-b|_2 / |b|_2 and
max|a-b| / max|b| (a: interp, b: Paddle). Integers, bools, shapes, dtypes and LoDs must be equal.
Detections may change places where their scores differ by at most 1e-3.
  same bits   all that ran on the host gave the same bits
  remark      ops that interp does not have, or what differs, or the error
A case that lacks ops is counted apart. Exit code 1 unless every other case is within --tolerance.
Needs NumPy, and no Paddle.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from compare_with_paddle import call, file_stem, find_writers, print_table, relative_errors, tied_order

MODES = {
    "trace": ["--scheduler", "trace", "--threads", "1"],
    "async": ["--scheduler", "async", "--workers", "4", "--threads", "1"],
    "engine": ["--scheduler", "engine", "--workers", "4", "--threads", "1"],
    "sim:0": ["--place", "sim:0", "--sim-memory", "16G", "--threads", "1"],
}


def lod_text(lod):
    return "/".join(",".join(str(offset) for offset in level) for level in lod)


def worst(got, want):
    """The error of an array against the expected one, and what is wrong with it when it cannot be told in numbers."""
    if want.size == 0 and want.dtype == np.float64 and got.size == 0:
        return 0.0, ""  # Paddle's fetch of what no kernel has written
    if got.dtype != want.dtype or got.shape != want.shape:
        return np.inf, f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
    error = max(relative_errors(got, want))
    if error == np.inf:
        return error, "differs" if want.dtype.kind not in "fc" else "is not finite where Paddle's is, or the other way round"
    return error, ""


class Case:
    """A folder with a program, what goes in and what Paddle gave."""

    def __init__(self, folder, interp, timeout):
        self.folder, self.interp, self.timeout = folder, interp, timeout
        self.name = os.path.basename(os.path.normpath(folder))
        with open(os.path.join(folder, "case.json")) as file:
            case = json.load(file)
        golden = "op" in case
        if golden:
            self.name = f"{case['op']}/{self.name}"
        self.program = os.path.join(folder, "program.pb" if golden else "program.pdmodel")
        self.feeds, self.fetches = list(case["feeds"]), list(case["fetches"])
        self.files = {"in": case["feeds"], "out": case["fetches"]} if golden else {}
        self.lods = case.get("lod", {})
        self.out_lods = {name: self.lods.get("out:" + name, []) for name in self.fetches} if golden else case["out_lod"]
        self.changed, self.steps = case.get("changed", []), 1 if golden else case["steps"]

    def file(self, kind, name):
        if self.files:
            return os.path.join(self.folder, self.files[kind][name])
        return os.path.join(self.folder, f"{kind}_{file_stem(name)}.npy")

    def missing_ops(self):
        done = subprocess.run([self.interp, "info", self.program, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            return []  # the run says why
        return json.loads(done.stdout)["unsupported"]

    def detections(self):
        """Names of the tensors whose rows are detections."""
        program = json.loads(call([self.interp, "dump", self.program, "--stage", "program", "--format", "json"]))
        return find_writers(program["blocks"][0])[1]

    def run(self, mode, scratch):
        """The arrays of all fetches and changed tensors under `mode`, and the LoDs of the fetches. Errors: RuntimeError."""
        out, save = (os.path.join(scratch, f"{kind}.npz") for kind in ("out", "save"))
        command = [self.interp, "run", self.program, "--out", out, "--json", *MODES[mode],
                   "--repeat", str(self.steps - 1)]
        params = os.path.join(self.folder, "params.pdiparams")
        if os.path.exists(params):
            command += ["--params", params]
        for name in self.feeds:
            command += ["--feed", f"{name}={self.file('in', name)}"]
            if name in self.lods:
                command += ["--feed-lod", f"{name}={lod_text(self.lods[name])}"]
        if self.changed:
            command += ["--save", save]
        for name in self.fetches:
            command += ["--fetch", name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"ran longer than {self.timeout} s") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise RuntimeError(lines[-1].replace(self.program + ": ", ""))
        got = {("out", name): array for name, array in np.load(out).items()}
        if self.changed:
            saved = np.load(save)
            got.update({("end", name): saved[name] for name in self.changed})
        lods = {fetch["name"]: fetch.get("lod", []) for fetch in json.loads(done.stdout)["fetches"]}
        return got, lods

    @staticmethod
    def worst_detection(got, want):
        """The same of detections, whose order may differ where their scores are about equal."""
        tied = tied_order(got, want)
        return worst(got, want) if tied is None else worst(got[tied[0]], want)

    def compare(self, got, lods, tolerance):
        """The largest error, and what differs beyond numbers."""
        largest, remarks = 0.0, []
        for (kind, name), array in got.items():
            want = np.load(self.file(kind, name))
            error, remark = worst(array, want)
            if error > tolerance and array.shape == want.shape and name in self.detections():
                error, remark = self.worst_detection(array, want)
            largest = max(largest, error)
            if remark:
                remarks.append(f"'{name}' {remark}")
            elif error > tolerance:
                remarks.append(f"'{name}' differs by {error:.1e}")
        for name, lod in lods.items():
            want = self.out_lods.get(name, [])
            if lod != want:
                largest = np.inf
                remarks.append(f"'{name}' has LoD {lod}, not {want}")
        return largest, remarks


def same_bits(results):
    hosts = [got for mode, got in results.items() if not mode.startswith("sim")]
    return all(got[key].tobytes() == hosts[0][key].tobytes() for got in hosts for key in got)


def compare(case, modes, tolerance):
    """The cells of the table's row: name, errors by mode, same bits, verdict, remark."""
    missing = case.missing_ops()
    if missing:
        return [case.name, *["-"] * len(modes), "-", "lacks ops", " ".join(missing)], missing
    cells, remarks, results = [], [], {}
    for mode in modes:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                results[mode], lods = case.run(mode, scratch)
                error, said = case.compare(results[mode], lods, tolerance)
            except (RuntimeError, KeyError, OSError) as failure:
                error, said = None, [str(failure)]
        cells.append("FAILED" if error is None else f"{error:.1e}")
        if error is None or not error <= tolerance:
            remarks += [remark for remark in said or ["beyond the tolerance"] if remark not in remarks]
    same = same_bits(results) if results else False
    verdict = "ok" if not remarks and same else "FAILED"
    return [case.name, *cells, "yes" if same else "NO", verdict, "; ".join(remarks[:3])], []


def case_folders(paths):
    for path in paths:
        yield from sorted(folder for folder, _, files in os.walk(path) if "case.json" in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", metavar="CASE")
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=list(MODES))
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds a run may take")
    parser.add_argument("--failed-only", action="store_true", help="print only what is not ok")
    parser.add_argument("--json", help="write the table's rows to this file, too")
    args = parser.parse_args()
    rows, absent = [], collections.Counter()
    for folder in case_folders(args.cases):
        row, missing = compare(Case(folder, args.interp, args.timeout), args.modes, args.tolerance)
        rows.append(row)
        absent.update(missing)
        print("\t".join(row), file=sys.stderr, flush=True)
    header = ["case", *args.modes, "same bits", "verdict", "remark"]
    print_table([header] + [row for row in rows if not args.failed_only or row[-2] != "ok"])
    verdicts = collections.Counter(row[-2] for row in rows)
    print(f"\n{len(rows)} cases: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    if absent:
        print("ops that interp lacks: " + ", ".join(f"{op} ({count})" for op, count in absent.most_common()))
    if args.json:
        with open(args.json, "w") as file:
            json.dump([dict(zip(header, row)) for row in rows], file, indent=1)
    sys.exit(0 if rows and not verdicts["FAILED"] else 1)


if __name__ == "__main__":
    main()
