//! How the devices of a machine treat their guest, as its user chooses.

use super::coalescing::Coalescing;
use super::translation::Translation;

/// How the devices of a machine treat their guest.
#[derive(Clone, Debug, Default)]
pub struct Handling {
    /// When it is notified of the buffers that are returned to it.
    pub coalescing: Coalescing,
    /// How the addresses of its buffers are translated.
    pub translation: Translation,
    /// Whether notifications are messages, each with an answer, so that their order is that of the
    /// guest's and the device's actions: for virtual time.
    pub in_band: bool,
}
