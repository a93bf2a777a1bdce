"""What a certificate says in words: never more than its norm, its weights and its problem allow."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from kernelweave import (
    MKLClassifier,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    SimilarityClassifier,
)
from kernelweave import kernels as kw
from kernelweave.norms import L1, Fixed, FixedParts, Lp, Norm, Uniform, make_norm, registry
from kernelweave.problems import Certificate, joined, scope_of

RNG = np.random.default_rng(5)
N, M = 40, 4
X = RNG.normal(size=(N, M))
Y = np.where(X[:, 0] + 0.6 * X[:, 1] + 0.7 * RNG.normal(size=N) > 0, 1, -1)
STACK = np.stack([np.outer(x, x) + np.exp(-(np.subtract.outer(x, x) ** 2)) for x in X.T])
STACK = STACK * (N / np.trace(STACK, axis1=1, axis2=2))[:, None, None]
GROUPS = ["a", "a", "b", "b"]
#: norms whose default parameters need something of the problem
MADE = {"grouped": lambda: registry["grouped"](groups=GROUPS), "at_most": lambda: registry["at_most"](2)}


def made(name):
    return MADE.get(name, registry[name])()


def inside(size):
    """The multiple of random weights at which a function of them, increasing from zero, is one."""
    d = RNG.dirichlet(np.ones(M))
    return d * brentq(lambda t: size(t * d) - 1.0, 1e-9, 50.0)


def subset(k):
    d = np.zeros(M)
    d[RNG.choice(M, k, replace=False)] = 1.0 / k
    return d


#: random weights of the set that the sentence describes, made from the words and not by the norm
WEIGHTS = {
    "l1": lambda: RNG.dirichlet(np.ones(M)),
    "entropy": lambda: RNG.dirichlet(np.ones(M)),
    "lp": lambda: inside(lambda d: np.sum(d**2)),
    "elastic_net": lambda: inside(lambda d: 0.5 * d.sum() + 0.5 * np.sum(d**2)),
    "elastic_blocks": lambda: inside(lambda d: 0.5 * np.sum(d / (1 - 0.5 * d)) if np.all(d < 2) else 1e9),
    "grouped": lambda: inside(lambda d: np.hypot(d[0], d[1]) + np.hypot(d[2], d[3])),
    "at_most": lambda: subset(2),
    "uniform": lambda: np.full(M, 1.0 / M),
}
#: charges of the blocks by definition, where the sentence speaks of functions or of a charge
CHARGES = {
    "max": lambda t: 0.5 * np.max(t) ** 2,
    "elastic": lambda t: 0.5 * np.sum(t**R_OF_ELASTIC) ** (2 / R_OF_ELASTIC) + t.sum(),
}
#: UFO's exponent, dual to max(2, 2 ln m)
R_OF_ELASTIC = float(Fraction(1) / (1 - 1 / Fraction(max(2.0, 2.0 * np.log(M)))))


def every_norm(cls=Norm):
    for sub in cls.__subclasses__():
        yield sub
        yield from every_norm(sub)


def test_every_norm_says_which_weights_it_allows():
    ours = [norm for norm in every_norm() if norm.__module__.startswith("kernelweave.")]
    assert {registry[name] for name in registry} <= set(ours)
    for norm in ours:
        if norm.__name__ != "MixedNorm":  # what two norms have in common
            words = (norm.allowed_weights, norm.allowed_text)
            assert words != (Norm.allowed_weights, Norm.allowed_text), norm.__name__


@pytest.mark.parametrize("name", list(registry))
def test_the_words_describe_weights_that_the_bound_holds_for(name):
    """SVMs with random weights from the described set, or random functions, are never below the bound."""
    C = 1.0
    clf = MKLClassifier("precomputed", norm=made(name), C=C, normalize=None).fit(STACK, Y)
    bound = clf.certificate_.dual
    if name in CHARGES:
        for _ in range(200):
            beta, share = Y * RNG.random(N) * RNG.choice([0.05, 0.3, 1.0]), RNG.random(M)
            blocks = share * np.sqrt([beta @ K @ beta for K in STACK])
            f = np.tensordot(share, STACK, axes=1) @ beta
            losses = [np.maximum(0, 1 - Y * (f + b)).sum() for b in np.linspace(-2, 2, 41)]
            assert CHARGES[name](blocks) + C * min(losses) >= bound * (1 - 1e-9)
        return
    for _ in range(12):
        d = WEIGHTS[name]()
        K = np.tensordot(d, STACK, axes=1)
        svc = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, Y)
        beta = np.zeros(N)
        beta[svc.support_] = svc.dual_coef_[0]
        value = 0.5 * beta @ K @ beta + C * np.maximum(0, 1 - Y * svc.decision_function(K)).sum()
        if name == "entropy":
            value += 0.5 * clf.lam_ * np.sum(d * np.log(M * d))
        assert value >= bound * (1 - 1e-9), (name, d)


@pytest.mark.parametrize("name", list(registry))
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_every_norm_with_several_losses(name, loss):
    clf = MKLClassifier("precomputed", norm=made(name), loss=loss, tol=1e-2).fit(STACK, Y)
    said = str(clf.certificate_)
    assert f"{clf.certificate_.primal:.6g}" in said
    assert "no function on these kernels can bring it below" in said
    assert repr(clf.certificate_) == f"Certificate: {said}"
    norm = made(name)
    allowed = norm.allowed_weights
    if norm.fixed:
        assert "with these weights" in said
        assert not speaks_of_a_choice(said)
    elif name == "max":  # a maximum over weights: other weights do bring the value of a plain SVM below
        assert not speaks_of_a_choice(said)
    else:
        assert f"no {allowed} and no function" in said


def speaks_of_a_choice(said):
    """Whether a sentence claims something for weights other than those at hand."""
    return re.search(r"no (?!function|\d+ functions|positive|kernels)", said) is not None


@pytest.mark.parametrize("norm", ["uniform", Fixed([0.1, 0.2, 0.3, 0.4])])
def test_weights_that_nobody_chose_are_given(norm):
    """The bound of the mean kernel is above what l1 reaches on the same data: it holds for these weights alone."""
    fixed = MKLClassifier("precomputed", norm=norm, tol=1e-5).fit(STACK, Y)
    free = MKLClassifier("precomputed", norm="l1", tol=1e-5).fit(STACK, Y)
    assert free.certificate_.primal < fixed.certificate_.dual
    assert "with these weights, no function" in str(fixed.certificate_)
    assert not speaks_of_a_choice(str(fixed.certificate_))
    assert speaks_of_a_choice(str(free.certificate_))


def test_parameters_are_in_the_words():
    assert make_norm(3.0).allowed_weights == "non-negative weights whose 3-norm is at most one"
    assert Lp(np.inf).allowed_weights == "weights between zero and one"
    assert registry["at_most"](1).allowed_weights == "choice of at most 1 kernel with the weight 1"
    assert "0.25 sum d + 0.75 sum d^2" in registry["elastic_net"](0.25).allowed_weights
    assert "elastic(2.5)" in registry["elastic"](2.5).allowed_weights
    assert "entropy(0.3)" in registry["entropy"](0.3).allowed_weights
    # more kernels allowed than there are: the problem has its own k
    clf = MKLClassifier("precomputed", norm=registry["at_most"](9)).fit(STACK, Y)
    assert f"at most {M} kernels with the weight 1/{M} each" in str(clf.certificate_)


def test_kernels_that_always_count():
    said = scope_of(FixedParts(L1(), {0: 2.0, 2: 1.0}), 5)
    assert said.startswith(
        "with the given weights of 2 of 5 kernels, no non-negative weights that sum to one for the"
    )
    assert not speaks_of_a_choice(scope_of(FixedParts(Uniform(), {0: 2.0}), 3))
    clf = MKLClassifier(kw.always(kw.linear(), 2.0) + kw.gaussian([1.0, 2.0])).fit(X, Y)
    assert "given weights of 1 of 3 kernels" in str(clf.certificate_)


def test_a_norm_of_ones_own_has_a_sentence_too():
    class Mine(L1):
        label = "mine"

    class Other(Norm):
        label = "other"

    assert "sum to one" in scope_of(Mine(), 2)
    assert scope_of(Other(), 2) == "no weights that the norm other allows and no function on these kernels"


def test_several_classes_and_several_problems():
    samples, labels = load_iris(return_X_y=True)
    bank = kw.gaussian([1.0, 2.0])
    together = MKLClassifier(bank).fit(samples, labels)
    assert "no 3 functions with the same weights on these kernels" in str(together.certificate_)
    each = MKLClassifier(bank, multi_class="ovr").fit(samples, labels)
    assert "the objectives of 3 problems, each at its C, add up to" in str(each.certificate_)
    assert "in each of them no non-negative weights that sum to one" in str(each.certificate_)
    assert all("the objective at this C" in str(one) for one in each.certificates_)
    chosen = joined(
        [Certificate(2.0, 1.0, np.zeros(2), scope="a"), Certificate(2.0, 1.0, np.zeros(2), scope="b")]
    )
    assert "in 1 of them a; in 1 of them b can bring the sum below 2" in str(chosen)
    unknown = joined([Certificate(2.0, 1.0, np.zeros(2), scope="a"), Certificate(2.0, 1.0, np.zeros(2))])
    assert "no other solution" in str(unknown)


def test_weights_by_evidence_are_given():
    target = X[:, 0] + 0.3 * RNG.normal(size=N)
    bank = kw.per_feature(kw.linear())
    reg = MKLRegressorCV(bank, criterion="reml").fit(X, target)
    assert "with the C that reml chose, with these weights, no function" in str(reg.certificate_)
    assert not speaks_of_a_choice(str(reg.certificate_))
    table = np.column_stack([target, X[:, 1]])
    several = MKLRegressorCV(bank, criterion="loo").fit(X, table)
    assert "the objectives of 2 problems" in str(several.certificate_)
    convex = MKLRegressor(bank).fit(X, target)
    assert "no non-negative weights that sum to one and no function" in str(convex.certificate_)


def test_completed_views_are_mentioned():
    views = {"one": X[:, :2].copy(), "two": X[:, 2:].copy()}
    bank = kw.linear()
    whole = MKLClassifier(bank, missing="predict").fit(views, Y)
    assert "completed" not in str(whole.certificate_)
    views["two"][:5] = np.nan
    lacking = MKLClassifier(bank, missing="predict").fit(views, Y)
    assert "no function on these kernels, as completed for samples that lack a view," in str(
        lacking.certificate_
    )


@pytest.mark.parametrize("method", ["auto", "stochastic", "trimmed", "ramp", "corrected"])
def test_noisy_labels(method):
    clf = NoisyLabelMKLClassifier(kw.per_feature(kw.gaussian([1.0])), method=method).fit(X, Y)
    said = str(clf.certificate_)
    assert ("with these weights" in said) == (method == "auto")
    assert ("with the samples that were chosen last" in said) == (method in ("trimmed", "ramp"))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("denoise", "with this kernel, no function on it"),
        ("features", "with this kernel, no function on it"),
        ("eskl", "at this rho, no positive semidefinite kernel of trace n and no function on it"),
        ("emkl", "one for every similarity, and no function on them"),
        ("rekl", "no kernels of trace n on the eigenvectors of the similarities and no function on them"),
        ("indsvm", "at this rho, no positive semidefinite kernel and no function on it"),
    ],
)
@pytest.mark.filterwarnings("ignore:the iterations allowed were used up")
def test_similarities(method, words):
    clf = SimilarityClassifier(method=method, max_iter=5).fit(STACK[:2], Y)
    assert words in str(clf.certificate_)


def test_certificates_of_earlier_files_claim_nothing_of_weights():
    old = Certificate.__new__(Certificate)
    old.__dict__.update(primal=2.0, dual=1.9, dual_point=np.zeros(2), intercept=0.0, tiny=1e-300, margin=1.0)
    assert "no other solution of the same problem can bring it below 1.9:" in str(old)
    assert "within 5 %" in str(old)


@pytest.mark.parametrize(("primal", "dual"), [(1.0, -np.inf), (np.inf, 0.0), (np.nan, 1.0), (1.0, np.nan)])
def test_without_a_finite_bound_nothing_is_claimed(primal, dual):
    said = str(Certificate(primal, dual, np.zeros(2), scope="no function"))
    assert "nothing is proved about it" in said
    assert "below" not in said
    assert "proved to be within" not in said


def test_digits_never_claim_more():
    for _ in range(200):
        primal = 10.0 ** RNG.uniform(-3, 5)
        one = Certificate(primal, primal * (1 - 10.0 ** RNG.uniform(-7, -1)), np.zeros(2))
        said = str(one)
        assert float(re.search(r"below (\S+):", said)[1]) <= one.dual * (1 + 1e-13)
        assert float(re.search(r"within (\S+) %", said)[1]) >= 100 * one.relative_gap * (1 - 1e-12)
    crossed = Certificate(1.0, 1.0 + 1e-12, np.zeros(2))
    assert "within 1e-06 %" in str(crossed)  # rounding is not nothing
