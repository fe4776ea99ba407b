"""A rule: everything about one kind of finding, in one row.

A rule about guards has the kinds of guards that it explains, when it applies to a root cause, and what to do then; of
the rules about a kind, the first that applies counts (`advise` in `rules/recompiles.py`). Any other rule has the texts
of its finding, which the module of its subject in `rules/` makes with `report`. `registry.py` has all of them by name.

To add a rule: a row in the module of its subject, and a program in tests/advice that follows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..decode.guards.path import format_expression
from ..events import Event
from ..formatting import format_change, format_first_line, format_function, format_line, format_times
from .causes.cause import Cause
from .change import CodeChange, Settings, fix_code
from .evidence import find_first, find_shared_place, get_ids, get_place, is_placed
from .finding import Finding, get_severity, list_steps
from .source_edits import replace_argument

#: From so many seconds on, a recompile that is expected to happen once is worth a look all the same.
EXPENSIVE_S = 5.0
#: The first version of torch in which torch.compile has `isolate_recompiles`.
ISOLATION_SINCE = (2, 13)
_FACT = re.compile(r"\{(\w+)")


@dataclass(frozen=True)
class Setting:
    """A setting of torch. Without a value it is a list of names, which gets torch's names of all that changed."""

    name: str
    value: str | int | bool | None = None


@dataclass(frozen=True)
class Wrap:
    """The guarded value in another form where the user's call has it as an argument: `Wrap("{0}.contiguous()")`."""

    form: str


@dataclass(frozen=True)
class FirstOf:
    """The first of several changes that can be made."""

    ways: tuple[Setting | Wrap | str, ...]


#: A way to follow a rule. A text is for what no program can change.
Way = Setting | Wrap | FirstOf | str


def get_usual_ceiling(cause: Cause, repeated: str = "high") -> str:
    """The ceiling of a change that is expected to happen once: low, or medium where that once took long.

    `repeated` is the ceiling where it happened more than once in a function.
    """
    if cause.max_per_function > 1:
        return repeated
    return "medium" if cause.seconds >= EXPENSIVE_S else "low"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a rule says in one situation.

    `action` is what to do, as code where there is code, and `why` says why; each is one or more sentences. Of several
    actions, the first counts whose facts are known. `ways` are the ways to follow it, the preferred one first; without
    any, `action` says all. `ceiling` is the worst severity that the finding can have, or computes it; by default it is
    that of a change that is expected once. `what` replaces "source was a, then b" in the title. What a case does not
    say of these, its rule says. With `is_expected` every compiled version is needed, and no change of the program that
    keeps what it computes removes one.

    The texts, those in `ways` included, can name facts about the cause in braces: `{name}`, and the other `WORDS`.
    """

    when: Callable[[Cause], bool] = lambda cause: True
    action: str | tuple[str, ...] = ""
    why: str | None = None
    ways: tuple[Way, ...] = ()
    ceiling: str | Callable[[Cause], str] | None = None
    what: str | None = None
    is_expected: bool = False


@dataclass(frozen=True)
class Rule(Case):
    """One kind of finding, as `finding.rule` names it; its page in docs/cookbook has that name too.

    `kinds` are the kinds of guards that it explains. If one of its `cases` applies, that one counts instead of what the
    rule itself says. `advise` computes what to do where texts cannot say it; `action` is then what the cookbook says.
    `it` names the guarded value where the user's code has no name for it, and `words` are more facts for the texts.

    `title` is that of a finding that is not about a guard. `severity` is its severity, if it does not depend on its
    seconds and number. With `many` it is medium from so many occurrences on, and low before; if it is not `is_counted`,
    only the seconds count. What took less than `worth_s` s, or occurred less than `worth_count` times, is not reported.
    With `is_at_user_line` its rows name the user's line. `cost` is what following the advice costs: hardly any change
    is free, and the user weighs which cost is higher. `docs` is the page of torch's documentation, see `registry.py`;
    None for what is not about torch. `cost_kind`: the finding is a compile cost of that kind too; `cause` is then what
    takes the time in a few words, and `headline` what a plan says first if this is its largest cost.

    `gives_fewer`: in words alone, its advice gives fewer compiled versions, or depends on what the program means, so no
    plan claims that it saves any. `is_certain`: the guards prove that its advice removes the recompiles; where they do
    not, a plan says that it may save them.
    """

    id: str
    kinds: tuple[str, ...] = ()
    cases: tuple[Case, ...] = field(default=(), kw_only=True)
    advise: Callable[[Rule, Cause], Advice] | None = field(default=None, kw_only=True)
    it: str = field(default="the argument", kw_only=True)
    words: Mapping[str, Callable[[Cause], str]] = field(default_factory=dict, kw_only=True)
    title: str = field(default="", kw_only=True)
    severity: str | None = field(default=None, kw_only=True)
    many: int | None = field(default=None, kw_only=True)
    is_counted: bool = field(default=True, kw_only=True)
    worth_s: float = field(default=0.0, kw_only=True)
    worth_count: int = field(default=1, kw_only=True)
    is_at_user_line: bool = field(default=False, kw_only=True)
    cost: str | None = field(default=None, kw_only=True)
    docs: str | None = field(default="recompiles", kw_only=True)
    cost_kind: str | None = field(default=None, kw_only=True)
    cause: str = field(default="", kw_only=True)
    headline: str = field(default="", kw_only=True)
    gives_fewer: bool = field(default=False, kw_only=True)
    is_certain: Callable[[Cause], bool] = field(default=lambda cause: True, kw_only=True)


@dataclass(frozen=True)
class Advice:
    """What a rule says about a cause; see `Case`. `has_recipe`: the library offers what `action` says, and it removes
    the recompiles. `is_certain`: it is proven that following it removes them.
    """

    rule: Rule
    action: str
    explanation: str = ""
    changes: tuple[CodeChange, ...] = ()
    ceiling: str = "high"
    what_changed: str = ""
    is_expected: bool = False
    has_recipe: bool = False
    is_certain: bool = True

    @property
    def fix(self) -> Settings | None:
        """The settings of the first change that needs no edit; None if all do."""
        return next((change.settings for change in self.changes if change.settings and not change.edits), None)

    @property
    def suggestion(self) -> str:
        return " ".join(filter(None, (self.action, self.explanation)))


def apply_rule(rule: Rule, cause: Cause, case: Case | None = None) -> Advice:
    """What a rule says about a cause that it applies to; `case` is the one that applies, if that is known."""
    if case is None:
        if rule.advise is not None:
            return rule.advise(rule, cause)
        case = next((case for case in rule.cases if case.when(cause)), rule)
    words = _Words(rule, cause)
    ceiling = case.ceiling or rule.ceiling or get_usual_ceiling
    return Advice(
        rule,
        words.fill(*([case.action] if isinstance(case.action, str) else case.action)),
        words.fill((rule.why if case.why is None else case.why) or ""),
        tuple(change for way in case.ways if (change := _make_change(way, cause, words)) is not None),
        ceiling if isinstance(ceiling, str) else ceiling(cause),
        words.fill((rule.what if case.what is None else case.what) or ""),
        case.is_expected,
    )


def _make_change(way: Way, cause: Cause, words: _Words) -> CodeChange | None:
    """A way as a change; None if it cannot be made for this cause."""
    match way:
        case str():
            text = words.fill(way)
            return CodeChange(text=text) if text else None
        case Wrap(form):
            edits = replace_argument(cause.values_at, form)
            return CodeChange(edits=edits) if edits else None
        case Setting(name, value):
            settings = make_dynamic_fix(cause, name) if value is None else {name: value}
            return CodeChange(settings=settings) if settings else None
        case FirstOf(ways):
            found = (_make_change(one, cause, words) for one in ways)
            return next((change for change in found if change is not None), None)


class _Words:
    """The facts about a cause that texts name; each is computed once, when a text needs it."""

    def __init__(self, rule: Rule, cause: Cause):
        self._cause = cause
        self._make: dict[str, Callable[[Cause], str]] = {
            "name": partial(get_name, fallback=rule.it),
            **WORDS,
            **rule.words,
        }
        self._known: dict[str, str] = {}

    def fill(self, *templates: str) -> str:
        """The text of the first template whose facts are known, or of the last one. Other facts are empty."""
        for template in templates:
            names = _FACT.findall(template)
            for name in names:
                if name not in self._known:
                    self._known[name] = self._make[name](self._cause)
            if all(map(self._known.get, names)):
                break
        return template.format_map(self._known).strip()


def get_name(cause: Cause, fallback: str) -> str:
    """The guarded value without its tensor property, as the user's code names it, or `fallback`."""
    if cause.path.is_stack_value:
        return cause.name_handed_over(cause.path.owner)
    return cause.user.value or format_expression(cause.path.owner.text) or fallback


def format_user_line(cause: Cause) -> str:
    """` (model.py:31: y = x + k)`: what is known of the user's line that made the guard; "" if nothing is."""
    code, where = format_line(cause.user_code or "", 80), cause.user_place_text
    if not where:
        return ""
    return f" ({where}: {code})" if code else f" ({where})"


def make_dynamic_fix(cause: Cause, setting: str = "dynamic_sources") -> Settings | None:
    """`dynamic_sources` for the value and for the sizes that changed with it; None if torch's names are not certain."""
    names = cause.torch_sources
    return {setting: ",".join(dict.fromkeys((*names, *cause.also_named)))} if names else None


def write_isolation(cause: Cause) -> str:
    """How several compiled objects of one code keep their entries apart; "" if this version of torch cannot."""
    if cause.facts.torch_version < ISOLATION_SINCE:
        return ""
    return (
        "If each has to be compiled for itself, give it its own entries, torch.compile(..., isolate_recompiles=True): "
        "they no longer count towards one recompile limit."
    )


#: What every text can name beside `{name}`: the user's line in parentheses, the guarded value, its values, the setting
#: that makes it dynamic as code, and how several objects keep their entries apart.
WORDS: Mapping[str, Callable[[Cause], str]] = {
    "line": format_user_line,
    "source": lambda cause: format_expression(cause.source),
    "values": lambda cause: format_change(cause.values),
    "dynamic": lambda cause: fix_code(make_dynamic_fix(cause)) or "",
    "isolate": write_isolation,
}


def begin_lower(text: str) -> str:
    """A sentence as the rest of another one."""
    return text[:1].lower() + text[1:]


def list_changes(*ways: Settings | CodeChange | str | None) -> tuple[CodeChange, ...]:
    """The ways to follow an advice: settings, changes of the code, or a text for what no program can change."""
    changes = (CodeChange(text=way) if isinstance(way, str) else way for way in ways if way)
    return tuple(way if isinstance(way, CodeChange) else CodeChange(settings=way) for way in changes)


def report(rule: Rule, rows: Iterable[Event], facts: Mapping[str, Any] | None = None, **fields: Any) -> Finding:
    """A finding of a rule that is not about a guard; `rows` are its evidence.

    `facts` are what the texts of the rule name in braces; `{times}`, `{function}` and `{reason}` are those of the rows.
    `fields` are fields of the finding: those that are not given come from the rule and the rows. The function is that
    of the rows, if they are of one.
    """
    rows = list(rows)
    place = find_shared_place(get_place(row) for row in rows if is_placed(row))
    reason = find_first(getattr(row, "reason", None) for row in rows)
    known = {
        "times": format_times(len(rows)),
        "reason": format_first_line(reason or "no reason given"),
        **(facts or {}),
    }
    if place:
        known.setdefault("function", format_function(**place))
    texts = (text.format_map(known) for text in (str(rule.action), rule.why or ""))
    user = ("user_file", "user_line", "user_code") if rule.is_at_user_line else ()
    given: dict[str, Any] = {
        "severity": _rate(rule, fields.get("seconds_lost", 0.0), fields.get("count", len(rows))),
        "title": rule.title.format_map(known),
        "seconds_lost": 0.0,
        "evidence": get_ids(rows),
        "suggestion": " ".join(filter(None, texts)),
        "cost": rule.cost,
        "count": len(rows),
        "steps": list_steps(rows),
        **place,
        **{name: find_first(getattr(row, name) for row in rows) for name in user},
    }
    return Finding(rule.id, **(given | fields))


def _rate(rule: Rule, seconds: float, count: int) -> str:
    if rule.severity is not None:
        return rule.severity
    if rule.many is not None:
        return "medium" if count >= rule.many else "low"
    ceiling = rule.ceiling if isinstance(rule.ceiling, str) else "high"
    return get_severity(seconds, count if rule.is_counted else 1, ceiling)
