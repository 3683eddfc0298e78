// The pieces of a model and their ids.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_VOCABULARY_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "storage/dataset/hugging_face/json_place.h"

namespace troupe {

inline constexpr int32_t kNoToken = -1;

class Vocabulary {
 public:
  // An object, {piece: id}. InvalidArgument for an id that comes twice, or is
  // too large.
  static absl::StatusOr<Vocabulary> Parse(const JsonPlace& place);

  // Refuses an id that has a text.
  absl::Status Add(std::string text, int64_t id, const JsonPlace& place);

  // kNoToken where there is none.
  int32_t IdOf(absl::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNoToken : found->second;
  }
  // By id; an id that no piece has: empty.
  const std::vector<std::string>& texts() const { return texts_; }
  size_t count() const { return ids_.size(); }
  size_t longest() const { return longest_; }  // bytes of a piece
  bool Has(int64_t id) const {
    return id >= 0 && id < static_cast<int64_t>(has_.size()) && has_[id];
  }

  // "<0x00>" to "<0xFF>".
  std::array<int32_t, 256> BytePieces() const;

 private:
  absl::flat_hash_map<std::string, int32_t> ids_;
  std::vector<std::string> texts_;
  std::vector<bool> has_;
  size_t longest_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_VOCABULARY_H_
