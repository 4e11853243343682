"""Programs of quantisation-aware training, made, trained for a few steps and saved by Paddle 2.6.2.

    python make_int8_programs.py --out int8

writes for each form of the quantising ops DIR/NAME/: model.pdmodel, model.pdiparams, in_x.npy and out_y.npy, which is
what Paddle computes (for `stored`, of the program before). The forms:

    fake     fake_quantize_dequantize_...: real values on a grid, both sides of a convolution
    frozen   after QuantizationFreezePass: whole numbers in float32, brought back behind the convolution
    stored   after ConvertToInt8Pass as well: weights of int8
    linear   quantize_linear and dequantize_linear ("onnx format")
    observed as PaddleSlim converts: ops that observe behind all others, and sums of values on grids

With --network mobilenet the network is MobileNetV1 of 224 x 224 pixels, for timing.
"""
import argparse
import os

import numpy as np
import paddle
from paddle import static
from paddle.base import core
from paddle.base.framework import IrGraph
from paddle.static import quantization as q
from paddle.static.quantization import quanter

import make_goldens as g

TYPES = {"weight_quantize_type": "channel_wise_abs_max", "activation_quantize_type": "moving_average_abs_max"}
OPS = ["conv2d", "depthwise_conv2d", "mul", "matmul_v2"]


def conv(x, channels, kernel, stride=1, groups=1, act="relu", dilation=1):
    x = static.nn.conv2d(x, channels, kernel, stride=stride, padding=dilation * (kernel - 1) // 2, groups=groups,
                         dilation=dilation, bias_attr=False)
    return static.nn.batch_norm(x, act=act)


def small(x):
    x = conv(x, 12, 3, stride=2)
    y = conv(x, 12, 3, groups=12)
    y = conv(y, 20, 1, act="leaky_relu")
    z = conv(y, 20, 3, groups=2, dilation=2, act=None)
    y = paddle.nn.functional.relu(paddle.add(y, z))
    y = conv(y, 24, 1, act="hard_swish")
    y = paddle.nn.functional.adaptive_avg_pool2d(y, 1)
    y = static.nn.fc(paddle.flatten(y, 1), 16, activation="relu")
    return static.nn.fc(y, 10)


def mobilenet(x):
    x = conv(x, 32, 3, stride=2)
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [
            (1024, 2), (1024, 1)]:
        x = conv(x, x.shape[1], 3, stride=stride, groups=x.shape[1])
        x = conv(x, channels, 1)
    x = paddle.nn.functional.adaptive_avg_pool2d(x, 1)
    return paddle.nn.Linear(1024, 1000)(paddle.flatten(x, 1))


def build(network, shape):
    """(main, startup, test program, output, loss)"""
    main, startup = static.Program(), static.Program()
    main.random_seed = startup.random_seed = 7
    paddle.seed(7)
    with static.program_guard(main, startup), paddle.utils.unique_name.guard():
        x = static.data("x", [-1, *shape], "float32")
        label = static.data("label", [-1, 1], "int64")
        y = network(x)
        loss = paddle.mean(paddle.nn.functional.cross_entropy(y, label))
        test = main.clone(for_test=True)
        paddle.optimizer.SGD(learning_rate=0.01).minimize(loss)
    return main, startup, test, y, loss


def graph_of(program, for_test):
    return IrGraph(core.Graph(program.desc), for_test=for_test)


def make(form, network, shape, batch, steps, folder):
    place, scope = paddle.CPUPlace(), static.Scope()
    with static.scope_guard(scope):
        main, startup, test, y, loss = build(network, shape)
        exe = static.Executor(place)
        exe.run(startup)
        train, infer = graph_of(main, False), graph_of(test, True)
        transform = q.QuantizationTransformPassV2 if form == "linear" else q.QuantizationTransformPass
        for graph in [train, infer]:
            transform(scope, place, quantizable_op_type=OPS, **TYPES).apply(graph)
        training = train.to_program()
        rate = next(op for op in training.global_block().ops if op.type == "sgd").input("LearningRate")[0]
        rng = np.random.default_rng(11)
        for step in range(steps):
            if step == steps - 1:  # scales of weights are those of the last step: nothing may move after it
                scope.var(rate).get_tensor().set(np.zeros(1, "float32"), place)
            feed = {"x": rng.standard_normal((batch, *shape)).astype("float32"),
                    "label": rng.integers(0, 10, (batch, 1))}
            exe.run(training, feed=feed, fetch_list=[loss.name])
        if form == "linear":
            q.QuantWeightPass(scope, place).apply(infer)
        elif form != "fake":
            q.QuantizationFreezePass(scope, place, quantizable_op_type=OPS,
                                     weight_quantize_type=TYPES["weight_quantize_type"]).apply(infer)
        x = rng.standard_normal((batch, *shape)).astype("float32")
        out = save_and_run(infer.to_program(), y.name, x, exe, folder)
        if form == "stored":  # Paddle itself has no kernel for what this makes
            q.ConvertToInt8Pass(scope, place).apply(infer)
            save(infer.to_program(), y.name, exe, folder)
        np.save(f"{folder}/in_x.npy", x)
        np.save(f"{folder}/out_y.npy", out)
        print(form, out.shape)


def make_observed(network, shape, batch, steps, folder):
    place, scope = paddle.CPUPlace(), static.Scope()
    config = {"onnx_format": True, "quantize_op_types": OPS + ["elementwise_add"], **TYPES}
    with static.scope_guard(scope):
        main, startup, test, y, loss = build(network, shape)
        exe = static.Executor(place)
        exe.run(startup)
        infer = quanter.quant_aware(test, place, config, scope=scope, for_test=True)
        training = quanter.quant_aware(main, place, config, scope=scope, return_program=True)
        rng = np.random.default_rng(11)
        for _ in range(steps):
            exe.run(training, feed={"x": rng.standard_normal((batch, *shape)).astype("float32"),
                                    "label": rng.integers(0, 10, (batch, 1))}, fetch_list=[loss.name])
        x = rng.standard_normal((batch, *shape)).astype("float32")
        out = save_and_run(quanter.convert(infer, place, config, scope=scope), y.name, x, exe, folder)
        np.save(f"{folder}/in_x.npy", x)
        np.save(f"{folder}/out_y.npy", out)
        print("observed", out.shape)


def save(program, y, exe, folder):
    block = program.global_block()
    os.makedirs(folder, exist_ok=True)
    static.save_inference_model(f"{folder}/model", [block.var("x")], [block.var(y)], exe, program=program)
    g.neutral_callstacks(f"{folder}/model.pdmodel")


def save_and_run(program, y, x, exe, folder):
    save(program, y, exe, folder)
    loaded, feeds, fetches = static.load_inference_model(f"{folder}/model", exe)
    return exe.run(loaded, feed={feeds[0]: x}, fetch_list=fetches)[0]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--out", required=True)
    ap.add_argument("--network", choices=["small", "mobilenet"], default="small")
    ap.add_argument("--forms", default="fake,frozen,stored,linear,observed")
    args = ap.parse_args()
    paddle.enable_static()
    large = args.network == "mobilenet"
    shape = (3, 224, 224) if large else (3, 20, 20)
    for form in args.forms.split(","):
        sizes = (1, 3) if large else (2, 8)
        made = (mobilenet if large else small, shape, *sizes, f"{args.out}/{form}")
        if form == "observed":
            make_observed(*made)
        else:
            make(form, *made)


if __name__ == "__main__":
    main()
