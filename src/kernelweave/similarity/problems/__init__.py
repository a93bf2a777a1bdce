"""Learning kernels from similarities that are no kernels: problems (2), (4), (6) and (7) of [KTBB10], and their judge.

Variables are kernels ``K`` (positive semi-definite, of trace tau) that stay near the similarities and serve an SVM:

    (4)  min over K of      omega(K) + rho sum_i L(K - S_i)                      one kernel for all similarities
    (6)  min over K_i of    Omega(K_1..K_m) + rho sum_i L(K_i - S_i)             one per similarity
    (7)  the same with every K_i on the eigenvectors of its S_i
    (2)  (4) without the trace                                                   IndSVM

omega is the SVM's value and ``Omega = max over a, gamma on the simplex of 1'a - 1/2 sum_i b'K_i b / gamma_i`` (10): MKL
with the block norm (2, inf), which is ``norms.Maximum``, and with one kernel the SVM again.  So (4) is (6) with one
kernel that has m losses, and everything below is written once.

Every problem is a saddle point, ``max over beta, gamma`` and, by the conjugate ``L(X) = max over Z of <Z, X> - L*(Z)``,
over multipliers ``Z_i``.  The kernels then enter linearly, and minimising over them is an eigenvalue:

    LB(beta, gamma, Z) = 1'a - rho sum_i (<Z_i, S_i> + L*(Z_i)) + tau sum_i lmin(rho Z_i - beta beta' / (2 gamma_i))

holds below the optimum for *any* beta in the dual set, gamma in the simplex and Z.  At ``Z_i = L'(K - S_i)`` this is
the one-point bound of the kernel K, at averages it is Fenchel-Jensen, at the kernel that is best for a fixed beta it is
the partial dual, the tight one.
"""

from ..points import DualPoint, SimilarityCertificate, SimilarityPoint
from ._base import SimilarityProblem
from .full_kernels import SeparateKernelsProblem, SingleKernelProblem
from .indefinite_svm import IndefiniteSVMProblem
from .restricted_kernels import RestrictedKernelsProblem

__all__ = [
    "DualPoint",
    "IndefiniteSVMProblem",
    "RestrictedKernelsProblem",
    "SeparateKernelsProblem",
    "SimilarityCertificate",
    "SimilarityPoint",
    "SimilarityProblem",
    "SingleKernelProblem",
]
