//! EDCA parameters of stations with an 802.11 stack: those that their access point announces.

mod stack;

use airloom_engine::PortId;
use airloom_engine::medium::phy::{ACK_OCTETS, tables};
use stack::{GROUP, Lab, ask, beacon, mac, qos_data};

const MS: u64 = 1_000_000;
const SLOT: u64 = 9_000;
const SIFS: u64 = 16_000;
/// Way of 10 m in nanoseconds, rounded.
const WAY: u64 = 33;

/// A WMM parameter element with this parameter set count, whose best effort has this AIFSN and these
/// exponents of its windows.
fn element(count: u8, aifsn: u8, exponents: (u8, u8)) -> Vec<u8> {
    let mut octets = vec![221, 24, 0x00, 0x50, 0xf2, 2, 1, 1, count, 0];
    octets.extend([aifsn, exponents.1 << 4 | exponents.0, 0, 0]);
    octets.extend([1 << 5 | 7, 0xa4, 0, 0, 2 << 5 | 2, 0x43, 94, 0, 3 << 5 | 2, 0x32, 47, 0]);
    octets
}

/// A management frame: header, fixed fields, elements.
fn management(subtype: u8, to: [u8; 6], from: [u8; 6], fields: &[u8], elements: &[u8]) -> Vec<u8> {
    let mut octets = beacon(from, 1);
    octets.truncate(24);
    octets[0] = subtype << 4;
    octets[4..10].copy_from_slice(&to);
    octets.extend(fields);
    octets.extend(elements);
    octets
}

struct World {
    lab: Lab,
    station: PortId,
    access_point: PortId,
}

impl World {
    fn new() -> Self {
        let mut lab = Lab::new(3);
        let (station, access_point) = (lab.stack(1, 0.0), lab.stack(2, 10.0));
        Self { lab, station, access_point }
    }

    fn now(&self) -> u64 {
        self.lab.engine.now().nanos()
    }

    fn send(&mut self, from: PortId, octets: &[u8]) {
        let now = self.now();
        self.lab.send(from, now, octets, ask(0, &[(0, 7)]));
        self.lab.run(now + 20 * MS);
    }

    /// The access point accepts the association of the station, with these elements.
    fn associate(&mut self, status: u8, elements: &[u8]) {
        let fields = [1, 0, status, 0, 1, 0xc0];
        self.send(self.access_point, &management(1, mac(1), mac(2), &fields, elements));
    }

    fn beacon(&mut self, from: PortId, node: u8, elements: &[u8]) {
        let mut fields = [0; 12];
        (fields[8], fields[10]) = (100, 1);
        let elements = [&[0, 3][..], b"lab", elements].concat();
        self.send(from, &management(8, GROUP, mac(node), &fields, &elements));
    }

    /// Slots of idle channel between the end of an exchange and the next frame of a saturated station,
    /// least and most of many; the former is AIFSN, and the latter AIFSN and the window.
    fn slots(&mut self) -> (u64, u64) {
        let before = self.lab.book.received.len();
        for number in 0..1_500u16 {
            let now = self.now();
            self.lab.send(self.station, now, &qos_data(mac(2), mac(1), number, 100), ask(7, &[(7, 7)]));
        }
        self.lab.run(self.now() + 1_500 * MS);
        let rate = |index: usize| tables::A.rates[index];
        let exchange =
            rate(7).airtime(104).nanos() + SIFS + rate(4).airtime(ACK_OCTETS).nanos() + 2 * WAY + SIFS;
        let mut arrivals = self.lab.book.received[before..].iter().map(|received| received.at.nanos());
        let mut last = arrivals.next().expect("delivered");
        let mut found: Vec<u64> = Vec::new();
        for at in arrivals {
            // A multiple of the slot, but for the rounding of the way.
            found.push((at - last - exchange + SLOT / 2) / SLOT);
            last = at;
        }
        assert_eq!(found.len(), 1_499);
        (*found.iter().min().expect("many"), *found.iter().max().expect("many"))
    }
}

/// Default parameters of best effort (802.11-2020 table 9-155), and those of DCF.
const DEFAULT: (u64, u64) = (3, 3 + 15);
const DCF: (u64, u64) = (2, 2 + 15);

#[test]
fn a_station_contends_with_the_parameters_of_its_association() {
    let mut world = World::new();
    assert_eq!(world.slots(), DEFAULT);
    world.associate(0, &element(1, 9, (2, 4)));
    assert_eq!(world.slots(), (9, 9 + 3));
    // Another association replaces them; AIFSN below 2 counts as 2.
    world.associate(0, &element(1, 1, (3, 10)));
    assert_eq!(world.slots(), (2, 2 + 7));
}

#[test]
fn an_association_without_valid_parameters_is_one_without_qos() {
    for elements in
        [vec![], element(1, 3, (0, 4)), element(1, 3, (5, 4)), element(1, 3, (4, 5))[..20].to_vec()]
    {
        let mut world = World::new();
        world.associate(0, &elements);
        let cut_short = elements.len() == 20;
        assert_eq!(world.slots(), if cut_short { DEFAULT } else { DCF }, "{elements:?}");
    }
    let mut world = World::new();
    world.associate(17, &element(1, 9, (2, 4)));
    assert_eq!(world.slots(), DEFAULT, "a refused association");
}

#[test]
fn a_beacon_with_another_count_changes_the_parameters() {
    let mut world = World::new();
    world.beacon(world.access_point, 2, &element(7, 9, (2, 2)));
    assert_eq!(world.slots(), DEFAULT, "not associated");
    world.associate(0, &element(1, 9, (2, 4)));
    world.beacon(world.access_point, 2, &element(1, 5, (1, 1)));
    assert_eq!(world.slots(), (9, 12), "the count is the same");
    let other = world.lab.stack(3, 20.0);
    world.beacon(other, 3, &element(2, 5, (1, 1)));
    assert_eq!(world.slots(), (9, 12), "another access point");
    world.beacon(world.access_point, 2, &element(2, 5, (1, 1)));
    assert_eq!(world.slots(), (5, 6));
}

#[test]
fn a_station_that_leaves_contends_by_default() {
    for leaves in [false, true] {
        let mut world = World::new();
        world.associate(0, &element(1, 9, (2, 4)));
        let (from, to, port) =
            if leaves { (mac(1), mac(2), world.station) } else { (mac(2), mac(1), world.access_point) };
        world.send(port, &management(12, to, from, &[3, 0], &[]));
        assert_eq!(world.slots(), DEFAULT);
    }
    let mut world = World::new();
    world.associate(0, &element(1, 9, (2, 4)));
    world.lab.engine.set_wlan_addresses(world.station, &[]).expect("a stack");
    assert!(world.lab.engine.set_wlan_addresses(world.station, &[mac(1)]).expect("a stack"));
    assert_eq!(world.slots(), DEFAULT, "its interface was down");
}
