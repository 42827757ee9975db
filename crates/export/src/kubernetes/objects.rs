//! The objects of Kubernetes that an export has, with the fields that it sets, in the API's names.

use std::collections::BTreeMap;

use serde::Serialize;

/// Labels, or what selects by them.
pub(super) type Labels = BTreeMap<&'static str, String>;

/// Any object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Object<T> {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub metadata: Metadata,
    #[serde(flatten)]
    pub content: T,
}

#[derive(Serialize, Clone)]
pub(super) struct Metadata {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// A pod that stands alone.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodObject {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub metadata: PodMetadata,
    pub spec: Pod,
}

/// An object without further content.
#[derive(Serialize)]
pub(super) struct Nothing {}

/// The content of a Secret.
#[derive(Serialize)]
pub(super) struct Secret {
    pub r#type: &'static str,
    /// In base64.
    pub data: BTreeMap<&'static str, String>,
}

/// The content of most other objects.
#[derive(Serialize)]
pub(super) struct Spec<T> {
    pub spec: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Service {
    #[serde(rename = "clusterIP")]
    pub cluster_ip: &'static str,
    pub publish_not_ready_addresses: bool,
    pub selector: Labels,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServicePort>,
}

#[derive(Serialize)]
pub(super) struct ServicePort {
    pub name: String,
    pub protocol: &'static str,
    pub port: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatefulSet {
    pub service_name: String,
    pub replicas: u32,
    pub pod_management_policy: &'static str,
    pub selector: Selector,
    pub template: Template,
}

#[derive(Serialize, Clone)]
#[serde(rename_all = "camelCase")]
pub(super) struct Selector {
    pub match_labels: Labels,
}

#[derive(Serialize)]
pub(super) struct Template {
    pub metadata: PodMetadata,
    pub spec: Pod,
}

#[derive(Serialize)]
pub(super) struct PodMetadata {
    /// The name of a pod that stands alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub labels: Labels,
    pub annotations: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pod {
    pub automount_service_account_token: bool,
    pub enable_service_links: bool,
    pub termination_grace_period_seconds: u32,
    pub security_context: PodSecurity,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<Spread>,
    pub containers: Vec<Container>,
    pub volumes: Vec<Volume>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodSecurity {
    pub seccomp_profile: Typed,
}

#[derive(Serialize)]
pub(super) struct Typed {
    pub r#type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spread {
    pub max_skew: u32,
    pub topology_key: &'static str,
    pub when_unsatisfiable: &'static str,
    pub label_selector: Selector,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Container {
    pub name: &'static str,
    pub image: String,
    pub command: Vec<&'static str>,
    pub args: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ContainerPort>,
    pub resources: Resources,
    pub security_context: ContainerSecurity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    pub volume_mounts: Vec<Mount>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerPort {
    pub container_port: u16,
    pub protocol: &'static str,
}

/// A variable of the environment, from a field of the pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Variable {
    pub name: &'static str,
    pub value_from: ValueSource,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ValueSource {
    pub field_ref: FieldRef,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FieldRef {
    pub field_path: &'static str,
}

#[derive(Serialize)]
pub(super) struct Resources {
    pub requests: BTreeMap<&'static str, String>,
    pub limits: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContainerSecurity {
    pub allow_privilege_escalation: bool,
    pub read_only_root_filesystem: bool,
    pub run_as_user: u32,
    pub capabilities: Capabilities,
}

#[derive(Serialize)]
pub(super) struct Capabilities {
    pub drop: [&'static str; 1],
    pub add: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probe {
    pub http_get: HttpGet,
    pub initial_delay_seconds: u32,
    pub period_seconds: u32,
    pub timeout_seconds: u32,
    pub failure_threshold: u32,
}

#[derive(Serialize)]
pub(super) struct HttpGet {
    pub path: &'static str,
    pub port: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mount {
    pub name: &'static str,
    pub mount_path: String,
    pub read_only: bool,
}

#[derive(Serialize)]
pub(super) struct Volume {
    pub name: &'static str,
    #[serde(flatten)]
    pub source: VolumeSource,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum VolumeSource {
    #[serde(rename_all = "camelCase")]
    Secret {
        secret_name: String,
        default_mode: u32,
    },
    Projected {
        sources: Vec<Projection>,
    },
    EmptyDir {},
    /// A file or folder of the machine.
    HostPath {
        path: String,
        r#type: &'static str,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Projection {
    pub config_map: Named,
}

#[derive(Serialize)]
pub(super) struct Named {
    pub name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NetworkPolicy {
    pub pod_selector: Selector,
    pub policy_types: [&'static str; 2],
    pub ingress: Vec<Ingress>,
    pub egress: Vec<Egress>,
}

#[derive(Serialize)]
pub(super) struct Ingress {
    pub from: Vec<Peer>,
    pub ports: Vec<PolicyPort>,
}

/// Without `to`, to any address.
#[derive(Serialize)]
pub(super) struct Egress {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Peer>,
    pub ports: Vec<PolicyPort>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Peer {
    pub pod_selector: Selector,
}

#[derive(Serialize)]
pub(super) struct PolicyPort {
    pub protocol: &'static str,
    pub port: u16,
}

/// `kustomization.yaml`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kustomization {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub resources: Vec<String>,
    pub generator_options: GeneratorOptions,
    pub config_map_generator: Vec<ConfigMapOfFiles>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeneratorOptions {
    pub disable_name_suffix_hash: bool,
    pub labels: Labels,
}

#[derive(Serialize)]
pub(super) struct ConfigMapOfFiles {
    pub name: String,
    pub namespace: String,
    pub files: Vec<String>,
}
