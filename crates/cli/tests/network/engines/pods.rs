//! The exported pods of a network, in podman.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;

use super::Machines;
use crate::image::podman_with_image;
use crate::machine::{Machine, export, export_with};
use crate::podman::Podman;

/// podman with the pods of an exported network.
pub struct Pods {
    podman: Podman,
    /// The network of the pods.
    network: String,
    image: String,
    folder: TempDir,
    topology: String,
}

impl Pods {
    /// podman, and a network that is exported for it, of which no pod runs yet; says why there is none.
    pub fn start(topology: &str) -> Option<Self> {
        let (podman, image) = podman_with_image()?;
        let network = podman.network(&image)?;
        let folder = tempfile::tempdir().unwrap();
        export(&folder, "podman", topology);
        let topology = topology.to_owned();
        Some(Self {
            podman,
            network,
            image,
            folder,
            topology,
        })
    }

    /// Starts the pod of an AS, in place of one that runs.
    pub fn play(&self, name: &str) {
        let file = self.folder.path().join(format!("out/ases/{name}.yaml"));
        let file = file.to_str().unwrap();
        let play = ["kube", "play", "--quiet", "--replace", "--network"];
        self.podman
            .run(&[&play[..], &[&self.network, file]].concat());
    }

    /// Starts the pods of all ASes, whose names in the export are `names`. Returns their machines.
    pub fn play_all(&self, names: &BTreeMap<String, String>) -> Machines {
        names.values().for_each(|name| self.play(name));
        let of = |(isd_as, name): (&String, &String)| (isd_as.clone(), self.machine(name));
        names.iter().map(of).collect()
    }

    /// Removes a pod; another container has its address from then on.
    pub fn remove(&self, name: &str) {
        let address = self.address(name);
        self.podman
            .run(&["pod", "rm", "--force", "--time", "60", name]);
        let run = ["run", "--detach", "--network", &self.network, "--ip"];
        let program = ["tracker", "--http", "127.0.0.1:6969"];
        self.podman
            .run(&[&run[..], &[&address, &self.image], &program].concat());
    }

    /// Stops a pod, whose program ends in order.
    pub fn stop(&self, name: &str) {
        self.podman.run(&["pod", "stop", "--time", "60", name]);
        let code = self.inspect(&format!("{name}-hawser"), "{{.State.ExitCode}}");
        assert_eq!(code, "0", "{name}");
    }

    /// Exports the network again, with another name of the same image.
    pub fn update(&self, tag: &str) {
        let image = format!("localhost/hawser:{tag}");
        self.podman.run(&["tag", &self.image, &image]);
        export_with(&self.folder, "podman", &self.topology, &["--image", &image]);
    }

    /// The name of the image that a pod runs.
    pub fn image(&self, name: &str) -> String {
        self.inspect(&format!("{name}-hawser"), "{{.ImageName}}")
    }

    /// The machine of a pod.
    pub fn machine(&self, name: &str) -> Machine {
        let pid = self.inspect(&format!("{name}-hawser"), "{{.State.Pid}}");
        Machine::open(Path::new(&format!("/proc/{pid}/ns/net")))
    }

    /// The address of a pod.
    pub fn address(&self, name: &str) -> String {
        let container =
            self.podman
                .run(&["pod", "inspect", "--format", "{{.InfraContainerID}}", name]);
        let format = format!(
            "{{{{(index .NetworkSettings.Networks \"{}\").IPAddress}}}}",
            self.network
        );
        self.inspect(container.trim(), &format)
    }

    fn inspect(&self, container: &str, format: &str) -> String {
        let printed = self.podman.run(&["inspect", "--format", format, container]);
        printed.trim().to_owned()
    }
}
