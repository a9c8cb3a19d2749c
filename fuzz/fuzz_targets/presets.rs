//! Presets: objects of every platform, and of none, become posts or reasons.

#![no_main]

use headwater_posts::post::{Mapping, Posts};
use headwater_posts::read::{Preset, Records};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let mapping = Mapping::default();
    let mapping = match first % 6 {
        0 => mapping.preset(Preset::XV2),
        1 => mapping.preset(Preset::XV1),
        2 => mapping.preset(Preset::Bluesky),
        3 => mapping.preset(Preset::Mastodon),
        4 => mapping.preset(Preset::FourCat),
        _ => mapping,
    };
    let Ok(records) = Records::of(Box::new(Cursor::new(rest.to_vec())), Path::new("fuzz")) else { return };
    let mut posts = Posts::of(records, mapping);
    while let Ok(Some(post)) = posts.next() {
        if let Ok(post) = post {
            assert!(!post.user.is_empty());
        }
    }
});
