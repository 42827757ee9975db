//! The chains that are in the kernel, of all tables.

use std::io;

use super::socket::Socket;

/// `NFT_MSG_GETCHAIN`.
const GET_CHAIN: u8 = 4;
/// Bytes of `struct nfgenmsg`, whose first is the family.
const FAMILY: usize = 4;
/// `NF_DROP`, the policy of a chain.
const DROP: u32 = 0;

/// A chain that the kernel applies at a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseChain {
    /// `NFPROTO_*`.
    pub family: u8,
    pub table: String,
    pub name: String,
    /// `enum nf_inet_hooks`.
    pub hook: u32,
    /// Whether what no rule of it decides about is dropped.
    pub drops: bool,
}

/// All base chains in the calling thread's network namespace.
///
/// # Errors
/// As the system says.
pub(crate) fn base_chains() -> io::Result<Vec<BaseChain>> {
    let mut chains = Vec::new();
    Socket::open()?.list(GET_CHAIN, |body| chains.extend(parse(body)))?;
    Ok(chains)
}

/// Reads a chain; `None` if it is at no hook.
fn parse(body: &[u8]) -> Option<BaseChain> {
    let family = *body.first()?;
    let attributes = body.get(FAMILY..)?;
    let hook = nested(attributes, 4)?;
    Some(BaseChain {
        family,
        table: text(nested(attributes, 1)?),
        name: text(nested(attributes, 3)?),
        hook: number(nested(hook, 1)?)?,
        drops: nested(attributes, 5).and_then(number) == Some(DROP),
    })
}

/// The value of the first attribute of this kind.
fn nested(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    /// Without the flags "nested" and "network byte order".
    const KIND: u16 = 0x3fff;
    loop {
        let (header, _) = attributes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let found = u16::from_ne_bytes([header[2], header[3]]) & KIND;
        let value = attributes.get(4..length.max(4))?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(length.max(4).next_multiple_of(4)..)?;
    }
}

fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}

fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*value.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::attribute::Attributes;
    use super::*;

    proptest! {
        #[test]
        fn parsing_any_chain_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            parse(&bytes);
        }
    }

    #[test]
    fn a_chain_is_read_with_its_policy() {
        let body = |policy: u32, with_hook: bool| {
            let hook = Attributes::default().number(1, 1).number(2, 0);
            let mut attributes = Attributes::default().string(1, "filter").string(3, "input");
            if with_hook {
                attributes = attributes.nested(4, hook);
            }
            let attributes = attributes.number(5, policy);
            [&[1, 0, 0, 0], attributes.as_slice()].concat()
        };
        let chain = parse(&body(0, true)).unwrap();
        assert_eq!((chain.family, chain.hook, chain.drops), (1, 1, true));
        assert_eq!((&*chain.table, &*chain.name), ("filter", "input"));
        assert!(!parse(&body(1, true)).unwrap().drops);
        assert_eq!(parse(&body(0, false)), None);
    }
}
