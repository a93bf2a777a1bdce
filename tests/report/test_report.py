"""The page says what was computed, needs nothing from outside, and can be read by everybody."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from collections import Counter
from html import escape
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    AlignmentClassifier,
    BestKernelClassifier,
    LPBetaClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    NoisyLabelMKLClassifier,
)
from kernelweave import kernels as kw
from kernelweave.report import _html, make_report
from kernelweave.report import _refits as _measures
from kernelweave.report.folds import folds_of

from .refitted import refit

RAW, TARGET = load_breast_cancer(return_X_y=True)
X, Y = RAW[:140], np.array(["malignant", "benign"])[TARGET[:140]]
BANK = kw.per_view({"mean": slice(0, 10), "worst": slice(20, 30)}, kw.linear(), kw.gaussian([2.0, 4.0]))


class Page(HTMLParser):
    """Tags, ids and texts of a page."""

    VOID = ("meta", "link", "br", "img", "input", "hr")

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def cells(self):
        return [text.strip() for text in self.text if text.strip()]


@pytest.fixture(scope="module")
def model():
    return make_pipeline(StandardScaler(), MKLClassifier(BANK)).fit(X, Y)


@pytest.fixture(scope="module")
def html(model):
    rows = [f"patient <{i}>" for i in range(len(Y))]
    note = {"command": "kernelweave fit a.csv --target 'x & y'", "data": "a.csv", "target": "x & y"}
    return make_report(model, X, Y, title="Tumours & <b>", n_folds=3, n_repeats=2, row_names=rows, note=note)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


# ---- what it says -------------------------------------------------------------------------------------------


def test_the_report_says_what_was_decided_and_why(model, html):
    assert f"Decided: {escape(model[-1].decision_.reason)}." in html


def refitted(model, samples, target, **options):
    return refit(model, samples, target, **{"n_repeats": 2} | options)


@pytest.fixture(scope="module")
def found(model):
    return refitted(model, X, Y)


def test_the_numbers_are_those_of_the_folds(model, found):
    folds = list(RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0).split(X, Y))
    fits = [clone(model).fit(X[train], Y[train]) for train, _ in folds]
    scores = [fit.score(X[test], Y[test]) for fit, (_, test) in zip(fits, folds, strict=True)]
    ours, mean, best, logistic, forest, majority = found.methods
    assert [best.name, logistic.name, forest.name] == [
        "best single kernel",
        "logistic regression",
        "random forest",
    ]
    np.testing.assert_allclose(ours.measures["accuracy"].scores, scores)
    np.testing.assert_allclose(found.stability.weights, [fit[-1].weights_ for fit in fits])
    uniform = make_pipeline(StandardScaler(), MKLClassifier(BANK, norm="uniform"))
    theirs = [clone(uniform).fit(X[train], Y[train]).score(X[test], Y[test]) for train, test in folds]
    np.testing.assert_allclose(mean.measures["accuracy"].scores, theirs)
    share = len(folds[0][1]) / len(folds[0][0])
    lead = np.array(scores) - np.array(theirs)  # with the variance of Nadeau and Bengio
    t = lead.mean() / np.sqrt(lead.var(ddof=1) * (1 / len(folds) + share))
    assert mean.measures["accuracy"].p_value == pytest.approx(2 * stats.t.sf(abs(t), len(folds) - 1))
    accuracy = ours.measures["accuracy"]
    assert accuracy.low < accuracy.mean < accuracy.high <= 1.0
    # guessing: the share of the majority class, half of two classes, no order
    assert majority.measures["accuracy"].mean == pytest.approx(np.mean(Y == "malignant"))
    assert majority.measures["balanced accuracy"].mean == pytest.approx(0.5)
    assert majority.measures["AUROC"].mean == pytest.approx(0.5)
    assert found.better_than_guessing


def test_one_set_of_numbers(found):
    """Measures, confusion matrix and scikit-learn agree."""
    ours, table = found.ours, found.confusion
    assert table.sum() == len(Y)
    assert ours.measures["accuracy"].mean == pytest.approx(np.trace(table) / len(Y))
    assert ours.measures["accuracy"].mean == pytest.approx(np.mean(found.right(ours)))
    recall = np.diag(table) / table.sum(axis=1)
    assert ours.measures["balanced accuracy"].mean == pytest.approx(recall.mean())
    rounds = [balanced_accuracy_score(Y, row.astype(str)) for row in ours.predicted]
    assert ours.measures["balanced accuracy"].mean == pytest.approx(np.mean(rounds))
    per_fold = [
        roc_auc_score(Y[test] == "malignant", ours.decision[number // 3, test])
        for number, (_, test) in enumerate(found.splits)
    ]
    np.testing.assert_allclose(ours.measures["AUROC"].scores, per_fold)


def test_auroc_of_several_classes():
    rng = np.random.default_rng(0)
    labels, shares = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    theirs = roc_auc_score(labels, shares, multi_class="ovr", average="macro")
    assert _measures.auroc(labels, shares, np.arange(3)) == pytest.approx(theirs)
    assert np.isnan(_measures.auroc(labels[labels < 2], shares[labels < 2], np.arange(3)))


def test_groups_are_held_out_together(model):
    groups = np.arange(len(Y)) // 4
    for train, test in folds_of(Y, True, 3, 2, 0, groups):
        assert not set(groups[train]) & set(groups[test])
        assert set(Y[train]) == set(Y)
    for train, test in folds_of(np.arange(140.0), False, 3, 2, 0, groups):
        assert not set(groups[train]) & set(groups[test])
    with pytest.raises(ValueError, match="at least two groups"):
        folds_of(Y, True, 3, 2, 0, np.zeros(len(Y)))
    with pytest.raises(ValueError, match="2 groups were given for 140 samples"):
        make_report(model, X, Y, groups=[0, 1])


def test_everything_is_on_the_page(model, page):
    text = " ".join(page.cells())
    estimator = model[-1]
    for title in ("What was learnt", "Which views and kernels matter", "How good it is", "How close to optimal",
                  "Labels to look at again", "To repeat this"):  # fmt: skip
        assert title in text
    for j in np.flatnonzero(estimator.weights_):
        assert estimator.kernel_names_[j] in text
    assert "mean kernel" in text
    assert "best single kernel" in text
    assert f"{estimator.certificate_.dual:.6g}" in text
    assert "kernelweave fit a.csv --target 'x & y'" in text
    assert "p-value" in text


def test_texts_are_escaped(html, page):
    assert "<b>Tumours" not in html
    assert ("b", {}) not in [tag for tag in page.tags if tag[0] == "b" and "Tumours" in str(tag)]
    assert "Tumours & <b>" in " ".join(page.cells())
    assert "patient <" not in html


def test_names_cannot_run_scripts():
    evil = kw.per_view({"</td><script>alert(1)</script>": [0, 1], '" onload="alert(2)': [2, 3]}, kw.linear())
    data = load_iris()
    clf = MKLClassifier(evil, norm=2).fit(data.data, data.target)
    page = make_report(clf, data.data, data.target, n_folds=2, n_repeats=1)
    assert page.count("<script>") == 1  # our own
    assert not [a for _, a in Page(page).tags if any(name.startswith("on") for name in a)]


# ---- what it needs, and who can read it ---------------------------------------------------------------------


def test_nothing_comes_from_outside(html, page):
    for tag, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "action"):
            assert attributes.get(name, "#").startswith("#"), f"<{tag} {name}={attributes[name]!r}>"
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_the_policy_names_one_script_and_one_style_sheet(html, page):
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules == {
        "default-src": "'none'", "style-src": digest_of(html, "style"), "script-src": digest_of(html, "script"),
        "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip
    assert "unsafe" not in policy
    # nothing is left that such a policy would forbid
    assert not [a for _, a in page.tags if "style" in a or any(name.startswith("on") for name in a)]
    assert Counter(tag for tag, _ in page.tags if tag in ("style", "script")) == {"style": 1, "script": 1}


def digest_of(html, tag):
    """The hash of the content of the one element of a kind, as a browser computes it."""
    (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"


def test_pictures_look_as_they_were_drawn(page, html):
    """Classes carry what the style attributes of the pictures said."""
    used = {a["class"] for tag, a in page.tags if tag in ("path", "use", "g", "text") and "class" in a}
    rules = dict(re.findall(r"\.(s\d+) \{ (.*?) \}", html))
    assert used <= set(rules)
    assert any("var(--ink)" in rules[name] for name in used)
    assert any("currentColor" in rules[name] for name in used)


def test_styles_in_texts_stay_texts():
    body, rules = _html.classes_for_styles(
        '<p>&lt;a style="x: y"&gt; style="z"</p><i id="a" style="b: &quot;c&quot;"/>'
    )
    assert body == '<p>&lt;a style="x: y"&gt; style="z"</p><i id="a" class="s0"/>'
    assert rules == '.s0 { b: "c" }\n'


def test_structure(page):
    assert not page.open, "every tag is closed"
    ids = Counter(a["id"] for _, a in page.tags if "id" in a)
    assert max(ids.values()) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert ("html", {"lang": "en"}) in page.tags
    assert all(a.get("scope") == "col" for tag, a in page.tags if tag == "th")
    assert sum(tag == "caption" for tag, _ in page.tags) == sum(tag == "table" for tag, _ in page.tags)
    pictures = [a for tag, a in page.tags if tag == "svg"]
    assert [a["data-name"] for a in pictures] == ["weights", "sensitivity", "accuracy", "convergence"]
    assert all(a.get("role") == "img" and len(a.get("aria-label", "")) > 20 for a in pictures)
    targets = set(ids)
    for _, attributes in page.tags:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in targets


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_in_light_and_dark():
    css = (files("kernelweave.report") / "page.css").read_text()
    themes = re.findall(r":root[^{]*\{([^}]*--paper[^}]*)\}", css)
    assert len(themes) == 4  # light, dark twice, paper
    assert dict(re.findall(r"--(\w+): (#\w{6})", themes[1])) == dict(
        re.findall(r"--(\w+): (#\w{6})", themes[2])
    )
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#\w{6})", theme))
        for ground in ("paper", "card"):
            for name, least in (("text", 7.0), ("quiet", 4.5), ("ink", 4.5), ("accent", 3.0)):
                bright, dim = sorted((luminance(colours[name]), luminance(colours[ground])), reverse=True)
                assert (bright + 0.05) / (dim + 0.05) >= least, f"{name} on {ground}"


# ---- other models -------------------------------------------------------------------------------------------


def test_several_classes_and_a_chosen_C():
    data = load_iris()
    clf = MKLClassifierCV(kw.gaussian([0.5, 1.0]), Cs=[1.0, 10.0], cv=2).fit(data.data, data.target)
    text = " ".join(Page(make_report(clf, data.data, data.target, n_folds=2, n_repeats=1)).cells())
    assert "All 2 kernels look at the same features" in text
    assert "C chosen as for the model" in text
    assert "is optimistic, because it was maximised" in text
    assert "C was chosen again inside each fold" in text


def test_noisy_labels():
    flipped = Y.copy()
    flipped[::12] = np.where(flipped[::12] == "benign", "malignant", "benign")
    clf = make_pipeline(StandardScaler(), NoisyLabelMKLClassifier(BANK, suspect_weight=0.5)).fit(X, flipped)
    text = " ".join(Page(make_report(clf, X, flipped, n_folds=2, n_repeats=1)).cells())
    assert "of the labels are thought to be wrong" in text
    assert "probability that the label is right" in text
    number = np.count_nonzero(clf[-1].sample_share_ < 1)
    assert f"contradict {number} labels with confidence; each of these counts 0.5 in the fit" in text
    assert "chooses samples as it goes" not in text
    for method, options, said in (
        ("confident", {"suspect_weight": 0.0}, "each of these was left out of the fit"),
        ("trimmed", {}, "chooses samples as it goes"),
    ):
        other = NoisyLabelMKLClassifier(BANK, method=method, **options)
        other = make_pipeline(StandardScaler(), other).fit(X, flipped)
        text = " ".join(Page(make_report(other, X, flipped, n_folds=2, n_repeats=1)).cells())
        assert said in text
        assert "chosen by the method itself" not in text
        assert "C = 1 and the norm were given, not chosen." in text


def test_regression():
    samples, target = load_diabetes(return_X_y=True)
    bank = kw.per_view({"body": [0, 1, 2, 3], "blood": [4, 5, 6, 7, 8, 9]}, kw.gaussian([0.1, 0.3]))
    reg = MKLRegressor(bank, C=100.0).fit(samples[:120], target[:120])
    page = make_report(reg, samples[:120], target[:120], n_folds=2, n_repeats=1)
    text = " ".join(Page(page).cells())
    assert "R² on held-out folds" in text
    assert "mean kernel: all kernels with the same weight, C by leave-one-out" in text
    assert "ridge on the mean kernel" not in text
    assert "ridge regression: on the 10 columns that the kernels look at, standardised" in text
    assert "Labels to look at again" not in text


def test_matrices_through_a_holder():
    stack = np.stack([kernel(StandardScaler().fit_transform(X)) for kernel in kw.gaussian([2.0, 6.0])])
    clf = MKLClassifier("precomputed").fit(stack, Y)
    refit = MKLClassifier(kw.held(stack, ["near", "far"])), np.arange(len(Y))
    text = " ".join(Page(make_report(clf, stack, Y, refit=refit, n_folds=2, n_repeats=1)).cells())
    assert "kernel 0" in text


def test_refused(model):
    with pytest.raises(NotFittedError):
        make_report(MKLClassifier(), X, Y)
    with pytest.raises(ValueError, match="2 row names were given for 140 samples"):
        make_report(model, X, Y, row_names=["a", "b"])
    with pytest.raises(ValueError, match="at least two samples of every class"):
        make_report(model, X, np.where(np.arange(140) == 0, "odd", Y))
    with pytest.raises(TypeError, match="a LPBetaClassifier has no certificate"):
        make_report(LPBetaClassifier(kw.linear()).fit(X, Y), X, Y)


@pytest.mark.parametrize(
    "kind",
    [
        AlignmentClassifier,
        BestKernelClassifier,
        MeanKernelClassifier,
        MeanKernelRidgeClassifier,
        MeanKernelRidgeRegressor,
    ],
)
def test_methods_without_a_norm_have_a_page(kind):
    y = Y if is_classifier(kind()) else X[:, 0]
    found = Page(make_report(kind(kw.gaussian([0.5, 2.0])).fit(X, y), X, y, n_folds=2, n_repeats=1))
    assert "mean kernel" in " ".join(found.cells())


# ---- in a browser -------------------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)")


def in_browser(html, script, tmp_path, *options):
    """Run a script at the end of the page in headless Chromium; return what it leaves as the title."""
    path = tmp_path / "report.html"
    added = f"document.title = {script}"
    digest = base64.b64encode(hashlib.sha256(added.encode()).digest()).decode()
    html = html.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    path.write_text(html.replace("</body>", f"<script>{added}</script></body>"))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", *options,
         "--dump-dom", path.as_uri()],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return re.search(r"<title>(.*?)</title>", done.stdout, flags=re.DOTALL)[1]


@browser
def test_sorting_in_a_browser(html, tmp_path):
    script = """(() => {
      const table = [...document.querySelectorAll('table.sortable')].find(t => t.caption.textContent.startsWith('Kernels'));
      const head = [...table.tHead.rows[0].cells].findIndex(c => c.textContent.trim() === 'weight');
      const column = () => [...table.tBodies[0].rows].map(r => Number(r.cells[head].dataset.v));
      const button = table.tHead.rows[0].cells[head].querySelector('[role=button]');
      button.click(); const down = column(); button.click(); const up = column();
      const name = table.tHead.rows[0].cells[0].querySelector('[role=button]'); name.click(); name.click();
      const names = [...table.tBodies[0].rows].map(r => r.cells[0].textContent);
      return JSON.stringify([down.join() === [...down].sort((a, b) => b - a).join(),
        up.join() === [...up].sort((a, b) => a - b).join(),
        names.join() === [...names].sort((a, b) => a.localeCompare(b)).join(), down.length > 1,
        table.tHead.rows[0].cells[0].getAttribute('aria-sort')]);
    })()"""
    assert in_browser(html, script, tmp_path) == '[true,true,true,true,"ascending"]'


@browser
def test_light_and_dark_in_a_browser(html, tmp_path):
    script = """(() => {
      const ground = () => getComputedStyle(document.body).backgroundColor;
      const button = document.getElementById('theme');
      const seen = [button.hidden, button.textContent, ground()];
      button.click(); seen.push(button.textContent, ground());
      const fills = [...document.querySelectorAll('figure svg path')].map(path => getComputedStyle(path).fill);
      seen.push(fills.includes('rgb(143, 188, 230)')); return JSON.stringify(seen);
    })()"""
    seen = in_browser(html, script, tmp_path)
    assert seen == '[false,"Dark","rgb(255, 255, 255)","Light","rgb(20, 24, 29)",true]'


@browser
def test_nothing_is_wider_than_a_phone(html, tmp_path):
    script = "JSON.stringify([document.documentElement.scrollWidth <= innerWidth, innerWidth < 700])"
    assert in_browser(html, script, tmp_path, "--window-size=500,900") == "[true,true]"


@browser
def test_pictures_and_tables_can_be_taken_along(html, tmp_path):
    """A saved picture has its colours in it, and a copied table has tabs and lines."""
    script = """(() => {
      const parsed = [...document.querySelectorAll('figure svg')].map((svg) => {
        const text = alone(svg); const made = new DOMParser().parseFromString(text, 'image/svg+xml');
        return made.documentElement.tagName === 'svg' && !text.includes('var(') && !text.includes('currentColor');
      });
      const table = document.querySelector('table');
      const lines = asText(table).split('\\n');
      return JSON.stringify([parsed.every(Boolean), parsed.length > 2, lines.length === table.rows.length,
        lines[0].split('\\t').length === table.rows[0].cells.length,
        document.querySelectorAll('figcaption .tool').length === parsed.length]);
    })()"""
    assert in_browser(html, script, tmp_path) == "[true,true,true,true,true]"
