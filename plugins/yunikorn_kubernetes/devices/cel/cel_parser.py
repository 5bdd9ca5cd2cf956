"""Parser of CEL: from the text of an expression to its syntax tree, with macros and a limit of depth."""

from __future__ import annotations

from yunikorn_kubernetes.devices.cel.cel_syntax import (
    INT64,
    RESERVED,
    Bind,
    Expression,
    FunctionCall,
    Identifier,
    InvalidExpression,
    ListLiteral,
    LiteralValue,
    Loop,
    MapLiteral,
    Select,
    Token,
    children,
    tokens_of,
)

DEEPEST = 32
"""Number of brackets, and of macros, that may be nested."""
DEEPEST_TREE = 120
"""Number of operations of which each needs the result of the next."""
LONGEST_CHAIN = 100
"""Number of operators of one kind, or of selections, in a row."""
_BINARY = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 3,
    "<=": 3,
    ">": 3,
    ">=": 3,
    "in": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}
"""Operators, and how strongly they bind."""
_LOOPS = {"all": "all", "exists": "exists", "exists_one": "exists_one", "existsOne": "exists_one"}


def parse_expression(source: str) -> Expression:
    """Return the syntax tree of an expression. Raises `InvalidExpression`."""
    parser = _Parser(tokens_of(source))
    found = parser.expression()
    parser.expect("end")
    _check_depth(found)
    return found


def _check_depth(whole: Expression) -> None:
    left = [(whole, 1)]
    while left:
        part, depth = left.pop()
        if depth > DEEPEST_TREE:
            raise InvalidExpression(f"more than {DEEPEST_TREE} operations depend on each other", part.at)
        left += [(inner, depth + 1) for inner in children(part)]


class _Parser:
    """Reads tokens from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self._peek().kind == kind:
            self._next += 1
            return True
        return False

    def expect(self, kind: str) -> Token:
        """Return the next token, which has to be of this kind."""
        token = self._peek()
        if token.kind != kind:
            shown = repr(token.text) if token.text else "the end"
            raise InvalidExpression(f"unexpected {shown}, expected {kind!r}", token.at)
        return self._take()

    # -- operators ------------------------------------------------------------------------------------

    def expression(self) -> Expression:
        """Read an expression."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise InvalidExpression(f"more than {DEEPEST} expressions inside each other", self._peek().at)
        found = self._binary(1)
        if self._peek().kind == "?":
            at = self._take().at
            yes = self._binary(1)
            self.expect(":")
            found = FunctionCall(at, "?:", None, (found, yes, self.expression()))
        self._depth -= 1
        return found

    def _binary(self, strength: int) -> Expression:
        left = self._unary()
        length = 0
        while (found := _BINARY.get(self._peek().kind, 0)) >= strength:
            operator = self._take()
            right = self._binary(found + 1)
            if (
                found <= 2
                and isinstance(left, FunctionCall)
                and left.function == operator.kind
                and left.at >= 0
            ):
                # Many terms of one operator are one call, and are not deep.
                left = FunctionCall(left.at, operator.kind, None, (*left.arguments, right))
                continue
            length += 1
            if length > LONGEST_CHAIN:
                raise InvalidExpression(f"more than {LONGEST_CHAIN} operators in a row", operator.at)
            left = FunctionCall(operator.at, operator.kind, None, (left, right))
        return left

    def _unary(self) -> Expression:
        token = self._peek()
        if token.kind not in ("!", "-"):
            return self._member()
        count = 0
        while self._peek().kind == token.kind:
            self._take()
            count += 1
        if token.kind == "!":
            found = self._member()
            return FunctionCall(token.at, "!", None, (found,)) if count % 2 else found
        number = self._peek().value
        if type(number) in (int, float):
            found = self._member(negative=True)
            count -= 1
        else:
            found = self._member()
        return FunctionCall(token.at, "negate", None, (found,)) if count % 2 else found

    # -- members --------------------------------------------------------------------------------------

    def _member(self, *, negative: bool = False) -> Expression:
        found = self._primary(negative=negative)
        length = 0
        while (token := self._peek()).kind in (".", "["):
            self._take()
            length += 1
            if length > LONGEST_CHAIN:
                raise InvalidExpression(f"more than {LONGEST_CHAIN} selections in a row", token.at)
            is_optional = self._accept("?")
            if token.kind == "[":
                index = self.expression()
                self.expect("]")
                found = FunctionCall(token.at, "[?]" if is_optional else "[]", None, (found, index))
                continue
            name = self._take()
            if name.kind not in ("name", "escaped") or (name.kind == "name" and name.text in RESERVED):
                raise InvalidExpression(f"unexpected {name.text!r}, expected a field", name.at)
            if name.kind == "name" and not is_optional and self._accept("("):
                found = self._member_call(found, name)
            else:
                found = Select(token.at, found, name.text, is_optional=is_optional)
        return found

    def _primary(self, *, negative: bool) -> Expression:
        token = self._take()
        if token.kind == "value":
            value = token.value
            if type(value) is int:
                value = -value if negative else value
                if value == INT64:
                    raise InvalidExpression("the number does not fit into 64 bits", token.at)
            elif type(value) is float and negative:
                value = -value
            return LiteralValue(token.at, value)
        if token.kind == "(":
            found = self.expression()
            self.expect(")")
            # A call that was in brackets does not melt into the one around it.
            if isinstance(found, FunctionCall) and found.function in ("||", "&&"):
                return FunctionCall(-1, found.function, None, found.arguments)
            return found
        if token.kind == "[":
            return ListLiteral(token.at, self._list("]"))
        if token.kind == "{":
            return self._map(token.at)
        if token.kind == ".":
            token = self.expect("name")
        if token.kind != "name" or token.text in RESERVED:
            shown = repr(token.text) if token.text else "the end"
            raise InvalidExpression(f"unexpected {shown}", token.at)
        if self._accept("("):
            return self._call(token)
        if self._peek().kind == "{":
            raise InvalidExpression("messages cannot be made in selectors", token.at)
        return Identifier(token.at, token.text)

    def _list(self, end: str) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while not self._accept(end):
            if self._peek().kind == "?":
                raise InvalidExpression("optional elements are not known", self._peek().at)
            found.append(self.expression())
            if self._peek().kind != end:
                self.expect(",")
                if end == ")" and self._peek().kind == end:
                    raise InvalidExpression("an argument is missing", self._peek().at)
        return tuple(found)

    def _map(self, at: int) -> MapLiteral:
        found = []
        while not self._accept("}"):
            if self._peek().kind == "?":
                raise InvalidExpression("optional entries are not known", self._peek().at)
            key = self.expression()
            self.expect(":")
            found.append((key, self.expression()))
            if self._peek().kind != "}":
                self.expect(",")
        return MapLiteral(at, tuple(found))

    # -- calls and macros -----------------------------------------------------------------------------

    def _call(self, name: Token) -> Expression:
        arguments = self._list(")")
        if name.text == "has" and len(arguments) == 1:
            tested = arguments[0]
            if not isinstance(tested, Select) or tested.is_optional:
                raise InvalidExpression("has() needs a field, such as has(a.b)", name.at)
            return Select(tested.at, tested.operand, tested.field, is_test=True)
        return FunctionCall(name.at, name.text, None, arguments)

    def _member_call(self, target: Expression, name: Token) -> Expression:
        arguments = self._list(")")
        macro, count = name.text, len(arguments)
        if isinstance(target, Identifier) and target.name == "cel" and macro == "bind" and count == 3:
            return Bind(name.at, _variable(arguments[0]), arguments[1], arguments[2])
        if macro in _LOOPS and count == 2:
            return Loop(name.at, _LOOPS[macro], target, _variable(arguments[0]), arguments[1])
        if macro == "filter" and count == 2:
            return Loop(name.at, macro, target, _variable(arguments[0]), arguments[1])
        if macro == "map" and count in (2, 3):
            condition = arguments[1] if count == 3 else None
            return Loop(name.at, macro, target, _variable(arguments[0]), condition, arguments[-1])
        return FunctionCall(name.at, name.text, target, arguments)


def _variable(found: Expression) -> str:
    if not isinstance(found, Identifier):
        raise InvalidExpression("the first argument of a macro needs to be a name", found.at)
    return found.name
