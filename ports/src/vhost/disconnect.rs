//! Why a guest's connection ended.

use std::io;

use super::memory::MemoryError;
use super::message::Flaw;
use super::queue::Broken;

/// The reason.
#[derive(Debug, thiserror::Error)]
pub enum DisconnectReason {
    /// The other side closed the connection: the guest halted, or its process ended.
    #[error("the guest closed its connection")]
    Closed,
    /// The connection failed.
    #[error("the connection to the guest failed: {0}")]
    Socket(#[source] io::Error),
    /// The guest did not take an answer.
    #[error("the guest does not read what it asked for")]
    Deaf,
    /// A message that is none.
    #[error("request {request} of the guest's front end: {flaw}")]
    Message {
        /// Its number.
        request: u32,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// Features that were not offered, or not those of virtio 1.
    #[error("the guest wants the features {0:#x}, which were not offered or are not those of virtio 1")]
    Features(u64),
    /// A queue that the device does not have.
    #[error("the guest speaks of queue {0} of 2")]
    NoQueue(u32),
    /// Not a size of a queue.
    #[error("a queue of {0} entries: not a power of two up to {largest}", largest = super::queue::LARGEST)]
    QueueSize(u32),
    /// Not an entry of a queue.
    #[error("a queue that begins at entry {0}")]
    QueueBase(u32),
    /// A queue outside the memory, or not aligned.
    #[error("a part of a queue at {0:#x} is outside the guest's memory or not aligned")]
    QueuePlace(u64),
    /// A message that needs a descriptor came without.
    #[error("the guest sent no descriptor to be told by")]
    NoDescriptor,
    /// A descriptor of a wrong type.
    #[error("a descriptor of the guest is neither an eventfd nor a socket: {0}")]
    Notifier(#[source] io::Error),
    /// Its memory cannot be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Its memory could be had, and then not any more.
    #[error("the guest's memory is gone: its file was cut short, or the file system it lies on is full")]
    MemoryLost,
    /// A rule of virtio was broken in the queue from which the guest receives.
    #[error("the guest broke its receive queue: {0}")]
    Receive(#[source] Broken),
    /// A rule of virtio was broken in the queue by which the guest sends.
    #[error("the guest broke its send queue: {0}")]
    Send(#[source] Broken),
}
