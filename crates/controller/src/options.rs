//! What can be set on the command line. The library takes the same values.

use std::{net::SocketAddr, time::Duration};

/// Options of the controller.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, env = "PALISADE_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// How many ToolSecurityParams of one profile are written at the same time. One after the other, 3,500 are
    /// written in eight seconds and spare the API server's memory; more pay where its answers take long.
    #[arg(long, default_value_t = 1)]
    pub write_concurrency: usize,
    /// How many profiles are reconciled at the same time.
    #[arg(long, default_value_t = 4)]
    pub profile_concurrency: usize,
    /// How long changes are collected before a profile is reconciled.
    #[arg(long, default_value = "20ms", value_parser = duration)]
    pub debounce: Duration,
    /// How often the API server is asked whether a profile is in force when nothing has changed.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub probe_interval: Duration,
    /// How long the API server may take to give the right answers after a change.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub probe_timeout: Duration,
    /// Name of this instance in events.
    #[arg(long, env = "POD_NAME")]
    pub instance: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 8080)),
            write_concurrency: 1,
            profile_concurrency: 4,
            debounce: Duration::from_millis(20),
            probe_interval: Duration::from_mins(5),
            probe_timeout: Duration::from_secs(10),
            instance: None,
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

/// Reads `250ms`, `10s`, `5m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| format!("{text:?} does not begin with a number"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        _ => Err(format!("{text:?} does not end with ms, s, m or h")),
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
    fn durations_have_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        assert!(duration("5").is_err());
        assert!(duration("m").is_err());
    }

    #[test]
    fn the_flags_default_to_the_default_options() {
        let options = Cli::parse_from(["x"]).options;
        assert_eq!(format!("{:?}", Options { instance: None, ..options }), format!("{:?}", Options::default()));
    }
}
