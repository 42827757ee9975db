//! The key that a host shows.

use std::path::PathBuf;

use hawser_keys::{KeyFile, PeerKey};
use thiserror::Error;

/// A key pair: what this host shows to its peers, and proves to hold. Cloning shares it. `Debug` prints
/// the public key only.
///
/// ```
/// let identity = hawser::Identity::generate()?;
/// println!("others know this host by {}", identity.key());
/// # Ok::<(), hawser::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(pub(crate) hawser_keys::Identity);

/// Why there is no [`Identity`].
///
/// ```
/// let error = hawser::Identity::from_pem("no key").unwrap_err();
/// assert!(error.to_string().contains("PRIVATE KEY"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The system gives no random numbers.
    #[error("{0}")]
    Random(String),
    /// The text is not an Ed25519 key in PEM.
    #[error("{0}")]
    Text(String),
    /// The file cannot be used.
    #[error("{0}")]
    File(String),
    /// The user has no folder for keys.
    #[error("{0}")]
    NoFolder(String),
}

impl Identity {
    /// Makes a new key pair.
    ///
    /// ```
    /// assert_ne!(hawser::Identity::generate()?, hawser::Identity::generate()?);
    /// # Ok::<(), hawser::IdentityError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdentityError::Random`].
    pub fn generate() -> Result<Self, IdentityError> {
        let made = hawser_keys::Identity::generate();
        made.map(Self)
            .map_err(|error| IdentityError::Random(error.to_string()))
    }

    /// The user's key, that of the program `hawser` too: the file `key` in `$XDG_CONFIG_HOME/hawser` or
    /// `~/.config/hawser`. It is made if there is none. Blocks while the file is read.
    ///
    /// ```no_run
    /// let identity = hawser::Identity::of_user()?;
    /// # Ok::<(), hawser::IdentityError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdentityError::NoFolder`], and [`IdentityError::File`] when others can read the file, it is not
    /// a key, or it cannot be read or made.
    pub fn of_user() -> Result<Self, IdentityError> {
        let file = KeyFile::of_user();
        Self::open(file.map_err(|error| IdentityError::NoFolder(error.to_string()))?)
    }

    /// The key in the file `path`, which is made if there is none. Blocks while it is read.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("key");
    /// let identity = hawser::Identity::at(&path)?;
    /// assert_eq!(hawser::Identity::at(&path)?, identity);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`IdentityError::File`] as for [`of_user`](Self::of_user).
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, IdentityError> {
        Self::open(KeyFile::at(path))
    }

    fn open(file: KeyFile) -> Result<Self, IdentityError> {
        let key = file.open();
        key.map(Self)
            .map_err(|error| IdentityError::File(error.to_string()))
    }

    /// Reads a private key in PEM: PKCS #8, not encrypted, as [`to_pem`](Self::to_pem) and `openssl
    /// genpkey -algorithm ed25519` write it.
    ///
    /// ```
    /// let identity = hawser::Identity::generate()?;
    /// assert_eq!(hawser::Identity::from_pem(&identity.to_pem())?, identity);
    /// # Ok::<(), hawser::IdentityError>(())
    /// ```
    ///
    /// # Errors
    /// [`IdentityError::Text`].
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        let key = hawser_keys::Identity::from_pkcs8_pem(pem);
        key.map(Self)
            .map_err(|error| IdentityError::Text(error.to_string()))
    }

    /// The private key in PEM. Anybody who has it can act as this host.
    ///
    /// ```
    /// assert!(hawser::Identity::generate()?.to_pem().starts_with("-----BEGIN PRIVATE KEY-----"));
    /// # Ok::<(), hawser::IdentityError>(())
    /// ```
    pub fn to_pem(&self) -> String {
        self.0.to_pem()
    }

    /// The key that peers see.
    ///
    /// ```
    /// let key: hawser::PeerKey = hawser::Identity::generate()?.key();
    /// assert!(key.to_string().starts_with("SHA256:"));
    /// # Ok::<(), hawser::IdentityError>(())
    /// ```
    pub fn key(&self) -> PeerKey {
        self.0.key()
    }
}
