#!/usr/bin/env python3
"""Writes the pickles that tests/core/io/pickle_params_test.cc reads, with Paddle 2.6.2 and NumPy.

Every array holds 0, 1, 2, ... in the order of its elements."""
import collections
import os
import pickle

import numpy as np
import paddle
from paddle import static

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def iota(shape, dtype="float32"):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def fill(scope, program):
    for var in program.list_vars():
        if var.persistable:
            tensor = scope.find_var(var.name).get_tensor()
            tensor.set(iota(tensor.shape(), np.array(tensor).dtype), paddle.CPUPlace())


def static_program():
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [-1, 4])
        paddle.optimizer.Adam(0.01).minimize(paddle.mean(static.nn.fc(x, 3)))
    static.Executor(paddle.CPUPlace()).run(startup)
    fill(static.global_scope(), main)
    for protocol in 2, 3, 4:
        static.save(main, f"static{protocol}", protocol=protocol)
        os.remove(f"static{protocol}.pdmodel")


def layers():
    paddle.disable_static()
    linear = paddle.nn.Linear(4, 3)
    schedule = paddle.optimizer.lr.StepDecay(0.1, 2)
    adam = paddle.optimizer.Adam(schedule, parameters=linear.parameters())
    linear(paddle.ones([2, 4])).mean().backward()
    adam.step()
    for tensor in list(linear.parameters()) + [v for v in adam.state_dict().values() if hasattr(v, "shape")]:
        tensor.set_value(iota(tensor.shape))
    for protocol in 2, 4:
        paddle.save(linear.state_dict(), f"layers{protocol}.pdparams", protocol=protocol)
        paddle.save(adam.state_dict(), f"layers{protocol}.pdopt", protocol=protocol)
    paddle.save(linear.weight, "tensor.pdtensor")


def numpy_arrays():
    arrays = collections.OrderedDict()
    for dtype in "bool int8 uint8 int16 int32 int64 float16 float32 float64 complex64 uint16".split():
        arrays[dtype] = iota([2, 3], dtype)
    arrays["big_endian"] = iota([2, 3]).astype(">f4")
    arrays["fortran"] = np.asfortranarray(iota([2, 3, 4]))
    arrays["number"] = iota([], "float32")
    arrays["scalar"] = np.float64(0)
    arrays["empty"] = iota([0, 3])
    for protocol in 2, 3, 4, 5:
        with open(f"numpy{protocol}.pickle", "wb") as file:
            pickle.dump(arrays if protocol % 2 else dict(arrays), file, protocol)
    # NumPy 2 has the same functions in other modules.
    with open("numpy_2.pickle", "wb") as file:
        file.write(open("numpy2.pickle", "rb").read().replace(b"numpy.core", b"numpy._core"))


def split():
    flat = iota([12])
    names = [f"w@@.{i}" for i in range(3)]
    entries = {n: flat[5 * i:5 * (i + 1)] for i, n in enumerate(names)}
    entries["b"] = iota([3])
    entries["UnpackBigParamInfor@@"] = {"w": {"OriginShape": (4, 3), "slices": names}}
    with open("split.pdparams", "wb") as file:
        pickle.dump(entries, file, 2)


np.random.seed(0)
static_program()
layers()
numpy_arrays()
split()
