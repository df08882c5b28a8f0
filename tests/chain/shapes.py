"""The shape of JSON: which fields an object has, and what kind of value each holds.

Objects of one kind are found by their place in an answer, such as `result.block<praos>.transactions[].fee`, and by the
field that tells kinds apart at one place (`type`, `clause`, `era`, `language` or `code`).
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_KIND = ("type", "clause", "era", "language", "code")
_FIELD = re.compile(r"(?!(?:[0-9a-f]{2})*$)[a-z][A-Za-z]{0,49}[46]?")
_HASH = re.compile(r"(?:[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{128})")
_ARBITRARY = re.compile(r"labels\.\*\.json$")  # metadata has the shape that its author gave it


@dataclass
class Shapes:
    """The objects and values that were met at each place."""

    objects: Counter[str] = field(default_factory=Counter)
    fields: Counter[tuple[str, str]] = field(default_factory=Counter)
    values: set[tuple[str, str]] = field(default_factory=set)

    def meet(self, value: Any, place: str) -> "Shapes":
        """Add a value and all its parts."""
        if isinstance(value, dict):
            place += next((f"<{value[name]}>" for name in _KIND if isinstance(value.get(name), str | int)), "")
            place = re.sub(r".*<(all|any|some|before|after|signature)>$", r"clause<\1>", place)  # these nest
            self.objects[place] += 1
            named = {name if _FIELD.fullmatch(name) else "*": part for name, part in value.items()}
            self.fields.update((place, name) for name in named)
            for name, part in value.items():
                self._meet_part(part, f"{place}.{name if name in named else '*'}")
        elif isinstance(value, list):
            for part in value:
                self._meet_part(part, f"{place}[]")
        else:
            self.values.add((place, _kind_of(value)))
        return self

    def _meet_part(self, part: Any, place: str) -> None:
        if not _ARBITRARY.search(place):
            self.meet(part, place)

    def always(self, place: str) -> set[str]:
        """The fields that every object at a place has."""
        return {name for (at, name), count in self.fields.items() if at == place and count == self.objects[place]}

    def strange(self, known: "Shapes") -> list[str]:
        """What is met here and not in `known`, and the fields that are missing here and always there."""
        unknown = [f"{place} is unknown" for place in self.objects if place not in known.objects]
        unknown += [f"{place}.{name} is unknown" for place, name in self.fields if (place, name) not in known.fields]
        unknown += [f"{place} is unknown as {kind}" for place, kind in self.values - known.values]
        missing = [
            f"{place}.{name} is missing"
            for place in self.objects
            for name in known.always(place)
            if name not in self.always(place)
        ]
        return sorted(unknown + missing)


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        hashed = _HASH.fullmatch(value)
        return f"a hash of {len(value) // 2} bytes" if hashed else "a ratio" if "/" in value[1:] else "text"
    return "null" if value is None else type(value).__name__
