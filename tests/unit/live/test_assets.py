"""The files of other projects in the live page are the published ones."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import airloom

WEB = Path(airloom.__file__).parent / "live" / "web"
PUBLISHED = {
    "xterm.mjs": "b336ec65a086c056d4804b3d4c2347da5663d3f23c3f25be866467bd8857ad59",
    "addon-fit.mjs": "2d87e1bddc73be9111de8beee5370c3bb7aac9c94e18e6f245f02ca741ef1769",
    "xterm.css": "854a7c0fb70e8b1a083c16797ab827299fb18744f5ad34f227b48337e33293c6",
    "LICENSE": "b569f629d00f2626a8100df2a1798210535621e42164dfd426a6fe5aac7b0ccd",
}
"""SHA-256 of the files of @xterm/xterm 6.0.0 and @xterm/addon-fit 0.11.0."""


def test_the_terminal_is_the_published_one() -> None:
    found = {name: hashlib.sha256((WEB / "xterm" / name).read_bytes()).hexdigest() for name in PUBLISHED}
    assert found == PUBLISHED


def test_the_pages_scripts_make_no_markup_from_text() -> None:
    for script in WEB.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text), (
            script.name
        )
