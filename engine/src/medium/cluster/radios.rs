//! The radios of a medium, and the one way to change them.
//!
//! The state of a radio that sleeps is that of the moment at which it fell asleep: its cluster has the
//! rest. So whoever changes a radio has to wake it before ([`Medium::wake`](crate::medium::Medium)). This
//! type holds everybody to it. What no cluster represents can be changed, and everything can be read,
//! at any time; settings, membership, queues and counters of the radio's own frames are valid then.

use core::ops::Index;

use crate::medium::bss::cell::Cell;
use crate::medium::radio::Radio;
use crate::medium::slices::policer::Policer;

/// All radios of a medium, by number.
#[derive(Default)]
pub(in crate::medium) struct Radios(Vec<Radio>);

impl Radios {
    /// Adds a radio, which is awake.
    pub(in crate::medium) fn push(&mut self, radio: Radio) {
        self.0.push(radio);
    }

    /// The number of radios.
    pub(in crate::medium) fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    pub(in crate::medium) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All radios, to be read.
    pub(in crate::medium) fn iter(&self) -> impl Iterator<Item = &Radio> {
        self.0.iter()
    }

    /// A radio that is awake, to be changed.
    ///
    /// # Panics
    /// If the radio sleeps: a change of its old state would be lost.
    pub(in crate::medium) fn awake(&mut self, index: usize) -> &mut Radio {
        let radio = &mut self.0[index];
        assert!(!radio.asleep, "{} has to be woken first", radio.name);
        radio
    }

    /// A radio, awake or not: for its cluster.
    pub(super) fn represented(&mut self, index: usize) -> &mut Radio {
        &mut self.0[index]
    }

    /// The membership of a radio, awake or not.
    pub(in crate::medium) fn cell(&mut self, index: usize) -> &mut Cell {
        &mut self.0[index].cell
    }

    /// The state of the police at all radios that belong to slices, awake or not.
    pub(in crate::medium) fn policers(&mut self) -> impl Iterator<Item = &mut Policer> {
        self.0.iter_mut().filter_map(|radio| radio.hold.policer.as_deref_mut())
    }
}

impl Index<usize> for Radios {
    type Output = Radio;

    fn index(&self, index: usize) -> &Radio {
        &self.0[index]
    }
}
