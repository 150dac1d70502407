//! The table at the end.

pub(crate) struct Figures {
    pub(crate) namespaces: u32,
    pub(crate) policies: usize,
    pub(crate) bindings: usize,
    pub(crate) params: usize,
    /// From `kubectl apply` of the profile until it is observed to be enforced in every namespace.
    pub(crate) seconds: f64,
    /// Before the profile and after.
    pub(crate) apiserver: (Memory, Memory),
    /// Before the profile and after, in bytes.
    pub(crate) controller: (u64, u64),
}

/// Memory of the API server, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) heap: f64,
    /// What the process has of the machine, free parts of the heap included.
    pub(crate) resident: u64,
}

impl Figures {
    pub(crate) fn table(&self) -> String {
        let rows = [
            ("tool namespaces", self.namespaces.to_string()),
            ("policies + bindings", format!("{} + {}", self.policies, self.bindings)),
            ("parameter objects", self.params.to_string()),
            ("seconds to full enforcement", format!("{:.1}", self.seconds)),
            ("API server heap in use, before -> after", change(self.apiserver.0.heap, self.apiserver.1.heap)),
            ("API server resident memory", change(bytes(self.apiserver.0.resident), bytes(self.apiserver.1.resident))),
            ("controller resident memory", change(bytes(self.controller.0), bytes(self.controller.1))),
        ];
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let lines: Vec<_> = rows.iter().map(|(name, value)| format!("  {name:width$}  {value}")).collect();
        lines.join("\n")
    }
}

fn change(before: f64, after: f64) -> String {
    let (before, after) = (before / 1e6, after / 1e6);
    format!("{before:.0} MB -> {after:.0} MB ({:+.0} MB)", after - before)
}

#[allow(clippy::cast_precision_loss, reason = "memory to the megabyte")]
fn bytes(bytes: u64) -> f64 {
    bytes as f64
}
