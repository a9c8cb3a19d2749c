# Lists everything.
default:
    @just --list

# Every check there is; what CI runs.
ci:
    scripts/test

# The usual loop.
test:
    cargo nextest run

# Accept new CLI output after reading the difference.
snapshots:
    INSTA_UPDATE=always cargo nextest run -p headwater-cli

# The main job on built-in data.
demo:
    cargo run --release --bin headwater -- demo

# The Python package: wheel, types, tests.
python:
    scripts/python

# What Python costs beside the Rust call.
bench-python:
    scripts/bench-python

# The report page's script and style, after a change of their sources.
page:
    scripts/page

# The report page in a browser.
browser:
    scripts/browser

# Kernels against the machine's matrix speed.
bench:
    cargo bench -p headwater

# The whole program against a plain NumPy loop.
bench-numpy:
    scripts/bench-numpy

# The whitened fit against statsmodels.
bench-statsmodels:
    scripts/bench-statsmodels

# The scorers against VADER, torch and onnxruntime.
bench-scorers:
    scripts/bench-scorers

# Time and memory of every export.
bench-exports:
    scripts/bench-exports

# Train the built-in scorer and print its figures.
train-builtin:
    cargo run --release -p train-scorer

# Write the golden files again.
golden:
    python3 reference/make_golden.py crates/headwater/tests/golden

# The API documentation.
doc:
    cargo doc --open -p headwater

# Ten minutes of one fuzz target: csv, jsonl, document, presets, posts, query, parquet, npy, npz, model, edges, pickle or safetensors. Without a sanitizer: none of our code is unsafe.
fuzz target:
    RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none {{target}} -- -max_total_time=600 -rss_limit_mb=1024 -max_len=8192
