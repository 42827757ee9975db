//! Other roles for the ASes of an ISD, where the keys of all its ASes are at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use der::Encode;
use hawser_address::IsdAsn;

use crate::certificate::{Certificate, CertificateKind};
use crate::chain::Chain;
use crate::error::SignError;
use crate::issue::Holder;
use crate::issuer::{IssueError, Issuer};
use crate::key::Key;
use crate::store::{LoadError, read};
use crate::trc::Trc;
use crate::update::{Next, Voter, certificate, complete, holder, newest, voters};
use crate::write::{self, AsRole, DAY, EARLY, Isd, TRC_LIFETIME, WriteError, file, isd};

/// Least remaining lifetime of certificates of an authority that are kept.
const MIN_LIFETIME: u64 = 30 * DAY;

/// The folders in which [`set_roles`] finds keys, and to which it writes.
#[derive(Debug, Clone, Copy)]
pub struct RoleFolders<'a> {
    /// Those of all ASes that get the TRC, also of other ISDs.
    pub all: &'a [PathBuf],
    /// Further ones with keys of voters.
    pub voters: &'a [PathBuf],
}

/// A key and its certificate.
struct Held {
    holder: Holder,
    certificate: Certificate,
}

/// The authority of an AS: its root, and the certificate that it issues others with.
struct Authority {
    root: Held,
    ca: Held,
}

/// Gives the ASes of `roles`, which are all ASes of one ISD, these roles and no others: a sensitive update of
/// the ISD's newest TRC, signed by its sensitive voters and by those that it gains. `folder` is the folder of
/// an AS. An AS that comes to vote or to issue gets keys for that, and one that has a role no longer loses
/// them. ASes whose certificates are by an authority that the TRC does not name any more, or that are to
/// have another issuer, get new certificates. What is there and still needed is kept. As in [`write`](crate::write()),
/// all core ASes have a role that no AS has.
///
/// Returns the path of the TRC, relative to the folders; `None` if the newest one has these roles already. A
/// call that failed half-way may be repeated.
///
/// # Errors
/// [`IssueError`] when the ISD has no TRC or no core AS, a voter's key is missing, an AS names an issuer that
/// issues none, or a file cannot be used. If voters or issuers are missing nothing has changed.
pub fn set_roles(
    roles: &[AsRole],
    folder: impl Fn(IsdAsn) -> PathBuf,
    folders: RoleFolders<'_>,
    now: u64,
) -> Result<Option<PathBuf>, IssueError> {
    let Some((isd, before, votes)) = prepare(roles, folders)? else {
        return Ok(None);
    };
    let keys = Keys {
        folder: &folder,
        before: &before,
        now,
    };
    let (mut voting, mut authorities) = (Vec::new(), BTreeMap::new());
    for role in &isd.all {
        if role.voting {
            for kind in [
                CertificateKind::RegularVoting,
                CertificateKind::SensitiveVoting,
            ] {
                voting.push(keys.voter(role.isd_as, kind)?);
            }
        }
        if role.issuing {
            authorities.insert(role.isd_as, keys.authority(role.isd_as)?);
        }
    }
    let roots = authorities.values().map(|authority| &authority.root);
    let with = |has: fn(&AsRole) -> bool| {
        let ases = isd.all.iter().filter(|role| has(role));
        ases.map(|role| role.isd_as).collect::<BTreeSet<_>>()
    };
    let is_new = |held: &&Held| !before.certificates.contains(&held.certificate);
    let next = Next {
        core: with(|role| role.core),
        authoritative: with(|role| role.authoritative),
        // More than half of the voters; each has two certificates.
        quorum: voting.len() / 4 + 1,
        certificates: (voting.iter().chain(roots))
            .map(|held| held.certificate.clone())
            .collect(),
        joining: (voting.iter().filter(is_new))
            .map(|held| &held.holder)
            .collect(),
    };
    let path = if next.is_as_in(&before) {
        complete(&before, folders.all)?;
        None
    } else {
        Some(next.write(&before, &votes, folders.all, now)?)
    };
    for role in &isd.all {
        let of_as = folder(role.isd_as);
        let chain = Chain::load(&of_as)?;
        let by = chain.as_ref().and_then(|chain| chain.ca().isd_as());
        let issuer = isd.issuer_of(role, by.filter(|by| authorities.contains_key(by)));
        // It is there: issuers were checked.
        let Some(authority) = authorities.get(&issuer) else {
            continue;
        };
        if chain.is_none_or(|chain| *chain.ca() != authority.ca.certificate) {
            Issuer::load(&folder(issuer))?.enroll(role.isd_as, &of_as, now)?;
        }
    }
    for role in &isd.all {
        let crypto = folder(role.isd_as).join("crypto");
        if !role.voting {
            forget(&crypto.join("voting"))?;
        }
        if !role.issuing {
            forget(&crypto.join("ca"))?;
        }
    }
    Ok(path)
}

/// Checks that [`set_roles`] finds the voters and issuers that it needs, before anything is changed.
///
/// # Errors
/// As [`set_roles`] for these.
pub fn check_roles(roles: &[AsRole], folders: RoleFolders<'_>) -> Result<(), IssueError> {
    prepare(roles, folders).map(drop)
}

/// The ISD with its roles filled in, its newest TRC, and the voters of that whose keys are there. `None` for an
/// ISD without ASes.
fn prepare(
    roles: &[AsRole],
    folders: RoleFolders<'_>,
) -> Result<Option<(Isd, Trc, Vec<Voter>)>, IssueError> {
    let Some(first) = roles.first() else {
        return Ok(None);
    };
    let number = isd(first.isd_as);
    let isd = Isd::new(number, roles)?;
    isd.check_issuers()?;
    let before = newest(number, folders.all)?;
    let votes = voters(&before, folders.all.iter().chain(folders.voters))?;
    Ok(Some((isd, before, votes)))
}

impl Next<'_> {
    /// Whether a TRC has the same.
    fn is_as_in(&self, trc: &Trc) -> bool {
        let set = |ases: &[IsdAsn]| ases.iter().copied().collect::<BTreeSet<_>>();
        let content = trc.content();
        let has_same_certificates = self.certificates.len() == trc.certificates.len()
            && (self.certificates.iter()).all(|one| trc.certificates.contains(one));
        has_same_certificates
            && self.quorum == content.quorum
            && self.core == set(&content.core)
            && self.authoritative == set(&content.authoritative)
    }
}

/// Where keys of ASes are found and made.
struct Keys<'a, F> {
    folder: F,
    before: &'a Trc,
    now: u64,
}

impl<F: Fn(IsdAsn) -> PathBuf> Keys<'_, F> {
    /// What an AS votes with, made if it has nothing.
    fn voter(&self, isd_as: IsdAsn, kind: CertificateKind) -> Result<Held, IssueError> {
        let found = self.find(isd_as, kind)?;
        let found = found.filter(|held| self.is_kept(&held.certificate, TRC_LIFETIME));
        found.map_or_else(|| self.make(isd_as, kind, None), Ok)
    }

    /// The authority of an AS, made if it has none.
    fn authority(&self, isd_as: IsdAsn) -> Result<Authority, IssueError> {
        let root = self.find(isd_as, CertificateKind::Root)?;
        let ca = self.find(isd_as, CertificateKind::Ca)?;
        if let Some((root, ca)) = root.zip(ca)
            && self.is_kept(&root.certificate, TRC_LIFETIME)
            && ca.certificate.is_issued_by(&root.certificate)
            && self.lasts(&ca.certificate, MIN_LIFETIME)
        {
            return Ok(Authority { root, ca });
        }
        let root = self.make(isd_as, CertificateKind::Root, None)?;
        let ca = self.make(isd_as, CertificateKind::Ca, Some(&root.holder))?;
        Ok(Authority { root, ca })
    }

    /// Whether a certificate may stand in the next TRC, which is valid as long as all of its certificates
    /// are.
    fn is_kept(&self, certificate: &Certificate, lifetime: u64) -> bool {
        self.before.certificates.contains(certificate) || self.lasts(certificate, lifetime)
    }

    fn lasts(&self, certificate: &Certificate, lifetime: u64) -> bool {
        let validity = certificate.validity();
        validity.contains(self.now) && validity.contains(self.now + lifetime)
    }

    /// The key of a kind in the folder of an AS, with its certificate.
    fn find(&self, isd_as: IsdAsn, kind: CertificateKind) -> Result<Option<Held>, IssueError> {
        let (part, _, key) = write::place(kind);
        let part = (self.folder)(isd_as).join("crypto").join(part);
        let key = part.join(key);
        let text = match fs::read(&key) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| WriteError::Io {
                path: key.clone(),
                source,
            })?,
        };
        let parsed = Key::from_pem(&text).map_err(|error| LoadError::File {
            path: key.clone(),
            reason: error.to_string(),
        })?;
        for der in read(&part, "crt", certificate)? {
            let Ok(certificate) = Certificate::from_der(&der) else {
                continue;
            };
            if certificate.kind == kind && certificate.key.point == parsed.public() {
                let holder = holder(&certificate, &key)?;
                return Ok(Some(Held {
                    holder,
                    certificate,
                }));
            }
        }
        Ok(None)
    }

    fn make(
        &self,
        isd_as: IsdAsn,
        kind: CertificateKind,
        issuer: Option<&Holder>,
    ) -> Result<Held, IssueError> {
        let from = self.now.saturating_sub(EARLY.as_secs());
        let mut put = |isd_as: IsdAsn, name: &str, text: &str, mode| {
            file(&(self.folder)(isd_as).join(name), text, mode)
        };
        let holder = write::make(isd_as, kind, from, issuer, &mut put)?;
        let failed = |source| WriteError::Sign {
            what: format!("a certificate of {isd_as}"),
            source,
        };
        let der = holder.certificate.to_der();
        let der = der.map_err(|error| failed(SignError::from(error)))?;
        let certificate = Certificate::from_der(&der)
            .map_err(|error| failed(SignError::Encode(error.to_string())))?;
        Ok(Held {
            holder,
            certificate,
        })
    }
}

impl Isd {
    /// Checks that all named issuers issue certificates.
    fn check_issuers(&self) -> Result<(), WriteError> {
        for role in &self.all {
            let issuer = self.issuer_of(role, None);
            if !self.all.iter().any(|r| r.isd_as == issuer && r.issuing) {
                let isd_as = role.isd_as;
                return Err(WriteError::Issuer { isd_as, issuer });
            }
        }
        Ok(())
    }
}

/// Removes a folder, if it is there.
fn forget(folder: &Path) -> Result<(), WriteError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(WriteError::Io {
            path: folder.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
