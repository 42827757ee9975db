use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::*;

fn options() -> Options {
    Options {
        name: "localhost/this:1.2".to_owned(),
        program_name: "this".to_owned(),
        labels: [(
            "org.opencontainers.image.title".to_owned(),
            "this".to_owned(),
        )]
        .into(),
        files: vec![("/usr/share/doc/this/LICENSE".to_owned(), b"free".to_vec())],
        created: None,
        library_path: None,
    }
}

fn image(options: &Options) -> Image {
    Image::of_program(Path::new("/proc/self/exe"), options).unwrap()
}

/// Entries of an archive by their path: mode, time, and content; `None` for folders.
type Entries = BTreeMap<String, (u32, u64, Option<Vec<u8>>)>;

/// The entries of an archive.
fn entries(tar: &[u8]) -> Entries {
    let mut archive = tar::Archive::new(tar);
    let mut all = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header().clone();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        let content = header.entry_type().is_file().then_some(bytes);
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let found = (header.mode().unwrap(), header.mtime().unwrap(), content);
        assert!(all.insert(path, found).is_none());
    }
    all
}

fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// What a descriptor names, whose digest and size must be right.
fn follow(files: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Vec<u8> {
    let digest = descriptor["digest"].as_str().unwrap();
    let bytes = &files[&format!("blobs/{}", digest.replace(':', "/"))];
    assert_eq!(sha256(bytes), digest);
    assert_eq!(descriptor["size"].as_u64(), Some(bytes.len() as u64));
    bytes.clone()
}

/// The configuration of a layout that is valid, and the entries of its layer.
fn validate(files: &BTreeMap<String, Vec<u8>>) -> (Value, Entries) {
    let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    assert_eq!(parse(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
    let index = parse(&files["index.json"]);
    assert_eq!(index["schemaVersion"], 2);
    let [manifest] = &index["manifests"].as_array().unwrap()[..] else {
        panic!("{index}");
    };
    let kind = |value: &Value| value["mediaType"].as_str().unwrap().to_owned();
    assert_eq!(kind(manifest), "application/vnd.oci.image.manifest.v1+json");
    let manifest = parse(&follow(files, manifest));
    assert_eq!(
        kind(&manifest),
        "application/vnd.oci.image.manifest.v1+json"
    );
    let config_kind = "application/vnd.oci.image.config.v1+json";
    assert_eq!(kind(&manifest["config"]), config_kind);
    let config = parse(&follow(files, &manifest["config"]));
    let [layer] = &manifest["layers"].as_array().unwrap()[..] else {
        panic!("{manifest}");
    };
    assert_eq!(kind(layer), "application/vnd.oci.image.layer.v1.tar+gzip");
    let mut tar = Vec::new();
    let layer = follow(files, layer);
    GzDecoder::new(&layer[..]).read_to_end(&mut tar).unwrap();
    assert_eq!(
        config["rootfs"]["diff_ids"],
        serde_json::json!([sha256(&tar)])
    );
    // What Docker reads names the same files.
    let docker = parse(&files["manifest.json"]);
    for file in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
        assert!(files.contains_key(file.as_str().unwrap()), "{docker}");
    }
    assert_eq!(files.len(), 6);
    (config, entries(&tar))
}

#[test]
fn an_image_is_valid_and_has_the_program_and_its_libraries() {
    let image = image(&options());
    let archive = entries(&image.to_tar().unwrap());
    let files: BTreeMap<String, Vec<u8>> = archive
        .into_iter()
        .map(|(name, (_, time, content))| {
            assert_eq!(time, 0);
            (name, content.unwrap())
        })
        .collect();
    let (config, root) = validate(&files);
    assert_eq!(config["os"], "linux");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/this");
    assert_eq!(
        config["config"]["Labels"]["org.opencontainers.image.title"],
        "this"
    );
    assert!(config.get("created").is_none());
    let program = fs::read("/proc/self/exe").unwrap();
    assert_eq!(root["usr/bin/this"], (0o755, 0, Some(program)));
    assert_eq!(root["tmp/"].0, 0o1777);
    let license = root["usr/share/doc/this/LICENSE"].2.as_deref();
    assert_eq!(license, Some(&b"free"[..]));
    for library in &image.summary().libraries {
        let content = root[&plain(library)].2.as_ref().unwrap();
        assert_eq!(content, &fs::read(library).unwrap(), "{library:?}");
    }
    // No shell, and nothing else that could be run.
    let programs = root
        .iter()
        .filter(|(_, (mode, _, content))| content.is_some() && mode & 1 > 0);
    assert_eq!(programs.count(), 1 + image.summary().libraries.len());
}

#[test]
fn a_folder_has_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    let image = image(&options());
    image.write_folder(&path).unwrap();
    let mut files = BTreeMap::new();
    for (name, (_, _, content)) in entries(&image.to_tar().unwrap()) {
        assert_eq!(Some(fs::read(path.join(&name)).unwrap()), content, "{name}");
        files.insert(name, content.unwrap());
    }
    validate(&files);
    // It is not written over, and nothing else is left behind.
    let error = image.write_folder(&path).unwrap_err();
    assert!(matches!(error, ImageError::NotEmpty(_)) && error.is_wrong_use());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    image.write_folder(&empty).unwrap();
    assert!(empty.join("index.json").is_file());
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let first = image(&options()).to_tar().unwrap();
    assert!(first == image(&options()).to_tar().unwrap());
    let dated = Options {
        created: Some(1_790_000_000),
        ..options()
    };
    let dated = image(&dated);
    let tar = dated.to_tar().unwrap();
    assert!(
        entries(&tar)
            .values()
            .all(|(_, time, _)| *time == 1_790_000_000)
    );
    let text = String::from_utf8_lossy(&tar).into_owned();
    assert!(text.contains(r#""created":"2026-09-21T14:13:20Z""#));
    assert_ne!(dated.summary().digest, image(&options()).summary().digest);
}

#[test]
fn wrong_names_and_files_are_refused() {
    let wrong = Options {
        name: "this".to_owned(),
        ..options()
    };
    let program = Path::new("/proc/self/exe");
    let error = Image::of_program(program, &wrong).unwrap_err();
    assert!(matches!(error, ImageError::Name(_)), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let error = Image::of_program(&script, &options()).unwrap_err();
    assert!(matches!(error, ImageError::Elf { .. }), "{error}");
    let error = Image::of_program(&folder.path().join("none"), &options()).unwrap_err();
    assert!(matches!(error, ImageError::Read { .. }), "{error}");
}
