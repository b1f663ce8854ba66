//! What can go wrong with a node's namespace; every variant names the node.

use std::io;

use crate::netlink::Refused;
use crate::tap::TapError;

/// An error while making, reading or changing a node's namespace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two nodes, or two interfaces of a node, have one name.
    #[error("node {node}: {what} {name} is there twice")]
    Twice {
        /// The node.
        node: String,
        /// What is there twice.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Something in the description cannot be read.
    #[error("node {node}: {what} {value:?}: {why}")]
    Spec {
        /// The node.
        node: String,
        /// Which part.
        what: &'static str,
        /// As it was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// The process may not make namespaces.
    #[error("node {node}: may not make a network namespace: {source}")]
    Permission {
        /// The node.
        node: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The process may not hold so many descriptors.
    #[error("{needed} descriptors are needed and {limit} are allowed")]
    Descriptors {
        /// How many the nodes need, with those already open.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The kernel allows no more namespaces.
    #[error("node {node}: the kernel makes no more network namespaces: {source}")]
    Namespaces {
        /// The node.
        node: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A TAP could not be made.
    #[error("node {node}: {source}")]
    Tap {
        /// The node.
        node: String,
        /// What the kernel says.
        source: TapError,
    },
    /// The kernel refused a step.
    #[error("node {node}: {what}: {why}")]
    Kernel {
        /// The node.
        node: String,
        /// The step.
        what: String,
        /// The kernel's answer in words.
        why: String,
    },
    /// The namespace was closed before.
    #[error("node {node} is closed")]
    Closed {
        /// The node.
        node: String,
    },
}

impl Error {
    /// Every code that [`Error::code`] can give, beside those of [`TapError`].
    pub const CODES: [&'static str; 7] = [
        "node.twice",
        "node.spec",
        "host.namespace",
        "host.descriptors",
        "host.namespaces",
        "node.kernel",
        "node.closed",
    ];

    /// The error's stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Twice { .. } => Self::CODES[0],
            Self::Spec { .. } => Self::CODES[1],
            Self::Permission { .. } => Self::CODES[2],
            Self::Descriptors { .. } => Self::CODES[3],
            Self::Namespaces { .. } => Self::CODES[4],
            Self::Tap { source, .. } => source.code(),
            Self::Kernel { .. } => Self::CODES[5],
            Self::Closed { .. } => Self::CODES[6],
        }
    }

    /// A step that the kernel refused with an error number.
    pub(crate) fn kernel(node: &str, what: impl Into<String>, source: &io::Error) -> Self {
        Self::Kernel { node: node.to_owned(), what: what.into(), why: source.to_string() }
    }

    /// A request that the kernel refused.
    pub(crate) fn refused(node: &str, refused: Refused) -> Self {
        Self::Kernel { node: node.to_owned(), what: refused.label, why: refused.why }
    }
}
