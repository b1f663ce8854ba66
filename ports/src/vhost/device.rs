//! A device of a guest: the features negotiated with its front end, and its two queues.
//!
//! What is in the entries of the queues is the matter of a [`DeviceType`].

use std::os::fd::OwnedFd;

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::time::Instant;

use super::backlog::Backlog;
use super::call::Call;
use super::coalescing::Coalescing;
use super::connection;
use super::disconnect::DisconnectReason;
use super::handling::Handling;
use super::memory::Memory;
use super::message::{self, CONFIG, Request};
use super::notifier::Notifier;
use super::queue::{self, Buffers, Writer};
use super::side::Side;
use super::translation::Translations;

/// Protocol features: an answer to every message, the MTU, a back-end channel, the configuration, a
/// reset. The channel tells of changes of the configuration, and User Mode Linux requests no interrupt
/// without it.
const REPLY_ACK: u64 = 1 << 3;
const PROTOCOL: u64 = REPLY_ACK | CHANNEL | 1 << 4 | 1 << 9 | 1 << 13;
const CHANNEL: u64 = 1 << 5;
/// Protocol feature: notifications are messages ([`Handling::in_band`]).
const IN_BAND: u64 = 1 << 14;

/// Bits of the protocol features with the number of the device ([`Device::join`]), plus one.
const NUMBER: u32 = 48;

/// Features of every device (virtio 1.2, section 6), by number.
pub(crate) mod feature {
    pub const INDIRECT_DESC: u64 = 1 << 28;
    pub const EVENT_IDX: u64 = 1 << 29;
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    pub const VERSION_1: u64 = 1 << 32;
    pub const ALL: u64 = INDIRECT_DESC | EVENT_IDX | PROTOCOL_FEATURES | VERSION_1;
}

/// Index of the queue from which the guest receives, whatever its number.
pub const RECEIVE: usize = 0;
/// Index of the queue on which the guest sends.
pub const SEND: usize = 1;

/// What distinguishes one type of device from another.
pub trait DeviceType {
    /// Number of the queue on which the guest sends; the other one, of 0 and 1, is the one from
    /// which it receives.
    const SENDS_ON: u32;
    /// Octets of the header before each frame in the queue from which the guest receives. The
    /// header ends with the number of buffers that the frame takes, two octets.
    const HEADER: usize;

    /// The features that it offers, those of every device among them.
    fn features(&self) -> u64;

    /// The configuration as the guest reads it.
    fn config(&self, carrier: bool) -> [u8; CONFIG];

    /// Whether a frame may be spread over several of the guest's buffers.
    fn merges(features: u64) -> bool;

    /// Whether the guest learns the carrier of its interface from its configuration.
    fn has_status(features: u64) -> bool;

    /// Parts of the guest that have sent frames and that no port serves, in words.
    fn unserved(&self) -> Vec<String> {
        Vec::new()
    }

    /// Forgets what it knows of the guest.
    fn reset(&mut self) {}
}

/// Counters of transfers to and from a guest, in frames of its queues: a super-frame counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Frames received from the guest.
    pub taken: u64,
    /// Octets of these.
    pub taken_octets: u64,
    /// Frames delivered to the guest.
    pub put: u64,
    /// Octets of these.
    pub put_octets: u64,
    /// Frames that waited for a buffer of the guest.
    pub waited: u64,
    /// Frames lost because there was no buffer and the backlog was full.
    pub full: u64,
    /// Notifications by the guest (kicks).
    pub kicks: u64,
    /// Notifications to the guest (calls).
    pub calls: u64,
    /// Notifications suppressed at the guest's request.
    pub spared: u64,
    /// Notifications repeated because the guest did not react.
    pub again: u64,
    /// Longest time, in ns, from the return of a buffer to the decision to notify the guest of it.
    pub longest_hold_ns: u64,
}

/// Result of a request.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The answer to send, if any.
    pub reply: Option<Vec<u8>>,
    /// For each queue: if present, the new notifier of the guest (kick), or its removal.
    pub kicks: [Option<Option<Notifier>>; 2],
    /// The queue of which the guest notified the device by this message.
    pub kicked: Option<usize>,
}

/// Result of writing a frame to the guest.
enum Written {
    /// It is in the guest's buffers.
    Now,
    /// The guest has too few buffers at the moment: so many chains, which do not suffice.
    Later(u16),
    /// The guest's buffers can never hold it.
    Never(HostLoss),
}

/// A device, with or without a guest.
#[derive(Debug)]
pub struct Device<T> {
    /// Its type.
    pub kind: T,
    features: u64,
    protocol: u64,
    pub(super) coalescing: Coalescing,
    in_band: bool,
    /// Its number among the devices of a guest that shares memory with its calendar.
    pub(super) number: Option<u16>,
    memory: Memory,
    pub(super) sides: [Side; 2],
    backlog: Backlog,
    /// Socket for requests to the front end. Kept open: closing it would be an event for the guest.
    pub(super) channel: Option<OwnedFd>,
    /// Carrier of the guest's interface.
    carrier: bool,
    /// Whether a change of the configuration is to be announced in-band.
    pub(super) changed: bool,
    /// Entries that the guest has logged since the last end of them.
    pub(super) logged: u32,
    /// Counters since the device was created, over all its guests.
    pub counts: Counts,
}

impl<T: DeviceType> Device<T> {
    /// A device without a guest.
    #[must_use]
    pub fn new(kind: T, handling: Handling) -> Self {
        let Handling { coalescing, translation, in_band } = handling;
        Self {
            kind,
            features: 0,
            protocol: 0,
            coalescing,
            in_band,
            number: None,
            memory: Memory::new(translation),
            sides: sides(coalescing),
            backlog: Backlog::default(),
            channel: None,
            carrier: true,
            changed: false,
            logged: 0,
            counts: Counts::default(),
        }
    }

    /// Removes the guest's state.
    pub fn reset(&mut self) {
        self.sides = sides(self.coalescing);
        self.backlog = Backlog::default();
        self.kind.reset();
        self.memory.clear();
        (self.features, self.protocol, self.channel, self.changed) = (0, 0, None, false);
    }

    /// True once the guest's driver uses both queues.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.sides.iter().all(|side| side.queue.is_some())
    }

    /// True if a part of the guest's memory turned out to be inaccessible.
    #[must_use]
    pub fn memory_is_lost(&self) -> bool {
        self.memory.is_lost()
    }

    /// Counters of the translation of addresses.
    #[must_use]
    pub fn translations(&self) -> Translations {
        self.memory.translations()
    }

    /// The negotiated features.
    #[must_use]
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The protocol features that it offers.
    fn offered(&self) -> u64 {
        PROTOCOL | if self.in_band { IN_BAND } else { 0 }
    }

    /// True if notifications are messages.
    pub(super) fn is_in_band(&self) -> bool {
        self.protocol & (IN_BAND | CHANNEL) == IN_BAND | CHANNEL
    }

    /// True if the front end gets an answer to every request that asks for one.
    #[must_use]
    pub fn acknowledges(&self) -> bool {
        self.protocol & REPLY_ACK != 0
    }

    /// Executes a request of the front end.
    ///
    /// # Errors
    /// The reason if it is invalid; the connection must be closed then.
    pub fn serve(&mut self, request: &Request, mut files: Vec<OwnedFd>) -> Result<Outcome, DisconnectReason> {
        let mut outcome = Outcome::default();
        let mut reply = |octets: &[u8]| outcome.reply = Some(octets.to_vec());
        match request {
            Request::GetFeatures => reply(&self.kind.features().to_ne_bytes()),
            Request::SetFeatures(features) => self.agree(*features)?,
            Request::GetProtocolFeatures => {
                // Features that a front end does not know are none to it.
                let number = self.number.map_or(0, |number| u64::from(number) + 1);
                reply(&(self.offered() | number << NUMBER).to_ne_bytes());
            }
            Request::SetProtocolFeatures(features) => {
                if features & !self.offered() != 0 {
                    return Err(DisconnectReason::Features(*features));
                }
                self.protocol = *features;
                if self.is_in_band() {
                    self.sides.iter_mut().for_each(|side| side.call = Call::InBand(false));
                }
            }
            // Errors are signalled by closing the connection; the guest's own MTU
            // does not affect the device.
            Request::SetOwner | Request::SetQueueError(..) | Request::SetMtu(_) | Request::SetConfig => {}
            Request::Reset => {
                let protocol = self.protocol;
                self.reset();
                self.protocol = protocol;
                outcome.kicks = [Some(None), Some(None)];
            }
            Request::SetMemory(regions) => {
                self.sides.iter_mut().for_each(Side::stop);
                self.memory.map(regions, files)?;
                self.start()?;
            }
            Request::SetQueueSize(queue, size) => {
                let refused = DisconnectReason::QueueSize(*size);
                let size = u16::try_from(*size).ok().filter(|size| size.is_power_of_two());
                let size = size.filter(|&size| size <= queue::LARGEST).ok_or(refused)?;
                self.stopped(*queue)?.size = size;
            }
            Request::SetQueuePlaces(queue, places) => {
                self.stopped(*queue)?.places = Some(*places);
                self.start()?;
            }
            Request::SetQueueBase(queue, base) => {
                self.stopped(*queue)?.base =
                    u16::try_from(*base).map_err(|_| DisconnectReason::QueueBase(*base))?;
                self.start()?;
            }
            Request::GetQueueBase(queue) => {
                let side = self.stopped(*queue)?;
                side.kicked = false;
                let words = [*queue, u32::from(side.base)].map(u32::to_ne_bytes);
                reply(words.as_flattened());
                outcome.kicks[index::<T>(*queue)?] = Some(None);
            }
            Request::SetQueueKick(queue, true) => {
                let notifier = Notifier::eventfd(files.pop().ok_or(DisconnectReason::NoDescriptor)?)
                    .map_err(DisconnectReason::Notifier)?;
                self.side(*queue)?.kicked = true;
                outcome.kicks[index::<T>(*queue)?] = Some(Some(notifier));
                self.start()?;
            }
            // Without a descriptor, the guest requests polling of its queue.
            Request::SetQueueKick(_, false) => return Err(DisconnectReason::NoDescriptor),
            Request::SetQueueCall(queue, with) => {
                let notifier = with.then(|| files.pop().ok_or(DisconnectReason::NoDescriptor)).transpose()?;
                let notifier = notifier.map(Notifier::new).transpose().map_err(DisconnectReason::Notifier)?;
                self.side(*queue)?.call = notifier.map_or(Call::None, Call::Descriptor);
            }
            Request::EnableQueue(queue, enabled) => {
                let in_band = self.is_in_band();
                let side = self.side(*queue)?;
                side.enabled = *enabled;
                // There is no descriptor whose arrival would start the queue.
                side.kicked |= in_band && *enabled;
                if !enabled {
                    side.stop();
                }
                self.start()?;
            }
            Request::SetChannel => self.channel = files.pop(),
            Request::Kick(queue) => {
                if !self.is_in_band() {
                    let (request, flaw) = (message::QUEUE_KICK, message::Flaw::Unknown);
                    return Err(DisconnectReason::Message { request, flaw });
                }
                outcome.kicked = Some(index::<T>(*queue)?);
            }
            Request::GetConfig(offset, octets) => {
                let (from, octets) = (*offset as usize, *octets as usize);
                let whole = self.kind.config(self.carrier);
                let part = whole.get(from..from + octets).unwrap_or(&[]);
                let head = [*offset, u32::try_from(part.len()).unwrap_or(0), 0].map(u32::to_ne_bytes);
                reply(&[head.as_flattened(), part].concat());
            }
        }
        Ok(outcome)
    }

    /// Sets the carrier of the guest's interface, and tells the front end that the configuration
    /// changed. If the channel is full, the front end has not read an earlier notice yet, which
    /// then also stands for this one; if it is closed, so will be the connection.
    pub fn set_carrier(&mut self, up: bool) {
        self.carrier = up;
        if self.is_in_band() {
            self.changed |= T::has_status(self.features);
        } else if let (true, Some(channel)) = (T::has_status(self.features), &self.channel) {
            let _ = connection::send(channel, &message::config_change(false));
        }
    }

    /// Takes the next entry of the guest and passes its buffers to `read`, which copies what it
    /// needs and returns it with the number of octets to be counted.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub(crate) fn take_entry<R>(
        &mut self,
        read: impl FnOnce(&mut T, &Buffers, &Memory) -> (R, usize),
    ) -> Result<Option<R>, DisconnectReason> {
        let (memory, Some(queue)) = (&mut self.memory, &mut self.sides[SEND].queue) else {
            return Ok(None);
        };
        let Some(buffers) = queue.take(memory).map_err(DisconnectReason::Send)? else { return Ok(None) };
        let (found, octets) = read(&mut self.kind, buffers, memory);
        queue.give_back(0, memory);
        self.counts.taken += 1;
        self.counts.taken_octets += octets as u64;
        Ok(Some(found))
    }

    /// Enables the guest's notification of its next frame. Returns true if a frame is already
    /// available.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn listen(&mut self) -> Result<bool, DisconnectReason> {
        let queue = self.sides[SEND].queue.as_mut();
        queue.map_or(Ok(false), |queue| queue.listen().map_err(DisconnectReason::Send))
    }

    /// Delivers one entry to the guest, its header included, or queues it until the guest has
    /// buffers; otherwise returns the loss.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub(crate) fn put_entry(&mut self, parts: [&[u8]; 3]) -> Result<Option<HostLoss>, DisconnectReason> {
        let first = self.backlog.is_empty();
        match if first { self.write(parts)? } else { Written::Later(0) } {
            Written::Now => return Ok(None),
            Written::Never(loss) => return Ok(Some(loss)),
            Written::Later(_) => {}
        }
        if !self.backlog.push(&parts) {
            self.counts.full += 1;
            return Ok(Some(HostLoss::GuestRingFull));
        }
        self.counts.waited += 1;
        if first {
            self.catch_up()?;
        }
        Ok(None)
    }

    /// Delivers queued entries to the guest, as far as it has buffers, and enables its notification
    /// of further buffers if frames remain.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn catch_up(&mut self) -> Result<(), DisconnectReason> {
        let mut backlog = std::mem::take(&mut self.backlog);
        while let Some(entry) = backlog.first() {
            match self.write([entry, &[], &[]])? {
                Written::Now => backlog.pop(),
                Written::Never(_) => {
                    self.counts.full += 1;
                    backlog.pop();
                }
                Written::Later(seen) => {
                    let queue = self.sides[RECEIVE].queue.as_mut();
                    if !queue.is_some_and(|queue| queue.listen_beyond(seen)) {
                        break;
                    }
                }
            }
        }
        self.backlog = backlog;
        if let (true, Some(queue)) = (self.backlog.is_empty(), &mut self.sides[RECEIVE].queue) {
            queue.ignore();
        }
        Ok(())
    }

    /// Writes one entry to the guest's buffers.
    fn write(&mut self, parts: [&[u8]; 3]) -> Result<Written, DisconnectReason> {
        let (memory, Some(queue)) = (&mut self.memory, &mut self.sides[RECEIVE].queue) else {
            return Ok(Written::Never(HostLoss::NodeGone));
        };
        let merges = T::merges(self.features);
        let octets = parts.iter().map(|part| part.len()).sum();
        let most = if merges { u16::MAX } else { 1 };
        // Counted first: the guest may add a buffer after an empty queue was read.
        let offered = queue.offered().map_err(DisconnectReason::Receive)?;
        let found = queue.take_buffers(memory, octets, most).map_err(DisconnectReason::Receive)?;
        let Some(buffers) = found else {
            // The guest does not merge buffers for a frame, and its buffer is too short.
            let small = !merges && offered > 0;
            return Ok(if small { Written::Never(HostLoss::Refused) } else { Written::Later(offered) });
        };
        let chains = u16::try_from(buffers.chains()).unwrap_or(u16::MAX);
        let mut at = 0;
        for part in parts {
            buffers.write(memory, at, part);
            at += part.len();
        }
        if let Some(at) = T::HEADER.checked_sub(2) {
            buffers.write(memory, at, &chains.to_le_bytes());
        }
        queue.give_back(octets, memory);
        self.counts.put += 1;
        self.counts.put_octets += (octets - T::HEADER) as u64;
        Ok(Written::Now)
    }

    /// Notifies the guest if it requests that and it is time, and repeats notifications without a reaction.
    /// Returns false if the guest's notifier is closed.
    #[must_use]
    pub fn notify_guest(&mut self, now: Instant) -> bool {
        let mut is_open = true;
        for side in &mut self.sides {
            is_open &= side.notify_guest(now, &mut self.counts);
        }
        is_open
    }

    /// Time at which a notification is due: of buffers that are held, or again because the guest has not
    /// reacted.
    #[must_use]
    pub fn reminder(&self) -> Option<Instant> {
        self.sides.iter().filter_map(Side::reminder).min()
    }

    fn agree(&mut self, features: u64) -> Result<(), DisconnectReason> {
        if features & !self.kind.features() != 0 || features & feature::VERSION_1 == 0 {
            return Err(DisconnectReason::Features(features));
        }
        self.features = features;
        Ok(())
    }

    fn side(&mut self, queue: u32) -> Result<&mut Side, DisconnectReason> {
        Ok(&mut self.sides[index::<T>(queue)?])
    }

    /// Stops a queue and returns its state.
    fn stopped(&mut self, queue: u32) -> Result<&mut Side, DisconnectReason> {
        let side = self.side(queue)?;
        side.stop();
        Ok(side)
    }

    /// Starts the queues whose settings are complete.
    fn start(&mut self) -> Result<(), DisconnectReason> {
        if !self.memory.is_mapped() {
            return Ok(());
        }
        let event_idx = self.features & feature::EVENT_IDX != 0;
        let always = self.features & feature::PROTOCOL_FEATURES == 0;
        for (side, writer) in self.sides.iter_mut().zip([Writer::Device, Writer::Guest]) {
            if side.enabled || always {
                side.start(&self.memory, writer, event_idx)?;
            }
        }
        Ok(())
    }
}

fn sides(coalescing: Coalescing) -> [Side; 2] {
    [Side::new(coalescing), Side::new(coalescing)]
}

/// Index of the queue with this number: [`RECEIVE`] or [`SEND`].
fn index<T: DeviceType>(queue: u32) -> Result<usize, DisconnectReason> {
    match queue {
        0 | 1 => Ok(if queue == T::SENDS_ON { SEND } else { RECEIVE }),
        _ => Err(DisconnectReason::NoQueue(queue)),
    }
}
