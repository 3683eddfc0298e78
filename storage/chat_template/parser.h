// Tokens of a chat template as a tree. The grammar is Jinja2's; what of it chat
// templates do not use is refused by name, with line and column.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_PARSER_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_PARSER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/chat_template/lexer.h"
#include "storage/chat_template/syntax.h"

namespace troupe::chat {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // InvalidArgument, with line and column.
  absl::StatusOr<Block> Parse();

 private:
  // Where statements stand.
  struct Within {
    bool loop = false;
    bool top = true;      // not in a loop, macro, `set` block or generation
    bool written = true;  // what is written goes to the text itself
  };

  // parse_statements.cc
  absl::StatusOr<Block> ParseBlock(const std::vector<std::string>& ends,
                                   Within within);
  absl::StatusOr<std::unique_ptr<Statement>> ParseStatement(Within within);
  absl::Status ParseIf(Statement& statement, Within within);
  absl::Status ParseFor(Statement& statement, Within within);
  absl::Status ParseSet(Statement& statement, Within within);
  absl::Status ParseMacro(Statement& statement, Within within);
  absl::Status ParseGeneration(Statement& statement, Within within);
  absl::Status ParseJump(Statement& statement, Within within);
  absl::StatusOr<std::vector<std::string>> ParseTargets();
  absl::Status EndBlock();
  // The word of the tag that ended a block, and its end.
  absl::Status ExpectTag(absl::string_view word);

  // parse_expressions.cc
  absl::StatusOr<ExpressionPtr> ParseExpression();
  // a, b: a tuple without brackets.
  absl::StatusOr<ExpressionPtr> ParseExpressions();
  // Without the form `a if b`.
  absl::StatusOr<ExpressionPtr> ParseOr();
  absl::StatusOr<ExpressionPtr> ParseAnd();
  absl::StatusOr<ExpressionPtr> ParseNot();
  absl::StatusOr<ExpressionPtr> ParseCompare();
  absl::StatusOr<ExpressionPtr> ParseBinary(size_t level);
  absl::StatusOr<ExpressionPtr> ParseUnary(bool with_filters);
  absl::StatusOr<ExpressionPtr> ParsePrimary();
  absl::StatusOr<ExpressionPtr> ParseConstantOrName();
  absl::StatusOr<ExpressionPtr> ParseInBrackets();
  absl::StatusOr<ExpressionPtr> ParseListItems(Expression::Kind kind,
                                               absl::string_view close);
  absl::StatusOr<ExpressionPtr> ParseDict();
  absl::StatusOr<ExpressionPtr> ParsePostfix(ExpressionPtr left);
  absl::StatusOr<ExpressionPtr> ParseSubscript(ExpressionPtr left);
  absl::StatusOr<ExpressionPtr> ParseFilters(ExpressionPtr left);
  absl::StatusOr<ExpressionPtr> ParseFilter(ExpressionPtr left);
  absl::StatusOr<ExpressionPtr> ParseTest(ExpressionPtr left);
  absl::StatusOr<std::vector<Argument>> ParseArguments();

  const Token& Next() const { return tokens_[at_]; }
  const Token& Peek() const {
    return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  }
  bool IsOperator(absl::string_view text) const;
  bool IsName(absl::string_view text) const;
  bool Take(absl::string_view text);      // an operator
  bool TakeName(absl::string_view text);  // a word
  absl::Status Expect(absl::string_view text);
  absl::StatusOr<std::string> ExpectName(absl::string_view what);
  absl::Status Unexpected(absl::string_view wanted) const;

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

// What a token is, for messages.
std::string WordsOf(const Token& token);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_PARSER_H_
