#!/usr/bin/env python3
"""make_gradient_tensor_cases.py - golden cases of the gradients of kernels/tensor that the seeded sets of
make_goldens.py do not have.

    python make_gradient_tensor_cases.py --out gradient_tensor && ./pack.sh gradient_tensor

Same needs and same format as make_goldens.py; gradient_tensor.tar.xz beside this file is the result. All are made
by Paddle's own gradient makers.

  1. gradients of forward cases: remaining forms, LoD, zero size, 0-D, repeated indices
  2. cases of make_goldens.py in float64
  3. ops that 2.6.2 no longer has under their old name: run as their successor, recorded renamed
"""
import copy
import dataclasses
import json
import os
import shutil
import sys

import make_extra_cases as extra
import make_goldens as g
import numpy as np
from case_program import arguments, cases_of, register
from make_goldens import Case, LoD, Rng
from paddle.base.proto import framework_pb2

CASES = []   # (op, function Rng -> Cases)
cases = register(CASES)
LOD = [[0, 2, 5]]


def i32(*values):
    return np.array(values, "int32")


def i64(*values):
    return np.array(values, "int64")


def rows(r, *shape, dtype="float32"):
    """A tensor of five rows in two sequences."""
    return LoD(r.f((5, *shape), dtype=dtype), LOD)


# ----------------------------------------------------------------------------
# 1. gradients of forward cases
# ----------------------------------------------------------------------------
@cases("assign")
def _assign(r, op):
    yield Case("lod", {"X": rows(r, 3)}, "Out")


@cases("lod_reset")
def _lod_reset(r, op):
    yield Case("target", {"X": rows(r, 3)}, "Out", {"target_lod": [0, 1, 5]})
    yield Case("plain", {"X": r.f((4, 3))}, "Out", {"target_lod": [0, 1, 4]})


@cases("concat")
def _concat(r, op):
    yield Case("lod", {"X": [rows(r, 4), rows(r, 4)]}, "Out", {"axis": 0})
    yield Case("channels", {"X": [r.f((2, c, 3, 5)) for c in (3, 16, 1)]}, "Out", {"axis": 1})


@cases("split")
def _split(r, op):
    yield Case("lod", {"X": rows(r, 4)}, {"Out": 2}, {"axis": 1, "num": 2})


@cases("slice")
def _slice(r, op):
    def one(name, x, axes, starts, ends, decrease=()):
        return Case(name, {"Input": x}, "Out", {"axes": axes, "starts": starts, "ends": ends,
                                                "decrease_axis": list(decrease), "infer_flags": [1] * len(axes)})
    yield one("lod_columns", rows(r, 4), [1], [1], [3])
    yield one("all", r.f((5, 4)), [0], [0], [5])
    yield one("image", r.f((2, 5, 4, 6)), [1, 3], [1, 2], [4, 6])
    yield one("image_drops_height", r.f((2, 5, 4, 6)), [2], [1], [2], [2])


@cases("reshape2")
def _reshape2(r, op):
    yield Case("lod", {"X": rows(r, 4)}, "Out,XShape", {"shape": [5, 2, 2]})


@cases("transpose2")
def _transpose2(r, op):
    yield Case("rank6", {"X": r.f((2, 3, 1, 4, 2, 3))}, "Out,XShape", {"axis": [5, 2, 0, 4, 1, 3]})


@cases("stack")
def _stack(r, op):
    yield Case("scalars", {"X": [r.f(()), r.f(())]}, {"Y": 1}, {"axis": 0})


@cases("unstack")
def _unstack(r, op):
    yield Case("middle", {"X": r.f((2, 3, 4))}, {"Y": 3}, {"axis": 1, "num": 3})
    yield Case("last", {"X": r.f((2, 3, 4))}, {"Y": 4}, {"axis": -1, "num": 4})


@cases("expand_v2")
def _expand_v2(r, op):
    for k, (shape, to) in enumerate([((3, 1, 4), (2, 3, 5, 4)), ((1, 3, 1), (7, 3, 6)), ((1, 1), (9, 70)),
                                     ((4, 1), (4, 9)), ((), (3, 2)), ((5, 3), (2, 5, 3))]):
        for dtype in ("float32", "float64"):
            yield Case(f"form{k}_{dtype}", {"X": r.f(shape, dtype=dtype)}, "Out", {"shape": list(to)})


@cases("tile")
def _tile(r, op):
    for k, (shape, times) in enumerate([((3, 1, 4), (2, 3, 5)), ((2, 3), (2, 1, 4)), ((2, 3, 4), (2,)), ((), (3, 2)),
                                        ((2, 3, 2), (2, 2, 2))]):
        for dtype in ("float32", "float64"):
            yield Case(f"form{k}_{dtype}", {"X": r.f(shape, dtype=dtype)}, "Out", {"repeat_times": list(times)})


@cases("gather")
def _gather(r, op):
    yield Case("repeats", {"X": r.f((5, 3)), "Index": i64(4, 0, 4, 4, 2)}, "Out", {"axis": 0}, no_grad=("Index",))
    yield Case("vector_axis1", {"X": r.f((1, 5)), "Index": i32(4, 0, 4)}, "Out", {"axis": 1}, no_grad=("Index",))
    yield Case("wide", {"X": r.f((6, 40)), "Index": i64(*[k * 7 % 6 for k in range(50)])}, "Out", {"axis": 0},
               no_grad=("Index",))


@cases("index_select")
def _index_select(r, op):
    yield Case("repeats", {"X": r.f((2, 5, 3)), "Index": i64(4, 0, 4, 2)}, "Out", {"dim": 1}, no_grad=("Index",))


@cases("strided_slice")
def _strided_slice(r, op):
    def one(name, x, axes, starts, ends, strides, decrease=()):
        return Case(name, {"Input": x}, "Out", {"axes": axes, "starts": starts, "ends": ends, "strides": strides,
                                                "decrease_axis": list(decrease), "infer_flags": [1] * len(axes)})
    yield one("steps", r.f((7, 5)), [0, 1], [1, 0], [7, 5], [2, 3])
    yield one("back", r.f((7, 5)), [0, 1], [6, -1], [0, -6], [-2, -1])
    yield one("through_zero", r.f((5, 4)), [0], [4], [-1], [-1])
    yield one("lod", rows(r, 4), [1], [0], [4], [2])


@cases("gather_nd")
def _gather_nd(r, op):
    index = np.array([[0, 1], [2, 0], [0, 1]], "int64")
    for dtype in ("float32", "float64"):
        yield Case(f"repeats_{dtype}", {"X": r.f((3, 2, 4), dtype=dtype), "Index": index}, "Out", no_grad=("Index",))
    yield Case("whole", {"X": r.f((3, 2)), "Index": np.array([[], []], "int32").reshape(2, 0)}, "Out", no_grad=("Index",))


@cases("scatter")
def _scatter(r, op):
    for overwrite in (True, False):
        for dtype in ("float32", "float64"):
            yield Case(f"repeats_{'overwrite' if overwrite else 'add'}_{dtype}",
                       {"X": r.f((4, 3), dtype=dtype), "Ids": i64(2, 0, 2), "Updates": r.f((3, 3), dtype=dtype)}, "Out",
                       {"overwrite": overwrite}, no_grad=("Ids",))
    yield Case("updates_alone", {"X": r.f((4, 3)), "Ids": i32(2, 0), "Updates": r.f((2, 3))}, "Out", {"overwrite": True},
               no_grad=("Ids", "X"))


@cases("scatter_nd_add")
def _scatter_nd_add(r, op):
    index = np.array([[0, 1], [2, 0], [0, 1]], "int64")
    for dtype in ("float32", "float64"):
        yield Case(f"repeats_{dtype}", {"X": r.f((3, 2, 4), dtype=dtype), "Index": index, "Updates": r.f((3, 4), dtype=dtype)},
                   "Out", no_grad=("Index",))
    yield Case("x_alone", {"X": r.f((3, 2)), "Index": np.array([[1], [1]], "int32"), "Updates": r.f((2, 2))}, "Out",
               no_grad=("Index", "Updates"))


@cases("index_sample")
def _index_sample(r, op):
    for dtype in ("float32", "float64"):
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype), "Index": r.i((3, 5), 0, 3, "int32")}, "Out", no_grad=("Index",))


@cases("take_along_axis")
def _take_along_axis(r, op):
    for axis in (0, 1, 2):
        for dtype in ("float32", "float64"):
            shape = [3, 2, 4]
            length, shape[axis] = shape[axis], 5
            yield Case(f"axis{axis}_{dtype}", {"Input": r.f((3, 2, 4), dtype=dtype), "Index": r.i(shape, 0, length - 1)},
                       "Result", {"Axis": axis}, no_grad=("Index",))


@cases("where")
def _where(r, op):
    for dtype in ("float32", "float64"):
        yield Case(dtype, {"Condition": r.b((3, 4)), "X": r.f((3, 4), dtype=dtype), "Y": r.f((3, 4), dtype=dtype)}, "Out")
    yield Case("y_alone", {"Condition": r.b((3, 4)), "X": r.f((3, 4)), "Y": r.f((3, 4))}, "Out", no_grad=("X",))


@cases("masked_select")
def _masked_select(r, op):
    for dtype in ("float32", "float64"):
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype), "Mask": r.b((3, 4))}, "Y")


@cases("roll")
def _roll(r, op):
    yield Case("two", {"X": r.f((3, 4, 5))}, "Out", {"shifts": [2, -7], "axis": [0, 2]})
    yield Case("flat", {"X": r.f((3, 4), dtype="float64")}, "Out", {"shifts": [5], "axis": []})


@cases("flip", "reverse")
def _flip(r, op):
    yield Case("two", {"X": r.f((3, 4, 5))}, "Out", {"axis": [0, 2]})


@cases("tril_triu")
def _tril_triu(r, op):
    yield Case("float64", {"X": r.f((2, 3, 5), dtype="float64")}, "Out", {"diagonal": -1, "lower": False})


@cases("meshgrid")
def _meshgrid(r, op):
    for dtype in ("float32", "float64"):
        yield Case(f"three_{dtype}", {"X": [r.f((n,), dtype=dtype) for n in (3, 1, 4)]}, {"Out": 3})


@cases("set_value")
def _set_value(r, op):
    def one(name, shape, value, axes, starts, ends, steps, decrease=(), none=(), dtype="float32", no_grad=()):
        return Case(name, {"Input": r.f(shape, dtype=dtype), "ValueTensor": r.f(value, dtype=dtype)}, "Out",
                    {"axes": axes, "starts": starts, "ends": ends, "steps": steps, "decrease_axes": list(decrease),
                     "none_axes": list(none), "shape": [], "dtype": g.DTYPE_CODE[dtype]}, no_grad=no_grad)
    for dtype in ("float32", "float64"):
        yield one(f"rows_{dtype}", (5, 4), (2, 4), [0], [1], [3], [1], dtype=dtype)
        yield one(f"broadcast_{dtype}", (5, 4), (4,), [0], [1], [4], [1], dtype=dtype)
    yield one("scalar", (5, 4), (1,), [0, 1], [0, 1], [5, 3], [2, 1])
    yield one("dropped", (5, 4), (4,), [0], [1], [2], [1], decrease=[0])
    yield one("input_alone", (5, 4), (2, 4), [0], [1], [3], [1], no_grad=("ValueTensor",))


@cases("label_smooth")
def _label_smooth(r, op):
    for dtype in ("float32", "float64"):
        yield Case(dtype, {"X": r.f((3, 4), dtype=dtype)}, "Out", {"epsilon": 0.1})


@cases("im2sequence")
def _im2sequence(r, op):
    yield Case("overlaps", {"X": r.f((2, 3, 5, 4))}, "Out",
               {"kernels": [3, 2], "strides": [2, 1], "paddings": [1, 0, 1, 1], "out_stride": [1, 1]})


@cases("cvm")
def _cvm(r, op):
    for dtype in ("float32", "float64"):
        for use in (True, False):
            yield Case(f"{'with' if use else 'without'}_{dtype}",
                       {"X": r.f((4, 5), 1, 3, dtype), "CVM": r.f((4, 2), 1, 3, dtype)}, {"Y": 1}, {"use_cvm": use},
                       no_grad=("CVM",))


# ----------------------------------------------------------------------------
# 2. float64
# ----------------------------------------------------------------------------
IN_FLOAT64 = ("expand_as_v2", "gather", "index_select")


def float64_cases():
    for op in IN_FLOAT64:
        for case in g.grad_cases(1, op + "_grad"):
            ins = {slot: extra.cast_values(v, np.dtype("float32"), "float64") for slot, v in case.ins.items()}
            yield dataclasses.replace(copy.deepcopy(case), ins=ins, op=op, name=f"{case.name}_as_float64")


# ----------------------------------------------------------------------------
# 3. old names
# ----------------------------------------------------------------------------
def renamed_cases():
    """(successor's case, old name)"""
    for op in ("reshape2", "squeeze2", "unsqueeze2", "flatten2", "transpose2"):
        for case in list(g.grad_cases(1, op + "_grad"))[:3]:
            if not any("Tensor" in slot for slot in case.ins):
                yield dataclasses.replace(case, op=op), op[:-1]
    for dtype in ("float32", "float64"):
        yield Case(f"twice_{dtype}", {"X": Rng(0, "expand").f((2, 3), dtype=dtype)}, "Out", {"repeat_times": [2, 2]},
                   op="tile"), "expand"


def rename(folder, new, dtype):
    """Makes the case in `folder` one of the gradient of `new`, which takes X where its successor takes XShape."""
    path = f"{folder}/program.pb"
    desc = framework_pb2.ProgramDesc()
    with open(path, "rb") as f:
        desc.ParseFromString(f.read())
    for op in desc.blocks[0].ops:
        if op.type.endswith("_grad"):
            op.type = new + "_grad"
            for slot in op.inputs:
                slot.parameter = {"XShape": "X", "RepeatTimes": "ExpandTimes",
                                  "repeat_times_tensor": "expand_times_tensor"}.get(slot.parameter, slot.parameter)
    for op in desc.blocks[0].ops:       # feed X itself under the name that XShape has
        for slot in list(op.inputs) + list(op.outputs):
            slot.arguments[:] = ["X" if a == "XShape" else a for a in slot.arguments]
    for var in desc.blocks[0].vars:
        if var.name == "XShape":
            var.name = "X"
            del var.type.lod_tensor.tensor.dims[0]
            var.type.lod_tensor.tensor.data_type = g.DTYPE_CODE[dtype]
    with open(path, "wb") as f:
        f.write(desc.SerializeToString())


def make_renamed(out_dir, case, new):
    folder = f"{out_dir}/{new}_grad/{case.name}"
    g.make_grad_case(f"{out_dir}/tmp", 0, Rng(0, f"renamed/{new}/{case.name}"), case, case.op + "_grad")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    os.rename(f"{out_dir}/tmp/{case.op}_grad/{case.name}", folder)
    rename(folder, new, case.ins["X"].dtype.name)
    with open(f"{folder}/case.json") as f:
        doc = json.load(f)
    doc.update(op=new + "_grad", ops=[new + "_grad"], notes=f"computed as {case.op}_grad, which took its place")
    if "XShape" in doc["feeds"]:
        os.remove(f"{folder}/in_XShape.npy")
        np.save(f"{folder}/in_X.npy", case.ins["X"])
        del doc["feeds"]["XShape"]
        doc["feeds"]["X"] = "in_X.npy"
    doc["slots"]["inputs"] = {("X" if s == "XShape" else s): (["X"] if s == "XShape" else a)
                              for s, a in doc["slots"]["inputs"].items()}
    g.write_json(f"{folder}/case.json", doc)


def attempt(name, make):
    try:
        make()
        return True
    except Exception as e:
        print(f"SKIP {name}: {g.short_error(e)}")
        return False


def main():
    out, wanted = arguments(__doc__)
    todo = []
    for case in [*cases_of(CASES, "gradient_tensor", wanted), *float64_cases()]:
        if not wanted or case.op in wanted:
            todo.append((f"{case.op}/{case.name}", lambda case=case: g.make_grad_case(
                out, 0, Rng(0, f"gradient_tensor/{case.op}/{case.name}"), case, case.op + "_grad")))
    for case, new in renamed_cases():
        if not wanted or new in wanted:
            todo.append((f"{new}/{case.name}", lambda case=case, new=new: make_renamed(out, case, new)))
    made = sum(attempt(*t) for t in todo)
    shutil.rmtree(f"{out}/tmp", ignore_errors=True)
    print(f"{made} cases in {out}, {len(todo) - made} failed")


if __name__ == "__main__":
    sys.exit(main())
