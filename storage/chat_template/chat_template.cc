#include "storage/chat_template/chat_template.h"

#include <algorithm>
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
};

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

}  // namespace troupe::chat
