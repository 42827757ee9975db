//! Which paths may be used.

use clap::Args;
use hawser_path::{AclEntry, Sequence};

/// Which paths may be used, as seen from this host.
#[derive(Args)]
pub struct PolicyArgs {
    /// Use only paths that a policy keeps: a YAML or JSON file, and the name of one of several in
    /// it
    #[arg(long, value_name = "FILE[:NAME]")]
    pub policy: Option<String>,
    /// Use only paths that these allow, in order, for example '- 2-ff00:0:210' and then '+'
    #[arg(
        long,
        value_name = "ENTRY",
        allow_hyphen_values = true,
        conflicts_with = "policy"
    )]
    pub acl: Vec<AclEntry>,
    /// Use only paths of this sequence of hops, for example '0* 1-ff00:0:110#2 0*', in addition to
    /// --policy or --acl
    #[arg(long, value_name = "SEQUENCE")]
    pub sequence: Option<Sequence>,
}
