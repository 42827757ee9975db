//! Making certificates.

use std::time::Duration;

use der::Encode;
use der::asn1::{Any, BitString, ObjectIdentifier, OctetString, SetOfVec, UtcTime, Utf8StringRef};
use der::oid::AssociatedOid;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use sciparse::identifier::isd_asn::IsdAsn;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::certificate::{Certificate, TbsCertificate, Version};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectKeyIdentifier,
};
use x509_cert::name::{Name, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};

use crate::certificate::Kind;
use crate::key::{Key, KeyError, Signs};
use crate::oid;

/// Bytes of a serial number; RFC 5280 allows 20, the first bit clear.
const SERIAL: usize = 16;

/// Why something cannot be made and signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The signer's certificate does not hold.
    #[error("the certificate of AS {isd_as} does not hold any more, or not yet: make a new one")]
    Expired {
        /// The signer.
        isd_as: IsdAsn,
    },
    /// It has no DER form.
    #[error("cannot be encoded: {0}")]
    Encode(String),
}

impl From<der::Error> for SignError {
    fn from(error: der::Error) -> Self {
        Self::Encode(error.to_string())
    }
}

/// A certificate to be made. Times are Unix seconds.
pub(crate) struct Order<'a> {
    pub kind: Kind,
    pub isd_as: IsdAsn,
    pub name: &'a str,
    pub not_before: u64,
    pub not_after: u64,
}

/// A certificate with its private key.
pub(crate) struct Holder {
    pub certificate: Certificate,
    pub key: Key,
    /// The key in PEM.
    pub pem: String,
}

impl Holder {
    /// Makes a key and a certificate of it, signed by `issuer` or by itself.
    pub fn make(order: &Order<'_>, issuer: Option<&Self>) -> Result<Self, SignError> {
        let (key, pem) = Key::generate()?;
        let subject = subject(order)?;
        let issued_by = issuer.map_or(&subject, |issuer| {
            &issuer.certificate.tbs_certificate.subject
        });
        let issuer_key = issuer.map_or(&key, |issuer| &issuer.key);
        let tbs = TbsCertificate {
            version: Version::V3,
            serial_number: serial()?,
            signature: signature_algorithm(issuer_key.signs),
            issuer: issued_by.clone(),
            validity: Validity {
                not_before: utc(order.not_before)?,
                not_after: utc(order.not_after)?,
            },
            subject: subject.clone(),
            subject_public_key_info: public_key(&key)?,
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: Some(extensions(order.kind, &key, issuer_key)?),
        };
        let signature = issuer_key.sign(&tbs.to_der()?)?;
        let certificate = Certificate {
            signature_algorithm: tbs.signature.clone(),
            tbs_certificate: tbs,
            signature: BitString::from_bytes(&signature)?,
        };
        Ok(Self {
            certificate,
            key,
            pem,
        })
    }
}

/// How a key signs, as certificates and CMS name it.
pub(crate) fn signature_algorithm(signs: Signs) -> AlgorithmIdentifierOwned {
    AlgorithmIdentifierOwned {
        oid: match signs {
            Signs::P256 => oid::ECDSA_SHA256,
            Signs::P384 => oid::ECDSA_SHA384,
        },
        // RFC 5758, section 3.2: no parameters.
        parameters: None,
    }
}

/// RFC 5280, section 4.1.2.5: UTCTime until the year 2049.
pub(crate) fn utc(at: u64) -> der::Result<Time> {
    Ok(Time::UtcTime(UtcTime::from_unix_duration(
        Duration::from_secs(at),
    )?))
}

fn subject(order: &Order<'_>) -> der::Result<Name> {
    let isd_as = order.isd_as.to_string();
    let rdn = |oid: ObjectIdentifier, text: &str| {
        let value = Any::encode_from(&Utf8StringRef::new(text)?)?;
        let pair = AttributeTypeAndValue { oid, value };
        Ok::<_, der::Error>(RelativeDistinguishedName(SetOfVec::try_from(vec![pair])?))
    };
    let parts = [(oid::COMMON_NAME, order.name), (oid::ISD_AS, &isd_as)];
    let parts = parts.into_iter().map(|(oid, text)| rdn(oid, text));
    Ok(parts.collect::<der::Result<Vec<_>>>()?.into())
}

fn serial() -> Result<SerialNumber, SignError> {
    let mut bytes = [0; SERIAL];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| KeyError::Random)?;
    // Positive, and never shorter than the others.
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::new(&bytes)?)
}

pub(crate) fn public_key(key: &Key) -> der::Result<SubjectPublicKeyInfoOwned> {
    let curve = match key.signs {
        Signs::P256 => oid::P256,
        Signs::P384 => oid::P384,
    };
    Ok(SubjectPublicKeyInfoOwned {
        algorithm: AlgorithmIdentifierOwned {
            oid: oid::EC_PUBLIC_KEY,
            parameters: Some(Any::encode_from(&curve)?),
        },
        subject_public_key: BitString::from_bytes(key.public())?,
    })
}

/// RFC 5280, section 4.2.1.2, method (1).
fn key_id(key: &Key) -> der::Result<OctetString> {
    let id = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, key.public());
    OctetString::new(id.as_ref())
}

fn extensions(kind: Kind, key: &Key, issuer: &Key) -> der::Result<Vec<Extension>> {
    let mut extensions = Vec::new();
    let usage = match kind {
        Kind::SensitiveVoting | Kind::RegularVoting => None,
        Kind::Root | Kind::Ca => Some(KeyUsages::KeyCertSign),
        Kind::As => Some(KeyUsages::DigitalSignature),
    };
    if let Some(usage) = usage {
        extensions.push(extension(&KeyUsage(usage.into()), true)?);
    }
    let purposes = match kind {
        Kind::SensitiveVoting => vec![oid::SENSITIVE, oid::TIME_STAMPING],
        Kind::RegularVoting => vec![oid::REGULAR, oid::TIME_STAMPING],
        Kind::Root => vec![oid::ROOT, oid::TIME_STAMPING],
        Kind::Ca => Vec::new(),
        Kind::As => vec![oid::SERVER_AUTH, oid::CLIENT_AUTH, oid::TIME_STAMPING],
    };
    if !purposes.is_empty() {
        extensions.push(extension(&ExtendedKeyUsage(purposes), false)?);
    }
    let below = match kind {
        Kind::Root => Some(1),
        Kind::Ca => Some(0),
        _ => None,
    };
    if below.is_some() {
        let constraints = BasicConstraints {
            ca: true,
            path_len_constraint: below,
        };
        extensions.push(extension(&constraints, true)?);
    }
    let id = SubjectKeyIdentifier(key_id(key)?);
    extensions.push(extension(&id, false)?);
    if matches!(kind, Kind::Ca | Kind::As) {
        let authority = AuthorityKeyIdentifier {
            key_identifier: Some(key_id(issuer)?),
            ..AuthorityKeyIdentifier::default()
        };
        extensions.push(extension(&authority, false)?);
    }
    Ok(extensions)
}

fn extension<T: Encode + AssociatedOid>(value: &T, critical: bool) -> der::Result<Extension> {
    Ok(Extension {
        extn_id: T::OID,
        critical,
        extn_value: OctetString::new(value.to_der()?)?,
    })
}
