//! Tests that ASes of an ISD get other roles by updates of its TRC.

use std::time::{SystemTime, UNIX_EPOCH};

use proptest::prelude::*;

use super::*;
use crate::signer::Signer;
use crate::store::{ChainQuery, Store};
use crate::write::write;

const ASES: usize = 4;

fn ia(at: usize) -> IsdAsn {
    format!("1-ff00:0:{}", at + 1).parse().unwrap()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// The roles of an AS: core, voting, authoritative, issuing.
fn role(at: usize, [core, voting, authoritative, issuing]: [bool; 4]) -> AsRole {
    AsRole {
        isd_as: ia(at),
        core,
        voting,
        authoritative,
        issuing,
        cert_issuer: None,
    }
}

/// The folders of the ASes of an ISD.
struct Isd(tempfile::TempDir);

impl Isd {
    fn new(roles: &[AsRole]) -> Self {
        let isd = Self(tempfile::tempdir().unwrap());
        write(roles, |one| isd.of(one)).unwrap();
        isd
    }

    fn of(&self, isd_as: IsdAsn) -> PathBuf {
        self.0.path().join(isd_as.asn().to_u64().to_string())
    }

    fn set(&self, roles: &[AsRole]) -> Result<Option<PathBuf>, IssueError> {
        let folders: Vec<PathBuf> = (0..ASES).map(|at| self.of(ia(at))).collect();
        let folders = RoleFolders {
            all: &folders,
            voters: &[],
        };
        set_roles(roles, |one| self.of(one), folders, now())
    }

    fn store(&self, at: usize) -> Store {
        Store::load(&self.of(ia(at)).join("certs")).unwrap()
    }

    fn trc(&self) -> Trc {
        self.store(0).newest(1).unwrap().clone()
    }

    /// Checks that the newest TRC and all folders are as if they had been written for `roles`.
    fn check(&self, roles: &[AsRole]) {
        let (trc, id) = (self.trc(), self.trc().id());
        let with = |has: fn(&AsRole) -> bool| -> BTreeSet<IsdAsn> {
            let named = roles.iter().filter(|role| has(role));
            let named: BTreeSet<_> = named.map(|role| role.isd_as).collect();
            match named.is_empty() {
                true => roles.iter().filter(|r| r.core).map(|r| r.isd_as).collect(),
                false => named,
            }
        };
        let of = |ases: &[IsdAsn]| ases.iter().copied().collect::<BTreeSet<_>>();
        let named = |kind| -> BTreeSet<IsdAsn> {
            let all = trc.certificates_of(kind);
            all.map(|one| one.isd_as().unwrap()).collect()
        };
        assert_eq!(of(&trc.content().core), with(|role| role.core));
        assert_eq!(
            of(&trc.content().authoritative),
            with(|role| role.authoritative)
        );
        let voting = with(|role| role.voting);
        assert_eq!(named(CertificateKind::RegularVoting), voting);
        assert_eq!(named(CertificateKind::SensitiveVoting), voting);
        assert_eq!(trc.content().quorum, voting.len() / 2 + 1);
        let issuing = with(|role| role.issuing);
        assert_eq!(named(CertificateKind::Root), issuing);
        for at in 0..ASES {
            let (isd_as, folder, store) = (ia(at), self.of(ia(at)), self.store(at));
            assert_eq!(store.newest(1).unwrap().id(), id);
            assert_eq!(Signer::load(&folder, &store).unwrap().isd_as(), isd_as);
            let chain = Chain::load(&folder).unwrap().unwrap();
            assert!(chain.is_rooted_in(&trc));
            let key = |name: &str| folder.join("crypto").join(name).exists();
            assert_eq!(key("voting"), voting.contains(&isd_as));
            assert_eq!(key("ca"), issuing.contains(&isd_as));
        }
    }
}

fn all_roles() -> impl Strategy<Value = Vec<AsRole>> {
    let flags = prop::collection::vec(any::<[bool; 4]>(), ASES);
    flags.prop_map(|mut flags| {
        if !flags.iter().any(|[core, ..]| *core) {
            flags[0][0] = true;
        }
        let roles = flags.into_iter().enumerate();
        roles.map(|(at, flags)| role(at, flags)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Whatever roles follow on each other: each TRC is a valid update of the one before, and the network is
    /// as one that was made with them.
    #[test]
    fn any_roles_follow_on_any_others(sequence in prop::collection::vec(all_roles(), 2..6)) {
        let isd = Isd::new(&sequence[0]);
        for roles in &sequence[1..] {
            let before = isd.trc();
            let chain = Chain::load(&isd.of(ia(3))).unwrap().unwrap();
            let path = isd.set(roles).unwrap();
            let after = isd.trc();
            match &path {
                Some(path) => {
                    after.verify_update(&before).unwrap();
                    // A folder that an interrupted change did not reach gets it by the next attempt.
                    fs::remove_file(isd.of(ia(2)).join(path)).unwrap();
                }
                None => prop_assert_eq!(after.id(), before.id()),
            }
            prop_assert_eq!(isd.set(roles).unwrap(), None);
            isd.check(roles);
            // What was signed before is verified as long as the TRC of before is in its grace period.
            let mut store = isd.store(0);
            prop_assert!(store.add_chain(chain.clone()));
            let found = |at: u64| {
                let query = ChainQuery {
                    isd_as: chain.isd_as(),
                    subject_key_id: chain.r#as().subject_key_id().to_vec(),
                    since: now(),
                    until: now(),
                };
                store.active_chains(&query, at).any(|one| *one == chain)
            };
            prop_assert!(found(now()));
            let later = now() + 25 * 3600;
            prop_assert_eq!(found(later), chain.is_rooted_in(&after));
        }
    }
}

#[test]
fn what_stays_keeps_its_keys() {
    let only = |voting: &[usize]| -> Vec<AsRole> {
        let flags = |at| [at == 0, voting.contains(&at), false, at == 0];
        (0..ASES).map(|at| role(at, flags(at))).collect()
    };
    let isd = Isd::new(&only(&[0]));
    let keys = |at: usize| {
        let names = ["as/cp-as.key", "voting/sensitive-voting.key"];
        names.map(|name| fs::read(isd.of(ia(at)).join("crypto").join(name)).ok())
    };
    let before: Vec<_> = (0..ASES).map(keys).collect();
    isd.set(&only(&[0, 1, 2])).unwrap().unwrap();
    assert_eq!(keys(0), before[0]);
    for (at, before) in before.iter().enumerate().skip(1) {
        assert_eq!(keys(at)[0], before[0]);
        assert_eq!(keys(at)[1].is_some(), at < 3);
    }
    // The first hands over to the others, which need no key of it any more.
    isd.set(&only(&[1, 2])).unwrap().unwrap();
    assert_eq!(keys(0)[1], None);
    isd.set(&only(&[3])).unwrap().unwrap();
    isd.check(&only(&[3]));
}

#[test]
fn what_cannot_be_is_refused_before_anything_changes() {
    let plain = |core: usize| -> Vec<AsRole> {
        let flags = |at| [at <= core, false, false, false];
        (0..ASES).map(|at| role(at, flags(at))).collect()
    };
    let isd = Isd::new(&plain(0));
    let id = isd.trc().id();
    let files = |isd: &Isd| {
        let all = (0..ASES).flat_map(|at| {
            let crypto = isd.of(ia(at)).join("crypto");
            fs::read_dir(crypto)
                .unwrap()
                .map(|entry| entry.unwrap().path())
        });
        all.collect::<BTreeSet<_>>()
    };
    let before = files(&isd);
    let mut roles = plain(1);
    roles[1].issuing = true;
    roles[3].cert_issuer = Some(ia(2));
    let error = isd.set(&roles).unwrap_err();
    assert!(
        matches!(&error, IssueError::Write(WriteError::Issuer { issuer, .. }) if *issuer == ia(2)),
        "{error}"
    );
    let mut none = plain(0);
    none[0].core = false;
    let error = isd.set(&none).unwrap_err();
    assert!(
        matches!(error, IssueError::Write(WriteError::NoCore(1))),
        "{error}"
    );
    let folders = [isd.of(ia(0))];
    let folders = RoleFolders {
        all: &folders,
        voters: &[],
    };
    assert!(check_roles(&roles, folders).is_err() && check_roles(&none, folders).is_err());
    check_roles(&plain(1), folders).unwrap();
    fs::remove_file(isd.of(ia(0)).join("crypto/voting/sensitive-voting.key")).unwrap();
    assert!(check_roles(&plain(1), folders).is_err());
    let error = isd.set(&plain(1)).unwrap_err();
    assert!(matches!(error, IssueError::TooFewVoters { .. }), "{error}");
    assert_eq!(isd.trc().id(), id);
    assert_eq!(files(&isd), before);
    // A key that is damaged is not replaced.
    let isd = Isd::new(&plain(0));
    let key = isd.of(ia(0)).join("crypto/ca/cp-root.key");
    fs::write(&key, "x").unwrap();
    let error = isd.set(&plain(1)).unwrap_err().to_string();
    assert!(error.contains("cp-root.key cannot be used"), "{error}");
    assert_eq!(fs::read(&key).unwrap(), b"x");
}
