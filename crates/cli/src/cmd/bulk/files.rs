//! Which files are transferred, and what happens to those that fail or exist.

use hawser_bulk::content::{Pattern, ScanOptions};
use hawser_bulk::protocol::{Choices, Wants};
use hawser_bulk::{FailedFile, Summary};

use super::metadata::MetadataArgs;
use crate::cmd::headings;
use crate::failure::Failure;
use crate::out::{errln, plain};

/// Most files that failed that are listed for people.
const MAX_LISTED_FILES: usize = 100;

/// Which files are transferred, and what happens to those that fail or exist.
#[derive(clap::Args)]
pub struct FileArgs {
    /// Leave out names like this, as rsync does: *.o, cache/, /data/tmp; may be given several times
    #[arg(long, value_name = "PATTERN", help_heading = headings::FILES, hide_short_help = true)]
    pub exclude: Vec<Pattern>,
    /// Leave files as they are that exist at the destination
    #[arg(long, help_heading = headings::FILES, hide_short_help = true)]
    pub no_overwrite: bool,
    /// Leave files as they are that are newer at the destination
    #[arg(long, conflicts_with = "no_overwrite", help_heading = headings::FILES, hide_short_help = true)]
    pub update: bool,
    #[command(flatten)]
    pub metadata: MetadataArgs,
    /// Carry hard links: files with several names among what is transferred stay one file
    #[arg(long, short = 'H', help_heading = headings::FILES, hide_short_help = true)]
    pub hard_links: bool,
    /// End at the first file that cannot be read or written
    #[arg(long, help_heading = headings::FILES, hide_short_help = true)]
    pub strict: bool,
}

impl FileArgs {
    /// How files are listed.
    pub fn scan_options(&self) -> ScanOptions {
        ScanOptions {
            strict: self.strict,
            exclude: self.exclude.clone(),
            carry: self.choices(),
        }
    }

    fn choices(&self) -> Choices {
        self.metadata
            .choices()
            .with(Choices::STRICT, self.strict)
            .with(Choices::NO_OVERWRITE, self.no_overwrite)
            .with(Choices::UPDATE, self.update)
            .with(Choices::HARD_LINKS, self.hard_links)
    }

    /// What the other side is asked for.
    pub fn wants(&self) -> Result<Wants, Failure> {
        let exclude = self.exclude.iter().map(|one| one.text().to_owned());
        let wants = Wants {
            choices: self.choices(),
            exclude: exclude.collect(),
        };
        match wants.fits() {
            true => Ok(wants),
            false => Err(Failure::usage(
                "too many --exclude: at most 256 of 8 KiB in all are sent to a server",
            )),
        }
    }
}

/// Lists the files of a transfer that failed, with `prefix` before each.
pub fn list_failed(prefix: &str, failed: &[FailedFile]) {
    for one in failed.iter().take(MAX_LISTED_FILES) {
        let path = plain(&one.path.display().to_string());
        let side = if one.at_source {
            "source"
        } else {
            "destination"
        };
        let reason = plain(&one.reason);
        errln!("hawser: {prefix}{path} was not transferred ({side}): {reason}");
    }
    if let Some(more) = failed
        .len()
        .checked_sub(MAX_LISTED_FILES)
        .filter(|more| *more > 0)
    {
        errln!("hawser: {prefix}and {more} more; --json lists all");
    }
}

/// How a transfer ends that has not failed as a whole, but in some of its files, or in all.
pub fn outcome(summary: &Summary) -> Result<(), Failure> {
    let (failed, all) = (summary.failed.len() as u64, summary.progress.files);
    match failed {
        0 => Ok(()),
        _ if failed >= all => Err(Failure::job(NO_FILE)),
        _ => Err(Failure::partial(missing(failed))),
    }
}

/// What is said where no file was transferred.
pub const NO_FILE: &str = "no file was transferred";

/// What is said where `failed` files were not transferred, but others were.
pub fn missing(failed: u64) -> String {
    match failed {
        1 => "1 file was not transferred".to_owned(),
        _ => format!("{failed} files were not transferred"),
    }
}
