//! Other programs read what is exported: `kubernetes-validate` from PyPI, with the schemas of the API, and
//! `kubectl kustomize`. Where they are missing and cannot be installed, the tests say so.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use hawser_export::{Options, Target, export};
use hawser_topology::Network;

/// Exports the network of a figure to `folder`.
fn export_to(folder: &Path, to: Target) {
    let options = Options {
        to,
        name: "net".to_owned(),
        image: "localhost/hawser:1".to_owned(),
        base: "localhost/hawser:1".to_owned(),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let network = Network::ready("fig9").unwrap();
    export(&network, &options, folder, now.as_secs()).unwrap();
}

/// Installs the validator below `folder`; says why it cannot.
fn install(folder: &Path) -> Result<PathBuf, String> {
    let venv = folder.join("venv");
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let bin = venv.join("bin");
    let mut pip = Command::new(bin.join("python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--retries", "1"]);
    run(pip.arg("kubernetes-validate"))?;
    Ok(bin.join("kubernetes-validate"))
}

#[test]
fn manifests_are_valid_by_the_schemas_of_kubernetes() {
    let folder = tempfile::tempdir().unwrap();
    let validator = match install(folder.path()) {
        Ok(validator) => validator,
        Err(error) => {
            eprintln!("skipped: kubernetes-validate cannot be installed: {error}");
            return;
        }
    };
    let out = folder.path().join("out");
    export_to(&out, Target::Kubernetes);
    let pods = folder.path().join("pods");
    export_to(&pods, Target::Podman);
    let mut files = vec![out.join("namespace.yaml")];
    for folder in [&out, &pods] {
        let ases = fs::read_dir(folder.join("ases")).unwrap();
        let ases = ases.map(|entry| entry.unwrap().path());
        files.extend(ases.filter(|path| path.extension().is_some_and(|end| end == "yaml")));
    }
    assert_eq!(files.len(), 11);
    let validate = |files: &[PathBuf]| {
        let mut command = Command::new(&validator);
        command.args(["--strict", "--no-warn"]).args(files);
        command.output().unwrap()
    };
    let output = validate(&files);
    assert!(output.status.success(), "{output:?}");
    // It does look: a field that no object has is refused.
    let text = fs::read_to_string(&files[1]).unwrap();
    let wrong = folder.path().join("wrong.yaml");
    assert!(text.contains("clusterIP:"));
    fs::write(&wrong, text.replace("clusterIP:", "clusterAddress:")).unwrap();
    assert!(!validate(&[wrong]).status.success());
}

#[test]
fn kustomize_makes_config_maps_of_the_segments() {
    let folder = tempfile::tempdir().unwrap();
    export_to(folder.path(), Target::Kubernetes);
    let mut command = Command::new("kubectl");
    let output = match command.arg("kustomize").arg(folder.path()).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: there is no kubectl: {error}");
            return;
        }
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("binaryData:\n  000.json.gz:"), "{text}");
    assert!(text.contains("name: segments-000\n"), "{text}");
    assert_eq!(text.matches("kind: StatefulSet").count(), 5);
}
