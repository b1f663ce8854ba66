use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn times(pattern: Pattern, seed: u64, count: usize) -> Vec<u64> {
    pattern.schedule(100, seed).take(count).map(|due| due.at.nanos()).collect()
}

#[test]
fn constant_rate_has_no_drift() {
    // 1470 octets at 10 Mbit/s: 1.176 ms, exactly; at 7 Mbit/s 1.68 ms exactly.
    let gap = Gap::at_rate(1470, 10_000_000);
    assert_eq!(times(Pattern::Constant(gap), 0, 3), [0, 1_176_000, 2_352_000]);
    // A gap of 1/3 ns more than a whole number: the millionth packet is right to the nanosecond.
    let gap = Gap::at_rate(1, 6_000_000);
    assert_eq!(gap.times(3_000_000), Span::from_nanos(4_000_000_000));
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn poisson_gaps_have_mean_and_deviation_of_an_exponential() {
    let all = times(Pattern::Poisson(Gap::every(Span::from_nanos(MS))), 42, 100_001);
    let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / MS as f64).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    assert!((mean - 1.0).abs() < 0.015, "{mean}");
    assert!((variance - 1.0).abs() < 0.05, "{variance}");
    // P(gap > x) = exp(-x)
    for x in [0.1_f64, 0.5, 1.0, 2.0, 4.0] {
        let above = gaps.iter().filter(|gap| **gap > x).count() as f64 / n;
        assert!((above - (-x).exp()).abs() < 0.01, "{x}: {above}");
    }
}

#[test]
fn a_seed_gives_one_schedule() {
    let pattern = || Pattern::Poisson(Gap::every(Span::from_nanos(MS)));
    assert_eq!(times(pattern(), 5, 100), times(pattern(), 5, 100));
    assert_ne!(times(pattern(), 5, 100), times(pattern(), 6, 100));
}

#[test]
fn on_off_is_silent_while_off() {
    let pattern = Pattern::OnOff {
        gap: Gap::every(Span::from_millis(10)),
        on: Span::from_millis(25),
        off: Span::from_millis(75),
        periods: Periods::Fixed,
    };
    let expected: Vec<u64> = [0, 10, 20, 100, 110, 120, 200].map(|ms| ms * MS).to_vec();
    assert_eq!(times(pattern, 0, 7), expected);
}

#[test]
#[allow(clippy::cast_precision_loss)]
fn random_on_off_is_on_for_its_share() {
    // Mean on 50 ms, off 150 ms, 1 packet a ms while on (and one at the start of each period): the
    // mean rate is (50 + 1/2) / 200 packets a ms.
    let pattern = Pattern::OnOff {
        gap: Gap::every(Span::from_millis(1)),
        on: Span::from_millis(50),
        off: Span::from_millis(150),
        periods: Periods::Exponential,
    };
    let all = times(pattern, 3, 200_000);
    let rate = all.len() as f64 / (all[all.len() - 1] as f64 / MS as f64);
    assert!((rate - 0.2525).abs() < 0.01, "{rate}");
}

#[test]
fn periods_of_no_length_end_the_flow() {
    let gap = Gap::every(Span::from_millis(1));
    let pattern = Pattern::OnOff { gap, on: Span::ZERO, off: Span::ZERO, periods: Periods::Fixed };
    assert_eq!(times(pattern, 0, 5), []);
}

#[test]
fn a_trace_is_played_as_written() {
    let dues = trace("# time size\n0 100\n\n5 200\n5 18\n".as_bytes(), 18, 1000).unwrap();
    let sizes: Vec<_> = Pattern::Trace(dues).schedule(1, 0).map(|due| (due.at.nanos(), due.size)).collect();
    assert_eq!(sizes, [(0, 100), (5, 200), (5, 18)]);
}

#[test]
fn a_bad_trace_names_its_line() {
    let says = |text: &str| trace(text.as_bytes(), 18, 1000).unwrap_err().to_string();
    assert!(says("0 100\n5\n").starts_with("line 2: `5` is not"), "{}", says("0 100\n5\n"));
    assert!(says("0 17\n").contains("from 18 to 1000"));
    assert!(says("-1 100\n").starts_with("line 1"));
    assert!(says("1 100 7\n").starts_with("line 1"));
    assert_eq!(says("5 100\n4 100\n"), "line 2: its time is before that of the line above");
    assert_eq!(says("# nothing\n"), "no packets in it");
    assert!(trace(&b"0 \xff\n"[..], 18, 1000).unwrap_err().to_string().starts_with("line 1"));
}

proptest! {
    #[test]
    fn any_trace_is_read_or_refused(octets: Vec<u8>) {
        let _ = trace(&octets[..], 18, 1000);
    }

    #[test]
    fn times_never_decrease(seed: u64, nanos in 1_u64..10 * MS, on in 0..100 * MS, off in 0..100 * MS, which in 0..4) {
        let gap = Gap::every(Span::from_nanos(nanos));
        let (on, off) = (Span::from_nanos(on), Span::from_nanos(off));
        let pattern = match which {
            0 => Pattern::Constant(gap),
            1 => Pattern::Poisson(gap),
            2 => Pattern::OnOff { gap, on, off, periods: Periods::Fixed },
            _ => Pattern::OnOff { gap, on, off, periods: Periods::Exponential },
        };
        prop_assert!(times(pattern, seed, 300).is_sorted());
    }
}
