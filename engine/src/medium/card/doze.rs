//! Stations of a card that leave their channel for a while.
//!
//! A station announces to its access point that it dozes, by a null data frame with the power
//! management bit, before the card leaves the channel, and by one without it after the return
//! (802.11-2020, 11.2.3; this is the way of MultiNet, Chandra et al., INFOCOM 2004). The card
//! makes these frames, for Ethernet radios as well as for stacks. An access point of a stack holds
//! the frames of a dozing station by itself; an Ethernet access point does so here: it sends none
//! to the station until the station returns, and keeps at most [`HELD`] of each station, the
//! newest.

use crate::drop_reason::DropReason as Why;
use crate::medium::Medium;
use crate::medium::bss::cell::Cell;
use crate::medium::card::state::{Phase, Sleep};
use crate::medium::mac::waiting::Waiting;
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::wlan::header::{Header, Type, flag};

/// Frames that an access point keeps for a dozing station, as Linux's mac80211 does for each
/// access category.
const HELD: usize = 64;

/// Subtype of a probe request.
const PROBE_REQUEST: u8 = 4;

impl Medium {
    /// Records what a frame of a stack says about the channel and the network of its virtual MAC.
    pub(in crate::medium) fn asked_by_stack(&mut self, index: usize, header: &Header, channel: Channel) {
        let Some(card) = self.card_of(index) else { return };
        let (now, tuned) = (self.core.now, self.core.reach.places[index].channel);
        let member = self.cards[card].members.iter_mut().find(|member| member.radio as usize == index);
        let Some(member) = member else { return };
        let to_network = header.control[1] & (flag::TO_DS | flag::FROM_DS) == flag::TO_DS;
        match header.kind() {
            Some(Type::Data) if to_network => {
                member.network = Some([header.receiver, header.transmitter]);
                member.home = Some(channel);
            }
            Some(Type::Management) if header.subtype() == PROBE_REQUEST => {
                (member.visits, member.listens_from) = (true, now);
            }
            _ => member.home = Some(channel),
        }
        // A radio on another channel is tuned when the frame is first in its queue.
        if channel == tuned {
            self.review_card(card);
        }
    }

    /// The network of a station that a card serves, and the receiver of a frame to it.
    fn network_of(&self, card: usize, place: usize) -> Option<(To, Option<[u8; 6]>)> {
        let member = &self.cards[card].members[place];
        let radio = &self.core.radios[member.radio as usize];
        if !radio.switched_on || radio.away || self.is_visitor(card, place) {
            return None;
        }
        match &radio.cell {
            Cell::Station(station) => {
                let home = station.home()?;
                let stack = self.is_stack(Some(home)).then(|| station.network());
                Some((To::Radio(home), stack))
            }
            Cell::Wlan => member.network.map(|[network, _]| (To::Nobody, Some(network))),
            _ => None,
        }
    }

    /// The address that a radio writes into frames that the engine makes.
    pub(in crate::medium) fn transmitter_address(&self, index: usize) -> [u8; 6] {
        let card = self.card_of(index).map(|card| &self.cards[card]);
        let member = card.and_then(|card| card.members.iter().find(|member| member.radio as usize == index));
        let own = member.and_then(|member| member.network).map(|[_, own]| own);
        own.unwrap_or(self.core.radios[index].settings.mac)
    }

    /// Makes the stations on the card's channel tell their access points that they doze.
    pub(in crate::medium) fn announce(&mut self, card: usize, outside: &mut impl Outside) {
        if !self.cards[card].settings.power_save {
            return;
        }
        for place in 0..self.cards[card].members.len() {
            let member = &self.cards[card].members[place];
            let index = member.radio as usize;
            let here = self.cards[card].tuned == Some(self.core.reach.places[index].channel);
            if !here || member.sleep != Sleep::Awake {
                continue;
            }
            let Some((to, receiver)) = self.network_of(card, place) else { continue };
            self.cards[card].members[place].sleep = Sleep::Announcing;
            let waiting = Waiting { receiver, ..Waiting::new(Kind::Doze, to, 0) };
            self.enqueue(index, 0, self.core.now, waiting, outside);
        }
    }

    /// Handles the end of an announcement, acknowledged or not.
    pub(in crate::medium) fn announced(&mut self, index: usize) {
        let Some(card) = self.card_of(index) else { return };
        let member = self.cards[card].members.iter_mut().find(|member| member.radio as usize == index);
        if let Some(member) = member.filter(|member| member.sleep == Sleep::Announcing) {
            member.sleep = Sleep::Asleep;
        }
    }

    /// Withdraws announcements that were not sent in time.
    pub(in crate::medium) fn stop_announcing(&mut self, card: usize) {
        for place in 0..self.cards[card].members.len() {
            let member = &mut self.cards[card].members[place];
            if member.sleep == Sleep::Announcing {
                member.sleep = Sleep::Awake;
                let index = member.radio as usize;
                self.withdraw(index, Kind::Doze);
            }
        }
    }

    /// A station that dozed on another channel and has tuned to the one that the card serves is in
    /// another network: it is there.
    pub(in crate::medium) fn wake_arrived(&mut self, card: usize) {
        if !matches!(self.cards[card].phase, Phase::Stays | Phase::Dwells | Phase::Called) {
            return;
        }
        let tuned = self.cards[card].tuned;
        for member in &mut self.cards[card].members {
            if member.sleep == Sleep::Asleep
                && tuned == Some(self.core.reach.places[member.radio as usize].channel)
            {
                member.sleep = Sleep::Awake;
            }
        }
    }

    /// Makes the stations on the card's channel tell their access points that they are back.
    pub(in crate::medium) fn return_from_doze(&mut self, card: usize, outside: &mut impl Outside) {
        for place in 0..self.cards[card].members.len() {
            let member = &self.cards[card].members[place];
            let index = member.radio as usize;
            let here = self.cards[card].tuned == Some(self.core.reach.places[index].channel);
            if !here || member.sleep == Sleep::Awake {
                continue;
            }
            self.cards[card].members[place].sleep = Sleep::Awake;
            self.update_card(card);
            if self.core.radios[index].dozing.is_asleep() {
                // Its access point goes on to hold its frames, as its stack asked.
                continue;
            }
            if let Some((to, receiver)) = self.network_of(card, place) {
                let waiting = Waiting { receiver, ..Waiting::new(Kind::Wake, to, 0) };
                self.enqueue(index, 0, self.core.now, waiting, outside);
            }
        }
    }

    /// Keeps a frame for a dozing station of an Ethernet access point; returns it otherwise.
    pub(in crate::medium) fn keep_for_dozing(
        &mut self,
        index: usize,
        lane: usize,
        waiting: Waiting,
        outside: &mut impl Outside,
    ) -> Option<Waiting> {
        let Cell::AccessPoint { dozing, .. } = self.core.radios.cell(index) else { return Some(waiting) };
        let (To::Radio(station), Kind::Data) = (waiting.to, waiting.kind) else { return Some(waiting) };
        let Some(kept) = dozing.0.get_mut(&station.0) else { return Some(waiting) };
        kept.push_back((lane, waiting));
        if kept.len() > HELD {
            if let Some((_, oldest)) = kept.pop_front() {
                let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
                oldest.discard(id, self.core.now, Why::RadioQueueFull, outside);
            }
        }
        None
    }

    /// A station of an Ethernet access point dozes: its queued frames are kept.
    pub(in crate::medium) fn station_dozes(&mut self, index: usize, station: RadioId) {
        self.wake(index);
        let radio = self.core.radios.awake(index);
        let engaged = radio.engaged_lane();
        let Cell::AccessPoint { stations, dozing, .. } = &mut radio.cell else { return };
        if !stations.contains(&station.0) {
            return;
        }
        let kept = dozing.0.entry(station.0).or_default();
        for (number, lane) in radio.contention.lanes.iter_mut().enumerate() {
            let mut place = usize::from(engaged == Some(number));
            while place < lane.queue.len() {
                let waiting = &lane.queue[place];
                let its = waiting.to == To::Radio(station) && waiting.kind == Kind::Data;
                match its.then(|| lane.queue.remove(place)).flatten() {
                    Some(waiting) => {
                        radio.waiting -= 1;
                        kept.push_back((number, waiting));
                    }
                    None => place += 1,
                }
            }
        }
        radio.set_access();
        self.core.arm(index);
    }

    /// A dozing station is back, or has left the network: its frames are sent, or dropped.
    pub(in crate::medium) fn station_returns(
        &mut self,
        index: usize,
        station: RadioId,
        member: bool,
        outside: &mut impl Outside,
    ) {
        let Cell::AccessPoint { dozing, .. } = self.core.radios.cell(index) else { return };
        let Some(kept) = dozing.0.remove(&station.0) else { return };
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        for (lane, waiting) in kept {
            if member {
                self.enqueue(index, lane, self.core.now, waiting, outside);
            } else {
                waiting.discard(id, self.core.now, Why::NotAssociated, outside);
            }
        }
    }

    /// Drops all kept frames of an access point that is off.
    pub(in crate::medium) fn forget_dozing(&mut self, index: usize, outside: &mut impl Outside) {
        let Cell::AccessPoint { dozing, .. } = self.core.radios.cell(index) else { return };
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        for (_, waiting) in core::mem::take(dozing).0.into_values().flatten() {
            waiting.discard(id, self.core.now, Why::RadioOff, outside);
        }
    }
}

impl Medium {
    /// Records that a station of a stack dozes, or not.
    pub(in crate::medium) fn set_dozing(&mut self, index: usize, dozes: bool) {
        let now = self.core.now;
        self.core.radios.awake(index).dozing.set(dozes, now);
        let Some(card) = self.card_of(index) else { return };
        let members = self.cards[card].members.iter().map(|member| &self.core.radios[member.radio as usize]);
        let mut on = members.filter(|radio| radio.switched_on).peekable();
        let asleep = on.peek().is_some() && on.all(|radio| radio.dozing.is_asleep());
        self.cards[card].asleep.set(asleep, now);
    }
}
