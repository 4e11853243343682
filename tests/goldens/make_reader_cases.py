#!/usr/bin/env python3
"""make_reader_cases.py - training programs that take their batches from readers, as Paddle builds and runs them.

    python make_reader_cases.py --out reader && ./pack.sh reader

Same needs as make_goldens.py, and the format of make_training_cases.py; reader.tar.xz beside this file is the
result. The steps of a case are PASSES passes over its samples, whose last batch is smaller: Paddle's `read` op ends
each with an EOFException. `feeds` are the batches that went through the queue.
"""
from fixed_hash_seed import fix_hash_seed

if __name__ == "__main__":
    fix_hash_seed()

import argparse
import os

import make_goldens as g
import numpy as np
import paddle
from paddle.base import core, reader

static, nn, F = paddle.static, paddle.static.nn, paddle.nn.functional
PASSES = 2
BATCH = 4
CASES = {}


def case(**loader):
    """Registers a builder of (samples of each variable, loss), which calls read(variable, ...) once; `loader` is for
    DataLoader.from_generator."""
    def register(fn):
        CASES[fn.__name__] = (fn, loader)
        return fn
    return register


def classifier(r, read):
    x, y = read(static.data("x", [-1, 4], "float32"), static.data("y", [-1, 1], "int64"))
    return [r.f((10, 4), -1, 1), r.i((10, 1), 0, 2)], paddle.mean(F.cross_entropy(nn.fc(x, 3), y))


@case(use_double_buffer=True)
def double_buffer(r, read):
    return classifier(r, read)


@case(use_double_buffer=False)
def no_double_buffer(r, read):
    return classifier(r, read)


@case(use_double_buffer=True, keep_order=False)
def reader_of_startup(r, read):
    """create_py_reader is an op of the startup program."""
    return classifier(r, read)


@case(use_double_buffer=True, drop_last=False)
def three_variables(r, read):
    """Pictures, labels and weights; `drop_last` of `read` is about devices, and changes nothing here."""
    x, y, w = read(static.data("x", [-1, 1, 6, 6], "float32"), static.data("y", [-1, 1], "int64"),
                   static.data("w", [-1, 1], "float32"))
    h = F.relu(nn.conv2d(x, 2, 3))
    losses = F.cross_entropy(nn.fc(h, 3), y, reduction="none")
    return ([r.f((9, 1, 6, 6), -1, 1), r.i((9, 1), 0, 2), r.f((9, 1), 0, 1)],
            paddle.mean(paddle.reshape(losses, [-1, 1]) * w))


@case(use_double_buffer=True)
def words_with_lod(r, read):
    """Each batch holds whole sequences, with a LoD."""
    ids, y = read(static.data("ids", [-1, 1], "int64", lod_level=1), static.data("y", [-1, 1], "float32"))
    e = nn.embedding(ids, [20, 3])
    p = nn.fc(nn.sequence_lod.sequence_pool(e, "sum"), 1)
    return [[r.i((n, 1), 0, 19) for n in (3, 1, 2, 4, 2)] * 2, r.f((10, 1), -1, 1)], \
        paddle.mean(F.square_error_cost(p, y))


def batches(samples):
    count = len(samples[0])
    for begin in range(0, count, BATCH):
        batch = []
        for values in samples:
            part = values[begin:begin + BATCH]
            if isinstance(values, list):
                batch.append((np.concatenate(part), np.cumsum([0] + [len(v) for v in part]).tolist()))
            else:
                batch.append((part, None))
        yield batch


def lod_tensor(array, lod):
    tensor = core.LoDTensor()
    tensor.set(array, core.CPUPlace())
    if lod is not None:
        tensor.set_lod([lod])
    return tensor


def run_passes(main, loader, samples, fetch):
    """The fetches of each step, until the reader ends, PASSES times."""
    loader.set_batch_generator(lambda: ([lod_tensor(*v) for v in b] for b in batches(samples)))
    for _ in range(PASSES):
        loader.start()
        try:
            while True:
                yield g.EXE.run(main, fetch_list=fetch)
        except core.EOFException:
            loader.reset()


class Folder:
    """Of one case."""

    def __init__(self, path):
        self.path = path
        os.makedirs(path, exist_ok=True)

    def save(self, kind, name, array):
        file = f"{kind}_{g.safe(name)}.npy"
        np.save(f"{self.path}/{file}", array)
        return file

    def write(self, file, data):
        with open(f"{self.path}/{file}", "wb") as f:
            f.write(data)


def make_case(out_dir, seed, name):
    build, loader_args = CASES[name]
    loader_args = dict(loader_args)
    g.reset_names()
    reader.keep_data_loader_order(loader_args.pop("keep_order", True))
    r = g.Rng(seed, "programs/" + name)
    main, startup, scope = static.Program(), static.Program(), core.Scope()
    main.random_seed = startup.random_seed = seed
    folder = Folder(f"{out_dir}/programs/{name}")
    with paddle.utils.unique_name.guard(), static.program_guard(main, startup), static.scope_guard(scope):
        variables, loaders = [], []

        def read(*of_batch):
            variables.extend(of_batch)
            loaders.append(reader.DataLoader.from_generator(feed_list=variables, capacity=2, iterable=False,
                                                            **loader_args))
            return of_batch

        samples, loss = build(r, read)
        folder.write("forward.pb", g.serialize(main))
        paddle.optimizer.SGD(0.2).minimize(loss)
        g.EXE.run(startup)
        tensors = core.VarDesc.VarType.LOD_TENSOR
        persist = sorted(v.name for v in main.list_vars() if v.persistable and v.type == tensors)
        value = lambda n: np.array(scope.find_var(n).get_tensor())  # noqa: E731
        doc = {"op": "programs", "case": name, "seed": seed, "notes": build.__doc__ or "", "rtol": 1e-5, "atol": 1e-6,
               "steps": [], "lod": {}, "feed_order": [v.name for v in variables], "fetch_order": [loss.name],
               "loss": loss.name, "optimizer": "sgd:learning_rate=0.2",
               "ops": sorted({op.type for op in main.global_block().ops}),
               "params": {n: {"init": folder.save("init", n, value(n)), "trainable": n != "learning_rate_0"}
                          for n in persist}}
        folder.write("main.pb", g.serialize(main))
        folder.write("startup.pb", g.serialize(startup))
        fed = list(batches(samples)) * PASSES
        for k, (batch, fetched) in enumerate(zip(fed, run_passes(main, loaders[0], samples, [loss]), strict=True)):
            step = {"feeds": {}, "fetches": {}, "set_vars": {}, "lod": {}}
            for var, (array, lod) in zip(variables, batch):
                step["feeds"][var.name] = folder.save(f"step{k}_in", var.name, array)
                if lod is not None:
                    step["lod"][var.name] = [lod]
            step["fetches"][loss.name] = folder.save(f"step{k}_out", loss.name, fetched[0])
            doc["steps"].append(step)
        for n in persist:
            doc["params"][n]["final"] = folder.save("final", n, value(n))
        g.write_json(f"{folder.path}/case.json", doc)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", required=True)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    for name in CASES:
        make_case(a.out, a.seed, name)
    print(f"{len(CASES)} programs in {a.out}")


if __name__ == "__main__":
    main()
