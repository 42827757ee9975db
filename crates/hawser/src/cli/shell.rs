//! The arguments of `hawser completions` and `hawser man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

#[derive(Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

#[derive(Args)]
pub struct ManArgs {
    /// Write hawser.1, hawser-get.1 and so on into this folder, which is made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Overwrite existing pages
    #[arg(long, requires = "output")]
    pub force: bool,
}
