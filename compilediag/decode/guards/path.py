"""A guarded value, parsed once: `L['self']._modules['lin'].weight` as torch names it, `self.lin.weight` to the user.

torch's names of values are Python expressions (torch/_dynamo/source.py, read at torch 2.11, 2.13 and 2.15). They are
parsed with `ast` and never evaluated: what is inside of a string constant stays a constant. `sources/guards` reads the
value of a path by walking its steps.

There are three spellings of a value. `torch_text` is torch's. `text` is what the tables have: the user's names, with
sizes as torch asks for them, `ids.size()[0]`. `code` is what people see: `ids.shape[0]`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...formatting import MAX_TEXT, cache_short, format_line
from ...system.interrupts import pass_on

#: Longer texts, in characters, are not parsed: parsing has to stay cheap whatever the program's data is.
MAX_PARSED = MAX_TEXT
#: A string constant, quotes included. The quantifiers are possessive, so a missing quote costs one pass.
STRING = r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\""""
_NAME_OR_BRACKET = re.compile(r"[\w.]+|[\[(]")
_INSIDE_BRACKETS = re.compile(rf"{STRING}|[()\[\]{{}}]|[^()\[\]{{}}'\"]+", re.S)
#: The beginning of what Python prints of an object that is no expression: `<class 'list'>`, `<Color.RED: 1>`; and the
#: index of any instance, `layers[*]`.
_STRING_OR_OBJECT = re.compile(rf"{STRING}|<(?=[A-Za-z_])|(?<=\[)\*(?=\])", re.S)
_ANGLE = re.compile(rf"{STRING}|[<>]", re.S)
_HIDDEN = re.compile(r"__object_(\d+)__")
_ONE_STRING = re.compile(STRING, re.S)
_VALID_ESCAPES = re.compile(r"""(?:[^\\]|\\[\\'"abfnrtvxuU0-3\n])*+""")
_NUMBER_AND_WORD = re.compile(r"(?<!\w)\d[\w.]*?(?:if|or|and|in|is|else|not|for)")
_SIMPLE_KEY = re.compile(r"[\w.]+")
#: Most characters of a value or condition that is shown.
_MAX_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Opaque:
    """A key that is no constant and no path, as torch prints it: `torch.float32`."""

    text: str


class Step(NamedTuple):
    """One step from a value to the next.

    `kind` is "attr" (`.value`), "item" (`[value]`), "method" (`.value()`), "function" (`value(..., *arguments)`), or
    "call" (`()`).
    """

    kind: str
    value: object = None
    arguments: tuple[object, ...] = ()


#: The index of a value that each instance of a repeated module has: `layers[*]`.
ANY = Opaque("*")
_LIST = Step("function", "list")

#: Attributes of a module with its hooks, by numbers that torch gives them, and what people see of one.
_HOOKS = {
    "_forward_hooks": "forward hook",
    "_forward_pre_hooks": "forward pre-hook",
    "_backward_hooks": "backward hook",
    "_backward_pre_hooks": "backward pre-hook",
}
#: Attributes that hold the members of a module or an object. Users write an item of them as an attribute.
MEMBER_DICTS = frozenset({"_modules", "_parameters", "_buffers", "__dict__"})
_ITEM, _ATTRIBUTE, _SAME = "{0}[{1}]", "{0}.{1}", "{0}"
#: Functions in torch's names of values, and the same as users write it.
_FUNCTIONS = {
    **dict.fromkeys(("dict.__getitem__", "list.__getitem__", "tuple.__getitem__"), _ITEM),
    **dict.fromkeys(("___odict_getitem", "___set_getitem", "___tuple_iterator_getitem"), _ITEM),
    **dict.fromkeys(("getattr", "object.__getattribute__"), _ATTRIBUTE),
    **dict.fromkeys(("___from_numpy", "___as_tensor", "___unwrap_async_collective_tensor"), _SAME),
    "___list_reverseiterator_backing_list": _SAME,
    "dict.keys": "{0}.keys()",
    "___namedtuple_fields": "{0}._fields",
    **dict.fromkeys(("___dataclass_fields", "dataclasses.fields"), "dataclasses.fields({0})"),
    **{name: f"{name}({{0}})" for name in ("type", "len", "list", "dict", "tuple", "set", "frozenset")},
    **{name: f"{name}({{0}})" for name in ("int", "float", "complex", "bool", "str", "bytes")},
    "cast_symbool_to_symint_guardless": "cast_symbool_to_symint_guardless({0})",
}
#: Functions of torch that begin a name, with their constant arguments.
_ROOT_FUNCTIONS: dict[str, Callable[[tuple[object, ...]], str]] = {
    "___get_torch_function_mode_stack_at": lambda found: f"torch_function_mode_stack[{_spell_key(found[0])}]",
    "___get_current_stream": lambda found: f"torch.{found[0]}.current_stream({found[1] if found[1:] else ''})",
    "__import__": lambda found: str(found[0]),
}
#: Methods whose items are the sizes and strides of a tensor's dimensions, and how users write such an item.
_OF_DIMENSIONS = {"size": "{0}.shape[{1}]", "stride": "{0}.stride({1})"}
#: Steps to properties of a tensor that are no values of their own.
_PROPERTIES = (("method", "dim"), *(("attr", name) for name in ("dtype", "device", "requires_grad", "layout")))
#: Parameters of a function, of which an index tells one from another.
_ARGUMENTS = "args"


@dataclass(frozen=True, slots=True)
class Path:
    """Where a value is: a root and the steps from there.

    `scope` is "L" for the locals of the compiled function, "G" for its globals, "" for a bare name, and "function"
    where a function of torch returns the root for some constant `arguments`.
    """

    root: str
    scope: str = ""
    steps: tuple[Step, ...] = ()
    arguments: tuple[object, ...] = ()

    def then(self, kind: str, value: object = None) -> Path:
        """The path with one more step."""
        return Path(self.root, self.scope, (*self.steps, Step(kind, value)), self.arguments)

    def extend(self, steps: tuple[Step, ...]) -> Path:
        """The path with more steps at its end."""
        return Path(self.root, self.scope, self.steps + steps, self.arguments)

    @property
    def parent(self) -> Path:
        """The path without its last step."""
        return Path(self.root, self.scope, self.steps[:-1], self.arguments)

    @staticmethod
    @cache_short(8192)
    def of(source: str) -> Path:
        """The value that a cell of a table names, such as `guard_source`. A text that is no path is a root as it is."""
        expression = parse_expression(source, False)
        path = None if expression is None else expression.read_path(expression.node)
        return Path(source.strip()) if path is None else path

    @property
    def text(self) -> str:
        """The value in the user's names, as the tables have it: `self.lin.weight`, `d['k']`, `x.size()[0]`."""
        text, steps = self.root, self.steps
        if self.scope == "function":
            text = _ROOT_FUNCTIONS[self.root](self.arguments)
        elif self.root.startswith("__builtins_dict__") and steps and steps[0].kind == "item":
            text, steps = str(steps[0].value), steps[1:]
        elif self.root.startswith("__import_") and self.scope == "G":
            # Dynamo imports modules for its own use as `__import_torch_dot_nn_dot_functional`.
            text = self.root.removeprefix("__import_").replace("_dot_", ".")
        while steps:
            text, steps = _spell_step(text, steps)
        return text

    @property
    def code(self) -> str:
        """The value as the user would write it: `text`, but with `x.shape[0]` for a size, `x.stride(0)`, and
        `block.<forward hook>.seen` for what a hook of a module has.
        """
        path = self._name_hooks()
        if self.dim is None:
            return path.text
        return _OF_DIMENSIONS[str(self.steps[-2].value)].format(path.owner.text, self.dim)

    def _name_hooks(self) -> Path:
        """The path with one step, `<forward hook>`, for those to a hook and to the object that it is a method of."""
        steps: list[Step] = []
        for step in self.steps:
            before = steps[-1] if steps else Step("")
            hook = _HOOKS.get(str(before.value)) if before.kind == "attr" else None
            if hook is not None and _read_key_position(step) is not None:
                position = Path.of(_spell_key(step.value)).steps[-1].value
                number = f" {position + 1}" if isinstance(position, int) and position else ""
                steps[-1] = Step("attr", f"<{hook}{number}>")
            elif step[:2] != ("attr", "__self__") or not str(before.value).startswith("<"):
                steps.append(step)
        return self if len(steps) == len(self.steps) else Path(self.root, self.scope, tuple(steps), self.arguments)

    @property
    def torch_text(self) -> str:
        """The value as torch names it in a guard and in its guard tree."""
        text = f"{self.scope}[{self.root!r}]" if self.scope in ("L", "G") else self.root
        for kind, value, arguments in self.steps:
            if kind == "function":
                text = f"{value}({', '.join([text, *map(_print_key, arguments)])})"
            else:
                text += {"attr": f".{value}", "method": f".{value}()", "call": "()"}.get(
                    kind
                ) or f"[{_print_key(value)}]"
        return text

    @property
    def torch_name(self) -> str | None:
        """torch's own name of a local or global, as its settings take it: `L['self']._buffers['b']`.

        None if a step is more than an attribute, an index or a plain key.
        """
        # torch leaves the scope of locals out in the texts of C++.
        if self.scope == "function" or not self.root.isidentifier() or not all(map(_is_plain, self.steps)):
            return None
        return Path(self.root, self.scope or "L", self.steps).torch_text

    @property
    def is_dimension(self) -> bool:
        """True for a number of a tensor's geometry: the size or stride of a dimension, or the offset in its storage."""
        return self.dim is not None or self.steps[-1:] == (Step("method", "storage_offset"),)

    @property
    def dim(self) -> int | None:
        """The dimension that it is the size or stride of; None for anything else."""
        match self.steps[-2:]:
            case Step("method", "size" | "stride"), Step("item", int(dim)):
                return dim
        return None

    @property
    def tensor_property(self) -> str | None:
        """What it is of a tensor: "size", "stride", "dim", "dtype", ...; None for a value of its own."""
        match self.steps[-2:]:
            case Step("method", "size" | "stride" as name), Step("item", int()):
                return str(name)
            case *_, Step(kind, name) if (kind, name) in _PROPERTIES:
                return str(name)
        return None

    @property
    def is_size(self) -> bool:
        """True for the size of a tensor's dimension."""
        return self.tensor_property == "size"

    @property
    def owner(self) -> Path:
        """The tensor whose size, rank or other property this is; the path itself if it is a value of its own."""
        found = self.tensor_property
        if found is None:
            return self
        return self.parent.parent if found in _OF_DIMENSIONS else self.parent

    @property
    def subject(self) -> Path:
        """What a guard is about: of `len(x)` and of `x.size()[0]` it is x."""
        owner = self.owner
        return owner.parent if owner.steps[-1:] == (Step("function", "len"),) else owner

    @property
    def names(self) -> tuple[str, ...]:
        """The root, and the attributes and keys after it that are texts."""
        steps = (step for step in self.steps if step.kind in ("attr", "item"))
        return (self.root, *(step.value for step in steps if isinstance(step.value, str)))

    @property
    def own_name(self) -> str | None:
        """The variable or attribute that it is; None for an item, a size or what a function returns."""
        last = self.steps[-1] if self.steps else Step("attr", self.root)
        return str(last.value) if last.kind == "attr" else None

    @property
    def is_module_attribute(self) -> bool:
        """True for what begins with an attribute of `self`, as the code of a module reads its own state."""
        return self.root == "self" and self.steps[:1] != () and self.steps[0].kind == "attr"

    @property
    def is_stack_value(self) -> bool:
        """True for a value that Dynamo passed to the code after a graph break: the user's code has no name for it."""
        return self.root.startswith("___stack")

    def has_attribute(self, *names: str) -> bool:
        """True if one of its steps is an attribute of such a name."""
        return any(step.kind == "attr" and step.value in names for step in self.steps)

    @property
    def of_any_instance(self) -> Path:
        """One path for all instances of a repeated module: `self.layers[3].attn.n` -> `self.layers[*].attn.n`.

        An index right after the first name (`args[0].size()[0]`) distinguishes inputs, so it stays, except for dicts
        in a list: `targets[3]['boxes']` -> `targets[*]['boxes']`.
        """
        first, second = (*self.steps[:2], Step(""), Step(""))[:2]
        if type(first.value) is int and isinstance(second.value, str) and first.kind == second.kind == "item":
            return self if self.root == _ARGUMENTS else self._replace_index(0)
        if first.kind not in ("attr", "method") or any(step.kind == "function" for step in self.steps):
            return self
        return self.of_any_item(
            lambda before, after: before[-1:] != (_LIST,) and after is not None and after.kind in ("attr", "method")
        )

    def of_any_item(self, is_meant: Callable[[tuple[Step, ...], Step | None], bool]) -> Path:
        """The path with `[*]` for each index that is meant, by the steps before it and the step after it.

        The index of a dimension is none. `d[list(d.keys())[0]]` has one: the steps before it are those to the list.
        """
        path = self
        for at, step in enumerate(self.steps):
            after = self.steps[at + 1] if at + 1 < len(self.steps) else None
            is_index = step.kind == "item" and type(step.value) is int
            is_before_size = after is not None and after.kind == "method" and after.value in _OF_DIMENSIONS
            before = self.steps[:at] if is_index and not is_before_size else _read_key_position(step)
            if before is not None and is_meant(before, after):
                path = path._replace_index(at)
        return path

    def _replace_index(self, at: int) -> Path:
        return Path(self.root, self.scope, (*self.steps[:at], Step("item", ANY), *self.steps[at + 1 :]), self.arguments)

    def holds(self, other: Path) -> bool:
        """True if the other value is this one, or something in it: a size, an item, an attribute."""
        return other.find_steps_below(self) is not None

    def find_steps_below(self, parent: Path) -> tuple[Step, ...] | None:
        """The steps from the value of `parent` to this one; None if this path does not begin with that one."""
        count = len(parent.steps)
        if (self.root, self.scope, self.arguments) != (parent.root, parent.scope, parent.arguments):
            return None
        return self.steps[count:] if self.steps[:count] == parent.steps else None


def _read_key_position(step: Step) -> tuple[Step, ...] | None:
    """The steps to the list of the keys of a dict, if a key is named by its position in it."""
    if step.kind != "item" or not isinstance(step.value, Opaque):
        return None
    *keys, index = Path.of(step.value.text).steps or (step,)
    return tuple(keys) if keys[-1:] == [_LIST] and index.kind == "item" and type(index.value) is int else None


def _is_plain(step: Step) -> bool:
    """True for an attribute, an index, or a key of letters, digits and dots."""
    key = step.value
    is_index = type(key) is int and key >= 0
    is_word = isinstance(key, str) and _SIMPLE_KEY.fullmatch(key) is not None
    # `getattr(x, 'a b')` is an attribute too.
    is_name = isinstance(key, str) and key.isidentifier()
    return (step.kind == "attr" and is_name) or (step.kind == "item" and (is_index or is_word))


def _print_key(key: object) -> str:
    return key.torch_text if isinstance(key, Path) else _spell_key(key)


def _spell_key(key: object) -> str:
    if isinstance(key, Path | Opaque):
        return key.text
    return repr(key)


def _spell_step(text: str, steps: tuple[Step, ...]) -> tuple[str, tuple[Step, ...]]:
    """The text with the next step, and the steps after it. A few pairs of steps are one to the user."""
    (kind, value, arguments), *rest = steps
    following = steps[1] if rest else Step("")
    if kind == "attr" and value in MEMBER_DICTS and following.kind == "item" and type(following.value) is str:
        key = following.value
        index = key if key.isdecimal() else repr(key)
        return text + (f".{key}" if key.isidentifier() else f"[{index}]"), steps[2:]
    if (text, kind, value) == ("os.environ", "attr", "_data") and type(following.value) is bytes:
        return f"{text}[{following.value.decode(errors='replace')!r}]", steps[2:]
    if kind == "function":
        template = _FUNCTIONS[str(value)]
        if template == _ATTRIBUTE:
            return _spell_attribute(text, str(arguments[0])), steps[1:]
        if value == "___as_tensor" and following == Step("method", "item"):
            steps = steps[1:]
        return template.format(text, *map(_spell_key, arguments)), steps[1:]
    if kind == "attr":
        return _spell_attribute(text, str(value)), steps[1:]
    ends = {"item": f"[{_spell_key(value)}]", "method": f".{value}()", "call": "()"}
    return text + ends[kind], steps[1:]


def _spell_attribute(text: str, name: str) -> str:
    return f"{text}.{name}" if name.isidentifier() or name[:1] == "<" else f"getattr({text}, {name!r})"


@dataclass(frozen=True)
class Expression:
    """A parsed text. Objects that torch printed in it are names in the tree; `text` has these names too.

    `has_scopes`: it is torch's, so `L` and `G` in it are the locals and globals.
    """

    node: ast.expr
    text: str
    objects: tuple[str, ...]
    has_scopes: bool = True

    def get_text(self, node: ast.expr) -> str:
        """The original text of a part."""
        return self.restore(self._cut(node))

    def _cut(self, node: ast.expr) -> str:
        """The text of a part of the tree."""
        if self.text.isascii() and "\n" not in self.text:
            # `ast.get_source_segment` looks at every character for the ends of lines.
            return self.text[node.col_offset : node.end_col_offset]
        return ast.get_source_segment(self.text, node) or ""

    def restore(self, text: str) -> str:
        """A text of the tree with the objects as torch printed them."""
        return _HIDDEN.sub(lambda found: self.objects[int(found[1])], text) if self.objects else text

    def read_path(self, node: ast.expr) -> Path | None:
        """The path that a part of the expression is; None if it is something else."""
        steps: list[Step] = []
        while True:
            match node:
                case ast.Subscript(ast.Name("L" | "G" as scope), ast.Constant(str() as name)) if self.has_scopes:
                    return Path(name, scope, tuple(reversed(steps)))
                case ast.Name(name):
                    return Path(name, "", tuple(reversed(steps)))
                case ast.Subscript(value, index):
                    steps.append(Step("item", self._read_key(index)))
                    node = value
                case ast.Attribute(value, name):
                    steps.append(Step("attr", self.restore(name)))
                    node = value
                case ast.Call(func, arguments, []):
                    name = ".".join(_read_names(func))
                    if self.has_scopes and name in _ROOT_FUNCTIONS and (constants := _read_constants(arguments)):
                        return Path(name, "function", tuple(reversed(steps)), constants)
                    if name in _FUNCTIONS and arguments:
                        steps.append(Step("function", name, tuple(self._read_key(one) for one in arguments[1:])))
                        node = arguments[0]
                    elif arguments:
                        return None
                    elif isinstance(func, ast.Attribute):
                        steps.append(Step("method", func.attr))
                        node = func.value
                    else:
                        steps.append(Step("call"))
                        node = func
                case _:
                    return None

    def _read_key(self, node: ast.expr) -> object:
        """A key as a constant, as a path, or opaque."""
        try:
            return read_constant(node)
        except NotConstant:
            path = self.read_path(node)
            return path if path is not None and path.scope else Opaque(self.get_text(node))

    def list_paths(self, node: ast.expr) -> list[tuple[ast.expr, Path]]:
        """The largest parts of an expression that are paths, in their order. Names that are called are none."""
        if (path := self.read_path(node)) is not None:
            return [(node, path)]
        children: Iterator[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            # Of `torch.sym_min(a)` only the argument is a value, but of `x.a.issubset(y)` also `x.a`.
            is_scoped = any(isinstance(name, ast.Name) and name.id in ("L", "G") for name in ast.walk(node.func))
            owner = [node.func.value] if isinstance(node.func, ast.Attribute) and is_scoped else []
            children = iter([*owner, *node.args, *node.keywords])
        found = (child.value if isinstance(child, ast.keyword) else child for child in children)
        return [pair for child in found if isinstance(child, ast.expr) for pair in self.list_paths(child)]

    def spell(self, node: ast.expr | None = None, write: Callable[[Path], str] = lambda path: path.text) -> str:
        """The text of a part, or of all of it, with each value in the user's names, as `write` spells it."""
        text, start = (self.text, 0) if node is None else (self._cut(node), node.col_offset)
        paths = self.list_paths(node or self.node)
        if not self.text.isascii() or "\n" in self.text:
            # The columns of a tree count bytes of a line, not characters of the text.
            for part, path in paths:
                text = text.replace(ast.get_source_segment(self.text, part) or " ", write(path))
            return self.restore(text)
        for part, path in reversed(paths):
            text = text[: part.col_offset - start] + write(path) + text[(part.end_col_offset or 0) - start :]
        return self.restore(text)


@cache_short(4096)
def parse_expression(text: str, has_scopes: bool = True) -> Expression | None:
    """Parse one of torch's expressions; None for any other text, and for one that is too long."""
    text = text.strip()
    if len(text) > MAX_PARSED:
        return None
    hidden, objects = _hide_objects(text)
    # Python would print a warning of such a text. torch prints constants in forms that have none.
    if "\\" in hidden and _VALID_ESCAPES.fullmatch(hidden) is None:
        return None
    if _NUMBER_AND_WORD.search(hidden) and _NUMBER_AND_WORD.search(_ONE_STRING.sub("''", hidden)):
        return None
    try:
        return Expression(ast.parse(hidden, mode="eval").body, hidden, objects, has_scopes)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        pass_on(error)
        return None


def _hide_objects(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a name for each `<...>` that Python printed of an object and for each index `*`, and these."""
    if "<" not in text and "[*]" not in text:
        return text, ()
    objects: list[str] = []
    hidden, at = "", 0
    while found := _STRING_OR_OBJECT.search(text, at):
        end = found.end()
        hidden += text[at : found.start()]
        if found.group() in "<*":
            end = found.end() if found.group() == "*" else _find_end_of_object(text, found.start())
            hidden += f"__object_{len(objects)}__"
            objects.append(text[found.start() : end])
        else:
            hidden += found.group()
        at = end
    return hidden + text[at:], tuple(objects)


def _find_end_of_object(text: str, start: int) -> int:
    depth = 0
    for found in _ANGLE.finditer(text, start):
        depth += {"<": 1, ">": -1}.get(found.group(), 0)
        if depth == 0:
            return found.end()
    return len(text)


def _read_names(node: ast.expr) -> list[str]:
    """The names of `dict.__getitem__`; empty for anything else."""
    match node:
        case ast.Name(name):
            return [name]
        case ast.Attribute(ast.Name(owner), name):
            return [owner, name]
    return []


def _read_constants(nodes: list[ast.expr]) -> tuple[object, ...]:
    """The constants of a call: those of `torch.device('cuda', 0)` too; empty if one is something else."""
    match nodes:
        case [ast.Call(ast.Attribute(ast.Name("torch"), "device"), inner)]:
            nodes = inner
    try:
        found = tuple(read_constant(node) for node in nodes)
    except NotConstant:
        return ()
    return tuple(one for one in found if one is not None)


class NotConstant(Exception):
    """A part of an expression is no constant."""


def read_constant(node: ast.expr) -> object:
    """The value of a constant, of a tuple, frozenset or slice of them; NotConstant for anything else."""
    match node:
        case ast.Constant(value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() | complex() as number)):
            return -number
        case ast.Tuple(items):
            return tuple(map(read_constant, items))
        case ast.Call(ast.Name("frozenset"), [ast.Set(items)] | [ast.List(items)], []):
            return frozenset(map(read_constant, items))
        case ast.Call(ast.Name("frozenset"), [], []):
            return frozenset()
        case ast.Call(ast.Name("slice"), [_, *_] as parts, []):
            return slice(*map(read_constant, parts[:3]))
    raise NotConstant


@cache_short(8192)
def parse_path(text: str) -> Path | None:
    """Parse torch's name of a value; None if the text is anything else, such as a sum."""
    expression = parse_expression(text)
    return None if expression is None else expression.read_path(expression.node)


@cache_short(8192)
def list_sources(source: str) -> tuple[Path, ...]:
    """The values that a cell of a table names: several for a guard on how they relate, such as `x.size()[0], n`."""
    expression = parse_expression(source, False)
    if expression is None or not isinstance(expression.node, ast.Tuple):
        return (Path.of(source),)
    return tuple(Path.of(expression.get_text(node)) for node in expression.node.elts)


@cache_short(8192)
def name_any_instance(source: str) -> str:
    """A cell of a table that names values, with one name for all instances of a repeated module."""
    return ", ".join(path.of_any_instance.text for path in list_sources(source))


@cache_short(8192)
def format_expression(text: str) -> str:
    """Write a cell of a table, a value or a condition, as the user would: `x.size()[0] > n` -> `x.shape[0] > n`.

    On one line of at most 100 characters.
    """
    return format_line(spell_expression(text), _MAX_SHOWN)


@cache_short(8192)
def spell_expression(text: str) -> str:
    """Write the values of an expression as Python code, of any length: `L['x'].size()[0]` -> `L['x'].shape[0]`.

    torch's symbols may be named in front of their sources: `s27 = L['x'].size()[1], s86 = G['n']`.
    """
    if expression := parse_expression(text, False):
        return expression.spell(write=lambda path: path.code)
    if named := parse_expression(f"_({text})", False):
        return named.spell(write=lambda path: path.code)[2:-1]
    return text


@cache_short(8192)
def format_source(text: str) -> str:
    """Write the values in a text of torch as the user would: `L['self']._modules['lin'].weight` -> `self.lin.weight`.

    A text that is no expression is returned as it is.
    """
    expression = parse_expression(text)
    return text.strip() if expression is None else expression.spell()


def scan_source(text: str, at: int = 0) -> int:
    """Find the end of the name of a value that begins at `at`: names, dots, and what is in brackets after them."""
    while found := _NAME_OR_BRACKET.match(text, at):
        end = found.end() if found.group() not in "[(" else _find_end_of_brackets(text, found.start())
        if end is None:
            break
        at = end
    return at


def _find_end_of_brackets(text: str, start: int) -> int | None:
    depth, at = 0, start
    while found := _INSIDE_BRACKETS.match(text, at):
        piece = found.group()
        depth += (piece in "([{") - (piece in ")]}")
        at = found.end()
        if depth == 0:
            return at
    return None
