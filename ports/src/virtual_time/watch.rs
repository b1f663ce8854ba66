//! A guest that stays at one instant: whether it computes, or hangs.
//!
//! What counts is the processor time of its process, so that a guest is not accused of the load of
//! this machine. A guest that gets hardly any for long hangs if none of its threads can run: it waits
//! for something that never comes. One that could run and does not waits for a processor.

use std::path::Path;
use std::time::{Duration, Instant as Wall};

use super::{Calendar, Error};

/// After which wall time a guest is watched, and the time between two looks at its processor time.
const PERIOD: Duration = Duration::from_millis(100);
/// Below this part of the wall time a guest hardly runs.
const HARDLY: u32 = 1000;
/// Clock ticks a second in files of `/proc` (`USER_HZ`), the same for all programs of an x86 machine.
const TICKS: u64 = 100;

/// What became of a guest that stays at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// It is not there for long.
    Short,
    /// It has used so much processor time.
    Computes(Duration),
    /// It has not run for so long.
    Hangs(Duration),
}

/// What is noted of one guest at one instant.
#[derive(Debug)]
pub(super) struct Watch {
    since: Wall,
    used: Duration,
    looked: Wall,
}

impl Calendar {
    /// Refuses a guest that has been at an instant, or has owed an answer, `since` too long a time.
    pub(super) fn stays(&mut self, index: usize, since: Wall, what: &str) -> Result<(), Error> {
        let client = &self.guests[index].client;
        let words = match judge(&mut self.watch, since, client.process(), self.patience) {
            Stay::Short => return Ok(()),
            Stay::Computes(used) => {
                format!("has run for {:.1} s of processor time and {what}", used.as_secs_f64())
            }
            Stay::Hangs(stays) => format!("has not run for {:.1} s and {what}", stays.as_secs_f64()),
        };
        let running = client.spin.as_ref().and_then(super::spin::SpinPage::running);
        let program = running.map(|(program, process)| format!("; it runs {program} (process {process})"));
        Err(self.violates(index, &(words + &program.unwrap_or_default())))
    }
}

fn judge(watch: &mut Option<Watch>, since: Wall, process: Option<u32>, budget: Duration) -> Stay {
    let stays = since.elapsed();
    if stays < PERIOD {
        return Stay::Short;
    }
    let look = || process.map_or(Look::default(), Look::at);
    let Some(noted) = watch.as_mut().filter(|noted| noted.since == since) else {
        *watch = Some(Watch { since, used: look().used, looked: Wall::now() });
        return Stay::Short;
    };
    if stays < budget || noted.looked.elapsed() < PERIOD {
        return Stay::Short;
    }
    noted.looked = Wall::now();
    let now = look();
    let used = now.used.saturating_sub(noted.used);
    if used >= budget {
        Stay::Computes(used)
    } else if used < stays / HARDLY && !now.runnable {
        Stay::Hangs(stays)
    } else {
        Stay::Short
    }
}

/// What a process, its children, and theirs have done: a guest's programs are children of its kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    /// Their processor time.
    used: Duration,
    /// Whether one of their threads runs, waits for a processor (R), or waits for a disk (D).
    runnable: bool,
}

impl Look {
    fn at(process: u32) -> Look {
        let folder = Path::new("/proc").join(process.to_string());
        // Behind the state, field 3: utime, stime, cutime and cstime are fields 14 to 17.
        let ticks: u64 = behind_the_name(&folder)
            .split_whitespace()
            .skip(11)
            .take(4)
            .filter_map(|one| one.parse::<u64>().ok())
            .sum();
        let mut look = Look { used: Duration::from_millis(ticks * 1000 / TICKS), runnable: false };
        for task in std::fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
            look.runnable |= behind_the_name(&task.path()).trim_start().starts_with(['R', 'D']);
            let list = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in list.split_whitespace().filter_map(|one| one.parse().ok()) {
                let child = Look::at(child);
                look.used += child.used;
                look.runnable |= child.runnable;
            }
        }
        look
    }
}

/// The fields of a `stat` file behind the name, which may contain anything.
fn behind_the_name(folder: &Path) -> String {
    let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
    stat.rsplit_once(')').map_or(String::new(), |(_, rest)| rest.to_string())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    const BUDGET: Duration = Duration::from_millis(300);

    fn judged(mut child: Child) -> Stay {
        let (since, mut watch) = (Wall::now(), None);
        loop {
            match judge(&mut watch, since, Some(child.id()), BUDGET) {
                Stay::Short => std::thread::sleep(Duration::from_millis(20)),
                stay => {
                    child.kill().and_then(|()| child.wait()).expect("it runs");
                    return stay;
                }
            }
        }
    }

    #[test]
    fn a_guest_whose_child_computes_has_used_its_budget() {
        let computes = ["timeout", "120", "sh", "-c", "while :; do :; done"];
        let child = Command::new("timeout").arg("120").args(computes).spawn().expect("a program");
        assert!(matches!(judged(child), Stay::Computes(used) if used >= BUDGET));
    }

    #[test]
    fn a_guest_that_sleeps_hangs() {
        let child = Command::new("sleep").arg("20").spawn().expect("a program");
        assert!(matches!(judged(child), Stay::Hangs(stays) if stays >= BUDGET));
    }
}
