#!/usr/bin/env python3
"""Checks the documents: no line of prose has more than 120 columns, and links lead somewhere.

  check_docs.py [ROOT]     lists what is wrong; exit code 1 when there is any
  check_docs.py --self-test
"""
import glob
import os
import re
import sys
import tempfile

COLUMNS = 120
DOCUMENTS = ("*.md", "docs/**/*.md", "tests/**/*.md")


def lines_of(path):
    """Lines with their number that are neither in a fence nor indented as code."""
    fenced = False
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and not line.startswith("    "):
                yield number, line


def anchors_of(path):
    for _, line in lines_of(path):
        if line.startswith("#"):
            yield re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")


def problems(root, path):
    for number, line in lines_of(os.path.join(root, path)):
        # Tables, pictures and what has no space cannot be broken.
        if len(line) > COLUMNS and not line.startswith(("|", "![")) and " " in line.strip()[:COLUMNS]:
            yield f"{path}:{number}: {len(line)} columns, of at most {COLUMNS}"
        for link in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"\w+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(root, os.path.dirname(path), file)) if file else os.path.join(root, path)
            if not os.path.exists(target):
                yield f"{path}:{number}: there is no {link}"
            elif anchor and target.endswith(".md") and anchor not in anchors_of(target):
                yield f"{path}:{number}: there is no heading {link}"


def check_tree(root):
    found = {os.path.relpath(path, root) for name in DOCUMENTS for path in glob.glob(os.path.join(root, name), recursive=True)}
    return [problem for path in sorted(found) for problem in problems(root, path)]


def self_test():
    text = f"# A `b`-c d\n[x](#a-b-c-d) [y](#e) [z](f.md)\n{'g ' * 61}\n| {'h ' * 61}\n    {'i ' * 61}\n"
    expected = ["a.md:2: there is no heading #e", "a.md:2: there is no f.md", "a.md:3: 122 columns, of at most 120"]
    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, "a.md"), "w", encoding="utf-8") as file:
            file.write(text)
        got = check_tree(root)
    return [] if got == expected else ["self-test failed, got:"] + got + ["expected:"] + expected


def main():
    errors = self_test() if sys.argv[1:] == ["--self-test"] else check_tree(sys.argv[1] if len(sys.argv) > 1 else ".")
    for error in errors:
        print(error)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
