//! How large the data packets of a subflow are: a path may take less than its ASes announce.

/// Probes of the announced size that are lost until the path counts as one that does not take it.
const PROBES: u32 = 3;

/// The size of a subflow's data packets.
#[derive(Debug)]
pub(super) struct PacketSize {
    /// Bytes of content in each data packet.
    per_packet: usize,
    /// The announced size that is being tried.
    tried: Option<Tried>,
}

/// A larger size, until a probe shows whether the path takes it.
#[derive(Debug)]
struct Tried {
    /// Bytes of a packet.
    packet: usize,
    /// Bytes of content in it.
    per_packet: usize,
    /// Probes that were lost.
    lost: u32,
}

impl PacketSize {
    pub(super) fn new(per_packet: usize) -> Self {
        Self {
            per_packet: per_packet.max(1),
            tried: None,
        }
    }

    /// Bytes of content in each data packet.
    pub(super) fn per_packet(&self) -> usize {
        self.per_packet
    }

    /// Packets of `packet` bytes hold `per_packet` bytes of content, if the path takes them. Returns
    /// the size of the probe to send.
    pub(super) fn try_larger(&mut self, packet: usize, per_packet: usize) -> Option<usize> {
        self.tried = (per_packet > self.per_packet).then_some(Tried {
            packet,
            per_packet,
            lost: 0,
        });
        self.tried.as_ref().map(|tried| tried.packet)
    }

    /// A probe of `size` bytes was acknowledged.
    pub(super) fn on_probe_acked(&mut self, size: usize) {
        if let Some(tried) = self.tried.take_if(|tried| size >= tried.packet) {
            self.per_packet = tried.per_packet;
        }
    }

    /// A probe of `size` bytes was lost. Returns the size of the next one to send.
    pub(super) fn on_probe_lost(&mut self, size: usize) -> Option<usize> {
        let tried = self.tried.as_mut().filter(|tried| size >= tried.packet)?;
        tried.lost += 1;
        let packet = tried.packet;
        if tried.lost >= PROBES {
            self.tried = None;
            return None;
        }
        Some(packet)
    }
}
