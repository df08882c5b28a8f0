"""Every statement of the program."""

import importlib
import pkgutil
from typing import Any

import api
import indexer
from shared import sql


def every_statement() -> list[sql.Command | sql.Query[Any]]:
    """The statements, which are known once all modules of the program are imported."""
    for package in (indexer, api):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    return sorted(sql.statements, key=lambda statement: (str(statement.source), statement.name))
