#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/model.h"

namespace troupe {
namespace {

// From left to right, always the longest piece (Schuster and Nakajima,
// "Japanese and Korean Voice Search", 2012). A word that is too long, or has a
// place where no piece begins, is one unknown token.
class WordPieceModel final : public TokenModel {
 public:
  WordPieceModel(Vocabulary vocabulary, int32_t unknown_id, std::string prefix,
                 size_t characters_max, bool byte_level)
      : vocabulary_(std::move(vocabulary)),
        unknown_id_(unknown_id),
        prefix_(std::move(prefix)),
        characters_max_(characters_max),
        byte_level_(byte_level) {}

  const Vocabulary& vocabulary() const override { return vocabulary_; }

  absl::Status Tokenize(absl::string_view piece, ModelScratch& scratch,
                        std::vector<int32_t>& ids) const override {
    std::string written;
    if (byte_level_) piece = written = BytesAsCharacters(piece);
    const size_t characters =
        std::count_if(piece.begin(), piece.end(),
                      [](char byte) { return (byte & 0xC0) != 0x80; });
    const size_t first = ids.size();
    for (size_t begin = 0; begin < piece.size();) {
      const size_t bytes = characters > characters_max_
                               ? 0
                               : AddLongest(piece, begin, scratch.text, ids);
      if (bytes == 0) {
        ids.resize(first);
        ids.push_back(unknown_id_);
        break;
      }
      begin += bytes;
    }
    return absl::OkStatus();
  }

 private:
  // How many bytes it has; 0: there is none.
  size_t AddLongest(absl::string_view piece, size_t begin, std::string& spelled,
                    std::vector<int32_t>& ids) const {
    const size_t prefix = begin == 0 ? 0 : prefix_.size();
    if (vocabulary_.longest() < prefix) return 0;
    size_t bytes =
        std::min(piece.size() - begin, vocabulary_.longest() - prefix);
    spelled.assign(prefix_, 0, prefix);
    spelled.append(piece.data() + begin, bytes);
    for (; bytes > 0; --bytes, spelled.pop_back()) {
      const bool whole = begin + bytes == piece.size() ||
                         (piece[begin + bytes] & 0xC0) != 0x80;
      const int32_t id = whole ? vocabulary_.IdOf(spelled) : kNoToken;
      if (id == kNoToken) continue;
      ids.push_back(id);
      return bytes;
    }
    return 0;
  }

  const Vocabulary vocabulary_;
  const int32_t unknown_id_;
  const std::string prefix_;
  const size_t characters_max_;
  const bool byte_level_;
};

}  // namespace

TokenModelOr MakeWordPieceModel(const JsonPlace& place, bool byte_level) {
  RETURN_IF_ERROR(
      place.CheckKeys({"type", "unk_token", "continuing_subword_prefix",
                       "max_input_chars_per_word", "vocab"}));
  ASSIGN_OR_RETURN(const JsonPlace pieces, place.Field("vocab"));
  ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Parse(pieces));
  ASSIGN_OR_RETURN(const std::string unknown, place.Text("unk_token"));
  const int32_t unknown_id = vocabulary.IdOf(unknown);
  if (unknown_id == kNoToken) {
    return place.Error("\"unk_token\" is not in the vocabulary");
  }
  ASSIGN_OR_RETURN(std::string prefix, place.Text("continuing_subword_prefix"));
  ASSIGN_OR_RETURN(const int64_t characters_max,
                   place.Integer("max_input_chars_per_word", 0, 1 << 30));
  return std::make_unique<const WordPieceModel>(
      std::move(vocabulary), unknown_id, std::move(prefix),
      static_cast<size_t>(characters_max), byte_level);
}

}  // namespace troupe
