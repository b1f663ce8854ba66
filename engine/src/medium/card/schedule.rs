//! Which channel a card serves, and when it leaves it.
//!
//! If its virtual MACs need several channels, the card serves each for the dwell time, in the order
//! of the radios, and spends the switching time between two. The dwell time counts from the end of
//! the switch. A switch waits for the end of a frame exchange that has begun. So with n channels
//! each has the share dwell / (n (dwell + switch)) of the time, apart from the ends of exchanges.
//! Frames for other channels wait in the queues of their virtual MACs.
//!
//! A scan asks for a channel that nobody works on. The card serves it next, at once and for one
//! dwell time at most, but never two such visits in a row while other channels wait: a scan of one
//! virtual MAC takes at most every second turn from the others. A visit gives way to another one
//! after 20 ms.

use crate::calendar::Class;
use crate::medium::card::state::{Phase, Sleep, VISIT};
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Longest wait for the announcements that stations doze.
const ANNOUNCING: Span = Span::from_millis(10);

impl Medium {
    /// The channel that a virtual MAC needs.
    fn needs(&self, card: usize, place: usize) -> Option<Channel> {
        let member = &self.cards[card].members[place];
        let radio = &self.core.radios[member.radio as usize];
        let known = member.visits || member.home.is_some() || radio.wideband.is_none();
        (radio.switched_on && known).then(|| self.core.reach.places[member.radio as usize].channel)
    }

    /// True if a virtual MAC scans, or asks to join a network.
    pub(super) fn is_visitor(&self, card: usize, place: usize) -> bool {
        let member = &self.cards[card].members[place];
        let index = member.radio as usize;
        let elsewhere = member.visits && member.home != Some(self.core.reach.places[index].channel);
        elsewhere || self.core.radios[index].scan.is_some() || self.is_asking(index)
    }

    /// The member and the channel to serve after the present channel; `None` if no other is needed.
    fn next_turn_of(&self, card: usize) -> Option<(usize, Channel, bool)> {
        let state = &self.cards[card];
        let count = state.members.len();
        let others = (1..=count).map(|step| (state.turn + step) % count).filter_map(|place| {
            let channel = self.needs(card, place).filter(|&channel| state.tuned != Some(channel))?;
            Some((place, channel, self.is_visitor(card, place)))
        });
        let wanted = |visitor| others.clone().find(move |&(.., visits)| visits == visitor);
        let (visit, regular) = (wanted(true), wanted(false));
        if state.visiting { regular.or(visit) } else { visit.or(regular) }
    }

    /// Checks, after a change of a virtual MAC, whether the card has to leave its channel.
    pub(in crate::medium) fn review_card(&mut self, card: usize) {
        self.wake_arrived(card);
        self.update_card(card);
        if !matches!(self.cards[card].phase, Phase::Stays | Phase::Dwells) {
            return;
        }
        let state = &self.cards[card];
        if self.next_turn_of(card).is_none() {
            return;
        }
        if let Some(at) = self.called_at(card) {
            self.enter(card, Phase::Called, at.since(self.core.now));
        } else if state.phase == Phase::Stays {
            let dwell = Span::from_nanos(state.settings.dwell_ns);
            self.enter(card, Phase::Dwells, dwell);
        }
    }

    /// When the card has to leave its channel before the end of the dwell time: at once if nobody needs
    /// it, and for a visit as soon as other visits to the present channel have had their time.
    fn called_at(&self, card: usize) -> Option<Instant> {
        let (.., visits) = self.next_turn_of(card)?;
        let state = &self.cards[card];
        let here = |place: &usize| self.needs(card, *place) == state.tuned;
        if !(0..state.members.len()).any(|place| here(&place)) {
            return Some(self.core.now);
        }
        let visitors = (0..state.members.len()).filter(here).filter(|&place| self.is_visitor(card, place));
        let since = visitors.map(|place| state.members[place].listens_from.max(state.since)).max();
        let ripe = since.map_or(self.core.now, |since| self.core.now.max(since + VISIT));
        (visits && !state.protected).then_some(ripe)
    }

    /// The same for the card of a radio, if it has one.
    pub(in crate::medium) fn review_card_of(&mut self, index: usize) {
        if let Some(card) = self.card_of(index) {
            self.review_card(card);
        }
    }

    fn enter(&mut self, card: usize, phase: Phase, span: Span) {
        let state = &mut self.cards[card];
        state.phase = phase;
        state.epoch = state.epoch.wrapping_add(1);
        let (number, epoch) = (u32::try_from(card).unwrap_or(u32::MAX), state.epoch);
        self.core.calendar.push(
            self.core.now + span,
            Class::Timer,
            number,
            Event::Card { card: number, epoch },
        );
    }

    /// Handles the timer of a card.
    pub(in crate::medium) fn card_due(&mut self, card: u32, epoch: u32, outside: &mut impl Outside) {
        let card = card as usize;
        if self.cards[card].epoch != epoch {
            return;
        }
        match self.cards[card].phase {
            Phase::Stays => {}
            Phase::Called if self.called_at(card).is_none_or(|at| at > self.core.now) => {
                let gone = self.core.now.since(self.cards[card].since);
                let dwell = Span::from_nanos(self.cards[card].settings.dwell_ns);
                self.enter(card, Phase::Dwells, dwell.saturating_sub(gone));
            }
            phase @ (Phase::Dwells | Phase::Called) => {
                self.end_visits(card, phase == Phase::Dwells);
                match self.next_turn_of(card) {
                    Some((_, channel, _)) => self.leave(card, channel, outside),
                    None => {
                        let state = &mut self.cards[card];
                        (state.phase, state.visiting, state.protected) = (Phase::Stays, false, false);
                    }
                }
            }
            Phase::Leaves(..) => self.depart(card),
            Phase::Switches(channel) => self.settle_on(card, channel, outside),
        }
    }

    /// Ends the visits of stacks to the present channel: they return to their own channel. Before the
    /// end of the dwell time (`whole`), a visit goes on later if its probe request was not sent.
    fn end_visits(&mut self, card: usize, whole: bool) {
        for place in 0..self.cards[card].members.len() {
            let tuned = self.cards[card].tuned;
            let member = &mut self.cards[card].members[place];
            let index = member.radio as usize;
            let here = tuned == Some(self.core.reach.places[index].channel);
            let away = member.visits && member.home.is_none_or(|home| tuned != Some(home));
            let waits = !whole && member.probe.as_ref().is_some_and(|probe| probe.waits(self.core.now));
            if !(here && away) || waits || self.core.radios[index].engaged() {
                continue;
            }
            member.visits = false;
            if let Some(home) = member.home {
                self.tune(index, home);
            }
        }
    }

    /// Prepares to leave the present channel.
    fn leave(&mut self, card: usize, channel: Channel, outside: &mut impl Outside) {
        self.enter(card, Phase::Leaves(channel, self.core.now + ANNOUNCING), ANNOUNCING);
        self.announce(card, outside);
        self.depart(card);
    }

    /// Leaves the present channel unless something is still to be done there.
    pub(super) fn depart(&mut self, card: usize) {
        let Phase::Leaves(channel, limit) = self.cards[card].phase else { return };
        let members = &self.cards[card].members;
        let engaged = members.iter().any(|member| self.core.radios[member.radio as usize].engaged());
        let announcing = members.iter().any(|member| member.sleep == Sleep::Announcing);
        if engaged || (announcing && self.core.now < limit) {
            return;
        }
        self.stop_announcing(card);
        let now = self.core.now;
        let state = &mut self.cards[card];
        state.ends_surveys(now);
        for member in &mut state.members {
            if state.tuned == Some(self.core.reach.places[member.radio as usize].channel) {
                member.listened += now.since(state.since.max(member.listens_from));
            }
        }
        state.tuned = None;
        state.counts.switches += 1;
        state.counts.switching_ns += state.settings.switch_ns;
        let cost = Span::from_nanos(state.settings.switch_ns);
        self.enter(card, Phase::Switches(channel), cost);
        self.update_card(card);
    }

    /// Arrives on a channel.
    fn settle_on(&mut self, card: usize, channel: Channel, outside: &mut impl Outside) {
        let served = (0..self.cards[card].members.len())
            .map(|step| (self.cards[card].turn + 1 + step) % self.cards[card].members.len())
            .find(|&place| self.needs(card, place) == Some(channel));
        let visiting = (0..self.cards[card].members.len())
            .filter(|&place| self.needs(card, place) == Some(channel))
            .all(|place| self.is_visitor(card, place));
        let state = &mut self.cards[card];
        state.tuned = Some(channel);
        state.since = self.core.now;
        state.protected = core::mem::replace(&mut state.visiting, visiting) && !visiting;
        state.counts.visits += u64::from(visiting);
        state.turn = served.unwrap_or(state.turn);
        let dwell = Span::from_nanos(state.settings.dwell_ns);
        self.enter(card, Phase::Dwells, dwell);
        self.update_card(card);
        self.return_from_doze(card, outside);
        self.review_card(card);
    }

    /// Handles the end of an exchange of a virtual MAC.
    pub(in crate::medium) fn exchange_ended(&mut self, index: usize) {
        let Some(card) = self.card_of(index) else { return };
        self.update_card(card);
        self.depart(card);
    }

    /// Additional time within which a virtual MAC may get no service; zero for other radios.
    pub(in crate::medium) fn absence(&self, index: usize) -> Span {
        let Some(card) = self.card_of(index) else { return Span::ZERO };
        let card = &self.cards[card];
        let turn = Span::from_nanos(card.settings.dwell_ns + card.settings.switch_ns) + ANNOUNCING;
        turn * (2 * card.members.len() as u64)
    }

    /// Begins to measure how long a scan listens on a channel.
    pub(in crate::medium) fn begin_listening(&mut self, index: usize) {
        let Some(card) = self.card_of(index) else { return };
        let now = self.core.now;
        let member = self.cards[card].members.iter_mut().find(|member| member.radio as usize == index);
        if let Some(member) = member {
            (member.listened, member.listens_from) = (Span::ZERO, now);
        }
    }

    /// Time that a scan step still has to listen; zero for radios without a card.
    pub(in crate::medium) fn left_to_listen(&self, index: usize, dwell: Span) -> Span {
        let Some(card) = self.card_of(index) else { return Span::ZERO };
        let state = &self.cards[card];
        let Some(member) = state.members.iter().find(|m| m.radio as usize == index) else {
            return Span::ZERO;
        };
        let here = state.tuned == Some(self.core.reach.places[index].channel);
        let lately =
            if here { self.core.now.since(state.since.max(member.listens_from)) } else { Span::ZERO };
        dwell.saturating_sub(member.listened + lately)
    }
}
