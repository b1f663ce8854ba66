//! Several virtual MACs on one physical radio: a wireless card.
//!
//! Each virtual MAC is a radio of the medium with its own address, membership, rate control, queues
//! and counters. The card has one transmitter, one receiver and one synthesiser:
//!
//! * One exchange at a time. While a virtual MAC is in a frame exchange, the others do not contend.
//!   While it transmits, they receive nothing, and count the channel as busy. No virtual MAC
//!   receives a transmission of its own card.
//! * Contention inside a card is that of EDCA's access categories (802.11-2020, 10.23.2.4): if
//!   several virtual MACs may send at the same instant, one sends, and the others behave as after a
//!   collision, without anything on the air. The one that sent less recently wins.
//! * Virtual MACs of one channel share its airtime. If they need several channels, the card serves
//!   them in turn ([`schedule`]).
//!
//! A virtual MAC that cannot receive has infinite noise on that channel: every frame is missed and
//! the channel is busy. So no path of the medium knows about cards, except at the start and the end
//! of an exchange.
//!
//! Approximation: fading and bit errors are drawn for each virtual MAC, as if it had an antenna of
//! its own at the same place.

mod doze;
mod results;
mod schedule;
mod sleep;

pub(super) use doze::Dozing;
pub(super) use sleep::SleepAccount;

use serde::{Deserialize, Serialize};

use super::air::Sending;
use super::phy::Channel;
use super::radio::{Answer, Kind, Radio, RadioId, Stage};
use super::settings::SettingsError;
use super::{Medium, Outside};
use crate::time::{Instant, Span};
use doze::Sleep;
use results::{Probe, Results};
use schedule::Phase;

/// A physical radio that several radios share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CardSettings {
    /// The most virtual MACs that the card has, 1 to 64.
    pub virtual_macs: u32,
    /// Time on a channel before the card serves the next one, in nanoseconds, 1 ms to 500 ms.
    pub dwell_ns: u64,
    /// Time of a switch to another channel, in nanoseconds, up to 100 ms.
    pub switch_ns: u64,
    /// Before the card leaves a channel, its stations tell their access points that they doze, and
    /// after its return that they are awake.
    pub power_save: bool,
    /// Greatest age of results that answer the scan of a virtual MAC, in nanoseconds, up to 60 s; 0
    /// if none do.
    pub scan_age_ns: u64,
    /// A virtual MAC's scan of a channel is answered by what another one receives there at the same
    /// time.
    pub merge_scans: bool,
}

impl Default for CardSettings {
    fn default() -> Self {
        Self {
            virtual_macs: 4,
            dwell_ns: 40_000_000,
            switch_ns: 1_000_000,
            power_save: true,
            scan_age_ns: 1_000_000_000,
            merge_scans: true,
        }
    }
}

impl CardSettings {
    /// Checks every setting of the card called `card`.
    ///
    /// # Errors
    /// Names the first invalid setting.
    pub fn validate(&self, card: &str) -> Result<(), SettingsError> {
        let range = |setting, value: u64, allowed: core::ops::RangeInclusive<u64>, range| {
            if allowed.contains(&value) {
                return Ok(());
            }
            Err(SettingsError::Card { card: card.to_owned(), setting, value: value.to_string(), range })
        };
        range("virtual_macs", u64::from(self.virtual_macs), 1..=64, "1 to 64")?;
        range("dwell_ns", self.dwell_ns, 1_000_000..=500_000_000, "1 ms to 500 ms, in nanoseconds")?;
        range("switch_ns", self.switch_ns, 0..=100_000_000, "0 to 100 ms, in nanoseconds")?;
        range("scan_age_ns", self.scan_age_ns, 0..=60_000_000_000, "0 to 60 s, in nanoseconds")
    }
}

/// Counters of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardCounts {
    /// Switches to another channel.
    pub switches: u64,
    /// Time spent on them, in nanoseconds.
    pub switching_ns: u64,
    /// Visits to a channel for a scan.
    pub visits: u64,
    /// Internal collisions: a virtual MAC gave way to another one of its card.
    pub collisions: u64,
    /// Requests for the scan of a channel.
    pub scans_asked: u64,
    /// Of these, those answered by the scan of another virtual MAC at the same time.
    pub scans_merged: u64,
    /// Of these, those answered from the cache.
    pub scans_cached: u64,
    /// Results (beacons and probe responses) passed on for requests that were not sent.
    pub scan_results: u64,
    /// Sum of the ages of these results, in nanoseconds.
    pub scan_age_ns: u64,
    /// Greatest age of such a result, in nanoseconds.
    pub scan_oldest_ns: u64,
    /// Time in which at least one virtual MAC was on and all of those dozed, in nanoseconds.
    pub asleep_ns: u64,
}

/// A card and its virtual MACs.
pub(super) struct Card {
    name: String,
    settings: CardSettings,
    members: Vec<Member>,
    /// The channel in force; `None` during a switch.
    tuned: Option<Channel>,
    phase: Phase,
    /// Since when the card is on its channel.
    since: Instant,
    /// Identifies timers of earlier phases as obsolete.
    epoch: u32,
    /// True if the present turn is a visit for a scan.
    visiting: bool,
    /// True if the present turn follows a visit: no other visit interrupts it.
    protected: bool,
    /// The member that was served last.
    turn: usize,
    results: Results,
    asleep: SleepAccount,
    counts: CardCounts,
}

/// A virtual MAC.
struct Member {
    radio: u32,
    /// Start of its last exchange.
    sent: Instant,
    /// Its channel; `None` for a stack that has not sent a frame yet, except probe requests.
    home: Option<Channel>,
    /// It is on another channel for a scan.
    visits: bool,
    /// Time that it has listened on the channel of its present scan step.
    listened: Span,
    /// When it began to listen there.
    listens_from: Instant,
    sleep: Sleep,
    /// Network (BSSID) of a stack that is a station, and the address that the stack uses there.
    network: Option<[[u8; 6]; 2]>,
    /// Its last probe request that was not answered from the cache.
    probe: Option<Probe>,
}

impl Medium {
    /// Makes these radios virtual MACs of one card.
    ///
    /// # Errors
    /// If a setting is invalid, there are more radios than virtual MACs, a radio belongs to a card
    /// already, or two have different physical layers.
    pub fn add_card(
        &mut self,
        name: &str,
        settings: CardSettings,
        radios: &[RadioId],
    ) -> Result<(), SettingsError> {
        settings.validate(name)?;
        let refuse = |setting, value: String, range| {
            Err(SettingsError::Card { card: name.to_owned(), setting, value, range })
        };
        if radios.is_empty() || radios.len() > settings.virtual_macs as usize {
            let range = "the radios of the card: 1 to virtual_macs";
            return refuse("number of radios", radios.len().to_string(), range);
        }
        let phy = self.radios[radios[0].index()].phy;
        for (place, &id) in radios.iter().enumerate() {
            let radio = &self.radios[id.index()];
            if radio.card.is_some() || radios[..place].contains(&id) {
                return refuse("radio", radio.name.clone(), "radios that belong to no card yet");
            }
            if radio.hops.is_some() || radio.settings.code.is_some() {
                let setting = if radio.hops.is_some() { "hops" } else { "code" };
                return refuse(setting, radio.name.clone(), "radios that do not share a card");
            }
            if !core::ptr::eq(radio.phy, phy) {
                return refuse("phy", radio.phy.name.to_owned(), "one physical layer for all its radios");
            }
        }
        self.dissolve_clusters();
        let number = self.cards.len();
        let home = |id: &RadioId| {
            let stack = self.radios[id.index()].wideband.is_some();
            (!stack).then(|| self.reach.places[id.index()].channel)
        };
        let members = radios.iter().map(|id| Member {
            radio: id.number(),
            sent: Instant::ZERO,
            home: home(id),
            visits: false,
            listened: Span::ZERO,
            listens_from: Instant::ZERO,
            sleep: Sleep::Awake,
            network: None,
            probe: None,
        });
        let members: Vec<Member> = members.collect();
        let tuned = Some(self.reach.places[radios[0].index()].channel);
        self.cards.push(Card {
            name: name.to_owned(),
            settings,
            members,
            tuned,
            phase: Phase::Stays,
            since: self.now,
            epoch: 0,
            visiting: false,
            protected: false,
            turn: 0,
            results: Results::default(),
            asleep: SleepAccount::default(),
            counts: CardCounts::default(),
        });
        for id in radios {
            self.radios[id.index()].card = Some(u32::try_from(number).unwrap_or(u32::MAX));
            self.reach.places[id.index()].card = u32::try_from(number + 1).unwrap_or(u32::MAX);
        }
        self.reach.retuned();
        self.review_card(number);
        Ok(())
    }

    /// Every card: its name, the channel in force (`None` during a switch), and its counters.
    pub fn cards(&self) -> impl Iterator<Item = (&str, Option<Channel>, CardCounts)> {
        self.cards.iter().map(|card| {
            let asleep_ns = card.asleep.total(self.now).nanos();
            (card.name.as_str(), card.tuned, CardCounts { asleep_ns, ..card.counts })
        })
    }

    /// The card that a radio belongs to.
    pub(super) fn card_of(&self, index: usize) -> Option<usize> {
        self.radios[index].card.map(|card| card as usize)
    }

    /// The other radios of a radio's card.
    pub(super) fn siblings(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let card = self.card_of(index).map(|card| &self.cards[card]);
        let members = card.into_iter().flat_map(|card| &card.members);
        members.map(|member| member.radio as usize).filter(move |&radio| radio != index)
    }

    /// True if a radio cannot receive on a channel: its card is elsewhere, or transmits for another
    /// virtual MAC.
    pub(super) fn is_deaf(&self, index: usize, channel: Channel) -> bool {
        let Some(card) = self.card_of(index) else { return false };
        self.cards[card].tuned != Some(channel)
            || self.siblings(index).any(|sibling| self.radios[sibling].transmitting)
    }

    /// Handles the start of an exchange of a virtual MAC.
    pub(super) fn exchange_begins(&mut self, index: usize) {
        let Some(card) = self.card_of(index) else { return };
        let now = self.now;
        if let Some(member) = self.cards[card].members.iter_mut().find(|m| m.radio as usize == index) {
            member.sent = now;
        }
        for place in 0..self.cards[card].members.len() {
            let other = self.cards[card].members[place].radio as usize;
            if other != index && self.radios[other].collides(now) {
                self.cards[card].counts.collisions += 1;
            }
        }
        self.update_card(card);
    }

    /// Handles the end of a transmission of a virtual MAC.
    pub(super) fn transmission_ended(&mut self, index: usize, sending: &Sending, outside: &impl Outside) {
        if let Some(card) = self.card_of(index) {
            self.probe_sent(index, sending, outside);
            self.update_card(card);
        }
    }

    /// Discards a response, or the frame after a clear-to-send, that is due while another virtual MAC
    /// of the card transmits. False if it can be sent.
    pub(super) fn misses_answer(
        &mut self,
        index: usize,
        answer: &Answer,
        outside: &mut impl Outside,
    ) -> bool {
        let now = self.now;
        if !self.siblings(index).any(|sibling| self.radios[sibling].transmitting) {
            return false;
        }
        if answer.kind == Kind::Data {
            self.radios[index].stage = Stage::Awaiting(answer.lane, Kind::Cts, now, false);
            self.unanswered(index, now, outside);
        } else {
            self.release(index, now);
        }
        true
    }

    /// True if a virtual MAC that may send gives way to another one of its card, which may send at
    /// the same instant and sent less recently. It then behaves as after a collision.
    pub(super) fn gives_way(&mut self, index: usize, lane: usize) -> bool {
        let Some(card) = self.card_of(index) else { return false };
        let now = self.now;
        let members = &self.cards[card].members;
        let Some(own) = members.iter().find(|member| member.radio as usize == index) else { return false };
        let earlier = |member: &Member| {
            let other = &self.radios[member.radio as usize];
            member.sent < own.sent && other.access_at <= now && !other.held && other.stage == Stage::Free
        };
        if !members.iter().any(earlier) {
            return false;
        }
        self.cards[card].counts.collisions += 1;
        let radio = &mut self.radios[index];
        radio.lanes[lane].widen();
        radio.back_off(lane);
        radio.lanes[lane].from = radio.lanes[lane].from.max(now);
        radio.set_access();
        true
    }

    /// Derives from the state of a card what each of its virtual MACs can receive, and whether it
    /// may contend.
    pub(super) fn update_card(&mut self, card: usize) {
        let now = self.now;
        for place in 0..self.cards[card].members.len() {
            let member = &self.cards[card].members[place];
            let index = member.radio as usize;
            let here = self.cards[card].tuned == Some(self.reach.places[index].channel);
            let held = !here
                || member.sleep == Sleep::Asleep
                || self.siblings(index).any(|sibling| self.radios[sibling].stage != Stage::Free);
            self.soak(index);
            self.drop_deaf_locks(index);
            self.listen(index, now);
            self.radios[index].hold(held, now);
            self.timers.set(index, self.radios[index].next_at());
            self.yield_share(index);
        }
    }

    /// Ends receptions on channels that a radio cannot receive any more.
    fn drop_deaf_locks(&mut self, index: usize) {
        let radio = &mut self.radios[index];
        if radio.ambient.is_infinite() && radio.lock.take().is_some() {
            radio.counts.broken += 1;
            if let Stage::Awaiting(lane, what, _, true) = radio.stage {
                // The frame whose end it awaited is lost.
                radio.stage = Stage::Awaiting(lane, what, self.now, false);
            }
        }
        if let Some(wideband) = &mut radio.wideband {
            wideband.lose_deaf();
        }
    }
}

impl Radio {
    /// Stops or admits contention for the sake of the other virtual MACs of the card.
    fn hold(&mut self, held: bool, now: Instant) {
        if self.held == held {
            return;
        }
        self.held = held;
        if held && !self.counting {
            self.stopped_self = true;
            self.set_access();
            return;
        }
        if !held {
            self.free_since = self.free_since.max(now);
        }
        self.recount(now);
        self.set_access();
    }

    /// Handles an internal collision: every lane that would send now widens its window and draws
    /// another backoff. True if there was one.
    fn collides(&mut self, now: Instant) -> bool {
        let mut some = false;
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            if self.counting && lane.backing_off && lane.wants(self.away) && lane.due(self.slot) <= now {
                self.lanes[index].widen();
                self.back_off(index);
                let lane = &mut self.lanes[index];
                lane.from = lane.from.max(now);
                some = true;
            }
        }
        some
    }
}
