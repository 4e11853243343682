#!/usr/bin/env python3
"""Who is nearer to float64: Paddle, Paddle with oneDNN, or interp.

  pip install paddlepaddle==2.6.2 "numpy<2"

  run_in_float64.py MODEL [PARAMS] [--feed NAME=FILE.npy | NAME=1x3x224x224 ...] [--fetch VAR ...]

MODEL is a program with feed and fetch ops. PARAMS is a combined file or a folder with one file for each variable;
without it MODEL's name with .pdiparams, and if there is none, random parameters. Feeds that are not given are random
(tools/paddle_reference.py).

In float64 all that is float32 in the program is float64: variables, parameters, feeds, and attributes that name a
dtype. Values stay those of float32: no constant gets more digits. What Paddle computes then on the CPU, op by op, is
the reference. Ops that have no float64 kernel get casts around them and are listed.

Printed per fetch: its largest magnitude, and the error max|a-b| / max|b| (b: the reference), or of integers how many
differ, of
  paddle     Paddle's inference predictor without oneDNN
  oneDNN     with oneDNN
  interp     interp
  interp 64  with --check: interp in float64, which tells how far the reference can be trusted; may take long
All run with one thread. --fetch names any variables, as --fetch x --fetch y finds the op where errors begin; it undoes
fusions, in Paddle as in interp, as every fetched variable has to exist.
"""
import argparse
import json
import os
import re
import tempfile

import paddle_reference as reference  # sets the number of threads, so before paddle
import numpy as np
import paddle
from compare_with_paddle import call, file_stem, find_writers, print_table, relative_errors, tied_order
from paddle.base.proto import framework_pb2
from paddle.static.io import append_fetch_ops, prepend_feed_ops

FLOAT32, FLOAT64 = framework_pb2.VarType.FP32, framework_pb2.VarType.FP64
DTYPE_ATTRS = ("dtype", "in_dtype", "out_dtype")


class Rewriter:
    """Makes a float64 program of a float32 one, in place."""

    def __init__(self):
        self.kernels = paddle.base.core._get_all_register_op_kernels("all")
        self.in_float32 = set()  # types of ops that have no float64 kernel

    def rewrite(self, program):
        floats = {var.name: var for block in program.blocks for var in block.vars if widen_var(var)}
        for block in program.blocks:
            ops = [new for op in block.ops for new in self.rewrite_op(op, block, floats)]
            del block.ops[:]
            block.ops.extend(ops)

    def rewrite_op(self, op, block, floats):
        """The ops that take the place of one."""
        if not self.has_float64(op.type):
            self.in_float32.add(op.type)
            return between_casts(op, block, floats)
        if op.type == "assign_value":  # its attribute holds float32s
            return between_casts(op, block, floats)
        attrs = {attr.name: attr for attr in op.attrs}
        for attr in attrs.values():
            if attr.name in DTYPE_ATTRS and attr.i == FLOAT32:
                attr.i = FLOAT64
        text = attrs.get("str_value")
        if text is not None and text.s and attrs["dtype"].i == FLOAT64:
            text.s = repr(float(np.float32(text.s)))  # it may have more digits than the float32 that it means
        return [op]

    def has_float64(self, op_type):
        """Also true of ops that have no kernels at all, as those of control flow."""
        kernels = [k for k in self.kernels.get(op_type, []) if "Place(cpu)" in k and "PLAIN" in k]
        return not any("[float]" in k for k in kernels) or any("[double]" in k for k in kernels)


def widen_var(var):
    """Whether it was a float32."""
    for kind in ("lod_tensor", "tensor_array", "selected_rows"):
        if var.type.HasField(kind):
            held = getattr(var.type, kind)
            tensor = held if kind == "selected_rows" else held.tensor
            if tensor.data_type == FLOAT32:
                tensor.data_type = FLOAT64
                return True
    return False


def between_casts(op, block, floats):
    """The op on float32 copies of what it reads, and casts of what it writes."""
    casts = {"in": [], "out": []}
    for end, slots in (("in", op.inputs), ("out", op.outputs)):
        for slot in slots:
            for i, name in enumerate(slot.arguments):
                if name in floats:
                    slot.arguments[i] = f"{name}.{end}_float32"
                    declare_float32(slot.arguments[i], floats[name], block)
                    casts[end].append(make_cast(name, slot.arguments[i], end == "in"))
    return [*casts["in"], op, *casts["out"]]


def declare_float32(name, like, block):
    if all(var.name != name for var in block.vars):
        var = block.vars.add(name=name)
        var.type.CopyFrom(like.type)
        var.type.lod_tensor.tensor.data_type = FLOAT32


def make_cast(wide, narrow, to_narrow):
    names, dtypes = (wide, narrow), (FLOAT64, FLOAT32)
    (source, target), (from_dtype, to_dtype) = (names, dtypes) if to_narrow else (names[::-1], dtypes[::-1])
    op = framework_pb2.OpDesc(type="cast")
    op.inputs.add(parameter="X", arguments=[source])
    op.outputs.add(parameter="Out", arguments=[target])
    for name, dtype in (("in_dtype", from_dtype), ("out_dtype", to_dtype)):
        op.attrs.add(name=name, type=framework_pb2.INT, i=dtype)
    return op


def in_float64(program):
    """The program in float64, and the types of its ops that stay in float32."""
    message = framework_pb2.ProgramDesc()
    message.ParseFromString(program.desc.serialize_to_string())
    rewriter = Rewriter()
    rewriter.rewrite(message)
    return paddle.static.Program.parse_from_string(message.SerializeToString()), rewriter.in_float32


class Subject:
    """A program without feed and fetch ops, the names of its feeds and fetches, parameters and what is fed."""

    def __init__(self, args):
        self.program = reference.load_program(args.model)
        block = self.program.global_block()
        self.feeds = [op.output("Out")[0] for op in block.ops if op.type == "feed"]
        self.fetches = args.fetch or [op.input("X")[0] for op in block.ops if op.type.startswith("fetch")]
        for i in reversed([i for i, op in enumerate(block.ops) if op.type == "feed" or op.type.startswith("fetch")]):
            block._remove_op(i)
        self.params = self.read_parameters(args)
        self.values = self.make_feeds(args)
        self.lods = {name: parse_lod(levels) for name, levels in args.feed_lod}

    def read_parameters(self, args):
        """Arrays by name."""
        path = args.params or os.path.splitext(args.model)[0] + ".pdiparams"
        if not args.params and not os.path.exists(path):
            return reference.random_parameters(self.program, args.seed)
        scope = paddle.static.Scope()
        reference.load_parameters(self.program, path, scope)
        return {name: np.array(scope.find_var(name).get_tensor()) for name in reference.parameters(self.program)}

    def make_feeds(self, args):
        given = dict(args.feed)
        rng = np.random.default_rng(args.seed + 1)
        values = {}
        for name in self.feeds:
            spec, var = given.pop(name, ""), self.program.global_block().var(name)
            if spec and not spec.endswith(".npy"):
                var.desc.set_shape([int(size) for size in spec.split("x")])
            values[name] = np.load(spec) if spec.endswith(".npy") else reference.random_feed(name, var, args, rng)
        if given:
            raise SystemExit(f"nothing is fed to '{next(iter(given))}'; the feeds are {', '.join(self.feeds)}")
        return values


def parse_lod(levels):
    """0,2,5 as of interp run; levels separated by '/'."""
    return [[int(offset) for offset in level.split(",")] for level in levels.split("/")]


def run_plainly(program, subject, params, values):
    """By Paddle's executor, op by op."""
    scope, place = paddle.static.Scope(), paddle.CPUPlace()
    for name, value in params.items():
        scope.var(name).get_tensor().set(value, place)
    feeds = {}
    for name, value in values.items():
        feeds[name] = paddle.base.LoDTensor()
        feeds[name].set(value, place)
        feeds[name].set_lod(subject.lods.get(name, []))
    got = paddle.static.Executor(place).run(program, feed=feeds, fetch_list=subject.fetches, scope=scope,
                                            return_numpy=False)
    return [np.array(tensor) for tensor in got]


def run_predictor(files, subject, onednn):
    from paddle.inference import Config, create_predictor
    config = Config(*files)
    config.disable_gpu()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(1)
    if not onednn:
        config.disable_mkldnn()  # on unless one says so
    predictor = create_predictor(config)
    for name, value in subject.values.items():
        handle = predictor.get_input_handle(name)
        handle.copy_from_cpu(value)
        handle.set_lod(subject.lods.get(name, []))
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def run_interp(files, subject, values, args, scratch):
    command = [args.interp, "run", files[0], "--params", files[1], "--no-check-shape", "--threads", "1",
               "--out", os.path.join(scratch, "got.npz")]
    for name, value in values.items():
        path = os.path.join(scratch, file_stem(name) + ".npy")
        np.save(path, value)
        command += ["--feed", f"{name}={path}"]
    for name, levels in subject.lods.items():
        command += ["--feed-lod", name + "=" + "/".join(",".join(map(str, level)) for level in levels)]
    call(command + args.interp_flags.split())
    got = np.load(os.path.join(scratch, "got.npz"))
    return [got[name] for name in subject.fetches]


def write_model(program, params, subject, stem):
    """Program with feed and fetch ops, and parameters: what a predictor and interp read."""
    copy = paddle.static.Program.parse_from_string(program.desc.serialize_to_string())
    prepend_feed_ops(copy, subject.feeds)
    append_fetch_ops(copy, subject.fetches)
    with open(stem + ".pdmodel", "wb") as file:
        file.write(copy.desc.serialize_to_string())
    reference.save_parameters(params, stem + ".pdiparams")
    return stem + ".pdmodel", stem + ".pdiparams"


def widened(arrays):
    return {name: array.astype("float64") if array.dtype == np.float32 else array for name, array in arrays.items()}


def error_text(got, expected, detections):
    if got.shape != expected.shape:
        return f"is {'x'.join(map(str, got.shape))}"
    if expected.dtype.kind not in "fc":
        return f"{np.count_nonzero(got != expected)} differ"
    tied = tied_order(got, expected) if detections else None
    return f"{relative_errors((got[tied[0]] if tied else got).astype(expected.dtype), expected)[1]:.1e}"


def detection_names(files, args):
    program = json.loads(call([args.interp, "dump", files[0], "--stage", "program", "--format", "json"]))
    return find_writers(program["blocks"][0])[1]


def compare(subject, args, scratch):
    """The rows of the table, and the types of ops that stayed in float32."""
    wide, in_float32 = in_float64(subject.program)
    wide_params, wide_values = widened(subject.params), widened(subject.values)
    expected = run_plainly(wide, subject, wide_params, wide_values)
    files = write_model(subject.program, subject.params, subject, os.path.join(scratch, "float32"))
    wide_files = write_model(wide, wide_params, subject, os.path.join(scratch, "float64"))
    runs = {"paddle": lambda: run_predictor(files, subject, onednn=False),
            "oneDNN": lambda: run_predictor(files, subject, onednn=True),
            "interp": lambda: run_interp(files, subject, subject.values, args, scratch)}
    if args.check:
        runs["interp 64"] = lambda: run_interp(wide_files, subject, wide_values, args, scratch)
    detections = detection_names(files, args)
    rows = [[name, "x".join(map(str, b.shape)), f"{np.abs(b).max(initial=0):.4g}"]
            for name, b in zip(subject.fetches, expected)]
    for run in runs.values():
        for name, row, got, b in zip(subject.fetches, rows, run(), expected):
            row.append(error_text(got, b, name in detections))
    return [["fetch", "shape", "max", *runs], *rows], in_float32


def what_failed(error):
    """The end of an error: Paddle's begin with stacks of calls."""
    text = " ".join(line.strip() for line in str(error).splitlines())
    return re.split(r" (?=\w+Error: )", text)[-1] or repr(error)


def named(text):
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("params", nargs="?")
    parser.add_argument("--feed", action="append", type=named, default=[], metavar="NAME=FILE.npy",
                        help="or NAME=1x3x224x224, random")
    parser.add_argument("--feed-lod", action="append", type=named, default=[], metavar="NAME=0,2,5",
                        help="levels separated by '/'")
    parser.add_argument("--fetch", action="append", default=[], metavar="VAR")
    parser.add_argument("--size", type=int, default=0, help="what unknown sides of images become (224)")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="of random feeds and parameters")
    parser.add_argument("--check", action="store_true", help="also run interp in float64")
    parser.add_argument("--interp", default="build/release/interp")
    parser.add_argument("--interp-flags", default="", help="of `interp run`, in one argument")
    args = parser.parse_args()
    paddle.enable_static()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rows, in_float32 = compare(Subject(args), args, scratch)
    except (RuntimeError, ValueError, KeyError, OSError, NotImplementedError) as error:  # as Paddle raises them, too
        raise SystemExit(f"{args.model}: {what_failed(error)}") from None
    print_table(rows)
    if in_float32:
        print("in float32 everywhere: " + ", ".join(sorted(in_float32)))


if __name__ == "__main__":
    main()
