//! The shared libraries that a program needs, found as the dynamic linker finds them (ld.so(8)).

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::elf::{Headers, Machine};
use crate::error::ImageError;

/// Most libraries of a program, with those that its libraries need.
const MAX_LIBRARIES: usize = 512;
/// Largest configuration file of the dynamic linker that is read, in bytes.
const MAX_CONFIGURATION: u64 = 64 << 10;
/// How deep configuration files may include others.
const MAX_DEPTH: u32 = 4;
/// Most folders that configuration files name.
const MAX_FOLDERS: usize = 256;

/// The folders in which all libraries are searched, in this order.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    /// Those of `LD_LIBRARY_PATH`, before those that the headers name.
    pub first: Vec<PathBuf>,
    /// Those of the system, after them.
    pub system: Vec<PathBuf>,
}

impl Folders {
    /// Those of this machine: the folders in `variable` (`LD_LIBRARY_PATH`), in the file
    /// `configuration` (`/etc/ld.so.conf`), and the usual ones.
    pub fn of_machine(machine: Machine, variable: Option<&OsStr>, configuration: &Path) -> Self {
        let first = variable.into_iter().flat_map(std::env::split_paths);
        let mut system = Vec::new();
        read_configuration(configuration, 0, &mut system);
        for folder in ["/lib", "/usr/lib"] {
            system.push(Path::new(folder).join(machine.folder()));
        }
        let usual = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];
        system.extend(usual.map(PathBuf::from));
        Self {
            first: first.filter(|folder| folder.is_absolute()).collect(),
            system,
        }
    }
}

/// Adds the folders of a configuration file, and of the files that it includes. Files that cannot be read
/// have none: the usual folders remain, and a library that is missing is an error.
fn read_configuration(file: &Path, depth: u32, folders: &mut Vec<PathBuf>) {
    let mut text = String::new();
    let read = File::open(file).map(|file| file.take(MAX_CONFIGURATION).read_to_string(&mut text));
    if !matches!(read, Ok(Ok(_))) {
        return;
    }
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("include") {
            Some(pattern) if depth < MAX_DEPTH && pattern.starts_with([' ', '\t']) => {
                for included in matching(Path::new(pattern.trim())) {
                    read_configuration(&included, depth + 1, folders);
                }
            }
            _ if line.starts_with('/') && folders.len() < MAX_FOLDERS => folders.push(line.into()),
            _ => {}
        }
    }
}

/// The files of a pattern with at most one `*`, in their name, in order.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().and_then(OsStr::to_str);
    let (Some(name), Some(folder)) = (name, pattern.parent()) else {
        return Vec::new();
    };
    let Some((begin, end)) = name.split_once('*') else {
        return vec![pattern.to_owned()];
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(begin));
        rest.is_some_and(|rest| rest.ends_with(end))
    };
    let mut files: Vec<_> = entries.filter(fits).map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// A program or library whose libraries are searched.
struct User {
    path: PathBuf,
    headers: Headers,
    /// The folders of RPATH that it has from what needs it.
    inherited: Vec<PathBuf>,
}

/// Finds the libraries of `program`, with those that they need: their paths by their names.
///
/// # Errors
/// When one is not found, or cannot be read.
pub(crate) fn find(
    program: &Path,
    headers: &Headers,
    folders: &Folders,
) -> Result<BTreeMap<String, PathBuf>, ImageError> {
    let mut found = BTreeMap::new();
    let mut users = VecDeque::from([User {
        path: program.to_owned(),
        headers: headers.clone(),
        inherited: Vec::new(),
    }]);
    while let Some(user) = users.pop_front() {
        let origin = user.path.parent().unwrap_or(Path::new("/"));
        let own = |list: &Option<String>| {
            let list = list.as_deref().unwrap_or_default();
            expand(list, origin, headers.machine)
        };
        let runpath = own(&user.headers.runpath);
        // RUNPATH voids the RPATH of the file, and those that it would have inherited.
        let rpath = match user.headers.runpath {
            Some(_) => Vec::new(),
            None => [own(&user.headers.rpath), user.inherited].concat(),
        };
        let lists = [&rpath, &folders.first, &runpath, &folders.system];
        for name in &user.headers.needed {
            if found.contains_key(name) {
                continue;
            }
            let mut candidates = lists.into_iter().flatten().map(|folder| folder.join(name));
            let library =
                candidates.find_map(|path| Some((examine(&path, headers.machine)?, path)));
            let Some((library, path)) = library else {
                return Err(ImageError::NoLibrary {
                    name: name.clone(),
                    needed_by: user.path.clone(),
                });
            };
            if found.len() == MAX_LIBRARIES {
                return Err(ImageError::TooManyLibraries {
                    program: program.to_owned(),
                    most: MAX_LIBRARIES,
                });
            }
            found.insert(name.clone(), path.clone());
            users.push_back(User {
                // The folder of the file itself is its origin.
                path: path.canonicalize().unwrap_or(path),
                headers: library,
                inherited: rpath.clone(),
            });
        }
    }
    Ok(found)
}

/// The headers of a library for this processor; `None` for what the dynamic linker passes over too.
fn examine(path: &Path, machine: Machine) -> Option<Headers> {
    let headers = Headers::read(&File::open(path).ok()?).ok()?;
    (headers.machine == machine).then_some(headers)
}

/// The folders of a list, in which `$ORIGIN`, `$LIB` and `$PLATFORM` stand for others.
fn expand(list: &str, origin: &Path, machine: Machine) -> Vec<PathBuf> {
    let origin = origin.to_string_lossy();
    let expand = |folder: &str| {
        let mut folder = folder.to_owned();
        for (name, value) in [("ORIGIN", &*origin), ("LIB", "lib64")] {
            folder = folder.replace(&format!("${{{name}}}"), value);
            folder = folder.replace(&format!("${name}"), value);
        }
        let platform = machine.folder().split('-').next().unwrap_or_default();
        folder = folder.replace("$PLATFORM", platform);
        PathBuf::from(folder)
    };
    let folders = list.split(':').map(expand);
    // Relative ones depend on the folder in which the program is started.
    folders.filter(|folder| folder.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::testing::Elf;

    /// A folder with libraries in folders of it.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn put(&self, name: &str, elf: &Elf<'_>) -> PathBuf {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, elf.bytes()).unwrap();
            path
        }

        fn find(&self, program: &Elf<'_>) -> Result<BTreeMap<String, PathBuf>, ImageError> {
            let path = self.put("bin/program", program);
            let headers = Headers::read(&program.bytes()[..]).unwrap();
            let folders = Folders {
                first: vec![self.path("first")],
                system: vec![self.path("missing"), self.path("system")],
            };
            find(&path, &headers, &folders)
        }
    }

    #[test]
    fn libraries_of_libraries_are_found_in_the_order_of_folders() {
        let place = Place::new();
        let own = place.put(
            "own/liba.so",
            &Elf {
                needed: &["libc.so"],
                ..Elf::default()
            },
        );
        place.put("system/liba.so", &Elf::default());
        // Each needs the other.
        let c = place.put(
            "system/libc.so",
            &Elf {
                needed: &["liba.so", "libd.so"],
                ..Elf::default()
            },
        );
        let first = place.put("first/libd.so", &Elf::default());
        place.put("own/libd.so", &Elf::default());
        let program = Elf {
            needed: &["liba.so"],
            runpath: Some("relative:$ORIGIN/../own"),
            ..Elf::default()
        };
        let found = place.find(&program).unwrap();
        let origin = place.path("bin/../own/liba.so");
        assert_eq!(found["liba.so"], origin);
        assert_eq!(origin.canonicalize().unwrap(), own.canonicalize().unwrap());
        assert_eq!((&found["libc.so"], &found["libd.so"]), (&c, &first));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn rpath_is_inherited_and_runpath_is_not() {
        let place = Place::new();
        place.put(
            "system/liba.so",
            &Elf {
                needed: &["libb.so"],
                ..Elf::default()
            },
        );
        place.put("own/libb.so", &Elf::default());
        let program = Elf {
            needed: &["liba.so"],
            rpath: Some("$ORIGIN/../own"),
            ..Elf::default()
        };
        assert_eq!(place.find(&program).unwrap().len(), 2);
        let program = Elf {
            rpath: None,
            runpath: program.rpath,
            ..program
        };
        let error = place.find(&program).unwrap_err();
        let ImageError::NoLibrary { name, needed_by } = &error else {
            panic!("{error}");
        };
        assert_eq!(name, "libb.so");
        assert!(needed_by.ends_with("system/liba.so"), "{error}");
    }

    #[test]
    fn libraries_for_other_processors_are_passed_over() {
        let place = Place::new();
        place.put(
            "first/liba.so",
            &Elf {
                machine: Some(183),
                ..Elf::default()
            },
        );
        fs::write(place.path("first/libb.so"), "/* GNU ld script */").unwrap();
        let a = place.put("system/liba.so", &Elf::default());
        place.put("system/libb.so", &Elf::default());
        let program = Elf {
            needed: &["liba.so", "libb.so"],
            ..Elf::default()
        };
        assert_eq!(place.find(&program).unwrap()["liba.so"], a);
    }

    #[test]
    fn the_configuration_of_the_dynamic_linker_is_followed() {
        let place = Place::new();
        let folder = place.path("conf.d");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("b.conf"), "/opt/b\nrelative\n").unwrap();
        // It includes itself.
        let all = folder.join("*.conf");
        fs::write(
            folder.join("a.conf"),
            format!("/opt/a # comment\ninclude {}\n", all.display()),
        )
        .unwrap();
        fs::write(folder.join("c.other"), "/opt/c\n").unwrap();
        let file = place.path("ld.so.conf");
        fs::write(&file, format!("# /opt/d\ninclude {}\n", all.display())).unwrap();
        let variable = OsStr::new("/first:relative");
        let folders = Folders::of_machine(Machine::X86_64, Some(variable), &file);
        assert_eq!(folders.first, [Path::new("/first")]);
        let of_file: Vec<_> = folders
            .system
            .iter()
            .filter(|f| f.starts_with("/opt"))
            .collect();
        assert!(of_file.len() <= MAX_FOLDERS);
        assert_eq!(of_file[0], Path::new("/opt/a"));
        assert!(of_file.contains(&&PathBuf::from("/opt/b")));
        assert!(!of_file.iter().any(|f| f.ends_with("c") || f.ends_with("d")));
        assert!(
            folders
                .system
                .contains(&PathBuf::from("/usr/lib/x86_64-linux-gnu"))
        );
    }
}
