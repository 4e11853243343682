#!/usr/bin/env python3
"""Checks that includes go one way: proto <- core <- passes <- interpreter <- interp <- tools, and
core <- kernels.

  check_includes.py [ROOT]     lists every include that the rule forbids; exit code 1 when there are any
  check_includes.py --self-test
"""
import os
import re
import sys
import tempfile

# What the files of a folder may include besides the folder's own, the standard library and third
# parties.
ALLOWED = {
    "proto": ("std",),
    "core": ("std", "proto"),
    "passes": ("std", "core"),
    "kernels": ("std", "core"),
    "interpreter": ("std", "proto", "core", "passes"),
    "interp": ("std", "core", "passes", "kernels", "interpreter"),
    "tools": ("std", "core", "passes", "interpreter", "interp"),
}
# The rooms of interpreter/, each of which may include those before it; what lies in no room is the
# facade, which may include all but "inspect".
ROOMS = ("plan", "analysis", "verify", "compile", "plan_file", "run", "inspect")
# The wire formats are the business of these files alone.
READS_PROTO = (
    "interpreter/plan_file/plan_wire.h",
    "core/io/param_record.cc",
    "core/program_load.cc",
    "core/program_save.cc",
    "core/program_wire.cc",
    "core/program_wire.h",
)
# Libraries that one folder keeps to itself.
LIBRARY_OF = {"oneapi": "kernels", "Eigen": "kernels", "CLI": "tools", "google": "core"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def problem(path, folder, include):
    """Why `path` may not include `include`; None when it may."""
    target = include.split("/")[0]
    if target == "proto" and folder in ("core", "interpreter") and path not in READS_PROTO:
        return f"{path}: includes {include}; the wire formats are for {', '.join(READS_PROTO)} only"
    if LIBRARY_OF.get(target, folder) != folder:
        return f"{path}: includes {include}; only {LIBRARY_OF[target]} may"
    if folder == target == "interpreter":
        return room_problem(path, include)
    ours = target in ALLOWED or target == "tests"
    if not ours or target == folder or target in ALLOWED[folder]:
        return None
    return f"{path}: includes {include}; {folder} may include only: {', '.join(ALLOWED[folder])}"


def room_of(path):
    """The position in ROOMS, that of the facade between "run" and "inspect"."""
    parts = path.split("/")
    return ROOMS.index(parts[1]) if len(parts) > 2 and parts[1] in ROOMS else ROOMS.index("run") + 0.5


def room_problem(path, include):
    if room_of(include) <= room_of(path):
        return None
    rooms = [room for i, room in enumerate(ROOMS) if i <= room_of(path)]
    return f"{path}: includes {include}; of interpreter/ it may include only: {', '.join(rooms)}"


def check_file(root, path):
    folder = path.split("/")[0]
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for line in file:
            match = INCLUDE.match(line)
            if match is not None and "/" in match.group(1):
                yield problem(path, folder, match.group(1))


def check_tree(root):
    errors = []
    for folder in ALLOWED:
        for where, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith((".h", ".hpp", ".c", ".cc", ".cu")):
                    path = os.path.relpath(os.path.join(where, name), root).replace(os.sep, "/")
                    errors.extend(error for error in check_file(root, path) if error)
    return errors


def self_test():
    cases = {
        "core/tensor.cc": ("passes/pass.h", "core may include only: std, proto"),
        "core/program_load.cc": ("proto/framework.pb.h", None),
        "core/scope.cc": ("proto/framework.pb.h", f"the wire formats are for {', '.join(READS_PROTO)} only"),
        "kernels/math/relu.cc": ("interpreter/plan/plan.h", "kernels may include only: std, core"),
        "passes/inplace.cc": ("kernels/util/copy.h", "passes may include only: std, core"),
        "passes/pass.h": ("tests/testing/fake_ops.h", "passes may include only: std, core"),
        "interpreter/compile/build_plan.cc": ("passes/pipeline.h", None),
        "interpreter/gc.cc": ("oneapi/dnnl/dnnl.hpp", "only kernels may"),
        "interpreter/executor.cc": ("interp/interp.hpp", "interpreter may include only: std, proto, core, passes"),
        "tools/main.cc": ("absl/status/status.h", None),
    }
    with tempfile.TemporaryDirectory() as root:
        for path, (include, _) in cases.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(f'#include "{include}"\n')
        got = check_tree(root)
    expected = [f"{path}: includes {include}; {why}" for path, (include, why) in cases.items() if why]
    if sorted(got) != sorted(expected):
        return ["self-test failed, got:"] + got + ["expected:"] + expected
    return []


def main():
    if sys.argv[1:] == ["--self-test"]:
        errors = self_test()
    else:
        errors = check_tree(sys.argv[1] if len(sys.argv) > 1 else ".")
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
