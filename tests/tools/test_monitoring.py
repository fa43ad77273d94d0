"""The alert rules, the dashboard and the page about metrics name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparkonce.operate.watching import FIGURES

DOCS = Path(__file__).parents[2] / "docs"
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
