//! Errors of the frames of a medium: of bits, by the ratio of signal to interference and noise, and of
//! pairs of radios.

use std::collections::BTreeMap;

use crate::medium::error::{Decoder, ErrorModel, Standard};
use crate::medium::phy::{Phy, tables};

/// The error model, computed for the physical layers in use, and the errors of pairs.
pub(super) struct Errors {
    model: Box<dyn ErrorModel>,
    /// One decoder for each physical layer in use, in their order of appearance.
    decoders: Vec<Decoder>,
    decoder_names: Vec<&'static str>,
    /// Frame error rates of pairs, sender first.
    pairs: BTreeMap<(u32, u32), f64>,
}

impl Default for Errors {
    /// Those of [`Standard`], and none of pairs.
    fn default() -> Self {
        Self {
            model: Box::new(Standard),
            decoders: Vec::new(),
            decoder_names: Vec::new(),
            pairs: BTreeMap::new(),
        }
    }
}

impl Errors {
    /// Sets the error model.
    pub(super) fn set_model(&mut self, model: Box<dyn ErrorModel>) {
        self.model = model;
        self.decoders.clear();
        for name in &self.decoder_names {
            if let Some(phy) = tables::by_name(name) {
                self.decoders.push(Decoder::new(&*self.model, phy));
            }
        }
    }

    /// The error model alone.
    pub(super) fn into_model(self) -> Box<dyn ErrorModel> {
        self.model
    }

    /// Number of the decoder of a physical layer.
    pub(super) fn decoder_of(&mut self, phy: &'static Phy) -> u8 {
        let known = self.decoder_names.iter().position(|known| *known == phy.name);
        let decoder = known.unwrap_or_else(|| {
            self.decoders.push(Decoder::new(&*self.model, phy));
            self.decoder_names.push(phy.name);
            self.decoders.len() - 1
        });
        u8::try_from(decoder).unwrap_or(0)
    }

    /// The decoders, by number.
    pub(super) fn decoders(&self) -> &[Decoder] {
        &self.decoders
    }

    /// Sets the frame error rate from one radio to another.
    pub(super) fn set_pair(&mut self, from: u32, to: u32, probability: f64) {
        self.pairs.insert((from, to), probability);
    }

    /// Forgets the frame error rates from and to a radio.
    pub(super) fn forget(&mut self, radio: u32) {
        self.pairs.retain(|&(from, to), _| from != radio && to != radio);
    }

    /// The frame error rate from one radio to another, if one is set.
    pub(super) fn of_pair(&self, from: u32, to: u32) -> Option<f64> {
        self.pairs.get(&(from, to)).copied()
    }

    /// True if no pair has a frame error rate.
    pub(super) fn has_no_pairs(&self) -> bool {
        self.pairs.is_empty()
    }
}
