//! Shortcuts through chains of switches do not change observable behaviour.
//!
//! Each comparison uses a network without shortcuts: its switches are VLAN-aware, and all of their
//! ports are access ports of the same VLAN.

mod common;

use airloom_engine::settings::{Late, LinkSettings, Loss, Rate, Segments, SwitchSettings, VlanSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, DropReason, End, Engine, Ledger, LinkId, PortId, SwitchId};
use common::{Arrival, Book, Dropped, check_ledger, mac, offer, offer_super, run_dry};
use proptest::prelude::*;

const MILLISECOND: u64 = 1_000_000;

fn table(ageing_ns: u64) -> SwitchSettings {
    SwitchSettings::Switch { ageing_ns, addresses: 1024 }
}

/// An engine to which elements are added, and its ports.
struct Net {
    engine: Engine,
    /// True if its switches are VLAN-aware.
    vlans: bool,
    ports: Vec<PortId>,
    links: Vec<LinkId>,
    switches: Vec<SwitchId>,
    book: Book,
    now: u64,
}

impl Net {
    fn new(vlans: bool, kind: &SwitchSettings) -> Self {
        let mut engine = Engine::new(7);
        let root = engine.add_switch("root", kind).expect("new");
        let (ports, links, switches) = (Vec::new(), Vec::new(), vec![root]);
        Self { engine, vlans, ports, links, switches, book: Book::default(), now: 0 }
    }

    fn join(&mut self, parent: usize, end: End, [to, from]: &[LinkSettings; 2]) -> LinkId {
        let name = self.links.len().to_string();
        let parent = End::Switch(self.switches[parent % self.switches.len()]);
        let link = self.engine.connect(&name, parent, end, to, from).expect("a tree");
        if self.vlans {
            for direction in [Direction::Forward, Direction::Backward] {
                if direction == Direction::Forward || matches!(end, End::Switch(_)) {
                    self.engine
                        .set_vlan(link, direction, &VlanSettings::Access { vlan: 1 })
                        .expect("at a switch");
                }
            }
        }
        self.links.push(link);
        link
    }

    fn add_switch(&mut self, parent: usize, kind: &SwitchSettings, link: &[LinkSettings; 2]) -> LinkId {
        let switch = self.engine.add_switch(&self.links.len().to_string(), kind).expect("new");
        let link = self.join(parent, End::Switch(switch), link);
        self.switches.push(switch);
        link
    }

    fn add_port(&mut self, parent: usize, link: &[LinkSettings; 2]) -> LinkId {
        let port =
            self.engine.add_port(&self.links.len().to_string(), self.links.len() % 3 == 0).expect("new");
        self.ports.push(port);
        self.join(parent, End::Port(port), link)
    }

    /// A chain of so many switches with a port at either end.
    fn row(vlans: bool, switches: usize, kind: &SwitchSettings) -> Self {
        let mut net = Self::new(vlans, kind);
        let bare = [LinkSettings::default(), LinkSettings::default()];
        net.add_port(0, &bare);
        for parent in 0..switches - 1 {
            net.add_switch(parent, kind, &bare);
        }
        net.add_port(switches - 1, &bare);
        net
    }

    fn send(&mut self, port: usize, from: u8, to: u8, octets: u32) {
        let port = self.ports[port % self.ports.len()];
        offer(&mut self.engine, port, self.now, mac(to), mac(from), octets);
    }

    fn pass(&mut self, nanos: u64) {
        self.now += nanos;
        self.engine.advance(Instant::from_nanos(self.now), &mut self.book);
    }

    /// Sends so many frames in either direction between the first two ports.
    fn talk(&mut self, frames: usize) {
        for _ in 0..frames {
            self.send(0, 0, 1, 100);
            self.pass(10);
            self.send(1, 1, 0, 100);
            self.pass(10);
        }
    }

    fn schedule(&mut self, change: Change) {
        self.engine.schedule(Instant::from_nanos(self.now), change).expect("valid");
    }
}

#[derive(Clone, Debug)]
enum Act {
    /// Frames of one instant: sender, source address (mostly its own), destination, octets.
    Frames(Vec<(usize, Option<u8>, u8, u32)>),
    /// Frames in alternate directions.
    Talk {
        one: usize,
        other: usize,
        frames: usize,
        octets: u32,
        gap: u64,
    },
    Super {
        port: usize,
        payload: usize,
        size: u16,
    },
    Pass(u64),
    Read,
    Link {
        link: usize,
        direction: bool,
        settings: Box<LinkSettings>,
    },
    UpDown {
        link: usize,
        up: bool,
    },
    Switch {
        switch: usize,
        kind: SwitchSettings,
    },
    Grow {
        parent: usize,
        link: Box<[LinkSettings; 2]>,
    },
}

fn kinds() -> impl Strategy<Value = SwitchSettings> {
    let ageing = prop_oneof![Just(1), Just(MILLISECOND), Just(1_000 * MILLISECOND)];
    let addresses = prop_oneof![1 => Just(2), 1 => Just(4), 4 => Just(1024)];
    let table = (ageing, addresses)
        .prop_map(|(ageing_ns, addresses)| SwitchSettings::Switch { ageing_ns, addresses });
    prop_oneof![1 => Just(SwitchSettings::Hub), 12 => table]
}

fn links() -> impl Strategy<Value = LinkSettings> {
    let bare = |mtu| LinkSettings { mtu, ..LinkSettings::default() };
    let mtus = || prop_oneof![6 => Just(9216_u32), 1 => 68..1_500_u32];
    let rate =
        prop_oneof![Just(Rate::Unlimited), (1_000_000..1_000_000_000_u64).prop_map(Rate::BitsPerSecond)];
    let segments = prop_oneof![Just(Segments::Timed), Just(Segments::Carried)];
    let other = (rate, 0..2 * MILLISECOND, 0.0..0.5, mtus(), segments).prop_map(
        move |(rate, delay_ns, probability, mtu, segments)| LinkSettings {
            rate,
            delay_ns,
            loss: Loss::Bernoulli { probability },
            segments,
            late: Late::CatchUp,
            ..bare(mtu)
        },
    );
    prop_oneof![12 => mtus().prop_map(bare), 1 => other]
}

fn both() -> impl Strategy<Value = [LinkSettings; 2]> {
    [links(), links()]
}

fn acts() -> impl Strategy<Value = Act> {
    let sender = prop_oneof![5 => Just(None), 1 => (0..8_u8).prop_map(Some)];
    let octets = || prop_oneof![4 => Just(100_u32), 1 => 14..2_000_u32];
    let gaps = || prop_oneof![Just(0), 0..1_000_u64, 0..MILLISECOND];
    let talk = (0..8_usize, 0..8_usize, 1..9_usize, octets(), gaps())
        .prop_map(|(one, other, frames, octets, gap)| Act::Talk { one, other, frames, octets, gap });
    prop_oneof![
        6 => proptest::collection::vec((0..8_usize, sender, 0..9_u8, octets()), 1..4).prop_map(Act::Frames),
        8 => talk,
        3 => (0..8_usize, 1..20_000_usize, 1..3_000_u16)
            .prop_map(|(port, payload, size)| Act::Super { port, payload, size }),
        4 => gaps().prop_map(Act::Pass),
        2 => Just(Act::Read),
        1 => (0..20_usize, any::<bool>(), links())
            .prop_map(|(link, direction, settings)| Act::Link { link, direction, settings: Box::new(settings) }),
        1 => (0..20_usize, any::<bool>()).prop_map(|(link, up)| Act::UpDown { link, up }),
        1 => (0..20_usize, kinds()).prop_map(|(switch, kind)| Act::Switch { switch, kind }),
        1 => (0..20_usize, both()).prop_map(|(parent, link)| Act::Grow { parent, link: Box::new(link) }),
    ]
}

impl Net {
    /// Performs the act; a ledger that it reads is appended to `read`.
    fn act(&mut self, act: &Act, read: &mut Vec<Ledger>) {
        let number = |port: usize| u8::try_from(port % 8).expect("small");
        match act {
            Act::Frames(frames) => {
                for &(port, from, to, octets) in frames {
                    self.send(port, from.unwrap_or(number(port)), if to == 8 { 0xff } else { to }, octets);
                }
            }
            &Act::Talk { one, other, frames, octets, gap } => {
                for _ in 0..frames {
                    for (from, to) in [(one, other), (other, one)] {
                        self.send(from, number(from), number(to), octets);
                        self.pass(gap);
                    }
                }
            }
            &Act::Super { port, payload, size } => {
                let port = self.ports[port % self.ports.len()];
                offer_super(&mut self.engine, port, self.now, payload, size);
            }
            &Act::Pass(nanos) => self.pass(nanos),
            Act::Read => {
                check_ledger(&mut self.engine);
                read.push(self.engine.ledger().clone());
            }
            Act::Link { link, direction, settings } => {
                let direction = if *direction { Direction::Forward } else { Direction::Backward };
                self.schedule(Change::Link(self.links[link % self.links.len()], direction, settings.clone()));
            }
            &Act::UpDown { link, up } => {
                let link = self.links[link % self.links.len()];
                self.schedule(if up { Change::Up(link) } else { Change::Down(link) });
            }
            Act::Switch { switch, kind } => {
                self.schedule(Change::Switch(self.switches[switch % self.switches.len()], kind.clone()));
            }
            Act::Grow { parent, link } => {
                self.add_port(*parent, link);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn what_comes_out_is_the_same_without_them(
        row in proptest::collection::vec((kinds(), both()), 1..7),
        ports in proptest::collection::vec((any::<usize>(), both()), 1..8),
        acts in proptest::collection::vec(acts(), 1..120),
    ) {
        let run = |vlans: bool| -> (Vec<Arrival>, Vec<Dropped>, Vec<Ledger>) {
            let mut net = Net::new(vlans, &table(MILLISECOND));
            for (number, (kind, link)) in row.iter().enumerate() {
                net.add_switch(number, kind, link);
            }
            for (parent, link) in &ports {
                net.add_port(*parent, link);
            }
            let mut read = Vec::new();
            acts.iter().for_each(|act| net.act(act, &mut read));
            run_dry(&mut net.engine, &mut net.book);
            read.push(net.engine.ledger().clone());
            (net.book.deliveries, net.book.drops, read)
        };
        prop_assert_eq!(run(false), run(true));
    }
}

/// Runs a test both with and without shortcuts.
fn both_ways(switches: usize, kind: &SwitchSettings, test: impl Fn(&mut Net)) {
    for vlans in [false, true] {
        test(&mut Net::row(vlans, switches, kind));
    }
}

#[test]
fn every_account_has_every_frame_whenever_it_is_read() {
    both_ways(8, &table(300_000 * MILLISECOND), |net| {
        for frames in 1..20 {
            net.talk(1);
            let ledger = net.engine.ledger();
            for &switch in &net.switches {
                assert_eq!(ledger.switch(switch).entered.frames, 2 * frames);
            }
            for &link in &net.links {
                for direction in [Direction::Forward, Direction::Backward] {
                    assert_eq!(ledger.link(link, direction).entered.frames, frames);
                    assert_eq!(ledger.link(link, direction).left.octets, 100 * frames);
                }
            }
        }
        assert_eq!(net.book.deliveries.len(), 38);
    });
}

#[test]
fn who_sends_is_not_forgotten_and_who_is_silent_is() {
    both_ways(5, &table(10 * MILLISECOND), |net| {
        net.talk(2);
        let bystander = net.add_port(2, &[LinkSettings::default(), LinkSettings::default()]);
        let heard = |net: &mut Net| net.engine.ledger().link(bystander, Direction::Forward).entered.frames;
        for _ in 0..9 {
            net.pass(MILLISECOND * 9 / 10);
            net.talk(1);
        }
        // The table entries have expired; only addresses of later senders can be known.
        net.pass(5 * MILLISECOND);
        net.send(0, 0, 1, 100);
        net.pass(5 * MILLISECOND - 10);
        net.send(0, 0, 1, 100);
        net.pass(0);
        assert_eq!(heard(net), 0, "known for ten milliseconds exactly");
        net.pass(1);
        net.send(0, 0, 1, 100);
        net.pass(0);
        assert_eq!(heard(net), 1, "and not for longer");
    });
}

#[test]
fn who_moves_is_found_and_what_is_cut_carries_nothing() {
    both_ways(6, &table(300_000 * MILLISECOND), |net| {
        net.add_port(3, &[LinkSettings::default(), LinkSettings::default()]);
        net.talk(5);
        // The second node's address is now at the third port.
        net.send(2, 1, 0, 100);
        net.pass(1);
        let to = |net: &Net| net.book.deliveries.last().map(|delivery| delivery.port);
        for _ in 0..3 {
            net.send(0, 0, 1, 100);
            net.pass(1);
            assert_eq!(to(net), Some(net.ports[2]));
        }
        net.schedule(Change::Down(net.links[2]));
        net.send(0, 0, 1, 100);
        net.pass(1);
        assert_eq!(net.book.dropped(DropReason::Nowhere), 1, "forgotten, and nobody else to flood to");
    });
}

#[test]
fn frames_too_large_for_a_wire_in_the_middle_are_dropped_there() {
    both_ways(6, &table(300_000 * MILLISECOND), |net| {
        net.talk(5);
        let narrow = Box::new(LinkSettings { mtu: 500, ..LinkSettings::default() });
        net.schedule(Change::Link(net.links[3], Direction::Forward, narrow));
        net.pass(1);
        net.talk(5);
        net.send(0, 0, 1, 515);
        net.send(0, 0, 1, 514);
        net.pass(1);
        assert_eq!(net.book.dropped(DropReason::TooBig), 1);
        assert_eq!(
            net.engine.ledger().link(net.links[3], Direction::Forward).dropped.of(DropReason::TooBig).frames,
            1
        );
        assert_eq!(net.book.deliveries.last().map(|delivery| delivery.octets.len()), Some(514));
    });
}

#[test]
fn more_flows_than_are_remembered() {
    let run = |vlans: bool| {
        let mut net = Net::row(vlans, 4, &table(300_000 * MILLISECOND));
        let talk = |net: &mut Net, pair: u16| {
            let octet = |number: u16| u8::try_from(number).expect("small");
            let (one, other) = (octet(pair % 60), octet(100 + pair / 60));
            for (port, from, to) in [(0, one, other), (1, other, one)] {
                net.send(port, from, to, 60);
                net.pass(100);
            }
        };
        for newcomer in 100..500 {
            (0..100).for_each(|pair| talk(&mut net, pair));
            (0..3).for_each(|_| talk(&mut net, newcomer));
        }
        (0..3_000).for_each(|pair| talk(&mut net, pair));
        (net.book.deliveries, net.engine.ledger().clone())
    };
    assert!(run(false) == run(true));
}

#[test]
fn who_was_purged_is_learnt_again_only_where_there_is_room() {
    let run = |vlans: bool| {
        let kind = SwitchSettings::Switch { ageing_ns: 10 * MILLISECOND, addresses: 3 };
        let mut net = Net::row(vlans, 5, &kind);
        net.add_port(4, &[LinkSettings::default(), LinkSettings::default()]);
        let narrow = Box::new(LinkSettings { mtu: 500, ..LinkSettings::default() });
        net.schedule(Change::Link(net.links[3], Direction::Forward, narrow));
        let all = 0xff;
        net.send(0, 0, 1, 100);
        net.pass(9 * MILLISECOND);
        net.send(1, 1, all, 100);
        net.send(2, 2, all, 100);
        net.pass(2 * MILLISECOND);
        // The first node's address has expired, and its frame does not reach the far end to refresh
        // it.
        net.send(0, 0, 1, 1_000);
        net.pass(1);
        net.send(2, 3, all, 100);
        net.pass(1);
        for _ in 0..3 {
            net.send(0, 0, 1, 100);
            net.pass(1);
            net.send(1, 1, 0, 100);
            net.pass(1);
        }
        (net.book.deliveries, net.engine.ledger().clone())
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn runs_that_are_still_coming_go_the_ordinary_way_and_are_not_overtaken() {
    let run = |vlans: bool| {
        let mut net = Net::new(vlans, &table(300_000 * MILLISECOND));
        let bare = || [LinkSettings::default(), LinkSettings::default()];
        let carried = LinkSettings {
            rate: Rate::BitsPerSecond(8_000_000),
            segments: Segments::Carried,
            ..LinkSettings::default()
        };
        net.add_port(0, &[carried.clone(), carried.clone()]);
        for parent in 0..6 {
            net.add_switch(parent, &table(300_000 * MILLISECOND), &bare());
        }
        // Not a transit port: it gets a run with its last segment.
        net.add_port(6, &[LinkSettings::default(), carried]);
        net.add_port(0, &bare());
        let talk = |net: &mut Net| {
            for _ in 0..4 {
                for (port, from, to) in [(0, 1, 2), (1, 2, 1), (2, 3, 2), (1, 2, 3)] {
                    net.send(port, from, to, 100);
                    net.pass(MILLISECOND);
                }
            }
        };
        talk(&mut net);
        let between = |net: &mut Net| {
            let port = net.ports[0];
            offer_super(&mut net.engine, port, net.now, 5_100, 1_000);
            for _ in 0..8 {
                net.send(2, 3, 2, 100);
                net.pass(MILLISECOND);
            }
        };
        between(&mut net);
        // Only the last segment is small enough for a wire in the middle, which holds it until it
        // has arrived.
        let narrow = Box::new(LinkSettings { mtu: 500, ..LinkSettings::default() });
        net.schedule(Change::Link(net.links[3], Direction::Forward, narrow));
        talk(&mut net);
        between(&mut net);
        run_dry(&mut net.engine, &mut net.book);
        assert_eq!(net.book.dropped(DropReason::TooBig), 5);
        (net.book.deliveries, net.engine.ledger().clone())
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_port_that_is_put_into_another_vlan_gets_nothing_more() {
    let mut net = Net::row(false, 6, &table(300_000 * MILLISECOND));
    net.talk(5);
    let last = *net.links.last().expect("a link");
    net.engine.set_vlan(last, Direction::Forward, &VlanSettings::Access { vlan: 2 }).expect("at a switch");
    let before = net.book.deliveries.len();
    net.send(0, 0, 1, 100);
    net.pass(1);
    assert_eq!(net.book.deliveries.len(), before);
}
