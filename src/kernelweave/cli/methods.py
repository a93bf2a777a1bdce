"""``kernelweave methods``: what the registries hold."""

from __future__ import annotations

from inspect import getdoc
from typing import Any

import click

__all__ = ["methods"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def methods(as_json: bool) -> None:
    """List the solvers, losses and norms, and what they need.

    \b
    kernelweave methods
    kernelweave methods --json
    """
    # imported here: the rooms take a second to load, which `kernelweave --help` should not pay
    from ..losses import registry as losses
    from ..norms import registry as norms
    from ..solvers import REQUIREMENTS
    from ..solvers import registry as solvers
    from ._terminal import say, say_json
    from ._text import listing

    needs = {name: [str(REQUIREMENTS[need]) for need in solvers[name].needs] for name in solvers}
    tasks = {name: f"for {' and '.join(sorted(losses[name].tasks))}" for name in losses}
    if as_json:
        rooms = {
            "solvers": {name: {"about": summary(solvers[name]), "needs": needs[name]} for name in solvers},
            "losses": {
                name: {"about": summary(losses[name]), "tasks": sorted(losses[name].tasks)} for name in losses
            },
            "norms": {name: {"about": summary(norms[name])} for name in norms},
        }
        say_json(rooms)
        return
    say('Solvers (solver="..."; "auto" picks one by loss and norm)\n')
    notes = {name: f"needs {' and '.join(what)}" if what else "" for name, what in needs.items()}
    say(listing([(name, summary(solvers[name]), notes[name]) for name in solvers]))
    say('\nLosses (loss="...")\n')
    say(listing([(name, summary(losses[name]), tasks[name]) for name in losses]))
    say('\nNorms (norm="...", or a number p >= 1, the exponent on the weights)\n')
    say(listing([(name, summary(norms[name]), "") for name in norms]))


def summary(component: Any) -> str:
    """Return one line about a class: its ``summary``, else the first sentence of its docstring, without markup."""
    text = getattr(component, "summary", "") or (getdoc(component) or "").split("\n\n")[0]
    return " ".join(text.replace("``", "").split())
