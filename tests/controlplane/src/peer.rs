//! More API servers on the same etcd, as a control plane that is highly available has them.

use crate::{
    Component, ControlPlane, Error, Shutdown, cluster::wait_until_ok, flags::ApiServer, port, process::Process,
};

/// One of them.
#[derive(Debug)]
pub(crate) struct Peer {
    url: String,
    apiserver: ApiServer,
    process: Process,
}

impl Peer {
    /// Ends it.
    pub(crate) async fn stop(self, how: Shutdown) {
        self.process.stop(how).await;
    }
}

impl ControlPlane {
    /// Starts another API server, with these flags besides those of the first, and waits until it is ready. Its URL.
    ///
    /// # Errors
    /// It does not start.
    pub async fn add_apiserver<S: Into<String>>(
        &mut self,
        flags: impl IntoIterator<Item = S>,
    ) -> Result<String, Error> {
        let port = port::free().map_err(Error::io("cannot choose a port"))?;
        self.start_peer(port, flags.into_iter().map(Into::into).collect()).await
    }

    /// Ends an API server that was added, however it is, and starts one with other flags at its address.
    ///
    /// # Errors
    /// There is none at this URL, or it does not start.
    pub async fn replace_apiserver<S: Into<String>>(
        &mut self,
        url: &str,
        how: Shutdown,
        flags: impl IntoIterator<Item = S>,
    ) -> Result<(), Error> {
        let peer = self.take_peer(url)?;
        let port = peer.apiserver.port;
        peer.stop(how).await;
        self.start_peer(port, flags.into_iter().map(Into::into).collect()).await.map(drop)
    }

    /// Ends an API server that was added.
    ///
    /// # Errors
    /// There is none at this URL.
    pub async fn remove_apiserver(&mut self, url: &str, how: Shutdown) -> Result<(), Error> {
        self.take_peer(url)?.stop(how).await;
        Ok(())
    }

    /// The process of an API server that was added.
    pub fn added_apiserver_pid(&self, url: &str) -> Option<u32> {
        self.peers.iter().find(|peer| peer.url == url).map(|peer| peer.process.id())
    }

    fn take_peer(&mut self, url: &str) -> Result<Peer, Error> {
        let index = self.peers.iter().position(|peer| peer.url == url);
        index.map(|index| self.peers.swap_remove(index)).ok_or(Error::NotRunning(Component::ApiServer))
    }

    async fn start_peer(&mut self, port: u16, flags: Vec<String>) -> Result<String, Error> {
        let mut apiserver = self.settings.apiserver.clone();
        apiserver.port = port;
        apiserver.extra.extend(flags);
        let program = &self.settings.binaries.apiserver;
        let mut process = Process::spawn(Component::ApiServer, program, &apiserver.flags(), self.dir.path())?;
        wait_until_ok(&self.settings, port, "/readyz", &mut [&mut process, &mut self.etcd]).await?;
        let url = format!("https://127.0.0.1:{port}");
        self.peers.push(Peer { url: url.clone(), apiserver, process });
        Ok(url)
    }
}
