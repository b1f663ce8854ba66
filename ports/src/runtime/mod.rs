//! The loop that drives an engine by the wall clock, and the modules that keep it on time.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`driver`] | the loop and its thread |
//! | `poller`, `timer` | waiting for frames and for time |
//! | [`wall_clock`] | the clock that the engine follows |
//! | `spin_policy` | when to sleep and when to spin |
//! | `coalescing` | fewer wakes for dense streams of frames |
//! | `host_load` | whether the loop is busy, so that the engine hands over more segments at once |
//! | `priority`, `affinity`, `pm_qos` | the thread's scheduling class, its processor, processor sleep states |
//! | [`idle_poll`], `idle_time` | threads that keep idle processors from halting; how idle each is |
//! | `periodic`, `signals` | threads that act once in each period; signals of the process |
//! | `background` | system calls that may block, on another thread |
//! | [`lateness`], [`status`] | how late frames and wakes were; the loop's own account |

mod affinity;
pub mod background;
mod coalescing;
pub mod driver;
mod host_load;
pub mod idle_poll;
mod idle_time;
pub mod lateness;
mod periodic;
mod pm_qos;
pub(crate) mod poller;
pub mod priority;
mod signals;
mod spin_policy;
pub mod status;
mod timer;
pub mod wall_clock;
