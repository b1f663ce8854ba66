//! EDCA: saturated stations with several access categories, compared with a simulator of the
//! standard's slot rules.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]

mod world;

use std::collections::BTreeMap;

use airloom_engine::DropReason;
use airloom_engine::frame::Frame;
use airloom_engine::medium::{Outside, RadioId, RadioSettings};
use airloom_engine::time::Instant;
use world::{PAYLOAD, World, at, at_rate, number, reference_loss, rows};

/// Categories in the order of lanes, with a DSCP of each.
const CATEGORIES: [(&str, u8); 4] = [("VO", 46), ("VI", 34), ("BE", 0), ("BK", 8)];

/// Frames of saturated sources: what each has waiting, and what arrived.
struct Flows {
    /// Ethernet and IP header of each source.
    headers: Vec<[u8; 42]>,
    waiting: Vec<u32>,
    arrived: Vec<u64>,
    given_up: u64,
    counting_from: Instant,
}

impl Flows {
    fn ended(&mut self, frame: &Frame) {
        self.waiting[frame.origin as usize] -= 1;
    }
}

impl Outside for Flows {
    fn octets(&self, frame: &Frame) -> &[u8] {
        &self.headers[frame.origin as usize]
    }
    fn make(&mut self, _octets: &[u8]) -> Frame {
        unreachable!("nothing is translated")
    }
    fn share(&mut self, _frame: &Frame) {}
    fn release(&mut self, frame: Frame) {
        self.ended(&frame);
    }
    fn deliver(&mut self, _radio: RadioId, at: Instant, frame: Frame) {
        self.arrived[frame.origin as usize] += u64::from(at >= self.counting_from);
    }
    fn dropped(&mut self, _radio: RadioId, _at: Instant, frame: Frame, why: DropReason) {
        assert_eq!(why, DropReason::RetryLimit);
        self.given_up += 1;
        self.ended(&frame);
    }
    fn copied(&mut self, _frame: &Frame, _copies: u32) {}
}

/// Mbit/s of each category, and the share of attempts on the air that failed.
struct Found {
    goodput: BTreeMap<String, f64>,
    failed: f64,
}

/// Runs `n` stations that have every one of the categories (`each`), or `n` stations for each
/// category. A source keeps `depth` frames queued: with one, no opportunity goes on after its first
/// frame.
fn saturated(each: bool, categories: &[&str], n: u32, rate: f64, depth: u32, seconds: f64) -> Found {
    let lane = |name: &&str| CATEGORIES.iter().position(|(known, _)| known == name).expect("a category");
    let lanes: Vec<usize> = categories.iter().map(lane).collect();
    let mut world = World::new(1, reference_loss());
    let settings = RadioSettings { qos: true, ..at_rate(rate) };
    let sink = world.add(settings.clone(), 0.0, 0.0);
    let mut sources: Vec<(RadioId, usize)> = Vec::new();
    for _ in 0..n {
        let shared = each.then(|| world.add(settings.clone(), 0.1, 0.0));
        for &lane in &lanes {
            sources.push((shared.unwrap_or_else(|| world.add(settings.clone(), 0.1, 0.0)), lane));
        }
    }
    let header = |&(from, lane): &(RadioId, usize)| {
        let mut octets = [0; 42];
        octets[..6].copy_from_slice(&world.mac(sink));
        octets[6..12].copy_from_slice(&world.mac(from));
        octets[12..16].copy_from_slice(&[0x08, 0x00, 0x45, CATEGORIES[lane].1 << 2]);
        octets
    };
    let mut flows = Flows {
        headers: sources.iter().map(header).collect(),
        waiting: vec![0; sources.len()],
        arrived: vec![0; sources.len()],
        given_up: 0,
        counting_from: at(0.5),
    };
    let buffer = world.sinks.pool.take(42);
    let end = at(0.5 + seconds);
    let before = |world: &mut World| {
        let radios: std::collections::BTreeSet<RadioId> = sources.iter().map(|&(radio, _)| radio).collect();
        let counts = radios.into_iter().map(|radio| world.medium.counts(radio));
        counts.fold((0, 0), |sum, counts| (sum.0 + counts.expected, sum.1 + counts.unanswered))
    };
    loop {
        let now = world.medium.now();
        for (number, &(from, _)) in sources.iter().enumerate() {
            while flows.waiting[number] < depth {
                flows.waiting[number] += 1;
                let mut frame = Frame::new(buffer, 42 + PAYLOAD, None, None);
                (frame.origin, frame.entered) = (number as u32, now);
                world.medium.offer(from, now, frame, &mut flows);
            }
        }
        if !world.medium.step(end, &mut flows) {
            break;
        }
    }
    let (expected, unanswered) = before(&mut world);
    let mut goodput = BTreeMap::new();
    for (&(_, lane), &arrived) in sources.iter().zip(&flows.arrived) {
        let megabits = arrived as f64 * f64::from(PAYLOAD * 8) * 1e-6 / seconds;
        *goodput.entry(CATEGORIES[lane].0.to_owned()).or_default() += megabits;
    }
    Found { goodput, failed: unanswered as f64 / expected as f64 }
}

/// Deviation allowed: 2 %, and three standard errors of so many frames. Frames of a category with a
/// wide window come in groups, because its window is narrow again after a success: three times the
/// variance of independent ones.
fn allowed(expected: f64, seconds: f64) -> f64 {
    let frames = expected * seconds * 1e6 / f64::from(PAYLOAD * 8);
    0.02 * expected + 3.0 * expected * (3.0 / frames).sqrt()
}

/// Stations, categories and number of a point, with the expected and another figure of each category.
type Points = BTreeMap<(String, String, u32), Vec<(String, f64, f64)>>;

/// Compares all points; returns the report, and how many figures are wrong, and differ from the other.
fn compare(points: Points, depth: u32) -> (String, u32, u32) {
    const SECONDS: f64 = 20.0;
    let (mut report, mut wrong, mut told_apart) = (String::new(), 0, 0);
    for ((stations, names, n), expected) in points {
        let categories: Vec<&str> = names.split('+').collect();
        let found = saturated(stations == "each", &categories, n, 54.0, depth, SECONDS);
        for (category, expected, other) in expected.into_iter().filter(|&(_, expected, _)| expected > 0.2) {
            let (share, allowed) = (found.goodput[&category], allowed(expected, SECONDS));
            let fails = (share - expected).abs() > allowed;
            wrong += u32::from(fails);
            told_apart += u32::from((share - other).abs() > allowed);
            let mark = if fails { " WRONG" } else { "" };
            report +=
                &format!("{stations} {names} n={n} {category}: {share:.3} against {expected:.3}{mark}\n");
        }
    }
    println!("{report}");
    (report, wrong, told_apart)
}

#[test]
fn categories_share_the_channel_by_the_slot_rule_of_edca() {
    let mut points = Points::new();
    for row in rows(include_str!("reference/edca_saturated.csv")) {
        // An internal collision is an attempt; stations of one category have none.
        let counted = row["edca_internal_counted_goodput_mbit"].parse::<f64>();
        let expected = counted.unwrap_or_else(|_| number(&row, "edca_goodput_mbit"));
        let point = (row["stations"].clone(), row["categories"].clone(), number(&row, "n") as u32);
        let by_dcf = number(&row, "dcf_rule_goodput_mbit");
        points.entry(point).or_default().push((row["category"].clone(), expected, by_dcf));
    }
    let (report, wrong, told_apart) = compare(points, 1);
    assert!(wrong == 0 && told_apart > 20, "{wrong} {told_apart}\n{report}");
}

#[test]
fn opportunities_end_with_a_failed_attempt() {
    let mut points = Points::new();
    for row in rows(include_str!("reference/edca_opportunities.csv")) {
        let point = (row["stations"].clone(), row["categories"].clone(), number(&row, "n") as u32);
        let expected = number(&row, "goodput_mbit");
        points.entry(point).or_default().push((row["category"].clone(), expected, 0.0));
    }
    let (report, wrong, _) = compare(points, 10);
    assert!(wrong == 0, "{wrong}\n{report}");
}

#[test]
fn a_single_category_has_no_internal_collisions_and_the_timing_of_its_windows() {
    // One saturated source: AIFS and half the window before each frame, with either rule.
    for (category, aifsn, window) in
        [("VO", 2.0, 3.0), ("VI", 2.0, 7.0), ("BE", 3.0, 15.0), ("BK", 7.0, 15.0)]
    {
        let found = saturated(true, &[category], 1, 54.0, 1, 10.0);
        let cycle = 248.0 + 16.0 + 28.0 + 16.0 + 9.0 * (aifsn + window / 2.0);
        let expected = f64::from(PAYLOAD * 8) / cycle;
        let error = found.goodput[category] / expected - 1.0;
        assert!(error.abs() < 0.005 && found.failed < 1e-9, "{category}: {error}");
    }
}
