//! A way to the API server that can be cut, held, made slow, and deaf. It carries bytes, and does not know what they mean.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube_scheduler::clock::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::cluster::ControlPlane;

/// What a slow connection carries at once, in bytes, and the pause after it: 50 KiB a second.
const SLOW: (usize, Duration) = (512, Duration::from_millis(10));

/// What happens to connections. Each takes what was ordered after it was opened.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    /// How often all were cut.
    cuts: u64,
    /// How often all were held: nothing is carried on them any more, and they stay open.
    holds: u64,
    /// New ones are taken, and nothing is ever carried on them.
    is_deaf: bool,
    is_slow: bool,
    /// What the server says is lost, on all of them.
    is_mute: bool,
}

/// A relay; it ends with the runtime of its control plane.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    orders: watch::Sender<Orders>,
    counts: Counts,
}

/// How many connections had what happen to them.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<&'static str, usize>>>);

impl Counts {
    pub(crate) fn of(kinds: &[&'static str]) -> Self {
        Self(Arc::new(Mutex::new(kinds.iter().map(|kind| (*kind, 0)).collect())))
    }

    pub(crate) fn add(&self, kind: &'static str) {
        *self.0.lock().expect("nothing panics under it").entry(kind).or_default() += 1;
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, usize> {
        self.0.lock().expect("nothing panics under it").clone()
    }
}

impl Relay {
    /// Carries to this address.
    pub(crate) fn start(plane: &ControlPlane, server: SocketAddr) -> Result<Self, String> {
        let listener = plane.runtime.block_on(TcpListener::bind("127.0.0.1:0")).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let orders = watch::Sender::new(Orders::default());
        let counts = Counts::of(&["cut", "deaf", "held", "slow"]);
        let (heard, told) = (orders.subscribe(), counts.clone());
        plane.runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, server, heard.clone(), told.clone()));
            }
        });
        Ok(Self { address, orders, counts })
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        self.orders.send_modify(|orders| orders.cuts += 1);
    }

    /// Carries nothing more on any connection, in neither direction, and says nothing of it.
    pub(crate) fn hold(&self) {
        self.orders.send_modify(|orders| orders.holds += 1);
    }

    pub(crate) fn be_deaf(&self, is_deaf: bool) {
        self.orders.send_modify(|orders| orders.is_deaf = is_deaf);
    }

    /// Carries to the server what is sent to it, and loses what it answers, from now on.
    pub(crate) fn be_mute(&self) {
        self.orders.send_modify(|orders| orders.is_mute = true);
    }

    pub(crate) fn be_slow(&self, is_slow: bool) {
        self.orders.send_modify(|orders| orders.is_slow = is_slow);
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.counts.all()
    }
}

async fn connection(client: TcpStream, server: SocketAddr, mut orders: watch::Receiver<Orders>, counts: Counts) {
    let born = *orders.borrow_and_update();
    if born.is_deaf {
        counts.add("deaf");
        return until_the_end(orders).await;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pump(from_client, to_server, false, orders.clone(), counts.clone());
    let back = pump(from_server, to_client, true, orders.clone(), counts.clone());
    let carried = async { tokio::join!(there, back) };
    let ordered = orders.wait_for(|now| now.cuts > born.cuts || now.holds > born.holds);
    tokio::pin!(carried);
    let is_held = tokio::select! {
        biased;
        ordered = ordered => ordered.is_ok_and(|now| now.holds > born.holds),
        _ = &mut carried => return,
    };
    counts.add(if is_held { "held" } else { "cut" });
    if is_held {
        // Both ends stay open, unread.
        until_the_end(orders).await;
    }
}

/// As long as there is a relay.
async fn until_the_end(mut orders: watch::Receiver<Orders>) {
    while orders.changed().await.is_ok() {}
}

/// Carries what comes until one side ends.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    is_back: bool,
    orders: watch::Receiver<Orders>,
    counts: Counts,
) -> std::io::Result<()> {
    let clock = Clock::real();
    let mut buffer = vec![0; 64 << 10];
    let mut was_slow = false;
    loop {
        let is_slow = orders.borrow().is_slow;
        let most = if is_slow { SLOW.0 } else { buffer.len() };
        let count = from.read(&mut buffer[..most]).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        if is_back && orders.borrow().is_mute {
            continue;
        }
        to.write_all(&buffer[..count]).await?;
        if is_slow {
            if !std::mem::replace(&mut was_slow, true) {
                counts.add("slow");
            }
            clock.sleep(SLOW.1).await;
        }
    }
}
