"""Sphinx: ``sphinx-build -W -b html docs docs/_build`` after ``pip install -e '.[docs]'``."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import kernelweave
from kernelweave._components import ParametersInGroups

sys.path.insert(0, str(Path(__file__).parent))
import reference

reference.write(Path(__file__).parent)

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project = "kernelweave"
author = "The kernelweave developers"
copyright = "the kernelweave developers"
version = release = kernelweave.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
# results are tables that scripts write, each a page for itself that starts with a heading of its own
suppress_warnings = ["myst.header", "config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = f"kernelweave {release}"
html_theme_options = {
    "logo": {"text": "kernelweave"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    # the address that a maintainer gave, if one did
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code"}
        for name, url in PROJECT.get("urls", {}).items()
        if name == "Source"
    ],
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {page: [] for page in ("index", "start", "choosing")}  # pages without pages below
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

#: in the order in which to read them; a name without plot_ is shown and not run
GALLERY = [
    "plot_multiview_digits.py",
    "plot_missing_views.py",
    "plot_gene_sets.py",
    "plot_sequences.py",
    "plot_molecules.py",
    "plot_encoding_model.py",
    "plot_breeding.py",
    "plot_pairs.py",
    "plot_stability.py",
    "plot_survival.py",
    "plot_uncertainty.py",
    "plot_noisy_labels.py",
    "plot_text_many_kernels.py",
    "plot_compare_solvers.py",
    "plot_own_kernel.py",
    "plot_own_solver.py",
    "plot_own_storage.py",
    "*",
]
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    # proteins.py is not run here: it needs sequences from a folder of yours
    "filename_pattern": r"[\\/]plot_",
    "within_subsection_order": ExplicitOrder(GALLERY),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 600,
}


# tables and pictures of the studies become pages of the site
shutil.copytree(
    Path(__file__).parents[1] / "studies" / "results",
    Path(__file__).parent / "results" / "studies",
    ignore=shutil.ignore_patterns("*.csv"),
    dirs_exist_ok=True,
)


def for_the_site(app, name, source):
    """Turn links that are right in the repository into links that are right on the site.

    Pages of results are written when a study or a benchmark is run: where one is not there yet, its name is left.
    """
    folder = Path(app.srcdir) / Path(name).parent
    text = (
        source[0]
        .replace("](../CONTRIBUTING.md", "](contributing.md")
        .replace("](results)", "](reproductions.md)")
        .replace("](../studies/results/", "](results/studies/")
    )

    def there(match):
        return match[0] if (folder / match[2]).exists() else match[1]

    source[0] = re.sub(r"\[([^\]]*)\]\(((?:results/)?[\w/]+\.(?:md|csv|png))\)", there, text)


def skip_routing(app, what, name, member, skip, options):
    """Leave out ``set_fit_request`` and its like, which scikit-learn adds to every estimator and documents itself."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def name_groups(app, what, name, obj, options, lines):
    """Say before the parameters of an estimator in which groups they come."""
    if what == "class" and issubclass(obj, ParametersInGroups) and "Parameters" in lines:
        groups = obj.parameter_groups().items()
        said = "; ".join(f"*{group}*: {', '.join(f'``{one}``' for one in names)}" for group, names in groups)
        at = lines.index("Parameters")
        lines[at:at] = [f"Parameters by what they are about, in this order: {said}.", ""]


def leave_out_of_search(app, doctree):
    """Let a search find what is explained before what was measured or changed, and code: of those it reads titles."""
    if re.match(r"results/|changelog|reproductions|contributing|architecture|notation", app.env.docname):
        app.env.metadata[app.env.docname]["nosearch"] = ""


def setup(app):
    """Register the hooks above."""
    app.connect("doctree-read", leave_out_of_search)
    app.connect("autodoc-process-docstring", name_groups, priority=400)  # before numpydoc reads the sections
    app.connect("source-read", for_the_site)
    app.connect("autodoc-skip-member", skip_routing)


os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
