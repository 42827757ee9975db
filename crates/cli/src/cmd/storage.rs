//! How files of torrents are put on disk.

use clap::ValueEnum;
use hawser_torrent::{Allocation, FileOptions};

use super::headings;

#[derive(clap::Args)]
pub struct StorageArgs {
    /// Put .part at the end of the names of files until they are complete
    #[arg(long, help_heading = headings::FILES, hide_short_help = true)]
    pub part_suffix: bool,
    /// When files get their space: auto, when they are created if the disk has as much; full, when they are
    /// created or not at all; sparse, as they are written
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = headings::FILES, hide_short_help = true)]
    pub allocate: AllocateArg,
}

/// When files get their space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AllocateArg {
    #[value(help = "When they are created, if the disk has as much")]
    Auto,
    #[value(help = "When they are created; refused if the disk has less")]
    Full,
    #[value(help = "As they are written")]
    Sparse,
}

impl StorageArgs {
    /// The same for the engine; files of others are refused.
    pub fn options(&self) -> FileOptions {
        FileOptions {
            overwrite: false,
            part_suffix: self.part_suffix,
            allocation: match self.allocate {
                AllocateArg::Auto => Allocation::Auto,
                AllocateArg::Full => Allocation::Full,
                AllocateArg::Sparse => Allocation::Sparse,
            },
        }
    }
}
