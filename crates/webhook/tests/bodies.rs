//! However many large bodies are sent to the webhook, the memory that they take up is bounded. A test by itself, in a
//! process of its own, whose memory is measured.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;

use std::time::Duration;

use tokio::{
    io::AsyncWriteExt,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::common::{LONG, Webhook, eventually, head};

const MIB: u64 = 1 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_request_bodies_stay_within_the_memory_budget() {
    let webhook = Webhook::start(|_| {}).await;
    let before = webhook.metric("process_resident_memory_bytes").await;
    let body: &'static [u8] = vec![b' '; 7 << 20].leak();
    let mut attackers = JoinSet::new();
    for _ in 0..24 {
        let mut stream = webhook.tls("http/1.1").await.unwrap();
        attackers.spawn(async move {
            stream.write_all(&head(body.len(), "keep-alive")).await?;
            stream.write_all(&body[1..]).await?;
            stream.flush().await?;
            sleep(LONG).await;
            std::io::Result::Ok(())
        });
    }
    let (mut most, mut most_counted, mut answered) = (0, 0, 0);
    // Those that are left are refused after five seconds.
    let look = async {
        loop {
            most = most.max(webhook.metric("process_resident_memory_bytes").await);
            most_counted = most_counted.max(webhook.metric("palisade_http_bodies_bytes{port=\"webhook\"}").await);
            assert!(webhook.is_answered().await, "a proper request is not answered");
            answered += 1;
            sleep(Duration::from_millis(20)).await;
        }
    };
    let _ = timeout(Duration::from_secs(10), look).await;
    let grown = most.saturating_sub(before) / MIB;
    println!("{answered} answered; {most_counted} bytes of bodies at most; {grown} MiB more memory");
    assert!(answered > 0);
    assert!(grown < 100, "{grown} MiB more memory");
    assert!((MIB..=32 * MIB).contains(&most_counted), "{most_counted} bytes of bodies");
    eventually("all are refused", async || webhook.metric("palisade_http_bodies_bytes{port=\"webhook\"}").await == 0)
        .await;
    drop(attackers);
    webhook.running.stop().await.unwrap();
}
