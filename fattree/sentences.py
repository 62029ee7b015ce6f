"""The sentences below the fields of our models, for pages and schemas."""

import ast
import inspect
from itertools import pairwise

from pydantic import BaseModel


def sentences(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below a model's fields, its own and those that it inherits.

    pydantic could read them itself, but would do so whenever the model is imported.
    """
    texts = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, BaseModel) or owner is BaseModel:
            continue

        (tree,) = ast.parse(inspect.getsource(owner)).body
        for above, below in pairwise(tree.body if isinstance(tree, ast.ClassDef) else ()):
            match above, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                    value=ast.Constant(value=str(text))
                ):
                    texts[name] = " ".join(text.split())

    return texts
