"""Rows, bad rows, and the connector's own documents must not lie in one index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.indices import own_names
from pyspark_elasticsearch.whereabouts import behind
from sparkonce.errors import OptionError


def reserved(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Names that no row may make from a template."""
    own = own_names(str(options["indexPrefix"]))
    return (*own, *filter(None, [options["deadLetter"]]))


def require_names_apart(options: Mapping[str, Any]) -> None:
    """Refuse options that name one index twice.

    Raises:
        OptionError: it says which.
    """
    own = own_names(str(options["indexPrefix"]))
    named = [name for name in ("index", "deadLetter", "visibleAlias") if options[name]]
    for at, option in enumerate(named):
        if options[option] in own:
            raise _own(option, options[option])
        for other in named[:at]:
            if options[option] == options[other]:
                raise _twice(f"{other}={options[other]}", f"{option}={options[option]}")


def require_apart(cluster: Cluster, index: str, own: tuple[str, ...], letters: str | None) -> None:
    """Refuse a target that is one index with the connector's own or the one of dead letters.

    Args:
        cluster: where.
        index: the target, an alias of it, or a template, of which nothing is known.
        own: names of the connector's indices.
        letters: the name, or an alias, of the index of dead letters.

    Raises:
        OptionError: it says which.
    """
    ours = set[str]().union(*(behind(cluster, name) for name in own))
    target = set() if "{" in index else behind(cluster, index)
    aside = behind(cluster, letters) if letters else set()
    for option, name, found in (("index", index, target), ("deadLetter", letters, aside)):
        if ours & found:
            raise _own(option, f"{name}")
    if target & aside:
        raise _twice(f"index={index}", f"deadLetter={letters}")


def _own(option: str, name: str) -> OptionError:
    return OptionError(
        f"Option {option}={name} is an index of the connector's own",
        why="it holds what was decided and staged, and rows would lie between, or over, that",
        todo="name another index, or choose another indexPrefix for a new checkpoint",
    )


def _twice(one: str, other: str) -> OptionError:
    return OptionError(
        f"Options {one} and {other} name one index",
        why="readers would find there what is not meant for them",
        todo="name another one",
    )
