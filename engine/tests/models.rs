//! The random models of a link against their formulas, measured at the far end.
//!
//! Tolerances are four standard errors or more; with a fixed seed the results never vary.

mod common;

use airloom_engine::settings::{Jitter, LinkSettings, Loss, Rate, Segments};
use airloom_engine::{Direction, End, Engine, LinkId, PortId};
use common::{Book, internet_sum, offer_octets, offer_super, run_dry};

const FRAMES: usize = 100_000;

fn pair(settings: &LinkSettings) -> (Engine, PortId, PortId, LinkId) {
    let mut engine = Engine::new(5);
    let a = engine.add_port("a", false).expect("new name");
    let b = engine.add_port("b", false).expect("new name");
    let link = engine.connect("a-b", End::Port(a), End::Port(b), settings, settings).expect("valid");
    (engine, a, b, link)
}

/// Sends numbered frames `gap` ns apart; returns (number, delay) of each arrival in order.
fn send(settings: &LinkSettings, gap: u64) -> Vec<(usize, u64)> {
    let (mut engine, a, _, _) = pair(settings);
    let mut book = Book::default();
    for number in 0..FRAMES {
        let mut octets = [0; 64];
        octets[..8].copy_from_slice(&(number as u64).to_be_bytes());
        offer_octets(&mut engine, a, number as u64 * gap, &octets);
        if number % 1_000 == 0 {
            engine.advance(airloom_engine::time::Instant::from_nanos(number as u64 * gap), &mut book);
        }
    }
    run_dry(&mut engine, &mut book);
    let number = |octets: &[u8]| {
        usize::try_from(u64::from_be_bytes(octets[..8].try_into().expect("eight"))).expect("small")
    };
    book.deliveries
        .iter()
        .map(|delivery| {
            let number = number(&delivery.octets);
            (number, delivery.at - number as u64 * gap)
        })
        .collect()
}

fn close(measured: f64, wanted: f64, tolerance: f64) {
    assert!((measured - wanted).abs() <= tolerance, "measured {measured}, wanted {wanted} +- {tolerance}");
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The largest distance between the values' distribution and a formula (Kolmogorov, Smirnov); for
/// 100,000 independent values it is below 0.0062 in 999 of 1000 cases.
fn distance(values: &mut [f64], formula: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let gap = |(index, value): (usize, &f64)| {
        let wanted = formula(*value);
        (wanted - index as f64 / n).abs().max((wanted - (index + 1) as f64 / n).abs())
    };
    values.iter().enumerate().map(gap).fold(0.0, f64::max)
}

fn delays(jitter: Jitter, delay_ns: u64) -> Vec<f64> {
    let settings = LinkSettings { jitter, delay_ns, jitter_reorders: true, ..LinkSettings::default() };
    send(&settings, 1_000).iter().map(|&(_, delay)| delay as f64).collect()
}

#[test]
fn bernoulli_loses_its_share_frame_by_frame() {
    let settings = LinkSettings { loss: Loss::Bernoulli { probability: 0.1 }, ..LinkSettings::default() };
    let arrived = send(&settings, 1_000);
    close(arrived.len() as f64 / FRAMES as f64, 0.9, 0.004);
    // Independent: the loss rate after a lost frame equals the overall loss rate.
    let mut lost = vec![true; FRAMES];
    arrived.iter().for_each(|&(number, _)| lost[number] = false);
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
    close(pairs as f64 / FRAMES as f64, 0.01, 0.0015);
}

#[test]
fn gilbert_and_elliott_lose_in_bursts() {
    let (p, r, good, bad) = (0.01, 0.2, 0.001, 0.7);
    let loss = Loss::GilbertElliott { good_to_bad: p, bad_to_good: r, loss_good: good, loss_bad: bad };
    let arrived = send(&LinkSettings { loss, ..LinkSettings::default() }, 1_000);
    let share = (r * good + p * bad) / (p + r);
    close(1.0 - arrived.len() as f64 / FRAMES as f64, share, 0.006);
    // The correlation of the chain decays by 1 - p - r a step, so two neighbours are both lost with
    // share^2 + (1 - p - r) * p * r / (p + r)^2 * (bad - good)^2.
    let mut lost = vec![true; FRAMES];
    arrived.iter().for_each(|&(number, _)| lost[number] = false);
    let both = share.powi(2) + (1.0 - p - r) * p * r / (p + r).powi(2) * (bad - good).powi(2);
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
    close(pairs as f64 / FRAMES as f64, both, 0.004_5);
    // With certain loss in the bad state a burst is 1/r frames in the mean.
    let loss = Loss::GilbertElliott { good_to_bad: p, bad_to_good: r, loss_good: 0.0, loss_bad: 1.0 };
    let arrived = send(&LinkSettings { loss, ..LinkSettings::default() }, 1_000);
    let bursts = arrived.windows(2).filter(|pair| pair[1].0 > pair[0].0 + 1).count();
    let burst = (FRAMES - arrived.len()) as f64 / bursts as f64;
    close(burst, 1.0 / r, 0.7);
}

#[test]
fn uniform_jitter_is_uniform() {
    let mut values = delays(Jitter::Uniform { spread_ns: 400_000 }, 1_000_000);
    assert!(values.iter().all(|value| (600_000.0..=1_400_000.0).contains(value)));
    assert!(distance(&mut values, |x| (x - 600_000.0) / 800_000.0) < 0.0062);
}

#[test]
fn normal_jitter_is_normal() {
    let values = delays(Jitter::Normal { sigma_ns: 100_000 }, 1_000_000);
    close(mean(&values), 1_000_000.0, 1_300.0);
    close(deviation(&values), 100_000.0, 1_000.0);
    let within = |sigmas: f64| {
        let inside = values.iter().filter(|&value| (value - 1_000_000.0).abs() <= sigmas * 100_000.0);
        inside.count() as f64 / values.len() as f64
    };
    close(within(1.0), 0.682_689, 0.006);
    close(within(2.0), 0.954_500, 0.003);
    close(within(3.0), 0.997_300, 0.000_7);
}

#[test]
fn pareto_jitter_has_its_tail() {
    let (scale, shape) = (50_000.0, 2.5);
    let mut values = delays(Jitter::Pareto { scale_ns: 50_000, shape }, 1_000_000);
    close(mean(&values) - 1_000_000.0, scale / (shape - 1.0), 1_000.0);
    let formula = |x: f64| 1.0 - libm::pow(1.0 + (x - 1_000_000.0) / scale, -shape);
    assert!(distance(&mut values, formula) < 0.0062);
}

#[test]
fn table_jitter_is_linear_between_its_values() {
    let values_ns = vec![300_000, -100_000, 0, 100_000];
    let mut values = delays(Jitter::Table { values_ns }, 1_000_000);
    // A third of the draws falls between each pair of neighbours.
    let formula = |x: f64| match x - 1_000_000.0 {
        x if x < 0.0 => (x + 100_000.0) / 300_000.0,
        x if x < 100_000.0 => 1.0 / 3.0 + x / 300_000.0,
        x => 2.0 / 3.0 + (x - 100_000.0) / 600_000.0,
    };
    assert!(distance(&mut values, formula) < 0.0062);
    let mut constant = delays(Jitter::Table { values_ns: vec![-3] }, 10);
    constant.dedup();
    assert_eq!(constant, [7.0]);
}

#[test]
fn jitter_never_makes_time_run_back() {
    let values = delays(Jitter::Normal { sigma_ns: 1_000_000 }, 100);
    let none = values.iter().filter(|&&value| value == 0.0).count();
    close(none as f64 / values.len() as f64, 0.5, 0.007);
}

#[test]
fn duplicates_take_their_own_time_on_the_wire() {
    let rate = Rate::BitsPerSecond(8_000_000_000);
    let settings = LinkSettings { duplicate: 0.25, rate, ..LinkSettings::default() };
    let arrived = send(&settings, 1_000);
    close(arrived.len() as f64 / FRAMES as f64, 1.25, 0.006);
    // 64 + 24 octets take 88 ns.
    for pair in arrived.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        assert_eq!(pair.iter().map(|&(_, delay)| delay).collect::<Vec<_>>(), [88, 176]);
    }
}

#[test]
fn early_frames_overtake_by_the_delay() {
    let settings = LinkSettings { reorder: 0.2, delay_ns: 1_000_000, ..LinkSettings::default() };
    let arrived = send(&settings, 10_000);
    assert_eq!(arrived.len(), FRAMES);
    let early = arrived.iter().filter(|&&(_, delay)| delay == 0).count();
    assert!(arrived.iter().all(|&(_, delay)| delay == 0 || delay == 1_000_000));
    close(early as f64 / FRAMES as f64, 0.2, 0.006);
}

#[test]
fn corruption_flips_one_bit_anywhere() {
    let settings = LinkSettings { corrupt: 0.3, ..LinkSettings::default() };
    let (mut engine, a, _, link) = pair(&settings);
    let mut book = Book::default();
    let mut flipped = [0_u32; 64 * 8];
    for number in 0..FRAMES as u64 {
        offer_octets(&mut engine, a, number, &[0xa5; 64]);
    }
    run_dry(&mut engine, &mut book);
    for delivery in &book.deliveries {
        let bits = || (0..64 * 8).filter(|&bit| (delivery.octets[bit / 8] ^ 0xa5) >> (bit % 8) & 1 == 1);
        assert!(bits().count() <= 1);
        bits().for_each(|bit| flipped[bit] += 1);
    }
    let total: u32 = flipped.iter().sum();
    close(f64::from(total) / FRAMES as f64, 0.3, 0.006);
    assert_eq!(engine.ledger().link(link, Direction::Forward).corrupted.frames, u64::from(total));
    // Chi squared with 511 degrees of freedom: mean 511, deviation 32.
    let wanted = f64::from(total) / 512.0;
    let squares: f64 = flipped.iter().map(|&count| (f64::from(count) - wanted).powi(2) / wanted).sum();
    close(squares, 511.0, 5.0 * 32.0);
}

#[test]
fn corrupted_segments_were_complete_before() {
    let settings = LinkSettings { corrupt: 0.5, ..LinkSettings::default() };
    let (mut engine, a, b, _) = pair(&settings);
    let mut book = Book::default();
    for number in 0..200 {
        offer_super(&mut engine, a, number, 4_000, 1_000);
    }
    run_dry(&mut engine, &mut book);
    assert_eq!(book.times(b).len(), 800);
    let mut spoiled = 0;
    for delivery in &book.deliveries {
        let octets = &delivery.octets;
        let mut covered = octets[26..34].to_vec();
        covered.extend([0, 6]);
        covered.extend(u16::try_from(octets.len() - 34).expect("small").to_be_bytes());
        covered.extend(&octets[34..]);
        let sound = internet_sum(&covered) == 0xffff && internet_sum(&octets[14..34]) == 0xffff;
        spoiled += u32::from(!sound);
    }
    // A flipped bit in the Ethernet header (14 of 1054 octets) breaks no checksum.
    close(f64::from(spoiled) / 800.0, 0.5 * 1040.0 / 1054.0, 0.07);
}

#[test]
fn lost_segments_split_a_run_and_the_rest_stays_together() {
    for segments in [Segments::Timed, Segments::Carried] {
        let loss = Loss::Bernoulli { probability: 0.1 };
        let settings = LinkSettings { loss, segments, ..LinkSettings::default() };
        let (mut engine, a, b, _) = pair(&settings);
        let mut book = Book::default();
        for number in 0..500 {
            offer_super(&mut engine, a, number, 40_000, 1_000);
        }
        run_dry(&mut engine, &mut book);
        let arrived = book.times(b).len() as f64;
        close(arrived / 20_000.0, 0.9, 0.01);
        // The mean length of a run of survivors out of forty, weighted by frame, is far above one.
        let together: u32 = book.deliveries.iter().map(|delivery| u32::from(delivery.together)).sum();
        assert!(f64::from(together) / arrived > 10.0);
    }
}
