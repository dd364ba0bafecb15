"""Calls that do not fit their function, in one line: nanobind's own words list the whole signature and the type of everything.

`import mergeplan` wraps the functions of the extension by this; what it takes to find the words is loaded where it is needed.
"""

from __future__ import annotations


def misfit(name, signature, args, kwargs):
    """Raises TypeError: which argument of `name`, with a signature like "def f(x: int, *, y: int = 3)", does not fit."""
    import difflib

    names = []
    try:
        expected, names = _parse(signature)
        expected.bind(*args, **kwargs)
        words = f"was given {', '.join(type(x).__name__ for x in [*args, *kwargs.values()])}, expected {expected}"
    except TypeError as error:
        words = str(error)
    except (SyntaxError, ValueError):  # a signature that is no Python
        words = "was given other arguments than it has"
    unknown = [key for key in kwargs if names and key not in names]
    if unknown:
        close = difflib.get_close_matches(unknown[0], names, 1)
        expected = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(n for n in names if n != 'self')}"
        words = f"has no argument {unknown[0]!r}; {expected}"
    raise TypeError(f"{name}() {words}")


def _parse(signature):
    """(inspect.Signature, names) of a line "def f(…) -> …"."""
    import ast
    from inspect import Parameter, Signature

    given = ast.parse(f"{signature}: ...").body[0].args
    ordered = [*given.posonlyargs, *given.args]
    optional = len(ordered) - len(given.defaults)
    out = []
    for k, one in enumerate(ordered):
        kind = Parameter.POSITIONAL_ONLY if k < len(given.posonlyargs) else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if k < optional else given.defaults[k - optional]
        out.append(Parameter(one.arg, kind, default=default))
    if given.vararg:
        out.append(Parameter(given.vararg.arg, Parameter.VAR_POSITIONAL))
    for one, default in zip(given.kwonlyargs, given.kw_defaults):
        out.append(Parameter(one.arg, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is None else default))
    if given.kwarg:
        out.append(Parameter(given.kwarg.arg, Parameter.VAR_KEYWORD))
    for k, one in enumerate(out):
        if one.default is not Parameter.empty:
            out[k] = one.replace(default=_Text(ast.unparse(one.default)))
    return Signature(out), [one.name for one in out if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]


class _Text(str):
    __repr__ = str.__str__


def _signature(function):
    """As nanobind has it, the defaults in their places."""
    text, _, defaults = function.__nb_signature__[0]
    for k, default in enumerate(defaults or ()):
        text = text.replace(f"\\{k}", repr(default), 1)
    return text


def short(function, name):
    """`function` of the extension with short errors for calls that do not fit."""
    begin = f"{function.__name__}(): incompatible function arguments"

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if not str(error).startswith(begin):
                raise
        misfit(name, _signature(function), args, kwargs)

    for attribute in ("__name__", "__qualname__", "__doc__"):
        setattr(call, attribute, getattr(function, attribute, name))
    call.__module__ = "mergeplan"
    return call


def shorten(*classes):
    """The same for the public functions of classes of the extension, in place."""
    for one in classes:
        for name, function in list(vars(one).items()):
            kind = type(function).__name__
            if name.startswith("_") or kind not in ("nb_func", "nb_method"):
                continue
            wrapped = short(function, f"{one.__name__}.{name}")
            setattr(one, name, staticmethod(wrapped) if kind == "nb_func" else wrapped)
