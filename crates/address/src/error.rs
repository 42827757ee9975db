//! What is wrong with the text of an identifier.

use thiserror::Error;

/// An error of parsing an ISD, an AS or an ISD-AS.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentifierError {
    /// This is not an ISD.
    #[error("`{0}` is not an ISD: it is a number from 0 to 65535")]
    Isd(String),
    /// This is not an AS.
    #[error("`{0}` is not an AS: write it as in ff00:0:110, a BGP AS as a number below 2^32")]
    Asn(String),
    /// This is not two parts with one dash between them.
    #[error("`{0}` is not an ISD-AS: write it as in 1-ff00:0:110")]
    IsdAsn(String),
}
