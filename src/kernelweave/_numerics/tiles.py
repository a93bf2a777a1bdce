"""Large triangular factors in tiles, which threads share; what comes out does not depend on how many there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs

from .._typing import Array
from .namespace import to_numpy
from .resources import in_threads, one_blas_thread
from .stopping import check_time

#: rows of a tile; a matrix of fewer than four is factorised in one piece
TILE = 256
#: tiles of a row that are updated together
RUN = 4
#: rows of a triangle that is inverted in one piece
SMALL = 32


class TiledFactor(NamedTuple):
    """A lower Cholesky factor; of a large one with the inverses of its diagonal tiles."""

    lower: Array
    inverses: list[Array]

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """Return ``L^-1 right``, or ``L^-T right``, of a vector or of columns."""
        lower = self.lower
        if not self.inverses or (
            right.ndim == 1 and not transposed
        ):  # a single column is not worth the threads
            if right.size == 0:
                return np.zeros_like(right)
            # LAPACK itself: on a hundred rows the checks around it take longer than it does
            if lower.flags.f_contiguous:
                solved, info = dtrtrs(lower, right, lower=1, trans=int(transposed))
            else:  # the transpose is in LAPACK's order, and need not be copied
                solved, info = dtrtrs(lower.T, right, lower=0, trans=int(not transposed))
            if info != 0:
                raise np.linalg.LinAlgError(
                    f"the triangular matrix has a zero on its diagonal, in row {info}"
                )
            return np.asarray(solved)
        out = np.array(right, dtype=float)
        tiles = _tiles(out.shape[0])
        with one_blas_thread():
            if transposed:
                for inverse, here in zip(self.inverses[::-1], tiles[::-1], strict=True):
                    out[here] = inverse.T @ (out[here] - lower[here.stop :, here].T @ out[here.stop :])
                return out
            for k in range(0, len(tiles), RUN):
                top, below = tiles[k].start, tiles[k + RUN :]
                for here, inverse in zip(tiles[k : k + RUN], self.inverses[k : k + RUN], strict=True):
                    out[here] -= lower[here, top : here.start] @ out[top : here.start]
                    out[here] = inverse @ out[here]

                def take_off(part: slice, known: slice = slice(top, here.stop)) -> None:
                    out[part] -= lower[part, known] @ out[known]

                in_threads(take_off, below)
        return out


def factorise(matrix: Array, ridge: float = 0.0, timed: bool = False) -> TiledFactor:
    """Return the lower Cholesky factor of a symmetric matrix plus a ridge, or raise ``LinAlgError``.

    With ``timed`` a time limit may leave it in the middle.

    >>> factorise(np.array([[4.0, 2.0], [2.0, 2.0]])).lower
    array([[2., 0.],
           [1., 1.]])
    """
    n = matrix.shape[0]
    if n < 4 * TILE:
        matrix = matrix.copy(order="K")
        matrix.flat[:: n + 1] += ridge
        return TiledFactor(_cholesky(matrix), [])
    tiles, given = _tiles(n), matrix
    matrix = np.empty_like(given)

    def copy(part: slice) -> None:
        matrix[part] = given[part]

    def clear(here: slice) -> None:
        matrix[: here.start, here] = 0.0

    in_threads(copy, tiles)  # new memory is slow to touch, so threads share that
    matrix.flat[:: n + 1] += ridge
    with one_blas_thread():
        inverses = [_settle(matrix, tiles[0])]
        for k, here in enumerate(tiles[:-1]):
            if timed:
                check_time()
            below = tiles[k + 1 :]
            next_one = (below[0], below[0])

            def scale(part: slice, known: slice = here, inverse: Array = inverses[-1]) -> None:
                matrix[part, known] = matrix[part, known] @ inverse.T

            def take_off(at: Any, known: slice = here, next_one: Any = next_one) -> Array | None:
                matrix[at] -= matrix[at[0], known] @ matrix[at[1], known].T
                # the tile that the next step begins with is settled while others are at work
                return _settle(matrix, at[0]) if at == next_one else None

            in_threads(scale, below)
            # neighbouring tiles are joined: each part of the work costs its thread a moment of waiting
            parts = [
                (i, slice(below[q].start, below[min(q + RUN - 1, p)].stop))
                for p, i in enumerate(below)
                for q in range(0, p + 1, RUN)
            ]
            done = in_threads(take_off, parts)
            inverses.extend(inverse for inverse in done if inverse is not None)
    in_threads(clear, tiles)
    return TiledFactor(matrix, inverses)


def _cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor of a symmetric matrix, which may be overwritten, or ``LinAlgError``."""
    lower, info = dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
    if info != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive definite")
    return np.asarray(lower)


def _settle(matrix: Array, here: slice) -> Array:
    """Put the factor of a diagonal tile in its place, and return the factor's inverse."""
    matrix[here, here] = _cholesky(matrix[here, here])
    return _inverse(matrix[here, here])


def _inverse(lower: Array) -> Array:
    """Inverse of a lower triangular matrix, by halves: LAPACK's own takes twice as long at this size."""
    n = lower.shape[0]
    if n <= SMALL:
        return np.ascontiguousarray(dtrtri(lower, lower=1)[0])
    half, out = n // 2, np.zeros((n, n))
    out[:half, :half], out[half:, half:] = _inverse(lower[:half, :half]), _inverse(lower[half:, half:])
    out[half:, :half] = -(out[half:, half:] @ lower[half:, :half]) @ out[:half, :half]
    return out


def principal_part(matrix: Any, at: NDArray[np.intp]) -> Array:
    """Return the rows and columns ``at`` of a matrix in double precision, on the host wherever the matrix lives."""
    if not isinstance(matrix, np.ndarray):
        return to_numpy(matrix[at][:, at]).astype(float)
    if at.size < 4 * TILE:
        return matrix.take(at, axis=0).take(at, axis=1).astype(float, copy=False)
    from .smo import gather

    return gather(matrix, at).astype(float, copy=False)


def _tiles(n: int) -> list[slice]:
    return [slice(top, min(n, top + TILE)) for top in range(0, n, TILE)]
