//! Certificates.

use der::asn1::{Any, BitString, ObjectIdentifier};
use der::oid::AssociatedOid;
use der::{Decode, Encode, Tag, Tagged};
use hawser_address::IsdAsn;
use x509_cert::certificate::{TbsCertificate, Version};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier,
};
use x509_cert::name::Name;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::Validity as X509Validity;

use crate::ecdsa::{Hash, PublicKey};
use crate::error::{BoxError, ParseError};
use crate::oid;

/// The type of a certificate (SCION CP-PKI, section "Certificate types").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CertificateKind {
    /// Signs sensitive updates of a TRC.
    SensitiveVoting,
    /// Signs regular updates of a TRC.
    RegularVoting,
    /// Signs the certificates of certification authorities.
    Root,
    /// Signs the certificates of ASes.
    Ca,
    /// Signs the messages of an AS.
    As,
}

/// A span of time, in Unix seconds, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub not_before: u64,
    /// The last second.
    pub not_after: u64,
}

impl Validity {
    /// Whether the span contains a second.
    pub fn contains(&self, at: u64) -> bool {
        (self.not_before..=self.not_after).contains(&at)
    }

    /// Whether the span contains another span.
    pub fn covers(&self, other: &Self) -> bool {
        self.contains(other.not_before) && self.contains(other.not_after)
    }
}

impl From<X509Validity> for Validity {
    fn from(validity: X509Validity) -> Self {
        Self {
            not_before: validity.not_before.to_unix_duration().as_secs(),
            not_after: validity.not_after.to_unix_duration().as_secs(),
        }
    }
}

/// A certificate that conforms to the rules of its [`CertificateKind`]. Its signature has not been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    raw: Vec<u8>,
    /// The part that is signed.
    signed: Vec<u8>,
    hash: &'static Hash,
    signature: Vec<u8>,
    pub(crate) tbs: TbsCertificate,
    pub(crate) kind: CertificateKind,
    isd_as: Option<IsdAsn>,
    pub(crate) key: PublicKey,
    key_id: Vec<u8>,
    /// The identifier of the issuer's key.
    authority: Option<Vec<u8>>,
}

/// A certificate with the signed part as raw bytes.
#[derive(der::Sequence)]
struct Envelope {
    tbs: Any,
    algorithm: AlgorithmIdentifierOwned,
    signature: BitString,
}

/// Supported extensions; others must not be critical.
const KNOWN: [ObjectIdentifier; 5] = [
    <KeyUsage as AssociatedOid>::OID,
    <ExtendedKeyUsage as AssociatedOid>::OID,
    <BasicConstraints as AssociatedOid>::OID,
    <SubjectKeyIdentifier as AssociatedOid>::OID,
    <AuthorityKeyIdentifier as AssociatedOid>::OID,
];

impl Certificate {
    /// Reads DER, and checks that the certificate is of one kind and conforms to the rules of that
    /// kind.
    ///
    /// # Errors
    /// When it is not a certificate, or breaks a rule.
    pub fn from_der(raw: &[u8]) -> Result<Self, ParseError> {
        Self::read(raw).map_err(ParseError::not("a certificate of a SCION control plane"))
    }

    fn read(raw: &[u8]) -> Result<Self, BoxError> {
        let envelope = Envelope::from_der(raw)?;
        let signed = envelope.tbs.to_der()?;
        let tbs = TbsCertificate::from_der(&signed)?;
        if tbs.version != Version::V3 {
            return Err("it is not of X.509 version 3".into());
        }
        if tbs.signature != envelope.algorithm {
            return Err("it names two signature algorithms".into());
        }
        let hash = Hash::find(|hash| hash.ecdsa == tbs.signature.oid)
            .ok_or("it is not signed by ECDSA with SHA-256, 384 or 512")?;
        let key = PublicKey::new(&tbs.subject_public_key_info)
            .ok_or("its key is not on P-256, P-384 or P-521")?;
        let signature = envelope.signature.as_bytes();
        let signature = signature.ok_or("its signature is not whole bytes")?;
        let mut extensions = tbs.extensions.iter().flatten();
        if extensions.any(|e| e.critical && !KNOWN.contains(&e.extn_id)) {
            return Err("it has a critical extension that is not known here".into());
        }
        let (kind, key_id, authority) = classify(&tbs)?;
        let (isd_as, issuer) = (isd_as(&tbs.subject)?, isd_as(&tbs.issuer)?);
        let voting = matches!(
            kind,
            CertificateKind::SensitiveVoting | CertificateKind::RegularVoting
        );
        if !voting && (isd_as.is_none() || issuer.is_none()) {
            return Err("its subject or its issuer has no ISD-AS".into());
        }
        Ok(Self {
            raw: raw.to_vec(),
            hash,
            signature: signature.to_vec(),
            kind,
            isd_as,
            key,
            key_id,
            authority,
            signed,
            tbs,
        })
    }

    /// The certificate in DER.
    pub fn to_der(&self) -> &[u8] {
        &self.raw
    }

    /// The AS of the subject. May be `None` for voting certificates.
    pub fn isd_as(&self) -> Option<IsdAsn> {
        self.isd_as
    }

    /// The identifier of the subject's key.
    pub fn subject_key_id(&self) -> &[u8] {
        &self.key_id
    }

    /// The time during which it is valid.
    pub fn validity(&self) -> Validity {
        self.tbs.validity.into()
    }

    /// Whether `issuer` issued and signed this certificate.
    pub fn is_issued_by(&self, issuer: &Self) -> bool {
        let mut authority = self.authority.iter();
        self.tbs.issuer == issuer.tbs.subject
            && authority.all(|id| *id == issuer.key_id)
            && issuer
                .key
                .verifies(self.hash, &self.signed, &self.signature)
    }
}

/// A certificate's kind, its key identifier and its issuer's.
type Profile = (CertificateKind, Vec<u8>, Option<Vec<u8>>);

/// Determines the profile of a certificate, and checks the rules of its kind (SCION CP-PKI, section
/// "Certificate format").
fn classify(tbs: &TbsCertificate) -> Result<Profile, BoxError> {
    let usage = tbs.get::<KeyUsage>()?.map(|(_, usage)| usage);
    let signs_certificates = usage.is_some_and(|usage| usage.key_cert_sign());
    let signs_messages = usage.is_some_and(|usage| usage.digital_signature());
    let purposes = tbs.get::<ExtendedKeyUsage>()?;
    let purposes = purposes.map_or_else(Vec::new, |(_, purposes)| purposes.0);
    let has = |purpose| purposes.contains(&purpose);
    let kind = if has(oid::ID_KP_SENSITIVE) {
        CertificateKind::SensitiveVoting
    } else if has(oid::ID_KP_REGULAR) {
        CertificateKind::RegularVoting
    } else if has(oid::ID_KP_ROOT) {
        CertificateKind::Root
    } else if signs_certificates {
        CertificateKind::Ca
    } else if signs_messages {
        CertificateKind::As
    } else {
        return Err("it is for no purpose of a control plane".into());
    };
    let (critical, key_id) = tbs
        .get::<SubjectKeyIdentifier>()?
        .ok_or("it has no subject key identifier")?;
    let key_id = key_id.0.as_bytes().to_vec();
    let authority = tbs.get::<AuthorityKeyIdentifier>()?;
    if critical || matches!(authority, Some((true, _))) || key_id.is_empty() {
        return Err("its key identifiers are empty or marked critical".into());
    }
    let authority = authority.and_then(|(_, id)| id.key_identifier);
    let authority = authority.map(|id| id.as_bytes().to_vec());
    let own = authority.as_ref().is_none_or(|id| *id == key_id);
    let constraints = tbs.get::<BasicConstraints>()?;
    let is_ca = constraints.as_ref().is_some_and(|(_, c)| c.ca);
    let authority_of = |below: u8| match &constraints {
        Some((true, c)) => c.ca && c.path_len_constraint == Some(below),
        _ => false,
    };
    let fits = match kind {
        CertificateKind::SensitiveVoting | CertificateKind::RegularVoting => {
            let signs = signs_certificates || signs_messages;
            let both = has(oid::ID_KP_SENSITIVE) && has(oid::ID_KP_REGULAR);
            own && has(oid::ID_KP_TIME_STAMPING) && !is_ca && !signs && !both
        }
        CertificateKind::Root => own && authority_of(1) && signs_certificates && !signs_messages,
        CertificateKind::Ca => authority.is_some() && authority_of(0) && !signs_messages,
        CertificateKind::As => authority.is_some() && !is_ca && has(oid::ID_KP_TIME_STAMPING),
    };
    let serves = has(oid::ID_KP_SERVER_AUTH) || has(oid::ID_KP_CLIENT_AUTH);
    if !fits || (kind != CertificateKind::As && serves) {
        return Err("its key usages, constraints or key identifiers do not fit its kind".into());
    }
    Ok((kind, key_id, authority))
}

/// The ISD-AS of a distinguished name, if it has one.
fn isd_as(name: &Name) -> Result<Option<IsdAsn>, BoxError> {
    let mut attributes = name.0.iter().flat_map(|rdn| rdn.0.iter());
    let Some(attribute) = attributes.find(|attribute| attribute.oid == oid::ISD_AS) else {
        return Ok(None);
    };
    let isd_as = text(&attribute.value).and_then(|text| {
        let isd_as: IsdAsn = text.parse().ok()?;
        (!isd_as.is_wildcard() && isd_as.to_string() == text).then_some(isd_as)
    });
    let isd_as = isd_as.ok_or("its ISD-AS is not one such as 1-ff00:0:110")?;
    Ok(Some(isd_as))
}

/// The text of an ASN.1 string; `None` if `value` is not a string.
pub(crate) fn text(value: &Any) -> Option<&str> {
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString => std::str::from_utf8(value.value()).ok(),
        _ => None,
    }
}
