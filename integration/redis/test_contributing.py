"""The model that CONTRIBUTING.md adds is one entry and one file of Lua, and counts once."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery
from integration.support.redis import Keys

from pyspark_redis import connector
from pyspark_redis.journal import scripts
from pyspark_redis.write import models
from sparkonce.change import Upsert
from sparkonce.option_values import choice

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


class Package:
    """The files of the connector, and one more."""

    def __init__(self, name: str, lua: Path) -> None:
        self.name, self.lua = name, lua

    def __truediv__(self, path: str) -> Any:
        return self.lua if path == self.name else files("pyspark_redis") / path


def block(language: str, begin: str) -> str:
    return next(
        code
        for code in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        if code.startswith(begin)
    )


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lua = tmp_path / "first.lua"
    lua.write_text(block("lua", "-- write/first.lua"))
    monkeypatch.setattr(scripts, "files", lambda _: Package("write/first.lua", lua))
    monkeypatch.setattr(models, "MODELS", {**models.MODELS})
    exec(block("python", "MODELS"), {**vars(models), "Upsert": Upsert})
    monkeypatch.setattr(connector, "MODELS", models.MODELS)
    options = [
        replace(one, parse=choice(*models.MODELS)) if one.name == "model" else one
        for one in connector.RedisConnector.options
    ]
    monkeypatch.setattr(connector.RedisConnector, "options", options)


@pytest.mark.usefixtures("first")
@pytest.mark.parametrize("small_cost", [0, 48_000], ids=["a script a chunk", "one script"])
def test_a_model_of_a_few_lines_keeps_the_first_value(
    redis_url: str,
    keys: Keys,
    monkeypatch: pytest.MonkeyPatch,
    small_cost: int,
) -> None:
    query = DirectQuery(SCHEMA, url=redis_url, key=f"{keys}:{{id}}", model="first")
    monkeypatch.setattr(query.sink.store, "small_cost", small_cost)
    for epoch in range(2):
        query.run(epoch, [{"id": at, "v": f"{epoch}"} for at in range(epoch, epoch + 2)])
    assert keys.client.mget(f"{keys}:{at}" for at in range(3)) == ["0", "0", "1"]
