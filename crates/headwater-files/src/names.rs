//! Names of accounts in two sources: which name of the one stands for which of the other.

use std::collections::{BTreeMap, HashMap, HashSet};

/// A name without a leading `@` and without regard to case. What is equal after this may be one account.
///
/// ```
/// assert_eq!(headwater_files::folded_name("@Ann"), headwater_files::folded_name("ann"));
/// ```
pub fn folded_name(name: &str) -> String {
    name.strip_prefix('@').unwrap_or(name).to_lowercase()
}

/// Names of one source that stand for another name in the other source, up to case and a leading `@`.
///
/// Equal names stand for each other and are not in the result. Among the names left, those that are equal after `fold` belong
/// together where there is exactly one in each source; otherwise it is not known who is meant.
///
/// ```
/// use headwater_files::{folded_name, matched_names};
/// let found = matched_names(["@Ann", "bob", "Cleo", "CLEO"], ["ann", "bob", "cleo"], folded_name);
/// assert_eq!(found.into_iter().collect::<Vec<_>>(), [("@Ann".to_owned(), "ann".to_owned())]);
/// ```
pub fn matched_names<'a>(
    names: impl IntoIterator<Item = &'a str>,
    others: impl IntoIterator<Item = &'a str>,
    fold: impl Fn(&str) -> String,
) -> BTreeMap<String, String> {
    let names: HashSet<&str> = names.into_iter().collect();
    let others: HashSet<&str> = others.into_iter().collect();
    let mut groups: HashMap<String, (Vec<&str>, Vec<&str>)> = HashMap::new();
    names.difference(&others).for_each(|name| groups.entry(fold(name)).or_default().0.push(name));
    others.difference(&names).for_each(|name| groups.entry(fold(name)).or_default().1.push(name));
    let pair = |(_, group): (String, (Vec<&str>, Vec<&str>))| match (&group.0[..], &group.1[..]) {
        ([name], [other]) => Some(((*name).to_owned(), (*other).to_owned())),
        _ => None,
    };
    groups.into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_one_to_one_or_not_at_all() {
        let found = |names: &[&'static str], others: &[&'static str]| {
            let found = matched_names(names.iter().copied(), others.iter().copied(), folded_name);
            found.into_iter().map(|(name, other)| format!("{name}={other}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(&["a", "B", "@c", "D"], &["a", "b", "C", "@d"]), "@c=C B=b D=@d");
        assert_eq!(found(&["Ann"], &["ann", "ANN"]), "", "two candidates");
        assert_eq!(found(&["Ann", "ANN"], &["ann"]), "", "one candidate for two");
        // An equal name is no candidate any more.
        assert_eq!(found(&["ann", "Ann"], &["ann", "ANN"]), "Ann=ANN");
        assert_eq!(found(&["ann", "Ann"], &["ann"]), "");
        assert_eq!(found(&["@"], &["@@"]), "", "one at sign only");
        assert_eq!(found(&["ÄNNE"], &["änne"]), "ÄNNE=änne");
    }
}
