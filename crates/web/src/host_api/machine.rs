//! The machine that a request comes from.

use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_coordinator::Configurations;
use hawser_http::{AuthError, Peer};
use hawser_topology::IsdAsn;

use crate::app::App;
use crate::auth::Refusal;

/// The header with the number that a machine's program has chosen when it started, in hexadecimal.
const INSTANCE: &str = "hawser-instance";
/// The header of answers with the address of another machine that runs the same AS.
const OTHER_MACHINE: &str = "hawser-other-machine";

/// Says in answers of the host API if another machine runs the same AS.
pub(crate) async fn name_other_machine(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let instance = instance(request.headers());
    let path = request.uri().path().strip_prefix("/api/host/");
    let name = path.and_then(|path| path.split('/').next());
    let asks = name.and_then(Configurations::host_of).zip(instance);
    let mut answer = next.run(request).await;
    // Who has not shown the secret learns nothing.
    let is_known = answer.status().is_success() || answer.status() == StatusCode::NOT_MODIFIED;
    if let Some((isd_as, instance)) = asks.filter(|_| is_known)
        && let Some(other) = app.coordinator().other_machine(isd_as, instance)
        && let Ok(other) = HeaderValue::try_from(other.to_string())
    {
        answer.headers_mut().insert(OTHER_MACHINE, other);
    }
    answer
}

/// The number that the program of a machine has chosen.
fn instance(headers: &HeaderMap) -> Option<u64> {
    u64::from_str_radix(headers.get(INSTANCE)?.to_str().ok()?, 16).ok()
}

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
            return Err(AuthError::Refused(reason.to_owned()).into());
        };
        // Without a secret nobody learns which ASes there are.
        let isd_as = Configurations::host_of(&name);
        let isd_as = isd_as.filter(|&isd_as| app.coordinator().is_host(isd_as, &secret));
        let machine = isd_as.map(|isd_as| Self { isd_as, secret });
        if let (Some(machine), Some(instance), Some(peer)) = (
            &machine,
            instance(&parts.headers),
            parts.extensions.get::<Peer>(),
        ) {
            // Now, and not when it is answered: it may have ended by then.
            let address = app.client(peer.address, &parts.headers).to_canonical();
            let coordinator = app.coordinator();
            coordinator.note_instance(machine.isd_as, instance, address);
        }
        let reason = "The secret is not that of this machine";
        machine.ok_or_else(|| AuthError::wrong(app, parts, reason).into())
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
