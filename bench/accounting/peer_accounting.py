#!/usr/bin/env python3
"""Epsilon and calibration in dp_accounting: the peer of `crates/privacy/examples/bench_privacy.rs`.

PLD accounting at value_discretization_interval 1e-4 (the setting whose values ours are compared
with), two ways of asking: through `PLDAccountant` and straight through
`PrivacyLossDistribution.self_compose`; `bench/run.py` takes the faster. RDP is printed for the
record. One thread; CPU time is the comparison, since it is steadier than wall time.

Output: JSON lines `{"kind": "accounting", "case", "peer", "variant", "epsilon_upper", "cpu_ms", ...}`
and `{"kind": "calibration", ...}`.
"""

import argparse
import json
import os
import sys
import time

if os.environ.get("BENCH_ACCOUNTING_READY") != "1":
    environment = dict(os.environ, BENCH_ACCOUNTING_READY="1")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    environment.update(
        MALLOC_MMAP_THRESHOLD_="1073741824", MALLOC_TRIM_THRESHOLD_="4294967296", MALLOC_TOP_PAD_="268435456"
    )
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)

import importlib.metadata  # noqa: E402

import dp_accounting  # noqa: E402
from dp_accounting import dp_event  # noqa: E402
from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: E402
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant  # noqa: E402
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant  # noqa: E402

DELTA = 1e-5
# case -> (sampling rate, noise multiplier, steps)
CASES = {
    "1e4": (0.01, 1.0, 10_000),
    "1e6": (0.001, 1.0, 1_000_000),
}
# case -> (sampling rate, steps, epsilon asked for)
CALIBRATIONS = {"epsilon3": (0.01, 10_000, 3.0), "epsilon1": (0.016, 12_500, 1.0)}


def event(q, z, steps):
    return dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(z)), steps)


def through_accountant(interval):
    def run(q, z, steps):
        accountant = PLDAccountant(value_discretization_interval=interval)
        accountant.compose(event(q, z, steps))
        return accountant.get_epsilon(DELTA)

    return run


def direct(interval):
    def run(q, z, steps):
        one = pld.from_gaussian_mechanism(z, value_discretization_interval=interval, sampling_prob=q)
        return one.self_compose(steps).get_epsilon_for_delta(DELTA)

    return run


def rdp(q, z, steps):
    accountant = RdpAccountant()
    accountant.compose(event(q, z, steps))
    return accountant.get_epsilon(DELTA)


def timed(function, *arguments):
    w, c = time.perf_counter(), time.process_time()
    value = function(*arguments)
    return value, (time.process_time() - c) * 1e3, (time.perf_counter() - w) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--interval", type=float, default=1e-4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--skip-calibration", action="store_true")
    arguments = parser.parse_args()
    version = importlib.metadata.version("dp-accounting")
    print(json.dumps(dict(kind="machine", dp_accounting=version, interval=arguments.interval, delta=DELTA)), flush=True)
    ways = {
        "pld/accountant": through_accountant(arguments.interval),
        "pld/direct": direct(arguments.interval),
        "rdp/accountant": rdp,
    }
    for case, (q, z, steps) in CASES.items():
        results = {name: [] for name in ways}
        for _ in range(arguments.repeats):
            for name, way in ways.items():
                results[name].append(timed(way, q, z, steps))
        for name, rows in results.items():
            cpu, wall = sorted(r[1] for r in rows), sorted(r[2] for r in rows)
            print(json.dumps(dict(
                kind="accounting", case=case, peer="dp_accounting", variant=name, sampling_rate=q,
                noise_multiplier=z, steps=steps, delta=DELTA, relation="add-remove", epsilon_upper=rows[0][0],
                cpu_ms=cpu[len(cpu) // 2], cpu_min_ms=cpu[0], wall_ms=wall[len(wall) // 2], wall_min_ms=wall[0],
                n=len(rows))), flush=True)
    if arguments.skip_calibration:
        return
    for case, (q, steps, epsilon) in CALIBRATIONS.items():
        for name, make in (
            ("pld", lambda: PLDAccountant(value_discretization_interval=arguments.interval)),
            ("rdp", RdpAccountant),
        ):
            noise, cpu, wall = timed(
                lambda make=make, q=q, steps=steps, epsilon=epsilon: dp_accounting.calibrate_dp_mechanism(
                    make, lambda z: event(q, z, steps), epsilon, DELTA,
                    dp_accounting.ExplicitBracketInterval(0.3, 30.0), tol=1e-4,
                )
            )
            print(json.dumps(dict(
                kind="calibration", case=case, peer="dp_accounting", variant=name, sampling_rate=q, steps=steps,
                epsilon=epsilon, delta=DELTA, relation="add-remove", noise_multiplier=noise, cpu_ms=cpu, wall_ms=wall, n=1)),
                flush=True)


if __name__ == "__main__":
    main()
