"""The site of the docs: which links are told as broken, and what machines get."""

from __future__ import annotations

from pathlib import Path

from tools.site import ROOT, broken, gather, llms


def test_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    links = ("b.html", "a/#there", "a/#not", "#here", "#gone", "https://elsewhere", "a/none.svg")
    page = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "index.html").write_text(f'<h1 id="here">{page}</h1>')
    (tmp_path / "a" / "index.html").write_text('<h1 id="there"><a href="../">back</a></h1>')
    assert sorted(broken(tmp_path)) == [
        f"index.html: {link}" for link in ("#gone", "a/#not", "a/none.svg", "b.html")
    ]


def test_machines_get_a_list_of_all_pages(tmp_path: Path) -> None:
    whole = gather(tmp_path / "docs")
    told = llms(whole)
    for page in whole.glob("*.md"):
        (line,) = (line for line in told.splitlines() if f"({page.name}): " in line)
        assert len(line.partition("): ")[2]) > 20, line


def test_each_page_is_in_the_navigation(tmp_path: Path) -> None:
    config = (ROOT / "zensical.toml").read_text()
    pages = gather(tmp_path / "docs").glob("*.md")
    assert [page.name for page in pages if f'"{page.name}"' not in config] == []
