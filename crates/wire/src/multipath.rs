//! The extension message `scion_multipath` (BEP 10): a downloader offers to be connected back to,
//! and an uploader reports over which path it connected and why (001, section VI).
//!
//! Both are bencoded dictionaries. The offer has `addr` (ISD-AS 8 bytes, IP 4 or 16 bytes, port 2
//! bytes, all big-endian) and `paths` (the number of paths it takes). The report has `interfaces`
//! (as text, in the order in which blocks cross them) and `reason` (a line for people).

use hawser_address::ScionAddr;
use hawser_bencode::{self as bencode, Value};
use hawser_path::Interface;

use super::error::WireError;

/// The extension's name in the extended handshake.
pub const MULTIPATH_NAME: &str = "scion_multipath";

/// The id under which this program receives its messages.
pub const MULTIPATH: u8 = 1;

/// Maximum length of a message, in bytes.
const MAX_BYTES: usize = 4 << 10;

/// Maximum number of interfaces of a path: a SCION path has at most 64 hop fields.
const MAX_INTERFACES: usize = 128;

/// Maximum length of a reason that is kept, in bytes.
const MAX_REASON: usize = 200;

/// Maximum number of paths that may be requested: as many as the program accepts.
const MAX_PATHS: i64 = 64;

/// A message of the extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Multipath {
    /// The downloader listens at `addr` and takes up to `paths` paths, at least 1.
    Offer {
        /// Where it listens.
        addr: ScionAddr,
        /// Most paths that it takes.
        paths: usize,
    },
    /// The path of this connection, as seen by the uploader, and why it is used or waits.
    Report {
        /// In the order in which blocks cross them.
        interfaces: Vec<Interface>,
        /// A line for people.
        reason: String,
    },
}

impl Multipath {
    /// Encodes it.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Offer { addr, paths } => {
                let paths = i64::try_from(*paths).unwrap_or(MAX_PATHS);
                let paths = Value::Int(paths.clamp(1, MAX_PATHS));
                let addr = addr.compact();
                Value::dict([("addr", Some(Value::Bytes(&addr))), ("paths", Some(paths))]).encode()
            }
            Self::Report { interfaces, reason } => {
                let interfaces = interfaces.iter().take(MAX_INTERFACES);
                let interfaces: Vec<String> = interfaces.map(Interface::to_string).collect();
                let interfaces = interfaces.join(" ");
                let reason = Value::text(cut(reason));
                let interfaces = Value::text(&interfaces);
                Value::dict([("interfaces", Some(interfaces)), ("reason", Some(reason))]).encode()
            }
        }
    }

    /// Decodes a message; `None` if its kind is unknown (BEP 10: to be ignored).
    ///
    /// # Errors
    /// If it is too long, not a bencoded dictionary, or malformed.
    pub fn decode(payload: &[u8]) -> Result<Option<Self>, WireError> {
        if payload.len() > MAX_BYTES {
            return Err(WireError::Oversize {
                length: payload.len() as u32,
                limit: MAX_BYTES as u32,
            });
        }
        let document = bencode::parse(payload).map_err(WireError::BadMultipath)?;
        let top = document.as_dict().ok_or(WireError::MultipathNoDict)?;
        if let Some(addr) = top.bytes("addr") {
            let addr = ScionAddr::from_compact(addr).ok_or(WireError::MultipathAddress)?;
            let paths = top.int("paths").unwrap_or(1);
            let paths = paths.clamp(1, MAX_PATHS) as usize;
            return Ok(Some(Self::Offer { addr, paths }));
        }
        let Some(text) = top.bytes("interfaces") else {
            return Ok(None);
        };
        let interfaces = interfaces(text).ok_or(WireError::MultipathInterfaces)?;
        let reason = String::from_utf8_lossy(top.bytes("reason").unwrap_or_default());
        let reason = cut(&reason.escape_debug().to_string()).to_owned();
        Ok(Some(Self::Report { interfaces, reason }))
    }
}

/// The first bytes of a text, whole characters only.
fn cut(text: &str) -> &str {
    let mut ends = (0..=text.len().min(MAX_REASON)).rev();
    let end = ends.find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn interfaces(text: &[u8]) -> Option<Vec<Interface>> {
    let text = std::str::from_utf8(text).ok()?;
    let words = text.split_ascii_whitespace().take(MAX_INTERFACES + 1);
    let all: Vec<Interface> = words.map(|one| one.parse().ok()).collect::<Option<_>>()?;
    (all.len() <= MAX_INTERFACES && all.len().is_multiple_of(2)).then_some(all)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};

    use hawser_address::IsdAsn;
    use proptest::prelude::*;

    use super::*;

    fn any_message() -> impl Strategy<Value = Multipath> {
        let addr = (any::<u64>(), any::<IpAddr>(), any::<u16>()).prop_map(|(isd_as, ip, port)| {
            ScionAddr::new(IsdAsn(isd_as), SocketAddr::new(ip, port))
        });
        let interface = (any::<u64>(), any::<u16>()).prop_map(|(isd_as, id)| Interface {
            isd_as: IsdAsn(isd_as),
            id,
        });
        let links = proptest::collection::vec([interface.clone(), interface], 0..30);
        prop_oneof![
            (addr, 1..=MAX_PATHS as usize)
                .prop_map(|(addr, paths)| Multipath::Offer { addr, paths }),
            (links, "[a-z0-9 :#-]{0,200}").prop_map(|(links, reason)| Multipath::Report {
                interfaces: links.concat(),
                reason,
            }),
        ]
    }

    proptest! {
        #[test]
        fn reads_what_it_writes(message in any_message()) {
            prop_assert_eq!(Multipath::decode(&message.encode()), Ok(Some(message)));
        }

        #[test]
        fn garbage_is_refused_or_passed_over(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            addr in proptest::collection::vec(any::<u8>(), 0..40),
            paths: i64,
            text in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let _ = Multipath::decode(&bytes);
            let offer = [("addr", Some(Value::Bytes(&addr))), ("paths", Some(Value::Int(paths)))];
            let offer = Multipath::decode(&Value::dict(offer).encode());
            prop_assert_eq!(offer.is_ok(), [14, 26].contains(&addr.len()));
            let report = [("interfaces", Some(Value::text(""))), ("reason", Some(Value::Bytes(&text)))];
            match Multipath::decode(&Value::dict(report).encode()) {
                Ok(Some(Multipath::Report { reason, .. })) => {
                    prop_assert!(reason.len() <= MAX_REASON);
                    prop_assert!(!reason.contains(char::is_control));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn what_is_too_long_or_of_another_form_is_refused() {
        let report = |text: &str| {
            let report = Value::dict([("interfaces", Some(Value::text(text)))]);
            Multipath::decode(&report.encode())
        };
        assert!(report("1-ff00:0:5#1 1-ff00:0:2#3").is_ok());
        assert_eq!(report("1-ff00:0:5#1"), Err(WireError::MultipathInterfaces));
        assert_eq!(report("\u{1b}[2J"), Err(WireError::MultipathInterfaces));
        let many = "1-0#1 ".repeat(MAX_INTERFACES + 2);
        assert_eq!(report(&many), Err(WireError::MultipathInterfaces));
        assert!(matches!(
            report(&"1-0#1 ".repeat(1000)),
            Err(WireError::Oversize { .. })
        ));
        assert_eq!(Multipath::decode(b"de"), Ok(None));
        assert_eq!(Multipath::decode(b"le"), Err(WireError::MultipathNoDict));
    }
}
