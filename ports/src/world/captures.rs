//! The captures of a world: that of the run, and those that readers follow while it lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use airloom_engine::time::Instant;

use crate::capture::{Account, Capture, Choice};
use crate::error::Error;
use crate::world::World;

/// Number of the run's capture.
pub const RUN: u32 = 0;

/// When engine time began.
#[derive(Clone, Copy, Debug)]
enum Zero {
    /// Of a clock, in nanoseconds since 1970.
    Clock(u64),
    /// Of a calendar, in nanoseconds since 1970.
    Calendar(u64),
}

/// The captures of a world.
#[derive(Debug, Default)]
pub struct Captures {
    all: Vec<Capture>,
    /// None before the start.
    zero: Option<Zero>,
    /// Number of the capture that began last.
    last: u32,
    /// Whether media report the frames on the air.
    sniffing: bool,
    /// Those that have ended, by number.
    ended: BTreeMap<u32, Account>,
}

impl Captures {
    /// Those that frames are written to.
    pub(crate) fn all(&mut self) -> &mut [Capture] {
        &mut self.all
    }

    /// Follows a clock from now on ([`Capture::follow`]).
    pub(crate) fn follow(&mut self, zero: u64) {
        self.zero = Some(Zero::Clock(zero));
        self.all.iter_mut().for_each(|capture| capture.follow(zero));
    }

    /// Follows a calendar from now on ([`Capture::start_at`]).
    pub(crate) fn start_at(&mut self, zero: u64) {
        self.zero = Some(Zero::Calendar(zero));
        self.all.iter_mut().for_each(|capture| capture.start_at(zero));
    }

    /// Passes on what every capture has so far ([`Capture::push`]).
    pub(crate) fn push(&mut self, now: Instant) {
        self.all.iter_mut().for_each(|capture| capture.push(now));
    }

    /// Whether media report the frames on the air.
    pub(crate) fn sniffs(&self) -> bool {
        self.sniffing
    }

    /// The counters of a capture; None if there was none with that number.
    #[must_use]
    pub fn account(&self, number: u32) -> Option<Account> {
        let running = self.all.iter().find(|capture| capture.number == number);
        let running = running.map(|capture| (capture.counts(), capture.failed()));
        running.or_else(|| self.ended.get(&number).copied())
    }

    /// Ends all captures, and keeps their counters.
    ///
    /// # Errors
    /// [`Error::Capture`] if that of the run could not be written. A reader may go.
    pub fn finish(&mut self) -> Result<(), Error> {
        let mut of_run = Ok(());
        for capture in std::mem::take(&mut self.all) {
            let number = capture.number;
            let (account, end) = capture.account();
            self.ended.insert(number, account);
            if number == RUN {
                of_run = end;
            }
        }
        of_run
    }

    /// Keeps the counters of a capture that was taken and has ended. Returns those that are known of
    /// that number.
    pub fn keep(&mut self, number: u32, account: Option<Account>) -> Option<Account> {
        if let Some(account) = account {
            self.ended.insert(number, account);
        }
        self.account(number)
    }

    fn add(&mut self, mut capture: Capture, number: u32) {
        capture.number = number;
        match self.zero {
            Some(Zero::Clock(zero)) => capture.follow(zero),
            Some(Zero::Calendar(zero)) => capture.start_at(zero),
            None => {}
        }
        self.all.push(capture);
    }
}

impl World {
    /// Captures ports and media to a file, or to a folder of files, for the whole run.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name, [`Error::Capture`] if the file cannot be created.
    pub fn capture(&mut self, path: &Path, choice: Choice) -> Result<(), Error> {
        self.know(choice.wanted.as_ref())?;
        self.captures.add(Capture::create(path, choice)?, RUN);
        self.sniff_for_captures()
    }

    /// Begins a capture that a reader follows, also while the engine runs. Returns its number.
    ///
    /// # Errors
    /// [`Error::Unknown`] for a name.
    pub fn begin_capture(&mut self, capture: Capture) -> Result<u32, Error> {
        self.know(capture.wanted())?;
        self.captures.last += 1;
        let number = self.captures.last;
        self.captures.add(capture, number);
        self.sniff_for_captures()?;
        Ok(number)
    }

    /// Passes on what a capture has so far. Returns its counters; None if there was none with that
    /// number.
    pub fn push_capture(&mut self, number: u32) -> Option<Account> {
        let now = self.engine.now();
        if let Some(capture) = self.captures.all.iter_mut().find(|capture| capture.number == number) {
            capture.push(now);
        }
        self.captures.account(number)
    }

    /// Takes a capture from the world, for the caller to finish; None if it has ended.
    pub fn take_capture(&mut self, number: u32) -> Option<Capture> {
        let at = self.captures.all.iter().position(|capture| capture.number == number)?;
        let capture = self.captures.all.remove(at);
        // The media are those of the world.
        let _ = self.sniff_for_captures();
        Some(capture)
    }

    /// Makes media report the frames on the air if a capture has a medium or a radio.
    fn sniff_for_captures(&mut self) -> Result<(), Error> {
        let Self { captures, names, radios, .. } = &*self;
        let on_air = |name: &String| {
            names.media.id(name).is_ok() || names.ports.id(name).is_ok_and(|port| radios.has(port))
        };
        let wants = |capture: &Capture| capture.wanted().is_none_or(|wanted| wanted.iter().any(on_air));
        let sniffing = captures.all.iter().any(wants);
        if sniffing == self.captures.sniffing {
            return Ok(());
        }
        self.captures.sniffing = sniffing;
        self.sniff(sniffing)
    }

    fn know(&self, wanted: Option<&BTreeSet<String>>) -> Result<(), Error> {
        for name in wanted.into_iter().flatten() {
            if self.names.media.id(name).is_err() {
                self.names.ports.id(name)?;
            }
        }
        Ok(())
    }
}
