#!/usr/bin/env python3
"""Proves that what core/program_builder.h builds is what Paddle builds, and runs there.

  check_builder_programs.py --interp build/release/interp

Takes the programs of tests/core/program_builder/*.txt, which C++ tests compare with the builder's, and
  - compares each with the same network built by paddle.static.nn: the types, arguments and attributes of
    all ops, and the variables. Left out are attributes that choose between implementations, names of
    results, which are compared by the op that gives them, and how an LSTM gets its first state;
  - has Paddle run startup and main program, and interp the main program with the parameters that
    came out: the results of all ops without randomness are compared.
Programs for evaluation are run alone.
Needs Paddle 2.6.2 (see the README)."""
import argparse
import glob
import os
import pickle
import subprocess
import sys
import tempfile

import numpy as np
import paddle
from paddle import static
from paddle.nn import functional as F
from paddle.utils import unique_name

nn, I = static.nn, paddle.nn.initializer
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = os.path.join(HERE, "..", "core", "program_builder", "*.txt")


def data(name, shape, dtype="float32"):
    return static.data(name, shape, dtype)


# --- the networks of tests/testing/built_nets.cc ---

def mlp():
    x, y = data("x", [-1, 13]), data("y", [-1, 1], "int64")
    h = F.dropout(nn.fc(x, 16, activation="relu"), 0.25)
    logits = nn.fc(nn.fc(h, 8, bias_attr=False, activation="tanh"), 4)
    F.cross_entropy(logits, y)
    static.accuracy(F.softmax(logits), y)


def ignored_labels():
    x, y = data("x", [-1, 6]), data("y", [-1, 1], "int64")
    F.cross_entropy(nn.fc(x, 4), y, ignore_index=2)


def lenet():
    x, y = data("x", [-1, 1, 28, 28]), data("y", [-1, 1], "int64")
    h = F.max_pool2d(nn.conv2d(x, 20, 5, act="relu"), 2)
    h = F.max_pool2d(nn.conv2d(h, 50, 5, act="relu"), 2)
    h = nn.fc(paddle.flatten(h, 1), 500, activation="relu")
    paddle.mean(F.softmax_with_cross_entropy(nn.fc(h, 10), y))


def conv_norm(x, filters, stride, act):
    return nn.batch_norm(nn.conv2d(x, filters, 3, stride=stride, padding=1, bias_attr=False), act=act)


def resnet():
    x, y = data("x", [-1, 3, 16, 16]), data("y", [-1, 1], "int64")
    h = conv_norm(x, 8, 1, "relu")
    body = conv_norm(conv_norm(h, 16, 2, "relu"), 16, 1, None)
    side = nn.conv2d(h, 16, 1, stride=2, bias_attr=False)
    h = F.relu(paddle.add(body, side))
    h = paddle.flatten(F.adaptive_avg_pool2d(h, 1), 1)
    paddle.mean(F.softmax_with_cross_entropy(nn.fc(h, 10), y))


def windows():
    x = data("x", [-1, 4, 15, 17])
    h = nn.conv2d(x, 8, [3, 5], stride=2, padding="SAME")
    h = F.max_pool2d(h, 3, 2, padding=1, ceil_mode=True)
    h = nn.conv2d(h, 8, 3, padding=[2, 1], dilation=[2, 1], groups=4)
    h = F.avg_pool2d(h, 3, 1, padding=1, exclusive=False)
    paddle.mean(h)


def lstm():
    x, y = data("x", [-1, 6], "int64"), data("y", [-1, 1], "int64")
    words = nn.embedding(x, [50, 12], is_sparse=True)
    h = paddle.nn.LSTM(12, 8, num_layers=2, direction="bidirect")(words)[0]
    paddle.mean(F.softmax_with_cross_entropy(nn.fc(h[:, -1], 5), y))


def attention():
    x, y = data("x", [-1, 6], "int64"), data("y", [-1, 6, 1], "int64")
    h = nn.embedding(x, [50, 16], padding_idx=-1)
    n = nn.layer_norm(h, begin_norm_axis=2)
    h = paddle.add(h, paddle.nn.MultiHeadAttention(16, 4)(n))
    n = nn.layer_norm(h, begin_norm_axis=2)
    n = nn.fc(n, 32, num_flatten_dims=2, activation="gelu")
    h = paddle.add(h, nn.fc(n, 16, num_flatten_dims=2))
    paddle.mean(F.softmax_with_cross_entropy(nn.fc(h, 50, num_flatten_dims=2), y))


def regression():
    x, y = data("x", [-1, 4, 10]), data("y", [-1, 1])
    by_column = paddle.multiply(
        x, static.create_parameter([10], "float32", default_initializer=I.Constant(2.0)))
    product = paddle.matmul(by_column, x, transpose_y=True)
    both = paddle.concat([paddle.transpose(product, [0, 2, 1]), paddle.scale(x, 0.5, 1.0)], 2)
    flat = paddle.reshape(both, [0, 56])
    paddle.mean(F.square_error_cost(nn.fc(flat, 1), y))


def initializers():
    x = data("x", [-1, 20])
    for init in (I.Constant(0.1), I.Uniform(-1, 2), I.Normal(1.0, 2.0), I.TruncatedNormal(0.0, 3.0),
                 I.XavierUniform(), I.XavierNormal(), I.KaimingUniform(), I.KaimingNormal()):
        nn.fc(x, 10, weight_attr=paddle.ParamAttr(initializer=init))
    image = data("image", [-1, 3, 28, 28])
    for init in I.XavierUniform(), I.KaimingNormal():
        nn.conv2d(image, 20, 5, param_attr=paddle.ParamAttr(initializer=init))


def activations():
    x = data("x", [-1, 8])
    for act in ("abs elu exp gelu hard_sigmoid hard_swish leaky_relu log_softmax mish relu relu6 selu "
                "sigmoid silu softmax softplus softsign square swish tanh sqrt log").split():
        nn.fc(x, 8, weight_attr=paddle.ParamAttr(initializer=I.Constant(0.1)), activation=act)


def build(net):
    main, startup = static.Program(), static.Program()
    with unique_name.guard(), static.program_guard(main, startup):
        globals()[net]()
    return main, startup


# --- reading ours ---

def cases():
    for path in sorted(glob.glob(TEXTS)):
        for case in open(path).read().split("=== ")[1:]:
            head, out = case.split("--- out\n")
            net = [l for l in head.splitlines() if l.startswith("net: ")][0][5:]
            programs = ["program version" + p for p in out.split("program version")[1:]]
            yield net, "test:" in head, programs


def convert(interp, text, folder):
    """The program of a text, as bytes of a .pdmodel."""
    path = os.path.join(folder, "program.txt")
    open(path, "w").write(text)
    return subprocess.run([interp, "dump", "--stage", "program", "--format", "pb", path], check=True,
                          stdout=subprocess.PIPE).stdout


# --- comparing ---

IMPLEMENTATION = {"use_cudnn", "use_mkldnn", "use_quantizer", "mkldnn_data_type", "with_quant_attr", "op_role",
                  "op_role_var", "op_callstack", "op_namescope", "op_device", "workspace_size_MB",
                  "exhaustive_search", "use_addto", "force_fp32_output", "fuse_with_relu"}
# Declared by Paddle for tensors that its CPU kernels fill otherwise, or not at all.
DTYPES_DIFFER = {"accuracy"}


def attributes(op):
    found = {}
    for name in op.attr_names:
        if name in IMPLEMENTATION:
            continue
        value = op.attr(name)
        found[name] = np.float32(value).item() if isinstance(value, float) else value
    return found


def describe(program):
    """Every op with its arguments, results named by the op, slot and position that gave them."""
    made, lines = {}, []
    block = program.global_block()
    for i, op in enumerate(block.ops):
        inputs = {s: [made.get(a, a) for a in op.input(s)] for s in sorted(op.input_names) if op.input(s)}
        outputs = {}
        for slot in sorted(op.output_names):
            for j, name in enumerate(op.output(slot)):
                var = block.var(name)
                shape = None if name.startswith("lstm") and slot == "DropoutState" else tuple(var.shape)
                dtype = None if op.type in DTYPES_DIFFER else var.dtype
                outputs[slot, j] = (shape, dtype, name if var.persistable else "")
                if not var.persistable:
                    made[name] = f"#{i}.{slot}.{j}"
        lines.append((op.type, inputs, outputs, attributes(op)))
    return lines


def parameters(program):
    return {v.name: (tuple(v.shape), v.dtype, v.desc.stop_gradient(), v.desc.is_parameter())
            for v in program.list_vars() if v.persistable and not v.name.startswith("lstm_0.w")}


def reread(program):
    """What a file keeps of a program, as ours are read from files."""
    return static.Program.parse_from_string(program.desc.serialize_to_string())


def compare(net, ours, theirs):
    problems = []
    if parameters(ours) != parameters(theirs):
        problems.append(f"parameters: {parameters(ours)} and {parameters(theirs)}")
    ours, theirs = describe(ours), describe(theirs)
    if net == "lstm":  # the first state is made by other ops, and the weights are not made one for cuDNN
        other = {"shape", "fill_constant_batch_size_like", "fill_constant", "slice", "coalesce_tensor"}
        strip = lambda ops: [(o[0], 0, 0, o[3]) for o in ops if o[0] not in other]
        ours, theirs = strip(ours), strip(theirs)
    if len(ours) != len(theirs):
        problems.append(f"{[o[0] for o in ours]} and {[o[0] for o in theirs]}")
    for i, (mine, other) in enumerate(zip(ours, theirs)):
        for what, a, b in zip(("type", "inputs", "outputs"), mine, other):
            if a != b:
                problems.append(f"op {i} {mine[0]} {what}: {a} and {b}")
        # An attribute that one of them leaves out has its default.
        for name in mine[3].keys() & other[3].keys():
            if mine[3][name] != other[3][name]:
                problems.append(f"op {i} {mine[0]} {name}: {mine[3][name]} and {other[3][name]}")
        for name in other[3].keys() - mine[3].keys():
            problems.append(f"op {i} {mine[0]}: no {name}, which is {other[3][name]}")
    return problems


# --- running ---

UNDEFINED = {"XShape", "Reserve", "ReserveSpace", "DropoutState", "Mask", "SavedMean", "SavedVariance"}


def feeds_of(program):
    rng = np.random.default_rng(1)
    feeds = {}
    for var in program.list_vars():
        if not var.desc.need_check_feed():
            continue
        shape = [3 if d == -1 else d for d in var.shape]
        integers = var.dtype == paddle.int64
        feeds[var.name] = rng.integers(0, 4, shape) if integers else rng.random(shape, "float32")
    return feeds


def results_of(program):
    """The variables that an op without randomness gives."""
    names, random = [], set()
    for op in program.global_block().ops:
        if op.type == "dropout" and not op.attr("is_test") or random & set(op.input_arg_names):
            random |= set(op.output_arg_names)
            continue
        for slot in op.output_names:
            if slot not in UNDEFINED:
                names += [n for n in op.output(slot) if not program.global_block().var(n).persistable]
    return names


def run(interp, main, startup, text, folder):
    """Largest difference between Paddle and interp over all results, relative to the largest one."""
    executor, scope = static.Executor(paddle.CPUPlace()), static.Scope()
    feeds, names = feeds_of(main), results_of(main)
    with static.scope_guard(scope):
        executor.run(startup)
        program = static.Program.parse_from_string(main.desc.serialize_to_string())
        state = {n: np.array(scope.find_var(n).get_tensor()) for n in parameters(main)}
        want = executor.run(program, feed=feeds, fetch_list=names)
    path = os.path.join(folder, "net.pdparams")
    with open(path, "wb") as f:
        pickle.dump(state, f, protocol=4)
    model = os.path.join(folder, "net.txt")
    open(model, "w").write(text)
    command = [interp, "run", model, "--no-prune", "--out", os.path.join(folder, "out")]
    if state:
        command += ["--params", path]
    for name, value in feeds.items():
        np.save(os.path.join(folder, name + ".feed.npy"), value)
        command += ["--feed", f"{name}={os.path.join(folder, name + '.feed.npy')}"]
    for name in names:
        command += ["--fetch", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return f"interp: {done.stderr.strip()[:400]}"
    worst = 0
    for name, expected in zip(names, want):
        got = np.load(os.path.join(folder, "out", name + ".npy"))
        if got.shape != expected.shape:
            return f"{name} is {got.shape}, expected {expected.shape}"
        got, expected = np.float64(got), np.float64(expected)
        worst = max(worst, np.max(np.abs(got - expected)) / max(1, np.max(np.abs(expected))))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interp", required=True)
    interp = os.path.abspath(parser.parse_args().interp)
    paddle.enable_static()
    paddle.seed(1)
    failed = False
    startups = {}
    for net, is_test, texts in cases():
        theirs, their_startup = build(net)
        with tempfile.TemporaryDirectory() as folder:
            ours = [static.Program.parse_from_string(convert(interp, t, folder)) for t in texts]
            problems = []
            if not is_test:
                problems += compare(net, ours[0], reread(theirs)) + compare(net, ours[1], reread(their_startup))
                startups[net] = ours[1]
            worst = run(interp, ours[0], startups[net], texts[0], folder)
        if isinstance(worst, str):
            problems.append(worst)
        elif worst > 1e-5:
            problems.append(f"results differ by {worst}")
        ops = len(ours[0].global_block().ops)
        print(f"{net}{' for evaluation' if is_test else ''}: {ops} ops,", "as Paddle's," if not problems else "NOT as Paddle's,",
              f"results within {worst:.1e}" if not isinstance(worst, str) else "does not run")
        for problem in problems:
            print("   ", problem[:1000])
        failed |= bool(problems)
    sys.exit(failed)


if __name__ == "__main__":
    main()
