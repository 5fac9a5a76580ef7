//! Tables whose target is a number: bounds files, broken rows, the rules of the IWPC.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "support functions of tests fail loudly; numbers copied from a file are equal"
)]
use dosimeter_data::regression::warfarin::{DoseModel, Patient, Race, Vkorc1, daily_mg};
use dosimeter_data::regression::{
    BoundedFile, Iwpc, IwpcTarget, Reading, RegressionSpec, TableBounds,
};
use dosimeter_data::{Error, RegressionTable};
use dosimeter_testing::shared;
use proptest::prelude::*;
use std::io::Write;

const BOUNDS: &str = r#"
[columns.age]
lower = 0
upper = 100
missing = "midpoint"
[columns.ward]
categories = ["A", "B", "C"]
missing = "B"
[columns.dose]
lower = -1.5
upper = 1.5
[target]
name = "cost"
lower = 0
upper = 1000
"#;
const CSV: &str = "ward,name,cost,age,dose\n\
                   B,Ann,10,30,0.5\n\
                   A,Bea,2000,NA,-2\n\
                   C,Cy,-1,101,1.5\n\
                   ,Di,5,50,0\n";

struct Folder(tempfile::TempDir);
impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn file(&self, csv: &[u8], bounds: &str) -> BoundedFile {
        let path = self.0.path().join("table.csv");
        let toml = self.0.path().join("bounds.toml");
        std::fs::write(&path, csv).unwrap();
        std::fs::write(&toml, bounds).unwrap();
        BoundedFile { path, bounds: toml }
    }
    fn iwpc(&self, csv: &str) -> Iwpc {
        let path = self.0.path().join("warfarin.csv");
        std::fs::write(&path, csv).unwrap();
        Iwpc { path, target: IwpcTarget::default() }
    }
}
fn said(csv: &str, bounds: &str) -> String {
    let text = Folder::new().file(csv.as_bytes(), bounds).load().unwrap_err().to_string();
    let at = text.find("table.csv").or_else(|| text.find("bounds.toml")).unwrap_or(0);
    text[at..].to_owned()
}
fn counts(of: &std::collections::BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    of.iter().map(|(name, &n)| (name.as_str(), n)).collect()
}

#[test]
fn columns_come_in_the_order_of_the_file_within_their_bounds() {
    let table = Folder::new().file(CSV.as_bytes(), BOUNDS).load().unwrap();
    let names: Vec<_> = table.layout.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["ward B", "ward C", "age", "dose"]);
    assert_eq!(
        table.features(),
        [
            1.0, 0.0, 30.0, 0.5, //
            0.0, 0.0, 50.0, -1.5, //
            0.0, 1.0, 100.0, 1.5, //
            1.0, 0.0, 50.0, 0.0
        ]
    );
    assert_eq!(table.targets(), [10.0, 1000.0, 0.0, 5.0]);
    assert_eq!(table.counts.rows, 4);
    assert_eq!(counts(&table.counts.clipped), [("age", 1), ("cost", 2), ("dose", 1)]);
    assert_eq!(counts(&table.counts.imputed), [("age", 1), ("ward", 1)]);
    let ward = table.layout.group("ward").unwrap();
    let wards: Vec<_> = table.rows().map(|(x, _)| ward.level_of(x).unwrap()).collect();
    assert_eq!(wards, [1, 0, 2, 1]);
    assert_eq!((table.layout.target.lower, table.layout.target.upper), (0.0, 1000.0));
}
#[test]
fn a_stream_of_rows_is_the_table() {
    let folder = Folder::new();
    let file = folder.file(CSV.as_bytes(), BOUNDS);
    let table = file.load().unwrap();
    let mut rows = Vec::new();
    let counts = file
        .each_row(|row, x, y| {
            rows.push((row, x.to_vec(), y));
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(counts, table.counts);
    assert_eq!(rows.iter().map(|r| r.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
    let streamed: Vec<f64> = rows.iter().flat_map(|r| r.1.clone()).collect();
    assert_eq!(streamed, table.features());
    assert_eq!(file.layout(true).unwrap(), table.layout);
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(CSV.as_bytes()).unwrap();
    let zipped = Folder::new().file(&zip.finish().unwrap(), BOUNDS).load().unwrap();
    assert_eq!(zipped, table);
    assert_eq!(zipped.fingerprint(), table.fingerprint());
}
#[derive(Debug)]
enum Mine {
    Data(Error),
    Enough(u64),
}
impl From<Error> for Mine {
    fn from(error: Error) -> Self {
        Self::Data(error)
    }
}
#[test]
fn whoever_takes_the_rows_may_stop() {
    let folder = Folder::new();
    let file = folder.file(CSV.as_bytes(), BOUNDS);
    let stopped = file.each_row(|row, _, _| if row < 3 { Ok(()) } else { Err(Mine::Enough(row)) });
    assert!(matches!(stopped, Err(Mine::Enough(3))), "{stopped:?}");
    let broken = folder.file(b"ward,cost,age,dose\nQ,1,1,1\n", BOUNDS);
    let broken = broken.each_row(|row, _, _| Err(Mine::Enough(row)));
    assert!(matches!(broken, Err(Mine::Data(Error::Field { row: 2, .. }))), "{broken:?}");
}
#[test]
fn broken_rows_are_named_and_not_quoted() {
    let csv = |row: &str| said(&format!("ward,cost,age,dose\nA,1,1,1\n{row}\n"), BOUNDS);
    let cases = [
        ("Secret,1,1,1", "row 3, field `ward` is none of the 3 levels named for its column"),
        ("A,NaN,1,1", "row 3, field `cost` is not finite"),
        ("A,1,inf,1", "row 3, field `age` is not finite"),
        ("A,1,1,1e999", "row 3, field `dose` is not finite"),
        ("A,1,Secret,1", "row 3, field `age` is not a number"),
        (
            "A,NA,1,1",
            "row 3, field `cost` is missing, and no rule says what a missing value counts as",
        ),
        (
            "A,1,1,",
            "row 3, field `dose` is missing, and no rule says what a missing value counts as",
        ),
        ("A,1,1", "row 3: 3 fields, needs 4 like the rows before it"),
    ];
    for (row, expected) in cases {
        let text = csv(row);
        assert_eq!(text.strip_prefix("table.csv, ").unwrap(), expected, "{row}");
        assert!(!text.contains("Secret"), "{text}");
    }
    assert_eq!(said("", BOUNDS), "table.csv: no records");
    assert_eq!(said("ward,cost,age,dose\n", BOUNDS), "table.csv: no records");
    assert_eq!(said("ward,cost,age,age,dose\n", BOUNDS), "table.csv: two columns are named `age`");
    assert_eq!(
        said("ward,cost,age\n", BOUNDS),
        "table.csv: no column `dose`; the columns are `ward`, `cost`, `age`"
    );
}
#[test]
fn bounds_that_make_no_sense_are_refused() {
    let with = |from: &str, to: &str| {
        assert!(BOUNDS.contains(from), "{from}");
        said(CSV, &BOUNDS.replacen(from, to, 1))
    };
    let room = "finite, below a finite upper and not all but equal to it";
    let cases = [
        ("upper = 100\n", "upper = 0\n", format!("`columns.age.lower` is 0 with upper 0, needs {room}")),
        ("upper = 1000\n", "upper = inf\n", format!("`target.lower` is 0 with upper inf, needs {room}")),
        ("lower = -1.5\n", "lower = nan\n", format!("`columns.dose.lower` is NaN with upper 1.5, needs {room}")),
        (
            "lower = -1.5\n",
            "",
            "`columns.dose` is without them, needs `lower` and `upper` of a number, or `categories`; bounds taken from the data would leak it".to_owned(),
        ),
        (
            "missing = \"midpoint\"",
            "missing = 101",
            "`columns.age.missing` is 101, needs a number within the bounds, or \"midpoint\"".to_owned(),
        ),
        (
            "missing = \"midpoint\"",
            "missing = \"mean\"",
            "`columns.age.missing` is `mean`, needs a number within the bounds, or \"midpoint\"".to_owned(),
        ),
        ("missing = \"B\"", "missing = \"D\"", "`columns.ward.missing` is `D`, needs one of the categories".to_owned()),
        (
            "missing = \"B\"",
            "missing = 1",
            "`columns.ward.missing` is 1, needs one of the categories, in quotes".to_owned(),
        ),
        (
            "[\"A\", \"B\", \"C\"]",
            "[\"A\", \"B\", \"A\"]",
            "`columns.ward.categories` is a list of 3, 2 of them different, needs 2 to 10000 different names, not empty and without spaces around".to_owned(),
        ),
        (
            "missing = \"B\"",
            "lower = 0",
            "`columns.ward.categories` is given beside `lower` or `upper`, needs no bounds: it is a category or a number".to_owned(),
        ),
        ("name = \"cost\"", "name = \"age\"", "`columns.age` is also the target, needs a feature".to_owned()),
        (
            "name = \"cost\"",
            "name = \"price\"",
            "table.csv: no column `price`; the columns are `ward`, `name`, `cost`, `age`, `dose`".to_owned(),
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(with(from, to), expected);
    }
    let typo = with("upper = 100\n", "upper = 100\nhigh = 3\n");
    assert!(typo.starts_with("bounds.toml: not a readable TOML file: "), "{typo}");
    assert!(typo.contains("unknown field `high`"), "{typo}");
    let delimiter = said(CSV, &format!("delimiter = \"\\n\"\n{BOUNDS}"));
    assert!(delimiter.starts_with("`delimiter` is '\\n'"), "{delimiter}");
}
#[test]
fn missing_is_what_the_bounds_file_says() {
    let bounds = format!("missing_values = [\"?\"]\ndelimiter = \";\"\n{BOUNDS}");
    let csv = "ward;cost;age;dose\n?;1;?;1\n";
    let table = Folder::new().file(csv.as_bytes(), &bounds).load().unwrap();
    assert_eq!(table.features(), [1.0, 0.0, 50.0, 1.0]);
    let said = said("ward;cost;age;dose\nA;1;NA;1\n", &bounds);
    assert_eq!(said, "table.csv, row 2, field `age` is not a number");
    let bounds: TableBounds = toml::from_str(&bounds).unwrap();
    let again: TableBounds = toml::from_str(&toml::to_string(&bounds).unwrap()).unwrap();
    assert_eq!(again, bounds);
}

/// A table of some pieces, in which every way a row can be written occurs.
fn long_csv(rows: usize, end: &str) -> String {
    let mut text = format!("ward,name,cost,age,dose{end}");
    for i in 0..rows {
        // Some pieces have quotes, others none.
        let quoted = i / 12_000 % 2 == 1;
        let ward = ["A", "B", "C", "", " A ", if quoted { "\"B\"" } else { "B" }][i * 7 % 6];
        let name = if quoted && i % 5 == 0 { "\"Bea, \"\"the\"\"\nsecond\"" } else { "Ann" };
        let age = ["NA".to_owned(), format!("{i}"), format!("{}.5", i % 100), "1e1".to_owned()];
        let dose = f64::from((i % 37) as u32) / 7.0 - 2.0;
        text += &format!("{ward},{name},{},{},{dose}{end}", i % 1200, age[i % 4]);
        if i % 500 == 0 {
            text += end;
        }
    }
    text
}
/// What comes out does not depend on who parses what, nor on how the file is read or wrapped.
#[test]
fn threads_and_pieces_change_nothing() {
    let folder = Folder::new();
    for end in ["\n", "\r\n"] {
        let text = long_csv(60_000, end);
        assert!(text.len() > 5 << 18, "{}", text.len());
        let file = folder.file(text.as_bytes(), BOUNDS);
        let mut all = Vec::new();
        for threads in [1, 2, 5] {
            let reading = Reading { threads: threads.try_into().unwrap(), needs_target: true };
            let mut rows = Vec::new();
            let counts = file.each_block::<Error>(reading, |block| {
                rows.extend(block.rows().map(|(row, x, y)| (row, x.to_vec(), y.unwrap())));
                Ok(())
            });
            all.push((counts.unwrap(), rows));
        }
        assert_eq!(all[0].0.rows, 60_000);
        assert!(all.iter().all(|one| *one == all[0]));
        // Rows are numbered by their lines, blank lines and those inside of quotes counting.
        let lines: Vec<&str> = text.split('\n').collect();
        for (row, x, y) in &all[0].1 {
            let line = lines[*row as usize - 1];
            let cost = if line.contains('"') && line.contains("Bea") {
                lines[*row as usize]
            } else {
                line
            };
            let cost = cost.rsplit(',').nth(2).unwrap().trim();
            assert_eq!(cost.parse::<f64>().unwrap().min(1000.0), *y, "{row}: {line}");
            assert_eq!(x.len(), 4);
        }
        let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zip.write_all(text.as_bytes()).unwrap();
        let (table, zipped) = (file.load().unwrap(), zip.finish().unwrap());
        assert_eq!(table.targets().len(), 60_000);
        assert_eq!(Folder::new().file(&zipped, BOUNDS).load().unwrap(), table);
        // The first wrong row is the one that is named, whoever found it; those before it have come.
        let at = text.len() / 2 + text[text.len() / 2..].find(end).unwrap() + end.len();
        let broken = format!("{}A,x,1,Secret,1{end}{}A,x,1,1{end}", &text[..at], &text[at..]);
        let file = folder.file(broken.as_bytes(), BOUNDS);
        let line = text[..at].matches('\n').count() + 1;
        for threads in [1, 3] {
            let reading = Reading { threads: threads.try_into().unwrap(), needs_target: true };
            let mut last = 0;
            let failed = file.each_block::<Error>(reading, |block| {
                last = *block.numbers().last().unwrap_or(&last);
                Ok(())
            });
            let said = failed.unwrap_err().to_string();
            assert!(said.ends_with(&format!("row {line}, field `age` is not a number")), "{said}");
            assert!(last < line as u64 && last + 3 > line as u64, "{last} {line}");
            // Whoever takes the rows may stop the threads.
            let stopped = file.each_block(reading, |_| Err(Mine::Enough(0)));
            assert!(matches!(stopped, Err(Mine::Enough(0))));
        }
    }
}
#[test]
fn a_target_may_be_absent_where_it_is_not_needed() {
    let folder = Folder::new();
    let file = folder.file(b"ward,age,dose\nA,1,1\n", BOUNDS);
    let reading = Reading { needs_target: false, ..Reading::default() };
    let mut seen = 0;
    let visited = file.each_block::<Error>(reading, |block| {
        seen += block.len();
        assert!(block.targets().is_none() && block.rows().all(|(_, _, y)| y.is_none()));
        Ok(())
    });
    assert_eq!((visited.unwrap().rows, seen), (1, 1));
    assert_eq!(file.layout(false).unwrap().width(), 4);
    assert!(matches!(file.layout(true), Err(Error::NoSuchColumn { .. })));
    // Where it is, it is read, and must be right.
    let file = folder.file(b"ward,cost,age,dose\nA,x,1,1\n", BOUNDS);
    assert!(file.each_block::<Error>(reading, |_| Ok(())).is_err());
}
#[test]
fn a_number_may_mean_that_there_is_none() {
    let bounds = format!("missing_values = [\"-999\"]\n{BOUNDS}");
    let csv = "ward,cost,age,dose\nA,1,-999,1\n";
    let table = Folder::new().file(csv.as_bytes(), &bounds).load().unwrap();
    assert_eq!(table.features(), [0.0, 0.0, 50.0, 1.0]);
    // And a delimiter may stand in numbers.
    let bounds = format!("delimiter = \"1\"\n{BOUNDS}");
    let csv = "ward1cost1age1dose\nA1213010.5\n";
    let table = Folder::new().file(csv.as_bytes(), &bounds).load().unwrap();
    assert_eq!((table.features(), table.targets()), (&[0.0, 0.0, 30.0, 0.5][..], &[2.0][..]));
}
#[test]
fn settings_without_an_end_are_refused() {
    let folder = Folder::new();
    let mut file = folder.file(CSV.as_bytes(), BOUNDS);
    if std::path::Path::new("/dev/zero").exists() {
        file.bounds = "/dev/zero".into();
        let said = file.load().unwrap_err().to_string();
        assert_eq!(said, "/dev/zero: needs a file, got a device");
    }
}

const HEADER: &str = "PharmGKB Subject ID,Race,Age,Height (cm),Weight (kg),Amiodarone (Cordarone),\
    Carbamazepine (Tegretol),Phenytoin (Dilantin),Rifampin or Rifampicin,Therapeutic Dose of Warfarin,\
    CYP2C9 consensus,VKORC1 -1639 consensus,VKORC1 2255 consensus,VKORC1 1173 consensus,VKORC1 1542 consensus";

fn iwpc(rows: &[&str]) -> (Iwpc, Folder) {
    let folder = Folder::new();
    let iwpc = folder.iwpc(&format!("\u{feff}{HEADER}\n{}\n", rows.join("\n")));
    (iwpc, folder)
}
#[test]
fn patients_are_kept_by_the_published_rules() {
    let (iwpc, _folder) = &iwpc(&[
        "1,White,60 - 69,170,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
        "2,Asian,90+,150.5,300,NA,0,1,NA,140,*2/*3,NA,C/T,T/T,G/G",
        "3,Black or African American,10 - 19,119,NA,0,0,0,0,35,*1/*1,G/G,NA,NA,NA",
        "4,Black or African American,10 - 19,119,25,0,0,0,0,35,*1/*1,NA,C/C,T/T,NA",
        "5,Black or African American,10 - 19,119,25,0,0,0,0,35,*1/*1,NA,C/C,NA,C/C",
        "6,White,20 - 29,160,70,0,0,0,0,35,*3/*3,NA,NA,NA,C/G",
        "7,Unknown,20 - 29,160,70,0,0,0,0,35,*1/*1,A/A,NA,NA,NA",
        "8,White,20 - 29,160,70,0,0,0,0,35,*1/*11,A/A,NA,NA,NA",
        "9,White,NA,160,70,0,0,0,0,35,*1/*1,A/A,NA,NA,NA",
        "10,White,20 - 29,NA,70,0,0,0,0,35,*1/*1,A/A,NA,NA,NA",
        "11,White,20 - 29,160,70,0,0,0,0,NA,*1/*1,A/A,NA,NA,NA",
        ",,,,,,,,,,,,,,",
    ]);
    let patients = iwpc.patients().unwrap();
    let genotypes: Vec<_> = patients.kept.iter().map(|p| p.vkorc1).collect();
    assert_eq!(genotypes, [Vkorc1::Gg, Vkorc1::Ag, Vkorc1::Aa, Vkorc1::Ag]);
    assert_eq!(patients.counts.rows, 11);
    assert_eq!(
        counts(&patients.counts.left_out),
        [
            ("CYP2C9 not known or of another type", 1),
            ("VKORC1 neither measured nor to be inferred", 1),
            ("no age", 1),
            ("no dose", 1),
            ("no height", 1),
            ("no weight", 1),
            ("race not known", 1),
        ]
    );
    assert_eq!(counts(&patients.counts.imputed), [("VKORC1 -1639 consensus", 3)]);
    let table = iwpc.load().unwrap();
    let (second, dose) = table.row(1).unwrap();
    let expected = [9.0, 150.5, 180.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];
    assert_eq!(second, expected);
    assert_eq!(dose, 130_f64.sqrt());
    assert_eq!(
        counts(&table.counts.clipped),
        [("height cm", 1), ("square root of weekly warfarin dose in mg", 1), ("weight kg", 2)]
    );
    let weekly = Iwpc { target: IwpcTarget::WeeklyMg, ..iwpc.clone() }.load().unwrap();
    let daily = Iwpc { target: IwpcTarget::DailyMg, ..iwpc.clone() }.load().unwrap();
    assert_eq!((weekly.targets()[0], daily.targets()[0]), (35.0, 5.0));
    assert_eq!(daily.layout.target.upper, 130.0 / 7.0);
}
#[test]
fn rows_that_the_published_file_does_not_have_are_refused() {
    let cases = [
        (
            "1,Purple,60 - 69,170,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Race` is none of the 4 levels",
        ),
        (
            "1,White,65,170,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Age` is none of the 10 levels",
        ),
        (
            "1,White,60 - 69,tall,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Height (cm)` is not a number",
        ),
        (
            "1,White,60 - 69,170,inf,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Weight (kg)` is not finite",
        ),
        (
            "1,White,60 - 69,170,80,yes,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Amiodarone (Cordarone)` is none of",
        ),
        (
            "1,White,60 - 69,170,80,1,0,NA,0,35,normal,G/G,T/T,NA,NA",
            "field `CYP2C9 consensus` is none of",
        ),
        (
            "1,White,60 - 69,170,80,1,0,NA,0,35,*1/*1,G/T,T/T,NA,NA",
            "field `VKORC1 -1639 consensus` is none of",
        ),
        (
            "1,White,60 - 69,170,80,1,0,NA,0,-35,*1/*1,G/G,T/T,NA,NA",
            "field `Therapeutic Dose of Warfarin` is below 0",
        ),
        (
            "1,White,60 - 69,-170,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Height (cm)` is below 0",
        ),
        (
            "1,White,60 - 69,170,-80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Weight (kg)` is below 0",
        ),
        (
            "1,White,-5,170,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA",
            "field `Age` is none of the 10 levels",
        ),
        ("1,White,60 - 69", "3 fields, needs 15"),
    ];
    for (row, expected) in cases {
        let (iwpc, _folder) = &iwpc(&[row]);
        let said = iwpc.patients().unwrap_err().to_string();
        assert!(said.contains("row 2") && said.contains(expected), "{row}: {said}");
        // A row is the line on which it begins, as in every other table.
        let good = "\"1\n2\",White,60 - 69,170,80,1,0,NA,0,35,*1/*1,G/G,T/T,NA,NA";
        for (rows, line) in [([good, row], "row 4"), (["", row], "row 3")] {
            let (iwpc, _folder) = &crate::iwpc(&rows);
            let said = iwpc.patients().unwrap_err().to_string();
            assert!(said.contains(line) && said.contains(expected), "{row}: {said}");
        }
    }
    let (iwpc, _folder) = &iwpc(&["1,White,60 - 69,170,80,1,0,NA,0,NA,*1/*1,G/G,T/T,NA,NA"]);
    assert!(matches!(iwpc.load(), Err(Error::NoRecords { .. })));
    let folder = Folder::new();
    let said = folder.iwpc("a,b\n1,2\n").load().unwrap_err().to_string();
    assert!(said.contains("no column `Therapeutic Dose of Warfarin`"), "{said}");
}

fn published() -> Option<Iwpc> {
    let path = shared("data/iwpc-warfarin/warfarin.csv")?;
    Some(Iwpc { path, target: IwpcTarget::default() })
}
/// The published rules leave 4,017 patients; the other counts were taken from the file by an independent script.
#[test]
fn the_published_file_gives_its_patients() {
    let Some(iwpc) = published() else { return };
    let table = RegressionSpec::Iwpc(iwpc).load().unwrap();
    assert_eq!((table.len(), table.layout.width(), table.counts.rows), (4_017, 14, 5_700));
    let levels = |name: &str| -> Vec<usize> {
        let group = table.layout.group(name).unwrap();
        let of = |level| table.rows().filter(|(x, _)| group.level_of(x) == Some(level)).count();
        (0..group.levels.len()).map(of).collect()
    };
    assert_eq!(levels("VKORC1"), [1_241, 1_454, 1_322]);
    assert_eq!(levels("race"), [2_449, 1_168, 400]);
    assert_eq!(levels("CYP2C9"), [3_039, 527, 352, 39, 52, 8]);
    assert_eq!((levels("amiodarone")[1], levels("enzyme inducer")[1]), (168, 39));
    assert_eq!(levels("age").iter().sum::<usize>(), 4_017);
    assert_eq!(table.counts.imputed["VKORC1 -1639 consensus"], 746);
    assert_eq!(
        counts(&table.counts.left_out),
        [
            ("CYP2C9 not known or of another type", 88),
            ("VKORC1 neither measured nor to be inferred", 22),
            ("no age", 31),
            ("no dose", 172),
            ("no height", 1_081),
            ("no weight", 30),
            ("race not known", 259),
        ]
    );
    assert_eq!(
        counts(&table.counts.clipped),
        [("square root of weekly warfarin dose in mg", 3), ("weight kg", 8)]
    );
    // Sum of squares about the mean, by the same script: the variance is 2.03 before clipping.
    let mean = table.targets().iter().sum::<f64>() / 4_017.0;
    let variance = table.targets().iter().map(|y| (y - mean).powi(2)).sum::<f64>() / 4_017.0;
    assert!((variance - 1.99).abs() < 0.05, "{variance}");
    identifiers_are_gone(&table);
}
fn identifiers_are_gone(table: &RegressionTable) {
    let names = table.layout.columns.iter().map(|c| &c.name);
    let all: Vec<_> = names.chain(table.layout.groups.iter().map(|g| &g.name)).collect();
    assert!(all.iter().all(|n| !n.contains("Subject")), "{all:?}");
}

/// Percent of the patients in a range of doses for whom the model is within a fifth of the dose.
fn ideal(model: &DoseModel, patients: &[Patient], range: std::ops::RangeInclusive<f64>) -> f64 {
    let of = patients.iter().filter(|p| range.contains(&p.weekly_dose_mg));
    let (mut within, mut all) = (0.0, 0.0);
    for patient in of {
        let predicted = 7.0 * daily_mg(model.predict(&patient.features()));
        all += 1.0;
        if (predicted - patient.weekly_dose_mg).abs() <= 0.2 * patient.weekly_dose_mg {
            within += 1.0;
        }
    }
    100.0 * within / all
}
/// Of all 5,052 patients of the IWPC (with filled-in heights and weights) its Table 3 says how many were predicted within 20 %; ours
/// are the 4,017 without gaps, so the shares agree to two points only. Errors to a digit, from an independent script.
#[test]
fn the_published_models_predict_as_published() {
    let Some(iwpc) = published() else { return };
    let patients = iwpc.patients().unwrap().kept;
    let published = [
        (DoseModel::PHARMACOGENETIC, [35.0, 55.9, 32.8], 1.000_616, 8.324_012),
        (DoseModel::CLINICAL, [24.0, 53.3, 13.3], 1.377_722, 9.983_460),
    ];
    for (model, shares, root_error, weekly_error) in published {
        let low = ideal(&model, &patients, 0.0..=21.0);
        let middle = ideal(&model, &patients, 21.000_1..=48.999_9);
        let high = ideal(&model, &patients, 49.0..=1e9);
        for (have, published) in [low, middle, high].iter().zip(shares) {
            assert!((have - published).abs() < 2.0, "{}: {have} {published}", model.name);
        }
        let n = patients.len() as f64;
        let (mut squared, mut absolute) = (0.0, 0.0);
        for p in &patients {
            let root = model.predict(&p.features());
            squared += (root - p.weekly_dose_mg.sqrt()).powi(2) / n;
            let predicted = 7.0 * daily_mg(root);
            absolute += (predicted - p.weekly_dose_mg).abs() / n;
        }
        assert!((squared - root_error).abs() < 1e-5, "{}: {squared}", model.name);
        assert!((absolute - weekly_error).abs() < 1e-5, "{}: {absolute}", model.name);
    }
    assert_eq!(patients.iter().filter(|p| p.race == Race::Black).count(), 400);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    /// Fields of all kinds: whatever is read lies within its bounds, and whatever is refused is named by row and never quoted.
    #[test]
    fn any_table_is_within_its_bounds_or_refused_by_row(
        rows in prop::collection::vec(
            (
                prop::sample::select(vec!["A", "B", "C", "", "NA", "Secret"]),
                prop::sample::select(vec!["0", "-7", "1e9", "12.5", "NaN", "", "0x5ec"]),
                prop::sample::select(vec!["50", "-1e300", "1e999", "NA", "5ecret", " 7 "]),
            ),
            1..4,
        ),
    ) {
        let text: String = rows.iter().map(|(ward, cost, age)| format!("{ward},{cost},{age},0\n")).collect();
        let read = Folder::new().file(format!("ward,cost,age,dose\n{text}").as_bytes(), BOUNDS).load();
        let readable = |(ward, cost, age): &(&str, &str, &str)| {
            *ward != "Secret" && !["NaN", "", "0x5ec"].contains(cost) && !["1e999", "5ecret"].contains(age)
        };
        let bad = rows.iter().position(|row| !readable(row));
        match (read, bad) {
            (Ok(table), None) => {
                prop_assert_eq!(table.len(), rows.len());
                for (x, y) in table.rows() {
                    let columns = x.iter().zip(&table.layout.columns);
                    prop_assert!(columns.clone().all(|(x, c)| (c.lower..=c.upper).contains(x)));
                    prop_assert!((0.0..=1000.0).contains(&y));
                    prop_assert!(table.layout.groups[0].level_of(x).is_some());
                }
            }
            (Err(error), Some(bad)) => {
                let said = error.to_string();
                let named = format!("row {}, field", bad + 2);
                prop_assert!(said.contains(&named), "{}", said);
                prop_assert!(!said.contains("ecret") && !said.contains("0x5ec"), "{}", said);
            }
            (read, bad) => prop_assert!(false, "{:?} {:?}", read, bad),
        }
    }
}
