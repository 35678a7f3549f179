"""A function of the user's own."""

from __future__ import annotations

import importlib
from typing import Annotated, ClassVar

from pydantic import Field

from penstock.errors import UsageError
from penstock.steps import Built, Step


class Python(Step):
    """Calls `module:function` with the DataFrame and takes the DataFrame it returns.

    The module is found in the pipeline file's folder or on the Python path.
    """

    example: ClassVar[str] = 'python: {function: "steps:only_known_users", deterministic: true}'
    shorthand: ClassVar[str | None] = "function"

    function: Annotated[str, Field(pattern=r"^[\w.]+:\w+$", description="module:function, DataFrame to DataFrame.")]
    deterministic: Annotated[bool, Field(description="Your word that the same rows always give the same result.")] = (
        False
    )
    stateful: Annotated[bool, Field(description="Whether the function groups, joins or keeps state.")] = False

    @property
    def nondeterminism(self) -> str:
        return "" if self.deterministic else "Penstock can't see into a Python function"

    @property
    def keeps_state(self) -> bool:
        return self.stateful

    def apply(self, built: Built, *, index: int) -> Built:
        from pyspark.sql import DataFrame

        module_name, _, name = self.function.partition(":")
        try:
            function = getattr(importlib.import_module(module_name), name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"step {index + 1}: there is no module {error.name}",
                why=f"python: {self.function} was looked for in the pipeline file's folder and on the Python path",
                fix="put the module beside the pipeline file, or install it",
            ) from None
        except AttributeError:
            raise UsageError(
                f"step {index + 1}: module {module_name} has no function {name}",
                fix="check the name after the colon",
            ) from None
        result = function(built.frame)
        if not isinstance(result, DataFrame) and not hasattr(result, "writeStream"):
            raise UsageError(
                f"step {index + 1}: {self.function} returned {type(result).__name__}, not a DataFrame",
                why="a python step takes the stream and returns the stream that follows",
                fix="return the DataFrame at the end of the function",
            )
        built.frame = result
        return built
