"""Programs for Node.js or another interpreter, which contain their own assertions."""

import asyncio
import os
from pathlib import Path

from tests.patience import PATIENCE_S


async def runs(program: Path, interpreter: str = "node", **facts: str) -> None:
    """Run a program in its folder, with facts as its environment; fails with its output."""
    process = await asyncio.create_subprocess_exec(
        interpreter,
        program.name,
        cwd=program.parent,
        env={"PATH": os.environ["PATH"], **facts},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode()
