//! Objects in etcd as another API server has left them there, with their uids, generations and managers: a request can
//! make none of these.

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};

use crate::{ControlPlane, Error, flags::ETCD_SOCKET, http};

const PATH: &str = "/v3/kv/put";

impl ControlPlane {
    /// Writes a value into etcd, whether the API server runs or not. An API server reads JSON as well as what it writes
    /// itself.
    ///
    /// # Errors
    /// etcd did not take it.
    pub async fn put_into_etcd(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        let body = format!(r#"{{"key":"{}","value":"{}"}}"#, STANDARD.encode(key), STANDARD.encode(value));
        let answer = self.ask_etcd(&body).await.map_err(|source| Error::Request { path: PATH.to_owned(), source })?;
        if answer.status == 200 {
            return Ok(());
        }
        Err(Error::Status { path: PATH.to_owned(), status: answer.status, body: answer.body })
    }

    async fn ask_etcd(&self, body: &str) -> io::Result<http::Response> {
        let mut stream = UnixStream::connect(self.dir.path().join(ETCD_SOCKET)).await?;
        let length = body.len();
        let head = format!("POST {PATH} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        http::parse(&String::from_utf8_lossy(&answer))
    }
}
