"""Writes network_gradients.json: losses and gradients that PyTorch gives for each network of the zoo.

    pip install -r golden/network_gradients.requirements.txt
    python golden/network_gradients.py

In double precision, from parameters and images that are single-precision numbers by a formula (`uniform` below, counting
through the network's parameters in Dosimeter's order). Of each layer's gradient, summed over two records, are kept the norm,
some entries, and its products with vectors of +1 and -1 that the same formula gives; of each record the loss and the norm of
its own gradient.
"""
import json
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

RECORDS, ENTRIES, PRODUCTS = 2, 6, 3
IMAGES, SIGNS = 0x80000000, 0x60000000  # where these count from


def mixed(start, count):
    """Wellons' lowbias32 of start, start + 1, ..."""
    x = np.arange(start, start + count, dtype=np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def uniform(start, count):
    """In [-1, 1), exact in single precision."""
    return (mixed(start, count) >> np.uint32(8)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)


def conv(channels, outputs, kernel, stride=1, pad=0, groups=1, bias=True):
    return nn.Conv2d(channels, outputs, kernel, stride, pad, groups=groups, bias=bias)


def lenet():
    return nn.Sequential(
        conv(1, 6, 5, pad=2), nn.Tanh(), nn.AvgPool2d(2), conv(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10))


def small_cnn():
    return nn.Sequential(
        conv(1, 16, 8, 2, 3), nn.Tanh(), nn.MaxPool2d(2, 1), conv(16, 32, 4, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Flatten(),
        nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10))


def cnn():
    layers, width = [], 3
    for channels in [32, 64, 128]:
        for _ in range(2):
            layers += [conv(width, channels, 3, pad=1), nn.Tanh()]
            width = channels
        layers.append(nn.AvgPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 128), nn.Tanh(), nn.Linear(128, 10))


def alexnet():
    pool = nn.MaxPool2d(3, 2)
    return nn.Sequential(
        conv(3, 64, 11, 4, 2), nn.ReLU(), pool, conv(64, 192, 5, pad=2), nn.ReLU(), pool, conv(192, 384, 3, pad=1), nn.ReLU(),
        conv(384, 256, 3, pad=1), nn.ReLU(), conv(256, 256, 3, pad=1), nn.ReLU(), pool, nn.Flatten(),
        nn.Linear(9216, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))


def vgg16(size, hidden, classes):
    layers, width = [], 3
    for channels, times in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
        for _ in range(times):
            layers += [conv(width, channels, 3, pad=1), nn.ReLU()]
            width = channels
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    width = 512 * (size // 32) ** 2
    for outputs in hidden:
        layers += [nn.Linear(width, outputs), nn.ReLU()]
        width = outputs
    return nn.Sequential(*layers, nn.Linear(width, classes))


def smooth(network):
    """With nothing that switches: hyperbolic tangents for rectifiers, means for largest numbers."""
    layers = [nn.Tanh() if isinstance(layer, nn.ReLU) else nn.AvgPool2d(2) if isinstance(layer, nn.MaxPool2d) else layer
              for layer in network]
    return nn.Sequential(*layers)


def mobilenet_v1():
    def block(channels, outputs, kernel, stride, groups):
        convolution = conv(channels, outputs, kernel, stride, kernel // 2, groups, bias=False)
        return [convolution, nn.GroupNorm(max(1, outputs // 16), outputs), nn.ReLU()]

    layers, width = block(3, 32, 3, 2, 1), 32
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        layers += block(width, width, 3, stride, width) + block(width, channels, 1, 1, 1)
        width = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


# Name, image, classes, network, variance of weights times the numbers that a number is made from, and the level of biases.
#
# Where a rectifier or a largest number is about to switch, single and double precision take different sides, and the gradient
# of a large network jumps by more than 1e-4: so does PyTorch's own in single precision on vgg16-224, which has 13 million numbers
# to rectify, and on mobilenet-v1 with a level of 0. A level of 1 keeps the rectifiers behind a group normalization away from
# 0: shifts are about 1 or -1, scales about 1/8. How far PyTorch's single precision is off is kept as `single`,
# and vgg16-224 is there once more with nothing that switches.
NETWORKS = [
    ("lenet", [1, 28, 28], 10, lenet, 1, 0),
    ("small-cnn", [1, 28, 28], 10, small_cnn, 1, 0),
    ("cnn", [3, 32, 32], 10, cnn, 1, 0),
    ("alexnet", [3, 224, 224], 1000, alexnet, 2, 0),
    ("vgg16", [3, 32, 32], 10, lambda: vgg16(32, [], 10), 2, 0),
    ("vgg16-224", [3, 224, 224], 1000, lambda: vgg16(224, [4096, 4096], 1000), 2, 0),
    ("vgg16-224 smooth", [3, 224, 224], 1000, lambda: smooth(vgg16(224, [4096, 4096], 1000)), 1, 0),
    ("mobilenet-v1", [3, 224, 224], 1000, mobilenet_v1, 2, 1),
]


def flat(layer, of_weight, of_bias):
    """In Dosimeter's order: a linear layer's weights are [inputs, outputs]."""
    parts = [of_weight.t() if isinstance(layer, nn.Linear) else of_weight] + ([] if of_bias is None else [of_bias])
    return np.concatenate([p.detach().contiguous().numpy().ravel() for p in parts])


def fill(layers, gain, level):
    """Sets all parameters; returns where each layer's begin, and their number."""
    starts, at = [], 0
    with torch.no_grad():
        for layer in layers:
            starts.append(at)
            for parameter in (layer.weight, layer.bias):
                if parameter is None:
                    continue
                u = uniform(at, parameter.numel())
                at += parameter.numel()
                if parameter is layer.weight and not isinstance(layer, nn.GroupNorm):
                    # A uniform number on (-limit, limit) has variance limit^2 / 3.
                    u = np.float32(np.sqrt(3 * gain / parameter[0].numel())) * u
                else:
                    signs = np.where(mixed(at - len(u), len(u)) & np.uint32(1), 1, -1).astype(np.float32)
                    u = np.float32(0.1) * u
                    if parameter is layer.weight:
                        u = np.float32(1 - 0.875 * level) + u * np.float32(1 - 0.875 * level)
                    else:
                        u = np.float32(level) * signs + u
                shape = parameter.t().shape if isinstance(layer, nn.Linear) else parameter.shape
                values = torch.from_numpy(u.astype(np.float64)).reshape(shape)
                parameter.copy_(values.t() if isinstance(layer, nn.Linear) and parameter is layer.weight else values)
    return starts, at


def short(values):
    return [float(f"{v:.7g}") for v in values]


def gradients(network, layers, x):
    """Loss and norm of every record, and the summed gradient of every layer."""
    losses, norms, sums = [], [], None
    for record in range(RECORDS):
        network.zero_grad(set_to_none=True)
        loss = F.cross_entropy(network(x[record : record + 1]), torch.tensor([record * 7 + 1]))
        loss.backward()
        losses.append(loss.item())
        of_layers = [flat(layer, layer.weight.grad, None if layer.bias is None else layer.bias.grad) for layer in layers]
        norms.append(float(np.sqrt(sum(float(g @ g) for g in of_layers))))
        sums = of_layers if sums is None else [s + g for s, g in zip(sums, of_layers)]
    return losses, norms, sums


def products(start, g):
    """With three vectors of +1 and -1."""
    bits = mixed(SIGNS + start, len(g))
    return np.array([float(np.where((bits >> np.uint32(k)) & np.uint32(1), g, -g).sum()) for k in range(PRODUCTS)])


cases = []
for name, image, classes, build, gain, level in NETWORKS:
    network = build().double()
    layers = [layer for layer in network if any(True for _ in layer.parameters())]
    starts, parameters = fill(layers, gain, level)
    count = int(np.prod(image))
    x = torch.from_numpy(uniform(IMAGES, RECORDS * count).astype(np.float64)).reshape(RECORDS, *image)
    losses, norms, sums = gradients(network, layers, x)
    found, single = [], 0.0
    in_single = gradients(network.float(), layers, x.float())[2]
    for start, g, of_single in zip(starts, sums, in_single):
        places, norm = np.linspace(0, len(g) - 1, ENTRIES).astype(int), np.sqrt(g @ g)
        off = np.abs(products(start, of_single.astype(np.float64)) - products(start, g)).max() / norm
        single = max(single, float(off))
        found.append({"norm": short([norm])[0], "places": places.tolist(), "entries": short(g[places]),
                      "products": short(products(start, g))})
    cases.append({"network": name, "image": image, "classes": classes, "gain": gain, "level": level,
                  "parameters": parameters, "single": float(f"{single:.1e}"), "losses": short(losses), "norms": short(norms),
                  "layers": found})
    print(name, single, flush=True)
    del network, layers, sums, in_single

answer = {
    "provenance": {
        "script": "golden/network_gradients.py",
        "oracle": f"PyTorch {torch.__version__.split('+')[0]} on CPU in double precision",
        "source": "networks written anew from their papers; parameters and images by a formula",
    },
    "tolerance": 1e-4,
}
lines = ",\n".join(json.dumps(case) for case in cases)
text = json.dumps(answer, indent=1)[:-2] + ',\n "cases": [\n' + lines + "\n]}\n"
pathlib.Path(__file__).with_suffix(".json").write_text(text)
