"""Hooks of mkdocs: pages of docs/ link to files of the repository, which become part of the site."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCE = "source"
"""Folder of the site with files from outside of docs/."""
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Adds every file of the repository that a page links to, and what those link to if they are pages."""
    waiting = [Path(one.abs_src_path) for one in files.documentation_pages()]
    seen: set[Path] = set()
    while waiting:
        page = waiting.pop()
        for target in _targets(page):
            if target in seen or target.is_relative_to(DOCS) or not target.is_file():
                continue
            seen.add(target)
            files.append(File.generated(config, _uri(target), abs_src_path=str(target)))
            if target.suffix == ".md":
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Makes links to files outside of docs/ links to their copies."""
    source = Path(page.file.abs_src_path)
    base = Path(page.file.src_uri).parent

    def moved(found: re.Match[str]) -> str:
        target = (source.parent / found[2]).resolve()
        if "://" in found[2] or not target.is_relative_to(ROOT):
            return found[0]
        uri = _uri(target)
        if files.get_file_from_path(uri) is None and target.is_dir():
            uri = _uri(target / "README.md")
        return f"{found[1]}{_relative(uri, base)}{found[3] or ''}{found[4]}"

    # Odd parts are code.
    parts = _CODE.split(markdown)
    return "".join(part if index % 2 else _LINK.sub(moved, part) for index, part in enumerate(parts))


def _targets(page: Path) -> list[Path]:
    text = "".join(_CODE.split(page.read_text(encoding="utf-8"))[::2])
    paths = [(page.parent / found[2]).resolve() for found in _LINK.finditer(text) if "://" not in found[2]]
    readmes = [path / "README.md" for path in paths if path.is_dir()]
    return [path for path in [*paths, *readmes] if path.is_relative_to(ROOT)]


def _uri(target: Path) -> str:
    if target.is_relative_to(DOCS):
        return target.relative_to(DOCS).as_posix()
    return f"{SOURCE}/{target.relative_to(ROOT).as_posix()}"


def _relative(uri: str, base: Path) -> str:
    up = [".."] * len(base.parts)
    return "/".join([*up, uri])
