//! The chart, its alerts and its dashboard, tested with helm and Prometheus.

use std::{fs, path::PathBuf};

use clap::Subcommand;

use crate::{
    project::root,
    shell::{Error, build_control_plane, cache, cargo, command, go, optional, run},
};

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Build helm from its Go module.
    HelmProgram,
    /// Render the chart into manifests/.
    Manifests,
    /// Render the chart with many values; install, upgrade, roll back and uninstall it.
    Helm {
        /// Number of namespaces in the cluster.
        #[arg(long, default_value_t = 500)]
        namespaces: u32,
    },
    /// Test each alert of the chart with series that fire it and series that do not; without promtool, skip the test.
    Alerts {
        /// Path of promtool (Debian: package prometheus). The default is PROMTOOL, or promtool on the path.
        #[arg(long)]
        promtool: Option<PathBuf>,
    },
    /// Run all queries of the dashboard and all alerts in a real Prometheus; without it, skip the test.
    Dashboards {
        /// Path of prometheus (Debian: package prometheus). The default is PROMETHEUS, or prometheus on the path.
        #[arg(long)]
        prometheus: Option<PathBuf>,
    },
}

pub(crate) fn task(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::HelmProgram => helm().map(|_| ()),
        Verb::Manifests => {
            helm()?;
            let mut test = cargo("test -p palisade-helm --test chart -- manifests");
            run(test.env("UPDATE_GOLDEN", "1").env("PALISADE_EXPECT", "helm"))
        }
        Verb::Helm { namespaces } => {
            build_control_plane()?;
            let helm = helm()?;
            run(cargo("test -p palisade-helm").env("PALISADE_EXPECT", "helm"))?;
            let mut test = cargo("test --workspace --test apiserver -- helm:: --nocapture");
            run(test.env("PALISADE_HELM", helm).env("PALISADE_HELM_NAMESPACES", namespaces.to_string()))
        }
        Verb::Alerts { promtool } => {
            let Some(promtool) = optional(promtool.as_deref(), "PROMTOOL", &["promtool"]) else {
                println!("skipped: no promtool; Debian has it in the package prometheus, and PROMTOOL names a program");
                return Ok(());
            };
            run(command(&promtool).args(["check", "rules", "charts/palisade/files/alerts.yaml"]))?;
            run(command(&promtool).args(["test", "rules", "tests/alerts/alerts.test.yaml"]))
        }
        Verb::Dashboards { prometheus } => {
            let Some(prometheus) = optional(prometheus.as_deref(), "PROMETHEUS", &["prometheus"]) else {
                println!(
                    "skipped: no prometheus; Debian has it in the package prometheus (apt-get update && apt-get install \
                     -y prometheus), and PROMETHEUS names a program"
                );
                return Ok(());
            };
            build_control_plane()?;
            let mut test = cargo("test --workspace --test apiserver -- dashboards:: --nocapture");
            run(test.env("PALISADE_PROMETHEUS", prometheus))
        }
    }
}

/// Path of helm in its pinned version, whether it is built or not.
pub(crate) fn helm_path() -> Result<PathBuf, Error> {
    Ok(cache().join("helm").join(helm_version()?).join("helm"))
}

/// Builds helm in its pinned version, and returns its path.
pub(crate) fn helm() -> Result<PathBuf, Error> {
    let path = helm_path()?;
    let flags = format!("-s -w -X helm.sh/helm/v4/internal/version.version={}", helm_version()?);
    let mut build = go("tests/helm", "build");
    run(build.args(["-ldflags", &flags, "-o"]).arg(&path).arg("helm.sh/helm/v4/cmd/helm"))?;
    Ok(path)
}

fn helm_version() -> Result<String, Error> {
    let path = root().join("tests/helm/go.mod");
    let text = fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
    let version = text.split("helm.sh/helm/v4 ").nth(1).and_then(|rest| rest.split_whitespace().next());
    version.map(str::to_owned).ok_or_else(|| Error::Invalid(format!("{}: no version of helm", path.display())))
}
