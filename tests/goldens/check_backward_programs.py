#!/usr/bin/env python3
"""check_backward_programs.py - the programs of `interp backward` in real Paddle.

    python make_training_cases.py --out DIR --count 100 --seed 7
    python check_backward_programs.py DIR [--interp build/release/interp]

Needs what make_goldens.py needs. For each case `interp backward` makes a training program of forward.pb; Paddle
runs it for five steps from the case's parameters, and losses and parameters are compared with those of the program
that Paddle's own minimize made.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import make_goldens as g
import numpy as np
from paddle import static


def make_main(interp, folder, doc, out):
    command = [interp, "backward", f"{folder}/forward.pb", "--loss", doc["loss"]]
    command += ["--optimizer", doc["optimizer"], "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    with open(out, "rb") as file:
        return static.Program.parse_from_string(file.read())


def check(interp, folder):
    with open(f"{folder}/case.json") as file:
        doc = json.load(file)
    load = lambda name: np.load(f"{folder}/{name}")  # noqa: E731
    with tempfile.TemporaryDirectory() as scratch:
        main = make_main(interp, folder, doc, f"{scratch}/main.pdmodel")
    state = {name: load(files["init"]) for name, files in doc["params"].items()}
    errors = []
    for k, step in enumerate(doc["steps"]):
        feeds = {name: load(file) for name, file in step["feeds"].items()}
        results = g.run_step(main, state, feeds, doc["fetch_order"])
        for name, result in zip(doc["fetch_order"], results):
            if not np.allclose(result, load(step["fetches"][name]), doc["rtol"], doc["atol"]):
                errors.append(f"step {k}: '{name}'")
    for name, files in doc["params"].items():
        if not np.allclose(state[name], load(files["final"]), doc["rtol"], doc["atol"]):
            errors.append(f"'{name}'")
    return errors


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("cases")
    ap.add_argument("--interp", default=os.path.join(here, "../../build/release/interp"))
    a = ap.parse_args()
    failed = 0
    names = sorted(os.listdir(f"{a.cases}/programs"))
    for name in names:
        try:
            errors = check(a.interp, f"{a.cases}/programs/{name}")
        except Exception as e:  # of Paddle or of interp
            errors = [str(e).strip().splitlines()[-1]]
        failed += bool(errors)
        if errors:
            print(f"{name}: {'; '.join(errors[:3])}")
    print(f"{len(names) - failed} of {len(names)} agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
