//! What radios of 802.11 stacks hear and acknowledge where they have not sent.

mod stack;

use airloom_engine::medium::wlan::{Listening, TxRequest};
use airloom_engine::medium::{RadioId, RadioSettings};
use airloom_engine::{DropReason, PortId};
use stack::{GROUP, Lab, ask, beacon, mac, qos_data, wlan};

const MS: u64 = 1_000_000;
/// Channels 36 and 48, and 6 at 2.4 GHz.
const HOME: u16 = 5180;
const AWAY: u16 = 5240;
const TWO: u16 = 2437;

/// A public action frame without content.
fn action(to: [u8; 6], from: [u8; 6], sequence: u16) -> Vec<u8> {
    management(0xd0, to, from, sequence, &[4, 9])
}

fn management(control: u8, to: [u8; 6], from: [u8; 6], sequence: u16, body: &[u8]) -> Vec<u8> {
    let mut octets = beacon(from, sequence);
    octets.truncate(24);
    octets[0] = control;
    octets[4..10].copy_from_slice(&to);
    octets.extend(body);
    octets
}

struct World {
    lab: Lab,
    /// The radio in question, with address 1.
    own: PortId,
    radio: RadioId,
    /// One that sends to it, with address 2.
    peer: PortId,
    sequence: u16,
}

impl World {
    fn new() -> Self {
        Self::with(wlan())
    }

    fn with(settings: RadioSettings) -> Self {
        let mut lab = Lab::new(31);
        let (own, radio) = lab.add(1, 0.0, settings.clone());
        let (peer, _) = lab.add(2, 10.0, settings);
        for (port, node) in [(own, 1), (peer, 2)] {
            assert!(lab.engine.set_wlan_addresses(port, &[mac(node)]).expect("a stack"));
        }
        Self { lab, own, radio, peer, sequence: 0 }
    }

    /// Sends a frame at once on a channel, and lets 50 ms pass: whether it was acknowledged.
    fn send(&mut self, from: PortId, octets: &[u8], mhz: u16) -> bool {
        let now = self.lab.engine.now().nanos();
        let before = self.lab.book.of(from).len();
        self.lab.send(from, now, octets, TxRequest { mhz, ..ask(0, &[(0, 3)]) });
        self.lab.run(now + 50 * MS);
        self.lab.book.of(from)[before].acknowledged
    }

    /// How many copies of a frame of the peer to the radio arrive, and whether it is acknowledged.
    fn offer(&mut self, octets: &[u8], mhz: u16) -> (usize, bool) {
        let before = self.lab.book.at(self.own).len();
        let acknowledged = self.send(self.peer, octets, mhz);
        (self.lab.book.at(self.own).len() - before, acknowledged)
    }

    fn data(&mut self, mhz: u16) -> (usize, bool) {
        self.sequence += 1;
        self.offer(&qos_data(mac(1), mac(2), self.sequence, 100), mhz)
    }

    fn action(&mut self, mhz: u16) -> (usize, bool) {
        self.sequence += 1;
        self.offer(&action(mac(1), mac(2), self.sequence), mhz)
    }

    fn listen(&mut self, listening: Listening) {
        self.lab.engine.set_wlan_listening(self.own, listening).expect("a stack");
    }

    fn channel(&mut self) -> u16 {
        self.lab.engine.medium(self.lab.medium).expect("known").channel(self.radio).mhz
    }
}

#[test]
fn a_radio_whose_driver_does_not_say_answers_management_frames_on_every_channel() {
    let mut world = World::new();
    world.send(world.own, &beacon(mac(1), 0), HOME);
    for _ in 0..2 {
        assert_eq!(world.data(HOME), (1, true));
        assert_eq!(world.action(HOME), (1, true));
        assert_eq!(world.action(AWAY), (1, true));
        assert_eq!(world.channel(), HOME, "it went there for the acknowledgment alone");
        // Data belongs to the channel of an association. The stack gets each of the repetitions: it
        // may have come to the channel in between.
        assert_eq!(world.data(AWAY), (3, false));
    }
    let mine = action(mac(1), mac(3), 1);
    assert!(!world.send(world.own, &mine, AWAY), "its own address does not answer itself");
}

#[test]
fn a_management_frame_that_is_announced_gets_its_clear_to_send_on_every_channel() {
    let mut world = World::new();
    world.send(world.own, &beacon(mac(1), 0), HOME);
    let announced = |cookie| {
        let mut request = TxRequest { mhz: AWAY, ..ask(cookie, &[(0, 3)]) };
        request.attempts[0].as_mut().expect("a step").rts = true;
        request
    };
    for (octets, answered) in [(action(mac(1), mac(2), 1), true), (qos_data(mac(1), mac(2), 2, 300), false)] {
        let now = world.lab.engine.now().nanos();
        world.lab.send(world.peer, now, &octets, announced(u64::from(answered)));
        world.lab.run(now + 50 * MS);
        let status = *world.lab.book.of(world.peer).last().expect("one");
        assert_eq!((status.acknowledged, status.cookie), (answered, u64::from(answered)));
        assert_eq!(world.channel(), HOME);
    }
}

#[test]
fn a_radio_listens_exactly_where_its_driver_says() {
    let mut world = World::new();
    world.send(world.own, &beacon(mac(1), 0), HOME);
    world.listen(Listening::On(AWAY));
    assert_eq!(world.channel(), AWAY);
    for _ in 0..2 {
        assert_eq!((world.data(AWAY), world.action(AWAY)), ((1, true), (1, true)));
        assert_eq!((world.data(HOME), world.action(HOME)), ((0, false), (0, false)));
        assert_eq!(world.offer(&beacon(mac(2), 0), HOME).0, 0);
        assert_eq!(world.offer(&beacon(mac(2), 0), AWAY).0, 1);
    }
    // Idle, or on a channel that the radio does not have.
    for nowhere in [Listening::Nowhere, Listening::On(TWO)] {
        world.listen(nowhere);
        for mhz in [HOME, AWAY] {
            assert_eq!((world.data(mhz), world.action(mhz)), ((0, false), (0, false)), "{nowhere:?}");
            assert_eq!(world.offer(&beacon(mac(2), 0), mhz).0, 0);
        }
    }
    world.listen(Listening::Unsaid);
    assert_eq!(world.action(HOME), (1, true));
}

#[test]
fn frames_that_wait_are_sent_on_their_channel_before_the_radio_leaves_it() {
    let mut world = World::new();
    world.listen(Listening::On(HOME));
    let now = world.lab.engine.now().nanos();
    for sequence in 0..20 {
        let octets = qos_data(mac(2), mac(1), sequence, 1000);
        world.lab.send(world.own, now, &octets, TxRequest { mhz: HOME, ..ask(0, &[(0, 3)]) });
    }
    world.send(world.peer, &beacon(mac(2), 0), HOME);
    assert_eq!(world.lab.book.of(world.own).len(), 20);
    let now = world.lab.engine.now().nanos();
    for sequence in 20..40 {
        let octets = qos_data(mac(2), mac(1), sequence, 1000);
        world.lab.send(world.own, now, &octets, TxRequest { mhz: HOME, ..ask(0, &[(0, 3)]) });
    }
    world.lab.run(now + MS);
    world.listen(Listening::On(AWAY));
    assert_eq!(world.channel(), HOME);
    world.lab.run(now + 100 * MS);
    let unanswered: Vec<usize> =
        (0..40).filter(|&at| !world.lab.book.of(world.own)[at].acknowledged).collect();
    assert_eq!(unanswered, [0usize; 0]);
    assert_eq!(world.lab.book.of(world.own).len(), 40);
    assert_eq!(world.channel(), AWAY);
}

#[test]
fn a_station_that_has_left_acknowledges_no_data_until_it_sends_again() {
    let accepted = management(0x10, mac(1), mac(2), 1, &[1, 0, 0, 0, 1, 0xc0]);
    // By the station itself, by its access point, and by that to all.
    for (from, to, answered) in [(1, mac(2), true), (2, mac(1), true), (2, GROUP, false)] {
        let mut world = World::new();
        world.send(world.peer, &beacon(mac(2), 0), HOME);
        world.send(world.own, &beacon(mac(1), 0), HOME);
        assert!(world.send(world.peer, &accepted, HOME));
        assert_eq!(world.data(HOME), (1, true));
        let sender = if from == 1 { world.own } else { world.peer };
        let farewell = management(0xc0, to, mac(from), 2, &[3, 0]);
        assert_eq!(world.send(sender, &farewell, HOME), answered);
        for _ in 0..3 {
            assert!(!world.data(HOME).1);
        }
        assert!(world.action(HOME).1, "it may listen for those");
        world.send(world.own, &qos_data(mac(2), mac(1), 5, 100), HOME);
        assert_eq!(world.data(HOME), (1, true));
    }
}

#[test]
fn an_access_point_that_dismisses_a_station_goes_on() {
    let mut world = World::new();
    world.send(world.own, &beacon(mac(1), 0), HOME);
    world.send(world.own, &management(0xc0, mac(2), mac(1), 1, &[3, 0]), HOME);
    assert_eq!(world.data(HOME), (1, true));
}

#[test]
fn a_radio_of_both_bands_serves_each_with_its_own_layer() {
    let both = RadioSettings { phy: "802.11abg".to_owned(), ..wlan() };
    let mut world = World::with(both);
    for _ in 0..2 {
        for mhz in [HOME, TWO] {
            world.send(world.own, &beacon(mac(1), 0), mhz);
            assert_eq!(world.data(mhz), (1, true));
            assert_eq!(world.channel(), mhz);
        }
        // It is on channel 6, and answers the management frame at 5 GHz.
        assert_eq!(world.action(HOME), (1, true));
        assert_eq!((world.channel(), world.data(TWO)), (TWO, (1, true)));
    }
    // The fastest rate of each: index 7 of 802.11a, 11 of 802.11bg, and the time of 1000 octets.
    for (mhz, rate, microseconds) in [(HOME, 7, 172), (TWO, 11, 178), (HOME, 7, 172)] {
        world.send(world.own, &beacon(mac(1), 0), mhz);
        let now = world.lab.engine.now().nanos();
        world.sequence += 1;
        let octets = qos_data(mac(1), mac(2), world.sequence, 996);
        world.lab.send(world.peer, now, &octets, TxRequest { mhz, ..ask(0, &[(rate, 1)]) });
        world.lab.run(now + 20 * MS);
        let received = world.lab.book.at(world.own).last().copied().expect("one").clone();
        assert_eq!((received.status.mhz, received.status.rate), (mhz, rate));
        let began = received.status.tsf_us;
        assert_eq!(received.at.nanos() / 1_000 - began, microseconds, "{mhz} MHz");
    }
}

#[test]
fn frames_outside_the_bands_have_a_reason_of_their_own() {
    let mut world = World::new();
    for (mhz, times) in [(TWO, 3), (5183, 1)] {
        for _ in 0..times {
            assert!(!world.send(world.own, &beacon(mac(1), 0), mhz));
        }
    }
    let drops = world.lab.book.drops.iter().map(|(_, why)| *why).collect::<Vec<_>>();
    assert_eq!(drops, [DropReason::OutsideBand; 4]);
    let foreign = world.lab.engine.medium(world.lab.medium).expect("known").foreign(world.radio);
    assert_eq!(foreign.into_iter().collect::<Vec<_>>(), [(TWO, 3), (5183, 1)]);
}
