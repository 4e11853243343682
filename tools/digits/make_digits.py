#!/usr/bin/env python3
"""Makes the digit classifier that ships with interp: draws digits, trains, saves.

  pip install paddlepaddle==2.6.2 "numpy<2"
  make_digits.py [--out DIR] [--seed 0]

Writes digits.pdmodel and digits.pdiparams (input `image` [-1,1,28,28] float32, output the
probabilities of the ten digits), image.npy (one drawn digit) and expected.npz (what Paddle's
executor gives for it, by variable name).
"""
import argparse
import os

import numpy as np

SIZE = 28


def arc(cx, cy, rx, ry, start, stop, points=24):
    """Points of an ellipse from angle `start` to `stop` in degrees; y points down."""
    a = np.radians(np.linspace(start, stop, points))
    return np.stack([cx + rx * np.cos(a), cy + ry * np.sin(a)], axis=1)


def line(*points):
    return np.array(points, dtype="float64")


# Strokes of each digit in a box of [-1, 1] x [-1, 1].
STROKES = [
    [arc(0, 0, 0.6, 0.95, 0, 360)],
    [line((-0.35, -0.6), (0.1, -0.95), (0.1, 0.95))],
    [arc(0, -0.45, 0.55, 0.5, 180, 370), line((0.54, -0.36), (-0.6, 0.95), (0.65, 0.95))],
    [arc(-0.05, -0.47, 0.52, 0.47, 200, 450), arc(-0.05, 0.45, 0.6, 0.5, 270, 520)],
    [line((0.25, 0.95), (0.25, -0.95), (-0.65, 0.35), (0.65, 0.35))],
    [line((0.55, -0.95), (-0.4, -0.95), (-0.5, -0.1)), arc(-0.05, 0.35, 0.6, 0.6, 225, 500)],
    [arc(0.45, 0.0, 1.0, 1.0, 255, 165), arc(0, 0.4, 0.55, 0.55, 0, 360)],
    [line((-0.6, -0.95), (0.6, -0.95), (-0.15, 0.95))],
    [arc(0, -0.47, 0.48, 0.46, 0, 360), arc(0, 0.45, 0.58, 0.5, 0, 360)],
    [arc(0, -0.4, 0.55, 0.55, 0, 360), arc(-0.45, 0.0, 1.0, 1.0, -15, 75)],
]


def distance_to_segments(pixels, starts, stops):
    """Distance of each pixel [P,2] to the nearest of the segments [S,2]."""
    along = stops - starts
    length2 = np.maximum((along**2).sum(axis=1), 1e-12)
    t = ((pixels[:, None] - starts) * along).sum(axis=2) / length2
    nearest = starts + np.clip(t, 0, 1)[..., None] * along
    return np.sqrt(((pixels[:, None] - nearest) ** 2).sum(axis=2)).min(axis=1)


def draw(digit, rng):
    """A picture [SIZE,SIZE] of the digit: turned, slanted, scaled, shifted, of random thickness."""
    angle, slant = rng.uniform(-0.2, 0.2), rng.uniform(-0.25, 0.25)
    scale = rng.uniform(0.28, 0.4, size=2) * SIZE
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = turn @ np.array([[1, slant], [0, 1]]) * scale
    shift = SIZE / 2 + rng.uniform(-2.5, 2.5, size=2)
    strokes = [(s + rng.normal(0, 0.02, s.shape)) @ matrix.T + shift for s in STROKES[digit]]
    starts = np.concatenate([s[:-1] for s in strokes])
    stops = np.concatenate([s[1:] for s in strokes])
    rows, columns = np.mgrid[0:SIZE, 0:SIZE]
    pixels = np.stack([columns.ravel() + 0.5, rows.ravel() + 0.5], axis=1)
    ink = np.clip(rng.uniform(0.9, 1.9) - distance_to_segments(pixels, starts, stops), 0, 1)
    return ink.reshape(SIZE, SIZE)


def draw_many(count, rng):
    labels = rng.integers(0, 10, count)
    images = np.stack([draw(d, rng) for d in labels])[:, None]
    images = np.clip(images + rng.normal(0, 0.08, images.shape), 0, 1)
    return images.astype("float32"), labels[:, None].astype("int64")


def conv_block(paddle, x, channels):
    x = paddle.static.nn.conv2d(x, channels, 3, padding=1, bias_attr=False)
    return paddle.static.nn.batch_norm(x, act="relu")


def classifier(paddle):
    image = paddle.static.data("image", [-1, 1, SIZE, SIZE], "float32")
    x = conv_block(paddle, image, 8)
    x = paddle.nn.functional.max_pool2d(x, 2)
    x = conv_block(paddle, x, 16)
    x = paddle.nn.functional.max_pool2d(x, 2)
    x = conv_block(paddle, x, 16)
    x = paddle.nn.functional.avg_pool2d(x, 2, padding=1)
    logits = paddle.static.nn.fc(x, 10)
    return image, logits


def train(paddle, rng):
    """Returns (executor, program for inference, image, probabilities)."""
    paddle.seed(1)
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup):
        image, logits = classifier(paddle)
        probabilities = paddle.nn.functional.softmax(logits)
        inference = program.clone(for_test=True)
        label = paddle.static.data("label", [-1, 1], "int64")
        loss = paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))
        paddle.optimizer.Adam(2e-3).minimize(loss)
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(startup)
    images, labels = draw_many(8000, rng)
    for step in range(1200):
        rows = rng.integers(0, len(images), 64)
        feed = {"image": images[rows], "label": labels[rows]}
        (value,) = executor.run(program, feed=feed, fetch_list=[loss])
        if step % 200 == 0:
            print(f"step {step}: loss {float(value):.4f}")
    return executor, inference, image, probabilities


def strip_call_stacks(paddle, path):
    """Drops op_callstack: where an op was called from, the paths of this machine included."""
    with open(path, "rb") as file:
        program = paddle.static.Program.parse_from_string(file.read())
    for op in program.global_block().ops:
        if op.has_attr("op_callstack"):
            op._remove_attr("op_callstack")
    with open(path, "wb") as file:
        file.write(program.desc.serialize_to_string())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    os.environ.setdefault("GLOG_minloglevel", "2")
    import paddle

    paddle.enable_static()
    rng = np.random.default_rng(args.seed)
    executor, program, image, probabilities = train(paddle, rng)

    test_images, test_labels = draw_many(2000, rng)
    (got,) = executor.run(program, feed={"image": test_images}, fetch_list=[probabilities])
    print(f"accuracy on 2000 new drawings: {np.mean(got.argmax(axis=1) == test_labels[:, 0]):.4f}")

    prefix = os.path.join(args.out, "digits")
    image, probabilities = (program.global_block().var(v.name) for v in (image, probabilities))
    paddle.static.save_inference_model(prefix, [image], [probabilities], executor, program=program)
    strip_call_stacks(paddle, prefix + ".pdmodel")

    loaded, feeds, fetches = paddle.static.load_inference_model(prefix, executor)
    picture = draw(3, rng)[None, None].astype("float32")
    np.save(os.path.join(args.out, "image.npy"), picture)
    (expected,) = executor.run(loaded, feed={feeds[0]: picture}, fetch_list=fetches)
    np.savez(os.path.join(args.out, "expected.npz"), **{fetches[0].name: expected})
    print("expected", {fetches[0].name: np.round(expected, 4).tolist()})


if __name__ == "__main__":
    main()
