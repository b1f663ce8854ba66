"""The engine through its memory ports: exact, to the nanosecond."""

import pytest

from airloom import errors
from airloom.bench import gigabit

_engine = pytest.importorskip("airloom._engine")

BROADCAST = bytes.fromhex("ffffffffffff")
A, B, C = (bytes.fromhex(f"02000000000{n}") for n in (1, 2, 3))


def frame(to: bytes, source: bytes, length: int = 60) -> bytes:
    return (to + source + b"\x08\x00").ljust(length, b"\x55")


def pair(forward: dict | None = None, backward: dict | None = None) -> object:
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.add_memory_port("b")
    engine.connect("wire", "a", "b", forward or {}, backward or {})
    return engine


def test_a_delay_is_exact_and_of_its_own_direction():
    engine = pair({"delay_ns": 1_000_001}, {"delay_ns": 7})
    there, back = frame(B, A), frame(A, B)
    engine.offer("a", 5, there)
    engine.offer("b", 5, back)
    assert engine.step(1_000_005) == [("a", 12, back)]
    assert engine.step(1_000_006) == [("b", 1_000_006, there)]


def test_a_rate_charges_preamble_gap_and_check_sequence():
    engine = pair({"rate": {"bits-per-second": 10_000_000}})
    for _ in range(3):
        engine.offer("a", 0, frame(B, A, 1514))
    each = (1514 + 24) * 8 * 100
    assert [at for _, at, _ in engine.step(10**9)] == [each, 2 * each, 3 * each]


def switched() -> _engine.Engine:
    """Three ports at one switch."""
    engine = _engine.Engine(1)
    for name in "abc":
        engine.add_memory_port(name)
    engine.add_switch("s", {"switch": {"ageing_ns": 300 * 10**9, "addresses": 1000}})
    for name in "abc":
        engine.connect(f"wire-{name}", name, "s", {}, {})
    return engine


def test_a_switch_learns_where_a_node_is():
    engine = switched()
    engine.offer("a", 0, frame(BROADCAST, A))
    assert sorted(port for port, _, _ in engine.step(10)) == ["b", "c"]
    engine.offer("b", 20, frame(A, B))
    assert [port for port, _, _ in engine.step(30)] == ["a"]
    ledger = engine.ledger()
    assert ledger["offered"] + ledger["copies"] == ledger["delivered"] == 3


def test_a_change_happens_at_its_exact_time():
    engine = pair({"delay_ns": 100})
    engine.schedule_link(1000, "wire", "forward", {"delay_ns": 500}, None)
    engine.schedule_link(2000, "wire", "both", None, False)
    for at in (999, 1000, 2000):
        engine.offer("a", at, frame(B, A))
    assert [at for _, at, _ in engine.step(10_000)] == [1099, 1500]
    assert engine.ledger()["dropped"] == {"link-down": 1}
    assert engine.ledger()["links"]["wire"]["forward"]["dropped"] == {"link-down": 1}


def test_the_same_seed_gives_the_same_run():
    def run(seed: int) -> list:
        engine = _engine.Engine(seed)
        engine.add_memory_port("a")
        engine.add_memory_port("b")
        settings = {"loss": {"bernoulli": {"probability": 0.3}}, "jitter": {"uniform": {"spread_ns": 500}}}
        engine.connect("wire", "a", "b", {"delay_ns": 1000} | settings, {})
        for at in range(0, 100_000, 1000):
            engine.offer("a", at, frame(B, A))
        return engine.step(10**9)

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_every_frame_is_in_the_ledger_and_a_short_one_is_malformed():
    engine = pair({"mtu": 100})
    engine.offer("a", 0, frame(B, A, 10)[:10])
    engine.offer("a", 0, frame(B, A, 200))
    engine.offer("a", 0, frame(B, A))
    assert len(engine.step(10)) == 1
    ledger = engine.ledger()
    assert ledger["offered"] == 3
    assert ledger["dropped"] == {"malformed": 1, "too-big": 1}
    assert ledger["octets"] == {"offered": 270, "copies": 0, "delivered": 60, "in_flight": 0}


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda e: e.add_memory_port("a"), "engine.name.duplicate"),
        (lambda e: e.connect("x", "a", "nobody", {}, {}), "engine.name.unknown"),
        (lambda e: e.connect("x", "a", "b", {"colour": 1}, {}), "engine.settings"),
        (lambda e: e.connect("x", "a", "b", {}, {}), "engine.port.taken"),
        (lambda e: e.set_link("wire", "sideways", {}), "engine.word"),
        (lambda e: e.set_link("nothing", "both", {}), "engine.name.unknown"),
        (lambda e: e.set_link("wire", "both", {"rate": {"bits-per-second": 0}}), "link.rate"),
        (lambda e: e.offer("nobody", 0, b""), "engine.name.unknown"),
        (lambda e: e.offer("a", 0, bytes(100_000)), "engine.frame.length"),
        (lambda e: e.add_tap_port("t", -1), "host.descriptor"),
        (lambda e: e.add_tap_port("t", 0), "host.tap-descriptor"),
        (lambda e: e.add_interface_port("i", "no-such-if"), "host.interface"),
        (lambda e: e.capture("/no/such/folder/file.pcapng"), "run.capture"),
    ],
)
def test_what_is_refused_has_a_code_and_changes_nothing(act, code):
    engine = pair()
    before = engine.ledger()
    with pytest.raises(_engine.EngineError) as caught:
        act(engine)
    assert caught.value.args[0] == code
    assert engine.ledger() == before


def test_every_code_has_its_place_among_the_errors():
    codes = _engine.error_codes()
    assert len(codes) == len(set(codes)) > 20
    assert {"engine.loop", "host.tap-create", "node.spec", "run.capture"} <= set(codes)
    kinds = {"host": errors.HostError, "run": errors.RunError}
    for code in [*codes, "link.rate", "switch.ageing"]:
        error = errors.from_engine(_engine.EngineError(code, "so it is"), where="net.yaml:3")
        refused = errors.RunError if code in errors._OF_THE_RUN else errors.ScenarioError
        assert type(error) is kinds.get(code.split(".")[0], refused)
        assert error.code == code
        assert "so it is" in str(error)
        assert "net.yaml:3" in str(error)
    assert {*errors._CURES, *errors._OF_THE_RUN} <= set(codes)


def test_a_stopped_engine_can_be_read_and_no_more():
    engine = pair()
    zero = engine.start()
    assert zero > 0
    with pytest.raises(_engine.EngineError, match="step needs"):
        engine.step(1)
    with pytest.raises(_engine.EngineError, match="start needs"):
        engine.start()
    engine.offer("a", 0, frame(B, A))
    while not (got := engine.received()):
        pass
    assert got[0][2] == frame(B, A)
    engine.stop()
    engine.stop()
    assert engine.ledger()["delivered"] == 1
    assert engine.lateness()["delivery"]["count"] == 1
    with pytest.raises(_engine.EngineError, match="offer needs"):
        engine.offer("a", 0, frame(B, A))


@pytest.mark.parametrize(("hops", "rate"), [(1, 10**9), (16, 10**9), (20, 10**8)])
def test_the_peer_of_the_gigabit_benchmark_has_the_rate_of_its_links(hops: int, rate: int):
    assert gigabit.in_memory(hops, rate) == pytest.approx(rate * 1448 / (1514 + 24), rel=1e-6)


def test_a_link_that_was_taken_out_frees_its_ends_and_its_name():
    engine = pair({"delay_ns": 100})
    engine.add_memory_port("c")
    engine.offer("a", 0, frame(B, A))
    assert engine.step(50) == []
    engine.disconnect("wire")
    assert engine.step(1000) == []
    assert engine.ledger()["dropped"]["link-down"] == 1
    with pytest.raises(_engine.EngineError, match="link"):
        engine.disconnect("wire")
    engine.connect("wire", "a", "c", {"delay_ns": 7}, {})
    engine.offer("a", 2000, frame(C, A))
    assert engine.step(3000) == [("c", 2007, frame(C, A))]
    assert engine.ledger()["links"]["wire"]["forward"]["entered"] == 2
    with pytest.raises(_engine.EngineError, match="already"):
        engine.connect("wire", "a", "c", {}, {})


def test_a_switch_gets_other_settings_and_keeps_what_it_knows():
    engine = switched()
    engine.offer("a", 0, frame(BROADCAST, A))
    engine.step(10)
    engine.set_switch("s", {"switch": {"ageing_ns": 1000, "addresses": 10}})
    engine.offer("b", 20, frame(A, B))
    assert [port for port, _, _ in engine.step(30)] == ["a"]
    engine.offer("b", 5000, frame(A, B))
    assert sorted(port for port, _, _ in engine.step(6000)) == ["a", "c"], "the address has aged"
