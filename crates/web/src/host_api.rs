//! What the machines of ASes ask for and report, below `/api/host`.
//!
//! As SCIONLab's host API: a machine fetches its configuration (200 with an archive, 204 while
//! nothing is configured, 304 while it has the newest) and reports the version that it runs. A
//! request may wait for a change. Beside it: the segments of the network, and what links carried.

pub(crate) mod archive;
pub(crate) mod configuration;
mod machine;
pub(crate) mod reports;
#[cfg(test)]
mod tests;

pub(crate) use self::machine::name_other_machine;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use hawser_coordinator::{ChangeError, ConfigurationError, Configurations};
use hawser_http::{JsonError, Peer};

use crate::answers::refused;
use crate::app::App;

/// A request whose answer may have private keys in it.
pub(crate) struct Confidential;

impl FromRequestParts<App> for Confidential {
    type Rejection = JsonError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<Peer>();
        match app.may_send_keys(peer) {
            true => Ok(Self),
            false => {
                let reason = "The answer has private keys, and this connection has no TLS: give \
                              the coordinator --tls-cert and --tls-key, or --allow-plain-http";
                Err(JsonError(StatusCode::FORBIDDEN, reason.to_owned()))
            }
        }
    }
}

/// What makes the configurations; a server that only limits links of its machine makes none.
fn configurations(app: &App) -> Result<&Configurations, JsonError> {
    app.configurations().ok_or_else(|| {
        let reason = "this server configures no ASes: `hawser coordinator` does";
        JsonError(StatusCode::NOT_FOUND, reason.to_owned())
    })
}

/// The answer when a configuration cannot be made.
fn failed(error: ConfigurationError) -> JsonError {
    let status = match error {
        ConfigurationError::Change(error) => return refused(error),
        ConfigurationError::Unknown(_) => StatusCode::NOT_FOUND,
        ConfigurationError::Replaced(_) => StatusCode::UNAUTHORIZED,
        ConfigurationError::NoAttachmentPoint(_) | ConfigurationError::NoAs => StatusCode::CONFLICT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    JsonError(status, error.to_string())
}

/// Does what blocks.
async fn blocking<T: Send + 'static>(
    make: impl FnOnce() -> Result<T, ConfigurationError> + Send + 'static,
) -> Result<T, JsonError> {
    let made = tokio::task::spawn_blocking(make).await;
    let made =
        made.map_err(|error| JsonError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    made.map_err(failed)
}

/// The same for a change of the state.
async fn changing<T: Send + 'static>(
    make: impl FnOnce() -> Result<T, ChangeError> + Send + 'static,
) -> Result<T, JsonError> {
    blocking(|| make().map_err(ConfigurationError::from)).await
}
