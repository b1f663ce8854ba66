//! `airloom-init`: the processes behind a run's nodes.
//!
//! `airloom-init supervise N` is the **supervisor**: one process for each run, with the controller's
//! stream socket as descriptor N. For each node with programs the controller sends it a
//! [`message::Request::Node`] with two descriptors, the node's network namespace and one end of a
//! new socket. The supervisor then makes a **node init**: the first process of new PID, mount, UTS
//! and IPC namespaces. The node init starts programs on request of its own socket
//! ([`message::Order`]) and reports their ends.
//!
//! A node may be a **guest** with its own kernel. The machine of the guest is then the only program
//! of the node init, and `airloom-init guest DEVICE` is the first process in the guest, with the
//! same orders and reports. The node init forwards them, and the octets of programs' streams, over
//! the device ([`relay`], [`guest_channel`]).
//!
//! Several nodes may share one guest. The guest's init then starts one `airloom-init part` for each
//! of them, like a program: a set of namespaces of the guest's kernel, with that program's standard
//! input and output as its channel.
//!
//! Every process ends with the controller. A node init ends when its socket is closed or the
//! supervisor ends, and the kernel then kills the processes of its PID namespace; the
//! supervisor ends when its socket is closed or the controller's process ends, and removes the
//! control groups that it created.

#![cfg(target_os = "linux")]

mod cgroups;
mod channel;
mod control_socket;
mod cpu_time;
mod credentials;
mod frame;
mod guest;
mod guest_channel;
mod image;
mod message;
mod mount_namespace;
mod mounts;
mod node;
mod proc;
mod program;
mod programs;
mod radios;
mod relay;
mod sandbox;
mod sealed_copy;
mod seccomp;
mod supervisor;
mod system;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("supervise"), Some(socket)) => {
            match sealed_copy::run().and_then(|()| supervisor::supervise(&socket)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("airloom-init: {error}");
                    ExitCode::FAILURE
                }
            }
        }
        (Some("guest"), Some(device)) if std::process::id() == 1 => guest::serve(&device),
        (Some("part"), None) => match guest::part() {
            Ok(code) => code,
            Err(error) => {
                eprintln!("airloom-init: {error}");
                ExitCode::FAILURE
            }
        },
        (Some("--version"), None) => {
            println!("airloom-init {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: airloom-init supervise DESCRIPTOR  (started by airloom, with its socket)");
            ExitCode::from(2)
        }
    }
}
