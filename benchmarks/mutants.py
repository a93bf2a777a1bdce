"""Measure the power of the tests: change one line of the package at a time, and see whether a test fails.

    python benchmarks/mutants.py profile                     # which test runs which line, about 20 minutes
    python benchmarks/mutants.py run --count 400 --seed 1    # an hour or two on two cores; goes on where it stopped
    python benchmarks/mutants.py show --seed 1               # scores by subpackage, and every survivor

A mutant is one change of one statement: another comparison, operator, constant or default, a condition that never
holds, ``max`` for ``min``, a statement removed.  ``run`` collects the tests once and forks for every mutant: the child
gives the live function the mutant's code and runs the tests that reach the changed line, those of the gate before those
that only ``pytest -m full`` runs.  A mutant is killed by a test that fails, by a crash, and by a test that does not end
in ten times its usual time.  One that is alive when its processor time is over counts as a survivor ("budget"); ``run``
with a larger ``--budget`` tries those again.  Three kinds of change are not made, because no behaviour hangs on them:
of ``raise NotImplementedError`` in an abstract method, of ``strict=`` in ``zip``, and removing ``super().__init__``.

``--interpreted`` mutates what numba compiles instead: ``NUMBA_DISABLE_JIT`` is set, and the tests of ``tests/numerics``
and ``tests/problems`` run it as Python.  Module-level code and what only other processes run are not mutated or not
seen.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import types
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "kernelweave"
#: where profiles and outcomes are kept; git ignores it
KEPT = ROOT / ".mutants"
#: the core: what decides whether an answer is right
CORE = ["problems", "losses", "norms", "solvers", "evidence", "estimators", "banks", "persistence", "views"]
#: seconds that any test takes
QUICK = 2e-3
COMPILED = {"njit", "inner", "overload", "intrinsic"}
KILLED = {"killed", "timeout", "crashed"}


def targets(interpreted: bool) -> dict[str, Path]:
    """Return the modules to mutate, by name."""
    folders = ["_numerics"] if interpreted else CORE
    paths = [path for folder in folders for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


def is_compiled(function: ast.AST) -> bool:
    """Whether numba compiles the function."""
    return any(
        isinstance(node, ast.Name) and node.id in COMPILED
        for decorator in getattr(function, "decorator_list", [])
        for node in ast.walk(decorator)
    )


# ---- mutations -----------------------------------------------------------------------------------------------------

COMPARE = {
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn], ast.NotIn: [ast.In],
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
CALLS = {
    "max": "min",
    "maximum": "minimum",
    "argmax": "argmin",
    "any": "all",
    "floor": "ceil",
    "zeros": "ones",
}
CALLS |= {new: old for old, new in CALLS.items()}
NUMBERS = {0: [1], 1: [0, 2], 2: [1, 3], 0.5: [1.0]}
#: parts of the syntax that are not behaviour, or only the text of an error
LEFT_ALONE = {"annotation", "returns", "decorator_list", "exc", "cause", "msg", "type_comment"}


def is_left_alone(node: ast.AST) -> bool:
    """Whether changing the node, or removing it, changes nothing that a test could ask for."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    if isinstance(node, ast.Raise):
        return isinstance(node.exc, ast.Name) and node.exc.id == "NotImplementedError"
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("super().__init__(")


def other_number(value: object, pick: random.Random) -> Any:
    """Return another constant of the same type, None for what is no number."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return type(value)(
            pick.choice(NUMBERS.get(value, [value * 2 if isinstance(value, float) else value + 1]))
        )
    return None


def changes(node: Any, pick: random.Random):
    """Yield (kind, new node) for one node; the node itself is left alone."""
    new = copy.copy(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
        new.ops = [pick.choice(COMPARE[type(node.ops[0])])()]
        yield "compare", new
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        text = any(
            isinstance(part, ast.JoinedStr)
            or (isinstance(part, ast.Constant) and isinstance(part.value, str))
            for part in ast.walk(node)
        )
        if not text:
            new.op = ARITHMETIC[type(node.op)]()
            yield "arithmetic", new
    elif isinstance(node, ast.BoolOp):
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and/or", new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "drop not or minus", node.operand
    elif isinstance(node, ast.Constant) and (value := other_number(node.value, pick)) is not None:
        new.value = value
        yield "constant", new
    elif isinstance(node, ast.Call):
        new.func = copy.copy(node.func)
        name = "id" if isinstance(node.func, ast.Name) else "attr"
        if getattr(node.func, name, None) in CALLS:
            setattr(new.func, name, CALLS[getattr(node.func, name)])
            yield "call", new
    elif isinstance(node, ast.Slice) and (node.lower or node.upper):
        side = "lower" if node.lower else "upper"
        setattr(new, side, ast.BinOp(getattr(node, side), ast.Add(), ast.Constant(1)))
        yield "slice", new
    elif isinstance(node, ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), node.test)
        yield "condition", new
    elif isinstance(node, ast.If):
        new.test = ast.UnaryOp(ast.Not(), node.test) if node.orelse else ast.Constant(False)
        yield ("condition" if node.orelse else "never if"), new
    if (
        isinstance(node, ast.Raise | ast.Break | ast.Continue | ast.AugAssign)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript))
    ):
        yield "remove", ast.Pass()


def text_of(node: ast.AST) -> str:
    """Return the source of a node, shortened."""
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) < 110 else text[:107] + "..."


def mutants(module: str, path: Path, seed: int, interpreted: bool) -> tuple[ast.Module, list[dict[str, Any]]]:
    """Return the module's syntax tree and every mutant of it."""
    pick = random.Random(f"{seed} {module}")
    tree = ast.parse(path.read_text())
    found: list[dict[str, Any]] = []

    def add(top: Any, line: int, kind: str, before: str, after: str, reached: list[int], **what: Any) -> None:
        first = min([top.lineno] + [decorator.lineno for decorator in top.decorator_list])
        found.append(
            {
                "module": module,
                "function": top.name,
                "line": line,
                "kind": kind,
                "before": before,
                "after": after,
            }
            | {"reached": reached, "first": first}
            | what
        )

    def walk(node: Any, top: Any, statement: Any) -> None:
        for field, value in ast.iter_fields(node):
            if field in LEFT_ALONE or (field == "args" and isinstance(node, ast.FunctionDef)):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr | ast.expr_context):
                    continue
                if is_left_alone(child):
                    continue
                if isinstance(child, ast.FunctionDef):
                    if top is not None:
                        walk(child, top, child)
                    elif is_compiled(child) == interpreted:
                        defaults(child)
                        walk(child, child, None)
                    continue
                inner = child if isinstance(child, ast.stmt) else statement
                if top is not None and inner is not None:
                    for kind, new in changes(child, pick):
                        reached = child.body[0].lineno if kind == "never if" else inner.lineno
                        before, after = text_of(child), text_of(new)
                        add(top, inner.lineno, kind, before, after, [reached], node=child, new=new)
                walk(child, top, inner)

    def defaults(function: ast.FunctionDef) -> None:
        arguments = function.args
        positional = arguments.posonlyargs + arguments.args
        given = [
            *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, value in given:
            if isinstance(value, ast.Constant) and (new := other_number(value.value, pick)) is not None:
                name = argument.arg
                before, after = f"{name}={value.value!r}", f"{name}={new!r}"
                reached = [statement.lineno for statement in function.body]
                add(function, function.lineno, "default", before, after, reached, name=name, value=new)

    walk(tree, None, None)
    return tree, found


class Swap(ast.NodeTransformer):
    """Put one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        """Return the new node for the old one, and any other as it is."""
        if node is self.old:
            return ast.copy_location(self.new, node) if hasattr(node, "lineno") else self.new
        return self.generic_visit(node)


def draw(count: int, seed: int, interpreted: bool) -> list[dict[str, Any]]:
    """Return mutants of lines at random, one of each line, with the code that they compile to."""
    pick = random.Random(seed)
    files = targets(interpreted)
    by_line: dict[tuple[str, int], list[int]] = defaultdict(list)
    for module, path in files.items():
        for number, mutant in enumerate(mutants(module, path, seed, interpreted)[1]):
            by_line[module, mutant["line"]].append(number)
    print(f"{sum(map(len, by_line.values()))} mutants on {len(by_line)} lines", flush=True)
    drawn = []
    for identity, (module, line) in enumerate(pick.sample(sorted(by_line), min(count, len(by_line)))):
        tree, found = mutants(module, files[module], seed, interpreted)
        mutant = found[pick.choice(by_line[module, line])] | {"id": identity}
        if "node" in mutant:
            new = Swap(mutant.pop("node"), mutant.pop("new")).visit(tree)
            mutant["code"] = compile(
                ast.fix_missing_locations(new), str(files[module]), "exec", dont_inherit=True
            )
        drawn.append(mutant)
    return drawn


# ---- which test runs which line ------------------------------------------------------------------------------------


class Profile:
    """A plugin of pytest that notes the lines and the seconds of every test; ``part`` of ``parts`` of the files."""

    def __init__(self, interpreted: bool, part: int, parts: int) -> None:
        import coverage

        self.part, self.parts = part, parts
        kind = "interpreted" if interpreted else "core"
        before = KEPT / f"seconds-{kind}.json"  # of the profile before this one
        self.known: dict[str, float] = json.loads(before.read_text()) if before.exists() else {}
        self.kept = KEPT / f"{kind}-{part}"
        self.kept.with_suffix(".cov").unlink(missing_ok=True)
        self.coverage = coverage.Coverage(
            data_file=str(self.kept.with_suffix(".cov")), include=[str(PACKAGE / "*")], config_file=False
        )
        self.coverage.start()
        self.seconds: dict[str, float] = Counter()
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the files of this part: each goes to the part that has least to do so far, the longest ones first."""
        seconds: Counter[Path] = Counter()
        for item in items:
            seconds[item.path] += self.known.get(item.nodeid, 0.1)
        load = [0.0] * self.parts
        own = set()
        for path, time_taken in sorted(seconds.items(), key=lambda pair: (-pair[1], pair[0])):
            least = load.index(min(load))
            load[least] += time_taken
            if least == self.part:
                own.add(path)
        items[:] = [item for item in items if item.path in own]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note lines under the test's name."""
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add up the seconds."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write both."""
        self.coverage.stop()
        self.coverage.save()
        kept = {name: seconds for name, seconds in self.seconds.items() if name not in self.failed}
        self.kept.with_suffix(".json").write_text(json.dumps(kept))
        print(f"{len(kept)} tests, {len(self.failed)} failed and are left out: {sorted(self.failed)[:5]}")


def read_profile(interpreted: bool) -> tuple[dict[str, float], dict[tuple[str, int], set[str]]]:
    """Return the seconds of every test, and the tests that reach a line of a module."""
    import coverage

    seconds: dict[str, float] = {}
    reach: dict[tuple[str, int], set[str]] = defaultdict(set)
    for path in sorted(KEPT.glob(f"{'interpreted' if interpreted else 'core'}-*.json")):
        seconds |= json.loads(path.read_text())
        data = coverage.CoverageData(str(path.with_suffix(".cov")))
        data.read()
        for module, source in targets(interpreted).items():
            for line, tests in data.contexts_by_lineno(str(source)).items():
                reach[module, line] |= set(tests) & seconds.keys()
    return seconds, reach


# ---- running -------------------------------------------------------------------------------------------------------


class Runner:
    """A plugin of pytest that runs the tests of one mutant after another, each in a process of its own."""

    def __init__(self, drawn: list[dict[str, Any]], out: Path, options: argparse.Namespace) -> None:
        self.drawn, self.out, self.options = drawn, out, options
        self.seconds, self.reach = read_profile(options.interpreted)

    def pytest_collection(self, session: Any) -> None:
        """Let hypothesis stop at the first failure it finds."""
        from hypothesis import Phase, settings

        kept = settings.get_profile("kernelweave")
        settings.register_profile("mutants", kept, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the mutants instead of the tests."""
        gc.unfreeze()
        files = targets(self.options.interpreted)
        for module in files:  # some are imported only when they are needed
            importlib.import_module(module)
        self.live: dict[tuple[str, int], list[types.FunctionType]] = defaultdict(list)
        known = {str(path) for path in files.values()}
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__code__.co_filename in known:
                self.live[thing.__code__.co_filename, thing.__code__.co_firstlineno].append(thing)
        gc.collect()
        gc.freeze()
        items = {item.nodeid: item for item in session.items}
        with self.out.open("a") as out:
            for mutant in self.drawn:
                names = (
                    set().union(*(self.reach[mutant["module"], line] for line in mutant["reached"]))
                    & items.keys()
                )
                outcome = (
                    self.outcome(mutant, self.ordered(mutant, names, items))
                    if names
                    else {"status": "unreached"}
                )
                kept = {
                    key: value for key, value in mutant.items() if key not in ("code", "reached", "first")
                }
                kept |= {"tests": len(names), "budget": self.options.budget}
                out.write(json.dumps(kept | outcome) + "\n")
                out.flush()
        return True

    def ordered(self, mutant: dict[str, Any], names: set[str], items: dict[str, Any]) -> list[Any]:
        """Return tests of the gate first; among them the tests of the same subpackage, quick ones before slow ones.

        One case of a function tells more than its second: the k-th counts as k times as slow.  So quick cases of a long
        list, as of everything that is refused, still come before slow tests.
        """
        own = f"/{mutant['module'].split('.')[1]}/"
        taken: Counter[str] = Counter()
        turn = {}
        for name in sorted(names):  # one case of every function before the second of any
            function = name.partition("[")[0]
            turn[name] = taken[function]
            taken[function] += 1
        key = lambda name: (  # noqa: E731
            items[name].get_closest_marker("full") is not None,
            (self.seconds[name] + QUICK) * (turn[name] + 1) * (0.2 if own in name else 1.0),
        )
        return [items[name] for name in sorted(names, key=key)]

    def outcome(self, mutant: dict[str, Any], items: list[Any]) -> dict[str, Any]:
        """Run the tests in a child; return its last word, or what became of it."""
        read, write = os.pipe()
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                os.setpgid(0, 0)
                null = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(null, stream)
                self.child(mutant, items, lambda **what: os.write(write, (json.dumps(what) + "\n").encode()))
            except BaseException as error:
                os.write(write, (json.dumps({"status": "error", "why": repr(error)[:300]}) + "\n").encode())
            finally:
                os._exit(0)
        os.close(write)
        os.set_blocking(read, False)
        said, ended = b"", False
        while not ended and time.monotonic() - began < 4 * self.options.budget:
            time.sleep(0.02)
            ended = os.waitpid(child, os.WNOHANG)[0] == child
            with contextlib.suppress(BlockingIOError):
                while part := os.read(read, 65536):
                    said += part
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # with whatever it started
        if not ended:
            os.waitpid(child, 0)
        os.close(read)
        lines = [json.loads(line) for line in said.decode().splitlines()]
        last = lines[-1] if lines else {"at": None, "since": began}
        if "status" in last:
            return last
        slow = time.monotonic() - last["since"] > 10 * self.seconds.get(last["at"], 0.0) + 10
        return {"status": "crashed" if ended else "timeout" if slow else "budget", "by": last["at"]}

    def child(self, mutant: dict[str, Any], items: list[Any], say: Any) -> None:
        """Change the live function and run the tests until one fails."""
        from _pytest.runner import runtestprotocol

        self.change(mutant)
        began = time.process_time()
        for number, item in enumerate(items):
            say(at=item.nodeid, since=time.monotonic())
            following = items[number + 1] if number + 1 < len(items) else None
            for report in runtestprotocol(item, nextitem=following, log=False):
                if report.failed:
                    why = (str(report.longrepr).strip().splitlines() or [""])[-1]
                    full = item.get_closest_marker("full") is not None
                    return say(status="killed", by=item.nodeid, full=full, ran=number + 1, why=why[:200])
            if time.process_time() - began > self.options.budget:
                return say(status="budget", ran=number + 1)
        say(status="survived", ran=len(items))

    def change(self, mutant: dict[str, Any]) -> None:
        """Give the live functions the mutant's code or default."""
        path = str(targets(self.options.interpreted)[mutant["module"]])
        functions = [
            function
            for function in self.live[path, mutant["first"]]
            if function.__code__.co_name == mutant["function"]
        ]
        if not functions:
            raise LookupError(f"no live function {mutant['function']}")
        for function in functions:
            if "code" in mutant:
                function.__code__ = code_of(mutant["code"], function.__code__)
            elif function.__kwdefaults__ and mutant["name"] in function.__kwdefaults__:
                function.__kwdefaults__[mutant["name"]] = mutant["value"]
            else:
                names = function.__code__.co_varnames[: function.__code__.co_argcount]
                given = list(function.__defaults__ or ())
                given[names.index(mutant["name"]) - len(names)] = mutant["value"]
                function.__defaults__ = tuple(given)


def code_of(module: types.CodeType, old: types.CodeType) -> types.CodeType:
    """Return the code of the function with this name and first line, below a module's code."""
    waiting = [module]
    while waiting:
        code = waiting.pop()
        if code.co_qualname == old.co_qualname and code.co_firstlineno == old.co_firstlineno:
            return code
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
    raise LookupError(f"no code for {old.co_qualname}")


# ---- the command ---------------------------------------------------------------------------------------------------


def show(outcomes: list[dict[str, Any]]) -> None:
    """Print scores by subpackage, then every mutant that was not killed."""
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for one in outcomes:
        for key in (one["module"].split(".")[1], "all"):
            table[key]["drawn"] += 1
            table[key]["killed"] += one["status"] in KILLED
            table[key]["by the gate"] += one["status"] in KILLED and not one.get("full")
            table[key][one["status"] if one["status"] not in KILLED else ""] += 1
    print(
        "| subpackage | mutants | killed | by the tests of the gate | survived | out of time | not reached |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for key, row in sorted(table.items(), key=lambda pair: (pair[0] == "all", pair[0])):
        print(
            f"| {key} | {row['drawn']} | {row['killed']} ({100 * row['killed'] / row['drawn']:.0f} %) "
            f"| {row['by the gate']} | {row['survived']} | {row['budget']} | {row['unreached'] + row['error']} |"
        )
    for one in sorted(outcomes, key=lambda one: (one["module"], one["line"])):
        if one["status"] not in KILLED:
            print(
                f"{one['id']:4d} {one['module']}:{one['line']} {one['function']} [{one['kind']}] {one['status']} "
                f"({one.get('ran', 0)} of {one['tests']} tests)\n       {one['before']}  ->  {one['after']}"
            )


def main() -> int:
    """Profile, run or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["profile", "run", "show"])
    parser.add_argument("paths", nargs="*", help="tests (all of them)")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=30.0, help="processor seconds of one mutant")
    parser.add_argument(
        "--interpreted", action="store_true", help="mutate what numba compiles, run as Python"
    )
    parser.add_argument("--part", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    kind = "interpreted" if options.interpreted else "core"
    KEPT.mkdir(exist_ok=True)
    if options.what == "show":
        files = sorted(KEPT.glob(f"{kind}-seed{options.seed}-*.jsonl"))
        outcomes = [json.loads(line) for path in files for line in path.read_text().splitlines()]
        show(list({one["id"]: one for one in outcomes}.values()))  # of several tries the last
        return 0
    if options.part is None:
        if options.what == "profile" and (old := sorted(KEPT.glob(f"{kind}-*.json"))):
            seconds = {name: taken for path in old for name, taken in json.loads(path.read_text()).items()}
            (KEPT / f"seconds-{kind}.json").write_text(json.dumps(seconds))
            for path in old:
                path.unlink()
        environment = os.environ | ({"NUMBA_DISABLE_JIT": "1"} if options.interpreted else {})
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
        command = [sys.executable, __file__, *sys.argv[1:]]
        parts = [
            subprocess.Popen([*command, "--part", str(part)], env=environment, cwd=ROOT)
            for part in range(options.jobs)
        ]
        return max(part.wait() for part in parts)
    import pytest

    default = ["tests/numerics", "tests/problems"] if options.interpreted else ["tests", "src"]
    arguments = ["-n", "0", "-m", "", "-p", "no:cacheprovider", "-q", *(options.paths or default)]
    if options.what == "profile":
        return pytest.main(arguments, plugins=[Profile(options.interpreted, options.part, options.jobs)])
    out = KEPT / f"{kind}-seed{options.seed}-{options.part}.jsonl"
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {one["id"] for one in known if one["status"] != "budget" or one["budget"] >= options.budget}
    drawn = draw(options.count, options.seed, options.interpreted)
    drawn = [one for one in drawn if one["id"] % options.jobs == options.part and one["id"] not in done]
    return pytest.main(arguments, plugins=[Runner(drawn, out, options)])


if __name__ == "__main__":
    sys.exit(main())
