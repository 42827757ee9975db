//! Users that show certificates.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::TlsConnector;

use super::*;

/// Certificates of a test: an authority, and what it signed.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "site");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }
}

fn connector(trusted: &Authority, client: Option<(rcgen::Certificate, KeyPair)>) -> TlsConnector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            let chain = vec![certificate.der().clone()];
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn users_show_certificates_over_tls() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let bed = Bed::new();
    let folder = bed.folder.path().to_owned();
    let path = |name: &str| folder.join(name);
    let (certificate, key) = authority.sign("localhost");
    std::fs::write(path("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
    std::fs::write(path("ca.pem"), authority.certificate.pem()).unwrap();
    let text = "
        [https]
        listen = '127.0.0.1:0'
        certificate = 'cert.pem'
        key = 'key.pem'
        client_ca = 'ca.pem'
        [users.alice]
        certificate = 'CN=alice,O=site'
        folders = ['data']
        [users.bob]
        token_sha256 = '81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9'
        folders = ['data']
    ";
    let config = Config::parse(&path("daemon.toml"), text).unwrap();
    let https = config.https.clone().unwrap();
    let bed = Bed { config, ..bed };
    let (service, _happened) = bed.service(Told::new(Ends::Never));
    let address = serve(service, Some(https.tls().unwrap()), false).await;

    let ask = async |connector: TlsConnector, head: &str| {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        exchange(stream, "GET /stat?file=a", head, "").await
    };
    let alice = connector(&authority, Some(authority.sign("alice")));
    assert_eq!(ask(alice.clone(), "").await, ok("OK 1 10\n"));
    let eve = connector(&authority, Some(authority.sign("eve")));
    let answer = ask(eve, "").await;
    assert_eq!(
        answer,
        (401, "No user has the certificate CN=eve,O=site\n".into())
    );
    let bare = connector(&authority, None);
    assert_eq!(ask(bare.clone(), "").await.0, 401);
    let bob = ask(bare, "Authorization: Bearer bob\r\n").await;
    assert_eq!(bob, ok("OK 1 10\n"));
    // Nobody known signed this one: its connection ends without an answer.
    let forged = connector(&authority, Some(stranger.sign("alice")));
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    if let Ok(mut stream) = forged.connect(name, stream).await {
        let mut answer = Vec::new();
        let _ = stream
            .write_all(b"GET /stat?file=a HTTP/1.1\r\nHost: x\r\n\r\n")
            .await;
        stream.read_to_end(&mut answer).await.unwrap_err();
        assert!(answer.is_empty());
    }

    // Files that do not fit are named.
    std::fs::write(path("key.pem"), "nothing").unwrap();
    let error = https.tls().err().unwrap().to_string();
    assert!(
        error.contains("key.pem: it has no private key in PEM"),
        "{error}"
    );
}
