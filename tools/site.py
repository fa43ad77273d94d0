"""The docs as a site: `python -m tools.site` builds it, and follows its links.

The program makes the pages of options and of the kit's rules from the code, for the site only.
Each page has its Markdown beside it, for machines; llms.txt lists them (https://llmstxt.org).
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

from sparkonce import errors
from sparkonce.operate.arguments import page_of_options
from sparkonce.operate.formats import sources_of
from sparkonce.store import for_name
from sparkonce.tck import spec

ROOT = Path(__file__).parents[1]
DOCS, WHOLE, SITE = ROOT / "docs", ROOT / ".build" / "docs", ROOT / ".build" / "site"
CONNECTORS = ("redis", "mysql", "elasticsearch", "opensearch")
PLACE = re.compile(r"""<[^>]*\sid=(["']?)([^"'\s>]+)\1""")
LINK = re.compile(r"""<[^>]*\s(?:href|src)=(["']?)([^"'\s>]+)\1""")
ELSEWHERE = re.compile(r"[a-z]+:|//")
MORE = {
    "BatchOvertaken": "operations.md#a-batch-that-was-overtaken",
    "CheckpointBehindSink": "operations.md#back-up-and-restore",
    "CheckpointDiverged": "operations.md#the-checkpoint-lost-its-last-offsets",
    "CheckpointUnreadable": "checkpoints.md#supported-locations",
    "ConcurrentDriver": "operations.md#a-second-driver",
    "DecisionLost": "operations.md#the-store-fails-over",
    "RecordDamaged": "operations.md#a-record-is-damaged",
    "RowRefused": "operations.md#a-row-is-rejected-after-the-decision",
    "SinkBehindCheckpoint": "operations.md#the-store-lost-data",
    "StoreLostData": "operations.md#the-store-lost-data",
    "UnreadLost": "following.md#lost-rows",
    "WrittenTwice": "batch.md#inside-foreachbatch",
}
"""The page and section with more about an error."""


def gather(whole: Path = WHOLE) -> Path:
    """Put all pages into one folder."""
    shutil.rmtree(whole, ignore_errors=True)
    shutil.copytree(DOCS, whole)
    for name in CONNECTORS:
        connector = for_name(name)
        page = page_of_options(name, connector.options, sources_of(connector))
        (whole / f"options-{name}.md").write_text(page)
    (whole / "spec.md").write_text(spec.as_markdown())
    changes = (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](")
    (whole / "changelog.md").write_text(changes)
    return whole


def page_of_errors() -> str:
    """The page of all errors: meaning, cause and cure of each, from its docstring."""
    lines = ["# Errors", "", "Each error states what happened, why, and what to do."]
    lines += ["`sparkonce.errors` has the classes. A name leads to its cause and its cure.", ""]
    classes = (one for one in vars(errors).values() if isinstance(one, type))
    named = {one.__name__: one for one in classes if issubclass(one, errors.SparkonceError)}
    for name, one in sorted(named.items()):
        if one is not errors.SparkonceError:
            meaning, _, rest = (inspect.getdoc(one) or "").partition("\n\n")
            cause, cure = (" ".join(part.split()) for part in rest.split("\nCure: "))
            lines += [f"## {name}", "", meaning, ""]
            more = f" [More]({MORE[name]})." if name in MORE else ""
            lines += [f"- {cause}", f"- Cure: {cure}{more}", ""]
    return "\n".join(lines).replace("``", "`")


def llms(whole: Path = WHOLE) -> str:
    """The list of pages for machines, each with its title and its first sentence."""
    lines = ["# sparkonce", "", f"> {_first_sentence(whole / 'index.md')}", "", "## Pages", ""]
    for page in sorted(whole.glob("*.md")):
        title = page.read_text().partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({page.name}): {_first_sentence(page)}")
    return "\n".join(lines) + "\n"


def _first_sentence(page: Path) -> str:
    paragraphs = page.read_text().split("\n\n")[1:]
    prose = next((one for one in paragraphs if not re.search(r"^(#|```|---\||- )", one, re.M)), "")
    words = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", prose).split())
    return re.split(r"(?<=[.:])\s", words)[0].rstrip(":.") + "."


def broken(site: Path = SITE) -> Iterator[str]:
    """The broken links within the site."""
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    places = {page: {place for _, place in PLACE.findall(text)} for page, text in pages.items()}
    for page, text in pages.items():
        for _, link in LINK.findall(text) if page.name != "404.html" else ():
            path, place = urldefrag(link)
            target = (page.parent / unquote(path)).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            lost = not target.exists() or (
                place and unquote(place) not in places.get(target, place)
            )
            if lost and not ELSEWHERE.match(link):
                yield f"{page.relative_to(site)}: {link}"


def main() -> int:
    gather()
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict", "--clean"], check=True)
    for page in WHOLE.glob("*.md"):
        shutil.copy(page, SITE / page.name)
    (SITE / "llms.txt").write_text(llms())
    found = sorted(set(broken()))
    print("\n".join(found) or f"{SITE.relative_to(ROOT)}: no broken link")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
