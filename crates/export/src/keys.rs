//! The keys, certificates and TRCs of all ASes of an export, in the folder `pki` that stays on the machine
//! which exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_topology::{As, IsdAsn, Network, as_folder};
use hawser_trust::{AsRole, IssueError, Issuer, RoleFolders, WriteError, master_key};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::ExportError;
use crate::tree;

/// The folder with the folders of all ASes.
pub(crate) const PKI: &str = "pki";
/// Time after which keys are made anew: 35 days before the certificates of ASes expire.
const RENEW: u64 = 330 * 24 * 3600;

/// The files of each AS by name, as in the folder of an AS.
pub(crate) struct Keys(BTreeMap<IsdAsn, BTreeMap<String, Vec<u8>>>);

/// The role of an AS in the PKI of its ISD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Role {
    core: bool,
    voting: bool,
    authoritative: bool,
    issuing: bool,
    cert_issuer: Option<IsdAsn>,
}

impl Role {
    fn of(as_: &As) -> Self {
        Self {
            core: as_.core,
            voting: as_.voting,
            authoritative: as_.authoritative,
            issuing: as_.issuing,
            cert_issuer: as_.cert_issuer,
        }
    }

    /// Whether the AS was given a role but being core, or the issuer of its certificate.
    fn is_named(&self) -> bool {
        self.voting || self.authoritative || self.issuing || self.cert_issuer.is_some()
    }

    /// The role as a TRC of other core ASes leaves it.
    fn apart_from_core(&self) -> Self {
        Self {
            core: false,
            ..self.clone()
        }
    }
}

/// The roles of the ASes that keys were made for.
pub(crate) type Roles = BTreeMap<IsdAsn, Role>;

/// The roles of the ASes of a network.
pub(crate) fn roles(network: &Network) -> Roles {
    let ases = network.ases.iter();
    ases.map(|as_| (as_.isd_as, Role::of(as_))).collect()
}

/// Which keys are to be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Those of some ASes, and TRCs with other core ASes.
    Some(Change),
    /// All.
    All,
}

/// What is to be changed of the keys that are there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// ASes that get keys, with certificates of the authorities that are there.
    pub new: Vec<IsdAsn>,
    /// ISDs that get another TRC, each with its core ASes.
    pub core: BTreeMap<u16, Vec<IsdAsn>>,
    /// ISDs that get another TRC with all roles of the network: not only core ASes are others.
    pub roles: BTreeSet<u16>,
}

/// Which keys a network needs beside those that were made for `before`. ASes come and go and get other roles,
/// unless their ISD comes or goes with them: then all keys are made anew.
pub(crate) fn need(before: &Roles, network: &Network) -> Need {
    let now = roles(network);
    let (named_before, named) = (named(before), named(&now));
    let (core_before, core) = (core(before), core(&now));
    let has_same_isds = core_before.keys().eq(core.keys());
    // That an ISD has no core AS is said when all keys are made.
    let has_core = core.values().all(|ases| !ases.is_empty());
    if !(has_same_isds && has_core) {
        return Need::All;
    }
    let new = now.into_keys().filter(|one| !before.contains_key(one));
    let isds = core.keys().copied();
    let roles: BTreeSet<u16> = isds
        .filter(|isd| named_before.get(isd) != named.get(isd))
        .collect();
    let differs = |(isd, ases): &(u16, Vec<IsdAsn>)| {
        core_before.get(isd) != Some(ases) && !roles.contains(isd)
    };
    Need::Some(Change {
        new: new.collect(),
        core: core.into_iter().filter(differs).collect(),
        roles,
    })
}

/// The ASes of each ISD that were given roles but being core.
fn named(roles: &Roles) -> BTreeMap<u16, Roles> {
    let mut named: BTreeMap<u16, Roles> = BTreeMap::new();
    for (isd_as, role) in roles.iter().filter(|(_, role)| role.is_named()) {
        let of_isd = named.entry(isd_as.isd().to_u16()).or_default();
        of_isd.insert(*isd_as, role.apart_from_core());
    }
    named
}

/// The core ASes of each ISD.
fn core(roles: &Roles) -> BTreeMap<u16, Vec<IsdAsn>> {
    let mut core: BTreeMap<u16, Vec<IsdAsn>> = BTreeMap::new();
    for (isd_as, role) in roles {
        let of_isd = core.entry(isd_as.isd().to_u16()).or_default();
        of_isd.extend(role.core.then_some(*isd_as));
    }
    core
}

/// Whether keys that were made at `made` are to be made anew at `now`, both in Unix seconds.
pub(crate) fn are_due(made: u64, now: u64) -> bool {
    now < made || now >= made + RENEW
}

impl Keys {
    /// Makes the keys of an AS, with a certificate of the authority in `folder` that issues it, at `now` (Unix
    /// seconds). What is there of the AS is replaced, but for keys of a voter or an authority.
    pub fn enroll(
        folder: &Path,
        network: &Network,
        isd_as: IsdAsn,
        now: u64,
    ) -> Result<(), ExportError> {
        let of_as = folder.join(as_folder(isd_as));
        for part in PARTS {
            forget(&of_as.join(part))?;
        }
        let isd = isd_as.isd().to_u16();
        let named = network.find(isd_as).and_then(|as_| as_.cert_issuer);
        let named = named.map(|issuer| folder.join(as_folder(issuer)));
        let of_isd = folders(folder, &format!("{isd}-"))?;
        let mut candidates = named.into_iter().chain(of_isd);
        let issuer = candidates.find(|one| one.join(AUTHORITY).exists());
        let issuer = issuer.ok_or(ExportError::Issue(IssueError::NoIsd(isd)))?;
        let issuer = Issuer::load(&issuer).map_err(IssueError::from)?;
        tree::create(&of_as)?;
        issuer.enroll(isd_as, &of_as, now)?;
        for name in MASTER_KEYS {
            write(&of_as.join(name), new_master_key(isd_as)?.as_bytes())?;
        }
        Ok(())
    }

    /// Makes these ASes the core ASes of an ISD: all ASes get its next TRC, which the voters of before have
    /// signed, also those that are no longer in the network.
    pub fn set_core(folder: &Path, isd: u16, core: &[IsdAsn], now: u64) -> Result<(), ExportError> {
        hawser_trust::set_core(isd, core, &folders(folder, "")?, &[], now)?;
        Ok(())
    }

    /// Checks that [`Self::set_roles`] finds the voters and issuers that it needs.
    pub fn check_roles(folder: &Path, network: &Network, isd: u16) -> Result<(), ExportError> {
        let all = folders(folder, "")?;
        let folders = RoleFolders {
            all: &all,
            voters: &[],
        };
        Ok(hawser_trust::check_roles(&roles_of(network, isd), folders)?)
    }

    /// Gives the ASes of an ISD the roles that they have in the network, with keys and certificates for these. All
    /// ASes get the ISD's next TRC.
    pub fn set_roles(
        folder: &Path,
        network: &Network,
        isd: u16,
        now: u64,
    ) -> Result<(), ExportError> {
        let all = folders(folder, "")?;
        let folders = RoleFolders {
            all: &all,
            voters: &[],
        };
        let of = |isd_as| folder.join(as_folder(isd_as));
        hawser_trust::set_roles(&roles_of(network, isd), of, folders, now)?;
        Ok(())
    }

    /// The key of the certificate that each AS of the network has.
    pub fn certified(folder: &Path, network: &Network) -> Vec<Option<Vec<u8>>> {
        let key = |as_: &As| folder.join(as_folder(as_.isd_as)).join(CERTIFIED_KEY);
        let ases = network.ases.iter();
        ases.map(|as_| fs::read(key(as_)).ok()).collect()
    }

    /// Removes the keys of an AS that is no longer in the network, unless it votes or issues certificates: its
    /// ISD needs these for the next TRC. It does not if that `has_roles` of the network.
    pub fn retire(folder: &Path, isd_as: IsdAsn, has_roles: bool) -> Result<(), ExportError> {
        let of_as = folder.join(as_folder(isd_as));
        if has_roles {
            return forget(&of_as);
        }
        let has_role = of_as.join(AUTHORITY).exists() || of_as.join(VOTER).exists();
        if has_role { Ok(()) } else { forget(&of_as) }
    }

    /// Reads what [`Self::make`] wrote; `None` if an AS lacks a file that it needs.
    pub fn read(folder: &Path, network: &Network) -> Result<Option<Self>, ExportError> {
        let mut all = BTreeMap::new();
        for as_ in &network.ases {
            let of_as = folder.join(as_folder(as_.isd_as));
            let mut files = BTreeMap::new();
            for part in PARTS {
                let path = of_as.join(part);
                if !path.is_dir() {
                    return Ok(None);
                }
                for entry in fs::read_dir(&path).map_err(ExportError::at(&path))? {
                    let path = entry.map_err(ExportError::at(&path))?.path();
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let bytes = fs::read(&path).map_err(ExportError::at(&path))?;
                    files.insert(format!("{part}/{name}"), bytes);
                }
            }
            all.insert(as_.isd_as, files);
        }
        let keys = Self(all);
        Ok(keys.is_whole().then_some(keys))
    }

    /// Makes the keys of all ASes, and writes them to `folder` in place of what is there. They are on
    /// disk when this returns.
    pub fn make(folder: &Path, network: &Network) -> Result<Self, ExportError> {
        forget(folder)?;
        tree::create(folder)?;
        let mut all: BTreeMap<IsdAsn, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
        let roles: Vec<AsRole> = network.ases.iter().map(role).collect();
        hawser_trust::write_with(&roles, |isd_as, name, text, _| {
            write(&folder.join(as_folder(isd_as)).join(name), text.as_bytes())?;
            let part = name.rsplit_once('/').map(|(part, _)| part);
            if part.is_some_and(|part| PARTS.contains(&part)) {
                let files = all.entry(isd_as).or_default();
                files.insert(name.to_owned(), text.as_bytes().to_vec());
            }
            Ok(())
        })?;
        for as_ in &network.ases {
            let isd_as = as_.isd_as;
            for name in MASTER_KEYS {
                let text = new_master_key(isd_as)?;
                write(&folder.join(as_folder(isd_as)).join(name), text.as_bytes())?;
                let files = all.entry(isd_as).or_default();
                files.insert(name.to_owned(), text.into_bytes());
            }
        }
        tree::sync(folder)?;
        Ok(Self(all))
    }

    /// Whether each AS has its master keys, a certificate with its key, and a TRC.
    fn is_whole(&self) -> bool {
        self.0.values().all(|files| {
            let has = |part: &str, end: &str| {
                let mut names = files.keys();
                names.any(|name| name.starts_with(part) && name.ends_with(end))
            };
            MASTER_KEYS.iter().all(|name| files.contains_key(*name))
                && has("crypto/as/", ".pem")
                && has("crypto/as/", ".key")
                && has("certs/", ".trc")
        })
    }

    /// The files of an AS: its own keys and certificates, and the TRCs of all ISDs. The keys of voters
    /// and of authorities are not among them.
    pub fn of(&self, isd_as: IsdAsn) -> impl Iterator<Item = (&str, &[u8])> {
        let files = self.0.get(&isd_as).into_iter().flatten();
        files.map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// SHA-256 of all of them.
    pub fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for (isd_as, files) in &self.0 {
            hash.update(isd_as.to_u64().to_be_bytes());
            for (name, bytes) in files {
                for part in [name.as_bytes(), bytes] {
                    hash.update((part.len() as u64).to_be_bytes());
                    hash.update(part);
                }
            }
        }
        hash.finalize().into()
    }
}

/// The folders of an AS whose files it gets.
const PARTS: [&str; 3] = ["keys", "certs", "crypto/as"];
/// The key of an AS's certificate.
const CERTIFIED_KEY: &str = "crypto/as/cp-as.key";
/// The keys of a certification authority, and of a voter.
const AUTHORITY: &str = "crypto/ca/cp-ca.key";
const VOTER: &str = "crypto/voting/sensitive-voting.key";
const MASTER_KEYS: [&str; 2] = ["keys/master0.key", "keys/master1.key"];

/// A random master key, as its file has it.
fn new_master_key(isd_as: IsdAsn) -> Result<String, ExportError> {
    let key = master_key().map_err(|source| ExportError::MasterKey { isd_as, source })?;
    Ok(BASE64_STANDARD.encode(key))
}

/// The folders of ASes whose names begin so, in the order of their names.
fn folders(pki: &Path, begin: &str) -> Result<Vec<PathBuf>, ExportError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(pki).map_err(ExportError::at(pki))? {
        let path = entry.map_err(ExportError::at(pki))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(begin) && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a folder with all keys in it, if it is there.
pub(crate) fn forget(folder: &Path) -> Result<(), ExportError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ExportError::at(folder)(error)),
        _ => Ok(()),
    }
}

/// Writes a file for its owner only. [`tree::sync`] brings all to the disk.
fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let failed = |path: &Path| {
        let path: PathBuf = path.to_owned();
        move |source| WriteError::Io { path, source }
    };
    if let Some(folder) = path.parent() {
        hawser_file::create_private_folder(folder).map_err(failed(folder))?;
    }
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(hawser_file::PRIVATE);
    let written = file.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(failed(path))
}

fn roles_of(network: &Network, isd: u16) -> Vec<AsRole> {
    let ases = network.ases.iter();
    let ases = ases.filter(|as_| as_.isd_as.isd().to_u16() == isd);
    ases.map(role).collect()
}

fn role(as_: &As) -> AsRole {
    AsRole {
        isd_as: as_.isd_as,
        core: as_.core,
        voting: as_.voting,
        authoritative: as_.authoritative,
        issuing: as_.issuing,
        cert_issuer: as_.cert_issuer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back_and_missing_ones_noticed() {
        let network = Network::ready("fig4").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pki = folder.path().join(PKI);
        assert!(Keys::read(&pki, &network).unwrap().is_none());
        let made = Keys::make(&pki, &network).unwrap();
        let read = Keys::read(&pki, &network).unwrap().unwrap();
        assert_eq!((made.hash(), &made.0), (read.hash(), &read.0));
        assert_ne!(Keys::make(&pki, &network).unwrap().hash(), made.hash());
        let lost = pki.join(as_folder(network.ases[1].isd_as));
        fs::remove_file(lost.join("keys/master0.key")).unwrap();
        assert!(Keys::read(&pki, &network).unwrap().is_none());
    }

    #[test]
    fn ases_without_a_role_come_and_go() {
        let network = Network::ready("fig9").unwrap();
        let before = roles(&network);
        let need_of = |change: fn(&mut Network)| {
            let mut network = network.clone();
            change(&mut network);
            need(&before, &network)
        };
        let leaf = network.ases.iter().position(|as_| !as_.core).unwrap();
        assert_eq!(leaf, 0);
        let nothing = || Need::Some(Change::default());
        assert_eq!(need_of(|network| network.links.clear()), nothing());
        assert_eq!(need_of(|network| drop(network.ases.remove(0))), nothing());
        let new: IsdAsn = "1-ff00:0:99".parse().unwrap();
        let come = |network: &mut Network| {
            network.ases[0].isd_as = "1-ff00:0:99".parse().unwrap();
        };
        let change = Change {
            new: vec![new],
            ..Change::default()
        };
        assert_eq!(need_of(come), Need::Some(change));
        let Need::Some(Change { new, core, .. }) = need_of(|network| network.ases[0].core = true)
        else {
            panic!("all keys are made");
        };
        assert_eq!((new.len(), core.len()), (0, 1));
        assert!(core[&1].contains(&network.ases[0].isd_as));
        let with_roles = Change {
            roles: [1].into(),
            ..Change::default()
        };
        assert_eq!(
            need_of(|network| {
                network.ases[0].core = true;
                network.ases[0].voting = true;
            }),
            Need::Some(with_roles)
        );
        for change in [
            (|network| network.ases.retain(|as_| !as_.core)) as fn(&mut Network),
            |network| network.ases[0].isd_as = "2-ff00:0:99".parse().unwrap(),
        ] {
            assert_eq!(need_of(change), Need::All);
        }
        assert_eq!(need(&Roles::new(), &network), Need::All);
        assert!(are_due(100, 99) && !are_due(100, 100) && are_due(100, 100 + RENEW));
    }

    #[test]
    fn an_as_that_comes_later_has_a_certificate_of_the_authority() {
        let network = Network::ready("fig9").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let made = Keys::make(folder.path(), &network).unwrap();
        let mut larger = network.clone();
        let mut new = larger.ases[0].clone();
        new.isd_as = "1-ff00:0:99".parse().unwrap();
        larger.ases.push(new.clone());
        assert!(Keys::read(folder.path(), &larger).unwrap().is_none());
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = since.unwrap().as_secs();
        Keys::enroll(folder.path(), &larger, new.isd_as, now).unwrap();
        let read = Keys::read(folder.path(), &larger).unwrap().unwrap();
        for as_ in &network.ases {
            assert!(read.of(as_.isd_as).eq(made.of(as_.isd_as)));
        }
        let of_new = folder.path().join(as_folder(new.isd_as));
        let store = hawser_trust::Store::load(&of_new.join("certs")).unwrap();
        let signer = hawser_trust::Signer::load(&of_new, &store).unwrap();
        assert_eq!(signer.isd_as(), new.isd_as);
    }
}
