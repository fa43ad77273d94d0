"""What the docs say is what the code does: pages, site, alert rules and dashboard."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from tools.site import ROOT, broken, gather, llms, page_of_errors

from sparkonce import __version__, errors
from sparkonce.exactly_once import guards
from sparkonce.operate.watching import FIGURES
from sparkonce.tck.rules.rulebook import RULES


def test_files_and_names_in_the_protocol_page_exist() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    for name in re.findall(r"`(guards\.\w+)`", page):
        assert hasattr(guards, name.removeprefix("guards."))
    promises = (ROOT / "docs" / "model" / "promises.tla").read_text()
    promised = set(re.findall(r"^(\w+) +==", promises, re.MULTILINE))
    for name in re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", page):
        assert hasattr(errors, name) or name in promised | {"DefaultSource"}, name
    for path in re.findall(
        r"`((?:sparkonce|pyspark_redis|pyspark_mysql|pyspark_elasticsearch)/[\w/.]+)`", page
    ):
        assert (ROOT / "connectors" / path).exists(), path


PACKAGES = ("sparkonce", "pyspark_redis", "pyspark_mysql", "pyspark_elasticsearch")


def imported(module: Path) -> set[Path]:
    """The modules of the product that a module imports, wherever it does."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            base = ROOT / "connectors" / node.module.replace(".", "/")
            found |= {base.with_suffix(".py"), *(base / f"{one.name}.py" for one in node.names)}
    return {path for path in found if path.exists()}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_map_names_all_files_in_the_order_of_imports(package: str) -> None:
    root = ROOT / "connectors" / package
    page = (ROOT / "docs" / "code-map.md").read_text()
    section = page.partition(f"\n## {package}\n")[2].partition("\n## ")[0]
    named = [root / path for path in re.findall(r"`([\w/]+\.(?:py|lua|sql|painless))`", section)]
    assert [path for path in named if not path.exists()] == []
    modules = {
        path
        for path in root.rglob("*.py")
        if path.name != "__init__.py" and "tck" not in path.relative_to(root).parts
    }
    assert {path for path in named if path.suffix == ".py"} == modules
    scripts = {path for kind in ("lua", "sql", "painless") for path in root.rglob(f"*.{kind}")}
    assert scripts - {*named} == set()
    if package != "sparkonce":  # where Spark and the commands are further entries
        reached = {root / "connector.py"}
        for step in re.split(r"(?m)^\d+\. ", section)[1:]:
            left = {root / path for path in re.findall(r"`([\w/]+\.py)`", step)} - reached
            while found := {path for path in left if any(path in imported(o) for o in reached)}:
                reached |= found
                left -= found
            assert not left, f"nothing that the map names before imports {left}"


def test_each_error_has_a_cause_and_a_cure() -> None:
    page = page_of_errors()
    assert (ROOT / "docs" / "errors.md").read_text() == page  # tools.site.page_of_errors makes it
    for name in errors.__dict__:
        if isinstance(one := getattr(errors, name), type) and issubclass(one, errors.CommitRefused):
            assert f"\n## {name}\n" in page
    assert page.count("\n## ") == page.count("\n- Cause: ") == page.count("\n- Cure: ") > 30


def test_each_rule_of_the_protocol_names_what_checks_it() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    numbers = [int(number) for number in re.findall(r"^\*\*P(\d+)\.", page, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    checks = re.findall(r"^<br>Model: (.+)\. Kit: (.+)\.$", page, re.MULTILINE)
    assert len(checks) == len(numbers)
    promises = (ROOT / "docs" / "model" / "promises.tla").read_text()
    promised = set(re.findall(r"^(\w+) +==", promises, re.MULTILINE))
    for invariants, rules in checks:
        assert invariants == "none" or {*re.findall(r"`(\w+)`", invariants)} <= promised
        assert {*rules.split(", ")} <= {rule.number for rule in RULES}, rules


def test_changelog_has_a_place_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text or f"## [{__version__}]" in text


def test_code_in_contributing_is_code_that_there_is() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.findall(r"From\s`([\w/.]+)`:\n\n```python\n(.*?)```", page, re.DOTALL)
    assert len(found) == 3
    for path, code in found:
        there = (ROOT / "connectors" / path).read_text()
        assert "".join(code.split()) in "".join(there.split()), path


# -- the site: which links are told as broken, and what machines get


def test_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    links = ("b.html", "a/#there", "a/#not", "#here", "#gone", "https://elsewhere", "a/none.svg")
    page = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "index.html").write_text(f'<h1 id="here">{page}</h1>')
    (tmp_path / "a" / "index.html").write_text('<h1 id="there"><a href="../">back</a></h1>')
    assert sorted(broken(tmp_path)) == [
        f"index.html: {link}" for link in ("#gone", "a/#not", "a/none.svg", "b.html")
    ]


def test_machines_get_a_list_of_all_pages(tmp_path: Path) -> None:
    whole = gather(tmp_path / "docs")
    told = llms(whole)
    for page in whole.glob("*.md"):
        (line,) = (line for line in told.splitlines() if f"({page.name}): " in line)
        assert len(line.partition("): ")[2]) > 20, line


def test_each_page_is_in_the_navigation(tmp_path: Path) -> None:
    config = (ROOT / "zensical.toml").read_text()
    pages = gather(tmp_path / "docs").glob("*.md")
    assert [page.name for page in pages if f'"{page.name}"' not in config] == []


# -- the alert rules, the dashboard and the page about metrics name what there is


DOCS = ROOT / "docs"
ALERTS, BOARD = DOCS / "monitoring" / "alerts.yml", DOCS / "monitoring" / "dashboard.json"
NAMES = {one.name + "_total" * one.counts for one in FIGURES} | {"sparkonce_up"}


@pytest.mark.parametrize("file", [ALERTS, BOARD], ids=lambda file: file.name)
def test_each_metric_that_is_asked_for_is_there(file: Path) -> None:
    asked = set(re.findall(r"sparkonce_[a-z_]+", file.read_text()))
    assert asked
    assert asked <= NAMES


def test_each_panel_of_the_dashboard_asks_for_something() -> None:
    panels = json.loads(BOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels for target in panel["targets"])


def test_the_page_has_all_metrics_and_alerts() -> None:
    page = (DOCS / "monitoring.md").read_text()
    assert set(re.findall(r"`(sparkonce_[a-z_]+)`", page)) == NAMES
    for figure in FIGURES:
        assert figure.about.rstrip(".") in page, figure.name
    for alert in re.findall(r"alert: (\w+)", ALERTS.read_text()):
        assert f"`{alert}`" in page, alert
