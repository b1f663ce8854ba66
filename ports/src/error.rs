//! Errors of ports, captures and the driver, each with a stable code.

use std::io;
use std::path::PathBuf;

/// An error of a port, a capture or the driver.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The descriptor is not a TAP that the engine can use.
    #[error("descriptor {fd} is not a usable TAP: {why}")]
    TapDescriptor {
        /// The descriptor.
        fd: i32,
        /// The reason.
        why: String,
    },
    /// The descriptor is not a socket to which a guest can connect.
    #[error("descriptor {fd} cannot be a guest's socket: {why}")]
    VhostSocket {
        /// The descriptor.
        fd: i32,
        /// The reason.
        why: String,
    },
    /// A real interface cannot be attached.
    #[error("cannot attach to interface {name}: {what}: {source}")]
    Interface {
        /// Name of the interface.
        name: String,
        /// The step that failed.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The capture file cannot be written.
    #[error("cannot write the capture {path}: {source}")]
    Capture {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The program of a filter is none.
    #[error("instruction {at} of the filter: {why}")]
    Filter {
        /// Number of the instruction.
        at: usize,
        /// The reason.
        why: &'static str,
    },
    /// A resource of the loop itself (epoll, eventfd, thread) is not available.
    #[error("the engine's loop cannot get {what}: {source}")]
    Loop {
        /// The resource.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] airloom_engine::Error),
    /// Invalid settings of a medium or a motion.
    #[error(transparent)]
    Medium(#[from] airloom_engine::medium::SettingsError),
    /// Unknown name.
    #[error("there is no {kind} called {name:?}")]
    Unknown {
        /// Kind of the element.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A frame that exceeds the largest buffer.
    #[error("a frame of {octets} octets is longer than {most}")]
    FrameTooLong {
        /// Its length.
        octets: usize,
        /// The maximum length.
        most: usize,
    },
    /// A guest in virtual time cannot go on.
    #[error("guest {name} {what}, at {} s of its time", *at as f64 / 1e9)]
    Guest {
        /// Its name.
        name: String,
        /// What it does, as a predicate.
        what: String,
        /// Time of the calendar, in nanoseconds.
        at: u64,
    },
    /// The loop has ended and takes no commands.
    #[error("the engine has stopped")]
    Stopped,
    /// The loop ended by a panic.
    #[error("the engine met a bug and stopped: {0}")]
    Panicked(String),
}

impl Error {
    /// The error for a panic of the loop.
    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        Self::Panicked(text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    }

    /// Every code that [`Error::code`] can return, beside those of the engine.
    pub const CODES: [&'static str; 11] = [
        "host.tap-descriptor",
        "host.interface",
        "run.capture",
        "host.loop",
        "run.engine-stopped",
        "run.engine-bug",
        "engine.name.unknown",
        "engine.frame.length",
        "host.vhost-socket",
        "virtual.guest",
        "run.filter",
    ];

    /// The error's stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::TapDescriptor { .. } => Self::CODES[0],
            Self::VhostSocket { .. } => Self::CODES[8],
            Self::Interface { .. } => Self::CODES[1],
            Self::Capture { .. } => Self::CODES[2],
            Self::Loop { .. } => Self::CODES[3],
            Self::Stopped => Self::CODES[4],
            Self::Panicked(_) => Self::CODES[5],
            Self::Unknown { .. } => Self::CODES[6],
            Self::FrameTooLong { .. } => Self::CODES[7],
            Self::Guest { .. } => Self::CODES[9],
            Self::Filter { .. } => Self::CODES[10],
            Self::Engine(error) => error.code(),
            Self::Medium(error) => error.code(),
        }
    }

    pub(crate) fn unknown(kind: &'static str, name: &str) -> Self {
        Self::Unknown { kind, name: name.to_owned() }
    }
}
