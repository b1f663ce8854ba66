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

/// Movement of one node of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// Its way.
    pub path: Path,
    /// Times at which its radios turn on (true) or off, ascending; on from the start if empty.
    pub switched: Vec<(Instant, bool)>,
}

type Paths = BTreeMap<u32, Traced>;

/// Highest speed in m/s of a trace: converters place a node by a leg of 10^9 m/s.
const FASTEST: f64 = 1e15;

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
    switched: Vec<(Instant, bool)>,
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

    fn carry_out(&mut self, at: Instant, command: Command) {
        match command {
            Command::Place(axis, value) => {
                let mut here = self.cut(at);
                match axis {
                    Axis::X => here.x = value,
                    Axis::Y => here.y = value,
                    Axis::Z => here.z = value,
                }
                if at == Instant::ZERO {
                    self.points = vec![(at, here)];
                } else {
                    self.points.push((at, here));
                }
            }
            Command::Go { x, y, speed } => {
                let here = self.cut(at);
                let there = Position { x, y, ..here };
                let seconds = here.distance(there) / speed;
                if speed > 0.0 && seconds < 1e9 {
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 1e18
                    let span = crate::time::Span::from_nanos((seconds * 1e9).round() as u64);
                    self.points.push((at + span, there));
                }
            }
            Command::Switch(on) => self.switched.push((at, on)),
            Command::Nothing => {}
        }
    }
}

#[derive(Clone, Copy)]
enum Axis {
    X,
    Y,
    Z,
}

/// What a command does to a node.
#[derive(Clone, Copy)]
enum Command {
    Place(Axis, f64),
    Go {
        x: f64,
        y: f64,
        speed: f64,
    },
    Switch(bool),
    /// Of the simulator, and not of the movement.
    Nothing,
}

const FORM: &str = "neither \"$node_(N) set X_ V\" nor \"$ns_ at T \\\"$node_(N) setdest X Y SPEED\\\"\" nor \
                    \"... switch ON\" or \"OFF\" nor a comment";

/// Parses what stands behind the name of a node.
fn command(words: &[&str]) -> Result<Command, &'static str> {
    match words {
        ["set", axis, value] => {
            let value = metres(value).ok_or("the coordinate is not a number of metres")?;
            match *axis {
                "X_" => Ok(Command::Place(Axis::X, value)),
                "Y_" => Ok(Command::Place(Axis::Y, value)),
                "Z_" => Ok(Command::Place(Axis::Z, value)),
                _ => Err("the axis is none of X_, Y_ and Z_"),
            }
        }
        ["setdest", x, y, speed] => {
            let number = |word| metres(word).ok_or("X, Y and SPEED must be numbers");
            let (x, y) = (number(x)?, number(y)?);
            let speed: f64 = speed
                .parse()
                .ok()
                .filter(|speed| *speed <= FASTEST)
                .ok_or("X, Y and SPEED must be numbers")?;
            if speed < 0.0 { Err("a negative speed") } else { Ok(Command::Go { x, y, speed }) }
        }
        ["switch", state] if state.eq_ignore_ascii_case("on") => Ok(Command::Switch(true)),
        ["switch", state] if state.eq_ignore_ascii_case("off") => Ok(Command::Switch(false)),
        ["random-motion", "1"] => {
            Err("ns-2 itself draws the motion of this node: there is nothing to follow")
        }
        ["start" | "stop" | "reset" | "random-motion" | "log-movement" | "label" | "color" | "shape", ..] => {
            Ok(Command::Nothing)
        }
        _ => Err(FORM),
    }
}

/// True for commands of the simulator that move no node.
fn is_of_the_simulator(words: &[&str]) -> bool {
    match words {
        [] | ["set" | "puts" | "stop" | "finish" | "}", ..] => true,
        [name, rest @ ..] => {
            name.starts_with("$god")
                || name.starts_with("$topo")
                || (name.starts_with("$ns") && matches!(rest, ["initial_node_pos" | "halt" | "run", ..]))
        }
    }
}

/// The number in `$node_(N)`, whatever the name of the variable.
fn node_of(word: &str) -> Option<u32> {
    let (name, rest) = word.strip_prefix('$')?.split_once('(')?;
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    rest.strip_suffix(')').filter(|_| plain)?.parse().ok()
}

/// Parses an ns-2 movement trace, as setdest and the converters of `BonnMotion`, SUMO and others write
/// it: `$node_(N) set X_ V`, `$ns_ at T "$node_(N) setdest X Y SPEED"` and `switch ON` or `OFF`, which
/// turn a node's radios on or off. The variables' names do not matter (`$ns`, `$node(N)`); quotes may
/// be braces; comments and commands of the simulator (`$god_`, `reset`, `puts`, ...) are skipped. Z_ is
/// the height. As in ns-2, the times of the commands and not their order decide; speed 0 stops the
/// node, and it rests at its last place.
///
/// Source: the ns Manual, chapter 16.
///
/// # Errors
/// Names the first invalid line.
pub fn ns2(text: &str) -> Result<Paths, TraceError> {
    let mut commands: Vec<(Instant, u32, Command)> = Vec::new();
    for (index, row) in text.lines().enumerate() {
        let line = index + 1;
        let wrong = |what| TraceError::Line { line, what };
        for part in row.split('#').next().unwrap_or("").split(';') {
            let words: Vec<&str> = part
                .split(|c: char| c.is_whitespace() || matches!(c, '"' | '{' | '}'))
                .filter(|word| !word.is_empty())
                .collect();
            let (at, words) = match words.as_slice() {
                [timer, "at", at, rest @ ..] if timer.starts_with("$ns") => {
                    (time(at).ok_or_else(|| wrong("the time is not a number of seconds from 0 on"))?, rest)
                }
                rest => (Instant::ZERO, rest),
            };
            if is_of_the_simulator(words) {
                continue;
            }
            let node = node_of(words[0]).ok_or_else(|| wrong(FORM))?;
            commands.push((at, node, command(&words[1..]).map_err(wrong)?));
        }
    }
    commands.sort_by_key(|(at, ..)| *at);
    let mut nodes: BTreeMap<u32, Moved> = BTreeMap::new();
    for (at, node, command) in commands {
        nodes
            .entry(node)
            .or_insert_with(|| Moved {
                points: vec![(Instant::ZERO, Position::default())],
                switched: Vec::new(),
            })
            .carry_out(at, command);
    }
    let paths: Option<Paths> = nodes
        .into_iter()
        .map(|(node, moved)| {
            Some((node, Traced { path: Path::new(moved.points).ok()?, switched: moved.switched }))
        })
        .collect();
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
        let path = Path::new(points).map_err(|_| wrong("a line without places"))?;
        paths.insert(node, Traced { path, switched: Vec::new() });
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
        let place = |node, seconds| paths[&node].path.at(at(seconds));
        assert_eq!(place(0, 1.0), Position::new(10.0, 20.0, 0.0));
        assert_eq!(place(0, 2.5), Position::new(15.0, 20.0, 0.0));
        assert_eq!(place(0, 3.0), Position::new(20.0, 20.0, 0.0), "turned on the way");
        assert_eq!(place(0, 4.0), Position::new(20.0, 25.0, 0.0));
        assert_eq!(place(0, 20.0), Position::new(20.0, 30.0, 0.0));
        assert_eq!(place(1, 20.0), Position::new(5.0, 0.0, 0.0));
        assert!((paths[&0].path.fastest() - 10.0).abs() < 1e-6);
    }

    #[test]
    fn converters_switch_nodes_on_and_off_and_place_them_at_any_speed() {
        let text = "set val(nn) 1\n$ns_ at 0.0 \"$node_(0) switch OFF\" ;# set_X,Y,Z\n\
            $node_(0) set X_ 5.0e0; $node_(0) set Y_ 1.0E+01\n\
            $ns_ at 1.0 \"$node_(0) setdest 100.0 50.0 1000000000.000000\" ;# start of the trip\n\
            $ns_ at 1.01 \"$node_(0) switch on\"\n$ns_ at 90 \"$node_(0) reset\";\n\
            $ns_ at 9.5 \"$node_(0) switch OFF\"\n$ns_ at 99.0 \"puts \\\"the end\\\" ; $ns_ halt\"\n";
        let paths = ns2(text).expect("a trace");
        assert_eq!(paths.len(), 1);
        let node = &paths[&0];
        assert_eq!(node.path.at(at(0.5)), Position::new(5.0, 10.0, 0.0));
        assert_eq!(node.path.at(at(1.01)), Position::new(100.0, 50.0, 0.0));
        assert_eq!(node.switched, [(at(0.0), false), (at(1.01), true), (at(9.5), false)]);
    }

    #[test]
    fn variables_have_any_name_and_times_any_order() {
        let text = "$ns at 4.0 {$n(2) setdest 0.0 0.0 1.0}\n$ns at 2.0 {$n(2) setdest 30.0 0.0 10.0}\n\
            $n(2) set X_ 10\n$ns initial_node_pos $n(2) 20\n";
        let paths = ns2(text).expect("a trace");
        let place = |seconds| paths[&2].path.at(at(seconds)).x;
        assert!((place(1.0) - 10.0).abs() < 1e-9);
        assert!((place(3.0) - 20.0).abs() < 1e-9);
        assert!((place(4.0) - 30.0).abs() < 1e-9);
        assert!((place(14.0) - 20.0).abs() < 1e-9);
        assert!(place(1000.0).abs() < 1e-9, "it rests at its last place");
    }

    #[test]
    fn faults_of_ns2_traces_are_named_with_their_line() {
        let fault = |text| ns2(text).expect_err("a fault").to_string();
        assert!(fault("$ns_ at 1 \"$node_(0) setdest 1 1 1\"\n$node_(0) random-motion 1").contains("line 2"));
        assert!(fault("$node_(0) set X_ 1\n$node_(0) fly").starts_with("line 2"));
        assert!(fault("for {set i 0} {$i < 5} {incr i} {").starts_with("line 1"));
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
        assert_eq!(paths[&0].path.at(at(2.5)), Position::new(25.0, 0.0, 0.0));
        assert_eq!(paths[&1].path.at(at(2.0)), Position::new(5.0, 7.0, 0.0));
        let solid = bonnmotion("0 0 0 1 10 0 0 2", true).expect("a trace");
        assert_eq!(solid[&0].path.at(at(5.0)), Position::new(0.0, 0.0, 1.5));
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
            "switch OFF",
            ";",
            "$n(1) ",
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
