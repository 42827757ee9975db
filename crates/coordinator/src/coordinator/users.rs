//! Users and their tokens.

use hawser_http::{Token, TokenHash};

use super::Coordinator;
use super::names::{check_name, look_alike};
use crate::access::{Action, Actor, allows};
use crate::change::ChangeKind;
use crate::error::ChangeError;
use crate::state::State;
use crate::user::{Role, User, UserId};

fn random() -> Result<Token, ChangeError> {
    Token::random().map_err(|reason| ChangeError::Store(reason.to_owned()))
}

fn user(state: &mut State, id: UserId) -> Result<&mut User, ChangeError> {
    let user = state.users.get_mut(&id);
    user.ok_or_else(|| ChangeError::Unknown(format!("user {id}")))
}

/// Refuses to leave nobody who may do everything.
fn check_admins(state: &State) -> Result<(), ChangeError> {
    let mut users = state.users.values();
    match users.any(|user| user.role == Role::Admin && user.token.is_some()) {
        true => Ok(()),
        false => Err(ChangeError::Conflict(
            "this is the last administrator with a token: add another one first".to_owned(),
        )),
    }
}

impl Coordinator {
    /// The user whose token this is. The time that it takes says nothing about tokens.
    #[must_use]
    pub fn user_of(&self, token: &str) -> Option<User> {
        let hash = TokenHash::of(token);
        let state = self.state();
        let mut found = None;
        for user in state.users.values() {
            found = if user.token == Some(hash) {
                Some(user)
            } else {
                found
            };
        }
        found.cloned()
    }

    /// Adds a user. The token is not readable again.
    ///
    /// # Errors
    /// [`ChangeError`] when the name cannot be used or is taken, or the actor may not.
    pub fn add_user(
        &self,
        actor: &Actor,
        name: &str,
        role: Role,
    ) -> Result<(User, Token), ChangeError> {
        let token = random()?;
        let user = self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            check_name("the name of a user", name)?;
            if name == Actor::PROGRAM || state.user(name).is_some() {
                return Err(ChangeError::Conflict(format!(
                    "the name {name:?} is taken: choose another one"
                )));
            }
            let mut names = state.users.values().map(|user| user.name.as_str());
            if let Some(other) = names.find(|other| look_alike(other, name)) {
                return Err(ChangeError::Conflict(format!(
                    "the name {name:?} looks like that of the user {other:?}: choose another one"
                )));
            }
            if look_alike(Actor::PROGRAM, name) {
                let program = Actor::PROGRAM;
                return Err(ChangeError::Conflict(format!(
                    "the name {name:?} looks like {program:?}, which stands for the program: choose another one"
                )));
            }
            let user = User {
                id: UserId(state.next.user),
                name: name.to_owned(),
                role,
                token: Some(token.hash()),
            };
            state.next.user += 1;
            state.users.insert(user.id, user.clone());
            changes.push(ChangeKind::UserAdded {
                user: name.to_owned(),
                role,
            });
            Ok(user)
        })?;
        Ok((user, token))
    }

    /// Gives a user another role.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such user, it is the last administrator, or the actor may
    /// not.
    pub fn set_role(&self, actor: &Actor, id: UserId, role: Role) -> Result<User, ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let user = user(state, id)?;
            let from = std::mem::replace(&mut user.role, role);
            let user = user.clone();
            check_admins(state)?;
            if from != role {
                changes.push(ChangeKind::RoleChanged {
                    user: user.name.clone(),
                    from,
                    to: role,
                });
            }
            Ok(user)
        })
    }

    /// Replaces the token of a user; the one before counts no more.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such user, or the actor may not.
    pub fn replace_token(&self, actor: &Actor, id: UserId) -> Result<Token, ChangeError> {
        let token = random()?;
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::ReplaceToken { of: id })?;
            let user = user(state, id)?;
            user.token = Some(token.hash());
            changes.push(ChangeKind::TokenReplaced {
                user: user.name.clone(),
            });
            Ok(())
        })?;
        Ok(token)
    }

    /// Revokes the token of a user, who gets in no more until it is replaced.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such user, it is the last administrator, or the actor may
    /// not.
    pub fn revoke_token(&self, actor: &Actor, id: UserId) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let user = user(state, id)?;
            let name = user.name.clone();
            if user.token.take().is_some() {
                changes.push(ChangeKind::TokenRevoked { user: name });
            }
            check_admins(state)
        })
    }

    /// Removes a user. The user's ASes are then the administrators', with other secrets and keys.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such user, it is the last administrator, or the actor may
    /// not.
    pub fn remove_user(&self, actor: &Actor, id: UserId) -> Result<(), ChangeError> {
        self.change(actor, |actor, state, changes| {
            allows(actor, Action::Administer)?;
            let name = user(state, id)?.name.clone();
            state.users.remove(&id);
            check_admins(state)?;
            let number = state.next.change;
            for one in state.user_ases.values_mut() {
                if one.owner == Some(id) {
                    one.owner = None;
                    one.host.end_trust(number);
                    changes.push(ChangeKind::UserAsChanged { isd_as: one.isd_as });
                }
            }
            changes.push(ChangeKind::UserRemoved { user: name });
            Ok(())
        })
    }
}
