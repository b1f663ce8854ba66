//! Movement traces of other tools.

use std::collections::BTreeMap;

use super::path::place_at;
use super::{Path, Position};
use crate::time::Instant;

/// Reason why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that cannot be parsed.
    #[error("line {line}: {what}")]
    Line {
        /// Line of the file, from 1.
        line: usize,
        /// The error, and the expected content.
        what: &'static str,
    },
    /// Times decrease.
    #[error(
        "line {line}: time {time} of node {node} lies before the one that stands before it; sort the trace by time"
    )]
    Backwards {
        /// Line of the file, from 1.
        line: usize,
        /// The node.
        node: u32,
        /// The time.
        time: Instant,
    },
    /// The trace contains no node.
    #[error("the trace moves no node")]
    Empty,
}

type Paths = BTreeMap<u32, Path>;

/// Parses a time in seconds: finite, not negative, below 30 years.
fn time(word: &str) -> Option<Instant> {
    let seconds: f64 = word.parse().ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within range
    (0.0..1e9).contains(&seconds).then(|| Instant::from_nanos((seconds * 1e9).round() as u64))
}

fn metres(word: &str) -> Option<f64> {
    word.parse().ok().filter(|value: &f64| value.abs() < 1e9)
}

/// A node of an ns-2 trace during parsing.
struct Moved {
    points: Vec<(Instant, Position)>,
    /// Time of its last command.
    told: Instant,
}

impl Moved {
    /// Removes points after `at`, so that the last point is the node's position at that time.
    fn cut(&mut self, at: Instant) -> Position {
        let here = place_at(&self.points, at);
        let keep = self.points.partition_point(|(time, _)| *time <= at).max(1);
        self.points.truncate(keep);
        if self.points[self.points.len() - 1] != (at, here) && at > self.points[0].0 {
            self.points.push((at, here));
        }
        here
    }
}

/// Parses an ns-2 movement trace (setdest's output): `$node_(N) set X_ V` and
/// `$ns_ at T "$node_(N) setdest X Y SPEED"`. Comments (`#`) and `$god_` lines are skipped; Z_ is
/// the height. Times of one node must not decrease. Speed 0 stops the node.
///
/// Source: the ns Manual, chapter 16.
///
/// # Errors
/// Names the first invalid line.
pub fn ns2(text: &str) -> Result<Paths, TraceError> {
    const FORM: &str =
        "neither \"$node_(N) set X_ V\" nor \"$ns_ at T \\\"$node_(N) setdest X Y SPEED\\\"\" nor a comment";
    let mut nodes: BTreeMap<u32, Moved> = BTreeMap::new();
    for (index, row) in text.lines().enumerate() {
        let line = index + 1;
        let wrong = |what| TraceError::Line { line, what };
        let row = row.split('#').next().unwrap_or("").trim();
        if row.is_empty() || row.contains("$god_") {
            continue;
        }
        let words: Vec<&str> =
            row.split(|c: char| c.is_whitespace() || c == '"').filter(|w| !w.is_empty()).collect();
        let (at, words) = match words.as_slice() {
            ["$ns_", "at", at, rest @ ..] => {
                (time(at).ok_or_else(|| wrong("the time is not a number of seconds from 0 on"))?, rest)
            }
            rest => (Instant::ZERO, rest),
        };
        let name = words.first().ok_or_else(|| wrong(FORM))?;
        let number = name.strip_prefix("$node_(").and_then(|rest| rest.strip_suffix(')'));
        let node: u32 = number.and_then(|number| number.parse().ok()).ok_or_else(|| wrong(FORM))?;
        let moved = nodes.entry(node).or_insert_with(|| Moved {
            points: vec![(Instant::ZERO, Position::default())],
            told: Instant::ZERO,
        });
        if at < moved.told {
            return Err(TraceError::Backwards { line, node, time: at });
        }
        moved.told = at;
        match &words[1..] {
            ["set", axis, value] => {
                let value = metres(value).ok_or_else(|| wrong("the coordinate is not a number of metres"))?;
                let mut here = moved.cut(at);
                match *axis {
                    "X_" => here.x = value,
                    "Y_" => here.y = value,
                    "Z_" => here.z = value,
                    _ => return Err(wrong("the axis is none of X_, Y_ and Z_")),
                }
                if at == Instant::ZERO {
                    moved.points = vec![(at, here)];
                } else {
                    moved.points.push((at, here));
                }
            }
            ["setdest", x, y, speed] => {
                let number = |word| metres(word).ok_or_else(|| wrong("X, Y and SPEED must be numbers"));
                let (x, y, speed) = (number(x)?, number(y)?, number(speed)?);
                if speed < 0.0 {
                    return Err(wrong("a negative speed"));
                }
                let here = moved.cut(at);
                let there = Position { x, y, ..here };
                let seconds = here.distance(there) / speed;
                if speed > 0.0 && seconds < 1e9 {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 1e18
                    let span = crate::time::Span::from_nanos((seconds * 1e9).round() as u64);
                    moved.points.push((at + span, there));
                }
            }
            _ => return Err(wrong(FORM)),
        }
    }
    let paths: Option<Paths> =
        nodes.into_iter().map(|(node, moved)| Some((node, Path::new(moved.points).ok()?))).collect();
    paths.filter(|paths| !paths.is_empty()).ok_or(TraceError::Empty)
}

/// Parses a `BonnMotion` file: one line for each node, numbered from 0, of `t x y` groups, or of
/// `t x y z` groups if `solid`; times must not decrease. Comments (`#`) and empty lines are
/// skipped.
///
/// Source: BonnMotion 3.0 documentation, chapter 2.
///
/// # Errors
/// Names the first invalid line.
pub fn bonnmotion(text: &str, solid: bool) -> Result<Paths, TraceError> {
    let mut paths = Paths::new();
    let width = if solid { 4 } else { 3 };
    for (index, row) in text.lines().enumerate() {
        let line = index + 1;
        let wrong = |what| TraceError::Line { line, what };
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let node = u32::try_from(paths.len()).unwrap_or(u32::MAX);
        let words: Vec<&str> = row.split_whitespace().collect();
        if words.len() % width != 0 {
            return Err(wrong(if solid {
                "the numbers do not come in groups of four: t x y z"
            } else {
                "the numbers do not come in groups of three: t x y"
            }));
        }
        let mut points: Vec<(Instant, Position)> = Vec::with_capacity(words.len() / width);
        for group in words.chunks(width) {
            let at = time(group[0]).ok_or_else(|| wrong("a time is not a number of seconds from 0 on"))?;
            let coordinate =
                |word: &str| metres(word).ok_or_else(|| wrong("a coordinate is not a number of metres"));
            let z = if solid { coordinate(group[3])? } else { 0.0 };
            if points.last().is_some_and(|last| at < last.0) {
                return Err(TraceError::Backwards { line, node, time: at });
            }
            points.push((at, Position::new(coordinate(group[1])?, coordinate(group[2])?, z)));
        }
        paths.insert(node, Path::new(points).map_err(|_| wrong("a line without places"))?);
    }
    if paths.is_empty() { Err(TraceError::Empty) } else { Ok(paths) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn at(seconds: f64) -> Instant {
        time(&seconds.to_string()).expect("a time")
    }

    #[test]
    fn an_ns2_trace_moves_nodes_as_ns2_does() {
        let text = "# nodes: 2\n$node_(0) set X_ 10.0\n$node_(0) set Y_ 20.0\n$node_(0) set Z_ 0.0\n\
            $node_(1) set X_ 5\n$god_ set-dist 0 1 1\n\
            $ns_ at 2.0 \"$node_(0) setdest 30.0 20.0 10.0\"\n\
            $ns_ at 3.0 \"$node_(0) setdest 20.0 30.0 5.0\"\n\
            $ns_ at 9.0 \"$node_(0) setdest 0.0 0.0 0.0\"\n";
        let paths = ns2(text).expect("a trace");
        let place = |node, seconds| paths[&node].at(at(seconds));
        assert_eq!(place(0, 1.0), Position::new(10.0, 20.0, 0.0));
        assert_eq!(place(0, 2.5), Position::new(15.0, 20.0, 0.0));
        assert_eq!(place(0, 3.0), Position::new(20.0, 20.0, 0.0), "turned on the way");
        assert_eq!(place(0, 4.0), Position::new(20.0, 25.0, 0.0));
        assert_eq!(place(0, 20.0), Position::new(20.0, 30.0, 0.0));
        assert_eq!(place(1, 20.0), Position::new(5.0, 0.0, 0.0));
        assert!((paths[&0].fastest() - 10.0).abs() < 1e-6);
    }

    #[test]
    fn faults_of_ns2_traces_are_named_with_their_line() {
        let fault = |text| ns2(text).expect_err("a fault").to_string();
        assert!(
            fault("$ns_ at 2 \"$node_(0) setdest 1 1 1\"\n$ns_ at 1 \"$node_(0) setdest 1 1 1\"")
                .starts_with("line 2")
        );
        assert!(fault("$ns_ at x \"$node_(0) setdest 1 1 1\"").contains("time"));
        assert!(fault("$node_(0) set W_ 1").contains("axis"));
        assert!(fault("$node_(0) setdest 1 1 -1").contains("negative"));
        assert!(fault("$node_(a) set X_ 1").starts_with("line 1"));
        assert!(fault("$node_(0) set X_ NaN").contains("metres"));
        assert_eq!(ns2("# nothing"), Err(TraceError::Empty));
    }

    #[test]
    fn a_bonnmotion_file_is_one_line_a_node() {
        let paths = bonnmotion("0.0 0 0 10.0 100 0\n\n0 5 5 4 5 9 8 5 9\n", false).expect("a trace");
        assert_eq!(paths[&0].at(at(2.5)), Position::new(25.0, 0.0, 0.0));
        assert_eq!(paths[&1].at(at(2.0)), Position::new(5.0, 7.0, 0.0));
        let solid = bonnmotion("0 0 0 1 10 0 0 2", true).expect("a trace");
        assert_eq!(solid[&0].at(at(5.0)), Position::new(0.0, 0.0, 1.5));
        assert!(matches!(
            bonnmotion("1 0 0 0 1 1", false),
            Err(TraceError::Backwards { line: 1, node: 0, .. })
        ));
        assert!(matches!(bonnmotion("1 0", false), Err(TraceError::Line { line: 1, .. })));
        assert!(matches!(bonnmotion("1 0 inf", false), Err(TraceError::Line { line: 1, .. })));
        assert_eq!(bonnmotion("", false), Err(TraceError::Empty));
    }

    #[test]
    fn no_text_brings_the_readers_down() {
        // Parts of real traces, cut and mixed.
        let pieces = [
            "$node_(0) set X_ ",
            "$ns_ at ",
            "\"",
            "setdest ",
            "1e308 ",
            "-1 ",
            "NaN ",
            "0 ",
            "\n",
            "#",
            ")",
            "($node_(",
            "$node_(4294967296)",
            "9e18 ",
            "$god_",
            "é",
            " ",
            "12.5 ",
        ];
        let mut random = Stream::named(1, "texts");
        for _ in 0..20_000 {
            let text: String = (0..random.below(12))
                .map(|_| pieces[usize::try_from(random.below(pieces.len() as u64)).expect("small")])
                .collect();
            let _ = ns2(&text);
            let _ = bonnmotion(&text, false);
            let _ = bonnmotion(&text, true);
        }
    }
}
