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
pub(super) mod settings;
pub(super) mod state;

use crate::medium::Medium;
use crate::medium::card::settings::{CardCounts, CardSettings};
use crate::medium::card::state::{Card, Member, Phase, Results, Sleep};
use crate::medium::mac::lane::{Answer, Stage};
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::radio::Radio;
use crate::medium::radio::sleep_account::SleepAccount;
use crate::medium::settings::error::SettingsError;
use crate::medium::signal::Sending;
use crate::medium::types::{Kind, RadioId};
use crate::time::{Instant, Span};

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
        let phy = self.core.radios[radios[0].index()].bands();
        for (place, &id) in radios.iter().enumerate() {
            let radio = &self.core.radios[id.index()];
            if radio.hold.card.is_some() || radios[..place].contains(&id) {
                return refuse("radio", radio.name.clone(), "radios that belong to no card yet");
            }
            if radio.hops.is_some() || radio.settings.code.is_some() {
                let setting = if radio.hops.is_some() { "hops" } else { "code" };
                return refuse(setting, radio.name.clone(), "radios that do not share a card");
            }
            if !core::ptr::eq(radio.bands(), phy) {
                return refuse("phy", radio.bands().name.to_owned(), "one physical layer for all its radios");
            }
        }
        self.dissolve_clusters();
        let number = self.cards.len();
        let home = |id: &RadioId| {
            let stack = self.core.radios[id.index()].wideband.is_some();
            (!stack).then(|| self.core.reach.places[id.index()].channel)
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
        let tuned = Some(self.core.reach.places[radios[0].index()].channel);
        self.cards.push(Card {
            name: name.to_owned(),
            settings,
            members,
            tuned,
            phase: Phase::Stays,
            since: self.core.now,
            epoch: 0,
            visiting: false,
            protected: false,
            turn: 0,
            results: Results::default(),
            asleep: SleepAccount::default(),
            counts: CardCounts::default(),
        });
        for id in radios {
            self.core.radios.awake(id.index()).hold.card = Some(u32::try_from(number).unwrap_or(u32::MAX));
            self.core.reach.places[id.index()].card = u32::try_from(number + 1).unwrap_or(u32::MAX);
        }
        self.core.reach.retuned();
        self.review_card(number);
        Ok(())
    }

    /// Every card: its name, the channel in force (`None` during a switch), and its counters.
    pub fn cards(&self) -> impl Iterator<Item = (&str, Option<Channel>, CardCounts)> {
        self.cards.iter().map(|card| {
            let asleep_ns = card.asleep.total(self.core.now).nanos();
            (card.name.as_str(), card.tuned, CardCounts { asleep_ns, ..card.counts })
        })
    }

    /// The card that a radio belongs to.
    pub(super) fn card_of(&self, index: usize) -> Option<usize> {
        self.core.radios[index].hold.card.map(|card| card as usize)
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
            || self.siblings(index).any(|sibling| self.core.radios[sibling].transmitting)
    }

    /// Handles the start of an exchange of a virtual MAC.
    pub(super) fn exchange_begins(&mut self, index: usize) {
        let Some(card) = self.card_of(index) else { return };
        let now = self.core.now;
        if let Some(member) = self.cards[card].members.iter_mut().find(|m| m.radio as usize == index) {
            member.sent = now;
        }
        for place in 0..self.cards[card].members.len() {
            let other = self.cards[card].members[place].radio as usize;
            if other != index && self.core.radios.awake(other).collides(now) {
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
        let now = self.core.now;
        if !self.siblings(index).any(|sibling| self.core.radios[sibling].transmitting) {
            return false;
        }
        if answer.is_own() {
            self.core.radios.awake(index).exchange.stage =
                Stage::Awaiting(answer.lane, Kind::Cts, now, false);
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
        let now = self.core.now;
        let members = &self.cards[card].members;
        let Some(own) = members.iter().find(|member| member.radio as usize == index) else { return false };
        let earlier = |member: &Member| {
            let other = &self.core.radios[member.radio as usize];
            member.sent < own.sent
                && other.contention.access_at <= now
                && !other.hold.held
                && other.exchange.stage == Stage::Free
        };
        if !members.iter().any(earlier) {
            return false;
        }
        self.cards[card].counts.collisions += 1;
        let radio = self.core.radios.awake(index);
        radio.contention.lanes[lane].widen();
        radio.back_off_again(lane, now);
        radio.set_access();
        true
    }

    /// Derives from the state of a card what each of its virtual MACs can receive, and whether it
    /// may contend.
    pub(super) fn update_card(&mut self, card: usize) {
        let now = self.core.now;
        for place in 0..self.cards[card].members.len() {
            let member = &self.cards[card].members[place];
            let index = member.radio as usize;
            let here = self.cards[card].tuned == Some(self.core.reach.places[index].channel);
            let held = !here
                || member.sleep == Sleep::Asleep
                || self
                    .siblings(index)
                    .any(|sibling| self.core.radios[sibling].exchange.stage != Stage::Free);
            self.soak(index);
            self.drop_deaf_locks(index);
            self.core.listen(index, now);
            self.core.radios.awake(index).hold(held, now);
            self.core.arm(index);
            self.yield_share(index);
        }
    }

    /// Ends receptions on channels that a radio cannot receive any more.
    fn drop_deaf_locks(&mut self, index: usize) {
        let radio = self.core.radios.awake(index);
        if radio.reception.is_deaf() && radio.reception.lose() {
            radio.counts.broken += 1;
            if let Stage::Awaiting(lane, what, _, true) = radio.exchange.stage {
                // The frame whose end it awaited is lost.
                radio.exchange.stage = Stage::Awaiting(lane, what, self.core.now, false);
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
        if self.hold.held == held {
            return;
        }
        self.hold.held = held;
        if held && !self.contention.counting {
            self.contention.stopped_self = true;
            self.set_access();
            return;
        }
        if !held {
            self.contention.free_since = self.contention.free_since.max(now);
        }
        self.recount(now);
        self.set_access();
    }

    /// Handles an internal collision: every lane that would send now widens its window and draws
    /// another backoff. True if there was one.
    fn collides(&mut self, now: Instant) -> bool {
        let mut some = false;
        for index in 0..self.contention.lanes.len() {
            let lane = &self.contention.lanes[index];
            if self.contention.counting
                && lane.backing_off
                && lane.wants(self.away)
                && lane.due(self.layer.slot) <= now
            {
                self.contention.lanes[index].widen();
                self.back_off_again(index, now);
                some = true;
            }
        }
        some
    }
}
