"""The names of the kinds of nodes, for the model and for what needs no model."""

from __future__ import annotations

from typing import Literal

KindName = Literal["netns", "native", "container", "uml", "qemu"]
"""The kinds of nodes."""
