"""Start-up: what is imported with the estimator, and what only when it is used."""

from __future__ import annotations

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from sklearn.svm import SVC
before = set(sys.modules)
from kernelweave import MKLClassifier
after = set(sys.modules)
heavy = ["numba", "llvmlite", "pandas", "matplotlib", "torch", "tqdm", "skops", "click", "cvxpy", "hypothesis"]
MKLClassifier()
print(json.dumps({
    "heavy": [name for name in heavy if name in after and name not in before],
    "ours": len([name for name in after - before if name.startswith("kernelweave")]),
    "others": sorted({name.split(".")[0] for name in after - before} - {"kernelweave", "sklearn"}),
    "sklearn": len([name for name in after - before if name.startswith("sklearn")]),
}))
"""


def run(script: str) -> str:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def test_nothing_heavy_is_imported():
    """Beside scikit-learn itself (which brings pandas where it is installed): no compiler, plots or progress bars."""
    found = json.loads(run(SCRIPT))
    assert found["heavy"] == []
    assert found["ours"] > 20  # else this has measured nothing
    # a count of modules, not of seconds: scikit-learn's own start-up takes more than 1500
    assert found["ours"] + found["sklearn"] < 200, found


def test_importing_the_package_imports_nothing():
    found = run("import sys, kernelweave; print('numpy' in sys.modules, 'sklearn' in sys.modules)")
    assert found.split() == ["False", "False"]
    assert "MKLClassifier" in run("import kernelweave; print(dir(kernelweave))")


def test_unknown_names():
    found = run(
        "import kernelweave\ntry: kernelweave.MKLClasifier\nexcept AttributeError as error: print(error)"
    )
    assert "MKLClasifier" in found


def test_a_fit_does_not_need_what_only_pictures_need():
    """Nor is PyTorch imported without a device, nor matplotlib before anything is drawn."""
    found = run(
        "import sys\nimport kernelweave.displays\nfrom kernelweave import MKLClassifier, MKLRegressor, banks, solvers\n"
        "MKLClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[0.5]])\n"
        "print([name for name in ('matplotlib', 'torch', 'tqdm', 'click', 'skops') if name in sys.modules])"
    )
    assert found.strip() == "[]"


def test_fit_and_predict_where_the_others_are_not_installed():
    """Pictures, files, bars and commands need packages of their own; a fit does not."""
    found = run(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('matplotlib', 'skops', 'tqdm', 'click', 'torch', 'dask', 'pyarrow'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from kernelweave import MKLClassifier, MKLRegressor\n"
        "X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]\n"
        "print(MKLClassifier().fit(X, y).predict([[0.1], [2.9]]), MKLRegressor(C=1e3).fit(X, y).predict(X).shape)\n"
    )
    assert found.split("\n")[0] == "[0 1] (4,)"
