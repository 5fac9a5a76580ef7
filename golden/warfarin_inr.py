"""Writes warfarin_inr.json: INRs of the Hamberg 2007 model of warfarin, by solving its differential equations.

    python golden/warfarin_inr.py

The gut, two volumes, the chain of six and the single compartment are stepped through together by the classical Runge-Kutta method,
36 seconds a step (72 and 36 agree to 2e-6), where Dosimeter has sums of exponentials and an effect that is constant within the hour.
"""
import json
import pathlib

TOLERANCE = 2e-3
CYP2C9 = {"*1/*1": 0.0, "*1/*2": 0.315, "*1/*3": 0.453, "*2/*2": 0.722, "*2/*3": 0.690, "*3/*3": 0.852}
VKORC1 = {"G/G": 4.61, "A/G": 3.02, "A/A": 2.20}
GAMMA, ABSORPTION, BETWEEN, POWER = 0.424, 2.0, 0.131, 3.61


def typical(age, cyp2c9, vkorc1):
    clearance = 0.314 * (1 - 0.0091 * (age - 71)) * (1 - CYP2C9[cyp2c9])
    return [clearance, 13.8, 6.59, 11.6, 120.0, VKORC1[vkorc1]]


def inrs(body, doses, steps_per_hour=100):
    clearance, central, peripheral, first, second, half = body
    half = half ** GAMMA

    def slope(y):
        concentration = max(y[1] / central, 0.0) ** GAMMA
        effect = half / (half + concentration)
        there, back = BETWEEN / central * y[1], BETWEEN / peripheral * y[2]
        out = [-ABSORPTION * y[0], ABSORPTION * y[0] - clearance / central * y[1] - there + back, there - back]
        before = effect
        for i in range(3, 9):
            out.append(6 / first * (before - y[i]))
            before = y[i]
        return out + [(effect - y[9]) / second]

    y, step, answers = [0.0] * 3 + [1.0] * 7, 1 / steps_per_hour, []
    for dose in doses:
        y[0] += 0.9 / 2 * dose
        for _ in range(24 * steps_per_hour):
            a = slope(y)
            b = slope([u + step / 2 * v for u, v in zip(y, a)])
            c = slope([u + step / 2 * v for u, v in zip(y, b)])
            d = slope([u + step * v for u, v in zip(y, c)])
            y = [u + step / 6 * (p + 2 * q + 2 * r + s) for u, p, q, r, s in zip(y, a, b, c, d)]
        answers.append(round(1 + 20 * (1 - y[8] * y[9]) ** POWER, 9))
    return answers


CASES = [
    (typical(71, "*1/*1", "G/G"), [5.0] * 30),
    (typical(45, "*1/*2", "A/G"), [10.0] * 7 + [4.0] * 14),
    (typical(85, "*3/*3", "A/A"), [10.0] * 5 + [0.0] * 10 + [1.0] * 10),
    (typical(60, "*2/*3", "A/A"), [3.0, 0.0, 6.0] * 6),
    (typical(60, "*2/*2", "G/G"), [7.5] * 14),
    (typical(60, "*1/*3", "A/G"), [7.5] * 14),
    ([0.9, 4.0, 30.0, 5.0, 500.0, 4.61], [10.0] * 30),
    ([0.1, 30.0, 2.0, 25.0, 40.0, 1.2], [2.0] * 30),
]
CASES = [{"body": body, "daily_mg": doses, "inrs": inrs(body, doses)} for body, doses in CASES]
provenance = {
    "script": "golden/warfarin_inr.py",
    "oracle": "the same equations by Runge-Kutta, 100 steps an hour",
    "source": "Hamberg et al. 2007, Tables 2 and 4",
    "note": "Dosimeter takes the effect as constant within each hour",
}
out = {"provenance": provenance, "tolerance": TOLERANCE, "cases": CASES}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(out, indent=1) + "\n")
