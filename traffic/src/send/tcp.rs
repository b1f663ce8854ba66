//! TCP: scheduled writes; a write that the socket does not accept whole is completed when it can.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use airloom_engine::time::{Instant, Span};

use super::Window;
use crate::clock::{self, Alarm};
use crate::net::{self, family};
use crate::options::Send;
use crate::pacing::Pacing;
use crate::pattern::Pattern;
use crate::record::{CUT, Record};
use crate::stop;
use crate::summary::{Ended, Failure, Summary};

/// Interval at which a blocked write checks whether it should end.
const LOOK: Span = Span::from_millis(50);

/// Maximum time for the receiver to close its end after the last octet.
const CLOSE: Span = Span::from_secs(10);

pub(super) fn run(options: &Send, summary: &mut Summary) -> Result<(), Failure> {
    let to = options.to;
    let mut stream = connect(options)?;
    let cannot = || Failure::begin(format!("cannot prepare the connection to {to}"));
    if options.class != 0 {
        net::set_class(&stream, family(to.ip()), options.class).map_err(cannot())?;
    }
    if let Some(name) = &options.congestion {
        net::set_congestion(&stream, name)
            .map_err(Failure::begin(format!("the kernel has no congestion control `{name}`")))?;
    }
    stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true)).map_err(cannot())?;
    let window = Window::open(options);
    let mut writer = super::writer(options, window)?;
    let mut pacing = Pacing::default();
    let outcome = send_all(options, window, &mut stream, summary, |record, scheduled| {
        writer.push(record);
        pacing.add(record.second.since(scheduled));
    });
    let outcome = outcome.and_then(|()| close(&mut stream));
    summary.pacing = pacing.summary();
    summary.retransmits = net::retransmits(&stream);
    let recorded = writer.finish(Some(summary.octets), clock::now(), 0);
    let outcome = outcome.map_err(Failure::socket(format!("connection to {to}")));
    outcome.and(recorded.map_err(Failure::Record))
}

fn connect(options: &Send) -> Result<TcpStream, Failure> {
    let within = std::time::Duration::from_nanos(options.connect_within.nanos().max(1));
    TcpStream::connect_timeout(&options.to, within).map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::TimedOut => Failure::Absent(options.to.to_string()),
        _ => Failure::Begin { what: format!("cannot connect to {}", options.to), cause: error },
    })
}

fn send_all(
    options: &Send,
    window: Window,
    stream: &mut TcpStream,
    summary: &mut Summary,
    mut wrote: impl FnMut(&Record, Instant),
) -> io::Result<()> {
    let Window { start, end } = window;
    let flood = matches!(options.pattern, Pattern::Flood);
    let schedule = options
        .pattern
        .clone()
        .schedule(options.size, options.seed)
        .take_while(|due| due.at < options.duration)
        .take(usize::try_from(options.count).unwrap_or(usize::MAX));
    let zeros = vec![0; 256 << 10];
    let mut alarm = Alarm::new(options.spin);
    for due in schedule {
        if !alarm.wait_until(start + due.at) {
            summary.ended_by = Ended::Signal;
            return Ok(());
        }
        let begun = clock::now();
        if begun >= end {
            summary.ended_by = if flood { Ended::Done } else { Ended::Overrun };
            return Ok(());
        }
        let (size, outcome) = write(stream, &zeros, due.size, end);
        if size > 0 {
            let scheduled = if flood { begun } else { start + due.at };
            let flags = if size < due.size { CUT } else { 0 };
            let record = Record { sequence: summary.octets, first: scheduled, second: begun, size, flags };
            wrote(&record, scheduled);
            summary.add(begun, size);
        }
        match outcome? {
            Written::Whole => {}
            Written::Cut if stop::asked() => {
                summary.ended_by = Ended::Signal;
                return Ok(());
            }
            Written::Cut => {
                summary.ended_by = if flood { Ended::Done } else { Ended::Overrun };
                return Ok(());
            }
        }
    }
    Ok(())
}

enum Written {
    Whole,
    Cut,
}

/// Writes `size` octets unless the time or the program ends before; returns how many it wrote.
fn write(stream: &mut TcpStream, zeros: &[u8], size: u32, end: Instant) -> (u32, io::Result<Written>) {
    let mut written = 0_u32;
    while written < size {
        let left = ((size - written) as usize).min(zeros.len());
        match stream.write(&zeros[..left]) {
            #[allow(clippy::cast_possible_truncation)] // not more than `left`
            Ok(count) => written += count as u32,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let now = clock::now();
                if now >= end || stop::asked() {
                    return (written, Ok(Written::Cut));
                }
                let wait = end.since(now).min(LOOK);
                if let Err(error) = net::ready(stream, true, wait) {
                    return (written, Err(error));
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                if stop::asked() {
                    return (written, Ok(Written::Cut));
                }
            }
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(Written::Whole))
}

/// Shuts down writing, and waits until the receiver has read everything and closed the connection.
fn close(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let until = clock::now() + CLOSE;
    let mut nothing = [0; 64];
    loop {
        match stream.read(&mut nothing) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                net::ready(stream, false, LOOK)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if clock::now() >= until {
            return Err(io::Error::new(ErrorKind::TimedOut, "the receiver did not close within 10 s"));
        }
    }
}
