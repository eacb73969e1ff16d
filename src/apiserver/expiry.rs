//! Expiry of events: the server removes an event some time after its last write.

use super::kinds::EVENTS;
use super::object::Object;
use super::store::State;

impl State {
    /// Schedules the removal of an event that was written, if events expire.
    pub(super) fn note_expiry(&mut self, event: &Object) {
        if let Some(time) = self.settings.event_ttl {
            self.expiries.push_back((self.now + time, event.key.clone(), event.version));
        }
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
