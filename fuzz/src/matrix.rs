//! Path loss matrices: any text, for radios a to h.
//!
//! Input: one octet for the meaning of the numbers, the rest is the text.

use airloom_engine::medium::mobility::Position;
use airloom_engine::medium::propagation::{Matrix, MatrixKind, PathLoss, Site};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else { return };
    let kind = match kind % 2 {
        0 => MatrixKind::Loss,
        _ => MatrixKind::Ratio { power_dbm: 16.0, noise_dbm: -94.0 },
    };
    let number =
        |name: &str| ["a", "b", "c", "d", "e", "f", "g", "h"].iter().position(|known| *known == name);
    let read = Matrix::parse(&String::from_utf8_lossy(text), kind, |name| u32::try_from(number(name)?).ok());
    let Ok(matrix) = read else { return };
    let site = |radio| Site { radio, position: Position::default() };
    for (from, to) in (0..9).flat_map(|from| (0..9).map(move |to| (from, to))) {
        let loss = matrix.loss_db(site(from), site(to), 5e9);
        assert!(!loss.is_nan() && loss > f64::NEG_INFINITY);
        assert!(from != to || loss.is_infinite(), "nobody hears himself");
    }
}
