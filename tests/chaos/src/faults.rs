//! Does what the schedule says, each lane beside the others.

use std::{sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use palisade_controlplane::Shutdown;
use rustix::process::{Pid, Signal, kill_process};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    Result,
    links::Mode,
    schedule::{Fault, Lane, Step},
    site::Site,
    timeline::Timeline,
    users::Users,
};

/// Runs all steps, and returns when the last of them is over.
pub(crate) async fn run(steps: &[Step], site: &Arc<Site>, users: &Arc<Users>, timeline: &Arc<Timeline>) -> Result {
    let begin = timeline.now();
    let mut lanes = JoinSet::new();
    for lane in
        [Lane::ControlPlane, Lane::Controllers, Lane::Webhook, Lane::Network, Lane::Users, Lane::Namespaces]
    {
        let steps: Vec<_> = steps.iter().filter(|step| step.lane == lane).cloned().collect();
        let (site, users, timeline) = (Arc::clone(site), Arc::clone(users), Arc::clone(timeline));
        lanes.spawn(async move {
            let mut background = JoinSet::new();
            for step in steps {
                let due = begin + Duration::from_millis(step.at);
                sleep(due.saturating_sub(timeline.now())).await;
                timeline.fault(&step.fault);
                match step.fault {
                    // They wait until something is repaired, which takes as long as others are broken.
                    Fault::Tampered { .. } | Fault::ProfileDeleted | Fault::DefinitionDeleted { .. } => {
                        let users = Arc::clone(&users);
                        drop(background.spawn(async move { users.act(&step.fault).await }));
                    }
                    _ if matches!(lane, Lane::Users | Lane::Namespaces) => users.act(&step.fault).await,
                    _ => {
                        if let Err(error) = inject(&step.fault, &site, &timeline).await {
                            timeline.finding(format!("{}: {error}", step.fault));
                        }
                    }
                }
            }
            while background.join_next().await.is_some() {}
        });
    }
    while let Some(ended) = lanes.join_next().await {
        ended?;
    }
    Ok(())
}

async fn inject(fault: &Fault, site: &Site, timeline: &Timeline) -> Result {
    let parts = &site.parts;
    match *fault {
        Fault::EtcdKilled { ms } => {
            let mut cluster = site.cluster.lock().await;
            cluster.control_plane.kill_etcd();
            pause(ms).await;
            cluster.control_plane.start_etcd().await?;
            timeline.note("etcd is back");
        }
        Fault::EtcdPaused { ms } => {
            let pid = site.cluster.lock().await.control_plane.etcd_pid();
            frozen(pid, ms).await?;
        }
        Fault::ApiServerKilled { ms } => {
            let mut cluster = site.cluster.lock().await;
            cluster.control_plane.stop_apiserver(Shutdown::Kill).await?;
            pause(ms).await;
            cluster.control_plane.start_apiserver().await?;
            timeline.note("the API server is back");
        }
        Fault::ApiServerRestarted => {
            let mut cluster = site.cluster.lock().await;
            cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
            timeline.note("the API server is back");
        }
        Fault::ApiServerPaused { ms } => {
            let pid = site.cluster.lock().await.control_plane.apiserver_pid().ok_or("it does not run")?;
            let from = Timestamp::now();
            frozen(pid, ms).await?;
            timeline.paused(from, Timestamp::now());
        }
        Fault::ControllerKilled { who, ms } => {
            for controller in parts.controllers(who) {
                controller.kill(Duration::from_millis(ms));
            }
            pause(ms).await;
        }
        Fault::ControllerPaused { who, ms } => {
            let controllers = parts.controllers(who);
            for controller in &controllers {
                controller.signal(Signal::STOP);
            }
            pause(ms).await;
            for controller in controllers {
                controller.signal(Signal::CONT);
            }
        }
        Fault::ControllerRestarted { who } => {
            for controller in parts.controllers(who) {
                controller.signal(Signal::TERM);
            }
        }
        Fault::WebhookKilled { ms } => parts.webhook.kill(Duration::from_millis(ms)),
        Fault::WebhookPaused { ms } | Fault::CertificateOutlived { ms } => {
            parts.webhook.signal(Signal::STOP);
            pause(ms).await;
            parts.webhook.signal(Signal::CONT);
        }
        Fault::WebhookRestarted => parts.webhook.signal(Signal::TERM),
        Fault::Cut { link, ms } => connections(site, link, Mode::Cut, ms).await,
        Fault::Slow { link, delay, ms } => {
            connections(site, link, Mode::Slow(Duration::from_millis(delay)), ms).await;
        }
        Fault::Silent { link, ms } => connections(site, link, Mode::Silent, ms).await,
        Fault::Reset { link } => parts.links(link).into_iter().for_each(crate::links::Proxy::reset),
        // Of people.
        _ => {}
    }
    Ok(())
}

async fn connections(site: &Site, link: crate::schedule::Link, mode: Mode, ms: u64) {
    let links = site.parts.links(link);
    for link in &links {
        link.set(mode);
    }
    pause(ms).await;
    for link in links {
        link.set(Mode::Open);
    }
}

async fn pause(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}

/// Stops a process for a time.
async fn frozen(pid: u32, ms: u64) -> Result {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or("no process")?;
    kill_process(pid, Signal::STOP)?;
    pause(ms).await;
    Ok(kill_process(pid, Signal::CONT)?)
}
