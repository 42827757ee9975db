//! Certificates.

use der::asn1::{Any, ObjectIdentifier};
use der::{Decode, Encode, Tag, Tagged};
use sciparse::identifier::isd_asn::IsdAsn;
use x509_cert::certificate::{TbsCertificate, Version};
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier,
};
use x509_cert::name::Name;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::Validity as X509Validity;

use crate::ecdsa::{Hash, PublicKey};
use crate::oid;

/// What a certificate is for (SCION CP-PKI, section "Certificate types").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Signs sensitive updates of a TRC.
    SensitiveVoting,
    /// Signs regular updates of a TRC.
    RegularVoting,
    /// Signs the certificates of certification authorities.
    Root,
    /// Signs the certificates of ASes.
    Ca,
    /// Signs what an AS says.
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
    /// Whether a second lies in it.
    pub fn contains(&self, at: u64) -> bool {
        (self.not_before..=self.not_after).contains(&at)
    }

    /// Whether all of another span lies in it.
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

/// Why something is not a certificate of SCION's control-plane PKI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// Not an X.509 certificate.
    #[error("not an X.509 certificate: {0}")]
    Format(String),
    /// One that breaks a rule.
    #[error("not a certificate of a SCION control plane: {0}")]
    Rule(&'static str),
}

impl From<der::Error> for CertificateError {
    fn from(error: der::Error) -> Self {
        Self::Format(error.to_string())
    }
}

/// A certificate that keeps the rules of its [`Kind`]. Nothing says yet that its signature is good.
#[derive(Debug, Clone)]
pub struct Certificate {
    raw: Vec<u8>,
    /// The part that is signed.
    signed: Vec<u8>,
    hash: Hash,
    signature: Vec<u8>,
    tbs: TbsCertificate,
    kind: Kind,
    isd_as: Option<IsdAsn>,
    key: PublicKey,
    key_id: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// A certificate with the bytes that are signed left as they are.
#[derive(der::Sequence)]
struct Envelope {
    tbs: Any,
    algorithm: AlgorithmIdentifierOwned,
    signature: der::asn1::BitString,
}

/// Extensions understood here; any other must not be critical.
const KNOWN: [ObjectIdentifier; 5] = [
    <KeyUsage as der::oid::AssociatedOid>::OID,
    <ExtendedKeyUsage as der::oid::AssociatedOid>::OID,
    <BasicConstraints as der::oid::AssociatedOid>::OID,
    <SubjectKeyIdentifier as der::oid::AssociatedOid>::OID,
    <AuthorityKeyIdentifier as der::oid::AssociatedOid>::OID,
];

impl Certificate {
    /// Reads DER and checks what can be said of a certificate by itself: its kind and the rules of
    /// the kind.
    ///
    /// # Errors
    /// When it is no certificate, or breaks a rule.
    pub fn from_der(raw: &[u8]) -> Result<Self, CertificateError> {
        let rule = CertificateError::Rule;
        let envelope = Envelope::from_der(raw)?;
        let signed = envelope.tbs.to_der()?;
        let tbs = TbsCertificate::from_der(&signed)?;
        if tbs.version != Version::V3 {
            return Err(rule("it is not of X.509 version 3"));
        }
        if tbs.signature != envelope.algorithm {
            return Err(rule("it names two signature algorithms"));
        }
        let hash = Hash::of_signature(&tbs.signature);
        let hash = hash.ok_or(rule("it is not signed by ECDSA with SHA-256, 384 or 512"))?;
        let key = PublicKey::new(&tbs.subject_public_key_info);
        let key = key.ok_or(rule("its key is not on P-256, P-384 or P-521"))?;
        let signature = envelope.signature.as_bytes();
        let signature = signature.ok_or(rule("its signature is not whole bytes"))?;
        let mut extensions = tbs.extensions.iter().flatten();
        if extensions.any(|e| e.critical && !KNOWN.contains(&e.extn_id)) {
            return Err(rule("it has a critical extension that is not known here"));
        }
        let Profile {
            kind,
            key_id,
            authority,
        } = classify(&tbs)?;
        let isd_as = isd_as(&tbs.subject)?;
        let issuer = self::isd_as(&tbs.issuer)?;
        let voting = matches!(kind, Kind::SensitiveVoting | Kind::RegularVoting);
        if !voting && (isd_as.is_none() || issuer.is_none()) {
            return Err(rule("its subject or its issuer has no ISD-AS"));
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

    /// Its DER form.
    pub fn to_der(&self) -> &[u8] {
        &self.raw
    }

    /// What it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whose it is. Voting certificates may not say.
    pub fn isd_as(&self) -> Option<IsdAsn> {
        self.isd_as
    }

    /// The identifier of its key.
    pub fn subject_key_id(&self) -> &[u8] {
        &self.key_id
    }

    /// When it holds.
    pub fn validity(&self) -> Validity {
        self.tbs.validity.into()
    }

    /// Its subject, in the form of RFC 4514.
    pub fn subject(&self) -> String {
        self.tbs.subject.to_string()
    }

    pub(crate) fn key(&self) -> &PublicKey {
        &self.key
    }

    pub(crate) fn tbs(&self) -> &TbsCertificate {
        &self.tbs
    }

    /// Whether `issuer` issued and signed it.
    pub fn is_issued_by(&self, issuer: &Self) -> bool {
        let named = self.tbs.issuer == issuer.tbs.subject
            && self
                .authority
                .as_ref()
                .is_none_or(|id| *id == issuer.key_id);
        named
            && issuer
                .key
                .verifies(self.hash, &self.signed, &self.signature)
    }
}

/// What the extensions of a certificate say.
struct Profile {
    kind: Kind,
    key_id: Vec<u8>,
    authority: Option<Vec<u8>>,
}

/// The profile of a certificate that keeps the rules of its kind (SCION CP-PKI, section
/// "Certificate format").
fn classify(tbs: &TbsCertificate) -> Result<Profile, CertificateError> {
    let rule = CertificateError::Rule;
    let usage = tbs.get::<KeyUsage>()?.map(|(_, usage)| usage);
    let signs_certificates = usage.is_some_and(|usage| usage.key_cert_sign());
    let signs_messages = usage.is_some_and(|usage| usage.digital_signature());
    let purposes = tbs.get::<ExtendedKeyUsage>()?;
    let purposes = purposes.map_or_else(Vec::new, |(_, purposes)| purposes.0);
    let has = |purpose| purposes.contains(&purpose);
    let kind = if has(oid::SENSITIVE) {
        Kind::SensitiveVoting
    } else if has(oid::REGULAR) {
        Kind::RegularVoting
    } else if has(oid::ROOT) {
        Kind::Root
    } else if signs_certificates {
        Kind::Ca
    } else if signs_messages {
        Kind::As
    } else {
        return Err(rule("it is for none of the purposes there are"));
    };
    let (critical, key_id) = tbs
        .get::<SubjectKeyIdentifier>()?
        .ok_or(rule("it has no subject key identifier"))?;
    let key_id = key_id.0.as_bytes().to_vec();
    let authority = tbs.get::<AuthorityKeyIdentifier>()?;
    if critical || matches!(authority, Some((true, _))) || key_id.is_empty() {
        return Err(rule("its key identifiers are empty or marked critical"));
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
        Kind::SensitiveVoting | Kind::RegularVoting => {
            let signs = signs_certificates || signs_messages;
            let both = has(oid::SENSITIVE) && has(oid::REGULAR);
            own && has(oid::TIME_STAMPING) && !is_ca && !signs && !both
        }
        Kind::Root => own && authority_of(1) && signs_certificates && !signs_messages,
        Kind::Ca => authority.is_some() && authority_of(0) && !signs_messages,
        Kind::As => authority.is_some() && !is_ca && has(oid::TIME_STAMPING),
    };
    let serves = has(oid::SERVER_AUTH) || has(oid::CLIENT_AUTH);
    if !fits || (kind != Kind::As && serves) {
        return Err(rule(
            "its key usages, constraints or key identifiers do not fit its kind",
        ));
    }
    Ok(Profile {
        kind,
        key_id,
        authority,
    })
}

/// The ISD-AS of a distinguished name, if it has one.
fn isd_as(name: &Name) -> Result<Option<IsdAsn>, CertificateError> {
    let mut attributes = name.0.iter().flat_map(|rdn| rdn.0.iter());
    let Some(attribute) = attributes.find(|attribute| attribute.oid == oid::ISD_AS) else {
        return Ok(None);
    };
    let text = match attribute.value.tag() {
        Tag::Utf8String | Tag::PrintableString => std::str::from_utf8(attribute.value.value()).ok(),
        _ => None,
    };
    let parsed = text.and_then(|text| {
        let isd_as: IsdAsn = text.parse().ok()?;
        (!isd_as.is_wildcard() && isd_as.to_string() == text).then_some(isd_as)
    });
    let refused = CertificateError::Rule("its ISD-AS is not one such as 1-ff00:0:110");
    parsed.ok_or(refused).map(Some)
}
