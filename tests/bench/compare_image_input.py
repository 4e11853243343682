#!/usr/bin/env python3
"""Decoding and augmenting JPEGs of a record file: interp beside MXNet's ImageRecordIter and mx.image.

  compare_image_input.py [--build build/release] [--pictures 600] [--rounds 7] [--threads 2]

Needs mxnet 1.9.1, NumPy and OpenCV. Pictures of 500 x 375 pixels are made, packed by `interp pack`, and
read by all: the shorter side to 256, a random crop of 224 x 224, mirrored at random, normalised to
float32 in batches of 32. A round has three epochs of each, in random order, of which the first is not
timed; medians are printed. mx.image decodes on one thread.
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import cv2
import mxnet as mx
import numpy as np

BATCH, SIZE, RESIZE, EPOCHS = 32, 224, 256, 3
MEAN, STD = (123.68, 116.28, 103.53), (58.395, 57.12, 57.375)


def draw(seed):
    """Smooth colours, edges and some grain, so that files have the size of photographs."""
    rng = np.random.RandomState(seed)
    picture = cv2.resize(rng.randint(0, 256, (6, 8, 3)).astype(np.uint8), (500, 375),
                         interpolation=cv2.INTER_CUBIC).astype(np.float32)
    for _ in range(12):
        corner = tuple(int(v) for v in rng.randint(0, 370, 2))
        cv2.circle(picture, corner, int(rng.randint(5, 80)), rng.randint(0, 256, 3).tolist(), -1)
    grain = cv2.GaussianBlur(rng.normal(0, 25, picture.shape).astype(np.float32), (3, 3), 0)
    return np.clip(picture + grain, 0, 255).astype(np.uint8)


def make_records(folder, count, interp):
    for i in range(count):
        os.makedirs(f"{folder}/pictures/{i % 10}", exist_ok=True)
        cv2.imwrite(f"{folder}/pictures/{i % 10}/{i}.jpg", draw(i), [cv2.IMWRITE_JPEG_QUALITY, 90])
    subprocess.run([interp, "pack", f"{folder}/pictures", "-o", f"{folder}/train.rec", "--shuffle"],
                   check=True, stdout=subprocess.DEVNULL)
    return f"{folder}/train.rec"


def record_iter(path, threads):
    return mx.io.ImageRecordIter(
        path_imgrec=path, path_imgidx=path[:-3] + "idx", data_shape=(3, SIZE, SIZE), batch_size=BATCH,
        shuffle=True, resize=RESIZE, rand_crop=True, rand_mirror=True, preprocess_threads=threads,
        mean_r=MEAN[0], mean_g=MEAN[1], mean_b=MEAN[2], std_r=STD[0], std_g=STD[1], std_b=STD[2])


def image_iter(path):
    return mx.image.ImageIter(
        BATCH, (3, SIZE, SIZE), path_imgrec=path, path_imgidx=path[:-3] + "idx", shuffle=True,
        aug_list=mx.image.CreateAugmenter((3, SIZE, SIZE), resize=RESIZE, rand_crop=True, rand_mirror=True,
                                          mean=np.array(MEAN), std=np.array(STD)))


def samples_a_second(iterator, epochs):
    """Of all epochs but the first: while the others had their turn, batches of it were made ahead."""
    count, start = 0, 0.0
    for epoch in range(epochs):
        if epoch == 1:
            count, start = 0, time.perf_counter()
        for batch in iterator:
            batch.data[0].wait_to_read()
            count += BATCH - batch.pad
        iterator.reset()
    return count / (time.perf_counter() - start)


def ours(bench, path, threads, epochs):
    done = subprocess.run([bench, path, str(threads), str(BATCH), str(SIZE), str(RESIZE), str(epochs)],
                          check=True, capture_output=True, text=True)
    return statistics.harmonic_mean([float(rate) for rate in done.stdout.split()[1:]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    flags = parser.parse_args()
    bench = os.path.join(flags.build, "tests", "image_input_bench")
    with tempfile.TemporaryDirectory() as folder:
        path = make_records(folder, flags.pictures, os.path.join(flags.build, "interp"))
        size = os.path.getsize(path) / flags.pictures / 1024
        print(f"{flags.pictures} JPEGs of {size:.0f} KiB, {flags.threads} threads, {flags.rounds} rounds")
        fast, slow = record_iter(path, flags.threads), image_iter(path)
        sides = {"interp": lambda: ours(bench, path, flags.threads, EPOCHS),
                 "ImageRecordIter": lambda: samples_a_second(fast, EPOCHS),
                 "mx.image": lambda: samples_a_second(slow, EPOCHS)}
        rates = {name: [] for name in sides}
        for _ in range(flags.rounds):
            for name in random.sample(sorted(sides), len(sides)):
                rates[name].append(sides[name]())
    for name, values in rates.items():
        print(f"{name:16} {statistics.median(values):8.1f} samples/s, from {min(values):.1f} to "
              f"{max(values):.1f}")


if __name__ == "__main__":
    sys.exit(main())
