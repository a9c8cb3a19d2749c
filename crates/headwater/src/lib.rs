//! Headwater estimates from the public beliefs of a group over time who listens to whom, how strongly, and how informative
//! each agent's private evidence is, and ranks the agents by their influence on what the group believes.
//!
//! # Modules
//!
//! Data moves in one direction: every module uses the results of earlier ones. Nothing here reads files or prints.
//!
//! | module | in | out |
//! |---|---|---|
//! | [`roster`] | names | agent and hypothesis names ↔ indices |
//! | [`panel`] | rows or arrays of beliefs | T × N × H log-beliefs with mask and counts; a [`Frame`] per step |
//! | [`simulate`] | parameters | a world whose network is known, and the beliefs of its agents |
//! | [`graph`] | edges | degrees, PageRank, supports, weights by rule |
//! | [`combination`] | weights | A: products, Perron vector, components |
//! | [`learn`] | a panel, or frame after frame | a model, and the changes detected |
//! | [`model`] | estimates of a learner | A, L̂, δ with their diagnostics |
//! | [`fit`](mod@fit) | a panel and a method | a model with its forecast skill |
//! | [`evaluate`] | a model and its panel, or a panel and a graph | skill, intervals, permutation tests, verdict |
//! | [`influence`](mod@influence) | a model | centrality × informativeness, attribution, paths, what-if |
//! | [`compare`](mod@compare) | a model and a truth | errors of weights, evidence and shares |
//! | [`ranking`] | a model, intervals, p-values | the ranking, with its verdict |
//! | [`progress`] | long computations | how far they are; they can be stopped |
//!
//! # Equations
//!
//! | equation | where |
//! |---|---|
//! | Λ_i = (1−δ)AᵀΛ_{i−1} + δL_i (the world) | [`simulate::World`] |
//! | A ← A + μ(1−δ) x(y − (1−δ)Aᵀx)ᵀ (Algorithm 1) | [`learn::gsl::Gsl`] |
//! | (I + μ(1−δ)²G)R = Yᵀ − (1−δ)XᵀA (its block form) | [`learn::gsl::Gsl::advance`] |
//! | `b_k = (Σ W[h,g]S[h,g])⁻¹ Σ W[h,g]C[h,g]` (whitened regression) | [`learn::whitened`] |
//! | z = Λ + v, v ~ N(0, σ²/c) (posts as noisy observations of beliefs) | [`learn::state_space`] |
//! | `a[ℓ,k] = (1−s_k) F[ℓ,k] g_ℓ / Σ F[m,k] g_m` (speaker strengths) | [`model::WeightKind::Strengths`] |
//! | S_j ← max(0, S_j + Σ_k log p_k(ζ|θ_j)/p_k(ζ|θ*)) (change of state) | [`learn::track::Tracker`] |
//! | Σ over edges of `S[l,k]`/in-degree(k), `S[l,k] = Σ M_l,t−1 E_k,t` (graph test) | [`mod@evaluate::graph_test`] |
//! | Au = u (centrality) | [`Combination::centrality`] |
//! | `D_k(θ*‖θ_j) = L̂[k,j] − L̂[k,*]` (informativeness) | [`influence()`] |
//! | P = δ(I − (1−δ)Aᵀ)⁻¹ (attribution) | [`influence::Attribution`] |
//! | Σ = (1−δ)²AᵀΣA + δ²R_L (spread of beliefs) | [`influence::error_probabilities`] |
//!
//! # Example
//!
//! ```
//! use headwater::evaluate::{Outcome, null_test::significance};
//! use headwater::simulate::{WorldParams, simulate};
//! use headwater::{Method, Ranking, fit, progress::Progress};
//! let (panel, truth) = simulate(&WorldParams { steps: 200, ..WorldParams::default() })?;
//! let model = fit(&panel, &Method::Whitened(Default::default()), &Progress::default())?;
//! let mut ranking = Ranking::new(&model)?;
//! ranking.add_significance(&significance(&panel, &model, 39, 21)?, &model)?;
//! assert_eq!(ranking.verdict.outcome, Outcome::Supported, "{}", ranking.verdict);
//! assert_eq!(ranking.agents[0].agent, Ranking::new(&truth)?.agents[0].agent);
//! # Ok::<(), headwater::Error>(())
//! ```

pub mod combination;
pub mod compare;
pub mod error;
pub mod evaluate;
pub mod fit;
pub mod graph;
pub mod influence;
mod interval_kind;
pub mod learn;
pub mod model;
pub mod panel;
pub mod progress;
pub mod ranking;
pub mod roster;
pub mod simulate;
pub mod words;

pub use combination::Combination;
pub use error::Error;
pub use fit::fit;
pub use influence::{Influence, influence};
pub use learn::Method;
pub use model::{Evidence, Model};
pub use panel::{Frame, Panel};
pub use ranking::Ranking;
pub use roster::Roster;
