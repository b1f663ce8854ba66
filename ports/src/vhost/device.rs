//! The network device that a guest sees: what was agreed upon with its front end, and its two queues.

use std::os::fd::OwnedFd;

use airloom_engine::drop_reason::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::segment;
use airloom_engine::frame::{BufferId, Frame, Pool, Protocol};
use airloom_engine::time::{Instant, Span};

use super::backlog::Backlog;
use super::config::{DeviceConfig, FEATURES, PROTOCOL, REPLY_ACK, feature};
use super::disconnect::DisconnectReason;
use super::memory::Memory;
use super::message::{QueuePlaces, Request};
use super::notifier::Notifier;
use super::queue::{self, Queue, Writer};
use crate::port::LARGEST_FRAME;
use crate::vnet::{self, Meaning};

/// How long a guest may take to give a sign that it heard, before it is told again; twice as long each
/// time, up to the longest.
const PATIENCE: Span = Span::from_micros(250);
const LONGEST: Span = Span::from_millis(100);

/// The queue from which the guest receives, and the one by which it sends.
pub const RECEIVE: usize = 0;
/// As above.
pub const SEND: usize = 1;

/// What crossed the boundary to a guest, in frames as its queues hold them: a super-frame is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Frames taken from the guest, and their octets.
    pub taken: u64,
    /// Octets of these.
    pub taken_octets: u64,
    /// Frames put before the guest.
    pub put: u64,
    /// Octets of these.
    pub put_octets: u64,
    /// Frames that waited until the guest had a buffer ready.
    pub waited: u64,
    /// Frames for which it had none, and too many waited already.
    pub full: u64,
    /// Times that the guest told of something to take.
    pub kicks: u64,
    /// Times that the guest was told of something.
    pub calls: u64,
    /// Times that there was something, and the guest did not want to be told.
    pub spared: u64,
    /// Times that the guest was told again, since it seemed to sleep.
    pub again: u64,
}

/// What came of a request.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The answer that belongs to it.
    pub reply: Option<Vec<u8>>,
    /// By queue: the bell by which the guest tells of what it offers is another one now, or none.
    pub kicks: [Option<Option<Notifier>>; 2],
}

/// The guest was told, and has given no sign yet that it heard.
#[derive(Debug)]
struct Unheard {
    /// [`Queue::sign`] when it was told.
    sign: (u16, u16),
    /// When it is to be told again.
    at: Instant,
    /// How long it has had for that.
    wait: Span,
}

/// One queue: what was said of it so far, and the queue once it is in use.
#[derive(Debug, Default)]
struct Side {
    size: u16,
    base: u16,
    places: Option<QueuePlaces>,
    kicked: bool,
    enabled: bool,
    call: Option<Notifier>,
    unheard: Option<Unheard>,
    queue: Option<Queue>,
}

impl Side {
    /// Stops it; what is said of it stays.
    fn stop(&mut self) {
        if let Some(queue) = self.queue.take() {
            self.base = queue.next_available();
        }
        self.unheard = None;
    }
}

/// What came of a frame for the guest.
enum Written {
    /// It is in its buffers.
    Now,
    /// It has too few of them yet.
    Later,
    /// They will never hold it.
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
    /// Kept open: its end would be news to the guest.
    channel: Option<OwnedFd>,
    /// What crossed since it was made, whatever guests there were.
    pub counts: Counts,
}

impl Device {
    /// A device that nobody uses.
    #[must_use]
    pub fn new(config: DeviceConfig) -> Self {
        let sides = [Side::default(), Side::default()];
        let counts = Counts::default();
        let backlog = Backlog::default();
        Self { config, features: 0, protocol: 0, memory: None, sides, backlog, channel: None, counts }
    }

    /// Forgets the guest.
    pub fn reset(&mut self) {
        *self = Self { counts: self.counts, ..Self::new(self.config) };
    }

    /// True once the guest's driver uses both queues.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.sides.iter().all(|side| side.queue.is_some())
    }

    /// True if a part of the guest's memory could not be had when it was needed.
    #[must_use]
    pub fn memory_is_lost(&self) -> bool {
        self.memory.as_ref().is_some_and(Memory::is_lost)
    }

    /// The features that were agreed upon.
    #[must_use]
    pub fn features(&self) -> u64 {
        self.features
    }

    /// True if requests that ask for an answer get one.
    #[must_use]
    pub fn acknowledges(&self) -> bool {
        self.protocol & REPLY_ACK != 0
    }

    /// Does what the front end asks.
    ///
    /// # Errors
    /// Why it cannot be done; the connection is of no use then.
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
            // Errors are told by closing the connection; the guest's own MTU is the guest's affair.
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
            // Without one the guest wants its queue to be looked at all the time.
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
                let whole = self.config.octets();
                let part = whole.get(from..from + octets).unwrap_or(&[]);
                let head = [*offset, u32::try_from(part.len()).unwrap_or(0), 0].map(u32::to_ne_bytes);
                reply(&[head.as_flattened(), part].concat());
            }
        }
        Ok(outcome)
    }

    /// Takes one frame that the guest sends.
    ///
    /// # Errors
    /// What the guest may not do with its queue.
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
            _ => Meaning::NONSENSE,
        };
        self.counts.taken += 1;
        self.counts.taken_octets += octets as u64;
        let length = u32::try_from(length).expect("a buffer is shorter than 4 GB");
        Ok(Some((buffer, length, meaning)))
    }

    /// Asks the guest to tell of the next frame that it sends. True if there is one already.
    ///
    /// # Errors
    /// What the guest may not do with its queue.
    pub fn listen(&mut self) -> Result<bool, DisconnectReason> {
        let queue = self.sides[SEND].queue.as_mut();
        queue.map_or(Ok(false), |queue| queue.listen().map_err(DisconnectReason::Send))
    }

    /// Puts a frame, or a run of segments of one, before the guest, in the pieces that it agreed to.
    ///
    /// # Errors
    /// What the guest may not do with its queue.
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

    /// Gives one piece to the guest, or has it wait until the guest has buffers; otherwise the loss.
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

    /// Gives the guest what waits, as far as it has buffers, and asks it to tell of more of them if that is
    /// not all.
    ///
    /// # Errors
    /// What the guest may not do with its queue.
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

    /// Writes one piece into the guest's buffers.
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
        let found = queue.room(memory, vnet::OCTETS + octets, most).map_err(DisconnectReason::Receive)?;
        let Some(buffers) = found else {
            // One buffer of a guest that takes no more for a frame, and too short.
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

    /// Tells the guest what it wants to be told, and again what it seems not to have heard. False if it
    /// cannot hear any more.
    #[must_use]
    pub fn tell(&mut self, now: Instant) -> bool {
        let mut take_count = true;
        for side in &mut self.sides {
            let (Some(queue), Some(notifier)) = (&mut side.queue, &side.call) else { continue };
            if queue.has_news() {
                let sign = queue.sign();
                if queue.tells() {
                    self.counts.calls += 1;
                    take_count &= notifier.notify();
                    let wait = PATIENCE;
                    side.unheard = notifier.may_be_missed().then_some(Unheard { sign, at: now + wait, wait });
                } else {
                    self.counts.spared += 1;
                }
            }
            let Some(unheard) = side.unheard.as_mut().filter(|unheard| unheard.at <= now) else { continue };
            if unheard.sign == queue.sign() {
                self.counts.again += 1;
                take_count &= notifier.notify();
                unheard.wait = (unheard.wait * 2).min(LONGEST);
                unheard.at = now + unheard.wait;
            } else {
                side.unheard = None;
            }
        }
        take_count
    }

    /// When the guest is to be told again, unless it gives a sign before.
    #[must_use]
    pub fn reminder(&self) -> Option<Instant> {
        self.sides.iter().filter_map(|side| Some(side.unheard.as_ref()?.at)).min()
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

    /// A queue that is not in use any more.
    fn stopped(&mut self, queue: u32) -> Result<&mut Side, DisconnectReason> {
        let side = self.side(queue)?;
        side.stop();
        Ok(side)
    }

    /// Takes those queues into use of which all is known.
    fn start(&mut self) -> Result<(), DisconnectReason> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let event_idx = self.features & feature::EVENT_IDX != 0;
        let always = self.features & feature::PROTOCOL_FEATURES == 0;
        for (side, writer) in self.sides.iter_mut().zip([Writer::Device, Writer::Guest]) {
            let Some(places) = side.places else { continue };
            if side.queue.is_some() || !side.kicked || side.size == 0 || !(side.enabled || always) {
                continue;
            }
            let [descriptors, available, used] = queue::parts(side.size);
            let area = |address, (octets, alignment)| {
                memory.area(address, octets, alignment).ok_or(DisconnectReason::QueuePlace(address))
            };
            let areas = [
                area(places.descriptors, descriptors)?,
                area(places.available, available)?,
                area(places.used, used)?,
            ];
            let queue = side.queue.insert(Queue::new(side.size, writer, areas, side.base, event_idx));
            if writer == Writer::Device {
                queue.ignore();
            }
        }
        Ok(())
    }
}
