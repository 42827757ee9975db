mod as_links;
mod emulation;

use std::fs;

use hawser_bundle::{Role as AsRole, ServiceChange};
use hawser_limit::Direction;
use hawser_topology::{AsTopology, LinkTo};
use hawser_trust::{Signer, Store};

use super::*;
use crate::coordinator::{NewAttachmentPoint, NewCoreLink, NewLink, NewUserAs};
use crate::limits::Limits;
use crate::link::{Link, LinkEnd};
use crate::user::{Role, UserId};

const AP: [&str; 2] = ["1-ff00:0:110", "1-ff00:0:120"];
const USER: [&str; 2] = ["1-ff00:0:1", "1-ff00:0:2"];

fn ia(text: &str) -> IsdAsn {
    text.parse().unwrap()
}

fn access() -> Access {
    Access {
        url: "https://coordinator.example".to_owned(),
        ca: None,
    }
}

/// A network of two attachment points, and a user AS of its own user at each.
struct Bed {
    folder: tempfile::TempDir,
    configurations: Configurations,
    users: Vec<UserId>,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let coordinator = Coordinator::open(folder.path()).unwrap();
        let path = folder.path();
        let configurations = Configurations::open(coordinator, path, access()).unwrap();
        let mut bed = Self {
            folder,
            configurations,
            users: Vec::new(),
        };
        let program = Actor::program();
        for (at, isd_as) in AP.into_iter().enumerate() {
            bed.add_attachment_point(isd_as, &format!("192.0.2.{}", at + 1));
        }
        let ends = AP.map(ia);
        bed.coordinator()
            .add_core_link(&program, &NewCoreLink::new(ends))
            .unwrap();
        for (at, isd_as) in USER.into_iter().enumerate() {
            let added = bed.coordinator().add_user(&program, isd_as, Role::User);
            let owner = Some(added.unwrap().0.id);
            bed.users.extend(owner);
            let new = NewUserAs {
                isd_as: ia(isd_as),
                owner,
                label: format!("user {at}"),
                place: None,
                addresses: vec![format!("198.51.100.{}", at + 1).parse().unwrap()],
                first_port: 50000,
            };
            bed.coordinator().add_user_as(&program, new).unwrap();
            bed.link(AP[at], isd_as);
        }
        bed
    }

    fn coordinator(&self) -> &Coordinator {
        self.configurations.coordinator()
    }

    fn add_attachment_point(&self, isd_as: &str, address: &str) {
        let new = NewAttachmentPoint {
            isd_as: ia(isd_as),
            label: "attachment point".to_owned(),
            place: None,
            addresses: vec![address.parse().unwrap()],
            first_port: 50000,
            device: Some("eth7".to_owned()),
        };
        let program = Actor::program();
        self.coordinator()
            .add_attachment_point(&program, new)
            .unwrap();
    }

    fn link(&self, attachment_point: &str, user_as: &str) -> Link {
        let new = NewLink {
            attachment_point: ia(attachment_point),
            user_as: ia(user_as),
            ip: None,
            port: None,
            device: None,
            queue_us: Some(7_000),
            delay_us: 0,
            jitter_us: 0,
            loss: 0.0,
            maximum: Limits::both(Some(10_000_000)),
            limit: Limits::default(),
        };
        self.coordinator().add_link(&Actor::program(), new).unwrap()
    }

    fn bundle(&self, isd_as: &str) -> Bundle {
        let archive = self
            .configurations
            .archive_of(&Actor::program(), ia(isd_as));
        let archive = archive.unwrap();
        let bundle = Bundle::unpack(&archive.bytes).unwrap();
        assert_eq!(bundle.tag(), archive.tag);
        bundle
    }

    fn actor(&self, at: usize) -> Actor {
        Actor::of(&self.coordinator().state().users[&self.users[at]])
    }

    fn token(&self, isd_as: &str) -> String {
        let manifest = self.bundle(isd_as).manifest().unwrap();
        manifest.coordinator.unwrap().token
    }
}

/// The only router's interfaces.
fn interfaces(topology: &AsTopology) -> Vec<(u16, &hawser_topology::Interface)> {
    let routers: Vec<_> = topology.border_routers.values().collect();
    assert_eq!(routers.len(), 1);
    routers[0]
        .interfaces
        .iter()
        .map(|(id, i)| (*id, i))
        .collect()
}

#[test]
fn the_ends_of_each_link_are_configured_alike() {
    let bed = Bed::new();
    let all: Vec<_> = AP
        .into_iter()
        .chain(USER)
        .map(|a| bed.bundle(a).topology().unwrap())
        .collect();
    let mut count = 0;
    for topology in &all {
        for (id, interface) in interfaces(topology) {
            let far = all
                .iter()
                .find(|far| far.isd_as == interface.isd_as)
                .unwrap();
            let ends = interfaces(far);
            let (_, back) = ends
                .iter()
                .find(|(far, _)| *far == interface.remote_id)
                .unwrap();
            assert_eq!((back.remote_id, back.isd_as), (id, topology.isd_as));
            assert_eq!(back.underlay.local, interface.underlay.remote);
            assert_eq!(back.underlay.remote, interface.underlay.local);
            let expected = match interface.link_to {
                LinkTo::Core => LinkTo::Core,
                LinkTo::Child => LinkTo::Parent,
                LinkTo::Parent => LinkTo::Child,
                LinkTo::Peer => panic!("there are no peering links"),
            };
            assert_eq!(back.link_to, expected);
            count += 1;
        }
    }
    assert_eq!(count, 6);
    assert!(all[0].core && all[1].core && !all[2].core && !all[3].core);
}

#[test]
fn each_as_can_sign_and_has_no_keys_of_others() {
    let bed = Bed::new();
    for isd_as in AP.into_iter().chain(USER) {
        let bundle = bed.bundle(isd_as);
        let role = bundle.manifest().unwrap().role;
        assert_eq!(role == AsRole::AttachmentPoint, AP.contains(&isd_as));
        let folder = bed.folder.path().join("unpacked").join(isd_as);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        bundle.write(&folder).unwrap();
        let store = Store::load(&folder.join("certs")).unwrap();
        assert_eq!(Signer::load(&folder, &store).unwrap().isd_as(), ia(isd_as));
        let keys = bundle.files().filter(|(name, _)| name.ends_with(".key"));
        let keys: Vec<_> = keys.map(|(name, _)| name.to_owned()).collect();
        let expected = [
            "crypto/as/cp-as.key",
            "keys/master0.key",
            "keys/master1.key",
        ];
        assert_eq!(keys, expected);
    }
    let master = |isd_as| bed.bundle(isd_as).get("keys/master0.key").unwrap().to_vec();
    assert_ne!(master(USER[0]), master(USER[1]));
    // Once made, keys stay.
    let before = master(USER[0]);
    let path = bed.folder.path();
    let again = Pki::open(path.join("ases")).unwrap();
    let mut bundle = Bundle::default();
    again.add_files(ia(USER[0]), &mut bundle).unwrap();
    assert_eq!(bundle.get("keys/master0.key").unwrap(), before);
}

#[test]
fn changed_limits_are_a_new_version_that_restarts_nothing() {
    let bed = Bed::new();
    let link = bed
        .coordinator()
        .state()
        .links
        .values()
        .next()
        .unwrap()
        .clone();
    let (before, user) = (bed.bundle(AP[0]), bed.bundle(USER[0]));
    let limit = [(Direction::Egress, Some(500_000))];
    let actor = bed.actor(0);
    bed.coordinator()
        .set_limit(&actor, link.id, &limit)
        .unwrap();
    let after = bed.bundle(AP[0]);
    assert_eq!(after.change_from(&before), ServiceChange::None);
    let version = |bundle: &Bundle| bundle.manifest().unwrap().version;
    assert!(version(&after) > version(&before));
    let limited = &after.link_info().unwrap().0[&link.id.to_string()];
    assert_eq!((limited.egress, limited.ingress), (Some(500), Some(10_000)));
    assert_eq!(limited.ip.to_string(), "198.51.100.1");
    assert_eq!(limited.port, link.user_as.port);
    assert_eq!(limited.device.as_deref(), Some("eth7"));
    assert_eq!(limited.queue, Some(Duration::from_millis(7)));
    assert_eq!(limited.as_id, 0xff00_0000_0001);
    // The user AS limits nothing itself.
    assert_eq!(bed.bundle(USER[0]), user);
}

#[test]
fn links_have_the_smaller_mtu_that_their_ends_found() {
    let bed = Bed::new();
    let link = {
        let state = bed.coordinator().state();
        state.links.values().next().unwrap().clone()
    };
    let (point, user) = (link.attachment_point, link.user_as);
    let announced = |bed: &Bed| {
        let publication = bed.configurations.segments().unwrap();
        let publication = Publication::from_json(&publication.bytes).unwrap();
        let (at, _) = (publication.network())
            .link_at(point.isd_as, point.interface.unwrap())
            .unwrap();
        let mtu = publication.network().links[at].mtu;
        for end in [point, user] {
            let topology = bed.bundle(&end.isd_as.to_string()).topology().unwrap();
            let routers = topology.border_routers.values();
            let mut found = routers.flat_map(|router| router.interfaces.get(&end.interface?));
            assert_eq!(found.next().unwrap().mtu, mtu);
        }
        mtu
    };
    let whole = announced(&bed);
    let report = |end: LinkEnd, mtu: u16| {
        let mtus = [(end.interface.unwrap(), mtu), (999, 1300)].into();
        bed.coordinator().report_mtus(end.isd_as, &mtus).unwrap();
        announced(&bed)
    };
    let revision = bed.coordinator().state().next.change;
    assert_eq!(report(point, 9000), whole);
    // Nothing is written for what is the usual case.
    assert_eq!(bed.coordinator().state().next.change, revision);
    assert_eq!(report(point, 1422), 1422);
    assert_eq!(report(user, 1372), 1372);
    assert_eq!(report(point, 1300), 1300);
    assert_eq!(report(point, 60), 1280);
    assert_eq!(report(point, 1500), 1372);
    assert_eq!(report(user, u16::MAX), whole);
    let unknown = bed
        .coordinator()
        .report_mtus(ia("1-ff00:0:999"), &[].into());
    assert!(unknown.is_err());
}

#[test]
fn archives_are_for_owners_and_their_secret_stays() {
    let bed = Bed::new();
    let archive = |at: usize, isd_as| {
        let actor = bed.actor(at);
        bed.configurations.archive_of(&actor, ia(isd_as))
    };
    let own = archive(0, USER[0]).unwrap();
    assert_eq!(archive(0, USER[0]).unwrap(), own);
    for other in [USER[1], AP[0]] {
        let denied = archive(0, other).unwrap_err();
        let is_denied = matches!(denied, ConfigurationError::Change(ChangeError::Denied(_)));
        assert!(is_denied, "{denied}");
    }
    let unknown = archive(0, "1-ff00:0:99").unwrap_err();
    assert!(
        matches!(unknown, ConfigurationError::Unknown(_)),
        "{unknown}"
    );

    let token = bed.token(USER[0]);
    let (coordinator, isd_as) = (bed.coordinator(), ia(USER[0]));
    assert!(coordinator.is_host(isd_as, &token));
    assert!(!coordinator.is_host(ia(USER[1]), &token));
    let host = bed
        .configurations
        .for_host(isd_as, &token)
        .unwrap()
        .unwrap();
    assert_eq!(host, own);
    // Nothing on disk has it.
    let files = fs::read_dir(bed.folder.path()).unwrap().flatten();
    for entry in files.filter(|entry| entry.path().is_file()) {
        let bytes = fs::read(entry.path()).unwrap();
        let mut parts = bytes.windows(token.len());
        assert!(!parts.any(|part| part == token.as_bytes()));
    }
    // After it was replaced, the next archive has another one.
    coordinator
        .rotate_secret(&Actor::program(), isd_as)
        .unwrap();
    let next = bed.token(USER[0]);
    assert_ne!(next, token);
    assert!(coordinator.is_host(isd_as, &next) && !coordinator.is_host(isd_as, &token));
    assert_eq!(bed.token(USER[0]), next);
}

/// The forwarding key that an AS's archive contains.
fn forwarding_key(bundle: &Bundle) -> Vec<u8> {
    bundle.get("keys/master0.key").unwrap().to_vec()
}

#[test]
fn the_secret_and_the_keys_of_an_as_end_with_the_trust_in_its_owner() {
    let bed = Bed::new();
    let (program, isd_as) = (Actor::program(), ia(USER[0]));
    let coordinator = bed.coordinator();
    let new = |owner| NewUserAs {
        isd_as,
        owner,
        label: "user".to_owned(),
        place: None,
        addresses: vec!["198.51.100.1".parse().unwrap()],
        first_port: 50000,
    };
    let give = |owner| coordinator.change_user_as(&program, new(owner)).unwrap();
    let replace = || {
        coordinator.remove_user_as(&program, isd_as).unwrap();
        coordinator
            .add_user_as(&program, new(Some(bed.users[0])))
            .unwrap();
    };
    // Without an administrator no user can be removed.
    coordinator.add_user(&program, "root", Role::Admin).unwrap();
    let ends: [(&str, &dyn Fn()); 6] = [
        ("another owner", &|| drop(give(Some(bed.users[1])))),
        ("the first owner again", &|| drop(give(Some(bed.users[0])))),
        ("removed and added", &replace),
        ("removed and added again", &replace),
        ("rotated", &|| {
            coordinator.rotate_secret(&program, isd_as).unwrap();
        }),
        ("owner removed", &|| {
            coordinator.remove_user(&program, bed.users[0]).unwrap();
        }),
    ];
    let mut secrets = vec![bed.token(USER[0])];
    let mut keys = vec![forwarding_key(&bed.bundle(USER[0]))];
    for (what, end) in ends {
        end();
        for secret in &secrets {
            assert!(!coordinator.is_host(isd_as, secret), "{what}");
        }
        let (secret, key) = (bed.token(USER[0]), forwarding_key(&bed.bundle(USER[0])));
        assert!(!secrets.contains(&secret), "{what}");
        assert!(!keys.contains(&key), "{what}");
        assert_eq!(bed.token(USER[0]), secret, "{what}");
        secrets.push(secret);
        keys.push(key);
        for old in &secrets[..secrets.len() - 1] {
            assert!(!coordinator.is_host(isd_as, old), "{what}");
            // As if the trust ended after the request of the machine was let in.
            let refused = bed.configurations.archive(isd_as, old).unwrap_err();
            let is_replaced = matches!(refused, ConfigurationError::Replaced(_));
            assert!(is_replaced, "{what}: {refused}");
        }
    }
    // What is no end of trust leaves both.
    let mut same = new(None);
    same.label = "another label".to_owned();
    coordinator.change_user_as(&program, same).unwrap();
    assert_eq!(Some(&bed.token(USER[0])), secrets.last());
    // Attachment points, whose folders also have the keys of voters and authorities.
    let point = ia(AP[1]);
    let secret = bed.token(AP[1]);
    let key = forwarding_key(&bed.bundle(AP[1]));
    coordinator
        .remove_attachment_point(&program, point)
        .unwrap();
    bed.add_attachment_point(AP[1], "192.0.2.2");
    assert_ne!(bed.token(AP[1]), secret);
    assert_ne!(forwarding_key(&bed.bundle(AP[1])), key);
    assert!(!coordinator.is_host(point, &secret));
    let folder = bed.folder.path().join("ases").join(as_folder(point));
    let store = Store::load(&folder.join("certs")).unwrap();
    assert_eq!(Signer::load(&folder, &store).unwrap().isd_as(), point);
}

#[test]
fn a_user_as_without_links_has_no_configuration() {
    let bed = Bed::new();
    let token = bed.token(USER[0]);
    let link = *bed.coordinator().state().links.keys().next().unwrap();
    bed.coordinator()
        .remove_link(&Actor::program(), link)
        .unwrap();
    let for_host = |isd_as, token: &str| bed.configurations.for_host(ia(isd_as), token).unwrap();
    assert_eq!(for_host(USER[0], &token), None);
    assert!(for_host(AP[0], &bed.token(AP[0])).is_some());
    bed.link(AP[1], USER[0]);
    let archive = for_host(USER[0], &token).unwrap();
    let topology = Bundle::unpack(&archive.bytes).unwrap().topology().unwrap();
    assert_eq!(interfaces(&topology)[0].1.isd_as, ia(AP[1]));
}

#[test]
fn segments_follow_the_network_and_not_the_limits() {
    let bed = Bed::new();
    let segments = || bed.configurations.segments().unwrap();
    let first = segments();
    let read = Publication::from_json(&first.bytes).unwrap();
    assert_eq!(
        (read.network().ases.len(), read.network().links.len()),
        (4, 3)
    );
    let link = *bed.coordinator().state().links.keys().next().unwrap();
    let limit = [(Direction::Ingress, Some(0))];
    let program = Actor::program();
    bed.coordinator().set_limit(&program, link, &limit).unwrap();
    assert_eq!(segments(), first);
    bed.link(AP[1], USER[0]);
    let second = segments();
    assert_ne!(second.tag, first.tag);
    let read = Publication::from_json(&second.bytes).unwrap();
    assert_eq!(read.network().links.len(), 4);
}

#[test]
fn attachment_points_that_come_later_are_core_ases_too() {
    let bed = Bed::new();
    let before = bed.bundle(USER[0]);
    let mut epochs = bed.configurations.subscribe();
    epochs.mark_unchanged();
    bed.add_attachment_point("1-ff00:0:130", "192.0.2.3");
    // Another ISD.
    bed.add_attachment_point("2-ff00:0:210", "192.0.2.4");
    let after = bed.bundle(USER[0]);
    assert!(epochs.has_changed().unwrap());
    let names = |bundle: &Bundle| -> Vec<String> {
        let names = bundle.files().map(|(name, _)| name.to_owned());
        names.filter(|name| name.ends_with(".trc")).collect()
    };
    assert_eq!(names(&before), ["certs/ISD1-B1-S1.trc"]);
    let all = [
        "certs/ISD1-B1-S1.trc",
        "certs/ISD1-B1-S2.trc",
        "certs/ISD2-B1-S1.trc",
    ];
    assert_eq!(names(&after), all);
    for isd_as in ["1-ff00:0:130", "2-ff00:0:210"] {
        assert_eq!(names(&bed.bundle(isd_as)), all);
        assert!(bed.bundle(isd_as).topology().unwrap().core);
    }
    bed.configurations.segments().unwrap();
    // An ISD needs an attachment point.
    let new = NewUserAs {
        isd_as: ia("3-ff00:0:1"),
        owner: None,
        label: "alone".to_owned(),
        place: None,
        addresses: Vec::new(),
        first_port: 50000,
    };
    let program = Actor::program();
    bed.coordinator().add_user_as(&program, new).unwrap();
    let error = bed.configurations.archive_of(&program, ia("3-ff00:0:1"));
    let error = error.unwrap_err();
    assert!(
        matches!(error, ConfigurationError::NoAttachmentPoint(3)),
        "{error}"
    );
}

#[test]
fn keys_of_removed_user_ases_go_and_crashes_are_completed() {
    let bed = Bed::new();
    drop(bed.bundle(USER[0]));
    let ases = bed.folder.path().join("ases");
    let folder = |isd_as| ases.join(as_folder(ia(isd_as)));
    assert!(folder(USER[0]).exists());
    let program = Actor::program();
    bed.coordinator()
        .remove_user_as(&program, ia(USER[0]))
        .unwrap();
    drop(bed.bundle(USER[1]));
    assert!(!folder(USER[0]).exists() && folder(USER[1]).exists());
    // A crash in the middle of making an ISD: one AS has been moved to its place, one has not.
    let made = ases.join(".isd1.made");
    fs::create_dir(&made).unwrap();
    fs::rename(folder(AP[1]), made.join(as_folder(ia(AP[1])))).unwrap();
    fs::create_dir(ases.join(".isd2.new")).unwrap();
    Pki::open(ases.clone()).unwrap();
    assert!(folder(AP[1]).join("crypto/ca").exists());
    assert!(!made.exists() && !ases.join(".isd2.new").exists());
}

#[test]
fn names_of_machines_are_folders_of_ases() {
    let name = Configurations::host_name(ia("1-ff00:0:110"));
    assert_eq!(name, "1-ff00_0_110");
    assert_eq!(Configurations::host_of(&name), Some(ia("1-ff00:0:110")));
    for other in ["", "x", "1-ff00:0:110", "../1-ff00_0_110"] {
        assert_eq!(Configurations::host_of(other), None, "{other}");
    }
}
