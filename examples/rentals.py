"""A database of eight related tables, in the shape of MySQL's sample database Sakila."""

from __future__ import annotations

import random
from collections.abc import Iterator

TABLES = {
    "actor": "id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(45), born YEAR",
    "category": "id TINYINT UNSIGNED PRIMARY KEY, name VARCHAR(25) NOT NULL",
    "film": (
        "id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(128) NOT NULL, about TEXT,"
        " category_id TINYINT UNSIGNED, rate DECIMAL(4,2) NOT NULL,"
        " rating ENUM('G','PG','PG-13','R','NC-17'), extras SET('trailers','scenes','comments'),"
        " FOREIGN KEY (category_id) REFERENCES category (id)"
    ),
    "film_actor": (
        "film_id INT, actor_id INT, PRIMARY KEY (film_id, actor_id),"
        " FOREIGN KEY (film_id) REFERENCES film (id), FOREIGN KEY (actor_id) REFERENCES actor (id)"
    ),
    "customer": (
        "id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(90), active TINYINT(1) NOT NULL,"
        " since DATE, photo VARBINARY(16)"
    ),
    "copy": (
        "id INT AUTO_INCREMENT PRIMARY KEY, film_id INT NOT NULL,"
        " FOREIGN KEY (film_id) REFERENCES film (id)"
    ),
    "rental": (
        "id BIGINT AUTO_INCREMENT PRIMARY KEY, copy_id INT NOT NULL, customer_id INT NOT NULL,"
        " lent DATETIME(3) NOT NULL, returned TIMESTAMP(6) NULL,"
        " FOREIGN KEY (copy_id) REFERENCES copy (id),"
        " FOREIGN KEY (customer_id) REFERENCES customer (id)"
    ),
    "payment": (
        "id BIGINT AUTO_INCREMENT PRIMARY KEY, rental_id BIGINT NOT NULL, amount DECIMAL(7,2),"
        " FOREIGN KEY (rental_id) REFERENCES rental (id)"
    ),
}

JOINS = "CREATE TABLE review (id INT AUTO_INCREMENT PRIMARY KEY, film_id INT, stars FLOAT)"
"""A table that is created later."""

ALTERS = (
    "ALTER TABLE film ADD COLUMN minutes SMALLINT UNSIGNED DEFAULT 90 AFTER title",
    "ALTER TABLE customer DROP COLUMN photo, ADD COLUMN email VARCHAR(50)",
)
"""Statements after which every row is written again: an index has what the log has."""


def statements(draw: random.Random, films: int) -> Iterator[str]:
    """The statements that fill the tables."""
    for at, name in enumerate(("Action", "Comedy", "Drama", "Documentary"), 1):
        yield f"INSERT INTO category VALUES ({at}, '{name}')"
    people = ", ".join(f"('Actor {at}', {draw.randrange(1930, 2005)})" for at in range(films // 5))
    yield f"INSERT INTO actor (name, born) VALUES {people}"
    yield "INSERT INTO film (title, about, category_id, rate, rating, extras) VALUES " + ", ".join(
        f"('Film {at}', NULLIF('{'ü' * draw.randrange(5)}', ''), {draw.randrange(1, 5)},"
        f" {draw.randrange(99, 599) / 100}, {draw.randrange(1, 6)}, {draw.randrange(8)})"
        for at in range(films)
    )
    yield "INSERT INTO customer (name, active, since, photo) VALUES " + ", ".join(
        f"('Customer {at}', {draw.randrange(2)}, '2026-01-{draw.randrange(1, 29):02}',"
        f" X'{draw.randrange(2**32):08x}')"
        for at in range(films)
    )
    cast = {(draw.randrange(films) + 1, draw.randrange(films // 5) + 1) for _ in range(3 * films)}
    yield f"INSERT INTO film_actor VALUES {', '.join(map(str, sorted(cast)))}"
    yield "INSERT INTO copy (film_id) SELECT id FROM film"
    yield from rentals(draw, films, 4 * films)


def rentals(draw: random.Random, films: int, many: int) -> Iterator[str]:
    """New rentals, and payments for some of all."""
    yield "INSERT INTO rental (copy_id, customer_id, lent) VALUES " + ", ".join(
        f"({draw.randrange(films // 2) + 1}, {draw.randrange(films) + 1},"
        f" '2026-02-{draw.randrange(1, 29):02} 12:00:00.{draw.randrange(1000):03}')"
        for _ in range(many)
    )
    yield "INSERT INTO payment (rental_id, amount) SELECT id, 2.99 FROM rental WHERE id % 3 = 0"


def changes(draw: random.Random, films: int, many: int) -> Iterator[str]:
    """Changes of rows, most of them alone in a transaction."""
    for _ in range(many):
        film, other = draw.randrange(films) + 1, draw.randrange(films // 2, films) + 1
        yield draw.choice(
            [
                f"UPDATE film SET rate = rate + 0.01 WHERE id BETWEEN {film} AND {film + 9}",
                f"UPDATE rental SET returned = NOW(6) WHERE copy_id = {film}",
                f"DELETE FROM payment WHERE rental_id = {film}",
                f"DELETE FROM film_actor WHERE film_id = {film}",
                f"UPDATE IGNORE copy SET id = id + {10 * films} WHERE id = {other} AND id NOT IN"
                " (SELECT copy_id FROM rental)",
                f"REPLACE INTO film_actor VALUES ({film}, {draw.randrange(films // 5) + 1})",
                f"INSERT INTO copy (film_id) VALUES ({film})",
            ]
        )
