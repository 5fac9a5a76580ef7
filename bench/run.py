#!/usr/bin/env python3
"""Measures Dosimeter beside its peers in one session and records the comparison.

    cargo xtask bench [-- --areas step,convolution,inference,accounting,noise,audit,blackbox,scaling,graphs --rounds 5]

Sides take turns (ours, peer, ours, peer, ...), so that a change of the machine's mood hits both. The
figure of a side in a round is its best variant's median; the ratio of a round is peer over ours, and
what is printed is the median ratio with the lowest and highest round. Every peer has its best
settings; see the head of each script under bench/.

Leaves bench/runs/DATE-MACHINE/: setup.md (machine, versions, commands), raw.csv (every line that was
measured) and summary.md (the tables).

Creates `.venv-bench` from bench/requirements.txt if it is not there ($DOSIMETER_BENCH_VENV names
another one).
"""

import argparse
import csv
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AREAS = ["step", "convolution", "inference", "accounting", "noise", "audit", "blackbox", "scaling", "regression", "graphs"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--areas", default="step,convolution,inference,accounting,noise,audit,blackbox,scaling")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time of a step variant in a turn")
    parser.add_argument("--epochs", type=int, default=30, help="of the black-box study")
    parser.add_argument("--records", type=int, default=8000, help="n of the black-box study")
    parser.add_argument("--shadows", type=int, default=10, help="of the black-box study")
    parser.add_argument("--study-rounds", type=int, default=1, help="turns of each side in the black-box study")
    parser.add_argument("--peer-attacks", default="batched,sklearn", help="forms of the peer's attack in the black-box study")
    parser.add_argument("--only-ours", action="store_true", help="no peers, no ratios: while developing")
    parser.add_argument("--name", help="folder under bench/runs; default DATE-MACHINE")
    parser.add_argument("--note", default="", help="a line for setup.md, for example what else the machine was doing")
    arguments = parser.parse_args()
    unknown = [a for a in arguments.areas.split(",") if a not in AREAS]
    if unknown:
        parser.error(f"unknown area {unknown[0]}; there are {', '.join(AREAS)}")
    return arguments


A = parse()
ROWS, COMMANDS, TABLES, NOTES = [], [], [], []


def environment_python():
    """The peers' interpreter, made on first use."""
    folder = Path(os.environ.get("DOSIMETER_BENCH_VENV", ROOT / ".venv-bench"))
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making {folder} (about 5.6 GB: PyPI's torch brings the CUDA libraries)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-r", str(ROOT / "bench/requirements.txt")], check=True)
    return str(python)


def execute(command, area, side, turn):
    """Runs a command; returns the JSON objects it printed, its wall and CPU seconds and its peak memory in MiB."""
    words = [str(word) for word in command]
    shown = " ".join(words).replace(str(ROOT) + "/", "")
    if turn == 0:
        COMMANDS.append(shown)
    print(f"[{area}] {side} turn {turn + 1}: {shown}", file=sys.stderr, flush=True)
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        text, problems = out.read(), err.read()
    if process.returncode != 0:
        raise RuntimeError(f"{shown}\nleft with code {process.returncode}:\n{problems[-2000:]}")
    objects = parse_json(text)
    for found in objects:
        ROWS.append(dict(area=area, side=side, turn=turn, **found))
    return objects, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def parse_json(text):
    """JSON lines, one JSON array, or one object of named figures over several lines."""
    if text.lstrip().startswith("["):
        return json.loads(text)
    if text.lstrip().startswith("{\n"):
        return [dict(name=name, **figures) for name, figures in json.loads(text).items()]
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def build(*words):
    command = ["cargo", "build", "--release", *words]
    print(" ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, cwd=ROOT)


def target():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"


def example(package, name, *more):
    build("-p", f"dosimeter-{package}", "--example", name, *more)
    return target() / "examples" / name


def fixed(value):
    if value == 0 or value != value:
        return str(value)
    digits = max(0, 2 - int(f"{abs(value):e}".split("e")[1]))
    return f"{value:,.{min(digits, 4)}f}"


def ratio(ours, peer):
    """Median over the turns of peer over ours, and the lowest and highest turn."""
    each = [p / o for o, p in zip(ours, peer)]
    return f"**{statistics.median(each):.2f}** ({min(each):.2f}-{max(each):.2f})"


def table(title, header, rows, *remarks):
    lines = [f"## {title}", "", "| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    lines += ["", *remarks, ""] if remarks else [""]
    TABLES.append("\n".join(lines))
    print("\n".join(lines), flush=True)


# --- areas -----------------------------------------------------------------------------------


def step(python):
    """One optimizer step, one thread."""
    ours_program = example("train", "bench_step")
    peer_program = [python, ROOT / "bench/step/peer_step.py", "--rounds", 1, "--seconds", A.seconds]
    found = {}  # (case, input, who) -> {variant: [row per turn]}
    peak = {"ours": [], "peer": []}
    for turn in range(A.rounds):
        for case, kind in [(c, k) for c in ("small", "large") for k in ("dense", "binary")]:
            choice = ["--case", case, "--input", kind]
            sides = [("ours", [ours_program, *choice, "--seconds", A.seconds])]
            sides += [] if A.only_ours else [("peer", [*peer_program, *choice])]
            for side, command in sides:
                for row in execute(command, "step", side, turn)[0]:
                    if row.get("gemm_gflops"):
                        peak[side].append(row["gemm_gflops"])
                    if row.get("kind") == "check" and not row["passed"]:
                        NOTES.append(f"{row['peer']} {row['variant']} on {row['case']} {row['input']} disagrees with the "
                                     f"per-record loop by {row['relative_difference']:.1e}: not timed")
                    if row.get("kind") == "step" and (row["case"], row["input"]) == (case, kind):
                        who = "ours" if side == "ours" else row["peer"]
                        found.setdefault((case, kind, who), {}).setdefault(row["variant"], []).append(row)
    rows, parts = [], []
    for case, kind in [(c, k) for c in ("small", "large") for k in ("dense", "binary")]:
        ours = found.get((case, kind, "ours"), {})
        for variant, mine in ours.items():
            base = [mine_row(m) for m in mine]
            if not variant.startswith(("plain", "dp")):
                parts.append([f"{case} {kind}", variant, spread(mine)])
                continue
            cells = [f"{case} {kind}", variant, spread(mine)]
            if variant.startswith("plain"):
                names = [("plain", lambda v: not v.startswith("hand")), ("plain", lambda v: v.startswith("hand"))]
            else:
                names = [("opacus", lambda v: True), ("bookkeeping", lambda v: True)]
            for name, wanted in names:
                theirs = {v: r for v, r in found.get((case, kind, name), {}).items() if wanted(v) and len(r) == len(mine)}
                if not theirs:
                    cells += ["-", "-", "-"]
                    continue
                best = min(theirs, key=lambda v: statistics.median(mine_row(r) for r in theirs[v]))
                label = name if name != "plain" else ("plain PyTorch" if "hand" not in best else "hand-written PyTorch")
                cells += [f"{label} {best}", spread(theirs[best]), ratio(base, [mine_row(r) for r in theirs[best]])]
            rate = row_flops(case) / min(m.get("cpu_min_ms", m["min_ms"]) for m in mine) / 1e6
            cells.append(f"{rate:.0f} GFLOP/s, {rate / max(peak['ours']):.0%}" if kind == "dense" and peak["ours"] else "-")
            rows.append(cells)
    peaks = "; ".join(f"{side} {max(v):.0f} GFLOP/s" for side, v in peak.items() if v)
    table(
        "One step, one thread, batch 128 (CPU milliseconds: median of the medians, lowest single step)",
        ["case", "ours", "ms", "first peer", "ms", "ratio", "second peer", "ms", "ratio", "dense products"],
        rows,
        "Private rows against Opacus and against book-keeping written for the bench; plain rows against PyTorch as it is "
        "written by everybody and against a hand-derived backward without autograd. Binary input has 20 % (small) and 10 % (large) ones.",
        f"Matrix products, best seen in this run: {peaks}. The last column: matrix products of a dense step over its best time, and that as a share of our peak.",
    )
    table("Parts of our private step", ["case", "part", "ms"], parts)


def row_flops(case):
    sizes = {"small": [600, 128, 100], "large": [6169, 512, 128, 100]}[case]
    pairs = list(zip(sizes, sizes[1:]))
    # forward and weight gradient for every layer, input gradient for all but the first
    return 2 * 128 * (2 * sum(a * b for a, b in pairs) + sum(a * b for a, b in pairs[1:]))


def mine_row(row):
    return row["cpu_median_ms"] if "cpu_median_ms" in row else row["median_ms"]


def spread(rows):
    return f"{fixed(statistics.median(mine_row(r) for r in rows))}, {fixed(min(r.get('cpu_min_ms', r['min_ms']) for r in rows))}"


CHANGES = {
    "cnn-max": "maximum pooling", "cnn-stride": "steps of 2 for pooling", "cnn-groups": "four groups behind the first",
    "cnn-norm": "group normalization behind each", "cnn-5x5": "5 x 5 windows",
}
CONVOLUTION_CASES = ["cnn", "vgg16", "mobilenet", *CHANGES]


def convolution(python):
    """One optimizer step of convolutional networks, on one thread and on two."""
    program = example("train", "bench_step")
    found = {}  # (case, threads, who) -> {variant: [row per turn]}
    cases = [(case, 1) for case in CONVOLUTION_CASES]
    if os.cpu_count() > 1:
        cases.insert(1, ("cnn", 2))
    else:
        NOTES.append("Steps on two threads are not measured: there is one core")
    for turn in range(A.rounds):
        for case, threads in cases:
            choice = ["--case", case, "--seconds", A.seconds, "--threads", threads]
            sides = [("ours", [program, *choice, "--variants", "forward,plain-adam,dp-adam,clipped sum"])]
            if not A.only_ours and case not in CHANGES:
                sides.append(("peer", [python, ROOT / "bench/step/peer_cnn.py", *choice]))
            for side, command in sides:
                for row in execute(command, "convolution", side, turn)[0]:
                    if row.get("kind") == "check" and not row["passed"]:
                        NOTES.append(f"{row['peer']} {row['variant']} on {row['case']} disagrees with the per-record loop by "
                                     f"{row['relative_difference']:.1e}: not timed")
                    if row.get("kind") == "step":
                        if threads > 1:  # CPU times add up or leave out what other threads do
                            row = {key: value for key, value in row.items() if not key.startswith("cpu_")}
                        who = "ours" if side == "ours" else row["peer"]
                        found.setdefault((case, threads, who), {}).setdefault(row["variant"], []).append(row)

    def beside_peers(case, threads):
        for variant, mine in found.get((case, threads, "ours"), {}).items():
            base, cells = [mine_row(m) for m in mine], [case, variant, spread(mine)]
            for name in {"plain-adam": ["plain"], "dp-adam": ["opacus", "bookkeeping"]}.get(variant, []):
                theirs = {v: r for v, r in found.get((case, threads, name), {}).items() if len(r) == len(mine)}
                if theirs:
                    best = min(theirs, key=lambda v: statistics.median(mine_row(r) for r in theirs[v]))
                    cells += [f"{name} {best}", spread(theirs[best]), ratio(base, [mine_row(r) for r in theirs[best]])]
            yield cells + ["-"] * (9 - len(cells))

    header = ["case", "ours", "ms", "first peer", "ms", "ratio", "second peer", "ms", "ratio"]
    rows = [row for case in ("cnn", "vgg16", "mobilenet") for row in beside_peers(case, 1)]
    table("One step of a convolutional network, one thread (CPU milliseconds: median of the medians, lowest single step)", header, rows,
          "cnn: 32 x 32 x 3, batch 64; vgg16: 32 x 32 x 3, batch 16; mobilenet with group normalization: 128 x 128 x 3, batch 4.")
    rows = [row for row in beside_peers("cnn", 2) if row[1] in ("plain-adam", "dp-adam")]
    if rows:
        table("One step on two threads (milliseconds by the clock)", header, rows)
    rows = []
    for case, what in {"cnn": "3 x 3 windows, average pooling", **CHANGES}.items():
        cells = [what]
        for variant in ("plain-adam", "dp-adam"):
            mine, base = found[case, 1, "ours"][variant], found["cnn", 1, "ours"][variant]
            cells += [spread(mine), ratio([mine_row(r) for r in base], [mine_row(r) for r in mine])]
        rows.append(cells)
    table("What other layers cost: the same step with one thing changed (CPU milliseconds, and over the first row)",
          ["six convolutions", "plain-adam, ms", "ratio", "dp-adam, ms", "ratio"], rows)


def inference(python):
    """Forward passes of ONNX models, one thread."""
    program = example("model", "bench_inference", "--features", "onnx")
    peer = [python, ROOT / "bench/inference/peer_inference.py"]
    shared = ROOT.parent / "shared/data/models/imagenet/mobilenet_v2_imagenet.onnx"
    with tempfile.TemporaryDirectory() as folder:
        execute([program, "--write", folder], "inference", "ours", 1)
        models = [("VGG-16, 32 x 32", Path(folder) / "vgg16-32.onnx", 16), ("VGG-16, 224 x 224", Path(folder) / "vgg16-224.onnx", 1)]
        if shared.exists():
            models.append(("MobileNetV2, 224 x 224", shared, 1))
        else:
            NOTES.append("MobileNetV2 is not measured: the shared reference material is not beside the project")
        rows = []
        for name, model, records in models:
            ours, theirs, worst = [], [], 0
            for turn in range(A.rounds):
                choice = ["--model", model, "--records", records, "--seconds", A.seconds]
                (mine,) = execute([program, *choice], "inference", "ours", turn)[0]
                ours.append(mine)
                if not A.only_ours:
                    (other,) = execute([*peer, *choice], "inference", "peer", turn)[0]
                    theirs.append(other)
                    off = max(abs(a - b) for a, b in zip(mine["outputs"], other["outputs"]))
                    worst = max(worst, off / max(1, other["largest"]))
            line = [name, records] + [f"{fixed(statistics.median(mine_row(r) for r in ours))}, {fixed(min(r['cpu_min_ms'] for r in ours))}"]
            if theirs:
                line += [f"{fixed(statistics.median(mine_row(r) for r in theirs))}, {fixed(min(r['cpu_min_ms'] for r in theirs))}",
                         ratio([mine_row(r) for r in ours], [mine_row(r) for r in theirs]), f"{worst:.1e}"]
            rows.append(line + ["-"] * (6 - len(line)))
    table("Forward passes beside ONNX Runtime, one thread (CPU milliseconds: median of the medians, lowest single pass)",
          ["model", "records", "ours", "ONNX Runtime", "ratio", "outputs differ by (of the largest or 1)"], rows)


# What bench_privacy calls a case, and what the peer calls it.
PEER_CASES = {
    "pld rate=0.01 noise=1 steps=10000": ("accounting", "1e4", "epsilon"),
    "pld rate=0.001 noise=1 steps=1000000": ("accounting", "1e6", "epsilon"),
    "noise for epsilon=3 rate=0.01 steps=10000": ("calibration", "epsilon3", "noise"),
}


def in_the_peers_words(found):
    for row in found:
        if row["name"] in PEER_CASES:
            kind, case, value = PEER_CASES[row["name"]]
            key = "epsilon_upper" if kind == "accounting" else "noise_multiplier"
            yield dict(kind=kind, case=case, cpu_ms=row["seconds"] * 1e3, **{key: row[value]})


def accounting(python):
    """Epsilon and calibration."""
    program = example("privacy", "bench_privacy")
    ours, peer = [], []
    for turn in range(A.rounds):
        ours += in_the_peers_words(execute([program], "accounting", "ours", turn)[0])
        if not A.only_ours:
            more = ["--skip-calibration"] if turn else []
            peer += execute([python, ROOT / "bench/accounting/peer_accounting.py", "--repeats", 2, *more], "accounting", "peer", turn)[0]
    rows = []
    for kind, value in [("accounting", "epsilon_upper"), ("calibration", "noise_multiplier")]:
        for case in dict.fromkeys(r["case"] for r in ours if r.get("kind") == kind):
            mine = [r for r in ours if r.get("kind") == kind and r["case"] == case]
            theirs = [r for r in peer if r.get("kind") == kind and r["case"] == case and r["variant"].startswith("pld")]
            best = {}
            for r in theirs:
                best.setdefault(r["variant"], []).append(r)
            chosen = min(best.values(), key=lambda v: statistics.median(r["cpu_ms"] for r in v)) if best else []
            my_times, times = [r["cpu_ms"] for r in mine], [r["cpu_ms"] for r in chosen]
            rows.append([
                f"{kind} {case}", f"{mine[0][value]:.6f}", fixed(statistics.median(my_times)),
                f"{chosen[0][value]:.6f}" if chosen else "-", fixed(statistics.median(times)) if chosen else "-",
                ratio(my_times[: len(times)], times) if chosen else "-",
                f"{mine[0][value] / chosen[0][value] - 1:+.1e}" if chosen else "-",
            ])
    table("Accounting: PLD, delta 1e-5, AddRemove (CPU ms; dp_accounting at interval 1e-4)",
          ["case", "ours", "ms", "dp_accounting", "ms", "ratio", "value, ours over peer"], rows)


def noise(_):
    """Samples a second; no peer draws exact noise at a comparable speed, so this is a yardstick and not a race."""
    program = example("privacy", "bench_privacy")
    rows = {}
    for turn in range(A.rounds):
        for r in execute([program], "noise", "ours", turn)[0]:
            if "samples_per_second" in r:
                law, sampler, generator = r["name"].split()
                rows.setdefault((f"{sampler} {law}", generator), []).append(r["samples_per_second"] / 1e6)
    table("Noise (million samples a second, one core)", ["sampler", "generator", "median", "lowest", "highest"],
          [[*key, fixed(statistics.median(v)), fixed(min(v)), fixed(max(v))] for key, v in rows.items()])


def regression(_):
    """A private linear model of a CSV of a million rows and 14 features, and draws of every mechanism."""
    folder = Path(os.environ.get("DOSIMETER_BENCH_REGRESSION_VENV", ROOT / ".venv-bench-regression"))
    python = folder / "bin" / "python"
    if not A.only_ours and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", "-r", str(ROOT / "bench/regression/requirements.txt")], check=True)
    build("-p", "dosimeter-cli")
    program = example("train", "bench_regression")
    rows = []
    with tempfile.TemporaryDirectory() as place:
        bounds = Path(place) / "bounds.toml"
        columns = [f"x{j}" for j in range(14)]
        bounds.write_text("".join(f"[columns.{c}]\nlower = -1\nupper = 1\n" for c in columns) + '[target]\nname = "y"\nlower = -2\nupper = 2\n')
        for n in [100_000, 1_000_000]:
            path = Path(place) / f"{n}.csv"
            state = 1
            with path.open("w") as out:
                out.write(",".join(columns + ["y"]) + "\n")
                for _ in range(n):
                    numbers = []
                    for _ in range(14):
                        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                        numbers.append((state >> 40) / 2**23 - 1.0)
                    y = 0.3 + 0.5 * numbers[0] - 0.4 * numbers[1] + 0.2 * numbers[2]
                    out.write(",".join(f"{x:.6f}" for x in numbers) + f",{y:.6f}\n")
            files = [path]
            if not A.only_ours:
                # As people write it: pandas' defaults, one group of a million rows, compressed by snappy.
                files.append(path.with_suffix(".parquet"))
                script = "import pandas, sys; pandas.read_csv(sys.argv[1]).to_parquet(sys.argv[2])"
                subprocess.run([str(python), "-c", script, str(path), str(files[1])], check=True)
            for path in files:
                ours, alone, peer, reads, memory = [], [], [], [], []
                for turn in range(A.rounds):
                    command = [target() / "dosimeter", "regress", "fit", path, "--bounds", bounds, "--epsilon", 1, "--out", Path(place) / "model.json"]
                    _, wall, _, peak = execute(command, "regression", "ours", turn)
                    ours.append(wall)
                    memory.append(peak)
                    alone.append(execute(command + ["--threads", 1], "regression", "ours", turn)[1])
                    if not A.only_ours:
                        line = execute([python, ROOT / "bench/regression/peer_regression.py", path], "regression", "peer", turn)[0][0]
                        peer.append(line["fit_s"])
                        reads.append(line["total_s"])
                rows.append([
                    path.suffix[1:], f"{n:,}", fixed(statistics.median(ours)), fixed(max(memory)), fixed(statistics.median(alone)),
                    fixed(statistics.median(reads)) if peer else "-", ratio(ours, reads) if peer else "-", ratio(alone, reads) if peer else "-",
                    fixed(statistics.median(peer)) if peer else "-",
                ])
        table("Regression: a file of 14 features to a private model (wall s; ours is the whole command)",
              ["file", "rows", "ours, read and fit", "peak MiB", "on one thread", "diffprivlib, read and fit", "ratio", "on one thread", "its fit alone"], rows)
        found = execute([program], "regression", "ours", 0)[0]
    sums = [r for r in found if r.get("kind") == "sums"]
    table("Regression: rows in memory (one core; sums are all that a fit reads, the rest takes a tenth of a millisecond)",
          ["rows", "ours, sums, s", "GB/s", "GB/s of reading alone", "diffprivlib, fit, s", "ratio"],
          [[f"{r['rows']:,}", fixed(r["seconds"]), fixed(r["gigabytes_per_second"]), fixed(r["memory_gigabytes_per_second"]), fixed(statistics.median(peer)) if peer else "-",
            ratio([r["seconds"]] * len(peer), peer) if peer else "-"] for r in sums])
    table("Regression: 1,000 draws on 3,213 rows of 14 features at epsilon 1", ["mechanism", "released", "s"],
          [[r["mechanism"], r["released"], fixed(r["seconds"])] for r in found if r.get("kind") == "draws"])


def audit(python):
    """ROC, AUC and bounds of a million scores."""
    program = example("audit", "bench_audit")
    ours, peer = [], []
    for turn in range(A.rounds):
        ours += [r for r in execute([program], "audit", "ours", turn)[0] if r.get("scores") == 1_000_000]
        if not A.only_ours:
            peer += execute([python, ROOT / "bench/audit/peer_audit.py", "--repeats", 1], "audit", "peer", turn)[0]
    pick = lambda name: [r["wall_ms"] for r in peer if r.get("variant") == name]  # noqa: E731
    rows = []

    def line(what, mine, name):
        theirs = pick(name)
        rows.append([what, fixed(statistics.median(mine)), name if theirs else "-",
                     fixed(statistics.median(theirs)) if theirs else "-", ratio(mine, theirs) if theirs else "-"])

    joined = [r["join_roc_auc_ms"] for r in ours]
    line("evidence, ROC, AUC with interval", joined, "roc_auc_score")
    line("evidence, ROC, AUC with interval", joined, "roc_curve")
    line("evidence, ROC, AUC with interval", joined, "rank_auc_numpy")
    bounds = [name for name, value in ours[0].items() if isinstance(value, dict)]
    for name in bounds:
        line(f"{name} over all thresholds", [r[name]["ms"] for r in ours],
             "epsilon_lower_all_thresholds" if name == "clopper_pearson" else "none")
    line("everything once", [r["all_ms"] for r in ours], "none")
    table("Audit of 1,000,000 scores (ms, one thread)", ["what", "ours", "peer", "ms", "ratio"], rows)


def scaled_study(folder, records, shadows, epochs):
    """bench/blackbox/study.toml with other sizes."""
    text = (ROOT / "bench/blackbox/study.toml").read_text()
    for mark, value in [("# 6 n", 6 * records), ("# n$", records), ("# epochs", epochs), ("# shadows", shadows)]:
        text, count = re.subn(rf"= \d+ ({mark})", rf"= {value} \1", text, flags=re.MULTILINE)
        if not count:
            raise RuntimeError(f"bench/blackbox/study.toml has no number marked {mark!r}")
    path = Path(folder) / "study.toml"
    path.write_text(text)
    return path


def our_study(records, shadows, epochs, turn, area="blackbox"):
    folder = tempfile.mkdtemp(prefix="dosimeter-bench-")
    try:
        path = scaled_study(folder, records, shadows, epochs)
        _, wall, cpu, memory = execute(
            [target() / "dosimeter", "run", path, "--out", Path(folder) / "run", "--threads", 2], area, "ours", turn)
        report = json.loads((Path(folder) / "run" / "report.json").read_text())
        figures = {arm["setting"]: {
            a["attack"]: a["auc"]["value"] for a in arm["attacks"] if a["candidate_law"] == "same-law"} | {"test": arm["test_accuracy"]["value"]}
                   for arm in report["arms"]}
        ROWS.append(dict(area=area, side="ours", turn=turn, kind="study", records=records, shadows=shadows, epochs=epochs,
                         wall_s=wall, cpu_s=cpu, rss_mib=memory, figures=figures))
        return wall, cpu, memory, figures
    finally:
        shutil.rmtree(folder)


def peer_study(python, records, shadows, epochs, turn, *choices):
    found, wall, cpu, _ = execute(
        [python, ROOT / "bench/blackbox/peer_blackbox.py", "--records", records, "--shadows", shadows, "--epochs", epochs, *choices],
        "blackbox", "peer", turn)
    return wall, cpu, found[0]["rss_mib"], found[0]


def blackbox(python):
    """The whole study, end to end, two cores on both sides."""
    build("-p", "dosimeter-cli")
    size = (A.records, A.shadows, A.epochs)
    peers = {}
    if not A.only_ours:
        # Both peers with their best settings, found on a small study: processes against threads.
        small = (max(500, A.records // 8), 2, max(2, A.epochs // 10))
        for attack in A.peer_attacks.split(","):
            trials = [["--processes", p, "--threads", t, "--attack", attack] for p, t in (("2", "1"), ("1", "2"))]
            timed = sorted((peer_study(python, *small, 1, *trial)[0], trial) for trial in trials)
            peers[attack] = (timed[0][1], [])
            NOTES.append(f"black-box peer, {attack} attack, trial on a small study: " + "; ".join(
                f"{trial[1]} process(es) x {trial[3]} thread(s) {wall:.1f} s" for wall, trial in timed))
    ours = []
    for turn in range(A.study_rounds):
        ours.append(our_study(*size, turn))
        for choices, found in peers.values():
            found.append(peer_study(python, *size, turn, *choices))
    named = {"batched": "all classes' attack networks as one batched PyTorch product", "sklearn": "an `MLPClassifier` per class"}
    rows = []
    for index, what in enumerate(["wall s", "CPU s", "peak memory MiB"]):
        mine = [o[index] for o in ours]
        rows.append([what, fixed(statistics.median(mine))])
        for _, found in peers.values():
            theirs = [p[index] for p in found]
            rows[-1] += [fixed(statistics.median(theirs)), ratio(mine, theirs)]
    remarks = ["The peers train, attack and print figures; ours also judges a second attack population, bounds epsilon from below, "
               "bootstraps and writes the report."]
    head = [cell for attack in peers for cell in (named[attack], "ratio")]
    table(f"Black-box study: n = {A.records:,}, {A.shadows} shadows, 3 settings, {A.epochs} epochs, 2 cores",
          ["what", "ours", *head], rows, *remarks)
    for attack, (_, found) in peers.items():
        names = {"no-dp": "no DP", "central": "central", "local": "local"}
        rows = []
        for theirs in found[0][3]["settings"]:
            mine = next(v for k, v in ours[0][3].items() if k.startswith(names[theirs["setting"]]))
            rows.append([theirs["setting"], *(fixed(v) for v in (
                mine["test"], theirs["test_accuracy"], mine["loss_threshold"], theirs["loss_threshold"]["auc"],
                mine["shadow_model"], theirs["shadow_model"]["auc"]))])
        table(f"The same study? Figures of both sides (other random numbers, so equal up to chance): {named[attack]}",
              ["setting", "test accuracy, ours", "peer", "loss AUC, ours", "peer", "shadow AUC, ours", "peer"], rows)


def scaling(_):
    """Is time linear in shadows and in records?"""
    build("-p", "dosimeter-cli")
    epochs = max(2, A.epochs // 3)
    rows = []
    for what, sizes in [
        ("shadows", [(A.records // 4, s) for s in (5, 10, 20, 40)]),
        ("records", [(A.records * k // 8, max(2, A.shadows // 2)) for k in (1, 2, 4, 8)]),
    ]:
        first = None
        for records, shadows in sizes:
            _, cpu, memory, _ = our_study(records, shadows, epochs, 0, "scaling")
            unit = cpu / (records * (shadows + 1))
            first = first or unit
            rows.append([what, f"{records:,}", shadows, fixed(cpu), f"{unit / first:.2f}", fixed(memory)])
    table(f"Scaling of our study ({epochs} epochs)",
          ["varied", "n", "shadows", "CPU s", "CPU per record and model, over the first row's", "memory MiB"], rows,
          "Linear means that the last but one column stays near or below 1: fixed costs make the smallest study the dearest per record.")


GRAPH_STUDY = """name = "graphs"
seed = 1
[dataset]
kind = "dgcnn"
path = "graphs.txt"
most_degree = 491
[split]
train = {n}
test = 100
membership = "fixed-half"
[target]
model = "dgcnn"
nodes = 130
learning_rate = 1e-3
batch_size = 50
epochs = {plain}
[shadows]
count = 0
[[arms]]
central = {{ noise_multipliers = [1], clipping_norm = 1 }}
epochs = {private}
[attacks]
names = ["loss_threshold"]
"""


def collab(path):
    """Class and lines of each graph of COLLAB, and its edges."""
    with zipfile.ZipFile(path) as held:
        lines = held.read(next(n for n in held.namelist() if n.endswith("COLLAB.txt"))).decode().splitlines()
    graphs, at = [], 1
    for _ in range(int(lines[0])):
        nodes = int(lines[at].split()[0])
        body = lines[at:at + nodes + 1]
        graphs.append((sum(int(line.split()[1]) for line in body[1:]) // 2, nodes, body))
        at += nodes + 1
    return graphs


def graphs(_):
    """Is an epoch of DGCNN linear in edges? COLLAB in fifths, the sparsest graphs first, then all of it by numbers of records."""
    path = Path(os.environ.get("DOSIMETER_BENCH_COLLAB", ROOT / "../shared/data/tudataset/COLLAB.zip"))
    if not path.exists():
        NOTES.append(f"graphs: no {path}; set DOSIMETER_BENCH_COLLAB")
        return
    build("-p", "dosimeter-cli")
    everything = sorted(collab(path), key=lambda graph: graph[0])
    fifth = len(everything) // 5
    cases = [(f"fifth {k + 1} by edges", everything[k * fifth:(k + 1) * fifth]) for k in range(5)]
    cases += [(f"one of {k}", everything[::k]) for k in (4, 2)] + [("all", everything)]
    rows = []
    for name, chosen in cases:
        records = (len(chosen) - 100) // 2
        edges, nodes = (statistics.mean(g[i] for g in chosen) for i in (0, 1))
        folder = Path(tempfile.mkdtemp(prefix="dosimeter-bench-"))
        try:
            (folder / "graphs.txt").write_text("\n".join([str(len(chosen)), *(line for g in chosen for line in g[2])]) + "\n")
            def spent(plain, private):
                (folder / "study.toml").write_text(GRAPH_STUDY.format(n=records, plain=plain, private=private))
                shutil.rmtree(folder / "run", ignore_errors=True)
                command = [target() / "dosimeter", "run", folder / "study.toml", "--out", folder / "run", "--threads", 1]
                _, _, cpu, memory = execute(command, "graphs", "ours", 0)
                return cpu, memory
            few, plain, private = spent(1, 1), spent(11, 1), spent(1, 11)
            each = [(more[0] - few[0]) / 10 for more in (plain, private)]
            memory = max(plain[1], private[1])
            ROWS.append(dict(area="graphs", side="ours", turn=0, kind="epoch", graphs=name, records=records, edges_mean=edges,
                             nodes_mean=nodes, plain_cpu_s=each[0], private_cpu_s=each[1], rss_mib=memory))
            us = [1e6 * seconds / records for seconds in each]
            rows.append([name, f"{records:,}", fixed(nodes), fixed(edges), *map(fixed, each), *(f"{t:.0f}" for t in us), fixed(memory)])
        finally:
            shutil.rmtree(folder)
    table("An epoch of DGCNN on COLLAB (one thread, batches of 50, CPU time)",
          ["graphs", "n", "nodes, mean", "edges, mean", "epoch s, no DP", "epoch s, DP", "us per graph, no DP", "us per graph, DP", "memory MiB"], rows,
          "An epoch is a tenth of the difference between runs of 11 epochs and 1. Layers behind the sort pooling cost the same for every graph.")


# --- record ----------------------------------------------------------------------------------


def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor():
    facts = {}
    for line in said("lscpu").splitlines():
        name, _, value = line.partition(":")
        facts[name.strip()] = value.strip()
    flags = [f for f in ("avx2", "avx512f") if f in facts.get("Flags", "").split()]
    return f"{facts.get('Model name', platform.processor())}, {os.cpu_count()} cores, {' '.join(flags) or platform.machine()}"


def write(python):
    date = datetime.datetime.now().strftime("%Y-%m-%d")
    machine = re.sub(r"[^a-z0-9]+", "-", processor().split(",")[0].lower()).strip("-")
    folder = ROOT / "bench/runs" / (A.name or f"{date}-{machine}")
    folder.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()
    packages = said(python, "-m", "pip", "freeze") if python else "no peers"
    kept = ("torch", "opacus", "scikit-learn", "scipy", "numpy", "dp-accounting", "onnxruntime", "diffprivlib", "pandas", "pyarrow")
    versions = ", ".join(line for line in packages.splitlines() if line.split("==")[0].split(" ")[0] in kept)
    dirty = " (with uncommitted changes)" if said("git", "status", "--porcelain", "--untracked-files=no") else ""
    (folder / "setup.md").write_text("\n".join([
        f"# Setup of {folder.name}", "",
        f"- processor: {processor()}",
        f"- system: {platform.system()} {platform.release()}, glibc {platform.libc_ver()[1]}",
        f"- load averages at the end: {load[0]:.1f} {load[1]:.1f} {load[2]:.1f}",
        f"- commit: {said('git', 'rev-parse', 'HEAD')}{dirty}",
        f"- compiler: {said('rustc', '--version')}; Python {platform.python_version()}",
        f"- peers: {versions}",
        f"- command: bench/run.py {' '.join(sys.argv[1:])}",
        *([f"- note: {A.note}"] if A.note else []),
        "", "## Commands, first turn of each", "", *[f"    {c}" for c in COMMANDS], "",
    ]))
    keys = list(dict.fromkeys(k for row in ROWS for k in row))
    with open(folder / "raw.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, keys)
        writer.writeheader()
        writer.writerows({k: json.dumps(v) if isinstance(v, (dict, list)) else v for k, v in row.items()} for row in ROWS)
    notes = ["## Notes", "", *[f"- {note}" for note in NOTES], ""] if NOTES else []
    (folder / "summary.md").write_text("\n".join([
        f"# Dosimeter and its peers, {folder.name}", "",
        f"{processor()}. Ratios are peer over ours within a turn: median (lowest-highest) of the turns. Under 1.3 is a tie.", "",
        *TABLES, *notes]))
    print(f"written: {folder}", file=sys.stderr)


def main():
    python = None if A.only_ours else environment_python()
    areas = dict(step=step, convolution=convolution, inference=inference, accounting=accounting, noise=noise, audit=audit, blackbox=blackbox, scaling=scaling, regression=regression, graphs=graphs)
    failed = False
    for name in A.areas.split(","):
        try:
            areas[name](python)
        except Exception as error:  # what was measured before must not be lost
            failed = True
            NOTES.append(f"{name} did not finish: {error}")
            traceback.print_exc()
    write(python)
    sys.exit(failed)


if __name__ == "__main__":
    main()
