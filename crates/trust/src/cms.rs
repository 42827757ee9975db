//! Signed data in CMS (RFC 5652), as far as TRCs use it.
//!
//! The structures are written out here because signatures cover the signed attributes in the order
//! in which they stand in the file, which older tools did not sort; a parser that sorts them cannot
//! check such a signature.

use der::asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef, SetOfVec};
use der::{Decode, Encode, Sequence, Tag, TagNumber, Tagged};
use ring::digest;
use x509_cert::attr::Attribute;
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;

use crate::certificate::Certificate;
use crate::ecdsa::Hash;
use crate::issue::{Holder, SignError, signature_algorithm, utc};
use crate::key::Signs;
use crate::oid;

/// RFC 5652, section 3.
#[derive(Sequence)]
pub(crate) struct ContentInfo {
    pub content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub content: Any,
}

/// RFC 5652, section 5.1.
#[derive(Sequence)]
pub(crate) struct SignedData {
    pub version: u8,
    pub digest_algorithms: SetOfVec<AlgorithmIdentifierOwned>,
    pub content: EncapsulatedContent,
    #[asn1(
        context_specific = "0",
        tag_mode = "IMPLICIT",
        constructed = "true",
        optional = "true"
    )]
    pub certificates: Option<SetOfVec<Any>>,
    #[asn1(
        context_specific = "1",
        tag_mode = "IMPLICIT",
        constructed = "true",
        optional = "true"
    )]
    pub revocations: Option<SetOfVec<Any>>,
    /// Each a [`SignerInfo`].
    pub signers: SetOfVec<Any>,
}

/// RFC 5652, section 5.2.
#[derive(Sequence)]
pub(crate) struct EncapsulatedContent {
    pub content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    pub content: OctetString,
}

/// RFC 5652, section 5.3; TRCs have signed attributes always.
#[derive(Sequence)]
pub(crate) struct SignerInfo {
    pub version: u8,
    pub signer: IssuerAndSerial,
    pub digest_algorithm: AlgorithmIdentifierOwned,
    /// `[0] IMPLICIT SET OF Attribute`, in the order of the file.
    pub signed: Any,
    pub signature_algorithm: AlgorithmIdentifierOwned,
    pub signature: OctetString,
    #[asn1(
        context_specific = "1",
        tag_mode = "IMPLICIT",
        constructed = "true",
        optional = "true"
    )]
    pub unsigned: Option<SetOfVec<Any>>,
}

/// RFC 5652, section 10.2.4.
#[derive(Sequence)]
pub(crate) struct IssuerAndSerial {
    pub issuer: Name,
    pub serial: SerialNumber,
}

/// The tag of the signed attributes in the file.
const SIGNED: Tag = Tag::ContextSpecific {
    constructed: true,
    number: TagNumber::N0,
};

/// Signs `content` with each of `signers`, at a Unix second.
pub(crate) fn sign(content: &[u8], signers: &[&Holder], at: u64) -> Result<Vec<u8>, SignError> {
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
        content: EncapsulatedContent {
            content_type: oid::DATA,
            content: OctetString::new(content)?,
        },
        certificates: None,
        revocations: None,
        signers: infos,
    };
    let info = ContentInfo {
        content_type: oid::SIGNED_DATA,
        content: Any::encode_from(&data)?,
    };
    Ok(info.to_der()?)
}

/// Why something is not signed data as TRCs have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignedError {
    /// Not CMS.
    #[error("not signed data in CMS: {0}")]
    Format(String),
    /// CMS of another kind or version.
    #[error("CMS of another kind: {0}")]
    Kind(&'static str),
}

impl From<der::Error> for SignedError {
    fn from(error: der::Error) -> Self {
        Self::Format(error.to_string())
    }
}

/// Signed data, its signatures not yet checked.
#[derive(Debug, Clone)]
pub(crate) struct Signed {
    pub content: Vec<u8>,
    signatures: Vec<Signature>,
}

#[derive(Debug, Clone)]
struct Signature {
    issuer: Name,
    serial: SerialNumber,
    /// Of the content, and of the signed attributes.
    hash: Hash,
    /// The digest of the content that is signed.
    digest: Vec<u8>,
    /// What the signature is made of: the signed attributes.
    attributes: Vec<u8>,
    signature: Vec<u8>,
}

impl Signed {
    /// Reads DER.
    pub fn from_der(raw: &[u8]) -> Result<Self, SignedError> {
        let kind = |reason| Err(SignedError::Kind(reason));
        let info = ContentInfo::from_der(raw)?;
        if info.content_type != oid::SIGNED_DATA {
            return kind("it is not signed data");
        }
        let data: SignedData = info.content.decode_as()?;
        if data.version != 1 || data.content.content_type != oid::DATA {
            return kind("its version is not 1, or its content not data");
        }
        let signatures = data.signers.iter().map(Signature::new);
        Ok(Self {
            signatures: signatures.collect::<Result<_, _>>()?,
            content: data.content.content.as_bytes().to_vec(),
        })
    }

    /// Whether the key of `certificate` made one of the signatures.
    pub fn is_signed_by(&self, certificate: &Certificate) -> bool {
        let tbs = certificate.tbs();
        self.signatures.iter().any(|signature| {
            signature.serial == tbs.serial_number
                && signature.issuer == tbs.issuer
                && signature.hash.digest(&self.content).as_ref() == signature.digest
                && certificate.key().verifies(
                    signature.hash,
                    &signature.attributes,
                    &signature.signature,
                )
        })
    }
}

impl Signature {
    fn new(info: &Any) -> Result<Self, SignedError> {
        let kind = SignedError::Kind;
        let info: SignerInfo = info.decode_as()?;
        if info.version != 1 || info.signed.tag() != SIGNED {
            return Err(kind(
                "a signature is not of version 1 with signed attributes",
            ));
        }
        let hash = Hash::of_digest(&info.digest_algorithm);
        let hash = hash.ok_or(kind("a digest is not SHA-256, 384 or 512"))?;
        if Hash::of_signature(&info.signature_algorithm) != Some(hash) {
            return Err(kind(
                "a signature is not by ECDSA with the hash of the digest",
            ));
        }
        // RFC 5652, section 5.4: signed with the tag of a SET.
        let attributes = Any::new(Tag::Set, info.signed.value())?.to_der()?;
        let set = SetOfVec::<Attribute>::from_der(&attributes)?;
        let only = |oid| {
            let mut found = set.iter().filter(|attribute| attribute.oid == oid);
            match (found.next().map(|a| a.values.as_slice()), found.next()) {
                (Some([value]), None) => Ok(value),
                _ => Err(kind("a signature lacks its type or its digest")),
            }
        };
        if only(oid::CONTENT_TYPE)?.decode_as::<ObjectIdentifier>()? != oid::DATA {
            return Err(kind("a signature is of another type"));
        }
        let digest: OctetString = only(oid::MESSAGE_DIGEST)?.decode_as()?;
        Ok(Self {
            issuer: info.signer.issuer,
            serial: info.signer.serial,
            hash,
            digest: digest.as_bytes().to_vec(),
            attributes,
            signature: info.signature.as_bytes().to_vec(),
        })
    }
}

fn info(content: &[u8], signer: &Holder, at: u64) -> Result<SignerInfo, SignError> {
    let (digest_oid, hash) = match signer.key.signs {
        Signs::P256 => (oid::SHA256, &digest::SHA256),
        Signs::P384 => (oid::SHA384, &digest::SHA384),
    };
    let digest = digest::digest(hash, content);
    let attributes: SetOfVec<Attribute> = SetOfVec::try_from(vec![
        attribute(oid::CONTENT_TYPE, &oid::DATA)?,
        attribute(oid::SIGNING_TIME, &utc(at)?)?,
        attribute(oid::MESSAGE_DIGEST, &OctetStringRef::new(digest.as_ref())?)?,
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
        digest_algorithm: AlgorithmIdentifierOwned {
            oid: digest_oid,
            parameters: None,
        },
        signed: Any::new(SIGNED, Any::from_der(&attributes)?.value())?,
        signature_algorithm: signature_algorithm(signer.key.signs),
        signature: OctetString::new(signature)?,
        unsigned: None,
    })
}

fn attribute<T: Encode + Tagged + der::EncodeValue>(
    oid: ObjectIdentifier,
    value: &T,
) -> der::Result<Attribute> {
    Ok(Attribute {
        oid,
        values: SetOfVec::try_from(vec![Any::encode_from(value)?])?,
    })
}
