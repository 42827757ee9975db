//! The keys, certificates and TRCs of a whole network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use der::asn1::{Any, GeneralizedTime};
use der::{Encode, Tag};
use hawser_address::IsdAsn;

use crate::certificate::CertificateKind;
use crate::cms;
use crate::error::SignError;
use crate::issue::Holder;
use crate::pem;
use crate::trc::Payload;

/// The role of an AS in the control-plane PKI of its ISD, as in `.topo` files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsRole {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Whether it is a core AS.
    pub core: bool,
    /// Whether it votes on TRCs.
    pub voting: bool,
    /// Whether it is authoritative: other ASes request certificates of its ISD from it.
    pub authoritative: bool,
    /// Whether it issues the certificates of ASes.
    pub issuing: bool,
    /// The AS that issues its certificate. `None` means the first issuing AS of the ISD, or for an
    /// issuing AS itself.
    pub cert_issuer: Option<IsdAsn>,
}

/// An error of writing the PKI of a network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An ISD has no core AS.
    #[error("ISD {0} has no core AS: its TRC needs at least one")]
    NoCore(u16),
    /// The named issuer of an AS does not issue certificates.
    #[error(
        "{isd_as} names {issuer} as the issuer of its certificate, which issues none in its ISD: give {issuer} `issuing: true`"
    )]
    Issuer {
        /// The AS.
        isd_as: IsdAsn,
        /// Its issuer.
        issuer: IsdAsn,
    },
    /// A certificate or a TRC cannot be created.
    #[error("cannot make {what}: {source}")]
    Sign {
        /// The certificate or TRC.
        what: String,
        /// The error of signing.
        source: SignError,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// How long before the time of writing the validity of all certificates and TRCs begins. The
/// lifetime of hop fields has units of 337.5 s, so the timestamp of a segment may be earlier than
/// the start of the network; and clocks differ, for which segments are valid an hour before they are made.
pub(crate) const EARLY: Duration = Duration::from_secs(2 * 3600);

/// The folder, in that of an AS, of what it votes with: keys and certificates.
pub const VOTING: &str = "crypto/voting";

pub(crate) const DAY: u64 = 24 * 3600;
/// Lifetime of voting and root certificates.
const ROOT_LIFETIME: u64 = 730 * DAY;
/// Lifetime of CA certificates.
const CA_LIFETIME: u64 = 700 * DAY;
/// Lifetime of TRCs.
pub(crate) const TRC_LIFETIME: u64 = 450 * DAY;
/// Lifetime of AS certificates: a lab may run for months, and does not renew them.
pub(crate) const AS_LIFETIME: u64 = 365 * DAY;

/// Creates the PKI of a network and writes it into the folders of its ASes, in scionproto's layout;
/// `folder` returns the folder of an AS.
///
/// Every AS gets `certs/ISD<isd>-B1-S1.trc` of every ISD and `crypto/as/{ISD<isd>-AS<as>.pem,
/// cp-as.key}`; issuing ASes also get `crypto/ca/{*.root.crt, cp-root.key, *.ca.crt, cp-ca.key}`,
/// and voting ASes `crypto/voting/{*.sensitive.crt, sensitive-voting.key, *.regular.crt,
/// regular-voting.key}`. Existing files are overwritten.
///
/// If no AS of an ISD has a role, all its core ASes get it. Keys are on P-256. TRCs are valid for
/// 450 days, AS certificates for 365.
///
/// # Errors
/// When an ISD has no core AS, an AS names an issuer that does not issue certificates, or a file
/// cannot be written.
pub fn write(network: &[AsRole], folder: impl Fn(IsdAsn) -> PathBuf) -> Result<(), WriteError> {
    write_with(network, |isd_as, name, text, mode| {
        file(&folder(isd_as).join(name), text, mode)
    })
}

/// As [`write()`], but hands each file to `put`: its AS, its name below the AS's folder, its text,
/// and its permissions.
///
/// # Errors
/// As [`write()`], and those of `put`.
pub fn write_with(
    network: &[AsRole],
    mut put: impl FnMut(IsdAsn, &str, &str, u32) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let from = now.saturating_sub(EARLY).as_secs();
    let isds: BTreeSet<_> = network.iter().map(|role| isd(role.isd_as)).collect();
    let mut trcs = Vec::new();
    for isd in isds {
        let isd = Isd::new(isd, network)?;
        trcs.push((isd.trc_name(), isd.write(from, &mut put)?));
    }
    for role in network {
        for (name, trc) in &trcs {
            put(role.isd_as, &format!("certs/{name}"), trc, 0o644)?;
        }
    }
    Ok(())
}

/// Takes the files of ASes, see [`write_with`].
pub(crate) type Put<'a> = dyn FnMut(IsdAsn, &str, &str, u32) -> Result<(), WriteError> + 'a;

pub(crate) fn isd(isd_as: IsdAsn) -> u16 {
    isd_as.isd().to_u16()
}

/// The ASes of an ISD, with their roles filled in.
pub(crate) struct Isd {
    number: u16,
    pub all: Vec<AsRole>,
}

impl Isd {
    pub fn new(number: u16, network: &[AsRole]) -> Result<Self, WriteError> {
        let of_isd = network.iter().filter(|role| isd(role.isd_as) == number);
        let mut all: Vec<AsRole> = of_isd.cloned().collect();
        if !all.iter().any(|role| role.core) {
            return Err(WriteError::NoCore(number));
        }
        let roles: [fn(&mut AsRole) -> &mut bool; 3] = [
            |role| &mut role.voting,
            |role| &mut role.authoritative,
            |role| &mut role.issuing,
        ];
        for has in roles {
            if !all.iter_mut().any(|role| *has(role)) {
                all.iter_mut().for_each(|role| *has(role) = role.core);
            }
        }
        Ok(Self { number, all })
    }

    fn trc_name(&self) -> String {
        format!("ISD{}-B1-S1.trc", self.number)
    }

    /// Puts keys and certificates and returns the TRC, in PEM.
    fn write(&self, from: u64, put: &mut Put<'_>) -> Result<String, WriteError> {
        let mut voters = Vec::new();
        let mut roots = Vec::new();
        let mut authorities = BTreeMap::new();
        let mut make = |role: &AsRole, kind, issuer: Option<&Holder>| {
            make(role.isd_as, kind, from, issuer, put)
        };
        for role in &self.all {
            if role.voting {
                voters.push(make(role, CertificateKind::RegularVoting, None)?);
                voters.push(make(role, CertificateKind::SensitiveVoting, None)?);
            }
            if role.issuing {
                let root = make(role, CertificateKind::Root, None)?;
                authorities.insert(role.isd_as, make(role, CertificateKind::Ca, Some(&root))?);
                roots.push(root);
            }
        }
        for role in &self.all {
            make(
                role,
                CertificateKind::As,
                Some(self.issuer(role, &authorities)?),
            )?;
        }
        self.trc(from, &voters, &roots)
            .map_err(|source| WriteError::Sign {
                what: format!("the TRC of ISD {}", self.number),
                source,
            })
    }

    /// The AS that is to issue the certificate of an AS: `present`, if none is named and that is one.
    pub fn issuer_of(&self, role: &AsRole, present: Option<IsdAsn>) -> IsdAsn {
        let first = self.all.iter().find(|role| role.issuing);
        match role.cert_issuer.or(present) {
            _ if role.issuing => role.isd_as,
            Some(issuer) => issuer,
            None => first.map_or(role.isd_as, |first| first.isd_as),
        }
    }

    fn issuer<'a>(
        &self,
        role: &AsRole,
        authorities: &'a BTreeMap<IsdAsn, Holder>,
    ) -> Result<&'a Holder, WriteError> {
        let issuer = self.issuer_of(role, None);
        authorities.get(&issuer).ok_or(WriteError::Issuer {
            isd_as: role.isd_as,
            issuer,
        })
    }

    fn trc(&self, from: u64, voters: &[Holder], roots: &[Holder]) -> Result<String, SignError> {
        let with = |has: fn(&AsRole) -> bool| {
            let ases = self.all.iter().filter(|role| has(role));
            let number = |role: &AsRole| role.isd_as.asn().to_string().into_bytes();
            ases.map(|role| Any::new(Tag::PrintableString, number(role)))
                .collect::<der::Result<Vec<_>>>()
        };
        let time = |at| GeneralizedTime::from_unix_duration(Duration::from_secs(at));
        let certificates = voters.iter().chain(roots);
        let certificates = certificates.map(|holder| Any::encode_from(&holder.certificate));
        // More than half of the voters; each has two certificates.
        let quorum = voters.len() / 4 + 1;
        let payload = Payload {
            version: 0,
            id: [self.number.into(), 1, 1],
            validity: [time(from)?, time(from + TRC_LIFETIME)?],
            grace_period: 0,
            no_trust_reset: false,
            votes: Vec::new(),
            quorum: u8::try_from(quorum).unwrap_or(u8::MAX),
            core: with(|role| role.core)?,
            authoritative: with(|role| role.authoritative)?,
            description: format!("TRC of ISD {}", self.number),
            certificates: certificates.collect::<der::Result<_>>()?,
        };
        let signed = cms::sign(&payload.to_der()?, voters, from)?;
        pem::encode("TRC", &signed)
    }
}

/// Where a certificate and its key are: the folder in `crypto`, the end of the certificate's name, and the
/// file of the key.
pub(crate) fn place(kind: CertificateKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        CertificateKind::SensitiveVoting => ("voting", "sensitive.crt", "sensitive-voting.key"),
        CertificateKind::RegularVoting => ("voting", "regular.crt", "regular-voting.key"),
        CertificateKind::Root => ("ca", "root.crt", "cp-root.key"),
        CertificateKind::Ca => ("ca", "ca.crt", "cp-ca.key"),
        CertificateKind::As => ("as", "pem", "cp-as.key"),
    }
}

/// Creates a certificate and its key, and puts them into the folder `crypto` of the AS. An AS
/// certificate is written with that of its issuer after it.
pub(crate) fn make(
    isd_as: IsdAsn,
    kind: CertificateKind,
    from: u64,
    issuer: Option<&Holder>,
    put: &mut Put<'_>,
) -> Result<Holder, WriteError> {
    let (what, lifetime) = match kind {
        CertificateKind::SensitiveVoting => ("Sensitive Voting Certificate", ROOT_LIFETIME),
        CertificateKind::RegularVoting => ("Regular Voting Certificate", ROOT_LIFETIME),
        CertificateKind::Root => ("Root Certificate", ROOT_LIFETIME),
        CertificateKind::Ca => ("CA Certificate", CA_LIFETIME),
        CertificateKind::As => ("AS Certificate", AS_LIFETIME),
    };
    let (folder, extension, key) = place(kind);
    let name = format!("{isd_as} {what}");
    let make = || {
        let holder = Holder::make(kind, isd_as, &name, from..=from + lifetime, issuer)?;
        let mut text = pem::encode("CERTIFICATE", &holder.certificate.to_der()?)?;
        if let Some(issuer) = issuer.filter(|_| kind == CertificateKind::As) {
            text += &pem::encode("CERTIFICATE", &issuer.certificate.to_der()?)?;
        }
        Ok((holder, text))
    };
    let made: Result<_, SignError> = make();
    let (holder, text) = made.map_err(|source| WriteError::Sign { what: name, source })?;
    let certificate = file_name(isd_as, extension);
    put(
        isd_as,
        &format!("crypto/{folder}/{certificate}"),
        &text,
        0o644,
    )?;
    put(
        isd_as,
        &format!("crypto/{folder}/{key}"),
        &holder.pem,
        0o600,
    )?;
    Ok(holder)
}

/// The name of a certificate's file: `ISD1-ASff00_0_110`, as scionproto names the files of an AS.
pub(crate) fn file_name(isd_as: IsdAsn, extension: &str) -> String {
    let asn = isd_as.asn().to_string().replace(':', "_");
    format!("ISD{}-AS{asn}.{extension}", isd(isd_as))
}

pub(crate) fn file(path: &Path, text: &str, mode: u32) -> Result<(), WriteError> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        hawser_file::write(path, text.as_bytes(), mode)
    };
    write().map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}
