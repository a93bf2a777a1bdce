"""Every part of a model left out of its file, or exchanged: the file is refused, or the model does all it did."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from judge import files as judge
from kernelweave.persistence import ModelFileError, load

#: models of the library whose parts are of many kinds
KINDS = ("views", "matrices with gaps", "online sparse", "deviations", "fourier", "groups", "features")
#: what stands in the place of a part
OTHERS = {"nothing": None, "a number": 3, "a text": "x"}


@pytest.fixture(scope="module")
def models():
    """File and samples of every kind of model."""
    return {
        name: (judge.saved(model), probe) for name, (model, probe) in judge.fitted().items() if name in KINDS
    }


def spoilt(tree, node, name, other):
    """Leave an attribute out, or exchange it, wherever the description of its object is repeated."""
    for twin in judge.objects(tree):
        if twin.get("__id__") == node.get("__id__") and name in twin["content"]["content"]:
            state = twin["content"]
            if other == "left out":
                place = list(state["content"]).index(name)
                del state["content"][name], state["key_types"]["content"][place]
            else:
                state["content"][name] = judge.text(OTHERS[other])


def outcomes(content, probe, path, other):
    """Yield every attribute of every object with what came of a file in which it is spoilt."""
    members = judge.members_of(content)
    whole = json.loads(members[judge.DESCRIPTION])
    seen = set()
    for node in judge.objects(whole):
        if node["__id__"] in seen or not node["__module__"].startswith("kernelweave."):
            continue
        seen.add(node["__id__"])
        for name in node["content"]["content"]:
            tree = json.loads(members[judge.DESCRIPTION])  # sooner than a copy
            spoilt(tree, node, name, other)
            changed = members | {judge.DESCRIPTION: json.dumps(tree).encode()}
            path.write_bytes(judge.archive_of(judge.tidied(changed)))
            where = f"{node['__class__']}.{name}"
            try:
                model = load(path)
            except ModelFileError as error:
                yield where, str(error)
                continue
            try:
                judge.use(model, probe)
            except ValueError as error:
                yield where, str(error)
            except Exception as error:
                yield where, error
            else:
                yield where, "works"


@pytest.mark.parametrize("other", ["left out", "a number"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_spoilt_part_is_found_when_the_file_is_loaded(models, tmp_path, kind, other):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = dict(outcomes(*models[kind], tmp_path / "model.skops", other))
    assert len(found) > 10
    wrong = {where: repr(what) for where, what in found.items() if isinstance(what, Exception)}
    assert not wrong
