"""``kernelweave inspect``: what a saved model stands on."""

from __future__ import annotations

from pathlib import Path

import click

from .fit import FILE

__all__ = ["inspect"]


@click.command()
@click.argument("model", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def inspect(model: Path, as_json: bool) -> None:
    """Say what a saved MODEL is, which views and kernels it uses, and how close to optimal it is.

    What "kernelweave fit" noted in the file is printed as it stands there; a file without such notes is loaded.

    \b
    kernelweave inspect model.skops
    kernelweave inspect model.skops --json
    """
    from ._files import plain_errors

    with plain_errors():
        from ..persistence import about
        from ._describe import describe, noted, tell
        from ._note import open_model
        from ._remarks import Remarks
        from ._terminal import say, say_json

        label = about(model)
        facts = noted(label)
        if facts is None:
            fitted, label = open_model(model)
            facts = describe(fitted, label)
        text = tell(facts)
        findings = [f"finding: {sentence}" for sentence in facts.get("findings", ())]
        notes = [f"note: {line}" for line in Remarks.of(facts.get("reading", {})).lines()]
    if as_json:
        say_json(facts)
    else:
        for finding in findings:  # before any figure
            say(finding)
        say(text)
        for note in notes:
            say(note)
        say(f"saved by kernelweave {label['kernelweave']}, scikit-learn {label['scikit-learn']}")
