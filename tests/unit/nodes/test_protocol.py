"""Python and the first process of nodes (Rust) speak one protocol."""

from __future__ import annotations

import re

from airloom.nodes.process import supervisor
from helpers import REPOSITORY

RUST = "\n".join(path.read_text("utf-8") for path in sorted((REPOSITORY / "init" / "src").rglob("*.rs")))
NODES = REPOSITORY / "python" / "airloom" / "nodes"


def test_the_number_of_the_protocol_is_the_same() -> None:
    assert re.findall(r"pub const PROTOCOL: u32 = (\d+);", RUST) == [str(supervisor._PROTOCOL)]


def test_every_request_of_python_is_one_of_rust() -> None:
    sources = "\n".join(path.read_text("utf-8") for path in sorted(NODES.rglob("*.py")))
    asked = set(re.findall(r'"op": "([a-z-]+)"', sources))
    assert len(asked) > 5
    enums = re.findall(r'tag = "op".*?\n}', RUST, re.DOTALL)
    variants = {
        re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower()
        for body in enums
        for name in re.findall(r"^    ([A-Z][A-Za-z]+)", body, re.MULTILINE)
    }
    assert asked <= variants
