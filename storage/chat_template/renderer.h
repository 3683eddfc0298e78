// Runs a template's tree. One for each rendering.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_RENDERER_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_RENDERER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/chat_template/chat_template.h"
#include "storage/chat_template/python_call.h"
#include "storage/chat_template/syntax.h"

namespace troupe::chat {

class Renderer {
 public:
  Renderer(const Dict& variables, const RenderLimits& limits)
      : variables_(variables), budget_(limits.steps, limits.text_bytes) {}

  // Errors begin with the line and column.
  absl::StatusOr<RenderedChat> Run(const Block& block);

 private:
  // Where a loop is.
  struct Loop {
    const List* items = nullptr;
    size_t index = 0;
  };
  // The names that a loop, a macro or the template itself has set.
  struct Scope {
    const Scope* outer = nullptr;
    absl::flat_hash_map<std::string, Value> names;
    const Loop* loop = nullptr;
  };
  // What follows a statement.
  enum class Flow { kNext, kBreak, kContinue };

  // render.cc. What is written goes to `out`.
  absl::StatusOr<Flow> RunBlock(const Block& block, Scope& scope,
                                std::string& out);
  absl::StatusOr<Flow> RunStatement(const Statement& statement, Scope& scope,
                                    std::string& out);
  absl::StatusOr<Flow> RunIf(const Statement& statement, Scope& scope,
                             std::string& out);
  absl::StatusOr<Flow> RunFor(const Statement& statement, Scope& scope,
                              std::string& out);
  absl::StatusOr<List> ItemsOfLoop(const Statement& statement, Scope& scope);
  absl::Status RunSet(const Statement& statement, Scope& scope);
  absl::Status RunGeneration(const Statement& statement, Scope& scope,
                             std::string& out);
  absl::Status Print(const Statement& statement, Scope& scope,
                     std::string& out);
  absl::Status Write(absl::string_view text, Place place, std::string& out);
  absl::Status Unpack(const Statement& statement, const Value& value,
                      Scope& scope) const;

  // evaluate.cc
  absl::StatusOr<Value> Evaluate(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> EvaluateUnplaced(const Expression& expression,
                                         Scope& scope);
  absl::StatusOr<Value> NameOf(const std::string& name,
                               const Scope& scope) const;
  absl::StatusOr<Value> SequenceOf(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> DictOf(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> SliceOf(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> Compare(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> Choose(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> Call(const Expression& expression, Scope& scope);
  absl::StatusOr<Value> CallFunction(const std::string& name,
                                     const Arguments& arguments);
  absl::StatusOr<Value> CallMacro(const Statement& macro,
                                  const Arguments& arguments);
  absl::StatusOr<Arguments> ArgumentsOf(const Expression& expression,
                                        Scope& scope);

  const Dict& variables_;
  Budget budget_;
  Scope top_;
  std::deque<Namespace> namespaces_;
  std::vector<TextRange> generated_;
  int depth_ = 0;
};

// `x | safe` is x where it is printed or joined by ~: nothing is escaped there.
const Expression& WithoutSafe(const Expression& expression);

// What stands at a place is told of an error, unless it says one already.
absl::Status WithPlace(const absl::Status& status, Place place);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_RENDERER_H_
