//! Settings in plain numbers, their ranges and errors.

pub(super) mod error;
pub(super) mod medium;
pub(super) mod mobility;
pub(super) mod radio;
pub(super) mod range;
