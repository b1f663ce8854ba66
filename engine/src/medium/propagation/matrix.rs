//! Path loss for every pair of radios, measured or chosen.

use super::{PathLoss, Site};

/// Meaning of the numbers of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MatrixKind {
    /// Path loss in dB.
    Loss,
    /// Ratio of signal to noise in dB for a sender of this power and a receiver of this noise
    /// floor, both in dBm.
    Ratio {
        /// Power of the sender.
        power_dbm: f64,
        /// Noise floor of the receiver.
        noise_dbm: f64,
    },
}

/// One number for each ordered pair of radios; the loss is asymmetric if the matrix is.
///
/// Row = sender, column = receiver, numbered as in the list of names. Pairs that are missing from
/// the matrix (or have `inf`) do not reach each other. Source: the measurement that it contains.
/// Range: radios that don't move; positions still determine the propagation delay.
#[derive(Clone, Debug)]
pub struct Matrix {
    size: usize,
    loss_db: Vec<f64>,
}

/// Reason why a text is not a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// The first line must name radios.
    #[error("line 1: the names of the radios, separated by commas, must stand here")]
    NoNames,
    /// A name that is not the name of a radio.
    #[error("line {line}: no radio is called \"{name}\"; name only radios of this medium")]
    Unknown {
        /// Line of the file.
        line: usize,
        /// The name.
        name: String,
    },
    /// A row of the wrong length.
    #[error("line {line}: {found} values where the {expected} names of line 1 ask for as many")]
    Width {
        /// Line of the file.
        line: usize,
        /// Values in the row.
        found: usize,
        /// Names in the head.
        expected: usize,
    },
    /// The wrong number of rows.
    #[error("{found} rows for {expected} radios; the matrix needs one row for each name of line 1")]
    Height {
        /// Rows found.
        found: usize,
        /// Names in the head.
        expected: usize,
    },
    /// A value that is not a number.
    #[error("line {line}: \"{value}\" is not a number of dB (write inf or - for a pair that hears nothing)")]
    Value {
        /// Line of the file.
        line: usize,
        /// The text.
        value: String,
    },
    /// A name given twice.
    #[error("line {line}: \"{name}\" is named twice")]
    Twice {
        /// Line of the file.
        line: usize,
        /// The name.
        name: String,
    },
}

impl Matrix {
    /// A matrix for radios 0 to `size - 1`, in which no radio reaches another.
    #[must_use]
    pub fn silent(size: usize) -> Self {
        Self { size, loss_db: vec![f64::INFINITY; size * size] }
    }

    /// Sets the loss from one radio to another, one way.
    ///
    /// # Panics
    /// If the number of a radio is not below the size.
    pub fn set(&mut self, from: usize, to: usize, loss_db: f64) {
        assert!(from < self.size && to < self.size, "radio outside the matrix");
        self.loss_db[from * self.size + to] = loss_db;
    }

    /// Parses comma-separated values: the first line contains the names of radios, then one row for
    /// each name in the same order, row = sender. Empty lines and lines that start with `#` are
    /// skipped.
    ///
    /// `number` returns a radio's number by name.
    ///
    /// # Errors
    /// Describes the first error, with its line.
    pub fn parse(
        text: &str,
        kind: MatrixKind,
        number: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, MatrixError> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (line, head) = lines.next().ok_or(MatrixError::NoNames)?;
        let mut radios: Vec<usize> = Vec::new();
        for name in head.split(',').map(str::trim) {
            let unknown = || MatrixError::Unknown { line, name: name.to_owned() };
            let radio = number(name).ok_or_else(unknown)? as usize;
            if radios.contains(&radio) {
                return Err(MatrixError::Twice { line, name: name.to_owned() });
            }
            radios.push(radio);
        }
        let mut matrix = Self::silent(radios.iter().max().map_or(0, |&last| last + 1));
        let mut rows = 0;
        for (line, row) in lines {
            let found = row.split(',').count();
            if found != radios.len() {
                return Err(MatrixError::Width { line, found, expected: radios.len() });
            }
            rows += 1;
            let Some(&from) = radios.get(rows - 1) else { continue };
            for (value, &to) in row.split(',').map(str::trim).zip(&radios) {
                let number = if value == "-" { Ok(f64::INFINITY) } else { value.parse::<f64>() };
                let good = number.ok().filter(|db| !db.is_nan());
                let db = good.ok_or_else(|| MatrixError::Value { line, value: value.to_owned() })?;
                let loss = match kind {
                    MatrixKind::Loss => db,
                    // An infinite ratio also means a pair without a path.
                    MatrixKind::Ratio { .. } if db.is_infinite() => f64::INFINITY,
                    MatrixKind::Ratio { power_dbm, noise_dbm } => power_dbm - noise_dbm - db,
                };
                if loss == f64::NEG_INFINITY {
                    return Err(MatrixError::Value { line, value: value.to_owned() });
                }
                if from != to {
                    matrix.set(from, to, loss);
                }
            }
        }
        if rows == radios.len() {
            Ok(matrix)
        } else {
            Err(MatrixError::Height { found: rows, expected: radios.len() })
        }
    }
}

impl PathLoss for Matrix {
    fn loss_db(&self, from: Site, to: Site, _hertz: f64) -> f64 {
        let (from, to) = (from.radio as usize, to.radio as usize);
        if from < self.size && to < self.size { self.loss_db[from * self.size + to] } else { f64::INFINITY }
    }

    fn reach_m(&self, _budget_db: f64, _hertz: f64) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::mobility::Position;
    use super::*;

    fn parse(text: &str) -> Result<Matrix, MatrixError> {
        Matrix::parse(text, MatrixKind::Loss, |name| {
            ["a", "b", "c"].iter().position(|n| *n == name).and_then(|n| u32::try_from(n).ok())
        })
    }

    #[test]
    fn rows_send_and_columns_receive() {
        let matrix = parse("# measured\nb, a\n0, 70\n80.5, -\n").expect("a matrix");
        let site = |radio| Site { radio, position: Position::default() };
        assert!((matrix.loss_db(site(1), site(0), 0.0) - 70.0).abs() < 1e-12);
        assert!((matrix.loss_db(site(0), site(1), 0.0) - 80.5).abs() < 1e-12);
        assert!(matrix.loss_db(site(0), site(2), 0.0).is_infinite());
    }

    #[test]
    fn ratios_become_losses() {
        let kind = MatrixKind::Ratio { power_dbm: 16.0, noise_dbm: -94.0 };
        let matrix =
            Matrix::parse("a,b\n0,30\ninf,0\n", kind, |n| Some(u32::from(n == "b"))).expect("a matrix");
        let site = |radio| Site { radio, position: Position::default() };
        assert!((matrix.loss_db(site(0), site(1), 0.0) - 80.0).abs() < 1e-12);
        assert!(matrix.loss_db(site(1), site(0), 0.0).is_infinite());
    }

    #[test]
    fn no_text_brings_the_reader_down() {
        let pieces = ["a", "b", "c", ",", ",", "\n", "\n", "1e999", "-", "inf", "NaN", "#", " ", "7.5", "é"];
        let mut random = crate::random::Stream::named(1, "texts");
        for _ in 0..20_000 {
            let text: String = (0..random.below(16))
                .map(|_| pieces[usize::try_from(random.below(pieces.len() as u64)).expect("small")])
                .collect();
            let _ = parse(&text);
        }
    }

    #[test]
    fn each_fault_is_named_with_its_line() {
        let fault = |text| parse(text).expect_err("a fault");
        assert_eq!(fault(""), MatrixError::NoNames);
        assert_eq!(fault("a,x\n"), MatrixError::Unknown { line: 1, name: "x".into() });
        assert_eq!(fault("a,a\n"), MatrixError::Twice { line: 1, name: "a".into() });
        assert_eq!(fault("a,b\n0,1\n1\n"), MatrixError::Width { line: 3, found: 1, expected: 2 });
        assert_eq!(fault("a,b\n0,1\n"), MatrixError::Height { found: 1, expected: 2 });
        assert_eq!(fault("a,b\n0,1\n1,0\n2,2\n"), MatrixError::Height { found: 3, expected: 2 });
        assert_eq!(fault("a,b\n0,x\n1,0\n"), MatrixError::Value { line: 2, value: "x".into() });
        assert_eq!(fault("a,b\n0,NaN\n1,0\n"), MatrixError::Value { line: 2, value: "NaN".into() });
        assert_eq!(fault("a,b\n0,-inf\n1,0\n"), MatrixError::Value { line: 2, value: "-inf".into() });
    }
}
