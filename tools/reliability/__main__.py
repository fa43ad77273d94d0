"""`python -m tools.reliability`: makes docs/reliability.md and its plot from the records."""

from __future__ import annotations

from tools.reliability.page import PAGE, page
from tools.reliability.plot import draw
from tools.reliability.records import CHAOS, read


def main() -> None:
    records = read()
    PAGE.write_text(page(records))
    draw(records.stores, CHAOS / "pace.svg")


if __name__ == "__main__":
    main()
