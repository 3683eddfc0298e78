#include "storage/chat_template/chat_template.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/base/status.h"
#include "storage/chat_template/lexer.h"
#include "storage/chat_template/parser.h"
#include "storage/chat_template/renderer.h"

namespace troupe::chat {
namespace {

constexpr size_t kSourceBytesMax = 1 << 20;

}  // namespace

struct ChatTemplate::Parts {
  Block block;
  bool marks_generation = false;
  std::vector<std::string> names;  // sorted: all names that stand in tags
  std::set<std::string> needed;    // as Needs() says
};

namespace {

bool IsNameAt(const std::vector<Token>& tokens, size_t at,
              absl::string_view name) {
  return at < tokens.size() && tokens[at].kind == Token::Kind::kName &&
         tokens[at].text == name;
}

// `name is defined`, `is not defined`, `is undefined`, from its name on.
bool AsksWhetherDefined(const std::vector<Token>& tokens, size_t at) {
  if (!IsNameAt(tokens, at + 1, "is")) return false;
  const size_t test = at + (IsNameAt(tokens, at + 2, "not") ? 3 : 2);
  return IsNameAt(tokens, test, "defined") ||
         IsNameAt(tokens, test, "undefined");
}

// `value.name`.
bool IsAttribute(const std::vector<Token>& tokens, size_t at) {
  return at > 0 && tokens[at - 1].kind == Token::Kind::kOperator &&
         tokens[at - 1].text == ".";
}

std::set<std::string> NeededNames(const std::vector<Token>& tokens) {
  std::set<std::string> needed, set;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kName) continue;
    if (i > 0 && IsNameAt(tokens, i - 1, "set")) {
      set.insert(tokens[i].text);
    } else if (!IsAttribute(tokens, i) && !AsksWhetherDefined(tokens, i)) {
      needed.insert(tokens[i].text);
    }
  }
  for (const std::string& name : set) needed.erase(name);
  return needed;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const Parts> parts)
    : parts_(std::move(parts)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<ChatTemplate> ChatTemplate::Parse(absl::string_view source) {
  if (source.size() > kSourceBytesMax) {
    return absl::InvalidArgumentError("it has more than 1 MiB");
  }
  auto parts = std::make_unique<Parts>();
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != Token::Kind::kName) continue;
    parts->names.push_back(tokens[i].text);
    parts->marks_generation |= tokens[i].text == "generation" && i > 0 &&
                               tokens[i - 1].kind == Token::Kind::kBlockBegin;
  }
  std::sort(parts->names.begin(), parts->names.end());
  parts->needed = NeededNames(tokens);
  ASSIGN_OR_RETURN(parts->block, Parser(std::move(tokens)).Parse());
  return ChatTemplate(std::move(parts));
}

absl::StatusOr<RenderedChat> ChatTemplate::Render(
    const Dict& variables, const RenderLimits& limits) const {
  return Renderer(variables, limits).Run(parts_->block);
}

bool ChatTemplate::marks_generation() const { return parts_->marks_generation; }

bool ChatTemplate::Reads(absl::string_view name) const {
  return std::binary_search(parts_->names.begin(), parts_->names.end(), name);
}

bool ChatTemplate::Needs(absl::string_view name) const {
  return parts_->needed.count(std::string(name)) > 0;
}

}  // namespace troupe::chat
