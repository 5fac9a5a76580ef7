#!/usr/bin/env python3
"""Rounding errors of a convolution by Winograd's tiles, in single precision, beside those of the sum itself.

    .venv-bench/bin/python bench/check/rounding_of_tiles.py

Over 64 channels of rectified normal numbers and 2,000 tiles, for several choices of points; the root mean square of the
errors, of a standard deviation of the outputs. Needs numpy alone, and none of Dosimeter's code.
"""

import numpy as np

CHANNELS, TILES = 64, 2000


def matrices(near, far, outputs, taps):
    """B^T, G and A^T for the points 0, near, -near, far, -far and infinity."""
    points = [0, near, -near, far, -far]
    read = [np.poly([q for q in points if q != p])[::-1].tolist() + [0] for p in points] + [np.poly(points)[::-1].tolist()]
    scale = [1 / np.prod([p - q for q in points if q != p]) for p in points]
    kernel = [[s * p**j for j in range(taps)] for p, s in zip(points, scale)] + [[0] * (taps - 1) + [1]]
    write = [[p**i for p in points] + [float(i == outputs - 1)] for i in range(outputs)]
    return np.array(read), np.array(kernel), np.array(write)


# F(2 x 2, 3 x 3): the points 0, 1, -1 and infinity.
SMALL = (np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1.0]]),
         np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]), np.array([[1, 1, 1, 0], [0, 1, -1, -1.0]]))


def errors(read, kernel, write):
    random = np.random.default_rng(0)
    size, taps, outputs = len(read), kernel.shape[1], len(write)
    numbers = np.maximum(random.standard_normal((TILES, CHANNELS, size, size)), 0).astype(np.float32)
    weights = (random.standard_normal((CHANNELS, taps, taps)) / np.sqrt(taps * taps * CHANNELS)).astype(np.float32)
    right, summed = np.zeros((TILES, outputs, outputs)), np.zeros((TILES, outputs, outputs), np.float32)
    for c in range(CHANNELS):
        for i in range(taps):
            for j in range(taps):
                part = numbers[:, c, i:i + outputs, j:j + outputs]
                right += part.astype(np.float64) * np.float64(weights[c, i, j])
                summed += part * weights[c, i, j]
    read, kernel, write = (m.astype(np.float32) for m in (read, kernel, write))
    transformed = np.matmul(np.matmul(read, numbers), read.T)
    kernels = np.matmul(np.matmul(kernel, weights), kernel.T)
    products = np.zeros((TILES, size, size), np.float32)
    for c in range(CHANNELS):
        products += transformed[:, c] * kernels[c]
    tiled = np.matmul(np.matmul(write, products), write.T)
    return [float(np.sqrt(np.mean((x - right) ** 2)) / right.std()) for x in (tiled, summed)]


cases = [("F(2 x 2, 3 x 3)", SMALL)]
for near, far in [(1, 2), (0.75, 1.5), (0.5, 1), (0.5, 1.5), (0.625, 1.25), (0.5, 2)]:
    for outputs, taps in [(4, 3), (2, 5)]:
        cases.append((f"F({outputs} x {outputs}, {taps} x {taps}), points {near} and {far}", matrices(near, far, outputs, taps)))
for name, maps in cases:
    tiled, summed = errors(*maps)
    print(f"{name:40} tiles {tiled:.2e}   sum {summed:.2e}   ratio {tiled / summed:.2f}")
