//! Which metadata is carried beside content, times and modes.

use hawser_bulk::protocol::Choices;

use crate::cmd::headings;

/// Metadata that is carried only if both sides ask for it, as with rsync's flags of these names.
#[derive(Clone, Copy, clap::Args)]
pub struct MetadataArgs {
    /// Carry the owning users, by number, with set-uid, for a receiver that is root; with send, receive
    /// needs this flag too
    #[arg(long, help_heading = headings::FILES, hide_short_help = true)]
    pub owner: bool,
    /// Carry the owning groups, by number, with set-gid; with send, receive needs this flag too
    #[arg(long, short, help_heading = headings::FILES, hide_short_help = true)]
    pub group: bool,
    /// Carry ACLs; with send, receive needs this flag too
    #[arg(long, short = 'A', help_heading = headings::FILES, hide_short_help = true)]
    pub acls: bool,
    /// Carry extended attributes of users; with send, receive needs this flag too
    #[arg(long, short = 'X', help_heading = headings::FILES, hide_short_help = true)]
    pub xattrs: bool,
}

impl MetadataArgs {
    /// The choices of the protocol that they stand for.
    pub fn choices(&self) -> Choices {
        Choices::NONE
            .with(Choices::OWNER, self.owner)
            .with(Choices::GROUP, self.group)
            .with(Choices::ACLS, self.acls)
            .with(Choices::ATTRIBUTES, self.xattrs)
    }
}
