//! `airloom-traffic`: see the library's documentation.

use std::process::ExitCode;

use airloom_traffic::options::{self, Common, HELP, Request};
use airloom_traffic::record::End;
use airloom_traffic::summary::{Ended, Failure, Summary};
use airloom_traffic::{clock, receive, send, stop};

/// Exit code: invalid command line.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    match options::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Ok(Request::Version) => {
            println!("airloom-traffic {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        Ok(Request::Send(send)) => {
            let flow = send.common.flow.or(Some(1));
            run(End::Sender, &send.common, flow, |summary| send::run(&send, summary))
        }
        Ok(Request::Receive(receive)) => {
            run(End::Receiver, &receive.common, receive.common.flow, |summary| {
                receive::run(&receive, summary)
            })
        }
        Err(error) => {
            eprintln!("airloom-traffic: {error}");
            ExitCode::from(USAGE)
        }
    }
}

fn run(
    end: End,
    common: &Common,
    flow: Option<u16>,
    work: impl FnOnce(&mut Summary) -> Result<(), Failure>,
) -> ExitCode {
    stop::install();
    clock::minimize_timer_slack();
    let mut summary = Summary::new(end, common.protocol, flow);
    let outcome = work(&mut summary);
    if let Err(failure) = &outcome {
        eprintln!("airloom-traffic: {failure}");
        summary.error = Some(failure.to_string());
        if !matches!(failure, Failure::Nothing | Failure::Record(_)) {
            summary.ended_by = Ended::Failure;
        }
    }
    let text = if common.json {
        serde_json::to_string(&summary).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"))
    } else {
        summary.sentence()
    };
    // Standard output may be used for the records.
    if common.record.as_deref() == Some("-") {
        eprintln!("{text}")
    } else {
        println!("{text}")
    }
    outcome.map_or_else(|failure| ExitCode::from(failure.exit_code()), |()| ExitCode::SUCCESS)
}
