//! The table at the end.

/// What was measured.
pub(crate) struct Figures {
    pub(crate) namespaces: u32,
    pub(crate) policies: usize,
    pub(crate) bindings: usize,
    pub(crate) params: usize,
    /// From `kubectl apply` of the profile until it was seen to be enforced in every namespace.
    pub(crate) seconds: f64,
    /// Before the profile and after, in bytes.
    pub(crate) apiserver: (u64, u64),
    /// Before the profile and after, in bytes.
    pub(crate) controller: (u64, u64),
}

impl Figures {
    /// The table, as lines.
    pub(crate) fn table(&self) -> String {
        let rows = [
            ("tool namespaces", self.namespaces.to_string()),
            ("policies + bindings", format!("{} + {}", self.policies, self.bindings)),
            ("parameter objects", self.params.to_string()),
            ("seconds to full enforcement", format!("{:.1}", self.seconds)),
            ("API server memory, before -> after", change(self.apiserver)),
            ("controller memory, before -> after", change(self.controller)),
        ];
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        rows.iter().map(|(name, value)| format!("  {name:width$}  {value}\n")).collect()
    }
}

fn change((before, after): (u64, u64)) -> String {
    let (before, after) = (megabytes(before), megabytes(after));
    format!("{before:.0} MB -> {after:.0} MB ({:+.0} MB)", after - before)
}

#[allow(clippy::cast_precision_loss, reason = "memory to the megabyte")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
