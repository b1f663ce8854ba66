"""The collection server: real connections, and the real OML client for Python where it is installed."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import HostError, RunError, ScenarioError
from airloom.oml import collector as collector_module
from airloom.oml import database, reporter
from airloom.oml.collector import Collector, store_file
from airloom.results import RunReader
from helpers import fake_results

HEAD = (
    "protocol: 4\ndomain: {domain}\nstart-time: {start}\nsender-id: {sender}\napp-name: app\n"
    "schema: 1 app_lin seq:uint64\ncontent: text\n\n"
)


def client(uri: str, text: str) -> None:
    _, host, port = uri.split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(text.encode())


def head(sender: str = "n1", start: int = 1000, domain: str = "exp") -> str:
    return HEAD.format(sender=sender, start=start, domain=domain)


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_streams_of_two_senders_are_tables_with_one_time(tmp_path: Path) -> None:
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        client(collector.uri, head() + f"0.5\t1\t0\t{2**64 - 1}\n0.75\t1\t1\t3\n")
        until(lambda: len(notes) == 1)
        client(collector.uri, head("n2", 1010) + "0.5\t1\t0\t7\n")
        until(lambda: len(notes) == 2)
    assert notes == ["exp: n1 app: 2 tuples", "exp: n2 app: 1 tuples"]
    file = tmp_path / "exp.sq3"
    assert rows(file, "SELECT name FROM _senders ORDER BY id") == [("n1",), ("n2",)]
    assert rows(file, "SELECT oml_sender_id, oml_seq, oml_ts_client, seq FROM app_lin") == [
        (1, 0, 0.5, str(2**64 - 1)),
        (1, 1, 0.75, 3),
        (2, 0, 10.5, 7),
    ]
    assert rows(file, "SELECT value FROM _experiment_metadata WHERE key = 'start_time'") == [("1000",)]


def test_another_schema_of_the_same_name_has_a_table_of_its_own(tmp_path: Path) -> None:
    other = head("n2").replace("seq:uint64", "seq:double")
    notes: list[str] = []
    for text in (head() + "0\t1\t0\t1\n", other + "0\t1\t0\t1.5\n", other + "1\t1\t1\t2.5\n"):
        # The file is opened again: tables are known by what they are, not by what was seen.
        with Collector(tmp_path, port=0, note=notes.append) as collector:
            client(collector.uri, text)
            until(lambda: bool(notes))
        notes.clear()
    assert rows(tmp_path / "exp.sq3", "SELECT seq FROM app_lin") == [(1,)]
    assert rows(tmp_path / "exp.sq3", "SELECT seq FROM app_lin_2") == [(1.5,), (2.5,)]


def test_what_came_before_a_broken_line_is_kept(tmp_path: Path) -> None:
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        client(collector.uri, head() + "0\t1\t0\t1\nrubbish\n0\t1\t1\t2\n")
        client(collector.uri, "GET / HTTP/1.1\n\n")
        until(lambda: len(notes) == 2)
    notes.sort()
    assert notes[0].startswith("?: ? : 0 tuples, refused: line 1")
    assert notes[1].startswith("exp: n1 app: 1 tuples, refused: line 10")
    assert rows(tmp_path / "exp.sq3", "SELECT seq FROM app_lin") == [(1,)]


def test_a_silent_client_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    collector = Collector(tmp_path, port=0)
    _, host, port = collector.uri.split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall((head() + "0\t1\t0\t1\n").encode())
        until(lambda: (tmp_path / "exp.sq3").exists())
        collector.close()
    assert rows(tmp_path / "exp.sq3", "SELECT seq FROM app_lin") == [(1,)]


def test_an_address_in_use_and_a_folder_that_is_a_file_are_refused(tmp_path: Path) -> None:
    with Collector(tmp_path, port=0) as collector, pytest.raises(HostError) as error:
        Collector(tmp_path, port=int(collector.uri.split(":")[2]))
    assert error.value.code == "oml.listen"
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError) as failed:
        Collector(tmp_path / "file", port=0)
    assert failed.value.code == "oml.folder"


def test_the_samples_of_a_run_arrive_as_they_are(tmp_path: Path) -> None:
    run = RunReader(fake_results.run(tmp_path / "run"))
    samples = run.samples()
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        sent = reporter.send(run, collector.uri, "mine")
        until(lambda: len(notes) == sent.senders)
    assert sent.tuples == len(samples)
    file = tmp_path / "mine.sq3"
    name, metric = samples["measurement"].iloc[0], samples["metric"].iloc[0]
    series = samples[(samples["measurement"] == name) & (samples["metric"] == metric)]
    found = rows(
        file, f"SELECT value, oml_ts_client, unit FROM airloom_{name}_{metric} ORDER BY oml_tuple_id"
    )
    assert sorted(value for value, _, _ in found) == sorted(series["value"])
    assert {unit for _, _, unit in found} == set(series["unit"])
    times = sorted(time for _, time, _ in found)
    offset = times[0] - series["t_ns"].min() / 1e9
    assert 0 <= offset < 1, "the protocol's start has whole seconds"
    assert times[-1] - times[0] == pytest.approx(
        (series["t_ns"].max() - series["t_ns"].min()) / 1e9, abs=1e-6
    )


def test_a_run_goes_through_a_file_as_through_a_connection(tmp_path: Path) -> None:
    run = RunReader(fake_results.run(tmp_path / "run"))
    sent = reporter.send(run, f"file:{tmp_path / 'streams'}")
    files = sorted((tmp_path / "streams").iterdir())
    assert len(files) == sent.senders > 1
    notes = [store_file(file, tmp_path / "out") for file in files]
    assert sum(int(note.split()[3]) for note in notes) == sent.tuples
    assert len(rows(tmp_path / "out/run.sq3", "SELECT name FROM _senders")) == sent.senders
    with pytest.raises(RunError) as error:
        store_file(tmp_path / "none", tmp_path / "out")
    assert error.value.code == "oml.file"


@pytest.mark.parametrize("uri", ["udp:x:1", "tcp:", "tcp:host:99999", "tcp:host:x", "file:", "host"])
def test_a_wrong_destination_is_refused(tmp_path: Path, uri: str) -> None:
    run = RunReader(fake_results.run(tmp_path / "run"))
    with pytest.raises(ScenarioError) as error:
        reporter.send(run, uri)
    assert error.value.code == "oml.uri"


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    run = RunReader(fake_results.run(tmp_path / "run"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(HostError) as error:
        reporter.send(run, f"tcp:127.0.0.1:{port}")
    assert error.value.code == "oml.unreachable"


PROGRAM = """
import oml4py
oml = oml4py.OMLBase("app", "domain", "n1", URI)
oml.addmp("lin", "label:string counter:int32 half:double")
oml.start()
for number in range(3):
    oml.inject("lin", ["a\\tb", number, number / 2])
oml.close()
"""


def test_the_client_library_for_python_is_understood(tmp_path: Path) -> None:
    pytest.importorskip("oml4py", reason="oml4py is not installed: make test")
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        program = PROGRAM.replace("URI", repr(collector.uri))
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        until(lambda: bool(notes))
    assert notes == ["domain: n1 app: 3 tuples"]
    found = rows(tmp_path / "domain.sq3", "SELECT label, counter, half FROM app_lin ORDER BY oml_seq")
    assert found == [("a\tb", 0, 0.0), ("a\tb", 1, 0.5), ("a\tb", 2, 1.0)]


BLOB = HEAD.replace("content: text", "schema: 2 b x:blob\ncontent: text")


def test_tuples_before_a_bad_value_are_kept_and_its_line_is_named(tmp_path: Path) -> None:
    notes: list[str] = []
    good = "".join(f"0\t1\t{number}\t{number}\n" for number in range(10))
    begin = BLOB.format(domain="exp", start=1000, sender="n1")
    bad = ["1\t2\t1\té\n", "1\t2\t1\t=\n", "1\t2\t1\t" + "\udcff" + "\n", "0\t1\t0\t" + "9" * 5000 + "\n",
           "x" * 5 + "\t1\t0\t1\n", "0\t0\t0\t.\tschema\t" + "9" * 5000 + " x y:int32\n"]  # fmt: skip
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        for number, line in enumerate(bad):
            text = begin.replace("exp", f"exp{number}") + good + line
            _, host, port = collector.uri.split(":")
            with socket.create_connection((host, int(port)), 10) as connection:
                connection.sendall(text.encode(errors="surrogateescape"))
            until(lambda number=number: len(notes) == number + 1)
    for number, note in enumerate(notes):
        assert f"exp{number}: n1 app: 10 tuples, refused: line 20: " in note
        assert len(rows(tmp_path / f"exp{number}.sq3", "SELECT seq FROM app_lin")) == 10


def test_a_file_that_cannot_be_written_ends_one_stream_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.sq3").write_bytes(b"this is no database" * 100)
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        client(collector.uri, head(domain="bad") + "0\t1\t0\t1\n")
        until(lambda: len(notes) == 1)
        assert "bad.sq3" in notes[0]
        assert "cannot be written" in notes[0]
        client(collector.uri, head() + "0\t1\t0\t1\n")
        until(lambda: len(notes) == 2)
        monkeypatch.setattr(database.Database, "_insert", _full)
        client(collector.uri, head() + "0\t1\t0\t1\n")
        until(lambda: len(notes) == 3)
        assert "disk is full" in notes[2]
    assert rows(tmp_path / "exp.sq3", "SELECT seq FROM app_lin") == [(1,)]


def _full(*_: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_domains_have_a_bound_and_are_closed_after_their_last_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector_module, "MOST_DOMAINS", 3)
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        for number in range(9):  # one after the other, each is closed before the next
            client(collector.uri, head(domain=f"one{number}") + "0\t1\t0\t1\n")
            until(lambda number=number: len(notes) == number + 1)
        assert not [note for note in notes if "domains" in note]
        _, host, port = collector.uri.split(":")
        held = [socket.create_connection((host, int(port)), 10) for _ in range(4)]
        for number, connection in enumerate(held):
            connection.sendall((head(domain=f"two{number}") + "0\t1\t0\t1\n").encode())
            if number < 3:
                until(lambda number=number: (tmp_path / f"two{number}.sq3").exists())
        until(lambda: len(notes) == 10)
        assert "too many domains" in notes[9]
        for connection in held:
            connection.close()


def test_a_client_that_never_stops_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    collector = Collector(tmp_path, port=0)
    _, host, port = collector.uri.split(":")
    over = threading.Event()

    def send() -> None:
        with suppress(OSError), socket.create_connection((host, int(port)), 10) as connection:
            connection.sendall(head().encode())
            number = 0
            while not over.is_set():
                connection.sendall(f"0\t1\t{number}\t1\n".encode())
                number += 1

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    until(lambda: (tmp_path / "exp.sq3").exists())
    ending = threading.Thread(target=collector.close, daemon=True)
    ending.start()
    ending.join(60)
    assert not ending.is_alive()
    over.set()
    thread.join(30)


def test_silent_clients_lose_their_places_to_those_that_speak(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector_module, "MOST_CONNECTIONS", 4)
    notes: list[str] = []
    with Collector(tmp_path, port=0, note=notes.append) as collector:
        _, host, port = collector.uri.split(":")
        silent = [socket.create_connection((host, int(port)), 10) for _ in range(12)]
        client(collector.uri, head() + "0\t1\t0\t1\n")
        until(lambda: any("1 tuples" in note for note in notes))
        for connection in silent:
            connection.close()


def test_headers_that_do_not_come_end_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "HEAD_S", 0.3)
    with Collector(tmp_path, port=0) as collector:
        _, host, port = collector.uri.split(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            connection.sendall(b"protocol: 4\n")
            with suppress(ConnectionResetError):
                assert connection.recv(10) == b""
