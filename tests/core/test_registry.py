"""How connectors and formats are found, and what a process of Spark says of them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType

import pytest

from sparkonce.errors import MissingExtra, OptionError
from sparkonce.spark.source import installed
from sparkonce.store import for_url, load


def test_a_connector_is_found_by_its_path() -> None:
    connector = load("pyspark_redis.connector:RedisConnector")
    assert connector.name == "redis"


@pytest.mark.parametrize("url", ["mongodb://db", "localhost", "", "://db"])
def test_an_unknown_scheme_is_refused_and_the_known_ones_named(url: str) -> None:
    with pytest.raises(OptionError, match=r"redis://, redis\+cluster://, redis\+sentinel://"):
        for_url(url)


def forget(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """So that they are imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        monkeypatch.delitem(sys.modules, name)


def test_a_missing_client_library_names_package_and_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "pyspark_redis")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtra) as missing:
        load("pyspark_redis.connector:RedisConnector")
    assert "'redis'" in str(missing.value)
    assert "the wheel of sparkonce with extra [redis]" in str(missing.value)


def test_a_folder_of_its_name_is_no_client_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forget(monkeypatch, "pyspark_redis", "redis")
    (tmp_path / "redis").mkdir()  # a checkpoint, beside the program
    monkeypatch.setitem(sys.modules, "redis", _folder("redis", tmp_path))
    with pytest.raises(MissingExtra, match=r"the wheel of sparkonce with extra \[redis\]"):
        load("pyspark_redis.connector:RedisConnector")


def _folder(name: str, parent: Path) -> ModuleType:
    spec = PathFinder.find_spec(name, [str(parent)])
    assert spec is not None
    return module_from_spec(spec)


def test_a_client_library_of_another_release_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "pyspark_elasticsearch")
    older = ModuleType("elasticsearch.serializer")  # names are written otherwise in release 7
    older.__file__ = "serializer.py"
    monkeypatch.setitem(sys.modules, older.__name__, older)
    with pytest.raises(MissingExtra) as missing:
        load("pyspark_elasticsearch.connector:ElasticsearchConnector")
    assert "can't use" in str(missing.value)
    assert "JsonSerializer" in str(missing.value)
    assert "the wheel of sparkonce with extra [elasticsearch]" in str(missing.value)


def test_the_core_and_the_entry_module_import_no_client_library() -> None:
    code = (
        "import sys; sys.modules.update(redis=None, pymysql=None);"
        " sys.modules.update(elasticsearch=None, opensearchpy=None);"
        " import sparkonce.spark.writer, sparkonce.options;"
        " import sparkonce.exactly_once.commit"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "missing",
    [
        "redis pymysql elasticsearch opensearchpy",
        "pyarrow",
        "click rich",
        "pyspark",
        "pyspark.sql.datasource",
    ],
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
    names = ("elasticsearch", "mysql", "opensearch", "redis")
    assert run.stdout == f"{sorted([*names, *(f'sparkonce_{name}' for name in names)])}\n"


# -- what a process of Spark prints of a message: whose it is, and how grave


SAY = "logging.getLogger('sparkonce').warning('rows may double')"
INFO = "logging.getLogger('sparkonce').info('epoch 7 is done')"


SET_UP = "errors.set_up_logging()"


def printed(*steps: str) -> str:
    program = "\n".join(["import logging", "from sparkonce import errors", *steps])
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return run.stderr


def test_a_warning_has_its_level_and_its_logger() -> None:
    assert "WARNING sparkonce: rows may double\n" in printed(SET_UP, SET_UP, SAY)
    assert printed(SET_UP, SET_UP, SAY).count("rows may double") == 1


def test_what_happened_is_said_and_what_helps_developers_alone_is_not() -> None:
    assert printed(SET_UP, INFO).endswith(" INFO sparkonce: epoch 7 is done\n")
    assert printed(SET_UP, "logging.getLogger('sparkonce').debug('x')") == ""


def test_a_process_that_has_set_up_logging_says_it_its_own_way() -> None:
    mine = "logging.basicConfig(format='mine: %(message)s')"
    assert printed(SET_UP, mine, SAY) == "mine: rows may double\n"
    assert printed(mine, SET_UP, SAY) == "mine: rows may double\n"
    assert printed(SET_UP, mine, INFO) == printed(mine, SET_UP, INFO) == ""
    louder = mine.replace("format=", "level='INFO', format=")
    assert printed(louder, SET_UP, INFO) == "mine: epoch 7 is done\n"


# -- how formats get into sessions that don't look them up


CONNECTORS = Path(__file__).parents[2] / "connectors"
PROGRAM = """
import sparkonce
from types import SimpleNamespace

known = []
print(sparkonce.register(SimpleNamespace(dataSource=SimpleNamespace(register=known.append))))
"""


def registered_from(packed: Path) -> str:
    """What a driver says that has this project's packages from such a file alone."""
    with zipfile.ZipFile(packed, "w") as file:
        for path in CONNECTORS.rglob("*.py"):
            file.write(path, path.relative_to(CONNECTORS))
    program = f"import sys\nsys.path.insert(0, {str(packed)!r})\n{PROGRAM}"
    command = [sys.executable, "-E", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_packages_in_a_zip_are_registered(tmp_path: Path) -> None:
    said = registered_from(tmp_path / "sparkonce.zip")
    for name in ("redis", "mysql", "elasticsearch", "opensearch"):
        assert f"'{name}'" in said, said
        assert f"'sparkonce_{name}'" in said, said


def test_packages_in_a_wheel_that_is_not_installed_are_refused(tmp_path: Path) -> None:
    said = registered_from(tmp_path / "sparkonce-0.1.0-py3-none-any.whl")
    assert (
        "UnsupportedQuery: Python imported sparkonce from sparkonce-0.1.0-py3-none-any.whl" in said
    )
    assert "under a name with .zip" in said


def test_a_package_of_others_that_cannot_be_imported_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Because of it Spark finds no format of Python by itself."""
    (tmp_path / "pyspark_broken.py").write_text("raise RuntimeError('I am broken')")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"redis", "mysql", "elasticsearch", "opensearch"} <= {one.name() for one in installed()}
    assert "Skipping package pyspark_broken, which can't be imported: I am broken" in caplog.text
