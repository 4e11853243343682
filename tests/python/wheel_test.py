#!/usr/bin/env python3
"""Makes the wheel, unpacks it into an empty folder and runs test_*.py against it.

  wheel_test.py BUILD_FOLDER      exit code 77 where there is no NumPy
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def unpack(wheel, folder):
    """As pip does, permissions included."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            path = archive.extract(info, folder)
            os.chmod(path, info.external_attr >> 16 or 0o644)


def main():
    try:
        import numpy
    except ImportError:
        print("skipped: no numpy")
        sys.exit(77)
    del numpy
    with tempfile.TemporaryDirectory() as folder:
        make = SOURCE / "tools/python/make_wheel.py"
        wheel = subprocess.run([sys.executable, make, sys.argv[1], os.path.join(folder, "wheel")],
                               check=True, capture_output=True, text=True).stdout.strip()
        site = os.path.join(folder, "site")
        unpack(wheel, site)
        tests = ["-m", "unittest", "discover", "-s", str(SOURCE / "tests/python"), "-v"]
        environment = dict(os.environ, PYTHONPATH=site, INTERP_SOURCE=str(SOURCE),
                           PYTHONDONTWRITEBYTECODE="1")
        sys.exit(subprocess.run([sys.executable, *tests], env=environment, cwd=folder).returncode)


if __name__ == "__main__":
    main()
