#!/usr/bin/env python3
"""What Paddle itself gives for a program: parameters, feeds, and every variable after one run.

  pip install paddlepaddle==2.6.2 "numpy<2"

  paddle_reference.py params MODEL OUT.pdiparams [--seed N]
      random parameters, scaled so that activations neither vanish nor explode
  paddle_reference.py run MODEL PARAMS FOLDER [--feed NAME=FILE.npy ...] [--size N] [--batch N] [--seed N]
      FOLDER/in_NAME.npy   what was fed: the given files, else random ('/' in a name becomes '_')
      FOLDER/out_NAME.npy  what the program fetches
      FOLDER/all.npz       every tensor that an op wrote, as it is after the run
      FOLDER/lod.json      LoDs of those that have one
"""
import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOG_minloglevel", "2")
import numpy as np  # noqa: E402: Paddle's thread count must be set first
import paddle  # noqa: E402

# Outputs of ops in inference mode whose content Paddle leaves undefined.
UNDEFINED_SLOTS = {
    ("batch_norm", "SavedMean"), ("batch_norm", "SavedVariance"), ("batch_norm", "ReserveSpace"),
    ("dropout", "Mask"), ("rnn", "Reserve"), ("rnn", "DropoutState"),
}
LOD_TENSOR = paddle.base.core.VarDesc.VarType.LOD_TENSOR


def file_stem(name):
    return name.replace("/", "_")


def load_program(path):
    with open(path, "rb") as file:
        return paddle.static.Program.parse_from_string(file.read())


def parameters(program):
    """Persistable tensors by name, sorted: the order of a combined file."""
    found = {v.name: v for block in program.blocks for v in block.vars.values()
             if v.persistable and v.name not in ("feed", "fetch") and v.desc.type() == LOD_TENSOR}
    return dict(sorted(found.items()))


def numpy_dtype(var):
    return {"float32": "float32", "float64": "float64", "float16": "float16", "bool": "bool", "uint8": "uint8",
            "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64"}[str(var.dtype).split(".")[-1].lower()
                                                                             .replace("fp", "float")]


def random_parameter(var, op_type, slot, rng):
    shape = [max(int(d), 1) for d in var.shape]
    dtype = numpy_dtype(var)
    if not dtype.startswith("float"):
        return rng.integers(0, 2, shape).astype(dtype)
    if slot == "Variance":
        values = rng.uniform(0.5, 1.5, shape)
    elif slot == "Scale" and "norm" in op_type:
        values = rng.uniform(0.8, 1.2, shape)
    elif slot in ("InScale", "OutScale", "Scale", "Scales"):
        values = 1 + np.abs(rng.normal(0, 0.05, shape))
    elif len(shape) >= 2:
        fan_in = int(np.prod(shape[1:])) if "conv" in op_type else shape[0]
        values = rng.normal(0, np.sqrt(1.6 / fan_in), shape)
    else:
        values = rng.normal(0, 0.05, shape)
    return values.astype(dtype)


def random_parameters(program, seed):
    """Arrays by name."""
    reader = {}
    for op in (op for block in program.blocks for op in block.ops):
        for slot in op.input_names:
            for name in op.input(slot):
                reader.setdefault(name, (op.type, slot))
    rng = np.random.default_rng(seed)
    return {name: random_parameter(var, *reader.get(name, ("", "")), rng) for name, var in parameters(program).items()}


def save_parameters(values, out):
    """A combined file of arrays by name."""
    saver, scope = paddle.static.Program(), paddle.static.Scope()
    with paddle.static.program_guard(saver):
        block = saver.global_block()
        variables = []
        for name, value in sorted(values.items()):
            variables.append(block.create_var(name=name, shape=value.shape, dtype=str(value.dtype), persistable=True))
            scope.var(name).get_tensor().set(value, paddle.CPUPlace())
        ignored = block.create_var(name="save_combine_out", type=paddle.base.core.VarDesc.VarType.RAW)
        block.append_op(type="save_combine", inputs={"X": variables}, outputs={"Y": ignored},
                        attrs={"file_path": os.path.abspath(out), "overwrite": True})
        paddle.static.Executor(paddle.CPUPlace()).run(saver, scope=scope)


def load_parameters(program, path, scope):
    """From a combined file, or from a folder with one file for each variable."""
    loader = paddle.static.Program()
    with paddle.static.program_guard(loader):
        block = loader.global_block()
        variables = [block.create_var(name=name, shape=var.shape, dtype=var.dtype, persistable=True)
                     for name, var in parameters(program).items()]
        if os.path.isdir(path):
            for var in variables:
                block.append_op(type="load", outputs={"Out": [var]},
                                attrs={"file_path": os.path.abspath(os.path.join(path, var.name))})
        elif variables:
            block.append_op(type="load_combine", outputs={"Out": variables}, attrs={"file_path": os.path.abspath(path)})
        paddle.static.Executor(paddle.CPUPlace()).run(loader, scope=scope)


def random_feed(name, var, args, rng):
    """Standard normal, or 0 and 1; sizes of images where the usual names ask for them."""
    size = args.size or 224
    usual = {2: [args.batch, 2], 3: [args.batch, 32, 32], 4: [args.batch, 3, size, size], 5: [args.batch, 3, 8, 112, 112]}
    fallback = usual.get(len(var.shape), [args.batch] * len(var.shape))
    shape = [int(d) if d > 0 else fallback[i] for i, d in enumerate(var.shape)]
    dtype = numpy_dtype(var)
    if name in ("im_shape", "im_size"):
        return np.full(shape, size, dtype)
    if name == "scale_factor":
        return np.ones(shape, dtype)
    return rng.standard_normal(shape).astype(dtype) if dtype.startswith("float") else rng.integers(0, 2, shape).astype(dtype)


def written_variables(block):
    """name -> (type, slot) of the op that writes it last."""
    writers = {}
    for op in block.ops:
        for slot in op.output_names:
            for name in op.output(slot):
                writers[name] = (op.type, slot)
    return writers


def collect(block, scope, skip):
    arrays, lods = {}, {}
    for name, writer in written_variables(block).items():
        var = block.vars.get(name)
        if name in skip or writer in UNDEFINED_SLOTS or var is None or var.desc.type() != LOD_TENSOR:
            continue
        held = scope.find_var(name)
        tensor = held.get_tensor() if held is not None else None
        if tensor is None or not tensor._is_initialized():
            continue  # XShape and the like: a shape without memory
        arrays[name] = np.array(tensor)
        if tensor.lod():
            lods[name] = tensor.lod()
    return arrays, lods


def run(args):
    program = load_program(args.model)
    block = program.global_block()
    feeds = [op.output("Out")[0] for op in block.ops if op.type == "feed"]
    fetches = [op.input("X")[0] for op in block.ops if op.type.startswith("fetch")]
    scope = paddle.static.Scope()
    names = parameters(program)
    load_parameters(program, args.params, scope)
    # Executor.run adds feed and fetch ops of its own.
    for i in reversed([i for i, op in enumerate(block.ops) if op.type == "feed" or op.type.startswith("fetch")]):
        block._remove_op(i)
    given = dict(item.split("=", 1) for item in args.feed)
    rng = np.random.default_rng(args.seed + 1)
    values = {n: np.load(given[n]) if n in given else random_feed(n, block.var(n), args, rng) for n in feeds}
    for var in block.vars.values():
        if var.desc.type() == LOD_TENSOR and var.name not in feeds:
            var.persistable = True  # so that it stays in the scope
    got = paddle.static.Executor(paddle.CPUPlace()).run(program, feed=values, fetch_list=fetches, scope=scope,
                                                        return_numpy=False)
    arrays, lods = collect(block, scope, set(feeds) | set(names))
    os.makedirs(args.folder, exist_ok=True)
    for name, value in values.items():
        np.save(os.path.join(args.folder, f"in_{file_stem(name)}.npy"), value)
    for name, tensor in zip(fetches, got):
        np.save(os.path.join(args.folder, f"out_{file_stem(name)}.npy"), np.asarray(tensor))
    if lods:
        with open(os.path.join(args.folder, "lod.json"), "w") as file:
            json.dump(lods, file)
    np.savez(os.path.join(args.folder, "all.npz"), **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    params = commands.add_parser("params")
    params.add_argument("model")
    params.add_argument("out")
    running = commands.add_parser("run")
    for name in ("model", "params", "folder"):
        running.add_argument(name)
    running.add_argument("--feed", action="append", default=[])
    running.add_argument("--size", type=int, default=0, help="what unknown sides of images become (224)")
    running.add_argument("--batch", type=int, default=1)
    for command in (params, running):
        command.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    paddle.enable_static()
    if args.command == "params":
        save_parameters(random_parameters(load_program(args.model), args.seed), args.out)
    else:
        run(args)


if __name__ == "__main__":
    main()
