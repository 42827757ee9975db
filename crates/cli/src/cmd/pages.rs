//! Serving pages and an API about links, for the commands that do.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hawser_coordinator::{Actor, Coordinator, Role, User};
use hawser_http::{Listener, Tls, TlsFiles, Token};
use hawser_http::{READY, notify};
use hawser_kernel::bind::Refused;
use hawser_web::{App, AppOptions, Origin, router, sample};

use super::{headings, process};
use crate::failure::{Doing, Failure};
use crate::out::{errln, outln};

/// Most connections at once: a page that is looked at has one of them.
const CONNECTIONS: usize = 4096;
/// The name of the first administrator.
const ADMIN: &str = "admin";
/// The file with the first administrator's token, in the folder of the state.
const ADMIN_TOKEN: &str = "admin-token";
/// What the service manager receives at the end (sd_notify(3)).
const STOPPING: &str = "STOPPING=1";

/// How pages are served.
#[derive(clap::Args)]
pub struct PagesArgs {
    /// The address of the page and the API
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8030")]
    pub listen: SocketAddr,
    /// The file with the chain of certificates for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = headings::RARE, hide_short_help = true)]
    pub tls_cert: Option<PathBuf>,
    /// The file with its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = headings::RARE, hide_short_help = true)]
    pub tls_key: Option<PathBuf>,
    /// The address of the page at a proxy on this machine that passes requests on to here, as
    /// https://limits.example.org; addresses of clients are then read from X-Forwarded-For
    #[arg(long, value_name = "URL", help_heading = headings::RARE, hide_short_help = true)]
    pub behind_proxy: Option<Origin>,
    /// Replace the token of the user "admin", and write it to the file admin-token in the folder of
    /// the state
    #[arg(long, help_heading = headings::RARE, hide_short_help = true)]
    pub new_admin_token: bool,
}

impl PagesArgs {
    /// Opens the state in a folder. At the first start there is an administrator then, whose token
    /// is in a file of that folder.
    pub fn open(&self, folder: &Path) -> Result<Coordinator, Failure> {
        let coordinator = Coordinator::open(folder)?;
        let state = coordinator.state();
        let program = Actor::program();
        let token = match state.user(ADMIN) {
            None if state.users.is_empty() => coordinator.add_user(&program, ADMIN, Role::Admin)?.1,
            Some(User { id, .. }) if self.new_admin_token => {
                coordinator.replace_token(&program, *id)?
            }
            None if self.new_admin_token => {
                let reason = "--new-admin-token: there is no user \"admin\" any more";
                return Err(Failure::usage(reason));
            }
            _ => return Ok(coordinator),
        };
        let file = folder.join(ADMIN_TOKEN);
        write_token(&file, &token).doing(file.display())?;
        outln!("the token of the user \"admin\" is in {}", file.display());
        Ok(coordinator)
    }

    /// The options of the page.
    pub fn options(&self, title: &str) -> AppOptions {
        AppOptions {
            proxy: self.behind_proxy.clone(),
            title: title.to_owned(),
            may_send_keys_unencrypted: false,
        }
    }

    /// Binds the socket.
    pub async fn bind(&self) -> Result<Listener, Failure> {
        let files = self.tls_cert.clone().zip(self.tls_key.clone());
        let files = files.map(|(certificate, key)| TlsFiles {
            certificate,
            key,
            client_ca: None,
        });
        let tls = files.map(|files| Tls::read(&files)).transpose()?;
        let is_secure = tls.is_some();
        if let Some(warning) = tls.as_ref().and_then(|tls| tls.warning(SystemTime::now())) {
            errln!("hawser: warning: {warning}");
        }
        process::raise_file_limit();
        process::survive_hangup()?;
        let listener = Listener::bind(self.listen, tls).await;
        let listener = listener.map_err(|error| {
            let refused = Refused::tcp(self.listen, &error);
            Failure::job(format_args!("cannot listen at {}: {refused}", self.listen))
        })?;
        if !is_secure && self.behind_proxy.is_none() && !self.listen.ip().is_loopback() {
            errln!(
                "hawser: warning: tokens pass {} unencrypted: give --tls-cert and --tls-key, or \
                 listen at a loopback address behind a proxy",
                self.listen
            );
        }
        Ok(listener.with_connections(CONNECTIONS))
    }

    /// The URL of the page on this machine.
    pub fn url(&self, listener: &Listener) -> Result<String, Failure> {
        let scheme = if self.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        Ok(format!("{scheme}://{}", listener.local_addr()?))
    }

    /// Serves until SIGINT or SIGTERM, while `work` is done beside it.
    pub async fn serve(
        &self,
        listener: Listener,
        app: App,
        work: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let interrupted = process::interrupted()?;
        outln!("page at {}", self.url(&listener)?);
        let serving = listener.serve(router(app.clone()));
        notify(READY).doing("notifying systemd")?;
        tokio::select! {
            () = interrupted => {}
            () = async { tokio::join!(serving, sample(app), work); } => {}
        }
        // The manager may be gone already.
        let _ = notify(STOPPING);
        Ok(())
    }
}

/// Writes a token so that it is whole or not there, and nobody else reads it.
fn write_token(file: &Path, token: &Token) -> std::io::Result<()> {
    let new = file.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    let mut written = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    writeln!(written, "{}", token.reveal())?;
    written.sync_all()?;
    fs::rename(&new, file)
}
