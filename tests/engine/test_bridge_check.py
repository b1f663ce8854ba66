"""The engine's checks of settings: each refusal names the setting and its range."""

from __future__ import annotations

from typing import Any

import pytest

from airloom import _engine

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("settings", "code", "setting", "allowed"),
    [
        ({"rate": {"bits-per-second": 10**12 + 1}}, "link.rate", "rate", "1 Tbit/s"),
        ({"delay_ns": 25 * HOUR}, "link.delay", "delay_ns", "one day"),
        ({"overhead": 2_000}, "link.overhead", "overhead", "1024 octets"),
        (
            {"jitter": {"uniform": {"spread_ns": 25 * HOUR}}},
            "link.jitter.uniform.spread",
            "jitter.uniform.spread_ns",
            "one day",
        ),
        (
            {"queue": {"discipline": {"codel": {"target_ns": 200, "interval_ns": 100}}}},
            "link.queue.codel.target",
            "queue.codel.target_ns",
            "at most the interval",
        ),
        (
            {
                "queue": {
                    "discipline": {"fq-codel": {"target_ns": 1, "interval_ns": 1, "quantum": 10, "flows": 1}}
                }
            },
            "link.queue.fq-codel.quantum",
            "queue.fq-codel.quantum",
            "from 64 to 1048576 octets",
        ),
        (
            {
                "queue": {
                    "discipline": {
                        "red": {"min_octets": 1, "max_octets": 2, "probability": 0.1, "weight": 0.0}
                    }
                }
            },
            "link.queue.red.weight",
            "queue.red.weight",
            "above 0",
        ),
        ({"receiver": {"latency_ns": 25 * HOUR}}, "link.receiver.latency", "receiver.latency_ns", "one day"),
    ],
)
def test_settings_of_a_link_out_of_range(
    settings: dict[str, Any], code: str, setting: str, allowed: str
) -> None:
    with pytest.raises(_engine.EngineError) as caught:
        _engine.check_link("a-b", settings)
    assert caught.value.args[0] == code
    assert len(caught.value.args) == 2
    assert caught.value.setting == setting
    assert allowed in str(caught.value.allowed)


@pytest.mark.parametrize(
    ("settings", "code", "setting"),
    [
        ({"switch": {"ageing_ns": 0, "addresses": 1}}, "switch.ageing", "switch.ageing_ns"),
        ({"switch": {"ageing_ns": 1, "addresses": 10**8}}, "switch.addresses", "switch.addresses"),
    ],
)
def test_settings_of_a_switch_out_of_range(settings: dict[str, Any], code: str, setting: str) -> None:
    with pytest.raises(_engine.EngineError) as caught:
        _engine.check_switch("s", settings)
    assert (caught.value.args[0], caught.value.setting) == (code, setting)


def test_settings_within_their_ranges_pass() -> None:
    _engine.check_link("a-b", {})
    _engine.check_link("a-b", {"rate": {"bits-per-second": 10**12}, "delay_ns": 24 * HOUR})
    _engine.check_switch("s", "hub")
    _engine.check_switch("s", {"switch": {"ageing_ns": 1, "addresses": 1}})


def test_what_is_no_setting_is_another_error() -> None:
    with pytest.raises(_engine.EngineError) as caught:
        _engine.check_link("a-b", {"dealy_ns": 1})
    assert caught.value.args[0] == "engine.settings"
    assert caught.value.setting is None
    assert caught.value.allowed is None
