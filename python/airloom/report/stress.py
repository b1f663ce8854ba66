"""Positions of vertices whose distances on paper are as near as possible to their distances in hops.

Stress majorization (Gansner, Koren and North, "Graph Drawing by Stress Majorization", 2004) lowers
``sum over pairs (|p_i - p_j| - d_ij)^2 / d_ij^2`` in each step. The first positions are those of classical
multidimensional scaling with respect to some vertices (Brandes and Pich, "Eigensolver Methods for Progressive
Multidimensional Scaling of Large Data", 2006), so that the result is the same each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

PIVOTS = 50
"""Vertices of which all distances decide the first positions."""
PRECISION = 1e-4
"""A step that lowers the stress by a smaller share is the last one."""
STEPS = 1000
"""Most steps."""
WORK = 2e7
"""Pairs of vertices that all steps look at together: a second or two."""


def places(edges: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Returns a place for each vertex of a connected graph; ``edges``: its neighbours, in both directions."""
    names = list(edges)
    number = {name: index for index, name in enumerate(names)}
    neighbours = [[number[other] for other in edges[name]] for name in names]
    hops = np.array([_hops(neighbours, source) for source in range(len(names))], np.float64)
    if np.isinf(hops).any():
        raise ValueError("the graph is not connected")
    where = _lowered(hops, _scaled(hops))
    return {name: (float(x), float(y)) for name, (x, y) in zip(names, where, strict=True)}


def stress_of(hops: Matrix, where: Matrix) -> float:
    """Returns the weighted sum of squared errors of all pairs' distances."""
    first, second = np.triu_indices(len(hops), 1)
    apart = np.hypot(*(where[first] - where[second]).T)
    return float((((apart - hops[first, second]) / hops[first, second]) ** 2).sum())


def _hops(neighbours: Sequence[Sequence[int]], source: int) -> list[float]:
    hops = [math.inf] * len(neighbours)
    hops[source] = 0
    reached = [source]
    for vertex in reached:
        for other in neighbours[vertex]:
            if hops[other] == math.inf:
                hops[other] = hops[vertex] + 1
                reached.append(other)
    return hops


def _scaled(hops: Matrix) -> Matrix:
    """Returns the first positions."""
    pivots = [0]
    while len(pivots) < min(PIVOTS, len(hops)):
        pivots.append(int(hops[pivots].min(axis=0).argmax()))
    squares = hops[:, pivots] ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    _, values, axes = np.linalg.svd(centred, full_matrices=False)
    # An axis has two directions: the largest component is positive, with every library of linear algebra.
    axes = axes[:2] * np.sign(axes[np.arange(2), np.abs(axes[:2]).argmax(axis=1)])[:, None]
    found: Matrix = -centred @ axes.T / 2
    largest = float(np.abs(found).max())
    # Vertices with the same distances would stay at one point: a little spiral separates them.
    # The golden angle, in radians: no two vertices in one direction.
    angle = 2.399963 * np.arange(len(hops))
    out = np.sqrt(np.arange(len(hops)) / len(hops))
    spiral = np.stack((out * np.cos(angle), out * np.sin(angle)), axis=1)
    found = found / largest * float(hops.max()) / 2 if values[0] > 0 and largest > 0 else found
    return np.asarray(found + 0.1 * spiral, np.float64)


def _lowered(hops: Matrix, where: Matrix) -> Matrix:
    """Returns the positions after all steps."""
    count = len(hops)
    weights = np.zeros_like(hops)
    np.divide(1.0, hops**2, out=weights, where=hops > 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    # The first vertex stays at the origin, which makes the system regular.
    solver = np.linalg.inv(laplacian[1:, 1:])
    pulled = weights * hops
    before = math.inf
    for _ in range(min(STEPS, max(10, int(WORK / count**2)))):
        step = where[:, None, :] - where[None, :, :]
        apart = np.sqrt((step**2).sum(axis=2))
        now = float((weights * (apart - hops) ** 2).sum())
        if before - now <= PRECISION * now:
            break
        before = now
        ratio = np.zeros_like(hops)
        np.divide(pulled, apart, out=ratio, where=apart > 0)
        moved = np.diag(ratio.sum(axis=1)) - ratio
        where = np.vstack((np.zeros((1, 2)), solver @ (moved @ where)[1:]))
    return where
