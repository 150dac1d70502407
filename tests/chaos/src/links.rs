//! A loopback proxy whose connections can be slow, silent or cut.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use std::sync::Arc;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Open,
    /// Each piece of data comes so much later.
    Slow(Duration),
    /// Nothing passes, and no error is reported.
    Silent,
    /// Connections end at once.
    Cut,
}

/// A proxy before one address. It listens as long as it lives.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

struct Shared {
    to: SocketAddr,
    mode: watch::Sender<Mode>,
    /// Of all connections that there are now.
    ends: Mutex<CancellationToken>,
}

impl Proxy {
    pub(crate) async fn start(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { to, mode: watch::Sender::new(Mode::Open), ends: Mutex::default() });
        let accepting = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                loop {
                    match listener.accept().await {
                        Ok((client, _)) => drop(tokio::spawn(Arc::clone(&shared).serve(client))),
                        // Out of files, for example.
                        Err(_) => sleep(Duration::from_millis(100)).await,
                    }
                }
            }
        });
        Ok(Self { address, shared, _accepting: AbortOnDropHandle::new(accepting) })
    }

    /// Connections are like this from now on. What a silent one has held never arrives: it ends instead.
    pub(crate) fn set(&self, mode: Mode) {
        let before = self.shared.mode.send_replace(mode);
        if mode == Mode::Cut || before == Mode::Silent {
            self.reset();
        }
    }

    /// Ends all connections that there are.
    pub(crate) fn reset(&self) {
        let mut ends = self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *ends).cancel();
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, client: TcpStream) {
        let end = self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tokio::select! {
            () = end.cancelled() => {}
            // Whoever has connected learns of an error by the end of the connection.
            _ = self.pass(client) => {}
        }
    }

    async fn pass(&self, client: TcpStream) -> std::io::Result<()> {
        self.may_pass().await?;
        let server = TcpStream::connect(self.to).await?;
        for side in [&client, &server] {
            side.set_nodelay(true)?;
        }
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::try_join!(self.copy(from_client, to_server), self.copy(from_server, to_client))?;
        Ok(())
    }

    async fn copy(&self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> std::io::Result<()> {
        let mut piece = vec![0; 16 * 1024];
        loop {
            let length = from.read(&mut piece).await?;
            if length == 0 {
                return to.shutdown().await;
            }
            self.may_pass().await?;
            to.write_all(&piece[..length]).await?;
        }
    }

    /// Waits as long as the mode says.
    async fn may_pass(&self) -> std::io::Result<()> {
        let mode = *self.mode.borrow();
        match mode {
            Mode::Open => Ok(()),
            Mode::Slow(delay) => {
                sleep(delay).await;
                Ok(())
            }
            // The end of all connections ends this one.
            Mode::Silent => std::future::pending().await,
            Mode::Cut => Err(std::io::ErrorKind::ConnectionReset.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    /// A server that sends back what it gets.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        address
    }

    async fn say(stream: &mut TcpStream) -> std::io::Result<u8> {
        stream.write_all(b"x").await?;
        stream.read_u8().await
    }

    #[tokio::test]
    async fn open_and_slow_connections_pass_everything() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        assert_eq!(say(&mut stream).await.unwrap(), b'x');
        proxy.set(Mode::Slow(Duration::from_millis(1)));
        assert_eq!(say(&mut stream).await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn cut_connections_end_and_new_ones_work_afterwards() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        say(&mut stream).await.unwrap();
        proxy.set(Mode::Cut);
        assert!(say(&mut stream).await.is_err());
        assert!(say(&mut TcpStream::connect(proxy.address).await.unwrap()).await.is_err());
        proxy.set(Mode::Open);
        say(&mut TcpStream::connect(proxy.address).await.unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn what_a_silent_connection_held_never_arrives() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        say(&mut stream).await.unwrap();
        proxy.set(Mode::Silent);
        assert!(timeout(Duration::from_millis(200), say(&mut stream)).await.is_err());
        proxy.set(Mode::Open);
        assert!(stream.read_u8().await.is_err());
    }
}
