//! Whether a resolved configuration makes sense.

/// Several error texts in one: the bare text of a single one, `[a, b]` of several, each text once. Follows
/// `apimachinery/pkg/util/errors/errors.go#aggregate @v1.36.3`.
pub(super) fn aggregate(texts: Vec<String>) -> String {
    let mut unique: Vec<String> = Vec::new();
    for text in texts {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    if let [only] = unique.as_mut_slice() {
        return std::mem::take(only);
    }
    format!("[{}]", unique.join(", "))
}
