//! UDP and RTP: reads all available packets per system call, each with the kernel's arrival time.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;

use airloom_engine::time::{Instant, Span};

use super::gather::Gathering;
use super::{LOOK, Timeouts};
use crate::clock::{self, Offset};
use crate::net;
use crate::net::batch::{Arrived, Incoming, RECEIVE};
use crate::options::Receive;
use crate::packet::{Header, Kind, Unwrap, behind_rtp};
use crate::record::{CLASS_SHIFT, Protocol, Record, USER_STAMP, Writer};
use crate::stages::Stage;
use crate::summary::{Ended, Failure, Summary};

/// Maximum time to read the remaining packets of the socket at the end.
const DRAIN: Span = Span::from_millis(200);

/// State of the flow so far.
struct Flow {
    rtp: bool,
    kernel_stamps: bool,
    number: Option<u16>,
    unwrap: Unwrap,
    announced: Option<u64>,
    foreign: u64,
}

pub(super) fn run(options: &Receive, summary: &mut Summary) -> Result<(), Failure> {
    let at = options.at;
    let socket =
        net::udp_at(at, options.buffer).map_err(Failure::begin(format!("cannot receive at UDP {at}")))?;
    let mut writer = super::writer(options, !options.user_stamps)?;
    eprintln!("airloom-traffic: receiving at UDP {at}");
    let mut flow = Flow {
        rtp: options.common.protocol == Protocol::Rtp,
        kernel_stamps: !options.user_stamps,
        number: options.common.flow,
        unwrap: Unwrap::default(),
        announced: None,
        foreign: 0,
    };
    let mut incoming = Incoming::default();
    let mut timeouts = Timeouts::new(options);
    // With `--stages` the program must read each packet at once, because it records that time.
    let mut gathering = (flow.kernel_stamps && !options.common.stages).then(|| {
        Gathering::new(net::receive_buffer(&socket), Span::from_nanos(options.idle.nanos() / 4), clock::now())
    });
    // Offset of the clocks when the socket was empty: packets read now arrived later.
    let mut then = Offset::measure();
    let mut closing = None;
    let outcome = loop {
        let count = match incoming.receive(&socket) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(cause) => break Err(Failure::Socket { what: format!("receiving at UDP {at}"), cause }),
        };
        let (now, emptied) = (clock::now(), count < RECEIVE);
        if count > 0 {
            let offset = Offset::measure();
            let steady = Some(offset).filter(|offset| offset.agrees(then));
            if emptied {
                then = offset;
            }
            for index in 0..count {
                let arrived = incoming.packet(index);
                match flow.read(&arrived, now, steady) {
                    Some(record) => {
                        writer.push(&record);
                        if options.common.stages {
                            writer.passed(Stage::Read, record.sequence, now);
                        }
                        summary.add(record.second, record.size);
                        timeouts.arrived(now);
                    }
                    None if flow.announced.is_some() && !timeouts.ending => {
                        timeouts.ending = true;
                        timeouts.arrived(now);
                        gathering = None;
                    }
                    None => {}
                }
            }
        }
        match closing {
            None => {
                if let Some(ended) = timeouts.over(now) {
                    // Packets that have already arrived are still read, for a limited time.
                    summary.ended_by = ended;
                    closing = Some(now + DRAIN);
                }
            }
            Some(until) if count == 0 || now >= until => break Ok(()),
            Some(_) => {}
        }
        let pause = gathering.as_mut().and_then(|gathering| {
            gathering.took(count);
            if emptied { gathering.pause(now) } else { None }
        });
        match pause {
            _ if closing.is_some() || !emptied => {}
            Some(pause) => clock::sleep_until(now + pause),
            None => {
                if let Err(cause) = wait(&socket, &timeouts, now, &mut writer) {
                    break Err(Failure::Socket { what: format!("waiting at UDP {at}"), cause });
                }
            }
        }
    };
    summary.flow = flow.number;
    summary.announced = flow.announced;
    summary.foreign = Some(flow.foreign);
    let drops = net::dropped(&socket);
    summary.socket_drops = Some(drops);
    let recorded = writer.finish(flow.announced, clock::now(), drops);
    outcome?;
    recorded.map_err(Failure::Record)?;
    if summary.packets == 0 && summary.ended_by != Ended::Done { Err(Failure::Nothing) } else { Ok(()) }
}

/// Waits for a packet, and writes out the records if none arrives for a moment.
fn wait(socket: &UdpSocket, timeouts: &Timeouts, now: Instant, writer: &mut Writer<File>) -> io::Result<()> {
    let left = timeouts.until().since(now);
    if !net::ready(socket, false, LOOK.min(left))? {
        writer.flush();
        net::ready(socket, false, left.saturating_sub(LOOK))?;
    }
    Ok(())
}

impl Flow {
    /// The record of a data packet of this flow, read at `now`; without an `offset` its
    /// stamp cannot be converted.
    fn read(&mut self, arrived: &Arrived<'_>, now: Instant, offset: Option<Offset>) -> Option<Record> {
        let payload = if self.rtp { behind_rtp(arrived.octets) } else { Some(arrived.octets) };
        let header = payload
            .and_then(Header::read)
            .filter(|header| *self.number.get_or_insert(header.flow) == header.flow);
        let Some(header) = header else {
            self.foreign += 1;
            return None;
        };
        let sequence = self.unwrap.next(header.sequence);
        if header.kind == Kind::End {
            self.announced = Some(sequence);
            return None;
        }
        let stamp = arrived.stamp.filter(|_| self.kernel_stamps);
        let stamped = stamp.and_then(|real| offset?.to_monotonic(real, now));
        let mut flags = u32::from(arrived.class) << CLASS_SHIFT;
        if self.kernel_stamps && stamped.is_none() {
            flags |= USER_STAMP;
        }
        Some(Record {
            sequence,
            first: Instant::from_nanos(header.sent),
            second: stamped.unwrap_or(now),
            size: arrived.length,
            flags,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::HEADER;

    fn flow() -> Flow {
        Flow {
            rtp: false,
            kernel_stamps: true,
            number: None,
            unwrap: Unwrap::default(),
            announced: None,
            foreign: 0,
        }
    }

    fn packet(kind: Kind, flow: u16, sequence: u32) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        Header { kind, flow, sequence, sent: 5 }.write(&mut octets);
        octets
    }

    #[test]
    fn the_first_flow_is_taken_and_others_are_foreign() {
        let mut flow = flow();
        let now = Instant::from_nanos(1_000);
        let offset = Some(Offset { nanos: 100, error: 0 });
        let mut read =
            |octets: &[u8], stamp| flow.read(&Arrived { octets, length: 90, stamp, class: 3 }, now, offset);
        let first = read(&packet(Kind::Data, 7, 4), Some(1_050)).unwrap();
        assert_eq!((first.sequence, first.size, first.flags), (4, 90, 3 << CLASS_SHIFT));
        assert_eq!((first.first.nanos(), first.second.nanos()), (5, 950));
        assert!(read(&packet(Kind::Data, 8, 4), Some(1_050)).is_none());
        assert!(read(b"nothing of ours", None).is_none());
        let unstamped = read(&packet(Kind::Data, 7, 5), None).unwrap();
        assert_eq!((unstamped.second, unstamped.flags), (now, 3 << CLASS_SHIFT | USER_STAMP));
        assert!(read(&packet(Kind::End, 7, 9), None).is_none());
        assert_eq!((flow.number, flow.foreign, flow.announced), (Some(7), 2, Some(9)));
    }
}
