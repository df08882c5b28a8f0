"""Credit deposits at some addresses exactly once, and take back what a fork has undone, until Ctrl-C.

URL=http://127.0.0.1:8080 API_KEY=iiak_… python credit_deposits.py addr1… addr1…
"""

import os
import sqlite3
import sys
from contextlib import closing
from typing import Any

from ledgerline_client import Ledgerline

CONFIRMATIONS = int(os.environ.get("CONFIRMATIONS", "15"))

TABLES = """
CREATE TABLE IF NOT EXISTS reading (subscription TEXT, number INTEGER);
CREATE TABLE IF NOT EXISTS deposit (number INTEGER PRIMARY KEY, address TEXT, tx_hash TEXT, lovelace INTEGER);
"""


def main(addresses: list[str]) -> None:
    """Follow the addresses, from where the books end."""
    with (
        closing(sqlite3.connect(os.environ.get("BOOKS", "deposits.db"))) as books,
        Ledgerline(os.environ["URL"], api_key=os.environ["API_KEY"]) as service,
    ):
        books.executescript(TABLES)
        reading = books.execute("SELECT subscription, number FROM reading").fetchone()
        if reading is None:
            subjects = [{"kind": "transaction", "address": address, "direction": "in"} for address in addresses]
            # The key of this request makes sure that a crash before the next commit leaves no second subscription.
            once = f"deposits-{len(addresses)}-{addresses[0]}"
            made = service.create_subscription(subjects=subjects, confirmations=CONFIRMATIONS, idempotency_key=once)
            reading = made["data"]["id"], 0
            with books:
                books.execute("INSERT INTO reading VALUES (?, ?)", reading)
        for event in service.subscribe(reading[0], after=reading[1]):
            with books:  # one commit: what follows from an event, and its number
                book(books, event)
                books.execute("UPDATE reading SET number = ?", (event["number"],))


def book(books: sqlite3.Connection, event: Any) -> None:
    """Credit what an address has gained in a transaction, or take that back."""
    match event["action"]:
        case "apply":
            gained = int(event["received"]) - int(event.get("spent", 0))  # its own change is no deposit
            if gained > 0:
                row = event["number"], event["subject"]["address"], event["object"]["tx_hash"], gained
                books.execute("INSERT INTO deposit VALUES (?, ?, ?, ?)", row)
                print(f"{event['number']}: credited {gained} lovelace to {row[1]}, transaction {row[2]}")
        case "undo":
            books.execute("DELETE FROM deposit WHERE number = ?", (event["undoes"],))
            print(f"{event['number']}: took back {event['undoes']}, whose block is no longer on the chain")
        case "reset":  # of blocks from before the subscription, none of which was ever booked
            print(f"{event['number']}: blocks after slot {event['object']['slot_no']} were undone")


if __name__ == "__main__":
    main(sys.argv[1:])
