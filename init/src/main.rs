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
mod collect;
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
mod one_user;
mod proc;
mod processes;
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

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // A kernel puts words of its command line that it does not know before these, and others after them.
    let guest = words.iter().rposition(|&word| word == "guest").and_then(|at| words.get(at + 1));
    if let (Some(device), 1) = (guest, std::process::id()) {
        guest::serve(device);
    }
    match words[..] {
        ["supervise", socket] => supervise(socket, None),
        ["supervise", socket, folder] => supervise(socket, Some(Path::new(folder))),
        ["part"] => match guest::part() {
            Ok(code) => code,
            Err(error) => {
                eprintln!("airloom-init: {error}");
                ExitCode::FAILURE
            }
        },
        ["collect", octets, files, ref patterns @ ..] => {
            let limits = collect::Limits { octets: collect::number(octets), files: collect::number(files) };
            match collect::run(patterns, limits, &mut std::io::stdout().lock()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        ["--version"] => {
            println!("airloom-init {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!(
                "usage: airloom-init supervise DESCRIPTOR [FOLDER]  (started by airloom, with its socket)"
            );
            ExitCode::from(2)
        }
    }
}

fn supervise(socket: &str, folder: Option<&Path>) -> ExitCode {
    match sealed_copy::run().and_then(|()| supervisor::supervise(socket, folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("airloom-init: {error}");
            ExitCode::FAILURE
        }
    }
}
