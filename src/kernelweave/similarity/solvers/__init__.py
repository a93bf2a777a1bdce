"""Solvers of the problems of this room: ESKL, EMKL, REKL and IndSVM, with a registry of their own."""

from ._base import SimilaritySolver, similarity_solvers
from ._omega import solve_omega

__all__ = ["SimilaritySolver", "similarity_solvers", "solve_omega"]
