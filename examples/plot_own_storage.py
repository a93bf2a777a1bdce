"""
Kernels that a program of your own computes
===========================================

A program computes the kernel values, in C++ perhaps, and for all samples they are too many to keep. One class with one
method hands them over block by block; the fit and its certificate are those of any other kernels.
"""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from kernelweave.banks import Gram, Storage
from kernelweave.losses import Hinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve

images, digit = load_digits(return_X_y=True)
images, y = images[:400], np.where(digit[:400] % 2, 1.0, -1.0)

# %%
# A script in a process of its own stands in for your program. It reads the samples once, and then one request after
# another: how many rows, columns and kernels, and which. It answers with the entries, as doubles. Kernel j compares the
# ink of two images in quarter j, pixel by pixel; the last kernel compares all of it.
PROGRAM = """
import sys, numpy as np
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
n, pixels = np.frombuffer(read(16), dtype=np.int64)
images = np.frombuffer(read(8 * n * pixels)).reshape(n, 8, 8)
quarters = [images[:, r, c] for r in (slice(0, 4), slice(4, 8)) for c in (slice(0, 4), slice(4, 8))]
parts = [part.reshape(n, -1) for part in (*quarters, images)]
while header := read(24):
    sizes = np.frombuffer(header, dtype=np.int64)
    rows, cols, kernels = np.split(np.frombuffer(read(8 * sizes.sum()), dtype=np.int64), np.cumsum(sizes)[:2])
    for j in kernels:
        write(np.minimum(parts[j][rows][:, None], parts[j][cols][None]).sum(axis=2).tobytes())
    sys.stdout.buffer.flush()
"""


# %%
# This is all that kernelweave has to know: how many samples and kernels there are, how many bytes are kept, and how to
# get a block.
class FromProgram(Storage):
    """Entries asked of a program whenever they are read."""

    nbytes = 0

    def __init__(self, samples, m):
        super().__init__(len(samples), m)
        self.program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.program.stdin.write(np.array(samples.shape, dtype=np.int64).tobytes() + samples.tobytes())

    def block(self, rows, cols, kernels):
        asked = [np.asarray(part, dtype=np.int64) for part in (rows, cols, kernels)]
        sizes = np.array([part.size for part in asked], dtype=np.int64)
        self.program.stdin.write(b"".join(part.tobytes() for part in (sizes, *asked)))
        self.program.stdin.flush()
        return np.frombuffer(self.program.stdout.read(8 * int(sizes.prod()))).reshape(np.roll(sizes, 1))


# %%
# A bank on it knows all the rest: products, quadratic forms and mixtures. Kernels are brought to one size, and the
# first 300 samples are fitted; storage is shared by all of these.
everything = Gram(FromProgram(images, m=5))
everything = everything.rescaled(1.0 / everything.diag().mean(axis=1))
train, test = np.arange(300), np.arange(300, 400)
problem = MKLProblem(everything.among(train), Hinge(), L1(), y[train], C=1.0)
solution = solve(problem, registry["newton"](), Stop(tol=1e-3))
print(solution.certificate)

# %%
# The function at the other samples is a product of the mixed kernel with the coefficients.
beta = np.zeros(400)
beta[train] = solution.point.beta
values = everything.mix_product(solution.point.weights, beta) + solution.certificate.intercept
print(f"{np.mean(np.sign(values[test]) == y[test]):.0%} of the other images are recognised as odd or even")

names = ["upper left", "upper right", "lower left", "lower right", "all"]
plt.barh(names, solution.point.weights)
plt.xlabel("kernel weight")
plt.show()
everything.storage.program.communicate()
