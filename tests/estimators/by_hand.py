"""Data, kernels, objective and dual written out plainly, with nothing of the library in them."""

from __future__ import annotations

import numpy as np


def moons(
    n: int = 60, features: int = 4, seed: int = 0, noise: float = 0.25
) -> tuple[np.ndarray, np.ndarray]:
    """Two interleaved arcs in the first two features, noise in the others; labels -1 and 1."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    angle = rng.uniform(0.0, np.pi, n)
    X = rng.normal(size=(n, features))
    X[:, 0] = np.where(y > 0, np.cos(angle), 1.0 - np.cos(angle))
    X[:, 1] = np.where(y > 0, np.sin(angle), 0.5 - np.sin(angle))
    X[:, :2] += noise * rng.normal(size=(n, 2))
    return X, y


def blobs(n: int = 60, classes: int = 3, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian cloud a class; labels 0, 1, ..."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return 1.6 * np.eye(classes, features)[y] + rng.normal(scale=0.8, size=(n, features)), y


def curve(n: int = 60, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of two features, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def gaussian(A: np.ndarray, B: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2) / (2 * width**2))


def laplacian(A: np.ndarray, B: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2) / width)


def raw_stack(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The kernels of ``data.bank()``, in its order, not normalised."""
    kernels = [gaussian(A, B, width) for width in (0.25, 0.5, 1.0, 2.0)]
    kernels += [A @ B.T, (A[:, :2] @ B[:, :2].T + 1.0) ** 2]
    kernels += [laplacian(A[:, [j]], B[:, [j]], 1.0) for j in range(A.shape[1])]
    return np.stack(kernels)


def trace_normalised(stack: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Every kernel over the mean of its diagonal on the training samples."""
    return np.stack([K / np.mean(np.diag(T)) for K, T in zip(stack, train, strict=True)])


def loss_value(loss: str, y: np.ndarray, f: np.ndarray, epsilon: float = 0.1) -> np.ndarray:
    if loss == "hinge":
        return np.maximum(0, 1 - y * f)
    if loss == "squared_hinge":
        return np.maximum(0, 1 - y * f) ** 2
    if loss == "logistic":
        return np.log1p(np.exp(-y * f))
    if loss == "squared":
        return (y - f) ** 2
    if loss == "epsilon_insensitive":
        return np.maximum(0, np.abs(y - f) - epsilon)
    raise AssertionError(loss)


def dual_gain(loss: str, y: np.ndarray, beta: np.ndarray, c: np.ndarray, epsilon: float = 0.1) -> float:
    """The loss's part of the dual: minus the conjugate of ``c loss`` at ``-beta``."""
    a = y * beta
    if loss == "hinge":
        return float(a.sum())
    if loss == "squared_hinge":
        return float((a - a**2 / (4 * c)).sum())
    if loss == "logistic":
        share = a / c
        entropy = [-p * np.log(p) - (1 - p) * np.log(1 - p) if 0 < p < 1 else 0.0 for p in share]
        return float((c * np.array(entropy)).sum())
    if loss == "squared":
        return float((y * beta - beta**2 / (4 * c)).sum())
    if loss == "epsilon_insensitive":
        return float((y * beta - epsilon * np.abs(beta)).sum())
    raise AssertionError(loss)


def is_feasible(loss: str, y: np.ndarray, beta: np.ndarray, c: np.ndarray, intercept: bool) -> bool:
    """Whether the coefficients are in the dual set, up to rounding."""
    a, slack = y * beta, 1e-9 * float(np.max(c))
    if loss in ("hinge", "logistic") and not (np.all(a >= -slack) and np.all(a <= c + slack)):
        return False
    if loss == "squared_hinge" and not np.all(a >= -slack):
        return False
    if loss == "epsilon_insensitive" and not np.all(np.abs(beta) <= c + slack):
        return False
    return not intercept or abs(float(beta.sum())) <= 1e-8 * max(1.0, float(np.abs(beta).sum()))


def half_square(t: np.ndarray, p: float) -> float:
    """Half the squared block norm: the sum for p = 1, else the r-norm with r = 2p / (p + 1)."""
    r = 2 * p / (p + 1)
    return 0.5 * float((t**r).sum() ** (2 / r))


def dual_charge(s: np.ndarray, p: float) -> float:
    """Half the largest s for p = 1, else half the p / (p - 1) norm of s."""
    if p == 1:
        return 0.5 * float(s.max())
    q = p / (p - 1)
    return 0.5 * float((s**q).sum() ** (1 / q))


def primal(stack, weights, beta, intercept, loss, p, y, c) -> float:
    """``1/2 Omega^2 + sum c loss`` at ``f = sum_j weights_j K_j beta + intercept``."""
    s = np.array([beta @ K @ beta for K in stack])
    f = sum(d * (K @ beta) for d, K in zip(weights, stack, strict=True)) + intercept
    return half_square(weights * np.sqrt(np.maximum(s, 0)), p) + float((c * loss_value(loss, y, f)).sum())


def dual(stack, beta, loss, p, y, c) -> float:
    """The dual objective at coefficients in the dual set."""
    s = np.array([beta @ K @ beta for K in stack])
    return dual_gain(loss, y, beta, c) - dual_charge(np.maximum(s, 0), p)
