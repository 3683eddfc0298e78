// A chat template as a tree: statements that write, and expressions.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_SYNTAX_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_SYNTAX_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

// From 1; columns are bytes.
struct Place {
  int line = 1;
  int column = 1;
};

// "line 3, column 7: <what>".
inline absl::Status ErrorAt(Place place, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", place.line, ", column ", place.column, ": ", what));
}

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// `name` is empty for an argument by position.
struct Argument {
  std::string name;
  ExpressionPtr value;
};

struct Expression {
  enum class Kind {
    kConstant,   // value
    kName,       // name
    kList,       // parts
    kTuple,      // parts
    kDict,       // parts: key, value, key, value, ...
    kAttribute,  // parts[0].name
    kItem,       // parts[0][parts[1]]
    kSlice,      // parts[0][parts[1]:parts[2]:parts[3]]; null: not given
    kCall,       // parts[0](arguments)
    kFilter,     // parts[0] | name(arguments)
    kTest,       // parts[0] is name(arguments)
    kNot,        // parts[0]
    kAnd,
    kOr,
    kUnary,   // name: "-" or "+"
    kBinary,  // name: "+", "-", "*", "/", "//", "%", "**", "~"
    // parts[0] operators[0] parts[1] operators[1] parts[2] ...
    kCompare,
    kChoice,  // parts[0] if parts[1] else parts[2]; null: no else
  };
  Kind kind = Kind::kConstant;
  Place place;
  Value value;
  std::string name;
  std::vector<ExpressionPtr> parts;
  std::vector<Argument> arguments;
  std::vector<std::string> operators;
  int depth = 1;  // of the tree
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

// `if` and each `elif`.
struct Branch {
  ExpressionPtr condition;
  Block body;
};

struct Statement {
  enum class Kind {
    kText,        // text
    kPrint,       // value
    kIf,          // branches, otherwise
    kFor,         // names in value if condition: body; else otherwise
    kSet,         // names = value; or name.attribute = value
    kSetBlock,    // names[0] | filters = what body writes
    kMacro,       // text(parameters): body
    kGeneration,  // body; what it writes is the model's
    kBreak,
    kContinue,
  };
  Kind kind = Kind::kText;
  Place place;
  std::string text;
  std::vector<std::string> names;
  std::string attribute;
  ExpressionPtr value;  // kSetBlock: the filters, of the name ""; or null
  ExpressionPtr condition;
  std::vector<Branch> branches;
  Block body;
  Block otherwise;
  std::vector<Argument> parameters;  // value: the default, or null
};

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_SYNTAX_H_
