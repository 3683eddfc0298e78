#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/chat_template/nesting.h"
#include "storage/chat_template/parser.h"

namespace troupe::chat {
namespace {

// Each level binds closer than the one before.
constexpr std::array<std::array<absl::string_view, 4>, 4> kLevels = {{
    {"+", "-", "", ""},
    {"~", "", "", ""},
    {"*", "/", "//", "%"},
    {"**", "", "", ""},
}};

ExpressionPtr NewExpression(Expression::Kind kind, Place place) {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->place = place;
  return expression;
}

ExpressionPtr Join(Expression::Kind kind, Place place, ExpressionPtr left,
                   ExpressionPtr right) {
  ExpressionPtr both = NewExpression(kind, place);
  both->parts.push_back(std::move(left));
  both->parts.push_back(std::move(right));
  return both;
}

// Sets its depth, which must not exhaust the stack.
absl::StatusOr<ExpressionPtr> Measured(ExpressionPtr expression) {
  for (const ExpressionPtr& part : expression->parts) {
    if (part == nullptr) continue;
    expression->depth = std::max(expression->depth, part->depth + 1);
  }
  if (expression->depth <= kNestingMax) return expression;
  return ErrorAt(expression->place,
                 "the expression has too many parts; cut it into several");
}

}  // namespace

std::string WordsOf(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the template";
    case Token::Kind::kText:
      return "text";
    case Token::Kind::kBlockBegin:
      return "{%";
    case Token::Kind::kPrintBegin:
      return "{{";
    case Token::Kind::kString:
      return "a string";
    default:
      return absl::StrCat("'", token.text, "'");
  }
}

bool Parser::IsOperator(absl::string_view text) const {
  return Next().kind == Token::Kind::kOperator && Next().text == text;
}

bool Parser::IsName(absl::string_view text) const {
  return Next().kind == Token::Kind::kName && Next().text == text;
}

bool Parser::Take(absl::string_view text) {
  if (!IsOperator(text)) return false;
  ++at_;
  return true;
}

bool Parser::TakeName(absl::string_view text) {
  if (!IsName(text)) return false;
  ++at_;
  return true;
}

absl::Status Parser::Unexpected(absl::string_view wanted) const {
  return ErrorAt(Next().place, absl::StrCat("expected ", wanted, ", found ",
                                            WordsOf(Next())));
}

absl::Status Parser::Expect(absl::string_view text) {
  return Take(text) ? absl::OkStatus()
                    : Unexpected(absl::StrCat("'", text, "'"));
}

absl::StatusOr<std::string> Parser::ExpectName(absl::string_view what) {
  if (Next().kind != Token::Kind::kName) return Unexpected(what);
  return tokens_[at_++].text;
}

absl::StatusOr<ExpressionPtr> Parser::ParseExpression() {
  const Nested nested(depth_);
  if (depth_ > kNestingMax) {
    return ErrorAt(Next().place, "expressions are nested too deep");
  }
  ASSIGN_OR_RETURN(ExpressionPtr value, ParseOr());
  while (IsName("if")) {
    const Place place = tokens_[at_++].place;
    ExpressionPtr choice = NewExpression(Expression::Kind::kChoice, place);
    ASSIGN_OR_RETURN(ExpressionPtr condition, ParseOr());
    ExpressionPtr otherwise;
    if (TakeName("else")) {
      ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    choice->parts.push_back(std::move(value));
    choice->parts.push_back(std::move(condition));
    choice->parts.push_back(std::move(otherwise));
    ASSIGN_OR_RETURN(value, Measured(std::move(choice)));
  }
  return value;
}

absl::StatusOr<ExpressionPtr> Parser::ParseExpressions() {
  const Place place = Next().place;
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseExpression());
  if (!IsOperator(",")) return first;
  ExpressionPtr tuple = NewExpression(Expression::Kind::kTuple, place);
  tuple->parts.push_back(std::move(first));
  while (Take(",")) {
    if (Next().kind == Token::Kind::kBlockEnd ||
        Next().kind == Token::Kind::kPrintEnd) {
      break;
    }
    ASSIGN_OR_RETURN(tuple->parts.emplace_back(), ParseExpression());
  }
  return tuple;
}

absl::StatusOr<ExpressionPtr> Parser::ParseOr() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseAnd());
  while (IsName("or")) {
    const Place place = tokens_[at_++].place;
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseAnd());
    ASSIGN_OR_RETURN(left, Measured(Join(Expression::Kind::kOr, place,
                                         std::move(left), std::move(right))));
  }
  return left;
}

absl::StatusOr<ExpressionPtr> Parser::ParseAnd() {
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseNot());
  while (IsName("and")) {
    const Place place = tokens_[at_++].place;
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseNot());
    ASSIGN_OR_RETURN(left, Measured(Join(Expression::Kind::kAnd, place,
                                         std::move(left), std::move(right))));
  }
  return left;
}

absl::StatusOr<ExpressionPtr> Parser::ParseNot() {
  if (!IsName("not")) return ParseCompare();
  const Nested nested(depth_);
  if (depth_ > kNestingMax) {
    return ErrorAt(Next().place, "expressions are nested too deep");
  }
  ExpressionPtr negated =
      NewExpression(Expression::Kind::kNot, tokens_[at_++].place);
  ASSIGN_OR_RETURN(negated->parts.emplace_back(), ParseNot());
  return negated;
}

absl::StatusOr<ExpressionPtr> Parser::ParseCompare() {
  const Place place = Next().place;
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseBinary(0));
  ExpressionPtr compare = NewExpression(Expression::Kind::kCompare, place);
  while (true) {
    std::string found;
    for (const absl::string_view known : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (found.empty() && Take(known)) found = std::string(known);
    }
    if (found.empty() && TakeName("in")) found = "in";
    if (found.empty() && IsName("not") && Peek().kind == Token::Kind::kName &&
        Peek().text == "in") {
      at_ += 2;
      found = "not in";
    }
    if (found.empty()) break;
    compare->operators.push_back(std::move(found));
    ASSIGN_OR_RETURN(compare->parts.emplace_back(), ParseBinary(0));
  }
  if (compare->operators.empty()) return first;
  compare->parts.insert(compare->parts.begin(), std::move(first));
  return compare;
}

absl::StatusOr<ExpressionPtr> Parser::ParseBinary(size_t level) {
  if (level == kLevels.size()) return ParseUnary(/*with_filters=*/true);
  ASSIGN_OR_RETURN(ExpressionPtr left, ParseBinary(level + 1));
  while (Next().kind == Token::Kind::kOperator &&
         std::find(kLevels[level].begin(), kLevels[level].end(), Next().text) !=
             kLevels[level].end()) {
    const Token& sign = tokens_[at_++];
    ASSIGN_OR_RETURN(ExpressionPtr right, ParseBinary(level + 1));
    ASSIGN_OR_RETURN(left, Measured(Join(Expression::Kind::kBinary, sign.place,
                                         std::move(left), std::move(right))));
    left->name = sign.text;
  }
  return left;
}

absl::StatusOr<ExpressionPtr> Parser::ParseUnary(bool with_filters) {
  const Nested nested(depth_);
  if (depth_ > kNestingMax) {
    return ErrorAt(Next().place, "expressions are nested too deep");
  }
  ExpressionPtr value;
  if (IsOperator("-") || IsOperator("+")) {
    const Token& sign = tokens_[at_++];
    value = NewExpression(Expression::Kind::kUnary, sign.place);
    value->name = sign.text;
    ASSIGN_OR_RETURN(value->parts.emplace_back(), ParseUnary(false));
  } else {
    ASSIGN_OR_RETURN(value, ParsePrimary());
  }
  ASSIGN_OR_RETURN(value, ParsePostfix(std::move(value)));
  if (!with_filters) return value;
  return ParseFilters(std::move(value));
}

absl::StatusOr<ExpressionPtr> Parser::ParsePrimary() {
  if (IsOperator("(")) return ParseInBrackets();
  if (Take("[")) return ParseListItems(Expression::Kind::kList, "]");
  if (IsOperator("{")) return ParseDict();
  return ParseConstantOrName();
}

absl::StatusOr<ExpressionPtr> Parser::ParseConstantOrName() {
  const Token& token = Next();
  ExpressionPtr constant =
      NewExpression(Expression::Kind::kConstant, token.place);
  switch (token.kind) {
    case Token::Kind::kString: {
      std::string text;  // strings that follow each other are one
      while (Next().kind == Token::Kind::kString) text += tokens_[at_++].text;
      constant->value = Value::Text(std::move(text));
      return constant;
    }
    case Token::Kind::kInt:
      constant->value = Value::Int(token.integer);
      break;
    case Token::Kind::kFloat:
      constant->value = Value::Float(token.number);
      break;
    case Token::Kind::kName:
      if (token.text == "true" || token.text == "True") {
        constant->value = Value::Bool(true);
      } else if (token.text == "false" || token.text == "False") {
        constant->value = Value::Bool(false);
      } else if (token.text == "none" || token.text == "None") {
        constant->value = Value::None();
      } else {
        constant->kind = Expression::Kind::kName;
        constant->name = token.text;
      }
      break;
    default:
      return Unexpected("a value");
  }
  ++at_;
  return constant;
}

// (a), (a, b), (a,), ().
absl::StatusOr<ExpressionPtr> Parser::ParseInBrackets() {
  const Place place = tokens_[at_++].place;
  if (Take(")")) return NewExpression(Expression::Kind::kTuple, place);
  ASSIGN_OR_RETURN(ExpressionPtr first, ParseExpression());
  if (Take(")")) return first;
  RETURN_IF_ERROR(Expect(","));
  ASSIGN_OR_RETURN(ExpressionPtr tuple,
                   ParseListItems(Expression::Kind::kTuple, ")"));
  tuple->parts.insert(tuple->parts.begin(), std::move(first));
  return tuple;
}

absl::StatusOr<ExpressionPtr> Parser::ParseListItems(Expression::Kind kind,
                                                     absl::string_view close) {
  ExpressionPtr list = NewExpression(kind, Next().place);
  while (!Take(close)) {
    ASSIGN_OR_RETURN(list->parts.emplace_back(), ParseExpression());
    if (!IsOperator(close)) RETURN_IF_ERROR(Expect(","));
  }
  return list;
}

absl::StatusOr<ExpressionPtr> Parser::ParseDict() {
  ExpressionPtr dict =
      NewExpression(Expression::Kind::kDict, tokens_[at_++].place);
  while (!Take("}")) {
    ASSIGN_OR_RETURN(dict->parts.emplace_back(), ParseExpression());
    RETURN_IF_ERROR(Expect(":"));
    ASSIGN_OR_RETURN(dict->parts.emplace_back(), ParseExpression());
    if (!IsOperator("}")) RETURN_IF_ERROR(Expect(","));
  }
  return dict;
}

absl::StatusOr<ExpressionPtr> Parser::ParsePostfix(ExpressionPtr left) {
  while (true) {
    const Place place = Next().place;
    if (Take(".")) {
      ExpressionPtr attribute =
          NewExpression(Expression::Kind::kAttribute, Next().place);
      ASSIGN_OR_RETURN(attribute->name, ExpectName("a name"));
      attribute->parts.push_back(std::move(left));
      left = std::move(attribute);
    } else if (Take("[")) {
      ASSIGN_OR_RETURN(left, ParseSubscript(std::move(left)));
    } else if (IsOperator("(")) {
      ExpressionPtr call = NewExpression(Expression::Kind::kCall, place);
      ASSIGN_OR_RETURN(call->arguments, ParseArguments());
      call->parts.push_back(std::move(left));
      left = std::move(call);
    } else {
      return left;
    }
    ASSIGN_OR_RETURN(left, Measured(std::move(left)));
  }
}

absl::StatusOr<ExpressionPtr> Parser::ParseSubscript(ExpressionPtr left) {
  const Place place = Next().place;
  std::array<ExpressionPtr, 3> bounds;
  size_t colons = 0;
  while (!Take("]")) {
    if (Take(":")) {
      if (++colons > 2) return Unexpected("']'");
      continue;
    }
    if (bounds[colons] != nullptr) return Unexpected("']'");
    ASSIGN_OR_RETURN(bounds[colons], ParseExpression());
  }
  if (colons == 0 && bounds[0] == nullptr) return Unexpected("an index");
  ExpressionPtr item = NewExpression(
      colons == 0 ? Expression::Kind::kItem : Expression::Kind::kSlice, place);
  item->parts.push_back(std::move(left));
  for (size_t i = 0; i < (colons == 0 ? 1 : bounds.size()); ++i) {
    item->parts.push_back(std::move(bounds[i]));
  }
  return item;
}

absl::StatusOr<ExpressionPtr> Parser::ParseFilters(ExpressionPtr left) {
  while (true) {
    if (Take("|")) {
      ASSIGN_OR_RETURN(left, ParseFilter(std::move(left)));
    } else if (TakeName("is")) {
      ASSIGN_OR_RETURN(left, ParseTest(std::move(left)));
    } else if (IsOperator("(")) {
      ExpressionPtr call = NewExpression(Expression::Kind::kCall, Next().place);
      ASSIGN_OR_RETURN(call->arguments, ParseArguments());
      call->parts.push_back(std::move(left));
      left = std::move(call);
    } else {
      return left;
    }
    ASSIGN_OR_RETURN(left, Measured(std::move(left)));
  }
}

absl::StatusOr<ExpressionPtr> Parser::ParseFilter(ExpressionPtr left) {
  ExpressionPtr filter = NewExpression(Expression::Kind::kFilter, Next().place);
  ASSIGN_OR_RETURN(filter->name, ExpectName("a filter"));
  filter->parts.push_back(std::move(left));
  if (IsOperator("(")) {
    ASSIGN_OR_RETURN(filter->arguments, ParseArguments());
  }
  return filter;
}

absl::StatusOr<ExpressionPtr> Parser::ParseTest(ExpressionPtr left) {
  const bool negates = TakeName("not");
  ExpressionPtr test = NewExpression(Expression::Kind::kTest, Next().place);
  ASSIGN_OR_RETURN(test->name, ExpectName("a test"));
  test->parts.push_back(std::move(left));
  const bool begins_value =
      Next().kind == Token::Kind::kString || Next().kind == Token::Kind::kInt ||
      Next().kind == Token::Kind::kFloat || IsOperator("[") ||
      IsOperator("{") ||
      (Next().kind == Token::Kind::kName && !IsName("else") && !IsName("or") &&
       !IsName("and") && !IsName("is") && !IsName("if") && !IsName("not") &&
       !IsName("in"));
  if (IsOperator("(")) {
    ASSIGN_OR_RETURN(test->arguments, ParseArguments());
  } else if (begins_value) {
    ASSIGN_OR_RETURN(ExpressionPtr argument, ParsePrimary());
    ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    test->arguments.push_back({.value = std::move(argument)});
  }
  if (!negates) return test;
  ExpressionPtr negated = NewExpression(Expression::Kind::kNot, test->place);
  negated->parts.push_back(std::move(test));
  return negated;
}

absl::StatusOr<std::vector<Argument>> Parser::ParseArguments() {
  RETURN_IF_ERROR(Expect("("));
  std::vector<Argument> arguments;
  while (!Take(")")) {
    if (IsOperator("*") || IsOperator("**")) {
      return ErrorAt(Next().place,
                     "arguments by * and ** are not supported; write them out");
    }
    Argument argument;
    const bool is_named = Next().kind == Token::Kind::kName &&
                          Peek().kind == Token::Kind::kOperator &&
                          Peek().text == "=";
    if (is_named) {
      argument.name = Next().text;
      at_ += 2;
    } else if (!arguments.empty() && !arguments.back().name.empty()) {
      return Unexpected("an argument with a name");
    }
    ASSIGN_OR_RETURN(argument.value, ParseExpression());
    arguments.push_back(std::move(argument));
    if (!IsOperator(")")) RETURN_IF_ERROR(Expect(","));
  }
  return arguments;
}

}  // namespace troupe::chat
