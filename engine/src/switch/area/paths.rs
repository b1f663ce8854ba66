//! Shortest paths to one switch of an area, and its tree.

use super::Member;

const UNREACHED: u32 = u32::MAX;

/// All shortest paths to one switch, and the tree of the paths from it. Inner links are up or down
/// in both directions and each counts one hop, so both have the same distances.
#[derive(Default)]
pub(super) struct Paths {
    /// False if the links have changed since the computation.
    pub valid: bool,
    /// Hops to the root, by member.
    distance: Vec<u32>,
    /// The next member on the tree towards the root, and the wire to it.
    parent: Vec<(u16, u32)>,
    /// True if the member or one below it on the tree has an edge.
    wanted: Vec<bool>,
    next_hops: Lists,
    branches: Lists,
}

/// A list of wires for each member.
#[derive(Default)]
struct Lists {
    /// Where the list of each member begins, and the end of the last one.
    begins: Vec<u32>,
    wires: Vec<u32>,
}

impl Lists {
    fn of(&self, member: u16) -> &[u32] {
        let member = usize::from(member);
        &self.wires[self.begins[member] as usize..self.begins[member + 1] as usize]
    }

    fn clear(&mut self) {
        self.begins.clear();
        self.wires.clear();
    }

    /// Begins the list of the next member, or ends that of the last one.
    fn begin(&mut self) {
        self.begins.push(u32::try_from(self.wires.len()).expect("fewer than 2^32 wires"));
    }
}

impl Paths {
    /// Equal-cost wires from a member towards the root, in the order of links.
    pub fn next_hops(&self, from: u16) -> &[u32] {
        self.next_hops.of(from)
    }

    /// Wires from a member to its wanted children on the tree.
    pub fn branches(&self, from: u16) -> &[u32] {
        self.branches.of(from)
    }

    /// Computes everything by breadth-first search from `root`. `queue` is scratch.
    pub fn compute(&mut self, root: u16, members: &[Member], queue: &mut Vec<u16>) {
        let count = members.len();
        self.distance.clear();
        self.distance.resize(count, UNREACHED);
        self.parent.clear();
        self.parent.resize(count, (root, 0));
        self.distance[usize::from(root)] = 0;
        queue.clear();
        queue.push(root);
        let mut next = 0;
        while let Some(&at) = queue.get(next) {
            next += 1;
            let farther = self.distance[usize::from(at)] + 1;
            for inner in members[usize::from(at)].links.iter().filter(|inner| inner.up) {
                let to = &mut self.distance[usize::from(inner.to)];
                if *to == UNREACHED {
                    *to = farther;
                    queue.push(inner.to);
                }
            }
        }
        self.find_next_hops(members);
        self.find_parents(members, queue);
        self.find_branches(members, queue);
        self.valid = true;
    }

    fn find_next_hops(&mut self, members: &[Member]) {
        self.next_hops.clear();
        for (at, member) in members.iter().enumerate() {
            self.next_hops.begin();
            let nearer = self.distance[at].wrapping_sub(1);
            if self.distance[at] == UNREACHED {
                continue;
            }
            let links = member.links.iter().filter(|inner| inner.up);
            let nearer = links.filter(|inner| self.distance[usize::from(inner.to)] == nearer);
            self.next_hops.wires.extend(nearer.map(|inner| inner.wire));
        }
        self.next_hops.begin();
    }

    /// Selects each member's parent, the nearest to the root first: the path of the parent is then
    /// known.
    fn find_parents(&mut self, members: &[Member], order: &[u16]) {
        for &at in order.iter().skip(1) {
            let nearer = self.distance[usize::from(at)] - 1;
            let mut best: Option<(u16, u32)> = None;
            for inner in &members[usize::from(at)].links {
                if inner.up
                    && self.distance[usize::from(inner.to)] == nearer
                    && best.is_none_or(|(other, _)| self.is_lower(members, inner.to, other))
                {
                    best = Some((inner.to, inner.wire));
                }
            }
            self.parent[usize::from(at)] = best.expect("a member that was reached has a parent");
        }
    }

    /// True if the path of `one` to the root has a lower path identifier than that of `other`, at
    /// the same distance. From where the paths meet they are the same, and before they have no
    /// switch in common: the lowest switch of these parts is the first difference.
    fn is_lower(&self, members: &[Member], mut one: u16, mut other: u16) -> bool {
        let (mut lowest, mut lowest_other) = (u32::MAX, u32::MAX);
        while one != other {
            lowest = lowest.min(members[usize::from(one)].id.0);
            lowest_other = lowest_other.min(members[usize::from(other)].id.0);
            one = self.parent[usize::from(one)].0;
            other = self.parent[usize::from(other)].0;
        }
        lowest < lowest_other
    }

    fn find_branches(&mut self, members: &[Member], order: &[u16]) {
        self.wanted.clear();
        self.wanted.extend(members.iter().map(|member| member.edge));
        for &at in order.iter().skip(1).rev() {
            if self.wanted[usize::from(at)] {
                self.wanted[usize::from(self.parent[usize::from(at)].0)] = true;
            }
        }
        self.branches.clear();
        for (at, member) in members.iter().enumerate() {
            self.branches.begin();
            let children = member.links.iter().filter(|inner| {
                let to = usize::from(inner.to);
                // The two directions of a link have adjacent numbers.
                self.distance[to] == self.distance[at].wrapping_add(1)
                    && self.parent[to].1 == inner.wire ^ 1
                    && self.wanted[to]
            });
            self.branches.wires.extend(children.map(|inner| inner.wire));
        }
        self.branches.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Area;
    use crate::element::SwitchId;
    use crate::settings::SwitchSettings;

    /// An area of so many switches, each with an edge, and these links; link i has wires 2i, 2i+1.
    fn area(switches: u32, links: &[(u16, u16)]) -> Area {
        let settings = SwitchSettings::ShortestPath { ageing_ns: 1, addresses: 1, convergence_ns: 0 };
        let one = |number| {
            Area::of(SwitchId(number), &settings, 1, &number.to_string()).expect("uses shortest paths")
        };
        let mut area = one(0);
        (1..switches).for_each(|number| area.absorb(&mut one(number)));
        for (wire, &(a, b)) in (0..).step_by(2).zip(links) {
            area.link(a, b, wire);
        }
        (0..area.len()).for_each(|member| area.add_edge(u16::try_from(member).expect("few")));
        area
    }

    #[test]
    fn a_tree_takes_the_lowest_path_identifier() {
        // Two paths from 5 to 0: over {1, 4} and over {2, 3}. Sorted, 0 1 4 5 is below 0 2 3 5,
        // although 3 < 4 are the switches next to 5.
        let mut area = area(6, &[(0, 2), (2, 3), (3, 5), (0, 1), (1, 4), (4, 5)]);
        let paths = area.paths(0);
        assert_eq!(paths.next_hops(5), [2 * 2 + 1, 2 * 5 + 1], "both are shortest paths");
        assert_eq!(paths.parent[5], (4, 2 * 5 + 1));
        assert_eq!((paths.branches(4), paths.branches(3)), (&[2 * 5][..], &[][..]));
        // The path from 0 to 5 is the reverse of that from 5 to 0.
        assert_eq!(area.paths(5).parent[0], (1, 2 * 3));
    }

    #[test]
    fn of_parallel_links_a_tree_has_the_first_and_paths_have_both() {
        let mut area = area(2, &[(0, 1), (0, 1)]);
        assert_eq!(area.paths(1).next_hops(0), [0, 2]);
        assert_eq!(area.paths(0).branches(0), [0]);
        let epoch = area.epoch;
        area.converge(0, 1, 0, true);
        assert_eq!(area.epoch, epoch, "it was up: frames on trees continue");
        area.converge(0, 1, 0, false);
        assert_eq!(area.paths(1).next_hops(0), [2]);
        assert_eq!(area.paths(0).branches(0), [2]);
        area.converge(0, 1, 2, false);
        assert_eq!(area.paths(1).next_hops(0), [0_u32; 0]);
        assert_eq!(area.paths(0).branches(0), [0_u32; 0]);
    }

    #[test]
    fn trees_are_symmetric() {
        // In a grid of 4 times 4 with its many equal paths, the path from a to b on the tree of a is
        // the reverse of that from b to a on the tree of b (RFC 6329).
        let at = |row: u16, column: u16| row * 4 + column;
        let mut links = Vec::new();
        for row in 0..4 {
            for column in 0..4 {
                if column < 3 {
                    links.push((at(row, column), at(row, column + 1)));
                }
                if row < 3 {
                    links.push((at(row, column), at(row + 1, column)));
                }
            }
        }
        let mut area = area(16, &links);
        let mut path = |root: u16, mut from: u16| {
            let paths = area.paths(root);
            let mut path = vec![from];
            while from != root {
                from = paths.parent[usize::from(from)].0;
                path.push(from);
            }
            path
        };
        for a in 0..16 {
            for b in 0..16 {
                let mut back = path(b, a);
                back.reverse();
                assert_eq!(path(a, b), back);
            }
        }
    }
}
