//! A thread that does something once in each period, until it is dropped.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The thread. Dropping this ends it and waits for it.
#[derive(Debug)]
pub struct Periodic {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Periodic {
    /// Starts the thread; it first acts after one period.
    ///
    /// # Errors
    /// If the kernel refuses a thread.
    pub fn start(name: &str, period: Duration, mut act: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let (end, ended) = channel::<()>();
        let work = move || {
            while ended.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                act();
            }
        };
        let thread = thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic there was printed; it does not concern whoever ends it.
            let _ = thread.join();
        }
    }
}
