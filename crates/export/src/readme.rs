//! What an export says about itself, in the file `README.md`.

use crate::index::MadeSegments;
use crate::kubernetes::LABEL_AS;
use crate::plan::Plan;

/// The name of the file.
pub(crate) const README: &str = "README.md";
/// The recipe of an image for containerlab: with `ip`, which sets the addresses of links.
pub(crate) const DOCKERFILE: &str = "Dockerfile";

/// How a network is exported.
pub(crate) enum Kind<'a> {
    /// To Kubernetes, as this namespace.
    Kubernetes { namespace: &'a str },
    /// To podman, in this network.
    Podman { network: &'a str },
    /// To containerlab, as this lab.
    Containerlab {
        name: &'a str,
        image: &'a str,
        has_hosts: bool,
    },
}

/// The text of the file.
pub(crate) fn readme(kind: &Kind<'_>, plan: &Plan, segments: &MadeSegments) -> String {
    let how = match kind {
        Kind::Kubernetes { namespace } => format!(
            "Bring it up, look at it, and remove it:\n\n\
             ```sh\n\
             kubectl apply --server-side -k .\n\
             kubectl -n {namespace} get pods\n\
             kubectl delete namespace {namespace}\n\
             ```\n\n\
             `--server-side` is needed: segments are larger than what `kubectl apply` alone keeps of an object.\n\n\
             After another export the first command changes what differs. It leaves what runs of ASes that are no longer in the network; this removes them:\n\n\
             ```sh\n\
             for as in $(kubectl -n {namespace} get statefulsets -o name); do\n\
             \x20   [ -e \"ases/${{as##*/}}.yaml\" ] || kubectl -n {namespace} delete statefulsets,services,secrets,networkpolicies -l \"{LABEL_AS}=${{as##*/}}\"\n\
             done\n\
             ```\n\n\
             The first command starts all ASes at once whose image or archive is another one. One after the other, while paths over other ASes carry traffic:\n\n\
             ```sh\n\
             for file in ases/*.yaml; do\n\
             \x20   kubectl apply --server-side -f \"$file\"\n\
             \x20   kubectl -n {namespace} rollout status --timeout 5m \"statefulset/$(basename \"$file\" .yaml)\" || break\n\
             done\n\
             ```\n"
        ),
        Kind::Podman { network } => format!(
            "Bring it up, look at it, and remove it:\n\n\
             ```sh\n\
             podman network create {network}\n\
             for pod in ases/*.yaml; do podman kube play --network {network} \"$pod\"; done\n\
             podman pod ps\n\
             for pod in ases/*.yaml; do podman kube down \"$pod\"; done\n\
             podman network rm {network}\n\
             ```\n\n\
             `podman pod rm --force NAME` removes the pod of an AS that is no longer in the network. The pods read their archives and the segments from this folder: after it was moved, export again. A pod whose file or archive a later export changes is made anew by `podman kube play --replace --network {network} ases/NAME.yaml`.\n"
        ),
        Kind::Containerlab {
            name,
            image,
            has_hosts,
        } => {
            let place = match has_hosts {
                true => {
                    "Copy each folder below `hosts` to its host, and no other: it has the keys of the ASes there. On each host, in that folder:"
                }
                false => "Bring it up and remove it:",
            };
            format!(
                "{place}\n\n\
                 ```sh\n\
                 containerlab deploy -t {name}.clab.yml\n\
                 containerlab destroy -t {name}.clab.yml\n\
                 ```\n\n\
                 The image must have `/usr/bin/hawser` and `ip` (iproute2), which sets the addresses of links. `{DOCKERFILE}` makes one: `docker build -t {image} .`\n"
            )
        }
    };
    let hours = segments.expiry.saturating_sub(segments.made) / 3600;
    let mut text = format!(
        "# A SCION network of {} ASes and {} links\n\n\
         Written by `hawser lab export`, which changes or removes only the files that `export.json` lists.\n\n\
         {how}\n\
         ## Segments expire\n\n\
         The path segments are made by the export and live for {hours} h. Without an export in between, no AS has a path after that. Repeat the same `hawser lab export` every 12 h, and bring its files to where they run: ASes take new segments without a restart.\n\n\
         ## Keys\n\n\
         `pki` has the keys of all ASes, of the voters and of the certification authorities. It stays on this machine; later exports need it. Each archive has the keys of its own AS alone.\n",
        plan.ases.len(),
        plan.links.len(),
    );
    if !plan.notes.is_empty() {
        text += "\n## What differs from the topology\n\n";
        for note in &plan.notes {
            text += &format!("- {note}\n");
        }
    }
    text
}

/// The recipe of an image for containerlab, from the image that `hawser image` makes.
pub(crate) fn dockerfile(base: &str) -> String {
    format!(
        "# hawser with `ip`, with which containerlab's nodes set the addresses of their links.\n\
         FROM {base} AS hawser\n\
         FROM debian:stable-slim\n\
         RUN apt-get update && apt-get install -y --no-install-recommends iproute2 && rm -rf /var/lib/apt/lists/*\n\
         COPY --from=hawser /usr/bin/hawser /usr/bin/hawser\n\
         ENTRYPOINT [\"/usr/bin/hawser\"]\n"
    )
}
