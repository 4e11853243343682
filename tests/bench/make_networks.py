#!/usr/bin/env python3
"""Networks of today's kinds, as paddle.jit.save writes them, for compare_models.py.

  pip install paddlepaddle==2.6.2 "numpy<2"

  make_networks.py FOLDER [NAME ...]

Writes NAME.pdmodel and NAME.pdiparams, with random parameters, and prints what compare_models.py takes:

  compare_models.py FOLDER $(make_networks.py FOLDER) --peers ort openvino --threads 1
"""
import os
import sys
import numpy

import paddle
import paddle.nn as nn
import paddle.nn.functional as F
import paddle.vision.models as models
from paddle.nn.utils import weight_norm


def conv_block(inputs, outputs, kernel=3, stride=1, dilation=1, groups=1):
    return nn.Sequential(nn.Conv2D(inputs, outputs, kernel, stride, dilation * (kernel // 2), dilation, groups,
                                   bias_attr=False), nn.BatchNorm2D(outputs), nn.ReLU())


class VisionTransformer(nn.Layer):
    def __init__(self, width=192, layers=6, heads=3):
        super().__init__()
        self.patches = nn.Conv2D(3, width, 16, 16)
        self.token = self.create_parameter([1, 1, width])
        self.positions = self.create_parameter([1, 197, width])
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", normalize_before=True)
        self.encoder, self.norm, self.head = nn.TransformerEncoder(layer, layers), nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose([0, 2, 1])
        x = paddle.concat([self.token.expand([x.shape[0], -1, -1]), x], 1) + self.positions
        return self.head(self.norm(self.encoder(x))[:, 0])


class Bert(nn.Layer):
    def __init__(self, width=256, layers=4, heads=4):
        super().__init__()
        self.words, self.positions, self.norm = nn.Embedding(1000, width), nn.Embedding(512, width), nn.LayerNorm(width)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu"), layers)
        self.pooler, self.head = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.positions(paddle.arange(ids.shape[1]).unsqueeze(0)))
        mask = (ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        return self.head(paddle.tanh(self.pooler(self.encoder(x, mask)[:, 0])))


class RmsNorm(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.weight = self.create_parameter([width], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, x):
        return x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class DecoderLayer(nn.Layer):
    """Norms, positions, mask and activation in pieces, as code of language models writes them."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.depth = heads, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def turned(self, x, cos, sin):
        half = self.depth // 2
        return x * cos + paddle.concat([-x[:, :, :, half:], x[:, :, :, :half]], -1) * sin

    def attention(self, x, cos, sin, seen):
        n = x.shape[1]
        q, k, v = [t.reshape([-1, n, self.heads, self.depth]).transpose([0, 2, 1, 3])
                   for t in paddle.split(self.qkv(x), 3, -1)]
        scores = paddle.matmul(self.turned(q, cos, sin), self.turned(k, cos, sin), transpose_y=True)
        scores = paddle.where(seen, scores / self.depth**0.5, paddle.full([1], -1e4))
        return self.out(paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3]).reshape([-1, n, x.shape[2]]))

    def forward(self, x, cos, sin, seen):
        x = x + self.attention(self.norm1(x), cos, sin, seen)
        y = self.up(self.norm2(x))
        y = 0.5 * y * (1 + paddle.tanh((2 / numpy.pi) ** 0.5 * (y + 0.044715 * paddle.pow(y, 3))))
        return x + self.down(y)


class LanguageModel(nn.Layer):
    def __init__(self, width=256, layers=4, heads=4, words=128):
        super().__init__()
        self.words, self.norm, self.head = nn.Embedding(1000, width), RmsNorm(width), nn.Linear(width, 1000)
        self.layers = nn.LayerList([DecoderLayer(width, heads) for _ in range(layers)])
        depth = width // heads
        angles = numpy.outer(numpy.arange(words), 1e4 ** (-numpy.arange(0, depth, 2) / depth))
        angles = numpy.concatenate([angles, angles], -1).astype("float32")
        self.register_buffer("cos", paddle.to_tensor(numpy.cos(angles)))
        self.register_buffer("sin", paddle.to_tensor(numpy.sin(angles)))
        self.register_buffer("seen", paddle.to_tensor(numpy.tril(numpy.ones([1, 1, words, words], bool))))

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, self.seen)
        return self.head(self.norm(x)[:, -1])


class UNet(nn.Layer):
    def __init__(self, width=16):
        super().__init__()

        def block(inputs, outputs):
            layers = []
            for channels in (inputs, outputs):
                layers += [nn.Conv2D(channels, outputs, 3, padding=1), nn.BatchNorm2D(outputs), nn.ReLU()]
            return nn.Sequential(*layers)

        widths = [width << i for i in range(4)]
        self.down = nn.LayerList([block(i, o) for i, o in zip([3] + widths, widths)])
        self.up = nn.LayerList([nn.Conv2DTranspose(2 * w, w, 2, 2) for w in widths[:3]])
        self.merge = nn.LayerList([block(2 * w, w) for w in widths[:3]])
        self.head = nn.Conv2D(width, 2, 1)

    def forward(self, x):
        skips = []
        for i, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for i in (2, 1, 0):
            x = self.merge[i](paddle.concat([self.up[i](x), skips[i]], 1))
        return F.softmax(self.head(x), 1)


class EfficientNet(nn.Layer):
    class Block(nn.Layer):
        def __init__(self, inputs, outputs, kernel, stride):
            super().__init__()
            wide, narrow = 6 * inputs, max(1, inputs // 4)
            self.expand, self.norm1 = nn.Conv2D(inputs, wide, 1, bias_attr=False), nn.BatchNorm2D(wide)
            self.depthwise = nn.Conv2D(wide, wide, kernel, stride, kernel // 2, groups=wide, bias_attr=False)
            self.norm2, self.squeeze, self.excite = nn.BatchNorm2D(wide), nn.Conv2D(wide, narrow, 1), nn.Conv2D(narrow, wide, 1)
            self.project, self.norm3 = nn.Conv2D(wide, outputs, 1, bias_attr=False), nn.BatchNorm2D(outputs)
            self.adds = stride == 1 and inputs == outputs

        def forward(self, x):
            y = F.silu(self.norm2(self.depthwise(F.silu(self.norm1(self.expand(x))))))
            y = y * F.sigmoid(self.excite(F.silu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
            y = self.norm3(self.project(y))
            return x + y if self.adds else y

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2D(3, 16, 3, 2, 1, bias_attr=False), nn.BatchNorm2D(16), nn.Silu())
        blocks, inputs = [], 16
        for outputs, kernel, stride in [(24, 3, 2), (24, 3, 1), (40, 5, 2), (40, 5, 1), (80, 3, 2), (80, 3, 1),
                                        (112, 5, 1), (112, 5, 1), (192, 5, 2), (192, 5, 1), (320, 3, 1)]:
            blocks.append(self.Block(inputs, outputs, kernel, stride))
            inputs = outputs
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(320, 1000)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class Tagger(nn.Layer):
    def __init__(self, cell, width=128):
        super().__init__()
        self.words, self.layers = nn.Embedding(1000, width), cell(width, width, 2, direction="bidirect")
        self.head = nn.Linear(2 * width, 20)

    def forward(self, ids):
        return F.softmax(self.head(self.layers(self.words(ids))[0]))


class Mixer(nn.Layer):
    def __init__(self, width=192, layers=6):
        super().__init__()
        self.patches, self.head = nn.Conv2D(3, width, 16, 16), nn.Linear(width, 100)
        self.layers = nn.LayerList([nn.LayerList([
            nn.LayerNorm(width), nn.Linear(196, 96), nn.Linear(96, 196),
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]) for _ in range(layers)])

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose([0, 2, 1])
        for norm1, a, b, norm2, c, d in self.layers:
            x = x + b(F.gelu(a(norm1(x).transpose([0, 2, 1])))).transpose([0, 2, 1])
            x = x + d(F.gelu(c(norm2(x))))
        return self.head(x.mean(1))


class WindowTransformer(nn.Layer):
    """Attention within windows, those of every other block shifted, as in Swin."""
    class Block(nn.Layer):
        def __init__(self, size, width, heads, shift, window=7):
            super().__init__()
            self.size, self.width, self.heads, self.shift, self.window = size, width, heads, shift, window
            self.norms = nn.LayerList([nn.LayerNorm(width) for _ in range(2)])
            self.project, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            pixels = window * window
            self.places = self.create_parameter([1, heads, pixels, pixels])
            if shift:
                parts = numpy.zeros([1, size, size, 1], "float32")
                edges = [slice(0, -window), slice(-window, -shift), slice(-shift, None)]
                for i, rows in enumerate(edges):
                    for j, columns in enumerate(edges):
                        parts[:, rows, columns] = 3 * i + j
                parts = self.cut(paddle.to_tensor(parts)).reshape([-1, pixels])
                apart = (parts.unsqueeze(1) != parts.unsqueeze(2)).astype("float32") * -100
                self.register_buffer("mask", apart.reshape([1, -1, 1, pixels, pixels]))

        def cut(self, x):
            count, channels = self.size // self.window, x.shape[-1]
            x = x.reshape([-1, count, self.window, count, self.window, channels])
            return x.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, self.window * self.window, channels])

        def attend(self, x):
            pixels, windows = self.window * self.window, (self.size // self.window) ** 2
            qkv = self.project(x).reshape([-1, pixels, 3, self.heads, self.width // self.heads])
            q, k, v = qkv.transpose([2, 0, 3, 1, 4])
            scores = paddle.matmul(q * (self.width // self.heads) ** -0.5, k, transpose_y=True) + self.places
            if self.shift:
                scores = scores.reshape([-1, windows, self.heads, pixels, pixels]) + self.mask
                scores = scores.reshape([-1, self.heads, pixels, pixels])
            x = paddle.matmul(F.softmax(scores), v)
            return self.join(x.transpose([0, 2, 1, 3]).reshape([-1, pixels, self.width]))

        def forward(self, x):
            size, count = self.size, self.size // self.window
            y = self.norms[0](x).reshape([-1, size, size, self.width])
            if self.shift:
                y = paddle.roll(y, [-self.shift, -self.shift], [1, 2])
            y = self.attend(self.cut(y)).reshape([-1, count, count, self.window, self.window, self.width])
            y = y.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, size, size, self.width])
            if self.shift:
                y = paddle.roll(y, [self.shift, self.shift], [1, 2])
            x = x + y.reshape([-1, size * size, self.width])
            return x + self.mlp(self.norms[1](x))

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2D(3, 64, 4, stride=4)
        self.first = nn.LayerList([self.Block(56, 64, 2, shift) for shift in (0, 3)])
        self.merge = nn.Conv2D(64, 128, 2, stride=2)
        self.second = nn.LayerList([self.Block(28, 128, 4, shift) for shift in (0, 3, 0, 3)])
        self.last = nn.Linear(128, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose([0, 2, 1])
        for block in self.first:
            x = block(x)
        x = self.merge(x.transpose([0, 2, 1]).reshape([-1, 64, 56, 56])).flatten(2).transpose([0, 2, 1])
        for block in self.second:
            x = block(x)
        return self.last(x.mean(1))


class PyramidTransformer(nn.Layer):
    """Attention over the pixels of images that convolutions make smaller, as in PVTv2 and SegFormer."""

    class Block(nn.Layer):
        def __init__(self, width, heads, shrink):
            super().__init__()
            self.heads, self.norm1, self.norm2, self.norm3 = heads, *[nn.LayerNorm(width) for _ in range(3)]
            self.query, self.key_value, self.project = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
            self.shrink = nn.Conv2D(width, width, shrink, shrink) if shrink > 1 else None
            self.grow, self.reduce = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.depthwise = nn.Conv2D(4 * width, 4 * width, 3, 1, 1, groups=4 * width)

        def split(self, x, count):
            batch, pixels, width = x.shape
            return x.reshape([batch, pixels, count * self.heads, width // count // self.heads]).transpose([0, 2, 1, 3])

        def forward(self, x, height, width):
            batch, _, channels = x.shape
            y = self.norm1(x)
            query, small = self.split(self.query(y), 1), y
            if self.shrink is not None:
                image = y.transpose([0, 2, 1]).reshape([batch, channels, height, width])
                small = self.norm2(self.shrink(image).flatten(2).transpose([0, 2, 1]))
            key, value = self.split(self.key_value(small), 2).split(2, 1)
            scores = F.softmax(paddle.matmul(query, key, transpose_y=True) * key.shape[-1]**-0.5)
            x = x + self.project(paddle.matmul(scores, value).transpose([0, 2, 1, 3]).reshape([batch, -1, channels]))
            y = self.grow(self.norm3(x)).transpose([0, 2, 1]).reshape([batch, 4 * channels, height, width])
            return x + self.reduce(F.gelu(self.depthwise(y).flatten(2).transpose([0, 2, 1])))

    def __init__(self):
        super().__init__()
        widths, heads, shrinks = [32, 64, 160], [1, 2, 5], [8, 4, 1]
        self.patches = nn.LayerList([nn.Conv2D(i, o, 7 if i == 3 else 3, 4 if i == 3 else 2, 3 if i == 3 else 1)
                                     for i, o in zip([3] + widths, widths)])
        self.stages = nn.LayerList([nn.LayerList([self.Block(*shape), self.Block(*shape)])
                                    for shape in zip(widths, heads, shrinks)])
        self.head = nn.Linear(widths[-1], 1000)

    def forward(self, x):
        size = 56
        for patches, blocks in zip(self.patches, self.stages):
            x = patches(x)
            batch, channels = x.shape[:2]
            x = x.flatten(2).transpose([0, 2, 1])
            for block in blocks:
                x = block(x, size, size)
            x = x.transpose([0, 2, 1]).reshape([batch, channels, size, size])
            size //= 2
        return self.head(x.mean([2, 3]))


class StyleTransfer(nn.Layer):
    def __init__(self):
        super().__init__()
        shapes = [(3, 16, 9, 1), (16, 32, 3, 2), (32, 64, 3, 2)] + [(64, 64, 3, 1)] * 4
        self.convs = nn.LayerList([nn.Conv2D(*shape) for shape in shapes])
        self.norms = nn.LayerList([nn.InstanceNorm2D(shape[1]) for shape in shapes])
        self.head = nn.Conv2D(64, 3, 9)

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(F.pad(x, [conv._kernel_size[0] // 2] * 4, mode="reflect"))))
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        return F.tanh(self.head(F.pad(x, [4] * 4, mode="reflect")))


class DeepLab(nn.Layer):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(conv_block(3, 32, stride=2), conv_block(32, 64, stride=2),
                                      conv_block(64, 128, stride=2), conv_block(128, 128, dilation=2))
        self.branches = nn.LayerList([conv_block(128, 64, 1)] + [conv_block(128, 64, dilation=d) for d in (6, 12, 18)])
        self.pooled, self.project = conv_block(128, 64, 1), conv_block(320, 64, 1)
        self.depthwise, self.head = conv_block(64, 64, groups=64), nn.Conv2D(64, 21, 1)

    def forward(self, x):
        x = self.backbone(x)
        pooled = F.interpolate(self.pooled(F.adaptive_avg_pool2d(x, 1)), size=[32, 32], mode="bilinear", align_corners=True)
        x = self.project(paddle.concat([branch(x) for branch in self.branches] + [pooled], 1))
        return paddle.argmax(F.interpolate(self.head(self.depthwise(x)), size=[256, 256], mode="bilinear"), 1)


class DeepFM(nn.Layer):
    def __init__(self):
        super().__init__()
        self.factors, self.weights = nn.Embedding(1000, 16), nn.Embedding(1000, 1)
        self.deep = nn.Sequential(nn.Linear(26 * 16, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 1))

    def forward(self, ids):
        factors = self.factors(ids)
        total = factors.sum(1)
        pairs = 0.5 * (total * total - (factors * factors).sum(1)).sum(1, keepdim=True)
        return F.sigmoid(self.weights(ids).sum(1) + pairs + self.deep(factors.flatten(1)))


class Vocoder(nn.Layer):
    """Spectrogram to wave, as HiFi-GAN does it: transposed convolutions and residual blocks, with weight norm."""

    class Block(nn.Layer):
        def __init__(self, width, kernel):
            super().__init__()
            def conv(dilation):
                return weight_norm(nn.Conv1D(width, width, kernel, padding=dilation * (kernel // 2), dilation=dilation))
            self.pairs = nn.LayerList([nn.LayerList([conv(d), conv(1)]) for d in (1, 3, 5)])

        def forward(self, x):
            for first, second in self.pairs:
                x = x + second(F.leaky_relu(first(F.leaky_relu(x, 0.1)), 0.1))
            return x

    def __init__(self, width=256):
        super().__init__()
        self.first = weight_norm(nn.Conv1D(80, width, 7, padding=3))
        self.ups, self.blocks = nn.LayerList(), nn.LayerList()
        for factor in (8, 8, 2, 2):
            up = nn.Conv1DTranspose(width, width // 2, 2 * factor, stride=factor, padding=factor // 2)
            width //= 2
            self.ups.append(weight_norm(up))
            self.blocks.append(nn.LayerList([Vocoder.Block(width, kernel) for kernel in (3, 7, 11)]))
        self.last = weight_norm(nn.Conv1D(width, 1, 7, padding=3))

    def forward(self, x):
        x = self.first(x)
        for up, blocks in zip(self.ups, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            x = (blocks[0](x) + blocks[1](x) + blocks[2](x)) / 3
        return paddle.tanh(self.last(F.leaky_relu(x)))


class MixedKernels(nn.Layer):
    """Blocks as of MixNet: the channels are cut into parts, each with a convolution of its own."""

    class Parts(nn.Layer):
        def __init__(self, inputs, outputs, kernels, depthwise=False):
            super().__init__()
            count = len(kernels)
            self.convs = nn.LayerList([nn.Conv2D(inputs // count, outputs // count, kernel, padding=kernel // 2,
                                                 groups=inputs // count if depthwise else 1, bias_attr=False)
                                       for kernel in kernels])
            self.norm = nn.BatchNorm2D(outputs)

        def forward(self, x):
            parts = paddle.split(x, len(self.convs), axis=1)
            return self.norm(paddle.concat([conv(part) for conv, part in zip(self.convs, parts)], axis=1))

    def __init__(self, width=48, layers=6):
        super().__init__()
        Parts = MixedKernels.Parts
        self.stem = nn.Sequential(conv_block(3, 24, stride=2), conv_block(24, width, stride=2))
        self.blocks = nn.LayerList([nn.Sequential(Parts(width, 4 * width, (1, 1)), nn.Swish(),
                                                  Parts(4 * width, 4 * width, (3, 5, 7), depthwise=True), nn.Swish(),
                                                  Parts(4 * width, width, (1, 1))) for _ in range(layers)])
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean([2, 3]))


IMAGE = ("x", [1, 3, 224, 224])
# What makes it, its input and the shape of that.
NETWORKS = {
    "alexnet": (models.alexnet, *IMAGE),
    "densenet121": (models.densenet121, *IMAGE),
    "googlenet": (models.googlenet, *IMAGE),
    "inception_v3": (models.inception_v3, "x", [1, 3, 299, 299]),
    "mobilenet_v1": (models.mobilenet_v1, *IMAGE),
    "mobilenet_v2": (models.mobilenet_v2, *IMAGE),
    "mobilenet_v3": (models.mobilenet_v3_large, *IMAGE),
    "resnet18": (models.resnet18, *IMAGE),
    "resnet50": (models.resnet50, *IMAGE),
    "resnext50": (models.resnext50_32x4d, *IMAGE),
    "shufflenet_v2": (models.shufflenet_v2_x1_0, *IMAGE),
    "squeezenet": (models.squeezenet1_1, *IMAGE),
    "vgg11": (models.vgg11, *IMAGE),
    "efficientnet": (EfficientNet, *IMAGE),
    "vision_transformer": (VisionTransformer, *IMAGE),
    "mixer": (Mixer, *IMAGE),
    "pyramid_transformer": (PyramidTransformer, *IMAGE),
    "window_transformer": (WindowTransformer, *IMAGE),
    "bert": (Bert, "ids", [1, 128]),
    "language_model": (LanguageModel, "ids", [1, 128]),
    "lstm_tagger": (lambda: Tagger(nn.LSTM), "ids", [1, 64]),
    "gru_tagger": (lambda: Tagger(nn.GRU), "ids", [1, 64]),
    "unet": (UNet, "x", [1, 3, 128, 128]),
    "deeplab": (DeepLab, "x", [1, 3, 256, 256]),
    "style_transfer": (StyleTransfer, "x", [1, 3, 128, 128]),
    "deepfm": (DeepFM, "ids", [32, 26]),
    "vocoder": (Vocoder, "x", [1, 80, 32]),
    "mixed_kernels": (MixedKernels, "x", [1, 3, 160, 160]),
}


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(NETWORKS)
    for name in names:
        make, feed, shape = NETWORKS[name]
        path = os.path.join(folder, name)
        if not os.path.exists(path + ".pdmodel"):
            paddle.seed(1)
            network = make()
            network.eval()
            dtype = "int64" if feed == "ids" else "float32"
            spec = paddle.static.InputSpec([-1] + shape[1:], dtype, feed)
            paddle.jit.save(network, path, input_spec=[spec])
        print(f"--shape {name}:{feed}={'x'.join(map(str, shape))}")


if __name__ == "__main__":
    main()
