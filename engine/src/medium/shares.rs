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
//! backoffs are not part of it. It is the airtime that [`super::ChannelUse`] counts. Each slice has a
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

use super::codes::CodeSettings;
use super::phy::Channel;
use super::radio::Radio;
use super::{Event, Medium};
use crate::calendar::Class;
use crate::time::{Instant, Span};

/// Airtime by which a slice may be ahead of the others: about two of the longest exchanges.
const LEAD: Span = Span::from_millis(4);
/// Time without a transmission after which a slice with frames to send counts as idle.
const IDLE_AFTER: Span = Span::from_millis(250);
/// Fractions of a nanosecond in a virtual time: 2^64 of them are 208 days.
const FRACTIONS: u64 = 1024;

/// The part of a radio in the airtime of its slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    slice: u16,
    weight: u16,
    /// Its group, and the slice's place in it.
    group: usize,
    member: usize,
    /// True while it waits until its slice is no longer ahead.
    blocked: bool,
}

/// The slices that share a channel by weights.
#[derive(Debug)]
pub(super) struct Group {
    channel: Channel,
    /// The own slots of its radios; empty for radios without slots.
    slots: Vec<u16>,
    /// The code of its radios.
    code: Option<CodeSettings>,
    members: Vec<Member>,
    /// The virtual time v, in fractions of a nanosecond.
    virtual_time: u64,
    /// Radios that wait.
    blocked: Vec<u32>,
    /// True if an [`Event::Share`] is scheduled.
    scheduled: bool,
}

/// A slice in a group.
#[derive(Debug)]
struct Member {
    slice: u16,
    weight: u16,
    radios: Vec<u32>,
    /// The virtual time V, in fractions of a nanosecond.
    used: u64,
    /// True if it had a frame to send at the last look, since when, and the end of its last frame.
    backlogged: bool,
    since: Instant,
    sent: Instant,
    /// It did not transmit although it could, and counts as idle until it does.
    stalled: bool,
}

impl Member {
    /// Airtime by which it is ahead of a virtual time.
    fn lead(&self, virtual_time: u64) -> Span {
        let fractions = self.used.saturating_sub(virtual_time).saturating_mul(u64::from(self.weight));
        Span::from_nanos(fractions / FRACTIONS)
    }
}

impl Radio {
    /// True if it has a frame to send, and nothing of its own keeps it from sending.
    fn is_backlogged(&self) -> bool {
        self.switched_on && !self.held && self.lanes.iter().any(|lane| lane.wants(self.away))
    }

    /// Lets it contend again for the frames that waited for other slices.
    fn admit(&mut self, now: Instant) {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].deferred {
                self.lanes[lane].deferred = false;
                self.back_off(lane);
                self.lanes[lane].from = self.lanes[lane].from.max(now);
            }
        }
        self.set_access();
    }
}

impl Medium {
    /// Sets the weight of a radio's slice, 1 to 1000; `None` takes it out of its group.
    pub(super) fn set_weight(&mut self, index: usize, slice: u16, weight: Option<u16>) {
        self.leave_group(index);
        if let Some(weight) = weight {
            self.wake(index);
            self.join_group(index, slice, weight);
        }
    }

    fn join_group(&mut self, index: usize, slice: u16, weight: u16) {
        let channel = self.reach.places[index].channel;
        let slots = self.radios[index].settings.slots.as_ref().map_or(&[][..], |slots| &slots.own);
        let code = self.radios[index].settings.code;
        let same = |group: &Group| group.channel == channel && group.code == code && group.slots == slots;
        let known = self.groups.iter().position(same);
        let at = known.unwrap_or_else(|| {
            self.groups.push(Group {
                channel,
                slots: slots.to_vec(),
                code,
                members: Vec::new(),
                virtual_time: 0,
                blocked: Vec::new(),
                scheduled: false,
            });
            self.groups.len() - 1
        });
        let now = self.now;
        let group = &mut self.groups[at];
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
        self.radios[index].share = Some(Share { slice, weight, group: at, member, blocked: false });
    }

    /// Takes a radio out of its group. If it waited, it contends again.
    fn leave_group(&mut self, index: usize) {
        let Some(share) = self.radios[index].share.take() else { return };
        let group = &mut self.groups[share.group];
        group.members[share.member].radios.retain(|&radio| radio as usize != index);
        group.blocked.retain(|&radio| radio as usize != index);
        if share.blocked {
            let now = self.now;
            self.radios[index].admit(now);
            self.timers.set(index, self.radios[index].next_at());
        }
        self.admit_group(share.group);
    }

    /// Moves a radio to the group of its present channel.
    pub(super) fn follow_channel(&mut self, index: usize) {
        let Some(share) = self.radios[index].share else { return };
        if self.groups[share.group].channel != self.reach.places[index].channel {
            self.move_to_group(index);
        }
    }

    /// Moves a radio to the group of its present channel, slots and code.
    pub(super) fn move_to_group(&mut self, index: usize) {
        if let Some(share) = self.radios[index].share {
            self.leave_group(index);
            self.join_group(index, share.slice, share.weight);
        }
    }

    /// Counts a frame that a radio begins to transmit.
    pub(super) fn charge(&mut self, share: Share, now: Instant, length: Span) {
        let group = &mut self.groups[share.group];
        let member = &mut group.members[share.member];
        if member.stalled {
            member.stalled = false;
            member.used = member.used.max(group.virtual_time);
        }
        member.sent = now + length;
        member.used += length.nanos() * FRACTIONS / u64::from(member.weight);
    }

    /// True if a radio must wait because its slice is ahead of the others.
    pub(super) fn must_defer(&mut self, index: usize, now: Instant) -> bool {
        let Some(share) = self.radios[index].share else { return false };
        self.look_at_backlog(share.group);
        let group = &mut self.groups[share.group];
        if group.members[share.member].lead(group.virtual_time) <= LEAD {
            return false;
        }
        if !share.blocked {
            group.blocked.push(u32::try_from(index).unwrap_or(u32::MAX));
            self.radios[index].share = Some(Share { blocked: true, ..share });
        }
        self.watch_group(share.group, now);
        true
    }

    /// Schedules the search for slices that do not transmit.
    fn watch_group(&mut self, number: usize, now: Instant) {
        let group = &mut self.groups[number];
        if !core::mem::replace(&mut group.scheduled, true) {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            self.calendar.push(now + IDLE_AFTER, Class::Timer, number, Event::Share { group: number });
        }
    }

    /// Finds which slices of a group have frames to send, and with that the virtual time.
    fn look_at_backlog(&mut self, number: usize) {
        let (now, radios) = (self.now, &self.radios);
        let group = &mut self.groups[number];
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
        if self.groups[number].blocked.is_empty() {
            return;
        }
        self.look_at_backlog(number);
        let now = self.now;
        let mut place = 0;
        while let Some(&radio) = self.groups[number].blocked.get(place) {
            let index = radio as usize;
            let Some(share) = &mut self.radios[index].share else { return };
            let group = &mut self.groups[number];
            if group.members[share.member].lead(group.virtual_time) > LEAD {
                place += 1;
                continue;
            }
            share.blocked = false;
            group.blocked.remove(place);
            self.radios[index].admit(now);
            self.timers.set(index, self.radios[index].next_at());
        }
    }

    /// A radio has ended an exchange, or cannot send any more: others may be able to.
    pub(super) fn yield_share(&mut self, index: usize) {
        if let Some(share) = self.radios[index].share {
            self.admit_group(share.group);
        }
    }

    /// Looks for slices of a group that do not transmit although others wait for them.
    pub(super) fn seek_stalled(&mut self, number: usize) {
        let now = self.now;
        self.groups[number].scheduled = false;
        self.admit_group(number);
        let radios = &self.radios;
        let group = &mut self.groups[number];
        let Some(&first) = group.blocked.first() else { return };
        if radios[first as usize].in_window {
            for member in group.members.iter_mut().filter(|member| member.backlogged) {
                let ready = member.lead(group.virtual_time) <= LEAD;
                member.stalled = ready && now.since(member.sent.max(member.since)) >= IDLE_AFTER;
            }
        }
        self.admit_group(number);
        if !self.groups[number].blocked.is_empty() {
            self.watch_group(number, now);
        }
    }
}
