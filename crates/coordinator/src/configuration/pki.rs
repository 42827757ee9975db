//! The keys, certificates and TRCs of all ASes, in one folder for each.
//!
//! The ISD of the first attachment point is made when it is first needed; its attachment points
//! vote, and issue the certificates of all other ASes. Attachment points that come later become
//! core ASes by an update of the TRC. A folder of an ISD that exists already may be put here
//! instead, with the keys of its voters and of its authority.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hawser_bundle::Bundle;
use hawser_topology::{AsDir, IsdAsn, as_folder};
use hawser_trust::{AsRole, Chain, IssueError, Issuer, Store, WriteError, add_core, master_key};

use super::{ConfigurationError, at};
use crate::state::State;

const DAY: u64 = 24 * 3600;
/// Remaining lifetime below which a certificate is renewed.
const RENEW: u64 = 90 * DAY;
/// Time between two looks at all certificates.
const LOOK: u64 = 3600;

/// The file in an AS's folder with the number of the change since which the machine that has these
/// keys is trusted.
const TRUSTED_SINCE: &str = "trusted-since";

/// The folders of the ASes.
#[derive(Debug)]
pub(super) struct Pki {
    folder: PathBuf,
    /// ASes that have all they need, with the numbers of the changes since which their machines are
    /// trusted.
    complete: BTreeMap<IsdAsn, u64>,
    /// When all certificates were last looked at.
    looked: u64,
}

impl Pki {
    /// The PKI in `folder`, which this creates if it does not exist.
    pub fn open(folder: PathBuf) -> Result<Self, ConfigurationError> {
        create(&folder)?;
        for path in entries(&folder)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".new") {
                // Left by a process that ended in the middle.
                fs::remove_dir_all(&path).map_err(at(&path))?;
            } else if name.ends_with(".made") {
                adopt(&path, &folder)?;
            }
        }
        Ok(Self {
            folder,
            complete: BTreeMap::new(),
            looked: 0,
        })
    }

    /// Whether certificates are to be looked at again at `now` (Unix seconds).
    pub fn is_due(&self, now: u64) -> bool {
        now < self.looked || now >= self.looked + LOOK
    }

    /// The folder of the folders.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn of(&self, isd_as: IsdAsn) -> PathBuf {
        self.folder.join(as_folder(isd_as))
    }

    /// Gives all ASes of the state what they lack at `now` (Unix seconds), and removes the keys of
    /// those that the state does not have any more. Returns whether anything changed.
    pub fn ensure(&mut self, state: &State, now: u64) -> Result<bool, ConfigurationError> {
        if self.is_due(now) {
            self.complete.clear();
            self.looked = now;
        }
        let core: BTreeSet<_> = state.attachment_points.keys().copied().collect();
        let points = state.attachment_points.values();
        let points = points.map(|one| (one.isd_as, one.host.trusted_since));
        let users = state.user_ases.values();
        let users = users.map(|one| (one.isd_as, one.host.trusted_since));
        let all: BTreeMap<IsdAsn, u64> = points
            .chain(users)
            .filter(|(isd_as, _)| !isd_as.is_wildcard())
            .collect();
        if all == self.complete {
            return Ok(false);
        }
        self.forget_others(&all)?;
        let mut changed = false;
        let isds: BTreeSet<u16> = all.keys().map(|ia| ia.isd().to_u16()).collect();
        for isd in isds {
            let of_isd = |ia: &&IsdAsn| ia.isd().to_u16() == isd;
            let core: Vec<_> = core.iter().filter(of_isd).copied().collect();
            changed |= self.make_isd(isd, &core)?;
            let issuer = Issuer::load(&self.authority(isd)?)?;
            for (&isd_as, &trusted_since) in all.iter().filter(|(isd_as, _)| of_isd(isd_as)) {
                changed |= self.make_as(&issuer, isd_as, trusted_since, now)?;
            }
            let folders = self.folders_of(isd)?;
            changed |= add_core(isd, &core, &folders, now)?.is_some();
        }
        if changed {
            self.share_trcs()?;
        }
        Ok(changed)
    }

    /// The folders of the ASes of an ISD.
    fn folders_of(&self, isd: u16) -> Result<Vec<PathBuf>, ConfigurationError> {
        let mut folders = entries(&self.folder)?;
        folders.retain(|path| as_of(path).is_some_and(|ia| ia.isd().to_u16() == isd));
        Ok(folders)
    }

    /// The folder of the AS that issues the certificates of an ISD.
    fn authority(&self, isd: u16) -> Result<PathBuf, ConfigurationError> {
        let mut folders = self.folders_of(isd)?.into_iter();
        let found = folders.find(|path| path.join("crypto/ca/cp-ca.key").exists());
        found.ok_or(ConfigurationError::NoAttachmentPoint(isd))
    }

    /// Makes an ISD with these core ASes if it does not exist.
    fn make_isd(&self, isd: u16, core: &[IsdAsn]) -> Result<bool, ConfigurationError> {
        if self.authority(isd).is_ok() {
            return Ok(false);
        }
        if core.is_empty() {
            return Err(ConfigurationError::NoAttachmentPoint(isd));
        }
        let new = self.folder.join(format!(".isd{isd}.new"));
        create(&new)?;
        let role = |&isd_as: &IsdAsn| AsRole {
            isd_as,
            core: true,
            voting: true,
            authoritative: true,
            issuing: true,
            cert_issuer: None,
        };
        let roles: Vec<_> = core.iter().map(role).collect();
        let folder = |isd_as| new.join(as_folder(isd_as));
        hawser_trust::write(&roles, folder).map_err(IssueError::from)?;
        for &isd_as in core {
            write_keys(&folder(isd_as))?;
        }
        // From here on the ISD exists, whenever the process ends.
        let made = self.folder.join(format!(".isd{isd}.made"));
        fs::rename(&new, &made).map_err(at(&made))?;
        adopt(&made, &self.folder)?;
        Ok(true)
    }

    /// Gives an AS keys and a certificate if it lacks them, if its certificate ends soon, or if those
    /// that it has are of a machine that is no longer trusted.
    fn make_as(
        &mut self,
        issuer: &Issuer,
        isd_as: IsdAsn,
        trusted_since: u64,
        now: u64,
    ) -> Result<bool, ConfigurationError> {
        if self.complete.contains_key(&isd_as) {
            return Ok(false);
        }
        let folder = self.of(isd_as);
        let mark = folder.join(TRUSTED_SINCE);
        let write_mark = |mark: &Path| fs::write(mark, trusted_since.to_string()).map_err(at(mark));
        let chain = Chain::load(&folder)?;
        let ends = chain.as_ref().map(|chain| chain.validity().not_after);
        let has_keys = folder.join("keys/master0.key").exists();
        // Folders that were put here, and those of a new ISD, have no mark yet.
        let marked = read_mark(&mark)?;
        let is_trusted = marked.is_none_or(|marked| marked == trusted_since);
        if is_trusted && has_keys && ends.is_some_and(|end| now + RENEW < end) {
            if marked.is_none() {
                write_mark(&mark)?;
            }
            self.complete.insert(isd_as, trusted_since);
            return Ok(false);
        }
        let new = self.folder.join(format!(".{}.new", as_folder(isd_as)));
        create(&new)?;
        issuer.enroll(isd_as, &new, now)?;
        if folder.exists() {
            let mut parts = vec!["certs", "crypto/as"];
            if !is_trusted || !has_keys {
                write_keys(&new)?;
                parts.push("keys");
            }
            // If the process ends between two files, the mark is still missing or another, or the
            // certificate there still ends soon: the next call makes all anew.
            replace(&new, &folder, &parts)?;
            write_mark(&mark)?;
            fs::remove_dir_all(&new).map_err(at(&new))?;
        } else {
            write_keys(&new)?;
            write_mark(&new.join(TRUSTED_SINCE))?;
            fs::rename(&new, &folder).map_err(at(&folder))?;
        }
        self.complete.insert(isd_as, trusted_since);
        Ok(true)
    }

    /// Removes the folders of ASes that are not in the state, except those of voters and
    /// authorities, which the ISD needs.
    fn forget_others(&mut self, all: &BTreeMap<IsdAsn, u64>) -> Result<(), ConfigurationError> {
        let complete = &mut self.complete;
        complete.retain(|isd_as, trusted_since| all.get(isd_as) == Some(&*trusted_since));
        for path in entries(&self.folder)? {
            let Some(isd_as) = as_of(&path) else {
                continue;
            };
            let needed = ["crypto/ca", hawser_trust::VOTING];
            if !all.contains_key(&isd_as) && !needed.iter().any(|name| path.join(name).exists()) {
                fs::remove_dir_all(&path).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// Copies the TRCs of all ISDs to all ASes.
    fn share_trcs(&self) -> Result<(), ConfigurationError> {
        let folders: Vec<_> = entries(&self.folder)?;
        let folders: Vec<_> = folders.into_iter().filter(|p| as_of(p).is_some()).collect();
        let mut trcs: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in &folders {
            let certs = folder.join("certs");
            // What cannot be read now could not be read by the AS.
            Store::load(&certs)?;
            for trc in entries(&certs)? {
                let name = trc.file_name().unwrap_or_default().to_string_lossy();
                if name.ends_with(".trc") {
                    trcs.entry(name.into_owned()).or_insert(trc);
                }
            }
        }
        for folder in folders {
            for (name, from) in &trcs {
                let to = folder.join("certs").join(name);
                if !to.exists() {
                    fs::copy(from, &to).map_err(at(&to))?;
                }
            }
        }
        Ok(())
    }

    /// Adds the keys of an AS, its certificate and the TRCs to its configuration.
    pub fn add_files(&self, isd_as: IsdAsn, to: &mut Bundle) -> Result<(), ConfigurationError> {
        let folder = self.of(isd_as);
        // The keys of voters and authorities stay here.
        for part in ["keys", "certs", "crypto/as"] {
            for path in entries(&folder.join(part))? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let bytes = fs::read(&path).map_err(at(&path))?;
                let named = to.insert(&format!("{part}/{name}"), bytes);
                named.map_err(std::io::Error::other).map_err(at(&path))?;
            }
        }
        Ok(())
    }
}

/// The AS of a folder.
fn as_of(folder: &Path) -> Option<IsdAsn> {
    super::Configurations::host_of(folder.file_name()?.to_str()?)
}

/// The number of the change since which the machine that has the keys of a folder is trusted; `None`
/// while the folder has no mark.
fn read_mark(path: &Path) -> Result<Option<u64>, ConfigurationError> {
    match fs::read_to_string(path) {
        // What cannot be read is of no change: the keys are made anew.
        Ok(text) => Ok(Some(text.trim().parse().unwrap_or(u64::MAX))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

fn create(folder: &Path) -> Result<(), ConfigurationError> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(at(folder))
}

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ConfigurationError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        paths.push(entry.map_err(at(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Moves the folders in `made` to `folder`, where they may be already, and removes `made`.
fn adopt(made: &Path, folder: &Path) -> Result<(), ConfigurationError> {
    for path in entries(made)? {
        let to = folder.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &to).map_err(at(&to))?;
    }
    fs::remove_dir(made).map_err(at(made))
}

/// Replaces the files in these parts of `folder` by those of `new` with the same names.
fn replace(new: &Path, folder: &Path, parts: &[&str]) -> Result<(), ConfigurationError> {
    for part in parts {
        let to = folder.join(part);
        create(&to)?;
        for path in entries(&new.join(part))? {
            let to = to.join(path.file_name().unwrap_or_default());
            fs::rename(&path, &to).map_err(at(&to))?;
        }
    }
    Ok(())
}

fn write_keys(folder: &Path) -> Result<(), ConfigurationError> {
    let dir = AsDir::new(folder);
    let random = || {
        master_key().map_err(|source| {
            let what = "a master key".to_owned();
            IssueError::from(WriteError::Sign { what, source })
        })
    };
    dir.write_master_key(&random()?)?;
    dir.write_next_master_key(&random()?)?;
    Ok(())
}
