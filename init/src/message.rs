//! Messages on the sockets: JSON objects, each after its length (four octets, little-endian); on
//! the channels of guests they are frames of [`crate::frame`].

use std::collections::BTreeMap;

use airloom_netns::NodeSpec;

use serde::{Deserialize, Serialize};

/// Version of these messages and their semantics. The controller requires its own version, and so
/// detects a program left over from an earlier build.
pub const PROTOCOL: u32 = 13;

/// From the controller to the supervisor.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Files that all nodes see, read-only; sent before the first node, and again for other content.
    Common {
        /// Path of a file that exists: content.
        files: BTreeMap<String, String>,
    },
    /// Make a node init; with two descriptors: network namespace, socket.
    Node(NodeRequest),
    /// Query whether CPU limits can be set here.
    Shares,
    /// Kill a node init, and with it all processes of the node.
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
    /// Paths of the host that stay visible below folders that the node replaces.
    #[serde(default)]
    pub visible: Vec<String>,
    /// Paths of the host at paths of the node.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// CPU limit, as a fraction of one processor.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// CPU weight against the other nodes, relative to the kernel's default.
    #[serde(default)]
    pub weight: Option<f64>,
    /// The image that is its root file system, if not the host's.
    #[serde(default)]
    pub image: Option<Image>,
}

/// A file or folder of the host in a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Path on the host.
    pub source: String,
    /// Path in the node, created if missing.
    pub target: String,
    /// Whether programs of the node may change it.
    pub writable: bool,
}

/// An unpacked image as a node's root.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The unpacked files: a folder of the host that is never written to.
    pub root: String,
    /// `user[:group]` by names or numbers, the user of its programs; empty for root.
    #[serde(default)]
    pub user: String,
    /// Working folder of its programs, created if missing.
    pub folder: String,
}

/// From the supervisor to the controller.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Notice {
    /// The first message: the supervisor has left the host's mount namespace.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
    },
    /// A node init exists (it reports itself when it is ready).
    Made {
        /// Name of the node.
        name: String,
        /// Process number of its init, in the supervisor's PID namespace.
        pid: i32,
        /// Folder of its control group, version 2.
        group: Option<String>,
        /// Folder of its control group in version 1's `cpu` hierarchy, if its CPU limit is set
        /// there.
        cpu_group: Option<String>,
        /// Features that this machine lacks.
        notes: Vec<String>,
    },
    /// Whether CPU limits can be set here.
    Shares {
        /// The reason if not; None if they can.
        why: Option<String>,
    },
    /// A node init could not be made.
    Refused {
        /// Name of the node.
        name: String,
        /// The reason.
        why: String,
    },
    /// A node init has ended, and with it all processes of the node.
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
    /// Query the CPU time used so far.
    Cpu {
        /// Returned with the answer.
        id: u64,
    },
    /// Query the content of a small file, such as one below /proc/net.
    Read {
        /// Returned with the answer.
        id: u64,
        /// Its path in the node.
        path: String,
    },
    /// Query the offset of the guest's clock from the host's.
    Clock {
        /// Returned with the answer.
        id: u64,
    },
    /// Pass on all that is to be passed on between the guest in virtual time and the controller.
    Settle {
        /// Returned with the answer.
        id: u64,
    },
    /// End: all processes get SIGTERM, and SIGKILL after the grace period.
    Stop {
        /// The grace period in milliseconds.
        grace_ms: u64,
    },
    /// Start a guest with its own kernel; with descriptors: its log, and those passed to it.
    /// Programs are then started in the guest. Only to a node init.
    Host(Box<Host>),
    /// Join a part of a guest that several nodes share; with one descriptor, the part's channel.
    /// Programs are then started there. Only to a node init.
    Join(Box<Join>),
    /// Set up the guest; the first order on its channel.
    World(Box<World>),
}

/// A guest to be started.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Returned with the answer.
    pub id: u64,
    /// The program that emulates the guest's machine, and its arguments. Its descriptor 3 is the
    /// guest's channel; the descriptors that came with the order follow.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Its working folder, in its own view of the host's files.
    pub folder: String,
    /// Number of descriptors passed to it beside the channel.
    #[serde(default)]
    pub descriptors: usize,
    /// Whether the guest is in virtual time: its channel is the last descriptor that comes with the
    /// order, and is served only when ordered by [`Order::Settle`].
    #[serde(default)]
    pub virtual_time: bool,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// Maximum time until the guest is ready, in milliseconds.
    pub timeout_ms: u64,
    /// Set-up of the guest itself.
    pub world: World,
}

/// A part of a guest to be joined.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Returned with the answer.
    pub id: u64,
    /// Maximum time until it is ready, in milliseconds.
    pub timeout_ms: u64,
    /// As in [`Host`].
    #[serde(default)]
    pub virtual_time: bool,
    /// Set-up of the part itself.
    pub world: World,
}

/// Sandbox of a guest's machine: all files of the host are readable, one directory is writable.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// Maximum size in octets of its file system in memory, at /dev/shm.
    pub memory: u64,
    /// Numbers of the capabilities that it keeps (`capabilities(7)`).
    #[serde(default)]
    pub capabilities: Vec<u32>,
    /// Names below /dev of devices that it needs beside those that give no access to the host.
    #[serde(default)]
    pub devices: Vec<String>,
}

/// What the init of a guest sets up before programs run.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// Name of the node, and its host name.
    pub name: String,
    /// The guest's root file system.
    pub root: Root,
    /// Modules of its kernel, in the order of loading: paths in its initramfs, or in its root.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Folder of all its modules, shown as /lib/modules.
    #[serde(default)]
    pub module_folder: Option<String>,
    /// The radios of a kernel without a virtio device for them.
    #[serde(default)]
    pub radios: Option<RadioStream>,
    /// Path in the node: content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Paths of the root that stay visible below folders that the node replaces.
    #[serde(default)]
    pub visible: Vec<String>,
    /// Its interfaces, identified by their MAC addresses, with addresses and routes.
    pub network: NodeSpec,
}

/// Radios of a guest's `mac80211_hwsim` whose messages are passed on.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RadioStream {
    /// Number of radios to create.
    pub count: u8,
    /// The character device to the engine.
    pub device: String,
}

/// Location of a guest's root file system.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "from", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Root {
    /// A folder of the host, read-only, below an overlay in memory.
    Hostfs {
        /// The folder.
        folder: String,
    },
    /// A folder that the guest's machine exports by 9P over virtio, below an overlay in memory.
    Shared {
        /// Mount tag of the export.
        tag: String,
    },
    /// A block device.
    Disk {
        /// Its name in the guest, such as `/dev/ubda`.
        device: String,
        /// Its file system, such as `ext4`.
        filesystem: String,
        /// Whether an overlay in memory takes all writes.
        layer: bool,
    },
    /// The content of the initramfs.
    Memory,
    /// The root of the running guest: the node is a part of a guest, with namespaces of its kernel.
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
    /// Whether standard input is a terminal that becomes its controlling terminal.
    #[serde(default)]
    pub tty: bool,
    /// Rows and columns of that terminal; set for programs of a guest.
    #[serde(default)]
    pub size: Option<[u16; 2]>,
    /// Whether standard error is merged into standard output; set for programs of a guest.
    #[serde(default)]
    pub merged: bool,
    /// Whether `argv` are words for this program itself, which then runs with the rights of the init.
    #[serde(default)]
    pub own: bool,
}

/// From a node init to the controller, and from the init of a guest to the node init.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Report {
    /// The node's file system and network are set up.
    Ready {
        /// Features that this machine lacks.
        notes: Vec<String>,
    },
    /// The node could not be set up; the init ends.
    Broken {
        /// The reason.
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
    /// A program has ended; CPU time is its own and that of children it waited for.
    Exited {
        /// The program.
        id: u64,
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// CPU time in user mode.
        user_ns: u64,
        /// CPU time in the kernel.
        system_ns: u64,
    },
    /// CPU time of all programs, ended and running.
    Cpu {
        /// As in the order.
        id: u64,
        /// CPU time in user mode.
        user_ns: u64,
        /// CPU time in the kernel.
        system_ns: u64,
    },
    /// Content of a file; None if it cannot be read.
    Content {
        /// As in the order.
        id: u64,
        /// Its text; octets that are not UTF-8 are replaced.
        text: Option<String>,
    },
    /// One reading of CLOCK_MONOTONIC in the node or guest, between two readings of the host's.
    Clock {
        /// As in the order.
        id: u64,
        /// The host's clock, before.
        before_ns: u64,
        /// The clock of the node or guest.
        inside_ns: u64,
        /// The host's clock, after.
        after_ns: u64,
    },
    /// All is passed on; all reports of that came before.
    Settled {
        /// As in the order.
        id: u64,
        /// Whether there was something to pass on.
        moved: bool,
    },
    /// The init of a guest runs; its first message.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
    },
    /// A program in the guest connected to the node's control socket; its octets follow in frames.
    Connection {
        /// Number of the connection, from [`crate::control_socket::FIRST`] on.
        id: u64,
    },
    /// The guest is ready to run programs.
    Hosted {
        /// As in the order.
        id: u64,
        /// Features that its kernel lacks.
        notes: Vec<String>,
    },
    /// The guest could not be started; the node init ends.
    Unhosted {
        /// As in the order.
        id: u64,
        /// The reason.
        why: String,
    },
}
