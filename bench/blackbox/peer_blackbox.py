#!/usr/bin/env python3
"""The black-box membership study in PyTorch, Opacus and scikit-learn: the peer of
`dosimeter run bench/blackbox/study.toml`.

What is done, for each setting (no DP, DP-Adam, randomized response on every bit):

1. records of the Skewed Purchases law (600 bits; the own block of a class is 1 with probability
   0.8, the rest with 0.2), `2 n` target candidates, a pool for the shadows, `n` test records;
2. each candidate a member by a fair coin; the target trained on its members; every shadow the same
   way on `2 n` candidates of its own from the pool, with the target's exact recipe and privacy;
3. one attack network per class (64 ReLU units, Adam 0.01, batches of 100, 50 epochs, L2 1e-6)
   trained on the shadows' answers, applied to the target's;
4. loss-threshold and shadow-model AUC, average precision, TPR at 1 % with Clopper-Pearson interval,
   test accuracy, and the proved epsilon of DP-Adam by Opacus' accountant.

Best settings found: batches gathered by index instead of through a DataLoader (Opacus' Poisson
loader collates record by record and alone costs as much as the step), Adam fused, ghost clipping,
large malloc thresholds. `--processes 2 --threads 1` against `--processes 1 --threads 2`, and
`--attack sklearn` (MLPClassifier per class) against `--attack batched` (all classes' networks as one
batched product), are choices; `bench/run.py` takes the fastest. `--private-step bookkeeping` replaces
Opacus by the hand-written step of bench/step, a harder peer.

Output: one JSON object with wall and CPU seconds, peak memory (sum over processes of each one's
own peak: pages shared between them count more than once) and the figures of the study.
"""

import argparse
import json
import os
import sys
import time

MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--records", type=int, default=8000, help="n: expected size of a training set")
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--shadows", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--noise-multiplier", type=float, default=2.0)
    parser.add_argument("--clipping-norm", type=float, default=1.0)
    parser.add_argument("--epsilon-per-feature", type=float, default=1.0)
    parser.add_argument("--pool", type=int, default=0, help="records for the shadows; 0 means 4 n")
    parser.add_argument("--attack-epochs", type=int, default=50)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="threads of each process")
    parser.add_argument("--attack", choices=["sklearn", "batched"], default="batched")
    parser.add_argument("--private-step", choices=["opacus", "bookkeeping"], default="opacus")
    parser.add_argument("--settings", default="no-dp,central,local")
    parser.add_argument("--npz", help="retail_kmeans.npz instead of the generator (bits packed, 600 features)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


A = parse()
if os.environ.get("BENCH_BLACKBOX_READY") != "1":
    environment = dict(os.environ, BENCH_BLACKBOX_READY="1", **MALLOC)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[name] = str(A.threads)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)

STARTED = time.perf_counter()

import logging  # noqa: E402
import multiprocessing  # noqa: E402
import warnings  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402

import numpy as np  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)


# --- data ------------------------------------------------------------------------------------


def skewed_purchases(records, classes, generator, features=600):
    """Balanced classes; class c owns the bits [c k, (c + 1) k) with k = features / classes."""
    labels = generator.permutation(np.arange(records) % classes).astype(np.int64)
    owner = np.arange(features) // (features // classes)
    bits = np.empty((records, features), np.uint8)
    for start in range(0, records, 4096):
        rows = slice(start, start + 4096)
        own = labels[rows, None] == owner[None]
        bits[rows] = generator.random((own.shape[0], features), np.float32) < np.where(own, np.float32(0.8), np.float32(0.2))
    return bits, labels


def load():
    """Bits and labels, and the index ranges of candidates, test records and shadow pool."""
    generator = np.random.default_rng([A.seed, 0])
    n, pool = A.records, A.pool or 4 * A.records
    if A.npz:
        file = np.load(A.npz)
        bits, labels = np.unpackbits(file["x"], axis=1)[:, :600], file["y"].astype(np.int64)
        order = generator.permutation(len(labels))
        bits, labels = bits[order], np.unique(labels[order], return_inverse=True)[1]
        pool = min(pool, len(labels) - 3 * n)
    else:
        bits, labels = skewed_purchases(3 * n + pool, A.classes, generator)
    return bits, labels, np.arange(2 * n), np.arange(2 * n, 3 * n), np.arange(3 * n, 3 * n + pool)


BITS, LABELS, CANDIDATES, TEST, POOL = load()
CLASSES = int(LABELS.max()) + 1


# --- training, in the worker processes ---------------------------------------------------------


def start_worker():
    import torch

    torch.set_num_threads(A.threads)


def network():
    import torch.nn as nn

    return nn.Sequential(nn.Linear(BITS.shape[1], A.hidden), nn.Tanh(), nn.Linear(A.hidden, CLASSES))


def fit_plain(x, y):
    import torch
    import torch.nn.functional as F

    module = network()
    optimizer = torch.optim.Adam(module.parameters(), lr=A.learning_rate, fused=True)
    for _ in range(A.epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), A.batch_size):
            rows = order[start : start + A.batch_size]
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(module(x[rows]), y[rows]).backward()
            optimizer.step()
    return module, None


def poisson_batches(records, rate, steps):
    import torch

    for _ in range(steps):
        yield torch.nonzero(torch.rand(records) < rate).squeeze(1)


def fit_opacus(x, y):
    import torch
    import torch.nn as nn
    from opacus import PrivacyEngine

    module, rate = network(), A.batch_size / A.records
    engine, criterion = PrivacyEngine(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(module.parameters(), lr=A.learning_rate, fused=True)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=A.batch_size)
    private, optimizer, criterion, _ = engine.make_private(
        module=module, optimizer=optimizer, data_loader=loader, criterion=criterion, poisson_sampling=False,
        noise_multiplier=A.noise_multiplier, max_grad_norm=A.clipping_norm, grad_sample_mode="ghost",
    )
    optimizer.expected_batch_size = A.batch_size
    steps = A.epochs * round(A.records / A.batch_size)
    for rows in poisson_batches(len(x), rate, steps):
        optimizer.zero_grad(set_to_none=True)
        criterion(private(x[rows]), y[rows]).backward()
        optimizer.step()
    engine.accountant.history = [(A.noise_multiplier, rate, steps)]
    return module, engine.accountant


def fit_bookkeeping(x, y):
    """Norms from activations and output gradients, all parameters one vector, no autograd."""
    import torch

    module, rate = network(), A.batch_size / A.records
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    flat.grad, noise = torch.zeros_like(flat), torch.empty_like(flat)
    views, gradients, offset = [], [], 0
    for p in module.parameters():
        span = slice(offset, offset + p.numel())
        views.append(flat[span].view(p.shape))
        gradients.append(flat.grad[span].view(p.shape))
        offset += p.numel()
    w1, b1, w2, b2 = views
    optimizer = torch.optim.Adam([flat], lr=A.learning_rate, fused=True)
    x_squared = torch.linalg.vecdot(x, x) + 1
    steps = A.epochs * round(A.records / A.batch_size)
    with torch.no_grad():
        for rows in poisson_batches(len(x), rate, steps):
            a0 = x[rows]
            a1 = torch.addmm(b1, a0, w1.t()).tanh_()
            d2 = torch.softmax(torch.addmm(b2, a1, w2.t()), 1)
            d2[torch.arange(len(rows)), y[rows]] -= 1
            d1 = (d2 @ w2) * (1 - a1 * a1)
            squared = torch.linalg.vecdot(d1, d1) * x_squared[rows]
            squared += torch.linalg.vecdot(d2, d2) * (torch.linalg.vecdot(a1, a1) + 1)
            scale = (A.clipping_norm / (squared.sqrt() + 1e-6)).clamp(max=1.0).div_(A.batch_size)[:, None]
            d1.mul_(scale)
            d2.mul_(scale)
            torch.mm(d1.t(), a0, out=gradients[0])
            torch.sum(d1, 0, out=gradients[1])
            torch.mm(d2.t(), a1, out=gradients[2])
            torch.sum(d2, 0, out=gradients[3])
            flat.grad.add_(noise.normal_(), alpha=A.noise_multiplier * A.clipping_norm / A.batch_size)
            optimizer.step()
        for p, v in zip(module.parameters(), views):
            p.copy_(v)
    return module, None


def train(task):
    """One model: (setting, model 0 = target, 1.. = shadows) -> its answers to its own candidates."""
    import torch

    setting, index = task
    seed = [A.seed, 1, ["no-dp", "central", "local"].index(setting), index]
    generator = np.random.default_rng(seed)
    torch.manual_seed(int(generator.integers(2**62)))
    # Who is a candidate and a member does not depend on the setting, so that settings are comparable.
    draw = np.random.default_rng([A.seed, 2, index])
    candidates = CANDIDATES if index == 0 else draw.choice(POOL, 2 * A.records, replace=False)
    member = draw.random(len(candidates)) < 0.5
    training = BITS[candidates[member]]
    if setting == "local":
        keep = 1 / (1 + np.exp(-A.epsilon_per_feature))
        training = training ^ (generator.random(training.shape, np.float32) >= keep)
    x, y = torch.from_numpy(training.astype(np.float32)), torch.from_numpy(LABELS[candidates[member]])
    fit = fit_plain if setting != "central" else {"opacus": fit_opacus, "bookkeeping": fit_bookkeeping}[A.private_step]
    module, accountant = fit(x, y)
    facts = {}
    with torch.no_grad():
        answers = torch.log_softmax(module(torch.from_numpy(BITS[candidates].astype(np.float32))), 1).numpy()
        if index == 0:
            test = module(torch.from_numpy(BITS[TEST].astype(np.float32))).argmax(1).numpy()
            facts["test_accuracy"] = float((test == LABELS[TEST]).mean())
            facts["train_accuracy"] = float((answers.argmax(1) == LABELS[candidates])[member].mean())
            if accountant:
                facts["epsilon_upper"] = float(accountant.get_epsilon(delta=1 / A.records))
    return answers, LABELS[candidates], member, facts


# --- the attack --------------------------------------------------------------------------------


def balanced_rows(label, shadows, generator):
    """Rows of one class: as many members as non-members from each shadow."""
    inputs, truth = [], []
    for answers, labels, member, _ in shadows:
        inside, outside = np.flatnonzero((labels == label) & member), np.flatnonzero((labels == label) & ~member)
        count = min(len(inside), len(outside))
        inputs += [answers[generator.permutation(inside)[:count]], answers[generator.permutation(outside)[:count]]]
        truth += [np.ones(count, np.int64), np.zeros(count, np.int64)]
    return np.exp(np.concatenate(inputs)), np.concatenate(truth)


def attack_sklearn(task):
    """MLPClassifier per class, for a share of the classes."""
    from sklearn.neural_network import MLPClassifier

    target, shadows, classes = task
    scores = np.zeros(len(target[1]))
    for label in classes:
        generator = np.random.default_rng([A.seed, 3, label])
        inputs, truth = balanced_rows(label, shadows, generator)
        mine = np.flatnonzero(target[1] == label)
        if len(np.unique(truth)) < 2 or not len(mine):
            continue
        network = MLPClassifier(
            (64,), alpha=1e-6, batch_size=min(100, len(truth)), learning_rate_init=0.01, max_iter=A.attack_epochs,
            tol=0.0, n_iter_no_change=A.attack_epochs + 1, random_state=label,
        ).fit(inputs, truth)
        p = np.clip(network.predict_proba(np.exp(target[0][mine]))[:, 1].astype(float), 1e-12, 1 - 1e-12)
        scores[mine] = np.log(p) - np.log1p(-p)
    return scores


def attack_batched(task):
    """The networks of a share of the classes trained together: every product is a batched product."""
    import torch
    import torch.nn.functional as F

    target, shadows, classes = task
    rows = [balanced_rows(label, shadows, np.random.default_rng([A.seed, 3, label])) for label in classes]
    longest, width = max(len(t) for _, t in rows), target[0].shape[1]
    x = torch.zeros(len(rows), longest, width)
    y = torch.zeros(len(rows), longest, dtype=torch.long)
    weight = torch.zeros(len(rows), longest)
    for n, (inputs, truth) in enumerate(rows):
        x[n, : len(truth)], y[n, : len(truth)] = torch.from_numpy(inputs), torch.from_numpy(truth)
        weight[n, : len(truth)] = 1
    del rows
    generator = torch.Generator().manual_seed(A.seed * 1009 + int(classes[0]))
    k = len(classes)
    uniform = lambda *shape, fan: ((torch.rand(*shape, generator=generator) * 2 - 1) / fan**0.5).requires_grad_()  # noqa: E731
    parameters = [
        uniform(k, width, 64, fan=width), uniform(k, 1, 64, fan=width), uniform(k, 64, 2, fan=64), uniform(k, 1, 2, fan=64),
    ]
    w1, b1, w2, b2 = parameters
    optimizer = torch.optim.Adam(parameters, lr=0.01, fused=True, weight_decay=1e-6)
    forward = lambda x: torch.baddbmm(b2, torch.baddbmm(b1, x, w1).relu(), w2)  # noqa: E731
    each = torch.arange(k)[:, None]
    for _ in range(A.attack_epochs):
        order = torch.rand(k, longest, generator=generator).argsort(1)
        for start in range(0, longest, 100):
            picked = order[:, start : start + 100]
            w = weight[each, picked]
            loss = F.cross_entropy(forward(x[each, picked]).flatten(0, 1), y[each, picked].flatten(), reduction="none")
            optimizer.zero_grad(set_to_none=True)
            ((loss.view_as(w) * w).sum(1) / w.sum(1).clamp(min=1)).sum().backward()
            optimizer.step()
    scores = np.zeros(len(target[1]))
    with torch.no_grad():
        for n, label in enumerate(classes):
            mine = np.flatnonzero(target[1] == label)
            out = torch.relu(torch.from_numpy(np.exp(target[0][mine])) @ w1[n] + b1[n]) @ w2[n] + b2[n]
            scores[mine] = (out[:, 1] - out[:, 0]).numpy()
    return scores


# --- judging -----------------------------------------------------------------------------------


def judge(member, scores):
    from scipy.stats import beta
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

    fpr, tpr, _ = roc_curve(member, scores)
    positives = int(member.sum())
    hits = int(round(tpr[np.searchsorted(fpr, 0.01, side="right") - 1] * positives))
    return dict(
        auc=float(roc_auc_score(member, scores)),
        average_precision=float(average_precision_score(member, scores)),
        tpr_at_1_percent=hits / positives,
        tpr_low=float(beta.ppf(0.025, hits, positives - hits + 1)) if hits else 0.0,
        tpr_high=float(beta.ppf(0.975, hits + 1, positives - hits)) if hits < positives else 1.0,
    )


def peak_mib(_):
    time.sleep(0.05)
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmHWM"):
                return os.getpid(), int(line.split()[1]) / 1024
    return os.getpid(), 0.0


def main():
    settings = A.settings.split(",")
    attack = attack_sklearn if A.attack == "sklearn" else attack_batched
    phases, figures = {}, []
    with ProcessPoolExecutor(A.processes, multiprocessing.get_context("fork"), start_worker) as workers:
        started = time.perf_counter()
        tasks = [(setting, index) for index in range(A.shadows + 1) for setting in sorted(settings, key="central".__ne__)]
        models = dict(zip(tasks, workers.map(train, tasks)))
        phases["train_s"] = time.perf_counter() - started
        started = time.perf_counter()
        shares = [s for s in np.array_split(np.arange(CLASSES), A.processes if A.attack == "batched" else 4 * A.processes) if len(s)]
        jobs = {}
        for setting in settings:
            target, shadows = models[setting, 0], [models[setting, s] for s in range(1, A.shadows + 1)]
            for share in shares:
                inside = np.isin(target[1], share)
                mine = (target[0], target[1])
                theirs = [(a[keep], l[keep], m[keep], None) for a, l, m, _ in shadows for keep in [np.isin(l, share)]]
                jobs[setting, int(share[0])] = workers.submit(attack, (mine, theirs, share)), inside
        for setting in settings:
            answers, labels, member, facts = models[setting, 0]
            scores = np.zeros(len(labels))
            for (name, _), (job, inside) in jobs.items():
                if name == setting:
                    scores[inside] = job.result()[inside]
            loss = answers[np.arange(len(labels)), labels]
            figures.append(dict(setting=setting, **facts, loss_threshold=judge(member, loss), shadow_model=judge(member, scores)))
        phases["attack_s"] = time.perf_counter() - started
        peaks = dict(workers.map(peak_mib, range(8 * A.processes)))
    peaks.update([peak_mib(None)])
    t = os.times()
    print(json.dumps(dict(
        kind="blackbox", peer="torch+opacus+scikit-learn", wall_s=time.perf_counter() - STARTED,
        cpu_s=t.user + t.system + t.children_user + t.children_system, rss_mib=sum(peaks.values()), phases=phases,
        arguments=vars(A), settings=figures)), flush=True)


if __name__ == "__main__":
    main()
