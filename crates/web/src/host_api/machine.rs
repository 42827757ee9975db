//! The machine that a request comes from.

use axum::extract::{FromRequestParts, Path};
use axum::http::header;
use axum::http::request::Parts;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_coordinator::Configurations;
use hawser_topology::IsdAsn;

use crate::app::App;
use crate::auth::{Refusal, refuse};

/// The machine of an AS, which has shown its secret: as a bearer token, or as SCIONLab's machines
/// do as the password of its name.
pub(crate) struct Machine {
    pub isd_as: IsdAsn,
    pub secret: String,
}

impl FromRequestParts<App> for Machine {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        super::configurations(app)?;
        let name = Path::<String>::from_request_parts(parts, app).await;
        let name = name.map_or_else(|_| String::new(), |Path(name)| name);
        let secret = secret(parts, &name);
        let Some(secret) = secret else {
            let reason = "The machine's secret is needed: Authorization: Bearer SECRET";
            return Err(Refusal::Unauthorized(reason));
        };
        // Without a secret nobody learns which ASes there are.
        let isd_as = Configurations::host_of(&name);
        let isd_as = isd_as.filter(|&isd_as| app.coordinator().is_host(isd_as, &secret));
        let machine = isd_as.map(|isd_as| Self { isd_as, secret });
        machine.ok_or_else(|| refuse(app, parts, "The secret is not that of this machine"))
    }
}

/// The secret in a request of the machine `name`.
fn secret(parts: &Parts, name: &str) -> Option<String> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(BASE64_STANDARD.decode(rest).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    (user == name).then(|| password.to_owned())
}
