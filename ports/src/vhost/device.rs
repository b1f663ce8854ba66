//! The network device of a guest: the features negotiated with its front end, and its two queues.

use std::os::fd::OwnedFd;

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::segment;
use airloom_engine::frame::{BufferId, Frame, Pool, Protocol};
use airloom_engine::time::Instant;

use super::backlog::Backlog;
use super::config::{DeviceConfig, FEATURES, PROTOCOL, REPLY_ACK, feature};
use super::connection;
use super::disconnect::DisconnectReason;
use super::memory::Memory;
use super::message::{self, Request};
use super::notifier::Notifier;
use super::queue::{self, Queue, Writer};
use super::side::Side;
use crate::port::LARGEST_FRAME;
use crate::vnet::{self, Meaning};

/// Index of the queue from which the guest receives.
pub const RECEIVE: usize = 0;
/// Index of the queue on which the guest sends.
pub const SEND: usize = 1;

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
}

/// Result of a request.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The answer to send, if any.
    pub reply: Option<Vec<u8>>,
    /// For each queue: if present, the new notifier of the guest (kick), or its removal.
    pub kicks: [Option<Option<Notifier>>; 2],
}

/// Result of writing a frame to the guest.
enum Written {
    /// It is in the guest's buffers.
    Now,
    /// The guest has too few buffers at the moment.
    Later,
    /// The guest's buffers can never hold it.
    Never(HostLoss),
}

/// A device, with or without a guest.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    features: u64,
    protocol: u64,
    memory: Option<Memory>,
    sides: [Side; 2],
    backlog: Backlog,
    /// Socket for requests to the front end. Kept open: closing it would be an event for the guest.
    channel: Option<OwnedFd>,
    /// Carrier of the guest's interface.
    carrier: bool,
    /// Counters since the device was created, over all its guests.
    pub counts: Counts,
}

impl Device {
    /// A device without a guest.
    #[must_use]
    pub fn new(config: DeviceConfig) -> Self {
        let sides = [Side::default(), Side::default()];
        let counts = Counts::default();
        let backlog = Backlog::default();
        let (features, protocol, carrier) = (0, 0, true);
        Self { config, features, protocol, memory: None, sides, backlog, channel: None, carrier, counts }
    }

    /// Removes the guest's state.
    pub fn reset(&mut self) {
        *self = Self { counts: self.counts, carrier: self.carrier, ..Self::new(self.config) };
    }

    /// True once the guest's driver uses both queues.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.sides.iter().all(|side| side.queue.is_some())
    }

    /// True if a part of the guest's memory turned out to be inaccessible.
    #[must_use]
    pub fn memory_is_lost(&self) -> bool {
        self.memory.as_ref().is_some_and(Memory::is_lost)
    }

    /// The negotiated features.
    #[must_use]
    pub fn features(&self) -> u64 {
        self.features
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
            Request::GetFeatures => reply(&FEATURES.to_ne_bytes()),
            Request::SetFeatures(features) => self.agree(*features)?,
            Request::GetProtocolFeatures => reply(&PROTOCOL.to_ne_bytes()),
            Request::SetProtocolFeatures(features) => {
                if features & !PROTOCOL != 0 {
                    return Err(DisconnectReason::Features(*features));
                }
                self.protocol = *features;
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
                self.memory = Some(Memory::map(regions, files)?);
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
                outcome.kicks[*queue as usize] = Some(None);
            }
            Request::SetQueueKick(queue, true) => {
                let notifier = Notifier::eventfd(files.pop().ok_or(DisconnectReason::NoDescriptor)?)
                    .map_err(DisconnectReason::Notifier)?;
                self.side(*queue)?.kicked = true;
                outcome.kicks[*queue as usize] = Some(Some(notifier));
                self.start()?;
            }
            // Without a descriptor, the guest requests polling of its queue.
            Request::SetQueueKick(_, false) => return Err(DisconnectReason::NoDescriptor),
            Request::SetQueueCall(queue, with) => {
                let notifier = with.then(|| files.pop().ok_or(DisconnectReason::NoDescriptor)).transpose()?;
                self.side(*queue)?.call =
                    notifier.map(Notifier::new).transpose().map_err(DisconnectReason::Notifier)?;
            }
            Request::EnableQueue(queue, enabled) => {
                let side = self.side(*queue)?;
                side.enabled = *enabled;
                if !enabled {
                    side.stop();
                }
                self.start()?;
            }
            Request::SetChannel => self.channel = files.pop(),
            Request::GetConfig(offset, octets) => {
                let (from, octets) = (*offset as usize, *octets as usize);
                let whole = self.config.octets(self.carrier);
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
        if let (true, Some(channel)) = (self.features & feature::STATUS != 0, &self.channel) {
            let _ = connection::send(channel, &message::config_change());
        }
    }

    /// Receives one frame from the guest.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn take(&mut self, pool: &mut Pool) -> Result<Option<(BufferId, u32, Meaning)>, DisconnectReason> {
        let (Some(memory), Some(queue)) = (&self.memory, &mut self.sides[SEND].queue) else {
            return Ok(None);
        };
        let Some(buffers) = queue.take(memory).map_err(DisconnectReason::Send)? else { return Ok(None) };
        let mut header = [0; vnet::OCTETS];
        buffers.read(memory, 0, &mut header);
        let octets = buffers.octets().saturating_sub(vnet::OCTETS);
        let length = octets.min(LARGEST_FRAME);
        let buffer = pool.take(length);
        buffers.read(memory, vnet::OCTETS, &mut pool.octets_mut(buffer)[..length]);
        queue.give_back(0);
        let meaning = match &pool.octets(buffer)[..length] {
            whole if length == octets => vnet::read(&header, whole),
            _ => Meaning::INVALID,
        };
        self.counts.taken += 1;
        self.counts.taken_octets += octets as u64;
        let length = u32::try_from(length).expect("a buffer is shorter than 4 GB");
        Ok(Some((buffer, length, meaning)))
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

    /// Delivers a frame, or a run of segments of one, to the guest, segmented as its features
    /// require.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn put(
        &mut self,
        frame: &Frame,
        pool: &Pool,
        scratch: &mut [u8],
    ) -> Result<Delivery, DisconnectReason> {
        let has = |feature: u64| self.features & feature == feature;
        let whole = match frame.segmentation.map(|cut| cut.protocol) {
            _ if frame.count == 1 => true,
            None => true,
            Some(Protocol::Tcp4) => has(feature::GUEST_TSO4 | feature::GUEST_ECN),
            Some(Protocol::Tcp6) => has(feature::GUEST_TSO6 | feature::GUEST_ECN),
            Some(Protocol::Udp) => has(feature::GUEST_USO4 | feature::GUEST_USO6),
        };
        let open = frame.checksum.is_none() || has(feature::GUEST_CSUM);
        let (runs, count) = if whole && open { (1, frame.count) } else { (frame.count, 1) };
        for run in 0..runs {
            let first = frame.first + run;
            let handed = if open {
                let mut head = [0; segment::HEADER_MAX];
                let cut = segment::header(frame, pool, first, count, &mut head);
                let payload = &pool.octets(frame.buffer)[cut.payload];
                let (head, rest) =
                    if cut.header == 0 { (payload, &[][..]) } else { (&head[..cut.header], payload) };
                let header = vnet::write(cut.segmentation, cut.checksum, head);
                self.fill(header, [head, rest])?
            } else {
                let octets = segment::complete(frame, pool, first, scratch);
                self.fill(vnet::write(None, None, &[]), [&scratch[..octets], &[]])?
            };
            if let Some(loss) = handed {
                return Ok(if run == 0 { Delivery::Lost(loss) } else { Delivery::Partly(run, loss) });
            }
        }
        Ok(Delivery::Taken)
    }

    /// Delivers one piece to the guest, or queues it until the guest has buffers;
    /// otherwise returns the loss.
    fn fill(
        &mut self,
        header: [u8; vnet::OCTETS],
        [head, rest]: [&[u8]; 2],
    ) -> Result<Option<HostLoss>, DisconnectReason> {
        let first = self.backlog.is_empty();
        match if first { self.write(header, [head, rest])? } else { Written::Later } {
            Written::Now => return Ok(None),
            Written::Never(loss) => return Ok(Some(loss)),
            Written::Later => {}
        }
        if !self.backlog.push(&[&header, head, rest]) {
            self.counts.full += 1;
            return Ok(Some(HostLoss::GuestRingFull));
        }
        self.counts.waited += 1;
        if first {
            self.catch_up()?;
        }
        Ok(None)
    }

    /// Delivers queued frames to the guest, as far as it has buffers, and enables its notification
    /// of further buffers if frames remain.
    ///
    /// # Errors
    /// The guest's violation of the queue's rules.
    pub fn catch_up(&mut self) -> Result<(), DisconnectReason> {
        let mut backlog = std::mem::take(&mut self.backlog);
        while let Some((header, frame)) = backlog.first().and_then(<[u8]>::split_first_chunk) {
            match self.write(*header, [frame, &[]])? {
                Written::Now => backlog.pop(),
                Written::Never(_) => {
                    self.counts.full += 1;
                    backlog.pop();
                }
                Written::Later => {
                    let queue = self.sides[RECEIVE].queue.as_mut();
                    if !queue.is_some_and(Queue::listen_beyond) {
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

    /// Writes one piece to the guest's buffers.
    fn write(
        &mut self,
        mut header: [u8; vnet::OCTETS],
        parts: [&[u8]; 2],
    ) -> Result<Written, DisconnectReason> {
        let (Some(memory), Some(queue)) = (&self.memory, &mut self.sides[RECEIVE].queue) else {
            return Ok(Written::Never(HostLoss::NodeGone));
        };
        let merges = self.features & feature::MRG_RXBUF != 0;
        let octets = parts[0].len() + parts[1].len();
        let most = if merges { u16::MAX } else { 1 };
        let found =
            queue.take_buffers(memory, vnet::OCTETS + octets, most).map_err(DisconnectReason::Receive)?;
        let Some(buffers) = found else {
            // The guest does not merge buffers for a frame, and its buffer is too short.
            let small = !merges && queue.offered().map_err(DisconnectReason::Receive)? > 0;
            return Ok(if small { Written::Never(HostLoss::Refused) } else { Written::Later });
        };
        let chains = u16::try_from(buffers.chains()).unwrap_or(u16::MAX);
        header[10..].copy_from_slice(&chains.to_le_bytes());
        buffers.write(memory, 0, &header);
        buffers.write(memory, vnet::OCTETS, parts[0]);
        buffers.write(memory, vnet::OCTETS + parts[0].len(), parts[1]);
        queue.give_back(vnet::OCTETS + octets);
        self.counts.put += 1;
        self.counts.put_octets += octets as u64;
        Ok(Written::Now)
    }

    /// Notifies the guest if it requests that, and repeats notifications without a reaction.
    /// Returns false if the guest's notifier is closed.
    #[must_use]
    pub fn notify_guest(&mut self, now: Instant) -> bool {
        let mut is_open = true;
        for side in &mut self.sides {
            is_open &= side.notify_guest(now, &mut self.counts);
        }
        is_open
    }

    /// Time at which a notification is to be repeated, unless the guest reacts before.
    #[must_use]
    pub fn reminder(&self) -> Option<Instant> {
        self.sides.iter().filter_map(Side::reminder).min()
    }

    fn agree(&mut self, features: u64) -> Result<(), DisconnectReason> {
        if features & !FEATURES != 0 || features & feature::VERSION_1 == 0 {
            return Err(DisconnectReason::Features(features));
        }
        self.features = features;
        Ok(())
    }

    fn side(&mut self, queue: u32) -> Result<&mut Side, DisconnectReason> {
        let known = usize::try_from(queue).ok().and_then(|queue| self.sides.get_mut(queue));
        known.ok_or(DisconnectReason::NoQueue(queue))
    }

    /// Stops a queue and returns its state.
    fn stopped(&mut self, queue: u32) -> Result<&mut Side, DisconnectReason> {
        let side = self.side(queue)?;
        side.stop();
        Ok(side)
    }

    /// Starts the queues whose settings are complete.
    fn start(&mut self) -> Result<(), DisconnectReason> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let event_idx = self.features & feature::EVENT_IDX != 0;
        let always = self.features & feature::PROTOCOL_FEATURES == 0;
        for (side, writer) in self.sides.iter_mut().zip([Writer::Device, Writer::Guest]) {
            if side.enabled || always {
                side.start(memory, writer, event_idx)?;
            }
        }
        Ok(())
    }
}
