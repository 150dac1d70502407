//! Does what the schedule says, each lane beside the others.

use std::time::Duration;

use futures::future::join_all;
use palisade_controlplane::Shutdown;
use rustix::process::{Pid, Signal, kill_process};
use strum::IntoEnumIterator;
use tokio::time::sleep;

use crate::{
    Result,
    links::Mode,
    schedule::{Fault, Lane, Step},
    site::Site,
    timeline::Timeline,
    users::Users,
};

/// People who have waited so long for a repair do something else next.
const LATE: Duration = Duration::from_secs(20);

/// Runs all steps, and returns when the last of them is over. What comes too late, as the steps before it in its lane have
/// taken long, is left out.
pub(crate) async fn run(steps: &[Step], length: Duration, site: &Site, users: &Users, timeline: &Timeline) {
    let begin = timeline.now();
    let lanes = Lane::iter().map(async |lane| {
        for step in steps.iter().filter(|step| step.lane == lane) {
            sleep((begin + Duration::from_millis(step.at)).saturating_sub(timeline.now())).await;
            if timeline.now() > begin + length {
                break;
            }
            if step.fault.may_be_left_out() && timeline.now() > begin + Duration::from_millis(step.at) + LATE {
                continue;
            }
            timeline.fault(&step.fault);
            if matches!(lane, Lane::Users | Lane::Upheavals | Lane::Removals | Lane::Namespaces) {
                users.act(&step.fault).await;
            } else if let Err(error) = inject(&step.fault, site).await {
                timeline.finding(format!("{}: {error}", step.fault));
            }
        }
    });
    join_all(lanes).await;
}

async fn inject(fault: &Fault, site: &Site) -> Result {
    let parts = &site.parts;
    match *fault {
        Fault::EtcdKilled { ms } => {
            let mut cluster = site.cluster.lock().await;
            cluster.control_plane.kill_etcd();
            pause(ms).await;
            cluster.control_plane.start_etcd().await?;
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
        }
        Fault::ApiServerRestarted => {
            let mut cluster = site.cluster.lock().await;
            cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
        }
        Fault::ApiServerPaused { ms } => {
            let pid = site.cluster.lock().await.control_plane.apiserver_pid().ok_or("it does not run")?;
            frozen(pid, ms).await?;
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
