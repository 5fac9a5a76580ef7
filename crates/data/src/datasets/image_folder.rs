//! A folder of images per class, on disk or in a zip.
use super::classes::Classes;
use super::pixels::{self, IMAGE_LIMIT, Images, Pixels};
use super::source;
use super::table::LEVEL_LIMIT;
use crate::{Dataset, Error, ImageProblem};
use image::{
    ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, imageops::FilterType,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Most bytes of one image file, measured while it is read.
const FILE_LIMIT: u64 = 64 << 20;
/// Most bytes a decoder may take.
const DECODER_LIMIT: u64 = 256 << 20;

/// Images (PNG, JPEG, PGM or PPM) in one folder per class; the folders' names, sorted, are the classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFolder {
    /// The folder that holds the class folders, or a zip of it.
    pub path: PathBuf,
    /// Grey or red, green and blue.
    #[serde(default)]
    pub colour: Colour,
    /// The part of each image that is kept, `[top, left, height, width]` in pixels. All of it if left out.
    #[serde(default)]
    pub crop: Option<[u32; 4]>,
    /// `[height, width]` to scale each image (what is kept of it) to, bilinear. Left out, all images must have one size.
    #[serde(default)]
    pub resize: Option<[u32; 2]>,
    /// Keep the records of this many most frequent classes only.
    #[serde(default)]
    pub classes: Option<usize>,
}
/// The channels of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Colour {
    /// As the files have it: 8-bit grey or 8-bit RGB, all alike.
    #[default]
    AsIs,
    /// Converted to 8-bit grey.
    Grey,
    /// Converted to 8-bit RGB.
    Rgb,
}

/// Where an image lies: its class, its name in its folder, and how to get at it. Sorts in the order of records.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place<At> {
    class: String,
    name: String,
    at: At,
}

pub(super) fn load(spec: &ImageFolder) -> Result<Dataset, Error> {
    check(spec)?;
    let path = spec.path.as_path();
    if path.is_dir() {
        let places = on_disk(path)?;
        return read(spec, places, |at: &PathBuf| {
            let opened = crate::file::open(at)?;
            bounded(at, opened)
        });
    }
    if !source::is_zip(path)? {
        let (needs, have) = ("a folder or a zip archive", "another file");
        let setting = "path".to_owned();
        return Err(Error::Setting { setting, needs: needs.to_owned(), have: have.to_owned() });
    }
    let damaged = |e: zip::result::ZipError| {
        let (file, reason) = (path.to_owned(), e.to_string());
        Error::Damaged { file, format: "zip", reason }
    };
    let opened = crate::file::open(path)?;
    let mut archive = zip::ZipArchive::new(BufReader::new(opened)).map_err(damaged)?;
    let places = in_zip(path, archive.file_names_raw())?;
    read(spec, places, |&at| bounded(path, archive.by_index(at).map_err(damaged)?))
}

fn check(spec: &ImageFolder) -> Result<(), Error> {
    let refuse = |setting: &str, needs: &str, have: String| {
        let (setting, needs) = (setting.to_owned(), needs.to_owned());
        Err(Error::Setting { setting, needs, have })
    };
    if let Some(crop @ [_, _, height, width]) = spec.crop
        && (height == 0 || width == 0)
    {
        return refuse("crop", "a height and a width of at least 1", format!("{crop:?}"));
    }
    if let Some(resize @ [height, width]) = spec.resize
        && !(1..=IMAGE_LIMIT / 3).contains(&(u64::from(height) * u64::from(width)))
    {
        let needs = format!("1 to {} pixels in all", IMAGE_LIMIT / 3);
        return refuse("resize", &needs, format!("{resize:?}"));
    }
    Ok(())
}

fn refused(file: &Path, image: &str, problem: ImageProblem) -> Error {
    Error::Image { file: file.to_owned(), image: image.to_owned(), problem }
}

/// The content of an image file; `None` if it goes beyond the limit, whatever size it declares.
fn bounded(file: &Path, reader: impl Read) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = Vec::new();
    reader.take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(Error::read(file))?;
    Ok((bytes.len() as u64 <= FILE_LIMIT).then_some(bytes))
}

/// Whether a file belongs to the system that made the folder, not to the data.
fn is_foreign(name: &str) -> bool {
    name.starts_with('.') || name == "__MACOSX" || name == "Thumbs.db" || name == "desktop.ini"
}
fn is_image(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["png", "jpg", "jpeg", "pgm", "ppm", "pnm"].iter().any(|e| e.eq_ignore_ascii_case(extension))
}

/// What is in a folder: name, path, whether a folder. Files of the system are left out.
fn listed(root: &Path, folder: &Path) -> Result<Vec<(String, PathBuf, bool)>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::read(folder))? {
        let path = entry.map_err(Error::read(folder))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            let image = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            return Err(refused(root, &image, ImageProblem::Name));
        };
        if !is_foreign(name) {
            let is_folder = std::fs::metadata(&path).map_err(Error::read(&path))?.is_dir();
            found.push((name.to_owned(), path, is_folder));
        }
    }
    Ok(found)
}
fn on_disk(root: &Path) -> Result<Vec<Place<PathBuf>>, Error> {
    let mut places = Vec::new();
    for (class, folder, is_folder) in listed(root, root)? {
        if !is_folder {
            // A note beside the class folders does no harm; an image there would be missed.
            if is_image(&class) {
                return Err(refused(root, &class, ImageProblem::Place));
            }
            continue;
        }
        let before = places.len();
        for (name, at, is_folder) in listed(root, &folder)? {
            let place = format!("{class}/{name}");
            if is_folder {
                return Err(refused(root, &place, ImageProblem::Place));
            }
            if !is_image(&name) {
                return Err(refused(root, &place, ImageProblem::Extension));
            }
            places.push(Place { class: class.clone(), name, at });
        }
        if places.len() == before {
            return Err(Error::EmptyClassFolder { file: root.to_owned(), class });
        }
    }
    places.sort();
    Ok(places)
}
/// The class folders may lie within any one folder of the zip.
fn in_zip<'n>(
    file: &Path,
    names: impl Iterator<Item = &'n [u8]>,
) -> Result<Vec<Place<usize>>, Error> {
    let (mut places, mut folders, mut others, mut root) = (vec![], vec![], vec![], None);
    for (at, raw) in names.enumerate() {
        let refuse = |problem| Err(refused(file, &String::from_utf8_lossy(raw), problem));
        let Ok(path) = std::str::from_utf8(raw) else { return refuse(ImageProblem::Name) };
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return refuse(ImageProblem::Place);
        }
        if path.split('/').any(is_foreign) {
            continue;
        }
        if let Some(folder) = path.strip_suffix('/') {
            folders.push(folder);
            continue;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (above, class) = folder.rsplit_once('/').unwrap_or(("", folder));
        if !is_image(name) {
            others.push((folder, path));
            continue;
        }
        if class.is_empty() || *root.get_or_insert(above) != above {
            return refuse(ImageProblem::Place);
        }
        places.push(Place { class: class.to_owned(), name: name.to_owned(), at });
    }
    // As on disk: beside or above the class folders a note does no harm.
    let root = root.unwrap_or("");
    let above_classes = |folder: &str| {
        root.strip_prefix(folder).is_some_and(|r| r.is_empty() || r.starts_with('/'))
    };
    if let Some((_, path)) = others.iter().find(|(f, _)| !f.is_empty() && !above_classes(f)) {
        return Err(refused(file, path, ImageProblem::Extension));
    }
    let classes: BTreeSet<&str> = places.iter().map(|place| place.class.as_str()).collect();
    for folder in folders {
        let (above, class) = folder.rsplit_once('/').unwrap_or(("", folder));
        if above == root && !class.is_empty() && !classes.contains(class) {
            return Err(Error::EmptyClassFolder { file: file.to_owned(), class: class.to_owned() });
        }
    }
    places.sort();
    Ok(places)
}

fn read<At>(
    spec: &ImageFolder,
    places: Vec<Place<At>>,
    mut content: impl FnMut(&At) -> Result<Option<Vec<u8>>, Error>,
) -> Result<Dataset, Error> {
    let file = spec.path.as_path();
    let (mut labels, mut names, mut all) = (Vec::new(), Vec::<String>::new(), None::<Images>);
    for Place { class, name, at } in places {
        let refuse = |problem| Err(refused(file, &format!("{class}/{name}"), problem));
        let Some(bytes) = content(&at)? else {
            return refuse(ImageProblem::FileSize { limit: FILE_LIMIT });
        };
        let needs = all.as_ref().map(|images| images.shape);
        let (shape, bytes) = match decode(spec, &bytes) {
            Ok(decoded) => decoded,
            Err(problem) => return refuse(problem),
        };
        if let Some(needs) = needs.filter(|needs| *needs != shape) {
            return refuse(ImageProblem::Shape { shape, needs });
        }
        let images = all.get_or_insert_with(|| Images::bytes(shape, u8::MAX));
        images.count(file)?;
        if let Pixels::Bytes { values, .. } = &mut images.pixels {
            pixels::channels_first(&bytes, shape[0], values);
        }
        if names.last() != Some(&class) {
            names.push(class);
        }
        labels.push(names.len() as u32 - 1);
    }
    let images = all.ok_or_else(|| Error::NoRecords { file: file.to_owned() })?;
    if names.len() < 2 {
        return Err(Error::TooFewClasses { file: file.to_owned(), needs: 2, have: names.len() });
    }
    if names.len() > LEVEL_LIMIT {
        let (file, column) = (file.to_owned(), "class folders".to_owned());
        return Err(Error::TooManyLevels { file, column, limit: LEVEL_LIMIT });
    }
    images.finish(file, Classes { labels, names }, spec.classes)
}

/// Whether the last scan is followed by the mark that ends an image, which the decoder does not ask for: it paints grey what is
/// missing. Within a scan that mark cannot occur; thumbnails end before the last scan begins.
fn jpeg_ends(bytes: &[u8]) -> bool {
    const SCAN: [u8; 2] = [0xff, 0xda];
    const END: [u8; 2] = [0xff, 0xd9];
    let scan = bytes.windows(2).rposition(|mark| mark == SCAN).unwrap_or(0);
    bytes[scan..].windows(2).any(|mark| mark == END)
}

/// `[channels, height, width]` and the bytes, pixel after pixel.
fn decode(spec: &ImageFolder, bytes: &[u8]) -> Result<([usize; 3], Vec<u8>), ImageProblem> {
    let undecodable =
        |error: image::ImageError| ImageProblem::Undecodable { reason: error.to_string() };
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|error| undecodable(error.into()))?;
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(DECODER_LIMIT);
    reader.limits(limits);
    if reader.format() == Some(ImageFormat::Jpeg) && !jpeg_ends(bytes) {
        let reason = "the JPEG data end before the image does".to_owned();
        return Err(ImageProblem::Undecodable { reason });
    }
    let decoder = reader.into_decoder().map_err(undecodable)?;
    let (width, height) = decoder.dimensions();
    let (size, limit) = ([height, width], IMAGE_LIMIT / 3);
    if width == 0 || height == 0 {
        return Err(ImageProblem::NoPixel { size });
    }
    if u64::from(width) * u64::from(height) > limit {
        return Err(ImageProblem::TooLarge { size, limit });
    }
    let colours = decoder.color_type();
    if spec.colour == Colour::AsIs && !matches!(colours, ColorType::L8 | ColorType::Rgb8) {
        return Err(ImageProblem::Colour { have: format!("{colours:?}") });
    }
    let mut image = DynamicImage::from_decoder(decoder).map_err(undecodable)?;
    image = match spec.colour {
        Colour::AsIs => image,
        Colour::Grey => image.into_luma8().into(),
        Colour::Rgb => image.into_rgb8().into(),
    };
    if let Some([top, left, rows, columns]) = spec.crop {
        let needs = [u64::from(top) + u64::from(rows), u64::from(left) + u64::from(columns)];
        if needs[0] > u64::from(height) || needs[1] > u64::from(width) {
            return Err(ImageProblem::Crop { size, needs });
        }
        image = image.crop_imm(left, top, columns, rows);
    }
    if let Some([rows, columns]) = spec.resize {
        image = image.resize_exact(columns, rows, FilterType::Triangle);
    }
    let shape = [
        usize::from(image.color().channel_count()),
        image.height() as usize,
        image.width() as usize,
    ];
    Ok((shape, image.into_bytes()))
}
