//! Checks settings without an engine, for `airloom check`, against the engine's own ranges.
//!
//! Each function raises `EngineError` with the invalid setting, and returns None otherwise.

use airloom_engine::medium::{MediumSettings, MobilitySettings, RadioSettings};
use airloom_engine::settings::{LinkSettings, SwitchSettings};
use pyo3::prelude::*;

use crate::convert::read_settings;
use crate::errors::Fault;

/// Checks the settings of one direction of a link.
#[pyfunction]
pub fn check_link(name: &str, settings: &Bound<'_, PyAny>) -> PyResult<()> {
    let settings: LinkSettings = read_settings(settings, &format!("link {name}"))?;
    Ok(settings.check().map_err(Fault::from)?)
}

/// Checks the settings of a switch or hub.
#[pyfunction]
pub fn check_switch(name: &str, settings: &Bound<'_, PyAny>) -> PyResult<()> {
    let settings: SwitchSettings = read_settings(settings, &format!("switch {name}"))?;
    Ok(settings.check().map_err(Fault::from)?)
}

/// Checks the settings of a medium.
#[pyfunction]
pub fn check_medium(name: &str, settings: &Bound<'_, PyAny>) -> PyResult<()> {
    let settings: MediumSettings = read_settings(settings, &format!("medium {name}"))?;
    settings.build(0, name).map_err(Fault::from)?;
    Ok(())
}

/// Checks the settings of a radio.
#[pyfunction]
pub fn check_radio(name: &str, settings: &Bound<'_, PyAny>) -> PyResult<()> {
    let settings: RadioSettings = read_settings(settings, &format!("radio {name}"))?;
    settings.validate(name).map_err(Fault::from)?;
    Ok(())
}

/// Checks the settings of a motion.
#[pyfunction]
pub fn check_motion(name: &str, settings: &Bound<'_, PyAny>) -> PyResult<()> {
    let settings: MobilitySettings = read_settings(settings, &format!("motion of {name}"))?;
    settings.build(0, name).map_err(Fault::from)?;
    Ok(())
}
