#!/usr/bin/env python3
"""Training steps of five networks in what a user would pick instead of interp; compare_training.py runs it.

  train_peers.py PEER NET [--threads 1] [--steps 30] [--save DIR]
    PEER  paddle (2.6.2, static program on CPU) | jax (XLA on CPU) | torch (eager) | torch_cl (channels-last)
    NET   mlp        784-512-512-10, Adam, batch 64
          lenet      conv 20@5, pool, conv 50@5, pool, 500, 10, Momentum, batch 64 of 1x28x28
          resnet8    stem 16, blocks 16, 32/2, 64/2 with batch norm, Momentum, batch 64 of 3x32x32
          lstm       embedding 1000x64, LSTM 128, last step, 10, Adam, batch 64 of 32 words
          attention  embedding 1000x128, 2 pre-norm encoder layers (4 heads, 512), 1000, Adam, batch 16 of 64 words
--save (paddle) writes NET.main.pdmodel, NET.startup.pdmodel and NET.data.npz, the program that was timed, for others to run.
Prints one JSON line; times in ms. Environments of their own: paddlepaddle==2.6.2 "numpy<2"; jax optax; torch.
"""

import argparse, json, os, time

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("peer")
ap.add_argument("net")
ap.add_argument("--threads", type=int, default=1)
ap.add_argument("--steps", type=int, default=30)
ap.add_argument("--save")
a = ap.parse_args()
os.environ["OMP_NUM_THREADS"] = str(a.threads)
os.environ["GLOG_minloglevel"] = "3"
os.environ["XLA_FLAGS"] = (
    f"--xla_cpu_multi_thread_eigen={'true' if a.threads > 1 else 'false'} intra_op_parallelism_threads={a.threads}"
)
import numpy as np  # noqa: E402

SHAPE = {
    "mlp": (64, 784),
    "lenet": (64, 1, 28, 28),
    "resnet8": (64, 3, 32, 32),
    "lstm": (64, 32),
    "attention": (16, 64),
}[a.net]
WORDS = a.net in ("lstm", "attention")
rng = np.random.default_rng(0)
X = rng.integers(0, 1000, SHAPE) if WORDS else rng.standard_normal(SHAPE).astype("float32")
Y = rng.integers(0, 1000, SHAPE + (1,)) if a.net == "attention" else rng.integers(0, 10, (SHAPE[0], 1))
BLOCKS = ((16, 1), (32, 2), (64, 2))


def paddle_step():
    import paddle

    paddle.enable_static()
    paddle.seed(1)
    main, start, nn, F = paddle.static.Program(), paddle.static.Program(), paddle.static.nn, paddle.nn.functional
    with paddle.static.program_guard(main, start):
        x = paddle.static.data("x", [-1, *SHAPE[1:]], "int64" if WORDS else "float32")
        y = paddle.static.data("y", [-1, *Y.shape[1:]], "int64")
        h = x
        if a.net == "mlp":
            for _ in range(2):
                h = nn.fc(h, 512, activation="relu")
        elif a.net == "lenet":
            h = F.max_pool2d(nn.conv2d(h, 20, 5, act="relu"), 2, 2)
            h = F.max_pool2d(nn.conv2d(h, 50, 5, act="relu"), 2, 2)
            h = nn.fc(paddle.flatten(h, 1), 500, activation="relu")
        elif a.net == "resnet8":
            conv = lambda h, c, s=1, act="relu": nn.batch_norm(
                nn.conv2d(h, c, 3, stride=s, padding=1, bias_attr=False), act=act
            )
            h = conv(h, 16)
            for c, s in BLOCKS:
                b = conv(conv(h, c, s), c, 1, None)
                h = F.relu(b + (h if s == 1 else nn.conv2d(h, c, 1, stride=s, bias_attr=False)))
            h = paddle.flatten(F.adaptive_avg_pool2d(h, 1), 1)
        elif a.net == "lstm":
            h = paddle.nn.LSTM(64, 128)(nn.embedding(h, [1000, 64]))[0][:, -1]
        else:
            h = nn.embedding(h, [1000, 128])
            for _ in range(2):
                h = paddle.nn.TransformerEncoderLayer(
                    128, 4, 512, dropout=0.0, activation="gelu", normalize_before=True
                )(h)
        out = nn.fc(h, 1000 if a.net == "attention" else 10, num_flatten_dims=2 if a.net == "attention" else 1)
        loss = paddle.mean(F.softmax_with_cross_entropy(out, y))
        (
            paddle.optimizer.Adam(1e-3) if a.net in ("mlp", "lstm", "attention") else paddle.optimizer.Momentum(0.01)
        ).minimize(loss)
    if a.save:
        for n, p in (("main", main), ("startup", start)):
            open(f"{a.save}/{a.net}.{n}.pdmodel", "wb").write(p.desc.serialize_to_string())
        np.savez(f"{a.save}/{a.net}.data.npz", x=X, y=Y)
        print("loss", loss.name)
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(start)
    return lambda: float(np.asarray(exe.run(main, feed={"x": X, "y": Y}, fetch_list=[loss])[0]).reshape(-1)[0])


def torch_step():
    import torch
    from torch import nn

    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    cl = a.peer == "torch_cl"

    class Block(nn.Module):
        def __init__(s, i, c, st):
            super().__init__()
            s.b = nn.Sequential(
                nn.Conv2d(i, c, 3, st, 1, bias=False),
                nn.BatchNorm2d(c),
                nn.ReLU(),
                nn.Conv2d(c, c, 3, 1, 1, bias=False),
                nn.BatchNorm2d(c),
            )
            s.s = nn.Identity() if st == 1 else nn.Conv2d(i, c, 1, st, bias=False)

        def forward(s, x):
            return torch.relu(s.b(x) + s.s(x))

    class Last(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Embedding(1000, 64)
            s.l = nn.LSTM(64, 128, batch_first=True)
            s.f = nn.Linear(128, 10)

        def forward(s, x):
            return s.f(s.l(s.e(x))[0][:, -1])

    relu, lin = nn.ReLU, nn.Linear
    m = {
        "mlp": lambda: nn.Sequential(lin(784, 512), relu(), lin(512, 512), relu(), lin(512, 10)),
        "lenet": lambda: nn.Sequential(
            nn.Conv2d(1, 20, 5),
            relu(),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5),
            relu(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            lin(800, 500),
            relu(),
            lin(500, 10),
        ),
        "resnet8": lambda: nn.Sequential(
            nn.Conv2d(3, 16, 3, 1, 1, bias=False),
            nn.BatchNorm2d(16),
            relu(),
            Block(16, 16, 1),
            Block(16, 32, 2),
            Block(32, 64, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            lin(64, 10),
        ),
        "lstm": Last,
        "attention": lambda: nn.Sequential(
            nn.Embedding(1000, 128),
            *[
                nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
                for _ in range(2)
            ],
            lin(128, 1000),
        ),
    }[a.net]()
    x, y = torch.from_numpy(X), torch.from_numpy(Y.reshape(-1))
    loss_of = nn.CrossEntropyLoss()
    if cl and x.dim() == 4:
        m = m.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    o = (
        torch.optim.Adam(m.parameters(), 1e-3)
        if a.net in ("mlp", "lstm", "attention")
        else torch.optim.SGD(m.parameters(), 0.01, 0.9)
    )

    def step():
        o.zero_grad(set_to_none=True)
        out = m(x)
        loss = loss_of(out.reshape(-1, out.shape[-1]), y)
        loss.backward()
        o.step()
        return loss.item()

    return step


def jax_step():
    import jax, jax.numpy as jnp, optax
    from jax import lax

    P = {}
    key = jax.random.PRNGKey(0)

    def w(n, *s, scale=None):
        nonlocal key
        key, k = jax.random.split(key)
        P[n] = jax.random.normal(k, s) * (scale or np.sqrt(2 / np.prod(s[:-1])))

    def fc(n, i, o):
        w(n, i, o)
        P[n + "b"] = jnp.zeros(o)

    def norm(n, c):
        P[n + "g"], P[n + "e"] = jnp.ones(c), jnp.zeros(c)

    conv = lambda x, k, s=1, pad="VALID": lax.conv_general_dilated(
        x, k, (s, s), pad, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def bn(p, n, h):
        m, v = h.mean((0, 1, 2)), h.var((0, 1, 2))
        return (h - m) * lax.rsqrt(v + 1e-5) * p[n + "g"] + p[n + "e"]

    def ln(p, n, h):
        m, v = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
        return (h - m) * lax.rsqrt(v + 1e-5) * p[n + "g"] + p[n + "e"]

    lin = lambda p, n, h: h @ p[n] + p[n + "b"]
    relu, x = jax.nn.relu, X
    if a.net == "mlp":
        fc("0", 784, 512)
        fc("1", 512, 512)
        fc("2", 512, 10)
        net = lambda p, x: lin(p, "2", relu(lin(p, "1", relu(lin(p, "0", x)))))
    elif a.net == "lenet":
        w("a", 5, 5, 1, 20)
        w("b", 5, 5, 20, 50)
        P["ab"], P["bb"] = jnp.zeros(20), jnp.zeros(50)
        fc("1", 800, 500)
        fc("2", 500, 10)
        x = X.transpose(0, 2, 3, 1)
        net = lambda p, x: lin(
            p,
            "2",
            relu(
                lin(p, "1", pool(relu(conv(pool(relu(conv(x, p["a"]) + p["ab"])), p["b"]) + p["bb"])).reshape(64, -1))
            ),
        )
    elif a.net == "resnet8":
        x = X.transpose(0, 2, 3, 1)
        w("s", 3, 3, 3, 16)
        norm("s", 16)
        i = 16
        for j, (c, s) in enumerate(BLOCKS):
            w(f"{j}a", 3, 3, i, c)
            norm(f"{j}a", c)
            w(f"{j}b", 3, 3, c, c)
            norm(f"{j}b", c)
            if s > 1:
                w(f"{j}s", 1, 1, i, c)
            i = c
        fc("f", 64, 10)

        def net(p, x):
            h = relu(bn(p, "s", conv(x, p["s"], 1, "SAME")))
            for j, (c, s) in enumerate(BLOCKS):
                b = bn(p, f"{j}b", conv(relu(bn(p, f"{j}a", conv(h, p[f"{j}a"], s, "SAME"))), p[f"{j}b"], 1, "SAME"))
                h = relu(b + (h if s == 1 else conv(h, p[f"{j}s"], s, "SAME")))
            return lin(p, "f", h.mean((1, 2)))

    elif a.net == "lstm":
        w("e", 1000, 64, scale=1.0)
        w("i", 64, 512)
        w("h", 128, 512)
        P["hb"] = jnp.zeros(512)
        fc("f", 128, 10)

        def net(p, x):
            xs = jnp.swapaxes(p["e"][x] @ p["i"] + p["hb"], 0, 1)

            def cell(s, g):
                h, c = s
                i, f, u, o = jnp.split(g + h @ p["h"], 4, -1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), None

            z = jnp.zeros((64, 128))
            return lin(p, "f", lax.scan(cell, (z, z), xs)[0][0])

    else:
        w("e", 1000, 128, scale=1.0)
        fc("f", 128, 1000)
        for j in range(2):
            fc(f"{j}q", 128, 384)
            fc(f"{j}o", 128, 128)
            fc(f"{j}1", 128, 512)
            fc(f"{j}2", 512, 128)
            norm(f"{j}m", 128)
            norm(f"{j}n", 128)

        def net(p, x):
            h = p["e"][x]
            for j in range(2):
                q, k, v = jnp.split(
                    lin(p, f"{j}q", ln(p, f"{j}m", h)).reshape(16, 64, 3, 4, 32).transpose(2, 0, 3, 1, 4), 3
                )
                s = jax.nn.softmax(q[0] @ k[0].swapaxes(-1, -2) / np.sqrt(32))
                h = h + lin(p, f"{j}o", (s @ v[0]).swapaxes(1, 2).reshape(16, 64, 128))
                h = h + lin(p, f"{j}2", jax.nn.gelu(lin(p, f"{j}1", ln(p, f"{j}n", h)), approximate=False))
            return lin(p, "f", h)

    opt = optax.adam(1e-3) if a.net in ("mlp", "lstm", "attention") else optax.sgd(0.01, momentum=0.9)
    y = Y.reshape(-1)
    state = [P, opt.init(P)]

    def loss_of(p):
        out = net(p, x)
        return optax.softmax_cross_entropy_with_integer_labels(out.reshape(-1, out.shape[-1]), y).mean()

    import functools

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(p, s):
        l, g = jax.value_and_grad(loss_of)(p)
        u, s = opt.update(g, s, p)
        return optax.apply_updates(p, u), s, l

    def step():
        p, s, l = update(*state)
        state[:] = [p, s]
        return float(l)

    return step


step = {"paddle": paddle_step, "jax": jax_step}.get(a.peer, torch_step)()
t = time.perf_counter()
first_loss = step()
first = time.perf_counter() - t
times = []
for _ in range(a.steps):
    t = time.perf_counter()
    last = step()
    times.append(time.perf_counter() - t)
times.sort()
print(
    json.dumps(
        {
            "peer": a.peer,
            "net": a.net,
            "threads": a.threads,
            "first_ms": round(first * 1e3),
            "median_ms": round(times[len(times) // 2] * 1e3, 2),
            "min_ms": round(times[0] * 1e3, 2),
            "loss": [round(first_loss, 4), round(last, 4)],
        }
    )
)
