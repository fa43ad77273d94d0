"""Support code is kept apart from tests: nothing imports a test module or a conftest."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
