//! The controller against the formulae of RFC 9332, appendix A.

use super::*;
use crate::settings::Rate;

const RFC: DualPi2Settings = DualPi2Settings {
    target_ns: 15_000_000,
    update_ns: 15_000_000,
    alpha: 0.15,
    beta: 3.0,
    coupling: 2.0,
    step_ns: 800_000,
    ramp_ns: 400_000,
    classic: 0.0625,
};

fn pi2_at(settings: DualPi2Settings, rate: u64) -> Pi2 {
    let serializer = Serializer::new(&Rate::BitsPerSecond(rate), Instant::ZERO, Instant::ZERO);
    Pi2::new(settings, &serializer)
}

fn pi2() -> Pi2 {
    pi2_at(RFC, 1_000_000_000)
}

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn the_base_probability_follows_the_update_of_the_rfc() {
    let mut pi2 = pi2();
    pi2.update(ms(0), None);
    // The first packet waits from 5 ms on, so that the delay grows by 15 ms at each update.
    let (mut p, mut old) = (0.0_f64, 0.0_f64);
    for round in 1..=8_u64 {
        pi2.update(ms(15 * round), Some(ms(5)));
        let delay = 0.015 * float(round) - 0.005;
        p = (p + 0.15 * (delay - 0.015) + 3.0 * (delay - old)).clamp(0.0, 1.0);
        old = delay;
        assert!(close(pi2.base, p), "{round}: {} for {p}", pi2.base);
        assert!(close(pi2.classic(), p * p));
        assert!(close(pi2.coupled(), (2.0 * p).min(1.0)));
    }
    assert!(p > 0.3, "{p}");
}

#[test]
fn missed_updates_are_made_up_with_the_delays_of_their_times() {
    let (mut often, mut once) = (pi2(), pi2());
    for pi2 in [&mut often, &mut once] {
        pi2.update(ms(0), None);
    }
    (1..=9).for_each(|round| often.update(ms(15 * round), Some(ms(3))));
    once.update(ms(15 * 9), Some(ms(3)));
    assert!(often.base > 0.0);
    assert!(close(often.base, once.base));
    // Empty queues: down by alpha * target = 0.00225 at each update, to 0, where it rests.
    let before = once.base;
    once.update(ms(15 * 10), None);
    let first = before - 0.15 * 0.015 - 3.0 * (15.0 * 9.0 - 3.0) / 1e3;
    assert!(close(once.base, first.max(0.0)));
    once.update(ms(86_400_000), None);
    assert!(close(once.base, 0.0));
    once.update(ms(86_400_000 + 15), Some(ms(86_400_000)));
    assert!(close(once.base, 3.0 * 0.015), "{}", once.base);
}

#[test]
fn the_ramp_of_the_low_latency_queue_goes_from_the_step_to_its_end() {
    let pi2 = pi2();
    let at = |micros: u64| pi2.ramp(Span::from_nanos(micros * 1_000));
    for (waited, wanted) in [(0, 0.0), (800, 0.0), (900, 0.25), (1_000, 0.5), (1_100, 0.75), (1_200, 1.0)] {
        assert!((at(waited) - wanted).abs() < 1e-9, "{waited} us: {}", at(waited));
    }
    // A step of 1 ms, as in Linux.
    let step = pi2_at(DualPi2Settings { step_ns: 1_000_000, ramp_ns: 0, ..RFC }, 1_000_000_000);
    assert!(close(step.ramp(Span::from_nanos(999_999)), 0.0));
    assert!(close(step.ramp(Span::from_nanos(1_000_001)), 1.0));
    // At 1 Mbit/s one packet takes 12.304 ms.
    let slow = pi2_at(RFC, 1_000_000);
    assert!(close(slow.ramp(Span::from_nanos(12_303_000)), 0.0));
    assert!((slow.ramp(Span::from_nanos(12_504_000)) - 0.5).abs() < 1e-9);
}

#[test]
fn signals_have_the_coupled_probability_in_l_and_its_squared_half_in_c() {
    let mut pi2 = pi2();
    pi2.base = 0.1;
    let of =
        |signal: Signal, judge: &mut dyn FnMut() -> Signal| (0..10_000).filter(|_| judge() == signal).count();
    let mut count = 0.0;
    let marks = of(Signal::Mark, &mut || pi2.judge_low(&mut count, Span::ZERO));
    // k p' = 0.2; the first signal waits for the counter to exceed 1.
    assert!(marks.abs_diff(2_000) <= 1, "{marks}");
    let mut count = 0.0;
    let marks = of(Signal::Mark, &mut || pi2.judge_classic(&mut count));
    // p'^2 = 0.01.
    assert!(marks.abs_diff(100) <= 1, "{marks}");
    // The native ramp, if it is higher.
    let mut count = 0.0;
    let marks = of(Signal::Mark, &mut || pi2.judge_low(&mut count, Span::from_nanos(1_000_000)));
    assert!(marks.abs_diff(5_000) <= 1, "{marks}");
}

#[test]
fn overload_drops_in_both_queues() {
    let mut pi2 = pi2();
    // k p' = 1 and p_C = 1/4 = 1/k^2: packets of C are dropped even if they are ECN-capable.
    pi2.base = 0.5;
    let mut count = 0.0;
    let signals: Vec<Signal> = (0..10_000).map(|_| pi2.judge_classic(&mut count)).collect();
    let share = |signals: &[Signal], one| signals.iter().filter(|signal| **signal == one).count();
    assert!(share(&signals, Signal::Drop).abs_diff(2_500) <= 1);
    assert_eq!(share(&signals, Signal::Mark), 0);
    let mut count = 0.0;
    let signals: Vec<Signal> = (0..10_000).map(|_| pi2.judge_low(&mut count, Span::ZERO)).collect();
    assert!(share(&signals, Signal::Drop) > 1_900, "{}", share(&signals, Signal::Drop));
    assert!(share(&signals, Signal::Pass) < 100);
    pi2.base = 0.499;
    let mut count = 0.0;
    assert!((0..10_000).all(|_| pi2.judge_classic(&mut count) != Signal::Drop));
    assert!((0..10_000).all(|_| pi2.judge_low(&mut count, Span::ZERO) != Signal::Drop));
}
