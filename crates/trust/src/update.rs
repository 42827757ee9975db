//! Updates of a TRC, where the keys of all voters are at hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use der::asn1::{Any, GeneralizedTime};
use der::{Decode, Encode, Tag};
use hawser_address::IsdAsn;

use crate::certificate::{Certificate, CertificateKind};
use crate::cms;
use crate::error::SignError;
use crate::issue::Holder;
use crate::issuer::IssueError;
use crate::key::Key;
use crate::pem;
use crate::store::{LoadError, Store, read};
use crate::trc::{Payload, Trc, TrcId};
use crate::write::{EARLY, TRC_LIFETIME, VOTING, WriteError, file};

/// Seconds for which the previous TRC stays valid beside an update.
const GRACE: u64 = 24 * 3600;

/// Makes the ASes of `core` core ASes of the ISD `isd`, beside those that are it already: a
/// sensitive update of the ISD's newest TRC, signed by all sensitive voters. `folders` are the
/// folders of the ASes of the ISD; among them must be those of all voters. The new TRC is written
/// into the folder `certs` of each; its path is relative to these folders. `None` if all are core
/// ASes already.
///
/// # Errors
/// [`IssueError`] when the TRC or a voter's key is missing, or a file cannot be written.
pub fn add_core(
    isd: u16,
    core: &[IsdAsn],
    folders: &[PathBuf],
    now: u64,
) -> Result<Option<PathBuf>, IssueError> {
    let before = newest(isd, folders)?;
    let known = before.content().core.iter().chain(core);
    update(&before, known.copied().collect(), (folders, &[]), now)
}

/// As [`add_core`], but the ASes of `core`, at least one, are the only core ASes from then on. Those that are
/// no longer core are no longer authoritative either; they vote and issue certificates as before. If no
/// authoritative AS is left, all core ASes are authoritative. The keys of voters may also be in the folders
/// `voters`, which do not get the TRC.
///
/// # Errors
/// As [`add_core`].
pub fn set_core(
    isd: u16,
    core: &[IsdAsn],
    folders: &[PathBuf],
    voters: &[PathBuf],
    now: u64,
) -> Result<Option<PathBuf>, IssueError> {
    let before = newest(isd, folders)?;
    let core = core.iter().copied().collect();
    update(&before, core, (folders, voters), now)
}

/// Checks that the newest TRC of an ISD can be updated, with folders as of [`set_core`].
///
/// # Errors
/// As [`add_core`].
pub fn check_voters(isd: u16, folders: &[PathBuf], voters: &[PathBuf]) -> Result<(), IssueError> {
    let trc = newest(isd, folders)?;
    self::voters(&trc, folders.iter().chain(voters)).map(drop)
}

/// The newest TRC of an ISD in the folders of its ASes.
pub(crate) fn newest(isd: u16, folders: &[PathBuf]) -> Result<Trc, IssueError> {
    let mut newest: Option<Trc> = None;
    for folder in folders {
        let certs = folder.join("certs");
        if !certs.exists() {
            continue;
        }
        let found = Store::load(&certs)?.newest(isd).cloned();
        let newer = |trc: &Trc| newest.as_ref().is_none_or(|known| known.id() < trc.id());
        if let Some(trc) = found.filter(newer) {
            newest = Some(trc);
        }
    }
    newest.ok_or(IssueError::NoIsd(isd))
}

/// The update of a TRC after which the ASes of `core` are the core ASes; `None` if they are it already.
fn update(
    before: &Trc,
    core: BTreeSet<IsdAsn>,
    (folders, further): (&[PathBuf], &[PathBuf]),
    now: u64,
) -> Result<Option<PathBuf>, IssueError> {
    let there: BTreeSet<IsdAsn> = before.content().core.iter().copied().collect();
    if core == there {
        complete(before, folders)?;
        return Ok(None);
    }
    let voters = voters(before, folders.iter().chain(further))?;
    // Only core ASes are authoritative.
    let authoritative = before.content().authoritative.iter().copied();
    let mut authoritative: BTreeSet<IsdAsn> =
        authoritative.filter(|one| core.contains(one)).collect();
    if authoritative.is_empty() {
        authoritative.clone_from(&core);
    }
    let next = Next {
        core,
        authoritative,
        quorum: before.content().quorum,
        certificates: before.certificates.clone(),
        joining: Vec::new(),
    };
    next.write(before, &voters, folders, now).map(Some)
}

/// What the next TRC has.
pub(crate) struct Next<'a> {
    pub core: BTreeSet<IsdAsn>,
    pub authoritative: BTreeSet<IsdAsn>,
    pub quorum: usize,
    pub certificates: Vec<Certificate>,
    /// Voters that the TRC before does not have: they show by their signatures that they have their keys.
    pub joining: Vec<&'a Holder>,
}

impl Next<'_> {
    /// Has the voters sign the TRC that follows on `before`, and writes it into the folder `certs` of each AS.
    /// Its path is relative to these folders.
    pub fn write(
        &self,
        before: &Trc,
        voters: &[Voter],
        folders: &[PathBuf],
        now: u64,
    ) -> Result<PathBuf, IssueError> {
        let id = before.id();
        let made = self.make(before, voters, now);
        let made = made.map_err(|source| WriteError::Sign {
            what: format!("the next TRC of ISD {}", id.isd),
            source,
        })?;
        let name = file_name(TrcId {
            serial: id.serial + 1,
            ..id
        });
        for folder in folders {
            file(&folder.join(&name), &made, 0o644)?;
        }
        Ok(name.into())
    }

    fn make(&self, before: &Trc, voters: &[Voter], now: u64) -> Result<String, SignError> {
        let id = before.id();
        let text = |ases: &BTreeSet<IsdAsn>| {
            let number = |as_: &IsdAsn| as_.asn().to_string().into_bytes();
            ases.iter()
                .map(|as_| Any::new(Tag::PrintableString, number(as_)))
                .collect::<der::Result<Vec<_>>>()
        };
        let time = |at| GeneralizedTime::from_unix_duration(Duration::from_secs(at));
        // Its certificates must be valid as long as the TRC.
        let validities = || self.certificates.iter().map(Certificate::validity);
        let from = now.saturating_sub(EARLY.as_secs());
        let from = validities().map(|v| v.not_before).fold(from, u64::max);
        let until = validities().map(|v| v.not_after);
        let until = until.fold(now + TRC_LIFETIME, u64::min);
        let certificates = self.certificates.iter();
        let certificates = certificates.map(|c| Any::from_der(c.to_der()));
        let payload = Payload {
            version: 0,
            id: [id.isd.into(), id.serial + 1, id.base],
            validity: [time(from)?, time(until)?],
            grace_period: GRACE,
            no_trust_reset: false,
            votes: voters.iter().map(|(at, _)| *at).collect(),
            quorum: u8::try_from(self.quorum).unwrap_or(u8::MAX),
            core: text(&self.core)?,
            authoritative: text(&self.authoritative)?,
            description: before.content().description.clone(),
            certificates: certificates.collect::<der::Result<_>>()?,
        };
        let holders = voters.iter().map(|(_, holder)| holder);
        let holders: Vec<&Holder> = holders.chain(self.joining.iter().copied()).collect();
        let signed = cms::sign(&payload.to_der()?, holders, from)?;
        pem::encode("TRC", &signed)
    }
}

/// Gives a TRC to the folders that lack it, as after an update that was interrupted.
pub(crate) fn complete(trc: &Trc, folders: &[PathBuf]) -> Result<(), IssueError> {
    let name = file_name(trc.id());
    let lacking = folders.iter().map(|folder| folder.join(&name));
    for path in lacking.filter(|path| !path.exists()) {
        let text = pem::encode("TRC", trc.to_der());
        let text = text.map_err(|source| WriteError::Sign {
            what: format!("a copy of {}", trc.id()),
            source,
        })?;
        file(&path, &text, 0o644)?;
    }
    Ok(())
}

/// The file of a TRC in the folder of an AS.
fn file_name(TrcId { isd, base, serial }: TrcId) -> String {
    format!("certs/ISD{isd}-B{base}-S{serial}.trc")
}

/// A sensitive voter of a TRC: its place there, and its key.
pub(crate) type Voter = (u32, Holder);

/// The sensitive voters of a TRC, whose keys are in `folders`.
pub(crate) fn voters<'a>(
    trc: &Trc,
    folders: impl Iterator<Item = &'a PathBuf>,
) -> Result<Vec<Voter>, IssueError> {
    let mut voters: Vec<Voter> = Vec::new();
    for folder in folders {
        let voting = folder.join(VOTING);
        let key = voting.join("sensitive-voting.key");
        if !key.exists() {
            continue;
        }
        let ders = read(&voting, "crt", certificate)?;
        let places = trc.certificates.iter().enumerate();
        for (at, wanted) in places.filter(|(_, c)| c.kind == CertificateKind::SensitiveVoting) {
            if ders.iter().any(|der| der == wanted.to_der()) {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                // A folder may be named twice.
                if voters.iter().all(|(known, _)| *known != at) {
                    voters.push((at, holder(wanted, &key)?));
                }
            }
        }
    }
    voters.sort_by_key(|(at, _)| *at);
    match voters.len() < trc.content().quorum {
        true => Err(IssueError::TooFewVoters {
            trc: trc.id(),
            found: voters.len(),
            needed: trc.content().quorum,
        }),
        false => Ok(voters),
    }
}

pub(crate) fn certificate(text: &[u8]) -> Result<Vec<u8>, String> {
    match pem::blocks(text).map_err(|e| e.to_string())?.as_slice() {
        [(label, der)] if label == "CERTIFICATE" => Ok(der.clone()),
        _ => Err("it does not have one PEM block labelled CERTIFICATE".to_owned()),
    }
}

pub(crate) fn holder(certificate: &Certificate, key: &Path) -> Result<Holder, LoadError> {
    let invalid = |reason: String| LoadError::File {
        path: key.to_owned(),
        reason,
    };
    let text = fs::read_to_string(key).map_err(|source| LoadError::Io {
        path: key.to_owned(),
        source,
    })?;
    Ok(Holder {
        certificate: x509_cert::Certificate::from_der(certificate.to_der())
            .map_err(|e| invalid(e.to_string()))?,
        key: Key::from_pem(text.as_bytes()).map_err(|e| invalid(e.to_string()))?,
        pem: text,
    })
}
