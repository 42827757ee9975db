//! Creation of certificates.

use std::ops::RangeInclusive;
use std::time::Duration;

use der::Encode;
use der::asn1::{Any, BitString, ObjectIdentifier, OctetString, UtcTime};
use der::oid::AssociatedOid;
use hawser_address::IsdAsn;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use x509_cert::certificate::{Certificate, TbsCertificate, Version};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectKeyIdentifier,
};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::{Time, Validity};

use crate::certificate::CertificateKind;
use crate::error::SignError;
use crate::key::Key;
use crate::oid;

/// Length of a serial number in bytes; RFC 5280 allows at most 20, with the first bit clear.
const SERIAL: usize = 16;

/// A certificate with its private key.
pub(crate) struct Holder {
    pub certificate: Certificate,
    pub key: Key,
    /// The key in PEM.
    pub pem: String,
}

impl Holder {
    /// Creates a key and a certificate for it with the common name `name`, valid during `validity`
    /// (Unix seconds) and signed by `issuer`, or self-signed if that is `None`.
    pub fn make(
        kind: CertificateKind,
        isd_as: IsdAsn,
        name: &str,
        validity: RangeInclusive<u64>,
        issuer: Option<&Self>,
    ) -> Result<Self, SignError> {
        let (key, pem) = Key::generate()?;
        // The text form has the last part first (RFC 4514).
        let subject: Name = format!("{}={isd_as},{}={name}", oid::ISD_AS, oid::CN).parse()?;
        let issued_by = issuer.map_or(&subject, |issuer| {
            &issuer.certificate.tbs_certificate.subject
        });
        let issuer_key = issuer.map_or(&key, |issuer| &issuer.key);
        let tbs = TbsCertificate {
            version: Version::V3,
            serial_number: serial()?,
            signature: algorithm(issuer_key.hash.ecdsa),
            issuer: issued_by.clone(),
            validity: Validity {
                not_before: utc(*validity.start())?,
                not_after: utc(*validity.end())?,
            },
            subject,
            subject_public_key_info: public_key(&key)?,
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: Some(extensions(kind, &key, issuer_key)?),
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

/// An algorithm without parameters, such as ECDSA (RFC 5758, section 3.2) and hashes.
pub(crate) fn algorithm(oid: ObjectIdentifier) -> AlgorithmIdentifierOwned {
    AlgorithmIdentifierOwned {
        oid,
        parameters: None,
    }
}

/// RFC 5280, section 4.1.2.5: UTCTime until the year 2049.
pub(crate) fn utc(at: u64) -> der::Result<Time> {
    Ok(Time::UtcTime(UtcTime::from_unix_duration(
        Duration::from_secs(at),
    )?))
}

fn serial() -> Result<SerialNumber, SignError> {
    let mut bytes = [0; SERIAL];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| SignError::Random)?;
    // Makes the number positive and of full length.
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::new(&bytes)?)
}

pub(crate) fn public_key(key: &Key) -> der::Result<SubjectPublicKeyInfoOwned> {
    Ok(SubjectPublicKeyInfoOwned {
        algorithm: AlgorithmIdentifierOwned {
            oid: oid::ID_EC_PUBLIC_KEY,
            parameters: Some(Any::encode_from(&key.curve)?),
        },
        subject_public_key: BitString::from_bytes(key.public())?,
    })
}

/// RFC 5280, section 4.2.1.2, method (1).
fn key_id(key: &Key) -> der::Result<OctetString> {
    let id = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, key.public());
    OctetString::new(id.as_ref())
}

/// SCION CP-PKI, section "Certificate format".
fn extensions(kind: CertificateKind, key: &Key, issuer: &Key) -> der::Result<Vec<Extension>> {
    let (usage, purposes, path_len) = match kind {
        CertificateKind::SensitiveVoting => (None, vec![oid::ID_KP_SENSITIVE], None),
        CertificateKind::RegularVoting => (None, vec![oid::ID_KP_REGULAR], None),
        CertificateKind::Root => (Some(KeyUsages::KeyCertSign), vec![oid::ID_KP_ROOT], Some(1)),
        CertificateKind::Ca => (Some(KeyUsages::KeyCertSign), Vec::new(), Some(0)),
        CertificateKind::As => (
            Some(KeyUsages::DigitalSignature),
            vec![oid::ID_KP_SERVER_AUTH, oid::ID_KP_CLIENT_AUTH],
            None,
        ),
    };
    let mut extensions = Vec::new();
    if let Some(usage) = usage {
        extensions.push(extension(&KeyUsage(usage.into()), true)?);
    }
    if kind != CertificateKind::Ca {
        let purposes = [purposes, vec![oid::ID_KP_TIME_STAMPING]].concat();
        extensions.push(extension(&ExtendedKeyUsage(purposes), false)?);
    }
    if path_len.is_some() {
        let constraints = BasicConstraints {
            ca: true,
            path_len_constraint: path_len,
        };
        extensions.push(extension(&constraints, true)?);
    }
    let id = SubjectKeyIdentifier(key_id(key)?);
    extensions.push(extension(&id, false)?);
    if matches!(kind, CertificateKind::Ca | CertificateKind::As) {
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
