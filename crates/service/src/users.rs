//! The users: by what a request shows that it comes from one, and which files are theirs.

use std::path::{Component, Path, PathBuf};

use hawser_bulk::Limit;
use hawser_http::TokenHash;
use hawser_store::{Folder, FoundKind, StoreError};
use thiserror::Error;

use crate::config::Config;
use crate::owner::OWNER;

/// The users of a service.
#[derive(Debug, Clone, Default)]
pub struct Users {
    all: Vec<User>,
    /// The token of [`OWNER`].
    owner: Option<TokenHash>,
    /// What the transfers of all keep to together.
    limit: Option<Limit>,
    /// The user that requests without a token act for.
    anonymous: Option<String>,
}

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// The name.
    pub name: String,
    /// Whether this user sees and cancels the transfers of all.
    pub admin: bool,
    /// Whether this user commands the torrents.
    pub torrents: bool,
    token: Option<TokenHash>,
    certificate: Option<String>,
    folders: Vec<PathBuf>,
    /// The user's own rate, in bit/s; `None` for that of all.
    rate: Option<u64>,
    limit: Option<Limit>,
}

/// A file or folder in a folder that may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The folder, which nothing leaves.
    pub root: PathBuf,
    /// Where in it; empty for the folder itself.
    pub relative: PathBuf,
}

/// Why a file is not a user's.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The user may not read anything.
    #[error("this user has no folders to send from")]
    NoFolder,
    /// It is in none of the user's folders.
    #[error("{0:?} is not below a folder of this user")]
    Outside(String),
    /// There is nothing.
    #[error("{0:?} does not exist")]
    Absent(PathBuf),
    /// It is something else.
    #[error("{0:?} is neither a file nor a folder, and links are not followed")]
    Special(PathBuf),
    /// It cannot be looked at.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Users {
    /// The users of a configuration, and [`OWNER`] with this token.
    #[must_use]
    pub fn new(config: &Config, owner: TokenHash) -> Self {
        let none = Self {
            owner: Some(owner),
            ..Self::default()
        };
        none.renewed(config)
    }

    /// The users of a configuration that takes the place of the one that these are of. Limits that
    /// stay the same are shared with transfers that run.
    #[must_use]
    pub fn renewed(&self, config: &Config) -> Self {
        let rate = config.transfers.rate;
        let is_same = rate == self.limit.as_ref().map(Limit::rate);
        let limit = match is_same {
            true => self.limit.clone(),
            false => rate.map(|rate| Limit::new(rate, None)),
        };
        let own = |name: &str, rate: u64| {
            let before = self.by_name(name).filter(|_| is_same);
            let before = before.filter(|before| before.rate == Some(rate));
            let kept = before.and_then(|before| before.limit.clone());
            kept.unwrap_or_else(|| Limit::new(rate, limit.clone()))
        };
        let users = config.users.iter().map(|(name, user)| User {
            name: name.clone(),
            admin: user.admin,
            torrents: user.torrents,
            token: user.token_sha256,
            certificate: user.certificate.clone(),
            folders: user.folders.clone(),
            rate: user.rate,
            limit: match user.rate {
                Some(rate) => Some(own(name, rate)),
                None => limit.clone(),
            },
        });
        let owner = self.owner.map(|token| User::owner(token, limit.clone()));
        Self {
            all: users.chain(owner).collect(),
            owner: self.owner,
            anonymous: config.http.anonymous.clone(),
            limit: limit.clone(),
        }
    }

    /// The user that requests without a token act for; `None` to refuse them.
    #[must_use]
    pub fn anonymous(&self) -> Option<&User> {
        self.by_name(self.anonymous.as_deref()?)
    }

    /// The user of this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&User> {
        self.all.iter().find(|user| user.name == name)
    }

    /// The user whose token this is. The time that it takes says nothing about tokens.
    #[must_use]
    pub fn by_token(&self, token: &TokenHash) -> Option<&User> {
        let mut found = None;
        for user in &self.all {
            let is_it = user.token == Some(*token);
            found = if is_it { Some(user) } else { found };
        }
        found
    }

    /// The user whose certificate has this subject.
    #[must_use]
    pub fn by_certificate(&self, subject: &str) -> Option<&User> {
        let is_it = |user: &&User| user.certificate.as_deref() == Some(subject);
        self.all.iter().find(is_it)
    }
}

impl User {
    /// The user that the daemon's own token stands for. Torrents are written anywhere by that token: it sends
    /// from anywhere as well.
    fn owner(token: TokenHash, limit: Option<Limit>) -> Self {
        Self {
            name: OWNER.to_owned(),
            admin: true,
            torrents: true,
            token: Some(token),
            certificate: None,
            folders: vec![PathBuf::from("/")],
            rate: None,
            limit,
        }
    }

    /// What all of the user's transfers keep to together; `None` for no limit.
    #[must_use]
    pub const fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// The place that `text` names: absolute in one of the user's folders, or relative to the first.
    /// Nothing on disk is looked at.
    ///
    /// # Errors
    /// [`PlaceError`] when it is not in the user's folders.
    pub fn place(&self, text: &str) -> Result<Place, PlaceError> {
        let outside = || PlaceError::Outside(text.to_owned());
        let path = Path::new(text);
        let first = self.folders.first().ok_or(PlaceError::NoFolder)?;
        if text.is_empty() || text.contains('\0') {
            return Err(outside());
        }
        let (root, relative) = match path.is_absolute() {
            false => (first, path),
            true => {
                let below =
                    |root: &PathBuf| Some((root.clone(), path.strip_prefix(root).ok()?.to_owned()));
                let found = self.folders.iter().filter_map(below);
                let (root, relative) = found
                    .max_by_key(|(root, _)| root.as_os_str().len())
                    .ok_or_else(outside)?;
                return Place::new(root, &relative).ok_or_else(outside);
            }
        };
        Place::new(root.clone(), relative).ok_or_else(outside)
    }
}

impl Place {
    /// A place in `root`; `None` if `relative` might leave it.
    #[must_use]
    pub fn new(root: PathBuf, relative: &Path) -> Option<Self> {
        let mut plain = PathBuf::new();
        for component in relative.components() {
            match component {
                Component::Normal(name) => plain.push(name),
                Component::CurDir => {}
                _ => return None,
            }
        }
        Some(Self {
            root,
            relative: plain,
        })
    }

    /// The name of the file or folder.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let name = self.relative.file_name().or_else(|| self.root.file_name());
        name.and_then(|name| name.to_str())
    }

    /// Checks that there is something to send. No symbolic link is followed.
    ///
    /// # Errors
    /// [`PlaceError`] when there is nothing, or it cannot be looked at.
    pub fn check(&self) -> Result<(), PlaceError> {
        let path = || self.root.join(&self.relative);
        let root = Folder::existing(&self.root)?.without_links();
        let Some(name) = self.relative.file_name() else {
            return Ok(());
        };
        let parent = self.relative.parent().unwrap_or(Path::new(""));
        let folder = match parent.as_os_str().is_empty() {
            true => Ok(root),
            false => root.folder(parent),
        };
        let found = match folder {
            Err(error) if error.is_not_found() => None,
            folder => folder?.find(name)?,
        };
        match found.map(|found| found.kind) {
            None => Err(PlaceError::Absent(path())),
            Some(FoundKind::File | FoundKind::Folder) => Ok(()),
            Some(_) => Err(PlaceError::Special(path())),
        }
    }
}

#[cfg(test)]
mod tests;
