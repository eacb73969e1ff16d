//! The embedded API server on a port, beside a real one: kubectl sees the same on both, and upstream's scheduler works.

mod alike;
mod kubectl;
pub(crate) mod replay;
mod thousand;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube_scheduler::apiserver::{ApiServer, Listener, Options};
use kube_scheduler::clock::Clock;
use tokio::runtime::Runtime;

use crate::support::cluster::Process;
use crate::support::programs::{folder, program};

pub(crate) use kubectl::kubectl_output_equals_the_real_servers;
pub(crate) use thousand::both_schedule_1000_pods_on_the_embedded_server;

/// An embedded server that listens, with a folder for what clients of it need. Dropped, it ends.
struct Embedded {
    server: ApiServer,
    listener: Listener,
    folder: PathBuf,
    runtime: Runtime,
}

impl Embedded {
    fn start(name: &str) -> Result<Self, String> {
        let folder = folder().join("run").join(format!("{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let server = ApiServer::new(Options::by_clock(&Clock::real()).exact());
        let listener = runtime.block_on(server.listen("127.0.0.1:0")).map_err(|error| error.to_string())?;
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters: [{{name: test, cluster: {{server: '{}'}}}}]\nusers: [{{name: admin, user: {{}}}}]\n\
             contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]\n",
            listener.url()
        );
        fs::write(folder.join("kubeconfig"), text).map_err(|error| error.to_string())?;
        Ok(Self { server, listener, folder, runtime })
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    fn run(&self, name: &str, command: &mut Command) -> Result<Process, String> {
        Process::start(name, &self.folder, command)
    }

    /// Ends it, and looks whether it has lasted until then.
    fn remove(self) -> Result<(), String> {
        let Self { server, listener, folder, runtime } = self;
        runtime.block_on(listener.stop());
        let left = server.pending();
        drop(runtime);
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        if left == 0 {
            Ok(())
        } else {
            Err(format!("{left} requests and events are left of connections that are gone"))
        }
    }
}

/// kubectl for a server, run in `folder`.
fn kubectl(kubeconfig: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program("kubectl"));
    command.arg("--kubeconfig").arg(kubeconfig).arg("--cache-dir").arg(folder.join("cache")).current_dir(folder);
    command.env("KUBECTL_COMMAND_HEADERS", "false");
    command
}
