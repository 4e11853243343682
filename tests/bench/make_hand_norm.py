#!/usr/bin/env python3
"""A program for tools/run_in_float64.py: convolutions with instance normalisation written by hand.

  make_hand_norm.py FOLDER     (needs paddlepaddle==2.6.2)

Writes FOLDER/hand_norm.pdmodel and .pdiparams, which tells the foreground of a picture of 256 x 256, and three pictures
to feed: unit.npy from 0 to 1, bytes.npy from 0 to 255, and far.npy, the same 10,000 higher. Each normalisation takes
mean and variance over up to 65,536 elements; sums in float32 are seldom as long elsewhere.
"""
import os
import sys

os.environ.setdefault("GLOG_minloglevel", "2")
import numpy as np  # noqa: E402: Paddle's log level must be set first
import paddle  # noqa: E402
from paddle.nn import functional, initializer  # noqa: E402


def normalize(x, name):
    shape = [1, x.shape[1], 1, 1]
    centred = x - paddle.mean(x, axis=[2, 3], keepdim=True)
    variance = paddle.mean(paddle.square(centred), axis=[2, 3], keepdim=True)
    scale, shift = (paddle.static.create_parameter(shape, "float32", name=f"{name}_{part}", default_initializer=first)
                    for part, first in (("scale", initializer.Uniform(0.5, 1.5)), ("shift", initializer.Normal(0, 0.3))))
    return centred / paddle.sqrt(variance + 1e-5) * scale + shift


def layer(x, channels, name, stride=1):
    return normalize(paddle.static.nn.conv2d(x, channels, 3, stride=stride, padding=1), name)


def network(image):
    first = functional.relu(layer(image, 8, "first"))
    x = functional.relu(layer(first, 16, "down0", stride=2))
    x = functional.relu(layer(x, 32, "down1", stride=2))
    for i in range(3):
        x = x + layer(functional.relu(layer(x, 32, f"block{i}a")), 32, f"block{i}b")
    x = functional.interpolate(x, scale_factor=2, mode="nearest")
    x = functional.relu(layer(x, 16, "up0"))
    x = functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    x = functional.relu(layer(x, 8, "up1")) + first
    x = functional.relu(layer(x, 8, "last"))
    return paddle.static.nn.conv2d(x, 2, 1)


def picture():
    """Waves of colour, a lighter rectangle, noise; from 0 to 255."""
    y, x = np.mgrid[0:256, 0:256]
    waves = np.stack([120 + 60 * np.sin(x / 40) + 30 * np.cos(y / 25), 110 + 50 * np.sin((x + y) / 60),
                      140 + 40 * np.cos(x / 15)])
    waves[:, 80:180, 90:200] += 50
    noise = np.random.default_rng(3).normal(0, 6, waves.shape)
    return np.clip(np.round(waves + noise), 0, 255)[None].astype("float32")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    paddle.enable_static()
    paddle.seed(7)
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup):
        image = paddle.static.data("image", [1, 3, 256, 256])
        logits = network(image)
        shares = functional.softmax(logits, axis=1)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        paddle.static.save_inference_model(os.path.join(folder, "hand_norm"), [image], [logits, shares], executor,
                                           program=program)
    for name, values in {"unit": picture() / 255, "bytes": picture(), "far": picture() + 10000}.items():
        np.save(os.path.join(folder, name + ".npy"), values.astype("float32"))


if __name__ == "__main__":
    main()
