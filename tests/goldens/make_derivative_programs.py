#!/usr/bin/env python3
"""make_derivative_programs.py - training programs whose losses are made of derivatives, as Paddle builds and runs them.

    python make_derivative_programs.py --out derivative && ./pack.sh derivative

Same needs as make_goldens.py, and the format of make_training_cases.py; derivative.tar.xz beside this file is the
result. forward.pb has the ops of paddle.static.gradients: equations of physics in the derivatives of a network, and a
penalty on the gradient of a critic.
"""
from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

import argparse

import make_training_cases as t
import numpy as np
import paddle
from make_goldens import Net

static, nn, F, O = paddle.static, paddle.static.nn, paddle.nn.functional, paddle.optimizer
CASES = {}


def case(optimizer, make):
    """Registers a builder of (batches of x, loss)."""
    def register(fn):
        CASES[fn.__name__] = (fn, optimizer, make)
        return fn
    return register


def data(name, shape):
    x = static.data(name, shape)
    x.stop_gradient = False
    return x


def slope(y, x):
    return static.gradients([y], [x])[0]


def batches(r, *shape):
    return [r.f(shape, -1, 1) for _ in range(t.STEPS)]


def dense(h, width):
    """Of matmul_v2: Paddle has no third gradient of mul."""
    return paddle.nn.Linear(h.shape[1], width)(h)


def net(h, *activations):
    for activation in activations:
        h = activation(dense(h, 8))
    return dense(h, 1)


@case("adam:learning_rate=0.01,epsilon=0.0001", lambda: O.Adam(0.01, epsilon=1e-4))
def burgers(r):
    """u_t + u u_x = u_xx / 100."""
    x = data("x", [-1, 2])
    place, time = paddle.split(x, 2, axis=1)
    u = net(paddle.concat([place, time], axis=1), lambda h: paddle.sin(h * 3), F.tanh)
    u_x, u_t = slope(u, place), slope(u, time)
    return batches(r, 6, 2), paddle.mean(paddle.square(u_t + u * u_x - 0.01 * slope(u_x, place))) + paddle.mean(u * u)


@case("sgd:learning_rate=0.02", lambda: O.SGD(0.02))
def poisson(r):
    """u_xx + u_yy = sin, of slices of one gradient."""
    x = data("x", [-1, 2])
    u = net(x, F.sigmoid, F.tanh)
    g = slope(u, x)
    u_xx = slope(g[:, 0:1], x)[:, 0:1]
    u_yy = slope(g[:, 1:2], x)[:, 1:2]
    return batches(r, 6, 2), paddle.mean((u_xx + u_yy - paddle.sin(x[:, 0:1])) ** 2)


@case("momentum:learning_rate=0.01,momentum=0.9", lambda: O.Momentum(0.01, 0.9))
def gradient_penalty(r):
    """(|dD/dx| - 1)^2 of a critic of images."""
    x = data("x", [-1, 2, 5, 5])
    h = F.leaky_relu(nn.conv2d(x, 4, 3, padding=1), 0.2)
    h = F.softplus(nn.conv2d(h, 3, 3, stride=2))
    score = dense(paddle.reshape(h, [-1, 12]), 1)
    g = paddle.reshape(slope(score, x), [-1, 50])
    norm = paddle.sqrt(paddle.sum(paddle.square(g), axis=1) + 1e-6)
    return batches(r, 4, 2, 5, 5), paddle.mean((norm - 1) ** 2) + paddle.mean(score)


@case("sgd:learning_rate=0.02", lambda: O.SGD(0.02))
def quotient(r):
    """Quotients, powers and moved elements on the way."""
    x = data("x", [-1, 3])
    h = paddle.transpose(paddle.unsqueeze(F.elu(dense(x, 4)), 1), [0, 2, 1])
    h = paddle.squeeze(paddle.tile(h, [1, 1, 2]), [])[:, :, 1]
    u = paddle.sum(paddle.pow(h, 3.0) / (paddle.exp(paddle.zeros_like(h)) + paddle.square(h)), axis=1, keepdim=True)
    g = slope(u, x)
    h = paddle.log(paddle.square(g) + 1.0) - paddle.cos(u)
    return batches(r, 5, 3), paddle.mean(paddle.abs(h)) + paddle.mean(F.relu(g))


@case("sgd:learning_rate=0.02", lambda: O.SGD(0.02))
def normalised(r):
    """Means and variances of what is differentiated."""
    x = data("x", [-1, 2, 4, 4])
    h = F.tanh(paddle.nn.BatchNorm2D(3)(nn.conv2d(x, 3, 3, padding=1, bias_attr=False)))
    h = F.sigmoid(paddle.nn.InstanceNorm2D(3)(h) * h)
    g = slope(paddle.sum(paddle.square(h)), x)
    return batches(r, 4, 2, 4, 4), paddle.mean(paddle.square(g)) + paddle.mean(h)


@case("sgd:learning_rate=0.05", lambda: O.SGD(0.05))
def saliency(r):
    """The gradient of what is also trained, by the name that its own gradient has."""
    x = data("x", [-1, 3])
    score = paddle.mean(net(x, F.tanh))
    away = x + 0.1 * paddle.sign(slope(score, x))
    away.stop_gradient = True
    return batches(r, 5, 3), paddle.mean(paddle.square(dense(away, 2))) + score


def program(r, fn, spec, make):
    xs, loss = fn(r)
    t.BUILT["forward"] = t.g.serialize(static.default_main_program())
    t.BUILT["loss"], t.BUILT["optimizer"] = loss.name, spec
    make().minimize(loss)
    return Net([{"x": np.asarray(x)} for x in xs], [loss], rtol=5e-4, atol=5e-5)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    for name, (fn, spec, make) in CASES.items():
        t.random_program = lambda r: program(r, fn, spec, make)
        t.make_case(a.out, a.seed, name)


if __name__ == "__main__":
    main()
