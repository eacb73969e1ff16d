//! The kubeconfig files that kubectl reads, and their merge.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::access_error::AccessError;
use super::{file, wire};
use crate::apimachinery::field_error::aggregate;

/// The kubeconfig files to read, in order of precedence.
/// Follows `client-go/tools/clientcmd/loader.go#ClientConfigLoadingRules @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadingRules {
    /// The file given with `--kubeconfig`. It must exist and is not merged with other files.
    explicit: Option<String>,
    /// The files to merge if there is no explicit one. Missing files are skipped.
    precedence: Vec<String>,
}

impl LoadingRules {
    /// The rules for `--kubeconfig` and the environment. The flag's file takes precedence over the files in `$KUBECONFIG`, which
    /// take precedence over `~/.kube/config`.
    pub fn from_environment(explicit: Option<&str>) -> Self {
        Self::new(explicit, |name| std::env::var(name).ok())
    }

    /// Creates the rules with a given environment. Follows
    /// `client-go/tools/clientcmd/loader.go#NewDefaultClientConfigLoadingRules @v1.36.3`.
    fn new(explicit: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let explicit = explicit.filter(|path| !path.is_empty()).map(str::to_owned);
        let precedence = if let Some(list) = variable("KUBECONFIG").filter(|list| !list.is_empty()) {
            let mut known = BTreeSet::new();
            list.split(':').filter(|path| known.insert(*path)).map(str::to_owned).collect()
        } else {
            let home = variable("HOME").unwrap_or_default();
            vec![Path::new(&home).join(".kube/config").to_string_lossy().into_owned()]
        };
        Self { explicit, precedence }
    }

    /// Joins the paths of the files with `:`, as in `$KUBECONFIG`.
    pub fn paths(&self) -> String {
        self.explicit.clone().unwrap_or_else(|| self.precedence.join(":"))
    }

    /// Reads the files and merges them. Follows
    /// `client-go/tools/clientcmd/loader.go#ClientConfigLoadingRules.Load @v1.36.3`, which in addition migrates a file from an
    /// obsolete location to `~/.kube/config`.
    pub(super) fn load(&self) -> Result<wire::File, AccessError> {
        if let Some(path) = &self.explicit {
            return file::load(path);
        }
        let (mut merged, mut errors) = (wire::File::default(), Vec::new());
        for path in self.precedence.iter().filter(|path| !path.is_empty()) {
            match file::load_if_present(path) {
                Ok(Some(file)) => merge(&mut merged, file),
                Ok(None) => {}
                Err(error) => errors.push(error.to_string()),
            }
        }
        if errors.is_empty() { Ok(merged) } else { Err(AccessError::new(aggregate(errors))) }
    }
}

/// Adds the content of `file` to that of earlier files. The first file that sets a value wins. If several files have an entry
/// of the same name, only the first entry is used, as a whole.
fn merge(merged: &mut wire::File, file: wire::File) {
    if merged.current_context.is_empty() {
        merged.current_context = file.current_context;
    }
    add(&mut merged.clusters, file.clusters, |cluster| &cluster.name);
    add(&mut merged.users, file.users, |user| &user.name);
    add(&mut merged.contexts, file.contexts, |context| &context.name);
}

fn add<T>(merged: &mut Vec<T>, entries: Vec<T>, name: impl Fn(&T) -> &str) {
    for entry in entries {
        if !merged.iter().any(|known| name(known) == name(&entry)) {
            merged.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(explicit: Option<&str>, variables: &[(&str, &str)], expected: &str) {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(LoadingRules::new(explicit, variable).paths(), expected, "{explicit:?} {variables:?}");
    }

    #[test]
    fn flag_precedes_kubeconfig_variable_and_home() {
        let home = ("HOME", "/home/jane");
        check(Some("f"), &[("KUBECONFIG", "a:b"), home], "f");
        check(Some(""), &[("KUBECONFIG", "a:b"), home], "a:b");
        check(None, &[("KUBECONFIG", "a:b:a"), home], "a:b");
        check(None, &[("KUBECONFIG", ""), home], "/home/jane/.kube/config");
        check(None, &[home], "/home/jane/.kube/config");
        check(None, &[], ".kube/config");
    }

    /// Writes kubeconfigs into a folder and loads them with `$KUBECONFIG` set to `list`, in which `DIR` stands for the folder.
    fn load(name: &str, files: &[(&str, &str)], list: &str) -> (String, Result<wire::File, String>) {
        let folder = std::env::temp_dir().join(format!("kubeconfigs-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        let folder_name = folder.display().to_string();
        let list = list.replace("DIR", &folder_name);
        let rules = LoadingRules::new(None, |name| (name == "KUBECONFIG").then(|| list.clone()));
        let loaded = rules.load().map_err(|error| error.to_string());
        std::fs::remove_dir_all(folder).expect("the folder of this test");
        (folder_name, loaded)
    }

    const FIRST: &str = "
clusters: [{name: c, cluster: {server: 'https://first', certificate-authority: ca.crt}}]
users: [{name: u, user: {tokenFile: token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
";

    const SECOND: &str = "
clusters:
- {name: c, cluster: {server: 'https://second', tls-server-name: second}}
- {name: d, cluster: {server: 'https://d', certificate-authority: ca.crt}}
users: [{name: u, user: {token: second}}, {name: v, user: {token: v}}]
contexts: [{name: x, context: {cluster: d, user: v}}, {name: w, context: {cluster: d, user: v}}]
current-context: w
";

    #[test]
    fn the_first_file_that_sets_a_value_wins() {
        let third = "current-context: x";
        let files = [("a/first", FIRST), ("b/second", SECOND), ("third", third)];
        let (folder, loaded) = load("merged", &files, "DIR/missing:DIR/a/first::DIR/b/second:DIR/third");
        let file = loaded.expect("good files");
        assert_eq!(file.current_context, "w");
        let context = |name: &str| file.context(name).map(|context| (&*context.cluster, &*context.user));
        assert_eq!((context("x"), context("w")), (Some(("c", "u")), Some(("d", "v"))));
        // If two files have an entry of the same name, nothing of the second entry is used.
        let (first, second) = (file.cluster("c").expect("c"), file.cluster("d").expect("d"));
        assert_eq!((&*first.server, &*first.tls_server_name), ("https://first", ""));
        let user = file.user("u").expect("u");
        assert_eq!((&*user.token, &user.token_file), ("", &format!("{folder}/a/token")));
        // Relative paths are resolved against the folder of their own file.
        assert_eq!(first.certificate_authority, format!("{folder}/a/ca.crt"));
        assert_eq!(second.certificate_authority, format!("{folder}/b/ca.crt"));
    }

    #[test]
    fn missing_files_are_skipped_and_malformed_ones_are_errors() {
        let (_, loaded) = load("missing", &[], "DIR/a:DIR/b");
        assert_eq!(loaded, Ok(wire::File::default()));
        let (folder, loaded) = load("broken", &[("a", "a: ["), ("b", FIRST), ("c", "x: [")], "DIR/a:DIR/b:DIR/c");
        let error = loaded.expect_err("two of them cannot be read");
        let starts = format!("[error loading config file \"{folder}/a\": ");
        assert!(error.starts_with(&starts) && error.contains(&format!(", error loading config file \"{folder}/c\": ")));
    }
}
