//! Switches with shortest paths: exact paths and times, changes of links, and any topology.

mod common;

use airloom_engine::settings::{LinkSettings, Rate, SwitchSettings, VlanSettings};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, DropReason, End, Engine, Error, LinkId, PortId, SwitchId};
use common::{Book, check_ledger, mac, offer, offer_octets, run_dry};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const EVERYONE: [u8; 6] = [0xff; 6];

fn shortest(addresses: u32, convergence_ns: u64) -> SwitchSettings {
    SwitchSettings::ShortestPath { ageing_ns: 300_000 * MS, addresses, convergence_ns }
}

/// Switches with shortest paths and links of 1 ms between them; hosts with links without delay.
struct Net {
    engine: Engine,
    switches: Vec<SwitchId>,
    links: Vec<LinkId>,
    ports: Vec<PortId>,
    /// Links of ports.
    edges: Vec<LinkId>,
    book: Book,
    now: u64,
}

impl Net {
    /// `links` are pairs of switches; `homes` are the switches of hosts.
    fn new(seed: u64, switches: usize, links: &[(usize, usize)], homes: &[usize]) -> Self {
        Self::with(seed, switches, links, homes, &LinkSettings { delay_ns: MS, ..LinkSettings::default() })
    }

    fn with(
        seed: u64,
        switches: usize,
        links: &[(usize, usize)],
        homes: &[usize],
        inner: &LinkSettings,
    ) -> Self {
        let mut engine = Engine::new(seed);
        let kind = shortest(64, 100 * MS);
        let switches: Vec<_> =
            (0..switches).map(|number| engine.add_switch(&number.to_string(), &kind).expect("new")).collect();
        let mut join = |name: String, a, b, settings: &LinkSettings| {
            engine.connect(&name, a, b, settings, settings).expect("valid")
        };
        let links = links.iter().enumerate().map(|(number, &(a, b))| {
            join(number.to_string(), End::Switch(switches[a]), End::Switch(switches[b]), inner)
        });
        let links = links.collect();
        let (mut ports, mut edges) = (Vec::new(), Vec::new());
        for (number, &home) in homes.iter().enumerate() {
            let port = engine.add_port(&number.to_string(), false).expect("new");
            ports.push(port);
            let bare = LinkSettings::default();
            let name = format!("host {number}");
            edges.push(
                engine
                    .connect(&name, End::Port(port), End::Switch(switches[home]), &bare, &bare)
                    .expect("valid"),
            );
        }
        Self { engine, switches, links, ports, edges, book: Book::default(), now: 0 }
    }

    fn pass(&mut self, nanos: u64) {
        self.now += nanos;
        self.engine.advance(Instant::from_nanos(self.now), &mut self.book);
        check_ledger(&mut self.engine);
    }

    /// Sends a frame and returns the hosts that receive it within 90 ms, with the times that it took.
    fn send(&mut self, from: u8, to: [u8; 6]) -> Vec<(usize, u64)> {
        self.book = Book::default();
        let sent = self.now;
        offer(&mut self.engine, self.ports[usize::from(from)], sent, to, mac(from), 100);
        self.pass(90 * MS);
        let mut got: Vec<_> =
            self.book.deliveries.iter().map(|one| (one.port.index(), one.at - sent)).collect();
        got.sort_unstable();
        got
    }

    /// Lets every host be known.
    fn greet(&mut self) {
        for host in 0..self.ports.len() {
            self.send(u8::try_from(host).expect("few"), EVERYONE);
        }
    }

    fn schedule(&mut self, change: Change) {
        self.engine.schedule(Instant::from_nanos(self.now), change).expect("valid");
    }
}

/// Octets of a UDP datagram over IPv4 between two hosts, with this source port and number.
fn datagram(from: u8, to: u8, port: u16, number: u32) -> Vec<u8> {
    let mut octets = vec![0; 60];
    octets[..6].copy_from_slice(&mac(to));
    octets[6..12].copy_from_slice(&mac(from));
    octets[12..14].copy_from_slice(&[0x08, 0x00]);
    octets[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17]);
    octets[26..34].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    octets[34..36].copy_from_slice(&port.to_be_bytes());
    octets[42..46].copy_from_slice(&number.to_be_bytes());
    octets
}

fn number_of(octets: &[u8]) -> u32 {
    u32::from_be_bytes(octets[42..46].try_into().expect("four octets"))
}

/// Hops from a switch to all others over the links that are up.
fn hops(switches: usize, links: &[(usize, usize)], up: &[bool], from: usize) -> Vec<Option<u64>> {
    let mut found = vec![None; switches];
    found[from] = Some(0);
    for round in 0..switches as u64 {
        for (&(a, b), _) in links.iter().zip(up).filter(|(_, up)| **up) {
            for (a, b) in [(a, b), (b, a)] {
                if found[a] == Some(round) && found[b].is_none() {
                    found[b] = Some(round + 1);
                }
            }
        }
    }
    found
}

#[test]
fn in_a_ring_frames_take_the_short_side_and_reach_everyone_once() {
    let mut net = Net::new(1, 5, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], &[0, 1, 2, 3, 4, 0]);
    let all = [(1, MS), (2, 2 * MS), (3, 2 * MS), (4, MS), (5, 0)];
    assert_eq!(net.send(0, EVERYONE), all, "broadcast");
    assert_eq!(net.send(0, [1, 0, 0x5e, 0, 0, 1]), all, "multicast");
    assert_eq!(net.send(0, mac(3)), all, "unknown unicast");
    assert_eq!(net.send(3, mac(0)), [(0, 2 * MS)]);
    assert_eq!(net.send(0, mac(3)), [(3, 2 * MS)]);
    assert_eq!(net.send(1, mac(0)), [(0, MS)], "known to the area, although no frame for it came by");
    assert_eq!(net.send(5, mac(0)), [(0, 0)], "at the same switch");
    assert_eq!(net.send(0, [1, 0x80, 0xc2, 0, 0, 0xe]), [], "for the link only");
    assert_eq!(net.send(0, mac(0)), [], "the destination is on the ingress side");
}

#[test]
fn new_paths_are_in_use_when_the_area_has_converged() {
    let links = [(0, 1), (1, 2), (2, 3), (3, 0)];
    let mut net = Net::new(1, 4, &links, &[0, 1]);
    net.greet();
    assert_eq!(net.send(0, mac(1)), [(1, MS)]);
    net.schedule(Change::Down(net.links[0]));
    assert_eq!(net.send(0, mac(1)), [], "the switches do not know yet");
    assert_eq!(net.book.dropped(DropReason::LinkDown), 1);
    net.pass(10 * MS - 1);
    offer(&mut net.engine, net.ports[0], net.now, mac(1), mac(0), 100);
    net.pass(1);
    assert_eq!(net.book.dropped(DropReason::LinkDown), 2, "1 ns before 100 ms");
    assert_eq!(net.send(0, mac(1)), [(1, 3 * MS)]);
    assert_eq!(net.send(0, EVERYONE), [(1, 3 * MS)]);
    net.schedule(Change::Up(net.links[0]));
    assert_eq!(net.send(0, mac(1)), [(1, 3 * MS)], "nor do they know that the link is up again");
    net.pass(10 * MS);
    assert_eq!(net.send(0, mac(1)), [(1, MS)]);
}

#[test]
fn a_frame_on_its_way_takes_the_new_paths_and_one_on_a_tree_is_dropped() {
    // Two ways from 0 to 3: over 1 and 2, or over 4, 5, 6.
    let links = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6), (6, 3)];
    let mut net = Net::new(1, 7, &links, &[0, 3]);
    net.greet();
    net.schedule(Change::Down(net.links[2]));
    net.pass(100 * MS - MS / 2);
    for to in [mac(1), EVERYONE] {
        offer(&mut net.engine, net.ports[0], net.now, to, mac(0), 100);
    }
    net.book = Book::default();
    net.pass(20 * MS);
    // Half a hop before 1 at the change: back to 0, and then the other way.
    assert_eq!(net.book.times(net.ports[1]), [100 * MS - MS / 2 + 180 * MS + 6 * MS]);
    assert_eq!(net.book.dropped(DropReason::Filtered), 1);
}

#[test]
fn a_flap_is_seen_as_it_was_one_convergence_later() {
    let mut net = Net::new(1, 3, &[(0, 1), (1, 2), (2, 0)], &[0, 1]);
    net.greet();
    net.schedule(Change::Down(net.links[0]));
    net.pass(60 * MS);
    net.schedule(Change::Up(net.links[0]));
    net.pass(41 * MS);
    let probe = |net: &mut Net| {
        net.book = Book::default();
        let sent = net.now;
        offer(&mut net.engine, net.ports[0], sent, mac(1), mac(0), 100);
        net.pass(3 * MS);
        net.book.times(net.ports[1])[0] - sent
    };
    assert_eq!(probe(&mut net), 2 * MS, "without the link, from 100 ms on");
    net.pass(60 * MS);
    assert_eq!(probe(&mut net), MS, "with it, from 160 ms on");
}

#[test]
fn hosts_move_age_and_are_forgotten_with_their_link() {
    let mut net = Net::new(1, 3, &[(0, 1), (1, 2), (2, 0)], &[0, 1, 2]);
    net.greet();
    // The address of host 0 appears at host 1's port.
    offer(&mut net.engine, net.ports[1], net.now, EVERYONE, mac(0), 100);
    net.pass(10 * MS);
    assert_eq!(net.send(2, mac(0)), [(1, MS)]);
    net.schedule(Change::Down(net.edges[1]));
    net.pass(1);
    assert_eq!(net.send(2, mac(0)), [(0, MS)], "unknown again, so it goes to all edges that are up");
    net.pass(300_000 * MS);
    assert_eq!(net.send(0, mac(2)), [(2, MS)], "unknown: the only other edge");
    assert_eq!(net.send(2, mac(0)), [(0, MS)]);
}

#[test]
fn a_full_table_learns_nobody_and_is_one_for_each_switch() {
    let mut engine = Engine::new(1);
    let kind = shortest(1, 0);
    let switches = ["x", "y"].map(|name| engine.add_switch(name, &kind).expect("new"));
    let bare = LinkSettings::default();
    engine.connect("xy", End::Switch(switches[0]), End::Switch(switches[1]), &bare, &bare).expect("new");
    let mut ports = Vec::new();
    for (name, home) in [("0", 0), ("1", 0), ("2", 1)] {
        let port = engine.add_port(name, false).expect("new");
        engine.connect(name, End::Port(port), End::Switch(switches[home]), &bare, &bare).expect("new");
        ports.push(port);
    }
    let mut send = |from: u8, to: [u8; 6], at: u64| {
        let mut book = Book::default();
        offer(&mut engine, ports[usize::from(from)], at, to, mac(from), 100);
        engine.advance(Instant::from_nanos(at), &mut book);
        let mut got: Vec<_> = book.deliveries.iter().map(|one| one.port.index()).collect();
        got.sort_unstable();
        got
    };
    (0..3).for_each(|host| assert_eq!(send(host, EVERYONE, 1).len(), 2));
    assert_eq!(send(2, mac(0), 2), [0]);
    assert_eq!(send(2, mac(1), 2), [0, 1], "no room for the second address of that switch");
    assert_eq!(send(0, mac(2), 2), [2], "the other switch has its own table");
    // Its first address has aged.
    let later = 300_001 * MS;
    assert_eq!(send(1, EVERYONE, later), [0, 2]);
    assert_eq!(send(2, mac(1), later), [1]);
}

#[test]
fn vlans_of_edges_are_kept_apart_and_every_inner_link_carries_them() {
    let mut net = Net::new(1, 4, &[(0, 1), (1, 2), (2, 3), (3, 0)], &[0, 1, 2, 2]);
    let access = |vlan| VlanSettings::Access { vlan };
    let trunk = VlanSettings::Trunk { allowed: vec![10, 20], native: None };
    for (host, settings) in [(0, access(10)), (1, access(20)), (2, access(10)), (3, trunk)] {
        net.engine.set_vlan(net.edges[host], Direction::Backward, &settings).expect("at a switch");
    }
    assert_eq!(net.send(0, EVERYONE), [(2, 2 * MS), (3, 2 * MS)]);
    let tags: Vec<_> = net.book.deliveries.iter().map(|one| one.octets[12..16].to_vec()).collect();
    assert_eq!(tags, [vec![0, 0, 0, 0], vec![0x81, 0, 0, 10]]);
    assert_eq!(net.send(2, mac(0)), [(0, 2 * MS)]);
    assert_eq!(net.book.deliveries[0].octets.len(), 100, "without a tag");
    assert_eq!(net.send(1, mac(0)), [(3, MS)], "an address of another VLAN is unknown");
    let error = net.engine.set_vlan(net.links[0], Direction::Forward, &access(10)).expect_err("inner");
    assert_eq!(error.code(), "link.vlan");
}

#[test]
fn what_would_loop_or_disagree_is_refused() {
    let mut engine = Engine::new(1);
    let add = |engine: &mut Engine, name, kind| End::Switch(engine.add_switch(name, &kind).expect("new"));
    let [a, b, c] = ["a", "b", "c"].map(|name| add(&mut engine, name, shortest(9, 5)));
    let other = add(&mut engine, "other", shortest(9, 6));
    let hub = add(&mut engine, "hub", SwitchSettings::Hub);
    let bare = LinkSettings::default();
    let mut connect = |name: &str, one, two| engine.connect(name, one, two, &bare, &bare).map(|_| ());
    connect("a-b", a, b).expect("an inner link");
    connect("b-c", b, c).expect("an inner link");
    connect("c-a", c, a).expect("a loop inside the area");
    connect("a-b again", a, b).expect("parallel links");
    connect("a-hub", a, hub).expect("an edge");
    assert!(matches!(connect("b-hub", b, hub), Err(Error::Loop { .. })), "a loop through the outside");
    assert!(matches!(connect("a-a", a, a), Err(Error::Loop { .. })));
    assert_eq!(connect("a-other", a, other).expect_err("differs").code(), "switch.convergence");
    let End::Switch(id) = a else { unreachable!() };
    for kind in [SwitchSettings::Hub, shortest(9, 6)] {
        let change = Change::Switch(id, kind);
        let error = engine.schedule(Instant::ZERO, change).expect_err("not during a run");
        assert_eq!(error.code(), "switch.forwarding");
    }
    engine.schedule(Instant::ZERO, Change::Switch(id, shortest(4, 5))).expect("a smaller table");
}

#[test]
fn a_loop_outside_is_refused_when_the_inner_link_comes_last() {
    let mut engine = Engine::new(1);
    let [a, b] = ["a", "b"].map(|name| End::Switch(engine.add_switch(name, &shortest(9, 5)).expect("new")));
    let hub = End::Switch(engine.add_switch("hub", &SwitchSettings::Hub).expect("new"));
    let bare = LinkSettings::default();
    engine.connect("a-hub", a, hub, &bare, &bare).expect("a tree");
    engine.connect("b-hub", b, hub, &bare, &bare).expect("two areas, joined by a hub");
    let error = engine.connect("a-b", a, b, &bare, &bare).expect_err("a loop through the hub");
    assert!(matches!(error, Error::Loop { .. }));
}

/// Links of a fat tree of 4-port switches (Al-Fares et al. 2008): cores 0 to 3, then for each of 4
/// pods two aggregation and two edge switches.
fn fat_tree() -> Vec<(usize, usize)> {
    let mut links = Vec::new();
    for pod in 0..4 {
        let first = 4 + 4 * pod;
        for aggregation in 0..2 {
            links.extend((0..2).map(|core| (2 * aggregation + core, first + aggregation)));
            links.extend((2..4).map(|edge| (first + aggregation, first + edge)));
        }
    }
    links
}

#[test]
fn flows_of_a_fat_tree_spread_over_all_equal_paths() {
    let homes: Vec<_> = (0..16).map(|host| 4 + 4 * (host / 4) + 2 + host % 4 / 2).collect();
    let mut net = Net::new(1, 20, &fat_tree(), &homes);
    net.greet();
    net.book = Book::default();
    // 4096 flows from the first pod to the last one; each has four equal paths, one for each core.
    let flows: u16 = 4096;
    for port in 0..flows {
        let sent = Instant::from_nanos(net.now).nanos();
        let octets = datagram(
            u8::try_from(port % 4).expect("few"),
            12 + u8::try_from(port % 3).expect("few"),
            port,
            0,
        );
        offer_octets(&mut net.engine, net.ports[usize::from(port % 4)], sent, &octets);
    }
    let before: Vec<_> =
        (0..4).map(|core| net.engine.ledger().switch(net.switches[core]).entered.frames).collect();
    net.pass(20 * MS);
    assert_eq!(net.book.deliveries.len(), usize::from(flows));
    let mean = f64::from(flows) / 4.0;
    let mut chi = 0.0;
    for (core, before) in before.iter().enumerate() {
        let passed = net.engine.ledger().switch(net.switches[core]).entered.frames - before;
        chi += (f64::from(u32::try_from(passed).expect("few")) - mean).powi(2) / mean;
    }
    // With 3 degrees of freedom, 999 of 1000 samples are below 16.3.
    assert!(chi < 16.3, "chi-square {chi}");
}

/// Number of switches, links between them, switches of hosts, and links that are up.
type Shape = (usize, Vec<(usize, usize)>, Vec<usize>, Vec<bool>);

/// An area; without the links that are down it may be in parts.
fn nets() -> impl Strategy<Value = Shape> {
    (1..9_usize).prop_flat_map(|switches| {
        let pair = (0..switches, 0..switches);
        let links = proptest::collection::vec(pair, 0..20).prop_map(move |pairs| {
            let chain = (1..switches).map(|switch| (switch - 1, switch));
            chain.chain(pairs.into_iter().filter(|(a, b)| a != b)).collect::<Vec<_>>()
        });
        let homes = proptest::collection::vec(0..switches, 2..7);
        (Just(switches), links, homes, proptest::collection::vec(prop::bool::weighted(0.8), 28))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// In any topology a known address is reached in as many hops as the shortest path has, and
    /// everyone else exactly once, by as many copies as needed.
    #[test]
    fn paths_are_shortest_and_trees_reach_everyone_once(
        seed in any::<u64>(),
        (switches, links, homes, up) in nets(),
    ) {
        let mut net = Net::new(seed, switches, &links, &homes);
        for (number, &link) in net.links.clone().iter().enumerate() {
            if !up[number] {
                net.schedule(Change::Down(link));
            }
        }
        net.pass(100 * MS);
        net.greet();
        for from in 0..homes.len() {
            let far = hops(switches, &links, &up, homes[from]);
            let sender = u8::try_from(from).expect("few");
            let mut wanted = Vec::new();
            for (to, &home) in homes.iter().enumerate().filter(|(to, _)| *to != from) {
                let reached: Vec<_> = far[home].map(|hops| (to, hops * MS)).into_iter().collect();
                let got = net.send(sender, mac(u8::try_from(to).expect("few")));
                prop_assert_eq!(&got, &reached, "unicast from {} to {}", from, to);
                wanted.extend(reached);
            }
            prop_assert_eq!(net.send(sender, EVERYONE), wanted, "broadcast from {}", from);
        }
        run_dry(&mut net.engine, &mut net.book);
    }

    /// While links go down and up, hosts move and frames queue: no frame reaches a host twice, each
    /// has one fate, and no flow is reordered between two changes.
    #[test]
    fn nothing_is_doubled_nor_reordered(
        seed in any::<u64>(),
        (switches, links, homes, _) in nets(),
        acts in proptest::collection::vec((0..8_usize, 0..7_u8, 0..7_u8, 0..3_u16, 0..3 * MS), 1..150),
        changes in any::<bool>(),
    ) {
        let inner = LinkSettings {
            rate: Rate::BitsPerSecond(1_000_000),
            delay_ns: MS,
            ..LinkSettings::default()
        };
        let mut net = Net::with(seed, switches, &links, &homes, &inner);
        net.greet();
        net.book = Book::default();
        let hosts = u8::try_from(homes.len()).expect("few");
        for (number, &(act, from, to, port, nanos)) in acts.iter().enumerate() {
            let (from, to) = (from % hosts, to % hosts);
            let mut octets = datagram(from, to, port, u32::try_from(number).expect("few"));
            match act {
                0 if changes && !links.is_empty() => {
                    let link = net.links[number % links.len()];
                    net.schedule(if nanos % 2 == 0 { Change::Up(link) } else { Change::Down(link) });
                }
                // The address of one host appears at another.
                1 if changes => octets[6..12].copy_from_slice(&mac(to)),
                2 => octets[..6].copy_from_slice(&EVERYONE),
                _ => {}
            }
            offer_octets(&mut net.engine, net.ports[usize::from(from)], net.now, &octets);
            net.pass(if changes { nanos * 20 } else { nanos });
        }
        run_dry(&mut net.engine, &mut net.book);
        let mut seen = std::collections::BTreeSet::new();
        let mut last = std::collections::BTreeMap::new();
        for one in &net.book.deliveries {
            let number = number_of(&one.octets);
            prop_assert!(seen.insert((one.port, number)), "{} came twice to {:?}", number, one.port);
            let group = one.octets[0] & 1 == 1;
            let before = last.insert((one.port, one.octets[6..12].to_vec(), one.octets[34..36].to_vec(), group), number);
            prop_assert!(changes || before.is_none_or(|before| before < number), "{} is late", number);
        }
    }
}
