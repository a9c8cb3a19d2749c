//! The page from outside: what is in it, that it is data and not code, how large it is, and that it never changes by itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::print_stderr, reason = "sizes are worth knowing")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use headwater::Method;
use headwater::Ranking;
use headwater::compare::GroundTruth;
use headwater::evaluate::{DecidingTest, Intervals, Outcome, Significance};
use headwater::influence::{Attribution, Intervention, influence, what_if};
use headwater::learn::whitened::WhitenedParams;
use headwater::model::{DetectedChange, NetworkSnapshot, Skill};
use headwater::panel::Times;
use headwater::simulate::{WorldParams, simulate};
use headwater::{Combination, Evidence, Model, Panel, Roster};
use headwater_discover::RunRecord;
use headwater_report::page::{Page, ReportInput};
use headwater_report::{Error, Explanation, explanation::WhatIfKind, figures};
use sha2::{Digest, Sha256};

/// A learned-looking world with everything that can be asked for.
fn world(agents: usize, steps: usize, edge_probability: f64) -> (Panel, Model, Ranking) {
    let params =
        WorldParams { agents, steps, edge_probability, hypotheses: 2, influential: 2, ..WorldParams::default() };
    let (panel, mut model) = simulate(&params).unwrap();
    model.method = Method::Whitened(WhitenedParams::default());
    model.diagnostics.skill = Some(Skill::new(0.4, 0.1, 80));
    let mut ranking = Ranking::new(&model).unwrap();
    ranking.add_activity(&panel).unwrap();
    let share = influence(&model).unwrap().share.unwrap();
    let shares = share.iter().map(|share| (0.61 * share, 1.43 * share)).collect();
    let ranks = (0..agents).map(|agent| (1 + agent / 2, agents)).collect();
    let intervals = Intervals::new(shares, ranks, share.clone());
    ranking.add_intervals(&intervals, &model.roster).unwrap();
    let p_values = (0..agents).map(|agent| (agent + 1) as f64 / 201.0).collect();
    let edges = (0..agents * agents).map(|cell| (cell % 201 + 1) as f64 / 201.0).collect();
    let found = Significance::new(p_values, edges, Some(0.01), 200);
    ranking.add_significance(&found, &model).unwrap();
    (panel, model, ranking)
}

fn renamed(model: &Model, names: &[&str]) -> Model {
    let mut renamed = model.clone();
    renamed.roster = Roster::new(names.iter().copied(), model.roster.hypotheses().to_vec()).unwrap();
    renamed
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap() + from.len();
    &text[start..start + text[start..].find(to).unwrap()]
}

/// The document without the text of our own script and style.
fn shell(html: &str) -> String {
    html.replace(between(html, "<script>", "</script>"), "").replace(between(html, "<style>", "</style>"), "")
}

fn data(html: &str) -> Page {
    serde_json::from_str(between(html, "<script type=\"application/json\" id=\"data\">", "</script>")).unwrap()
}

#[test]
fn every_number_is_there_and_exact() {
    let (panel, model, ranking) = world(20, 120, 0.2);
    let page = Page::new(&ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) }).unwrap();
    let html = page.html().unwrap();
    assert_eq!(
        html,
        Page::new(&ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) })
            .unwrap()
            .html()
            .unwrap()
    );
    let back = data(&html);
    // Notes are in words on the page.
    let mut shown = ranking.clone();
    (shown.edges, shown.notes) = (None, Vec::new());
    assert_eq!(back.ranking, shown);
    let json = |value: &Ranking| serde_json::to_value(value).unwrap();
    assert_eq!(json(&back.ranking), json(&shown));

    // Edges: as in the ranking, to nine digits, strongest first.
    let edges = ranking.edges.as_ref().unwrap();
    let column = |packed: &headwater_report::page::Packed| -> Vec<f64> {
        packed.values().into_iter().map(Option::unwrap).collect()
    };
    let network = &back.network;
    let (speakers, listeners, weights) =
        (column(&network.speakers), column(&network.listeners), column(&network.weights));
    let (p_values, significant) =
        (column(network.p_values.as_ref().unwrap()), column(network.significant.as_ref().unwrap()));
    assert_eq!((weights.len(), network.edges), (edges.len(), edges.len()));
    assert!(weights.windows(2).all(|pair| pair[0] >= pair[1]));
    for edge in edges {
        let ends = [&edge.source, &edge.target].map(|name| model.roster.agent(name).unwrap() as f64);
        let at = (0..weights.len()).find(|&at| [speakers[at], listeners[at]] == ends).unwrap();
        assert!((weights[at] - edge.weight).abs() < 1e-9 && (p_values[at] - edge.p_value).abs() < 1e-9);
        assert_eq!(significant[at] == 1.0, edge.significant);
    }
    assert!(column(&network.places).iter().all(|place| (0.0..=1.0).contains(place)));
    assert_eq!(network.places.values().len(), 40);

    // Cards: what explain says.
    let attribution = Attribution::from_model(&model).unwrap();
    for (agent, card) in back.cards.iter().enumerate() {
        assert_eq!(card.agent, agent);
        let explained = Explanation::new(&model, agent, 8, Some(WhatIfKind::Remove)).unwrap();
        let sources = attribution.sources_of(agent);
        for (&(other, share, weight), source) in card.shaped_by.iter().zip(&explained.sources) {
            assert_eq!(model.roster.agents()[other], source.agent);
            assert!((share - sources[other]).abs() < 1e-6 && (weight - source.weight).abs() < 1e-6);
        }
        assert!(card.shapes.iter().all(|(other, _)| *other != agent));
        for (path, strength) in &card.paths {
            assert_eq!(path.last(), Some(&agent));
            let names = model.roster.names(path);
            let known = explained.sources.iter().find(|source| source.path.as_ref() == Some(&names)).unwrap();
            assert!((known.path_strength.unwrap() - strength).abs() < 1e-6);
        }
        let (without, change) = (card.without.as_ref().unwrap(), explained.what_if.unwrap());
        assert!(
            (without.before - change.belief_before).abs() < 1e-5 && (without.after - change.belief_after).abs() < 1e-5
        );
        let outcome = what_if(&model, agent, &Intervention::Remove).unwrap();
        for (other, before, after) in &without.most {
            let place = outcome.others.iter().position(|known| known == other).unwrap();
            let wanted = outcome.belief_of(place, page.truth);
            assert!((before - wanted[0]).abs() < 1e-5 && (after - wanted[1]).abs() < 1e-5);
        }
        assert!(card.why[0].contains(&format!("Rank {} of 20", explained.rank)), "{:?}", card.why);
    }

    // Opinions: to half a step.
    let opinions = back.opinions.as_ref().unwrap();
    assert_eq!((opinions.times.len(), opinions.merged), (120, 1));
    let beliefs = opinions.beliefs.values();
    for agent in 0..20 {
        for step in 0..120 {
            let wanted = 1.0 / (1.0 + (-panel.frame(step)[(agent, 0)]).exp());
            assert!((beliefs[agent * 120 + step].unwrap() - wanted).abs() <= 0.5 / 254.0 + 1e-9);
        }
    }
    // Weights: to half a step, by rank on both axes.
    let heat = back.heat.as_ref().unwrap();
    let cells = column(&heat.learned);
    for (row, &speaker) in heat.order.iter().enumerate() {
        assert_eq!(model.roster.agents()[speaker], ranking.agents[row].agent);
        for (place, &listener) in heat.order.iter().enumerate() {
            let gap = cells[row * 20 + place] - model.combination.weight(speaker, listener);
            assert!(gap.abs() <= 0.51 * heat.learned.step);
        }
    }
    assert!(heat.known.is_none() && back.left_off.is_empty());
}

#[test]
fn names_are_data_whatever_they_are() {
    let (_, model, _) = world(4, 40, 0.9);
    let names = [
        "</script><script>alert(1)</script>",
        "\"'><img src=x onerror=alert(1)>",
        "\u{202e}drow\u{0}\u{1b}[31m\u{2028}",
        "<!--&amp;",
    ];
    let model = renamed(&model, &names);
    let ranking = Ranking::new(&model).unwrap();
    let ingredients = ReportInput { title: "</title><script>", ..ReportInput::new(&model, &ranking) };
    let html = Page::new(&ingredients).unwrap().html().unwrap();
    assert_eq!(data(&html).agents, names);
    let html = shell(&html);
    // Two scripts, ours: the data and the code.
    assert_eq!((html.matches("<script").count(), html.matches("</script>").count()), (2, 2));
    assert!(!html.contains("<img") && !html.contains("<!--") && !html.contains(['\u{0}', '\u{1b}']));
    assert!(!between(&html, "id=\"data\">", "</script>").contains(['<', '>', '&', '\u{2028}']));
    assert!(html.contains("<title>&lt;/title&gt;&lt;script&gt;</title>"));
    let table = between(&html, "<noscript>", "</noscript>");
    assert!(
        table.contains("<bdi>&lt;/script&gt;&lt;script&gt;alert(1)") && table.contains("<bdi>\u{202e}drow?"),
        "{table}"
    );
}

#[test]
fn the_policy_allows_our_script_and_style_and_nothing_else() {
    let (_, model, ranking) = world(3, 40, 0.9);
    let html = Page::new(&ReportInput::new(&model, &ranking)).unwrap().html().unwrap();
    let policy = between(&html, "Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let (script, style) = (between(&html, "<script>", "</script>"), between(&html, "<style>", "</style>"));
    let wanted = [
        "default-src 'none'".to_owned(),
        format!("script-src {}", hash(script)),
        format!("style-src {}", hash(style)),
        "base-uri 'none'".to_owned(),
        "form-action 'none'".to_owned(),
    ];
    assert_eq!(policy.split("; ").collect::<Vec<_>>(), wanted);
    assert!(html.starts_with("<!doctype html>\n<html lang=\"en\">") && html.contains("<meta charset=\"utf-8\">"));
    assert!(html.contains("name=\"viewport\"") && html.contains("<main id=\"app\">"));
    let html = shell(&html);
    assert!(!html.contains("http://") && !html.contains("src=\"") && !html.contains("href="));
}

#[test]
fn the_verdict_is_honest() {
    let (panel, model, ranking) = world(5, 60, 0.8);
    let verdict = |model: &Model, ranking: &Ranking| Page::new(&ReportInput::new(model, ranking)).unwrap().verdict;
    let rivals = verdict(&model, &ranking);
    assert_eq!(rivals.outcome, Outcome::Supported);
    assert!(rivals.headline.contains("may also be first"), "{}", rivals.headline);
    let mut unsupported = ranking.clone();
    unsupported.verdict.outcome = Outcome::NoEvidence;
    let said = verdict(&model, &unsupported);
    assert!(said.outcome == Outcome::NoEvidence && said.headline.starts_with("No evidence"), "{}", said.headline);
    let leader = &ranking.agents[0].agent;
    assert!(!said.headline.contains(leader.as_str()) && !said.headline.contains('%'), "{}", said.headline);
    assert!(!said.tested.is_empty() && !said.next.is_empty() && rivals.next.is_empty(), "{said:?}");
    assert!(said.tested.iter().any(|line| line.contains("was not simulated")), "{said:?}");
    assert_eq!((rivals.test, rivals.common_news_excluded), (Some(DecidingTest::CircularShifts), false));
    // Without a graph the page tells how often listening would have been found.
    let (larger, other_model, forecasts) = world(12, 60, 0.8);
    assert_eq!(forecasts.verdict.outcome, Outcome::Supported);
    let mut unsupported = forecasts.clone();
    unsupported.verdict.outcome = Outcome::NoEvidence;
    unsupported.add_power(&larger, &other_model, 3).unwrap();
    let said = verdict(&other_model, &unsupported);
    let told = |words: &str| said.tested.iter().any(|line| line.contains(words));
    assert!(told("Power, simulated: ") && !told("was not simulated"), "{said:?}");
    // A graph that was tested decides, whatever the forecasts say, and the page tells what was found beside it.
    let edges = (0..12).flat_map(|agent| [1, 3, 4].map(|step| (agent, (agent + step) % 12)));
    let graph = headwater::graph::Graph::new(12, edges).unwrap();
    let mut unsupported = forecasts.clone();
    unsupported.add_graph_test(&larger, &graph, None, &other_model.roster, 3).unwrap();
    let said = verdict(&other_model, &unsupported);
    assert_eq!((said.outcome, said.test), (Outcome::NoEvidence, Some(DecidingTest::GraphTest)), "{said:?}");
    let told = |words: &str| said.tested.iter().any(|line| line.contains(words));
    assert!(told("on random graphs in which every account keeps") && told("never decide"), "{said:?}");
    assert!(told("Power for data like these") && !told("was not simulated"), "{said:?}");
    unsupported.add_power(&larger, &other_model, 3).unwrap();
    assert!(unsupported.power.is_none(), "the graph test has its own");
    let mut by_graph = forecasts;
    let mut found = unsupported.verdict.graph_test.clone().unwrap();
    found.p_value = 0.01;
    by_graph.verdict = by_graph.verdict.with_graph(Ok(found));
    let said = verdict(&other_model, &by_graph);
    assert!(said.common_news_excluded && said.next.is_empty() && said.p_value == Some(0.01), "{said:?}");
    // The size of the effect stands beside it: the gain of the forecasts, or where there is none the correlation.
    let wanted = "Opinion travels along the given graph (p = 0.010; forecasts improve by 10.0% when the beliefs of the others are taken into account): ";
    assert!(said.headline.starts_with(wanted), "{}", said.headline);
    let mut no_gain = by_graph.clone();
    no_gain.verdict.skill = Some(Skill::new(-0.4, -0.1, 80));
    let said_without = verdict(&other_model, &no_gain).headline;
    let effect = no_gain.verdict.graph_test.as_ref().unwrap().effect;
    let wanted = format!("(p = 0.010; the correlation along its edges is {} above", headwater::words::number(effect));
    assert!(said_without.contains(&wanted) && said_without.contains("90% interval"), "{said_without}");
    assert!(!said.tested.iter().any(|line| line.contains("Power")) && !said.tested.is_empty(), "{said:?}");
    assert!(rivals.headline.starts_with("Forecasts improve by "), "{}", rivals.headline);
    // Support is for the network as a whole; the leader has a p-value of their own.
    let p = ranking.agents[0].p_value.unwrap();
    assert!(rivals.headline.contains(&format!(" (permutation test p = {p:.3})")), "{}", rivals.headline);
    // Positive skill without a permutation test is no test.
    let said = verdict(&model, &Ranking::new(&model).unwrap());
    assert!(said.outcome == Outcome::NotTested && said.headline.contains("was not tested"), "{said:?}");
    assert!(!said.sure.iter().any(|line| line.contains("settles on")), "{said:?}");
    assert!(rivals.sure.iter().any(|line| line.contains("settles on")), "{rivals:?}");
    // What it rests on, what may hinder a test, why there is no power, and what to try.
    let untested = Ranking::new(&model).unwrap();
    let said =
        Page::new(&ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &untested) }).unwrap().verdict;
    for words in ["rests on 5 agents and 60 time steps", "few time steps: 60; few agents: 5", "the power, is not known"]
    {
        assert!(said.tested.iter().any(|line| line.contains(words)), "{words}: {said:?}");
    }
    assert!(said.next.iter().any(|line| line == "A longer period."), "{said:?}");
    // Nor is nothing.
    let mut untested = model.clone();
    untested.diagnostics.skill = None;
    let said = verdict(&untested, &Ranking::new(&untested).unwrap());
    assert_eq!(said.outcome, Outcome::NotTested);
    assert!(said.headline.contains("was not tested") && said.next[0].contains("200 circular shifts"), "{said:?}");
    // A given network has nothing to test, and says who leads.
    let mut given = untested;
    given.method = Method::Given;
    let said = verdict(&given, &Ranking::new(&given).unwrap());
    assert!(
        said.outcome == Outcome::NotTested && said.headline.contains("is the most influential agent"),
        "{}",
        said.headline
    );
    // What the model warns of, the page warns of.
    let mut warned = model.clone();
    warned.diagnostics.warnings.push("two agents say the same".into());
    warned.evidence = Evidence::from_rows(vec![-1.0, 2.0, 3.0, 4.0, 5.0], 5, 1).unwrap();
    let said = verdict(&warned, &Ranking::new(&warned).unwrap());
    assert!(said.warnings.iter().any(|warning| warning.contains("two agents say the same")));
    assert!(said.warnings.iter().any(|warning| warning.contains("below zero")), "{:?}", said.warnings);
    drop(panel);
}

#[test]
fn silence_is_given_as_a_share() {
    let (panel, model, mut ranking) = world(12, 120, 0.5);
    ranking.verdict.outcome = Outcome::NoEvidence;
    let said = |silent: usize| {
        // Every agent but the last is silent at so many of ten steps.
        let (agents, steps) = (panel.agents(), panel.steps());
        let posts: Vec<u32> = (0..agents * steps)
            .map(|cell| u32::from(cell % agents == agents - 1 || (cell / agents) % 10 >= silent))
            .collect();
        let cells = panel.cells().iter().enumerate();
        let cells = cells.map(|(cell, value)| if posts[cell] == 0 { 0.0 } else { *value }).collect();
        let silent = Panel::new(panel.roster().clone(), panel.times().clone(), cells, Some(posts)).unwrap();
        let input = ReportInput { beliefs: Some(&silent), ..ReportInput::new(&model, &ranking) };
        Page::new(&input).unwrap().verdict.tested.join("\n")
    };
    let (less, more) = (said(5), said(6));
    assert!(less.contains("silence: 45.8% of the beliefs are missing") && !less.contains("most"), "{less}");
    assert!(more.contains("silence: most beliefs, 55.0%, are missing"), "{more}");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let (panel, model, ranking) = world(5, 60, 0.8);
    let refuse = |model: &Model, ranking: &Ranking, panel: Option<&Panel>| {
        Page::new(&ReportInput { beliefs: panel, ..ReportInput::new(model, ranking) }).unwrap_err()
    };
    let mut other = ranking.clone();
    other.agents[2].agent = "nobody".into();
    assert!(
        matches!(refuse(&model, &other, None), Error::Ranking { problem } if problem.contains("no agent \"nobody\""))
    );
    other.agents[2].agent = other.agents[1].agent.clone();
    assert!(matches!(refuse(&model, &other, None), Error::Ranking { problem } if problem.contains("ranked twice")));
    other.agents.truncate(2);
    assert!(matches!(refuse(&model, &other, None), Error::Ranking { problem } if problem.contains("2 of 5 agents")));
    let mut other = ranking.clone();
    other.agents[0].centrality *= 1.01;
    assert!(
        matches!(refuse(&model, &other, None), Error::Ranking { problem } if problem.contains("rank the model again"))
    );
    let mut other = ranking.clone();
    other.truth = "h1".into();
    assert!(matches!(refuse(&model, &other, None), Error::Ranking { problem } if problem.contains("settles on")));
    let mut other = ranking.clone();
    other.edges.as_mut().unwrap()[0].source = "nobody".into();
    assert!(matches!(refuse(&model, &other, None), Error::Ranking { problem } if problem.contains("does not have")));
    let renamed = renamed(&model, &["a", "b", "c", "d", "e"]);
    let of_renamed = Ranking::new(&renamed).unwrap();
    assert!(
        matches!(refuse(&renamed, &of_renamed, Some(&panel)), Error::Beliefs { problem } if problem.contains("not in the model"))
    );
    let hypotheses = Panel::complete(Roster::numbered(5, 3).unwrap(), vec![0.1; 20]).unwrap();
    assert!(
        matches!(refuse(&model, &ranking, Some(&hypotheses)), Error::Beliefs { problem } if problem.contains("their hypotheses are"))
    );
}

#[test]
fn silence_is_a_gap() {
    let (_, model, ranking) = world(3, 40, 0.9);
    // Agent 1 speaks once, agent 2 is not in the file.
    let roster = Roster::new(["1", "0"], model.roster.hypotheses().to_vec()).unwrap();
    let day = 86_400_000_000;
    let posts = vec![1, 2, 0, 1, 0, 1];
    let panel = Panel::new(roster, Times::utc(vec![0, day, 2 * day]), vec![1.0, 0.0, 0.0, 2.0, 0.0, -2.0], Some(posts))
        .unwrap();
    let page = Page::new(&ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) }).unwrap();
    let opinions = page.opinions.unwrap();
    assert_eq!(opinions.times, ["1970-01-01", "1970-01-02", "1970-01-03"]);
    let spoken: Vec<bool> = opinions.beliefs.values().iter().map(Option::is_some).collect();
    assert_eq!(spoken, [true, true, true, true, false, false, false, false, false]);
    assert_eq!(opinions.leaning, [Some(0.5), Some(0.7311), None]);
    assert!(page.quality.iter().any(|(label, value)| label == "silent (agent, step)" && value == "33.3%"));
    let drawn = ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) };
    let figure = figures::opinions(&drawn).unwrap().unwrap();
    let svg = figure.svg();
    // Dates on the axis, as many as there is space for, and how many spoke.
    assert!(svg.contains("1970-01-01") && svg.contains("1970-01-02") && svg.contains("time (UTC)"), "{svg}");
    assert!(svg.contains("agents with a post, at most 2"), "{svg}");
    let spoke: Vec<(String, f64)> = figure.points().into_iter().take(3).map(|point| (point.x, point.y)).collect();
    let wanted = [("1970-01-01", 2.0), ("1970-01-02", 1.0), ("1970-01-03", 1.0)];
    assert_eq!(spoke, wanted.map(|(date, agents)| (date.to_owned(), agents)));
}

#[test]
fn bins_of_numbers_have_one_unit() {
    let (_, model, ranking) = world(3, 40, 0.9);
    let roster = Roster::new(["1", "0"], model.roster.hypotheses().to_vec()).unwrap();
    let panel = Panel::new(roster, Times::Steps((0..21).collect()), vec![0.5; 42], None).unwrap();
    let run: RunRecord = serde_json::from_value(serde_json::json!({
        "format": "headwater-run/2", "program": "headwater", "model_format": "headwater-model/2",
        "version": "1.2.3", "seed": 21, "topic": [], "pseudonyms": null, "choice": null, "inputs": [],
        "options": {"bin": "0.5", "posts": [], "lang": [], "carry_forward": false, "to": null},
        "counts": {"rows": 10},
    }))
    .unwrap();
    let input = ReportInput { beliefs: Some(&panel), run: Some(&run), ..ReportInput::new(&model, &ranking) };
    let page = Page::new(&input).unwrap();
    let times = page.opinions.unwrap().times;
    assert_eq!((times.len(), times[0].as_str(), times[1].as_str(), times[20].as_str()), (21, "0", "0.5", "10"));
    let fact = |wanted: &str| page.quality.iter().find(|(label, _)| label == wanted).map(|(_, value)| value.as_str());
    assert_eq!((fact("first step"), fact("last step")), (Some("0"), Some("10")));
}

#[test]
fn dates_on_an_axis_do_not_touch() {
    let (_, model, ranking) = world(3, 40, 0.9);
    let day = 86_400_000_000;
    for steps in [1, 2, 40, 365, 3000] {
        let times = Times::utc((0..steps).map(|step| step * day).collect());
        let panel = Panel::complete(model.roster.clone(), vec![0.1; 3 * steps as usize]).unwrap();
        let panel = panel.with_times(times).unwrap();
        let from = ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) };
        let svg = figures::opinions(&from).unwrap().unwrap().svg();
        // Labels of the horizontal axis: place and text.
        let labels: Vec<f64> = svg
            .split("<text ")
            .filter(|text| text.split_once('>').is_some_and(|(_, rest)| rest.starts_with("19")))
            .filter_map(|text| text.split_once("x=\"")?.1.split_once('"')?.0.parse().ok())
            .collect();
        assert!((1..=6).contains(&labels.len()), "{steps} steps: {labels:?}");
        assert!(labels.is_sorted_by(|a, b| b - a > 68.0), "{steps} steps: {labels:?}");
    }
}

#[test]
fn tracked_models_have_a_history_and_known_truths_a_second_heat_map() {
    let (panel, mut model, _) = world(6, 60, 0.7);
    let known = GroundTruth::from_model(&model).unwrap();
    let snapshot = |step: usize, weights: Combination| NetworkSnapshot::new(step, weights, model.evidence.clone());
    let history = vec![snapshot(10, Combination::uniform(6)), snapshot(30, model.combination.clone())];
    model.track.changes = vec![DetectedChange::topology(31, 30, vec![2])];
    (model.track.history, model.track.times) = (history, vec![(10, "ten".into())]);
    let ranking = Ranking::new(&model).unwrap();
    let from = ReportInput { beliefs: Some(&panel), truth: Some(&known), ..ReportInput::new(&model, &ranking) };
    let page = Page::new(&from).unwrap();
    assert_eq!(page.opinions.as_ref().unwrap().changes, [(30, "topology".to_owned(), vec![2])]);
    let times: Vec<&str> = page.history.iter().map(|snapshot| snapshot.time.as_str()).collect();
    assert_eq!(times, ["ten", "30"]);
    assert!(page.history[0].centrality.iter().all(|value| (value - 1.0 / 6.0).abs() < 1e-5));
    for row in &ranking.agents {
        let agent = model.roster.agent(&row.agent).unwrap();
        assert!((page.history[1].share[agent] - row.share.unwrap()).abs() < 1e-5);
    }
    assert_eq!(page.history[1].weights.values().len(), page.network.edges);
    let heat = page.heat.as_ref().unwrap();
    assert_eq!(heat.known.as_ref(), Some(&heat.learned));
    let value = serde_json::to_value(&page).unwrap();
    assert!(value["heat"]["true"].is_object() && value["history"][0]["weights"]["bits"] == 8);
    for figure in [figures::heat(&from).unwrap(), figures::network(&from).unwrap(), figures::ranking(&from)] {
        assert!(figure.png().unwrap().len() > 1000);
    }
}

#[test]
fn the_smallest_networks_have_a_page() {
    for agents in [2, 3] {
        let (panel, model, ranking) = world(agents, 30, 1.0);
        let page = Page::new(&ReportInput { beliefs: Some(&panel), ..ReportInput::new(&model, &ranking) }).unwrap();
        assert_eq!(page.cards.len(), agents);
        assert!(page.cards.iter().all(|card| card.without.is_some()));
        assert!(page.html().unwrap().contains("</html>"));
    }
    // Nobody hears anybody.
    let (_, mut model, _) = world(3, 30, 1.0);
    model.combination = Combination::from_triplets((0..3).map(|agent| (agent, agent, 1.0)).collect(), 3).unwrap();
    let ranking = Ranking::new(&model).unwrap();
    let page = Page::new(&ReportInput::new(&model, &ranking)).unwrap();
    assert!(page.network.edges == 0 && page.cards[0].paths.is_empty());
    assert!(page.verdict.warnings.iter().any(|warning| warning.contains("not strongly connected")));
}

#[test]
fn five_hundred_agents_fit_in_three_megabytes() {
    let (panel, model, ranking) = world(500, 700, 0.08);
    let known = GroundTruth::from_model(&model).unwrap();
    let from = ReportInput { beliefs: Some(&panel), truth: Some(&known), ..ReportInput::new(&model, &ranking) };
    let page = Page::new(&from).unwrap();
    let html = page.html().unwrap();
    eprintln!("500 agents, {} edges, 700 bins: {:.2} MB", page.network.edges, html.len() as f64 / 1e6);
    assert!(html.len() < 3_000_000, "{}", html.len());
    assert_eq!((page.cards.len(), page.opinions.as_ref().unwrap().merged), (500, 1));
    assert!(page.heat.is_some() && page.network.speakers.values().len() == page.network.edges.min(20_000));
}

#[test]
fn five_thousand_agents_degrade_with_a_note() {
    // Everybody hears those with half and a third of their number, and a few more.
    let agents = 5000;
    let mut triplets = Vec::new();
    for listener in 0..agents {
        let mut speakers: Vec<usize> =
            [2, 3, 5, 7, 11, 13].iter().map(|part| (listener * 7 + 1) / part % agents).collect();
        speakers.extend([listener, (listener + 1) % agents]);
        speakers.sort_unstable();
        speakers.dedup();
        let weight = 1.0 / speakers.len() as f64;
        triplets.extend(speakers.into_iter().map(|speaker| (speaker, listener, weight)));
    }
    let (_, small, _) = world(3, 30, 1.0);
    let mut model = small;
    model.roster = Roster::numbered(agents, 2).unwrap();
    model.combination = Combination::from_triplets(triplets, agents).unwrap();
    let rows = (0..agents).map(|agent| 0.1 + (agent % 7) as f64).collect();
    model.evidence = Evidence::from_rows(rows, agents, 1).unwrap();
    (model.innovation, model.likelihoods) = (None, None);
    let ranking = Ranking::new(&model).unwrap();
    let page = Page::new(&ReportInput::new(&model, &ranking)).unwrap();
    assert_eq!((page.cards.len(), page.network.speakers.values().len()), (500, 20_000));
    assert!(page.heat.is_none() && page.network.edges > 20_000);
    let notes = page.left_off.join("\n");
    assert!(
        notes.contains("20000 strongest") && notes.contains("first 500 of 5000") && notes.contains("heat map"),
        "{notes}"
    );
    // Still what one by one would say.
    let card = &page.cards[100];
    let sources = Attribution::from_model(&model).unwrap().sources_of(card.agent);
    assert!(card.shaped_by.iter().all(|&(other, share, _)| (share - sources[other]).abs() < 1e-6));
    let outcome = what_if(&model, card.agent, &Intervention::Remove).unwrap();
    let [_, after] = outcome.belief(page.truth);
    assert!((card.without.as_ref().unwrap().after - after).abs() < 1e-5);
    let html = page.html().unwrap();
    eprintln!("5000 agents: {:.2} MB", html.len() as f64 / 1e6);
    assert!(html.len() < 6_000_000, "{}", html.len());
}
