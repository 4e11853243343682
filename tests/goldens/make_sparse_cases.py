#!/usr/bin/env python3
"""make_sparse_cases.py - golden cases of sparse tensors: what paddle.sparse does in a static program.

    python make_sparse_cases.py --out sparse && ./pack.sh sparse

Same needs and same format as make_goldens.py; sparse.tar.xz beside this file is the result. Sparse tensors can be
neither fed nor fetched: a case makes them of indices and values, and fetches these or the dense tensor. It is filed
under the op that it is about.
"""
import sys

import make_goldens as g
import numpy as np
import paddle
import paddle.sparse.nn.functional as SF
from case_program import arguments, cases_of, make_all, register
from make_api_cases import declare, write_call
from make_goldens import Case
from paddle import sparse

static = paddle.static
CASES = []          # (op, function Rng -> Cases)
cases = register(CASES)
DTYPES = ("float32", "float64")


class Sparse(Case):
    """What `call` makes of the sparse tensors, by name, as pairs of indices and values, and of the dense ones."""

    def __init__(self, name, call, shape, tensors, **dense):
        ins = {f"{n}_{part}": value for n, pair in tensors.items() for part, value in zip(("indices", "values"), pair)}
        super().__init__(name, {**ins, **dense}, "", {"call": call, "shape": shape, "tensors": list(tensors)})


def points(r, shape, count, dtype="float32", channels=True, indices="int32", order="sorted"):
    """Indices and values of `count` points; with channels the last dimension is dense."""
    places = shape[:-1] if channels else shape
    at = np.array(r.perm(int(np.prod(places)))[:count])
    at = np.sort(at) if order == "sorted" else at
    return np.array(np.unravel_index(at, places)).astype(indices), r.f((count, *shape[len(places):]), dtype=dtype)


def parts(x):
    return x.indices(), x.values()


@cases("sparse_sparse_coo_tensor", "sparse_to_dense")
def _tensor(r, op):
    call = parts if op == "sparse_sparse_coo_tensor" else lambda x: x.to_dense()
    for dtype in (*DTYPES, "int32", "int64"):
        for indices in ("int32", "int64"):
            yield Sparse(f"{dtype}_{indices}", call, [2, 3, 4, 2],
                         {"x": points(r, (2, 3, 4, 2), 5, dtype, indices=indices, order="free")})
    yield Sparse("matrix", call, [4, 5], {"x": points(r, (4, 5), 6, channels=False)})
    yield Sparse("repeated", call, [4], {"x": (np.array([[3, 0, 3]]), r.f((3,)))})
    yield Sparse("rows", call, [4, 3, 2], {"x": (np.array([[2, 0]]), r.f((2, 3, 2)))})


@cases("sparse_relu")
def _relu(r, op):
    for dtype in DTYPES:
        yield Sparse(dtype, lambda x: parts(SF.relu(x)), [2, 3, 4, 2], {"x": points(r, (2, 3, 4, 2), 5, dtype, order="free")})


@cases("sparse_batch_norm")
def _batch_norm(r, op):
    def call(is_test, dtype):
        def normalised(x, w, b, m, v):
            block = static.default_main_program().global_block()
            out = {"out": block.create_var(type=paddle.base.core.VarDesc.VarType.SPARSE_COO, dtype=dtype)}
            for name in ("mean_out", "variance_out", "saved_mean", "saved_variance", "reserve_space"):
                out[name] = block.create_var(dtype="uint8" if name == "reserve_space" else dtype)
            block.append_op(type=op, inputs={"x": x, "scale": w, "bias": b, "mean": m, "variance": v}, outputs=out,
                            attrs={"momentum": 0.8, "epsilon": 1e-4, "data_layout": "NHWC", "is_test": is_test,
                                   "use_global_stats": False, "trainable_statistics": False})
            # mean_out and variance_out hold whatever they like where they are not mean and variance.
            return (out["out"].values(),) if is_test else (out["out"].values(), out["saved_mean"])
        return normalised
    for dtype in DTYPES:
        for is_test in (False, True):
            yield Sparse(f"{'test' if is_test else 'train'}_{dtype}", call(is_test, dtype), [2, 2, 3, 4, 3],
                         {"x": points(r, (2, 2, 3, 4, 3), 9, dtype)},
                         **{n: r.f((3,), 0.5, 2, dtype) for n in ("w", "b", "m", "v")})


@cases("sparse_add")
def _add(r, op):
    shape = (2, 3, 4, 2)
    for dtype in DTYPES:
        yield Sparse(f"bias_{dtype}", lambda x, b: parts(sparse.add(x, b)), list(shape), {"x": points(r, shape, 5, dtype)},
                     b=r.f((2,), dtype=dtype))
    for dtype in (*DTYPES, "int32", "int64"):
        for indices in ("int32", "int64"):
            yield Sparse(f"tensors_{dtype}_{indices}", lambda x, y: parts(sparse.add(x, y)), list(shape),
                         {n: points(r, shape, 9, dtype, indices=indices) for n in "xy"})
    yield Sparse("same_points_unsorted", lambda x: parts(sparse.add(x, SF.relu(x))), list(shape),
                 {"x": points(r, shape, 6, order="free")})
    yield Sparse("none_in_common", lambda x, y: parts(sparse.add(x, y)), [6],
                 {"x": (np.array([[0, 4]]), r.f((2,))), "y": (np.array([[1, 5]]), r.f((2,)))})


@cases("sparse_conv3d")
def _conv(r, op):
    def case(name, shape, count, kernel, dtype="float32", subm=False, indices="int32", order="free", **options):
        conv = {(4, False): SF.conv2d, (4, True): SF.subm_conv2d, (5, False): SF.conv3d, (5, True): SF.subm_conv3d}
        run = conv[len(shape), subm]
        return Sparse(f"{name}_{dtype}", lambda x, w: parts(run(x, w, **options)), list(shape),
                      {"x": points(r, shape, count, dtype, indices=indices, order=order)}, w=r.f(kernel, dtype=dtype))
    space, plane = (2, 4, 5, 6, 3), (2, 5, 6, 3)
    for dtype in DTYPES:
        yield case("plain", space, 12, (2, 3, 2, 3, 4), dtype)
        yield case("strided", space, 20, (3, 3, 3, 3, 2), dtype, stride=2, padding=1)
        yield case("uneven", space, 20, (3, 2, 1, 3, 2), dtype, stride=[1, 2, 3], padding=[2, 0, 1], dilation=[1, 2, 1])
        yield case("subm", space, 20, (3, 3, 3, 3, 4), dtype, subm=True, padding=1)
        yield case("plane", plane, 9, (3, 2, 3, 2), dtype, stride=[2, 1], padding=1)
        yield case("subm_plane", plane, 15, (3, 3, 3, 2), dtype, subm=True)
    yield case("wide_indices", space, 12, (3, 3, 3, 3, 2), indices="int64", padding=1)
    yield case("point", space, 1, (1, 1, 1, 3, 2))
    yield case("every_place", (1, 2, 3, 3, 2), 18, (3, 3, 3, 2, 3), order="sorted", padding=1)

    def net(x, w, u, b):
        y = SF.relu(SF.subm_conv3d(x, w, padding=1))
        y = sparse.add(y, SF.relu(SF.subm_conv3d(y, w, padding=1)))
        return (SF.conv3d(y, u, b, stride=2, padding=1).to_dense(),)
    yield Sparse("net", net, list(space), {"x": points(r, space, 20)}, w=r.f((3, 3, 3, 3, 3)), u=r.f((3, 3, 3, 3, 2)),
                 b=r.f((2,)))


def make(out, case):
    b, attrs = g.Builder(), case.attrs
    with static.program_guard(b.prog, static.Program()), paddle.utils.unique_name.guard():
        dense = {name: declare(b, name, value) for name, value in case.ins.items()}
        tensors = {n: sparse.sparse_coo_tensor(dense.pop(f"{n}_indices"), dense.pop(f"{n}_values"), attrs["shape"])
                   for n in attrs["tensors"]}
        results = attrs["call"](**tensors, **dense)
        b.fetch = [v.name for v in (results if isinstance(results, tuple) else (results,))]
    write_call(out, case, b)


def main():
    out, wanted = arguments(__doc__)
    make_all(out, cases_of(CASES, "sparse", wanted), make)


if __name__ == "__main__":
    sys.exit(main())
