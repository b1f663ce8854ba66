"""Published ports: this machine listens for a node, and a relay passes the data on.

The relay connects to the loopback of the node from a socket in its network namespace. It needs no
route between host and node, and its data do not cross the emulated network. All sockets belong to
this process, so the kernel closes them when it ends, by whatever signal.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from airloom.errors import HostError
from airloom.host.network_namespace import within
from airloom.planning.plan import NodePlan, PublishPlan

_LOOPBACK = "127.0.0.1"
_PIECE = 1 << 16
_IDLE = 60.0
"""Seconds without a datagram after which a client of UDP is forgotten."""
_MOST_CLIENTS = 1024
"""Most clients of one UDP port at a time; the oldest is forgotten."""
_TYPES = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}

_Value = TypeVar("_Value")
_NamespaceOf = Callable[[str], int | None]


_Key = tuple[str, str, int]
"""Protocol, address and number of a port of this machine."""


@dataclass(slots=True)
class _Held:
    """A port of this machine that is taken."""

    listener: socket.socket
    target: tuple[str, int] | None = None
    """Node, and port there, that is relayed to; None: not yet."""
    task: asyncio.Task[None] | None = None


class PublishedPorts:
    """Listens on the host's ports of nodes: :meth:`reserve` takes them, :meth:`follow` relays them."""

    def __init__(self, namespace_of: _NamespaceOf) -> None:
        """``namespace_of`` returns the network namespace of a running node, as a descriptor."""
        self._namespace_of = namespace_of
        self._held: dict[_Key, _Held] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def reserve(self, nodes: Iterable[NodePlan]) -> None:
        """Takes the ports of nodes that are not taken yet: all, or none after an error.

        Raises :class:`HostError` for one that cannot be had.
        """
        made: dict[_Key, _Held] = {}
        try:
            for node in nodes:
                for number, port in enumerate(node.publish):
                    if _key(port) not in self._held:
                        where = f"nodes.{node.name}.publish[{number}]"
                        made[_key(port)] = _Held(_listener(port, where))
        except BaseException:
            for held in made.values():
                held.listener.close()
            raise
        self._held |= made

    def follow(self, nodes: Iterable[NodePlan]) -> None:
        """Relays the ports of exactly these nodes. A port that goes to another node ends its connections."""
        nodes = list(nodes)
        self.reserve(nodes)
        wanted = {_key(port): (node.name, port.port) for node in nodes for port in node.publish}
        for key in [key for key in self._held if key not in wanted]:
            self._end(key)
            self._held.pop(key).listener.close()
        self._relay(wanted)

    def add(self, node: NodePlan) -> None:
        """Relays the ports of one more node."""
        self.reserve([node])
        self._relay({_key(port): (node.name, port.port) for port in node.publish})

    def _relay(self, wanted: Mapping[_Key, tuple[str, int]]) -> None:
        for key, target in wanted.items():
            held = self._held[key]
            if held.target == target:
                continue
            self._end(key)
            work = _tcp if key[0] == "tcp" else _udp
            served = work(held.listener, target[1], partial(self._namespace_of, target[0]))
            held.target, held.task = target, self._inside(_begun(served))

    def _end(self, key: _Key) -> None:
        """Ends the relay of a port, and waits for that."""
        held = self._held[key]
        if held.task is not None:
            self._inside(_all_ended([held.task]))
            held.target = held.task = None

    def _inside(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        """Runs something short in the thread that relays, and returns its value."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._run, name="airloom-published", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Ends all connections and closes all sockets. A second call has no effect."""
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._thread = None
        for held in self._held.values():
            held.listener.close()
        self._held = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        assert self._loop is not None
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.close()


def _key(port: PublishPlan) -> _Key:
    return port.protocol, port.host_address, port.host_port


async def _begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


def _listener(port: PublishPlan, where: str) -> socket.socket:
    """Returns a bound socket of the host."""
    family = socket.AF_INET6 if ":" in port.host_address else socket.AF_INET
    made = socket.socket(family, _TYPES[port.protocol] | socket.SOCK_CLOEXEC)
    try:
        if port.protocol == "tcp":
            # Connections of an earlier run may still be in TIME_WAIT.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((port.host_address, port.host_port))
        if port.protocol == "tcp":
            made.listen(128)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise HostError(
            "host.port",
            f"{port.protocol} port {port.host_port} of {port.host_address} cannot be had: {error.strerror}",
            where=where,
            cure="give another 'host_port', or end the program that has it (ss -lntup)",
        ) from None
    return made


def _inside(namespace_of: Callable[[], int | None], kind: int) -> socket.socket | None:
    """Returns a socket in a node's network namespace; None while the node is off."""
    namespace = namespace_of()
    if namespace is None:
        return None
    made = within(namespace, lambda: socket.socket(socket.AF_INET, kind))
    made.setblocking(False)
    return made


async def _tcp(listener: socket.socket, port: int, namespace_of: Callable[[], int | None]) -> None:
    loop = asyncio.get_running_loop()
    calls: set[asyncio.Task[None]] = set()
    try:
        while True:
            try:
                near, _ = await loop.sock_accept(listener)
            except OSError:
                # Out of descriptors, or the client has gone already.
                await asyncio.sleep(0.1)
                continue
            call = loop.create_task(_call(near, port, namespace_of))
            calls.add(call)
            call.add_done_callback(calls.discard)
    finally:
        await _all_ended(calls)


async def _call(near: socket.socket, port: int, namespace_of: Callable[[], int | None]) -> None:
    """Relays one connection until both sides have ended it; an error ends both."""
    loop = asyncio.get_running_loop()
    with near, contextlib.suppress(OSError):
        far = _inside(namespace_of, socket.SOCK_STREAM)
        if far is None:
            return
        with far:
            await loop.sock_connect(far, (_LOOPBACK, port))
            pipes = [loop.create_task(_pipe(near, far)), loop.create_task(_pipe(far, near))]
            try:
                await asyncio.gather(*pipes)
            finally:
                for pipe in pipes:
                    pipe.cancel()
                # Before the sockets are closed, so that no number is watched that another one gets.
                await asyncio.gather(*pipes, return_exceptions=True)


async def _pipe(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while octets := await loop.sock_recv(source, _PIECE):
        await loop.sock_sendall(sink, octets)
    sink.shutdown(socket.SHUT_WR)


async def _udp(listener: socket.socket, port: int, namespace_of: Callable[[], int | None]) -> None:
    loop = asyncio.get_running_loop()
    clients: dict[object, tuple[socket.socket, asyncio.Task[None]]] = {}
    try:
        while True:
            try:
                octets, client = await loop.sock_recvfrom(listener, _PIECE)
            except OSError:
                continue
            with contextlib.suppress(OSError):
                if client not in clients:
                    far = _inside(namespace_of, socket.SOCK_DGRAM)
                    if far is None:
                        continue
                    far.connect((_LOOPBACK, port))
                    if len(clients) >= _MOST_CLIENTS:
                        next(iter(clients.values()))[1].cancel()
                    clients[client] = (far, loop.create_task(_answers(listener, far, client, clients)))
                clients[client][0].send(octets)
    finally:
        await _all_ended([task for _, task in clients.values()])


async def _all_ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _answers(
    listener: socket.socket,
    far: socket.socket,
    client: object,
    clients: dict[object, tuple[socket.socket, asyncio.Task[None]]],
) -> None:
    """Passes a node's datagrams to their client until there are none for a while."""
    loop = asyncio.get_running_loop()
    try:
        while True:
            try:
                octets = await asyncio.wait_for(loop.sock_recv(far, _PIECE), _IDLE)
                await loop.sock_sendto(listener, octets, client)  # type: ignore[arg-type]
            except ConnectionRefusedError:
                # Nothing listens in the node yet; the next datagram may be heard.
                continue
    except (OSError, TimeoutError):
        pass
    finally:
        far.close()
        clients.pop(client, None)
