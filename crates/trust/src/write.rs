//! The keys, certificates and TRCs of a whole network.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use der::Encode;
use der::asn1::{Any, GeneralizedTime};
use der::pem::{self, LineEnding};
use sciparse::identifier::isd_asn::IsdAsn;

use crate::certificate::Kind;
use crate::cms;
use crate::issue::{Holder, Order, SignError};
use crate::payload::{Payload, PayloadId, PayloadValidity, as_text};

/// What an AS is in the control-plane PKI of its ISD, as `.topo` files say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsRole {
    /// The AS.
    pub isd_as: IsdAsn,
    /// Whether it is a core AS.
    pub core: bool,
    /// Whether it votes on TRCs.
    pub voting: bool,
    /// Whether it is authoritative: asked for certificates of its ISD.
    pub authoritative: bool,
    /// Whether it issues certificates of ASes.
    pub issuing: bool,
    /// Who issued its certificate. An issuing AS issues its own; for others, none means the first
    /// issuing AS of the ISD.
    pub cert_issuer: Option<IsdAsn>,
}

/// Why the PKI of a network cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An ISD without a core AS.
    #[error("ISD {0} has no core AS: its TRC needs at least one")]
    NoCore(u16),
    /// An AS is to have its certificate from one that issues none.
    #[error(
        "{isd_as} names {issuer} as the issuer of its certificate, which issues none in its ISD: give {issuer} `issuing: true`"
    )]
    Issuer {
        /// The AS.
        isd_as: IsdAsn,
        /// Its issuer.
        issuer: IsdAsn,
    },
    /// Something cannot be made or signed.
    #[error("cannot make {what}: {source}")]
    Sign {
        /// What.
        what: String,
        /// Why.
        source: SignError,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// How long before the moment of writing everything holds already: hop fields count their life in
/// units of 337.5 s, so a segment may bear a timestamp from before the network was brought up; and
/// clocks differ.
const EARLY: Duration = Duration::from_secs(3600);

const DAY: u64 = 24 * 3600;
/// Life of voting and root certificates.
const ROOT_LIFE: u64 = 730 * DAY;
/// Life of CA certificates.
const CA_LIFE: u64 = 700 * DAY;
/// Life of TRCs.
const TRC_LIFE: u64 = 450 * DAY;
/// Life of AS certificates: a lab may stay up for long, and renews nothing.
const AS_LIFE: u64 = 365 * DAY;

/// Makes the PKI of a network and writes it into the folders of its ASes, in scionproto's layout;
/// `folder` names the folder of an AS.
///
/// Every AS gets `certs/ISD<isd>-B1-S1.trc` of every ISD and `crypto/as/{ISD<isd>-AS<as>.pem,
/// cp-as.key}`; those that issue `crypto/ca/{*.root.crt, cp-root.key, *.ca.crt, cp-ca.key}`; those
/// that vote `crypto/voting/{*.sensitive.crt, sensitive-voting.key, *.regular.crt,
/// regular-voting.key}`. What was there is overwritten.
///
/// A role that no AS of an ISD has, all its core ASes have. Keys are on P-256. TRCs hold for 450
/// days, AS certificates for 365.
///
/// # Errors
/// When an ISD has no core AS, an issuer issues nothing, or a file cannot be written.
pub fn write(network: &[AsRole], folder: impl Fn(IsdAsn) -> PathBuf) -> Result<(), WriteError> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let from = now.saturating_sub(EARLY).as_secs();
    let isds: BTreeSet<_> = network.iter().map(|role| isd(role.isd_as)).collect();
    let mut trcs = Vec::new();
    for isd in isds {
        let isd = Isd::new(isd, network)?;
        trcs.push((isd.trc_name(), isd.write(from, &folder)?));
    }
    for role in network {
        let certs = folder(role.isd_as).join("certs");
        for (name, trc) in &trcs {
            file(&certs.join(name), trc, 0o644)?;
        }
    }
    Ok(())
}

fn isd(isd_as: IsdAsn) -> u16 {
    isd_as.isd().to_u16()
}

/// The ASes of an ISD, with their roles filled in.
struct Isd {
    number: u16,
    all: Vec<AsRole>,
}

impl Isd {
    fn new(number: u16, network: &[AsRole]) -> Result<Self, WriteError> {
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

    /// Writes keys and certificates and returns the TRC, in PEM.
    fn write(&self, from: u64, folder: &impl Fn(IsdAsn) -> PathBuf) -> Result<String, WriteError> {
        let mut voters = Vec::new();
        let mut roots = Vec::new();
        let mut authorities = BTreeMap::new();
        for role in &self.all {
            let crypto = folder(role.isd_as).join("crypto");
            let make = |kind, issuer| holder(role.isd_as, kind, from, issuer);
            if role.voting {
                let at = crypto.join("voting");
                for (kind, name) in [
                    (Kind::RegularVoting, "regular"),
                    (Kind::SensitiveVoting, "sensitive"),
                ] {
                    let voter = make(kind, None)?;
                    put(
                        &voter,
                        None,
                        &at,
                        &format!("{}.{name}.crt", stem(role.isd_as)),
                        &format!("{name}-voting.key"),
                    )?;
                    voters.push(voter);
                }
            }
            if role.issuing {
                let at = crypto.join("ca");
                let root = make(Kind::Root, None)?;
                let ca = make(Kind::Ca, Some(&root))?;
                put(
                    &root,
                    None,
                    &at,
                    &format!("{}.root.crt", stem(role.isd_as)),
                    "cp-root.key",
                )?;
                put(
                    &ca,
                    None,
                    &at,
                    &format!("{}.ca.crt", stem(role.isd_as)),
                    "cp-ca.key",
                )?;
                roots.push(root);
                authorities.insert(role.isd_as, ca);
            }
        }
        for role in &self.all {
            let ca = self.issuer(role, &authorities)?;
            let own = holder(role.isd_as, Kind::As, from, Some(ca))?;
            let at = folder(role.isd_as).join("crypto").join("as");
            put(
                &own,
                Some(ca),
                &at,
                &format!("{}.pem", stem(role.isd_as)),
                "cp-as.key",
            )?;
        }
        self.trc(from, &voters, &roots)
            .map_err(|source| WriteError::Sign {
                what: format!("the TRC of ISD {}", self.number),
                source,
            })
    }

    fn issuer<'a>(
        &self,
        role: &AsRole,
        authorities: &'a BTreeMap<IsdAsn, Holder>,
    ) -> Result<&'a Holder, WriteError> {
        let first = self.all.iter().find(|role| role.issuing);
        let issuer = match role.cert_issuer {
            _ if role.issuing => role.isd_as,
            Some(named) => named,
            None => first.map_or(role.isd_as, |role| role.isd_as),
        };
        authorities.get(&issuer).ok_or(WriteError::Issuer {
            isd_as: role.isd_as,
            issuer,
        })
    }

    fn trc(&self, from: u64, voters: &[Holder], roots: &[Holder]) -> Result<String, SignError> {
        let with = |has: fn(&AsRole) -> bool| {
            let ases = self.all.iter().filter(|role| has(role));
            ases.map(|role| as_text(role.isd_as))
                .collect::<der::Result<Vec<_>>>()
        };
        let time = |at| GeneralizedTime::from_unix_duration(Duration::from_secs(at));
        let certificates = voters.iter().chain(roots);
        let certificates = certificates.map(|holder| Any::encode_from(&holder.certificate));
        // Half of the voters and one more; each has two certificates.
        let quorum = voters.len() / 4 + 1;
        let payload = Payload {
            version: 0,
            id: PayloadId {
                isd: self.number.into(),
                serial: 1,
                base: 1,
            },
            validity: PayloadValidity {
                not_before: time(from)?,
                not_after: time(from + TRC_LIFE)?,
            },
            grace_period: 0,
            no_trust_reset: false,
            votes: Vec::new(),
            quorum: u8::try_from(quorum).unwrap_or(u8::MAX),
            core: with(|role| role.core)?,
            authoritative: with(|role| role.authoritative)?,
            description: format!("TRC of ISD {} in a lab", self.number),
            certificates: certificates.collect::<der::Result<_>>()?,
        };
        let voters: Vec<_> = voters.iter().collect();
        let signed = cms::sign(&payload.to_der()?, &voters, from)?;
        encode_pem("TRC", &signed)
    }
}

fn holder(
    isd_as: IsdAsn,
    kind: Kind,
    from: u64,
    issuer: Option<&Holder>,
) -> Result<Holder, WriteError> {
    let (what, life) = match kind {
        Kind::SensitiveVoting => ("Sensitive Voting Certificate", ROOT_LIFE),
        Kind::RegularVoting => ("Regular Voting Certificate", ROOT_LIFE),
        Kind::Root => ("Root Certificate", ROOT_LIFE),
        Kind::Ca => ("CA Certificate", CA_LIFE),
        Kind::As => ("AS Certificate", AS_LIFE),
    };
    let name = format!("{isd_as} {what}");
    let order = Order {
        kind,
        isd_as,
        name: &name,
        not_before: from,
        not_after: from + life,
    };
    Holder::make(&order, issuer).map_err(|source| WriteError::Sign { what: name, source })
}

/// Writes a certificate, with its issuer's after it, and its key.
fn put(
    holder: &Holder,
    chain: Option<&Holder>,
    at: &Path,
    certificate: &str,
    key: &str,
) -> Result<(), WriteError> {
    let mut text = String::new();
    for holder in [Some(holder), chain].into_iter().flatten() {
        let pem = holder
            .certificate
            .to_der()
            .map_err(SignError::from)
            .and_then(|der| encode_pem("CERTIFICATE", &der));
        text += &pem.map_err(|source| WriteError::Sign {
            what: certificate.to_owned(),
            source,
        })?;
    }
    file(&at.join(certificate), &text, 0o644)?;
    file(&at.join(key), &holder.pem, 0o600)
}

fn encode_pem(label: &str, der: &[u8]) -> Result<String, SignError> {
    pem::encode_string(label, LineEnding::LF, der).map_err(|e| SignError::Encode(e.to_string()))
}

/// `ISD1-ASff00_0_110`: what scionproto names the files of an AS by.
fn stem(isd_as: IsdAsn) -> String {
    let asn = isd_as.asn().to_string().replace(':', "_");
    format!("ISD{}-AS{asn}", isd(isd_as))
}

fn file(path: &Path, text: &str, mode: u32) -> Result<(), WriteError> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(mode);
        options.open(path)?.write_all(text.as_bytes())
    };
    write().map_err(|source| WriteError::Io {
        path: path.to_owned(),
        source,
    })
}
