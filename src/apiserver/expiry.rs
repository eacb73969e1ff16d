//! Expiry of events: the server removes an event one hour after its last write.

use jiff::SignedDuration;

use super::kinds::EVENTS;
use super::object::Object;
use super::store::State;

/// Time for which an event is kept. `--event-ttl`, `pkg/controlplane/apiserver/options/options.go#NewOptions @v1.36.3`.
const TTL: SignedDuration = SignedDuration::from_hours(1);

impl State {
    /// Schedules the removal of an event that was written.
    pub(super) fn note_expiry(&mut self, event: &Object) {
        self.expiries.push_back((self.now + TTL, event.key.clone(), event.version));
    }

    /// Removes the events that have expired.
    pub(super) fn expire_events(&mut self) {
        while let Some((at, key, version)) = self.expiries.front() {
            if *at > self.now {
                break;
            }
            let event = self.find(&EVENTS, key).filter(|event| event.version == *version).cloned();
            self.expiries.pop_front();
            if let Some(event) = event {
                self.remove(&event);
            }
        }
    }
}
