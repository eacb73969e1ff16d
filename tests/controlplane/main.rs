//! Tests against upstream's own code: the oracle, and a real control plane. See README.md beside this file.

mod case;
mod generate;
mod oracle;
mod programs;

fn main() {
    let mut oracles = std::collections::BTreeMap::new();
    let mut reasons = std::collections::BTreeMap::<String, usize>::new();
    let n: u64 = std::env::var("KS_CASES").ok().and_then(|t| t.parse().ok()).unwrap_or(300);
    for seed in 0..n {
        let case = generate::case(seed);
        let oracle = oracles.entry(case.gates).or_insert_with(|| oracle::Oracle::start(case.gates));
        match oracle.ask(&case.request()) {
            Err(e) => println!("{seed}: {e}"),
            Ok(a) => {
                if a["warnings"].is_array() { println!("{seed}: {}", a["warnings"]); }
                for pod in a["pods"].as_array().unwrap() {
                    for key in ["error", "scoreError"] {
                        if let Some(e) = pod[key].as_str().filter(|e| !e.is_empty()) { *reasons.entry(format!("{key}: {e}")).or_default() += 1; }
                    }
                    for node in pod["nodes"].as_array().unwrap() {
                        *reasons.entry(format!("{} {} {}", node["plugin"], node["code"], node["reasons"])).or_default() += 1;
                    }
                }
                for event in a["events"].as_array().into_iter().flatten() {
                    if let Some(e) = event["error"].as_str() { println!("{seed}: {e}"); }
                    for hint in event["hints"].as_array().into_iter().flatten() {
                        *reasons.entry(format!("hint {} {} {} {}", hint["plugin"], hint["event"], hint["hint"], hint["error"])).or_default() += 1;
                    }
                }
            }
        }
    }
    for (r, c) in reasons { println!("{c:8} {r}"); }
}
