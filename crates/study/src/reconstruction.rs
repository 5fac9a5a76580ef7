//! What randomized images give away of the images: shown and measured if the study asks for it.
use crate::report::{Estimate, Interval, Picture, Reconstruction};
use crate::run::{self, Records};
use crate::study::{Arm, Study};
use crate::{Error, Session};
use dosimeter_attack::LinearReconstruction;
use dosimeter_attack::reconstruction::MOST_IMAGES;
use dosimeter_audit::interval::across_repeats;
use dosimeter_data::{Dataset, RecordId, png};
use rayon::prelude::*;

/// Most images whose error is measured.
const MOST_MEASURED: usize = 200;

/// Looks whether there is something to show, and somebody to learn from.
///
/// # Errors
/// [`Error::Study`] with `show_images`.
pub(crate) fn check(study: &Study, records: &Records) -> Result<(), Error> {
    if study.show_images == 0 {
        return Ok(());
    }
    let mut arms = study.arms.iter();
    if !arms.any(|arm| arm.defence.pixelization().is_ok_and(|p| p.is_some())) {
        let what = "needs an arm of pixelization, and there is none";
        return Err(study.problem("show_images", what.to_owned()));
    }
    let (members, pool) = (records.membership.members().len(), records.split.shadow_pool.len());
    if members < 2 || pool < 2 {
        let what = format!(
            "needs at least 2 members and 2 records of the shadow pool for the attacker, got {members} and {pool}"
        );
        return Err(study.problem("show_images", what));
    }
    Ok(())
}

/// One for each arm of pixelization; none if the study does not show images.
///
/// # Errors
/// As randomizing the images; [`Error::Audit`] if there is one image alone.
pub(crate) fn all(session: &Session, records: &[Records]) -> Result<Vec<Reconstruction>, Error> {
    let Session { study, dataset, .. } = session;
    let (Some(records), Some(shape)) = (records.first(), dataset.shape()) else {
        return Ok(Vec::new());
    };
    if study.show_images == 0 {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for arm in &study.arms {
        all.extend(of_arm(study, dataset, shape, records, arm)?);
    }
    Ok(all)
}

fn of_arm(
    study: &Study,
    dataset: &Dataset,
    shape: [usize; 3],
    records: &Records,
    arm: &Arm,
) -> Result<Option<Reconstruction>, Error> {
    let Some(pixelization) = arm.defence.pixelization()? else { return Ok(None) };
    let failed = |source| Error::Train { task: format!("pixelizing for {}", arm.setting), source };
    let averages = pixelization.averages(shape).map_err(failed)?;
    let randomized = run::randomize(study, dataset, arm, records).map_err(|fault| match fault {
        run::Fault::Train(source) => failed(source),
        run::Fault::Study(error) => error,
    })?;
    let (randomized, _) = randomized.ok_or(Error::ArtifactShape)?;
    let known = evenly(&records.split.shadow_pool, MOST_IMAGES);
    let mut images = Vec::with_capacity(known.len() * dataset.width());
    for record in &known {
        dataset.inputs.append_row(record.0 as usize, &mut images);
    }
    let fitted = LinearReconstruction::fit(&averages, dataset.width(), &images);
    let fitted = fitted.ok_or(Error::ArtifactShape)?;
    let null = fitted.mean();
    let measured = evenly(&records.membership.members(), MOST_MEASURED);
    let brought_back = measured
        .par_iter()
        .map(|record| {
            let (original, released) = (row(dataset, *record), row(&randomized, *record));
            let reconstructed = fitted.of(&released).ok_or(Error::ArtifactShape)?;
            let errors = [&released, &reconstructed, &null].map(|image| error(image, &original));
            Ok((errors, [original, released, reconstructed]))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let over_images = |of: &dyn Fn(&[f64; 3]) -> f64| {
        let values: Vec<f64> = brought_back.iter().map(|(errors, _)| of(errors)).collect();
        let confidence = study.audit.confidence;
        let found = across_repeats(&values, confidence)
            .map_err(|source| Error::Audit { setting: arm.setting.clone(), source })?;
        let method = "t over images".to_owned();
        let interval = |i: dosimeter_audit::interval::Interval| Interval {
            low: i.low,
            high: i.high,
            confidence: i.confidence,
            method,
        };
        Ok::<_, Error>(Estimate { value: found.mean, interval: found.interval.map(interval) })
    };
    let shown =
        |image: &[f32]| png(image, shape).map(|file| base64(&file)).ok_or(Error::ArtifactShape);
    let pictures = evenly(&(0..measured.len()).collect::<Vec<_>>(), study.show_images)
        .into_iter()
        .map(|i| {
            let [original, released, reconstructed] = &brought_back[i].1;
            Ok(Picture {
                record: measured[i].0,
                label: dataset.labels[measured[i].0 as usize],
                original: shown(original)?,
                randomized: shown(released)?,
                reconstructed: shown(reconstructed)?,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    Ok(Some(Reconstruction {
        setting: arm.setting.clone(),
        method: "linear estimator of least mean squared error".to_owned(),
        fitted_on: crate::judge::small(fitted.images() as u64),
        images: crate::judge::small(measured.len() as u64),
        randomized_error: over_images(&|errors| errors[0])?,
        reconstructed_error: over_images(&|errors| errors[1])?,
        null_error: over_images(&|errors| errors[2])?,
        gain: over_images(&|errors| errors[2] - errors[1])?,
        mean_image: shown(&null)?,
        pictures,
    }))
}

fn row(dataset: &Dataset, record: RecordId) -> Vec<f32> {
    let mut row = Vec::with_capacity(dataset.width());
    dataset.inputs.append_row(record.0 as usize, &mut row);
    row
}

/// Mean squared difference.
#[expect(clippy::cast_precision_loss, reason = "a number of pixels")]
fn error(image: &[f32], original: &[f32]) -> f64 {
    let square = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).powi(2);
    image.iter().zip(original).map(square).sum::<f64>() / original.len() as f64
}

/// At most so many of a list, spread over all of it: records are in the order of the data, which may be that of the classes.
fn evenly<T: Copy>(list: &[T], most: usize) -> Vec<T> {
    let count = list.len().min(most);
    (0..count).map(|i| list[i * list.len() / count]).collect()
}

/// As pages hold images. Source: RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| three.get(i).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_standard() {
        let examples =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (bytes, wanted) in examples {
            assert_eq!(base64(bytes.as_bytes()), wanted);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }
    #[test]
    fn a_few_of_many_are_spread_over_all() {
        assert_eq!(evenly(&[0, 1, 2, 3, 4, 5, 6], 3), [0, 2, 4]);
        assert_eq!(evenly(&[5, 6], 3), [5, 6]);
        assert!(evenly::<u8>(&[], 3).is_empty());
    }
}
