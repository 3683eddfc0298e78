#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/chat_template/nesting.h"
#include "storage/chat_template/parser.h"

namespace troupe::chat {

absl::StatusOr<Block> Parser::Parse() {
  ASSIGN_OR_RETURN(Block block, ParseBlock({}, Within()));
  if (Next().kind != Token::Kind::kEnd) return Unexpected("the end");
  return block;
}

// Up to a tag of one of these words, or to the end where there are none. The
// word is the next token then.
absl::StatusOr<Block> Parser::ParseBlock(const std::vector<std::string>& ends,
                                         Within within) {
  const Nested nested(depth_);
  if (depth_ > kNestingMax) {
    return ErrorAt(Next().place, "statements are nested too deep");
  }
  Block block;
  while (Next().kind != Token::Kind::kEnd) {
    auto statement = std::make_unique<Statement>();
    statement->place = Next().place;
    if (Next().kind == Token::Kind::kText) {
      statement->text = tokens_[at_++].text;
      block.push_back(std::move(statement));
      continue;
    }
    if (Next().kind == Token::Kind::kPrintBegin) {
      ++at_;
      statement->kind = Statement::Kind::kPrint;
      ASSIGN_OR_RETURN(statement->value, ParseExpressions());
      if (Next().kind != Token::Kind::kPrintEnd) return Unexpected("'}}'");
      ++at_;
      block.push_back(std::move(statement));
      continue;
    }
    ++at_;  // {%
    if (std::find(ends.begin(), ends.end(), Next().text) != ends.end()) {
      return block;
    }
    ASSIGN_OR_RETURN(statement, ParseStatement(within));
    block.push_back(std::move(statement));
  }
  if (ends.empty()) return block;
  return ErrorAt(Next().place, absl::StrCat("the template ends where {% ",
                                            absl::StrJoin(ends, " %} or {% "),
                                            " %} is missing"));
}

absl::StatusOr<std::unique_ptr<Statement>> Parser::ParseStatement(
    Within within) {
  auto statement = std::make_unique<Statement>();
  statement->place = Next().place;
  ASSIGN_OR_RETURN(const std::string word, ExpectName("a statement"));
  absl::Status parsed;
  if (word == "if") {
    parsed = ParseIf(*statement, within);
  } else if (word == "for") {
    parsed = ParseFor(*statement, within);
  } else if (word == "set") {
    parsed = ParseSet(*statement, within);
  } else if (word == "macro") {
    parsed = ParseMacro(*statement, within);
  } else if (word == "generation") {
    parsed = ParseGeneration(*statement, within);
  } else if (word == "break" || word == "continue") {
    statement->kind =
        word == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue;
    parsed = ParseJump(*statement, within);
  } else {
    parsed = ErrorAt(
        statement->place,
        absl::StrCat("the statement '", word,
                     "' is not supported, or stands where it means nothing; "
                     "supported are if, for, set, macro, generation, raw, "
                     "break and continue"));
  }
  RETURN_IF_ERROR(parsed);
  return statement;
}

absl::Status Parser::EndBlock() {
  if (Next().kind != Token::Kind::kBlockEnd) return Unexpected("'%}'");
  ++at_;
  return absl::OkStatus();
}

absl::Status Parser::ExpectTag(absl::string_view word) {
  if (!TakeName(word)) return Unexpected(absl::StrCat("'", word, "'"));
  return EndBlock();
}

absl::Status Parser::ParseIf(Statement& statement, Within within) {
  statement.kind = Statement::Kind::kIf;
  do {
    Branch& branch = statement.branches.emplace_back();
    ASSIGN_OR_RETURN(branch.condition, ParseExpressions());
    RETURN_IF_ERROR(EndBlock());
    ASSIGN_OR_RETURN(branch.body,
                     ParseBlock({"elif", "else", "endif"}, within));
  } while (TakeName("elif"));
  if (TakeName("else")) {
    RETURN_IF_ERROR(EndBlock());
    ASSIGN_OR_RETURN(statement.otherwise, ParseBlock({"endif"}, within));
  }
  return ExpectTag("endif");
}

absl::StatusOr<std::vector<std::string>> Parser::ParseTargets() {
  const bool in_brackets = Take("(");
  std::vector<std::string> names;
  do {
    ASSIGN_OR_RETURN(names.emplace_back(), ExpectName("a name"));
  } while (Take(","));
  if (in_brackets) RETURN_IF_ERROR(Expect(")"));
  return names;
}

absl::Status Parser::ParseFor(Statement& statement, Within within) {
  statement.kind = Statement::Kind::kFor;
  ASSIGN_OR_RETURN(statement.names, ParseTargets());
  if (!TakeName("in")) return Unexpected("'in'");
  // Not `a if b`: an `if` here says which items are taken.
  const Place place = Next().place;
  ASSIGN_OR_RETURN(statement.value, ParseOr());
  if (IsOperator(",")) {
    auto tuple = std::make_unique<Expression>();
    tuple->kind = Expression::Kind::kTuple;
    tuple->place = place;
    tuple->parts.push_back(std::move(statement.value));
    while (Take(",")) {
      ASSIGN_OR_RETURN(tuple->parts.emplace_back(), ParseOr());
    }
    statement.value = std::move(tuple);
  }
  if (TakeName("if")) {
    ASSIGN_OR_RETURN(statement.condition, ParseExpression());
  }
  if (IsName("recursive")) {
    return ErrorAt(Next().place,
                   "loops that are recursive are not supported; use a macro");
  }
  RETURN_IF_ERROR(EndBlock());
  const Within outside = within;
  within.loop = true;
  within.top = false;
  ASSIGN_OR_RETURN(statement.body, ParseBlock({"else", "endfor"}, within));
  if (TakeName("else")) {
    RETURN_IF_ERROR(EndBlock());
    ASSIGN_OR_RETURN(statement.otherwise, ParseBlock({"endfor"}, outside));
  }
  return ExpectTag("endfor");
}

absl::Status Parser::ParseSet(Statement& statement, Within within) {
  statement.kind = Statement::Kind::kSet;
  ASSIGN_OR_RETURN(statement.names, ParseTargets());
  if (statement.names.size() == 1 && Take(".")) {
    ASSIGN_OR_RETURN(statement.attribute, ExpectName("a name"));
  }
  if (Take("=")) {
    ASSIGN_OR_RETURN(statement.value, ParseExpressions());
    return EndBlock();
  }
  if (statement.names.size() > 1 || !statement.attribute.empty()) {
    return Unexpected("'='");
  }
  statement.kind = Statement::Kind::kSetBlock;
  if (IsOperator("|")) {
    auto written = std::make_unique<Expression>();
    written->kind = Expression::Kind::kName;
    written->place = Next().place;
    ASSIGN_OR_RETURN(statement.value, ParseFilters(std::move(written)));
  }
  RETURN_IF_ERROR(EndBlock());
  within.top = within.loop = within.written = false;
  ASSIGN_OR_RETURN(statement.body, ParseBlock({"endset"}, within));
  return ExpectTag("endset");
}

absl::Status Parser::ParseMacro(Statement& statement, Within within) {
  statement.kind = Statement::Kind::kMacro;
  if (!within.top) {
    return ErrorAt(statement.place,
                   "macros within loops, macros and blocks are not supported; "
                   "define them at the beginning");
  }
  ASSIGN_OR_RETURN(statement.text, ExpectName("the macro's name"));
  RETURN_IF_ERROR(Expect("("));
  while (!Take(")")) {
    Argument& parameter = statement.parameters.emplace_back();
    ASSIGN_OR_RETURN(parameter.name, ExpectName("a parameter"));
    if (Take("=")) {
      ASSIGN_OR_RETURN(parameter.value, ParseExpression());
    }
    if (!IsOperator(")")) RETURN_IF_ERROR(Expect(","));
  }
  RETURN_IF_ERROR(EndBlock());
  within.top = within.loop = within.written = false;
  ASSIGN_OR_RETURN(statement.body, ParseBlock({"endmacro"}, within));
  if (!TakeName("endmacro")) return Unexpected("'endmacro'");
  TakeName(statement.text);  // {% endmacro name %}
  return EndBlock();
}

absl::Status Parser::ParseGeneration(Statement& statement, Within within) {
  statement.kind = Statement::Kind::kGeneration;
  if (!within.written) {
    return ErrorAt(statement.place,
                   "{% generation %} within a macro, a `set` block or another "
                   "generation is not supported");
  }
  RETURN_IF_ERROR(EndBlock());
  within.top = within.loop = within.written = false;
  ASSIGN_OR_RETURN(statement.body, ParseBlock({"endgeneration"}, within));
  return ExpectTag("endgeneration");
}

absl::Status Parser::ParseJump(Statement& statement, Within within) {
  if (!within.loop) {
    return ErrorAt(statement.place, "break and continue belong in a loop");
  }
  return EndBlock();
}

}  // namespace troupe::chat
