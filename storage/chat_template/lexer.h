// A chat template as tokens, cut as Jinja2 cuts it with the settings of
// transformers: trim_blocks, lstrip_blocks, no newline at the end.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_LEXER_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_LEXER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/syntax.h"

namespace troupe::chat {

struct Token {
  enum class Kind {
    kText,        // between tags; text
    kBlockBegin,  // {%
    kBlockEnd,
    kPrintBegin,  // {{
    kPrintEnd,
    kName,      // text
    kString,    // text, its escapes resolved
    kInt,       // integer
    kFloat,     // number
    kOperator,  // text
    kEnd,
  };
  Kind kind = Kind::kEnd;
  Place place;
  std::string text;
  int64_t integer = 0;
  double number = 0;
};

// Ends with kEnd. InvalidArgument, with line and column.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_LEXER_H_
