//! Metrics of the process, read from `/proc`, under the names that all Prometheus client libraries use.
//!
//! Follows `github.com/prometheus/client_golang/prometheus/process_collector_procfsenabled.go`. A metric keeps its
//! last value if the new one cannot be read.

use procfs::process::{LimitValue, Process};
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Error, Gauge, Registry};

/// Collector of the process metrics, which reads them again at each scrape.
struct ProcessCollector {
    cpu: Counter,
    received: Counter,
    transmitted: Counter,
    open_files: Gauge,
    max_files: Gauge,
    virtual_memory: Gauge,
    max_virtual_memory: Gauge,
    resident_memory: Gauge,
    start: Gauge,
}

/// Registers the process's families.
pub fn register(registry: &Registry) -> Result<(), Error> {
    registry.register(Box::new(ProcessCollector {
        cpu: Counter::new("process_cpu_seconds_total", "Total user and system CPU time in seconds.")?,
        received: Counter::new("process_network_receive_bytes_total", "Bytes received over the network.")?,
        transmitted: Counter::new("process_network_transmit_bytes_total", "Bytes sent over the network.")?,
        open_files: Gauge::new("process_open_fds", "Number of open file descriptors.")?,
        max_files: Gauge::new("process_max_fds", "Maximum number of open file descriptors.")?,
        virtual_memory: Gauge::new("process_virtual_memory_bytes", "Size of virtual memory in bytes.")?,
        max_virtual_memory: Gauge::new(
            "process_virtual_memory_max_bytes",
            "Maximum size of virtual memory in bytes; -1 if unlimited.",
        )?,
        resident_memory: Gauge::new("process_resident_memory_bytes", "Size of resident memory in bytes.")?,
        start: Gauge::new("process_start_time_seconds", "Start time of the process in seconds since 1970.")?,
    }))
}

#[expect(clippy::cast_precision_loss, reason = "metric values are floats in all client libraries")]
fn number(value: u64) -> f64 {
    value as f64
}

/// Raises a counter to a value that the kernel counted.
fn set(counter: &Counter, value: f64) {
    counter.inc_by((value - counter.get()).max(0.0));
}

impl ProcessCollector {
    fn collectors(&self) -> [&dyn Collector; 9] {
        [
            &self.cpu,
            &self.received,
            &self.transmitted,
            &self.open_files,
            &self.max_files,
            &self.virtual_memory,
            &self.max_virtual_memory,
            &self.resident_memory,
            &self.start,
        ]
    }

    #[expect(clippy::disallowed_methods, reason = "a sum does not depend on the order")]
    fn read(&self, process: &Process) {
        if let Ok(stat) = process.stat() {
            let ticks = number(procfs::ticks_per_second());
            set(&self.cpu, number(stat.utime + stat.stime) / ticks);
            self.virtual_memory.set(number(stat.vsize));
            self.resident_memory.set(number(stat.rss * procfs::page_size()));
            if let Ok(boot) = procfs::boot_time_secs() {
                self.start.set(number(boot) + number(stat.starttime) / ticks);
            }
        }
        if let Ok(count) = process.fd_count() {
            self.open_files.set(number(count as u64));
        }
        if let Ok(limits) = process.limits() {
            let value = |limit| match limit {
                LimitValue::Value(value) => number(value),
                LimitValue::Unlimited => -1.0,
            };
            self.max_files.set(value(limits.max_open_files.soft_limit));
            self.max_virtual_memory.set(value(limits.max_address_space.soft_limit));
        }
        if let Ok(devices) = process.dev_status() {
            let (received, sent) = devices
                .values()
                .fold((0, 0), |(received, sent), device| (received + device.recv_bytes, sent + device.sent_bytes));
            set(&self.received, number(received));
            set(&self.transmitted, number(sent));
        }
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.collectors().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        if let Ok(process) = Process::myself() {
            self.read(&process);
        }
        self.collectors().into_iter().flat_map(Collector::collect).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_metrics_are_positive() {
        let registry = Registry::new();
        register(&registry).expect("names that are free");
        let families = registry.gather();
        assert_eq!(families.len(), 9);
        for name in
            ["process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds", "process_max_fds"]
        {
            let family = families.iter().find(|family| family.name() == name).expect("registered");
            assert!(family.get_metric()[0].get_gauge().get_value() > 0.0, "{name}");
        }
    }
}
