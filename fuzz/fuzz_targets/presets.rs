//! Presets: objects of every platform, and of none, become posts or reasons.

#![no_main]

use headwater_posts::mapping::ColumnMapping;
use headwater_posts::read::{Preset, Records};
use headwater_posts::reader::PostReader;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let mapping = ColumnMapping::default();
    // One more: recognised, or none.
    let mapping = match Preset::ALL.get(usize::from(*first) % (Preset::ALL.len() + 1)) {
        Some(preset) => mapping.with_preset(*preset),
        None => mapping,
    };
    let Ok(records) = Records::from_stream(Box::new(Cursor::new(rest.to_vec())), Path::new("fuzz")) else { return };
    let mut posts = PostReader::new(records, mapping);
    while let Ok(Some(post)) = posts.next() {
        if let Ok(post) = post {
            assert!(!post.user.is_empty());
        }
    }
});
