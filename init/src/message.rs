//! What is said on the sockets: JSON objects, each behind its length (four octets, little-endian).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Counts changes of these messages and of what they promise; the controller wants its own number,
/// so that a program left over from an earlier build is told from this one.
pub const PROTOCOL: u32 = 3;

/// From the controller to the keeper.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Files that all nodes see, read-only; said once, before the first node.
    Common {
        /// Path of a file that exists: content.
        files: BTreeMap<String, String>,
    },
    /// Make a node init; with two descriptors: network namespace, socket.
    Node(NodeRequest),
    /// Kill a node init, and everything in the node with it.
    Kill {
        /// Name of the node.
        name: String,
    },
}

/// A node init to be made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRequest {
    /// Name of the node, and its host name.
    pub name: String,
    /// Path in the node: content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Paths of the host that stay visible below folders that the node has for itself.
    #[serde(default)]
    pub visible: Vec<String>,
    /// Most of one processor that it may use.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// What its root file system is, if not the host's.
    #[serde(default)]
    pub image: Option<Image>,
}

/// An unpacked image as a node's root.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The unpacked files, a folder of the host that is never written.
    pub root: String,
    /// `user[:group]` by names or numbers, as whom programs run; empty for root.
    #[serde(default)]
    pub user: String,
    /// Working folder of its programs, made if it is not there.
    pub folder: String,
}

/// From the keeper to the controller.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
    /// The first message: the keeper has cut itself off from the host's mounts.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
    },
    /// A node init exists (it says itself when it is ready).
    Made {
        /// Name of the node.
        name: String,
        /// Process number of its init, in the keeper's numbering.
        pid: i32,
        /// Folder of its control group, version 2.
        group: Option<String>,
        /// Folder of its control group in version 1's `cpu` hierarchy, if that is where its
        /// share is held.
        cpu_group: Option<String>,
        /// What this machine cannot do for it.
        notes: Vec<String>,
    },
    /// A node init could not be made.
    Refused {
        /// Name of the node.
        name: String,
        /// Why.
        why: String,
    },
    /// A node init has ended, and everything in the node with it.
    Ended {
        /// Name of the node.
        name: String,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
}

/// From the controller to a node init.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Order {
    /// Start a program; with three descriptors: standard input, output and error.
    Start(Start),
    /// Send a signal to a program's process group.
    Signal {
        /// The program.
        id: u64,
        /// Number of the signal.
        signal: i32,
    },
    /// Send a signal to every process in the node.
    SignalAll {
        /// Number of the signal.
        signal: i32,
    },
    /// Tell the processor time used so far.
    Cpu {
        /// Returned with the answer.
        id: u64,
    },
    /// End: everything gets SIGTERM, and after a grace SIGKILL.
    Stop {
        /// The grace in milliseconds.
        grace_ms: u64,
    },
}

/// A program to be started.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The controller's number for it.
    pub id: u64,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Its working folder.
    pub folder: String,
    /// Whether standard input is a terminal that becomes its own.
    #[serde(default)]
    pub tty: bool,
}

/// From a node init to the controller.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Report {
    /// The node's own world stands.
    Ready {
        /// What this machine cannot do for it.
        notes: Vec<String>,
    },
    /// The node's own world could not be made; the init ends.
    Broken {
        /// Why.
        why: String,
    },
    /// A program runs.
    Started {
        /// The program.
        id: u64,
        /// Its process number in the node.
        pid: i32,
    },
    /// A program could not be started.
    Refused {
        /// The program.
        id: u64,
        /// The step that failed.
        what: String,
        /// The kernel's error number.
        errno: i32,
    },
    /// A program has ended; processor time is its own and that of children it waited for.
    Exited {
        /// The program.
        id: u64,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// Processor time in its own code.
        user_ns: u64,
        /// Processor time in the kernel.
        system_ns: u64,
    },
    /// Processor time of all programs, ended and running.
    Cpu {
        /// As in the order.
        id: u64,
        /// Processor time in their own code.
        user_ns: u64,
        /// Processor time in the kernel.
        system_ns: u64,
    },
}
