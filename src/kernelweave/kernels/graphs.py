"""Kernels on graphs: Weisfeiler-Lehman subtrees, shortest paths, and those of GraKeL as they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from .._numerics.stopping import check_time
from ._kernel import Same, readable
from ._numeric import checked_number
from .objects import OfObjects, Parts, PartsKernel, checked_family, joined, mixed

ONE_GRAPH = "a graph of networkx, or a pair (adjacency, labels)"


def _label(value: Any) -> int:
    """Return the code of a label: of its text, so that it is the same in every process."""
    return int.from_bytes(blake2b(str(value).encode(), digest_size=8).digest(), "little")


def read_graph(graph: Any, attributes: tuple[str, ...]) -> tuple[Any, list[list[Any]]]:
    """Return the adjacency matrix of a graph (CSR), and the labels of its nodes for every attribute.

    In ``(adjacency, labels)`` the labels are a sequence, or a dict of sequences by attribute.
    """
    if hasattr(graph, "nodes") and hasattr(graph, "adj"):
        place = {node: i for i, node in enumerate(graph.nodes)}
        n = len(place)
        ends = (
            np.array([(place[a], place[b]) for a in place for b in graph.adj[a]], dtype=np.intp)
            .reshape(-1, 2)
            .T
        )
        adjacency: Any = sparse.csr_matrix((np.ones(ends.shape[1]), tuple(ends)), shape=(n, n))
        known: Any = {name: [node.get(name) for _, node in graph.nodes(data=True)] for name in attributes}
    elif isinstance(graph, tuple | list) and len(graph) == 2:
        adjacency, known = sparse.csr_matrix(graph[0]), graph[1]
        n = adjacency.shape[0]
        if adjacency.shape[1] != n or adjacency.dtype.kind not in "fiub":
            raise ValueError(
                f"an adjacency matrix of shape {adjacency.shape} is not square, or has no numbers"
            )
        if not isinstance(known, dict) and len(attributes) > 1:
            raise ValueError(f"{len(attributes)} attributes of nodes need a dict of labels by attribute")
        adjacency.eliminate_zeros()
    else:
        raise ValueError(f"{type(graph).__name__} is not {ONE_GRAPH}")
    labels: list[Any] = [known.get(name) if isinstance(known, dict) else known for name in attributes]
    for name, own in zip(attributes, labels, strict=True):
        if own is None or np.ndim(own) != 1 or len(own) != n or any(label is None for label in own):
            raise ValueError(
                f"its {n} nodes do not all have a label {name!r}: name the attribute with labels=..., or labels=None "
                "where all nodes are alike"
            )
    return adjacency, [list(own) for own in labels]


class GraphKernel(PartsKernel):
    """Base of kernels on graphs: their nodes side by side, with labels as codes."""

    _objects = f"graphs ({ONE_GRAPH})"
    _kind = object
    labels: Any

    @property
    def _attributes(self) -> tuple[str, ...]:
        labels = self.labels
        return () if labels is None else (labels,) if isinstance(labels, str) else tuple(labels)

    @property
    def name(self) -> str:
        shown = [f"{name}={readable(getattr(self, name))}" for name in self._shown]
        shown += [f"labels={', '.join(self._attributes) or None}"] if self.labels != "label" else []
        shown += [self.compare] if self.compare != "cosine" else []
        return f"{self.family}({', '.join(shown)})" if shown else self.family

    def _problem(self, what: Any) -> str | None:
        try:
            read_graph(what, self._attributes)
        except (ValueError, TypeError) as error:
            return str(error)
        return None

    def _coded(self, objects: list[Any]) -> tuple[list[Any], list[np.ndarray]]:
        """Return the adjacency matrices, and for every attribute the codes of the labels of all nodes.

        Codes of different attributes are different: the kernel is the sum of those of each.
        """
        known: dict[Any, int] = {}
        adjacencies, codes = [], [[] for _ in self._attributes or ("",)]  # type: ignore[var-annotated]
        for graph in objects:
            check_time()
            adjacency, labels = read_graph(graph, self._attributes)
            adjacencies.append(adjacency)
            for at, own in enumerate(labels or [[0] * adjacency.shape[0]]):
                known |= {value: _label(value) for value in own if value not in known}
                codes[at] += [known[value] for value in own]
        coded = [np.array(own, dtype=np.uint64) + np.uint64(at) for at, own in enumerate(codes)]
        return adjacencies, [mixed(own) for own in coded]


@dataclass(eq=False, repr=False)
class WeisfeilerLehman(GraphKernel, registered_as="weisfeiler_lehman"):
    """Subtrees around nodes that two graphs share; see :func:`weisfeiler_lehman`."""

    iterations: Any = 3
    labels: Any = "label"
    compare: str = "cosine"
    n_features: int | None = None

    _shown = ("iterations",)
    _varied = "iterations"

    def check_parameters(self) -> None:
        super().check_parameters()
        checked_number(self.iterations, "iterations of a weisfeiler_lehman kernel", strict=False, whole=True)

    def _parts(self, objects: list[Any]) -> Parts:
        adjacencies, attributes = self._coded(objects)
        owners = np.repeat(np.arange(len(objects)), [one.shape[0] for one in adjacencies])
        whole = sparse.block_diag(adjacencies, format="csr") if adjacencies else sparse.csr_matrix((0, 0))
        sums = np.zeros(whole.nnz + 1, dtype=np.uint64)
        found = []
        for codes in attributes:
            found.append((owners, codes, 1.0))
            for _ in range(self.iterations):
                # a sum of mixed codes is one of the neighbours' labels as a multiset, in any order
                np.cumsum(mixed(codes)[whole.indices], out=sums[1:])
                codes = mixed(codes * np.uint64(3) + (sums[whole.indptr[1:]] - sums[whole.indptr[:-1]]))
                found.append((owners, codes, 1.0))
        return joined(found)


@dataclass(eq=False, repr=False)
class ShortestPath(GraphKernel, registered_as="shortest_path"):
    """Pairs of nodes at the same distance that two graphs share; see :func:`shortest_path`."""

    labels: Any = "label"
    compare: str = "cosine"
    n_features: int | None = None

    def _parts(self, objects: list[Any]) -> Parts:
        adjacencies, attributes = self._coded(objects)
        found, start = [], 0
        for i, adjacency in enumerate(adjacencies):
            check_time()
            n = adjacency.shape[0]
            distances = csgraph.shortest_path(adjacency, unweighted=True) if n else np.zeros((0, 0))
            left, right = np.nonzero(np.isfinite(distances) & ~np.eye(n, dtype=bool))
            steps = mixed(distances[left, right].astype(np.uint64))
            for codes in attributes:
                own = codes[start : start + n]
                codes_of_pairs = mixed(mixed(own[left] + steps) * np.uint64(3) + own[right])
                found.append((np.full(left.size, i), codes_of_pairs, 1.0))
            start += n
        return joined(found)


@dataclass(eq=False, repr=False)
class FromGrakel(OfObjects, registered_as="from_grakel"):
    """A kernel of GraKeL; see :func:`from_grakel`."""

    kernel_of_grakel: Any
    labels: Any = "label"
    label: Any = None

    sure = False
    _objects = f"graphs ({ONE_GRAPH})"
    _kind = object
    _attributes = GraphKernel._attributes
    _problem = GraphKernel._problem

    @property
    def name(self) -> str:
        return self.label or f"grakel {type(self.kernel_of_grakel).__name__}"

    @property
    def base_key(self) -> Hashable:
        return ("grakel", Same(self.kernel_of_grakel), self._attributes), None

    def _graphs(self, A: Any) -> Iterator[Any]:
        """Yield samples as GraKeL's graphs."""
        from grakel import Graph

        for one in self._checked(A):
            adjacency, labels = read_graph(one, self._attributes)
            values = labels[0] if labels else [0] * adjacency.shape[0]
            yield Graph(adjacency.toarray(), node_labels=dict(enumerate(values)))

    def base(self, A: Any, B: Any) -> np.ndarray:
        from sklearn.base import clone

        kernel = clone(self.kernel_of_grakel)
        if A is B:
            matrix = np.array(kernel.fit_transform(list(self._graphs(A))), dtype=float)
            return 0.5 * (matrix + matrix.T)
        return np.array(kernel.fit(list(self._graphs(B))).transform(list(self._graphs(A))), dtype=float)


def weisfeiler_lehman(
    iterations: Any = 3, labels: Any = "label", compare: str = "cosine", n_features: int | None = None
) -> Any:
    """Return kernels of the subtrees that two graphs share around their nodes (Shervashidze et al. 2011).

    In every iteration a node's label becomes that of itself and its neighbours; labels of all iterations count.

    Parameters
    ----------
    iterations : int or sequence of int
        One gives a kernel, a sequence a stack.  0 counts the labels of nodes.
    labels : str, sequence of str or None
        Attribute of nodes that is their label; of several the kernels are added.  None where all nodes are alike.  A
        graph is one of networkx, or ``(adjacency, labels)`` with a sequence of labels, or a dict of them by attribute.
    compare, n_features
        As for :func:`spectrum`.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> path = ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], ["C", "C", "O"])
    >>> triangle = ([[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["C", "C", "O"])
    >>> kw.weisfeiler_lehman(1, compare="product")([path, triangle])
    array([[ 8.,  7.],
           [ 7., 10.]])
    """

    what = "iterations of a weisfeiler_lehman kernel"
    return checked_family(WeisfeilerLehman, iterations, what, labels, compare, n_features, strict=False)


def shortest_path(
    labels: Any = "label", compare: str = "cosine", n_features: int | None = None
) -> ShortestPath:
    """Return the shortest-path kernel: pairs of nodes with the same labels at the same distance (Borgwardt and Kriegel
    2005).

    Parameters
    ----------
    labels, compare, n_features
        As for :func:`weisfeiler_lehman`.  Distances are numbers of edges.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> path = ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], ["C", "C", "O"])
    >>> triangle = ([[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["C", "C", "O"])
    >>> kw.shortest_path(compare="product")([path, triangle])
    array([[ 8.,  8.],
           [ 8., 12.]])
    """
    made = ShortestPath(labels, compare, n_features)
    made.check_parameters()
    return made


def from_grakel(kernel: Any, labels: Any = "label", name: str | None = None) -> FromGrakel:
    """Return a kernel of GraKeL, on the same graphs as the others.

    Its training matrix is checked, as that of a function; a model with it cannot be saved to a file.
    ``pip install 'kernelweave[graphs]'``.

    Parameters
    ----------
    kernel : kernel of GraKeL
    labels : str or None
        As for :func:`weisfeiler_lehman`.
    name : str or None
    """
    if not (hasattr(kernel, "fit_transform") and hasattr(kernel, "transform")):
        raise ValueError(f"from_grakel needs a kernel object of GraKeL, got {kernel!r}")
    return FromGrakel(kernel, labels, name)
