//! TCP: accepts the first connection and reads it in chunks until its end.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;

use airloom_engine::time::Instant;

use super::{LOOK, Timeouts};
use crate::clock;
use crate::net;
use crate::options::Receive;
use crate::record::Record;
use crate::summary::{Ended, Failure, Summary};

/// Maximum number of octets per read.
const CHUNK: usize = 128 << 10;

pub(super) fn run(options: &Receive, summary: &mut Summary) -> Result<(), Failure> {
    let at = options.at;
    let listener = net::tcp_at(at).map_err(Failure::begin(format!("cannot receive at TCP {at}")))?;
    listener.set_nonblocking(true).map_err(Failure::begin("cannot wait for a connection"))?;
    let mut writer = super::writer(options, false)?;
    eprintln!("airloom-traffic: receiving at TCP {at}");
    let mut timeouts = Timeouts::new(options);
    let connection = loop {
        match listener.accept() {
            Ok((stream, _)) => break Some(stream),
            Err(error) if is_retryable(error.kind()) => {}
            Err(cause) => return Err(Failure::Socket { what: format!("waiting at TCP {at}"), cause }),
        }
        let now = clock::now();
        if let Some(ended) = timeouts.over(now) {
            summary.ended_by = ended;
            break None;
        }
        net::ready(&listener, false, timeouts.until().since(now))
            .map_err(Failure::socket(format!("waiting at TCP {at}")))?;
    };
    drop(listener);
    let outcome = match connection {
        Some(stream) => read_all(stream, &mut timeouts, summary, |record| match record {
            Some(record) => writer.push(record),
            None => writer.flush(),
        }),
        None => Ok(()),
    };
    let announced = (summary.ended_by == Ended::Done && outcome.is_ok()).then_some(summary.octets);
    summary.announced = announced;
    let recorded = writer.finish(announced, clock::now(), 0);
    outcome?;
    recorded.map_err(Failure::Record)?;
    if summary.packets == 0 && summary.ended_by != Ended::Done { Err(Failure::Nothing) } else { Ok(()) }
}

/// Reads to the end; passes every chunk's record to `note`, and `None` when no data are available.
fn read_all(
    mut stream: TcpStream,
    timeouts: &mut Timeouts,
    summary: &mut Summary,
    mut note: impl FnMut(Option<&Record>),
) -> Result<(), Failure> {
    let failed = || Failure::socket("reading from the connection");
    stream.set_nonblocking(true).map_err(failed())?;
    timeouts.arrived(clock::now());
    let mut chunk = vec![0; CHUNK];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => {
                summary.ended_by = Ended::Done;
                return Ok(());
            }
            Ok(count) => {
                let now = clock::now();
                #[allow(clippy::cast_possible_truncation)] // not more than a chunk
                let size = count as u32;
                let record =
                    Record { sequence: summary.octets, first: Instant::ZERO, second: now, size, flags: 0 };
                note(Some(&record));
                summary.add(now, size);
                timeouts.arrived(now);
            }
            Err(error) if is_retryable(error.kind()) => {
                if !net::ready(&stream, false, LOOK).map_err(failed())? {
                    note(None);
                }
            }
            Err(error) => return Err(failed()(error)),
        }
        if let Some(ended) = timeouts.over(clock::now()) {
            summary.ended_by = ended;
            return Ok(());
        }
    }
}

fn is_retryable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
