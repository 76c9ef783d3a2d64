//! A proxy to a server, which a test switches off: connections are then closed, as if the
//! server were down.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The proxy. Ends when dropped.
pub struct SwitchedProxy {
    address: SocketAddr,
    /// The open connections. `None`: it is off.
    connections: Arc<Mutex<Option<JoinSet<()>>>>,
    serving: JoinHandle<()>,
}

impl SwitchedProxy {
    /// Starts the proxy, which is on.
    pub async fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(Mutex::new(Some(JoinSet::new())));
        let of = Arc::clone(&connections);
        let serving = tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let mut connections = of.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(connections) = connections.as_mut() else { continue };
                connections.spawn(async move {
                    let Ok(mut to) = TcpStream::connect(to).await else { return };
                    // It ends with either side.
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                });
            }
        });
        Self { address, connections, serving }
    }

    /// The base address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Switches it on or off. Open connections are closed.
    pub fn switch(&self, is_on: bool) {
        *self.connections.lock().unwrap_or_else(PoisonError::into_inner) = is_on.then(JoinSet::new);
    }
}

impl Drop for SwitchedProxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
