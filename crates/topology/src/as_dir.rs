//! The folder of one AS.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::IsdAsn;
use crate::json_file::{FileError, read_json, write_json};
use crate::network::Shape;
use crate::topology_json::AsTopology;

/// The folder of one AS, as scionproto lays it out: `topology.json`, `keys/master0.key`, trust root
/// configurations in `certs/`, the AS's keys and certificates in `crypto/`; and `links.json`, which
/// hawser adds, with the configured state of the AS's links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsDir(PathBuf);

/// The configured state of an external interface.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkState {
    /// Whether the link is up.
    pub up: bool,
    /// Rate, delay, jitter and loss.
    #[serde(flatten)]
    pub shape: Shape,
}

/// scionproto `scrypto.HFMacFactory`: the hop-field key is PBKDF2-HMAC-SHA256 of the master key
/// with this salt and number of rounds, 16 bytes long.
const HOP_KEY_SALT: &[u8] = b"Derive OF Key";
const HOP_KEY_ROUNDS: u32 = 1000;

impl AsDir {
    /// The folder at `path`. Reads no files.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads `topology.json`.
    ///
    /// # Errors
    /// When the file cannot be read, or is not valid.
    pub fn topology(&self) -> Result<AsTopology, FileError> {
        read_json(&self.0.join("topology.json"))
    }

    /// Writes `topology.json`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_topology(&self, topology: &AsTopology) -> Result<(), FileError> {
        write_json(&self.0.join("topology.json"), topology)
    }

    /// Reads `links.json`, the state of each external interface. Empty if the file is missing, as
    /// in scionproto's layout.
    ///
    /// # Errors
    /// When the file cannot be read, or is not valid.
    pub fn links(&self) -> Result<BTreeMap<u16, LinkState>, FileError> {
        match read_json(&self.0.join("links.json")) {
            Err(error) if error.is_not_found() => Ok(BTreeMap::new()),
            links => links,
        }
    }

    /// Writes `links.json`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_links(&self, links: &BTreeMap<u16, LinkState>) -> Result<(), FileError> {
        write_json(&self.0.join("links.json"), links)
    }

    /// The key of the AS's hop-field MACs, derived from `keys/master0.key`.
    ///
    /// # Errors
    /// When that file cannot be read, or does not contain a key of 16 bytes in base64.
    pub fn hop_key(&self) -> Result<[u8; 16], FileError> {
        let path = self.key_path("master0.key");
        let text = std::fs::read_to_string(&path).map_err(FileError::at(&path))?;
        let invalid = |reason| FileError::at(&path)(io::Error::other(reason));
        let master = BASE64_STANDARD
            .decode(text.trim())
            .map_err(|error| invalid(error.to_string()))?;
        match master.len() {
            16 => Ok(derive_hop_key(&master)),
            length => Err(invalid(format!("the key has {length} bytes instead of 16"))),
        }
    }

    /// Writes `keys/master0.key`, readable by its owner only.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_master_key(&self, key: &[u8; 16]) -> Result<(), FileError> {
        write_key(&self.key_path("master0.key"), key)
    }

    /// Writes `keys/master1.key`, the next master key. scionproto's programs do not start without
    /// it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_next_master_key(&self, key: &[u8; 16]) -> Result<(), FileError> {
        write_key(&self.key_path("master1.key"), key)
    }

    fn key_path(&self, name: &str) -> PathBuf {
        self.0.join("keys").join(name)
    }

    /// The control socket of the AS's only border router, a Unix socket.
    pub fn router_socket(&self) -> PathBuf {
        self.0.join("router.sock")
    }

    /// The control socket of the border router `name` of an AS with several.
    pub fn router_socket_of(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.sock"))
    }

    /// The control socket of the AS's control service, a Unix socket.
    pub fn control_socket(&self) -> PathBuf {
        self.0.join("control.sock")
    }

    /// The socket of the process that emulates the AS's links for plain IP in a lab, a Unix socket.
    pub fn emulator_socket(&self) -> PathBuf {
        self.0.join("emulator.sock")
    }
}

/// The name of an AS's folder: the ISD-AS with `_` for `:`, as in scionproto's file names.
pub fn as_folder(isd_as: IsdAsn) -> String {
    isd_as.to_string().replace(':', "_")
}

fn write_key(path: &Path, key: &[u8; 16]) -> Result<(), FileError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(FileError::at(folder))?;
    }
    let text = BASE64_STANDARD.encode(key);
    hawser_file::write(path, text.as_bytes(), hawser_file::PRIVATE).map_err(FileError::at(path))
}

fn derive_hop_key(master: &[u8]) -> [u8; 16] {
    pbkdf2::pbkdf2_hmac_array::<sha2::Sha256, 16>(master, HOP_KEY_SALT, HOP_KEY_ROUNDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology_json::{Bfd, BorderRouter, Interface, LinkAddresses, LinkTo};

    fn folder() -> (tempfile::TempDir, AsDir) {
        let folder = tempfile::tempdir().unwrap();
        let dir = AsDir::new(folder.path());
        (folder, dir)
    }

    #[test]
    fn topology_keeps_scionproto_layout() {
        let (_keep, dir) = folder();
        let topology = AsTopology {
            isd_as: "1-ff00:0:110".parse().unwrap(),
            mtu: 1472,
            core: true,
            dispatched_ports: (31000, 32767),
            control_service: [("cs1".to_owned(), "10.0.1.254:30252".parse().unwrap())].into(),
            discovery_service: [].into(),
            border_routers: [(
                "br1".to_owned(),
                BorderRouter {
                    internal_addr: "10.0.1.254:30042".parse().unwrap(),
                    interfaces: [(
                        1,
                        Interface {
                            underlay: LinkAddresses {
                                local: "10.128.0.0:50000".parse().unwrap(),
                                remote: "10.128.0.1:50000".parse().unwrap(),
                            },
                            isd_as: "1-ff00:0:111".parse().unwrap(),
                            remote_id: 41,
                            link_to: LinkTo::Child,
                            mtu: 1472,
                            bfd: Bfd::default(),
                        },
                    )]
                    .into(),
                },
            )]
            .into(),
        };
        dir.write_topology(&topology).unwrap();
        assert_eq!(dir.topology().unwrap(), topology);
        let text = std::fs::read_to_string(dir.path().join("topology.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["attributes"][0], "core");
        let interface = &json["border_routers"]["br1"]["interfaces"]["1"];
        assert_eq!(interface["underlay"]["local"], "10.128.0.0:50000");
        assert_eq!(interface["link_to"], "CHILD");
        assert_eq!(json["dispatched_ports"], "31000-32767");
    }

    #[test]
    fn hop_key_is_pbkdf2_of_the_master_key() {
        let (_keep, dir) = folder();
        dir.write_master_key(&[7; 16]).unwrap();
        // Computed with Python's hashlib.pbkdf2_hmac("sha256", bytes([7]) * 16, b"Derive OF Key",
        // 1000, 16).
        let expected = HOP_KEY_OF_SEVENS;
        assert_eq!(dir.hop_key().unwrap(), expected);
        // The next master key has no effect on the hop-field key.
        dir.write_next_master_key(&[8; 16]).unwrap();
        assert_eq!(dir.hop_key().unwrap(), expected);
        let next = std::fs::read_to_string(dir.path().join("keys/master1.key")).unwrap();
        assert_eq!(BASE64_STANDARD.decode(next).unwrap(), [8; 16]);
    }

    const HOP_KEY_OF_SEVENS: [u8; 16] = [
        0x7c, 0x07, 0xa5, 0xb4, 0x5c, 0x19, 0xbe, 0x7a, 0x49, 0xfd, 0x82, 0x1e, 0x59, 0x88, 0x2f,
        0xb7,
    ];

    #[test]
    fn a_short_key_is_refused() {
        let (_keep, dir) = folder();
        std::fs::create_dir(dir.path().join("keys")).unwrap();
        std::fs::write(dir.path().join("keys/master0.key"), "AAAA").unwrap();
        let error = dir.hop_key().unwrap_err().to_string();
        assert!(error.contains("3 bytes instead of 16"), "{error}");
    }

    #[test]
    fn errors_name_the_missing_file() {
        let (_keep, dir) = folder();
        let error = dir.topology().unwrap_err().to_string();
        assert!(error.contains("topology.json"), "{error}");
    }

    #[test]
    fn links_are_read_back() {
        let (_keep, dir) = folder();
        let links = [(
            3,
            LinkState {
                up: false,
                shape: Shape {
                    rate: Some(5_000_000),
                    loss: 0.25,
                    ..Shape::default()
                },
            },
        )]
        .into();
        dir.write_links(&links).unwrap();
        assert_eq!(dir.links().unwrap(), links);
    }

    #[test]
    fn as_folders_have_no_colons() {
        let isd_as: IsdAsn = "1-ff00:0:110".parse().unwrap();
        assert_eq!(as_folder(isd_as), "1-ff00_0_110");
        let bgp: IsdAsn = "64-559".parse().unwrap();
        assert_eq!(as_folder(bgp), "64-559");
    }
}
