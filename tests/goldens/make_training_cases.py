#!/usr/bin/env python3
"""make_training_cases.py - random training programs, as Paddle builds and runs them.

    python make_training_cases.py --out training && ./pack.sh training
    python make_training_cases.py --out DIR --count 500 --seed 7

Same needs as make_goldens.py, and the format of its programs (main.pb, startup.pb, parameters before the first
and after the last of five steps, feeds and fetches of each); training.tar.xz beside this file is the result of the
first line. Each folder has one file more: forward.pb, the program before minimize, and case.json says what
`interp backward` makes the rest of: `loss` and `optimizer`.

A program is a stack of random layers over vectors, images, words or sequences: dense, convolution, pooling,
normalization, embedding (dense and sparse gradients), attention, LSTM and GRU, a while loop, branches, shared
weights; one of the losses; one of the optimizers with random arguments, weight decay and gradient clipping.
Left out is what trains on rounding alone: a bias in front of a batch_norm, one of attention keys, and whole programs
that end elsewhere when their first parameters change in the sixth digit.
"""
from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

import argparse
import json
import os
import shutil
import signal

import make_goldens as g
import numpy as np
import paddle
from make_goldens import Net, Rng

static, nn, F, O = paddle.static, paddle.static.nn, paddle.nn.functional, paddle.optimizer
STEPS = g.STEPS
SECONDS_PER_PROGRAM = 60
BUILT = {}  # of the program being made: forward.pb, loss and optimizer


# ----------------------------------------------------------------------------
# Optimizers: the text of `interp backward --optimizer` and the same in Paddle
# ----------------------------------------------------------------------------
def number(x):
    return repr(round(x, 6))


def draw_optimizer(r):
    lr = r.scalar(0.01, 0.1)
    kinds = {
        "sgd": (O.SGD, {}),
        "momentum": (O.Momentum, {"momentum": r.scalar(0.5, 0.95), "use_nesterov": r.pick(True, False)}),
        "adagrad": (O.Adagrad, {"epsilon": 1e-4}),
        "adam": (O.Adam, {"beta1": r.scalar(0.8, 0.95), "beta2": r.scalar(0.9, 0.999), "epsilon": 1e-4}),
        "adamw": (O.AdamW, {"beta1": r.scalar(0.8, 0.95), "epsilon": 1e-4, "weight_decay": r.scalar(0.01, 0.1)}),
        "adamax": (O.Adamax, {"beta1": r.scalar(0.8, 0.95), "epsilon": 1e-4}),
        "adadelta": (O.Adadelta, {"epsilon": 1e-3, "rho": r.scalar(0.8, 0.95)}),
        "rmsprop": (O.RMSProp, {"rho": r.scalar(0.8, 0.95), "epsilon": 1e-3, "momentum": r.pick(0.0, 0.9),
                                "centered": r.pick(True, False)}),
        "lamb": (O.Lamb, {"lamb_weight_decay": r.scalar(0.001, 0.05), "epsilon": 1e-3}),
    }
    name = r.pick(*kinds)
    make, args = kinds[name]
    args = {"learning_rate": lr, **args}
    spec, kwargs = dict(args), dict(args)
    if name not in ("adamw", "lamb") and r.n(0, 2) == 0:
        spec["weight_decay"] = kwargs["weight_decay"] = r.scalar(0.001, 0.02, 4)
    clip = r.n(0, 5)
    if clip == 0:
        spec["grad_clip_value"] = c = r.scalar(0.01, 0.1)
        kwargs["grad_clip"] = paddle.nn.ClipGradByValue(c)
    elif clip == 1:
        spec["grad_clip_norm"] = c = r.scalar(0.05, 0.5)
        kwargs["grad_clip"] = paddle.nn.ClipGradByNorm(c)
    elif clip == 2:
        spec["grad_clip_global_norm"] = c = r.scalar(0.05, 0.5)
        kwargs["grad_clip"] = paddle.nn.ClipGradByGlobalNorm(c)
    text = ",".join(f"{k}={str(v).lower() if isinstance(v, bool) else number(v)}" for k, v in spec.items())
    return f"{name}:{text}", make(**kwargs)


# ----------------------------------------------------------------------------
# Layers: from a value of one form to one of the same form
# ----------------------------------------------------------------------------
def activation(r, x):
    return r.pick(F.relu, F.tanh, F.sigmoid, F.gelu, F.silu, F.softplus, F.hardswish, F.elu, F.leaky_relu, F.mish)(x)


def on_vectors(r, h):  # [N, D]
    d = h.shape[1]
    kind = r.n(0, 8)
    if kind == 0:
        return nn.fc(h, r.n(3, 7))
    if kind == 1:
        return activation(r, h)
    if kind == 2:
        return nn.layer_norm(h)
    if kind == 3:
        return h + nn.fc(activation(r, h), d)
    if kind == 4:
        a, b = paddle.split(paddle.concat([h, nn.fc(h, 2)], axis=1), [d, 2], axis=1)
        return a * paddle.mean(b, axis=1, keepdim=True)
    if kind == 5:
        w = static.create_parameter([d, d], "float32")
        return paddle.matmul(activation(r, paddle.matmul(h, w)), w, transpose_y=True)  # a shared weight
    if kind == 6:
        return loop(r, h)
    if kind == 7:
        return branch(r, h)
    return nn.batch_norm(nn.fc(h, r.n(3, 6), bias_attr=False))


def loop(r, h):
    """h = tanh(h w) a few times; the trip count is a value."""
    w = static.create_parameter([h.shape[1], h.shape[1]], "float32")
    trips = paddle.full([1], r.n(1, 3), "int64")

    def body(i, x):
        return i + 1, paddle.tanh(paddle.matmul(x, w)) + x

    return nn.while_loop(lambda i, x: i < trips, body, [paddle.full([1], 0, "int64"), h * 1.0])[1]


def branch(r, h):
    d = h.shape[1]
    w = static.create_parameter([d, d], "float32")
    taken = paddle.mean(h) > r.scalar(-0.2, 0.2)
    return nn.cond(taken, lambda: paddle.matmul(h, w), lambda: paddle.matmul(F.tanh(h), w) * 0.5)


def on_images(r, h):  # [N, C, H, W]
    kind = r.n(0, 6)
    size = min(h.shape[2], h.shape[3])
    if kind <= 1 or size < 4:
        k = r.pick(1, 3)
        return activation(r, nn.conv2d(h, r.n(2, 4), k, padding=k // 2, stride=r.pick(1, 1, 2)))
    if kind == 2:
        return nn.batch_norm(nn.conv2d(h, r.n(2, 4), 3, padding=1, bias_attr=False), act=r.pick(None, "relu"))
    if kind == 3:
        pool = r.pick(F.max_pool2d, F.avg_pool2d)
        return pool(h, r.pick(2, 3), r.pick(1, 2))
    if kind == 4:
        return F.relu(nn.conv2d(h, h.shape[1], 3, padding=1, groups=h.shape[1]))
    if kind == 5:
        return h + nn.conv2d(F.relu(h), h.shape[1], 3, padding=1)
    return F.interpolate(h, scale_factor=2, mode=r.pick("nearest", "bilinear"))


def on_sequences(r, h):  # [N, T, D]
    d = h.shape[2]
    kind = r.n(0, 5)
    if kind == 0:
        return nn.layer_norm(h, begin_norm_axis=2)
    if kind == 1:
        return h + nn.fc(activation(r, nn.fc(h, r.n(4, 6), num_flatten_dims=2)), d, num_flatten_dims=2)
    if kind == 2:
        return paddle.nn.LSTM(d, r.n(2, 4), direction=r.pick("forward", "bidirect"))(h)[0]
    if kind == 3:
        return paddle.nn.GRU(d, r.n(2, 4))(h)[0]
    if kind == 4:
        return attention(r, h)
    return paddle.transpose(activation(r, paddle.transpose(h, [0, 2, 1])), [0, 2, 1])


def attention(r, h):
    t, d = h.shape[1], h.shape[2]
    heads = 2 if d % 2 == 0 else 1
    split = lambda x: paddle.transpose(paddle.reshape(x, [0, t, heads, d // heads]), [0, 2, 1, 3])  # noqa: E731
    q, v = (split(nn.fc(h, d, num_flatten_dims=2)) for _ in range(2))
    k = split(nn.fc(h, d, num_flatten_dims=2, bias_attr=False))
    w = F.softmax(paddle.matmul(q * (d // heads) ** -0.5, k, transpose_y=True))
    o = paddle.reshape(paddle.transpose(paddle.matmul(w, v), [0, 2, 1, 3]), [0, t, d])
    return h + nn.fc(o, d, num_flatten_dims=2)


# ----------------------------------------------------------------------------
# Programs
# ----------------------------------------------------------------------------
def draw_body(r):
    """Feeds' form and what is made of them: [N, D] at the end."""
    kind, batch = r.pick("vectors", "images", "words", "sequences"), r.n(3, 5)
    if kind == "vectors":
        shape = (r.n(3, 6),)
        h = static.data("x", [-1, *shape], "float32")
    elif kind == "images":
        shape = (r.n(1, 3), r.n(6, 8), r.n(6, 8))
        h = static.data("x", [-1, *shape], "float32")
        for _ in range(r.n(1, 3)):
            h = on_images(r, h)
        h = paddle.flatten(F.adaptive_avg_pool2d(h, r.pick(1, 2)), 1)
    else:
        t = r.n(3, 5)
        if kind == "words":
            shape = (t,)
            h = nn.embedding(static.data("x", [-1, t], "int64"), [11, r.n(3, 6)], is_sparse=r.pick(True, False))
        else:
            shape = (t, r.n(2, 4))
            h = static.data("x", [-1, *shape], "float32")
        for _ in range(r.n(1, 3)):
            h = on_sequences(r, h)
        h = paddle.mean(h, axis=1) if r.n(0, 1) else h[:, -1]
    for _ in range(r.n(1, 3)):
        h = on_vectors(r, h)
    draw = lambda: r.i((batch, *shape), 0, 10) if kind == "words" else r.f((batch, *shape), -1, 1)  # noqa: E731
    return h, [draw() for _ in range(STEPS)]


def draw_loss(r, h):
    n = r.n(0, 3)
    if n == 0:
        y = static.data("y", [-1, 1], "int64")
        classes = r.n(2, 4)
        return (paddle.mean(F.softmax_with_cross_entropy(nn.fc(h, classes), y)),
                lambda batch: r.i((batch, 1), 0, classes - 1))
    y = static.data("y", [-1, 1], "float32")
    p = nn.fc(h, 1)
    if n == 1:
        return paddle.mean(F.square_error_cost(p, y)), lambda batch: r.f((batch, 1), -1, 1)
    if n == 2:
        return F.smooth_l1_loss(p, y), lambda batch: r.f((batch, 1), -3, 3)
    return (F.binary_cross_entropy_with_logits(p, y),
            lambda batch: r.b((batch, 1)).astype("float32"))


def random_program(r):
    h, xs = draw_body(r)
    loss, draw_y = draw_loss(r, h)
    main = static.default_main_program()
    BUILT["forward"] = g.serialize(main)
    BUILT["loss"] = loss.name
    BUILT["optimizer"], optimizer = draw_optimizer(r)
    optimizer.minimize(loss)
    return Net([{"x": x, "y": draw_y(len(x))} for x in xs], [loss], rtol=5e-4, atol=5e-5)


def check_steady(folder, doc):
    """Raises Unsupported where five steps make much of a small difference."""
    rng = np.random.default_rng(0)
    load = lambda name: np.load(f"{folder}/{name}")  # noqa: E731
    state = {n: load(p["init"]) for n, p in doc["params"].items()}
    for n, p in doc["params"].items():
        if p["trainable"]:
            state[n] = (state[n] * (1 + 1e-6 * rng.standard_normal(state[n].shape))).astype(state[n].dtype)
    with open(f"{folder}/main.pb", "rb") as f:
        program = static.Program.parse_from_string(f.read())
    for step in doc["steps"]:
        g.run_step(program, state, {n: load(f) for n, f in step["feeds"].items()}, doc["fetch_order"])
    for n, p in doc["params"].items():
        if not np.allclose(state[n], load(p["final"]), doc["rtol"] / 2, doc["atol"] / 2):
            raise g.Unsupported(f"'{n}' ends elsewhere after a small change")


def make_case(out_dir, seed, name):
    g.PROGRAMS[name] = lambda r: random_program(r)
    g.make_program_case(out_dir, seed, name)
    folder = f"{out_dir}/programs/{name}"
    with open(f"{folder}/forward.pb", "wb") as f:
        f.write(BUILT["forward"])
    with open(f"{folder}/case.json") as f:
        doc = json.load(f)
    doc["loss"], doc["optimizer"], doc["notes"] = BUILT["loss"], BUILT["optimizer"], BUILT["optimizer"]
    g.write_json(f"{folder}/case.json", doc)
    check_steady(folder, doc)
    os.remove(f"{folder}/main_io.pb")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=30)
    a = ap.parse_args()
    made = 0
    for i in range(a.count):
        name = f"r{i:04d}"
        # In a process of its own: one that Paddle cannot stand costs nothing else.
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.alarm(SECONDS_PER_PROGRAM)
            try:
                make_case(a.out, a.seed, name)
                os._exit(0)
            except Exception as e:
                print(f"{name}: {BUILT.get('optimizer')}: {str(e).strip().splitlines()[-1]}", flush=True)
                os._exit(1)
        if os.waitpid(child, 0)[1] == 0:
            made += 1
        else:
            shutil.rmtree(f"{a.out}/programs/{name}", ignore_errors=True)
            print(f"{name}: left out")
    print(f"{made} programs in {a.out}")


if __name__ == "__main__":
    main()
