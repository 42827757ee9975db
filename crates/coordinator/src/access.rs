//! Who may do what. Pure: nothing else decides it.

use thiserror::Error;

use crate::user::{Role, User, UserId};

/// Who wants to do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The user; `None` for the program itself.
    pub user: Option<UserId>,
    /// The name that changes are recorded under.
    pub name: String,
    /// What the actor may do.
    pub role: Role,
}

impl Actor {
    /// The name of the program as one who makes changes; no user has it.
    pub const PROGRAM: &'static str = "hawser";

    /// The program itself: may do everything.
    #[must_use]
    pub fn program() -> Self {
        Self {
            user: None,
            name: Self::PROGRAM.to_owned(),
            role: Role::Admin,
        }
    }

    /// A user.
    #[must_use]
    pub fn of(user: &User) -> Self {
        Self {
            user: Some(user.id),
            name: user.name.clone(),
            role: user.role,
        }
    }
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// To read ASes, links, limits, use and the changes of these.
    Read,
    /// To read who the users are, and the changes of these.
    ReadUsers,
    /// To set a limit of a link to an AS of `owner`, in [0, maximum].
    SetLimit {
        /// Whose the AS is.
        owner: Option<UserId>,
    },
    /// To fetch the configuration, with its keys, of an AS of `owner`.
    FetchArchive {
        /// Whose the AS is.
        owner: Option<UserId>,
    },
    /// To replace the token of a user.
    ReplaceToken {
        /// The user.
        of: UserId,
    },
    /// To set maxima; to add, change and remove links, ASes and users.
    Administer,
}

/// Why somebody may not do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Denied {
    /// The role only reads.
    #[error("a reader changes nothing: ask an administrator for the role `user`")]
    OnlyReads,
    /// The link is another's.
    #[error(
        "this link belongs to another user's AS: only that user and administrators set its limit"
    )]
    NotYourLink,
    /// The AS is another's.
    #[error("this AS is another user's: only that user and administrators get its keys")]
    NotYourAs,
    /// It is an administrator's business.
    #[error("only administrators do this")]
    NotAdmin,
    /// The user does not exist any more.
    #[error("this user was removed")]
    Removed,
}

/// Whether `actor` may do `action`.
///
/// # Errors
/// [`Denied`] with the reason if not.
pub fn allows(actor: &Actor, action: Action) -> Result<(), Denied> {
    let is_own = |owner: Option<UserId>| owner.is_some() && owner == actor.user;
    match (actor.role, action) {
        (Role::Admin, _) | (_, Action::Read) => Ok(()),
        (Role::User, Action::SetLimit { owner }) if is_own(owner) => Ok(()),
        (Role::User, Action::FetchArchive { owner }) if is_own(owner) => Ok(()),
        // Who has a token may have it replaced, as when somebody else may have seen it.
        (_, Action::ReplaceToken { of }) if is_own(Some(of)) => Ok(()),
        (Role::User, Action::SetLimit { .. }) => Err(Denied::NotYourLink),
        (Role::User, Action::FetchArchive { .. }) => Err(Denied::NotYourAs),
        (Role::Reader, Action::SetLimit { .. } | Action::FetchArchive { .. }) => {
            Err(Denied::OnlyReads)
        }
        (_, Action::ReadUsers | Action::ReplaceToken { .. } | Action::Administer) => {
            Err(Denied::NotAdmin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: UserId = UserId(1);
    const OTHER: UserId = UserId(2);

    #[test]
    fn each_role_may_do_what_is_its_own() {
        const YES: Option<Denied> = None;
        let no = Some;
        let own = Some(ME);
        let foreign = Some(OTHER);
        // Admin, user, reader.
        let matrix = [
            (Action::Read, [YES, YES, YES]),
            (
                Action::ReadUsers,
                [YES, no(Denied::NotAdmin), no(Denied::NotAdmin)],
            ),
            (
                Action::SetLimit { owner: own },
                [YES, YES, no(Denied::OnlyReads)],
            ),
            (
                Action::SetLimit { owner: foreign },
                [YES, no(Denied::NotYourLink), no(Denied::OnlyReads)],
            ),
            (
                Action::SetLimit { owner: None },
                [YES, no(Denied::NotYourLink), no(Denied::OnlyReads)],
            ),
            (
                Action::FetchArchive { owner: own },
                [YES, YES, no(Denied::OnlyReads)],
            ),
            (
                Action::FetchArchive { owner: foreign },
                [YES, no(Denied::NotYourAs), no(Denied::OnlyReads)],
            ),
            (
                Action::FetchArchive { owner: None },
                [YES, no(Denied::NotYourAs), no(Denied::OnlyReads)],
            ),
            (Action::ReplaceToken { of: ME }, [YES, YES, YES]),
            (
                Action::ReplaceToken { of: OTHER },
                [YES, no(Denied::NotAdmin), no(Denied::NotAdmin)],
            ),
            (
                Action::Administer,
                [YES, no(Denied::NotAdmin), no(Denied::NotAdmin)],
            ),
        ];
        for (action, expected) in matrix {
            for (role, expected) in [Role::Admin, Role::User, Role::Reader]
                .into_iter()
                .zip(expected)
            {
                let actor = Actor {
                    user: Some(ME),
                    name: "me".into(),
                    role,
                };
                assert_eq!(
                    allows(&actor, action).err(),
                    expected,
                    "{role:?} {action:?}"
                );
            }
        }
        // An AS without an owner is not that of who is no user.
        let nobody = Actor {
            user: None,
            name: "nobody".into(),
            role: Role::User,
        };
        let action = Action::SetLimit { owner: None };
        assert_eq!(allows(&nobody, action), Err(Denied::NotYourLink));
    }
}
