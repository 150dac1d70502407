//! Metrics of HTTP servers.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};

use super::{BodyError, connection::Ending};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Port {
    port: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PortReason {
    port: &'static str,
    reason: &'static str,
}

/// Counts of all HTTP servers of a process. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct HttpMetrics {
    connections: Family<Port, Gauge>,
    closed: Family<PortReason, Counter>,
    body_bytes: Family<Port, Gauge>,
    refused: Family<PortReason, Counter>,
}

/// The gauges.
pub struct Gauges {
    /// Connections.
    pub connections: Gauge,
    /// Memory of bodies.
    pub body_bytes: Gauge,
}

impl HttpMetrics {
    /// Registers them.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("palisade_http_connections", "Open connections", self.connections.clone());
        registry.register(
            "palisade_http_connections_closed",
            "Connections closed by the server, by reason",
            self.closed.clone(),
        );
        registry.register_with_unit(
            "palisade_http_bodies",
            "Memory of request bodies in progress",
            Unit::Bytes,
            self.body_bytes.clone(),
        );
        registry.register(
            "palisade_http_bodies_refused",
            "Request bodies rejected by the server, by reason",
            self.refused.clone(),
        );
    }

    /// Each of them once, for what compares metrics with documents.
    pub fn count_once(&self, port: &'static str) {
        self.of(port);
        self.closed(port, Ending::Idle);
        self.refused(port, BodyError::ClosedEarly);
    }

    pub(super) fn of(&self, port: &'static str) -> Gauges {
        let of = |family: &Family<Port, Gauge>| family.get_or_create(&Port { port }).clone();
        Gauges { connections: of(&self.connections), body_bytes: of(&self.body_bytes) }
    }

    pub(super) fn closed(&self, port: &'static str, ending: Ending) {
        let reason = match ending {
            Ending::ByClient | Ending::Stopped => return,
            Ending::HandshakeFailed => "handshake_failed",
            Ending::HandshakeSlow => "handshake_slow",
            Ending::HeadSlow => "head_slow",
            Ending::RequestSlow => "request_slow",
            Ending::Idle => "idle",
            Ending::Displaced => "displaced",
        };
        self.closed.get_or_create(&PortReason { port, reason }).inc();
    }

    pub(super) fn refused(&self, port: &'static str, error: BodyError) {
        let reason = match error {
            BodyError::TooLarge { .. } => "too_large",
            BodyError::Slow { .. } => "slow",
            BodyError::NoMemory => "no_memory",
            BodyError::ClosedEarly => "closed_early",
        };
        self.refused.get_or_create(&PortReason { port, reason }).inc();
    }
}
