"""Kernels on graphs against GraKeL, and against their definitions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.persistence import ModelFileError, load, save


def random_graphs(n: int = 20, seed: int = 0) -> list[tuple[np.ndarray, list[str]]]:
    rng = np.random.default_rng(seed)
    graphs = []
    for size in rng.integers(1, 10, size=n):
        upper = np.triu(rng.uniform(size=(size, size)) < 0.35, 1)
        graphs.append(((upper + upper.T).astype(float), rng.choice(list("CNO"), size=size).tolist()))
    return graphs


def subtrees(graph: tuple[np.ndarray, list], iterations: int) -> Counter:
    """Count labels of all iterations, written out."""
    adjacency, labels = graph
    labels = [str(label) for label in labels]
    found = Counter((0, label) for label in labels)
    for step in range(1, iterations + 1):
        around = [sorted(labels[j] for j in np.flatnonzero(row)) for row in np.asarray(adjacency)]
        labels = [f"({own}:{','.join(others)})" for own, others in zip(labels, around, strict=True)]
        found.update((step, label) for label in labels)
    return found


def inner(counts: list[Counter]) -> np.ndarray:
    return np.array([[sum(a[part] * b[part] for part in a) for b in counts] for a in counts], dtype=float)


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_weisfeiler_lehman_is_its_definition(iterations):
    graphs = random_graphs()
    wanted = inner([subtrees(graph, iterations) for graph in graphs])
    kernel = kw.weisfeiler_lehman(iterations, compare="product")
    np.testing.assert_array_equal(kernel(graphs), wanted)
    settled = kernel.resolve(graphs[:12])
    np.testing.assert_array_equal(settled(graphs[12:], graphs[:12]), wanted[12:, :12])


def test_shortest_paths_are_their_definition():
    counts = []
    for adjacency, labels in (graphs := random_graphs()):
        n = len(labels)
        distance = np.where(np.asarray(adjacency) > 0, 1.0, np.inf)
        distance[np.diag_indices(n)] = 0.0
        for k in range(n):
            distance = np.minimum(distance, distance[:, [k]] + distance[[k]])
        pairs = ((labels[i], labels[j], distance[i, j]) for i in range(n) for j in range(n) if i != j)
        counts.append(Counter(pair for pair in pairs if np.isfinite(pair[2])))
    np.testing.assert_array_equal(kw.shortest_path(compare="product")(graphs), inner(counts))


def test_both_equal_those_of_grakel():
    grakel = pytest.importorskip("grakel")
    graphs = random_graphs()
    theirs = [grakel.Graph(a, node_labels=dict(enumerate(labels))) for a, labels in graphs]
    for iterations in (1, 2, 4):
        make = {"n_iter": iterations, "base_graph_kernel": grakel.VertexHistogram}
        wanted = grakel.WeisfeilerLehman(**make).fit_transform(theirs)
        np.testing.assert_array_equal(kw.weisfeiler_lehman(iterations, compare="product")(graphs), wanted)
        wanted = grakel.WeisfeilerLehman(**make, normalize=True).fit_transform(theirs)
        np.testing.assert_allclose(kw.weisfeiler_lehman(iterations)(graphs), wanted, atol=1e-12)
        adapted = kw.from_grakel(grakel.WeisfeilerLehman(**make))
        known = kw.weisfeiler_lehman(iterations, compare="product")(graphs)
        np.testing.assert_array_equal(adapted(graphs), known)
        np.testing.assert_array_equal(adapted(graphs[:4], graphs), known[:4])
    wanted = grakel.ShortestPath(with_labels=True).fit_transform(theirs)
    np.testing.assert_array_equal(kw.shortest_path(compare="product")(graphs), wanted)


def test_all_ways_to_write_a_graph():
    nx = pytest.importorskip("networkx")
    plain, drawn, thin = random_graphs(), [], []
    for adjacency, labels in plain:
        graph = nx.from_numpy_array(adjacency)
        nx.set_node_attributes(graph, dict(enumerate(labels)), "element")
        nx.set_node_attributes(graph, {i: len(label) % 2 for i, label in enumerate(labels)}, "charge")
        drawn.append(graph)
        thin.append((sparse.coo_matrix(adjacency), {"element": labels, "charge": [1] * len(labels)}))
    wanted = kw.weisfeiler_lehman(2)(plain)
    assert np.allclose(kw.weisfeiler_lehman(2, labels="element")(drawn), wanted)
    assert np.allclose(kw.weisfeiler_lehman(2, labels="element")(thin), wanted)
    # several attributes are added
    both = kw.weisfeiler_lehman(2, labels=["element", "charge"], compare="product")
    apart = [kw.weisfeiler_lehman(2, labels=name, compare="product")(drawn) for name in ("element", "charge")]
    assert np.array_equal(both(drawn), apart[0] + apart[1])
    assert np.array_equal(both(thin), both(drawn))
    # all nodes alike
    blank = [(adjacency, ["x"] * len(labels)) for adjacency, labels in plain]
    assert np.allclose(kw.shortest_path(labels=None)(plain), kw.shortest_path()(blank))


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("CCO", "str is not a graph of networkx"),
        ((np.ones((2, 3)), ["a", "b"]), "is not square"),
        ((np.eye(2), ["a"]), "its 2 nodes do not all have a label"),
        ((np.eye(2), {"charge": [1, 2]}), "nodes do not all have a label 'label'"),
        (None, "there is none"),
    ],
)
def test_bad_graphs_are_named(graph, said):
    graphs = random_graphs(4)
    with pytest.raises(ValueError, match=f"1 of 5 samples are none: row 4: .*{said}"):
        kw.weisfeiler_lehman(2)([*graphs, graph])


def test_more_bad_graphs():
    nx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="row 0: its 3 nodes do not all have a label 'label'"):
        kw.shortest_path()([nx.path_graph(3)])
    with pytest.raises(ValueError, match="need a dict of labels"):
        kw.shortest_path(labels=["a", "b"])([(np.eye(2), [1, 2])])
    with pytest.raises(ValueError, match="from_grakel needs"):
        kw.from_grakel("WL")
    with pytest.raises(ValueError, match="iterations of a weisfeiler_lehman kernel"):
        kw.weisfeiler_lehman(-1)


def rings_and_chains(n: int = 60) -> tuple[list, np.ndarray]:
    """Graphs of one size with the same labels: rings with a tail, and chains with a branch."""
    rng, graphs, y = np.random.default_rng(0), [], np.arange(n) % 2
    for ring in y:
        size = int(rng.integers(6, 10))
        adjacency = np.zeros((size, size))
        for i, j in [*pairwise(range(size)), *([(0, 4)] if ring else [])]:
            adjacency[i, j] = adjacency[j, i] = 1.0
        graphs.append((adjacency, rng.choice(list("CO"), size=size, p=[0.8, 0.2]).tolist()))
    return graphs, y


def test_models_on_graphs_are_certified_and_keep_no_graph(tmp_path):
    graphs, y = rings_and_chains()
    model = MKLClassifier(kw.weisfeiler_lehman([1, 2]) + kw.shortest_path()).fit(graphs[:40], y[:40])
    assert model.certificate_.relative_gap <= 1e-3
    assert model.score(graphs[40:], y[40:]) > 0.8
    save(model, tmp_path / "graphs.skops")
    again = load(tmp_path / "graphs.skops")
    np.testing.assert_allclose(again.decision_function(graphs), model.decision_function(graphs))
    # the values are those of the kernels, though the model has their direction in feature space alone
    K = sum(
        w * k(graphs, graphs[:40]) / k.diag(graphs[:40]).mean()
        for w, k in zip(model.weights_, model.kernels_, strict=True)
    )
    wanted = K @ model.dual_coef_.ravel() + model.intercept_
    np.testing.assert_allclose(model.decision_function(graphs), wanted.ravel(), atol=1e-8)


def test_kernels_of_grakel_in_models(tmp_path):
    grakel = pytest.importorskip("grakel")
    graphs, y = rings_and_chains(40)
    model = MKLClassifier(kw.from_grakel(grakel.ShortestPath(with_labels=True))).fit(graphs, y)
    assert model.score(graphs, y) > 0.8
    with pytest.raises(ModelFileError):
        save(model, tmp_path / "no.skops")
