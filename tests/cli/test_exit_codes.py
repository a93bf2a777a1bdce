"""Exit codes: 2 for a command that is wrong by itself, 1 for data that do not fit, 130 for Ctrl-C, in every command."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from kernelweave.cli import main

from .commands import call

#: words that make each command complete, in a folder that has a table and a model
COMPLETE = {
    "fit": ("data.csv", "--target", "y", "--json"),
    "predict": ("m.skops", "data.csv", "-o", "out.csv"),
    "inspect": ("m.skops",),
    "report": ("m.skops", "data.csv", "-o", "out.html"),
    "compare": ("m.skops", "other.skops", "data.csv", "-o", "out.html"),
    "demo": ("--output", "out.png"),
    "example": ("omics", "-o", "study"),
    "methods": (),
    "compile": (),
    "reproduce": ("smkl", "--quick"),
}
#: by option: a value that cannot be meant, where the kind of the option does not say so itself
WRONG = {
    "--C": ("-1", "0", "nan", "inf", "much"),
    "--tol": ("-1", "0", "nan", "inf"),
    "--norm": ("0.2", "l9x", "nan"),
    "--norms": ("l9x",),
    "--loss": ("hinges",),
    "--scoring": ("accurracy",),
    "--kernels": ("smlk", "sigmoid"),
    "--class-weight": ("heavy", "up=-1", "up=0", "up=nan"),
    "--noise-rate": ("0.7", "-0.1", "nan", "much"),
    "--novelty": ("0", "-0.1", "2", "nan", "much"),
    "--view": ("a", "=a", "a=", "a=,"),
    "--separator": ("", ";;", "\n", '"'),
    "--encoding": ("utf-7000", "base64", ""),
    "--comment": ("",),
    "--drop": ("y",),
    "--id": ("y",),
    "--fold-groups": ("y",),
    "--model": ("-", "nowhere/m.skops", "data.csv"),
    "--report": ("nowhere/r.html", "data.csv"),
    "--output": ("nowhere/out.csv", "data.csv", "out.xls"),
    "--only": ("table99", ""),
    "--jobs": ("0", "many"),
    "--repeats": ("0",),
    "--folds": ("1", "0", "many"),
    "--min-size": ("0", "3"),
    "--seed": ("-1", "x"),
    "--missing": ("guess", "mean"),
    "--objects": ("x", "=a", "a=sp"),
    "--task": ("guess",),
    "--decimal": ("'",),
    # one without the others that it goes with
    "--time": ("a",),
    "--event": ("a",),
    "--event-value": ("yes",),
    "--strata": ("a",),
    "--always": ("y",),
    "--at": ("soon", "-1", ""),
    "--pairs": ("data.csv",),
    "--left": ("data.csv",),
    "--right": ("data.csv",),
    "--setting": ("new", "left"),
    "--left-id": ("a",),
    "--right-id": ("a",),
    "--left-kernels": ("linear",),
    "--right-kernels": ("linear",),
    "--left-gram": ("data.csv",),
    "--right-gram": ("data.csv",),
}
#: options that take any text, or a file whose content is judged when it is read
ANY = {"--target", "--views", "--gmt", "--groups", "--gram", "--na"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("codes")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["a", "b"])
    frame.assign(y=np.where(frame["a"] > 0, "up", "down")).to_csv(folder / "data.csv", index=False)
    words = ("fit", folder / "data.csv", "--target", "y", "--C", "1", "--kernels", "linear")
    call(*words, "--model", folder / "m.skops")
    call(*words, "--norm", "2", "--model", folder / "other.skops")
    return folder


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in Path().iterdir())
    yield
    assert sorted(path.name for path in Path().iterdir()) == before


def options_of(name):
    """Return the longest name of every option of a command that is not a flag."""
    return [
        max(parameter.opts, key=len)
        for parameter in main.commands[name].params
        if isinstance(parameter, click.Option) and not parameter.is_flag
    ]


CASES = [
    (name, option, value)
    for name in main.commands
    for option in options_of(name)
    for value in WRONG.get(option, ())
    if not (name in ("reproduce", "example") and option == "--output")
    and not (name in ("report", "compare") and value == "out.xls")
]


def test_every_command_and_option_is_tried():
    assert set(COMPLETE) == set(main.commands)
    known = set(WRONG) | ANY
    assert not [option for name in main.commands for option in options_of(name) if option not in known]


@pytest.mark.parametrize("name", list(main.commands))
def test_commands_that_are_not_complete_or_ask_for_what_there_is_not(name):
    assert CliRunner().invoke(main, [name, "--no-such-option"]).exit_code == 2
    assert CliRunner().invoke(main, [name, *COMPLETE[name], "one", "two", "three"]).exit_code == 2
    needs = [parameter for parameter in main.commands[name].params if parameter.required]
    if needs:
        assert CliRunner().invoke(main, [name]).exit_code == 2
    for option in options_of(name):
        done = CliRunner().invoke(main, [name, *COMPLETE[name], option])
        assert done.exit_code == 2, (option, done.output)


def test_no_command():
    assert CliRunner().invoke(main, ["no-such-command"]).exit_code == 2
    assert CliRunner().invoke(main, ["--no-such-option"]).exit_code == 2


@pytest.mark.parametrize(("name", "option", "value"), CASES)
def test_wrong_values(name, option, value):
    words = [name, *COMPLETE[name]]
    if option == "--output":  # given once only
        place = next(k for k, word in enumerate(words) if word in ("-o", "--output"))
        del words[place : place + 2]
    done = CliRunner().invoke(main, [*words, option, value])
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 2, done.output
    assert "Error: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--drop y", "--drop 'y' is the column of --target"),
        ("--id y", "--id and --target are both 'y'"),
        ("--fold-groups y", "--fold-groups and --target are both 'y'"),
        ("--drop a --id a", "--drop 'a' is the column of --id, which is not learnt from anyway"),
        ("--drop a --fold-groups a", "--drop 'a' is the column of --fold-groups"),
        ("--view v=y,a", "--view v names 'y', the column of --target, which is not learnt from"),
        ("--view v=a --id a", "--view v names 'a', the column of --id"),
        ("--view v=a --drop a", "--view v names 'a', the column of --drop"),
        ("--separator , --decimal ,", "--separator and --decimal are both ','"),
    ],
)
def test_columns_with_two_parts_to_play(words, said):
    done = call("fit", "data.csv", "--target", "y", "--json", *words.split(), code=2)
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("predict m.skops -o out.csv", "give a table of new samples"),
        ("predict m.skops data.csv -o out.csv --gram m.npy", "remove --gram"),
        ("predict m.skops data.csv -o out.csv --view v=a,b", "--view v takes a file here"),
        ("report m.skops data.csv -o out.html --view v=a,b", "--view v takes a file here"),
        ("predict m.skops data.csv -o - --json", "both write to the standard output"),
        ("report m.skops - -o out.html", "give a file, not the standard input"),
    ],
)
def test_what_the_model_has_no_use_for(words, said):
    assert said in " ".join(call(*words.split(), code=2).stderr.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit data.csv --target why --json", "no column 'why' for --target."),
        ("fit data.csv --target Y --json", "no column 'Y' for --target. Did you mean 'y'?"),
        ("fit data.csv --target y --drop bb --json", "no column 'bb' to --drop. Did you mean 'b'?"),
        ("fit data.csv --target y --id aa --json", "no column 'aa' for --id. Did you mean 'a'?"),
        ("fit data.csv --target y --fold-groups aa --json", "no column 'aa' for --fold-groups. Did you mean 'a'?"),
        ("fit data.csv --target y --view v=aa --json", "no column is called 'aa'. Did you mean 'a'?"),
        ("fit none.csv --target y --json", "there is no file none.csv"),
        ("predict m.skops none.csv -o out.csv", "there is no file none.csv"),
        ("predict none.skops data.csv -o out.csv", "there is no file none.skops"),
        ("predict m.skops data.csv --view v=none.csv -o out.csv", "the model was fitted without --id"),
        ("report m.skops none.csv -o out.html", "there is no file none.csv"),
        ("inspect none.skops", "there is no file none.skops"),
        ("inspect data.csv", "data.csv"),
    ],
)  # fmt: skip
def test_files_and_columns_that_are_not_there(words, said):
    done = call(*words.split(), code=1)
    assert said in " ".join(done.stderr.split())
    assert done.stdout == ""


def test_a_view_of_a_file_that_names_the_target(tmp_path):
    views = tmp_path / "views.toml"
    views.write_text('[views.v]\ncolumns = ["a", "y"]\n')
    said = call("fit", "data.csv", "--target", "y", "--views", views, "--json", code=1).stderr
    assert "view 'v' names 'y', the target, which is not learnt from: leave it out of the view" in said


@pytest.mark.parametrize(
    ("name", "patched"),
    [
        ("fit", "kernelweave.problems:MKLProblem.certificate"),
        ("predict", "kernelweave:MKLClassifier.predict"),
        ("inspect", "kernelweave.persistence:about"),
        ("report", "kernelweave.report:make_report"),
        ("compare", "kernelweave.report:compare_models"),
        ("demo", "sklearn.preprocessing:StandardScaler.fit"),
        ("methods", "kernelweave.cli.commands:summary"),
        ("example", "pathlib:Path.mkdir"),
        ("compile", "kernelweave.cli.compiling:compile_ahead"),
        ("reproduce", "kernelweave_studies:load_study"),
    ],
)
def test_ctrl_c_is_130_everywhere(name, patched, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    module, _, what = patched.partition(":")
    owner = functools.reduce(getattr, what.split(".")[:-1], importlib.import_module(module))
    monkeypatch.setattr(owner, what.rpartition(".")[2], interrupted)
    done = call(name, *COMPLETE[name], code=130)
    assert "interrupted" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("fit data.csv --target y --C 1 --kernels linear --model made.skops", "made.skops"),
        ("predict m.skops data.csv -o made.csv", "made.csv"),
    ],
)
def test_ctrl_c_after_the_work_says_what_there_is(words, made, monkeypatch):
    """The last lines are interrupted: what was written is not denied."""
    said = click.echo

    def interrupted(text, **options):
        if "written to" in text:
            raise KeyboardInterrupt
        said(text, **options)

    monkeypatch.setattr(click, "echo", interrupted)
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 130
    assert done.stderr.endswith(f"interrupted; {made} is written\n")
    Path(made).unlink()


def test_an_interrupt_that_python_cannot_raise_comes_again():
    """A callback of a weak reference swallows what is raised in it; so does Python's import system."""
    import signal
    import time
    import weakref

    class Thing:
        pass

    @click.command()
    def work():
        thing = Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
        del thing
        assert reference() is None
        time.sleep(20)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main.add_command(work)
    try:
        began = time.monotonic()
        done = call("work", code=130)
    finally:
        main.commands.pop("work")
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 10
    assert done.stderr == "interrupted; nothing was written\n"
