#include "storage/dataset/hugging_face/pattern.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"

namespace troupe {
namespace {

// Steps of one match. A pattern of a published tokenizer takes some for each
// character; one that backtracks without end takes all of them in about a
// second.
constexpr uint32_t kMatchSteps = 50'000'000;
constexpr uint32_t kDepth = 100'000;
constexpr uint32_t kHeapKilobytes = 64 << 10;
constexpr size_t kStackBytesFirst = 64 << 10;
constexpr size_t kStackBytesMax = 64 << 20;

std::string ErrorText(int code) {
  unsigned char text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

}  // namespace

PatternScratch::PatternScratch()
    : context_(pcre2_match_context_create(nullptr)),
      stack_(pcre2_jit_stack_create(kStackBytesFirst, kStackBytesMax, nullptr)),
      data_(pcre2_match_data_create(1, nullptr)) {
  CHECK(context_ != nullptr && stack_ != nullptr && data_ != nullptr);
  pcre2_set_match_limit(context_.get(), kMatchSteps);
  pcre2_set_depth_limit(context_.get(), kDepth);
  pcre2_set_heap_limit(context_.get(), kHeapKilobytes);
  pcre2_jit_stack_assign(context_.get(), nullptr, stack_.get());
}

absl::StatusOr<Pattern> Pattern::Compile(absl::string_view pattern) {
  ASSIGN_OR_RETURN(std::vector<PatternSequence> tree, ParsePattern(pattern));
  return OfTree(std::move(tree));
}

absl::StatusOr<Pattern> Pattern::Literal(absl::string_view text) {
  std::vector<PatternSequence> tree(1);
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    PatternItem item;
    item.set = absl::StrCat("[\\x{", absl::Hex(character.code), "}]");
    tree[0].push_back(std::move(item));
    at += character.bytes;
  }
  return OfTree(std::move(tree));
}

absl::StatusOr<Pattern> Pattern::OfTree(std::vector<PatternSequence> tree) {
  const std::string printed = PrintPattern(tree);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(printed.data()), printed.size(),
      PCRE2_UTF | PCRE2_NO_AUTO_CAPTURE, &error, &at, nullptr);
  if (code == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern: ", ErrorText(error), ", at byte ", at, " of ", printed));
  }
  Pattern pattern;
  pattern.tree_ = std::move(tree);
  pattern.code_ = std::shared_ptr<pcre2_code>(code, &pcre2_code_free);
  // Without machine code, where memory may not be executed, it is interpreted.
  pattern.has_machine_code_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  return pattern;
}

absl::StatusOr<Pattern::Match> Pattern::Find(absl::string_view text,
                                             size_t from, uint32_t options,
                                             PatternScratch& scratch) const {
  const auto subject =
      reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? "" : text.data());
  // Anchors of a match are for the interpreter.
  const int count =
      has_machine_code_ && options == 0
          ? pcre2_jit_match(code_.get(), subject, text.size(), from, 0,
                            scratch.data_.get(), scratch.context_.get())
          : pcre2_match(code_.get(), subject, text.size(), from,
                        options | PCRE2_NO_UTF_CHECK, scratch.data_.get(),
                        scratch.context_.get());
  if (count == PCRE2_ERROR_NOMATCH) return Match();
  if (count < 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the text, byte ", from, ": the pattern gives up: ", ErrorText(count)));
  }
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(scratch.data_.get());
  return Match{ends[0], ends[1], true};
}

absl::StatusOr<bool> Pattern::MatchesWhole(absl::string_view text,
                                           PatternScratch& scratch) const {
  ASSIGN_OR_RETURN(const Match match,
                   Find(text, 0, PCRE2_ANCHORED | PCRE2_ENDANCHORED, scratch));
  return match.found;
}

absl::StatusOr<bool> Pattern::MatchesStart(absl::string_view text,
                                           PatternScratch& scratch) const {
  ASSIGN_OR_RETURN(const Match match, Find(text, 0, PCRE2_ANCHORED, scratch));
  return match.found;
}

}  // namespace troupe
