"""Options of the programs among the tests, as ``key=value`` words."""

import sys
from typing import Self

from pydantic import BaseModel, ValidationError


class Options(BaseModel, frozen=True, extra="forbid"):
    @classmethod
    def parse(cls, usage: str | None) -> Self:
        """Return the options of this command line, or exit with what is wrong and ``usage``."""
        try:
            return cls.model_validate(dict(word.partition("=")[::2] for word in sys.argv[1:]))
        except ValidationError as error:
            sys.exit(f"{error}\n\n{usage}")
