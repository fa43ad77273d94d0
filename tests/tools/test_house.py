"""The arrangement of the code, as CONTRIBUTING describes it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

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
