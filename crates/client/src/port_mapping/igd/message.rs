//! What a gateway is sent and what it answers by UPnP, without I/O: its search (SSDP), its description, and
//! calls (SOAP), as UPnP's InternetGatewayDevice and WANIPConnection have them.

use std::net::Ipv4Addr;

use hawser_http_client::HttpUrl;

use crate::port_mapping::message::Protocol;

/// The kinds of services that map ports, the newest first.
const SERVICES: [&str; 3] = [
    "urn:schemas-upnp-org:service:WANIPConnection:2",
    "urn:schemas-upnp-org:service:WANIPConnection:1",
    "urn:schemas-upnp-org:service:WANPPPConnection:1",
];

/// The kinds of devices that are searched for.
pub const DEVICES: [&str; 2] = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
];

/// The code of a gateway that maps ports without a limit of time alone (`OnlyPermanentLeasesSupported`).
pub const ONLY_PERMANENT: u32 = 725;

/// The search for devices of a kind, which answer within a second.
pub fn search(device: &str) -> String {
    format!(
        "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\n\
         ST: {device}\r\n\r\n"
    )
}

/// The URL of the description in an answer to a search; `None` if it is none.
pub fn location(answer: &[u8]) -> Option<HttpUrl> {
    let text = std::str::from_utf8(answer).ok()?;
    let mut lines = text.split("\r\n");
    let mut status = lines.next()?.split_ascii_whitespace();
    let is_ok = status.next()?.starts_with("HTTP/1.") && status.next() == Some("200");
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let (_, location) = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"))?;
    let location = location.trim().parse().ok();
    location.filter(|url: &HttpUrl| is_ok && !url.is_secure)
}

/// A service that maps ports: where it is called, and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub url: HttpUrl,
    pub kind: &'static str,
}

/// The service that maps ports in a description at `from`; `None` if it has none at the same host.
pub fn service(description: &str, from: &HttpUrl) -> Option<Service> {
    let base = match text_of(description, "URLBase") {
        Some(base) if !base.is_empty() => base.parse().ok()?,
        _ => from.clone(),
    };
    let parts = description.split("<service>").skip(1);
    let services: Vec<(String, String)> = parts
        .filter_map(|part| Some((text_of(part, "serviceType")?, text_of(part, "controlURL")?)))
        .collect();
    let kinds = SERVICES.iter();
    let mut found = kinds.filter_map(|kind| {
        let (_, control) = services.iter().find(|(of, _)| of == kind)?;
        let url = resolve(&base, control)?;
        // Nothing but the gateway is called.
        let is_there = url.host == from.host && !url.is_secure;
        is_there.then_some(Service { url, kind })
    });
    found.next()
}

/// A URL of a description: absolute, or relative to `base`.
fn resolve(base: &HttpUrl, url: &str) -> Option<HttpUrl> {
    if url.contains("://") {
        return url.parse().ok();
    }
    let folder = match url.starts_with('/') {
        true => "",
        false => {
            let path = base.path.split('?').next().unwrap_or_default();
            path.rsplit_once('/').map_or("/", |(folder, _)| folder)
        }
    };
    let slash = if url.starts_with('/') { "" } else { "/" };
    format!("http://{}{folder}{slash}{url}", base.authority())
        .parse()
        .ok()
}

/// What a gateway is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// To map a port to the same one of this host.
    Map {
        protocol: Protocol,
        port: u16,
        host: Ipv4Addr,
        /// In seconds; 0 without a limit.
        lifetime: u32,
    },
    /// To end that.
    End { protocol: Protocol, port: u16 },
    /// To tell its address on the other side.
    Address,
}

impl Call {
    fn action(self) -> &'static str {
        match self {
            Self::Map { .. } => "AddPortMapping",
            Self::End { .. } => "DeletePortMapping",
            Self::Address => "GetExternalIPAddress",
        }
    }

    /// The value of the header `SOAPAction`.
    pub fn header(self, kind: &str) -> String {
        format!("\"{kind}#{}\"", self.action())
    }

    /// The body.
    pub fn body(self, kind: &str) -> String {
        let arguments = match self {
            Self::Map {
                protocol,
                port,
                host,
                lifetime,
            } => format!(
                "<NewRemoteHost></NewRemoteHost><NewExternalPort>{port}</NewExternalPort>\
                 <NewProtocol>{}</NewProtocol><NewInternalPort>{port}</NewInternalPort>\
                 <NewInternalClient>{host}</NewInternalClient><NewEnabled>1</NewEnabled>\
                 <NewPortMappingDescription>hawser</NewPortMappingDescription>\
                 <NewLeaseDuration>{lifetime}</NewLeaseDuration>",
                protocol.name()
            ),
            Self::End { protocol, port } => format!(
                "<NewRemoteHost></NewRemoteHost><NewExternalPort>{port}</NewExternalPort>\
                 <NewProtocol>{}</NewProtocol>",
                protocol.name()
            ),
            Self::Address => String::new(),
        };
        let action = self.action();
        format!(
            "<?xml version=\"1.0\"?>\r\n<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
             s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><s:Body><u:{action} \
             xmlns:u=\"{kind}\">{arguments}</u:{action}></s:Body></s:Envelope>\r\n"
        )
    }
}

/// The address of the gateway on the other side, in its answer.
pub fn address(answer: &str) -> Option<Ipv4Addr> {
    let address: Ipv4Addr = text_of(answer, "NewExternalIPAddress")?.parse().ok()?;
    Some(address).filter(|address| !address.is_unspecified())
}

/// The code of a refusal.
pub fn error_code(answer: &str) -> Option<u32> {
    text_of(answer, "errorCode")?.parse().ok()
}

/// What a refusal means, with the remedy where there is one.
pub fn refusal(code: u32) -> String {
    match code {
        606 | 401 => "the gateway refuses mappings: allow UPnP in its settings".to_owned(),
        718 => {
            "the gateway maps the port to another host: choose another port with --tcp".to_owned()
        }
        728 => "the gateway has no room for more mappings".to_owned(),
        code => format!("the gateway refuses with code {code}"),
    }
}

/// The text of the first element of this name, with references to characters resolved.
fn text_of(document: &str, name: &str) -> Option<String> {
    let mut rest = document;
    loop {
        let (_, after) = rest.split_once('<')?;
        rest = after;
        let Some(tail) = after.strip_prefix(name) else {
            continue;
        };
        if !tail.starts_with(['>', ' ', '\t', '\r', '\n']) {
            continue;
        }
        let (_, content) = tail.split_once('>')?;
        let (text, _) = content.split_once('<')?;
        return Some(unescape(text.trim()));
    }
}

fn unescape(text: &str) -> String {
    let mut text = text.to_owned();
    for (reference, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ] {
        text = text.replace(reference, character);
    }
    text
}

#[cfg(test)]
mod tests;
