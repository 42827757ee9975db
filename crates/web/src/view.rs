//! The state as it is answered.

use hawser_coordinator::describe::{Address, Device, IsdAs, Name};
use hawser_coordinator::{
    AsLink, AttachmentPoint, CoreLink, Emulation, Host, Limits, Link, LinkEnd, Place, Role, State,
    User, UserAs,
};
use hawser_topology::IsdAsn;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;

/// A user, as others see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct UserName<'a> {
    id: u64,
    name: &'a str,
}

/// A user, as administrators see it. Nobody sees tokens.
#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub(crate) struct UserView<'a> {
    id: u64,
    name: &'a str,
    role: Role,
    has_token: bool,
}

impl<'a> UserView<'a> {
    pub fn new(user: &'a User) -> Self {
        Self {
            id: user.id.0,
            name: &user.name,
            role: user.role,
            has_token: user.token.is_some(),
        }
    }
}

/// One end of a link.
#[derive(Serialize, ToSchema)]
#[schema(as = LabelledEnd)]
struct EndView<'a> {
    label: &'a str,
    #[serde(flatten)]
    end: LinkEnd,
}

/// A link.
#[derive(Serialize, ToSchema)]
#[schema(as = Link)]
pub(crate) struct LinkView<'a> {
    id: u64,
    attachment_point: EndView<'a>,
    user_as: EndView<'a>,
    #[schema(required)]
    owner: Option<UserName<'a>>,
    /// The network interface, if it is not that of the machine's route.
    #[schema(required)]
    device: Option<&'a str>,
    /// Longest wait of a packet in the queue of each limit, in microseconds, if it is not the usual one.
    #[schema(required)]
    queue_us: Option<u64>,
    #[serde(flatten)]
    emulation: Emulation,
    maximum: Limits,
    limit: Limits,
    /// Whether the attachment point runs what is wanted.
    in_force: bool,
    /// Why it does not, if that is known.
    #[schema(required)]
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
            queue_us: link.queue_us,
            emulation: link.emulation,
            maximum: link.maximum,
            limit: link.limit,
            in_force: error.is_none()
                && host.is_some_and(|host| host.deployed == Some(host.version)),
            error,
        }
    }
}

/// The machine of an AS.
#[derive(Serialize, ToSchema)]
#[schema(as = Host)]
struct HostView {
    /// The version of its configuration.
    version: u64,
    /// The version that it runs.
    #[schema(required)]
    deployed: Option<u64>,
    /// Since when, in milliseconds since 1970.
    #[schema(required)]
    deployed_at: Option<u64>,
    /// When it last asked, in milliseconds since 1970.
    #[schema(required)]
    last_seen: Option<u64>,
    has_secret: bool,
    /// Why the version is not in force, if that is known.
    #[schema(required)]
    error: Option<String>,
    /// The addresses of the machines that run the AS at once, if they are several: each but one is
    /// to be stopped.
    #[schema(value_type = Vec<Address>)]
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

/// What attachment points and user ASes have in common.
#[derive(Serialize, ToSchema)]
#[schema(as = As)]
struct AsView<'a> {
    #[schema(value_type = IsdAs)]
    isd_as: IsdAsn,
    #[schema(value_type = Name)]
    label: &'a str,
    #[schema(required)]
    place: Option<Place>,
    /// At most one IPv4 and one IPv6 address.
    #[schema(value_type = Vec<Address>, max_items = 2)]
    addresses: &'a [std::net::IpAddr],
    #[schema(minimum = 1024, maximum = 65535)]
    first_port: u16,
    host: HostView,
}

/// An attachment point.
#[derive(Serialize, ToSchema)]
#[schema(as = AttachmentPoint)]
pub(crate) struct AttachmentPointView<'a> {
    #[serde(flatten)]
    of_as: AsView<'a>,
    /// The network interface of its links, if it is not that of the machine's route.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Device>)]
    device: Option<&'a str>,
}

impl<'a> AttachmentPointView<'a> {
    pub fn new(app: &App, one: &'a AttachmentPoint) -> Self {
        Self {
            of_as: AsView {
                isd_as: one.isd_as,
                label: &one.label,
                place: one.place,
                addresses: &one.addresses,
                first_port: one.first_port,
                host: HostView::new(app, one.isd_as, &one.host),
            },
            device: one.device.as_deref(),
        }
    }
}

/// A user AS.
#[derive(Serialize, ToSchema)]
#[schema(as = UserAs)]
pub(crate) struct UserAsView<'a> {
    #[serde(flatten)]
    of_as: AsView<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<UserName<'a>>,
}

impl<'a> UserAsView<'a> {
    pub fn new(app: &App, state: &'a State, one: &'a UserAs) -> Self {
        let owner = one.owner.and_then(|id| state.users.get(&id));
        Self {
            of_as: AsView {
                isd_as: one.isd_as,
                label: &one.label,
                place: one.place,
                addresses: &one.addresses,
                first_port: one.first_port,
                host: HostView::new(app, one.isd_as, &one.host),
            },
            owner: owner.map(|user| UserName {
                id: user.id.0,
                name: &user.name,
            }),
        }
    }
}

/// All links, and the revision of the state that they are of.
#[derive(Serialize, ToSchema)]
#[schema(as = Links)]
pub(crate) struct LinksView<'a> {
    revision: u64,
    links: Vec<LinkView<'a>>,
    core_links: Vec<&'a CoreLink>,
    as_links: Vec<&'a AsLink>,
}

impl<'a> LinksView<'a> {
    pub fn new(app: &App, state: &'a State, revision: u64) -> Self {
        let links = state.links.values();
        Self {
            revision,
            links: links.map(|link| LinkView::new(app, state, link)).collect(),
            core_links: state.core_links.values().collect(),
            as_links: state.as_links.values().collect(),
        }
    }
}
