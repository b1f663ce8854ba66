//! Reasons for the end of a guest's connection.

use std::io;

use super::memory::MemoryError;
use super::message::Flaw;
use super::queue::Broken;
use crate::wlan::hwsim;

/// Why a guest's connection ended.
#[derive(Debug, thiserror::Error)]
pub enum DisconnectReason {
    /// The other side closed the connection: the guest halted, or its process ended.
    #[error("the guest closed its connection")]
    Closed,
    /// The connection failed.
    #[error("the connection to the guest failed: {0}")]
    Socket(#[source] io::Error),
    /// The guest does not read its answers.
    #[error("the guest does not read what it asked for")]
    Deaf,
    /// An invalid message.
    #[error("request {request} of the guest's front end: {flaw}")]
    Message {
        /// Its number.
        request: u32,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// Features that were not offered, or that lack virtio 1.
    #[error("the guest wants the features {0:#x}, which were not offered or are not those of virtio 1")]
    Features(u64),
    /// A queue that the device does not have.
    #[error("the guest speaks of queue {0} of 2")]
    NoQueue(u32),
    /// Invalid size of a queue.
    #[error("a queue of {0} entries: not a power of two up to {largest}", largest = super::queue::LARGEST)]
    QueueSize(u32),
    /// Invalid index of a queue.
    #[error("a queue that begins at entry {0}")]
    QueueBase(u32),
    /// A queue outside the memory, or not aligned.
    #[error("a part of a queue at {0:#x} is outside the guest's memory or not aligned")]
    QueuePlace(u64),
    /// A message that needs a descriptor came without.
    #[error("the guest sent no descriptor to be told by")]
    NoDescriptor,
    /// A descriptor of the wrong type.
    #[error("a descriptor of the guest is neither an eventfd nor a socket: {0}")]
    Notifier(#[source] io::Error),
    /// The guest's memory cannot be mapped.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The guest's memory became inaccessible.
    #[error("the guest's memory is gone: its file was cut short, or the file system it lies on is full")]
    MemoryLost,
    /// A violation of the virtio specification in the queue from which the guest receives.
    #[error("the guest broke its receive queue: {0}")]
    Receive(#[source] Broken),
    /// A violation of the virtio specification in the queue on which the guest sends.
    #[error("the guest broke its send queue: {0}")]
    Send(#[source] Broken),
    /// An invalid message of the guest's wireless driver.
    #[error("a message of the guest's wireless driver: {0}")]
    Wlan(#[source] hwsim::Flaw),
}
