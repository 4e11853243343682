#!/usr/bin/env python3
"""Makes a wheel of what a build folder has, with the standard library alone.

  make_wheel.py BUILD_FOLDER OUTPUT_FOLDER      prints the wheel's path
"""
import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parent
SUMMARY = "Runs and trains Paddle programs on CPUs"


def version(source):
    header = (source.parents[1] / "interp/version.h").read_text()
    return header.split('INTERP_VERSION_STRING "')[1].split('"')[0]


def tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def binaries(build, staging):
    """(path in the package, file) of what CMake installs. Of a library and its links only the name
    that programs load is kept, as wheels have no links."""
    subprocess.run(["cmake", "--install", build, "--prefix", staging, "--component", "wheel"],
                   check=True, stdout=subprocess.DEVNULL)
    files = [path for path in sorted(pathlib.Path(staging).rglob("*")) if not path.is_dir()]
    linked = {path.resolve() for path in files if path.is_symlink()}
    return [(path.relative_to(staging), path) for path in files if path not in linked]


def sources():
    package = SOURCE / "interp"
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(package), path


class Wheel:
    """Entries with their checksums; always the same bytes for the same files."""

    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self, record_name):
        self.zip.writestr(record_name, "".join(self.record) + f"{record_name},,\n")
        self.zip.close()


def make_wheel(build, output):
    release = version(SOURCE)
    info = f"interp-{release}.dist-info"
    os.makedirs(output, exist_ok=True)
    path = os.path.join(output, f"interp-{release}-{tag()}.whl")
    unfinished = path + ".part"
    wheel = Wheel(unfinished)
    with tempfile.TemporaryDirectory() as staging:
        for name, file in [*sources(), *binaries(build, staging)]:
            wheel.add(f"interp/{name.as_posix()}", file.read_bytes(), os.access(file, os.X_OK))
    wheel.add(f"{info}/METADATA",
              (f"Metadata-Version: 2.1\nName: interp\nVersion: {release}\nSummary: {SUMMARY}\n"
               "Requires-Python: >=3.9\nRequires-Dist: numpy\n").encode())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\n"
              f"Tag: {tag()}\n".encode())
    wheel.add(f"{info}/entry_points.txt", b"[console_scripts]\ninterp = interp.__main__:main\n")
    wheel.close(f"{info}/RECORD")
    os.replace(unfinished, path)
    return path


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(make_wheel(sys.argv[1], sys.argv[2]))


if __name__ == "__main__":
    main()
