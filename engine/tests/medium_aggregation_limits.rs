//! Sizes and times of A-MPDUs: octets, airtime, transmission opportunities, request-to-send.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

mod aggregates;
mod world;

use aggregates::{Seen, aggregate, airtimes, cell, joined, layer, octets, octets_of, seen, settings};
use airloom_engine::DropReason;
use airloom_engine::medium::phy::{ACK_OCTETS, RTS_OCTETS};
use airloom_engine::medium::{RadioId, RadioSettings};
use airloom_engine::time::Span;
use world::{PAYLOAD, World, at};

/// DSCP of video and of voice, and the limits of their opportunities.
const OPPORTUNITIES: [(u8, Span); 2] = [(34, Span::from_micros(3_008)), (46, Span::from_micros(1_504))];

fn micros(span: Span) -> u64 {
    span.nanos() / 1_000
}

/// Airtimes of a request-to-send and of a clear-to-send before a frame at this rate.
fn request(mcs: u8) -> (Span, Span) {
    let phy = layer();
    let index = phy.scheme(mcs).expect("a rate");
    let basic = &phy.rates[usize::from(phy.response(index, phy.mandatory()))];
    (basic.airtime(RTS_OCTETS), basic.airtime(ACK_OCTETS))
}

/// What the sniffer sees of a burst from the first radio to the second.
fn burst(settings: &RadioSettings, frames: u32, payload: u32, dscp: u8) -> (World, Vec<RadioId>, Vec<Seen>) {
    let (mut world, radios) = cell(settings, 2, -40.0, 1);
    world.medium.set_sniffing(true);
    (0..frames).for_each(|_| world.offer_marked(at(0.1), radios[0], radios[1], payload, dscp));
    world.run(at(1.0));
    assert_eq!(world.sinks.delivered, u64::from(frames));
    let seen = seen(&world);
    (world, radios, seen)
}

#[test]
fn an_aggregate_has_at_most_65535_octets_and_5484_us() {
    // Of 1540 octets with delimiter and padding 42 fit; of 136 octets 64; at MCS 0 two take 3.8 ms.
    for (mcs, payload, most) in [(31, PAYLOAD, 42), (31, 66, 64), (7, PAYLOAD, 28), (0, PAYLOAD, 2)] {
        let (_, _, seen) = burst(&settings(mcs, 64), 200, payload, 0);
        let counts: Vec<u32> = joined(&seen).iter().map(|parts| parts.len() as u32).collect();
        assert!(counts[..counts.len() - 1].iter().all(|&count| count == most), "MCS {mcs}: {counts:?}");
        for parts in joined(&seen) {
            let octets = octets_of(&parts);
            assert!(octets <= 65_535 && airtimes(mcs, octets).0 <= Span::from_micros(5_484));
        }
        assert!(aggregate(mcs, 64, payload).0 == most && aggregate(mcs, most, payload).0 == most);
    }
}

#[test]
fn an_aggregate_fits_into_the_opportunity_of_its_category() {
    let phy = layer();
    for (dscp, limit) in OPPORTUNITIES {
        for (mcs, rts_octets) in [(7, None), (7, Some(0)), (15, None), (15, Some(8_000)), (31, Some(500))] {
            let wanted = RadioSettings { rts_octets, ..settings(mcs, 64) };
            let (_, _, seen) = burst(&wanted, 150, PAYLOAD, dscp);
            let (asks, clears) = request(mcs);
            let exchange = |frames: u32| {
                let octets = octets(frames, PAYLOAD);
                let (data, answer) = airtimes(mcs, octets);
                let before = asks + phy.sifs + clears + phy.sifs;
                let asked = rts_octets.is_some_and(|limit| octets > limit);
                data + phy.sifs + answer + if asked { before } else { Span::ZERO }
            };
            let fits = |&frames: &u32| exchange(frames) <= limit && octets(frames, PAYLOAD) <= 65_535;
            let most = (1..=64).take_while(fits).last().expect("some");
            let all = joined(&seen);
            assert!(all.len() > 1, "one is not enough");
            let counts: Vec<u32> = all.iter().map(|parts| parts.len() as u32).collect();
            assert!(counts[..counts.len() - 1].iter().all(|&count| count == most), "{counts:?} for {most}");
            // The sniffer measures the same: from the first frame of each exchange to the end of its answer.
            for parts in &all {
                let answer =
                    seen.iter().find(|one| one.kind == 0x94 && one.at > parts[0].at).expect("an answer");
                let end = answer.at + micros(airtimes(mcs, 0).1);
                let asked = seen.iter().rfind(|one| one.kind == 0xb4 && one.at < parts[0].at);
                let asked =
                    asked.filter(|one| parts[0].at - one.at <= micros(asks + clears + phy.sifs * 2) + 1);
                let start = asked.map_or(parts[0].at, |one| one.at);
                assert!(end - start <= micros(limit), "{} us", end - start);
            }
        }
    }
}

#[test]
fn the_threshold_of_requests_counts_the_octets_of_the_aggregate() {
    let (limit, mcs) = (4_000, 15);
    let wanted = RadioSettings { rts_octets: Some(limit), ..settings(mcs, 4) };
    let (mut world, radios) = cell(&wanted, 2, -40.0, 1);
    world.medium.set_sniffing(true);
    // One alone, then as many as wait together: two are 3076 octets, three 4616.
    for (number, frames) in [1_u32, 2, 3, 4, 5].into_iter().enumerate() {
        let now = at(0.1 + 0.1 * number as f64);
        (0..=frames).for_each(|_| world.offer(now, radios[0], Some(radios[1]), PAYLOAD));
        world.run(now + Span::from_millis(50));
    }
    let seen = seen(&world);
    let (asks, clears) = request(mcs);
    let before = micros(asks + clears + layer().sifs * 2);
    let requests: Vec<Seen> = seen.iter().copied().filter(|one| one.kind == 0xb4).collect();
    let large: Vec<Vec<Seen>> = joined(&seen).into_iter().filter(|parts| octets_of(parts) > limit).collect();
    assert_eq!((requests.len(), large.len(), joined(&seen).len()), (3, 3, 4));
    for (asked, parts) in requests.iter().zip(&large) {
        assert!((asked.at + before).abs_diff(parts[0].at) <= 1, "{asked:?} before {:?}", parts[0]);
        // Its duration reaches to the end of the block ack, and so does that of the A-MPDU.
        let (data, answer) = airtimes(mcs, octets_of(parts));
        let end = parts[0].at + micros(data + layer().sifs + answer);
        assert!((asked.at + micros(asks) + u64::from(asked.duration)).abs_diff(end) <= 1);
        assert!((parts[0].at + micros(data) + u64::from(parts[0].duration)).abs_diff(end) <= 1);
    }
}

#[test]
fn after_requests_each_mpdu_has_its_long_retries() {
    // 16.5 dB: requests at 24 Mbit/s arrive, MPDUs at 64-QAM do not.
    let wanted =
        RadioSettings { rts_octets: Some(3_000), long_retries: 4, short_retries: 7, ..settings(15, 8) };
    let (mut world, radios) = cell(&wanted, 2, -77.5, 1);
    world.medium.set_sniffing(true);
    (0..9).for_each(|_| world.offer(at(0.1), radios[0], Some(radios[1]), PAYLOAD));
    world.run(at(2.0));
    assert_eq!(world.sinks.delivered, 0);
    assert_eq!(world.sinks.drops.get(&DropReason::RetryLimit), Some(&9));
    let seen = seen(&world);
    let times = |number: u16, part: bool| {
        seen.iter().filter(|one| one.kind == 0x88 && one.sequence == number && one.joined == part).count()
    };
    // The first one finds an idle channel, and is in the A-MPDU after it; the last is left alone.
    assert!((0..8).all(|number| times(number, true) == 4));
    assert_eq!((times(0, false), times(8, false), times(8, true)), (1, 7, 0));
    assert_eq!(seen.iter().filter(|one| one.kind == 0xb4).count(), 4);
    assert_eq!(seen.iter().filter(|one| one.kind == 0xc4).count(), 4);
}
