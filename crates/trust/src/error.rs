//! Errors of reading, and of making, keys, certificates, chains and TRCs.

use std::error::Error;

use sciparse::identifier::isd_asn::IsdAsn;

/// What is wrong with some bytes.
pub(crate) type Reason = Box<dyn Error + Send + Sync>;

/// Why some bytes are not a key, a certificate, a chain or a TRC that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {what}: {reason}")]
pub struct ParseError {
    what: &'static str,
    reason: String,
}

impl ParseError {
    /// Bytes that are not `what`, for a reason.
    pub(crate) fn not(what: &'static str) -> impl FnOnce(Reason) -> Self {
        move |reason| Self {
            what,
            reason: reason.to_string(),
        }
    }
}

/// Why something cannot be signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The system has no random bytes.
    #[error("the system gave no random bytes")]
    Random,
    /// The signer's certificate is not valid.
    #[error("the certificate of AS {0} is not valid yet, or not any more: make a new one")]
    Expired(IsdAsn),
    /// It has no DER form.
    #[error("cannot be encoded: {0}")]
    Encode(String),
}

impl From<der::Error> for SignError {
    fn from(error: der::Error) -> Self {
        Self::Encode(error.to_string())
    }
}
