"""Playout of video: start-up and stalls; and what ffmpeg says of quality."""

from __future__ import annotations

from pathlib import Path

import pytest

from airloom.errors import RunError
from airloom.experiments import video
from airloom.experiments.video import playout

FRAME = 0.04
TIMES = [number * FRAME for number in range(100)]
"""4 s of video."""


def test_a_download_that_is_fast_enough_starts_when_its_buffer_is_full() -> None:
    arrivals = [0.1 + 0.02 * (number + 1) for number in range(100)]
    shown = playout.download(arrivals, TIMES, FRAME, 2.0)
    assert shown.startup == pytest.approx(0.1 + 0.02 * 50), "50 frames are 2 s"
    assert (shown.stalls, shown.stalled) == (0, 0.0)


def test_a_download_at_half_the_rate_stalls_until_the_rest_is_there() -> None:
    arrivals = [2 * FRAME * (number + 1) for number in range(100)]
    shown = playout.download(arrivals, TIMES, FRAME, 2.0)
    assert shown.startup == pytest.approx(4.0)
    # Frame 99 comes at 8 s, 0.04 s after it would be shown without a stall.
    assert shown.stalls == 1
    assert shown.stalled == pytest.approx(0.04)


def test_a_pause_of_a_download_is_a_stall_of_what_the_buffer_does_not_cover() -> None:
    arrivals = [0.01 * (number + 1) + (5.0 if number >= 60 else 0.0) for number in range(100)]
    shown = playout.download(arrivals, TIMES, FRAME, 2.0)
    assert shown.startup == pytest.approx(0.5)
    assert shown.stalls == 1
    # Frame 60 was due 2.4 s after the start, and all of the rest is there at 6.0 s.
    assert shown.stalled == pytest.approx(6.0 - (0.5 + 2.4))


def test_missing_pictures_of_a_stream_freeze_the_one_before() -> None:
    shown = playout.live([time for time in TIMES if not 1 <= time < 1.5], 0.2, FRAME, 4.0)
    assert shown == playout.Playout(0.2, 1, pytest.approx(0.52, abs=0.03))
    assert playout.live(TIMES, 0.2, FRAME, 4.0).stalls == 0
    assert playout.live(TIMES[:50], 0.2, FRAME, 4.0).stalled == pytest.approx(2.0), "it ended too early"
    assert playout.live(TIMES[10:], 0.2, FRAME, 4.0).startup == pytest.approx(0.6)


@pytest.mark.parametrize(("mtu", "packets"), [(1500, 7), (4352, 22), (7981, 42)])
def test_packets_are_as_large_as_the_mtu_allows(mtu: int, packets: int) -> None:
    assert video.packet_of(mtu) == 12 + 188 * packets
    assert video.packet_of(mtu) + 28 <= mtu < video.packet_of(mtu) + 28 + 188


SAID = """
[Parsed_psnr_2 @ 0x1] PSNR y:31.1 u:40.2 v:41.3 average:32.650000 min:20.1 max:99.2
[Parsed_ssim_3 @ 0x2] SSIM Y:0.97 (15.2) U:0.99 (20.0) V:0.99 (20.0) All:0.976543 (16.3)
"""


def test_qualities_are_read_with_vmaf_where_ffmpeg_has_it() -> None:
    place = Path("x.ts")
    assert video.read_quality(SAID, place) == video.Quality(32.65, 0.976543)
    more = SAID + "[libvmaf @ 0x3] VMAF score: 87.125000\n"
    assert video.read_quality(more, place) == video.Quality(32.65, 0.976543, 87.125)
    with pytest.raises(RunError, match="ffmpeg cannot decode"):
        video.read_quality("", place)
