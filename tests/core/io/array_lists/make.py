"""Makes the files of this folder with MXNet 1.9.1. V0 and V1, which it only reads, are made by hand,
and MXNet's reading of them is checked here.
"""
import os
import struct

import mxnet as mx
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def at(name):
    return os.path.join(HERE, name)


def words(fmt, *values):
    return struct.pack("<" + fmt, *values)


def main():
    w = mx.nd.array(np.arange(6).reshape(2, 3) / 4, dtype="float32")
    mx.nd.save(at("dict.params"), {"arg:w": w, "aux:n": mx.nd.array([7, -8], dtype="int64")})
    mx.nd.save(at("list.params"), [mx.nd.array([1, 2], dtype=t) for t in
                                   ("float16", "float64", "uint8", "int32", "int8", "int64")])
    mx.nd.save(at("empty.params"), {})
    rows = mx.nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 3]), shape=(5, 2))
    mx.nd.save(at("rows.params"), {"g": rows})
    csr = mx.nd.sparse.csr_matrix(([1.0], [1], [0, 1, 1]), shape=(2, 3))
    mx.nd.save(at("csr.params"), {"c": csr})
    with mx.util.np_shape(True), mx.util.np_array(True):
        mx.npx.save(at("scalars.params"), {"s": mx.np.array(5.0), "z": mx.np.zeros((0, 3)),
                                           "b": mx.np.array([True, False], dtype=bool)})
    data = np.float32([1, 2, 3]).tobytes()
    v0 = words("III", 2, 1, 3) + words("iii", 1, 0, 0) + data
    v1 = words("Iiqq", 0xF993FAC8, 2, 3, 1) + words("iii", 1, 0, 0) + data
    with open(at("old.params"), "wb") as file:
        file.write(words("QQQ", 0x112, 0, 2) + v0 + v1 + words("Q", 0))
    old = mx.nd.load(at("old.params"))
    assert [a.shape for a in old] == [(1, 3), (3, 1)], old


if __name__ == "__main__":
    main()
