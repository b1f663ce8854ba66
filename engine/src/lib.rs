//! The engine of Airloom: links, queues, switches and radio media as pure logic.
//!
//! Time is an argument in integer nanoseconds, never read from the machine; there is no I/O, no
//! thread and no `unsafe`. The caller offers frames at ports, queries the time of the next event,
//! and advances time. Each frame is delivered, dropped for a named reason, or lost by the host; the
//! [`Ledger`] counts the outcomes. The same calls produce the same bits on every machine.
//!
//! | module | content |
//! | --- | --- |
//! | [`engine`] | the engine: ports, links and switches are added, frames offered, time advanced |
//! | [`egress`] | the interface through which frames leave, and the optional wall clock |
//! | [`settings`] | settings of links, queues and switches, with their ranges |
//! | [`ledger`], [`drop_reason`] | counters of every frame's outcome |
//! | [`frame`] | frames, super-frames and the pool of buffers that holds their octets |
//! | `link` | queue, serializer, impairments, pacing, frames in flight |
//! | `switch` | learning switches, hubs, VLANs, shortcuts through rows of switches |
//! | [`medium`] | IEEE 802.11 radios: propagation, reception, MAC, mobility |
//! | [`time`], [`calendar`], [`random`] | nanoseconds, the order of events, random streams |
//!
//! # Example
//!
//! Two ports, joined by a link of 100 Mbit/s with a delay of 1 ms:
//!
//! ```
//! use airloom_engine::frame::{Frame, Pool};
//! use airloom_engine::settings::{LinkSettings, Rate};
//! use airloom_engine::time::Instant;
//! use airloom_engine::{Delivery, Egress, End, Engine, PortId};
//!
//! /// Notes when frames arrive.
//! struct Sink(Vec<Instant>);
//!
//! impl Egress for Sink {
//!     fn deliver(&mut self, _: PortId, at: Instant, _: &Frame, _: &Pool) -> Delivery {
//!         self.0.push(at);
//!         Delivery::Taken
//!     }
//! }
//!
//! let mut engine = Engine::new(1);
//! let a = engine.add_port("a", false)?;
//! let b = engine.add_port("b", false)?;
//! let link = LinkSettings {
//!     rate: Rate::BitsPerSecond(100_000_000),
//!     delay_ns: 1_000_000,
//!     ..LinkSettings::default()
//! };
//! engine.connect("a-b", End::Port(a), End::Port(b), &link, &link)?;
//!
//! let octets = [0xff; 60];
//! let buffer = engine.pool().take(octets.len());
//! engine.pool().octets_mut(buffer)[..octets.len()].copy_from_slice(&octets);
//! engine.offer(a, Instant::ZERO, Frame::new(buffer, 60, None, None));
//!
//! let mut sink = Sink(Vec::new());
//! engine.advance(Instant::NEVER, &mut sink);
//!
//! // 60 octets and 24 of overhead take 6.72 us at 100 Mbit/s, then comes the delay.
//! assert_eq!(sink.0, [Instant::from_nanos(6_720 + 1_000_000)]);
//! assert_eq!(engine.ledger().delivered.frames, 1);
//! assert_eq!(engine.ledger().in_flight().frames, 0);
//! # Ok::<(), airloom_engine::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod calendar;
mod check;
mod deadline;
pub mod drop_reason;
pub mod egress;
pub mod element;
pub mod engine;
pub mod error;
pub mod frame;
pub mod ledger;
mod link;
mod math;
pub mod medium;
pub mod random;
pub mod settings;
mod switch;
pub mod time;

pub use drop_reason::{DropReason, HostLoss};
pub use egress::{Clock, Delivery, Egress};
pub use element::{Direction, End, LinkId, MediumId, Place, PortId, SwitchId};
pub use engine::{Change, Engine};
pub use error::Error;
pub use ledger::{Ledger, Tally};
pub use link::in_flight::MOST_TOGETHER;
pub use link::wire::gather::Gathers;
pub use switch::area::Label;
