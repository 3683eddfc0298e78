#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/chat_template/filters.h"
#include "storage/chat_template/methods.h"
#include "storage/chat_template/nesting.h"
#include "storage/chat_template/operators.h"
#include "storage/chat_template/python_text.h"
#include "storage/chat_template/renderer.h"
#include "storage/chat_template/value_text.h"

namespace troupe::chat {
namespace {

using ValueOr = absl::StatusOr<Value>;

constexpr std::array<absl::string_view, 4> kFunctions = {
    "dict", "namespace", "raise_exception", "range"};
constexpr int64_t kRangeMax = 100'000;

// The variable `loop` of a loop that is at item `index`.
Value LoopValue(const List& items, size_t index) {
  const auto length = static_cast<int64_t>(items.size());
  const auto at = static_cast<int64_t>(index);
  Dict loop;
  loop.Set("index", Value::Int(at + 1));
  loop.Set("index0", Value::Int(at));
  loop.Set("revindex", Value::Int(length - at));
  loop.Set("revindex0", Value::Int(length - at - 1));
  loop.Set("first", Value::Bool(at == 0));
  loop.Set("last", Value::Bool(at + 1 == length));
  loop.Set("length", Value::Int(length));
  loop.Set("depth", Value::Int(1));
  loop.Set("depth0", Value::Int(0));
  loop.Set("previtem",
           at > 0 ? items[index - 1] : Value::UndefinedNamed("loop.previtem"));
  loop.Set("nextitem", at + 1 < length
                           ? items[index + 1]
                           : Value::UndefinedNamed("loop.nextitem"));
  return Value::OfDict(std::move(loop));
}

ValueOr RangeOf(const Arguments& arguments, Budget& budget) {
  ASSIGN_OR_RETURN(const auto values,
                   arguments.Bind({"start", "stop", "step"}, 1));
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (!values[i].is_integer())
      return absl::InvalidArgumentError("range: needs whole numbers");
  }
  const bool one = arguments.positional.size() == 1;
  const int64_t begin = one ? 0 : values[0].integer();
  const int64_t end = one ? values[0].integer() : values[1].integer();
  const int64_t step = values[2].is_defined() ? values[2].integer() : 1;
  if (step == 0) return absl::InvalidArgumentError("range: the step is 0");
  List items;
  for (int64_t at = begin; step > 0 ? at < end : at > end;) {
    if (static_cast<int64_t>(items.size()) == kRangeMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("range: more than ", kRangeMax, " numbers"));
    }
    items.push_back(Value::Int(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  RETURN_IF_ERROR(budget.Spend(items.size()));
  return Value::View(std::move(items));
}

}  // namespace

const Expression& WithoutSafe(const Expression& expression) {
  const bool is_safe = expression.kind == Expression::Kind::kFilter &&
                       expression.name == "safe" &&
                       expression.arguments.empty();
  return is_safe ? *expression.parts[0] : expression;
}

ValueOr Renderer::Evaluate(const Expression& expression, Scope& scope) {
  const Nested nested(depth_);
  if (depth_ > kDepthMax) {
    return ErrorAt(expression.place, "macros call each other too deep");
  }
  RETURN_IF_ERROR(WithPlace(budget_.Spend(1), expression.place));
  ValueOr value = EvaluateUnplaced(expression, scope);
  if (!value.ok()) return WithPlace(value.status(), expression.place);
  // All that is kept comes through here, and no operator, filter or method
  // makes more than a few levels at once.
  if (value->depth() > kValueDepthMax) {
    return ErrorAt(expression.place,
                   absl::StrCat("values nest deeper than ", kValueDepthMax));
  }
  return value;
}

ValueOr Renderer::EvaluateUnplaced(const Expression& expression, Scope& scope) {
  const auto part = [&](size_t i) {
    return Evaluate(*expression.parts[i], scope);
  };
  switch (expression.kind) {
    case Expression::Kind::kConstant:
      return expression.value;
    case Expression::Kind::kName:
      return NameOf(expression.name, scope);
    case Expression::Kind::kList:
    case Expression::Kind::kTuple:
      return SequenceOf(expression, scope);
    case Expression::Kind::kDict:
      return DictOf(expression, scope);
    case Expression::Kind::kAttribute: {
      ASSIGN_OR_RETURN(const Value value, part(0));
      return AttributeOf(value, expression.name);
    }
    case Expression::Kind::kItem: {
      ASSIGN_OR_RETURN(const Value value, part(0));
      ASSIGN_OR_RETURN(const Value key, part(1));
      return ItemOf(value, key, budget_);
    }
    case Expression::Kind::kSlice:
      return SliceOf(expression, scope);
    case Expression::Kind::kCall:
      return Call(expression, scope);
    case Expression::Kind::kFilter: {
      ASSIGN_OR_RETURN(const Value value, part(0));
      ASSIGN_OR_RETURN(const Arguments arguments,
                       ArgumentsOf(expression, scope));
      return RunFilter(expression.name, value, arguments, budget_);
    }
    case Expression::Kind::kTest: {
      ASSIGN_OR_RETURN(const Value value, part(0));
      ASSIGN_OR_RETURN(const Arguments arguments,
                       ArgumentsOf(expression, scope));
      ASSIGN_OR_RETURN(const bool holds,
                       RunTest(expression.name, value, arguments, budget_));
      return Value::Bool(holds);
    }
    case Expression::Kind::kNot: {
      ASSIGN_OR_RETURN(const Value value, part(0));
      return Value::Bool(!value.Truth());
    }
    case Expression::Kind::kAnd:
    case Expression::Kind::kOr: {
      ASSIGN_OR_RETURN(Value left, part(0));
      const bool is_and = expression.kind == Expression::Kind::kAnd;
      if (left.Truth() != is_and) return left;
      return part(1);
    }
    case Expression::Kind::kUnary: {
      ASSIGN_OR_RETURN(const Value value, part(0));
      return SignedOf(expression.name, value);
    }
    case Expression::Kind::kBinary: {
      const bool joins = expression.name == "~";
      const auto side = [&](size_t i) {
        const Expression& whole = *expression.parts[i];
        return Evaluate(joins ? WithoutSafe(whole) : whole, scope);
      };
      ASSIGN_OR_RETURN(const Value left, side(0));
      ASSIGN_OR_RETURN(const Value right, side(1));
      return Combine(expression.name, left, right, budget_);
    }
    case Expression::Kind::kCompare:
      return Compare(expression, scope);
    case Expression::Kind::kChoice:
      return Choose(expression, scope);
  }
  return Value();
}

ValueOr Renderer::NameOf(const std::string& name, const Scope& scope) const {
  for (const Scope* here = &scope; here != nullptr; here = here->outer) {
    const auto found = here->names.find(name);
    if (found != here->names.end()) return found->second;
    if (here->loop != nullptr && name == "loop") {
      return LoopValue(*here->loop->items, here->loop->index);
    }
  }
  const Value* const given = variables_.Find(name);
  if (given != nullptr) return *given;
  const bool is_function =
      std::find(kFunctions.begin(), kFunctions.end(), name) != kFunctions.end();
  return is_function ? Value::Macro(nullptr) : Value::UndefinedNamed(name);
}

ValueOr Renderer::SequenceOf(const Expression& expression, Scope& scope) {
  List items;
  for (const ExpressionPtr& part : expression.parts) {
    ASSIGN_OR_RETURN(items.emplace_back(), Evaluate(*part, scope));
  }
  return expression.kind == Expression::Kind::kTuple
             ? Value::Tuple(std::move(items))
             : Value::OfList(std::move(items));
}

ValueOr Renderer::DictOf(const Expression& expression, Scope& scope) {
  Dict dict;
  for (size_t i = 0; i < expression.parts.size(); i += 2) {
    ASSIGN_OR_RETURN(const Value key, Evaluate(*expression.parts[i], scope));
    ASSIGN_OR_RETURN(Value value, Evaluate(*expression.parts[i + 1], scope));
    if (!key.is_text()) {
      return absl::InvalidArgumentError(
          "keys that are no strings are not supported");
    }
    RETURN_IF_ERROR(budget_.SpendRead(key.text().size()));
    dict.Set(key.text(), std::move(value));
  }
  return Value::OfDict(std::move(dict));
}

ValueOr Renderer::SliceOf(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*expression.parts[0], scope));
  SliceBounds bounds;
  std::optional<int64_t>* const places[] = {&bounds.begin, &bounds.end,
                                            &bounds.step};
  for (size_t i = 0; i < 3; ++i) {
    if (expression.parts[i + 1] == nullptr) continue;
    ASSIGN_OR_RETURN(const Value bound,
                     Evaluate(*expression.parts[i + 1], scope));
    if (bound.Is(Value::Kind::kNone)) continue;
    if (!bound.is_integer()) {
      return absl::InvalidArgumentError(absl::StrCat("a bound of a slice is ",
                                                     bound.kind_words(),
                                                     ", not a whole number"));
    }
    *places[i] = bound.integer();
  }
  return Slice(value, bounds, budget_);
}

ValueOr Renderer::Compare(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*expression.parts[0], scope));
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*expression.parts[i + 1], scope));
    ASSIGN_OR_RETURN(const bool holds, HoldsBetween(expression.operators[i],
                                                    left, right, budget_));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

ValueOr Renderer::Choose(const Expression& expression, Scope& scope) {
  ASSIGN_OR_RETURN(const Value holds, Evaluate(*expression.parts[1], scope));
  if (holds.Truth()) return Evaluate(*expression.parts[0], scope);
  if (expression.parts[2] != nullptr) {
    return Evaluate(*expression.parts[2], scope);
  }
  return Value::UndefinedNamed("the value of an `if` without `else`");
}

absl::StatusOr<Arguments> Renderer::ArgumentsOf(const Expression& expression,
                                                Scope& scope) {
  Arguments arguments;
  for (const Argument& argument : expression.arguments) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*argument.value, scope));
    if (argument.name.empty()) {
      arguments.positional.push_back(std::move(value));
    } else {
      arguments.named.emplace_back(argument.name, std::move(value));
    }
  }
  return arguments;
}

ValueOr Renderer::Call(const Expression& expression, Scope& scope) {
  const Expression& called = *expression.parts[0];
  if (called.kind == Expression::Kind::kAttribute) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*called.parts[0], scope));
    ASSIGN_OR_RETURN(const Arguments arguments, ArgumentsOf(expression, scope));
    return CallMethod(value, called.name, arguments, budget_);
  }
  if (called.kind != Expression::Kind::kName) {
    return absl::InvalidArgumentError(
        "only functions, macros and methods can be called");
  }
  ASSIGN_OR_RETURN(const Value value, NameOf(called.name, scope));
  ASSIGN_OR_RETURN(const Arguments arguments, ArgumentsOf(expression, scope));
  if (value.Is(Value::Kind::kMacro)) {
    return value.macro() == nullptr ? CallFunction(called.name, arguments)
                                    : CallMacro(*value.macro(), arguments);
  }
  if (called.name == "strftime_now") {
    return absl::InvalidArgumentError(
        "strftime_now is not supported: tokens would depend on the day; give "
        "the template a fixed date");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", called.name, "' is ", value.kind_words(),
                   ", and cannot be called; functions are dict, namespace, "
                   "raise_exception, range, and macros of the template"));
}

ValueOr Renderer::CallFunction(const std::string& name,
                               const Arguments& arguments) {
  if (name == "raise_exception") {
    ASSIGN_OR_RETURN(const auto values, arguments.Bind({"message"}, 1));
    ASSIGN_OR_RETURN(const std::string message, TextOf(values[0], budget_));
    return absl::InvalidArgumentError(
        absl::StrCat("the template refuses the conversation: ", message));
  }
  if (name == "range") return RangeOf(arguments, budget_);
  if (!arguments.positional.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name,
                     ": arguments without names are not "
                     "supported"));
  }
  if (name == "dict") {
    Dict dict;
    for (const auto& [key, value] : arguments.named) dict.Set(key, value);
    return Value::OfDict(std::move(dict));
  }
  Namespace& space = namespaces_.emplace_back();
  for (const auto& [key, value] : arguments.named) {
    if (value.Is(Value::Kind::kNamespace)) {
      return absl::InvalidArgumentError(
          "a namespace within a namespace is not supported");
    }
    space[key] = value;
  }
  return Value::OfNamespace(&space);
}

ValueOr Renderer::CallMacro(const Statement& macro,
                            const Arguments& arguments) {
  std::vector<absl::string_view> names;
  for (const Argument& parameter : macro.parameters) {
    names.push_back(parameter.name);
  }
  absl::StatusOr<std::vector<Value>> values = arguments.Bind(names);
  if (!values.ok()) return Annotate(values.status(), macro.text);
  Scope scope = {.outer = &top_};
  for (size_t i = 0; i < names.size(); ++i) {
    Value value = std::move((*values)[i]);
    const ExpressionPtr& otherwise = macro.parameters[i].value;
    if (!value.is_defined() && otherwise != nullptr) {
      ASSIGN_OR_RETURN(value, Evaluate(*otherwise, scope));
    }
    scope.names[macro.parameters[i].name] = std::move(value);
  }
  std::string out;
  RETURN_IF_ERROR(RunBlock(macro.body, scope, out).status());
  return Value::Text(std::move(out));
}

}  // namespace troupe::chat
