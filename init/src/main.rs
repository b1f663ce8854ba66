//! `airloom-init`: the processes that stand behind a run's nodes.
//!
//! `airloom-init keep N` is the **keeper**: one process for each run, with the controller's stream
//! socket as descriptor N. For each node that is to run programs the controller sends it a
//! [`message::Request::Node`] with two descriptors, the node's network namespace and one end of a
//! new socket. The keeper then makes a **node init**: the first process of new PID, mount, UTS
//! and IPC namespaces, which starts programs as its own socket asks ([`message::Order`]) and
//! reports how they end.
//!
//! Everything hangs on the controller's life. A node init ends when its socket or the keeper
//! does, and the kernel kills what runs in its PID namespace; the keeper ends when its socket or
//! the controller's process does, and removes the control groups that it made.

#![cfg(target_os = "linux")]

mod accounts;
mod bounds;
mod channel;
mod groups;
mod image;
mod keeper;
mod message;
mod mounts;
mod node;
mod program;
mod room;
mod sealed;
mod system;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (Some("keep"), Some(socket)) => match sealed::run_sealed().and_then(|()| keeper::keep(&socket)) {
            Ok(()) => ExitCode::SUCCESS,
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
            eprintln!("usage: airloom-init keep DESCRIPTOR  (started by airloom, with its socket)");
            ExitCode::from(2)
        }
    }
}
