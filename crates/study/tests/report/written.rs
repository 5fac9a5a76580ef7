//! JSON, schema, CSV, text and the page's source.
use crate::fixture;
use dosimeter_privacy::Epsilon;
use dosimeter_study::report::{self, compare::compare, *};

fn page(report: &Report) -> String {
    report::html::page(report, None).unwrap()
}

#[test]
fn a_report_survives_json() {
    let made = fixture::report();
    let text = to_json(&made).unwrap();
    assert!(from_json(&text).unwrap() == made, "a number changed by being written and read");
    assert_eq!(to_json(&from_json(&text).unwrap()).unwrap(), text, "same report, same bytes");
}

#[test]
fn a_number_that_is_none_is_refused_by_every_writer_and_named() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut made = fixture::report();
        made.arms[2].repeats[1].attacks[0].roc[3].tpr = bad;
        let path = "arms[2].repeats[1].attacks[0].roc[3].tpr must be a finite number";
        let refusals = [
            to_json(&made).map(drop),
            report::html::page(&made, None).map(drop),
            report::csv::summary(&made).map(drop),
            report::csv::roc(&made).map(drop),
            report::csv::risk(&made).map(drop),
        ];
        for refusal in refusals {
            let message = refusal.unwrap_err().to_string();
            assert!(message.starts_with(path), "{message}");
        }
    }
    let mut timings = fixture::timings();
    timings.stages[1].seconds = f64::NAN;
    let message = timings_to_json(&timings).unwrap_err().to_string();
    assert_eq!(message, "stages[1].seconds must be a finite number, got NaN");
}

#[test]
fn nothing_proved_is_a_word_and_no_number_is_null() {
    let text = to_json(&fixture::report()).unwrap();
    assert!(text.contains("\"value\": \"unbounded\""));
    for word in ["NaN", "Infinity", "inf,", ": inf"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn every_epsilon_says_its_side_delta_relation_unit_and_method() {
    fn walk(value: &serde_json::Value, key: &str, seen: &mut usize) {
        match value {
            serde_json::Value::Object(map) => {
                if key.starts_with("epsilon_") && key != "epsilon_per_feature" {
                    *seen += 1;
                    for field in ["side", "value", "delta", "relation", "unit", "caveats"] {
                        assert!(map.contains_key(field), "{key} lacks {field}");
                    }
                    let side = map["side"].as_str().unwrap();
                    let method = if side == "upper" { "accountant" } else { "bound" };
                    assert!(
                        map.contains_key(method)
                            && (side == "upper") != map.contains_key("confidence")
                    );
                    let expected = if key == "epsilon_lower" { "lower" } else { "upper" };
                    assert_eq!(side, expected, "{key}");
                }
                map.iter().for_each(|(k, v)| walk(v, k, seen));
            }
            serde_json::Value::Array(list) => list.iter().for_each(|v| walk(v, key, seen)),
            serde_json::Value::Number(_) => {
                assert!(
                    !key.starts_with("epsilon_") || key == "epsilon_per_feature",
                    "a bare {key}"
                );
            }
            _ => {}
        }
    }
    let mut seen = 0;
    walk(&serde_json::to_value(fixture::report()).unwrap(), "", &mut seen);
    assert!(seen > 200, "{seen}");
}

#[test]
fn another_version_and_unknown_fields_are_refused() {
    let text = to_json(&fixture::report()).unwrap();
    let newer = text.replacen("\"format_version\": 1", "\"format_version\": 2", 1);
    assert_eq!(
        from_json(&newer).unwrap_err().to_string(),
        "the report has format version 2; this build reads version 1"
    );
    let extra = text.replacen("\"origin\"", "\"surprise\": 1,\n  \"origin\"", 1);
    assert!(from_json(&extra).unwrap_err().to_string().contains("surprise"));
    for broken in ["", "{", "[]", "{\"format_version\": 1}", "null"] {
        assert!(from_json(broken).is_err(), "{broken}");
    }
}

/// The published schema follows the types: a stale file fails here, `DOSIMETER_BLESS=1` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_types() {
    let file = dosimeter_testing::workspace().join("docs/reference/report.schema.json");
    if std::env::var_os("DOSIMETER_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, schema()).unwrap();
    }
    let published = std::fs::read_to_string(&file).unwrap();
    assert!(published == schema(), "{} is stale", file.display());
}

#[test]
fn the_page_needs_nothing_from_outside_and_runs_no_script() {
    let text = page(&fixture::report());
    assert!(text.len() < 1_500_000, "{} bytes", text.len());
    for forbidden in [
        "http://",
        "https://",
        "//cdn",
        "<script",
        "javascript:",
        "@import",
        "url(",
        "<img",
        "<link rel=\"stylesheet",
    ] {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
    assert!(text.contains("default-src 'none'"));
}

#[test]
fn names_from_a_study_file_cannot_become_markup() {
    let mut made = fixture::report();
    let evil = "<script>alert('x')</script>\"&";
    made.study.name = evil.into();
    made.dataset.name = evil.into();
    made.notes[0].text = evil.into();
    made.provenance.command = evil.into();
    for arm in &mut made.arms {
        arm.setting = evil.into();
    }
    assert!(!page(&made).contains("<script"));
}

#[test]
fn no_page_calls_anything_safe() {
    let mut quiet = fixture::report();
    for attack in quiet.arms.iter_mut().flat_map(|a| &mut a.attacks) {
        attack.auc.value = 0.5;
        attack.epsilon_lower[0].value = Epsilon::new(0.0).unwrap();
        attack.verdict.verdict = Verdict::Inconclusive;
    }
    for made in [fixture::report(), quiet] {
        // The one word of the browser's policy language that contains it.
        let shown = page(&made).to_lowercase().replace("'unsafe-inline'", "");
        assert!(!shown.contains("safe"));
        assert!(!sentences(&made).join(" ").to_lowercase().contains("safe"));
    }
}

#[test]
fn the_summary_of_the_fixture() {
    insta::assert_snapshot!(sentences(&fixture::report()).join("\n"));
}

#[test]
fn a_violated_setting_is_the_first_thing_said() {
    let mut made = fixture::report();
    let attack = &mut made.arms[4].attacks[1];
    attack.epsilon_lower[0].value = Epsilon::new(2.5).unwrap();
    attack.verdict = Judgement {
        verdict: Verdict::Violated,
        reason: "measured 2.50 exceeds proved 2.04".into(),
    };
    insta::assert_snapshot!(sentences(&made)[0], @"In central z=4 the measured privacy loss exceeds the proved one: the claim, the code or an assumption is wrong. Do not rely on this bound.");
    assert!(page(&made).contains("measured 2.50 exceeds proved 2.04"));
}

#[test]
fn of_settings_of_one_accuracy_the_one_that_proves_most_is_named_and_guessing_is_called_guessing() {
    let mut report = fixture::report();
    let quiet = report.arms.iter().find(|a| a.setting == "local eps=0.1").unwrap().clone();
    report.dataset.majority_rate = 0.5;
    for arm in report.arms.iter_mut().filter(|a| a.kind == ArmKind::Local) {
        (arm.attacks, arm.test_accuracy) = (quiet.attacks.clone(), quiet.test_accuracy.clone());
    }
    report.arms.reverse();
    let text = sentences(&report).join("\n");
    let expected =
        "Among local DP settings, local eps=0.1 (proved epsilon 60.0 at delta 0, local) keeps";
    assert!(text.contains(expected), "{text}");
    let guessing = "which is not told from always answering the most frequent class, 0.500.";
    assert_eq!(text.matches(guessing).count(), 1, "{text}");
}

#[test]
fn doubts_about_the_audit_are_said() {
    let mut made = fixture::report();
    made.arms[0].repeats[0].blind[0].separable = true;
    made.arms[0].repeats[0].attacks[0].null_check.as_mut().unwrap().passed = false;
    made.arms[1].repeats[0]
        .mimicry
        .as_mut()
        .unwrap()
        .problems
        .push("trained on 500 records, target on 1000".into());
    let text = sentences(&made).join("\n");
    for sentence in [
        "Members can be told from non-members without the model in 1 repeat:",
        "1 null self-check failed:",
        "In 1 repeat the shadow models do not mimic the target:",
    ] {
        assert!(text.contains(sentence), "{sentence}\n{text}");
    }
}

#[test]
fn a_page_can_be_made_of_the_smallest_report_there_is() {
    let mut made = fixture::report();
    made.arms.truncate(1);
    let arm = &mut made.arms[0];
    arm.attacks.truncate(1);
    arm.attacks[0].epsilon_lower.clear();
    arm.attacks[0].phi.clear();
    arm.attacks[0].auc.interval = None;
    arm.repeats.truncate(1);
    arm.repeats[0].attacks[0].roc.clear();
    arm.repeats[0].confidence.clear();
    arm.repeats[0].blind.clear();
    arm.repeats[0].mimicry = None;
    made.risk.clear();
    made.checks.clear();
    made.notes.clear();
    assert!(page(&made).contains("no bound holds"));
    made.arms.clear();
    assert!(page(&made).contains("Provenance"));
    assert_eq!(report::csv::summary(&made).unwrap().lines().count(), 1);
}

#[test]
fn csv_tables_have_one_row_per_thing_and_equal_columns() {
    let made = fixture::report();
    let rows = |text: &str| -> Vec<Vec<String>> {
        let mut reader = ::csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let records = reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect());
        std::iter::once(header).chain(records).collect()
    };
    let summary = rows(&report::csv::summary(&made).unwrap());
    assert_eq!(summary.len(), 1 + 12 * 5 * 3, "arms x repeats x attacks");
    let column = |name: &str| summary[0].iter().position(|c| c == name).unwrap();
    assert_eq!(summary[1][column("epsilon_upper")], "unbounded");
    assert_eq!(summary[1][column("noise_multiplier")], "");
    assert_eq!(summary[1][column("tpr_at_0.0001_below_resolution")], "true");
    assert_eq!(summary[1 + 3 * 15][column("setting")], "central z=2");
    assert_eq!(summary[1 + 3 * 15][column("epsilon_upper")], "4.54");
    assert_eq!(rows(&report::csv::roc(&made).unwrap()).len(), 1 + 12 * 5 * 3 * 62);
    assert_eq!(rows(&report::csv::risk(&made).unwrap()).len(), 1 + 3 * 10);
}

fn lost() -> Missing {
    Missing {
        setting: "central z=3".into(),
        kind: ArmKind::Central,
        noise_multiplier: Some(3.0),
        clipping_norm: Some(0.5),
        epsilon_per_feature: None,
        task: "train, central z=3, repeat 0".into(),
        epoch: Some(1),
        reason: "ran away".into(),
    }
}

#[test]
fn a_setting_without_a_result_has_a_row_with_what_was_set() {
    let mut made = fixture::report();
    made.missing.push(lost());
    let summary = report::csv::summary(&made).unwrap();
    let last = summary.lines().last().unwrap();
    assert!(last.starts_with("central z=3,central,3,0.5,,,"), "{last}");
    assert!(last.contains(",no-result"), "{last}");
}

#[test]
fn conditions_name_only_settings_that_have_what_they_speak_of() {
    let mut made = fixture::report();
    let measured = |made: &Report| {
        let lines = report::html::condition_lines(made);
        lines.into_iter().find(|l| l.starts_with("Measured")).unwrap()
    };
    assert!(measured(&made).ends_with("(all settings)"), "{}", measured(&made));
    made.missing.push(lost());
    let said = measured(&made);
    assert!(said.contains("(no DP, clipping only, central z=0.5,"), "{said}");
    assert!(!said.contains("central z=3"), "{said}");
}

#[test]
fn nothing_on_the_page_shows_less_than_is_proved() {
    let mut made = fixture::report();
    let arm = made.arms.iter_mut().find(|a| a.setting == "central z=4").unwrap();
    arm.epsilon_upper[0].value = Epsilon::new(0.986_45).unwrap();
    let text = page(&made);
    assert!(text.contains("central z=4: epsilon 0.987,"));
    assert!(!text.contains("epsilon 0.986"));
}

#[test]
fn phi_without_an_interval_says_why() {
    assert!(page(&fixture::report()).contains("no interval: needs 3 repeats to resample, got 2"));
}

#[test]
fn comparing_a_report_with_itself_shows_no_change() {
    let made = fixture::report();
    let comparison = compare(&made, &made);
    assert!(comparison.same_data && comparison.same_study && comparison.same_kernel);
    assert!(comparison.only_before.is_empty() && comparison.only_after.is_empty());
    assert_eq!(comparison.settings.len(), 12);
    for s in &comparison.settings {
        assert!(s.upper_comparable && s.test_accuracy.difference.abs() < 1e-15);
        assert_eq!(s.test_accuracy.intervals_apart, Some(false));
    }
}

#[test]
fn a_comparison_says_what_moved_and_what_cannot_be_compared() {
    let before = fixture::report();
    let mut after = fixture::report();
    after.dataset.fingerprint = "other".into();
    after.arms.remove(11);
    after.arms.truncate(4);
    after.arms[2].test_accuracy.value = 0.9;
    after.arms[2].test_accuracy.interval.as_mut().unwrap().low = 0.85;
    after.arms[2].test_accuracy.interval.as_mut().unwrap().high = 0.95;
    after.arms[3].epsilon_upper[0].delta = 1e-7;
    after.arms[3].attacks[0].verdict.verdict = Verdict::Violated;
    let comparison = compare(&before, &after);
    insta::assert_snapshot!(comparison.to_text());
    let json: serde_json::Value = serde_json::from_str(&comparison.to_json().unwrap()).unwrap();
    assert_eq!(json["settings"][2]["test_accuracy"]["intervals_apart"], true);
    assert_eq!(json["settings"][3]["upper_comparable"], false);
}

#[test]
fn a_table_without_a_flagged_record_says_so() {
    let mut made = fixture::report();
    made.risk[1].records.clear();
    made.risk[2].records.truncate(1);
    let text = page(&made);
    assert!(text.contains("central z=0.5, white-box: no member was flagged in any repeat."));
    assert!(text.contains("local eps=3, white-box: the one record that was flagged"));
    assert!(!text.contains("the 0 records"));
}

#[test]
fn panels_of_one_setting_have_distinct_titles() {
    let mut made = fixture::report();
    for repeat in made.arms.iter_mut().flat_map(|a| &mut a.repeats) {
        let answers = repeat.confidence.first().cloned();
        let named = |h| Histogram { signal: "of the answer".into(), ..h };
        repeat.confidence.extend(answers.map(named));
    }
    let text = page(&made);
    for title in ["no DP, of the true label", "no DP, of the answer"] {
        let caption = format!("<figcaption>{title}</figcaption>");
        assert_eq!(text.matches(&caption).count(), 1, "{title}");
    }
}

#[test]
fn phi_that_means_nothing_is_not_drawn_and_the_page_says_why() {
    let mut made = fixture::report();
    let reason = "the attack on the model without DP is not told from guessing";
    for arm in &mut made.arms {
        for phi in &mut arm.attacks[0].phi {
            phi.value = PhiValue::Undefined { reason: reason.into() };
        }
    }
    let text = page(&made);
    assert!(text.contains(&format!("Phi of loss-threshold (black-box) is not drawn: {reason}.")));
    assert!(!text.contains("phi, loss-threshold"));
    assert!(text.contains("phi, white-box"));
}
