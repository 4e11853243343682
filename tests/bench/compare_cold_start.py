#!/usr/bin/env python3
"""Cold starts of processes, taking turns: what each reports of load, preparation and first run, the
processor time of the whole process, its peak of memory and its page faults.

    compare_cold_start.py --rounds 21 --run 'interp run m.pdmodel --feed x=random:1x3x224x224 --threads 1'
                                      --run 'interp run m.plan --feed x=random:1x3x224x224 --threads 1'

Each --run is a command that prints `load A ms, prepare B ms, first run C ms`, as `interp run` does,
or `start A ms`, as a script of a peer may. Python's standard library suffices.
"""
import argparse
import os
import re
import shlex
import statistics
import subprocess

UNITS = {"us": 1e-3, "ms": 1, "s": 1e3}


def milliseconds(text):
    """The sum of what the process reports; None when it reports nothing."""
    found = re.findall(r"(?:load|prepare|first run|start) ([\d.]+) (us|ms|s)\b", text)
    return sum(float(value) * UNITS[unit] for value, unit in found) if found else None


def start(command):
    """One process: what it reports, its processor time (ms), peak (MiB) and page faults."""
    process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command}: exit code {process.returncode}")
    cpu = (usage.ru_utime + usage.ru_stime) * 1e3
    return milliseconds(text), cpu, usage.ru_maxrss / 1024, usage.ru_minflt


def main():
    """Runs the commands in turns and prints medians and least values."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="append", required=True, metavar="COMMAND")
    parser.add_argument("--rounds", type=int, default=21)
    arguments = parser.parse_args()
    results = [[] for _ in arguments.run]
    for _ in range(arguments.rounds):
        for command, result in zip(arguments.run, results):
            result.append(start(command))
    names = ("load + first run ms", "process cpu ms", "peak MiB", "page faults")
    for command, result in zip(arguments.run, results):
        print(command)
        for name, column in zip(names, zip(*result)):
            values = [value for value in column if value is not None]
            if values:
                print(f"  {name:20} median {statistics.median(values):9.2f}"
                      f"  least {min(values):9.2f}")


if __name__ == "__main__":
    main()
