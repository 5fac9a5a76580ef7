#!/usr/bin/env python3
"""One optimizer step in PyTorch and Opacus: the peers of `crates/train/examples/bench_step.rs`.

A step is: forward, softmax cross-entropy, backward; for the private step also per-record
gradient norms, clipping, the clipped sum, Gaussian noise of the size of the parameters and
division by the batch size; then Adam. The batch is fixed (no sampling, no data loading), so both
sides time exactly the arithmetic.

Every peer gets the best settings found for it. Each has several *variants* (Adam fused, foreach or
looped; eager or `torch.compile`; autograd or hand-derived backward; dense or sparse first layer);
all are printed, and `bench/run.py` compares against the fastest one. glibc's malloc thresholds are
raised before the interpreter starts (the script re-executes itself), so that no variant pays page
faults on every step; `--stock-malloc` shows what that is worth.

Before anything is timed, each private variant's clipped sum is compared with a per-record loop
that takes one gradient at a time. A variant that disagrees is reported and not timed.

Output: JSON lines. `{"kind": "step", "case", "input", "peer", "variant", "median_ms", "min_ms",
"p90_ms", "cpu_median_ms", "cpu_min_ms", "n", ...}`.
"""

import argparse
import json
import os
import resource
import sys
import time

MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "4294967296",
    "MALLOC_TOP_PAD_": "268435456",
}


def reexecute(threads, stock_malloc):
    """Starts this script again with the thread and malloc settings in place from the first byte."""
    if os.environ.get("BENCH_STEP_READY") == "1":
        return
    environment = dict(os.environ, BENCH_STEP_READY="1")
    if not stock_malloc:
        environment.update(MALLOC)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[name] = str(threads)
    environment.pop("OPENBLAS_CORETYPE", None)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


# name -> (inputs, hidden widths, classes, activation, density of binary inputs)
CASES = {
    "small": (600, [128], 100, "tanh", 0.20),
    "large": (6169, [512, 128], 100, "relu", 0.10),
}
BATCH = 128
CLIPPING_NORM = 1.0
NOISE_MULTIPLIER = 1.0
LEARNING_RATE = 1e-3
# Relative difference allowed between a clipped sum and the per-record loop's. The hand-written
# variants and ghost clipping stay below 5e-7; Opacus' other modes add up three million squares in
# 32-bit floats one record at a time and reach 3e-5 on the large network.
TOLERANCE = 1e-4


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    parser.add_argument("--input", choices=["dense", "binary", "all"], default="all")
    parser.add_argument("--peers", default="opacus,bookkeeping,plain")
    parser.add_argument("--variants", default="", help="comma-separated; empty means all")
    parser.add_argument("--rounds", type=int, default=3, help="times each variant is visited, interleaved")
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time per variant and round")
    parser.add_argument("--minimum", type=int, default=12, help="least number of steps per round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--stock-malloc", action="store_true")
    parser.add_argument("--all-modes", action="store_true",
                        help="also Opacus hooks, functorch and expanded weights on the large network (3 s a step)")
    parser.add_argument("--no-compile", action="store_true", help="skip the torch.compile variants")
    return parser.parse_args()


ARGUMENTS = parse()
reexecute(ARGUMENTS.threads, ARGUMENTS.stock_malloc)

import logging  # noqa: E402
import warnings  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

torch.set_num_threads(ARGUMENTS.threads)


def emit(**fields):
    print(json.dumps(fields), flush=True)


def network(case):
    inputs, hidden, classes, activation, _ = CASES[case]
    torch.manual_seed(0)
    layers, width = [], inputs
    for size in hidden:
        layers += [nn.Linear(width, size), nn.Tanh() if activation == "tanh" else nn.ReLU()]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, classes))


def batch(case, kind, size=BATCH):
    inputs, _, classes, _, density = CASES[case]
    generator = torch.Generator().manual_seed(1)
    if kind == "dense":
        x = torch.rand(size, inputs, generator=generator) * 2 - 1
    else:
        x = (torch.rand(size, inputs, generator=generator) < density).float()
    return x, (torch.arange(size) * 7) % classes


def per_record_clipped_sum(module, x, y, clipping_norm):
    """The slow, obvious way: one record, one backward pass, one norm, one scaled addition."""
    total = [torch.zeros_like(p) for p in module.parameters()]
    for row, label in zip(x, y):
        gradient = torch.autograd.grad(
            F.cross_entropy(module(row[None]), label[None]), list(module.parameters())
        )
        norm = torch.sqrt(sum((g.double() ** 2).sum() for g in gradient))
        scale = float(min(1.0, clipping_norm / float(norm)))
        for t, g in zip(total, gradient):
            t.add_(g, alpha=scale)
    return torch.cat([t.reshape(-1) for t in total])


def adam(parameters, kind):
    return torch.optim.Adam(
        parameters,
        lr=LEARNING_RATE,
        fused=True if kind == "fused" else None,
        foreach={"foreach": True, "loop": False}.get(kind),
    )


# --- Opacus ----------------------------------------------------------------------------------


def opacus_step(case, x, y, mode, optimizer_kind, noise_multiplier=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
    """Opacus' own loop: make_private, zero_grad, criterion, backward, step."""
    from opacus import PrivacyEngine

    module = network(case)
    optimizer = adam(module.parameters(), optimizer_kind)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=len(x))
    criterion = nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        criterion=criterion,
        noise_multiplier=noise_multiplier,
        max_grad_norm=norm,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    if mode == "ghost":
        private, optimizer, criterion, _ = made
    else:
        private, optimizer, _ = made
    private.train()

    def step():
        optimizer.zero_grad(set_to_none=True)
        criterion(private(x), y).backward()
        optimizer.step()

    return step, module, optimizer


# --- book-keeping, autograd for the backward pass ---------------------------------------------


class AutogradBookKeeping:
    """One backward pass to the layer outputs; norms and clipped sums from activations."""

    def __init__(self, case, x, y, optimizer_kind, noise_multiplier=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
        self.module, self.x, self.y = network(case), x, y
        self.noise_multiplier, self.norm = noise_multiplier, norm
        self.linears = [layer for layer in self.module if isinstance(layer, nn.Linear)]
        self.optimizer = adam(self.module.parameters(), optimizer_kind)
        for p in self.module.parameters():
            p.requires_grad_(False)
            p.grad = torch.zeros_like(p)

    def __call__(self):
        h, inputs, outputs = self.x, [], []
        for layer in self.module:
            if isinstance(layer, nn.Linear):
                inputs.append(h.detach())
                h = layer(h)
                if not outputs:
                    h = h.requires_grad_(True)
                outputs.append(h)
            else:
                h = layer(h)
        deltas = torch.autograd.grad(F.cross_entropy(h, self.y, reduction="sum"), outputs)
        with torch.no_grad():
            squared = sum(
                torch.linalg.vecdot(d, d) * (torch.linalg.vecdot(a, a) + 1) for a, d in zip(inputs, deltas)
            )
            coefficient = (self.norm / squared.sqrt_().add_(1e-6)).clamp_(max=1.0)
            for layer, a, d in zip(self.linears, inputs, deltas):
                d = d * coefficient[:, None]
                torch.mm(d.t(), a, out=layer.weight.grad)
                torch.sum(d, 0, out=layer.bias.grad)
                for p in (layer.weight, layer.bias):
                    if self.noise_multiplier:
                        noise = torch.empty_like(p).normal_(0, self.noise_multiplier * self.norm)
                        p.grad.add_(noise)
                    p.grad.div_(len(self.x))
        self.optimizer.step()


# --- book-keeping and plain, backward derived by hand, one flat parameter vector ---------------


class HandStep:
    """Forward and backward written out, all buffers allocated once, all parameters one vector.

    `private=False` gives the plain (not private) step. `sparse=True` keeps the first layer's input
    as a CSR matrix, which pays when the input is mostly zero.
    """

    def __init__(
        self, case, x, y, optimizer_kind, private=True, sparse=False,
        noise_multiplier=NOISE_MULTIPLIER, norm=CLIPPING_NORM,
    ):
        self.private, self.sparse = private, sparse
        self.noise_multiplier, self.norm = noise_multiplier, norm
        self.y, self.rows, self.activation = y, len(x), CASES[case][3]
        module = network(case)
        self.flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
        self.flat.grad = torch.zeros_like(self.flat)
        self.noise = torch.zeros_like(self.flat)
        self.weights, self.gradients, offset = [], [], 0
        for p in module.parameters():
            view = slice(offset, offset + p.numel())
            self.weights.append(self.flat[view].view(p.shape))
            self.gradients.append(self.flat.grad[view].view(p.shape))
            offset += p.numel()
        self.optimizer = adam([self.flat], optimizer_kind)
        self.x = x
        if sparse:
            self.x_csr, self.x_t_csr = x.to_sparse_csr(), x.t().contiguous().to_sparse_csr()
        self.x_squared = torch.linalg.vecdot(x, x) + 1
        widths = [w.shape[0] for w in self.weights[0::2]]
        self.hidden = [torch.empty(self.rows, width) for width in widths]
        self.deltas = [torch.empty(self.rows, width) for width in widths]
        self.index = y[:, None]
        self.minus_one = torch.full((self.rows, 1), -1.0)

    @torch.no_grad()
    def __call__(self):
        h = self.x
        last = len(self.hidden) - 1
        for n, z in enumerate(self.hidden):
            if n == 0 and self.sparse:
                torch.add(torch.sparse.mm(self.x_csr, self.weights[0].t()), self.weights[1], out=z)
            else:
                torch.addmm(self.weights[2 * n + 1], h, self.weights[2 * n].t(), out=z)
            if n < last:
                z.tanh_() if self.activation == "tanh" else z.relu_()
            h = z
        delta = self.deltas[last]
        torch.softmax(h, 1, out=delta)
        delta.scatter_add_(1, self.index, self.minus_one)
        for n in range(last, 0, -1):
            below = self.deltas[n - 1]
            torch.mm(self.deltas[n], self.weights[2 * n], out=below)
            a = self.hidden[n - 1]
            if self.activation == "tanh":
                torch.ops.aten.tanh_backward.grad_input(below, a, grad_input=below)
            else:
                torch.ops.aten.threshold_backward.grad_input(below, a, 0, grad_input=below)
        if self.private:
            squared = torch.linalg.vecdot(self.deltas[0], self.deltas[0]) * self.x_squared
            for n in range(1, last + 1):
                d, a = self.deltas[n], self.hidden[n - 1]
                squared += torch.linalg.vecdot(d, d) * (torch.linalg.vecdot(a, a) + 1)
            scale = (self.norm / squared.sqrt_().add_(1e-6)).clamp_(max=1.0).div_(self.rows)[:, None]
        for n in range(last + 1):
            d = self.deltas[n]
            d.mul_(scale) if self.private else d.div_(self.rows)
            if n == 0 and self.sparse:
                self.gradients[0].copy_(torch.sparse.mm(self.x_t_csr, d).t())
            else:
                torch.mm(d.t(), self.x if n == 0 else self.hidden[n - 1], out=self.gradients[2 * n])
            torch.sum(d, 0, out=self.gradients[2 * n + 1])
        if self.private and self.noise_multiplier:
            self.noise.normal_()
            self.flat.grad.add_(self.noise, alpha=self.noise_multiplier * self.norm / self.rows)
        self.optimizer.step()


class CompiledBookKeeping:
    """Gradients, norms and clipped sums under `torch.compile`, which fuses the elementwise work.

    Noise stays outside: generated code draws normals about three times slower than `normal_`.
    """

    def __init__(self, case, x, y, optimizer_kind, noise_multiplier=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
        self.module, self.x, self.y = network(case), x, y
        activation = CASES[case][3]
        self.optimizer = adam(self.module.parameters(), optimizer_kind)
        self.parameters = list(self.module.parameters())
        for p in self.parameters:
            p.requires_grad_(False)
        rows = len(x)

        def gradients(x, y, *parameters):
            weights, biases = parameters[0::2], parameters[1::2]
            h, inputs = x, []
            for n, (w, b) in enumerate(zip(weights, biases)):
                inputs.append(h)
                h = F.linear(h, w, b)
                if n < len(weights) - 1:
                    h = torch.tanh(h) if activation == "tanh" else torch.relu(h)
            delta = torch.softmax(h, 1) - F.one_hot(y, h.shape[1])
            deltas = [delta]
            for n in range(len(weights) - 1, 0, -1):
                a = inputs[n]
                delta = (delta @ weights[n]) * ((1 - a * a) if activation == "tanh" else (a > 0))
                deltas.insert(0, delta)
            squared = sum((d * d).sum(1) * ((a * a).sum(1) + 1) for a, d in zip(inputs, deltas))
            scale = (norm / (squared.sqrt() + 1e-6)).clamp(max=1.0)[:, None] / rows
            out = []
            for a, d in zip(inputs, deltas):
                d = d * scale
                out += [d.t() @ a, d.sum(0)]
            return out

        self.gradients = torch.compile(gradients, dynamic=False)
        self.noise = [torch.empty_like(p) for p in self.parameters]
        self.noise_deviation = noise_multiplier * norm / rows

    @torch.no_grad()
    def __call__(self):
        for p, g, noise in zip(self.parameters, self.gradients(self.x, self.y, *self.parameters), self.noise):
            p.grad = g.add_(noise.normal_(), alpha=self.noise_deviation) if self.noise_deviation else g
        self.optimizer.step()


def plain_step(case, x, y, optimizer_kind, compiled):
    module = network(case)
    optimizer = adam(module.parameters(), optimizer_kind)
    forward = torch.compile(module, dynamic=False) if compiled else module

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(forward(x), y).backward()
        optimizer.step()

    return step


# --- checks -----------------------------------------------------------------------------------


def check(case, kind, peer, variant):
    """Relative difference of the variant's clipped sum from the per-record loop.

    The clipping norm is the median record norm of the batch, so that half of the records clip.
    """
    x, y = batch(case, kind, 32)
    module = network(case)
    norms = []
    for row, label in zip(x, y):
        gradient = torch.autograd.grad(F.cross_entropy(module(row[None]), label[None]), list(module.parameters()))
        norms.append(float(torch.sqrt(sum((g**2).sum() for g in gradient))))
    norm = sorted(norms)[len(norms) // 2]
    want = per_record_clipped_sum(module, x, y, norm) / len(x)
    if peer == "opacus":
        mode, optimizer_kind = variant.split("/")
        step, module, _ = opacus_step(case, x, y, mode, optimizer_kind, 0.0, norm)
        step()
        have = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    else:
        step = bookkeeping(case, x, y, variant, 0.0, norm)
        step()
        if isinstance(step, HandStep):
            have = step.flat.grad
        elif isinstance(step, CompiledBookKeeping):
            have = torch.cat([p.grad.reshape(-1) for p in step.parameters])
        else:
            have = torch.cat([p.grad.reshape(-1) for p in step.module.parameters()])
    return float((have - want).norm() / want.norm())


def bookkeeping(case, x, y, variant, noise_multiplier=NOISE_MULTIPLIER, norm=CLIPPING_NORM):
    style, optimizer_kind = variant.split("/")
    if style == "autograd":
        return AutogradBookKeeping(case, x, y, optimizer_kind, noise_multiplier, norm)
    if style == "compiled":
        return CompiledBookKeeping(case, x, y, optimizer_kind, noise_multiplier, norm)
    return HandStep(case, x, y, optimizer_kind, True, style == "hand-sparse", noise_multiplier, norm)


def variants(case, peer, kind):
    if peer == "opacus":
        names = ["ghost/fused", "ghost/foreach"]
        if case == "small" or ARGUMENTS.all_modes:
            names += ["hooks/fused", "functorch/fused", "ew/fused"]
    elif peer == "bookkeeping":
        names = ["autograd/fused", "autograd/foreach", "hand/fused", "hand/foreach", "compiled/fused"]
        names += ["hand-sparse/fused"] if kind == "binary" else []
    else:
        names = ["eager/fused", "eager/foreach", "eager/loop", "compiled/fused", "hand/fused"]
        names += ["hand-sparse/fused"] if kind == "binary" else []
    if ARGUMENTS.no_compile:
        names = [n for n in names if not n.startswith("compiled")]
    wanted = [v for v in ARGUMENTS.variants.split(",") if v]
    return [n for n in names if not wanted or n in wanted]


def make(case, kind, peer, variant):
    x, y = batch(case, kind)
    if peer == "opacus":
        return opacus_step(case, x, y, *variant.split("/"))[0]
    if peer == "bookkeeping":
        return bookkeeping(case, x, y, variant)
    style, optimizer_kind = variant.split("/")
    if style.startswith("hand"):
        return HandStep(case, x, y, optimizer_kind, False, style == "hand-sparse")
    return plain_step(case, x, y, optimizer_kind, style == "compiled")


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def measure(step):
    wall, cpu, start = [], [], time.perf_counter()
    while time.perf_counter() - start < ARGUMENTS.seconds or len(wall) < ARGUMENTS.minimum:
        w, c = time.perf_counter(), time.process_time()
        step()
        cpu.append((time.process_time() - c) * 1e3)
        wall.append((time.perf_counter() - w) * 1e3)
        if time.perf_counter() - start > 10 * ARGUMENTS.seconds and len(wall) >= 3:
            break
    return wall, cpu


def gemm_peak():
    """GFLOP/s of one 1024-cubed product: the yardstick for 'fraction of the GEMM peak'."""
    a, b, out = torch.rand(1024, 1024), torch.rand(1024, 1024), torch.empty(1024, 1024)
    best = 1e9
    for _ in range(20):
        c = time.process_time()
        torch.mm(a, b, out=out)
        best = min(best, time.process_time() - c)
    return 2 * 1024**3 / best / 1e9


def main():
    cases = list(CASES) if ARGUMENTS.case == "all" else [ARGUMENTS.case]
    kinds = ["dense", "binary"] if ARGUMENTS.input == "all" else [ARGUMENTS.input]
    import opacus

    emit(kind="machine", torch=torch.__version__, opacus=opacus.__version__, threads=torch.get_num_threads(),
         cpu_capability=torch.backends.cpu.get_cpu_capability(), gemm_gflops=round(gemm_peak(), 1),
         malloc="stock" if ARGUMENTS.stock_malloc else MALLOC, batch=BATCH)
    for case in cases:
        for kind in kinds:
            ready = []
            for peer in ARGUMENTS.peers.split(","):
                for variant in variants(case, peer, kind):
                    facts = dict(case=case, input=kind, peer=peer, variant=variant)
                    try:
                        if peer != "plain":
                            difference = check(case, kind, peer, variant)
                            emit(kind="check", **facts, relative_difference=difference, passed=difference < TOLERANCE)
                            if not difference < TOLERANCE:
                                continue
                        step = make(case, kind, peer, variant)
                        for _ in range(3):
                            step()
                    except Exception as error:  # noqa: BLE001 - a variant that cannot run is a finding, not a crash
                        emit(kind="unavailable", **facts, why=f"{type(error).__name__}: {error}"[:300])
                        continue
                    ready.append((facts, step))
            for turn in range(ARGUMENTS.rounds):
                for facts, step in ready:
                    wall, cpu = measure(step)
                    emit(kind="step", **facts, round=turn, density=CASES[case][4] if kind == "binary" else 1.0,
                         median_ms=quantile(wall, 0.5), min_ms=min(wall), p90_ms=quantile(wall, 0.9),
                         cpu_median_ms=quantile(cpu, 0.5), cpu_min_ms=min(cpu), n=len(wall),
                         max_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main()
