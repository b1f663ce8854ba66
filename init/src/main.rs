//! DOC
fn main() {}
