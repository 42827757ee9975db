//! Pods for `podman kube play`: one for each AS, whose archive and segments are a file and a folder of this
//! machine. The pods find each other by their names, which podman's network resolves.
//!
//! podman runs what Kubernetes runs, but for this: it knows neither StatefulSets nor NetworkPolicies; it
//! publishes the ports of containers on the machine; older versions know no volumes of Secrets or of
//! several parts, and no variables of the pod's addresses. So pods here have no ports, no such variable and no
//! probes, as `as join` starts dead services again by itself, and their state is in their containers.

use std::path::{Path, absolute};

use super::objects::*;
use super::pod::{ARCHIVE_FOLDER, SEGMENTS_FOLDER};
use super::{ARCHIVE, FOLDER, Manifests, yaml};
use crate::error::ExportError;
use crate::plan::AsPlan;
use crate::segments;
use crate::tree::Tree;

impl Manifests<'_> {
    /// Adds a pod for each AS to `tree`, which is written to `folder`; `archives` are those of the ASes, in
    /// the plan's order.
    pub fn add_pods(
        &self,
        tree: &mut Tree,
        archives: &[Vec<u8>],
        folder: &Path,
    ) -> Result<(), ExportError> {
        let folder = absolute(folder).map_err(ExportError::at(folder))?;
        let Some(root) = folder.to_str() else {
            return Err(ExportError::FolderName(folder));
        };
        for (as_, archive) in self.plan.ases.iter().zip(archives) {
            let bundle = format!("{FOLDER}/{}.tar.gz", as_.name);
            let file = format!("{FOLDER}/{}.yaml", as_.name);
            let metadata = self.pod_metadata(as_, archive, Some(as_.name.clone()));
            let pod = PodObject {
                api_version: "v1",
                kind: "Pod",
                metadata,
                spec: self.pod(as_, &format!("{root}/{bundle}"), root),
            };
            tree.insert(file.clone(), yaml(&file, &pod)?);
            tree.insert_secret(bundle, archive.clone());
        }
        Ok(())
    }

    fn pod(&self, as_: &AsPlan, archive: &str, root: &str) -> Pod {
        let mount = |name, mount_path| Mount {
            name,
            mount_path,
            read_only: true,
        };
        let container = self.container(as_);
        let container = Container {
            ports: Vec::new(),
            env: Vec::new(),
            security_context: ContainerSecurity {
                // It has the state, and `/tmp`.
                read_only_root_filesystem: false,
                ..container.security_context
            },
            volume_mounts: vec![
                mount("archive", format!("{ARCHIVE_FOLDER}/{ARCHIVE}")),
                mount("segments", SEGMENTS_FOLDER.to_owned()),
            ],
            ..container
        };
        let volume = |name, path: String, r#type| Volume {
            name,
            source: VolumeSource::HostPath { path, r#type },
        };
        Pod {
            automount_service_account_token: false,
            enable_service_links: false,
            termination_grace_period_seconds: 15,
            security_context: PodSecurity {
                seccomp_profile: Typed {
                    r#type: "RuntimeDefault",
                },
            },
            topology_spread_constraints: Vec::new(),
            containers: vec![container],
            volumes: vec![
                volume("archive", archive.to_owned(), "File"),
                // The folder, so that files that are replaced in it are seen.
                volume(
                    "segments",
                    format!("{root}/{}", segments::FOLDER),
                    "Directory",
                ),
            ],
        }
    }
}
