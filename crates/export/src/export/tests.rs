//! Whole exports, of random networks too.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_bundle::Bundle;
use hawser_topology::{IsdAsn, as_folder};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::plan::tests::networks;

/// How long segments live.
const LIFETIME: u64 = 23 * 3600;

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn options(to: Target) -> Options {
    Options {
        to,
        name: "net".to_owned(),
        image: "localhost/hawser:1".to_owned(),
        base: "localhost/hawser:1".to_owned(),
    }
}

fn two_hosts() -> Hosts {
    Hosts::parse("a 192.0.2.1\nb 192.0.2.2").unwrap()
}

/// All files below a folder, with their content and the time of their last change.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut files(&path));
        } else {
            let changed = path.metadata().unwrap().modified().unwrap();
            found.insert(path.clone(), (fs::read(&path).unwrap(), changed));
        }
    }
    found
}

/// The archive of an AS in an export to Kubernetes.
fn archive(folder: &Path, isd_as: IsdAsn) -> Vec<u8> {
    let file = folder.join(format!("ases/{}.yaml", name::of_as(isd_as)));
    let text = fs::read_to_string(file).unwrap();
    let secret: Value = serde_saphyr::from_str(text.split("---\n").next().unwrap()).unwrap();
    BASE64_STANDARD
        .decode(secret["data"]["as.tar.gz"].as_str().unwrap())
        .unwrap()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// For any network and both programs: the archive of an AS is whole, has its own keys and nobody
    /// else's, nothing else has keys, and the same export again writes nothing.
    #[test]
    fn each_as_has_its_own_keys_only(network in networks()) {
        let folder = tempfile::tempdir().unwrap();
        let kubernetes = folder.path().join("k");
        let options_k = options(Target::Kubernetes);
        let first = export(&network, &options_k, &kubernetes, now()).unwrap();
        prop_assert_eq!(first.new_keys, network.ases.len());
        prop_assert!(first.written > 0);
        // The keys of each AS, as text: masters and private keys.
        let keys = |isd_as: IsdAsn| -> Vec<Vec<u8>> {
            let own = kubernetes.join(PKI).join(as_folder(isd_as));
            let all = files(&own).into_iter();
            all.filter(|(path, _)| path.extension().is_some_and(|e| e == "key"))
                .map(|(_, (bytes, _))| bytes)
                .collect()
        };
        let all: BTreeMap<IsdAsn, Vec<Vec<u8>>> =
            network.ases.iter().map(|as_| (as_.isd_as, keys(as_.isd_as))).collect();
        for as_ in &network.ases {
            let bundle = Bundle::unpack(&archive(&kubernetes, as_.isd_as)).unwrap();
            let (manifest, topology) = bundle.check().unwrap();
            prop_assert_eq!((manifest.isd_as, topology.isd_as), (as_.isd_as, as_.isd_as));
            prop_assert_eq!(manifest.version, 1);
            for part in ["keys/master0.key", "keys/master1.key", "crypto/as/cp-as.key"] {
                prop_assert!(bundle.get(part).is_some());
            }
            for (name, bytes) in bundle.files() {
                prop_assert!(!name.contains("voting") && !name.contains("crypto/ca"), "{name}");
                for (of, keys) in all.iter().filter(|(of, _)| **of != as_.isd_as) {
                    let foreign = keys.iter().any(|key| contains(bytes, key));
                    prop_assert!(!foreign, "{name} of {} has a key of {of}", as_.isd_as);
                }
            }
        }
        for (path, (bytes, _)) in files(&kubernetes) {
            let is_ours = path.starts_with(kubernetes.join(PKI));
            let has = all.values().flatten().any(|key| contains(&bytes, key));
            prop_assert!(is_ours || !has, "{path:?}");
        }
        let before = files(&kubernetes);
        let again = export(&network, &options_k, &kubernetes, now() + 60).unwrap();
        prop_assert_eq!((again.written, again.removed, again.new_keys), (0, 0, 0));
        prop_assert_eq!(files(&kubernetes), before);

        let containerlab = folder.path().join("c");
        let options_c = options(Target::Containerlab(Some(two_hosts())));
        export(&network, &options_c, &containerlab, now()).unwrap();
        let mut ases = BTreeSet::new();
        for (path, (bytes, _)) in files(&containerlab.join("hosts")) {
            if path.to_string_lossy().ends_with(".tar.gz") {
                let (manifest, _) = Bundle::unpack(&bytes).unwrap().check().unwrap();
                prop_assert!(ases.insert(manifest.isd_as));
            }
        }
        prop_assert_eq!(ases.len(), network.ases.len());
        let before = files(&containerlab);
        let again = export(&network, &options_c, &containerlab, now() + 60).unwrap();
        prop_assert_eq!((again.written, again.removed), (0, 0));
        prop_assert_eq!(files(&containerlab), before);
    }
}

fn version(folder: &Path, isd_as: IsdAsn) -> u64 {
    let bundle = Bundle::unpack(&archive(folder, isd_as)).unwrap();
    bundle.manifest().unwrap().version
}

#[test]
fn only_what_differs_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut network = Network::ready("fig9").unwrap();
    let options = options(Target::Kubernetes);
    let export = |network: &Network, now: u64| export(network, &options, path, now).unwrap();
    let begin = now();
    let first = export(&network, begin);
    let ases = network.ases.len() as u64;
    let requests = first.requests.unwrap();
    assert_eq!(
        (requests.cpu_millis, requests.memory_mib),
        (50 * ases, 96 * ases)
    );
    let [a, b] = {
        let link = &network.links[0];
        [link.a.isd_as, link.b.isd_as]
    };
    // A link of two ASes.
    network.links[0].shape.delay += std::time::Duration::from_millis(1);
    let changed = export(&network, begin + 1);
    assert_eq!(changed.new_keys, 0);
    for as_ in &network.ases {
        let expected = if [a, b].contains(&as_.isd_as) { 2 } else { 1 };
        assert_eq!(version(path, as_.isd_as), expected, "{}", as_.isd_as);
    }
    // The segments announce the delay; README and the other ASes are as they were.
    assert_eq!((changed.written, changed.removed), (3, 0));
    // After half of their lifetime new segments are made, and nothing else.
    let unchanged = export(&network, begin + 1 + LIFETIME / 2 - 1);
    assert_eq!(unchanged.written, 0);
    let renewed = export(&network, begin + 1 + LIFETIME / 2);
    assert_eq!(
        (renewed.written, renewed.segments_expire),
        (1, begin + 1 + LIFETIME / 2 + LIFETIME)
    );
    // An AS less: its manifest goes, and so do its keys; those of the others stay.
    let leaf = network.ases.iter().position(|as_| !as_.core).unwrap();
    let last = network.ases.remove(leaf).isd_as;
    network
        .links
        .retain(|link| link.a.isd_as != last && link.b.isd_as != last);
    fs::write(path.join("ases/mine.yaml"), "foreign").unwrap();
    let fewer = export(&network, begin + 2);
    assert_eq!((fewer.removed, fewer.new_keys), (1, 0), "{fewer:?}");
    assert_eq!(fewer.gone, [name::of_as(last)]);
    assert!(export(&network, begin + 3).gone.is_empty());
    assert!(!path.join(PKI).join(as_folder(last)).exists());
    assert!(
        !path
            .join(format!("ases/{}.yaml", name::of_as(last)))
            .exists()
    );
    assert_eq!(fs::read(path.join("ases/mine.yaml")).unwrap(), b"foreign");
    // Lost keys are made anew.
    fs::remove_dir_all(path.join(PKI)).unwrap();
    assert_eq!(export(&network, begin + 3).new_keys, network.ases.len());
}

/// The commands of the README that remove what an export has no more are given those alone.
#[test]
fn what_runs_of_former_ases_is_removed_by_the_commands_of_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let network = Network::ready("fig4").unwrap();
    export(&network, &options(Target::Kubernetes), &path, now()).unwrap();
    let text = fs::read_to_string(path.join(README)).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    let commands = blocks.map(|block| block.split("```").next().unwrap());
    let remove = commands
        .into_iter()
        .find(|one| one.starts_with("for as in"));
    // In place of kubectl.
    let (program, log) = (folder.path().join("kubectl"), folder.path().join("log"));
    let here = name::of_as(network.ases[0].isd_as);
    let script = format!(
        "#!/bin/sh\ncase $3 in\nget) echo statefulset.apps/as9-9; echo statefulset.apps/{here};;\n\
         *) printf '%s\\n' \"$*\" >>{};;\nesac\n",
        log.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path_variable = std::env::var("PATH").unwrap();
    let status = std::process::Command::new("sh")
        .args(["-c", remove.unwrap()])
        .current_dir(&path)
        .env(
            "PATH",
            format!("{}:{path_variable}", folder.path().display()),
        )
        .status();
    assert!(status.unwrap().code().is_some());
    let said = fs::read_to_string(&log).unwrap();
    let expected = "-n net delete statefulsets,services,secrets,networkpolicies \
                    -l app.kubernetes.io/instance=as9-9\n";
    assert_eq!(said, expected);
}

#[test]
fn other_core_ases_have_the_next_trc_and_keys_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut network = Network::ready("fig9").unwrap();
    let export = |network: &Network, now: u64| {
        let options = options(Target::Kubernetes);
        export(network, &options, path, now).unwrap()
    };
    let key = |isd_as: IsdAsn| {
        let bundle = Bundle::unpack(&archive(path, isd_as)).unwrap();
        bundle.get("crypto/as/cp-as.key").unwrap().to_vec()
    };
    let begin = now();
    export(&network, begin);
    let keys: Vec<_> = network.ases.iter().map(|as_| key(as_.isd_as)).collect();
    let leaf = network.ases.iter().position(|as_| !as_.core).unwrap();
    network.ases[leaf].core = true;
    let changed = export(&network, begin + 1);
    assert_eq!(changed.new_keys, 0);
    for (as_, before) in network.ases.iter().zip(keys) {
        assert_eq!(key(as_.isd_as), before);
    }
    let core_of = |isd_as: IsdAsn| {
        let certs = path.join(PKI).join(as_folder(isd_as)).join("certs");
        let store = hawser_trust::Store::load(&certs).unwrap();
        let trc = store.newest(1).unwrap();
        (trc.id().serial, trc.content().core.clone())
    };
    // It is the only one that is left.
    let new = network.ases[leaf].isd_as;
    let gone: Vec<IsdAsn> = network
        .ases
        .iter()
        .filter(|as_| as_.core && as_.isd_as != new)
        .map(|as_| as_.isd_as)
        .collect();
    network.ases.retain(|as_| !gone.contains(&as_.isd_as));
    let is_left = |link: &hawser_topology::Link| {
        ![link.a.isd_as, link.b.isd_as]
            .iter()
            .any(|end| gone.contains(end))
    };
    network.links.retain(is_left);
    assert_eq!(export(&network, begin + 2).new_keys, 0);
    for as_ in &network.ases {
        assert_eq!(core_of(as_.isd_as), (3, vec![new]));
        let bundle = Bundle::unpack(&archive(path, as_.isd_as)).unwrap();
        assert!(bundle.get("certs/ISD1-B1-S3.trc").is_some());
    }
    // The voters of before sign the next one, and their authority issues certificates of ASes that come.
    let mut later = network.ases[0].clone();
    (later.isd_as, later.core) = ("1-ff00:0:99".parse().unwrap(), true);
    network.ases.push(later.clone());
    assert_eq!(export(&network, begin + 3).new_keys, 1);
    assert_eq!(core_of(later.isd_as).0, 4);
    assert!(core_of(new).1.contains(&later.isd_as));
    assert_eq!(export(&network, begin + 4).written, 0);
}

#[test]
fn ases_get_other_roles_by_another_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut network = Network::ready("fig9").unwrap();
    let export = |network: &Network, now| export(network, &options(Target::Kubernetes), path, now);
    let begin = now();
    export(&network, begin).unwrap();
    let files = |isd_as: IsdAsn| {
        let bundle = Bundle::unpack(&archive(path, isd_as)).unwrap();
        let names = [
            "crypto/as/cp-as.key",
            "keys/master0.key",
            "certs/ISD1-B1-S2.trc",
        ];
        names.map(|name| bundle.get(name).map(<[u8]>::to_vec))
    };
    let before: Vec<_> = network.ases.iter().map(|as_| files(as_.isd_as)).collect();
    // Voters alone take no new certificates.
    let leaf = network.ases.iter().position(|as_| !as_.core).unwrap();
    network.ases[leaf].voting = true;
    assert_eq!(export(&network, begin + 1).unwrap().new_keys, 0);
    for (as_, before) in network.ases.iter().zip(&before) {
        let now = files(as_.isd_as);
        assert_eq!(now[..2], before[..2]);
        assert!(before[2].is_none() && now[2].is_some());
    }
    assert_eq!(export(&network, begin + 2).unwrap().written, 0);
    // With another authority all ASes get its certificates, but keep their other keys.
    network.ases[leaf].issuing = true;
    let changed = export(&network, begin + 3).unwrap();
    assert_eq!(changed.new_keys, network.ases.len());
    for (as_, before) in network.ases.iter().zip(&before) {
        let now = files(as_.isd_as);
        assert!(now[0] != before[0] && now[1] == before[1]);
        let of_as = path.join(PKI).join(as_folder(as_.isd_as));
        let store = hawser_trust::Store::load(&of_as.join("certs")).unwrap();
        hawser_trust::Signer::load(&of_as, &store).unwrap();
        assert_eq!(store.newest(1).unwrap().id().serial, 3);
    }
    // An issuer that issues none is said, and nothing is changed.
    let mut wrong = network.clone();
    let core = wrong.ases.iter().position(|as_| as_.core).unwrap();
    let named = wrong.ases[core].isd_as;
    let other = (0..wrong.ases.len())
        .find(|at| *at != leaf && *at != core)
        .unwrap();
    wrong.ases[other].cert_issuer = Some(named);
    let error = export(&wrong, begin + 4).unwrap_err().to_string();
    assert!(error.contains("issues none in its ISD"), "{error}");
    assert_eq!(export(&network, begin + 5).unwrap().written, 0);
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_written() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    let network = Network::ready("fig4").unwrap();
    let refused = |change: &dyn Fn(&mut Options), said: &str| {
        let mut options = options(Target::Kubernetes);
        change(&mut options);
        let error = export(&network, &options, &folder, now()).unwrap_err();
        assert!(
            error.is_wrong_use() && error.to_string().contains(said),
            "{error}"
        );
    };
    refused(
        &|o| o.image = "No Image".to_owned(),
        "is not the name of an image",
    );
    refused(
        &|o| o.name = "No_Name".to_owned(),
        "is not a name for an export",
    );
    let three = "a 192.0.2.1\nb 192.0.2.2\nc 192.0.2.3";
    let many = |o: &mut Options| o.to = Target::Containerlab(Some(Hosts::parse(three).unwrap()));
    refused(&many, "3 hosts are more than the network has ASes (2)");
    assert!(!folder.exists());
    fs::write(&folder, "a file").unwrap();
    refused(&|_| (), "is not a folder");
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("kustomization.yaml"), "theirs").unwrap();
    refused(&|_| (), "kustomization.yaml is in the way");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    fs::remove_file(folder.join("kustomization.yaml")).unwrap();
    fs::create_dir(folder.join("segments")).unwrap();
    fs::write(folder.join(part_path(0)), "theirs").unwrap();
    refused(&|_| (), "000.json.gz is in the way");
    assert!(!folder.join(PKI).exists());
    fs::remove_dir_all(folder.join("segments")).unwrap();
    fs::create_dir(folder.join(PKI)).unwrap();
    refused(&|_| (), "pki is in the way");
    fs::remove_dir(folder.join(PKI)).unwrap();
    export(&network, &options(Target::Kubernetes), &folder, now()).unwrap();
    let before = files(&folder);
    refused(
        &|o| o.to = Target::Containerlab(None),
        "has an export of \"net\" for kubernetes",
    );
    refused(&|o| o.name = "other".to_owned(), "has an export of \"net\"");
    assert_eq!(files(&folder), before);
}

#[test]
fn an_export_that_was_interrupted_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let network = Network::ready("fig4").unwrap();
    let options = options(Target::Containerlab(None));
    export(&network, &options, path, now()).unwrap();
    let whole: BTreeSet<PathBuf> = files(path).into_keys().collect();
    // As if it had ended after half of the files, with new keys made and the index not yet complete.
    let mut index = Index::read(path).unwrap().unwrap();
    (index.roles, index.segments) = (BTreeMap::new(), None);
    fs::write(path.join(INDEX), index.to_json()).unwrap();
    fs::remove_file(path.join("net.clab.yml")).unwrap();
    fs::write(path.join(".net.clab.yml.new"), "half of").unwrap();
    let again = export(&network, &options, path, now()).unwrap();
    assert_eq!(again.new_keys, 2);
    assert_eq!(files(path).into_keys().collect::<BTreeSet<_>>(), whole);
}
