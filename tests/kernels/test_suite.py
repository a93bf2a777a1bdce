"""Every kernel through the inherited suite; a registered kernel without a case here is an error."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.kernels import registry

from .suite import KernelSuite, numbers


def counts() -> np.ndarray:
    X = np.random.default_rng(1).poisson(1.5, size=(23, 6)).astype(float)
    X[5] = 0.0
    return X


def letters(a: str, b: str) -> int:
    return sum(min(a.count(letter), b.count(letter)) for letter in "abc")


def gram(A, B):
    return np.asarray(A) @ np.asarray(B).T + 1.0


def words() -> list[str]:
    rng = np.random.default_rng(2)
    return ["".join(rng.choice(list("abcd"), size=rng.integers(1, 8))) for _ in range(15)]


def sequences() -> list[str]:
    """Texts of unlike lengths: one twice, one empty, one shorter than words."""
    rng = np.random.default_rng(3)
    texts = ["".join(rng.choice(list("ACGTN"), size=rng.integers(4, 20))) for _ in range(15)]
    texts[3], texts[5], texts[6] = texts[1], "", "A"
    return texts


def graphs() -> list[tuple[np.ndarray, list[str]]]:
    rng = np.random.default_rng(4)
    made = []
    for size in rng.integers(1, 7, size=15):
        upper = np.triu(rng.uniform(size=(size, size)) < 0.4, 1)
        made.append((upper + upper.T, rng.choice(list("CNO"), size=size).tolist()))
    return made


def molecules() -> list[str]:
    return ["CCO", "CCN", "c1ccccc1O", "CCO", "CC(=O)O", "C", "c1ccncc1", "CCCCCl", "C1CC1", "OCCO"]


class TestGaussian(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.gaussian(1.5)


class TestGaussianManyColumns(TestGaussian):
    def samples(self):
        return numbers(d=20)

    def make(self):
        return kw.gaussian(5.0)


class TestGaussianRelative(TestGaussian):
    def make(self):
        return kw.gaussian(0.5, relative=True)


class TestLaplacian(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.laplacian(2.0)


class TestLaplacianRelativeOneColumn(TestLaplacian):
    def samples(self):
        return numbers(d=1)

    def make(self):
        return kw.laplacian(2.0, relative=True)


class TestLinear(KernelSuite):
    def make(self):
        return kw.linear()


class TestCosine(KernelSuite):
    def make(self):
        return kw.cosine()


class TestPolynomial(KernelSuite):
    def make(self):
        return kw.polynomial(3)


class TestPolynomialOne(KernelSuite):
    def make(self):
        return kw.polynomial(1, coef0=2.0)


class TestPolynomialHomogeneous(KernelSuite):
    def make(self):
        return kw.polynomial(2, coef0=0.0, gamma=0.5)


class TestPolynomialFive(KernelSuite):
    def make(self):
        return kw.polynomial(5, gamma=0.1)


class TestChi2(KernelSuite):
    unit_diagonal = True
    samples = staticmethod(counts)

    def make(self):
        return kw.chi2(0.3)


class TestIntersection(KernelSuite):
    samples = staticmethod(counts)

    def make(self):
        return kw.intersection()


class TestTanimoto(KernelSuite):
    unit_diagonal = True
    samples = staticmethod(counts)

    def make(self):
        return kw.tanimoto()


class TestTanimotoBinary(TestTanimoto):
    def samples(self):
        return (counts() > 1).astype(float)


class TestAdditiveChi2(KernelSuite):
    samples = staticmethod(counts)

    def make(self):
        return kw.additive_chi2()


class TestMatern(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.matern(1.5, nu=2.5)


class TestMaternRelative(TestMatern):
    def make(self):
        return kw.matern(0.5, nu=0.5, relative=True)


class TestRationalQuadratic(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.rational_quadratic(2.0, alpha=0.7)


class TestRationalQuadraticRelative(TestRationalQuadratic):
    def make(self):
        return kw.rational_quadratic(0.5, relative=True)


class TestPeriodic(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.periodic(3.0, width=2.0)


class TestSigmoid(KernelSuite):
    def make(self):
        return kw.sigmoid(0.1, coef0=-1.0)

    def test_positive_semidefinite(self, kernel, X):
        # it is not, and says so
        assert np.linalg.eigvalsh(kernel(X))[0] < -1e-3
        assert not kernel.sure


class TestConstant(KernelSuite):
    def make(self):
        return kw.constant(2.0)

    def test_not_constant(self):
        pytest.skip("this one is")


class TestFunctionOfPairs(KernelSuite):
    samples = staticmethod(words)

    def make(self):
        return kw.function(letters)


class TestFunctionOfSets(KernelSuite):
    def make(self):
        return kw.function(gram, pairwise=False)


class TestFromMetric(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.from_distance("cityblock")


class TestFromMatrix(KernelSuite):
    unit_diagonal = True
    # made once: the kernel is told from others by the very matrix
    matrix = np.abs(np.subtract.outer(numbers()[:, 0], numbers()[:, 0]))

    def samples(self):
        return np.arange(20).reshape(-1, 1)

    def make(self):
        return kw.from_distance(self.matrix)


class TestFromFunction(KernelSuite):
    unit_diagonal = True
    samples = staticmethod(words)

    def make(self):
        return kw.from_distance(different_lengths)


def different_lengths(a: str, b: str) -> int:
    return abs(len(a) - len(b))


class TestProduct(KernelSuite):
    def make(self):
        return kw.gaussian(2.0) * kw.linear().on([0, 2])


class TestProductOfFeatures(KernelSuite):
    def make(self):
        return kw.polynomial(2).on(1) * kw.linear() * kw.constant(3.0)


class TestSummed(KernelSuite):
    def make(self):
        return kw.summed(kw.gaussian(2.0, relative=True), kw.linear(), weights=[2.0, 0.5])


class TestSummedFeatures(KernelSuite):
    def make(self):
        return kw.summed(kw.polynomial([1, 2]).on(0), kw.cosine(), kw.constant())


class TestSummedPerFeature(KernelSuite):
    def make(self):
        return kw.summed(kw.per_feature(kw.gaussian(1.0)))

    def test_clone_and_parameters(self, kernel, X):
        from sklearn.base import clone

        assert np.array_equal(clone(kernel)(X), kernel(X))

    def test_name(self, kernel):
        assert (
            kernel.name == "gaussian(width=1) on feature 0 + ... + gaussian(width=1) on feature 3 (4 kernels)"
        )

    def test_read_only_samples(self, kernel, X):
        X.flags.writeable = False
        kernel(X)


class TestNystroem(KernelSuite):
    tol = 1e-7

    def make(self):
        return kw.nystroem(kw.gaussian(2.0, relative=True), rank=8)


class TestNystroemOfWords(KernelSuite):
    tol = 1e-7
    samples = staticmethod(words)

    def make(self):
        return kw.nystroem(kw.function(letters), rank=5)


class TestRandomFourier(KernelSuite):
    def make(self):
        return kw.random_fourier(2.0, n_features=50)


class TestPrincipal(KernelSuite):
    def make(self):
        return kw.principal(2)


class TestOnOneColumn(KernelSuite):
    unit_diagonal = True

    def make(self):
        return kw.gaussian(1.0).on(2)


class TestOnColumns(KernelSuite):
    def make(self):
        return kw.polynomial(2).on([3, 0])


class TestOnColumnsRelative(KernelSuite):
    def make(self):
        return kw.gaussian(1.0, relative=True).on([False, True, True, False])


class TestNamed(KernelSuite):
    def make(self):
        return kw.gaussian(1.0, relative=True).on(1).named("smooth")


class TestHeld(KernelSuite):
    holder = kw.held(np.stack([kw.gaussian(1.0)(numbers()), kw.linear()(numbers())]))

    def samples(self):
        return np.arange(20).reshape(-1, 1)

    def make(self):
        return self.holder[1]


class TestSpectrum(KernelSuite):
    samples = staticmethod(sequences)

    def make(self):
        return kw.spectrum(2, alphabet="dna", reverse_complement=True)


class TestSpectrumTanimoto(TestSpectrum):
    unit_diagonal = True

    def make(self):
        return kw.spectrum(2, compare="tanimoto")


class TestSpectrumFolded(TestSpectrum):
    def make(self):
        return kw.spectrum(3, n_features=8, compare="product")


class TestMismatch(TestSpectrum):
    def make(self):
        return kw.spectrum(3, mismatches=1, alphabet="dna")


class TestGapped(TestSpectrum):
    def make(self):
        return kw.spectrum(2, gaps=2, alphabet="dna")


class TestWeightedDegree(KernelSuite):
    def samples(self):
        return [text[:6].ljust(6, "A") for text in sequences()]

    def make(self):
        return kw.weighted_degree(3, alphabet="dna")


class TestWeisfeilerLehman(KernelSuite):
    samples = staticmethod(graphs)

    def make(self):
        return kw.weisfeiler_lehman(2)


class TestGraphPaths(KernelSuite):
    samples = staticmethod(graphs)

    def make(self):
        return kw.shortest_path(compare="product")


class TestFingerprint(KernelSuite):
    unit_diagonal = True
    samples = staticmethod(molecules)

    def make(self):
        pytest.importorskip("rdkit")
        return kw.fingerprint()


class TestFingerprintCosine(TestFingerprint):
    unit_diagonal = False

    def make(self):
        pytest.importorskip("rdkit")
        return kw.fingerprint("atom_pairs", bits=None, compare="cosine")


class TestAlignment(KernelSuite):
    unit_diagonal = True

    def samples(self):
        return [
            "MKTAYIAKQR",
            "MKTAYIAKQK",
            "GSHMLEDPVE",
            "MKTAYIAKQR",
            "PAYIA",
            "WWHCDEEFGH",
            "LEDPVEGSHM",
            "KTAY",
            "GGG",
        ]

    def make(self):
        pytest.importorskip("parasail")
        return kw.alignment()

    def test_positive_semidefinite(self, kernel):
        assert not kernel.sure  # tests/kernels/test_sequences.py has a matrix that is not


class TestGrakel(KernelSuite):
    samples = staticmethod(graphs)
    kernel_of_grakel = None

    def make(self):
        grakel = pytest.importorskip("grakel")
        if TestGrakel.kernel_of_grakel is None:  # made once: the kernel is told from others by it
            TestGrakel.kernel_of_grakel = grakel.WeisfeilerLehman(
                n_iter=2, base_graph_kernel=grakel.VertexHistogram
            )
        return kw.from_grakel(TestGrakel.kernel_of_grakel)


OPTIONAL = {"Fingerprint": "rdkit", "Alignment": "parasail", "FromGrakel": "grakel"}


def test_every_registered_kernel_has_a_case():
    def inside(kernel):
        return {type(kernel)} | ({type(kernel.kernel)} if hasattr(kernel, "kernel") else set())

    cases = [case for case in globals().values() if isinstance(case, type) and issubclass(case, KernelSuite)]
    made = set()
    for case in cases:
        with suppress(pytest.skip.Exception):  # of a package that is not installed
            made |= inside(case().make()) if case is not KernelSuite else set()
    wanted = {kind for kind in registry.values() if find_spec(OPTIONAL.get(kind.__name__, "numpy"))}
    assert wanted <= made
    assert {"gaussian", "polynomial", "linear", "tanimoto", "nystroem"} <= set(registry)
