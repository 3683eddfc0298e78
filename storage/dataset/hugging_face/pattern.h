// A pattern of a tokenizer.json (pattern_syntax.h), compiled by PCRE2 to
// machine code.
//
//   ASSIGN_OR_RETURN(const Pattern pattern, Pattern::Compile(R"(\s+)"));
//   PatternScratch scratch;
//   RETURN_IF_ERROR(pattern.ForEachMatch(text, scratch, [](size_t begin,
//                                                          size_t end) {...}));
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_H_

#include <pcre2.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/hugging_face/pattern_syntax.h"

namespace troupe {

// What a match works in: one a thread.
class PatternScratch {
 public:
  PatternScratch();

 private:
  friend class Pattern;
  template <auto kFree>
  struct Free {
    template <typename T>
    void operator()(T* value) const {
      kFree(value);
    }
  };
  std::unique_ptr<pcre2_match_context, Free<&pcre2_match_context_free>>
      context_;
  std::unique_ptr<pcre2_jit_stack, Free<&pcre2_jit_stack_free>> stack_;
  std::unique_ptr<pcre2_match_data, Free<&pcre2_match_data_free>> data_;
};

// Immutable; thread-safe.
class Pattern {
 public:
  // InvalidArgument for one that is damaged or not known.
  static absl::StatusOr<Pattern> Compile(absl::string_view pattern);
  // Matches the text itself.
  static absl::StatusOr<Pattern> Literal(absl::string_view text);

  // Calls found(begin, end) for the matches from left to right, as Oniguruma
  // finds them; they do not overlap, and may be empty. Requires valid UTF-8.
  // ResourceExhausted where a match takes too many steps.
  template <typename Found>
  absl::Status ForEachMatch(absl::string_view text, PatternScratch& scratch,
                            Found found) const;

  // Whether the whole text is a match.
  absl::StatusOr<bool> MatchesWhole(absl::string_view text,
                                    PatternScratch& scratch) const;
  // Whether one begins with the text.
  absl::StatusOr<bool> MatchesStart(absl::string_view text,
                                    PatternScratch& scratch) const;

  const std::vector<PatternSequence>& alternatives() const { return tree_; }
  // Compiles a part of another's tree.
  static absl::StatusOr<Pattern> OfTree(std::vector<PatternSequence> tree);

 private:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    bool found = false;
  };
  // The first at `from` or later. `options`: of pcre2_match.
  absl::StatusOr<Match> Find(absl::string_view text, size_t from,
                             uint32_t options, PatternScratch& scratch) const;

  std::vector<PatternSequence> tree_;
  std::shared_ptr<pcre2_code> code_;
  bool has_machine_code_ = false;
};

template <typename Found>
absl::Status Pattern::ForEachMatch(absl::string_view text,
                                   PatternScratch& scratch, Found found) const {
  size_t from = 0;
  size_t last_end = absl::string_view::npos;
  while (from <= text.size()) {
    absl::StatusOr<Match> match = Find(text, from, 0, scratch);
    if (!match.ok()) return match.status();
    if (!match->found) break;
    if (match->begin == match->end && match->end == last_end) {
      // An empty match right after another is none.
      if (from == text.size()) break;
      do {
        ++from;
      } while (from < text.size() && (text[from] & 0xC0) == 0x80);
      continue;
    }
    found(match->begin, match->end);
    from = last_end = match->end;
  }
  return absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_H_
