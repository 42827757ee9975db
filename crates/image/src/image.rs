//! The image of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use der::DateTime;
use serde::Serialize;

use crate::elf::Headers;
use crate::error::ImageError;
use crate::layout::{Description, Layout};
use crate::libraries::{self, Folders};
use crate::name;
use crate::root::{Content, Root};

/// The file in which the dynamic linker of glibc finds the folders of libraries.
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// Names of hosts are looked up in `/etc/hosts` first. What else a system may name here are plugins.
const NSSWITCH: &str = "hosts: files dns\npasswd: files\ngroup: files\n";
/// Root, which limits of links need, and a user without rights.
const PASSWD: &str = "root:x:0:0:root:/:\nnobody:x:65534:65534:nobody:/:\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";

/// What an image has beside the program.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name of the image with its tag, `localhost/hawser:0.1.0`.
    pub name: String,
    /// The name of the program in `/usr/bin`.
    pub program_name: String,
    /// Labels, as `org.opencontainers.image.version`.
    pub labels: BTreeMap<String, String>,
    /// Further files: their paths, and their content.
    pub files: Vec<(String, Vec<u8>)>,
    /// The time of all files and of the image, in seconds of Unix time; without one, files have the time
    /// 0, and the image has none.
    pub created: Option<u64>,
    /// The value of `LD_LIBRARY_PATH`: folders in which libraries are searched first.
    pub library_path: Option<OsString>,
}

/// An image of one layer: a program and what it needs to run.
#[derive(Debug)]
pub struct Image {
    layout: Layout,
    created: u64,
    summary: Summary,
}

/// What is in an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its name with its tag.
    pub name: String,
    /// The processor that it is for, as images name it.
    pub architecture: &'static str,
    /// The digest of its manifest.
    pub digest: String,
    /// The size of its files, compressed, in bytes.
    pub size: usize,
    /// The dynamic linker and the libraries in it; none if the program is linked statically.
    pub libraries: Vec<PathBuf>,
}

impl Image {
    /// The image of a program, and of the libraries that it needs, as they are on this machine.
    ///
    /// # Errors
    /// [`ImageError`]: when the name is not valid, the program or a library cannot be read, or a library
    /// is missing.
    pub fn of_program(program: &Path, options: &Options) -> Result<Self, ImageError> {
        let Some(tag) = name::tag(&options.name) else {
            return Err(ImageError::Name(options.name.clone()));
        };
        let mut root = Root::default();
        for (folder, mode) in [("run", 0o755), ("tmp", 0o1777), ("var/lib", 0o755)] {
            root.add_folder(folder, mode);
        }
        let texts = [
            ("etc/passwd", PASSWD),
            ("etc/group", GROUP),
            ("etc/nsswitch.conf", NSSWITCH),
        ];
        for (path, text) in texts {
            root.add_file(path, 0o644, Content::Bytes(text.into()));
        }
        for (path, bytes) in &options.files {
            root.add_file(path, 0o644, Content::Bytes(bytes.clone()));
        }
        let file = File::open(program).map_err(ImageError::read(program))?;
        let headers = Headers::read(&file).map_err(|reason| ImageError::Elf {
            path: program.to_owned(),
            reason,
        })?;
        // Where it is, for folders of libraries relative to it.
        let place = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let variable = options.library_path.as_deref();
        let folders = Folders::of_machine(headers.machine, variable, Path::new(CONFIGURATION));
        let libraries = libraries::find(&place, &headers, &folders)?;
        let entrypoint = format!("/usr/bin/{}", options.program_name);
        root.add_file(&entrypoint, 0o755, Content::Of(program.to_owned()));
        let interpreter = headers.interpreter.as_ref().map(PathBuf::from);
        let files: BTreeSet<PathBuf> = libraries.into_values().chain(interpreter).collect();
        for library in &files {
            let path = plain(library);
            root.add_file(&path, 0o755, Content::Of(library.clone()));
        }
        let mut environment = vec!["PATH=/usr/bin".to_owned()];
        // The linker in the image has no cache that names the folders.
        let places = files.iter().filter_map(|file| Some(plain(file.parent()?)));
        let places: BTreeSet<String> = places.map(|place| format!("/{place}")).collect();
        if !places.is_empty() {
            let places: Vec<String> = places.into_iter().collect();
            environment.push(format!("LD_LIBRARY_PATH={}", places.join(":")));
        }
        let created = options.created.unwrap_or_default();
        let named = options.created.map(rfc3339);
        let mut labels = options.labels.clone();
        if let Some(time) = &named {
            labels.insert("org.opencontainers.image.created".to_owned(), time.clone());
        }
        let description = Description {
            name: &options.name,
            architecture: headers.machine.architecture(),
            entrypoint: &entrypoint,
            environment,
            labels,
            created: (created, named),
        };
        let layout = Layout::new(&root, &description, tag).map_err(ImageError::Assemble)?;
        let summary = Summary {
            name: options.name.clone(),
            architecture: description.architecture,
            digest: layout.digest.clone(),
            size: layout.size(),
            libraries: files.into_iter().collect(),
        };
        Ok(Self {
            layout,
            created,
            summary,
        })
    }

    /// What is in it.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The image as an archive, which `podman load` and `docker load` read.
    ///
    /// # Errors
    /// When it cannot be assembled.
    pub fn to_tar(&self) -> Result<Vec<u8>, ImageError> {
        let tar = self.layout.to_tar(self.created);
        tar.map_err(ImageError::Assemble)
    }

    /// Writes the image as the folder `path` (an OCI image layout), whole or not at all. The folder may
    /// exist if it is empty.
    ///
    /// # Errors
    /// When it is not empty, or cannot be written.
    pub fn write_folder(&self, path: &Path) -> Result<(), ImageError> {
        self.layout.write_folder(path)
    }
}

/// A path without `.`, `..` and the slash at its beginning: archives have no others. Folders of libraries
/// may be named relative to the program.
fn plain(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            std::path::Component::ParentDir => drop(parts.pop()),
            _ => {}
        }
    }
    parts.join("/")
}

/// A second of Unix time in RFC 3339; the last one of the year 9999 for any later one.
fn rfc3339(unix: u64) -> String {
    let time = DateTime::from_unix_duration(Duration::from_secs(unix));
    time.unwrap_or(DateTime::INFINITY).to_string()
}

#[cfg(test)]
mod tests;
