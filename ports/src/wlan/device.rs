//! The radios of a guest's `mac80211_hwsim`, independent of the transport of its messages.
//!
//! The kernel names its radio number `n` by the address `42:00:00:nn:nn:00`. It numbers all radios since
//! its start, so that those of a guest begin with 0, and those of this machine with any number.

use std::collections::BTreeSet;

use airloom_engine::PortId;
use airloom_engine::frame::{BufferId, Frame, Pool};
use airloom_engine::medium::phy::Phy;
use airloom_engine::medium::wlan::{Attempt, Listening, RxStatus, TxRequest, TxStatus};

use super::hwsim::{
    self, Address, Content, Message, NO_ACK, RTS, Reception, STEPS, Status, Step, Transmission,
};
use super::rates;

/// Maximum number of a guest's radios (`radios` of `mac80211_hwsim`).
pub const MOST_RADIOS: usize = 100;
/// Maximum number of addresses of one radio.
const MOST_ADDRESSES: usize = 64;
/// Maximum number of radios without a port that are named.
const MOST_STRANGERS: usize = 16;

/// A frame of which the guest expects the status.
#[derive(Clone, Copy, Debug)]
struct Pending {
    cookie: u64,
    flags: u32,
    mhz: u32,
    chain: [Step; STEPS],
}

/// A radio of a guest.
#[derive(Debug)]
struct Radio {
    port: PortId,
    phy: &'static Phy,
    /// An address is listed as often as it was added: a scan adds that of its interface, and
    /// removes it at its end.
    addresses: Vec<Address>,
    /// Where its stack listens.
    listening: Listening,
    /// The frames in the engine, and the free places in their list.
    pending: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl Radio {
    /// Stores a request until its status; returns its place.
    fn hold(&mut self, pending: Pending) -> u32 {
        if let Some(place) = self.free.pop() {
            self.pending[place as usize] = Some(pending);
            return place;
        }
        self.pending.push(Some(pending));
        u32::try_from(self.pending.len() - 1).expect("the engine's queue is short")
    }

    fn release(&mut self, place: u32) -> Option<Pending> {
        let pending = self.pending.get_mut(usize::try_from(place).ok()?)?.take()?;
        self.free.push(place);
        Some(pending)
    }
}

/// What has changed at a radio.
#[derive(Clone, Copy, Debug)]
enum What {
    Addresses,
    Listening,
}

/// A change of the radio at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// It has these addresses.
    Addresses(PortId, Vec<Address>),
    /// Its stack listens there.
    Listening(PortId, Listening),
}

/// All radios of a guest.
#[derive(Debug, Default)]
pub struct Wlan {
    radios: Vec<Option<Radio>>,
    /// The kernel's number of each radio; empty for a guest, whose numbers are these.
    numbers: Vec<u16>,
    /// Number of the present guest; statuses of an earlier guest's frames are ignored.
    generation: u32,
    /// Radios whose addresses, or whose channel, have changed since they were last read.
    changed: Vec<(usize, What)>,
    /// Radios that have sent frames without being ports of the engine.
    strangers: BTreeSet<Address>,
}

impl Wlan {
    /// The radios with these numbers in a kernel.
    pub(super) fn of_kernel(numbers: &[u16]) -> Self {
        Self { numbers: numbers.to_vec(), ..Self::default() }
    }

    /// Number of the radio that the kernel gives this name; None for a radio that was not made for
    /// the engine.
    fn number(&self, name: Address) -> Option<usize> {
        let [0x42, 0, 0, high, low, 0] = name else { return None };
        let given = u16::from_be_bytes([high, low]);
        if self.numbers.is_empty() {
            return Some(usize::from(given));
        }
        self.numbers.iter().position(|&number| number == given)
    }

    /// Name of the radio with this number.
    fn name(&self, number: usize) -> Address {
        let given = self.numbers.get(number).copied();
        let [high, low] = given.or_else(|| number.try_into().ok()).unwrap_or(u16::MAX).to_be_bytes();
        [0x42, 0, 0, high, low, 0]
    }

    /// Assigns a port and a physical layer to the radio with this number.
    pub fn assign(&mut self, number: usize, port: PortId, phy: &'static Phy) {
        if self.radios.len() <= number {
            self.radios.resize_with(number + 1, || None);
        }
        let (addresses, pending, free) = (Vec::new(), Vec::new(), Vec::new());
        let listening = Listening::default();
        self.radios[number] = Some(Radio { port, phy, addresses, listening, pending, free });
    }

    /// Forgets the guest: its addresses, and its frames.
    pub(super) fn forget_guest(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        for (number, radio) in self.radios.iter_mut().enumerate() {
            let Some(radio) = radio else { continue };
            radio.addresses.clear();
            radio.pending.clear();
            radio.free.clear();
            radio.listening = Listening::Unsaid;
            self.changed.extend([(number, What::Addresses), (number, What::Listening)]);
        }
    }

    /// A change since the last call.
    pub(super) fn take_changed(&mut self) -> Option<Changed> {
        let (number, what) = self.changed.pop()?;
        let radio = self.radios.get(number)?.as_ref()?;
        if let What::Listening = what {
            return Some(Changed::Listening(radio.port, radio.listening));
        }
        let mut addresses = radio.addresses.clone();
        addresses.sort_unstable();
        addresses.dedup();
        Some(Changed::Addresses(radio.port, addresses))
    }

    /// Whether there is one.
    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    fn radio(&mut self, number: usize) -> Option<&mut Radio> {
        self.radios.get_mut(number)?.as_mut()
    }

    fn change(&mut self, name: Address, act: impl FnOnce(&mut Vec<Address>)) {
        let Some(number) = self.number(name) else { return };
        let Some(radio) = self.radio(number) else { return };
        act(&mut radio.addresses);
        self.changed.push((number, What::Addresses));
    }

    fn listen(&mut self, name: Address, mhz: u32) {
        let Some(number) = self.number(name) else { return };
        let Some(radio) = self.radio(number) else { return };
        radio.listening = match u16::try_from(mhz) {
            Ok(mhz) if mhz > 0 => Listening::On(mhz),
            _ => Listening::Nowhere,
        };
        self.changed.push((number, What::Listening));
    }

    /// The radios that have sent frames without being ports of the engine, in words: a program of the
    /// node created them.
    pub(super) fn strangers(&self) -> Vec<String> {
        let named = |name: &Address| match *name {
            [0x42, 0, 0, high, low, 0] => format!("radio {}", u16::from_be_bytes([high, low])),
            _ => {
                let octets: Vec<String> = name.iter().map(|octet| format!("{octet:02x}")).collect();
                format!("radio {}", octets.join(":"))
            }
        };
        self.strangers.iter().map(named).collect()
    }

    /// Executes a message of the guest.
    ///
    /// # Errors
    /// The flaw in it.
    pub fn serve<C: Content + ?Sized>(&mut self, message: &C, pool: &mut Pool) -> Result<Taken, hwsim::Flaw> {
        match hwsim::read(message)? {
            Message::Transmit(sent) => {
                let Some((port, request)) = self.request(&sent) else {
                    if self.strangers.len() < MOST_STRANGERS {
                        self.strangers.insert(sent.radio);
                    }
                    return Ok(Taken::Nothing);
                };
                // The only copy of the frame on its way into the engine.
                let buffer = pool.take(sent.frame.len());
                message.copy(sent.frame.start, &mut pool.octets_mut(buffer)[..sent.frame.len()]);
                let octets = u32::try_from(sent.frame.len()).expect("less than a page");
                return Ok(Taken::Transmit(port, buffer, octets, request));
            }
            Message::Add { radio, address } => self.change(radio, |addresses| {
                if addresses.len() < MOST_ADDRESSES {
                    addresses.push(address);
                }
            }),
            Message::Remove { radio, address } => {
                self.change(radio, |addresses| {
                    if let Some(place) = addresses.iter().position(|known| *known == address) {
                        addresses.swap_remove(place);
                    }
                });
            }
            Message::Listen { radio, mhz } => self.listen(radio, mhz),
            Message::Other(_) => {}
        }
        Ok(Taken::Nothing)
    }

    /// The request for the engine, and the port it is made at.
    fn request(&mut self, sent: &Transmission) -> Option<(PortId, TxRequest)> {
        let generation = self.generation;
        let radio = self.radio(self.number(sent.radio)?)?;
        let mut attempts = [None; STEPS];
        for (attempt, &step) in attempts.iter_mut().zip(&sent.chain) {
            let Some(rate) = rates::of_radio(radio.phy, sent.mhz, step) else { break };
            *attempt = Some(Attempt { rate, tries: step.count, rts: step.flags & RTS != 0 });
        }
        let &Transmission { cookie, flags, mhz, chain, .. } = sent;
        let place = radio.hold(Pending { cookie, flags, mhz, chain });
        let cookie = u64::from(generation) << 32 | u64::from(place);
        let mhz = u16::try_from(mhz).unwrap_or(0);
        Some((radio.port, TxRequest { mhz, attempts, no_ack: flags & NO_ACK != 0, cookie }))
    }

    /// The message about a frame that the radio with this number received, in three parts; None if
    /// the frame fits no message.
    pub(super) fn received<'a>(
        &self,
        number: usize,
        frame: &Frame,
        pool: &'a Pool,
        status: &RxStatus,
    ) -> Option<hwsim::Parts<'a>> {
        let mhz = u32::from(status.mhz);
        let radio = self.radios.get(number)?.as_ref()?;
        let how = Reception {
            radio: self.name(number),
            mhz,
            rate: rates::received(radio.phy, mhz, status.rate).unwrap_or(0),
            signal_dbm: status.signal_dbm,
            retry: status.retry,
        };
        hwsim::received(&how, &pool.octets(frame.buffer)[..usize::try_from(frame.octets()).unwrap_or(0)])
    }

    /// The message about the outcome of a transmission by the radio with this number; None if the
    /// present guest did not request it.
    pub(super) fn transmitted(&mut self, number: usize, status: &TxStatus) -> Option<[u8; hwsim::STATUS]> {
        let generation = u64::from(self.generation);
        let name = self.name(number);
        let radio = self.radio(number).filter(|_| status.cookie >> 32 == generation)?;
        let place = u32::try_from(status.cookie & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        let pending = radio.release(place)?;
        let mut used = [(-1, 0); STEPS];
        let made =
            status.attempts.iter().zip(&pending.chain).map_while(|(made, step)| Some(((*made)?, step)));
        for (used, (made, &step)) in used.iter_mut().zip(made) {
            *used = (rates::of_driver(radio.phy, pending.mhz, step, made.rate), made.tries);
        }
        Some(hwsim::transmitted(&Status {
            radio: name,
            flags: pending.flags,
            acknowledged: status.acknowledged,
            ack_dbm: status.ack_dbm,
            used,
            cookie: pending.cookie,
        }))
    }
}

/// What a guest's message asks for.
#[derive(Debug)]
pub enum Taken {
    /// A frame of so many octets is to be sent from a port.
    Transmit(PortId, BufferId, u32, TxRequest),
    /// Nothing that concerns the engine now.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::{Changed, Listening, Taken, Wlan};
    use airloom_engine::Engine;
    use airloom_engine::frame::Pool;
    use airloom_engine::medium::phy::tables::ABG;

    #[test]
    fn radios_of_a_guest_are_numbered_as_its_kernel_does() {
        let wlan = Wlan::default();
        assert_eq!(wlan.number([0x42, 0, 0, 1, 2, 0]), Some(258));
        assert_eq!(wlan.name(258), [0x42, 0, 0, 1, 2, 0]);
        assert_eq!(wlan.number([2, 0, 0, 1, 2, 0]), None, "a permanent address");
    }

    fn message(command: u8, radio: u8, more: &[(u16, &[u8])]) -> Vec<u8> {
        let name = [0x42, 0, 0, 0, radio, 0];
        let mut octets = vec![0; 20];
        octets[16] = command;
        for (kind, value) in [(2, &name[..])].iter().chain(more) {
            octets.extend((u16::try_from(value.len()).unwrap() + 4).to_ne_bytes());
            octets.extend(kind.to_ne_bytes());
            octets.extend(*value);
            octets.resize(octets.len().next_multiple_of(4), 0);
        }
        let length = u32::try_from(octets.len()).unwrap();
        octets[..4].copy_from_slice(&length.to_ne_bytes());
        octets
    }

    #[test]
    fn the_channel_that_a_driver_names_is_where_its_radio_listens() {
        let port = Engine::new(1).add_port("a", false).expect("new");
        let (mut wlan, mut pool) = (Wlan::default(), Pool::default());
        wlan.assign(0, port, &ABG);
        let mut hears = |wlan: &mut Wlan, radio, mhz: u32| {
            let message = message(64, radio, &[(19, &mhz.to_ne_bytes())]);
            assert!(matches!(wlan.serve(&message[..], &mut pool), Ok(Taken::Nothing)));
            wlan.take_changed()
        };
        assert_eq!(hears(&mut wlan, 0, 5180), Some(Changed::Listening(port, Listening::On(5180))));
        assert_eq!(hears(&mut wlan, 0, 0), Some(Changed::Listening(port, Listening::Nowhere)));
        assert_eq!(hears(&mut wlan, 1, 5180), None, "not assigned");
        wlan.forget_guest();
        assert_eq!(wlan.take_changed(), Some(Changed::Listening(port, Listening::Unsaid)));
    }

    #[test]
    fn radios_that_are_no_ports_are_named() {
        let (mut wlan, mut pool) = (Wlan::default(), Pool::default());
        wlan.assign(0, Engine::new(1).add_port("a", false).expect("new"), &ABG);
        for radio in [0, 7, 7] {
            let frame: (u16, &[u8]) = (3, &[0x80; 30]);
            let rates: (u16, &[u8]) = (7, &[0, 1, 255, 0, 255, 0, 255, 0]);
            let numbers: [(u16, &[u8]); 3] = [(4, &[0; 4]), (19, &2412u32.to_ne_bytes()), (8, &[1; 8])];
            let message = message(2, radio, &[&[frame, rates][..], &numbers].concat());
            let sent = matches!(wlan.serve(&message[..], &mut pool), Ok(Taken::Transmit(..)));
            assert_eq!(sent, radio == 0);
        }
        assert_eq!(wlan.strangers(), ["radio 7"]);
    }

    #[test]
    fn radios_among_others_of_a_kernel_are_found_by_its_numbers() {
        let wlan = Wlan::of_kernel(&[7, 258, u16::MAX]);
        for (number, name) in [[0, 7], [1, 2], [255, 255]].into_iter().enumerate() {
            let name = [0x42, 0, 0, name[0], name[1], 0];
            assert_eq!((wlan.number(name), wlan.name(number)), (Some(number), name));
        }
        assert_eq!(wlan.number([0x42, 0, 0, 0, 0, 0]), None, "of another program");
    }
}
