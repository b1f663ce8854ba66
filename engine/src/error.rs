//! Errors of the engine, each with a stable code.

use thiserror::Error;

use crate::medium::SettingsError;

/// A request that the engine refused. The engine is unchanged when one is returned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Two elements of one kind share a name, so their random streams would be the same.
    #[error("there is already a {kind} called {name:?}; give each {kind} a name of its own")]
    DuplicateName {
        /// `port`, `switch` or `link`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A port takes one link only; a switch takes many.
    #[error("port {port:?} already has a link; join several links with a switch or a hub")]
    PortTaken {
        /// Name of the port.
        port: String,
    },
    /// An identifier of another engine.
    #[error("there is no {kind} number {number} in this engine")]
    Unknown {
        /// `port`, `switch` or `link`.
        kind: &'static str,
        /// The number.
        number: u32,
    },
    /// Switches run no spanning-tree protocol: a loop of switches would repeat every broadcast for
    /// ever.
    #[error("link {link:?} closes a loop of switches, which none of them can break; leave it out")]
    Loop {
        /// Name of the link.
        link: String,
    },
    /// A value is out of its range.
    #[error("{field}: {value} is not allowed; {allowed}")]
    Range {
        /// Stable code, the path of the setting: `link.rate`, `link.queue.red.min`, ...
        code: &'static str,
        /// Name of the setting in [`crate::settings`].
        field: &'static str,
        /// The value given.
        value: String,
        /// The allowed range.
        allowed: &'static str,
    },
    /// Invalid settings of a radio.
    #[error(transparent)]
    Radio(#[from] SettingsError),
}

impl Error {
    /// The codes other than those of [`Error::Range`], which are paths of settings and begin with
    /// `link.` or `switch.`, and those of radios ([`SettingsError::CODES`]).
    pub const CODES: [&'static str; 4] =
        ["engine.name.duplicate", "engine.port.taken", "engine.unknown", "engine.loop"];

    /// Stable code of the error, with dots.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateName { .. } => Self::CODES[0],
            Self::PortTaken { .. } => Self::CODES[1],
            Self::Unknown { .. } => Self::CODES[2],
            Self::Loop { .. } => Self::CODES[3],
            Self::Range { code, .. } => code,
            Self::Radio(error) => error.code(),
        }
    }
}
