//! Errors of a node's namespace; every variant names the node.

use std::io;

use crate::netlink::Refused;
use crate::tap::TapError;

/// An error while creating, reading or changing a node's namespace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Two nodes, or two interfaces of a node, have the same name.
    #[error("node {node}: {what} {name} is there twice")]
    Twice {
        /// The node.
        node: String,
        /// The kind of element.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A part of the description is invalid.
    #[error("node {node}: {what} {value:?}: {why}")]
    Spec {
        /// The node.
        node: String,
        /// The part.
        what: &'static str,
        /// The given value.
        value: String,
        /// The reason.
        why: String,
    },
    /// The process has no permission to create namespaces.
    #[error("node {node}: may not make a network namespace: {source}")]
    Permission {
        /// The node.
        node: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The limit on open descriptors is too low.
    #[error("{needed} descriptors are needed and {limit} are allowed")]
    Descriptors {
        /// Number of descriptors that the nodes need, with those already open.
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
    /// A TAP could not be created.
    #[error("node {node}: {source}")]
    Tap {
        /// The node.
        node: String,
        /// The error.
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
    /// The namespace is already closed.
    #[error("node {node} is closed")]
    Closed {
        /// The node.
        node: String,
    },
}

impl Error {
    /// Every code that [`Error::code`] can return, beside those of [`TapError`].
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
