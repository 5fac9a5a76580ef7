#!/usr/bin/env python3
"""Recomputes the numbers of a finished run without any of Dosimeter's code, and compares.

    .venv-bench/bin/python bench/check/independent_check.py RUN_DIRECTORY

Reads report.json, the score and query artifacts of the run directory, and draws the fair coins of
membership anew from the study's seed (BLAKE3). From these, with numpy, scipy, scikit-learn and
dp_accounting:

- loss-threshold scores from the logits;
- AUC (Mann-Whitney ranks; scikit-learn), DeLong's interval by the quadratic-time formula on a grid of
  placements, average precision, TPR at each FPR with its Clopper-Pearson interval;
- the three lower bounds on epsilon, by scipy's binomial, beta and normal laws and scalar root finding;
- epsilon_upper of Gaussian arms by dp_accounting (PLD at interval 1e-4, and its RDP), of randomized
  response by the exact binomial law of the privacy loss;
- phi of both definitions from the reported accuracies and AUCs; the mean over repeats.

Where equal scores straddle a cut, the order among them is the program's choice: then both extremes are
computed and the reported number must lie between them. Prints one line per disagreement and a count;
leaves with 1 if anything disagrees.
"""

import argparse
import json
import math
import os
import struct
import sys
import tomllib
from pathlib import Path

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)

import blake3
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, binom, norm, rankdata
from sklearn.metrics import average_precision_score, roc_auc_score


class Comparison:
    def __init__(self):
        self.count, self.problems, self.skipped = 0, [], []

    def close(self, where, reported, own, relative=1e-9, absolute=1e-12):
        self.count += 1
        if not abs(reported - own) <= absolute + relative * max(abs(reported), abs(own)):
            self.problems.append(f"{where}: report {reported!r}, recomputed {own!r}")

    def between(self, where, reported, low, high, slack=1e-6):
        self.count += 1
        if not low - slack <= reported <= high + slack:
            self.problems.append(f"{where}: report {reported!r}, recomputed between {low!r} and {high!r}")

    def holds(self, where, condition):
        self.count += 1
        if not condition:
            self.problems.append(where)


# --- artifacts ---------------------------------------------------------------------------------


def artifact(run, identity):
    data = (run / "tasks" / identity[:2] / identity).read_bytes()
    head, _, payload = data.partition(b"\n")
    digest = head.split(b" ")[2].decode()
    if blake3.blake3(payload).hexdigest() != digest:
        raise SystemExit(f"artifact {identity} does not match its digest")
    return payload


def unpack(payload):
    head, _, rest = payload.partition(b"\n")
    header = json.loads(head)
    arrays = []
    for length in header["arrays"]:
        arrays.append(rest[:length])
        rest = rest[length:]
    return header["facts"], arrays


def scores_of(payload):
    _, (records, values, _) = unpack(payload)
    return np.frombuffer(records, "<u4"), np.frombuffer(values, "<f8")


def signals_of(payload):
    facts, arrays = unpack(payload)
    records, labels = np.frombuffer(arrays[0], "<u4"), np.frombuffer(arrays[1], "<u4")
    return records, labels, np.frombuffer(arrays[2], "<f4").reshape(len(records), facts["classes"])


# --- membership --------------------------------------------------------------------------------


def root_seed(number):
    return blake3.blake3(struct.pack("<Q", number), derive_key_context="dosimeter 2026 root seed").digest()


def child(seed, label):
    return blake3.blake3(b"label:" + label.encode(), key=seed).digest()


def index(seed, number):
    return blake3.blake3(b"index:" + struct.pack("<Q", number), key=seed).digest()


def coins(study_seed, repeat, records):
    seed = child(index(child(root_seed(study_seed), "repeat"), repeat), "membership")
    return np.array([index(seed, int(r))[0] & 1 == 1 for r in records])


# --- rates -------------------------------------------------------------------------------------


def mann_whitney(member, scores):
    ranks = rankdata(scores)
    n, m = member.sum(), (~member).sum()
    return (ranks[member].sum() - n * (n + 1) / 2) / (n * m)


def delong(member, scores, confidence):
    inside, outside = scores[member], scores[~member]
    ordered_out, ordered_in = np.sort(outside), np.sort(inside)
    placement = lambda x, other: (np.searchsorted(other, x, "left") + np.searchsorted(other, x, "right")) / 2 / len(other)  # noqa: E731
    v10, v01 = placement(inside, ordered_out), 1 - placement(outside, ordered_in)
    auc = v10.mean()
    variance = v10.var(ddof=1) / len(inside) + v01.var(ddof=1) / len(outside)
    if variance <= 0:
        return None
    z = norm.ppf(0.5 + confidence / 2) * math.sqrt(variance) / (auc * (1 - auc))
    log_odds = math.log(auc / (1 - auc))
    return 1 / (1 + math.exp(z - log_odds)), 1 / (1 + math.exp(-z - log_odds))


def average_precision(member, scores):
    order = np.argsort(-scores, kind="stable")
    truth, ordered = member[order], scores[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    hits = np.cumsum(truth)[ends]
    return float((np.diff(hits, prepend=0) * hits / (ends + 1)).sum() / member.sum())


def lower_limit(k, n, alpha):
    return float(beta.ppf(alpha, k, n - k + 1)) if k > 0 else 0.0


def upper_limit(k, n, alpha):
    return float(beta.isf(alpha, k + 1, n - k)) if k < n else 1.0


def tpr_at(member, scores, fpr, confidence):
    """At the lowest threshold whose false-positive rate is at most `fpr`."""
    negatives = np.sort(scores[~member])[::-1]
    allowed = int(np.flatnonzero(np.arange(len(negatives) + 1) / len(negatives) <= fpr)[-1])
    # Accept scores strictly above the first negative that may not be accepted.
    hits = int(member.sum()) if allowed == len(negatives) else int((scores[member] > negatives[allowed]).sum())
    n, half = int(member.sum()), (1 - confidence) / 2
    return hits / n, lower_limit(hits, n, half), upper_limit(hits, n, half)


# --- lower bounds ------------------------------------------------------------------------------


def one_run_p(m, r, v, epsilon, delta):
    """Steinke, Nasr & Jagielski 2023, main theorem, term by term."""
    q = 1 / (1 + math.exp(-epsilon))
    tail = binom.sf(v - 1, r, q)
    if v == 0:
        return min(1.0, tail)
    i = np.arange(1, v + 1)
    between = binom.sf(v - 1 - i, r, q) - tail
    return min(1.0, tail + 2 * m * delta * float(np.max(between / i)))


def one_run_epsilon(m, r, v, alpha, delta):
    excess = lambda e: one_run_p(m, r, v, e, delta) - alpha  # noqa: E731
    if r == 0 or excess(0.0) >= 0:
        return 0.0
    high = 1.0
    while excess(high) < 0:
        high *= 2
    return brentq(excess, 0.0, high, xtol=1e-10)


def guessing_rules(m, alpha, delta):
    """The two halves; then the outermost 1/4, 1/16, ... of both ends and of the top alone, without the last ones for
    which delta alone keeps even a flawless guesser from refuting epsilon 0."""
    rules, part = [(m - m // 2, m // 2)], m // 4
    while part >= 8:
        rules += [(part // 2, part // 2), (part, 0)]
        part //= 4
    while len(rules) > 1:
        each = alpha / len(rules)
        if 2 * m * delta * (1 - each) < each * sum(rules[-1]):
            break
        rules.pop()
    return rules


def right_at_top(member, scores, count, of):
    """Fewest and most right guesses among the `count` records highest in `scores`: ties may fall either way."""
    if count == 0:
        return 0, 0
    edge = np.sort(scores)[::-1][count - 1]
    sure = scores > edge
    tied = scores == edge
    open_places = count - int(sure.sum())
    right_tied, wrong_tied = int((member[tied] == of).sum()), int((member[tied] != of).sum())
    base = int((member[sure] == of).sum())
    return base + max(0, open_places - wrong_tied), base + min(open_places, right_tied)


def one_run(member, scores, confidence, delta):
    m, rules = len(scores), guessing_rules(len(scores), 1 - confidence, delta)
    low = high = 0.0
    for top, bottom in rules:
        a, b = right_at_top(member, scores, top, True), right_at_top(member, -scores, bottom, False)
        alpha = (1 - confidence) / len(rules)
        low = max(low, one_run_epsilon(m, top + bottom, a[0] + b[0], alpha, delta))
        high = max(high, low if a[0] + b[0] == a[1] + b[1] else one_run_epsilon(m, top + bottom, a[1] + b[1], alpha, delta))
    return low, high


def ranks(count):
    rank = 1
    while rank <= count:
        yield rank
        rank += max(1, rank // 2)


def rate_limits(member, scores, confidence):
    """(accepted_low, mistaken_high) at every rank of both directions, by counting."""
    inside, outside = np.sort(scores[member]), np.sort(scores[~member])
    n, m = len(inside), len(outside)
    each = (1 - confidence) / (2 * (len(list(ranks(n))) + len(list(ranks(m)))))
    for rank in ranks(m):
        above = n - np.searchsorted(inside, outside[m - rank], "right")
        yield lower_limit(int(above), n, each), upper_limit(rank - 1, m, each)
    for rank in ranks(n):
        below = np.searchsorted(outside, inside[rank - 1], "left")
        yield lower_limit(int(below), m, each), upper_limit(rank - 1, n, each)


def clopper_pearson(member, scores, confidence, delta):
    best = 0.0
    for accepted, mistaken in rate_limits(member, scores, confidence):
        if accepted > delta:
            best = max(best, math.log((accepted - delta) / mistaken))
    return best


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))


def gdp(member, scores, confidence, delta):
    mu = max([norm.ppf(a) - norm.ppf(b) for a, b in rate_limits(member, scores, confidence)] + [0.0])
    if mu <= 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, high, xtol=1e-11)


LOWER = {
    "one-run": one_run,
    "clopper-pearson": lambda *a: (clopper_pearson(*a),) * 2,
    "gdp": lambda *a: (gdp(*a),) * 2,
}

# --- upper bounds ------------------------------------------------------------------------------


def gaussian_epsilon(accountant, relation, q, z, steps, delta):
    relation = {"add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE, "replace-one": NeighboringRelation.REPLACE_ONE}[relation]
    if accountant == "pld":
        judge = PLDAccountant(relation, value_discretization_interval=1e-4)
    else:
        judge = RdpAccountant(neighboring_relation=relation)
    event = dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(z)), steps)
    if not judge.supports(event):
        return None
    judge.compose(event)
    return judge.get_epsilon(delta)


def response_epsilon(bits, epsilon, delta):
    """Exact: with k of the bits kept, the loss of all bits together is (2 k - bits) epsilon."""
    if delta == 0:
        return bits * epsilon
    k = np.arange(bits + 1)
    keep = -math.log1p(math.exp(-epsilon))
    log_p = gammaln(bits + 1) - gammaln(k + 1) - gammaln(bits - k + 1) + k * keep + (bits - k) * (keep - epsilon)
    loss = (2 * k - bits) * epsilon

    def excess(e):
        over = loss > e
        if not over.any():
            return -math.inf
        return logsumexp(log_p[over] + np.log(-np.expm1(e - loss[over]))) - math.log(delta)

    return brentq(excess, 0.0, bits * epsilon, xtol=1e-12) if excess(0.0) > 0 else 0.0


# --- phi ---------------------------------------------------------------------------------------


def phi_paper(a0, a, c0, c, base):
    if a0 <= 0.5 or c0 <= base:
        return None
    if c0 <= c:
        return 2.0
    return min(2.0, max(0.0, (a0 - a) / (a0 - 0.5)) / ((c0 - c) / (c0 - base)))


def phi_patent(a0, a, c0, c, base):
    if a0 <= 0.5 or c0 <= base or a == 0.5:
        return None
    return ((c - base) / (c0 - base)) / ((a - 0.5) / (a0 - 0.5))


# --- the run -----------------------------------------------------------------------------------


def tasks_by_words(report):
    """`attack loss_threshold (test law), central z=2, repeat 0` -> id of its artifact."""
    return {entry["task"]: entry["id"] for entry in report["provenance"]["artifacts"]}


def check_attack(compare, where, attack, member, scores, report_confidence):
    if attack["members"] != int(member.sum()) or attack["non_members"] != int((~member).sum()):
        compare.holds(f"{where}: counts {attack['members']}+{attack['non_members']}, "
                      f"recomputed {int(member.sum())}+{int((~member).sum())}", False)
        return
    compare.close(f"{where} AUC by ranks", attack["auc"]["value"], mann_whitney(member, scores))
    compare.close(f"{where} AUC by scikit-learn", attack["auc"]["value"], roc_auc_score(member, scores))
    interval = attack["auc"].get("interval")
    own = delong(member, scores, interval["confidence"]) if interval else None
    if own:
        compare.close(f"{where} AUC low", interval["low"], own[0], 1e-8)
        compare.close(f"{where} AUC high", interval["high"], own[1], 1e-8)
    compare.close(f"{where} AP", attack["average_precision"], average_precision(member, scores))
    compare.close(f"{where} AP by scikit-learn", attack["average_precision"], average_precision_score(member, scores))
    for rate in attack["tpr_at"]:
        value, low, high = tpr_at(member, scores, rate["fpr"], report_confidence)
        compare.close(f"{where} TPR at {rate['fpr']}", rate["tpr"]["value"], value)
        if rate["tpr"]["interval"]:
            compare.close(f"{where} TPR low at {rate['fpr']}", rate["tpr"]["interval"]["low"], low, 1e-7)
            compare.close(f"{where} TPR high at {rate['fpr']}", rate["tpr"]["interval"]["high"], high, 1e-7)
        compare.holds(f"{where} resolution at {rate['fpr']}", rate["below_resolution"] == (rate["fpr"] * attack["non_members"] < 1))
    for bound in attack["epsilon_lower"]:
        low, high = LOWER[bound["bound"]](member, scores, bound["confidence"], bound["delta"])
        compare.between(f"{where} epsilon_lower {bound['bound']}", bound["value"], low, high)


def check_upper(compare, where, entry, arm, facts, steps, batch):
    if entry["value"] == "unbounded":
        compare.holds(f"{where} unbounded without a reason", arm["kind"] in ("no-dp", "clip-only"))
        return
    name = f"{where} epsilon_upper {entry['accountant']} {entry['relation']} delta {entry['delta']:.1e}"
    if arm["kind"] == "central":
        if entry["accountant"] not in ("pld", "rdp"):
            compare.skipped.append(name)
            return
        own = gaussian_epsilon(entry["accountant"], entry["relation"], batch / facts["train"], arm["noise_multiplier"], steps, entry["delta"])
        if own is None:
            compare.skipped.append(name)
            return
        if entry["accountant"] == "rdp":
            # dp_accounting drops the signs of its fractional series: an upper bound, up to 3.4 times above the signed sum.
            pld = gaussian_epsilon("pld", entry["relation"], batch / facts["train"], arm["noise_multiplier"], steps, entry["delta"])
            compare.between(name, entry["value"], pld * (1 - 1e-3), own * (1 + 1e-3))
        else:
            # Ours may be tighter than a grid of 1e-4 rounds up, or looser by the 1e-3 that is allowed.
            compare.close(name, entry["value"], own, 1e-3)
    elif arm["kind"] == "local":
        own = response_epsilon(facts["width"], arm["epsilon_per_feature"], entry["delta"])
        compare.close(name, entry["value"], own, 1e-3)
        compare.holds(f"{name} is below the exact value {own!r}", entry["value"] >= own * (1 - 1e-9))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--all-bits", action=argparse.BooleanOptionalAction, default=True,
                        help="the local randomizer acts on `width` bits (not on categories or reals)")
    run, all_bits = (lambda a: (a.run, a.all_bits))(parser.parse_args())
    report = json.loads((run / "report.json").read_text())
    study = tomllib.loads((run / "study.toml").read_text())
    if study["split"].get("membership", "coins") != "coins":
        raise SystemExit("only fair-coin membership can be drawn anew from the seed")
    tasks, compare, facts = tasks_by_words(report), Comparison(), report["dataset"]
    confidence = study.get("audit", {}).get("confidence", 0.95)
    judged = 0
    for arm in report["arms"]:
        batch = next(int(r["text"].split("batch ")[1].split(",")[0]) for r in report["provenance"]["recipes"] if r["setting"] == arm["setting"])
        for repeat in arm["repeats"]:
            where = f"{arm['setting']}, repeat {repeat['repeat']}"
            for entry in repeat["epsilon_upper"]:
                if arm["kind"] == "local" and not all_bits:
                    compare.skipped.append(f"{where} epsilon_upper")
                else:
                    check_upper(compare, where, entry, arm, facts, repeat["steps"], batch)
            read = lambda detail: artifact(run, tasks[f"{detail}, {where}"])  # noqa: B023, E731
            _, arrays = unpack(read("query"))
            candidates, labels, logits = signals_of(arrays[0])
            member_of = dict(zip(candidates.tolist(), coins(study["seed"], repeat["repeat"], candidates).tolist()))
            compare.holds(f"{where} members {repeat['members']}, coins say {sum(member_of.values())}",
                          repeat["members"] == sum(member_of.values()))
            right = logits.argmax(1) == labels
            members = np.array([member_of[r] for r in candidates.tolist()])
            compare.close(f"{where} train accuracy", repeat["train_accuracy"], float(right[members].mean()), 1e-6)
            if len(arrays) > 1:
                _, test_labels, test_logits = signals_of(arrays[1])
                compare.close(f"{where} test accuracy", repeat["test_accuracy"], float((test_logits.argmax(1) == test_labels).mean()), 1e-6)
            for attack in repeat["attacks"]:
                same = attack["candidate_law"] == "same-law"
                apart = f"attack {attack['attack']} (test law), {where}" in tasks
                records, scores = scores_of(read(f"attack {attack['attack']}" + (" (test law)" if apart and not same else "")))
                if not apart:
                    # One artifact for both populations: candidates, and test records; members are in both.
                    keep = [(r in member_of) if same else member_of.get(r, True) for r in records.tolist()]
                    records, scores = records[keep], scores[keep]
                judged += 1
                # Under the test law the non-members are test records, which no coin was drawn for.
                member = np.array([member_of.get(r, False) for r in records.tolist()])
                name = f"{where} {attack['attack']} {attack['candidate_law']}"
                check_attack(compare, name, attack, member, scores, confidence)
                if attack["attack"] == "loss_threshold" and same:
                    own = logits[np.arange(len(labels)), labels].astype(float) - logsumexp(logits.astype(float), axis=1)
                    position = {r: n for n, r in enumerate(candidates.tolist())}
                    own = own[[position[r] for r in records.tolist()]]
                    compare.holds(f"{name} scores differ by {np.abs(own - scores).max():.1e}", np.abs(own - scores).max() < 1e-5)
        for key in ("train_accuracy", "test_accuracy"):
            compare.close(f"{arm['setting']} mean {key}", arm[key]["value"], float(np.mean([r[key] for r in arm["repeats"]])))
    original = report["arms"][0]
    auc_of = lambda repeat, summary: next(  # noqa: E731
        a["auc"]["value"] for a in repeat["attacks"] if (a["attack"], a["candidate_law"]) == (summary["attack"], summary["candidate_law"]))
    for arm in report["arms"]:
        for summary in arm["attacks"]:
            where = f"{arm['setting']} {summary['attack']} {summary['candidate_law']}"
            mean = float(np.mean([auc_of(r, summary) for r in arm["repeats"]]))
            compare.close(f"{where} mean AUC", summary["auc"]["value"], mean)
            a0 = float(np.mean([auc_of(r, summary) for r in original["repeats"]]))
            numbers = (a0, mean, original["test_accuracy"]["value"], arm["test_accuracy"]["value"], 1 / facts["classes"])
            for phi in summary["phi"]:
                own = {"paper": phi_paper, "patent": phi_patent}[phi["definition"]](*numbers)
                state = phi["value"]["state"]
                if own is None or state == "undefined":
                    compare.holds(f"{where} phi {phi['definition']}: {state}, recomputed {own}", own is None and state == "undefined")
                else:
                    compare.close(f"{where} phi {phi['definition']}", phi["value"]["value"], own, 1e-9)
            # A measured bound without caveat may not exceed the proved one, where the relations are the same.
            proved = arm["epsilon_upper"][0]
            for bound in summary["epsilon_lower"]:
                if proved["value"] != "unbounded" and not bound["caveats"] and bound["relation"] == proved["relation"]:
                    compare.holds(f"{where} {bound['bound']} {bound['value']} above proved {proved['value']}", bound["value"] <= proved["value"])
    compare.holds("no attack was judged: the artifacts were not found", judged > 0)
    for problem in compare.problems:
        print("DISAGREES", problem)
    for name in compare.skipped:
        print("not recomputed:", name)
    print(f"{compare.count} comparisons over {judged} attacks, {len(compare.problems)} disagreements")
    sys.exit(1 if compare.problems else 0)


if __name__ == "__main__":
    main()
