#!/usr/bin/env python3
"""Compares interp with Paddle over a folder of programs, variable by variable.

  compare_with_paddle.py FOLDER [--interp build/release/interp] [--cache DIR] [--only NAME ...]

Every FOLDER/NAME.pdmodel is run once by Paddle (tools/paddle_reference.py, which needs PyPI's
paddlepaddle==2.6.2) with FOLDER/NAME.pdiparams, or with random parameters when there are none, and
by interp under every scheduler, twice each: fetching all variables Paddle computed, and fetching
what the program fetches, where interp is free to fuse and to reuse memory. With --cache what Paddle
gave is kept and used again: then Paddle need not be there at all.

The error of a variable is |a-b|_2 / |b|_2 (a: interp, b: Paddle); integers must be equal. Printed
per program:
  vars       variables compared
  error      largest error of a variable, and which
  max norm   largest max|a-b| / max|b| of a variable, to be judged by eye: it tells of single elements
  ill        variables beyond --tolerance whose error is within it when the op that writes them is
             given Paddle's own inputs: it has made rounding errors of its inputs large, as the
             difference of nearly equal numbers does. They are left out of the columns before
  fetches    largest error of the program's own fetches
  found      detections, equal in number and order. "k tied D": k of them changed places with rows
             of their class whose scores differ by D at most (never more than 1e-3)
  same bits  all schedulers gave the same bits
Exit code 1 unless all is within --tolerance.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

REFERENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "paddle_reference.py")
SCORE_TIE = 1e-3
SCHEDULERS = {"trace": [], "serial": [], "async": ["--workers", "2"]}


def file_stem(name):
    return name.replace("/", "_")


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{os.path.basename(command[0])} {' '.join(command[1:3])}: {lines[-1]}")
    return done.stdout


def read_params(path, names):
    """The float32 tensors of a combined parameter file: records in the order of the sorted names."""
    values = {}
    with open(path, "rb") as file:
        for name in sorted(names):
            _, levels = struct.unpack("<IQ", file.read(12))
            for _ in range(levels):
                file.seek(*struct.unpack("<Q", file.read(8)), os.SEEK_CUR)
            _, size = struct.unpack("<Ii", file.read(8))
            dtype, dims = read_tensor_desc(file.read(size))
            values[name] = np.frombuffer(file.read(int(np.prod(dims)) * dtype.itemsize), dtype).reshape(dims)
    return values


def read_tensor_desc(data):
    """dtype and dims of a VarType.TensorDesc: field 1 and field 2, packed or not, of varints."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value, shift = 0, 0
    dtypes = {0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64", 20: "uint8", 21: "int8"}
    dims = numbers[3::2] if len(numbers) > 2 and numbers[2] == 0x10 else numbers[4:]
    return np.dtype(dtypes[numbers[1]]), dims


def relative_errors(got, expected):
    """(L2 norm, max norm), infinite when the arrays cannot be compared."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return np.inf, np.inf
    if expected.dtype.kind not in "fc":
        return (0.0, 0.0) if np.array_equal(got, expected) else (np.inf, np.inf)
    if expected.size == 0:
        return 0.0, 0.0
    wide = "complex128" if expected.dtype.kind == "c" else "float64"
    a, b = got.astype(wide), expected.astype(wide)
    odd = ~np.isfinite(b)
    if not np.array_equal(a[odd], b[odd], equal_nan=True):
        return np.inf, np.inf
    difference, b = np.where(odd, 0, np.where(odd, 0, a) - np.where(odd, 0, b)), np.where(odd, 0, b)
    largest = np.abs(difference).max()
    if not np.isfinite(largest):
        return np.inf, np.inf
    if largest == 0:
        return 0.0, 0.0
    tiny = 1e-30
    return np.linalg.norm(difference) / max(np.linalg.norm(b), tiny), largest / max(np.abs(b).max(), tiny)


def tied_order(got, expected):
    """The rows of `got`, detections [label, score, box...], that belong to those of `expected`: the
    nearest among those with about the same score. Returns (order, how many are out of
    place, how far the scores of those are apart at most), or None."""
    if got.shape != expected.shape:
        return None
    order, free, moved, gap = [], list(range(len(got))), 0, 0.0
    for i, want in enumerate(expected):
        tied = [j for j in free if got[j][0] == want[0] and abs(got[j][1] - want[1]) <= SCORE_TIE]
        if not tied:
            return None
        order.append(min(tied, key=lambda j: (np.abs(got[j] - want).max(), j)))
        free.remove(order[-1])
        if order[-1] != i:
            moved, gap = moved + 1, max(gap, abs(float(expected[order[-1]][1] - want[1])))
    return order, moved, gap


def find_writers(block):
    """Who writes what (variable -> index of the op), and for each op of non-maximum suppression its detections and
    the variables with a row for each. `block` is one of `interp dump --format json`."""
    writer, detectors = {}, {}
    for index, op in enumerate(block["ops"]):
        writer.update({name: index for names in op["outputs"].values() for name in names})
        if "nms" in op["type"] and op["outputs"].get("Out"):
            detectors[op["outputs"]["Out"][0]] = list(op["outputs"].get("Index", []))
        for source, alike in list(detectors.items()):
            if op["type"] in ("scale", "assign") and op["inputs"]["X"][0] in [source, *alike]:
                detectors[op["outputs"]["Out"][0]] = []
    return writer, detectors


class Comparison:
    """One program: its files, what Paddle gave, and what interp gives."""

    def __init__(self, model, args, scratch):
        self.model, self.args, self.scratch = model, args, scratch
        self.name = os.path.basename(model)[:-len(".pdmodel")]
        self.params = model[:-len(".pdmodel")] + ".pdiparams"
        self.param_values = None
        self.reference = os.path.join(args.cache or scratch, self.name)

    def prepare(self):
        """Runs Paddle unless the cache has everything."""
        self.info = json.loads(call([self.args.interp, "info", self.model, "--json"]))
        if self.info["parameters"]["count"] and not os.path.exists(self.params):
            self.params = os.path.join(self.reference, "random.pdiparams")
            if not os.path.exists(self.params):
                os.makedirs(self.reference, exist_ok=True)
                call([self.args.python, REFERENCE, "params", self.model, self.params, "--seed", str(self.args.seed)])
        self.read_program()
        if os.path.exists(os.path.join(self.reference, "all.npz")):
            return
        command = [self.args.python, REFERENCE, "run", self.model, self.params, self.reference,
                   "--size", str(self.args.size), "--batch", str(self.args.batch), "--seed", str(self.args.seed)]
        call(command + [word for feed in self.args.feed for word in ("--feed", feed)])

    def dump(self, form):
        return call([self.args.interp, "dump", self.model, "--stage", "program", "--format", form])

    def read_program(self):
        self.block = json.loads(self.dump("json"))["blocks"][0]
        self.writer, self.detectors = find_writers(self.block)

    def reference_value(self, name, expected):
        """What Paddle had: a parameter, a feed or a computed variable; None when it is not known."""
        if name in expected:
            return expected[name]
        if any(feed["name"] == name for feed in self.info["inputs"]):
            return np.load(f"{self.reference}/in_{file_stem(name)}.npy")
        if self.param_values is None:
            names = [v["name"] for v in self.block["vars"] if v["persistable"] and v["kind"] == "lod_tensor"]
            self.param_values = read_params(self.params, names)
        return self.param_values.get(name)

    def error_given_inputs(self, name, expected):
        """The error of a variable when the op that writes it gets Paddle's values."""
        index = self.writer[name]
        names = {n for args in self.block["ops"][index]["inputs"].values() for n in args}
        inputs = {n: self.reference_value(n, expected) for n in names}
        if any(value is None for value in inputs.values()):
            return np.inf, np.inf
        lines = [line for line in self.dump("text").split("\nblock 1")[0].splitlines() if line.startswith("  ")]
        variables = [line.replace(" param", "").replace(" persistable", "") for line in lines if line.startswith("  var ")]
        op = [line for line in lines if not line.startswith("  var ")][index]
        files = {kind: os.path.join(self.scratch, "one_op" + kind) for kind in (".txt", ".in.npz", ".out.npz")}
        with open(files[".txt"], "w") as file:
            file.write("\n".join(["program version=0", "block 0", *variables, op]) + "\n")
        np.savez(files[".in.npz"], **inputs)
        call([self.args.interp, "run", files[".txt"], "--feed", files[".in.npz"], "--fetch", name,
              "--out", files[".out.npz"]])
        return relative_errors(np.load(files[".out.npz"])[name], expected[name])

    def set_ill_aside(self, expected):
        """Takes variables that are right given Paddle's inputs out of self.errors; how many."""
        beyond = [n for n, error in self.errors.items() if error[0] > self.args.tolerance]
        ill = [n for n in beyond[:100] if self.error_given_inputs(n, expected)[0] <= self.args.tolerance]
        for name in ill:
            del self.errors[name]
        return len(ill)

    def put_ties_in_order(self, got, expected):
        """`got` with tied detections in Paddle's order, and how many there are and were moved."""
        got, found = dict(got), []
        for out, alike in self.detectors.items():
            if out not in got or out not in expected:
                continue
            tied = tied_order(got[out], expected[out])
            order, moved, gap = tied if tied is not None else (range(len(got[out])), 0, 0)
            found.append(f"{len(got[out])}" + (f", {moved} tied {gap:.0e}" if moved else "") + ("" if tied else " WRONG"))
            for name in [out, *alike]:
                if name in got:
                    got[name] = got[name][list(order)]
        return got, found

    def interp(self, scheduler, fetches, out):
        command = [self.args.interp, "run", self.model, "--scheduler", scheduler, "--out", out, "--json",
                   "--threads", str(self.args.threads)] + SCHEDULERS[scheduler]
        if self.info["parameters"]["count"]:
            command += ["--params", self.params]
        for feed in self.info["inputs"]:
            command += ["--feed", f"{feed['name']}={self.reference}/in_{file_stem(feed['name'])}.npy"]
        return json.loads(call(command + [word for fetch in fetches for word in ("--fetch", fetch)]))

    def same_bits(self, fetches, label):
        """Runs all schedulers; the first one's results, and the names of those that differ from it."""
        first, different = None, []
        for scheduler in self.args.schedulers:
            out = os.path.join(self.scratch, f"{self.name}.{label}.{scheduler}.npz")
            self.report = self.interp(scheduler, fetches, out)
            got = np.load(out)
            if first is None:
                first = got
                continue
            equal = all(first[n].dtype == got[n].dtype and first[n].shape == got[n].shape
                        and first[n].tobytes() == got[n].tobytes() for n in first.files)
            if not equal:
                different.append(scheduler)
            os.remove(out)
        return first, different

    def lods_differ(self):
        """Names of fetches of the last run whose LoD is not Paddle's."""
        path = os.path.join(self.reference, "lod.json")
        expected = {}
        if os.path.exists(path):
            with open(path) as file:
                expected = json.load(file)
        return [f["name"] for f in self.report["fetches"] if f.get("lod", []) != expected.get(f["name"], [])]

    def run(self):
        """Returns the cells of the table's row, and whether all is well."""
        self.prepare()
        expected = np.load(os.path.join(self.reference, "all.npz"))
        got, different = self.same_bits(expected.files, "all")
        got, _ = self.put_ties_in_order(got, expected)
        self.errors = {name: relative_errors(got[name], expected[name]) for name in expected.files}
        ill = self.set_ill_aside(expected)
        problems = [f"LoD of {n}" for n in self.lods_differ()]
        finals, different_finals = self.same_bits([], "fetches")
        wanted = {f["name"]: np.load(f"{self.reference}/out_{file_stem(f['name'])}.npy") for f in self.info["outputs"]}
        finals, found = self.put_ties_in_order(finals, wanted)
        final_error = max((relative_errors(finals[n], wanted[n])[0] for n in wanted), default=0.0)
        worst = max(self.errors, key=lambda n: self.errors[n][0], default="-")
        worst_error, worst_max = (max((e[i] for e in self.errors.values()), default=0.0) for i in (0, 1))
        different = sorted(set(different + different_finals))
        ok = max(worst_error, final_error) <= self.args.tolerance and not different and not problems
        return [self.name, str(len(self.errors) + ill), f"{worst_error:.1e}", worst, f"{worst_max:.1e}", str(ill),
                f"{final_error:.1e}",
                ", ".join(found) or "-", "yes" if not different else "not " + ",".join(different),
                "ok" if ok else ("FAILED " + " ".join(problems)).strip()], ok


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--cache", help="folder with a folder per program of what Paddle gave; filled when empty")
    parser.add_argument("--only", nargs="+", default=[], help="names of programs")
    parser.add_argument("--python", default=sys.executable, help="a Python that has paddle")
    parser.add_argument("--schedulers", nargs="+", default=list(SCHEDULERS), choices=list(SCHEDULERS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--feed", action="append", default=[], help="NAME=FILE.npy instead of a random feed")
    parser.add_argument("--size", type=int, default=0, help="what unknown sides of images become (224)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=0, help="also list the N variables with the largest errors")
    args = parser.parse_args()
    names = sorted(f for f in os.listdir(args.folder) if f.endswith(".pdmodel"))
    names = [n for n in names if not args.only or n[:-len(".pdmodel")] in args.only]
    rows = [["program", "vars", "error", "variable", "max norm", "ill", "fetches", "found", "same bits", ""]]
    all_ok = bool(names)
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            comparison = Comparison(os.path.join(args.folder, name), args, scratch)
            try:
                row, ok = comparison.run()
            except (RuntimeError, OSError, KeyError) as error:
                row, ok = [comparison.name, *["-"] * 8, f"FAILED {error}"], False
            rows.append(row)
            all_ok = all_ok and ok
            print("\t".join(row), file=sys.stderr, flush=True)
            if args.worst and hasattr(comparison, "errors"):
                for variable, error in sorted(comparison.errors.items(), key=lambda e: -e[1][0])[:args.worst]:
                    print(f"    {error[0]:.2e} {error[1]:.2e}  {variable}", file=sys.stderr)
    print_table(rows)
    sys.exit(0 if all_ok else 1)


if __name__ == "__main__":
    main()
