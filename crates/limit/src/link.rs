//! A link, and the parts of a limit on it.

use std::io;

use hawser_kernel::netlink::{Netlink, NetlinkError};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};

use rustix::io::Errno;

use crate::error::LimitError;
use crate::htb::{self, Class};
use crate::limit::Counters;

/// Handles of our own, by which a limit differs from what others set on a link. `tc` prints them as
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

/// `IFNAMSIZ` of netdevice(7): bytes of a link's name, with the zero that ends it.
const NAME_SIZE: usize = 16;

const HTB: &str = "htb";
const BFIFO: &str = "bfifo";

/// The options of any queueing discipline or class. Those of `bfifo` are not nested attributes.
const TCA_OPTIONS: u16 = 2;
/// All packets in 64 bits; sent only when they do not fit into the 32 bits of the basic counters.
const TCA_STATS_PKT64: u16 = 8;

/// A link, with a socket to the kernel.
pub(crate) struct Link {
    netlink: Netlink,
    pub name: String,
    index: i32,
    /// Bytes of the largest packet, Ethernet header not counted.
    pub mtu: u32,
}

/// The root queueing discipline of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Root {
    /// The kernel's default.
    Free,
    /// Our HTB.
    Limit,
    /// One that hawser did not set.
    Foreign { kind: String, handle: u32 },
}

impl Link {
    pub fn open(name: &str) -> Result<Self, LimitError> {
        let mut netlink = Netlink::open().map_err(|error| LimitError::Netlink(error.into()))?;
        let no_link = || LimitError::NoLink {
            link: name.to_owned(),
        };
        // The kernel's answer to names that no link can have is less clear.
        if name.is_empty() || name.len() >= NAME_SIZE {
            return Err(no_link());
        }
        let mut question = LinkMessage::default();
        question
            .attributes
            .push(LinkAttribute::IfName(name.to_owned()));
        let answer = match netlink.query(RouteNetlinkMessage::GetLink(question), 0) {
            Err(error) if error.refusal() == Some(Errno::NODEV.raw_os_error()) => {
                return Err(no_link());
            }
            other => other.map_err(|error| failed("read", name, error))?,
        };
        let unreadable = |what: &str| LimitError::Answer {
            link: name.to_owned(),
            what: what.to_owned(),
        };
        let [RouteNetlinkMessage::NewLink(link)] = &answer[..] else {
            return Err(unreadable("expected one link"));
        };
        let index = i32::try_from(link.header.index).map_err(|_| unreadable("index"))?;
        let mtu = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu),
                _ => None,
            });
        Ok(Self {
            netlink,
            name: name.to_owned(),
            index,
            mtu: mtu.ok_or_else(|| unreadable("no MTU"))?,
        })
    }

    pub fn root(&mut self) -> Result<Root, LimitError> {
        let Some(root) = self.qdisc(TcHandle::ROOT)? else {
            return Ok(Root::Free);
        };
        let kind = kind(&root).unwrap_or_default().to_owned();
        Ok(match root.header.handle {
            // The kernel's defaults have no number.
            TcHandle { major: 0, .. } => Root::Free,
            ROOT if kind == HTB => Root::Limit,
            handle => Root::Foreign {
                kind,
                handle: handle.into(),
            },
        })
    }

    pub fn add_root(&mut self) -> Result<(), LimitError> {
        let options = htb::qdisc_options(CLASS.minor);
        let attributes = vec![TcAttribute::Kind(HTB.to_owned()), nested(options)];
        let message = self.message(ROOT, TcHandle::ROOT, attributes);
        // Exclusively: what another program has set meanwhile stays.
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
        let message = self.message(ROOT, TcHandle::ROOT, Vec::new());
        let gone = LimitError::Incomplete {
            link: self.name.clone(),
        };
        self.change(
            "remove the limit from",
            RouteNetlinkMessage::DelQueueDiscipline(message),
            0,
            gone,
        )
    }

    /// The class below our HTB, with its counters.
    pub fn class(&mut self) -> Result<Option<(Class, Counters)>, LimitError> {
        let question = self.message(TcHandle::UNSPEC, TcHandle::UNSPEC, Vec::new());
        let classes = self.dump(RouteNetlinkMessage::GetTrafficClass(question))?;
        let ours = |class: &TcMessage| class.header.handle == CLASS;
        let Some(class) = classes.into_iter().find(ours) else {
            return Ok(None);
        };
        match options(&class).and_then(|options| Class::from_options(&options)) {
            Some(options) => Ok(Some((options, counters(&class)))),
            None => Err(self.unreadable("the options of the HTB class")),
        }
    }

    /// Creates the class, or changes it without touching its queue.
    pub fn put_class(&mut self, class: &Class) -> Result<(), LimitError> {
        let attributes = vec![TcAttribute::Kind(HTB.to_owned()), nested(class.options())];
        let message = self.message(CLASS, TcHandle::ROOT, attributes);
        let gone = LimitError::Incomplete {
            link: self.name.clone(),
        };
        self.change(
            "set the rate of",
            RouteNetlinkMessage::NewTrafficClass(message),
            NLM_F_CREATE | NLM_F_REPLACE,
            gone,
        )
    }

    /// The size in bytes of the queue below our class; `None` if it is not ours, or missing.
    pub fn queue(&mut self) -> Result<Option<u32>, LimitError> {
        let Some(queue) = self.qdisc(CLASS)? else {
            return Ok(None);
        };
        if queue.header.handle != QUEUE || kind(&queue) != Some(BFIFO) {
            return Ok(None);
        }
        // struct tc_fifo_qopt: one number.
        match options(&queue).and_then(|options| options.try_into().ok()) {
            Some(limit) => Ok(Some(u32::from_ne_bytes(limit))),
            None => Err(self.unreadable("the options of the queue")),
        }
    }

    /// Creates the queue, or changes its length without losing waiting packets.
    pub fn put_queue(&mut self, bytes: u32) -> Result<(), LimitError> {
        let options = DefaultNla::new(TCA_OPTIONS, bytes.to_ne_bytes().to_vec());
        let attributes = vec![
            TcAttribute::Kind(BFIFO.to_owned()),
            TcAttribute::Other(options),
        ];
        let message = self.message(QUEUE, CLASS, attributes);
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

    pub fn foreign(&self, kind: String, handle: u32) -> LimitError {
        LimitError::Foreign {
            link: self.name.clone(),
            kind,
            handle,
        }
    }

    pub fn incomplete(&self) -> LimitError {
        LimitError::Incomplete {
            link: self.name.clone(),
        }
    }

    fn unreadable(&self, what: &str) -> LimitError {
        LimitError::Answer {
            link: self.name.clone(),
            what: what.to_owned(),
        }
    }

    fn message(
        &self,
        handle: TcHandle,
        parent: TcHandle,
        attributes: Vec<TcAttribute>,
    ) -> TcMessage {
        let mut message = TcMessage::with_index(self.index);
        message.header.handle = handle;
        message.header.parent = parent;
        message.attributes = attributes;
        message
    }

    /// The link's queueing discipline below `parent`.
    fn qdisc(&mut self, parent: TcHandle) -> Result<Option<TcMessage>, LimitError> {
        let question = self.message(TcHandle::UNSPEC, TcHandle::UNSPEC, Vec::new());
        let all = self.dump(RouteNetlinkMessage::GetQueueDiscipline(question))?;
        Ok(all.into_iter().find(|one| one.header.parent == parent))
    }

    /// All disciplines, or all classes, of this link. Kernels answer a query for a single discipline
    /// only while some process subscribes to changes.
    fn dump(&mut self, question: RouteNetlinkMessage) -> Result<Vec<TcMessage>, LimitError> {
        let answer = self
            .netlink
            .query(question, NLM_F_DUMP)
            .map_err(|error| failed("read", &self.name, error))?;
        let of_this_link = answer.into_iter().filter_map(|message| match message {
            RouteNetlinkMessage::NewQueueDiscipline(found)
            | RouteNetlinkMessage::NewTrafficClass(found) => Some(found),
            _ => None,
        });
        // The kernel lists the disciplines of all links.
        Ok(of_this_link
            .filter(|found| found.header.index == self.index)
            .collect())
    }

    /// Has the kernel change something; `missing` is the error when it finds no such object.
    fn change(
        &mut self,
        action: &'static str,
        message: RouteNetlinkMessage,
        flags: u16,
        missing: LimitError,
    ) -> Result<(), LimitError> {
        match self.netlink.request(message, flags) {
            Ok(()) => Ok(()),
            Err(error) if error.refusal() == Some(Errno::NOENT.raw_os_error()) => Err(missing),
            Err(error) => Err(failed(action, &self.name, error)),
        }
    }
}

fn failed(action: &'static str, link: &str, error: NetlinkError) -> LimitError {
    let link = link.to_owned();
    match error {
        NetlinkError::Refused(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            LimitError::Denied { link }
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

fn kind(message: &TcMessage) -> Option<&str> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            TcAttribute::Kind(kind) => Some(kind.as_str()),
            _ => None,
        })
}

/// The raw options of a kind that the netlink crates do not know.
fn options(message: &TcMessage) -> Option<Vec<u8>> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            TcAttribute::Options(options) => match &options[..] {
                [TcOption::Other(options)] => Some(value(options)),
                _ => None,
            },
            _ => None,
        })
}

fn value(attribute: &DefaultNla) -> Vec<u8> {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    value
}

fn counters(class: &TcMessage) -> Counters {
    let mut counters = Counters::default();
    let mut all_packets = None;
    for attribute in &class.attributes {
        let TcAttribute::Stats2(stats) = attribute else {
            continue;
        };
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
    }
    counters.packets = all_packets.unwrap_or(counters.packets);
    counters
}
