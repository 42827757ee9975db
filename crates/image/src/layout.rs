//! The files of an OCI image layout: an image of one layer, its configuration, and the indices by which
//! programs find it (OCI Image Format Specification 1.1, "Image Layout").

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::error::ImageError;
use crate::root::Root;

const MEDIA_TYPE: &str = "application/vnd.oci.image";

/// What an image says of itself.
#[derive(Debug)]
pub(crate) struct Description<'a> {
    /// `NAME:TAG`.
    pub name: &'a str,
    pub architecture: &'static str,
    pub entrypoint: &'a str,
    pub environment: Vec<String>,
    pub labels: BTreeMap<String, String>,
    /// Seconds of Unix time, and the same in RFC 3339, if it is to be named.
    pub created: (u64, Option<String>),
}

/// The files of a layout, by their names.
#[derive(Debug)]
pub(crate) struct Layout {
    files: BTreeMap<String, Vec<u8>>,
    /// The digest of the manifest.
    pub digest: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: usize,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    schema_version: u8,
    media_type: String,
    config: &'a Descriptor,
    layers: [&'a Descriptor; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u8,
    media_type: String,
    manifests: [Descriptor; 1],
}

#[derive(Serialize)]
struct Configuration<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<&'a str>,
    architecture: &'a str,
    os: &'a str,
    config: Execution<'a>,
    rootfs: RootFs,
    history: [History<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Execution<'a> {
    entrypoint: [&'a str; 1],
    env: &'a [String],
    labels: &'a BTreeMap<String, String>,
    stop_signal: &'a str,
}

#[derive(Serialize)]
struct RootFs {
    r#type: &'static str,
    diff_ids: [String; 1],
}

#[derive(Serialize)]
struct History<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<&'a str>,
    created_by: &'a str,
}

/// What `docker load` before version 25 reads in place of the index.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DockerImage<'a> {
    config: String,
    repo_tags: [&'a str; 1],
    layers: [String; 1],
}

impl Layout {
    /// The layout of an image with these files.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn new(root: &Root, description: &Description<'_>, tag: &str) -> io::Result<Self> {
        let mut layout = Self {
            files: BTreeMap::new(),
            digest: String::new(),
        };
        let (created, named) = &description.created;
        let gzip = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::default());
        let mut hashed = Hashed {
            to: gzip,
            hash: Sha256::new(),
        };
        root.write_tar(*created, &mut hashed)?;
        let content = digest_of(hashed.hash);
        let layer = layout.add("layer.v1.tar+gzip", hashed.to.finish()?);
        let created = named.as_deref();
        let configuration = Configuration {
            created,
            architecture: description.architecture,
            os: "linux",
            config: Execution {
                entrypoint: [description.entrypoint],
                env: &description.environment,
                labels: &description.labels,
                stop_signal: "SIGTERM",
            },
            rootfs: RootFs {
                r#type: "layers",
                diff_ids: [content],
            },
            history: [History {
                created,
                created_by: "hawser image",
            }],
        };
        let config = layout.add("config.v1+json", json(&configuration)?);
        let manifest = Manifest {
            schema_version: 2,
            media_type: format!("{MEDIA_TYPE}.manifest.v1+json"),
            config: &config,
            layers: [&layer],
        };
        let mut manifest = layout.add("manifest.v1+json", json(&manifest)?);
        layout.digest.clone_from(&manifest.digest);
        manifest.annotations = [
            ("org.opencontainers.image.ref.name", tag.to_owned()),
            ("io.containerd.image.name", description.name.to_owned()),
        ]
        .into();
        let index = Index {
            schema_version: 2,
            media_type: format!("{MEDIA_TYPE}.index.v1+json"),
            manifests: [manifest],
        };
        layout.put("index.json", json(&index)?);
        layout.put("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec());
        let docker = [DockerImage {
            config: blob(&config.digest),
            repo_tags: [description.name],
            layers: [blob(&layer.digest)],
        }];
        layout.put("manifest.json", json(&docker)?);
        Ok(layout)
    }

    fn put(&mut self, name: &str, bytes: Vec<u8>) {
        self.files.insert(name.to_owned(), bytes);
    }

    /// Adds a blob. Returns what others name it by.
    fn add(&mut self, kind: &str, bytes: Vec<u8>) -> Descriptor {
        let digest = digest_of(Sha256::new_with_prefix(&bytes));
        let descriptor = Descriptor {
            media_type: format!("{MEDIA_TYPE}.{kind}"),
            size: bytes.len(),
            annotations: BTreeMap::new(),
            digest,
        };
        self.put(&blob(&descriptor.digest), bytes);
        descriptor
    }

    /// The size of all files in bytes.
    pub fn size(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    /// The layout as an archive, which `podman load` and `docker load` read; its entries have the time
    /// `created`.
    ///
    /// # Errors
    /// When there is too little memory.
    pub fn to_tar(&self, created: u64) -> io::Result<Vec<u8>> {
        let mut tar = Builder::new(Vec::with_capacity(self.size() + (64 << 10)));
        for (name, bytes) in &self.files {
            let mut header = Header::new_ustar();
            header.set_path(name)?;
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(created);
            header.set_entry_type(EntryType::Regular);
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            tar.append(&header, &bytes[..])?;
        }
        tar.into_inner()
    }

    /// Writes the layout as the folder `path`, whole or not at all. The folder may exist if it is empty.
    ///
    /// # Errors
    /// When it is not empty, or cannot be written.
    pub fn write_folder(&self, path: &Path) -> Result<(), ImageError> {
        let name = name_of(path)?;
        let aside = format!(".{}.{}.new", name.display(), std::process::id());
        let aside = path.with_file_name(aside);
        let written = self.write_new(&aside).and_then(|()| {
            // It takes the place of an empty folder.
            fs::rename(&aside, path).map_err(ImageError::write(path))
        });
        if written.is_err() {
            // It may not have been made.
            let _ = fs::remove_dir_all(&aside);
        }
        written
    }

    fn write_new(&self, folder: &Path) -> Result<(), ImageError> {
        let blobs = folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(ImageError::write(&blobs))?;
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            hawser_file::write(&path, bytes, hawser_file::PUBLIC)
                .map_err(ImageError::write(&path))?;
        }
        Ok(())
    }
}

/// Checks that a layout can be written as the folder `path`: it is empty, or there is none.
///
/// # Errors
/// [`ImageError::NotEmpty`], or why it cannot be read.
pub fn check_folder(path: &Path) -> Result<(), ImageError> {
    name_of(path).map(drop)
}

/// The name of a folder that is empty, or that does not exist.
fn name_of(path: &Path) -> Result<&OsStr, ImageError> {
    let not_empty = || ImageError::NotEmpty(path.to_owned());
    match fs::read_dir(path).map(Iterator::count) {
        Ok(0) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Ok(_) => return Err(not_empty()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(not_empty()),
        Err(error) => return Err(ImageError::write(path)(error)),
    }
    path.file_name().ok_or_else(not_empty)
}

/// A writer that hashes what goes through it.
struct Hashed<W> {
    to: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.to.write(bytes)?;
        self.hash.update(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn digest_of(hash: Sha256) -> String {
    let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256:{hex}")
}

/// The file of the blob with this digest.
fn blob(digest: &str) -> String {
    format!("blobs/{}", digest.replacen(':', "/", 1))
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::other)
}
