use std::net::{SocketAddr, TcpListener};

use super::*;

/// A folder in place of a daemon: a host starts with it without any request to a service.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, isd_as: &str) -> Self {
        let path = env::temp_dir().join(format!("hawser-bootstrap-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let topology = format!(
            r#"{{"isd_as": "{isd_as}", "mtu": 1472, "dispatched_ports": "31000-32767",
                "control_service": {{"cs": {{"addr": "127.0.0.1:30252"}}}}}}"#
        );
        std::fs::write(path.join("topology.json"), topology).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An address without a listening program.
fn nowhere() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A host with these variables, this default daemon and this default folder.
async fn boot(
    wanted: Bootstrap,
    variables: &[(&str, &str)],
    daemon: SocketAddr,
    folder: &str,
) -> Result<Endhost, BootstrapError> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let environment = Environment {
        variable: &variable,
        daemon: &daemon.to_string(),
        config_dir: folder.into(),
    };
    environment.bootstrap(&wanted).await
}

fn flags(daemon: Option<&str>, folder: Option<&Folder>) -> Bootstrap {
    Bootstrap {
        daemon: daemon.map(str::to_owned),
        config_dir: folder.map(|folder| folder.0.clone()),
        local: None,
    }
}

#[tokio::test]
async fn only_the_named_source_is_tried() {
    let folder = Folder::new("named", "1-ff00:0:110");
    let (one, other) = (nowhere().to_string(), nowhere().to_string());
    let default = folder.0.to_str().unwrap();
    // The flag has precedence, and its failure is reported.
    let wanted = flags(Some(&one), Some(&folder));
    let variables = [("SCION_DAEMON", other.as_str())];
    let error = boot(wanted, &variables, nowhere(), default)
        .await
        .unwrap_err();
    let expected = format!(
        "cannot reach the SCION daemon at {one}: start it, or set SCION_DAEMON \
         (named by --sciond)"
    );
    assert_eq!(error.to_string(), expected);
    // Next the folder, then the variables in their order.
    let wanted = flags(None, Some(&folder));
    let host = boot(wanted, &variables, nowhere(), default).await.unwrap();
    assert_eq!(host.local_as().to_string(), "1-ff00:0:110");
    assert_eq!(host.port_range(), 31000..=32767);
    let variables = [("SCION_DAEMON_ADDRESS", one.as_str()), variables[0]];
    let error = boot(flags(None, None), &variables, nowhere(), default).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains(&other) && error.ends_with("(named by SCION_DAEMON)"),
        "{error}"
    );
    let error = boot(flags(None, None), &variables[..1], nowhere(), default).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.ends_with("(named by SCION_DAEMON_ADDRESS)"),
        "{error}"
    );
}

#[tokio::test]
async fn the_default_folder_is_the_last_resort() {
    let folder = Folder::new("default", "1-ff00:0:111");
    let default = folder.0.to_str().unwrap();
    let host = boot(flags(None, None), &[], nowhere(), default)
        .await
        .unwrap();
    assert_eq!(host.local_as().to_string(), "1-ff00:0:111");
    // Also when another program has the daemon's port.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = listener.local_addr().unwrap();
    tokio::spawn(async move {
        // Accepts and hangs up.
        while listener.accept().await.is_ok() {}
    });
    let host = boot(flags(None, None), &[], taken, default).await.unwrap();
    assert_eq!(host.local_as().to_string(), "1-ff00:0:111");
}

#[tokio::test]
async fn the_error_lists_all_attempts() {
    let daemon = nowhere();
    let error = boot(flags(None, None), &[], daemon, "/nonexistent")
        .await
        .unwrap_err();
    let BootstrapError::Nothing(tried) = &error else {
        panic!("{error}")
    };
    assert_eq!(tried.len(), 2);
    let text = error.to_string();
    for part in [
        &daemon.to_string(),
        "/nonexistent/topology.json",
        "SCION_DAEMON",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn an_unusable_network_is_not_a_missing_one() {
    let folder = Folder::new("broken", "1-ff00:0:110");
    std::fs::write(folder.0.join("topology.json"), "{").unwrap();
    let default = folder.0.to_str().unwrap();
    let error = boot(flags(None, None), &[], nowhere(), default).await;
    let error = error.unwrap_err();
    assert!(matches!(error, BootstrapError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains(default), "{error}");
    // Another program has the daemon's port.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = listener.local_addr().unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let error = boot(flags(None, None), &[], taken, "/nonexistent").await;
    let error = error.unwrap_err();
    assert!(matches!(error, BootstrapError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}

#[tokio::test]
async fn the_address_is_set_by_flag_or_environment() {
    let folder = Folder::new("local", "1-ff00:0:110");
    let variables = [("SCION_LOCAL_ADDR", "127.0.0.9")];
    let host = boot(flags(None, Some(&folder)), &variables, nowhere(), "/")
        .await
        .unwrap();
    assert_eq!(host.address(), Some("127.0.0.9".parse().unwrap()));
    let wanted = Bootstrap {
        local: Some("::1".parse().unwrap()),
        ..flags(None, Some(&folder))
    };
    let host = boot(wanted, &variables, nowhere(), "/").await.unwrap();
    assert_eq!(host.address(), Some("::1".parse().unwrap()));
    for text in ["host.example", "0.0.0.0", "ff02::1"] {
        let variables = [("SCION_LOCAL_ADDR", text)];
        let error = boot(flags(None, Some(&folder)), &variables, nowhere(), "/").await;
        let text = text.to_owned();
        assert_eq!(error.unwrap_err(), BootstrapError::Local(text));
    }
}
