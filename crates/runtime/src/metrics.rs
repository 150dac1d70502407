//! Metrics that every process has.

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text::encode},
    metrics::{MetricType, gauge::ConstGauge, info::Info},
    registry::Registry,
};

/// Registers the metrics of any process: its memory and its version.
pub fn about_process(registry: &mut Registry, version: &'static str) {
    registry.register_collector(Box::new(Memory));
    registry.register("palisade_build", "Version of the binary", Info::new(vec![("version", version)]));
}

/// The metrics as `OpenMetrics` text.
///
/// # Errors
/// A metric cannot be encoded.
pub fn text(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

/// Resident memory, read on each scrape.
#[derive(Debug)]
struct Memory;

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let resident = ConstGauge::new(resident_bytes().unwrap_or_default());
        let metric = encoder.encode_descriptor(
            "process_resident_memory_bytes",
            "Resident memory size",
            None,
            MetricType::Gauge,
        )?;
        resident.encode(metric)
    }
}

/// `VmRSS` of this process.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_metrics_include_memory_and_version() {
        let mut registry = Registry::default();
        about_process(&mut registry, "1.2.3");
        let text = text(&registry).unwrap();
        assert!(text.contains("palisade_build_info{version=\"1.2.3\"} 1"), "{text}");
        let memory = text.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes ")).unwrap();
        assert!(memory.parse::<u64>().unwrap() > 100_000, "{text}");
    }
}
