//! The HTTPS server on a thread of its own, so that requests, however many, do not delay the tasks of the scheduler.

use std::panic::AssertUnwindSafe;

use tokio::runtime;
use tokio::sync::oneshot;
use tracing::error;

use crate::engine::Tasks;
use crate::serve::Server;

/// Name of the thread, and of the task that observes its end.
const NAME: &str = "endpoints";

/// The running server, if there is one.
pub(super) struct Serving(Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>);

impl Serving {
    pub(super) fn start(tasks: &Tasks, server: Option<Server>) -> Self {
        Self(server.map(|server| {
            let (stop, stopped) = oneshot::channel::<()>();
            let (tell, ended) = oneshot::channel();
            tasks.serve(NAME, async move {
                if let Err(error) = apart(server.run(async { drop(stopped.await) })).await {
                    error!(err = %error, "Failed to serve the endpoints");
                }
                // Nothing waits for this after a second signal.
                let _ = tell.send(());
            });
            (stop, ended)
        }))
    }

    /// Stops the server and waits until its requests are finished.
    pub(super) async fn stop(self) {
        let Some((stop, ended)) = self.0 else { return };
        drop(stop);
        let _ = ended.await;
    }
}

/// Runs a future, and all tasks that it spawns, on a thread of its own. A panic there continues here.
async fn apart(future: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let runtime = runtime::Builder::new_current_thread().thread_name(NAME).enable_all().build()?;
    let (tell, ended) = oneshot::channel();
    std::thread::Builder::new().name(NAME.to_owned()).spawn(move || {
        let end = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
        // A profile that is still being taken is abandoned.
        runtime.shutdown_background();
        // Nothing waits for this after a second signal.
        let _ = tell.send(end);
    })?;
    match ended.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(_) => Err(std::io::Error::other("the endpoints thread ended unexpectedly")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::TaskEnd;

    #[tokio::test]
    async fn what_runs_apart_is_on_a_thread_of_that_name() {
        let (tell, told) = oneshot::channel();
        let name = async move {
            let here = tokio::spawn(async { std::thread::current().name().map(str::to_owned) });
            tell.send(here.await.expect("it ends")).expect("somebody looks");
        };
        apart(name).await.expect("a thread");
        assert_eq!(told.await.expect("it was told").as_deref(), Some(NAME));
    }

    #[tokio::test]
    async fn a_panic_apart_is_heard_of() {
        let (tasks, mut fatal) = Tasks::new(runtime::Handle::current());
        tasks.serve(NAME, async { apart(async { panic!("it aches") }).await.expect("a thread") });
        let expected = TaskEnd::Panicked { name: NAME, message: "it aches".to_owned() };
        assert_eq!(fatal.recv().await, Some(expected));
    }
}
