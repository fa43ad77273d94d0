"""The arrangement of the code, as CONTRIBUTING describes it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "connectors"
LARGEST, SMALLEST = 450, 40


@cache
def modules() -> dict[str, Path]:
    """Each module of core and connectors, the kit aside."""
    found = {path: path.relative_to(CODE).with_suffix("").parts for path in CODE.rglob("*.py")}
    product = {path: parts for path, parts in found.items() if "tck" not in parts}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in product.items()}


def imports(path: Path, *, lazy: bool) -> set[str]:
    """The modules of the project that a module imports.

    Args:
        path: of the module.
        lazy: whether those count that are imported inside functions, or for types alone.
    """
    tree = ast.parse(path.read_text())
    found = set()
    for node in ast.walk(tree) if lazy else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules() else node.module)
    return found & modules().keys()


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: imports(path, lazy=False) for name, path in modules().items()}
    assert [*TopologicalSorter(graph).static_order()]


def test_a_file_is_one_thing_that_a_reader_looks_for() -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name: size for name, size in lines.items() if size > LARGEST} == {}
    importers = Counter(used for path in CODE.rglob("*.py") for used in imports(path, lazy=True))
    fragments = {
        name
        for name, path in modules().items()
        if lines[name] < SMALLEST and importers[name] == 1 and path.name != "__init__.py"
    }
    assert fragments == set()


def test_a_class_name_stands_for_one_thing() -> None:
    """Twins play the same role in each connector; CONTRIBUTING lists them."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    twins = set(re.findall(r"`(\w+)`", page[page.index("Twins") :].partition("\n\n")[0]))
    names = Counter(
        node.name
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == twins


# -- support code is kept apart from tests: nothing imports a test module or a conftest


FOLDERS = ("connectors", "demo", "examples", "integration", "tests", "tools")
SOURCES = [ROOT / "conftest.py", *(one for name in FOLDERS for one in (ROOT / name).rglob("*.py"))]


def imported(code: str) -> Iterator[str]:
    """Each name that is imported, with the module that it is of: either may be a test."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(one.value) for one in node.args if isinstance(one, ast.Constant))


def named_tests(code: str) -> list[str]:
    """What it imports of tests."""
    return [name for name in imported(code) if any(map(is_test, name.split(".")))]


def is_test(part: str) -> bool:
    return part.startswith("test_") or part == "conftest"


def test_nothing_imports_a_test() -> None:
    assert len(SOURCES) > 300
    found = {str(one.relative_to(ROOT)): named_tests(one.read_text()) for one in SOURCES}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "import a, a.test_b as b",
        "from a import x, test_b",
        "from ..a.test_b import *",
        "from a.conftest import x",
        "if True:\n    def f():\n        importlib.import_module('a.test_b')",
    ],
)
def test_an_import_of_a_test_is_seen(planted: str) -> None:
    assert len(named_tests(f"import a.b\nfrom a import b, latest_b\n{planted}")) == 1
