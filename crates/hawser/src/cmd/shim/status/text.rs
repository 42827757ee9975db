//! The status for people.

use serde_json::Value;

use crate::out::outln;

/// Prints the status.
pub fn print(status: &Value) {
    outln!(
        "{}",
        serde_json::to_string_pretty(status).unwrap_or_default()
    );
}
