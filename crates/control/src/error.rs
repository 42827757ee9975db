//! Errors of lookups.

use connectrpc::ConnectError;
use hawser_topology::IsdAsn;

/// A lookup without an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("{0} is not one AS: ask for an AS such as 1-ff00:0:110")]
    Wildcard(IsdAsn),
    #[error("no AS {0} in this network: see network.json for those there are")]
    Unknown(IsdAsn),
    #[error("paths and segments start in the AS of this service, {local}, not in {asked}")]
    Foreign { local: IsdAsn, asked: IsdAsn },
    #[error("segments cannot be signed: {0}")]
    Unsigned(String),
    #[error("the network cannot be read: {0}")]
    NoNetwork(String),
}

impl From<LookupError> for ConnectError {
    fn from(error: LookupError) -> Self {
        let message = error.to_string();
        match error {
            LookupError::Unknown(_) => Self::not_found(message),
            LookupError::Unsigned(_) | LookupError::NoNetwork(_) => Self::internal(message),
            LookupError::Wildcard(_) | LookupError::Foreign { .. } => {
                Self::invalid_argument(message)
            }
        }
    }
}
