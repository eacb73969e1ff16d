//! tmp
use super::*;
fn points(n: &str) -> Option<&'static str> {
    Some(match n {
        "SchedulingGates" => "preEnqueue",
        "PrioritySort" => "queueSort",
        "NodeUnschedulable" | "NodeName" => "filter",
        "TaintToleration" => "filter preScore score",
        "NodeAffinity" | "NodeResourcesFit" => {
            if n == "NodeAffinity" {
                "preFilter filter preScore score"
            } else {
                "preFilter filter preScore score placementScore"
            }
        }
        "NodePorts" | "VolumeRestrictions" | "NodeVolumeLimits" | "VolumeZone" | "NodeDeclaredFeatures" => {
            "preFilter filter"
        }
        "VolumeBinding" => "preFilter filter preScore score reserve preBind",
        "PodTopologySpread" | "InterPodAffinity" => "preFilter filter preScore score",
        "DynamicResources" => "preEnqueue preFilter filter postFilter score reserve preBind",
        "DefaultPreemption" => "preEnqueue postFilter",
        "NodeResourcesBalancedAllocation" => "preScore score",
        "ImageLocality" => "score",
        "DefaultBinder" => "bind",
        "GangScheduling" => "preEnqueue permit",
        "TopologyPlacementGenerator" => "placementGenerate",
        "PodGroupPodsCount" => "placementScore",
        _ => return None,
    })
}
#[test]
fn compare() {
    let Ok(list) = std::env::var("CORPUS") else { return };
    let gates = FeatureGates::default();
    let mut files: Vec<_> = std::fs::read_dir(&list)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "cfg"))
        .collect();
    files.sort();
    for f in files {
        let mut o = serde_json::json!({"File": f.to_str().unwrap(), "Stage": "", "Error": ""});
        (|| {
            let c = match Config::load(&f, &gates) {
                Ok(c) => c,
                Err(e) => {
                    o["Stage"] = "load".into();
                    o["Error"] = e.to_string().into();
                    return;
                }
            };
            if let Err(e) = c.validate(&gates) {
                o["Stage"] = "validate".into();
                o["Error"] = e.to_string().into();
                return;
            }
            o["V1"] = c.to_v1();
            let mut ch = ProfileChecker::default();
            let mut all = serde_json::json!({});
            for p in &c.profiles {
                if let PluginArgs::NodeResourcesFit(a) = p.args("NodeResourcesFit") {
                    if let Err(e) = validate_node_resources_fit_args(a) {
                        o["Stage"] = "build".into();
                        o["Error"] = format!("initializing profiles: creating profile for scheduler name {}: initializing plugin \"NodeResourcesFit\": {e}", p.scheduler_name).into();
                        return;
                    }
                }
                match expand(p, &|n, pt| points(n).map(|s| s.split(' ').any(|w| w == pt.key()))) {
                    Err(e) => {
                        o["Stage"] = "build".into();
                        o["Error"] = format!(
                            "initializing profiles: creating profile for scheduler name {}: {e}",
                            p.scheduler_name
                        )
                        .into();
                        return;
                    }
                    Ok(x) => {
                        if let Err(e) = ch.check(p, &x) {
                            o["Stage"] = "build".into();
                            o["Error"] = format!("initializing profiles: {e}").into();
                            return;
                        }
                        let mut m = serde_json::json!({});
                        for pt in ExtensionPoint::ALL {
                            m[pt.key()] = x.point(pt).iter().map(|p| serde_json::json!([p.name, p.weight])).collect();
                        }
                        all[&p.scheduler_name] = m;
                    }
                }
            }
            o["Expanded"] = all;
        })();
        println!("@@{o}");
    }
}
#[test]
fn hammer() {
    let Ok(n) = std::env::var("HAMMER") else { return };
    let n: u64 = n.parse().unwrap();
    const P: &[&str] = &[
        "a", "b", " ", "  ", "\n", "\t", ":", "-", "?", "[", "]", "{", "}", ",", "\"", "'", "&", "*", "!", "!!", "|",
        ">", "%", "#", "\\", "\\x", "@", "`", "---", "...", "%YAML ", "%TAG ", "1", "1.1", "<<", "~", "!<", ">-2",
        "|+", "é", "\u{85}", "\u{2028}", "\u{feff}", "\r", "😀", "=", "/", "%41", "%C3", "\\u12", "\\\n", "\0",
        "\u{7f}", "$", "_", "(", ";",
    ];
    let mut x: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut roll = move |m: usize| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) as usize % m
    };
    for _ in 0..n {
        let mut t = String::new();
        for _ in 0..=roll(14) {
            t.push_str(P[roll(P.len())]);
        }
        let r = std::panic::catch_unwind(|| {
            let _ = Config::parse(t.as_bytes(), &FeatureGates::default());
        });
        if r.is_err() {
            println!("PANIC {t:?}");
        }
    }
}
