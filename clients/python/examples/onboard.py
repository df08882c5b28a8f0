"""Onboard a customer, rotate its key while it is in use, and show and export last week's usage.

URL=http://127.0.0.1:8080 ADMIN_KEY=iiak_admin_… python onboard.py
"""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from ledgerline_client import AsyncLedgerline, Ledgerline

URL, ADMIN_KEY = os.environ["URL"], os.environ["ADMIN_KEY"]
PREVIEW = 1
USAGE_SHOWS_WITHIN_S = 5


class Integration:
    """A customer's program. It counts its requests."""

    def __init__(self, key: str) -> None:
        self.service, self.answered, self.working = AsyncLedgerline(URL, api_key=key), 0, True

    async def work(self) -> None:
        """Send requests until told to stop. A refused one ends the program."""
        async with self.service:
            while self.working:
                await self.service.get_own_key()
                self.answered += 1
                await asyncio.sleep(0.1)


async def main() -> None:
    """The life of a customer."""
    async with AsyncLedgerline(URL, admin_key=ADMIN_KEY) as partner:
        user = (await partner.create_user(name="Alice", external_id=f"customer-{uuid4()}"))["data"]
        issued = (await partner.create_credential(name="Backend", user_account_id=user["id"], network_id=PREVIEW))[
            "data"
        ]
        print(f"Onboarded {user['name']} with the key {issued['api_key'][:9]}…")

        integration = Integration(issued["api_key"])
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(integration.work())
            await asyncio.sleep(1)
            # The former key stays valid for an hour, so every part of the integration can switch to the new one.
            rotated = (await partner.rotate_credential(issued["credential"]["id"], overlap_seconds=3600))["data"]
            await asyncio.sleep(1)
            integration.service.api_key = rotated["api_key"]
            await asyncio.sleep(1)
            integration.working = False
        print(f"Rotated the key during {integration.answered} requests; none was refused")

        await asyncio.sleep(USAGE_SHOWS_WITHIN_S)
        week_ago = (datetime.now(UTC) - timedelta(days=7)).isoformat()
        async for part in partner.iterate_user_usage_breakdown(user["id"], start_date=week_ago, group_by="endpoint"):
            print(f"{part['period_start']}  {part['endpoint']}  {part['total_requests']} requests")
    await asyncio.to_thread(export, week_ago)
    print("Exported the usage of all customers to usage.csv")


def export(since: str) -> None:
    """Write the usage of all customers into a file, line by line: it may have millions."""
    with Ledgerline(URL, admin_key=ADMIN_KEY) as partner, Path("usage.csv").open("w", newline="") as file:
        file.writelines(partner.stream_usage(start_date=since, file_format="csv"))


asyncio.run(main())
