//! Tables in NPZ.
use super::classes::Gaps;
use super::table::{NpzTable, Schema, TableBuilder, Value};
use super::{bits, npy};
use crate::{Dataset, Error};

pub(super) fn load(table: &NpzTable) -> Result<Dataset, Error> {
    let file = table.path.as_path();
    let mut archive = npy::Npz::open(file)?;
    let shape = archive.shape(&table.inputs)?;
    if shape.len() != 2 {
        let (file, array) = (file.to_owned(), table.inputs.clone());
        return Err(Error::ArrayShape { file, array, needs: "[records, columns]".into(), shape });
    }
    let schema = Schema {
        file,
        label: None,
        ignore: &table.ignore,
        columns: &table.columns,
        other_columns: table.other_columns.as_ref(),
    };
    // A declared width is believed only as far as rows are read.
    let names = |width: usize| (1..=width).map(|i| format!("column {i}")).collect();
    let mut builder: Option<TableBuilder<'_>> = None;
    archive.rows(&table.inputs, |row, values| {
        let builder = match &mut builder {
            Some(builder) => builder,
            none => none.insert(TableBuilder::new(schema, names(values.len()))?),
        };
        builder.start_record()?;
        for (i, &value) in values.iter().enumerate() {
            builder.push(row, i, Value::Number(value))?;
        }
        Ok(())
    })?;
    let gaps = if table.classes.is_some() { Gaps::Allowed } else { Gaps::Refused };
    let classes = bits::read_npz_labels(&mut archive, &table.labels, gaps)?;
    let builder = builder.ok_or_else(|| Error::NoRecords { file: file.to_owned() })?;
    builder.finish(Some(classes), table.classes)
}
