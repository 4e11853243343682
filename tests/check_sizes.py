#!/usr/bin/env python3
"""Checks that files have at most 400 lines, and headers without templates 200, or say "Long because".

  check_sizes.py [ROOT]     lists what is longer; exit code 1 when there is any
  check_sizes.py --self-test

Functions are clang-tidy's business (readability-function-size).
"""
import os
import sys
import tempfile

FOLDERS = ("core", "passes", "kernels", "interpreter", "interp", "tools", "tests")
FILE, HEADER = 400, 200
REASON = "Long because"


def limit_of(path, text):
    """Headers of templates hold code, as other files do."""
    return HEADER if path.endswith(".h") and "template <" not in text else FILE


def check_tree(root):
    for folder in FOLDERS:
        for where, _, names in sorted(os.walk(os.path.join(root, folder))):
            for path in (os.path.join(where, name) for name in sorted(names)):
                if not path.endswith((".h", ".hpp", ".c", ".cc", ".cu")):
                    continue
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                lines, limit = text.count("\n"), limit_of(path, text)
                if lines > limit and REASON not in text:
                    yield f"{os.path.relpath(path, root)}: {lines} lines, of at most {limit}, and no '{REASON}'"


def self_test():
    files = {"a.cc": ("", 400), "a.h": ("", 201), "b.h": ("template <", 400), "c.h": ("template <", 401),
             "d.cc": (REASON, 401)}
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "core"))
        for name, (text, lines) in files.items():
            with open(os.path.join(root, "core", name), "w", encoding="utf-8") as file:
                file.write(text + "\n" * lines)
        got = list(check_tree(root))
    ending = f"and no '{REASON}'"
    expected = [f"core/a.h: 201 lines, of at most 200, {ending}", f"core/c.h: 401 lines, of at most 400, {ending}"]
    return [] if got == expected else ["self-test failed, got:"] + got + ["expected:"] + expected


def main():
    errors = self_test() if sys.argv[1:] == ["--self-test"] else list(check_tree(sys.argv[1] if len(sys.argv) > 1 else "."))
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
