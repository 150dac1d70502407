//! Command-line options. The library takes the same values.

use std::{net::SocketAddr, str::FromStr, time::Duration};

use clap::builder::RangedU64ValueParser;
use http::Uri;
use palisade_runtime::duration;

use crate::{leader::lease::Timing, object_kind::ObjectKind};

/// A number that is not 0, because 0 would stop all work.
fn some() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// A time that is not 0.
pub fn time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// API servers to probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ApiServers {
    /// API servers in the EndpointSlice `kubernetes` of the namespace `default`.
    #[default]
    Discover,
    /// API servers at these addresses.
    At(Vec<Uri>),
}

impl FromStr for ApiServers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "Discover" {
            return Ok(Self::Discover);
        }
        let addresses: Vec<_> = text.split(',').map(|address| parse(address.trim())).collect::<Result<_, _>>()?;
        Ok(Self::At(addresses))
    }
}

fn parse(address: &str) -> Result<Uri, String> {
    let hint = "use Discover, or addresses like https://10.0.0.1:6443, separated by commas";
    let uri: Uri = address.parse().map_err(|error| format!("{address:?} is not a URL ({error}); {hint}"))?;
    if uri.host().is_none() || !matches!(uri.scheme_str(), Some("https" | "http")) {
        return Err(format!("{address:?} has no scheme or no host; {hint}"));
    }
    Ok(uri)
}

/// Interval of the background scan; `None` if it is disabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanInterval(pub Option<Duration>);

impl FromStr for ScanInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "Off" {
            return Ok(Self(None));
        }
        time(text).map(|interval| Self(Some(interval))).map_err(|error| format!("{error}; or use Off"))
    }
}

/// Reports of other APIs by the background scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum PolicyReports {
    /// If one of these APIs is installed.
    #[default]
    Auto,
    /// Never. Existing reports of Palisade are deleted.
    Off,
}

/// A switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Switch {
    /// Enabled.
    #[default]
    On,
    /// Disabled.
    Off,
}

/// Options of the controller.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, env = "PALISADE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// Number of ToolSecurityParams of one profile to write concurrently. They do not delay the parameters of a new
    /// namespace. A larger number enforces a new profile in all namespaces sooner if the API server is slow.
    #[arg(long, default_value_t = 4, value_parser = some())]
    pub write_concurrency: usize,
    /// Number of profiles to compile and check concurrently. Each uses one CPU. Other work on a profile does not wait
    /// for it.
    #[arg(long, default_value_t = 2, value_parser = some())]
    pub profile_concurrency: usize,
    /// Match conditions that exclude requests without violations from the evaluation. Off gives the same verdicts at a
    /// higher cost for each request. The annotation toolsecurity.dev/fast-path: Off disables them for one profile.
    #[arg(long, env = "PALISADE_FAST_PATH", value_enum, default_value = "On")]
    pub fast_path: Switch,
    /// Time to collect changes before a profile is reconciled.
    #[arg(long, default_value = "20ms", value_parser = duration)]
    pub debounce: Duration,
    /// API servers to probe: `Discover` for those behind the service kubernetes (EndpointSlice kubernetes in namespace
    /// default; if it does not exist or cannot be read, the configured address), or their URLs, separated by commas.
    /// Their certificates must be valid for the host of the configured address.
    #[arg(long, default_value = "Discover", value_name = "Discover|URL,...")]
    pub api_servers: ApiServers,
    /// Interval of probes of each API server if there are no changes.
    #[arg(long, default_value = "5m", value_parser = time)]
    pub probe_interval: Duration,
    /// Time limit for API servers to enforce a change.
    #[arg(long, default_value = "10s", value_parser = time)]
    pub probe_timeout: Duration,
    /// Time between the end of a background scan and the start of the next one, or Off. The scan evaluates existing
    /// pods and workloads and writes a ToolSecurityReport for each namespace with violations. It requires the
    /// permissions in manifests/scan.
    #[arg(long, env = "PALISADE_SCAN_INTERVAL", default_value = "Off", value_name = "Off|TIME")]
    pub scan_interval: ScanInterval,
    /// Lists of 500 objects that a background scan requests per second.
    #[arg(long, default_value_t = 10, value_parser = some())]
    pub scan_rate: usize,
    /// Limit in bytes for all reports of the background scan together, as JSON. Reports above the limit have only
    /// counts, or are not written.
    #[arg(long, default_value_t = 16 * 1024 * 1024, value_parser = some())]
    pub scan_max_report_bytes: usize,
    /// Additional reports of the background scan beside each ToolSecurityReport: a Report of the OpenReports API
    /// (openreports.io/v1alpha1) or, if only that API is installed, a PolicyReport (wgpolicyk8s.io/v1alpha2).
    #[arg(long, env = "PALISADE_SCAN_POLICY_REPORTS", value_enum, default_value = "Auto")]
    pub scan_policy_reports: PolicyReports,
    /// Kinds that profiles may generate, as APIVERSION/KIND/RESOURCE, separated by commas, for example
    /// v1/ResourceQuota/resourcequotas. The controller requires permission to write them in all namespaces
    /// (generate.kinds of the chart's values).
    #[arg(long, env = "PALISADE_GENERATE", value_delimiter = ',', value_name = "APIVERSION/KIND/RESOURCE,...")]
    pub generate: Vec<ObjectKind>,
    /// Work only while this replica holds the Lease palisade-controller in palisade-system. This allows several
    /// replicas: one is the leader, the others are standbys.
    #[arg(long)]
    pub leader_elect: bool,
    /// Time that standbys wait for a leader that does not renew the Lease.
    #[arg(long, default_value = "8s", value_parser = time)]
    pub leader_elect_lease_duration: Duration,
    /// Time after which a leader that cannot renew the Lease stops.
    #[arg(long, default_value = "5s", value_parser = time)]
    pub leader_elect_renew_deadline: Duration,
    /// Interval at which the leader renews the Lease and the standbys poll it.
    #[arg(long, default_value = "1s", value_parser = time)]
    pub leader_elect_retry_period: Duration,
    /// Name of this instance in events.
    #[arg(long, env = "POD_NAME")]
    pub instance: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 8080)),
            write_concurrency: 4,
            profile_concurrency: 2,
            fast_path: Switch::On,
            debounce: Duration::from_millis(20),
            api_servers: ApiServers::Discover,
            probe_interval: Duration::from_mins(5),
            probe_timeout: Duration::from_secs(10),
            scan_interval: ScanInterval::default(),
            scan_rate: 10,
            scan_max_report_bytes: 16 * 1024 * 1024,
            scan_policy_reports: PolicyReports::default(),
            generate: Vec::new(),
            leader_elect: false,
            leader_elect_lease_duration: Duration::from_secs(8),
            leader_elect_renew_deadline: Duration::from_secs(5),
            leader_elect_retry_period: Duration::from_secs(1),
            instance: None,
        }
    }
}

impl Options {
    /// The times of the leader election.
    ///
    /// # Errors
    ///
    /// If they are inconsistent.
    pub fn election(&self) -> Result<Timing, String> {
        let timing = Timing {
            lease: self.leader_elect_lease_duration,
            renew: self.leader_elect_renew_deadline,
            retry: self.leader_elect_retry_period,
        };
        timing.check().map(|()| timing)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn zero_is_rejected_for_intervals_and_concurrency() {
        for flag in [
            "--probe-interval=0s",
            "--probe-timeout=0ms",
            "--write-concurrency=0",
            "--profile-concurrency=0",
            "--scan-interval=0s",
            "--scan-rate=0",
        ] {
            let error = Cli::try_parse_from(["x", flag]).map(|cli| cli.options).unwrap_err().to_string();
            let (name, value) = flag.split_once('=').unwrap();
            assert!(error.contains(name) && error.contains(&format!("'{value}'")), "{flag}: {error}");
        }
        assert_eq!(Cli::parse_from(["x", "--debounce=0s"]).options.debounce, Duration::ZERO);
    }

    #[test]
    fn api_server_addresses_must_be_urls() {
        assert_eq!("Discover".parse(), Ok(ApiServers::Discover));
        let two = "https://10.0.0.1:6443, https://[::1]:6444".parse::<ApiServers>().unwrap();
        assert!(matches!(two, ApiServers::At(addresses) if addresses.len() == 2));
        for wrong in ["", "discover", "10.0.0.1:6443", "https://", "https://a,,https://b", "ftp://a"] {
            assert!(wrong.parse::<ApiServers>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_scan_interval_is_a_time_or_off() {
        assert_eq!("Off".parse(), Ok(ScanInterval(None)));
        assert_eq!("10m".parse(), Ok(ScanInterval(Some(Duration::from_mins(10)))));
        let error = "off".parse::<ScanInterval>().unwrap_err();
        assert!(error.contains("or use Off"), "{error}");
    }

    #[test]
    fn the_flags_default_to_the_default_options() {
        let options = Cli::parse_from(["x"]).options;
        assert_eq!(format!("{:?}", Options { instance: None, ..options }), format!("{:?}", Options::default()));
    }
}
