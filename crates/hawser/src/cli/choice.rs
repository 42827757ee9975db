//! Which of the paths to a host a command takes.

use clap::Args;
use hawser_path::Sequence;

use crate::failure::Failure;

/// Which of the paths to a host is taken.
#[derive(Args)]
pub struct ChoiceArgs {
    /// Use a path of this sequence of hops, for example '0* 1-ff00:0:110#2 0*'
    #[arg(long, value_name = "SEQUENCE")]
    pub sequence: Option<Sequence>,
    /// Use the path whose fingerprint begins like this
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint_prefix)]
    pub path: Option<String>,
    /// Ask which path to use
    #[arg(long, short)]
    pub interactive: bool,
    /// Look paths up anew
    #[arg(long)]
    pub refresh: bool,
    #[command(flatten)]
    pub epic: EpicArg,
}

/// The flag for EPIC paths, which `scion`'s commands have.
#[derive(Args)]
pub struct EpicArg {
    /// EPIC is not supported
    #[arg(long, hide = true)]
    epic: bool,
}

impl EpicArg {
    /// Refuses the flag.
    ///
    /// # Errors
    /// Wrong use, if it was given.
    pub fn refuse(&self) -> Result<(), Failure> {
        match self.epic {
            true => Err(Failure::usage(
                "--epic: EPIC paths are not supported: leave it out",
            )),
            false => Ok(()),
        }
    }
}

fn fingerprint_prefix(text: &str) -> Result<String, String> {
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    if !digits || text.is_empty() || text.len() > 64 {
        return Err("a fingerprint is up to 64 hex digits: see `hawser paths`".to_owned());
    }
    Ok(text.to_owned())
}
