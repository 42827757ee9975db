//! Trust root configurations.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use der::asn1::Any;
use der::{Decode, Encode};
use sciparse::identifier::isd::Isd;
use sciparse::identifier::isd_asn::IsdAsn;

use crate::certificate::{Certificate, CertificateError, Kind, Validity};
use crate::cms::{Signed, SignedError};
use crate::payload::{Payload, as_numbers};
use crate::pem;

/// The identifier of a TRC. A base TRC has equal numbers; each update adds one to the serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrcId {
    /// The ISD.
    pub isd: u16,
    /// The serial number of the base TRC it is an update of.
    pub base: u64,
    /// Its serial number.
    pub serial: u64,
}

impl fmt::Display for TrcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ISD{}-B{}-S{}", self.isd, self.base, self.serial)
    }
}

/// Not a TRC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrcError {
    /// Not PEM with one TRC.
    #[error("not a TRC in PEM: {0}")]
    Pem(String),
    /// Not signed data in CMS.
    #[error("not a signed TRC: {0}")]
    Signed(#[from] SignedError),
    /// The signed data is not a TRC.
    #[error("not the payload of a TRC: {0}")]
    Payload(String),
    /// A certificate in it cannot be used.
    #[error("the TRC's certificate {at}: {source}")]
    Certificate {
        /// Its index.
        at: usize,
        /// What is wrong.
        source: CertificateError,
    },
    /// It breaks a rule.
    #[error("not a valid TRC: {0}")]
    Rule(&'static str),
}

/// A TRC that keeps all rules that can be checked without another one. Its signatures are checked
/// by [`Trc::verify_base`] and [`Trc::verify_update`].
#[derive(Debug, Clone)]
pub struct Trc {
    raw: Vec<u8>,
    pub(crate) signed: Signed,
    pub(crate) id: TrcId,
    validity: Validity,
    grace: Duration,
    pub(crate) votes: Vec<usize>,
    pub(crate) quorum: usize,
    pub(crate) core: Vec<IsdAsn>,
    pub(crate) authoritative: Vec<IsdAsn>,
    description: String,
    pub(crate) certificates: Vec<Certificate>,
}

impl Trc {
    /// Reads a file such as `ISD1-B1-S1.trc`: PEM or DER.
    ///
    /// # Errors
    /// When it is not a TRC, or breaks a rule.
    pub fn parse(file: &[u8]) -> Result<Self, TrcError> {
        if !file.trim_ascii_start().starts_with(b"-----BEGIN") {
            return Self::from_der(file);
        }
        match pem::blocks(file).map_err(TrcError::Pem)?.as_slice() {
            [(label, der)] if label == "TRC" => Self::from_der(der),
            _ => Err(TrcError::Pem(
                "it does not have one block labelled TRC".into(),
            )),
        }
    }

    /// Reads DER.
    ///
    /// # Errors
    /// When it is not a TRC, or breaks a rule.
    pub fn from_der(raw: &[u8]) -> Result<Self, TrcError> {
        let signed = Signed::from_der(raw)?;
        let payload = Payload::from_der(&signed.content);
        let payload = payload.map_err(|e| TrcError::Payload(e.to_string()))?;
        let rule = TrcError::Rule;
        if payload.version != 0 {
            return Err(rule("its version is unknown"));
        }
        let isd = u16::try_from(payload.id.isd).ok().filter(|&isd| isd != 0);
        let isd = isd.ok_or(rule("its ISD is not between 1 and 65535"))?;
        let ases = |texts: &[Any]| -> Result<Vec<IsdAsn>, TrcError> {
            let numbers = as_numbers(texts).ok_or(rule("a text is not an AS number"))?;
            let ases = numbers.into_iter();
            Ok(ases.map(|asn| IsdAsn::new(Isd::new(isd), asn)).collect())
        };
        let certificate = |(at, any): (usize, &Any)| {
            let raw = any.to_der().map_err(CertificateError::from);
            raw.and_then(|raw| Certificate::from_der(&raw))
                .map_err(|source| TrcError::Certificate { at, source })
        };
        let trc = Self {
            raw: raw.to_vec(),
            id: TrcId {
                isd,
                base: payload.id.base,
                serial: payload.id.serial,
            },
            validity: Validity {
                not_before: payload.validity.not_before.to_unix_duration().as_secs(),
                not_after: payload.validity.not_after.to_unix_duration().as_secs(),
            },
            grace: Duration::from_secs(payload.grace_period),
            votes: payload.votes.iter().map(|&vote| vote as usize).collect(),
            quorum: payload.quorum.into(),
            core: ases(&payload.core)?,
            authoritative: ases(&payload.authoritative)?,
            certificates: payload
                .certificates
                .iter()
                .enumerate()
                .map(certificate)
                .collect::<Result<_, _>>()?,
            description: payload.description,
            signed,
        };
        trc.check()?;
        Ok(trc)
    }

    /// SCION CP-PKI, section "TRC format"; scionproto `cppki.TRC.Validate`.
    fn check(&self) -> Result<(), TrcError> {
        let broken = |reason| Err(TrcError::Rule(reason));
        if self.id.base == 0 || self.id.serial < self.id.base {
            return broken("its serial number is below its base number");
        }
        if self.validity.not_before >= self.validity.not_after {
            return broken("it ends before it begins");
        }
        if self.is_base() && (!self.grace.is_zero() || !self.votes.is_empty()) {
            return broken("a base TRC has neither a grace period nor votes");
        }
        if self.quorum == 0 {
            return broken("its quorum is 0");
        }
        for ases in [&self.core, &self.authoritative] {
            let distinct: BTreeSet<_> = ases.iter().collect();
            if ases.is_empty() || distinct.len() < ases.len() {
                return broken("it has no core or no authoritative ASes, or names one twice");
            }
        }
        for kind in [Kind::SensitiveVoting, Kind::RegularVoting] {
            if self.certificates_of(kind).count() < self.quorum {
                return broken("its quorum is larger than the number of its voters");
            }
        }
        for (at, certificate) in self.certificates.iter().enumerate() {
            if matches!(certificate.kind(), Kind::Ca | Kind::As) {
                return broken("it has a certificate that is neither a voter's nor a root");
            }
            let other_isd = |ia: IsdAsn| ia.isd().to_u16() != self.id.isd;
            if certificate.isd_as().is_some_and(other_isd) {
                return broken("it has a certificate of another ISD");
            }
            if !certificate.validity().covers(&self.validity) {
                return broken("a certificate is not valid as long as the TRC");
            }
            for other in &self.certificates[at + 1..] {
                let (a, b) = (certificate.tbs(), other.tbs());
                let serial = a.issuer == b.issuer && a.serial_number == b.serial_number;
                let subject = a.subject == b.subject && certificate.kind() == other.kind();
                if serial || subject {
                    return broken("two of its certificates have the same name or number");
                }
            }
        }
        Ok(())
    }

    /// Its DER form.
    pub fn to_der(&self) -> &[u8] {
        &self.raw
    }

    /// Its identifier.
    pub fn id(&self) -> TrcId {
        self.id
    }

    /// Its ISD.
    pub fn isd(&self) -> u16 {
        self.id.isd
    }

    /// Whether it is a base TRC, not an update.
    pub fn is_base(&self) -> bool {
        self.id.base == self.id.serial
    }

    /// The time during which it is valid.
    pub fn validity(&self) -> Validity {
        self.validity
    }

    /// The time, from its beginning on, during which the TRC before it is valid too.
    pub fn grace_period(&self) -> Duration {
        self.grace
    }

    /// The core ASes of the ISD.
    pub fn core(&self) -> &[IsdAsn] {
        &self.core
    }

    /// The ASes that have the newest TRC and certificates of the ISD.
    pub fn authoritative(&self) -> &[IsdAsn] {
        &self.authoritative
    }

    /// Its description.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The number of votes that an update needs.
    pub fn quorum(&self) -> usize {
        self.quorum
    }

    /// Its certificates of a kind, with their indices.
    pub fn certificates_of(&self, kind: Kind) -> impl Iterator<Item = (usize, &Certificate)> {
        let all = self.certificates.iter().enumerate();
        all.filter(move |(_, certificate)| certificate.kind() == kind)
    }
}
