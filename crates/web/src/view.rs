//! The state as it is answered.

use hawser_coordinator::{
    AttachmentPoint, CoreLink, Host, Limits, Link, LinkEnd, Place, State, User, UserAs,
};
use hawser_topology::IsdAsn;
use serde::Serialize;

use crate::app::App;

/// A user, as others see it.
#[derive(Serialize)]
pub(crate) struct UserName<'a> {
    id: u64,
    name: &'a str,
}

/// A user, as administrators see it. Nobody sees tokens.
#[derive(Serialize)]
pub(crate) struct UserView<'a> {
    id: u64,
    name: &'a str,
    role: &'static str,
    has_token: bool,
}

impl<'a> UserView<'a> {
    pub fn new(user: &'a User) -> Self {
        Self {
            id: user.id.0,
            name: &user.name,
            role: user.role.name(),
            has_token: user.token.is_some(),
        }
    }
}

/// One end of a link.
#[derive(Serialize)]
struct EndView<'a> {
    label: &'a str,
    #[serde(flatten)]
    end: LinkEnd,
}

/// A link.
#[derive(Serialize)]
pub(crate) struct LinkView<'a> {
    id: u64,
    attachment_point: EndView<'a>,
    user_as: EndView<'a>,
    owner: Option<UserName<'a>>,
    device: Option<&'a str>,
    maximum: Limits,
    limit: Limits,
    /// Whether the attachment point runs what is wanted.
    in_force: bool,
    /// Why it does not, if that is known.
    error: Option<String>,
}

impl<'a> LinkView<'a> {
    pub fn new(app: &App, state: &'a State, link: &'a Link) -> Self {
        let at = link.attachment_point.isd_as;
        let attachment_point = state.attachment_points.get(&at);
        let user_as = state.user_ases.get(&link.user_as.isd_as);
        let owner = state.owner(link).and_then(|id| state.users.get(&id));
        let host = attachment_point.map(|one| &one.host);
        let deployment = app.coordinator().deployment(at);
        let error = deployment.error_of(link.id).map(str::to_owned);
        Self {
            id: link.id.0,
            attachment_point: EndView {
                label: attachment_point.map_or("", |one| &one.label),
                end: link.attachment_point,
            },
            user_as: EndView {
                label: user_as.map_or("", |one| &one.label),
                end: link.user_as,
            },
            owner: owner.map(|user| UserName {
                id: user.id.0,
                name: &user.name,
            }),
            device: link.device.as_deref(),
            maximum: link.maximum,
            limit: link.limit,
            in_force: error.is_none()
                && host.is_some_and(|host| host.deployed == Some(host.version)),
            error,
        }
    }
}

/// The machine of an AS.
#[derive(Serialize)]
struct HostView {
    version: u64,
    deployed: Option<u64>,
    deployed_at: Option<u64>,
    last_seen: Option<u64>,
    has_secret: bool,
    error: Option<String>,
    /// The addresses of the machines that run the AS at once, if they are several.
    duplicates: Vec<std::net::IpAddr>,
}

impl HostView {
    fn new(app: &App, isd_as: IsdAsn, host: &Host) -> Self {
        let deployment = app.coordinator().deployment(isd_as);
        Self {
            version: host.version,
            deployed: host.deployed,
            deployed_at: host.deployed_at,
            last_seen: deployment.last_seen,
            has_secret: host.secret.is_some(),
            error: deployment.error(),
            duplicates: app.coordinator().duplicates(isd_as),
        }
    }
}

/// An attachment point or a user AS.
#[derive(Serialize)]
pub(crate) struct AsView<'a> {
    isd_as: IsdAsn,
    label: &'a str,
    place: Option<Place>,
    addresses: &'a [std::net::IpAddr],
    first_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<UserName<'a>>,
    host: HostView,
}

impl<'a> AsView<'a> {
    pub fn attachment_point(app: &App, one: &'a AttachmentPoint) -> Self {
        Self {
            isd_as: one.isd_as,
            label: &one.label,
            place: one.place,
            addresses: &one.addresses,
            first_port: one.first_port,
            device: one.device.as_deref(),
            owner: None,
            host: HostView::new(app, one.isd_as, &one.host),
        }
    }

    pub fn user_as(app: &App, state: &'a State, one: &'a UserAs) -> Self {
        let owner = one.owner.and_then(|id| state.users.get(&id));
        Self {
            isd_as: one.isd_as,
            label: &one.label,
            place: one.place,
            addresses: &one.addresses,
            first_port: one.first_port,
            device: None,
            owner: owner.map(|user| UserName {
                id: user.id.0,
                name: &user.name,
            }),
            host: HostView::new(app, one.isd_as, &one.host),
        }
    }
}

/// All links, and the revision of the state that they are of.
#[derive(Serialize)]
pub(crate) struct LinksView<'a> {
    revision: u64,
    links: Vec<LinkView<'a>>,
    core_links: Vec<&'a CoreLink>,
}

impl<'a> LinksView<'a> {
    pub fn new(app: &App, state: &'a State, revision: u64) -> Self {
        let links = state.links.values();
        Self {
            revision,
            links: links.map(|link| LinkView::new(app, state, link)).collect(),
            core_links: state.core_links.values().collect(),
        }
    }
}
