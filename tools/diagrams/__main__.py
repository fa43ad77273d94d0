"""Makes docs/diagrams/*.svg from docs/diagrams/*.txt."""

from __future__ import annotations

from pathlib import Path

from tools.diagrams.sequence import parse, svg

HOME = Path(__file__).parents[2] / "docs" / "diagrams"


def main() -> None:
    for text in sorted(HOME.glob("*.txt")):
        text.with_suffix(".svg").write_text(svg(parse(text.read_text())))


if __name__ == "__main__":
    main()
