"""Defines the base class of data sets in VLMEvalKit's TSV layout, which stores an image once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from visenv.data.cells import ImageCell
from visenv.data.rows import RowLocation, text_of
from visenv.data.table_source import EncodedImages, TableSource
from visenv.data.tables import DataTable, DelimitedTable
from visenv.errors import DataError
from visenv.types import Sample

_LONGEST_REFERENCE = 64


class SharedImageSource(TableSource):
    """Loads tables in which an image is stored once.

    In a TSV file, an ``image`` of at most 64 characters is the ``index`` of the row that contains
    the image, which may be a later one. Other tables are read as by `TableSource`.

    Attributes:
        required_columns: The columns that each table must have.
    """

    required_columns: ClassVar[Sequence[str]] = ()

    @override
    def encoded_cells(self, images: EncodedImages) -> Iterator[ImageCell]:
        """Yield the images of a row, which are Base64 text and never a path."""
        for cell in super().encoded_cells(images):
            yield ImageCell("", cell.path) if cell.path else cell

    @override
    def load_table(self, table: DataTable) -> None:
        missing = [name for name in self.required_columns if name not in table.columns]
        if missing:
            names = ", ".join(table.columns)
            raise DataError(f"{table.path} has no column {', '.join(missing)}; it has {names}.")
        if not isinstance(table, DelimitedTable):
            super().load_table(table)
            return
        holders: dict[str, EncodedImages] = {}
        kept: list[tuple[RowLocation, Sample, str]] = []
        for row in table.rows():
            with self.listing_problems(row.place):
                fields = {name: value or "" for name, value in row.read().items()}
                image, index = text_of(fields, "image"), text_of(fields, "index")
                holder = image
                if len(image) > _LONGEST_REFERENCE:
                    holder = index
                    holders.setdefault(index, EncodedImages(table, row.key))
                sample = self.make_sample(row.place, {**fields, "image": ""})
                if isinstance(sample, Sample):
                    kept.append((row.place, sample, holder))
        for place, sample, holder in kept:
            with self.listing_problems(place):
                if holder not in holders:
                    raise DataError(f"no row has the index {holder!r}, to take its image")
                self.add_row(place, sample, holders[holder])
