"""How often the live page reads the state of a run."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from airloom.errors import HostError
from airloom.live import require

try:
    require()
except HostError as error:
    pytest.skip(str(error), allow_module_level=True)

from airloom.live.access import Access
from airloom.live.app import MOST_STREAMS, PERIOD_S, SHARE, Stream, create
from airloom.live.page import Page


class Slow(Page):
    """A page whose readings take a known time of a processor."""

    def __init__(self, takes: float) -> None:
        super().__init__()
        self.takes = takes
        self.begun: list[float] = []
        self.done: list[float] = []

    def state(self) -> dict[str, Any]:
        """Takes its time of a processor."""
        self.begun.append(time.monotonic())
        end = time.thread_time() + self.takes
        while time.thread_time() < end:
            pass
        self.done.append(time.monotonic())
        return {"at": len(self.begun)}


def pauses(page: Slow) -> list[float]:
    """Seconds from the end of a reading to the next one."""
    return [begin - end for end, begin in zip(page.done, page.begun[1:], strict=False)]


async def watched(stream: Stream, events: int) -> list[str]:
    found = []
    source = stream.events("viewer")
    async for one in source:
        found.append(one)
        if len(found) == events:
            break
    await source.aclose()
    return found


def test_nothing_is_read_without_a_browser() -> None:
    page = Slow(0)

    async def wait() -> None:
        stream = Stream(page)
        await watched(stream, 3)
        before = len(page.begun)
        await asyncio.sleep(2.5 * PERIOD_S)
        assert len(page.begun) == before

    asyncio.run(wait())


def test_many_browsers_cost_one_reading_each_period() -> None:
    page = Slow(0)

    async def watch() -> None:
        stream = Stream(page)
        await asyncio.gather(*(watched(stream, 4) for _ in range(20)))

    asyncio.run(watch())
    assert len(page.begun) <= 4
    assert min(pauses(page)) >= PERIOD_S


def test_slow_readings_are_rare() -> None:
    page = Slow(0.02)

    async def watch() -> None:
        await watched(Stream(page), 4)

    asyncio.run(watch())
    assert min(pauses(page)) >= page.takes / SHARE > PERIOD_S


def test_the_end_is_told_at_once_and_ends_the_stream() -> None:
    page = Slow(0)
    page.phase("collecting")
    page.end("the disk is full")
    found = asyncio.run(watched(Stream(page), 4))
    assert [one.split("\n")[0] for one in found] == [
        "event: role", "event: entries", "event: state", "event: ended",
    ]  # fmt: skip
    assert '"reasons": ["the disk is full"]' in found[-1]


def test_streams_that_come_together_have_their_limit() -> None:
    """Each has its place before its first event is sent."""

    async def ask() -> list[int]:
        access = Access()
        app = create(Page(), access)
        cookie = f"airloom-live={access.link('viewer').partition('token=')[2]}".encode()
        scope = {
            "type": "http", "method": "GET", "path": f"{access.path}/events", "raw_path": b"",
            "query_string": b"", "root_path": "", "http_version": "1.1", "scheme": "http",
            "headers": [(b"host", b"127.0.0.1:1"), (b"cookie", cookie)],
        }  # fmt: skip
        statuses: list[int] = []
        over = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(app(dict(scope), receive, send)) for _ in range(MOST_STREAMS + 20)]
        while len(statuses) < len(tasks):
            await asyncio.sleep(0.01)
        over.set()
        await asyncio.wait(tasks, timeout=60)
        assert app.state.stream.listeners == 0
        return statuses

    statuses = asyncio.run(asyncio.wait_for(ask(), 120))
    assert (statuses.count(200), statuses.count(503)) == (MOST_STREAMS, 20)
