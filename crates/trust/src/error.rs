//! Errors of reading and creating keys, certificates, chains and TRCs.

use std::error::Error;

use hawser_address::IsdAsn;

/// The defect of some bytes.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why some bytes are not a valid key, certificate, chain or TRC.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not {what}: {reason}")]
pub struct ParseError {
    what: &'static str,
    reason: String,
}

impl ParseError {
    /// Returns a function that makes the error that bytes are not `what`, for `map_err`.
    pub(crate) fn not(what: &'static str) -> impl FnOnce(BoxError) -> Self {
        move |reason| Self {
            what,
            reason: reason.to_string(),
        }
    }
}

/// An error of signing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The system has no random bytes.
    #[error("the system gave no random bytes")]
    Random,
    /// The signer's certificate is not valid.
    #[error("the certificate of AS {0} is not valid yet, or not any more: make a new one")]
    Expired(IsdAsn),
    /// The structure cannot be encoded in DER.
    #[error("cannot be encoded: {0}")]
    Encode(String),
}

impl From<der::Error> for SignError {
    fn from(error: der::Error) -> Self {
        Self::Encode(error.to_string())
    }
}
