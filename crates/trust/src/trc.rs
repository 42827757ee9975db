//! Trust root configurations.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use der::asn1::{Any, GeneralizedTime};
use der::{Decode, Encode, Sequence};
use hawser_address::{Asn, Isd, IsdAsn};

use crate::certificate::{Certificate, CertificateKind, Validity, text};
use crate::cms::Signed;
use crate::error::{BoxError, ParseError};
use crate::pem;

/// The identifier of a TRC. A base TRC has equal numbers; each update adds one to the serial
/// number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrcId {
    /// The ISD.
    pub isd: u16,
    /// The serial number of the base TRC.
    pub base: u64,
    /// The serial number.
    pub serial: u64,
}

impl fmt::Display for TrcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ISD{}-B{}-S{}", self.isd, self.base, self.serial)
    }
}

/// The content of a TRC without its certificates.
#[derive(Debug, Clone)]
pub struct TrcContent {
    /// The identifier.
    pub id: TrcId,
    /// The time during which it is valid.
    pub validity: Validity,
    /// The time after the start of validity during which the previous TRC is valid too.
    pub grace_period: Duration,
    /// The certificates in the previous TRC whose holders vote for this one, by their indices
    /// there.
    pub votes: Vec<usize>,
    /// The number of votes that an update needs.
    pub quorum: usize,
    /// The core ASes of the ISD.
    pub core: Vec<IsdAsn>,
    /// The authoritative ASes, which have the newest TRC and certificates of the ISD.
    pub authoritative: Vec<IsdAsn>,
    /// A description for humans.
    pub description: String,
}

/// A TRC that conforms to all rules that can be checked without another TRC. [`Trc::verify_base`]
/// and [`Trc::verify_update`] check its signatures.
#[derive(Debug, Clone)]
pub struct Trc {
    raw: Vec<u8>,
    pub(crate) signed: Signed,
    content: TrcContent,
    pub(crate) certificates: Vec<Certificate>,
}

/// The ASN.1 form of a TRC's content (SCION CP-PKI, section "TRC format").
#[derive(Sequence)]
pub(crate) struct Payload {
    /// 0 is version 1.
    pub version: u8,
    /// ISD, serial number, base number.
    pub id: [u64; 3],
    /// Start and end.
    pub validity: [GeneralizedTime; 2],
    /// Seconds.
    pub grace_period: u64,
    pub no_trust_reset: bool,
    pub votes: Vec<u32>,
    pub quorum: u8,
    /// AS numbers as text.
    pub core: Vec<Any>,
    /// AS numbers as text.
    pub authoritative: Vec<Any>,
    pub description: String,
    pub certificates: Vec<Any>,
}

/// The ASes of an ISD, from their AS numbers.
fn ases(isd: u16, texts: &[Any]) -> Result<Vec<IsdAsn>, &'static str> {
    let isd_as = |value: &Any| {
        let asn: Asn = text(value)?.parse().ok()?;
        (!asn.is_wildcard()).then_some(IsdAsn::new(Isd::new(isd), asn))
    };
    let ases = texts.iter().map(isd_as).collect::<Option<_>>();
    ases.ok_or("a text in it is not an AS number")
}

impl Trc {
    /// Reads a file such as `ISD1-B1-S1.trc`: PEM or DER.
    ///
    /// # Errors
    /// When it is not a TRC, or breaks a rule.
    pub fn parse(file: &[u8]) -> Result<Self, ParseError> {
        let read = || {
            if !file.trim_ascii_start().starts_with(b"-----BEGIN") {
                return Self::read(file);
            }
            match pem::blocks(file)?.as_slice() {
                [(label, der)] if label == "TRC" => Self::read(der),
                _ => Err("it does not have one PEM block labelled TRC".into()),
            }
        };
        read().map_err(ParseError::not("a TRC"))
    }

    /// Reads DER.
    ///
    /// # Errors
    /// When it is not a TRC, or breaks a rule.
    pub fn from_der(raw: &[u8]) -> Result<Self, ParseError> {
        Self::read(raw).map_err(ParseError::not("a TRC"))
    }

    fn read(raw: &[u8]) -> Result<Self, BoxError> {
        let signed = Signed::from_der(raw)?;
        let payload = Payload::from_der(&signed.content)?;
        if payload.version != 0 {
            return Err("its version is unknown".into());
        }
        let [isd, serial, base] = payload.id;
        let isd = u16::try_from(isd).ok().filter(|&isd| isd != 0);
        let isd = isd.ok_or("its ISD is not between 1 and 65535")?;
        let certificate = |(at, any): (usize, &Any)| {
            Certificate::from_der(&any.to_der()?)
                .map_err(|error| format!("its certificate {at} is {error}").into())
        };
        let certificates = payload.certificates.iter().enumerate().map(certificate);
        let [not_before, not_after] = payload.validity.map(|at| at.to_unix_duration().as_secs());
        let trc = Self {
            raw: raw.to_vec(),
            certificates: certificates.collect::<Result<_, BoxError>>()?,
            content: TrcContent {
                id: TrcId { isd, base, serial },
                validity: Validity {
                    not_before,
                    not_after,
                },
                grace_period: Duration::from_secs(payload.grace_period),
                votes: payload.votes.iter().map(|&vote| vote as usize).collect(),
                quorum: payload.quorum.into(),
                core: ases(isd, &payload.core)?,
                authoritative: ases(isd, &payload.authoritative)?,
                description: payload.description,
            },
            signed,
        };
        trc.check()?;
        Ok(trc)
    }

    /// Checks the rules of SCION CP-PKI, section "TRC format" (scionproto `cppki.TRC.Validate`).
    fn check(&self) -> Result<(), &'static str> {
        let content = &self.content;
        let TrcId { isd, base, serial } = content.id;
        if base == 0 || serial < base {
            return Err("its serial number is below its base number");
        }
        if content.validity.not_before >= content.validity.not_after {
            return Err("it ends before it begins");
        }
        if base == serial && (!content.grace_period.is_zero() || !content.votes.is_empty()) {
            return Err("a base TRC has neither a grace period nor votes");
        }
        if content.quorum == 0 {
            return Err("its quorum is 0");
        }
        for ases in [&content.core, &content.authoritative] {
            let distinct: BTreeSet<_> = ases.iter().collect();
            if ases.is_empty() || distinct.len() < ases.len() {
                return Err("it has no core or no authoritative ASes, or names one twice");
            }
        }
        for kind in [
            CertificateKind::SensitiveVoting,
            CertificateKind::RegularVoting,
        ] {
            if self.certificates_of(kind).count() < content.quorum {
                return Err("its quorum is larger than the number of its voters");
            }
        }
        for (at, certificate) in self.certificates.iter().enumerate() {
            if matches!(certificate.kind, CertificateKind::Ca | CertificateKind::As) {
                return Err("it has a certificate that is neither a voter's nor a root");
            }
            let other_isd = |ia: IsdAsn| ia.isd().to_u16() != isd;
            if certificate.isd_as().is_some_and(other_isd) {
                return Err("it has a certificate of another ISD");
            }
            if !certificate.validity().covers(&content.validity) {
                return Err("a certificate is not valid as long as the TRC");
            }
            for other in &self.certificates[at + 1..] {
                let (a, b) = (&certificate.tbs, &other.tbs);
                let serial = a.issuer == b.issuer && a.serial_number == b.serial_number;
                let subject = a.subject == b.subject && certificate.kind == other.kind;
                if serial || subject {
                    return Err("two of its certificates have the same name or number");
                }
            }
        }
        Ok(())
    }

    /// The TRC in DER.
    pub fn to_der(&self) -> &[u8] {
        &self.raw
    }

    /// The content.
    pub fn content(&self) -> &TrcContent {
        &self.content
    }

    /// The identifier.
    pub fn id(&self) -> TrcId {
        self.content.id
    }

    /// The time during which it is valid.
    pub fn validity(&self) -> Validity {
        self.content.validity
    }

    /// The certificates of a kind.
    pub fn certificates_of(&self, kind: CertificateKind) -> impl Iterator<Item = &Certificate> {
        let all = self.certificates.iter();
        all.filter(move |certificate| certificate.kind == kind)
    }
}
