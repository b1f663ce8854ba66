//! Errors of settings.

use crate::medium::mobility::PathError;
use crate::medium::mobility::traces::TraceError;
use crate::medium::propagation::MatrixError;

/// Invalid settings of a radio or a medium.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Unknown physical layer.
    #[error("radio \"{radio}\": there is no physical layer \"{phy}\"; use one of {known}")]
    Phy {
        /// Name of the radio.
        radio: String,
        /// The name given.
        phy: String,
        /// The names known.
        known: String,
    },
    /// A channel outside the band.
    #[error(
        "radio \"{radio}\": {phy} has no channel {channel}; 2.4 GHz has 1 to 14, 5 GHz 36 to 64, 100 to 144 and 149 to 177 in steps of 4"
    )]
    Channel {
        /// Name of the radio.
        radio: String,
        /// Physical layer.
        phy: &'static str,
        /// The channel given.
        channel: u16,
    },
    /// A rate that the physical layer does not have.
    #[error("radio \"{radio}\": {phy} has no rate of {rate} bit/s; its rates are {known}")]
    Rate {
        /// Name of the radio.
        radio: String,
        /// Physical layer.
        phy: &'static str,
        /// The rate given.
        rate: u64,
        /// The rates known.
        known: String,
    },
    /// A number outside its range.
    #[error("radio \"{radio}\": {setting} = {value} is outside {range}")]
    Range {
        /// Name of the radio.
        radio: String,
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The allowed range.
        range: &'static str,
    },
    /// Two radios with the same address.
    #[error(
        "radio \"{radio}\": its address is that of radio \"{other}\"; addresses on one medium must differ"
    )]
    Address {
        /// Name of the radio.
        radio: String,
        /// Name of the earlier radio.
        other: String,
    },
    /// A position that is not finite.
    #[error("radio \"{radio}\": its position is not a number of metres below 10^9")]
    Position {
        /// Name of the radio.
        radio: String,
    },
    /// A setting of a medium or a mobility model outside its range.
    #[error("{setting} = {value} is outside {range}")]
    Law {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The allowed range.
        range: String,
    },
    /// A matrix that cannot be parsed.
    #[error("matrix, {0}")]
    Matrix(#[from] MatrixError),
    /// An invalid list of positions.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A movement trace that cannot be parsed.
    #[error("trace, {0}")]
    Trace(#[from] TraceError),
    /// A movement trace that lacks the node.
    #[error("the trace has no node {node}; it moves {known} nodes")]
    TraceNode {
        /// The node.
        node: u32,
        /// Nodes in the trace.
        known: usize,
    },
    /// A setting of a card, or its radios.
    #[error("card \"{card}\": {setting} = {value} is outside {range}")]
    Card {
        /// Name of the card.
        card: String,
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: String,
        /// The allowed range.
        range: &'static str,
    },
}

impl SettingsError {
    /// One code for each variant, in their order.
    pub const CODES: [&'static str; 12] = [
        "radio.phy",
        "radio.channel",
        "radio.rate",
        "radio.range",
        "radio.address",
        "radio.position",
        "medium.law",
        "medium.matrix",
        "mobility.path",
        "mobility.trace",
        "mobility.trace.node",
        "card.range",
    ];

    /// Stable code of the error, with dots.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Phy { .. } => Self::CODES[0],
            Self::Channel { .. } => Self::CODES[1],
            Self::Rate { .. } => Self::CODES[2],
            Self::Range { .. } => Self::CODES[3],
            Self::Address { .. } => Self::CODES[4],
            Self::Position { .. } => Self::CODES[5],
            Self::Law { .. } => Self::CODES[6],
            Self::Matrix(_) => Self::CODES[7],
            Self::Path(_) => Self::CODES[8],
            Self::Trace(_) => Self::CODES[9],
            Self::TraceNode { .. } => Self::CODES[10],
            Self::Card { .. } => Self::CODES[11],
        }
    }
}
