//! Keys, certificates and TRCs of ASes that are added to a running lab.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_topology::{AsDir, FileError, IsdAsn, Network};
use hawser_trust::{AsRole, IssueError, Issuer, RoleFolders, SignError, VOTING, WriteError};

use crate::dir::LabDir;
use crate::up;

/// An AS cannot be given its keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Issue(#[from] IssueError),
    #[error("cannot make the master keys: {0}")]
    MasterKey(#[from] SignError),
}

/// Whether the folder of an AS has the keys of a certification authority.
pub(crate) fn has_authority(dir: &LabDir, isd_as: IsdAsn) -> bool {
    dir.as_dir(isd_as)
        .path()
        .join("crypto/ca/cp-ca.key")
        .exists()
}

/// Makes the folder of an AS of `network`, with its keys, its certificate and the TRCs of all ISDs; keys
/// that are there are kept. `known` are the other ASes of the lab that have folders: one of them issues
/// the certificate, and all of them get the TRC of an ISD that is new.
pub(crate) fn make(
    dir: &LabDir,
    known: &BTreeSet<IsdAsn>,
    network: &Network,
    isd_as: IsdAsn,
) -> Result<(), KeysError> {
    let as_dir = dir.as_dir(isd_as);
    create(as_dir.path())?;
    if !has_master_keys(&as_dir) {
        as_dir.write_master_key(&hawser_trust::master_key()?)?;
        as_dir.write_next_master_key(&hawser_trust::master_key()?)?;
    }
    if !has_certificate(as_dir.path())? {
        certify(dir, known, network, isd_as)?;
    }
    Ok(())
}

/// Removes the folder of an AS that left the lab, but for what it votes with: the next TRC of its ISD needs
/// the keys of more than half of the voters.
pub(crate) fn forget(dir: &LabDir, isd_as: IsdAsn) -> Result<(), FileError> {
    let folder = dir.as_dir(isd_as).path().to_owned();
    let voting = folder.join(VOTING);
    if !voting.exists() {
        return remove(&folder);
    }
    let crypto = folder.join("crypto");
    for (parent, kept) in [(&folder, &crypto), (&crypto, &voting)] {
        for entry in fs::read_dir(parent).map_err(FileError::at(parent))? {
            let path = entry.map_err(FileError::at(parent))?.path();
            if path != *kept {
                remove(&path)?;
            }
        }
    }
    Ok(())
}

/// Removes a file or folder, if it is there.
fn remove(path: &Path) -> Result<(), FileError> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::at(path)(error)),
        _ => Ok(()),
    }
}

/// The folders of all ASes that ever voted in the lab.
fn voters(dir: &LabDir) -> Result<Vec<PathBuf>, FileError> {
    let mut voters = Vec::new();
    for entry in fs::read_dir(dir.path()).map_err(FileError::at(dir.path()))? {
        let path = entry.map_err(FileError::at(dir.path()))?.path();
        if path.join(VOTING).is_dir() {
            voters.push(path);
        }
    }
    Ok(voters)
}

fn folders(dir: &LabDir, known: &BTreeSet<IsdAsn>) -> Vec<PathBuf> {
    let folders = known.iter().map(|one| dir.as_dir(*one).path().to_owned());
    folders.collect()
}

/// Checks that the TRC of an ISD can be updated, before anything is changed. `known` are the ASes of the lab.
/// For an ISD without a TRC there is nothing to check.
///
/// # Errors
/// When keys of voters are missing, or files cannot be read.
pub(crate) fn check_trc(dir: &LabDir, known: &BTreeSet<IsdAsn>, isd: u16) -> Result<(), KeysError> {
    match hawser_trust::check_voters(isd, &folders(dir, known), &voters(dir)?) {
        Err(IssueError::NoIsd(_)) => Ok(()),
        checked => Ok(checked?),
    }
}

/// Gives the ASes of an ISD the roles that they have in `network`. All ASes of `known`, whose folders are
/// there, get the TRC. Only with other roles than being core (`isd.1`) are keys and certificates made and
/// removed: ASes that become core, or are no longer, vote and issue certificates as before.
pub(crate) fn update_trc(
    dir: &LabDir,
    known: &BTreeSet<IsdAsn>,
    network: &Network,
    isd: (u16, bool),
) -> Result<(), KeysError> {
    let (folders, voters) = (folders(dir, known), voters(dir)?);
    let (isd, has_others) = isd;
    if has_others {
        let folders = RoleFolders {
            all: &folders,
            voters: &voters,
        };
        let folder = |isd_as| dir.as_dir(isd_as).path().to_owned();
        hawser_trust::set_roles(&of_isd(network, isd), folder, folders, now())?;
    } else {
        let core: Vec<IsdAsn> = roles_of(network, isd).core.into_iter().collect();
        hawser_trust::set_core(isd, &core, &folders, &voters, now())?;
    }
    Ok(())
}

/// The roles of the ASes of an ISD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IsdRoles {
    /// The core ASes; none if a change of them was interrupted.
    pub core: BTreeSet<IsdAsn>,
    /// The ASes that the topology says to vote, to be authoritative or to issue certificates, or whose issuer
    /// it names. `None` if a change of that was interrupted.
    named: Option<BTreeMap<IsdAsn, NamedRoles>>,
}

/// Whether an AS votes, is authoritative, issues certificates; and the AS that issues its own.
type NamedRoles = ([bool; 3], Option<IsdAsn>);

impl IsdRoles {
    /// Whether others have other roles than being core in `network`.
    pub fn has_others_in(&self, network: &Network, isd: u16) -> bool {
        self.named != roles_of(network, isd).named
    }

    /// Remembers that a change began, also of more than the core ASes if it `has_others`. Until it is complete,
    /// some ASes have files of before, and some have new ones.
    pub fn begin_change(&mut self, has_others: bool) {
        self.core.clear();
        if has_others {
            self.named = None;
        }
    }
}

/// The roles in an ISD of a network.
pub(crate) fn roles_of(network: &Network, isd: u16) -> IsdRoles {
    let roles = of_isd(network, isd);
    let core = roles.iter().filter(|role| role.core);
    let named = roles.iter().filter_map(|role| {
        let flags = [role.voting, role.authoritative, role.issuing];
        let is_named = flags != [false; 3] || role.cert_issuer.is_some();
        is_named.then_some((role.isd_as, (flags, role.cert_issuer)))
    });
    IsdRoles {
        core: core.map(|role| role.isd_as).collect(),
        named: Some(named.collect()),
    }
}

fn of_isd(network: &Network, isd: u16) -> Vec<AsRole> {
    let ases = network.ases.iter();
    let ases = ases.filter(|as_| as_.isd_as.isd().to_u16() == isd);
    ases.map(up::role).collect()
}

fn certify(
    dir: &LabDir,
    known: &BTreeSet<IsdAsn>,
    network: &Network,
    isd_as: IsdAsn,
) -> Result<(), KeysError> {
    let isd = isd_as.isd();
    let named = network.find(isd_as).and_then(|as_| as_.cert_issuer);
    let in_order = network.ases.iter().map(|as_| as_.isd_as);
    let candidates = named
        .into_iter()
        .chain(in_order)
        .chain(known.iter().copied());
    let mut candidates = candidates.filter(|one| one.isd() == isd);
    if let Some(issuer) = candidates.find(|one| has_authority(dir, *one)) {
        let issuer = Issuer::load(dir.as_dir(issuer).path()).map_err(IssueError::from)?;
        return Ok(issuer.enroll(isd_as, dir.as_dir(isd_as).path(), now())?);
    }
    if known.iter().any(|one| *one != isd_as && one.isd() == isd) {
        return Err(IssueError::NoIsd(isd.to_u16()).into());
    }
    make_isd(dir, known, network, isd_as)
}

/// Makes the keys of all ASes of an ISD that the lab does not have yet, and gives its TRC to all ASes.
fn make_isd(
    dir: &LabDir,
    known: &BTreeSet<IsdAsn>,
    network: &Network,
    isd_as: IsdAsn,
) -> Result<(), KeysError> {
    let of_isd = network.ases.iter();
    let of_isd = of_isd.filter(|as_| as_.isd_as.isd() == isd_as.isd());
    let roles: Vec<_> = of_isd.map(up::role).collect();
    for role in &roles {
        create(dir.as_dir(role.isd_as).path())?;
    }
    hawser_trust::write(&roles, |isd_as| dir.as_dir(isd_as).path().to_owned())?;
    let certs = |isd_as: IsdAsn| dir.as_dir(isd_as).path().join("certs");
    let others: Vec<IsdAsn> = (known.iter().copied())
        .filter(|one| one.isd() != isd_as.isd())
        .collect();
    for other in &others {
        forget_trcs(&certs(*other), isd_as.isd().to_u16())?;
        copy_trcs(&certs(isd_as), &certs(*other))?;
    }
    if let Some(other) = others.first() {
        for role in &roles {
            copy_trcs(&certs(*other), &certs(role.isd_as))?;
        }
    }
    Ok(())
}

/// Copies the TRCs of one folder to another.
fn copy_trcs(from: &Path, to: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(from).map_err(FileError::at(from))? {
        let path = entry.map_err(FileError::at(from))?.path();
        let is_trc = path.extension().is_some_and(|extension| extension == "trc");
        if let Some(name) = path.file_name().filter(|_| is_trc) {
            let bytes = fs::read(&path).map_err(FileError::at(&path))?;
            let copy = to.join(name);
            hawser_file::write(&copy, &bytes, 0o644).map_err(FileError::at(&copy))?;
        }
    }
    Ok(())
}

/// Removes the TRCs of an ISD that the lab had before, with other keys.
fn forget_trcs(certs: &Path, isd: u16) -> Result<(), FileError> {
    let begin = format!("ISD{isd}-");
    for entry in fs::read_dir(certs).map_err(FileError::at(certs))? {
        let path = entry.map_err(FileError::at(certs))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&begin) && name.ends_with(".trc") {
            fs::remove_file(&path).map_err(FileError::at(&path))?;
        }
    }
    Ok(())
}

/// Creates a folder for this user only, unless it exists.
fn create(path: &Path) -> Result<(), FileError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(FileError::at(path)(error))
        }
        _ => Ok(()),
    }
}

fn has_master_keys(dir: &AsDir) -> bool {
    let keys = dir.path().join("keys");
    dir.hop_key().is_ok() && keys.join("master1.key").exists()
}

/// Whether a folder has a certificate with its key, and TRCs.
fn has_certificate(folder: &Path) -> Result<bool, FileError> {
    let has = |part: &str, extension: &str| {
        let part = folder.join(part);
        let entries = match fs::read_dir(&part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries.map_err(FileError::at(&part))?,
        };
        for entry in entries {
            let path = entry.map_err(FileError::at(&part))?.path();
            if path.extension().is_some_and(|found| found == extension) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    Ok(has("crypto/as", "pem")? && has("crypto/as", "key")? && has("certs", "trc")?)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hawser_topology::As;
    use hawser_trust::{Certificate, CertificateKind, Signer, Store};

    use super::*;

    /// The folder of a lab, with the keys of its ASes.
    struct Folder {
        _folder: tempfile::TempDir,
        dir: LabDir,
        known: BTreeSet<IsdAsn>,
        network: Network,
    }

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let dir = LabDir::new(folder.path());
            let network = Network::ready("fig9").unwrap();
            let roles: Vec<_> = network.ases.iter().map(up::role).collect();
            hawser_trust::write(&roles, |one| dir.as_dir(one).path().to_owned()).unwrap();
            Self {
                _folder: folder,
                dir,
                known: network.ases.iter().map(|as_| as_.isd_as).collect(),
                network,
            }
        }

        fn add(&mut self, isd_as: &str, core: bool) -> IsdAsn {
            let new = As {
                isd_as: isd_as.parse().unwrap(),
                core,
                ..self.network.ases[0].clone()
            };
            self.network.ases.push(new.clone());
            new.isd_as
        }

        fn make(&mut self, isd_as: IsdAsn) -> Result<(), KeysError> {
            make(&self.dir, &self.known, &self.network, isd_as)?;
            self.known.insert(isd_as);
            Ok(())
        }

        /// Brings the TRC of an AS's ISD up to date.
        fn update(&self, isd_as: IsdAsn) {
            let isd = isd_as.isd().to_u16();
            update_trc(&self.dir, &self.known, &self.network, (isd, false)).unwrap();
        }

        fn store(&self, isd_as: IsdAsn) -> Store {
            Store::load(&self.dir.as_dir(isd_as).path().join("certs")).unwrap()
        }

        /// Checks that an AS can sign, and that all ASes can verify that.
        fn check(&self, isd_as: IsdAsn) {
            let dir = self.dir.as_dir(isd_as);
            dir.hop_key().unwrap();
            for one in &self.known {
                let signer = Signer::load(dir.path(), &self.store(*one)).unwrap();
                assert_eq!(signer.isd_as(), isd_as);
            }
        }

        /// The private keys and certificates of all ASes.
        fn keys(&self) -> BTreeMap<PathBuf, Vec<u8>> {
            let mut keys = BTreeMap::new();
            for one in &self.known {
                for part in ["crypto/as", "keys"] {
                    let part = self.dir.as_dir(*one).path().join(part);
                    for entry in fs::read_dir(&part).into_iter().flatten() {
                        let path = entry.unwrap().path();
                        keys.insert(path.clone(), fs::read(&path).unwrap());
                    }
                }
            }
            keys
        }
    }

    #[test]
    fn an_as_gets_keys_once_and_those_of_others_stay() {
        let mut lab = Folder::new();
        let before = lab.keys();
        let leaf = lab.add("1-ff00:0:99", false);
        lab.make(leaf).unwrap();
        lab.check(leaf);
        let after = lab.keys();
        assert!(
            before
                .iter()
                .all(|(path, key)| after.get(path) == Some(key))
        );
        // As after a change that was interrupted, or for an AS that is made anew.
        lab.make(leaf).unwrap();
        assert_eq!(lab.keys(), after);
    }

    #[test]
    fn a_core_as_is_in_the_next_trc_of_all() {
        let mut lab = Folder::new();
        let core = lab.add("1-ff00:0:98", true);
        lab.make(core).unwrap();
        lab.update(core);
        lab.check(core);
        for one in &lab.known {
            let store = lab.store(*one);
            let trc = store.newest(1).unwrap();
            assert_eq!(trc.id().serial, 2, "of {one}");
            assert!(trc.content().core.contains(&core));
        }
        // Nothing is left to do.
        lab.make(core).unwrap();
        lab.update(core);
        assert_eq!(lab.store(core).newest(1).unwrap().id().serial, 2);
    }

    #[test]
    fn the_core_ases_of_the_trc_are_those_of_the_network() {
        let mut lab = Folder::new();
        // It was added first, as by a change that was interrupted, and gets its role later.
        let new = lab.add("1-ff00:0:98", false);
        lab.make(new).unwrap();
        lab.update(new);
        assert_eq!(lab.store(new).newest(1).unwrap().id().serial, 1);
        let old = lab.network.ases.iter().position(|as_| as_.core).unwrap();
        let last = lab.network.ases.len() - 1;
        lab.network.ases[last].core = true;
        lab.network.ases[old].core = false;
        let old = lab.network.ases[old].isd_as;
        lab.update(new);
        for one in &lab.known {
            let store = lab.store(*one);
            let trc = store.newest(1).unwrap();
            let core: BTreeSet<IsdAsn> = trc.content().core.iter().copied().collect();
            assert_eq!(core, roles_of(&lab.network, 1).core, "of {one}");
            assert!(core.contains(&new) && !core.contains(&old));
        }
        lab.check(new);
    }

    #[test]
    fn ases_get_other_roles_and_keys_for_them() {
        let mut lab = Folder::new();
        let old = roles_of(&lab.network, 1);
        let new = lab.add("1-ff00:0:98", true);
        lab.make(new).unwrap();
        let last = lab.network.ases.len() - 1;
        (
            lab.network.ases[last].voting,
            lab.network.ases[last].issuing,
        ) = (true, true);
        assert!(old.has_others_in(&lab.network, 1));
        for _ in 0..2 {
            update_trc(&lab.dir, &lab.known, &lab.network, (1, true)).unwrap();
            for one in &lab.known.clone() {
                let trc = lab.store(*one).newest(1).unwrap().clone();
                assert_eq!(trc.id().serial, 2, "of {one}");
                let voters = trc.certificates_of(CertificateKind::SensitiveVoting);
                let voters: Vec<_> = voters.filter_map(Certificate::isd_as).collect();
                assert_eq!(voters, [new]);
                let signer = Signer::load(lab.dir.as_dir(*one).path(), &lab.store(*one));
                assert_eq!(signer.unwrap().isd_as(), *one);
                assert_eq!(has_authority(&lab.dir, *one), *one == new);
            }
        }
    }

    #[test]
    fn what_an_interrupted_change_left_is_not_taken_for_whole() {
        let network = Network::ready("fig9").unwrap();
        let whole = roles_of(&network, 1);
        for has_others in [false, true] {
            let mut begun = whole.clone();
            begun.begin_change(has_others);
            assert_ne!(begun, whole);
            assert_eq!(begun.has_others_in(&network, 1), has_others);
        }
    }

    #[test]
    fn voters_that_left_vote_on() {
        let mut lab = Folder::new();
        let voters: Vec<IsdAsn> = (lab.known.iter().copied())
            .filter(|one| lab.dir.as_dir(*one).path().join(VOTING).exists())
            .collect();
        let staying = lab.known.iter().copied().find(|one| !voters.contains(one));
        let staying = staying.unwrap();
        let isd = staying.isd().to_u16();
        // As after `lab apply`, which no voter is in any more.
        for one in &voters {
            lab.known.remove(one);
            forget(&lab.dir, *one).unwrap();
            let left = fs::read_dir(lab.dir.as_dir(*one).path()).unwrap();
            assert_eq!(left.count(), 1);
            // A second time, as after an interruption.
            forget(&lab.dir, *one).unwrap();
        }
        lab.network.ases.retain(|as_| !voters.contains(&as_.isd_as));
        let at = |as_: &As| as_.isd_as == staying;
        let new = lab.network.ases.iter().position(at).unwrap();
        lab.network.ases[new].core = true;
        check_trc(&lab.dir, &lab.known, isd).unwrap();
        lab.update(staying);
        let store = lab.store(staying);
        let trc = store.newest(isd).unwrap();
        assert_eq!(
            (trc.id().serial, &trc.content().core[..]),
            (2, &[staying][..])
        );
        Signer::load(lab.dir.as_dir(staying).path(), &store).unwrap();
        // Only what the user removes is missing, and it is said before anything is changed.
        for one in &voters {
            fs::remove_dir_all(lab.dir.as_dir(*one).path()).unwrap();
        }
        let error = check_trc(&lab.dir, &lab.known, isd)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("put the files of `crypto/voting` back"),
            "{error}"
        );
        check_trc(&lab.dir, &lab.known, 77).unwrap();
    }

    #[test]
    fn an_isd_gets_keys_of_its_own() {
        let mut lab = Folder::new();
        let (leaf, core) = (lab.add("2-ff00:0:2", false), lab.add("2-ff00:0:1", true));
        // The leaf first: the keys of its ISD are made with it.
        lab.make(leaf).unwrap();
        lab.make(core).unwrap();
        for new in [leaf, core] {
            lab.check(new);
            assert!(lab.store(new).newest(1).is_some());
        }
        let old = lab.network.ases[0].isd_as;
        assert!(
            lab.store(old)
                .newest(2)
                .unwrap()
                .content()
                .core
                .contains(&core)
        );
    }

    #[test]
    fn without_an_authority_there_is_no_certificate() {
        let mut lab = Folder::new();
        let all: Vec<IsdAsn> = lab.known.iter().copied().collect();
        for one in all {
            let ca = lab.dir.as_dir(one).path().join("crypto/ca");
            let _ = fs::remove_dir_all(ca);
        }
        let leaf = lab.add("1-ff00:0:99", false);
        assert!(matches!(
            lab.make(leaf),
            Err(KeysError::Issue(IssueError::NoIsd(1)))
        ));
    }
}
