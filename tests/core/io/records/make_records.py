#!/usr/bin/env python3
"""Writes the RecordIO files of this folder; needs mxnet 1.9.1 with OpenCV.

  make_records.py FOLDER
"""
import os
import struct
import subprocess
import sys
import tempfile

import cv2
import mxnet
import numpy as np
from mxnet import recordio

MAGIC = struct.pack("<I", 0xCED7230A)
# Those of tests/core/io/recordio_test.cc.
PAYLOADS = [
    b"", b"a", b"abc", b"abcd", b"abcde", MAGIC, MAGIC * 2, b"1234" + MAGIC, MAGIC + b"12",
    b"1" + MAGIC + b"234", b"12" + MAGIC + b"34", b"123" + MAGIC + b"4",
    b"1234" + MAGIC + b"5678" + MAGIC + b"90", b"12345" + MAGIC * 3,
]


def write_magic(folder):
    writer = recordio.MXIndexedRecordIO(f"{folder}/magic.idx", f"{folder}/magic.rec", "w")
    for i, payload in enumerate(PAYLOADS):
        writer.write_idx(10 + 3 * i, payload)
    writer.close()


def write_labels(folder):
    writer = recordio.MXRecordIO(f"{folder}/labels.rec", "w")
    writer.write(recordio.pack(recordio.IRHeader(0, [1.5, -2, 3], 7, 8), b"xyz"))
    writer.write(recordio.pack(recordio.IRHeader(0, 4, 2**40, 0), b""))
    writer.write(recordio.pack(recordio.IRHeader(0, np.array([9], "f"), 1, 0), b"q"))
    writer.close()


def write_pets(folder):
    """Ten pictures of 16 x 12 pixels in three folders, through im2rec."""
    im2rec = os.path.join(os.path.dirname(mxnet.__file__), "tools", "im2rec.py")
    with tempfile.TemporaryDirectory() as root:
        k = 0
        for category, count in (("ant", 4), ("bee", 3), ("cow", 3)):
            os.makedirs(f"{root}/{category}")
            for i in range(count):
                y, x = np.mgrid[0:12, 0:16]
                channels = [(x * 12 + k * 9) % 256, (y * 17 + k * 5) % 256, np.full_like(x, 25 * k)]
                cv2.imwrite(f"{root}/{category}/{i}.png", np.stack(channels, -1).astype(np.uint8))
                k += 1
        subprocess.check_call([sys.executable, im2rec, "--list", "--recursive", f"{root}/pets", root])
        with open(f"{root}/pets.lst", encoding="utf-8") as file:
            lines = sorted(file, key=lambda line: int(line.split("\t")[0]))
        with open(f"{root}/pets.lst", "w", encoding="utf-8") as file:
            file.writelines(lines)
        subprocess.check_call([sys.executable, im2rec, "--encoding", ".jpg", f"{root}/pets", root])
        for ending in ("rec", "idx", "lst"):
            with open(f"{root}/pets.{ending}", "rb") as source:
                with open(f"{folder}/pets.{ending}", "wb") as target:
                    target.write(source.read())


if __name__ == "__main__":
    write_magic(sys.argv[1])
    write_labels(sys.argv[1])
    write_pets(sys.argv[1])
