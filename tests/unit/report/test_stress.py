"""Positions of least stress, against arithmetic and networkx's springs."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

from airloom.report import stress


def placed(graph: nx.Graph) -> dict[str, tuple[float, float]]:
    return stress.places({str(name): [str(other) for other in graph[name]] for name in graph})


def stress_of(graph: nx.Graph, places: dict[str, tuple[float, float]]) -> float:
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    matrix = np.array([[hops[a][b] for b in graph] for a in graph], np.float64)
    return stress.stress_of(matrix, np.array([places[str(name)] for name in graph]))


def test_two_vertices_and_a_triangle_have_their_distances() -> None:
    pair = placed(nx.path_graph(2))
    assert math.dist(pair["0"], pair["1"]) == pytest.approx(1, rel=1e-3)
    triangle = placed(nx.complete_graph(3))
    for a, b in (("0", "1"), ("1", "2"), ("0", "2")):
        assert math.dist(triangle[a], triangle[b]) == pytest.approx(1, rel=1e-2)


@pytest.mark.parametrize(
    "graph",
    [nx.grid_2d_graph(5, 5), nx.complete_graph(5), nx.random_regular_graph(3, 60, seed=1), nx.star_graph(8)],
    ids=["grid", "complete", "random", "star"],
)
def test_stress_is_near_the_least_that_is_known(graph: nx.Graph) -> None:
    """Springs of Kamada and Kawai minimize the same sum, up to a factor of all positions."""
    springs = nx.kamada_kawai_layout(graph)
    scales = np.linspace(0.2, 12, 400)
    known = min(
        stress_of(graph, {str(name): tuple(place * scale) for name, place in springs.items()})
        for scale in scales
    )
    assert stress_of(graph, placed(graph)) < 1.05 * known


def test_vertices_with_equal_distances_are_apart() -> None:
    where = placed(nx.star_graph(30))
    nearest = min(math.dist(where[a], where[b]) for a in where for b in where if a < b)
    assert nearest > 0.1


def test_equal_graphs_have_equal_places() -> None:
    graph = nx.random_regular_graph(3, 40, seed=3)
    assert placed(graph) == placed(graph)


def test_a_graph_in_parts_is_an_error() -> None:
    with pytest.raises(ValueError, match="not connected"):
        stress.places({"a": ["b"], "b": ["a"], "c": []})
