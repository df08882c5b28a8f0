"""The buckets by which deep pages of long lists are found; buckets.sql tells the idea, with an example."""

from collections.abc import Mapping

from shared import sql

LONG = 4
"""A list has buckets while at least this many of its rows open one: from about 4,000 rows on."""


class Buckets:
    """The buckets of one kind of lists, in a table with the columns `key`, `rank` and `tie`, and those of `sums`.

    `rows` is a SELECT of the rows of all such lists: list_no, rank and tie, by which a list is sorted, and `opens`,
    whether the row opens a bucket. `sums` has a column for each sum over the rows of a bucket, the first of which
    counts them. `lowest` and `lowest_tie` begin the first bucket, `highest` is beyond all ranks: as SQL, like
    everything here. If they are `sparse`, the end of bulk leaves out first buckets with nothing in them.
    """

    def __init__(
        self,
        table: str,
        *,
        key: str,
        rank: str,
        tie: str,
        rows: str,
        sums: Mapping[str, str],
        lowest: str,
        lowest_tie: str,
        highest: str,
        sparse: bool = False,
    ) -> None:
        self.table, self.key, self.rank, self.tie, self.columns = table, key, rank, tie, list(sums)
        self._long = {"rows": rows, "long": str(LONG)}
        self._parts = {
            "rows": rows,
            "lowest": lowest,
            "lowest_tie": lowest_tie,
            "sums": ", ".join(f"{what} AS {column}" for column, what in sums.items()),
        }
        self._names = {"key": key, "rank": rank, "tie": tie}
        self._into = {"table": table, "columns": ", ".join(sums), **self._names}
        self._highest, self.sparse = highest, sparse
        self.long_lists = _sql.text("long_lists", **self._long)
        """A SELECT of the list_no of every list that has buckets."""
        self.counted = _sql.text(
            "counted",
            **self._parts,
            **self._names,
            long_lists=self.long_lists,
            or_nothing=", ".join(f"coalesce({column}, 0) AS {column}" for column in sums),
        )
        """A SELECT of all buckets as they should be, with the columns of the table."""

    def is_long(self, list_no: str) -> str:
        """Whether the list of this number has buckets."""
        return _sql.text("is_long", **self._long, list_no=list_no)

    def move(self, places: str) -> sql.Command:
        """A command for rows that have come and gone: `places` selects their places, see buckets.sql."""
        columns = self.columns
        return _sql.command(
            "move",
            **self._parts,
            **self._into,
            highest=self._highest,
            places=places,
            is_long=self.is_long("touched.list_no"),
            count=columns[0],
            nothing=", ".join("0" for _ in columns),
            changes=", ".join(f"sum(place.{column}) AS {column}" for column in columns),
            add=", ".join(f"{column} = b.{column} + excluded.{column}" for column in columns),
            replace=", ".join(f"{column} = excluded.{column}" for column in columns),
        )

    def fill(self) -> sql.Command:
        """A command that counts all buckets, at the end of bulk, into the empty table."""
        filled = f"{self.columns[0]} > 0" if self.sparse else "true"
        return _sql.command("fill", **self._into, counted=self.counted, filled=filled)


_sql = sql.beside(__file__)
