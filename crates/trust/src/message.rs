//! Signed messages (`proto.crypto.v1.SignedMessage`).

use hawser_proto::Message;
use hawser_proto::control_plane::VerificationKeyID;
use hawser_proto::crypto::{Header, HeaderAndBodyInternal, SignedMessage};
use hawser_proto::well_known::Timestamp;

use crate::certificate::Certificate;
use crate::ecdsa::Hash;
use crate::error::{BoxError, SignError};
use crate::key::Key;

/// A decoded signed message whose signature has not been checked.
pub(crate) struct Opened {
    pub key: VerificationKeyID,
    pub body: Vec<u8>,
    hash: &'static Hash,
    associated: usize,
}

/// Decodes a message. Fails if a part cannot be read.
pub(crate) fn open(message: &SignedMessage) -> Result<Opened, BoxError> {
    let parts = HeaderAndBodyInternal::decode(message.header_and_body.as_slice())?;
    let header = Header::decode(parts.header.as_slice())?;
    let hash = Hash::find(|hash| header.signature_algorithm == hash.message as i32);
    Ok(Opened {
        key: VerificationKeyID::decode(header.verification_key_id.as_slice())?,
        body: parts.body,
        hash: hash.ok_or("the signature algorithm is unknown")?,
        associated: usize::try_from(header.associated_data_length)
            .map_err(|_| "the associated data have a negative length")?,
    })
}

/// Whether the key of `certificate` signed a message with `associated`.
pub(crate) fn is_signed_by(
    message: &SignedMessage,
    opened: &Opened,
    certificate: &Certificate,
    associated: &[u8],
) -> bool {
    let input = [&message.header_and_body, associated].concat();
    let key = &certificate.key;
    associated.len() == opened.associated && key.verifies(opened.hash, &input, &message.signature)
}

/// Signs a body and the associated data `associated`, which the message does not contain, with `at`
/// (Unix seconds) as the time of signing.
pub(crate) fn sign(
    key: &Key,
    key_id: &VerificationKeyID,
    body: Vec<u8>,
    associated: &[u8],
    at: u64,
) -> Result<SignedMessage, SignError> {
    let too_long = |_| SignError::Encode("the associated data are too long".to_owned());
    let header = Header {
        signature_algorithm: key.hash.message.into(),
        verification_key_id: key_id.encode_to_vec(),
        timestamp: Some(Timestamp::from_unix_secs(at)),
        associated_data_length: i32::try_from(associated.len()).map_err(too_long)?,
    };
    let parts = HeaderAndBodyInternal {
        header: header.encode_to_vec(),
        body,
    };
    let header_and_body = parts.encode_to_vec();
    Ok(SignedMessage {
        signature: key.sign(&[&header_and_body, associated].concat())?,
        header_and_body,
    })
}
