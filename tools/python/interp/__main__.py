"""python -m interp: the command-line tool that is shipped with the package."""
import os
import pathlib
import sys


def main() -> None:
    tool = pathlib.Path(__file__).resolve().parent / "bin" / "interp"
    try:
        os.execv(tool, [str(tool), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"error: cannot run '{tool}': {error.strerror}")


if __name__ == "__main__":
    main()
