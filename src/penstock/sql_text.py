"""What can be told from a SQL text without a parser or a JVM.

Enough to refuse, when the file is read, what Spark would refuse at the start; Spark's own analyser has the last
word before a query starts.
"""

from __future__ import annotations

import re

_NOISE = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_CALL = re.compile(r"\b([a-z_][a-z0-9_]*)\s*\(", re.IGNORECASE)
_WORD = re.compile(r"\b[a-z_][a-z0-9_]*\b", re.IGNORECASE)
_OVER = re.compile(r"^\s*(filter\s*\([^)]*\)\s*)?over\b", re.IGNORECASE)

AGGREGATES = frozenset(
    [
        "any",
        "any_value",
        "approx_count_distinct",
        "approx_percentile",
        "array_agg",
        "avg",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bool_and",
        "bool_or",
        "collect_list",
        "collect_set",
        "corr",
        "count",
        "count_if",
        "count_min_sketch",
        "covar_pop",
        "covar_samp",
        "every",
        "first",
        "first_value",
        "grouping",
        "histogram_numeric",
        "kurtosis",
        "last",
        "last_value",
        "listagg",
        "max",
        "max_by",
        "mean",
        "median",
        "min",
        "min_by",
        "mode",
        "percentile",
        "percentile_approx",
        "regr_avgx",
        "regr_avgy",
        "regr_count",
        "skewness",
        "some",
        "std",
        "stddev",
        "stddev_pop",
        "stddev_samp",
        "string_agg",
        "sum",
        "try_avg",
        "try_sum",
        "var_pop",
        "var_samp",
        "variance",
    ]
)
# Not current_timestamp() and the like: Spark takes them from the offset log, so a replay sees the same moment.
_NONDETERMINISTIC = frozenset(
    [
        "rand",
        "randn",
        "random",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "reflect",
        "java_method",
        "randstr",
        "uniform",
    ]
)
_CURRENT_TIME = frozenset(["now", "curdate", "current_timestamp", "current_date", "current_time", "localtimestamp"])
_NOT_MAP_LIKE = frozenset({"join", "union", "distinct", "limit", "order", "sort", "intersect", "except", "lateral"})


def aggregates(query: str) -> bool:
    """Whether the query groups rows."""
    text = _bare(query)
    if re.search(r"\bgroup\s+by\b", text, re.IGNORECASE) or re.search(r"\bselect\s+distinct\b", text, re.IGNORECASE):
        return True
    for call in _CALL.finditer(text):
        if re.search(r"\b(like|ilike)\s*$", text[: call.start()], re.IGNORECASE):
            continue  # `name like any ('a%', 'b%')` compares
        if call[1].lower() in AGGREGATES and not _OVER.match(_after_call(text, call.end())):
            return True
    return False


def nondeterministic_functions(query: str) -> tuple[str, ...]:
    """The functions in the query that may give another value when the batch is replayed."""
    calls = {name.lower() for name in _CALL.findall(_bare(query))}
    return tuple(sorted(calls & _NONDETERMINISTIC))


def is_map_like(query: str) -> bool:
    """Whether the query only selects and filters."""
    words = {name.lower() for name in _WORD.findall(_bare(query))}
    return not aggregates(query) and not words & _NOT_MAP_LIKE and not words & _CURRENT_TIME


def _bare(query: str) -> str:
    """The query without texts and comments."""
    return _NOISE.sub(" ", query)


def _after_call(text: str, start: int) -> str:
    """What follows the closing bracket of the call whose arguments begin at `start`."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return text[index + 1 :]
    return ""
