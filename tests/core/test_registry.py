"""How a connector is found, and what is said where its client library is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

import pytest

from sparkonce.errors import MissingExtra, OptionError
from sparkonce.store import for_url, load


def test_a_connector_is_found_by_its_path() -> None:
    connector = load("pyspark_redis.connector:RedisConnector")
    assert connector.name == "redis"


@pytest.mark.parametrize("url", ["redis://localhost:6379/0", "rediss://db", "redis://"])
def test_a_connector_is_found_by_the_scheme_of_a_url(url: str) -> None:
    assert for_url(url).name == "redis"


@pytest.mark.parametrize("url", ["mongodb://db", "localhost", "", "://db"])
def test_an_unknown_scheme_is_refused_and_the_known_ones_named(url: str) -> None:
    with pytest.raises(OptionError, match=r"redis://, redis\+cluster://, redis\+sentinel://"):
        for_url(url)


def test_the_unknown_scheme_is_named() -> None:
    with pytest.raises(OptionError, match="'mongodb'"):
        for_url("mongodb://db")


def test_a_missing_client_library_names_package_and_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark_redis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtra) as missing:
        load("pyspark_redis.connector:RedisConnector")
    assert "'redis'" in str(missing.value)
    assert "pip install 'sparkonce[redis]'" in str(missing.value)


def test_a_folder_of_its_name_is_no_client_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyspark_redis"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "redis").mkdir()  # a checkpoint, beside the program
    monkeypatch.setitem(sys.modules, "redis", _folder("redis", tmp_path))
    with pytest.raises(MissingExtra, match=r"pip install 'sparkonce\[redis\]'"):
        load("pyspark_redis.connector:RedisConnector")


def _folder(name: str, parent: Path) -> ModuleType:
    spec = PathFinder.find_spec(name, [str(parent)])
    assert spec is not None
    return module_from_spec(spec)


def test_a_client_library_of_another_release_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pyspark_elasticsearch")]:
        monkeypatch.delitem(sys.modules, name)
    older = ModuleType("elasticsearch.serializer")  # names are written otherwise in release 7
    older.__file__ = "serializer.py"
    monkeypatch.setitem(sys.modules, older.__name__, older)
    with pytest.raises(MissingExtra) as missing:
        load("pyspark_elasticsearch.connector:ElasticsearchConnector")
    assert "can't use" in str(missing.value)
    assert "JsonSerializer" in str(missing.value)
    assert "pip install --upgrade 'sparkonce[elasticsearch]'" in str(missing.value)


def test_the_core_and_the_entry_module_import_no_client_library() -> None:
    code = (
        "import sys; sys.modules.update(redis=None, pymysql=None, elasticsearch=None);"
        " import sparkonce.spark.writer, sparkonce.spark.writer, sparkonce.options;"
        " import sparkonce.exactly_once.commit"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "missing",
    ["redis pymysql elasticsearch", "pyarrow", "click rich", "pyspark", "pyspark.sql.datasource"],
)
def test_entry_modules_can_be_imported_whatever_is_missing(missing: str) -> None:
    """Spark imports every pyspark_* module, with no except: an error in one would end them all."""
    code = (
        f"import sys, importlib, pkgutil; sys.modules.update(dict.fromkeys({missing.split()}));"
        " names = [m.name for m in pkgutil.iter_modules() if m.name.startswith('pyspark_')];"
        " ours = [n for n in names if n != 'pyspark_datasources'];"
        " print(sorted(importlib.import_module(n).DefaultSource.name() for n in ours))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ("elasticsearch", "mysql", "redis")
    assert run.stdout == f"{sorted([*names, *(f'sparkonce_{name}' for name in names)])}\n"
