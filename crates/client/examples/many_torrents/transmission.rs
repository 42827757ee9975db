//! Transmission with the same torrents and the same content.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use serde_json::{Value, json};

use crate::{Failure, LOOK_INTERVAL, PATIENCE, Taken};

/// Transmission's number for a torrent that seeds.
const SEEDING: u64 = 6;

/// A folder of settings and torrents, for several runs.
pub struct Transmission {
    config: PathBuf,
    rpc: u16,
}

/// A daemon, which is killed at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

impl Transmission {
    /// With the torrents of the files in `metainfo`, whose content is in `downloads`.
    pub fn new(
        dir: &Path,
        metainfo: &[PathBuf],
        downloads: &Path,
        active: usize,
    ) -> Result<Self, Failure> {
        let config = dir.join("transmission");
        fs::create_dir_all(config.join("torrents"))?;
        for file in metainfo {
            let name = file.file_name().ok_or("a file without a name")?;
            fs::copy(file, config.join("torrents").join(name))?;
        }
        let rpc = free_port()?;
        let settings = json!({
            "download-dir": downloads, "seed-queue-enabled": true, "seed-queue-size": active,
            "dht-enabled": false, "lpd-enabled": false, "pex-enabled": false, "utp-enabled": false,
            "port-forwarding-enabled": false, "peer-port": free_port()?,
            "rpc-bind-address": "127.0.0.1", "rpc-port": rpc, "rpc-authentication-required": false,
        });
        fs::write(config.join("settings.json"), settings.to_string())?;
        Ok(Self { config, rpc })
    }

    /// Runs it until it is at rest, and says what it took; `None` where it is not installed.
    pub fn run(&self, count: usize, active: usize) -> Result<Option<Taken>, Failure> {
        let began = Instant::now();
        let started = Command::new("transmission-daemon")
            .arg("--foreground")
            .arg("--config-dir")
            .arg(&self.config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match started {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            started => Running(started?),
        };
        let mut read = None;
        let listed = loop {
            if began.elapsed() > PATIENCE {
                return Err("Transmission does not seed".into());
            }
            let asked = Instant::now();
            // It answers once it has read all torrents.
            if let Ok(answer) = self.ask(&json!({
                "method": "torrent-get", "arguments": { "fields": ["id", "name", "status", "percentDone"] },
            })) {
                let listed = asked.elapsed();
                let torrents = answer["arguments"]["torrents"].as_array().ok_or("no torrents")?;
                if torrents.len() >= count && read.is_none() {
                    read = Some(began.elapsed());
                }
                let seeds = torrents.iter().filter(|one| one["status"] == SEEDING);
                if read.is_some() && seeds.count() >= active {
                    break listed;
                }
            }
            sleep(LOOK_INTERVAL);
        };
        let serves = began.elapsed();
        let taken = Taken::at_rest(child.0.id(), [read.unwrap_or_default(), serves, listed])?;
        // It writes what is verified, which the next run reads.
        self.ask(&json!({ "method": "session-close" }))?;
        let mut child = child;
        child.0.wait()?;
        Ok(Some(taken))
    }

    fn ask(&self, body: &Value) -> Result<Value, Failure> {
        let mut session = String::new();
        loop {
            let (status, head, answer) = self.exchange(&session, &body.to_string())?;
            match status {
                409 if session.is_empty() => {
                    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                    let id = lines
                        .find(|(name, _)| name.eq_ignore_ascii_case("x-transmission-session-id"));
                    id.ok_or("no session")?.1.clone_into(&mut session);
                }
                200 => return Ok(serde_json::from_str(&answer)?),
                _ => return Err(format!("status {status}").into()),
            }
        }
    }

    fn exchange(
        &self,
        session: &str,
        body: &str,
    ) -> Result<(u16, String, String), Box<dyn Error + Send + Sync>> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.rpc))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // Of version 1.0, so that the answer has no chunks.
        write!(
            stream,
            "POST /transmission/rpc HTTP/1.0\r\nHost: localhost\r\nX-Transmission-Session-Id: {session}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        Ok((status, head.to_owned(), body.to_owned()))
    }
}
