//! What the API server of a cluster and processes beside it need: memory, time of a processor, and room in etcd.

use std::time::Duration;

use crate::{Cluster, TestResult as Result};

/// The time of a processor that a process has spent: fields utime and stime of `/proc/<pid>/stat`, in ticks of 10 ms.
pub fn cpu_of(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the name in parentheses, and may have anything in it.
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 10))
}

/// The resident bytes of a process.
pub fn memory_of(pid: u32) -> Result<u64> {
    of_status(pid, "VmRSS:")
}

/// The most resident bytes that a process has had.
pub fn peak_of(pid: u32) -> Result<u64> {
    of_status(pid, "VmHWM:")
}

fn of_status(pid: u32, field: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix(field)).ok_or_else(|| format!("no {field} in status"))?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}

impl Cluster {
    /// The bytes of the API server's heap that are in use, after a garbage collection.
    pub async fn heap(&self) -> Result<f64> {
        // Twice: the second collection returns what the first one finds unused.
        for _ in 0..2 {
            self.collect_garbage()?;
        }
        self.metric("go_memstats_heap_alloc_bytes ").await
    }

    /// Has the API server collect its garbage, so that nothing that follows pays for it.
    pub fn collect_garbage(&self) -> Result<()> {
        self.kubectl(&["get", "--raw", "/debug/pprof/heap?gc=1"]).map(drop)
    }

    /// The bytes of etcd's database, free pages included.
    pub async fn stored(&self) -> Result<f64> {
        self.metric("apiserver_storage_size_bytes{").await
    }

    /// The time of a processor that the API server has spent.
    pub fn apiserver_cpu(&self) -> Result<Duration> {
        cpu_of(self.apiserver_pid()?)
    }

    /// The resident bytes of the API server.
    pub fn apiserver_memory(&self) -> Result<u64> {
        memory_of(self.apiserver_pid()?)
    }

    fn apiserver_pid(&self) -> Result<u32> {
        Ok(self.control_plane.apiserver_pid().ok_or("the API server does not run")?)
    }

    /// The first sample of the API server's metrics whose line begins so.
    async fn metric(&self, begin: &str) -> Result<f64> {
        let metrics = self.control_plane.get("/metrics").await?;
        let value = metrics.lines().find(|line| line.starts_with(begin)).and_then(|line| line.split(' ').next_back());
        Ok(value.ok_or_else(|| format!("the API server has no metric {begin}"))?.parse()?)
    }
}
