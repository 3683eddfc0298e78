#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/chat_template/nesting.h"
#include "storage/chat_template/renderer.h"
#include "storage/chat_template/value_text.h"

namespace troupe::chat {

absl::Status WithPlace(const absl::Status& status, Place place) {
  if (status.ok() || absl::StartsWith(status.message(), "line ")) {
    return status;
  }
  return absl::Status(status.code(),
                      ErrorAt(place, status.message()).message());
}

absl::StatusOr<RenderedChat> Renderer::Run(const Block& block) {
  RenderedChat chat;
  RETURN_IF_ERROR(RunBlock(block, top_, chat.text).status());
  chat.generated = std::move(generated_);
  return chat;
}

absl::StatusOr<Renderer::Flow> Renderer::RunBlock(const Block& block,
                                                  Scope& scope,
                                                  std::string& out) {
  const Nested nested(depth_);
  for (const auto& statement : block) {
    if (depth_ > kDepthMax) {
      return ErrorAt(statement->place, "macros call each other too deep");
    }
    RETURN_IF_ERROR(WithPlace(budget_.Spend(1), statement->place));
    ASSIGN_OR_RETURN(const Flow flow, RunStatement(*statement, scope, out));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<Renderer::Flow> Renderer::RunStatement(
    const Statement& statement, Scope& scope, std::string& out) {
  switch (statement.kind) {
    case Statement::Kind::kText:
      RETURN_IF_ERROR(Write(statement.text, statement.place, out));
      return Flow::kNext;
    case Statement::Kind::kPrint:
      RETURN_IF_ERROR(Print(statement, scope, out));
      return Flow::kNext;
    case Statement::Kind::kIf:
      return RunIf(statement, scope, out);
    case Statement::Kind::kFor:
      return RunFor(statement, scope, out);
    case Statement::Kind::kSet:
    case Statement::Kind::kSetBlock:
      RETURN_IF_ERROR(RunSet(statement, scope));
      return Flow::kNext;
    case Statement::Kind::kMacro:
      scope.names[statement.text] = Value::Macro(&statement);
      return Flow::kNext;
    case Statement::Kind::kGeneration:
      RETURN_IF_ERROR(RunGeneration(statement, scope, out));
      return Flow::kNext;
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

absl::Status Renderer::Write(absl::string_view text, Place place,
                             std::string& out) {
  RETURN_IF_ERROR(WithPlace(budget_.SpendText(text.size()), place));
  RETURN_IF_ERROR(
      WithPlace(budget_.CheckText(out.size() + text.size()), place));
  absl::StrAppend(&out, text);
  return absl::OkStatus();
}

absl::Status Renderer::Print(const Statement& statement, Scope& scope,
                             std::string& out) {
  ASSIGN_OR_RETURN(const Value value,
                   Evaluate(WithoutSafe(*statement.value), scope));
  if (value.is_text()) return Write(value.text(), statement.place, out);
  const absl::StatusOr<std::string> text = TextOf(value, budget_);
  if (!text.ok()) return WithPlace(text.status(), statement.place);
  return Write(*text, statement.place, out);
}

absl::StatusOr<Renderer::Flow> Renderer::RunIf(const Statement& statement,
                                               Scope& scope, std::string& out) {
  for (const Branch& branch : statement.branches) {
    ASSIGN_OR_RETURN(const Value holds, Evaluate(*branch.condition, scope));
    if (holds.Truth()) return RunBlock(branch.body, scope, out);
  }
  return RunBlock(statement.otherwise, scope, out);
}

absl::Status Renderer::Unpack(const Statement& statement, const Value& value,
                              Scope& scope) const {
  const std::vector<std::string>& names = statement.names;
  if (names.size() == 1) {
    scope.names[names[0]] = value;
    return absl::OkStatus();
  }
  if (!value.is_list() || value.items().size() != names.size()) {
    return ErrorAt(statement.place,
                   absl::StrCat(value.kind_words(), " does not have the ",
                                names.size(), " values that have names here"));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    scope.names[names[i]] = value.items()[i];
  }
  return absl::OkStatus();
}

// Those that its condition takes.
absl::StatusOr<List> Renderer::ItemsOfLoop(const Statement& statement,
                                           Scope& scope) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.value, scope));
  absl::StatusOr<List> items = ItemsOf(value, budget_);
  if (!items.ok()) return WithPlace(items.status(), statement.value->place);
  if (statement.condition == nullptr) return items;
  List taken;
  for (Value& item : *items) {
    Scope inner = {.outer = &scope};
    RETURN_IF_ERROR(Unpack(statement, item, inner));
    ASSIGN_OR_RETURN(const Value takes, Evaluate(*statement.condition, inner));
    if (takes.Truth()) taken.push_back(std::move(item));
  }
  return taken;
}

absl::StatusOr<Renderer::Flow> Renderer::RunFor(const Statement& statement,
                                                Scope& scope,
                                                std::string& out) {
  ASSIGN_OR_RETURN(const List items, ItemsOfLoop(statement, scope));
  if (items.empty()) return RunBlock(statement.otherwise, scope, out);
  Loop loop = {.items = &items};
  for (; loop.index < items.size(); ++loop.index) {
    Scope inner = {.outer = &scope, .loop = &loop};
    RETURN_IF_ERROR(Unpack(statement, items[loop.index], inner));
    ASSIGN_OR_RETURN(const Flow flow, RunBlock(statement.body, inner, out));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

absl::Status Renderer::RunSet(const Statement& statement, Scope& scope) {
  if (statement.kind == Statement::Kind::kSetBlock) {
    std::string written;
    Scope inner = {.outer = &scope};
    RETURN_IF_ERROR(RunBlock(statement.body, inner, written).status());
    Value value = Value::Text(std::move(written));
    if (statement.value != nullptr) {
      // The filters stand on a name that nothing else can have.
      inner.names[""] = std::move(value);
      ASSIGN_OR_RETURN(value, Evaluate(*statement.value, inner));
    }
    scope.names[statement.names[0]] = std::move(value);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Value value, Evaluate(*statement.value, scope));
  if (statement.attribute.empty()) return Unpack(statement, value, scope);
  ASSIGN_OR_RETURN(const Value target, NameOf(statement.names[0], scope));
  if (!target.Is(Value::Kind::kNamespace)) {
    return ErrorAt(
        statement.place,
        absl::StrCat("'", statement.names[0], "' is no namespace, so '",
                     statement.attribute, "' of it cannot be set"));
  }
  if (value.Is(Value::Kind::kNamespace)) {
    return ErrorAt(statement.place,
                   "a namespace within a namespace is not supported");
  }
  target.space()[statement.attribute] = std::move(value);
  return absl::OkStatus();
}

absl::Status Renderer::RunGeneration(const Statement& statement, Scope& scope,
                                     std::string& out) {
  Scope inner = {.outer = &scope};
  const size_t begin = out.size();
  RETURN_IF_ERROR(RunBlock(statement.body, inner, out).status());
  generated_.push_back({.begin = begin, .end = out.size()});
  return absl::OkStatus();
}

}  // namespace troupe::chat
