//! Airtime shares: slices divide the airtime of a channel in proportion to weights, without slots.
//!
//! This is start-time fair queueing (P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing: A
//! Scheduling Algorithm for Integrated Services Packet Switching Networks", 1996) with airtime in
//! place of octets, as in T. Høiland-Jørgensen et al., "Ending the Anomaly: Achieving Low Latency and
//! Airtime Fairness in WiFi", 2017, and with contention by the distributed coordination function
//! in place of one queue's server (not checked against the papers: the rule and its bound are stated
//! and derived here, and tested).
//!
//! The *airtime* of a slice is the sum of the lengths of all frames that its radios transmit: data,
//! retries, fragments, requests and clears to send, acknowledgments, beacons. Inter-frame spaces and
//! backoffs are not part of it. It is the airtime that [`crate::medium::ChannelUse`] counts. Each slice has a
//! virtual time, in nanoseconds for weight 1:
//!
//! ```text
//! V += length of the frame / weight        for each frame of the slice
//! V  = max(V, v)                           when a radio of an idle slice has a frame to send
//! v  = least V of the slices with a frame to send; when none has one, the largest V
//! ```
//!
//! A radio whose backoff ends transmits only if its slice is not ahead by more than [`LEAD`]:
//! `(V - v) * weight <= LEAD`. Otherwise it waits until the others have caught up, and draws a new
//! backoff of the same contention window. Responses and the rest of a transmission opportunity are
//! sent at any time. While two slices have frames to send, the airtimes that they get in any interval,
//! each divided by its weight, differ by at most the sum over both of (`LEAD` and their longest
//! exchange or transmission opportunity) / weight. The share of an idle slice goes to the others.
//!
//! A *group* is all radios with weights on one channel of a medium, with the same time slots and code. Its
//! virtual times are common to all its radios, wherever they are: hidden terminals get their shares,
//! and slices too far apart to disturb each other wait for each other nevertheless. Radios without a
//! weight contend as always. If a slice with frames to send does not transmit for [`IDLE_AFTER`]
//! while others wait for it, because a radio outside of the group occupies its channel, it counts
//! as idle until it transmits.

use crate::calendar::Class;
use crate::medium::radio::Radio;
use crate::medium::slices::share::{FRACTIONS, Group, Member, Share};
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Airtime by which a slice may be ahead of the others: about two of the longest exchanges.
const LEAD: Span = Span::from_millis(4);
/// Time without a transmission after which a slice with frames to send counts as idle.
const IDLE_AFTER: Span = Span::from_millis(250);

impl Radio {
    /// True if it has a frame to send, and nothing of its own keeps it from sending.
    fn is_backlogged(&self) -> bool {
        self.switched_on && !self.hold.held && self.contention.lanes.iter().any(|lane| lane.wants(self.away))
    }

    /// Lets it contend again for the frames that waited for other slices.
    fn admit(&mut self, now: Instant) {
        for lane in 0..self.contention.lanes.len() {
            if self.contention.lanes[lane].deferred {
                self.contention.lanes[lane].deferred = false;
                self.back_off(lane);
                self.contention.lanes[lane].from = self.contention.lanes[lane].from.max(now);
            }
        }
        self.set_access();
    }
}

impl Medium {
    /// Sets the weight of a radio's slice, 1 to 1000; `None` takes it out of its group.
    pub(in crate::medium) fn set_weight(&mut self, index: usize, slice: u16, weight: Option<u16>) {
        self.leave_group(index);
        if let Some(weight) = weight {
            self.wake(index);
            self.join_group(index, slice, weight);
        }
    }

    fn join_group(&mut self, index: usize, slice: u16, weight: u16) {
        let channel = self.core.reach.places[index].channel;
        let slots = self.core.radios[index].settings.slots.as_ref().map_or(&[][..], |slots| &slots.own);
        let code = self.core.radios[index].settings.code;
        let same = |group: &Group| group.channel == channel && group.code == code && group.slots == slots;
        let known = self.slices.groups.iter().position(same);
        let at = known.unwrap_or_else(|| {
            self.slices.groups.push(Group {
                channel,
                slots: slots.to_vec(),
                code,
                members: Vec::new(),
                virtual_time: 0,
                blocked: Vec::new(),
                scheduled: false,
            });
            self.slices.groups.len() - 1
        });
        let now = self.core.now;
        let group = &mut self.slices.groups[at];
        let known = group.members.iter().position(|member| member.slice == slice);
        let member = known.unwrap_or_else(|| {
            let used = group.virtual_time;
            let (radios, backlogged, stalled) = (Vec::new(), false, false);
            group.members.push(Member {
                slice,
                weight,
                radios,
                used,
                backlogged,
                since: now,
                sent: now,
                stalled,
            });
            group.members.len() - 1
        });
        group.members[member].weight = weight;
        group.members[member].radios.push(u32::try_from(index).unwrap_or(u32::MAX));
        self.core.radios.awake(index).hold.share =
            Some(Share { slice, weight, group: at, member, blocked: false });
    }

    /// Takes a radio out of its group. If it waited, it contends again.
    fn leave_group(&mut self, index: usize) {
        let Some(share) = self.core.radios.awake(index).hold.share.take() else { return };
        let group = &mut self.slices.groups[share.group];
        group.members[share.member].radios.retain(|&radio| radio as usize != index);
        group.blocked.retain(|&radio| radio as usize != index);
        if share.blocked {
            let now = self.core.now;
            self.core.radios.awake(index).admit(now);
            self.core.arm(index);
        }
        self.admit_group(share.group);
    }

    /// Moves a radio to the group of its present channel.
    pub(in crate::medium) fn follow_channel(&mut self, index: usize) {
        let Some(share) = self.core.radios[index].hold.share else { return };
        if self.slices.groups[share.group].channel != self.core.reach.places[index].channel {
            self.move_to_group(index);
        }
    }

    /// Moves a radio to the group of its present channel, slots and code.
    pub(in crate::medium) fn move_to_group(&mut self, index: usize) {
        if let Some(share) = self.core.radios[index].hold.share {
            self.leave_group(index);
            self.join_group(index, share.slice, share.weight);
        }
    }

    /// Counts a frame that a radio begins to transmit.
    pub(in crate::medium) fn charge(&mut self, share: Share, now: Instant, length: Span) {
        let group = &mut self.slices.groups[share.group];
        let member = &mut group.members[share.member];
        if member.stalled {
            member.stalled = false;
            member.used = member.used.max(group.virtual_time);
        }
        member.sent = now + length;
        member.used += length.nanos() * FRACTIONS / u64::from(member.weight);
    }

    /// True if a radio must wait because its slice is ahead of the others.
    pub(in crate::medium) fn must_defer(&mut self, index: usize, now: Instant) -> bool {
        let Some(share) = self.core.radios[index].hold.share else { return false };
        self.look_at_backlog(share.group);
        let group = &mut self.slices.groups[share.group];
        if group.members[share.member].lead(group.virtual_time) <= LEAD {
            return false;
        }
        if !share.blocked {
            group.blocked.push(u32::try_from(index).unwrap_or(u32::MAX));
            self.core.radios.awake(index).hold.share = Some(Share { blocked: true, ..share });
        }
        self.watch_group(share.group, now);
        true
    }

    /// Schedules the search for slices that do not transmit.
    fn watch_group(&mut self, number: usize, now: Instant) {
        let group = &mut self.slices.groups[number];
        if !core::mem::replace(&mut group.scheduled, true) {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            self.core.calendar.push(now + IDLE_AFTER, Class::Timer, number, Event::Share { group: number });
        }
    }

    /// Finds which slices of a group have frames to send, and with that the virtual time.
    fn look_at_backlog(&mut self, number: usize) {
        let (now, radios) = (self.core.now, &self.core.radios);
        let group = &mut self.slices.groups[number];
        let mut least = None;
        for member in &mut group.members {
            let backlogged =
                !member.stalled && member.radios.iter().any(|&radio| radios[radio as usize].is_backlogged());
            if backlogged && !member.backlogged {
                member.used = member.used.max(group.virtual_time);
                member.since = now;
            }
            member.backlogged = backlogged;
            if backlogged {
                least = Some(least.map_or(member.used, |least: u64| least.min(member.used)));
            }
        }
        let reached = least.or_else(|| group.members.iter().map(|member| member.used).max());
        group.virtual_time = group.virtual_time.max(reached.unwrap_or(0));
    }

    /// Lets the radios of a group contend again whose slices are no longer ahead.
    fn admit_group(&mut self, number: usize) {
        if self.slices.groups[number].blocked.is_empty() {
            return;
        }
        self.look_at_backlog(number);
        let now = self.core.now;
        let mut place = 0;
        while let Some(&radio) = self.slices.groups[number].blocked.get(place) {
            let index = radio as usize;
            let Some(share) = &mut self.core.radios.awake(index).hold.share else { return };
            let group = &mut self.slices.groups[number];
            if group.members[share.member].lead(group.virtual_time) > LEAD {
                place += 1;
                continue;
            }
            share.blocked = false;
            group.blocked.remove(place);
            self.core.radios.awake(index).admit(now);
            self.core.arm(index);
        }
    }

    /// A radio has ended an exchange, or cannot send any more: others may be able to.
    pub(in crate::medium) fn yield_share(&mut self, index: usize) {
        if let Some(share) = self.core.radios[index].hold.share {
            self.admit_group(share.group);
        }
    }

    /// Looks for slices of a group that do not transmit although others wait for them.
    pub(in crate::medium) fn seek_stalled(&mut self, number: usize) {
        let now = self.core.now;
        self.slices.groups[number].scheduled = false;
        self.admit_group(number);
        let radios = &self.core.radios;
        let group = &mut self.slices.groups[number];
        let Some(&first) = group.blocked.first() else { return };
        if radios[first as usize].hold.in_window {
            for member in group.members.iter_mut().filter(|member| member.backlogged) {
                let ready = member.lead(group.virtual_time) <= LEAD;
                member.stalled = ready && now.since(member.sent.max(member.since)) >= IDLE_AFTER;
            }
        }
        self.admit_group(number);
        if !self.slices.groups[number].blocked.is_empty() {
            self.watch_group(number, now);
        }
    }
}
