"""Record what the present release leaves in each store: `python -m integration.history`."""

from __future__ import annotations

from integration.history import on_elasticsearch, on_mysql, on_redis
from integration.history.story import HOME
from integration.servers.elasticsearch import ElasticsearchProcess, private_tree
from integration.servers.mysql import MySqlProcess, private_binary
from integration.servers.redis import RedisProcess

from sparkonce import __version__


def main() -> None:
    home = HOME / __version__
    home.mkdir()  # what a release left is never overwritten: raise the version first
    with RedisProcess() as redis:
        (home / "redis.json").write_text(on_redis.record(redis.url))
    with MySqlProcess(private_binary("mysql")) as mysql:
        (home / "mysql.sql").write_text(on_mysql.record(mysql.url))
    with ElasticsearchProcess(private_tree()) as elastic:
        (home / "elasticsearch.json").write_text(on_elasticsearch.record(elastic.url))
    print(f"recorded in {home}")


if __name__ == "__main__":
    main()
