"""Writes privacy_accounting.json: epsilon of small ledgers by exact arithmetic, or by dp_accounting on a fine grid.

    pip install mpmath==1.3.0 dp-accounting==0.6.0
    python golden/privacy_accounting.py
"""
import json
import pathlib

import dp_accounting
import mpmath as mp
from dp_accounting.pld import privacy_loss_distribution as pld

mp.mp.dps = 50


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def solve(delta_of, delta, low=0, high=1):
    """Least epsilon >= 0 with delta_of(epsilon) <= delta, by bisection in 50 digits."""
    if delta_of(mp.mpf(0)) <= delta:
        return mp.mpf(0)
    low, high = mp.mpf(low), mp.mpf(high)
    while delta_of(high) > delta:
        low, high = high, high * 2
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
    return high


def gaussian(mu):
    return lambda e: tail(e / mu - mu / 2) - mp.exp(e) * tail(e / mu + mu / 2)


def sampled_gaussian(q, z):
    """Both directions, from the likelihood ratio: no formula shared with the Rust code."""

    def removing(e):
        t = z**2 * mp.log((mp.exp(e) - 1 + q) / q) + mp.mpf(1) / 2
        p = (1 - q) * tail(t / z) + q * tail((t - 1) / z)
        return p - mp.exp(e) * tail(t / z)

    def adding(e):
        x = mp.exp(-e) - 1 + q
        if x <= 0:
            return mp.mpf(0)
        t = z**2 * mp.log(x / q) + mp.mpf(1) / 2
        return (1 - tail(t / z)) - mp.exp(e) * ((1 - q) * (1 - tail(t / z)) + q * (1 - tail((t - 1) / z)))

    return lambda e: max(removing(e), adding(e))


def sampled_laplace(q, b):
    """Both directions for noise scale b, from the likelihood ratio."""
    q, b = mp.mpf(q), mp.mpf(b)

    def below(loss):  # P(loss <= .) without the record, and with it, of the unsampled release
        if loss >= 1 / b:
            return mp.mpf(1), mp.mpf(1)
        if loss < -1 / b:
            return mp.mpf(0), mp.mpf(0)
        return 1 - mp.exp(-(loss + 1 / b) / 2) / 2, mp.exp((loss - 1 / b) / 2) / 2

    def removing(e):
        without, with_record = below(mp.log((mp.exp(e) - 1 + q) / q))
        return (1 - q) * (1 - without) + q * (1 - with_record) - mp.exp(e) * (1 - without)

    def adding(e):
        x = mp.exp(-e) - 1 + q
        if x <= 0:
            return mp.mpf(0)
        without, with_record = below(mp.log(x / q))
        return without - mp.exp(e) * ((1 - q) * without + q * with_record)

    return lambda e: max(removing(e), adding(e))


def responses(epsilon, k, n):
    """n answers: a trinomial law of the loss, summed exactly."""
    keep = mp.exp(epsilon) / (mp.exp(epsilon) + k - 1)
    lie = 1 / (mp.exp(epsilon) + k - 1)
    rest = (k - 2) * lie
    law = {}
    for a in range(n + 1):
        for b in range(n + 1 - a):
            c = n - a - b
            if c and k == 2:
                continue
            m = mp.binomial(n, a) * mp.binomial(n - a, b) * keep**a * lie**b * (rest**c if c else 1)
            law[a - b] = law.get(a - b, 0) + m
    return lambda e: mp.fsum(m * (1 - mp.exp(e - s * epsilon)) for s, m in law.items() if s * epsilon > e)


def event(kind, **fields):
    return {"kind": kind, **fields}


def normal(z):
    return event("gaussian", noise_multiplier=z)


def sampled(q, inner):
    return event("poisson_sampled", sampling_rate=q, event=inner)


cases = []


def add(events, relation, delta, epsilon, exact):
    cases.append({"events": events, "relation": relation, "delta": delta, "epsilon": float(epsilon), "exact": exact})


for delta in [1e-3, 1e-5, 1e-10, 1e-18]:
    add([[normal(1.0), 1]], "add-remove", delta, solve(gaussian(mp.mpf(1)), delta), True)
    add([[normal(4.0), 10]], "add-remove", delta, solve(gaussian(mp.sqrt(10) / 4), delta), True)
    add([[normal(2.0), 1]], "replace-one", delta, solve(gaussian(mp.mpf(1)), delta), True)
    for q, z in [(0.01, 0.5), (0.01, 1.0), (0.1, 2.0)]:
        exact = solve(sampled_gaussian(mp.mpf(q), mp.mpf(z)), delta)
        add([[sampled(q, normal(z)), 1]], "add-remove", delta, exact, True)
    for q, b in [(0.01, 2.0), (0.1, 1.0), (0.5, 0.5)]:
        laplace = event("poisson_sampled", sampling_rate=q, event=event("laplace", scale=b))
        add([[laplace, 1]], "add-remove", delta, solve(sampled_laplace(q, b), delta), True)
    for eps, k, n in [(0.5, 2, 40), (1.0, 5, 30), (0.1, 2, 100)]:
        e = event("randomized_response", epsilon=eps, categories=k)
        add([[e, n]], "local", delta, solve(responses(mp.mpf(eps), k, n), delta), True)


def fine(parts, interval, delta):
    """dp_accounting, pessimistic, on a grid fine enough that its own excess is below 2e-5."""
    total = None
    for q, z, n in parts:
        one = pld.from_gaussian_mechanism(z, sampling_prob=q, value_discretization_interval=interval)
        many = one.self_compose(n)
        total = many if total is None else total.compose(many)
    return total.get_epsilon_for_delta(delta)


for parts, interval in [
    ([(0.01, 1.0, 1000)], 2e-5),
    ([(0.004, 1.1, 10000)], 2e-5),
    ([(0.05, 4.0, 2000)], 2e-5),
    ([(0.01, 1.0, 500), (0.02, 2.0, 500)], 2e-5),
]:
    for delta in [1e-5, 1e-7]:
        events = [[sampled(q, normal(z)), n] for q, z, n in parts]
        add(events, "add-remove", delta, fine(parts, interval, delta), False)

path = pathlib.Path(__file__).with_suffix(".json")
provenance = {
    "script": "golden/privacy_accounting.py",
    "oracle": f"mpmath {mp.__version__} at 50 digits (exact: true); dp-accounting {dp_accounting.__version__ if hasattr(dp_accounting, '__version__') else '0.6.0'} PLD, interval 2e-5 (exact: false)",
    "source": "definitions of the mechanisms; Balle & Wang 2018 Theorem 8 for Gaussian noise",
}
path.write_text(json.dumps({"provenance": provenance, "tolerance": 2e-4, "cases": cases}, indent=1) + "\n")
