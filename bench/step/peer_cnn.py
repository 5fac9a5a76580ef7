#!/usr/bin/env python3
"""One optimizer step of convolutional networks in PyTorch and Opacus: peers of `bench_step --case cnn|vgg16|mobilenet`.

As `peer_step.py`: a fixed batch; forward, softmax cross-entropy, backward; for the private step also per-record norms,
clipping, the clipped sum, noise and division by the batch size; then Adam. All variants are printed and the fastest
counts. glibc's malloc thresholds are raised first. Private variants are compared with a per-record loop before they are
timed; one that disagrees is reported and not timed.

Output: JSON lines as those of `peer_step.py`.
"""

import argparse
import json
import os
import statistics
import sys
import time

if os.environ.get("BENCH_STEP_READY") != "1":
    threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
    os.execve(sys.executable, [sys.executable, *sys.argv], dict(
        os.environ, BENCH_STEP_READY="1", OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads,
        MALLOC_MMAP_THRESHOLD_="1073741824", MALLOC_TRIM_THRESHOLD_="4294967296", MALLOC_TOP_PAD_="268435456"))

import logging  # noqa: E402
import warnings  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

# name -> (record, batch, classes)
CASES = {"cnn": ((3, 32, 32), 64, 10), "vgg16": ((3, 32, 32), 16, 10), "mobilenet": ((3, 128, 128), 4, 100)}
CLIPPING_NORM, NOISE_MULTIPLIER = 1.0, 1.0
TOLERANCE = 1e-4

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--case", choices=[*CASES, "all"], default="all")
parser.add_argument("--peers", default="plain,opacus,bookkeeping")
parser.add_argument("--seconds", type=float, default=3.0, help="measuring time per variant")
parser.add_argument("--minimum", type=int, default=5, help="least number of steps")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--compile", action="store_true", help="also torch.compile (minutes)")
A = parser.parse_args()
torch.set_num_threads(A.threads)


def network(case):
    torch.manual_seed(0)
    layers = []
    if case == "cnn":
        for i, o, pool in [(3, 32, 0), (32, 32, 1), (32, 64, 0), (64, 64, 1), (64, 128, 0), (128, 128, 1)]:
            layers += [nn.Conv2d(i, o, 3, padding=1), nn.Tanh()] + [nn.AvgPool2d(2)] * pool
        layers += [nn.Flatten(), nn.Linear(2048, 128), nn.Tanh(), nn.Linear(128, 10)]
    elif case == "vgg16":
        width = 3
        for channels, count in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]:
            for _ in range(count):
                layers += [nn.Conv2d(width, channels, 3, padding=1), nn.ReLU()]
                width = channels
            layers += [nn.MaxPool2d(2)]
        layers += [nn.Flatten(), nn.Linear(512, 10)]
    else:
        def block(i, o, kernel, stride, groups):
            return [nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False),
                    nn.GroupNorm(max(1, o // 16), o), nn.ReLU()]
        layers, width = block(3, 32, 3, 2, 1), 32
        for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
            layers += block(width, width, 3, stride, width) + block(width, channels, 1, 1, 1)
            width = channels
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 100)]
    return nn.Sequential(*layers)


def batch(case, size=None):
    shape, usual, classes = CASES[case]
    size = size or usual
    x = torch.rand(size, *shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    return x, (torch.arange(size) * 7) % classes


def adam(module):
    return torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)


def plain(case, variant, x, y):
    module = network(case)
    if "channels_last" in variant:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = adam(module)
    forward = torch.compile(module, dynamic=False) if "compiled" in variant else module

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(forward(x), y).backward()
        optimizer.step()

    return step, module


def opacus(case, mode, x, y, noise=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
    from opacus import PrivacyEngine

    module = network(case)
    optimizer, criterion = adam(module), nn.CrossEntropyLoss()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    made = PrivacyEngine().make_private(
        module=module, optimizer=optimizer, data_loader=loader, criterion=criterion, noise_multiplier=noise,
        max_grad_norm=norm, poisson_sampling=False, grad_sample_mode=mode)
    if mode == "ghost":
        private, optimizer, criterion, _ = made
    else:
        private, optimizer, _ = made
    private.train()

    def step():
        optimizer.zero_grad(set_to_none=True)
        criterion(private(x), y).backward()
        optimizer.step()

    return step, module


class BookKeeping:
    """One backward pass to the layers' outputs; per-record gradients of convolutions by products, or their norms by Gram
    matrices where there are few places (`mixed`)."""

    def __init__(self, case, variant, x, y, noise=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
        self.module, self.x, self.y, self.noise, self.norm = network(case), x, y, noise, norm
        self.mixed = variant == "mixed"
        self.optimizer = adam(self.module)
        for p in self.module.parameters():
            p.requires_grad_(False)

    def __call__(self):
        h, kept = self.x, []
        for layer in self.module:
            if any(True for _ in layer.parameters()):
                a, h = h.detach(), layer(h)
                if not kept:
                    h = h.requires_grad_(True)
                kept.append((layer, a, h))
            else:
                h = layer(h)
        deltas = torch.autograd.grad(F.cross_entropy(h, self.y, reduction="sum"), [h for _, _, h in kept])
        with torch.no_grad():
            squared, sums = 0, []
            for (layer, a, _), g in zip(kept, deltas):
                n = len(a)
                if isinstance(layer, nn.Linear):
                    squared = squared + (g * g).sum(1) * ((a * a).sum(1) + 1)
                    sums.append(lambda c, a=a, g=g: [(g * c[:, None]).t() @ a, c @ g])
                    continue
                if isinstance(layer, nn.GroupNorm):
                    normal = F.group_norm(a, layer.num_groups, eps=layer.eps)
                    scale, shift = (g * normal).flatten(2).sum(2), g.flatten(2).sum(2)
                    squared = squared + (scale * scale).sum(1) + (shift * shift).sum(1)
                    sums.append(lambda c, s=scale, t=shift: [c @ s, c @ t])
                    continue
                u = F.unfold(a, layer.kernel_size, padding=layer.padding, stride=layer.stride)
                g, groups = g.flatten(2), layer.groups
                places, taps = u.shape[2], u.shape[1] // groups
                u, g3 = u.view(n * groups, taps, places), g.view(n * groups, -1, places)
                bias = g.sum(2) if layer.bias is not None else None
                if bias is not None:
                    squared = squared + (bias * bias).sum(1)
                if self.mixed and places * places * (taps + g3.shape[1]) < 16 * taps * g3.shape[1]:
                    gram = (torch.bmm(u.transpose(1, 2), u) * torch.bmm(g3.transpose(1, 2), g3)).sum((1, 2))
                    squared = squared + gram.view(n, groups).sum(1)

                    def weighted(c, u=u, g=g, b=bias, layer=layer, n=n, groups=groups):
                        scaled = (g * c[:, None, None]).view(n * groups, -1, u.shape[2])
                        w = torch.bmm(scaled, u.transpose(1, 2)).view(n, *layer.weight.shape).sum(0)
                        return [w] if b is None else [w, c @ b]

                    sums.append(weighted)
                    continue
                each = torch.bmm(g3, u.transpose(1, 2)).view(n, -1)
                squared = squared + (each * each).sum(1)
                sums.append(lambda c, e=each, b=bias, layer=layer:
                            [(c @ e).view_as(layer.weight)] + ([] if b is None else [c @ b]))
            c = (self.norm / (squared.sqrt() + 1e-6)).clamp(max=1.0)
            for (layer, _, _), total in zip(kept, sums):
                for p, s in zip(layer.parameters(), total(c)):
                    if self.noise:
                        s = s + torch.randn_like(s) * (self.noise * self.norm)
                    p.grad = s / len(self.x)
        self.optimizer.step()


def bookkeeping(case, variant, x, y, noise=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
    step = BookKeeping(case, variant, x, y, noise, norm)
    return step, step.module


def per_record(case, x, y):
    module = network(case)
    for row, label in zip(x, y):
        g = torch.autograd.grad(F.cross_entropy(module(row[None]), label[None]), list(module.parameters()))
        yield torch.cat([p.reshape(-1) for p in g])


def difference(make, case, variant):
    """Of the variant's clipped mean from the loop's; the norm clips half of the records."""
    x, y = batch(case, 4)
    gradients = list(per_record(case, x, y))
    norms = [float(g.double().norm()) for g in gradients]
    norm = statistics.median_high(norms)
    want = sum(g * min(1.0, norm / n) for g, n in zip(gradients, norms)) / len(x)
    step, module = make(case, variant, x, y, 0.0, norm)
    step()
    have = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    return float((have - want).norm() / want.norm())


def measure(step):
    for _ in range(2):
        step()
    wall, cpu, start = [], [], time.perf_counter()
    while time.perf_counter() - start < A.seconds or len(wall) < A.minimum:
        w, c = time.perf_counter(), time.process_time()
        step()
        cpu.append((time.process_time() - c) * 1e3)
        wall.append((time.perf_counter() - w) * 1e3)
    wall.sort(), cpu.sort()
    at = lambda v, share: v[int((len(v) - 1) * share)]  # noqa: E731
    return dict(median_ms=at(wall, 0.5), min_ms=wall[0], p90_ms=at(wall, 0.9), cpu_median_ms=at(cpu, 0.5),
                cpu_min_ms=cpu[0], n=len(wall), threads=A.threads)


PEERS = {"plain": (plain, ["eager", "channels_last"]), "opacus": (opacus, ["ghost", "hooks"]),
         "bookkeeping": (bookkeeping, ["formed", "mixed"])}

for case in CASES if A.case == "all" else [A.case]:
    for peer in A.peers.split(","):
        make, variants = PEERS[peer]
        if peer == "plain" and A.compile:
            variants = variants + ["compiled"]
        for variant in variants:
            if peer != "plain":
                relative = difference(make, case, variant)
                print(json.dumps(dict(kind="check", case=case, input="dense", peer=peer, variant=variant,
                                      relative_difference=relative, passed=relative < TOLERANCE)), flush=True)
                if relative >= TOLERANCE:
                    continue
            step, _ = make(case, variant, *batch(case))
            print(json.dumps(dict(kind="step", case=case, input="dense", peer=peer, variant=variant,
                                  **measure(step))), flush=True)
