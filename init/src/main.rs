//! `airloom-init`: the processes that stand behind a run's nodes.
//!
//! `airloom-init keep N` is the **keeper**: one process for each run, with the controller's stream
//! socket as descriptor N. For each node that is to run programs the controller sends it a
//! [`message::Request::Node`] with two descriptors, the node's network namespace and one end of a
//! new socket. The keeper then makes a **node init**: the first process of new PID, mount, UTS
//! and IPC namespaces, which starts programs as its own socket asks ([`message::Order`]) and
//! reports how they end.
//!
//! A node may have a machine of its own, a **guest** with its own kernel. Its machine is then the
//! node init's one program, and `airloom-init guest DEVICE` the first process in it, with the same
//! orders and reports; the node init passes them, and the octets of programs' streams, over the
//! device ([`relay`], [`link`]).
//!
//! Several nodes may share one guest. Its own init then starts `airloom-init part` for each of them, as
//! it starts programs: namespaces of the guest's kernel, with that program's standard input and output
//! as their channel.
//!
//! Everything hangs on the controller's life. A node init ends when its socket or the keeper
//! does, and the kernel kills what runs in its PID namespace; the keeper ends when its socket or
//! the controller's process does, and removes the control groups that it made.

#![cfg(target_os = "linux")]

mod accounts;
mod bounds;
mod cell;
mod channel;
mod door;
mod frame;
mod groups;
mod guest;
mod image;
mod keeper;
mod link;
mod message;
mod mounts;
mod node;
mod proc;
mod program;
mod programs;
mod relay;
mod room;
mod sealed;
mod seccomp;
mod system;
mod terminal;

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
            eprintln!("usage: airloom-init keep DESCRIPTOR  (started by airloom, with its socket)");
            ExitCode::from(2)
        }
    }
}
