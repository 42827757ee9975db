//! Manifests for Kubernetes: a namespace, and in it for each AS a Secret with its archive, a StatefulSet
//! with one pod, a headless Service by whose name neighbours find the pod, and a NetworkPolicy. The
//! segments, which are the same for all, are ConfigMaps that all pods mount.
//!
//! A StatefulSet never runs two pods of an AS at once, as two routers with the same interfaces would
//! disturb each other.

mod objects;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hawser_topology::{IsdAsn, LinkKind, Side};
use serde::Serialize;

use self::objects::*;
use crate::error::ExportError;
use crate::name;
use crate::plan::{AsPlan, Plan};
use crate::segments::part_path;
use crate::tree::Tree;

/// The archive of an AS, in its Secret and in its pod.
const ARCHIVE: &str = "as.tar.gz";
const ARCHIVE_FOLDER: &str = "/etc/hawser/archive";
const SEGMENTS_FOLDER: &str = "/etc/hawser/segments";
const STATE_FOLDER: &str = "/var/lib/hawser";
/// The folders of manifests.
const FOLDER: &str = "ases";
const LABEL_PROGRAM: &str = "app.kubernetes.io/name";
const LABEL_AS: &str = "app.kubernetes.io/instance";
const LABEL_EXPORT: &str = "app.kubernetes.io/part-of";
const PROGRAM: &str = "hawser";
const UDP: &str = "UDP";
/// The port of name servers.
const DNS: u16 = 53;
/// Time that a probe leaves its command, and the command itself, in seconds.
const PROBE_TIMEOUT: u32 = 8;
const PROBE_PATIENCE: &str = "6s";

/// What is exported, and to where.
pub(crate) struct Manifests<'a> {
    pub plan: &'a Plan,
    /// The name of the namespace.
    pub name: &'a str,
    pub image: &'a str,
    /// How many files the segments take.
    pub parts: usize,
}

impl Manifests<'_> {
    /// Adds the manifests to `tree`; `archive` is the archive of an AS, by its index.
    pub fn add(&self, tree: &mut Tree, archives: &[Vec<u8>]) -> Result<(), ExportError> {
        let namespace = Object {
            api_version: "v1",
            kind: "Namespace",
            metadata: Metadata {
                name: self.name.to_owned(),
                namespace: None,
                // NET_ADMIN is above the levels "baseline" and "restricted".
                labels: [
                    (LABEL_EXPORT, self.name.to_owned()),
                    (
                        "pod-security.kubernetes.io/enforce",
                        "privileged".to_owned(),
                    ),
                ]
                .into(),
            },
            content: Nothing {},
        };
        tree.insert("namespace.yaml", yaml("namespace.yaml", &namespace)?);
        let mut resources = vec!["namespace.yaml".to_owned()];
        for (as_, archive) in self.plan.ases.iter().zip(archives) {
            let file = format!("{FOLDER}/{}.yaml", as_.name);
            tree.insert_secret(file.clone(), self.manifest(&file, as_, archive)?);
            resources.push(file);
        }
        let kustomization = Kustomization {
            api_version: "kustomize.config.k8s.io/v1beta1",
            kind: "Kustomization",
            resources,
            generator_options: GeneratorOptions {
                // Pods take new segments without a restart, under the same name.
                disable_name_suffix_hash: true,
                labels: [(LABEL_EXPORT, self.name.to_owned())].into(),
            },
            config_map_generator: (0..self.parts)
                .map(|at| ConfigMapOfFiles {
                    name: config_map(at),
                    namespace: self.name.to_owned(),
                    files: vec![part_path(at)],
                })
                .collect(),
        };
        let file = "kustomization.yaml";
        tree.insert(file, yaml(file, &kustomization)?);
        Ok(())
    }

    /// The manifest of an AS.
    fn manifest(&self, file: &str, as_: &AsPlan, archive: &[u8]) -> Result<String, ExportError> {
        let secret = Secret {
            r#type: "Opaque",
            data: [(ARCHIVE, BASE64_STANDARD.encode(archive))].into(),
        };
        let ports = ports(as_);
        let service = Service {
            cluster_ip: "None",
            // Links come up before pods are ready, and pods are ready once links are up.
            publish_not_ready_addresses: true,
            selector: selector(&as_.name).match_labels,
            ports: ports
                .iter()
                .map(|(id, &port)| ServicePort {
                    name: format!("link-{id}"),
                    protocol: UDP,
                    port,
                })
                .collect(),
        };
        let documents = [
            yaml(file, &self.object("v1", "Secret", as_, secret))?,
            yaml(
                file,
                &self.object("v1", "Service", as_, Spec { spec: service }),
            )?,
            yaml(
                file,
                &self.object(
                    "apps/v1",
                    "StatefulSet",
                    as_,
                    Spec {
                        spec: self.stateful_set(as_, archive),
                    },
                ),
            )?,
            yaml(
                file,
                &self.object(
                    "networking.k8s.io/v1",
                    "NetworkPolicy",
                    as_,
                    Spec {
                        spec: self.network_policy(as_),
                    },
                ),
            )?,
        ];
        Ok(documents.join("---\n"))
    }

    fn object<T>(
        &self,
        api_version: &'static str,
        kind: &'static str,
        as_: &AsPlan,
        content: T,
    ) -> Object<T> {
        Object {
            api_version,
            kind,
            metadata: Metadata {
                name: as_.name.clone(),
                namespace: Some(self.name.to_owned()),
                labels: self.labels(as_),
            },
            content,
        }
    }

    fn labels(&self, as_: &AsPlan) -> Labels {
        let mut labels = selector(&as_.name).match_labels;
        labels.insert(LABEL_EXPORT, self.name.to_owned());
        labels
    }

    fn stateful_set(&self, as_: &AsPlan, archive: &[u8]) -> StatefulSet {
        use sha2::{Digest, Sha256};
        let of_program: Labels = [(LABEL_PROGRAM, PROGRAM.to_owned())].into();
        let spread = Spread {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname",
            when_unsatisfiable: "ScheduleAnyway",
            label_selector: Selector {
                match_labels: of_program,
            },
        };
        let segments = (0..self.parts).map(|at| Projection {
            config_map: Named {
                name: config_map(at),
            },
        });
        let volume = |name, source| Volume { name, source };
        let archive_volume = VolumeSource::Secret {
            secret_name: as_.name.clone(),
            default_mode: 0o400,
        };
        let pod = Pod {
            automount_service_account_token: false,
            // The variables of hundreds of Services would be in each pod.
            enable_service_links: false,
            termination_grace_period_seconds: 15,
            security_context: PodSecurity {
                seccomp_profile: Typed {
                    r#type: "RuntimeDefault",
                },
            },
            topology_spread_constraints: vec![spread],
            containers: vec![self.container(as_)],
            volumes: vec![
                volume("archive", archive_volume),
                volume(
                    "segments",
                    VolumeSource::Projected {
                        sources: segments.collect(),
                    },
                ),
                volume("state", VolumeSource::EmptyDir {}),
                volume("tmp", VolumeSource::EmptyDir {}),
            ],
        };
        StatefulSet {
            service_name: as_.name.clone(),
            replicas: 1,
            selector: selector(&as_.name),
            template: Template {
                metadata: TemplateMetadata {
                    labels: self.labels(as_),
                    // Another archive is another pod.
                    annotations: [("hawser/archive", name::hex(&Sha256::digest(archive)))].into(),
                },
                spec: pod,
            },
        }
    }

    fn container(&self, as_: &AsPlan) -> Container {
        let mount = |name, mount_path, read_only| Mount {
            name,
            mount_path,
            read_only,
        };
        let own = as_.isd_as.to_string();
        let args = [
            "as".to_owned(),
            "join".to_owned(),
            format!("{ARCHIVE_FOLDER}/{ARCHIVE}"),
            "--segments".to_owned(),
            SEGMENTS_FOLDER.to_owned(),
            "--state".to_owned(),
            format!("{STATE_FOLDER}/as"),
        ];
        // The daemon answers.
        let liveness = probe(&[&own, "--no-probe"], 20);
        // A path to a neighbour is alive: segments are there, and a link is up.
        let readiness = match neighbour(self.plan, as_.isd_as) {
            Some(neighbour) => probe(&[&neighbour.to_string()], 10),
            None => probe(&[&own, "--no-probe"], 10),
        };
        Container {
            name: PROGRAM,
            image: self.image.to_owned(),
            command: vec!["/usr/bin/hawser"],
            args: args.into(),
            ports: ports(as_)
                .into_values()
                .map(|container_port| ContainerPort {
                    container_port,
                    protocol: UDP,
                })
                .collect(),
            resources: Resources {
                requests: [("cpu", "50m"), ("memory", "96Mi")].into(),
                limits: [("cpu", "2"), ("memory", "1Gi")].into(),
            },
            security_context: ContainerSecurity {
                allow_privilege_escalation: false,
                read_only_root_filesystem: true,
                // Root with one capability: it sets the limits of links.
                run_as_user: 0,
                capabilities: Capabilities {
                    drop: ["ALL"],
                    add: ["NET_ADMIN"],
                },
            },
            liveness_probe: liveness,
            readiness_probe: readiness,
            volume_mounts: vec![
                mount("archive", ARCHIVE_FOLDER, true),
                mount("segments", SEGMENTS_FOLDER, true),
                mount("state", STATE_FOLDER, false),
                mount("tmp", "/tmp", false),
            ],
        }
    }

    /// An AS exchanges packets with its neighbours only, over the ports of their links, and asks name
    /// servers.
    fn network_policy(&self, as_: &AsPlan) -> NetworkPolicy {
        let udp = |ports: BTreeSet<u16>| -> Vec<PolicyPort> {
            let policy_port = |port| PolicyPort {
                protocol: UDP,
                port,
            };
            ports.into_iter().map(policy_port).collect()
        };
        let peer = |name: &str| Peer {
            pod_selector: selector(name),
        };
        let mut neighbours: BTreeMap<&str, (BTreeSet<u16>, BTreeSet<u16>)> = BTreeMap::new();
        for (link, plan) in self.plan.network.links.iter().zip(&self.plan.links) {
            for side in Side::BOTH {
                if link.end(side).isd_as == as_.isd_as {
                    let (near, far) = (plan.end(side), plan.end(side.other()));
                    let name = self.plan.ases[far.owner].name.as_str();
                    let (here, there) = neighbours.entry(name).or_default();
                    here.insert(near.port);
                    there.insert(far.port);
                }
            }
        }
        let dns = ["UDP", "TCP"].map(|protocol| PolicyPort {
            protocol,
            port: DNS,
        });
        let mut egress = vec![Egress {
            to: Vec::new(),
            ports: dns.into(),
        }];
        let mut ingress = Vec::new();
        for (name, (here, there)) in neighbours {
            ingress.push(Ingress {
                from: vec![peer(name)],
                ports: udp(here),
            });
            egress.push(Egress {
                to: vec![peer(name)],
                ports: udp(there),
            });
        }
        NetworkPolicy {
            pod_selector: selector(&as_.name),
            policy_types: ["Ingress", "Egress"],
            ingress,
            egress,
        }
    }
}

/// The ports of an AS's links, by interface.
fn ports(as_: &AsPlan) -> BTreeMap<u16, u16> {
    let routers = as_.topology.border_routers.values();
    let interfaces = routers.flat_map(|router| &router.interfaces);
    interfaces
        .map(|(&id, interface)| (id, interface.underlay.local.port()))
        .collect()
}

/// What selects the pod of an AS.
fn selector(name: &str) -> Selector {
    let labels = [
        (LABEL_PROGRAM, PROGRAM.to_owned()),
        (LABEL_AS, name.to_owned()),
    ];
    Selector {
        match_labels: labels.into(),
    }
}

/// The neighbour of an AS that has paths to it: over a link to a parent, a core AS or a child in its ISD,
/// else any; `None` if it has no link.
fn neighbour(plan: &Plan, isd_as: IsdAsn) -> Option<IsdAsn> {
    let links = plan.network.links_of(isd_as);
    let ranked = links.map(|(link, side)| {
        let other = link.end(side.other()).isd_as;
        let rank = match (link.kind, side) {
            (LinkKind::Child, _) if other.isd() != isd_as.isd() => 3,
            (LinkKind::Child, Side::B) => 0,
            (LinkKind::Core | LinkKind::Child, _) => 1,
            (LinkKind::Peer, _) => 2,
        };
        (rank, other)
    });
    ranked.min().map(|(_, other)| other)
}

/// A probe by `hawser paths`.
fn probe(args: &[&str], period: u32) -> Probe {
    let command = ["/usr/bin/hawser", "paths", "--timeout", PROBE_PATIENCE];
    let command = command.iter().chain(args).map(|&word| word.to_owned());
    Probe {
        exec: Exec {
            command: command.collect(),
        },
        initial_delay_seconds: period,
        period_seconds: period,
        timeout_seconds: PROBE_TIMEOUT,
        failure_threshold: 3,
    }
}

/// The ConfigMap with a part of the segments.
fn config_map(at: usize) -> String {
    format!("segments-{at:03}")
}

fn yaml(file: &str, object: &impl Serialize) -> Result<String, ExportError> {
    serde_saphyr::to_string(object).map_err(|error| ExportError::yaml(file, error))
}

#[cfg(test)]
mod tests;
