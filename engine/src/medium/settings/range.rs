//! Ranges of settings.

use crate::medium::settings::error::SettingsError;

/// Checks that a value is within its range.
pub(in crate::medium) fn within(
    setting: &'static str,
    value: f64,
    low: f64,
    high: f64,
) -> Result<(), SettingsError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        let value = value.to_string();
        Err(SettingsError::Law { setting, value, range: format!("{low} to {high}") })
    }
}
