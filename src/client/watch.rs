//! Watches of single objects.

use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;

use super::retry::DoublingWaits;
use crate::clock::Clock;

/// Watches the object of this name in a namespace. The stream never ends: after an error it waits and then watches again.
/// Follows `client-go/tools/cache/reflector.go#Reflector.ListAndWatchWithContext @v1.36.3`.
pub fn watch_object<K>(
    client: kube::Client,
    namespace: &str,
    name: &str,
    clock: Clock,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let api = kube::Api::<K>::namespaced(client, namespace);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher::watcher(api, config).boxed();
    let watch = Watch { events, clock, waits: DoublingWaits::LIST_AND_WATCH, has_failed: false };
    stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

struct Watch<K: 'static> {
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    clock: Clock,
    waits: DoublingWaits,
    /// Whether the last item was an error; if so, the watch waits before the next one.
    has_failed: bool,
}

impl<K> Watch<K> {
    async fn next(&mut self) -> Option<watcher::Result<Event<K>>> {
        if std::mem::take(&mut self.has_failed) {
            self.clock.sleep(self.waits.next_wait()).await;
        }
        let event = self.events.next().await?;
        match &event {
            Ok(Event::Init | Event::InitApply(_)) => {}
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => self.waits.reset(),
            Err(_) => self.has_failed = true,
        }
        Some(event)
    }
}
