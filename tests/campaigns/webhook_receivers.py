"""`python -m tests.campaigns.webhook_receivers FOLDER`: libraries for Node verify messages, also with two secrets.

The folder has them: `npm install svix standardwebhooks`. The test command verifies with those for Python.
"""

import subprocess
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import msgspec
import typer

from api.events import signatures

LIBRARIES = ("svix", "standardwebhooks")
_BODY = '{"number":7,"text":"ünï"}'
_VERIFY = """
const { library, secrets, body, headers } = JSON.parse(require("fs").readFileSync(0));
const { Webhook } = require(library);
for (const secret of secrets) {
  if (new Webhook(secret).verify(body, headers).number !== 7) throw new Error("another body");
  let took = true;
  try { new Webhook(secret).verify(body + " ", headers); } catch { took = false; }
  if (took) throw new Error("took a changed body");
}
"""


def main(folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)]) -> None:
    """Verify a message with each library."""
    secrets = [signatures.new_secret() for _ in range(2)]
    elsewhere = datetime.now(timezone(timedelta(hours=5)))
    headers = signatures.headers(signatures.message_id(uuid4(), 7), elsewhere, _BODY, secrets)
    message = {"secrets": [signatures.show_secret(each) for each in secrets], "body": _BODY, "headers": headers}
    for library in LIBRARIES:
        given = msgspec.json.encode({"library": library, **message})
        subprocess.run(["node", "-e", _VERIFY], cwd=folder, input=given, check=True)
        print(f"{library}: verified")


if __name__ == "__main__":
    typer.run(main)
