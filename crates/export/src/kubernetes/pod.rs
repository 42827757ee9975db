//! The pod of an AS: what it runs and may do, and how it is told to be alive and ready.

use hawser_topology::{IsdAsn, LinkKind, Side};
use sha2::{Digest, Sha256};

use super::objects::*;
use super::{ARCHIVE, LABEL_PROGRAM, Manifests, PROGRAM, UDP, config_map, ports, selector};
use crate::name;
use crate::plan::{AsPlan, Plan};

/// Where a pod has its archive, the segments, and its state.
pub(super) const ARCHIVE_FOLDER: &str = "/etc/hawser/archive";
pub(super) const SEGMENTS_FOLDER: &str = "/etc/hawser/segments";
const STATE_FOLDER: &str = "/var/lib/hawser";
/// Time that a probe leaves its command, and the command itself, in seconds.
const PROBE_TIMEOUT: u32 = 8;
const PROBE_PATIENCE: &str = "6s";

impl Manifests<'_> {
    /// The StatefulSet of an AS, with the pod that runs it.
    pub(super) fn stateful_set(&self, as_: &AsPlan, archive: &[u8]) -> StatefulSet {
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
                metadata: self.pod_metadata(as_, archive, None),
                spec: pod,
            },
        }
    }

    /// The metadata of the pod of an AS, with a name if it stands alone.
    pub(super) fn pod_metadata(
        &self,
        as_: &AsPlan,
        archive: &[u8],
        name: Option<String>,
    ) -> PodMetadata {
        PodMetadata {
            name,
            labels: self.labels(as_),
            // Another archive is another pod. podman 4.3 takes at most 63 characters.
            annotations: [("hawser/archive", name::hex(&Sha256::digest(archive)[..16]))].into(),
        }
    }

    pub(super) fn container(&self, as_: &AsPlan) -> Container {
        let mount = |name, path: &str, read_only| Mount {
            name,
            mount_path: path.to_owned(),
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
            liveness_probe: Some(liveness),
            readiness_probe: Some(readiness),
            volume_mounts: vec![
                mount("archive", ARCHIVE_FOLDER, true),
                mount("segments", SEGMENTS_FOLDER, true),
                mount("state", STATE_FOLDER, false),
                mount("tmp", "/tmp", false),
            ],
        }
    }
}

/// The neighbour of an AS that has paths to it: over a link to a parent, a core AS or a child in its ISD,
/// else any; `None` if it has no link.
pub(super) fn neighbour(plan: &Plan, isd_as: IsdAsn) -> Option<IsdAsn> {
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
