//! What is said on the sockets: JSON objects, each behind its length (four octets, little-endian);
//! and on the channels of guests, as frames of [`crate::frame`].

use std::collections::BTreeMap;

use airloom_netns::NodeSpec;

use serde::{Deserialize, Serialize};

/// Counts changes of these messages and of what they promise; the controller wants its own number,
/// so that a program left over from an earlier build is told from this one.
pub const PROTOCOL: u32 = 7;

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
    /// Tell whether nodes can be held to shares of a processor here.
    Shares,
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
    /// Whether nodes can be held to shares of a processor here.
    Shares {
        /// Why not; None if they can.
        why: Option<String>,
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

/// From the controller to a node init, and from there to the init of a guest.
#[derive(Debug, Deserialize, Serialize)]
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
    /// Tell what is in a small file, such as one below /proc/net.
    Read {
        /// Returned with the answer.
        id: u64,
        /// Its path in the node.
        path: String,
    },
    /// Tell how the place's clock stands to the host's.
    Clock {
        /// Returned with the answer.
        id: u64,
    },
    /// End: everything gets SIGTERM, and after a grace SIGKILL.
    Stop {
        /// The grace in milliseconds.
        grace_ms: u64,
    },
    /// Start a guest, a kernel of the node's own; with descriptors: its log, and those it is given.
    /// From then on programs are started in the guest. Only to a node init.
    Host(Box<Host>),
    /// Join a part of a guest that several nodes share; with one descriptor, the part's channel. From
    /// then on programs are started there. Only to a node init.
    Join(Box<Join>),
    /// Furnish the guest; the first order on its channel.
    World(Box<World>),
}

/// A guest to be started.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Returned with the answer.
    pub id: u64,
    /// The program that is the guest's machine, and its arguments. Its descriptor 3 is the guest's
    /// channel; those that came with the order follow.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// How many descriptors it is given beside the channel.
    #[serde(default)]
    pub descriptors: usize,
    /// What it may do.
    pub cell: Cell,
    /// How the host's kernel schedules it.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// How long the guest may take to be ready, in milliseconds.
    pub patience_ms: u64,
    /// The guest itself.
    pub world: World,
}

/// A part of a guest to be joined.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Returned with the answer.
    pub id: u64,
    /// How long it may take to be ready, in milliseconds.
    pub patience_ms: u64,
    /// The part itself.
    pub world: World,
}

/// What is left to a guest's machine of the host: all files to read, and one place to write.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Most octets in its file system in memory, at /dev/shm.
    pub memory: u64,
    /// Numbers of the capabilities that it keeps (`capabilities(7)`).
    #[serde(default)]
    pub capabilities: Vec<u32>,
    /// Names below /dev of devices that it needs beside those that have nothing of the host in them.
    #[serde(default)]
    pub devices: Vec<String>,
}

/// Scheduling of a guest's machine (`sched(7)`).
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduling {
    /// Numbers of the processors that it may run on; all if none is named.
    #[serde(default)]
    pub processors: Vec<usize>,
    /// Nice value.
    #[serde(default)]
    pub nice: i32,
    /// Number of the kernel's policy: 0 other, 1 first in first out, 2 round robin, 3 batch, 5 idle.
    #[serde(default)]
    pub policy: i32,
    /// Static priority, for policies 1 and 2.
    #[serde(default)]
    pub priority: i32,
}

/// What the init of a guest makes before programs run.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Name of the node, and its host name.
    pub name: String,
    /// The guest's root file system.
    pub root: Root,
    /// Modules of its kernel, in the order of loading: paths in its first file system, or in its root.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Folder of all its modules, which is seen as /lib/modules.
    #[serde(default)]
    pub module_folder: Option<String>,
    /// Path in the node: content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Paths of the root that stay visible below folders that the node has for itself.
    #[serde(default)]
    pub visible: Vec<String>,
    /// Its interfaces, known by their MAC addresses, with addresses and routes.
    pub network: NodeSpec,
}

/// Where a guest's root file system is.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Root {
    /// A folder of the host, read-only, below a layer in memory.
    Hostfs {
        /// The folder.
        folder: String,
    },
    /// A folder that the guest's machine shows it by 9P over virtio, below a layer in memory.
    Shared {
        /// Name under which the machine offers it.
        tag: String,
    },
    /// A block device.
    Disk {
        /// Its name in the guest, such as `/dev/ubda`.
        device: String,
        /// Its file system, such as `ext4`.
        filesystem: String,
        /// Whether a layer in memory takes what is written.
        layer: bool,
    },
    /// What the first file system in memory holds.
    Memory,
    /// The guest's own, which stands: the node is a part of a guest, with namespaces of its kernel.
    Part,
}

/// A program to be started.
#[derive(Debug, Deserialize, Serialize)]
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
    /// Rows and columns of that terminal; said to a guest.
    #[serde(default)]
    pub size: Option<[u16; 2]>,
    /// Whether standard error goes where standard output goes; said to a guest.
    #[serde(default)]
    pub merged: bool,
}

/// From a node init to the controller, and from the init of a guest to the node init.
#[derive(Debug, Deserialize, Serialize)]
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
    /// What is in a file; None if it cannot be read.
    Content {
        /// As in the order.
        id: u64,
        /// Its text; what is no text is replaced.
        text: Option<String>,
    },
    /// One reading of CLOCK_MONOTONIC in the place, between two of the host's.
    Clock {
        /// As in the order.
        id: u64,
        /// The host's, before.
        before_ns: u64,
        /// The place's.
        inside_ns: u64,
        /// The host's, after.
        after_ns: u64,
    },
    /// The init of a guest runs; its first message.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
    },
    /// Somebody in the guest wants to speak at the node's door; what is said there follows in frames.
    Visitor {
        /// Number of the visit, from [`crate::door::FIRST`] on.
        id: u64,
    },
    /// The guest is ready to run programs.
    Hosted {
        /// As in the order.
        id: u64,
        /// What its kernel cannot do for it.
        notes: Vec<String>,
    },
    /// The guest could not be started; the node init ends.
    Unhosted {
        /// As in the order.
        id: u64,
        /// Why.
        why: String,
    },
}
