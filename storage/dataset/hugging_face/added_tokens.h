// Tokens that are found in a text before it is split ("added_tokens"), special
// ones among them: of the longest at each place, from left to right.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_ADDED_TOKENS_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_ADDED_TOKENS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/normalizer.h"
#include "storage/dataset/hugging_face/vocabulary.h"
#include "storage/dataset/sentencepiece/piece_trie.h"

namespace troupe {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;      // stands for no text
  bool single_word = false;  // only where no letter stands beside it
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // and behind it
  bool normalized = false;   // found in the normalized text
};

// Their descriptions. InvalidArgument for an id that is not the one that the
// `tokenizers` library gives: that of the vocabulary, or the next free one.
absl::StatusOr<std::vector<AddedToken>> ParseAddedTokens(
    const JsonPlace& place, const Vocabulary& vocabulary);

// Finds tokens in texts. Immutable; thread-safe.
class TokenFinder {
 public:
  // By which texts, which may be others than their content.
  void Add(absl::string_view text, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  // Calls found(begin, end, token) for what is between tokens, with null, and
  // for each token, with what it takes; from left to right, nothing empty.
  template <typename Found>
  void Split(absl::string_view text, Found found) const;

  // Whether a text reaches to byte `at`, or over it.
  bool Touches(absl::string_view text, size_t at) const;

  size_t longest() const { return longest_; }  // bytes

 private:
  struct Match {
    size_t begin = 0;
    size_t end = 0;
    const AddedToken* token = nullptr;
  };
  // The next at `from` or later; no token where there is none.
  Match Next(absl::string_view text, size_t from) const;
  static bool IsSingleWord(absl::string_view text, const Match& match);
  static size_t SpacesBegin(absl::string_view text, size_t end);
  static size_t SpacesEnd(absl::string_view text, size_t begin);

  std::vector<AddedToken> tokens_;
  PieceTrie trie_;                  // of indices
  std::array<bool, 256> begins_{};  // by byte
  size_t longest_ = 0;
};

template <typename Found>
void TokenFinder::Split(absl::string_view text, Found found) const {
  size_t done = 0;
  size_t from = 0;
  while (!tokens_.empty() && from < text.size()) {
    const Match match = Next(text, from);
    if (match.token == nullptr) break;
    from = match.end;
    if (match.token->single_word && !IsSingleWord(text, match)) continue;
    size_t begin = match.begin;
    size_t end = match.end;
    // What the token before has taken is taken.
    if (match.token->strip_left) {
      begin = std::max(SpacesBegin(text, begin), done);
    }
    if (match.token->strip_right) end = SpacesEnd(text, end);
    if (done < begin) found(done, begin, nullptr);
    found(begin, end, match.token);
    done = end;
  }
  if (done < text.size()) found(done, text.size(), nullptr);
}

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_ADDED_TOKENS_H_
