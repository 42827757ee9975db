//! What the API of Kubernetes requires of manifests, and what an export promises of its pods.

use std::collections::{BTreeMap, BTreeSet};

use hawser_topology::Network;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::name;
use crate::plan::Wiring;
use crate::plan::tests::networks;

/// The objects of all files, and `kustomization.yaml`.
fn objects(network: &Network) -> (Plan, Vec<Value>, Value) {
    let plan = Plan::new(network, Wiring::Names).unwrap();
    let manifests = Manifests {
        plan: &plan,
        name: "net",
        image: "localhost/hawser:1",
        parts: 2,
        config_maps: 3,
    };
    let mut tree = Tree::default();
    let archives: Vec<Vec<u8>> = (0..plan.ases.len()).map(|at| vec![at as u8]).collect();
    manifests.add(&mut tree, &archives).unwrap();
    let read = |name: &str| -> Vec<Value> {
        let text = std::str::from_utf8(tree.get(name).unwrap()).unwrap();
        let documents = text.split("---\n");
        documents
            .map(|one| serde_saphyr::from_str(one).unwrap())
            .collect()
    };
    let kustomization = read("kustomization.yaml").remove(0);
    let resources = kustomization["resources"].as_array().unwrap();
    let names: Vec<&str> = resources
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut expected = tree.names();
    expected.remove("kustomization.yaml");
    assert_eq!(
        names.iter().map(|&n| n.to_owned()).collect::<BTreeSet<_>>(),
        expected
    );
    let objects = names.into_iter().flat_map(read).collect();
    (plan, objects, kustomization)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Each AS is a pod with its name and its archive, which names nothing that podman does not know: no
    /// ports, no probes, and no volumes but a file and a folder of this machine.
    #[test]
    fn pods_of_podman_are_plain(network in networks()) {
        let plan = Plan::new(&network, Wiring::Names).unwrap();
        let manifests = Manifests {
            plan: &plan,
            name: "net",
            image: "localhost/hawser:1",
            parts: 2,
            config_maps: 3,
        };
        let mut tree = Tree::default();
        let archives: Vec<Vec<u8>> = (0..plan.ases.len()).map(|at| vec![at as u8]).collect();
        let folder = std::path::Path::new("/net");
        manifests.add_pods(&mut tree, &archives, folder).unwrap();
        prop_assert_eq!(tree.names().len(), 2 * plan.ases.len());
        for (as_, archive) in plan.ases.iter().zip(&archives) {
            let file = format!("ases/{}.yaml", as_.name);
            let text = std::str::from_utf8(tree.get(&file).unwrap()).unwrap();
            let pod: Value = serde_saphyr::from_str(text).unwrap();
            prop_assert_eq!((&pod["kind"], &pod["metadata"]["name"]), (&"Pod".into(), &as_.name[..].into()));
            let spec = &pod["spec"];
            let volumes = spec["volumes"].as_array().unwrap();
            let paths: Vec<_> = volumes.iter().map(|one| one["hostPath"]["path"].as_str()).collect();
            let bundle = format!("ases/{}.tar.gz", as_.name);
            let expected = [format!("/net/{bundle}"), "/net/segments".to_owned()];
            prop_assert_eq!(paths, expected.each_ref().map(|path| Some(&path[..])));
            prop_assert_eq!(tree.get(&bundle), Some(&archive[..]));
            let container = &spec["containers"][0];
            for key in ["ports", "livenessProbe", "readinessProbe"] {
                prop_assert!(container.get(key).is_none(), "{}", key);
            }
            let mounts = container["volumeMounts"].as_array().unwrap();
            let names = |all: &[Value]| all.iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
            prop_assert_eq!(names(mounts), names(volumes));
        }
    }
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> BTreeMap<&'a str, &'a Value> {
    let of_kind = objects.iter().filter(|one| one["kind"] == kind);
    of_kind
        .map(|one| (one["metadata"]["name"].as_str().unwrap(), one))
        .collect()
}

fn ports(list: &Value, key: &str) -> BTreeSet<u64> {
    let ports = list.as_array().map_or(&[][..], Vec::as_slice);
    ports
        .iter()
        .map(|port| port[key].as_u64().unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// For any network: each AS has one of each object, all of one namespace; a Service has the ports of
    /// the pod that it selects, and neighbours may send to each other over just these.
    #[test]
    fn objects_belong_together(network in networks()) {
        let (plan, objects, _) = objects(&network);
        prop_assert_eq!(objects.len(), 1 + 4 * plan.ases.len());
        for object in &objects {
            for key in ["apiVersion", "kind", "metadata"] {
                prop_assert!(!object[key].is_null(), "{key}");
            }
            let name = object["metadata"]["name"].as_str().unwrap();
            prop_assert!(name::is_label(name));
            if object["kind"] != "Namespace" {
                prop_assert_eq!(object["metadata"]["namespace"].as_str(), Some("net"));
            }
        }
        let [sets, services, policies, secrets] =
            ["StatefulSet", "Service", "NetworkPolicy", "Secret"].map(|kind| of_kind(&objects, kind));
        for (at, as_) in plan.ases.iter().enumerate() {
            let name = as_.name.as_str();
            let (set, service) = (&sets[name]["spec"], &services[name]["spec"]);
            let data = secrets[name]["data"]["as.tar.gz"].as_str().unwrap();
            prop_assert_eq!(BASE64_STANDARD.decode(data).unwrap(), vec![at as u8]);
            let labels = &set["template"]["metadata"]["labels"];
            for selector in [&set["selector"]["matchLabels"], &service["selector"]] {
                for (key, value) in selector.as_object().unwrap() {
                    prop_assert_eq!(&labels[key], value);
                }
            }
            let container = &set["template"]["spec"]["containers"][0];
            let of_service = ports(&service["ports"], "port");
            prop_assert_eq!(&of_service, &ports(&container["ports"], "containerPort"));
            prop_assert_eq!(of_service.len(), as_.states.len());
            // What neighbours may send to is what they are told to send to.
            for to in as_.neighbours.0.values() {
                let (far, port) = to.rsplit_once(':').unwrap();
                let port: u64 = port.parse().unwrap();
                let allows = |rules: &Value, key: &str, name: &str| {
                    rules.as_array().unwrap().iter().any(|rule| {
                        let label = &rule[key][0]["podSelector"]["matchLabels"][LABEL_AS];
                        label == name && ports(&rule["ports"], "port").contains(&port)
                    })
                };
                prop_assert!(allows(&policies[name]["spec"]["egress"], "to", far));
                prop_assert!(allows(&policies[far]["spec"]["ingress"], "from", name));
            }
        }
    }
}

#[test]
fn pods_have_one_capability_and_bounds() {
    let (plan, objects, _) = objects(&Network::ready("fig9").unwrap());
    for set in of_kind(&objects, "StatefulSet").values() {
        let spec = &set["spec"];
        assert_eq!(spec["replicas"], 1);
        assert_eq!(spec["podManagementPolicy"], "Parallel");
        assert_eq!(spec["serviceName"], set["metadata"]["name"]);
        let pod = &spec["template"]["spec"];
        assert!(pod["hostNetwork"].is_null());
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert!(!pod["topologySpreadConstraints"][0]["maxSkew"].is_null());
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        assert!(security["privileged"].is_null());
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["capabilities"]["drop"][0], "ALL");
        assert_eq!(security["capabilities"]["add"].as_array().unwrap().len(), 1);
        assert_eq!(security["capabilities"]["add"][0], "NET_ADMIN");
        for bound in ["requests", "limits"] {
            for what in ["cpu", "memory"] {
                assert!(container["resources"][bound][what].is_string());
            }
        }
        // They are asked at the port at which `as join` answers.
        let probed = |probe: &str| container[probe]["httpGet"].clone();
        let at = |path: &str| json!({"path": path, "port": 8042});
        assert_eq!(probed("livenessProbe"), at("/live"));
        assert_eq!(probed("readinessProbe"), at("/ready"));
        let args = container["args"].as_array().unwrap();
        assert!(args.ends_with(&["--listen".into(), "[::]:8042".into()]));
        let variable = &container["env"][0];
        assert_eq!(variable["name"], "HAWSER_ADDRESS");
        assert_eq!(
            variable["valueFrom"]["fieldRef"]["fieldPath"],
            "status.podIPs"
        );
        let volumes = pod["volumes"].as_array().unwrap();
        let names: BTreeSet<_> = volumes
            .iter()
            .map(|v| v["name"].as_str().unwrap())
            .collect();
        for mount in container["volumeMounts"].as_array().unwrap() {
            assert!(names.contains(mount["name"].as_str().unwrap()));
        }
        let sources = &volumes.iter().find(|v| v["name"] == "segments").unwrap()["projected"];
        let sources = sources["sources"].as_array().unwrap();
        let maps: Vec<_> = sources
            .iter()
            .map(|one| &one["configMap"]["name"])
            .collect();
        assert_eq!(maps, ["segments-000", "segments-001", "segments-002"]);
        assert!(volumes.iter().any(|v| v["emptyDir"].is_object()));
    }
    let namespace = of_kind(&objects, "Namespace");
    assert!(namespace.contains_key("net"));
    assert_eq!(of_kind(&objects, "Service").len(), plan.ases.len());
}

#[test]
fn the_segments_are_config_maps_of_files() {
    let (_, _, kustomization) = objects(&Network::ready("fig4").unwrap());
    assert_eq!(kustomization["kind"], "Kustomization");
    assert_eq!(
        kustomization["generatorOptions"]["disableNameSuffixHash"],
        true
    );
    let maps = kustomization["configMapGenerator"].as_array().unwrap();
    let files: Vec<_> = maps.iter().map(|map| &map["files"]).collect();
    let expected = [
        json!(["segments/000.json.gz"]),
        json!(["segments/001.json.gz"]),
        json!([]),
    ];
    assert_eq!(files, expected.each_ref());
}
