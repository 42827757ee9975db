//! A link, and the kernel objects of a limit on it.

use std::io;

use hawser_kernel::netlink::{Netlink, NetlinkError};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use rustix::io::Errno;

use crate::htb::{self, Class};
use crate::limit::{Counters, LimitError};

/// Handles that distinguish hawser's limits from those of other programs. `tc` prints them as
/// `4857:` (HW in ASCII), `4857:1` and `4858:`.
const ROOT: TcHandle = TcHandle {
    major: 0x4857,
    minor: 0,
};
const CLASS: TcHandle = TcHandle {
    major: 0x4857,
    minor: 1,
};
const QUEUE: TcHandle = TcHandle {
    major: 0x4858,
    minor: 0,
};

const HTB: &str = "htb";
const BFIFO: &str = "bfifo";

/// The attribute with the options of a queueing discipline or class. Those of `bfifo` are not
/// nested attributes.
const TCA_OPTIONS: u16 = 2;
/// The 64-bit packet count, which the kernel sends only if it exceeds the 32 bits of the basic
/// counters.
const TCA_STATS_PKT64: u16 = 8;

/// A link, with a socket to the kernel.
pub(crate) struct Link {
    netlink: Netlink,
    pub name: String,
    index: i32,
    /// MTU in bytes, without the Ethernet header.
    pub mtu: u32,
}

/// The root queueing discipline of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Root {
    /// The kernel's default.
    Free,
    /// The HTB that hawser has set.
    Limit,
    /// One that hawser did not set.
    Foreign { kind: String, handle: u32 },
}

/// A queueing discipline or a class, as the kernel describes it.
#[derive(Default)]
struct Object {
    handle: TcHandle,
    parent: TcHandle,
    kind: String,
    /// Raw options, of a kind that the netlink crates do not support.
    options: Option<Vec<u8>>,
    counters: Counters,
}

impl Link {
    pub fn open(name: &str) -> Result<Self, LimitError> {
        let mut netlink = Netlink::open().map_err(|error| LimitError::Netlink(error.into()))?;
        let found = netlink.interface(name);
        let found = found.map_err(|error| failed("read", name, error))?;
        let found = found.ok_or_else(|| LimitError::NoLink(name.to_owned()))?;
        Ok(Self {
            netlink,
            name: name.to_owned(),
            index: i32::try_from(found.index).map_err(|_| unreadable(name, "index"))?,
            mtu: found.mtu,
        })
    }

    pub fn root(&mut self) -> Result<Root, LimitError> {
        let Some(Object { handle, kind, .. }) = self.qdisc(TcHandle::ROOT)? else {
            return Ok(Root::Free);
        };
        Ok(match handle {
            // The kernel's default disciplines have the major number 0.
            TcHandle { major: 0, .. } => Root::Free,
            ROOT if kind == HTB => Root::Limit,
            handle => Root::Foreign {
                kind,
                handle: handle.into(),
            },
        })
    }

    pub fn add_root(&mut self) -> Result<(), LimitError> {
        let options = nested(htb::qdisc_options(CLASS.minor));
        let message = self.message(ROOT, TcHandle::ROOT, HTB, options);
        // NLM_F_EXCL keeps a discipline that another program has set meanwhile.
        self.change(
            "set up HTB on",
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
            LimitError::Unsupported {
                kind: "HTB",
                module: "sch_htb",
            },
        )
    }

    pub fn remove_root(&mut self) -> Result<(), LimitError> {
        let mut message = TcMessage::with_index(self.index);
        (message.header.handle, message.header.parent) = (ROOT, TcHandle::ROOT);
        let request = RouteNetlinkMessage::DelQueueDiscipline(message);
        let missing = LimitError::Incomplete(self.name.clone());
        self.change("remove the limit from", request, 0, missing)
    }

    /// The class below hawser's HTB, with its counters.
    pub fn class(&mut self) -> Result<Option<(Class, Counters)>, LimitError> {
        let classes = self.dump(RouteNetlinkMessage::GetTrafficClass)?;
        let Some(class) = classes.into_iter().find(|class| class.handle == CLASS) else {
            return Ok(None);
        };
        match class.options.as_deref().and_then(Class::from_options) {
            Some(options) => Ok(Some((options, class.counters))),
            None => Err(unreadable(&self.name, "the options of the HTB class")),
        }
    }

    /// Creates the class, or changes it without touching its queue.
    pub fn put_class(&mut self, class: &Class) -> Result<(), LimitError> {
        let message = self.message(CLASS, TcHandle::ROOT, HTB, nested(class.options()));
        let request = RouteNetlinkMessage::NewTrafficClass(message);
        let missing = LimitError::Incomplete(self.name.clone());
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change("set the rate of", request, flags, missing)
    }

    /// The size in bytes of the queue below hawser's class; `None` if it is missing, or hawser did
    /// not set it.
    pub fn queue(&mut self) -> Result<Option<u32>, LimitError> {
        let queue = self.qdisc(CLASS)?;
        let ours = |queue: &Object| queue.handle == QUEUE && queue.kind == BFIFO;
        let Some(queue) = queue.filter(ours) else {
            return Ok(None);
        };
        // struct tc_fifo_qopt: one number.
        match queue.options.and_then(|options| options.try_into().ok()) {
            Some(limit) => Ok(Some(u32::from_ne_bytes(limit))),
            None => Err(unreadable(&self.name, "the options of the queue")),
        }
    }

    /// Creates the queue, or changes its length without losing waiting packets.
    pub fn put_queue(&mut self, bytes: u32) -> Result<(), LimitError> {
        let options = DefaultNla::new(TCA_OPTIONS, bytes.to_ne_bytes().to_vec());
        let message = self.message(QUEUE, CLASS, BFIFO, TcAttribute::Other(options));
        self.change(
            "set the queue of",
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_REPLACE,
            LimitError::Unsupported {
                kind: "bfifo",
                module: "sch_fifo",
            },
        )
    }

    fn message(
        &self,
        handle: TcHandle,
        parent: TcHandle,
        kind: &str,
        options: TcAttribute,
    ) -> TcMessage {
        let mut message = TcMessage::with_index(self.index);
        (message.header.handle, message.header.parent) = (handle, parent);
        message.attributes = vec![TcAttribute::Kind(kind.to_owned()), options];
        message
    }

    /// The link's queueing discipline below `parent`.
    fn qdisc(&mut self, parent: TcHandle) -> Result<Option<Object>, LimitError> {
        let all = self.dump(RouteNetlinkMessage::GetQueueDiscipline)?;
        Ok(all.into_iter().find(|one| one.parent == parent))
    }

    /// All disciplines, or all classes, of this link. Kernels answer a query for a single discipline
    /// only while some process subscribes to changes.
    fn dump(
        &mut self,
        query: fn(TcMessage) -> RouteNetlinkMessage,
    ) -> Result<Vec<Object>, LimitError> {
        let query = query(TcMessage::with_index(self.index));
        let answer = self
            .netlink
            .request(query, NLM_F_DUMP)
            .map_err(|error| failed("read", &self.name, error))?;
        let objects = answer.into_iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewQueueDiscipline(found)
            | RouteNetlinkMessage::NewTrafficClass(found) => Some(found),
            _ => None,
        });
        // The kernel lists the disciplines of all links.
        let of_this_link = objects.filter(|found| found.header.index == self.index);
        Ok(of_this_link.map(Object::from).collect())
    }

    /// Sends a request for a change; `missing` is the error to return if the kernel finds no such
    /// object.
    fn change(
        &mut self,
        action: &'static str,
        message: RouteNetlinkMessage,
        flags: u16,
        missing: LimitError,
    ) -> Result<(), LimitError> {
        match self.netlink.request(message, flags) {
            Ok(_) => Ok(()),
            Err(error) if error.refusal() == Some(Errno::NOENT.raw_os_error()) => Err(missing),
            Err(error) => Err(failed(action, &self.name, error)),
        }
    }
}

fn unreadable(link: &str, what: &str) -> LimitError {
    LimitError::Answer {
        link: link.to_owned(),
        what: what.to_owned(),
    }
}

fn failed(action: &'static str, link: &str, error: NetlinkError) -> LimitError {
    let link = link.to_owned();
    match error {
        NetlinkError::Refused(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            LimitError::Denied(link)
        }
        NetlinkError::Refused(source) => LimitError::Refused {
            action,
            link,
            source,
        },
        NetlinkError::Invalid(what) => LimitError::Answer { link, what },
        other => LimitError::Netlink(other.into()),
    }
}

fn nested(options: Vec<DefaultNla>) -> TcAttribute {
    TcAttribute::Options(options.into_iter().map(TcOption::Other).collect())
}

impl From<TcMessage> for Object {
    fn from(message: TcMessage) -> Self {
        let mut object = Self {
            handle: message.header.handle,
            parent: message.header.parent,
            ..Self::default()
        };
        for attribute in message.attributes {
            match attribute {
                TcAttribute::Kind(kind) => object.kind = kind,
                TcAttribute::Options(options) => {
                    if let [TcOption::Other(options)] = &options[..] {
                        object.options = Some(value(options));
                    }
                }
                TcAttribute::Stats2(stats) => object.counters = counters(&stats),
                _ => {}
            }
        }
        object
    }
}

fn value(attribute: &DefaultNla) -> Vec<u8> {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    value
}

fn counters(stats: &[TcStats2]) -> Counters {
    let mut counters = Counters::default();
    let mut all_packets = None;
    for one in stats {
        match one {
            TcStats2::Basic(basic) => {
                counters.bytes = basic.bytes;
                counters.packets = basic.packets.into();
            }
            TcStats2::Queue(queue) => {
                counters.drops = queue.drops;
                counters.overlimits = queue.overlimits;
                counters.backlog = queue.backlog;
            }
            TcStats2::Other(other) if other.kind() == TCA_STATS_PKT64 => {
                all_packets = value(other).try_into().ok().map(u64::from_ne_bytes);
            }
            _ => {}
        }
    }
    counters.packets = all_packets.unwrap_or(counters.packets);
    counters
}
