"""What a manifest keeps of a plan for Elasticsearch."""

from __future__ import annotations

from typing import Any

APPENDED: dict[str, Any] = {
    "index": "x",
    "parts": [],
    "reserved": [],
    "mode": "append",
    "key": [],
    "columns": [],
    "added": [],
    "nulls": "write",
    "op": None,
    "versionColumn": None,
    "routing": None,
    "pipeline": None,
    "visibleAlias": None,
    "aside": False,
    "create": None,
    "schema": "v BIGINT",
    "overwrites": False,
}
