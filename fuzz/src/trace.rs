//! Movement traces of other tools: any text.
//!
//! Input: one octet that selects the format, the rest is the text.

use airloom_engine::medium::mobility::traces::{bonnmotion, ns2};
use airloom_engine::time::Instant;

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((format, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let read = match format % 3 {
        0 => ns2(&text),
        1 => bonnmotion(&text, false),
        _ => bonnmotion(&text, true),
    };
    let Ok(paths) = read else { return };
    assert!(!paths.is_empty());
    for airloom_engine::medium::mobility::traces::Traced { path, switched } in paths.values() {
        assert!(switched.is_sorted_by_key(|change| change.0));
        assert!(path.points().is_sorted_by_key(|point| point.0));
        assert!(path.points().iter().all(|point| point.1.is_sane()));
        for seconds in [0, 1, 1_000, u64::MAX / 1_000_000_000] {
            assert!(path.at(Instant::from_nanos(seconds * 1_000_000_000)).is_sane());
        }
    }
}
