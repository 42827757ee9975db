//! The pod of an AS: what it runs and may do, and how it is told to be alive and ready.

use sha2::{Digest, Sha256};

use super::objects::*;
use super::{ARCHIVE, LABEL_PROGRAM, Manifests, PROGRAM, UDP, config_map, ports, selector};
use crate::name;
use crate::plan::AsPlan;

/// Where a pod has its archive, the segments, and its state.
pub(super) const ARCHIVE_FOLDER: &str = "/etc/hawser/archive";
pub(super) const SEGMENTS_FOLDER: &str = "/etc/hawser/segments";
const STATE_FOLDER: &str = "/var/lib/hawser";
/// What a pod requests: thousandths of a processor, and MiB of memory.
pub(crate) const REQUESTED_CPU_MILLIS: u64 = 50;
pub(crate) const REQUESTED_MEMORY_MIB: u64 = 96;
/// Where a pod answers probes: at all its addresses, of whichever family the cluster asks it.
const HEALTH_PORT: u16 = 8042;
/// Time that a probe leaves for the answer, in seconds: a border router that does not answer takes 5.
const PROBE_TIMEOUT: u32 = 8;

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
        let segments = (0..self.config_maps).map(|at| Projection {
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
            containers: vec![probed(self.container(as_))],
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
            // With `OrderedReady`, a pod that is never ready stays when its StatefulSet changes.
            pod_management_policy: "Parallel",
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
        let state = format!("{STATE_FOLDER}/as");
        let args = [
            "as".to_owned(),
            "join".to_owned(),
            format!("{ARCHIVE_FOLDER}/{ARCHIVE}"),
            "--segments".to_owned(),
            SEGMENTS_FOLDER.to_owned(),
            "--state".to_owned(),
            state,
        ];
        Container {
            name: PROGRAM,
            image: self.image.to_owned(),
            command: vec!["/usr/bin/hawser"],
            args: args.into(),
            env: vec![own_addresses()],
            ports: ports(as_)
                .into_values()
                .map(|container_port| ContainerPort {
                    container_port,
                    protocol: UDP,
                })
                .collect(),
            resources: Resources {
                requests: [
                    ("cpu", format!("{REQUESTED_CPU_MILLIS}m")),
                    ("memory", format!("{REQUESTED_MEMORY_MIB}Mi")),
                ]
                .into(),
                limits: [("cpu", "2".to_owned()), ("memory", "1Gi".to_owned())].into(),
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
            liveness_probe: None,
            readiness_probe: None,
            volume_mounts: vec![
                mount("archive", ARCHIVE_FOLDER, true),
                mount("segments", SEGMENTS_FOLDER, true),
                mount("state", STATE_FOLDER, false),
                mount("tmp", "/tmp", false),
            ],
        }
    }
}

/// The addresses of the pod, as `as join` takes them in place of a flag.
fn own_addresses() -> Variable {
    Variable {
        name: "HAWSER_ADDRESS",
        value_from: ValueSource {
            field_ref: FieldRef {
                field_path: "status.podIPs",
            },
        },
    }
}

/// The container with probes, which it answers. By HTTP: to run a program in a container for each takes as much
/// time of processors as the AS itself.
fn probed(mut container: Container) -> Container {
    let listen = ["--listen".to_owned(), format!("[::]:{HEALTH_PORT}")];
    container.args.extend(listen);
    Container {
        liveness_probe: Some(probe("/live", 20)),
        readiness_probe: Some(probe("/ready", 5)),
        ..container
    }
}

fn probe(path: &'static str, period: u32) -> Probe {
    Probe {
        http_get: HttpGet {
            path,
            port: HEALTH_PORT,
        },
        initial_delay_seconds: period,
        period_seconds: period,
        timeout_seconds: PROBE_TIMEOUT,
        failure_threshold: 3,
    }
}
