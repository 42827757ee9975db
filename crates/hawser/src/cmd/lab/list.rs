//! `hawser lab list`: the labs of this user.

use hawser_lab::Lab;

use super::status;
use crate::failure::{Doing, Failure};
use crate::out::outln;

/// Prints the labs, a line each, or as a JSON array.
pub fn print(json: bool) -> Result<(), Failure> {
    let labs = Lab::list().map_err(Failure::job)?;
    if json {
        outln!(
            "{}",
            serde_json::to_string_pretty(&labs).doing("writing JSON")?
        );
        return Ok(());
    }
    for lab in labs {
        let state = status::word(lab.running, &lab.name);
        outln!("{:<20} {:>3} ASes  {state}", lab.name, lab.ases);
    }
    Ok(())
}
