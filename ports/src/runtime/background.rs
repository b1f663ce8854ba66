//! A thread for system calls that may block, in the order in which the engine asked for them.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use crate::error::Error;
use crate::port::Blocking;

/// Work that may still be under way.
#[must_use]
#[derive(Debug)]
pub struct Pending(Receiver<Infallible>);

impl Pending {
    /// Waits until the work has ended.
    pub fn wait(self) {
        // Nothing is ever sent; the sender goes with the work.
        let _ = self.0.recv();
    }
}

/// The thread. It ends, after all its work, when this is dropped.
#[derive(Debug)]
pub struct Background {
    work: Option<Sender<Blocking>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts the thread. Must not be called on the loop's thread, whose priority it would inherit.
    ///
    /// # Errors
    /// [`Error::Loop`] if the kernel refuses a thread.
    pub fn start() -> Result<Self, Error> {
        let (work, orders) = channel::<Blocking>();
        let thread = thread::Builder::new()
            .name("airloom-blocking".into())
            .spawn(move || orders.into_iter().for_each(|work| work()))
            .map_err(|source| Error::Loop { what: "a thread", source })?;
        Ok(Self { work: Some(work), thread: Some(thread) })
    }

    /// Runs `work` after all earlier work, and returns at once.
    pub fn run(&self, work: Blocking) -> Pending {
        let (running, ended) = channel();
        if let Some(orders) = &self.work {
            let work = move || {
                work();
                drop(running);
            };
            // The thread ends only with this channel.
            let _ = orders.send(Box::new(work));
        }
        Pending(ended)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was printed; it does not concern the loop.
            let _ = thread.join();
        }
    }
}
