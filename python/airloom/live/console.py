"""A shell in a node on a pseudoterminal, whose other side is a WebSocket.

Binary messages are the terminal's octets, both ways. Text messages are JSON: the browser sends
``{"size": [columns, rows]}``, and gets ``{"exited": CODE}`` or ``{"error": TEXT}`` before the end.
When the browser goes, the shell gets SIGKILL, and the kernel sends SIGHUP to what it had started.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import signal
import struct
import termios
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from airloom.errors import LabError, RunError
from airloom.lab.live_program import code_of
from airloom.lab.tty import shells
from airloom.nodes.kind import Process
from airloom.runs.single import OneRun

LARGEST_SIDE = 1000
"""Most columns or rows of a terminal."""
_ENVIRONMENT = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


async def serve(socket: WebSocket, run: OneRun, node: str) -> None:
    """Runs a shell until it, the browser or the run ends."""
    near, far = os.openpty()
    try:
        os.set_blocking(near, False)
        _resize(near, 80, 24)
        try:
            process = await asyncio.to_thread(_start, run, node, far)
        except LabError as error:
            await socket.send_json({"error": str(error)})
            await socket.close(1000)
            return
        finally:
            os.close(far)
        run.runner.remark(f"a console was opened in {node}")
        try:
            await _relay(socket, near, process)
        finally:
            with contextlib.suppress(LabError, OSError):
                process.signal(signal.SIGKILL)
    finally:
        os.close(near)


def _start(run: OneRun, node: str, far: int) -> Process:
    """Starts the first shell that the node has."""
    refused = RunError("node.unknown", f"no node is called {node}")
    for shell in shells() if node in run.world.nodes else ():
        try:
            return run.world.nodes[node].start(
                [shell], env=_ENVIRONMENT, stdin=far, stdout=far, stderr=far, tty=True
            )
        except RunError as error:
            refused = error
            if error.code != "program.start":
                break
    raise refused


async def _relay(socket: WebSocket, near: int, process: Process) -> None:
    output = asyncio.create_task(_output(socket, near))
    keyboard = asyncio.create_task(_keyboard(socket, near))
    done, _ = await asyncio.wait((output, keyboard), return_when=asyncio.FIRST_COMPLETED)
    for task in (output, keyboard):
        task.cancel()
    await asyncio.gather(output, keyboard, return_exceptions=True)
    if output in done and keyboard not in done:
        with contextlib.suppress(TimeoutError, LabError, WebSocketDisconnect, RuntimeError):
            ended = await asyncio.to_thread(process.wait, 2.0)
            await socket.send_json({"exited": code_of(ended)})
            await socket.close(1000)


async def _output(socket: WebSocket, near: int) -> None:
    """Sends what the terminal shows, until no process has it open; slow browsers slow it down."""
    while True:
        await _until(near, write=False)
        try:
            octets = os.read(near, 65536)
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return
        if not octets:
            return
        await socket.send_bytes(octets)


async def _keyboard(socket: WebSocket, near: int) -> None:
    """Passes on what the browser sends, until it goes."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        octets = message.get("bytes")
        if octets is None:
            size = _size_of(message.get("text") or "")
            if size is not None:
                _resize(near, *size)
        while octets:
            try:
                octets = octets[os.write(near, octets) :]
            except BlockingIOError:
                await _until(near, write=True)
            except OSError:
                return


def _size_of(text: str) -> tuple[int, int] | None:
    """The size that a message asks for; None for any other text."""
    try:
        said: Any = json.loads(text)
        columns, rows = (int(side) for side in said["size"])
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    fits = all(1 <= side <= LARGEST_SIDE for side in (columns, rows))
    return (columns, rows) if fits else None


def _resize(near: int, columns: int, rows: int) -> None:
    fcntl.ioctl(near, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


async def _until(descriptor: int, *, write: bool) -> None:
    """Waits until a descriptor can be read or written."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, wake)
    try:
        await ready
    finally:
        remove(descriptor)
