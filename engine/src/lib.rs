//! The engine of Airloom: links, queues, switches and media as pure logic.
//!
//! Time is an argument in integer nanoseconds, never read from the machine; there is no I/O, no
//! thread and no `unsafe`. Whoever drives the engine offers frames at ports, asks when the next
//! event is due, and lets time pass; each frame meets exactly one fate.

#![forbid(unsafe_code)]

pub mod calendar;
pub mod frame;
pub mod random;
pub mod settings;
pub mod time;
