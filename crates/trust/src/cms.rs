//! The part of CMS signed data (RFC 5652) that TRCs use.
//!
//! The structures are defined here because signatures cover the signed attributes in the order of
//! the file, and older tools did not sort them: with a parser that sorts the attributes, such
//! signatures cannot be verified.

use der::asn1::{Any, ObjectIdentifier, OctetString, SetOfVec};
use der::{Decode, Encode, EncodeValue, Sequence, Tag, TagNumber, Tagged};
use x509_cert::attr::Attribute;
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;

use crate::certificate::Certificate;
use crate::ecdsa::Hash;
use crate::error::{BoxError, SignError};
use crate::issue::{Holder, algorithm, utc};
use crate::oid;

/// RFC 5652, sections 3 and 5.2: bytes of a type, in signed data an `OCTET STRING`.
#[derive(Sequence)]
struct ContentInfo {
    content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    content: Any,
}

/// RFC 5652, section 5.1.
#[derive(Sequence)]
#[asn1(tag_mode = "IMPLICIT")]
struct SignedData {
    version: u8,
    digest_algorithms: SetOfVec<AlgorithmIdentifierOwned>,
    content: ContentInfo,
    #[asn1(context_specific = "0", constructed = "true", optional = "true")]
    certificates: Option<SetOfVec<Any>>,
    #[asn1(context_specific = "1", constructed = "true", optional = "true")]
    revocations: Option<SetOfVec<Any>>,
    /// Each a [`SignerInfo`].
    signers: SetOfVec<Any>,
}

/// RFC 5652, section 5.3; TRCs always have signed attributes.
#[derive(Sequence)]
#[asn1(tag_mode = "IMPLICIT")]
struct SignerInfo {
    version: u8,
    signer: IssuerAndSerial,
    digest_algorithm: AlgorithmIdentifierOwned,
    /// `[0] IMPLICIT SET OF Attribute`, in the order of the file.
    signed: Any,
    signature_algorithm: AlgorithmIdentifierOwned,
    signature: OctetString,
    #[asn1(context_specific = "1", constructed = "true", optional = "true")]
    unsigned: Option<SetOfVec<Any>>,
}

/// RFC 5652, section 10.2.4.
#[derive(Debug, Clone, Sequence)]
struct IssuerAndSerial {
    issuer: Name,
    serial: SerialNumber,
}

/// The tag of the signed attributes in the file.
const SIGNED: Tag = Tag::ContextSpecific {
    constructed: true,
    number: TagNumber::N0,
};

/// Signs `content` with each of `signers`, with `at` (Unix seconds) as the time of signing.
pub(crate) fn sign<'a>(
    content: &[u8],
    signers: impl IntoIterator<Item = &'a Holder>,
    at: u64,
) -> Result<Vec<u8>, SignError> {
    let mut algorithms = SetOfVec::new();
    let mut infos = SetOfVec::new();
    for signer in signers {
        let info = info(content, signer, at)?;
        if !algorithms.iter().any(|a| *a == info.digest_algorithm) {
            algorithms.insert(info.digest_algorithm.clone())?;
        }
        infos.insert(Any::encode_from(&info)?)?;
    }
    let data = SignedData {
        version: 1,
        digest_algorithms: algorithms,
        content: ContentInfo {
            content_type: oid::ID_DATA,
            content: Any::encode_from(&OctetString::new(content)?)?,
        },
        certificates: None,
        revocations: None,
        signers: infos,
    };
    let info = ContentInfo {
        content_type: oid::ID_SIGNED_DATA,
        content: Any::encode_from(&data)?,
    };
    Ok(info.to_der()?)
}

/// Signed data whose signatures have not been checked.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub content: Vec<u8>,
    signatures: Vec<Signature>,
}

#[derive(Debug, Clone)]
struct Signature {
    signer: IssuerAndSerial,
    /// The hash function for the content and for the signed attributes.
    hash: &'static Hash,
    /// The signed digest of the content.
    digest: OctetString,
    /// The signed attributes.
    attributes: Vec<u8>,
    signature: OctetString,
}

impl Signed {
    /// Reads DER.
    pub fn from_der(raw: &[u8]) -> Result<Self, BoxError> {
        let info = ContentInfo::from_der(raw)?;
        if info.content_type != oid::ID_SIGNED_DATA {
            return Err("it is not signed data".into());
        }
        let data: SignedData = info.content.decode_as()?;
        if data.version != 1 || data.content.content_type != oid::ID_DATA {
            return Err("the version of its signed data is not 1, or its content not data".into());
        }
        let signatures = data.signers.iter().map(Signature::new);
        let content: OctetString = data.content.content.decode_as()?;
        Ok(Self {
            signatures: signatures.collect::<Result<_, _>>()?,
            content: content.into_bytes(),
        })
    }

    /// Whether there are signatures, and all are of this content. Says nothing about whose they are.
    pub fn is_of_content(&self) -> bool {
        let mut signatures = self.signatures.iter();
        !self.signatures.is_empty()
            && signatures.all(|signature| {
                let digest = signature.hash.digest(&self.content);
                signature.digest.as_bytes() == digest.as_ref()
            })
    }

    /// Whether the key of `certificate` made one of the signatures.
    pub fn is_signed_by(&self, certificate: &Certificate) -> bool {
        let tbs = &certificate.tbs;
        self.signatures.iter().any(|signature| {
            let digest = signature.hash.digest(&self.content);
            let made = signature.signature.as_bytes();
            signature.signer.serial == tbs.serial_number
                && signature.signer.issuer == tbs.issuer
                && signature.digest.as_bytes() == digest.as_ref()
                && certificate
                    .key
                    .verifies(signature.hash, &signature.attributes, made)
        })
    }
}

impl Signature {
    fn new(info: &Any) -> Result<Self, BoxError> {
        let info: SignerInfo = info.decode_as()?;
        if info.version != 1 || info.signed.tag() != SIGNED {
            return Err("a signature is not of version 1 with signed attributes".into());
        }
        let hash = Hash::find(|hash| hash.digest == info.digest_algorithm.oid)
            .ok_or("a digest is not SHA-256, 384 or 512")?;
        if info.signature_algorithm.oid != hash.ecdsa {
            return Err("a signature is not by ECDSA with the hash of the digest".into());
        }
        // RFC 5652, section 5.4: signed with the tag of a SET.
        let attributes = Any::new(Tag::Set, info.signed.value())?.to_der()?;
        let set = SetOfVec::<Attribute>::from_der(&attributes)?;
        let only = |oid| {
            let mut found = set.iter().filter(|attribute| attribute.oid == oid);
            match (found.next().map(|a| a.values.as_slice()), found.next()) {
                (Some([value]), None) => Ok(value),
                _ => Err("a signature lacks its type or its digest"),
            }
        };
        if only(oid::ID_CONTENT_TYPE)?.decode_as::<ObjectIdentifier>()? != oid::ID_DATA {
            return Err("a signature is of another type".into());
        }
        Ok(Self {
            signer: info.signer,
            hash,
            digest: only(oid::ID_MESSAGE_DIGEST)?.decode_as()?,
            attributes,
            signature: info.signature,
        })
    }
}

fn info(content: &[u8], signer: &Holder, at: u64) -> Result<SignerInfo, SignError> {
    let hash = signer.key.hash;
    let digest = OctetString::new(hash.digest(content).as_ref())?;
    let attributes: SetOfVec<Attribute> = SetOfVec::try_from(vec![
        attribute(oid::ID_CONTENT_TYPE, &oid::ID_DATA)?,
        attribute(oid::ID_SIGNING_TIME, &utc(at)?)?,
        attribute(oid::ID_MESSAGE_DIGEST, &digest)?,
    ])?;
    // RFC 5652, section 5.4: signed with the tag of a SET.
    let attributes = attributes.to_der()?;
    let signature = signer.key.sign(&attributes)?;
    let certificate = &signer.certificate.tbs_certificate;
    Ok(SignerInfo {
        version: 1,
        signer: IssuerAndSerial {
            issuer: certificate.issuer.clone(),
            serial: certificate.serial_number.clone(),
        },
        digest_algorithm: algorithm(hash.digest),
        signed: Any::new(SIGNED, Any::from_der(&attributes)?.value())?,
        signature_algorithm: algorithm(hash.ecdsa),
        signature: OctetString::new(signature)?,
        unsigned: None,
    })
}

fn attribute<T: EncodeValue + Tagged>(oid: ObjectIdentifier, value: &T) -> der::Result<Attribute> {
    Ok(Attribute {
        oid,
        values: SetOfVec::try_from(vec![Any::encode_from(value)?])?,
    })
}
