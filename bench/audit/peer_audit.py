#!/usr/bin/env python3
"""ROC and AUC of a million scores in scikit-learn, and a rank AUC in numpy: the peer of
`crates/audit/examples/bench_audit.rs`.

Scores: half members N(0.5, 1), half non-members N(0, 1), rounded to 32-bit floats. The lower bound
on epsilon over all thresholds is done the vectorised way (Clopper-Pearson at every distinct score,
both directions, Bonferroni over the thresholds tried), because nothing in common use does it in
less than minutes at this size: a scipy practitioner would write this.

Output: JSON lines `{"kind": "audit", "case", "peer", "variant", "cpu_ms", "wall_ms", ...}`.
"""

import argparse
import json
import os
import sys
import time

if os.environ.get("BENCH_AUDIT_READY") != "1":
    environment = dict(os.environ, BENCH_AUDIT_READY="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    environment.update(
        MALLOC_MMAP_THRESHOLD_="1073741824", MALLOC_TRIM_THRESHOLD_="4294967296", MALLOC_TOP_PAD_="268435456"
    )
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)

import numpy as np  # noqa: E402
import sklearn  # noqa: E402
from scipy.special import betaincinv  # noqa: E402
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve  # noqa: E402


def rank_auc(truth, scores):
    order = np.argsort(scores)
    ordered = scores[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    group = np.cumsum(first) - 1
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(scores))
    ranks = ((starts + ends + 1) / 2)[group]
    members = truth[order]
    positives = members.sum()
    return (ranks[members].sum() - positives * (positives + 1) / 2) / (positives * (len(scores) - positives))


def epsilon_lower(truth, scores, confidence=0.95, delta=1e-5):
    """Clopper-Pearson at every distinct threshold of the ROC, Bonferroni over thresholds and directions."""
    fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=True)
    positives, negatives = truth.sum(), (~truth).sum()
    tp, fp = np.rint(tpr * positives), np.rint(fpr * negatives)
    alpha = (1 - confidence) / (2 * len(tp)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        tpr_low = np.where(tp > 0, betaincinv(tp, positives - tp + 1, alpha), 0.0)
        fpr_high = np.where(fp < negatives, betaincinv(fp + 1, negatives - fp, 1 - alpha), 1.0)
        tn, fn = negatives - fp, positives - tp
        tnr_low = np.where(tn > 0, betaincinv(tn, negatives - tn + 1, alpha), 0.0)
        fnr_high = np.where(fn < positives, betaincinv(fn + 1, positives - fn, 1 - alpha), 1.0)
        one = np.log((tpr_low - delta) / fpr_high)
        other = np.log((tnr_low - delta) / fnr_high)
    return float(max(0.0, np.nanmax(one), np.nanmax(other)))


def timed(function, *arguments):
    w, c = time.perf_counter(), time.process_time()
    value = function(*arguments)
    return value, (time.process_time() - c) * 1e3, (time.perf_counter() - w) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scores", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    half = arguments.scores // 2
    truth = np.arange(2 * half) < half
    scores = (generator.standard_normal(2 * half) + 0.5 * truth).astype(np.float32)
    order = generator.permutation(2 * half)
    truth, scores = truth[order], scores[order]
    print(json.dumps(dict(kind="machine", scikit_learn=sklearn.__version__, numpy=np.__version__)), flush=True)
    ways = {
        "roc_curve": lambda: len(roc_curve(truth, scores)[0]),
        "roc_auc_score": lambda: roc_auc_score(truth, scores),
        "average_precision_score": lambda: average_precision_score(truth, scores),
        "rank_auc_numpy": lambda: rank_auc(truth, scores),
        "epsilon_lower_all_thresholds": lambda: epsilon_lower(truth, scores),
    }
    for name, way in ways.items():
        rows = [timed(way) for _ in range(arguments.repeats)]
        cpu, wall = sorted(r[1] for r in rows), sorted(r[2] for r in rows)
        print(json.dumps(dict(
            kind="audit", case=f"{2 * half}", peer="scikit-learn" if "numpy" not in name else "numpy", variant=name,
            value=float(rows[0][0]), cpu_ms=cpu[len(cpu) // 2], cpu_min_ms=cpu[0], wall_ms=wall[len(wall) // 2],
            wall_min_ms=wall[0], n=len(rows))), flush=True)


if __name__ == "__main__":
    main()
