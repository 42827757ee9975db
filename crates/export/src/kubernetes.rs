//! Manifests for Kubernetes: a namespace, and in it for each AS a Secret with its archive, a StatefulSet
//! with one pod, a headless Service by whose name neighbours find the pod, and a NetworkPolicy. The
//! segments, which are the same for all, are ConfigMaps that all pods mount.
//!
//! A StatefulSet never runs two pods of an AS at once, as two routers with the same interfaces would
//! disturb each other.

mod objects;
mod pod;
mod podman;
mod policy;

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use self::objects::*;
pub(crate) use self::pod::{REQUESTED_CPU_MILLIS, REQUESTED_MEMORY_MIB};
use crate::error::ExportError;
use crate::plan::{AsPlan, Plan};
use crate::segments::part_path;
use crate::tree::Tree;

/// The archive of an AS, in its Secret and in its pod.
const ARCHIVE: &str = "as.tar.gz";
/// The folders of manifests.
const FOLDER: &str = "ases";
const LABEL_PROGRAM: &str = "app.kubernetes.io/name";
pub(crate) const LABEL_AS: &str = "app.kubernetes.io/instance";
const LABEL_EXPORT: &str = "app.kubernetes.io/part-of";
const PROGRAM: &str = "hawser";
const UDP: &str = "UDP";

/// What is exported, and to where.
pub(crate) struct Manifests<'a> {
    pub plan: &'a Plan,
    /// The name of the namespace.
    pub name: &'a str,
    pub image: &'a str,
    /// How many files the segments take.
    pub parts: usize,
    /// How many ConfigMaps there are for these files; those that are left over are empty.
    pub config_maps: usize,
}

impl Manifests<'_> {
    /// Adds the manifests to `tree`; `archives` are those of the ASes, in the plan's order.
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
        let ases: Vec<_> = self.plan.ases.iter().zip(archives).collect();
        let manifests = hawser_parallel::map(&ases, |(as_, archive)| {
            let file = format!("{FOLDER}/{}.yaml", as_.name);
            let manifest = self.manifest(&file, as_, archive)?;
            Ok::<_, ExportError>((file, manifest))
        });
        for made in manifests {
            let (file, manifest) = made?;
            tree.insert_secret(file.clone(), manifest);
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
            config_map_generator: (0..self.config_maps)
                .map(|at| ConfigMapOfFiles {
                    name: config_map(at),
                    namespace: self.name.to_owned(),
                    files: (at < self.parts)
                        .then(|| part_path(at))
                        .into_iter()
                        .collect(),
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

/// The ConfigMap with a part of the segments.
fn config_map(at: usize) -> String {
    format!("segments-{at:03}")
}

fn yaml(file: &str, object: &impl Serialize) -> Result<String, ExportError> {
    serde_saphyr::to_string(object).map_err(|error| ExportError::yaml(file, error))
}

#[cfg(test)]
mod tests;
