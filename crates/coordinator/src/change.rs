//! The record of changes.

use hawser_limit::Direction;
use hawser_topology::IsdAsn;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::describe::IsdAs;
use crate::link::LinkId;
use crate::user::Role;

/// A change of the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Its number, from 1, without gaps.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The name of the user who made it, or of the program's part that did.
    pub who: String,
    /// What changed.
    #[serde(flatten)]
    pub kind: ChangeKind,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The limit of a link, in bit/s; none for as much as the maximum allows.
    Limit {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// The limit before.
        #[schema(required)]
        from: Option<u64>,
        /// The limit now.
        #[schema(required)]
        to: Option<u64>,
    },
    /// The maximum of a link, in bit/s; none for no maximum.
    Maximum {
        /// The link.
        link: LinkId,
        /// The direction.
        direction: Direction,
        /// The maximum before.
        #[schema(required)]
        from: Option<u64>,
        /// The maximum now.
        #[schema(required)]
        to: Option<u64>,
    },
    /// The longest wait of a packet in the queue of each limit of a link, in microseconds; none for the
    /// usual one.
    Queue {
        /// The link.
        link: LinkId,
        /// The wait before.
        #[schema(required)]
        from: Option<u64>,
        /// The wait now.
        #[schema(required)]
        to: Option<u64>,
    },
    /// The delay of a link, in microseconds.
    Delay {
        /// The link.
        link: LinkId,
        /// The delay before.
        from: u64,
        /// The delay now.
        to: u64,
    },
    /// The jitter of a link, in microseconds.
    Jitter {
        /// The link.
        link: LinkId,
        /// The jitter before.
        from: u64,
        /// The jitter now.
        to: u64,
    },
    /// The loss of a link, as a fraction.
    Loss {
        /// The link.
        link: LinkId,
        /// The loss before.
        from: f64,
        /// The loss now.
        to: f64,
    },
    /// A link was added.
    LinkAdded {
        /// The link.
        link: LinkId,
        /// The AS at one end, the attachment point's if only one is.
        #[schema(value_type = IsdAs)]
        from: IsdAsn,
        /// The AS at the other end.
        #[schema(value_type = IsdAs)]
        to: IsdAsn,
    },
    /// A link was removed.
    LinkRemoved {
        /// The link.
        link: LinkId,
        /// The AS at one end, the attachment point's if only one is.
        #[schema(value_type = IsdAs)]
        from: IsdAsn,
        /// The AS at the other end.
        #[schema(value_type = IsdAs)]
        to: IsdAsn,
    },
    /// An attachment point was added.
    AttachmentPointAdded {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// An attachment point was changed.
    AttachmentPointChanged {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// An attachment point was removed.
    AttachmentPointRemoved {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// A user AS was added.
    UserAsAdded {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// A user AS was changed.
    UserAsChanged {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// A user AS was removed.
    UserAsRemoved {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// The secret of an AS's machine was made or replaced.
    SecretReplaced {
        /// The AS.
        #[schema(value_type = IsdAs)]
        isd_as: IsdAsn,
    },
    /// A user was added.
    UserAdded {
        /// The user's name.
        user: String,
        /// The user's role.
        role: Role,
    },
    /// A user got another role.
    RoleChanged {
        /// The user's name.
        user: String,
        /// The role before.
        from: Role,
        /// The role now.
        to: Role,
    },
    /// A user was removed.
    UserRemoved {
        /// The user's name.
        user: String,
    },
    /// A user got another token.
    TokenReplaced {
        /// The user's name.
        user: String,
    },
    /// A user's token counts no more.
    TokenRevoked {
        /// The user's name.
        user: String,
    },
}

impl ChangeKind {
    /// The link that it is about.
    #[must_use]
    pub const fn link(&self) -> Option<LinkId> {
        match self {
            Self::Limit { link, .. }
            | Self::Maximum { link, .. }
            | Self::Queue { link, .. }
            | Self::Delay { link, .. }
            | Self::Jitter { link, .. }
            | Self::Loss { link, .. }
            | Self::LinkAdded { link, .. }
            | Self::LinkRemoved { link, .. } => Some(*link),
            _ => None,
        }
    }

    /// Whether it is about users and secrets, which are an administrator's business.
    #[must_use]
    pub const fn is_about_users(&self) -> bool {
        matches!(
            self,
            Self::UserAdded { .. }
                | Self::RoleChanged { .. }
                | Self::UserRemoved { .. }
                | Self::TokenReplaced { .. }
                | Self::TokenRevoked { .. }
                | Self::SecretReplaced { .. }
        )
    }
}

/// Some changes, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ChangePage {
    /// The changes.
    pub changes: Vec<Change>,
    /// What to give as `before` for those that come next; none if there are no more.
    #[schema(required)]
    pub next: Option<u64>,
}
