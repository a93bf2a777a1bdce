"""
A kernel of your own
====================

Samples need not be rows of numbers. Here they are words, compared by the letters and pairs of letters they share; the
task is to tell Latin from English names of animals.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.displays import KernelMatrixDisplay
from kernelweave.persistence import ModelFileError, save

animals = """
    canis dog, felis cat, ursus bear, lupus wolf, vulpes fox, equus horse, bos cow, ovis sheep, sus pig, cervus deer,
    lepus hare, mustela weasel, aquila eagle, corvus raven, anser goose, columba pigeon, passer sparrow, rana frog,
    testudo turtle, serpens snake, piscis fish, apis bee, formica ant, papilio butterfly, aranea spider, lacerta lizard,
    delphinus dolphin, simia monkey, leo lion, tigris tiger, camelus camel, elephantus elephant
"""
latin, english = zip(*(pair.split() for pair in animals.split(",")), strict=True)
words = [*latin, *english]
y = np.repeat(["Latin", "English"], [len(latin), len(english)])


# %%
# A function of two samples is a kernel, if it is symmetric and positive semidefinite: inner products of counts are.
def common_letters(a, b):
    return sum(count * Counter(b)[letter] for letter, count in Counter(a).items())


def pairs(word):
    return Counter(zip(f"^{word}", f"{word}$", strict=True))


def common_pairs(a, b):
    return sum(count * pairs(b)[pair] for pair, count in pairs(a).items())


def same_ending(a, b):
    return float(a[-2:] == b[-2:])


bank = [kw.function(f) for f in (common_letters, common_pairs, same_ending)]
clf = MKLClassifier(bank, normalize="cosine", C=10.0, norm=2).fit(words, y)
for name, weight in zip(clf.kernel_names_, clf.weights_, strict=True):
    print(f"{weight:.2f}  {name}")
print(clf.predict(["camelopardalis", "giraffe", "noctua", "owl"]))

# %%
# The mixture of the three.
KernelMatrixDisplay.from_estimator(clf, words, y)
plt.show()

# %%
# A model with code of yours in it cannot be saved in a file that is safe to share; pickle it for yourself.
try:
    save(clf, "animals.skops")
except ModelFileError as error:
    print(error)

# %%
# A product of kernels looks at two things at once, ``+`` puts kernels side by side.
both = kw.function(common_pairs) * kw.function(same_ending)
print(both(["canis", "felis", "cat"]))
