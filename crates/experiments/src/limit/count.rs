//! What has passed a limit, by the counters of its HTB class.
//!
//! The class counts what leaves its queue, as frames: with the Ethernet header, and each segment of a
//! packet that is segmented later with headers of its own. Counters of devices leave the latter out.

use std::time::{Duration, Instant};

use hawser_kernel::netlink::Netlink;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};

use super::bed::DEVICE;
use super::names::Way;
use crate::error::{During, ExperimentError};

/// Longest wait for a frame: offloaded packets of 64 KB are 5.2 s apart at 100 kbit/s.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: &str = "reading the counters of a limit";

/// Reads the counters of the class that carries the most.
pub struct Counter {
    netlink: Netlink,
    devices: Vec<u32>,
}

/// The counters at a time.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// The middle of the time in which they were read.
    pub time: Instant,
    /// Bytes of frames that were sent.
    pub bytes: u64,
    /// Packets that wait.
    pub waiting: u32,
    /// Packets that were dropped.
    pub drops: u32,
}

impl Counter {
    /// Opens one for a direction of the limits that are set now. To be called inside the attachment
    /// point.
    pub fn open(way: Way) -> Result<Self, ExperimentError> {
        let mut netlink = Netlink::open().during(STEP)?;
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let links = netlink.request(request, NLM_F_DUMP).during(STEP)?;
        let devices = links.into_iter().filter_map(|link| {
            let RouteNetlinkMessage::NewLink(link) = link else {
                return None;
            };
            let is_own = link.attributes.iter().any(
                |attribute| matches!(attribute, LinkAttribute::IfName(name) if name == DEVICE),
            );
            // What is received is redirected to another device.
            (is_own == (way == Way::Egress)).then_some(link.header.index)
        });
        Ok(Self {
            devices: devices.collect(),
            netlink,
        })
    }

    /// Reads the counters.
    pub fn read(&mut self) -> Result<Count, ExperimentError> {
        let mut most: Option<Count> = None;
        for &device in &self.devices {
            let mut message = TcMessage::default();
            message.header.index = device as i32;
            let request = RouteNetlinkMessage::GetTrafficClass(message);
            let begin = Instant::now();
            let classes = self.netlink.request(request, NLM_F_DUMP).during(STEP)?;
            let time = begin + begin.elapsed() / 2;
            for class in classes {
                if let RouteNetlinkMessage::NewTrafficClass(class) = class {
                    let count = count(&class, time);
                    most = most.into_iter().chain([count]).max_by_key(|one| one.bytes);
                }
            }
        }
        most.ok_or("there is no class").during(STEP)
    }

    /// Waits until the next frame is sent, and returns the counters of that time without the frame:
    /// what passes between two such times is whole frames, each with all of the time that the limit
    /// gives it. With the frame itself a packet of 64 KB that happens to be the last would count
    /// although its time has only begun.
    pub fn at_frame(&mut self) -> Result<Count, ExperimentError> {
        let first = self.read()?;
        loop {
            let count = self.read()?;
            if count.bytes != first.bytes {
                let bytes = first.bytes;
                return Ok(Count { bytes, ..count });
            }
            if first.time.elapsed() > PATIENCE {
                return Err("no frame passes").during(STEP);
            }
        }
    }
}

fn count(class: &TcMessage, time: Instant) -> Count {
    let mut count = Count {
        time,
        bytes: 0,
        waiting: 0,
        drops: 0,
    };
    for attribute in &class.attributes {
        let TcAttribute::Stats2(all) = attribute else {
            continue;
        };
        for one in all {
            match one {
                TcStats2::Basic(basic) => count.bytes = basic.bytes,
                TcStats2::Queue(queue) => {
                    count.waiting = queue.qlen;
                    count.drops = queue.drops;
                }
                _ => {}
            }
        }
    }
    count
}

impl Count {
    /// Bit/s of frames since an earlier count.
    pub fn rate_since(&self, earlier: &Self) -> f64 {
        let bits = 8 * (self.bytes - earlier.bytes);
        bits as f64 / self.time.duration_since(earlier.time).as_secs_f64()
    }
}
